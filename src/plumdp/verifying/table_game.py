"""Chains whose rows nature chooses within intervals, in floats: nature's best answers, and where it may keep runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plumdp.base.rounding import UNDERFLOW
from plumdp.model.graph import BoolArray, FloatArray, Indices
from plumdp.verifying.checker.reading import Exact
from plumdp.verifying.checker.table_chain import TableChain
from plumdp.verifying.checker.table_values import Intervals

_ROUNDS = 200


@dataclass(frozen=True)
class Game:
    """A chain whose rows nature chooses within intervals, in floats."""

    chain: TableChain
    intervals: Intervals

    @cached_property
    def rows(self) -> list[tuple[FloatArray, FloatArray]]:
        """The least and the largest probability of each place of each node."""
        of_rows = {row: (floats(low), floats(high)) for row, (low, high) in self.intervals.items()}
        return [
            (floats(node.numbers), floats(node.numbers)) if node.row is None else of_rows[node.row]
            for node in self.chain.nodes
        ]

    @cached_property
    def reward(self) -> FloatArray:
        """The reward of each node."""
        return floats([node.reward for node in self.chain.nodes])

    @cached_property
    def successors(self) -> list[Indices]:
        """The open successors of each node, -1 where the value is known."""
        return [np.array([-1 if s is None else s for s in node.successors]) for node in self.chain.nodes]

    @cached_property
    def closed(self) -> list[FloatArray]:
        """The known values of closed successors of each node, 0 for open ones."""
        return [floats(node.known) for node in self.chain.nodes]

    def ahead(self, s: int, values: FloatArray, *, closed: bool) -> FloatArray:
        """Return values at the successors of a node, those of closed ones being known, or 0."""
        at = self.successors[s]
        return np.where(at >= 0, values[at], self.closed[s] if closed else 0.0)

    def pick(self, s: int, ahead: FloatArray, side: int) -> FloatArray:
        """Return the probabilities of a node with the largest (side 1) or least mean of values ahead."""
        low, high = self.rows[s]
        p, left = low.copy(), 1 - low.sum()
        for i in np.argsort(-side * ahead, kind="stable").tolist():
            p[i] += min(left, high[i] - low[i])
            left -= min(left, high[i] - low[i])
        return p

    def middle(self, s: int) -> FloatArray:
        """Return probabilities within the intervals of a node that are positive where they may be."""
        low, high = self.rows[s]
        room = high - low
        return low + (1 - low.sum()) * room / room.sum() if room.sum() > 0 else low

    def may_stay(self, s: int, is_inside: BoolArray) -> bool:
        """Return whether nature may keep a run that is in a node among some of its places."""
        low, high = self.rows[s]
        return bool(low[~is_inside].sum() <= 0 and high[is_inside].sum() >= 1)

    def solve(
        self, asked: BoolArray, exits: dict[int, list[int]], side: int, cost: FloatArray, *, closed: bool
    ) -> tuple[FloatArray, Elimination]:
        """Return nature's values of the nodes that are asked for, 0 elsewhere, and their equations.

        ``exits`` has an end component, by the first of its nodes, of which all nodes have the value of the best exit.
        """
        n = len(self.chain.nodes)
        inside = {s: first for first, nodes in exits.items() for s in nodes}
        single = [s for s in np.flatnonzero(asked).tolist() if s not in inside]
        rows = {s: self.middle(s) for s in single}
        values, last = np.zeros(n), b""
        for _ in range(_ROUNDS):
            ways = {first: self._exit(nodes, values, inside, first, closed=closed) for first, nodes in exits.items()}
            values, equations = self._values(rows, ways, inside, cost, closed=closed)
            rows = {s: self.pick(s, self.ahead(s, values, closed=closed), side) for s in single}
            picked = repr(sorted(ways.items())).encode() + b"".join(row.tobytes() for row in rows.values())
            if picked == last:
                break
            last = picked
        return values, equations

    def _exit(
        self, nodes: list[int], values: FloatArray, inside: dict[int, int], first: int, *, closed: bool
    ) -> tuple[int, float]:
        """Return the best successor outside of an end component, or -1 and its known value."""
        best = (-1, 0.0)
        worth = -np.inf
        for s in nodes:
            for at, value in zip(self.successors[s].tolist(), self.ahead(s, values, closed=closed), strict=True):
                if (at < 0 or inside.get(at) != first) and value > worth:
                    best, worth = (at, float(value) if at < 0 else 0.0), float(value)
        return best

    def _values(
        self,
        rows: dict[int, FloatArray],
        ways: dict[int, tuple[int, float]],
        inside: dict[int, int],
        cost: FloatArray,
        *,
        closed: bool,
    ) -> tuple[FloatArray, Elimination]:
        n, discount = len(self.chain.nodes), to_float(self.chain.discount)
        moves, leaves, right = np.zeros((n, n)), np.ones(n), np.zeros(n)
        for s, p in rows.items():
            at = self.successors[s]
            np.add.at(moves[s], at[at >= 0], discount * p[at >= 0])
            leaves[s] = (1 - discount) + discount * p[at < 0].sum()
            right[s] = cost[s] + (discount * float(p[at < 0] @ self.closed[s][at < 0]) if closed else 0.0)
        for s, first in inside.items():
            to, value = ways[first] if s == first else (first, 0.0)
            right[s] = value + (cost[s] if s == first else 0.0)
            if to >= 0:
                moves[s, to], leaves[s] = 1.0, 0.0
        asked = np.array([*rows, *inside], dtype=np.int64)
        is_left = np.ones(n, dtype=np.bool_)
        is_left[asked] = False
        leaves += moves[:, is_left].sum(axis=1) * ~is_left  # to nodes that are not asked for
        moves[:, is_left] = 0.0
        equations = Elimination.of(moves, leaves)
        return equations.solve(right), equations


@dataclass(frozen=True)
class Elimination:
    """Equations of a chain by elimination without subtractions, so that small chances to leave keep their digits."""

    moves: FloatArray  # (n, n)
    pivots: FloatArray  # (n)

    @staticmethod
    def of(moves: FloatArray, leaves: FloatArray) -> Elimination:
        """Return the elimination, given chances to move and to leave; those to stay are what is missing to one."""
        moves, leaves, n = moves.copy(), leaves.copy(), len(leaves)
        pivots = np.zeros(n)
        for k in range(n - 1, -1, -1):
            pivots[k] = max(leaves[k] + moves[k, :k].sum(), UNDERFLOW)
            share = moves[:k, k] / pivots[k]
            moves[:k, :k] += share[:, None] * moves[k, :k]
            leaves[:k] += share * leaves[k]
        return Elimination(moves, pivots)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return about the solution for a right-hand side."""
        right, n = right.copy(), len(right)
        for k in range(n - 1, -1, -1):
            right[:k] += self.moves[:k, k] / self.pivots[k] * right[k]
        solution = np.zeros(n)
        for k in range(n):
            solution[k] = (right[k] + self.moves[k, :k] @ solution[:k]) / self.pivots[k]
        return solution


def floats(numbers: Sequence[Exact]) -> FloatArray:
    """Return fractions as floats."""
    return np.array([to_float(x) for x in numbers])


def to_float(number: Exact) -> float:
    """Return the float that is nearest to a fraction."""
    return int(number.p) / int(number.q)


def for_nothing(game: Game) -> BoolArray:
    """Return where nature may see to it that a run earns nothing."""
    inside: BoolArray = game.reward == 0
    while True:
        kept = inside.copy()
        for s in np.flatnonzero(inside).tolist():
            at = game.successors[s]
            kept[s] = game.may_stay(s, np.where(at >= 0, inside[at], game.closed[s] == 0))
        if (kept == inside).all():
            return kept
        inside = kept


def end_components(game: Game) -> list[list[int]]:
    """Return the largest sets of open nodes in which nature may keep runs forever."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = len(game.chain.nodes)
    part = np.zeros(n, dtype=np.int64)  # -1 outside
    while True:
        pairs = [(s, t) for s in range(n) for t in game.successors[s].tolist() if t >= 0 and part[s] == part[t] >= 0]
        i, j = zip(*pairs, strict=True) if pairs else ((), ())
        label = connected_components(csr_array((np.ones(len(i)), (i, j)), shape=(n, n)), connection="strong")[1]
        new = np.where(part >= 0, label, -1)
        stays = [
            new[s] >= 0
            and game.may_stay(s, (game.successors[s] >= 0) & (new[game.successors[s]] == new[s]))
            for s in range(n)
        ]  # fmt: skip
        new = np.where(stays, new, -1)
        if (new == part).all():
            return [np.flatnonzero(part == each).tolist() for each in np.unique(part[part >= 0])]
        part = new


def leads_to(game: Game, nodes: set[int]) -> BoolArray:
    """Return which nodes may lead to some, along all transitions, with these."""
    ahead = np.zeros(len(game.chain.nodes), dtype=np.bool_)
    ahead[list(nodes)] = True
    while True:
        more = np.array(
            [here or bool(ahead[at[at >= 0]].any()) for here, at in zip(ahead, game.successors, strict=True)],
            dtype=bool,
        )
        if np.array_equal(more, ahead):
            return ahead
        ahead = more

"""Chains whose rows nature chooses within intervals, in floats: nature's best answers, and where it may keep runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from flint import fmpq

from plumdp.base.rounding import UNDERFLOW
from plumdp.model.graph import BoolArray, FloatArray, Indices
from plumdp_verify.reading import Exact
from plumdp_verify.table_chain import Node, TableChain
from plumdp_verify.table_values import Intervals, mean

_DENSE = 300  # nodes up to which equations are eliminated without subtractions


@dataclass(frozen=True)
class Game:
    """A chain whose rows nature chooses within intervals, in floats."""

    chain: TableChain
    intervals: Intervals
    asked: BoolArray  # (n): the nodes whose values are found; others are worth nothing
    exits: Mapping[int, list[int]] = field(default_factory=dict)
    # end components by the first of their nodes, all of which have the value of the best way out

    @cached_property
    def inside(self) -> dict[int, int]:
        """The first node of the end component of each node that is in one."""
        return {s: first for first, nodes in self.exits.items() for s in nodes}

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

    def may_stay(self, s: int, is_inside: BoolArray) -> bool:
        """Return whether nature may keep a run that is in a node among some of its places."""
        low, high = self.rows[s]
        return bool(low[~is_inside].sum() <= 0 and high[is_inside].sum() >= 1)

    def answer(self, values: Sequence[Exact], side: int, end: Exact | None) -> Answer:
        """Return how nature makes values ahead largest (side 1) or least; ``end`` is that of closed nodes, if given."""
        rows = {s: self._pick(s, node.ahead(values, end), side) for s, node in self.single()}
        ways = {first: self._exit(first, values, end)[0] for first in self.exits}
        return Answer(rows, ways)

    def first_answer(self) -> Answer:
        """Return probabilities that are positive wherever they may be, so that runs end if they can."""
        rows = {}
        for s, _ in self.single():
            low, high = self.rows[s]
            room = high - low
            rows[s] = low + (1 - low.sum()) * room / room.sum() if room.sum() > 0 else low
        nothing = [fmpq(0)] * len(self.chain.nodes)
        return Answer(rows, {first: self._exit(first, nothing, None)[0] for first in self.exits})

    def single(self) -> Iterator[tuple[int, Node]]:
        """Yield the nodes that are asked for, without end components."""
        for s in np.flatnonzero(self.asked).tolist():
            if s not in self.inside:
                yield s, self.chain.nodes[s]

    def step(self, values: Sequence[Exact], cost: Sequence[Exact], side: int, end: Exact | None) -> dict[int, Exact]:
        """Return what one step makes of values against nature's best answer, of end components for the first node."""
        new = {}
        for s, node in self.single():
            new[s] = cost[s] + self.chain.discount * mean(node, self.intervals, node.ahead(values, end), side)
        return new | {first: cost[first] + self._exit(first, values, end)[1] for first in self.exits}

    def _pick(self, s: int, ahead: Sequence[Exact], side: int) -> FloatArray:
        low, high = self.rows[s]
        p, left = low.copy(), 1 - low.sum()
        for i in sorted(range(len(p)), key=lambda i: ahead[i], reverse=side > 0):
            more = min(left, high[i] - low[i])
            p[i], left = p[i] + more, left - more
        return p

    def _exit(self, first: int, values: Sequence[Exact], end: Exact | None) -> tuple[int, Exact]:
        """Return the best successor outside of an end component, -1 if it is closed, and its value."""
        out = [
            (value, -1 if at is None else at)
            for s in self.exits[first]
            for at, value in zip(self.chain.nodes[s].successors, self.chain.nodes[s].ahead(values, end), strict=True)
            if at is None or self.inside.get(at) != first
        ]
        value, at = max(out, key=lambda pair: pair[0], default=(fmpq(0), -1))
        return at, value

    def equations(self, answer: Answer) -> Equations:
        """Return the equations of the chain if nature answers like this."""
        from scipy.sparse import csr_array

        n, discount = len(self.chain.nodes), to_float(self.chain.discount)
        is_in, leaves = np.zeros(n, dtype=np.bool_), np.ones(n)
        is_in[[*answer.rows, *self.inside]] = True
        moves: list[tuple[int, int, float]] = []
        for s, p in answer.rows.items():
            at = self.successors[s]
            stays = (at >= 0) & is_in[at]
            moves += [(s, t, x) for t, x in zip(at[stays].tolist(), (discount * p[stays]).tolist(), strict=True)]
            leaves[s] = (1 - discount) + discount * p[~stays].sum()
        for s, first in self.inside.items():
            to = answer.ways[first] if s == first else first
            if to >= 0 and is_in[to]:
                moves.append((s, to, 1.0))
                leaves[s] = 0.0
        i, j, x = zip(*moves, strict=True) if moves else ((), (), ())
        matrix = csr_array((x, (i, j)), shape=(n, n))
        return Elimination.of(matrix.toarray(), leaves) if n <= _DENSE else Factors.of(matrix, leaves)


@dataclass(frozen=True)
class Answer:
    """The probabilities that nature chooses in single nodes, and the node that each end component is left to."""

    rows: dict[int, FloatArray]
    ways: dict[int, int]

    @cached_property
    def key(self) -> bytes:
        """A text that is the same for equal answers."""
        return repr(sorted(self.ways.items())).encode() + b"".join(row.tobytes() for row in self.rows.values())


class Equations(Protocol):
    """Equations of a chain."""

    def solve(self, right: FloatArray) -> FloatArray:
        """Return about the solution for a right-hand side."""


@dataclass(frozen=True)
class Factors:
    """Equations of a large chain by sparse factors."""

    factors: Any

    @staticmethod
    def of(moves: Any, leaves: FloatArray) -> Factors:
        """Return the factors, given chances to move and to leave; those to stay are what is missing to one."""
        from scipy.sparse import diags_array
        from scipy.sparse.linalg import splu

        own = diags_array(moves.diagonal())
        away = moves - own
        return Factors(splu((diags_array(np.maximum(leaves + away.sum(axis=1), UNDERFLOW)) - away).tocsc()))

    def solve(self, right: FloatArray) -> FloatArray:
        """Return about the solution for a right-hand side."""
        solution: FloatArray = self.factors.solve(right)
        return solution


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

"""The private copy of a game's rows that the sweeps run on: undecided states in solving order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plumdp.model.graph import BoolArray, FloatArray, IntArray
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver import graph_kernels, layout_kernels
from plumdp.solver.game import Game
from plumdp.solver.nature import Loops, loops_for
from plumdp.solver.rows import Rows

_SMALL = 16  # states of a component that is solved together with its neighbours
_JOINED = 256  # states that are solved together
_MANY = 4096  # expressions whose bounds no longer fit into fast memory, and are put into the order in which rows ask


@dataclass(frozen=True, eq=False)
class SweepLayout:
    """The undecided states as positions 0, 1, …, component by component, successors first; then the decided ones.

    A sweep sorts the transitions of each row by nature's preference, which is why the copy is private.
    """

    rows: Rows
    known: FloatArray  # (n_states): values of the decided states, by position
    rank: FloatArray | None  # (n_states): steps until a chance of the target, by position
    first_row: IntArray  # (n_undecided): row of the game's policy at each position
    state: IntArray  # (n_states): state at each position
    choice: IntArray  # (n_rows): the model's number of each row
    parts: list[tuple[int, int, bool]]  # one or more components: start, end, and whether they have no inner edges
    ends: IntArray  # (n_components): where each component ends
    n_undecided: int
    loops: Loops  # for what nature picks from
    used: IntArray | None = None  # the expressions that the bounds are of, in the order in which rows ask; None: all

    def sweep(
        self,
        start: int,
        end: int,
        source: FloatArray,
        result: FloatArray,
        best_row: IntArray,
        *,
        side: float,
        lift: float = 0.0,
        cap: float = np.inf,
        backwards: bool = False,
    ) -> tuple[int, float]:
        """Update the positions from ``start`` to ``end``; see ``interval.backup``."""
        arguments = (start, end, -1 if backwards else 1, self.rows, side, lift, cap, source, result, best_row)
        outcome: tuple[int, float] = self.loops.module.backup(*arguments, *self.loops.extra)
        return outcome

    def write_chain(self, start: int, end: int, judge: FloatArray, *arrays: Any) -> int:
        """Write the chain of the given rows and nature's best moves; see ``interval.chain_of_best``."""
        n_entries: int = self.loops.module.chain_of_best(start, end, self.rows, judge, *arrays, *self.loops.extra)
        return n_entries

    def facing(self, imdp: IntervalMDP, nature: float) -> SweepLayout:
        """Return the layout of the same game with other bounds, and with nature wanting large (+1) or small values."""
        own = self._with_numbers_of(imdp)._with_own_order()._with_bounds(imdp, nature)
        return replace(own, loops=_loops(imdp, own.rows, own.parts))

    def _with_own_order(self) -> SweepLayout:
        rows = self.rows._replace(successor=self.rows.successor.copy(), expression=self.rows.expression.copy())
        return replace(self, rows=rows)

    def _with_bounds(self, imdp: IntervalMDP, nature: float) -> SweepLayout:
        lower, upper = imdp.lower, imdp.upper
        if self.used is not None:
            lower, upper = lower[self.used], upper[self.used]
        return replace(self, rows=self.rows._replace(lower=lower, upper=upper, nature=nature))

    def _with_numbers_of(self, imdp: IntervalMDP) -> SweepLayout:
        """Return the layout with the model's numbers of expressions, if nature picks points of a region by them."""
        if self.used is None or imdp.region is None:
            return self
        expression = self.used.astype(np.uint32)[self.rows.expression]
        return replace(self, rows=self.rows._replace(expression=expression), used=None)

    def components(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return start and end of the components of a part."""
        ends = self.ends[slice(*np.searchsorted(self.ends, [start, end], side="right"))].tolist()
        return list(zip([start, *ends[:-1]], ends, strict=True))

    def policy(self, best_row: IntArray, of_decided: IntArray) -> IntArray:
        """Return the model's choice for each state, given those of the decided states."""
        policy = of_decided.copy()
        policy[self.state[: self.n_undecided]] = self.choice[best_row[: self.n_undecided]]
        return policy

    def rows_of(self, policy: IntArray) -> IntArray:
        """Return the rows of the undecided states, by position, that are a policy's choices."""
        row = np.zeros(int(self.choice.max(initial=0)) + 1, dtype=np.int32)
        row[self.choice] = np.arange(len(self.choice), dtype=np.int32)
        return row[policy[self.state[: self.n_undecided]]]

    def by_state(self, values: FloatArray) -> FloatArray:
        """Return values by position as values by state."""
        result = np.empty_like(values)
        result[self.state] = values
        return result


def lay_out(game: Game) -> SweepLayout:
    """Return the layout of a game."""
    imdp, graph = game.imdp, game.imdp.graph
    n_undecided = int(game.is_undecided.sum())
    order = np.empty(n_undecided, dtype=np.int32)
    component = np.full(graph.n_states, -1, dtype=np.int32)
    n_components = graph_kernels.strong_components(
        graph.first_choice, graph.first_transition, graph.successor, game.is_undecided, order, component
    )
    ends = np.searchsorted(component[order], np.arange(n_components), side="right").astype(np.int32)
    if game.rank is not None:
        _sort_large(order, ends, game.rank)
    state = np.concatenate([order, np.flatnonzero(~game.is_undecided).astype(np.int32)])
    rows, choice, has_loop, used = _copied_rows(game, order, state)
    rank = None if game.rank is None else game.rank[state]
    first_row = rows.first_choice[:-1].astype(np.int32) + (game.policy - graph.first_choice[:-1])[order]
    parts = _parts(ends, has_loop)
    loops = _loops(imdp, rows, parts)
    known = game.known[state]
    return SweepLayout(rows, known, rank, first_row, state, choice, parts, ends, n_undecided, loops, used)


def _sort_large(order: IntArray, ends: IntArray, rank: FloatArray) -> None:
    """Put the states of each large component into the order in which they come closer to the target, in place."""
    starts = np.concatenate([[0], ends[:-1]])
    for component in np.flatnonzero(ends - starts > _SMALL).tolist():
        part = order[starts[component] : ends[component]]
        part[:] = part[np.argsort(rank[part], kind="stable")]


def _copied_rows(game: Game, order: IntArray, state: IntArray) -> tuple[Rows, IntArray, BoolArray, IntArray | None]:
    """Return the rows of the states in ``order``, their numbers in the model, which states have loops, expressions."""
    imdp, graph, n = game.imdp, game.imdp.graph, len(order)
    position = np.empty(graph.n_states, dtype=np.int32)
    position[state] = np.arange(graph.n_states, dtype=np.int32)
    n_rows = int(np.diff(graph.first_choice)[order].sum())
    lengths = np.diff(graph.first_transition[graph.first_choice])
    n_transitions = int(lengths[order].sum(dtype=np.int64))
    first_choice, first = np.empty(n + 1, dtype=np.uint32), np.empty(n_rows + 1, dtype=np.uint32)
    successor, expression = np.empty(n_transitions, dtype=np.uint32), np.empty(n_transitions, dtype=np.uint32)
    choice, has_loop = np.empty(n_rows, dtype=np.int32), np.zeros(n, dtype=np.bool_)
    is_ordered = imdp.region is None and len(imdp.lower) > _MANY
    number = np.full(len(imdp.lower) if is_ordered else 0, -1, dtype=np.int32)
    used = np.empty_like(number)
    n_used = layout_kernels.lay_out(
        order, position, graph.first_choice, graph.first_transition, graph.successor, imdp.expression, first_choice,
        first, successor, expression, choice, has_loop, number, used,
    )  # fmt: skip
    lower, upper = (bounds[used[:n_used]] if is_ordered else bounds for bounds in (imdp.lower, imdp.upper))
    rows = Rows(
        first_choice, first, successor, expression, lower, upper, game.reward[choice], game.discount, game.agent,
        game.nature,
    )  # fmt: skip
    return rows, choice, has_loop, used[:n_used] if is_ordered else None


def _loops(imdp: IntervalMDP, rows: Rows, parts: list[tuple[int, int, bool]]) -> Loops:
    n_cyclic = sum(end - start for start, end, is_loose in parts if not is_loose)
    n_kept = len(rows.successor) if 2 * n_cyclic > len(rows.first_choice) else 0  # else most rows are met twice
    return loops_for(imdp.region, len(rows.first) - 1, int(np.diff(rows.first).max(initial=1)), n_kept)


def _parts(ends: Any, has_loop: BoolArray) -> list[tuple[int, int, bool]]:
    """Return the components, with neighbours joined that have no inner edges, and small ones up to some size.

    A proof of bounds holds for several components as for one, and the call of a sweep costs as much as many states.
    """
    if not len(ends):
        return []
    starts = np.concatenate([[0], ends[:-1]])
    is_loose = (ends - starts == 1) & ~has_loop[starts]
    block = np.where(ends - starts <= _SMALL, starts // _JOINED, -1)
    is_joined = np.where(is_loose[1:], is_loose[:-1], ~is_loose[:-1] & (block[1:] == block[:-1]) & (block[1:] >= 0))
    cuts = np.flatnonzero(~is_joined) + 1
    heads, tails = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(ends)]]) - 1
    return list(zip(starts[heads].tolist(), ends[tails].tolist(), is_loose[heads].tolist(), strict=True))

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
from plumdp.solver.rows import Rows, Unsigned

_SMALL = 16  # states of a component that is solved together with its neighbours
_JOINED = 256  # states that are solved together


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
        rows = self.rows._replace(lower=imdp.lower, upper=imdp.upper, nature=nature)
        return replace(self, rows=rows, loops=_loops(imdp, rows))

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
    state = np.concatenate([order, np.flatnonzero(~game.is_undecided).astype(np.int32)])
    position = np.empty(graph.n_states, dtype=np.int32)
    position[state] = np.arange(graph.n_states, dtype=np.int32)
    n_rows = int(np.diff(graph.first_choice)[order].sum())
    lengths = np.diff(graph.first_transition[graph.first_choice])
    n_transitions = int(lengths[order].sum(dtype=np.int64))
    first_choice, first = np.empty(n_undecided + 1, dtype=np.uint32), np.empty(n_rows + 1, dtype=np.uint32)
    successor, expression = np.empty(n_transitions, dtype=np.uint32), np.empty(n_transitions, dtype=np.uint32)
    choice = np.empty(n_rows, dtype=np.int32)
    layout_kernels.lay_out(
        order, position, graph.first_choice, graph.first_transition, graph.successor, imdp.expression, first_choice,
        first, successor, expression, choice,
    )  # fmt: skip
    ends = np.searchsorted(component[order], np.arange(n_components), side="right").astype(np.int32)
    parts = _parts(ends, _has_loop(first_choice, first, successor))
    rows = Rows(
        first_choice, first, successor, expression, imdp.lower, imdp.upper, game.reward[choice], game.discount,
        game.agent, game.nature,
    )  # fmt: skip
    rank = None if game.rank is None else game.rank[state]
    first_row = first_choice[:-1].astype(np.int32) + (game.policy - graph.first_choice[:-1])[order]
    loops = _loops(imdp, rows)
    return SweepLayout(rows, game.known[state], rank, first_row, state, choice, parts, ends, n_undecided, loops)


def _loops(imdp: IntervalMDP, rows: Rows) -> Loops:
    return loops_for(imdp.region, len(rows.first) - 1, int(np.diff(rows.first).max(initial=1)))


def _has_loop(first_choice: Unsigned, first: Unsigned, successor: Unsigned) -> BoolArray:
    result = np.zeros(len(first_choice) - 1, dtype=np.bool_)
    layout_kernels.mark_loops(first_choice, first, successor, result)
    return result


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

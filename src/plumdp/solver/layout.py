"""The private copy of a game that the sweeps run on: open states in solving order, rows side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.model.graph import BoolArray, FloatArray, IntArray
from plumdp.relaxation.ellipsoidal import RowEllipsoid
from plumdp.relaxation.intervals import IntervalMDP, RowNature
from plumdp.relaxation.rectangular import RowRegion
from plumdp.solver import ellipsoid_kernels, graph_kernels, kernels, region_kernels
from plumdp.solver.game import Game

Unsigned = npt.NDArray[np.uint32]

_SMALL = 16  # states of a component that is solved together with its neighbours
_JOINED = 256  # states that are solved together


@dataclass(frozen=True, eq=False)
class Board:
    """The open states as positions 0, 1, …: component by component, successors first; behind them the closed states.

    A sweep sorts the transitions within rows as nature likes them, which is why the copy is private.
    """

    rows: tuple[Any, ...]  # first_choice, first, successor, expression, lower, upper, reward, discount, agent, nature
    known: FloatArray  # (n_states): values of the closed states, by position
    rank: FloatArray | None  # (n_states): steps until a chance of the target, by position
    first_row: IntArray  # (n_open): row of the game's policy at each position
    state: IntArray  # (n_states): state at each position
    choice: IntArray  # (n_rows): the model's number of each row
    parts: list[tuple[int, int, bool]]  # one or more components: start, end, and whether they have no inner edges
    ends: IntArray  # (n_components): where each component ends
    n_open: int
    loops: Any  # the module of compiled loops for what nature picks from
    extra: tuple[Any, ...]  # what its loops take besides

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
        """Update the positions from ``start`` to ``end``; see ``kernels.backup``."""
        step = -1 if backwards else 1
        arguments = (start, end, step, *self.rows, side, lift, cap, source, result, best_row)
        outcome: tuple[int, float] = self.loops.backup(*arguments, *self.extra)
        return outcome

    def write_chain(self, start: int, end: int, judge: FloatArray, *arrays: Any) -> int:
        """Write the chain of the given rows and nature's best moves; see ``kernels.chain_of_best``."""
        arguments = (start, end, *self.rows[1:7], self.rows[9], judge, *arrays)
        extra = () if self.loops is kernels else self.extra
        n_entries: int = self.loops.chain_of_best(*arguments, *extra)
        return n_entries

    def facing(self, imdp: IntervalMDP, nature: float) -> Board:
        """Return the board of the same game with other bounds, and with nature wanting large (+1) or small values."""
        rows = (*self.rows[:4], imdp.lower, imdp.upper, *self.rows[6:9], nature)
        loops, extra = loops_of(imdp.region, len(self.choice), int(np.diff(self.rows[1]).max(initial=1)))
        return replace(self, rows=rows, loops=loops, extra=extra)

    def components(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return start and end of the components of a part."""
        ends = self.ends[slice(*np.searchsorted(self.ends, [start, end], side="right"))].tolist()
        return list(zip([start, *ends[:-1]], ends, strict=True))

    def policy(self, best_row: IntArray, of_closed: IntArray) -> IntArray:
        """Return the model's choice for each state, given those of the closed states."""
        policy = of_closed.copy()
        policy[self.state[: self.n_open]] = self.choice[best_row[: self.n_open]]
        return policy

    def rows_of(self, policy: IntArray) -> IntArray:
        """Return the rows of the open states, by position, that are a policy's choices."""
        row = np.zeros(int(self.choice.max(initial=0)) + 1, dtype=np.int32)
        row[self.choice] = np.arange(len(self.choice), dtype=np.int32)
        return row[policy[self.state[: self.n_open]]]

    def by_state(self, values: FloatArray) -> FloatArray:
        """Return values by position as values by state."""
        result = np.empty_like(values)
        result[self.state] = values
        return result


def lay_out(game: Game) -> Board:
    """Return the board of a game."""
    imdp, graph = game.imdp, game.imdp.graph
    n_open = int(game.is_open.sum())
    order = np.empty(n_open, dtype=np.int32)
    component = np.full(graph.n_states, -1, dtype=np.int32)
    n_components = graph_kernels.strong_components(
        graph.first_choice, graph.first_transition, graph.successor, game.is_open, order, component
    )
    state = np.concatenate([order, np.flatnonzero(~game.is_open).astype(np.int32)])
    position = np.empty(graph.n_states, dtype=np.int32)
    position[state] = np.arange(graph.n_states, dtype=np.int32)
    n_rows = int(np.diff(graph.first_choice)[order].sum())
    lengths = np.diff(graph.first_transition[graph.first_choice])
    n_transitions = int(lengths[order].sum(dtype=np.int64))
    first_choice, first = np.empty(n_open + 1, dtype=np.uint32), np.empty(n_rows + 1, dtype=np.uint32)
    successor, expression = np.empty(n_transitions, dtype=np.uint32), np.empty(n_transitions, dtype=np.uint32)
    choice = np.empty(n_rows, dtype=np.int32)
    kernels.lay_out(
        order, position, graph.first_choice, graph.first_transition, graph.successor, imdp.expression, first_choice,
        first, successor, expression, choice,
    )  # fmt: skip
    ends = np.searchsorted(component[order], np.arange(n_components), side="right").astype(np.int32)
    parts = _parts(ends, _has_loop(first_choice, first, successor))
    rows = (
        first_choice, first, successor, expression, imdp.lower, imdp.upper, game.reward[choice], game.discount,
        game.agent, game.nature,
    )  # fmt: skip
    longest = int(np.diff(graph.first_transition).max(initial=1))
    rank = None if game.rank is None else game.rank[state]
    first_row = first_choice[:-1].astype(np.int32) + (game.policy - graph.first_choice[:-1])[order]
    loops, extra = loops_of(imdp.region, n_rows, longest)
    return Board(rows, game.known[state], rank, first_row, state, choice, parts, ends, n_open, loops, extra)


Loops = tuple[Any, tuple[Any, ...]]


@singledispatch
def loops_of(region: RowNature | None, n_rows: int, longest: int) -> Loops:
    """Return the compiled loops for what nature picks from, and what they take besides; intervals if not a region."""
    if region is not None:
        raise TypeError(f"no compiled loops for a {type(region).__name__}: register them with loops_of")
    return kernels, (np.empty(longest),)


@loops_of.register
def _(region: RowEllipsoid, n_rows: int, longest: int) -> Loops:
    return ellipsoid_kernels, (np.empty(longest), region.tables)


@loops_of.register
def _(region: RowRegion, n_rows: int, longest: int) -> Loops:
    return region_kernels, (np.zeros(n_rows, dtype=np.int32), region.tables)  # where nature was last in each row


def _has_loop(first_choice: Unsigned, first: Unsigned, successor: Unsigned) -> BoolArray:
    result = np.zeros(len(first_choice) - 1, dtype=np.bool_)
    kernels.mark_loops(first_choice, first, successor, result)
    return result


def _parts(ends: Any, has_loop: BoolArray) -> list[tuple[int, int, bool]]:
    """Return the components, with neighbours joined that have no inner edges, and small ones up to some size.

    What proves bounds for one component proves them for several, and a sweep costs as much as many states.
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

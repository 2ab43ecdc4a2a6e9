"""The private copy of a game's rows that sweeps run on, with the undecided states in solving order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from plumdp.base.threads import check_interrupt, run_serially_behind
from plumdp.model.graph import BoolArray, FloatArray, IntArray
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver import chain_kernels, graph_kernels
from plumdp.solver.game import Game
from plumdp.solver.nature import Loops, Rows, loops_for

_SMALL = 16  # states of a component that is solved together with its neighbours
_JOINED = 256  # states that are solved together
_CHUNK = 1 << 17  # transitions that are swept for both bounds before the next ones: 1 MB
_MANY = 4096  # expressions whose bounds no longer fit into fast memory, and are put into the order in which rows ask

Bounds = tuple[FloatArray, FloatArray, IntArray]  # source and result of a sweep, and the agent's best rows


@dataclass(frozen=True, eq=False)
class SweepLayout:
    """The undecided states as positions 0, 1, …, by components, successors first, and then the decided ones.

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
    longest: int  # transitions of the longest row
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
        """Update the positions from ``start`` to ``end``, as ``interval.backup`` does."""
        check_interrupt()
        arguments = (start, end, -1 if backwards else 1, self.rows, side, lift, cap, source, result, best_row)
        outcome: tuple[int, float] = self.loops.module.backup(*arguments, *self.loops.extra)
        return outcome

    def sweep_both(self, start: int, end: int, below: Bounds, above: Bounds, cap: float = np.inf) -> None:
        """Update lower bounds and upper bounds, each given by source, result and best rows, by one pass over the rows.

        Rows are read from memory once for both, a chunk at a time. Upper bounds of a chunk follow its lower ones, on
        a thread of their own, so that they find the same order of rows on however many threads.
        """
        if len(self.rows.successor) <= _CHUNK:  # one chunk, and no second thread
            self.sweep(start, end, *below, side=-1.0)
            self.sweep(start, end, *above, side=1.0, cap=cap)
            return
        other = replace(self, loops=self.loops.apart())
        with run_serially_behind(len(self.rows.successor)) as then:
            for a, b in pairwise(self._cuts(start, end)):
                self.sweep(a, b, *below, side=-1.0)
                then(partial(other.sweep, a, b, *above, side=1.0, cap=cap))

    def _cuts(self, start: int, end: int) -> list[int]:
        """Return the positions from start to end at which about as many transitions have passed as fit into a cache."""
        passed = self.rows.first[self.rows.first_choice[start : end + 1]]
        inner = np.searchsorted(passed, np.arange(int(passed[0]) + _CHUNK, int(passed[-1]), _CHUNK)) + start
        return sorted({start, *inner.tolist(), end})

    def write_chain(self, start: int, end: int, judge: FloatArray, *arrays: Any) -> int:
        """Write the chain of the given rows and nature's best moves, as ``interval.chain_of_best`` does."""
        n_entries: int = self.loops.module.chain_of_best(start, end, self.rows, judge, *arrays, *self.loops.extra)
        return n_entries

    def is_of(self, game: Game, other: Game) -> bool:
        """Return whether the layout, which is that of ``game``, is that of another game on the same graph too.

        It depends on which states are undecided, and the order within large components on their ranks.
        """
        if game.is_undecided is not other.is_undecided and (game.is_undecided != other.is_undecided).any():
            return False
        if game.rank is None or other.rank is None or self.is_acyclic:
            return (game.rank is None) == (other.rank is None)
        return game.rank is other.rank or bool((game.rank == other.rank).all())

    @property
    def is_acyclic(self) -> bool:
        """Whether no undecided state can come back to itself."""
        return all(is_loose for _, _, is_loose in self.parts)

    def facing(self, game: Game) -> SweepLayout:
        """Return a layout for a game that this one is the layout of, with its bounds and the wishes of its nature.

        Sweeps sort the rows of the new one, and leave this one unchanged.
        """
        imdp, used = game.imdp, self.used
        if used is not None and imdp.region is not None:  # nature picks points of it by the model's own numbers
            expression, used = used.astype(np.uint32)[self.rows.expression], None
        else:
            expression = self.rows.expression.copy()
        lower, upper = (bounds if used is None else bounds[used] for bounds in (imdp.lower, imdp.upper))
        rows = self.rows._replace(
            successor=self.rows.successor.copy(), expression=expression, lower=lower, upper=upper, nature=game.nature
        )
        return replace(
            self,
            rows=rows,
            known=game.known[self.state],
            rank=None if game.rank is None else game.rank[self.state],
            first_row=_first_rows(game, rows, self.state[: self.n_undecided]),
            loops=_loops(imdp, rows, self.parts, self.longest),
            used=used,
        )

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
    imdp = game.imdp
    order, ends = _solving_order(game)
    state = np.concatenate([order, np.flatnonzero(~game.is_undecided).astype(np.int32)])
    rows, choice, has_loop, used = _copied_rows(game, order, state)
    rank = None if game.rank is None else game.rank[state]
    first_row, known = _first_rows(game, rows, order), game.known[state]
    longest = int(np.diff(rows.first).max(initial=1))
    parts = _parts(ends, has_loop)
    loops = _loops(imdp, rows, parts, longest)
    return SweepLayout(rows, known, rank, first_row, state, choice, parts, ends, len(order), longest, loops, used)


def _solving_order(game: Game) -> tuple[IntArray, IntArray]:
    """Return the undecided states, component by component, successors first, and where each component ends."""
    graph, is_undecided = game.imdp.graph, game.is_undecided
    scan = game.backward.scan_of(is_undecided)
    if scan is not None:
        return scan, np.arange(1, len(scan) + 1, dtype=np.int32)
    order = np.empty(int(is_undecided.sum()), dtype=np.int32)
    component = np.full(graph.n_states, -1, dtype=np.int32)
    n_components = graph_kernels.strong_components(
        graph.first_choice, graph.first_transition, graph.successor, is_undecided, order, component
    )
    ends = np.searchsorted(component[order], np.arange(n_components), side="right").astype(np.int32)
    if game.rank is not None:
        _sort_large(order, ends, game.rank)
    return order, ends


def _first_rows(game: Game, rows: Rows, order: IntArray) -> IntArray:
    """Return the row of the game's policy at each position."""
    rows_of_policy: IntArray = rows.first_choice[:-1].astype(np.int32)
    rows_of_policy += (game.policy - game.imdp.graph.first_choice[:-1])[order]
    return rows_of_policy


def _sort_large(order: IntArray, ends: IntArray, rank: FloatArray) -> None:
    """Put the states of each large component into the order in which they come closer to the target, in place."""
    starts = np.concatenate([[0], ends[:-1]])
    for component in np.flatnonzero(ends - starts > _SMALL).tolist():
        part = order[starts[component] : ends[component]]
        part[:] = part[np.argsort(rank[part], kind="stable")]


def _copied_rows(game: Game, order: IntArray, state: IntArray) -> tuple[Rows, IntArray, BoolArray, IntArray | None]:
    """Return the rows of the states in ``order``.

    Further, their numbers in the model, which states have loops, and the expressions in the order of their numbers.
    """
    imdp, graph, n = game.imdp, game.imdp.graph, len(order)
    position = np.empty(graph.n_states, dtype=np.int32)
    position[state] = np.arange(graph.n_states, dtype=np.int32)
    n_rows = int(np.diff(graph.first_choice)[order].sum())
    lengths = np.diff(graph.first_transition[graph.first_choice])
    n_transitions = int(lengths[order].sum(dtype=np.int64))
    first_choice, first = np.empty(n + 1, dtype=np.uint32), np.empty(n_rows + 1, dtype=np.uint32)
    successor, expression = np.empty(n_transitions, dtype=np.uint32), np.empty(n_transitions, dtype=np.uint32)
    choice, has_loop = np.empty(n_rows, dtype=np.int32), np.zeros(n, dtype=np.bool_)
    is_numbered = imdp.region is None and len(imdp.lower) > _MANY
    number = np.full(len(imdp.lower) if is_numbered else 0, -1, dtype=np.int32)
    used = np.empty_like(number)
    n_used = chain_kernels.lay_out(
        order, position, graph.first_choice, graph.first_transition, graph.successor, imdp.expression, first_choice,
        first, successor, expression, choice, has_loop, number, used,
    )  # fmt: skip
    lower, upper = (bounds[used[:n_used]] if is_numbered else bounds for bounds in (imdp.lower, imdp.upper))
    reward = game.reward[choice] if game.reward.any() else np.zeros(n_rows)
    rows = Rows(
        first_choice, first, successor, expression, lower, upper, reward, game.discount, game.agent, game.nature
    )
    return rows, choice, has_loop, used[:n_used] if is_numbered else None


def _loops(imdp: IntervalMDP, rows: Rows, parts: list[tuple[int, int, bool]], longest: int) -> Loops:
    n_cyclic = sum(end - start for start, end, is_loose in parts if not is_loose)
    n_kept = len(rows.successor) if 2 * n_cyclic > len(rows.first_choice) else 0  # else most rows are met twice
    return loops_for(imdp.region, rows, longest, n_kept)


def _parts(ends: Any, has_loop: BoolArray) -> list[tuple[int, int, bool]]:
    """Return the components, with neighbours joined that have no inner edges, and small ones up to some size.

    A proof of bounds holds for several components as for one, and the call of a sweep costs as much as many states.
    """
    if not len(ends):
        return []
    # every state is a component without inner edges: one pass over all
    if len(ends) == len(has_loop) and not has_loop.any():
        return [(0, len(ends), True)]
    starts = np.concatenate([[0], ends[:-1]])
    is_loose = (ends - starts == 1) & ~has_loop[starts]
    block = np.where(ends - starts <= _SMALL, starts // _JOINED, -1)
    is_joined = np.where(is_loose[1:], is_loose[:-1], ~is_loose[:-1] & (block[1:] == block[:-1]) & (block[1:] >= 0))
    borders = np.flatnonzero(~is_joined) + 1
    heads, tails = np.concatenate([[0], borders]), np.concatenate([borders, [len(ends)]]) - 1
    return list(zip(starts[heads].tolist(), ends[tails].tolist(), is_loose[heads].tolist(), strict=True))

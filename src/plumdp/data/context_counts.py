"""Counts contexts along runs: what of the past of its run each step has before its outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plumdp.data import kernels
from plumdp.data.contexts import MOST_TRANSITIONS, MOST_VALUES, VALUES, Context, ContextKind
from plumdp.model.graph import BoolArray, Graph, Indices, owners_of

KINDS: Sequence[ContextKind] = [*VALUES]  # in the order of the kernel


@dataclass(frozen=True, eq=False)
class Pasts:
    """What of the pasts of runs their later contexts depend on."""

    run: npt.NDArray[np.uint64]  # (n_runs): keys, ascending
    before: Indices  # (3, n_runs): steps so far, those since the last state was entered, and the last transition or -1
    first: Indices  # (n_runs + 1): where the rows that each run visited begin
    visited: Indices  # (3, n): these rows, how often, and the value of their last outcome

    @staticmethod
    def none() -> Pasts:
        """Return the pasts of no runs."""
        nothing = np.zeros((3, 0), dtype=np.int64)
        return Pasts(np.zeros(0, dtype=np.uint64), nothing, np.zeros(1, dtype=np.int64), nothing)

    @property
    def arrays(self) -> tuple[Indices, Indices, Indices]:
        """All but the keys."""
        return self.first, self.before, self.visited

    def find(self, run: npt.NDArray[np.uint64]) -> Indices:
        """Return the numbers of the pasts of runs, or -1."""
        if not len(self.run):
            return np.full(len(run), -1)
        place = np.minimum(np.searchsorted(self.run, run), len(self.run) - 1)
        return np.where(self.run[place] == run, place, -1)


class OpenRuns:
    """Collects the pasts of some runs before their last rows here, given those before their first ones."""

    def __init__(self, graph: Graph, pasts: Pasts, wanted: npt.NDArray[np.uint64]) -> None:
        self.pasts, self._wanted, self._n_choices = pasts, wanted, graph.n_choices
        self._place = past_tables(graph)[0]
        self._found: list[tuple[npt.NDArray[np.uint64], Indices, npt.NDArray[np.uint64], Indices]] = []

    def keep(
        self,
        names: npt.NDArray[np.uint64],
        first: Indices,
        state: Indices,
        choice: Indices,
        transition: Indices,
        past: Indices,
    ) -> None:
        """Add whole runs, as ``ContextCounter.add`` takes them, by their keys."""
        begin, last, row = first[:-1], first[1:] - 1, np.arange(len(state))
        number = np.repeat(np.arange(len(names)), np.diff(first))
        n_steps, since, taken = np.append(self.pasts.before, [[0], [0], [-1]], axis=1)[:, past]  # the last one for -1
        is_entered = (row == begin[number]) | (np.append(-1, state[:-1]) != state)
        entered = np.maximum.accumulate(np.where(is_entered, row, 0))[last]
        since = last - entered + np.where(entered == begin, since, 0)
        before = np.stack([n_steps + last - begin, since, np.where(last > begin, transition[last - 1], taken)])
        bounds = self.pasts.first
        earlier = [np.arange(bounds[i], bounds[i + 1]) for i in past[past >= 0]]
        seen = np.flatnonzero((row < last[number]) & (choice >= 0))
        outcome = np.where(transition[seen] < 0, MOST_VALUES - 1, self._place[transition[seen]])
        old = self.pasts.visited[:, np.concatenate([np.zeros(0, dtype=np.int64), *earlier])]
        visited = np.hstack([old, np.stack([choice[seen], np.ones_like(seen), outcome])])
        owner = np.append(np.repeat(np.arange(len(names)), np.append(np.diff(bounds), 0)[past]), number[seen])
        key, place = np.unique(owner * self._n_choices + visited[0], return_inverse=True)
        merged = np.zeros((3, len(key)), dtype=np.int64)
        merged[0], merged[2, place] = key % self._n_choices, visited[2]  # of several outcomes, the last one stays
        np.add.at(merged[1], place, visited[1])
        is_wanted = np.isin(names, self._wanted)
        owner = key // self._n_choices
        kept = is_wanted[owner]
        self._found.append((names[is_wanted], before[:, is_wanted], names[owner[kept]], merged[:, kept]))

    def found(self) -> Pasts:
        """Return the pasts of the runs that are wanted."""
        if not self._found:
            return Pasts.none()
        names, before, owner, visited = (np.concatenate(each, axis=-1) for each in zip(*self._found, strict=True))
        order, by_owner = np.argsort(names), np.argsort(owner, kind="stable")
        first = np.append(np.searchsorted(owner[by_owner], names[order]), len(owner))
        return Pasts(names[order], before[:, order], first, visited[:, by_owner])


class ContextCounter:
    """Counts the steps of whole runs by their past; steps that are not matched are part of it, and are not counted."""

    def __init__(self, graph: Graph) -> None:
        self._tables, choice = past_tables(graph), graph.choice_of_transition()
        self._owners = choice, graph.state_of_choice()[choice]
        self._memory = np.zeros((3, graph.n_choices), dtype=np.int64)
        self.cells = np.zeros((2, graph.n_transitions, len(KINDS), MOST_VALUES), dtype=np.int64)

    def add(
        self,
        first: Indices,
        state: Indices,
        choice: Indices,
        transition: Indices,
        is_pilot: BoolArray,
        past: Indices | None = None,
        pasts: Pasts | None = None,
    ) -> None:
        """Add whole runs, of which ``first`` (n_runs + 1) says where they begin.

        Of each step there are its state and choice, or -1 if the model does not have them, its transition, or -1 if it
        is not counted, and whether it is in the pilot. Runs that go on have one of the ``pasts``, by its number.
        """
        steps = (np.asarray(each, dtype=np.int64) for each in (first, state, choice, transition))
        past = np.full(len(first) - 1, -1) if past is None else past
        arrays = (Pasts.none() if pasts is None else pasts).arrays
        kernels.count_pasts(*steps, is_pilot, self._tables, self._memory, self.cells, past, arrays)

    def add_walks(self, n: int, segments: Sequence[tuple[Indices, Indices]], *, is_pilot: bool) -> None:
        """Add n runs, given segments of them: the numbers of runs, and their transitions (steps, runs), -1 at ends."""
        taken = np.full((n, sum(len(steps) for _, steps in segments)), -1, dtype=np.int32)
        start = 0
        for runs, steps in segments:
            taken[runs, start : start + len(steps)] = steps.T
            start += len(steps)
        is_step = taken >= 0
        transition = taken[is_step]
        choice, state = self._owners[0][transition], self._owners[1][transition]
        first = np.append(0, np.cumsum(is_step.sum(axis=1)))
        self.add(first, state, choice, transition, np.full(len(transition), is_pilot))

    @staticmethod
    def sum(counters: Sequence[ContextCounter]) -> tuple[Context, ...]:
        """Return the contexts of all steps that were added to some counters."""
        main, pilot = sum((each.cells for each in counters[1:]), counters[0].cells)
        return tuple(Context.of(kind, main[:, i].T, pilot[:, i].T) for i, kind in enumerate(KINDS))


def past_tables(graph: Graph) -> tuple[Indices, Indices, Indices]:
    """Return for each transition its place in its row, that of its choice among those that lead there, and where to.

    Places are 1, 2, …, and 7 from the seventh on (n_transitions).
    """
    n, owner = np.arange(graph.n_transitions), graph.choice_of_transition()
    place = n - graph.first_transition[owner]
    by_successor = np.lexsort([owner, graph.successor])
    successor = graph.successor[by_successor]
    rank = np.empty_like(n)
    rank[by_successor] = n - np.searchsorted(successor, successor)
    return np.minimum(place, 6) + 1, np.minimum(rank, 6) + 1, graph.successor.astype(np.int64)


def contexts_of(graph: Graph, run: Indices, transition: Indices, n_pilot: int = 0) -> tuple[Context, ...]:
    """Return the contexts of the steps of runs, in order, of which so many runs are the pilot; none of a large model.

    ``run`` is the number of the run of each step, ascending (n_steps), and ``transition`` what it took.
    """
    if graph.n_transitions > MOST_TRANSITIONS:
        return ()
    counter, choice = ContextCounter(graph), owners_of(graph.first_transition, transition)
    names, first = np.unique(run, return_index=True)
    is_pilot = run < names[n_pilot] if n_pilot < len(names) else np.ones(len(run), dtype=np.bool_)
    counter.add(np.append(first, len(run)), graph.state_of_choice()[choice], choice, transition, is_pilot)
    return ContextCounter.sum([counter])

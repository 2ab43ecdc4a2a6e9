"""Counts contexts along runs: what of the past of its run each step has before its outcome."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plumdp.data import kernels
from plumdp.data.contexts import MOST_TRANSITIONS, MOST_VALUES, VALUES, Context, ContextKind
from plumdp.model.graph import BoolArray, Graph, Indices, owners_of

KINDS: Sequence[ContextKind] = [*VALUES]  # in the order of the kernel


class ContextCounter:
    """Counts the steps of whole runs by their past; steps that are not matched are part of it, and are not counted."""

    def __init__(self, graph: Graph) -> None:
        self._tables, choice = past_tables(graph), graph.choice_of_transition()
        self._owners = choice, graph.state_of_choice()[choice]
        self._memory = np.zeros((3, graph.n_choices), dtype=np.int64)
        self.cells = np.zeros((2, graph.n_transitions, len(KINDS), MOST_VALUES), dtype=np.int64)

    def add(self, first: Indices, state: Indices, choice: Indices, transition: Indices, is_pilot: BoolArray) -> None:
        """Add whole runs, of which ``first`` (n_runs + 1) says where they begin.

        Of each step there are its state and choice, or -1 if the model does not have them, its transition, or -1 if it
        is not counted, and whether it is in the pilot.
        """
        steps = (np.asarray(each, dtype=np.int64) for each in (first, state, choice, transition))
        kernels.count_pasts(*steps, is_pilot, self._tables, self._memory, self.cells)

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

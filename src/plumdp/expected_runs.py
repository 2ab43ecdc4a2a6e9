"""Expected visits of choices in runs of a model at a point, and the law of runs that counts of transitions show.

Counts do not say how many runs they come from, nor where these end. But runs are paths: what leaves a state has entered
it, or begun there. So as many runs began in the initial state as left it without having entered it, and a run has ended
wherever more entered than left. All numbers here are estimates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from plumdp.data.counts import CountArray, TransitionCounts
from plumdp.data.runs import require_positive
from plumdp.errors import DataError
from plumdp.model.graph import BoolArray, FloatArray, Graph, Indices, IntArray, read_only
from plumdp.model.parametric import ParametricMDP

_LONGEST = 100_000  # steps of a run, if neither data nor user bound them
_ALL = 1 - 1e-6  # share of the steps of a run that are enough to know how long it is
_OFTEN = 10  # times that runs came to a state and none left it: they end there, and were not cut off by chance
_NOTHING = 1e-12  # runs that are left: the rest is rounding


@dataclass(frozen=True, eq=False)
class RunLaw:
    """Runs of a model at a point: from the initial state until a state in which they end, or a number of steps."""

    graph: Graph
    probability: FloatArray  # (n_transitions)
    is_end: BoolArray  # (n_states)
    max_steps: int

    def visits(self, weights: FloatArray) -> FloatArray:
        """Return how often a run takes each choice (n_choices) on average, given a probability for each choice."""
        visits = np.zeros(self.graph.n_states)
        for mass in self.masses(weights):
            visits += mass
        return visits[self.graph.state_of_choice()] * weights

    def masses(self, weights: FloatArray) -> Iterator[FloatArray]:
        """Yield for each step the share of the runs that take it from each state (n_states)."""
        step = self._rows(self.probability * weights[self.graph.choice_of_transition()], by_state=True).T.tocsr()
        mass = (np.arange(self.graph.n_states) == self.graph.initial_state).astype(np.float64)
        for _ in range(self.max_steps):
            mass = np.where(self.is_end, 0.0, mass)
            if mass.sum() < _NOTHING:
                return
            yield mass
            mass = step @ mass

    def best_visits(self, reward: FloatArray) -> FloatArray:
        """Return how often runs take each choice on average that gather as much reward as possible.

        The reward of each choice (n_choices) is paid whenever it is taken. What is best may depend on how many steps
        are left; choices that are equally good are taken equally often.
        """
        graph, owner = self.graph, self.graph.state_of_choice()
        rows = self._rows(self.probability, by_state=False)
        value, plan = np.zeros(graph.n_states), []
        tolerance = 1e-12 * float(reward.max(initial=0))
        for _ in range(self.max_steps):
            paid = reward + rows @ value
            best = np.maximum.reduceat(paid, graph.first_choice[:-1])
            plan.append(np.packbits(paid >= (best - tolerance - 1e-12 * best)[owner]))
            value = np.where(self.is_end, 0.0, best)
        visits = np.zeros(graph.n_choices)
        mass = (np.arange(graph.n_states) == graph.initial_state).astype(np.float64)
        for packed in reversed(plan):
            chosen = np.unpackbits(packed, count=graph.n_choices).astype(np.float64)
            mass = np.where(self.is_end, 0.0, mass)
            taken = normalised(graph, chosen) * mass[owner]
            visits += taken
            mass = rows.T @ taken
        return visits

    def _rows(self, values: FloatArray, *, by_state: bool) -> Any:
        """Return a sparse matrix from choices, or from states, to successors, with a number for each transition."""
        from scipy.sparse import csr_array

        graph = self.graph
        first = graph.first_transition[graph.first_choice] if by_state else graph.first_transition
        return csr_array((values, graph.successor, first), shape=(len(first) - 1, graph.n_states))


def normalised(graph: Graph, amounts: FloatArray) -> FloatArray:
    """Return a policy (n_choices) that takes choices in proportion to amounts; uniform where all of them are zero."""
    owner = graph.state_of_choice()
    total = np.bincount(owner, amounts, graph.n_states)
    even = 1.0 / np.diff(graph.first_choice)
    weights = np.where(total[owner] > 0, amounts / np.where(total > 0, total, 1.0)[owner], even[owner])
    return np.asarray(weights / np.bincount(owner, weights, graph.n_states)[owner])


def n_runs(counts: TransitionCounts) -> int | None:
    """Return how many runs from the initial state counts come from; None if they are not such runs.

    Runs that ended in the initial state are not counted: nothing shows where they began.

    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:25")
    >>> n_runs(simulate(study.model, study.true_point, 1000, rng=1, max_steps=25))
    1000
    """
    graph = counts.graph
    begun = _left(counts) - _entered(counts)
    found = int(begun[graph.initial_state])
    begun[graph.initial_state] = 0
    return found if found > 0 and not (begun > 0).any() else None


def run_law(
    model: ParametricMDP, counts: TransitionCounts, point: FloatArray, *, max_steps: int | None = None
) -> RunLaw:
    """Return the law of runs like those of the data, with the model at a point.

    Runs end in states that the data entered often and never left, and after ``max_steps`` steps. If that is not given, it is
    the number of steps at which runs under the policy of the data are as long as those of the data.
    """
    if max_steps is not None:
        require_positive("max_steps", max_steps)
    probability = model.expressions.evaluate(point[None, :])[:, 0].clip(0, 1)[model.expression]
    is_end = read_only((_entered(counts) >= _OFTEN) & (_left(counts) == 0))
    if max_steps is not None:
        return RunLaw(model.graph, read_only(probability), is_end, int(max_steps))
    runs = n_runs(counts)
    if runs is None:
        raise DataError("the data are not runs from the initial state: say with max_steps how long a run may be")
    endless = RunLaw(model.graph, read_only(probability), is_end, min(_LONGEST, counts.total))
    weights = normalised(model.graph, counts.visits.astype(np.float64))
    return RunLaw(model.graph, read_only(probability), is_end, _cut(endless, weights, counts.total / runs))


def _cut(law: RunLaw, weights: FloatArray, mean: float) -> int:
    """Return the number of steps at which runs are cut off, given their mean length; the last step if none is."""
    steps, total = 0, 0.0
    for mass in law.masses(weights):
        if total >= _ALL * mean:
            break
        total += float(mass.sum())
        steps += 1
    return max(steps, 1)


def _left(counts: TransitionCounts) -> CountArray:
    """Return how often each state was left (n_states)."""
    sums = np.concatenate([[0], np.cumsum(counts.visits)])
    return np.asarray(np.diff(sums[counts.graph.first_choice]))


def _entered(counts: TransitionCounts) -> CountArray:
    """Return how often each state was entered (n_states)."""
    found = np.zeros(counts.graph.n_states, dtype=np.int64)
    np.add.at(found, counts.graph.successor, counts.counts)
    return found


def whole_counts(expected: FloatArray, group: Indices | IntArray) -> CountArray:
    """Return whole numbers (n_transitions) whose sums over each group are those of expected counts, up to one.

    Rounded one by one, rare transitions would all become zero, however many there are.

    >>> whole_counts(np.array([0.4, 0.4, 2.2, 0.4]), np.array([0, 0, 1, 0])).tolist()
    [0, 1, 2, 0]
    """
    order = np.argsort(group, kind="stable")
    sorted_group = np.asarray(group)[order]
    sums = np.cumsum(expected[order])
    starts = np.flatnonzero(np.diff(sorted_group, prepend=sorted_group[:1] - 1))
    before = np.concatenate([[0.0], sums])[starts]
    own = sums - np.repeat(before, np.diff(np.append(starts, len(order))))
    rounded = np.rint(own).astype(np.int64)
    last = np.concatenate([[0], rounded[:-1]])
    last[starts] = 0
    found = np.zeros(len(order), dtype=np.int64)
    found[order] = np.maximum(rounded - last, 0)
    return found

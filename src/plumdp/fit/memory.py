"""Tests that the next state depends on state and action alone, and not on the step before."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from typing import ClassVar

import numpy as np

from plumdp.base.errors import DataError
from plumdp.data.run_record import WholeRuns
from plumdp.fit.time_tests import Parts, log_mean, log_product, p_value_of
from plumdp.model.graph import FloatArray, Graph, Indices, ranges
from plumdp.model.parametric import ParametricMDP, offsets_of
from plumdp.model.text import number_of
from plumdp.model.unmodelled_exits import elsewhere_of
from plumdp.model.values import Codes, RowIndex


@dataclass(frozen=True)
class MemoryTest:
    """The test that the step before does not matter, with a p-value that is valid at any time."""

    CLAIM: ClassVar[str] = "the next state depends on state and action alone, not on the step before"
    p_value: float
    n_rows: int  # that were compared
    strongest: str  # the row that speaks against it most

    def sentence(self, confidence: float) -> str:
        """Return the result in words."""
        rounded = Context(prec=2, rounding=ROUND_CEILING).plus(Decimal(self.p_value))  # up: it claims less
        p_value = f"p = {float(rounded):.2g}"
        compared = f"{number_of(self.n_rows, 'row')} compared"
        if not self.n_rows:
            return f"no rows could be compared to test that {self.CLAIM}"
        if self.p_value <= 1 - confidence:
            return f"the data contradict that {self.CLAIM} ({p_value}, {compared}; most clearly {self.strongest})"
        return f"the data do not contradict that {self.CLAIM} ({p_value}, {compared})"


def _evidence(parts: Parts, n_parts: Indices) -> FloatArray:
    """Return ln e of each group, on average over that of all parts and that of pairs."""
    return np.asarray(np.logaddexp(parts.evidence(), parts.evidence_of_pairs(n_parts)) - np.log(2))


def memory_test(model: ParametricMDP, runs: WholeRuns) -> MemoryTest:
    """Return the test that the next state depends on state and action alone, and not on the step before.

    The parts of each row are its visits by the action before, by the state before, and by each variable of it; the
    first step of a run has none, which is a part as well. What they may differ in is the next state, or one variable of
    it. All of these have the same weight.
    """
    graph = model.graph
    step = np.flatnonzero(runs.time < np.diff(runs.first)[runs.run] - 1)
    choices = RowIndex([graph.n_states, len(graph.action_names)], [graph.state_of_choice(), graph.action])
    choice = choices.find([runs.state[step], runs.action[step]])
    step, choice = step[choice >= 0], choice[choice >= 0]  # others are left out, whatever they led to
    transition = _transitions(model, runs, step, choice)
    is_first = runs.time[step] == 0
    before = graph.state_of_choice()[graph.choice_of_transition()]
    views = _views(graph)
    pasts = [(view[runs.state[step - 1]], _n_values(view[before], graph.successor, graph.n_states)) for view in views]
    pasts.append((runs.action[step - 1], np.full(graph.n_states, len(graph.action_names))))
    evidence = [
        _by_past(graph, choice, transition, np.where(is_first, -1, past) + 1, n_values + 1, view[graph.successor])
        for past, n_values in pasts
        for view in views
    ]
    rows = np.flatnonzero(np.diff(graph.first_transition) > 1)
    of_rows = [each[rows] for each in evidence]
    # half of the evidence is that of single rows, and half that of all together
    halves = [half for each in of_rows for half in (each, np.array([log_product(each)]))]
    strongest = graph.describe_choice(int(rows[np.argmax(sum(of_rows[1:], of_rows[0]))])) if len(rows) else ""
    return MemoryTest(p_value_of(log_mean(halves)), len(np.intersect1d(rows, choice)), strongest)


def _views(graph: Graph) -> list[Indices]:
    """Return numbers of states (n_states): their own, and, if there are several variables, those of their values."""
    values = [*graph.states.values()] if len(graph.states) > 1 else []
    return [np.arange(graph.n_states), *(np.unique(each, return_inverse=True)[1] for each in values)]


def _n_values(values: Indices, of: Indices, n: int) -> Indices:
    """Return the number of different values of each of n things."""
    return np.bincount(np.unique(values.astype(np.int64) * n + of) % n, minlength=n)


def _transitions(model: ParametricMDP, runs: WholeRuns, step: Indices, choice: Codes) -> Codes:
    """Return the transition of each step; refuse what the model says cannot happen."""
    graph, elsewhere = model.graph, elsewhere_of(model)
    edges = RowIndex([graph.n_choices, graph.n_states], [graph.choice_of_transition(), graph.successor])
    transition = edges.find([choice, runs.state[step + 1]])
    if elsewhere is not None:
        lost = np.flatnonzero(transition < 0)
        transition[lost] = edges.find([choice[lost], np.full(len(lost), elsewhere)])
    if (transition < 0).any():
        row = int(step[np.argmax(transition < 0)])
        raise DataError(f"{runs.place(row)}: the model says that this step cannot happen; check_model without runs")
    return transition


def _by_past(
    graph: Graph, choice: Indices, transition: Indices, past: Indices, n_pasts: Indices, label: Indices
) -> FloatArray:
    """Return ln e of each choice, its parts being the visits after each past, its places the labels of transitions.

    ``n_pasts`` (n_states) is how many pasts there might be.
    """
    n_labels, n_codes = int(label.max(initial=0)) + 1, int(past.max(initial=0)) + 1
    of_choice = graph.choice_of_transition().astype(np.int64)
    places, place = np.unique(of_choice * n_labels + label, return_inverse=True)
    first_place = np.searchsorted(places // n_labels, np.arange(graph.n_choices + 1))
    parts, part = np.unique(choice.astype(np.int64) * n_codes + past, return_inverse=True)
    group = parts // n_codes
    sizes = np.diff(first_place)[group]
    first = offsets_of(sizes)
    counts = np.bincount(first[part] + place[transition] - first_place[choice], minlength=int(first[-1]))
    at = ranges(first_place[group], first_place[group + 1])
    return _evidence(Parts(counts.astype(np.float64), first, group, at, first_place), n_pasts[graph.state_of_choice()])

"""Tests of what somebody proposes about rows: that they do not depend on a variable, an action, or the past.

A proposal puts rows into groups that would have one distribution. Rows are compared where they can lead to the same
successors. For a variable, successors are the same if they are one state, or if all other variables have the same
values and the variable itself changes in the same way, whichever lets more rows be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, Option
from plumdp.data.counts import TransitionCounts
from plumdp.data.run_record import WholeRuns
from plumdp.fit.time_tests import Parts, log_mean, log_product, p_value_of
from plumdp.model.graph import BoolArray, FloatArray, Graph, Indices, ranges
from plumdp.model.parametric import ParametricMDP, find_row_classes, offsets_of
from plumdp.model.text import number_of
from plumdp.model.unmodelled_exits import elsewhere_of
from plumdp.model.values import Codes, RowIndex


@dataclass(frozen=True)
class ProposalTest:
    """The test of a proposal, with a p-value that is valid at any time, and for all proposals at once."""

    proposal: str  # as it was given
    claim: str  # what the data contradict if the p-value is small, in words
    p_value: float
    n_rows: int  # that were compared
    strongest: str  # the row that speaks against it most, or one of those that do

    def sentence(self, confidence: float) -> str:
        """Return the result in words."""
        rounded = Context(prec=2, rounding=ROUND_CEILING).plus(Decimal(self.p_value))  # up: it claims less
        p_value = f"p = {float(rounded):.2g}"
        compared = f"{number_of(self.n_rows, 'row')} compared"
        if not self.n_rows:
            return f"no rows could be compared to test that {self.claim}"
        if self.p_value <= 1 - confidence:
            return f"the data contradict that {self.claim} ({p_value}, {compared}; most clearly {self.strongest})"
        return f"the data do not contradict that {self.claim} ({p_value}, {compared})"


def tie_tests(graph: Graph, counts: TransitionCounts, ties: Sequence[str]) -> tuple[ProposalTest, ...]:
    """Return the test of each proposed tie: the name of a state variable, or two actions as in "walk = run".

    Each p-value is multiplied by the number of ties: that any right one is contradicted has at most the error.
    """
    tests = (_tie_test(graph, counts.counts.astype(np.float64), text) for text in ties)
    return tuple(replace(test, p_value=min(1.0, len(ties) * test.p_value)) for test in tests)


def _tie_test(graph: Graph, counts: FloatArray, text: str) -> ProposalTest:
    claim, key, labels, is_asked = _groups(graph, text)
    compared = [_parts(graph, counts, key, label, is_asked) for label in labels]
    choice, parts = max(compared, key=lambda pair: len(pair[0]))  # by the graph alone
    evidence = _evidence(parts, np.bincount(parts.group)) if len(choice) else np.zeros(0)
    first = choice[np.unique(parts.group, return_index=True)[1]] if len(choice) else choice
    test = _test(graph, text, claim, [evidence], first, len(choice))
    return replace(test, strongest=f"rows like that of {test.strongest}") if len(choice) else test


def _evidence(parts: Parts, n_parts: Indices) -> FloatArray:
    """Return ln e of each group, on average over that of all parts and that of pairs."""
    return np.asarray(np.logaddexp(parts.evidence(), parts.evidence_of_pairs(n_parts)) - np.log(2))


def _test(
    graph: Graph, proposal: str, claim: str, evidence: Sequence[FloatArray], choice: Indices, n_rows: int
) -> ProposalTest:
    """Return a test by the evidence of groups, half of it of single ones and half of all together."""
    halves = [half for each in evidence for half in (each, np.array([log_product(each)]))]
    most = sum(evidence[1:], evidence[0])
    strongest = graph.describe_choice(int(choice[np.argmax(most)])) if len(choice) else ""
    return ProposalTest(proposal, claim, p_value_of(log_mean(halves)), n_rows, strongest)


def _groups(graph: Graph, text: str) -> tuple[str, Indices, Sequence[Indices], BoolArray]:
    """Return the claim of a tie, the group of each choice, labels of transitions to try, and which choices matter."""
    of_choice = graph.state_of_choice()
    state = of_choice[graph.choice_of_transition()]
    if text in graph.states:
        others = [values for name, values in graph.states.items() if name != text]
        same = _numbered([values[of_choice] for values in others] + [graph.action])
        change = _change(graph.states[text], state, graph.successor)
        moved = _numbered([values[graph.successor] for values in others] + [change])
        is_any = np.ones(graph.n_choices, dtype=np.bool_)
        return f"rows do not depend on {text}", same, [moved, graph.successor], is_any
    names = [name.strip() for name in text.split("=")]
    actions = [graph.action_names.index(name) for name in names if name in graph.action_names]
    if len(actions) != 2 or len(names) != 2 or names[0] == names[1]:
        listed = f"the state variables are {', '.join(graph.states)}, and the actions {', '.join(graph.action_names)}"
        raise DataError(
            Option("ties", [text]), f": give a state variable, or two actions as in 'one = other'; {listed}"
        )
    claim = f"rows of the actions {names[0]!r} and {names[1]!r} are the same"
    return claim, of_choice, [graph.successor], np.isin(graph.action, actions)


def _change(values: npt.NDArray[Any], state: Indices, successor: Indices) -> npt.NDArray[Any]:
    """Return the change of a variable in each transition: a difference of numbers, or else the new value."""
    if values.dtype.kind in "iu":
        return np.asarray(values[successor].astype(np.int64) - values[state])
    code = np.unique(values, return_inverse=True)[1]
    return np.where(code[successor] == code[state], -1, code[successor])


def _numbered(columns: Sequence[npt.NDArray[Any]]) -> Indices:
    """Return a number for each row of columns, the same for rows that are alike."""
    number = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        codes = np.unique(column, return_inverse=True)[1]
        number = np.unique(number * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
    return number


def _parts(
    graph: Graph, counts: FloatArray, key: Indices, label: Indices, is_asked: BoolArray
) -> tuple[Indices, Parts]:
    """Return the choices that are compared, as parts of groups with one key, and successors with the same labels."""
    first, size = graph.first_transition, np.diff(graph.first_transition)
    order = np.lexsort((label, graph.choice_of_transition()))
    alike = find_row_classes(first, label[order].astype(np.int32)).number
    group = _numbered([key, alike])
    members = np.bincount(group[is_asked], minlength=len(group))
    choice = np.flatnonzero(is_asked & (members[group] > 1) & (size > 1))
    first_of, group = np.unique(group[choice], return_index=True, return_inverse=True)[1:]
    first_place = offsets_of(size[choice[first_of]])
    sizes = size[choice]
    offsets = offsets_of(sizes)
    within = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], sizes)
    cell = np.repeat(first[choice], sizes) + within
    return choice, Parts(
        counts[order][cell], offsets, group, np.repeat(first_place[:-1][group], sizes) + within, first_place
    )


def memory_test(model: ParametricMDP, runs: WholeRuns) -> ProposalTest:
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
    claim = "the next state depends on state and action alone, not on the step before"
    rows = np.flatnonzero(np.diff(graph.first_transition) > 1)
    return _test(graph, "memory", claim, [each[rows] for each in evidence], rows, len(np.intersect1d(rows, choice)))


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

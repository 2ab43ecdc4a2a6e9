"""Today's practice: the policy that takes each action as often as data do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.combinations import Trait, refuse
from plumdp.base.vocabulary import Assumption
from plumdp.data.counts import CountArray, TransitionCounts
from plumdp.data.pilots import drawn_pilot
from plumdp.model.graph import FloatArray
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, as_choices, check_policy, normalised
from plumdp.model.question import PRACTICE, Question, is_practice
from plumdp.model.text import number_of

_ESTIMATED = (
    "practice takes each action as often as {} do in the same state; what is done today may be another policy, and may "
    "depend on more than the state"
)


def practice_of(counts: CountArray, model: ParametricMDP) -> FloatArray:
    """Return the policy that takes each action as often as counts (n_transitions) do in the same state (n_choices).

    States without data have all actions alike. On a product with memory, it is as often as in the counted state.
    """
    return normalised(model.graph, taken_choices(counts, model))


def taken_choices(counts: CountArray, model: ParametricMDP) -> FloatArray:
    """Return the count of each choice of a model, or of the counted one that it is lifted from (n_choices)."""
    gaps = model.counted.gaps
    if gaps is not None and int((gaps == 1).sum()) > model.counted.graph.n_states:
        refuse({Trait.EVERY_STEP, *model.traits}, "practice")
    taken = model.counted.graph.sum_by_choice(counts.astype(np.float64))
    return np.asarray(taken if model.lift is None else taken[np.asarray(model.lift.choice)])


def counts_of_practice(counts: TransitionCounts, model: ParametricMDP) -> CountArray:
    """Return the counts that practice is estimated from: all of them, or those of a table before the first bets.

    Without a pilot, that is the one that ``learn`` draws.
    """
    pilot = (counts.pilot or drawn_pilot(counts, is_table=True)) if model.counted.is_table else None
    first = None if pilot is None else pilot.first_bets
    return counts.counts if pilot is None or first is None else pilot.moments[first]


def with_practice(questions: Iterable[Question], counts: TransitionCounts, *, is_table: bool) -> tuple[Question, ...]:
    """Return questions in which "practice" is what the data do: in a table the first of them, else it needs no bets."""
    found = []
    for each in questions:
        names = [name for name in ("policy", "against") if is_practice(getattr(each, name))]
        if names:
            seen = known_policy(each, counts, PRACTICE) if is_table else None
            each = replace(each, **dict.fromkeys(names, seen), practised=frozenset(names))
        found.append(each)
    return tuple(found)


def known_policy(question: Question, counts: TransitionCounts, policy: Policy) -> npt.NDArray[Any]:
    """Return a policy as an array that is checked, and "practice" as what the data do."""
    graph = question.model.graph
    if is_practice(policy):
        policy = practice_of(counts_of_practice(counts, question.model), question.model)
    return as_choices(graph, check_policy(graph, policy))


def about_practice(question: Question, counts: TransitionCounts, policy: Policy | None) -> tuple[str, ...]:
    """Return the assumption about a policy: for "practice" its definition, in words, and nothing for others."""
    if not is_practice(policy):
        return ()
    graph, seen = question.model.graph, counts_of_practice(counts, question.model)
    visits = np.bincount(graph.state_of_choice(), taken_choices(seen, question.model), graph.n_states)
    n_unseen = int(((visits == 0) & (np.diff(graph.first_choice) > 1)).sum())
    data = "these data" if seen is counts.counts else f"the first {number_of(int(seen.sum()), 'step')} of these data"
    unseen = f"; in {number_of(n_unseen, 'state')} without data, it draws all actions alike" if n_unseen else ""
    rows = {} if counts.report is None or not question.model.counted.is_table else counts.report.rows
    n_outside = sum(rows.get(kind, 0) for kind in ("outside the table", "unknown action"))
    outside = f"; {number_of(n_outside, 'row')} whose state or action the table does not have are no part of it"
    text = f"{_ESTIMATED.format(data)}{unseen}{outside if n_outside else ''}"
    return (Assumption(text, brief="practice acts as in the log, by state alone"),)

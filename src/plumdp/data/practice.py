"""Today's practice: the policy that takes each action as often as data do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from plumdp.data.counts import CountArray, TransitionCounts
from plumdp.data.pilots import drawn_pilot
from plumdp.model.graph import FloatArray
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import as_choices, check_policy, normalised
from plumdp.model.question import FIRST_DATA, Question


def practice_of(counts: CountArray, model: ParametricMDP) -> FloatArray:
    """Return the policy that takes each action as often as counts (n_transitions) do in the same state (n_choices).

    States without data have all actions alike. On a product with memory, it is as often as in the counted state.
    """
    return normalised(model.graph, taken_choices(counts, model))


def taken_choices(counts: CountArray, model: ParametricMDP) -> FloatArray:
    """Return how often each choice of a model was taken, or the counted one that it is lifted from (n_choices)."""
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
        if isinstance(each.against, str):
            graph, seen = each.model.graph, counts_of_practice(counts, each.model)
            policy = as_choices(graph, check_policy(graph, practice_of(seen, each.model))) if is_table else None
            each = replace(each, against=policy, chosen_by=frozenset({FIRST_DATA}) if is_table else each.chosen_by)
        found.append(each)
    return tuple(found)

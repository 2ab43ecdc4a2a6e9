"""Whole runs of announced policies as evidence: bounds on their values, and on the difference of two.

They are means of what runs earned, and need nothing of the model but which states and steps count. Beside the model's
own bounds they have a share of the error that was fixed beforehand, so that the better end of each counts.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, nextafter
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.error_budget import equal_parts, favoured_parts
from plumdp.base.errors import DataError, Option
from plumdp.confidence.bounded_means import Tally, mean_bounds
from plumdp.confidence.run_bets import Draws, difference_ends, mean_ends, value_ends
from plumdp.confidence.sets import Counted, Evidence
from plumdp.data.returns import Outcomes, Range, outcomes_of
from plumdp.data.run_record import ROUNDED, WholeRuns
from plumdp.learning.assumptions import assumptions_of_runs
from plumdp.learning.run_ends import RunEnds
from plumdp.model.language.property import as_objective
from plumdp.model.objectives import Objective
from plumdp.model.objectives.mission import Mission
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import as_choices, check_policy
from plumdp.model.question import Question

_LABELLED = "the policy of each run was written down before the run began, and followed to its end (as you stated)"
_CHOSEN = "you chose the policy before looking at any of these runs (as you stated)"
_NOT_ROUTED = "which policy a run has was decided without knowing more about how it would go than about any other run"
_DRAWN = "which arm a run takes was drawn with the chance in the log, which was fixed before the draw (as you stated)"
_ALONE = "bounds by whole runs rest on no probability of the model, nor on that a state tells all that matters"
_MIXED = (
    "bounds on policies that ran are by whole runs alone: in the same state arms were drawn with different chances, so "
    "that rows of the model mix what these chances depend on"
)


def with_runs(found: Evidence, given: Counted) -> Evidence:
    """Return evidence with the bounds that whole runs of announced policies give, and what these rest on."""
    asked = [question for question in given.questions if question.runs is not None]
    error = equal_parts(found.budget.error_of("run_bets", given.error), len(asked))
    made = [_of_question(question, given.model, error) for question in asked]
    said = dict.fromkeys(text for _, texts in made for text in texts)
    ends = [each for all_ends, _ in made for each in all_ends]
    alone = [_MIXED] if any(each.stand_alone for each in ends) else []
    return replace(found, constraints=(*found.constraints, *ends), rests_on=(*found.rests_on, *said, _ALONE, *alone))


def _of_question(question: Question, model: ParametricMDP, error: float) -> tuple[list[RunEnds], list[str]]:
    """Return bounds on the value of a policy by its runs; or on those of two, and on their difference."""
    runs, policies = _checked(question, model)
    objective, graph = _on_model(question, model), question.model.graph
    undrawn = replace(runs, chance=None)  # each arm is weighted, or joined with the other one, below
    parts = [undrawn.of(arm) for arm in runs.arms] if len(policies) == 2 else [runs]
    made = [
        outcomes_of(objective, model, part, graph, policy, return_range=runs.return_range)
        for part, policy in zip(parts, policies, strict=True)
    ]
    whole, draws = _joined(runs, made), _draws_of(runs) if len(policies) == 2 else None
    errors = favoured_parts(error, 2 * len(policies) - 1)  # of a difference first, if there is one
    ranges = _ranges(runs, made, whole, draws, errors)
    stand_alone, ends = draws is not None and _is_mixed(runs, draws), []
    subjects = [(each,) for each in policies] + [tuple(policies)] * (len(policies) - 1)
    for share, (low, high), about in zip(errors[::-1], ranges, subjects, strict=True):
        to = whole.value if len(about) == 1 else whole.difference
        ends.append(RunEnds(question, about, to(low, -1), to(high, 1), share, stand_alone))
    how = _NOT_ROUTED if draws is None else _DRAWN
    return ends, [_LABELLED, _CHOSEN, how, *assumptions_of_runs(runs, whole, objective)]


def _ranges(
    runs: WholeRuns, made: list[Outcomes], whole: Outcomes, draws: Draws | None, errors: tuple[float, ...]
) -> list[Range]:
    """Return bounds on the mean of each arm and then on their difference: as one mean if they were drawn."""
    if draws is not None and runs.expected is not None:
        values = [value_ends(whole.lower, whole.upper, own, errors[-1], runs.expected) for own in (draws, draws.turned)]
        return [*values, difference_ends(whole.lower, whole.upper, draws, errors[0], runs.expected)]
    values = [_mean(each, runs, len(made), errors[-1]) for each in made]
    if len(made) == 1:
        return values
    one, other = (_mean(each, runs, len(made), equal_parts(errors[0], 2)) for each in made)
    return [*values, (nextafter(one[0] - other[1], -2), nextafter(one[1] - other[0], 2))]


def _checked(question: Question, model: ParametricMDP) -> tuple[WholeRuns, list[npt.NDArray[Any]]]:
    """Return the runs of a question and its policies, or refuse runs that are not those of its policies."""
    runs, graph = question.runs, question.model.graph
    if not isinstance(runs, WholeRuns):
        raise DataError(Option("runs", type(runs).__name__), ": give runs as read_whole_runs(model, log) returns them")
    if model.learned_rewards:
        raise DataError("returns of rewards that depend on parameters are not read from a log; leave the runs out")
    given = [each for each in (question.policy, question.against) if each is not None]
    runs = runs if runs.arms or runs.arm is None else runs.of(*np.unique(runs.arm))
    if len(given) != max(len(runs.arms), 1) or question.policy is None:
        raise DataError(
            'runs are those of one policy, or of two arms in the order of their policies: runs.of("A", "B")'
        )
    return runs, [as_choices(graph, check_policy(graph, each)) for each in given]


def _on_model(question: Question, model: ParametricMDP) -> Objective:
    """Return the objective on the model whose states runs show; refuse one that asks for more than counting steps."""
    memory = question.model.graph.memory
    if memory is None:
        return question.objective
    objective = as_objective(question.objective.text, model) if question.objective.text else None
    if objective is None or isinstance(objective, Mission) or len(memory.names) > 1:
        raise DataError("runs do not show what a policy of this question remembers; leave the runs out")
    return objective


def _mean(made: Outcomes, runs: WholeRuns, n_arms: int, error: float) -> Range:
    """Return bounds on a mean of outcomes, by sizes that are constant if no number of runs was announced."""
    if runs.expected is None:
        return mean_bounds(Tally.of(made.lower), Tally.of(made.upper), error)
    return mean_ends(made.lower, made.upper, error, runs.expected / n_arms)  # whichever arms came


def _joined(runs: WholeRuns, made: list[Outcomes]) -> Outcomes:
    """Return the outcomes of all runs in their order, given those of each arm."""
    if len(made) == 1:
        return made[0]
    if made[0].within != made[1].within:
        raise DataError("returns of both arms need one range: say which it is with ", Option("return_range"))
    lower, upper, is_complete = np.empty(len(runs)), np.empty(len(runs)), np.empty(len(runs), dtype=np.bool_)
    for arm, each in zip(runs.arms, made, strict=True):
        rows = runs.arm == arm
        lower[rows], upper[rows], is_complete[rows] = each.lower, each.upper, each.is_complete
    return Outcomes(lower, upper, is_complete, made[0].within)


def _draws_of(runs: WholeRuns) -> Draws | None:
    """Return how the arms of runs were drawn; None if they were not, or by one chance in runs without an order."""
    if runs.chance is None:
        return None
    is_first = np.asarray(runs.arm == runs.arms[0])
    chance = np.where(is_first, runs.chance, 1 - runs.chance)
    if not ((chance > 0) & (chance < 1)).all():
        raise DataError("arms that were drawn have a chance above 0 and below 1: compare them in runs that are drawn")
    differs = np.ptp(chance) > ROUNDED
    if differs and not any(np.ptp(runs.chance[runs.arm == arm]) > ROUNDED for arm in runs.arms):
        raise DataError("the chances of both arms do not sum to one, so that there were others: read their runs, too")
    if runs.expected is None:
        if differs:
            how = "arms were drawn with chances that differ: say how many runs you announced, with "
            raise DataError(how, Option("expected", ...))
        return None
    task = np.zeros(len(runs), dtype=np.int64) if runs.task is None else np.unique(runs.task, return_inverse=True)[1]
    return Draws(is_first, chance, task)


def _is_mixed(runs: WholeRuns, draws: Draws) -> bool:
    """Return whether there is a state in which runs took different actions, and had been drawn with other chances."""
    rows = np.flatnonzero(runs.action >= 0)
    state, n_states = runs.state[rows], int(runs.state.max()) + 1

    def differs(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        low, high = np.full(n_states, inf), np.full(n_states, -inf)
        np.minimum.at(low, state, values)
        np.maximum.at(high, state, values)
        return np.asarray(high - low > ROUNDED)

    return bool((differs(runs.action[rows]) & differs(draws.chance[runs.run[rows]])).any())

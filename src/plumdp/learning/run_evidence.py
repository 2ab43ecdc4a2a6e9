"""Whole runs of announced policies as evidence: bounds on their values, and on the difference of two.

They are means of what runs earned, and need nothing of the model but which states and steps count. Beside the model's
own bounds they have a share of the error that was fixed beforehand, so that the better end of each counts.
"""

from __future__ import annotations

from dataclasses import replace
from math import nextafter

import numpy as np

from plumdp.base.error_budget import equal_parts, favoured_parts
from plumdp.base.errors import DataError, Option
from plumdp.base.rounding import UNIT
from plumdp.confidence.bounded_means import Tally, mean_bounds
from plumdp.confidence.run_bets import Draws, difference_ends, mean_ends
from plumdp.confidence.sets import Counted, Evidence
from plumdp.data.returns import Outcomes, Range, outcomes_of
from plumdp.data.run_record import WholeRuns
from plumdp.learning.assumptions import assumptions_of_runs
from plumdp.learning.run_ends import RunEnds
from plumdp.model.language.property import as_objective
from plumdp.model.objectives import Objective
from plumdp.model.objectives.mission import Mission
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import as_choices, check_policy
from plumdp.model.question import Question

_LABELLED = "the policy of each run was written down before the run began, and followed to its end (as you stated)"
_DRAWN = "which arm a run takes was drawn with the chance in the log, which was fixed before the draw (as you stated)"
_TASKS = "the task of each run was drawn anew, always by the same law, before its arm (as you stated)"
_ROUNDED = 1e-6  # of chances that sum to one, as people write them
_ALONE = "bounds by whole runs rest on no probability of the model, nor on that a state tells all that matters"


def with_runs(found: Evidence, given: Counted) -> Evidence:
    """Return evidence with the bounds that whole runs of announced policies give, and what these rest on."""
    asked = [question for question in given.questions if question.runs is not None]
    if not asked:
        return found
    error = equal_parts(found.budget.error_of("run_bets", given.error), len(asked))
    made = [_of_question(question, given.model, error) for question in asked]
    said = dict.fromkeys(text for _, texts in made for text in texts)
    ends = [each for all_ends, _ in made for each in all_ends]
    return replace(found, constraints=(*found.constraints, *ends), rests_on=(*found.rests_on, *said, _ALONE))


def _of_question(question: Question, model: ParametricMDP, error: float) -> tuple[list[RunEnds], list[str]]:
    """Return bounds on the value of a policy by its runs; or on those of two, and on their difference."""
    runs, graph = question.runs, question.model.graph
    if not isinstance(runs, WholeRuns):
        raise DataError(Option("runs", type(runs).__name__), ": give runs as read_whole_runs(model, log) returns them")
    if model.learned_rewards:
        raise DataError("returns of rewards that depend on parameters are not read from a log; leave the runs out")
    given = [each for each in (question.policy, question.against) if each is not None]
    if len(given) != max(len(runs.arms), 1) or question.policy is None:
        raise DataError(
            'runs are those of one policy, or of two arms in the order of their policies: runs.of("A", "B")'
        )
    policies = [as_choices(graph, check_policy(graph, each)) for each in given]
    parts = [runs] if len(policies) == 1 else [runs.of(arm) for arm in runs.arms]
    planned = None if runs.expected is None else runs.expected / len(policies)  # whichever arms came
    objective = _on_model(question, model)
    made = [
        outcomes_of(objective, model, part, graph, policy, return_range=runs.return_range)
        for part, policy in zip(parts, policies, strict=True)
    ]
    errors = favoured_parts(error, 2 * len(policies) - 1)  # of a difference first, if there is one
    ends = []
    for each, policy in zip(made, policies, strict=True):
        low, high = _mean(each, planned, errors[-1])
        ends.append(RunEnds(question, (policy,), each.value(low, -1), each.value(high, 1), errors[-1]))
    whole = _joined(runs, made)
    if len(policies) == 2:
        low, high = _difference(runs, whole, made, planned, errors[0])
        both = whole.difference(low, -1), whole.difference(high, 1)
        ends.append(RunEnds(question, tuple(policies), *both, errors[0]))
    drawn = [] if runs.chance is None else [_DRAWN, *([] if runs.task is None else [_TASKS])]
    said = [_LABELLED, *assumptions_of_runs(runs, whole, objective), *drawn]
    return ends, said


def _on_model(question: Question, model: ParametricMDP) -> Objective:
    """Return the objective on the model whose states runs show; refuse one that asks for more than counting steps."""
    memory = question.model.graph.memory
    if memory is None:
        return question.objective
    objective = as_objective(question.objective.text, model) if question.objective.text else None
    if objective is None or isinstance(objective, Mission) or len(memory.names) > 1:
        raise DataError("runs do not show what a policy of this question remembers; leave the runs out")
    return objective


def _mean(made: Outcomes, planned: float | None, error: float) -> Range:
    """Return bounds on a mean of outcomes, by sizes that are constant if no number of runs was announced."""
    if planned is None:
        return mean_bounds(Tally.of(made.lower), Tally.of(made.upper), error)
    return mean_ends(made.lower, made.upper, error, planned)


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


def _difference(runs: WholeRuns, whole: Outcomes, made: list[Outcomes], planned: float | None, error: float) -> Range:
    """Return bounds on the difference of two means: as one mean if arms were drawn, and else arm by arm."""
    if runs.chance is None or runs.expected is None:
        one, other = (_mean(each, planned, equal_parts(error, 2)) for each in made)
        return nextafter(one[0] - other[1], -2), nextafter(one[1] - other[0], 2)
    is_first = np.asarray(runs.arm == runs.arms[0])
    chance = np.where(is_first, runs.chance, 1 - runs.chance)
    if not ((chance > 0) & (chance < 1)).all():
        raise DataError("arms that were drawn have a chance above 0 and below 1 in each run; leave the chance out")
    of_arms = [runs.chance[runs.arm == arm] for arm in runs.arms]
    if not any(map(np.ptp, of_arms)) and abs(sum(each[0] for each in of_arms) - 1) > _ROUNDED:
        raise DataError("the chances of both arms do not sum to one, so that there were others; leave the chance out")
    if runs.task is not None and np.ptp(chance) > 4 * UNIT:  # sizes must not know the task, nor what depends on it
        raise DataError("with tasks, the chance of an arm must be the same in all runs; leave the tasks out")
    task = np.zeros(len(runs), dtype=np.int64) if runs.task is None else np.unique(runs.task, return_inverse=True)[1]
    return difference_ends(whole.lower, whole.upper, Draws(is_first, chance, task), error, runs.expected)

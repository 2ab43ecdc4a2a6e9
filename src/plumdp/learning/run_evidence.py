"""Whole runs of policies that were practised as evidence: bounds on their values, and on the difference of two.

They are means of what runs earned, and need nothing of the model but which states and steps count. Beside the model's
own bounds they have a share of the error that was fixed beforehand, so that both hold at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from math import inf, log, nextafter
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.combinations import Trait, refuse
from plumdp.base.error_budget import equal_parts, favoured_parts
from plumdp.base.errors import DataError, ModelError, Option, WhyNot
from plumdp.base.special import log_gamma
from plumdp.base.vocabulary import Assumption, Group, Guarantee
from plumdp.confidence.bounded_means import Tally, mean_bounds
from plumdp.confidence.life_bets import risk_ends
from plumdp.confidence.run_bets import Draws, difference_ends, mean_ends, value_ends
from plumdp.confidence.sets import Counted, Evidence
from plumdp.data.log import Log
from plumdp.data.practice import known_policy
from plumdp.data.returns import Outcomes, Range, counts_torn, outcomes_of, range_of_returns
from plumdp.data.run_record import ROUNDED, NoRuns, WholeRuns
from plumdp.learning.assumptions import assumptions_of_runs
from plumdp.learning.run_ends import RunEnds, silent
from plumdp.model.graph import FloatArray, Graph, Indices
from plumdp.model.objectives import Objective, Reach, Reward
from plumdp.model.objectives.mission import Mission
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import as_choices, check_policy, normalised
from plumdp.model.question import PRACTICE, Question, as_objective
from plumdp.result.rungs import Ground

_LABELLED = Assumption(
    "the policy of each run was written down before the run began, and followed to its end (as you stated)",
    brief="the policy of each run was written down before, and followed",
)
CHOSEN = Assumption(
    "you chose the policy before looking at any of these runs (as you stated)",
    Group.PLAN,
    "policy",
)
_NOT_ROUTED = Assumption(
    "which policy a run has was decided without knowing more about how it would go than about any other run",
    brief="nobody sent runs to policies by how they would go",
)
_DRAWN = Assumption(
    "which arm a run takes was drawn with the chance in the log, which was fixed before the draw (as you stated)",
    brief="arms were drawn with the chances in the log",
)
_ASKED = Assumption(
    "the question, the states and the confidence were chosen before looking at these data",
    Group.PLAN,
    "question",
)
_ONLY = "in every state there is one action alone, so that all runs follow the policy"
_DONE = Assumption("practice is what was done in these runs, whatever it depended on", brief="")  # which defines it


def with_practised_runs(question: Question, log: Log) -> Question:
    """Return a question with all runs of a log, which is read for it, if its policy is what these did.

    Whether that is so, and whether returns have a range, is known before any run is looked at, as is whether the
    columns of a log show runs. Whatever else is wrong with runs, they have their share of the error, and say nothing.
    """
    model, read = question.model.counted, log.read_runs
    if read is None or question.runs is not None or not question.is_practised:
        return question
    if model.graph.levels is not None or _no_range(question):
        return question
    try:
        runs = read(model)
        # runs whose totals are capped say more than rows, so that bets are on the other policy alone
        no_bets: dict[str, Any] = {} if runs.cap is None or question.practised != {"against"} else {"against": None}
        return replace(question, runs=runs, **no_bets)
    except NoRuns:
        return question
    except DataError as problem:
        return replace(question, runs=WhyNot(str(problem)))


def _no_range(question: Question) -> bool:
    """Return whether single runs do not tell the value, or their returns have no largest and smallest number."""
    model, graph = question.model.counted, question.model.graph
    try:
        objective = objective_of_runs(question, model)
        range_of_returns(objective, model, graph, normalised(graph, np.ones(graph.n_choices)), None)
    except (DataError, ModelError):
        return True
    return bool(model.learned_rewards) or model.gaps is not None or not isinstance(objective, Reach | Reward)


def with_runs(found: Evidence, given: Counted) -> Evidence:
    """Return evidence with the bounds that whole runs of policies that were practised give."""
    asked = [question for question in given.questions if question.runs is not None]
    error = equal_parts(found.budget.error_of("run_bets", given.error), len(asked))
    made = [each for question in asked for each in _of_question(question, given, error)]
    return replace(found, constraints=(*found.constraints, *made))


def _of_question(question: Question, given: Counted, error: float) -> list[RunEnds]:
    """Return bounds on the value of a policy by its runs; or on those of two, and on their difference."""
    if question.is_practised:
        return [_of_practice(question, given, error)]
    if isinstance(question.runs, WhyNot):  # of a saved result
        both = _policies_of(question)
        subjects = [(each,) for each in both] + [tuple(both)] * (len(both) - 1)
        return [silent(question, each, question.runs.reason, of_practice=False) for each in subjects]
    runs, policies = _checked(question, given.model)
    said = (_LABELLED, CHOSEN)
    return _bounds(question, given.model, runs, policies, policies, error, said)


def _of_practice(question: Question, given: Counted, error: float) -> RunEnds:
    """Return bounds on what was done by all runs; or why these say nothing, as nobody asked for them."""
    graph, is_chain = question.model.graph, question.model.graph.is_chain
    subject = graph.first_choice[:-1] if is_chain else known_policy(question, given.counts, PRACTICE)
    about: dict[str, bool] = {"of_practice": not is_chain}
    if isinstance(question.runs, WhyNot):
        return silent(question, (subject,), question.runs.reason, **about)
    followed = normalised(graph, np.ones(graph.n_choices))  # every action is one that practice may take
    if why := missed_after(question.runs, given):
        return silent(question, (subject,), why, **about)
    try:
        said = (_ONLY if is_chain else _DONE, _ASKED)
        (found,) = _bounds(question, given.model, question.runs, [subject], [followed], error, said, **about)
    except (DataError, ModelError) as problem:
        return silent(question, (subject,), str(problem), **about)
    return found


def missed_after(runs: WholeRuns, given: Counted) -> str:
    """Return in words that rows are missing more often after some states or actions than after others, if they are.

    ``missed_by_group`` says why a mean over groups is rarely large by chance. It never raises a claim here.
    """
    if runs.missing is None:
        return ""
    two, n, k = missed_by_group(runs, given.model.graph)
    if np.logaddexp.reduce(two) < np.log(len(two) / given.error):
        return ""
    n_all, k_all = (int(each[: given.model.graph.n_states].sum()) for each in (n, k))
    worst, graph = int(np.argmax(np.where(k * n_all > k_all * n, two, -inf))), given.model.graph
    code = worst - graph.n_states
    after = f"the action {[*graph.action_names, ''][code]!r}" if code >= 0 else f"({graph.describe_state(worst)})"
    shares = f"{k[worst] / n[worst]:.2g}", f"{(k_all - k[worst]) / (n_all - n[worst]):.2g}"
    return f"the next row is missing after {shares[0]} of the rows with {after}, and after {shares[1]} of the others"


def missed_by_group(runs: WholeRuns, graph: Graph) -> tuple[FloatArray, Indices, Indices]:
    """Return the logarithm of an e-value for each state and then each action, and rows and gaps after each of them.

    Let each row but the first be missing with one chance, whatever came before. Given when the last row of a run is,
    those before it are missing with this chance, so the probability of what is missing under two chances, averaged over
    them, divided by the largest under one, has a mean of at most one. Which groups there are, the model says.
    """
    assert runs.missing is not None
    row = np.flatnonzero(runs.time + 1 < runs.time[runs.first[1:] - 1][runs.run])
    is_gap, n_actions = runs.missing[row + 1] > runs.missing[row], len(graph.action_names)
    action = np.where(runs.action[row] < 0, n_actions, runs.action[row])  # one that the model does not have
    group, n_groups = np.concatenate([runs.state[row], graph.n_states + action]), graph.n_states + n_actions + 1
    n_all, k_all = len(row), int(is_gap.sum())
    n, k = np.bincount(group, minlength=n_groups), np.bincount(group, np.tile(is_gap, 2), n_groups)
    two = sum(
        log_gamma(a + 0.5) + log_gamma(b - a + 0.5) - log_gamma(b + 1.0) for a, b in ((k, n), (k_all - k, n_all - n))
    ) - 2 * np.log(np.pi)
    one = sum(log(each / n_all) * each for each in (k_all, n_all - k_all) if each)
    return two - one, n, k.astype(np.int64)


def _bounds(
    question: Question,
    model: ParametricMDP,
    runs: WholeRuns,
    policies: Sequence[npt.NDArray[Any]],
    followed: Sequence[npt.NDArray[Any]],
    error: float,
    said: tuple[str, ...],
    *,
    of_practice: bool = False,
) -> list[RunEnds]:
    """Return bounds on the value of each policy, and on their difference; runs took actions of what they followed."""
    refuse({Trait.RUNS} | model.traits & {Trait.LEARNED_REWARDS})
    objective, graph = objective_of_runs(question, model), question.model.graph
    runs = runs if counts_torn(objective) else runs.complete()
    undrawn = replace(runs, chance=None)  # each arm is weighted, or joined with the other one, below
    parts = [undrawn.of(arm) for arm in runs.arms] if len(policies) == 2 else [runs]
    made = [
        outcomes_of(objective, model, part, graph, policy, return_range=runs.return_range)
        for part, policy in zip(parts, followed, strict=True)
    ]
    whole, draws = _joined(runs, made), _draws_of(runs) if len(policies) == 2 else None
    ground = Ground.WHOLE_RUNS if made[0].lives is None or draws is not None else Ground.LIFE_TABLE
    errors = favoured_parts(error, 2 * len(policies) - 1)  # of a difference first, if there is one
    ranges = _ranges(runs, made, whole, draws, errors)
    stand_alone, ends = draws is not None and _is_mixed(runs, draws), []
    how = () if question.is_practised else (_NOT_ROUTED if draws is None else _DRAWN,)
    premises = (*said, *how, *assumptions_of_runs(runs, whole, objective, ground))
    subjects = [(each,) for each in policies] + [tuple(policies)] * (len(policies) - 1)
    guarantee = Guarantee.FIXED if runs.has_fixed_number else Guarantee.ANYTIME
    for share, (low, high), about in zip(errors[::-1], ranges, subjects, strict=True):
        to = whole.value if len(about) == 1 else whole.difference
        found = RunEnds(question, about, of_practice, to(low, -1), to(high, 1), share, stand_alone, premises)
        ends.append(replace(found, guarantee=guarantee, cap=whole.cap, ground=ground))
    return ends


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
    runs = question.runs
    if not isinstance(runs, WholeRuns):
        raise DataError(Option("runs", type(runs).__name__), ": give runs as read_whole_runs(model, log) returns them")
    given = [each for each in (question.policy, question.against) if each is not None]
    runs = runs if runs.arms or runs.arm is None else runs.of(*np.unique(runs.arm))
    if len(given) != max(len(runs.arms), 1) or question.policy is None:
        raise DataError(
            'runs are those of one policy, or of two arms in the order of their policies: runs.of("A", "B")'
        )
    return runs, _policies_of(question)


def _policies_of(question: Question) -> list[npt.NDArray[Any]]:
    """Return the policies of a question, of which it has one or two."""
    graph, given = question.model.graph, (question.policy, question.against)
    return [as_choices(graph, check_policy(graph, each)) for each in given if each is not None]


def objective_of_runs(question: Question, model: ParametricMDP) -> Objective:
    """Return the objective on the model whose states runs show; refuse one that asks for more than counting steps."""
    memory = question.model.graph.memory
    if memory is None:
        return question.objective
    objective = as_objective(question.objective.text, model) if question.objective.text else None
    is_mission = objective is None or isinstance(objective, Mission) or len(memory.names) > 1
    refuse({Trait.RUNS, is_mission and Trait.MISSION})
    assert objective is not None
    return objective


def _mean(made: Outcomes, runs: WholeRuns, n_arms: int, error: float) -> Range:
    """Return bounds on a mean of outcomes, by sizes that are constant if no number of runs is known beforehand."""
    if runs.has_fixed_number:  # then any order will do that outcomes did not make, as they may have made the names
        made = made.take(by_lot(runs))
    expected = len(runs) if runs.has_fixed_number else runs.expected
    if expected is None:
        low, high = made.reach or (np.zeros(len(runs)), np.ones(len(runs)))
        lower, upper = np.where(low < 0, 0.0, made.lower), np.where(high > 1, 1.0, made.upper)
        return mean_bounds(Tally.of(lower), Tally.of(upper), error)
    if made.lives is not None:
        return risk_ends(made.lives, error, expected / n_arms)
    return mean_ends(made.lower, made.upper, error, expected / n_arms, made.reach)  # whichever arms came


def by_lot(runs: WholeRuns) -> Indices:
    """Return runs of a fixed number in an order that no outcome made: that of hashes of their names."""
    return np.argsort([blake2b(str(name).encode()).digest() for name in runs.names], kind="stable")


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
    return Outcomes(lower, upper, is_complete, made[0].within, made[0].cap)


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
            how = "arms were drawn with chances that differ: say how many runs you expected, with "
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

"""Bounds the value of policies at all points of a region, against nature and with one point for all states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.certifying.policy_search import search_policies
from plumdp.learning.learned import Learned
from plumdp.model.graph import FloatArray, Graph, IntArray
from plumdp.model.objective import Objective
from plumdp.model.policy import Policy, check_policy
from plumdp.model.question import Question
from plumdp.region.conflict import Conflict
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.coupled.bounds import Proof, find_coupled_bounds
from plumdp.solver.evaluate import evaluate_all
from plumdp.solver.problem import Solution, SolverStatus, status_at
from plumdp.solver.solve import solve
from plumdp.tables.table_set import announced_policies, by_bets

_MOST_CERTIFIED = 3  # policies whose bounds are proved, of all that a search proposes
_WORTHWHILE = 0.02  # share of the distance of the bounds that an estimate must promise


@dataclass(frozen=True, eq=False)
class Valuation:
    """A policy, and bounds on its value at the initial state that hold at every point of the region."""

    policy: npt.NDArray[Any]  # (n_states): choices; or, of a policy that draws, probabilities (n_choices)
    lower: float
    upper: float
    solver: SolverStatus
    coupled: Proof | None = None  # with one point for all states, if they were asked for and exist
    not_coupled: str = ""  # why there are no coupled bounds
    nature: tuple[FloatArray, FloatArray] | None = None  # (n_states) each: bounds by induction against nature

    def bound(self, objective: Objective) -> float:
        """Return the bound that matters, such that a larger one is better."""
        return self.lower if objective.direction == "max" else -self.upper


def value_policy(
    learned: Learned,
    uncertain: IntervalMDP,
    policy: Policy,
    question: Question,
    *,
    is_coupled: bool = False,
    precision: float = 1e-6,
) -> Valuation:
    """Return the tightest bounds on the value of a policy that are proved, each end by itself.

    Bounds against nature are proved anew for this policy, as those of a solver are for a choice of policies.
    """
    model, objective = question.model, question.objective
    within = learned.at_points(question).prepared
    worst, best = evaluate_all(
        with_looser(uncertain), policy, objective, ("robust", "optimistic"), precision=precision, within=within
    )
    start = model.graph.initial_state
    low, high = (worst, best) if objective.direction == "max" else (best, worst)
    ended = [status_at(solution, start, precision) for solution in (worst, best)]
    status = next((status for status in ended if status != SolverStatus.CONVERGED), SolverStatus.CONVERGED)
    checked = check_policy(model.graph, policy)
    chosen = checked if checked.dtype.kind == "f" else worst.policy
    by_nature = low.lower, high.upper
    valued = Valuation(chosen, float(low.lower[start]), float(high.upper[start]), status, nature=by_nature)
    if not is_coupled or isinstance(learned.region, Conflict):
        return valued
    coupled = by_bets(learned.bounds, question, chosen, *by_nature)
    if coupled is None:
        coupled = find_coupled_bounds(model, chosen, objective, learned.region, uncertain, precision=precision)
    if isinstance(coupled, str):
        return replace(valued, not_coupled=coupled)
    lower, upper = max(valued.lower, coupled.lower), min(valued.upper, coupled.upper)
    if lower > upper:  # both hold at every point of the region, so it is empty, which rounding has hidden so far
        return valued
    return replace(valued, lower=lower, upper=upper, coupled=coupled)


def best_valuation(
    learned: Learned, uncertain: IntervalMDP, robust: Solution, question: Question, *, precision: float
) -> Valuation:
    """Return the robust policy, or one that a search found, with the best bound by one point for all states.

    Bounds are proved for the policy with the best estimate, of those that bets were placed on or that a search found,
    for others whose estimates leave room for a better bound, and for the robust policy if its bound against nature is
    better than all of these. They hold jointly, so that the best may be picked.
    """
    model, objective, region = question.model, question.objective, learned.region
    assert not isinstance(region, Conflict)
    start = model.graph.initial_state
    against_nature = float(robust.lower[start]) if objective.direction == "max" else -float(robust.upper[start])
    announced, share = announced_policies(learned.bounds, question), 0.0
    if announced is None:
        given = [robust.policy, *(policy for policy in learned.policies if _is_policy_of(model.graph, policy))]
        found = search_policies(model, objective, region, given, learned.at_points(question))[:_MOST_CERTIFIED]
        announced, share = [(candidate.bound, candidate.policy) for candidate in found], _WORTHWHILE
    best: Valuation | None = None
    for estimate, policy, worthwhile in (*((*each, share) for each in announced), (against_nature, robust.policy, 0.0)):
        if best is None or promises_more(estimate, best, objective, worthwhile):
            new = value_policy(learned, uncertain, policy, question, is_coupled=True, precision=precision)
            best = new if best is None or new.bound(objective) > best.bound(objective) else best
    assert best is not None
    return best


def _is_policy_of(graph: Graph, policy: IntArray) -> bool:
    """Return whether a policy that was chosen for some question is a policy of this graph."""
    if len(policy) != graph.n_states:
        return False
    return bool(((graph.first_choice[:-1] <= policy) & (policy < graph.first_choice[1:])).all())


def is_worst(valued: Valuation, objective: Objective) -> bool:
    """Return whether the value of a policy is proved to be the worst possible one."""
    return valued.lower == valued.upper and objective.is_vacuous(valued.lower)


def best_of_all(uncertain: IntervalMDP, objective: Objective, *, precision: float) -> float:
    """Return a bound that no policy beats at any point of the region, from above if larger values are better.

    Nature plays with the agent in a relaxation of the region, so that no policy is worth more at any point.
    """
    start, is_max = uncertain.graph.initial_state, objective.direction == "max"
    relaxations = with_looser(uncertain)
    solutions = [solve(relaxed, objective, nature="optimistic", precision=precision) for relaxed in relaxations]
    ends = [float(solution.upper[start] if is_max else solution.lower[start]) for solution in solutions]
    return min(ends) if is_max else max(ends)


def promises_more(estimate: float, best: Valuation, objective: Objective, share: float = _WORTHWHILE) -> bool:
    """Return whether an estimated bound is better than a proved one by a share of the width, and so worth a proof."""
    width = best.upper - best.lower
    return estimate > best.bound(objective) + (share * width if np.isfinite(width) else 0.0)


def with_looser(uncertain: IntervalMDP) -> list[IntervalMDP]:
    """Return a relaxation, and that by intervals of its expressions if nature picks points of a region."""
    return [uncertain] if uncertain.region is None else [uncertain, replace(uncertain, region=None)]

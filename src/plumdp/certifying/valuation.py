"""What a policy is worth, given what the data say: bounds against nature, and with one point for all states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.certifying.policy_search import Candidate, search_policies
from plumdp.learning.learned import Learned
from plumdp.model.graph import Graph, IntArray
from plumdp.model.objective import Objective
from plumdp.model.policy import Policy, check_policy
from plumdp.model.question import Question
from plumdp.region.conflict import Conflict
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.coupled.bounds import CoupledBounds, find_coupled_bounds
from plumdp.solver.evaluate import evaluate_all
from plumdp.solver.solution import Solution, SolverStatus, status_at
from plumdp.solver.solve import solve

_MOST_CERTIFIED = 3  # policies whose bounds are proved, of all that a search proposes
_WORTHWHILE = 0.02  # share of the distance of the bounds that an estimate must promise


@dataclass(frozen=True, eq=False)
class Valuation:
    """A policy, and bounds on its value at the initial state that hold at every point of the region."""

    policy: npt.NDArray[Any]  # (n_states): choices; or, of a policy that draws, probabilities (n_choices)
    lower: float
    upper: float
    solver: SolverStatus  # how it ended
    coupled: CoupledBounds | None = None  # what one point for all states gives, if that was asked and applies
    not_coupled: str = ""  # why it does not apply

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
    """Return bounds on the value of a policy: each end the tightest of what was proved.

    The values are proved anew for this policy, with nothing left to choose.
    """
    model, objective = question.model, question.objective
    within = learned.at_points(question).prepared
    worst, best = evaluate_all(
        with_looser(uncertain), policy, objective, ("robust", "optimistic"), precision=precision, within=within
    )
    start = model.graph.initial_state
    low, high = (worst, best) if objective.direction == "max" else (best, worst)
    ended = [status_at(solution, start, precision) for solution in (worst, best)]
    status = next((each for each in ended if each != SolverStatus.CONVERGED), SolverStatus.CONVERGED)
    given = check_policy(model.graph, policy)
    chosen = given if given.dtype.kind == "f" else worst.policy
    valued = Valuation(chosen, float(low.lower[start]), float(high.upper[start]), status)
    if not is_coupled or isinstance(learned.region, Conflict):
        return valued
    found = find_coupled_bounds(model, chosen, objective, learned.region, uncertain, precision=precision)
    if isinstance(found, str):
        return replace(valued, not_coupled=found)
    lower, upper = max(valued.lower, found.lower), min(valued.upper, found.upper)
    if lower > upper:  # both hold at every point of the region: it is empty, and floats could not tell before
        return valued
    return replace(valued, lower=lower, upper=upper, coupled=found)


def best_valuation(
    learned: Learned, uncertain: IntervalMDP, robust: Solution, question: Question, *, precision: float
) -> Valuation:
    """Return the policy with the best bound, with one point for all states: the robust one, or one that a search found.

    Bounds are proved for the candidate with the best estimate, and for others whose estimates leave room for a better
    bound; and for the robust policy, if its bound against nature is better than all of these.
    """
    model, objective, region = question.model, question.objective, learned.region
    assert not isinstance(region, Conflict)
    chosen = [robust.policy, *(policy for policy in learned.policies if _is_policy_of(model.graph, policy))]
    candidates = search_policies(model, objective, region, chosen, learned.at_points(question))
    best: Valuation | None = None
    for candidate in candidates[:_MOST_CERTIFIED]:
        if best is None or promises_more(candidate, best, objective):
            new = value_policy(learned, uncertain, candidate.policy, question, is_coupled=True, precision=precision)
            best = new if best is None or new.bound(objective) > best.bound(objective) else best
    assert best is not None
    start = model.graph.initial_state
    against_nature = float(robust.lower[start]) if objective.direction == "max" else -float(robust.upper[start])
    if against_nature <= best.bound(objective):
        return best
    own = value_policy(learned, uncertain, robust.policy, question, is_coupled=True, precision=precision)
    return own if own.bound(objective) > best.bound(objective) else best


def _is_policy_of(graph: Graph, policy: IntArray) -> bool:
    """Return whether a policy that was chosen for some question is one of this graph: any of them may be certified."""
    if len(policy) != graph.n_states:
        return False
    return bool(((graph.first_choice[:-1] <= policy) & (policy < graph.first_choice[1:])).all())


def is_worst(valued: Valuation, objective: Objective) -> bool:
    """Return whether the value of a policy is proved to be the worst there can be."""
    is_known = valued.lower == valued.upper
    return is_known and objective.is_vacuous(valued.lower if objective.direction == "max" else valued.upper)


def best_of_all(uncertain: IntervalMDP, objective: Objective, *, precision: float) -> float:
    """Return what no policy beats at any point of the region: an upper bound if large values are better, else a lower.

    Nature plays with the agent in a relaxation of the region, so that every policy at every point is worth no more.
    """
    start, is_max = uncertain.graph.initial_state, objective.direction == "max"
    solved = [solve(each, objective, nature="optimistic", precision=precision) for each in with_looser(uncertain)]
    ends = [float(one.upper[start] if is_max else one.lower[start]) for one in solved]
    return min(ends) if is_max else max(ends)


def promises_more(candidate: Candidate, best: Valuation, objective: Objective) -> bool:
    """Return whether the estimate of a bound is better than a bound that was proved by what is worth a proof."""
    width, bound = best.upper - best.lower, best.bound(objective)
    return candidate.bound > bound + (_WORTHWHILE * width if np.isfinite(width) else 0.0)


def with_looser(uncertain: IntervalMDP) -> list[IntervalMDP]:
    """Return a relaxation, and the intervals of its expressions where nature picks points of a region."""
    return [uncertain] if uncertain.region is None else [uncertain, replace(uncertain, region=None)]

"""Bounds the value of policies at all points of a region, against nature and with one point for all states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import UNSAID, WhyNot
from plumdp.base.kinds import Kinds
from plumdp.certifying.policy_search import search_policies
from plumdp.learning.learned import Learned
from plumdp.learning.methods import SETS
from plumdp.model.graph import FloatArray, Graph, IntArray, is_mapped, read_only
from plumdp.model.objectives import Objective
from plumdp.model.policy import Policy, as_choices, check_policy
from plumdp.model.question import Question
from plumdp.region.conflict import Conflict
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.coupled.bounds import Proof, find_coupled_bounds
from plumdp.solver.evaluate import evaluate_all
from plumdp.solver.problem import Solution, SolverStatus, status_at
from plumdp.solver.solve import solve

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
    not_coupled: WhyNot = UNSAID  # why there are no coupled bounds
    nature: tuple[FloatArray, FloatArray] | None = None  # (n_states) each: bounds by induction against nature

    def bound(self, objective: Objective) -> float:
        """Return the bound that matters, such that a larger one is better."""
        return self.lower if objective.direction == "max" else -self.upper


@dataclass(frozen=True, eq=False)
class Sought:
    """The policy whose value is to be bounded, less that of another one if there is one, and what a prover may know."""

    learned: Learned
    question: Question
    uncertain: IntervalMDP  # a relaxation of the question's model that allows for all points of the region
    policy: Policy
    less: Policy | None = None
    precision: float = 1e-6

    @property
    def choices(self) -> list[npt.NDArray[Any]]:
        """The policy, and the one whose value is taken off if there is one, as choices or probabilities of these."""
        graph, given = self.question.model.graph, (self.policy, *(() if self.less is None else (self.less,)))
        return [as_choices(graph, check_policy(graph, each)) for each in given]


Proofs: TypeAlias = Mapping[str, Proof]
Prover: TypeAlias = Callable[[Sought, Proofs], Proof | WhyNot]
"""From what is sought and the proofs so far to another one, or to why there is none, which may go without saying."""


def against_nature(sought: Sought, _: Proofs) -> Proof | WhyNot:
    """Return bounds by induction, with nature at its worst and at its best in the relaxation.

    They are proved anew for this policy, as those of a solver are for a choice of policies.
    """
    if sought.less is not None:
        return UNSAID
    question, precision, start = sought.question, sought.precision, sought.question.model.graph.initial_state
    asked, within = (sought.policy, question.objective), sought.learned.at_points(question).prepared
    worst, best = evaluate_all(
        with_looser(sought.uncertain), *asked, ("robust", "optimistic"), precision=precision, within=within
    )
    low, high = (worst, best) if question.objective.direction == "max" else (best, worst)
    ended = [status_at(solution, start, precision) for solution in (worst, best)]
    status = next((status for status in ended if status != SolverStatus.CONVERGED), SolverStatus.CONVERGED)
    ends = float(low.lower[start]), float(high.upper[start])
    return Proof(*ends, 0.0, 0.0, 0.0, "against nature", values=(low.lower, high.upper), solver=status)


def by_expansion(sought: Sought, _: Proofs) -> Proof | WhyNot:
    """Return bounds with one point for all states, by expansions in the parameters."""
    question, region = sought.question, sought.learned.with_points(sought.question.model)
    if region is None:
        return WhyNot(question.model.no_points)
    rest = question.objective, region, sought.uncertain
    return find_coupled_bounds(question.model, sought.policy, *rest, less=sought.less, precision=sought.precision)


def by_nature(sought: Sought, proofs: Proofs, policy: npt.NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Return bounds (n_states) on the values of a policy by induction against nature."""
    found = proofs.get("nature") or against_nature(replace(sought, policy=policy, less=None), proofs)
    assert isinstance(found, Proof)
    assert found.values is not None
    return found.values


PROVERS: Kinds[str, Prover] = Kinds({"nature": against_nature, "expansion": by_expansion})
"""All provers, in their order: each knows the proofs so far."""


def prove(sought: Sought, so_far: Proofs, *, is_coupled: bool = True) -> tuple[Proofs, WhyNot]:
    """Return the proofs so far and those of all provers, and the last reason why one has none.

    Without coupling, nature may pick another point in each state, so that only bounds against it count.
    """
    found, why_not = dict(so_far), UNSAID
    is_possible = not isinstance(sought.learned.region, Conflict)
    for name in PROVERS if is_possible and is_coupled else ("nature",):
        new = PROVERS[name](sought, found)
        if isinstance(new, WhyNot):
            why_not = new if new.reason else why_not
            continue
        lower, upper = best_ends([*found.values(), new])
        if lower <= upper or not found:  # else the region is empty, as all hold, which rounding has hidden so far
            found[name] = new
    return found, why_not


def best_ends(proofs: Iterable[Proof]) -> tuple[float, float]:
    """Return the best end of each side, as all bounds hold."""
    ends = [(proof.lower, proof.upper) for proof in proofs]
    return max(lower for lower, _ in ends), min(upper for _, upper in ends)


def value_policy(
    learned: Learned,
    uncertain: IntervalMDP,
    policy: Policy,
    question: Question,
    *,
    is_coupled: bool = False,
    precision: float = 1e-6,
) -> Valuation:
    """Return the tightest bounds on the value of a policy that are proved, each end by itself."""
    checked = check_policy(question.model.graph, policy)
    is_kept = checked.dtype.kind == "f" or is_mapped(checked)  # what is on disk stays there
    chosen = checked if is_kept else read_only(checked.astype(np.int32))
    sought = Sought(learned, question, uncertain, chosen, precision=precision)
    proofs, why_not = prove(sought, {}, is_coupled=is_coupled)
    nature, coupled = proofs["nature"], [proof for name, proof in proofs.items() if name != "nature"]
    best = min(coupled, key=lambda proof: proof.upper - proof.lower, default=None)
    lower, upper = best_ends(proofs.values())
    return Valuation(chosen, lower, upper, nature.solver, best, why_not if best is None else UNSAID, nature.values)


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
    prespecified, share = SETS[learned.kind].policies(learned.bounds, question), 0.0
    if prespecified is None:
        given = [robust.policy, *(policy for policy in learned.policies if _is_policy_of(model.graph, policy))]
        found = search_policies(model, objective, region, given, learned.at_points(question))[:_MOST_CERTIFIED]
        prespecified, share = [(candidate.bound, candidate.policy) for candidate in found], _WORTHWHILE
    best: Valuation | None = None
    for estimate, policy, worthwhile in (
        *((*each, share) for each in prespecified),
        (against_nature, robust.policy, 0.0),
    ):
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

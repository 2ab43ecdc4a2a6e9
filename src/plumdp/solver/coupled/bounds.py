"""Bounds on sums of policies' values that hold at every point of a region, with one point for all states of a run.

Let W(s, x) = w⁰ + w¹·x (+ xᵀ W² x) be any functions on the points of a region, exact where runs are over, and let their
residuals R = r + P W - W be at most e, with e > 0. If the expected sum of e until a run is over is at most M, nature
being at its worst, then the value differs from W by at most M at every point of the region. For a single point is one
of nature's strategies. As e > 0, runs end almost surely at it, so that the value V is the only solution of V = r + P V.
Now D = V - W satisfies D = R + P D, so that D is the sum of all Pⁿ R.

If rows may be off by a tolerance in total variation, the residual of a row is off by at most the tolerance times the
range of W over its successors. That is added to e, and nature may be off as well: docs/proofs/model_tolerance.md.

Values of two policies move together with the parameters. So both are expanded about one centre, with W and W' within
the errors e and e' of them, and V - V' = (W - W') + (e - e'): slopes and curvatures are subtracted before the region is
asked how far they lead, and only the remainders are added up. So it is with weighted sums of several objectives.

Averages in the long run are g = c + D / T for each policy (see ``by_cycles``). With t about T, this is c + D / t plus
D (1 / T - 1 / t), which is small, as D is about zero and T about t. So D / t is expanded for each policy of a
difference, and what is small is bounded by the bounds on D and T.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product

import numpy as np

from plumdp.base.errors import WhyNot
from plumdp.base.rounding import UNIT, UP
from plumdp.model.graph import FloatArray
from plumdp.model.objectives import Kind, Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, check_policy
from plumdp.model.text import one_line
from plumdp.region.ball import Ball, ball_around, linear_range
from plumdp.region.boxes import Cover
from plumdp.region.cutting import MATTERS
from plumdp.region.shapes import Region
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.coupled.brackets import (
    ENDLESS,
    Approximation,
    Bracket,
    as_brackets,
    bracket_of,
    intersection,
    no_change,
    weighted_sum,
)
from plumdp.solver.coupled.by_cycles import Cycles, average_of, cycles_of
from plumdp.solver.coupled.gradient import policy_gradient
from plumdp.solver.coupled.remainder import StepErrors
from plumdp.solver.coupled.terms import Term, term_of
from plumdp.solver.problem import Problem, SolverStatus
from plumdp.solver.reduce import one_minus, reduce

_NO_CYCLES = "nothing proves that runs of the policy come back to the state in which they are most often"


@dataclass(frozen=True)
class Proof:
    """Bounds on the value of a policy in the initial state at every point of a region, and what proves them.

    ``statistics`` is the range of the linear part over the region, ``remainder`` the bound on all that is not linear,
    ``rounding`` the margin for floats. They sum to ``upper - lower``, unless bounds were cut to [0, 1].
    """

    lower: float
    upper: float
    statistics: float
    remainder: float
    rounding: float
    kind: str  # "first order", "second order", "second order in 12 pieces", or one for each end
    values: tuple[FloatArray, FloatArray] | None = field(default=None, compare=False)  # (n_states) each: by induction
    cover: tuple[Ball, Cover] | None = field(default=None, compare=False)  # a ball around the region, and boxes of it
    solver: SolverStatus = SolverStatus.CONVERGED

    def __repr__(self) -> str:
        return one_line(self, f"{self.lower:.6g} to {self.upper:.6g}", self.kind)


def find_coupled_bounds(
    model: ParametricMDP,
    policy: Policy,
    objective: Objective,
    region: Region,
    uncertain: IntervalMDP,
    *,
    less: Policy | None = None,
    precision: float = 1e-6,
) -> Proof | WhyNot:
    """Return bounds on the value of a policy that hold at every point of a region, or in words why there are none.

    If there is another policy, its value is subtracted (``less``). ``uncertain`` is a relaxation of the model that
    allows for all points of the region. If it tolerates a tolerance, so do the bounds. The remainder is bounded up to
    the precision.
    """
    if less is not None:
        found = find_differences(model, policy, less, [objective], region, uncertain, precision=precision)
        return found if isinstance(found, WhyNot) else found.bounds([1.0])
    reduced = reduce(Problem(model, objective, check_policy(model.graph, policy)))
    of_model = _of_average if objective.kind is Kind.AVERAGE else _of_value
    proof = of_model(reduced.problem, region, reduced.like(uncertain), precision)
    if isinstance(proof, WhyNot) or reduced.sign > 0:
        return proof
    lower, upper = one_minus(proof.lower, proof.upper)
    return replace(proof, lower=lower, upper=upper)


def _of_value(
    problem: Problem[ParametricMDP], region: Region, uncertain: IntervalMDP, precision: float
) -> Proof | WhyNot:
    """Return bounds on the value of a reduced problem."""
    term = term_of(problem, uncertain)
    if isinstance(term, WhyNot):
        return term
    if term.known is not None:
        return Proof(term.known, term.known, 0.0, 0.0, 0.0, "known")
    brackets = _brackets_of_one(term, region, ball_around(region, term.model.space.dimension), precision)
    if isinstance(brackets, WhyNot):
        return brackets
    # the value of a probability is between zero and its cap
    least = 0.0 if problem.objective.cap < np.inf else -np.inf
    return best_of(brackets, least=least, most=problem.objective.cap)


def _brackets_of_one(term: Term, region: Region, ball: Ball, precision: float) -> list[Bracket] | WhyNot:
    """Return brackets of first order, of second if the remainder is not negligible."""
    setting, errors = term.setting(region, ball), term.errors
    if isinstance(setting, WhyNot):
        return setting
    guesses = term.guesses(setting, precision)
    if isinstance(guesses, WhyNot):
        return guesses
    found = as_brackets(guesses, setting, enough=MATTERS if isinstance(errors, StepErrors) else None)
    return found or ENDLESS


def best_of(brackets: Sequence[Bracket], *, least: float, most: float) -> Proof:
    """Return the best ends of brackets that all hold, cut to where the value is, such as [0, 1] for a probability."""
    best = intersection(brackets)
    low, high = best.low, best.high
    kind = low.kind if low.kind == high.kind else f"{low.kind} below, {high.kind} above"
    lower, upper = min(max(low.value, least), most), max(min(high.value, most), least)
    parts = low.statistics + high.statistics, best.remainder, low.rounding + high.rounding
    return Proof(lower, upper, *parts, kind)


@dataclass(frozen=True, eq=False)
class Differences:
    """The differences of two policies' values in some objectives, expanded about the centre of a ball."""

    region: Region
    terms: tuple[tuple[Term, Term], ...]  # (n_objectives)
    ball: Ball  # around the region
    orders: list[list[Approximation]]  # one for each objective

    def bounds(self, weights: Sequence[float]) -> Proof:
        """Return bounds on the sum of the differences times these weights, at every point of the region."""
        # (1 - V) - (1 - V') = V' - V
        signed = [one.sign * weight for (one, _), weight in zip(self.terms, weights, strict=True)]
        sums = [weighted_sum(of_order, signed) for of_order in self.orders]
        brackets = [bracket_of(each, linear_range(self.region, self.ball, each.slope)) for each in sums]
        sizes = ((abs(weight), one.objective.cap) for (one, _), weight in zip(self.terms, weights, strict=True))
        most = sum(weight * cap for weight, cap in sizes if weight) * UP
        return _moved(best_of(brackets, least=-most, most=most), self.terms, weights)


def _moved(proof: Proof, terms: Sequence[tuple[Term, Term]], weights: Sequence[float]) -> Proof:
    """Return the bounds with what was taken from averages added again, and what was left out of them."""
    every = [
        (side * weight, term)
        for both, weight in zip(terms, weights, strict=True)
        for side, term in zip((1.0, -1.0), both, strict=True)
        if term.per is not None
    ]
    if not every:
        return proof
    small = sum(abs(weight) * off for weight, term in every for off in term.off)
    added = [weight * term.added for weight, term in every]
    slack = 8 * UNIT * (sum(map(abs, added)) + abs(proof.lower) + abs(proof.upper))
    wider = small * UP + slack
    return replace(
        proof,
        lower=proof.lower + sum(added) - wider,
        upper=proof.upper + sum(added) + wider,
        remainder=proof.remainder + 2 * small,
        rounding=proof.rounding + 2 * slack,
    )


def find_differences(
    model: ParametricMDP,
    first: Policy,
    second: Policy,
    objectives: Sequence[Objective],
    region: Region,
    uncertain: IntervalMDP,
    *,
    precision: float = 1e-6,
) -> Differences | WhyNot:
    """Return the values of one policy less those of another in some objectives, or why they cannot be expanded."""
    terms = []
    for objective, policy in product(objectives, (first, second)):
        reduced = reduce(Problem(model, objective, check_policy(model.graph, policy)))
        problem, relaxed = reduced.problem, reduced.like(uncertain)
        is_average = objective.kind is Kind.AVERAGE
        term = _cycle_term(problem, region, relaxed, precision) if is_average else term_of(problem, relaxed)
        if isinstance(term, WhyNot):
            return term
        terms.append(replace(term, sign=reduced.sign))
    pairs = tuple(zip(terms[::2], terms[1::2], strict=True))
    ball = ball_around(region, model.space.dimension)
    orders = _expanded(pairs, region, ball, precision)
    return orders if isinstance(orders, WhyNot) else Differences(region, pairs, ball, orders)


def _expanded(
    pairs: Sequence[tuple[Term, Term]], region: Region, ball: Ball, precision: float
) -> list[list[Approximation]] | WhyNot:
    """Return the difference of each pair, for each order that all terms have, or why there is none."""
    of_terms = []
    for term in chain.from_iterable(pairs):
        guesses = term.orders(region, ball, precision)
        if isinstance(guesses, WhyNot):
            return guesses
        of_terms.append(guesses)
    orders = [[each for each in of_order if each is not None] for of_order in zip(*of_terms, strict=False)]
    complete = [of_order for of_order in orders if len(of_order) == len(of_terms)]
    differences = [[one - other for one, other in zip(each[::2], each[1::2], strict=True)] for each in complete]
    for place, (one, other) in enumerate(pairs):
        if one.has_chain_of(other):  # one number less itself, whatever its expansions leave open
            for order, each in enumerate(differences, 1):
                each[place] = no_change(0.0, len(each[place].slope), order)
    return differences or ENDLESS


@dataclass(frozen=True, eq=False)
class Cycle:
    """The cycles of a policy, the number c that its reward is less for each step, and bounds on D and T (by_cycles)."""

    cycles: Cycles
    relaxed: IntervalMDP
    less: float
    length: Proof
    excess: Proof


def _cycle(problem: Problem[ParametricMDP], region: Region, uncertain: IntervalMDP, precision: float) -> Cycle | WhyNot:
    """Return bounds on length and reward of a cycle, or why there are none."""
    model = problem.mdp
    centre = ball_around(region, model.space.dimension).centre
    assert problem.policy is not None
    cycles = cycles_of(model, problem.policy, problem.objective, centre)
    if isinstance(cycles, WhyNot):
        return cycles
    relaxed = cycles.relaxed(uncertain)
    length = find_coupled_bounds(cycles.model, cycles.policy, cycles.length(), region, relaxed, precision=precision)
    if isinstance(length, WhyNot):
        return WhyNot(f"{_NO_CYCLES} ({length.reason})")
    middle, _ = policy_gradient(cycles.model, cycles.policy, cycles.total(0.0), centre)
    less = 2 * middle / (length.lower + length.upper)
    excess = find_coupled_bounds(cycles.model, cycles.policy, cycles.total(less), region, relaxed, precision=precision)
    return excess if isinstance(excess, WhyNot) else Cycle(cycles, relaxed, less, length, excess)


def _of_average(
    problem: Problem[ParametricMDP], region: Region, uncertain: IntervalMDP, precision: float
) -> Proof | WhyNot:
    """Return bounds on an average reward in the long run."""
    cycle = _cycle(problem, region, uncertain, precision)
    if isinstance(cycle, WhyNot):
        return cycle
    excess = cycle.excess
    lower, upper = average_of(cycle.less, (excess.lower, excess.upper), (cycle.length.lower, cycle.length.upper))
    slack = cycle.cycles.rounding(cycle.less)  # of each step's reward, and so of the average
    lower, upper = lower - slack, upper + slack
    scale = (upper - lower) / (excess.upper - excess.lower) if excess.upper > excess.lower else 1.0
    statistics, remainder, rounding = (scale * part for part in (excess.statistics, excess.remainder, excess.rounding))
    return Proof(lower, upper, statistics, remainder, rounding + 2 * slack, excess.kind)


def _cycle_term(
    problem: Problem[ParametricMDP], region: Region, uncertain: IntervalMDP, precision: float
) -> Term | WhyNot:
    """Return an average reward as a term, D / t for a number t about T, and bounds on what that leaves out."""
    cycle = _cycle(problem, region, uncertain, precision)
    if isinstance(cycle, WhyNot):
        return cycle
    shortest, longest = max(cycle.length.lower, 1.0), max(cycle.length.upper, 1.0)
    middle, cycles = (shortest + longest) / 2, cycle.cycles
    most = max(abs(cycle.excess.lower), abs(cycle.excess.upper))
    off = (  # |D (1 / T - 1 / t)|, and the rounding of rewards in D / t
        most * ((longest - shortest) / 2 + UNIT * longest) / (shortest * middle),
        cycles.rounding(cycle.less) * longest / middle,
    )
    term = term_of(Problem(cycles.model, cycles.total(cycle.less), cycles.policy), cycle.relaxed)
    return term if isinstance(term, WhyNot) else replace(term, per=middle, added=cycle.less, off=off)

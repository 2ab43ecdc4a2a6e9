"""What is proved of policies holds at every point of the confidence set, in fractions and without tolerance.

Random models, data and questions; all sets and relaxations; policies that are given, found or drawn, and pairs of them;
rows that are off by a tolerance. Points are inside of the set, at corners and about where it ends. ``./check`` looks at
as many cases as the planted errors below need; ``PLUMDP_POINTS=100000`` asks for so many points, and tells what was
looked at (with ``-n 0``).
"""

import os
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import count
from math import inf
from typing import NamedTuple

import numpy as np
import pytest
from coupled_points import mixed_value, rows_at
from drawn_weights import random_weights, shares_of
from misfit_rows import moved_against, moved_at_random
from point_cases import SETS, random_case
from random_objectives import ALL_KINDS
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from set_points import points_of_set
from tiers import size

import plumdp as pl
from plumdp.base.errors import WhyNot
from plumdp.certifying import difference as of_policies
from plumdp.certifying import pipeline, valuation
from plumdp.certifying.difference import difference
from plumdp.certifying.pipeline import compare
from plumdp.model.objectives.reach import Reach
from plumdp.region import likelihood_region
from plumdp.relaxation import relax
from plumdp.relaxation.relax import RELAXATIONS
from plumdp.solver import component_bounds
from plumdp.solver import reduce as reductions
from plumdp.solver.coupled import brackets, terms
from plumdp.solver.coupled.bounds import find_coupled_bounds
from plumdp.solver.coupled.brackets import Approximation
from plumdp.solver.coupled.gradient import policy_gradient
from studies import l1_balls, least_squares

WANTED = int(os.environ.get("PLUMDP_POINTS", "0"))
PER_CASE = 12  # points about the ends of a set
DISCOUNTED = [kind for kind in ALL_KINDS if "discount" in kind]  # of which nobody draws


class Claim(NamedTuple):
    """Bounds on the sum of values of policies, each with its weight."""

    policies: list
    weights: tuple
    bounds: list  # of triples: a name, and the ends


# Provers: what each draws for a case, and what it claims of what was learned


def found_or_given(rng, case):
    return [case.policy]


def claim_values(learned, case, policies, seen):
    found = compare(learned, case.objective, policy=policies[0], memory=False, precision=case.precision)
    seen.update(f"relaxation: {one.how.relaxation}" for one in found)
    by_policy = {}
    for one in found:
        by_policy.setdefault(tuple(one.policy.choice.tolist()), []).append((one.how.relaxation, one.lower, one.upper))
    return [Claim([np.array(policy)], (1,), bounds) for policy, bounds in by_policy.items()]


def that_draws(rng, case):
    return None if case.kind in DISCOUNTED else [random_weights(rng, case.model.graph)]


def claim_drawn(learned, case, policies, seen):
    found = compare(learned, case.objective, policy=policies[0], precision=case.precision)
    given = case.objective, learned.region, pipeline.relax(learned, "coupled")
    alone = find_coupled_bounds(case.model, policies[0], *given, precision=case.precision)
    bounds = [(one.how.relaxation, one.lower, one.upper) for one in found]
    bounds += [] if isinstance(alone, WhyNot) else [("coupled alone", alone.lower, alone.upper)]
    seen.update(f"relaxation: {name}" for name, *_ in bounds)
    seen["models with draws"] += found[-1].policy.n_drawn > 0
    return [Claim(policies, (1,), bounds)]


def that_agree_in_part(rng, case):
    """Return two policies that agree in some states, each of which may draw."""
    graph = case.model.graph
    first = rng.integers(graph.first_choice[:-1], graph.first_choice[1:])
    second = np.where(rng.random(len(first)) < 0.7, first, graph.first_choice[:-1])
    may_draw = case.kind not in DISCOUNTED
    return [random_weights(rng, graph) if may_draw and rng.random() < 0.3 else each for each in (first, second)]


def claim_difference(learned, case, policies, seen):
    found = difference(learned, case.objective, *policies, precision=case.precision)
    seen["coupled"] += not found.not_coupled
    gap = found.first.upper - found.first.lower + found.second.upper - found.second.lower
    seen["narrower by half"] += found.upper - found.lower < gap / 2 < inf
    return [Claim(policies, (1, -1), [("difference", found.lower, found.upper)])]


ALL_SETS = [f"set: {name}" for name in SETS]
ALL_RELAXATIONS = [f"relaxation: {name}" for name in RELAXATIONS]
PROVERS = {  # which random numbers, policies, claims, how many points by day, and what is looked at by day and at night
    "values": (
        *(1, found_or_given, claim_values, 300),
        [
            *ALL_SETS,
            *ALL_RELAXATIONS,
            *(f"objective: {kind}" for kind in ALL_KINDS),
            *("direction: max", "direction: min", "given policies", "found policies", "cyclic models", "slow models"),
            *("models with rows that are off", "points at which an edge vanishes", "infinite values"),
        ],
        [],
    ),
    "draws": (
        *(1, that_draws, claim_drawn, 50),
        ["relaxation: coupled alone", "models with draws", *ALL_RELAXATIONS],
        [*ALL_SETS, "infinite values", *(f"objective: {kind}" for kind in ALL_KINDS if kind not in DISCOUNTED)],
    ),
    "differences": (
        *(2, that_agree_in_part, claim_difference, 36),
        ["coupled", "narrower by half", "finite values"],
        [*ALL_SETS, *(f"objective: {kind}" for kind in ALL_KINDS)],
    ),
}


def misses(prover, seed, seen):
    """Yield what lies outside of its bounds, at points of a random case; count what was looked at."""
    stream, draw, claim, *_ = PROVERS[prover]
    case, rng = random_case(seed), np.random.default_rng([seed, stream])
    model, policies = case.model, draw(rng, case)
    if policies is None:
        return
    options = {
        "confidence": case.confidence,
        "confidence_set": case.confidence_set,
        "model_tolerance": case.model_tolerance,
    }
    learned = pl.learn(model, case.counts, objectives=[case.objective], **options)
    claims = claim(learned, case, policies, seen)
    if learned.conflict is not None:
        seen["contradicted"] += 1
        return
    note(seen, case)
    slopes = [slope for each in claims if np.isfinite(slope := slope_of(learned, case.objective, each)).all()]
    for point in points_of_set(rng, learned, slopes, PER_CASE):
        right = rows_at(model, point)
        seen["points"] += 1
        seen["points at which an edge vanishes"] += 0 in right
        for policies, weights, bounds in claims:
            exact = [shares(model.graph, policy) for policy in policies]
            for rows in rows_near(rng, case, right, policies):
                values = [mixed_value(model.graph, rows, each, case.objective) for each in exact]
                seen["comparisons"] += len(bounds)
                seen["infinite values" if inf in values else "finite values"] += 1
                if len(values) > 1 and inf in values:  # then no number is the difference
                    continue
                value = sum(weight * value for weight, value in zip(weights, values, strict=True))
                wrong = ((name, low, high) for name, low, high in bounds if not low <= value <= high)
                yield from ((seed, name, low, float(value), high, point) for name, low, high in wrong)


def note(seen, case):
    """Count what a case is about."""
    graph = case.model.graph
    edges = csr_array(
        (np.ones(graph.n_transitions), (graph.state_of_choice()[graph.choice_of_transition()], graph.successor))
    )
    is_cyclic = connected_components(edges, connection="strong")[0] < graph.n_states
    seen["models"] += 1
    seen["cyclic models"] += is_cyclic
    seen["slow models"] += case.is_slow
    seen["models with rows that are off"] += case.model_tolerance > 0
    seen["given policies" if case.policy is not None else "found policies"] += 1
    seen[f"set: {case.confidence_set}"] += 1
    seen[f"objective: {case.kind}"] += 1
    seen[f"direction: {case.objective.direction}"] += 1


def slope_of(learned, objective, claim):
    """Return the direction in which what is claimed changes most."""
    slopes = (policy_gradient(learned.model, each, objective, learned.likely_point)[1] for each in claim.policies)
    with np.errstate(invalid="ignore"):
        return sum(weight * slope for weight, slope in zip(claim.weights, slopes, strict=True))


def shares(graph, policy):
    """Return the exact probability of each choice."""
    if policy.dtype.kind == "f":
        return shares_of(graph, policy)
    return [Fraction(int(choice in {*policy.tolist()})) for choice in range(graph.n_choices)]


def rows_near(rng, case, rows, policies):
    """Return the rows of a point; with a tolerance, rows that are off by it, at random and by an adversary's will."""
    if not case.model_tolerance:
        return [rows]
    graph, model_tolerance = case.model.graph, case.model_tolerance
    of_one = policies if len(policies) == 1 and policies[0].dtype.kind != "f" else []
    ways = [(policy, side) for policy in of_one for side in (1, -1)]
    against = [moved_against(case.model, rows, policy, case.objective, model_tolerance, side) for policy, side in ways]
    return [moved_at_random(rng, graph, rows, model_tolerance), *against]


@pytest.mark.slow
@pytest.mark.parametrize("prover", PROVERS)
def test_what_is_proved_holds_at_points_of_confidence_sets(prover, capsys):
    *_, by_day, wanted, at_night = PROVERS[prover]
    seen, enough = Counter(), WANTED or size(by_day, 10_000)
    for seed in count():
        assert [*misses(prover, seed, seen)] == []
        if seen["points"] >= enough:
            break
    if enough > 1000:
        wanted = [*wanted, *at_night]
        with capsys.disabled():
            print("\n" + "\n".join(f"{n:9,} {what}" for what, n in sorted(seen.items())))
    assert [what for what in wanted if not seen[what]] == []


def test_the_remainder_over_steps_is_about_the_expressions_of_the_model():
    """The first policy reaches no target; the chain of the second one has only some of the model's expressions."""
    seen = Counter()
    assert [*misses("differences", 116, seen)] == []
    assert seen["objective: window"]
    assert seen["coupled"]


# Planted errors: what each of them gets wrong is found among as many cases as are looked at


def the_remainder_is_left_out(patch):
    patch.setattr(brackets, "_largest_sums", lambda _, residuals, *__: np.zeros(len(residuals) + 1))


def ellipsoids_lose_points(patch):
    """The radius is a tenth too small."""
    for module in (likelihood_region, least_squares):
        right = module.build_ellipsoid
        patch.setattr(
            module,
            "build_ellipsoid",
            lambda centre, matrix, radius, *, within, right=right: right(centre, matrix, 0.9 * radius, within=within),
        )


def balls_lose_points(patch):
    """The radius is a tenth too small."""
    right = l1_balls._intervals
    patch.setattr(l1_balls, "_intervals", lambda found, cuts: right(replace(found, radius=0.9 * found.radius), cuts))


def bounds_are_those_of_another_policy(patch):
    right = valuation.value_policy

    def of_another(learned, uncertain, policy, objective, **options):
        others = np.asarray(learned.model.graph.first_choice[1:] - 1)
        return replace(right(learned, uncertain, others, objective, **options), policy=np.asarray(policy))

    for module in (valuation, pipeline):
        patch.setattr(module, "value_policy", of_another)


def intervals_lose_their_ends(patch):
    """Nature may use nine tenths of each interval."""
    right = relax._interval_mdp

    def shorter(model, lower, upper, *within):
        cut = 0.05 * (upper - lower)
        return right(model, lower + cut, upper - cut, *within)

    patch.setattr(relax, "_interval_mdp", shorter)


def rows_that_are_off_cost_nothing(patch):
    patch.setattr(pipeline, "tolerating", lambda imdp, model_tolerance: imdp)


def one_nature_gives_both_ends_of_a_complement(patch):
    """The one that helps."""
    right = valuation.evaluate_all

    def helped(relaxations, policy, objective, natures, **options):
        worst, best = right(relaxations, policy, objective, natures, **options)
        return [best if objective.flipped() is not None else worst, best]

    patch.setattr(valuation, "evaluate_all", helped)


def ends_are_swapped_at_a_complement(patch):
    """Nature wants to reach a target where it should want to miss it, so that the bounds cross."""
    patch.setattr(Reach, "flipped", lambda asked: replace(asked, complement=False) if asked.complement else None)


def sweeps_stop_early(patch):
    """After five sweeps from below, the values are taken for upper bounds as well."""

    def five_sweeps(component, tolerance, budget):
        for number in range(1, 6):
            component.sweep(number, component.low, side=-1.0)
        return 5, True

    def as_good_as_done(component, precision, budget):
        component.high[component.part] = component.low[component.part]
        return True, 0

    patch.setattr(component_bounds, "_iterate_from_below", five_sweeps)
    patch.setattr(component_bounds, "_bound_from_above", as_good_as_done)


def one_weight_is_wrong(patch):
    """Of two actions that are drawn in a state, the second is taken a tenth less often than the policy says."""
    right = reductions.exact_shares

    def wrong(graph, weights, taken):
        shares, owner = right(graph, weights, taken), graph.state_of_choice()[taken].tolist()
        for second in range(1, len(shares)):
            if owner[second] == owner[second - 1]:
                shares[second - 1] += shares[second] / 10
                shares[second] *= Fraction(9, 10)
        return shares

    patch.setattr(reductions, "exact_shares", wrong)


def weights_of_coupled_bounds_are_turned(patch):
    """The coupled bracket has the probabilities of draws in another order; the other relaxations have them right."""
    right = reductions.DrawSteps.model
    patch.setattr(
        reductions.DrawSteps,
        "model",
        lambda draws, model: right(replace(draws, probability=draws.probability[::-1]), model),
    )


def expressions_are_numbered_anew(patch):
    """Nature moves expressions of a chain within the bounds of others of the model."""
    right = terms.step_errors
    patch.setattr(terms, "step_errors", lambda chain, *rest: right(chain.with_own_expressions()[0], *rest))


def remainders_cancel(patch):
    """The remainders of both policies are subtracted as the slopes are."""
    right = Approximation.__sub__

    def wrong(self, other):
        return Approximation(*list(vars(right(self, other)).values())[:3], self.below - other.below, 0.0, 0.0)

    patch.setattr(Approximation, "__sub__", wrong)


def policies_change_places(patch):
    """The difference is that of the second policy less the first."""
    right = of_policies.prove
    patch.setattr(
        of_policies,
        "prove",
        lambda sought, apart: right(replace(sought, policy=sought.less, less=sought.policy), apart),
    )


CASES = 24  # of values, that planted errors need
ERRORS = {
    "values": {
        the_remainder_is_left_out: range(CASES),
        ellipsoids_lose_points: range(CASES),
        balls_lose_points: range(SETS.index("l1"), CASES, len(SETS)),
        bounds_are_those_of_another_policy: range(CASES),
        intervals_lose_their_ends: range(CASES),
        rows_that_are_off_cost_nothing: range(CASES),
        one_nature_gives_both_ends_of_a_complement: range(CASES),
        ends_are_swapped_at_a_complement: range(CASES),
        sweeps_stop_early: range(CASES),
    },
    "draws": {one_weight_is_wrong: range(20), weights_of_coupled_bounds_are_turned: range(20)},
    "differences": dict.fromkeys(
        (remainders_cancel, policies_change_places, expressions_are_numbered_anew), (116, 7, *range(60))
    ),
}
PLANTED = {error: (prover, seeds) for prover, errors in ERRORS.items() for error, seeds in errors.items()}


@pytest.mark.parametrize("error", PLANTED, ids=lambda error: error.__name__)
def test_a_planted_error_is_found(error, monkeypatch):
    error(monkeypatch)
    prover, seeds = PLANTED[error]
    assert any(is_found(prover, seed) for seed in seeds)


def is_found(prover, seed):
    """Return whether something lies outside of its bounds, or bounds cross."""
    try:
        return any(True for _ in misses(prover, seed, Counter()))
    except ValueError as crossed:
        return "is above the upper bound" in str(crossed)

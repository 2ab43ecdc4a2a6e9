"""The exact value of the policy that is returned lies within its bounds, at every point of the confidence set.

Random models, data and questions; all sets and relaxations; policies that were given or found; rows that are off by a
misfit. Points are inside of the set, at corners and about where it ends; values are fractions, compared without
tolerance. ``./check`` looks at as many cases as the planted errors below need; ``PLUMDP_POINTS=100000`` asks for so
many points, and tells what was looked at (with ``-n 0``).
"""

import os
from collections import Counter
from dataclasses import replace
from itertools import count
from math import inf

import numpy as np
import pytest
from coupled_points import rows_at, value_of_rows
from misfit_rows import moved_against, moved_at_random
from point_cases import SETS, random_case
from random_objectives import ALL_KINDS
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from set_points import points_of_set

import plumdp as pl
from plumdp.certifying import pipeline, valuation
from plumdp.certifying.pipeline import compare
from plumdp.model.objectives.reach import Reach
from plumdp.region import find, likelihood_region
from plumdp.relaxation import relax
from plumdp.relaxation.relax import RELAXATIONS
from plumdp.solver import component_bounds
from plumdp.solver.coupled import brackets
from plumdp.solver.coupled.gradient import policy_gradient

CASES = 24  # that planted errors need
WANTED = int(os.environ.get("PLUMDP_POINTS", "0"))
PER_CASE = 40 if WANTED else 12  # points about the ends of a set
EVERYTHING = (
    *(f"set: {name}" for name in SETS),
    *(f"relaxation: {name}" for name in RELAXATIONS),
    *(f"objective: {kind}" for kind in ALL_KINDS),
    *("direction: max", "direction: min", "given policies", "found policies"),
    *("cyclic models", "slow models", "models with rows that are off"),
    *("points at which an edge vanishes", "infinite values"),
)


def misses(seed, seen):
    """Yield the values of policies outside of their bounds, at points of a random case; count what was looked at."""
    case, rng = random_case(seed), np.random.default_rng([seed, 1])
    learned = pl.learn(
        case.model,
        case.counts,
        objectives=[case.objective],
        confidence=case.confidence,
        confidence_set=case.confidence_set,
        misfit=case.misfit,
    )
    found = compare(learned, case.objective, policy=case.policy, memory=False, precision=case.precision)
    if learned.conflict is not None:
        seen["contradicted"] += 1
        return
    note(seen, case, found)
    policies = {}
    for one in found:
        policies.setdefault(tuple(one.policy.choice.tolist()), []).append(one)
    n_points = PER_CASE // 4 if case.misfit else PER_CASE  # each with rows that are off in several ways
    for point in points_of_set(rng, learned, slopes(learned, case.objective, policies), n_points):
        right = rows_at(case.model, point)
        seen["points"] += 1
        seen["points at which an edge vanishes"] += 0 in right
        for policy, certificates in policies.items():
            for rows in rows_near(rng, case, right, policy):
                value = value_of_rows(case.model.graph, rows, policy, case.objective)
                seen["comparisons"] += len(certificates)
                seen["infinite values"] += value == inf
                wrong = (one for one in certificates if not one.lower <= value <= one.upper)
                yield from ((seed, one.relaxation, one.lower, float(value), one.upper, point) for one in wrong)


def note(seen, case, found):
    """Count what a case is about."""
    graph = case.model.graph
    edges = csr_array(
        (np.ones(graph.n_transitions), (graph.state_of_choice()[graph.choice_of_transition()], graph.successor))
    )
    is_cyclic = connected_components(edges, connection="strong")[0] < graph.n_states
    seen["models"] += 1
    seen["cyclic models"] += is_cyclic
    seen["slow models"] += case.is_slow
    seen["models with rows that are off"] += case.misfit > 0
    seen["given policies" if case.policy is not None else "found policies"] += 1
    seen[f"set: {case.confidence_set}"] += 1
    seen[f"objective: {case.kind}"] += 1
    seen[f"direction: {case.objective.direction}"] += 1
    seen.update(f"relaxation: {one.relaxation}" for one in found)


def slopes(learned, objective, policies):
    """Return directions in which values of policies change most, relative to the widths of the region."""
    at, d = learned.likely_point, learned.model.space.dimension
    widths = (learned.region.upper - learned.region.lower)[:d]
    found = [policy_gradient(learned.model, policy, objective, at)[1] * widths**2 for policy in policies]
    return [slope for slope in found if np.isfinite(slope).all()]


def rows_near(rng, case, rows, policy):
    """Return the rows of a point; with a misfit, rows that are off by it, at random and by an opponent's will."""
    if not case.misfit:
        return [rows]
    graph, misfit = case.model.graph, case.misfit
    against = [moved_against(case.model, rows, policy, case.objective, misfit, side) for side in (1, -1)]
    return [moved_at_random(rng, graph, rows, misfit), *against]


def told(seen):
    """Return what was looked at, a line for each."""
    return "\n".join(f"{n:9,} {what}" for what, n in sorted(seen.items()))


@pytest.mark.slow
def test_values_of_policies_at_points_of_confidence_sets_lie_within_their_bounds(capsys):
    seen = Counter()
    for seed in count() if WANTED else range(CASES):
        assert [*misses(seed, seen)] == []
        if WANTED and seen["points"] >= WANTED:
            break
    if WANTED:
        with capsys.disabled():
            print(f"\n{told(seen)}")
    assert [what for what in EVERYTHING if not seen[what]] == []


# Planted errors: what each of them gets wrong is found among as many cases as are looked at


def the_remainder_is_left_out(patch):
    patch.setattr(brackets, "_largest_sums", lambda _, residuals, *__: np.zeros(len(residuals) + 1))


def ellipsoids_lose_points(patch):
    """The radius is a tenth too small."""
    for module in (likelihood_region, find):
        right = module.build_ellipsoid
        patch.setattr(
            module,
            "build_ellipsoid",
            lambda centre, matrix, radius, *, within, right=right: right(centre, matrix, 0.9 * radius, within=within),
        )


def balls_lose_points(patch):
    """The radius is a tenth too small."""
    right = find._intervals
    patch.setattr(find, "_intervals", lambda found, cuts: right(replace(found, radius=0.9 * found.radius), cuts))


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
    patch.setattr(pipeline, "tolerating", lambda imdp, misfit: imdp)


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


ERRORS = {
    the_remainder_is_left_out: range(CASES),
    ellipsoids_lose_points: range(CASES),
    balls_lose_points: range(SETS.index("l1"), CASES, len(SETS)),
    bounds_are_those_of_another_policy: range(CASES),
    intervals_lose_their_ends: range(CASES),
    rows_that_are_off_cost_nothing: range(CASES),
    one_nature_gives_both_ends_of_a_complement: range(CASES),
    ends_are_swapped_at_a_complement: range(CASES),
    sweeps_stop_early: range(CASES),
}


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_a_planted_error_is_found(error, monkeypatch):
    error(monkeypatch)
    assert any(is_found(seed) for seed in ERRORS[error])


def is_found(seed):
    """Return whether a value lies outside of its bounds, or bounds cross."""
    try:
        return any(True for _ in misses(seed, Counter()))
    except ValueError as crossed:
        return "is above the upper bound" in str(crossed)

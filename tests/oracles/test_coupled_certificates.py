"""Certificates with one point for all states: within those of looser relaxations, and right at every point they cover.

Random models are simulated with and without a pilot, in few and in many runs. Nothing is compared with a tolerance: the
brackets of one policy are intersections of what was proved, and values at points are fractions.
"""

import math
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from coupled_points import exact_value, random_policy, random_product_model
from likelihood_points import members, recorded_bets
from random_objectives import KINDS, random_objective
from random_pmdps import random_point, random_problem
from random_products import random_product_problem
from sizes import size

import plumdp as pl
from plumdp.confidence import bets as betting
from plumdp.confidence import likelihood
from plumdp.learning import learn
from plumdp.pipeline import conclude
from plumdp.solver.coupled import brackets
from plumdp.solver.coupled.gradient import policy_gradient

pytestmark = pytest.mark.slow

N_NESTED, N_FOUND, N_POINTS = size(100, 500), size(30, 150), size(25, 50)
SETS = ("interval", "l1", "ellipsoid")


def problem_of(seed):
    """Return a generator, a model, counts and an objective: all kinds of rows, objectives, pilots and sizes of data."""
    rng = np.random.default_rng(seed)
    if seed % 10 == 3:
        model = random_product_model(rng)
        point = random_point(rng, model.space.vertices)
    else:
        problem = (
            random_product_problem(rng)
            if seed % 10 == 8
            else random_problem(rng, least=Fraction(seed % 2, 100), sure=seed % 3 == 0)
        )
        model, point = problem.model, problem.point
    runs, share = int(rng.choice([2, 30, 300, 5000])), [False, True, True][rng.integers(3)]
    counts = pl.simulate(model, point, runs, rng=seed, max_steps=12, pilot=share, threads=1)
    return rng, model, counts, random_objective(rng, model, KINDS[seed // 10 % len(KINDS)])


# Nested relaxations


def set_of(seed):
    """Return the likelihood for every other model, and the other sets in turn for the rest."""
    return "likelihood" if seed // 5 % 2 else SETS[seed // 10 % 3]


def concluded(learned, objective, relaxation, policy=None):
    """Return the certificate of a region that nobody has looked at: vertices that were found before change rounding."""
    return conclude(replace(learned, region=deepcopy(learned.region)), objective, relaxation=relaxation, policy=policy)


def is_narrower(loose, tight):
    """Return whether bounds are closer by more than rounding and the solver's precision may explain."""
    if math.isinf(loose[1]):
        return not math.isinf(tight[1])
    return (loose[1] - loose[0]) - (tight[1] - tight[0]) > 1e-6 * max(1.0, abs(loose[1]))


@pytest.mark.parametrize("part", range(5))
def test_bounds_for_one_policy_are_nested_from_coupled_to_rectangular_to_expression(part):
    wrong, narrower = {}, 0
    for seed in range(part, N_NESTED, 5):
        rng, model, counts, objective = problem_of(seed)
        policy = random_policy(rng, model.graph)
        learned = learn(model, counts, confidence=0.9, confidence_set=set_of(seed), objectives=[objective])
        found = [concluded(learned, objective, name, policy) for name in ("expression", "rectangular", "coupled")]
        bounds = [(one.lower, one.upper) for one in found]
        if not all(a <= c <= d <= b for (a, b), (c, d) in pairwise(bounds)):
            wrong[seed, set_of(seed)] = bounds
        narrower += is_narrower(*bounds[1:])
    assert wrong == {}
    assert narrower >= N_NESTED // 50


@pytest.mark.parametrize("part", range(3))
def test_the_policy_that_is_found_has_a_bound_no_worse_than_the_rectangular_one(part):
    wrong, better = {}, 0
    for seed in range(N_NESTED + part, N_NESTED + N_FOUND, 3):
        _, model, counts, objective = problem_of(seed)
        sign = 1 if objective.direction == "max" else -1
        learned = learn(model, counts, confidence=0.9, confidence_set=set_of(seed), objectives=[objective])
        rectangular, coupled = (concluded(learned, objective, name).bound for name in ("rectangular", "coupled"))
        if not sign * coupled >= sign * rectangular:
            wrong[seed, set_of(seed)] = rectangular, coupled
        better += coupled != rectangular
    assert wrong == {}
    assert better >= N_FOUND // 30


# Exact values at points that the data allow


def values_at_points(seed, *, policy_is_given=False):
    """Return a certificate, and exact values of its policy at points that the data allow; none after a conflict."""
    rng, model, counts, objective = problem_of(seed)
    with recorded_bets() as bets:
        learned = learn(model, counts, confidence=0.9, confidence_set="likelihood", objectives=[objective])
    policy = random_policy(rng, model.graph) if policy_is_given else None
    found = conclude(learned, objective, relaxation="coupled", policy=policy)
    if learned.conflict is not None:
        return found, []
    _, gradient = policy_gradient(model, found.policy.choice, objective, learned.estimate)
    points = (
        dict(zip(model.space.names, map(Fraction, at.tolist()), strict=True))
        for at in members(rng, model, learned.bounds, bets, [gradient], 6)
    )
    return found, [exact_value(model, found.policy.choice, objective, point) for point in points]


def is_missed(seed):
    """Return whether some value is outside of its bounds."""
    found, values = values_at_points(seed)
    return not all(found.lower <= value <= found.upper for value in values)


@pytest.mark.parametrize("policy_is_given", [False, True])
def test_exact_values_of_the_policy_at_points_that_the_data_allow_lie_within_its_bounds(policy_is_given):
    wrong, tried = {}, 0
    for seed in range(1000, 1000 + N_POINTS):
        found, values = values_at_points(seed, policy_is_given=policy_is_given)
        outside = [float(value) for value in values if not found.lower <= value <= found.upper]
        if outside:
            wrong[seed] = found.lower, found.upper, outside
        tried += len(values)
    assert wrong == {}
    assert tried >= 8 * N_POINTS


def test_bounds_without_a_remainder_are_caught(monkeypatch):
    monkeypatch.setattr(brackets, "_largest_sum", lambda *_: 0.0)
    assert any(is_missed(seed) for seed in range(1000, 1000 + N_POINTS))


def test_half_spaces_without_the_constant_of_their_tangents_are_caught(monkeypatch):
    """ln Z <= Z / Y - 1 + ln Y: with Z / Y - 1 alone, half-spaces cut off points at which bets have won nothing."""

    def without(table, seen, factors, *, near, error, text=""):
        right = betting.half_space(table, seen, factors, near=near, error=error, text=text)
        means = betting._tangent_points(table, factors, near)
        left_out = float(table.visits(seen) @ np.log(means))
        return betting.HalfSpace(right.row, right.offset - left_out, text)

    monkeypatch.setattr(likelihood, "half_space", without)
    assert any(is_missed(seed) for seed in range(1000, 1000 + N_POINTS))


@pytest.mark.parametrize("seed", range(2000, 2015))
def test_the_bracket_is_that_of_the_policy_which_is_returned(seed):
    """Given that policy, its bracket is the same, but for what solvers leave open."""
    _, model, counts, objective = problem_of(seed)
    options = {"confidence": 0.9, "confidence_set": "likelihood", "relaxation": "coupled"}
    found = pl.certify(model, counts, objective, **options)
    given = pl.certify(model, counts, objective, policy=found.policy.choice, **options)
    assert (given.policy.choice == found.policy.choice).all()
    assert (given.lower, given.upper) == pytest.approx((found.lower, found.upper), abs=2e-6)

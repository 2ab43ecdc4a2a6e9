"""Certificates that tolerate a tolerance: right at every point they cover, with rows that are off by it in any way.

Random models are simulated, with and without a pilot. At points of the region, among them points at its boundary, rows
are moved by the tolerance, at random and by an adversary who wants the value to be large or small. Values are
fractions, and nothing is compared with a tolerance.
"""

from fractions import Fraction

import numpy as np
import pytest
from coupled_points import random_policy, random_product_model, rows_at, value_of_rows
from misfit_rows import moved_against, moved_at_random, total_variations
from random_objectives import KINDS, random_objective
from random_pmdps import random_point, random_problem
from random_products import random_product_problem
from set_points import points_of_set
from tiers import size

import plumdp as pl
from plumdp.certifying import pipeline
from plumdp.certifying.pipeline import conclude
from plumdp.learning.learn import learn
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.relaxation.relax import tolerating
from plumdp.solver.coupled import residual_kernels

MISFITS = (0.001, 0.01, 0.05, 0.2)
N_POINTS = size(12, 48)


def problem_of(seed):
    """Return a generator, a model, counts of rows that are off, an objective and the model tolerance."""
    rng = np.random.default_rng(seed)
    if seed % 5 == 3:
        model = random_product_model(rng)
        point = random_point(rng, model.space.vertices)
    else:
        made = (
            random_product_problem(rng)
            if seed % 5 == 4
            else random_problem(rng, least=Fraction(seed % 2, 100), sure=seed % 3 == 0)
        )
        model, point = made.model, made.point
    model_tolerance = MISFITS[seed // 2 % len(MISFITS)]
    runs, share = int(rng.choice([30, 300, 5000, 50_000])), bool(rng.integers(2))
    counts = pl.simulate(model, point, runs, rng=seed, max_steps=12, pilot=share, threads=1)
    return rng, model, counts, random_objective(rng, model, KINDS[seed % len(KINDS)]), model_tolerance


def outside(seed, *, relaxation="coupled", confidence_set="likelihood", n_points=3, policy_is_given=False):
    """Return values outside of the bounds of a certificate, how many were tried, and the certificate."""
    rng, model, counts, objective, model_tolerance = problem_of(seed)
    options = {"confidence": 0.9, "confidence_set": "likelihood", "objectives": [objective]}
    learned = learn(model, counts, model_tolerance=model_tolerance, **options)
    if learned.conflict is not None:
        return [], 0, None
    policy = random_policy(rng, model.graph) if policy_is_given else None
    found = conclude(learned, objective, relaxation=relaxation, policy=policy, memory=False)
    values = []
    for point in points_of_set(rng, learned, (), 2 * n_points)[-2 * n_points :: 2]:
        rows, choice = rows_at(model, point), found.policy.choice
        moved = [moved_at_random(rng, model.graph, rows, model_tolerance)]
        moved += [moved_against(model, rows, choice, objective, model_tolerance, side) for side in (1, -1)]
        for truth in moved:
            assert max(total_variations(model.graph, rows, truth)) <= Fraction(model_tolerance)
            values.append(value_of_rows(model.graph, truth, choice, objective))
    return [float(value) for value in values if not found.lower <= value <= found.upper], len(values), found


@pytest.mark.slow
@pytest.mark.parametrize("policy_is_given", [False, True])
@pytest.mark.parametrize("relaxation", ["expression", "rectangular", "coupled"])
def test_values_with_rows_off_by_the_misfit_lie_within_the_bounds(relaxation, policy_is_given):
    wrong, tried = {}, 0
    for seed in range(100, 100 + N_POINTS):
        missed, n, _ = outside(seed, relaxation=relaxation, policy_is_given=policy_is_given, n_points=6)
        tried += n
        if missed:
            wrong[seed] = missed
    assert wrong == {}
    assert tried >= 8 * N_POINTS


@pytest.mark.slow
@pytest.mark.parametrize("relaxation", ["rectangular", "coupled"])
def test_natures_without_the_tolerance_are_caught(monkeypatch, relaxation):
    monkeypatch.setattr(pipeline, "tolerating", lambda imdp, model_tolerance: imdp)
    assert any(outside(seed, relaxation=relaxation)[0] for seed in range(16))


@pytest.mark.slow
def test_residuals_without_the_range_of_values_are_caught(monkeypatch):
    monkeypatch.setattr(residual_kernels, "write_ranges", lambda *_: None)
    assert any(outside(seed)[0] for seed in range(16))


@pytest.mark.slow
def test_residuals_with_half_of_the_range_are_caught(monkeypatch):
    right = residual_kernels.write_ranges

    def half(first, successor, after, mean, result):
        right(first, successor, after, mean, result)
        result /= 2

    monkeypatch.setattr(residual_kernels, "write_ranges", half)
    assert any(outside(seed)[0] for seed in range(16))


@pytest.mark.slow
def test_a_remainder_against_natures_without_the_tolerance_is_caught(monkeypatch):
    """A loop that is left with probability p, in [0.1, 0.2]: off by 0.05, a run is twice as long as p says."""
    (p,) = pl.parameters("p")

    def step(state):
        return {"go": [(p, state._replace(at=1)), (1 - p, state)] if state.at == 0 else [(1, state)]}

    space = pl.ParameterSpace.box({"p": (Fraction(1, 10), Fraction(1, 5))})
    model = pl.explore(step, {"at": 0}, space=space, labels={"end": lambda s: s.at == 1}, rewards={"one": lambda s: 1})
    objective = pl.parse_property('R{"one"}max=? [ F "end" ]', model)
    counts = pl.simulate(model, {"p": 0.1}, 100_000, rng=1, max_steps=50)
    model_tolerance = 0.05
    truth = [Fraction(1, 10) - Fraction(model_tolerance), 1 - Fraction(1, 10) + Fraction(model_tolerance), Fraction(1)]

    def is_right():
        options = {"confidence_set": "likelihood", "relaxation": "coupled"}
        found = pl.certify(model, counts, objective, model_tolerance=model_tolerance, **options)
        return found.lower <= value_of_rows(model.graph, truth, found.policy.choice, objective) <= found.upper

    assert is_right()

    def narrow(imdp, model_tolerance):
        return IntervalMDP(imdp.graph, imdp.expression, imdp.lower, imdp.upper, model_tolerance=model_tolerance)

    monkeypatch.setattr(pipeline, "tolerating", narrow)
    assert not is_right()


def test_nature_may_do_whatever_is_off_by_the_misfit_and_nothing_is_widened_beyond_probabilities():
    _, model, counts, objective, _ = problem_of(0)
    learned = learn(model, counts, confidence_set="likelihood", objectives=[objective])
    imdp = pipeline.relax(learned, "rectangular")
    wide = tolerating(imdp, 0.01)
    assert tolerating(imdp, 0.0) is imdp
    assert (wide.lower >= 0).all()
    assert (wide.upper <= 1).all()
    assert wide.region is None
    assert wide.model_tolerance == 0.01
    assert (wide.lower <= np.maximum(imdp.lower - 0.01, 0)).all()
    assert (wide.upper >= np.minimum(imdp.upper + 0.01, 1)).all()

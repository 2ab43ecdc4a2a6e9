"""Policies from the rectangular relaxation over an ellipsoid: bounds hold at the true point, for every objective."""

from fractions import Fraction

import numpy as np
import pytest
from random_pmdps import random_counts, random_problem

import plumdp as pl
from plumdp.region.ellipsoid import build_ellipsoid
from plumdp.relaxation.relax import expression_wise, rectangular
from studies.least_squares import least_squares

N_CASES = 60


def random_ellipsoid(rng, problem):
    """Return the ellipsoid of random counts, large enough to hold the true point every other time."""
    counts = random_counts(rng, problem, most=10 ** int(rng.integers(1, 6)))
    found = least_squares(problem.model, counts, error=0.5)
    space = pl.stages.build_region(problem.model.space, (), (), ())
    return build_ellipsoid(found.centre, found.matrix, found.radius, within=space)


def holds(region, point):
    offset = np.array([float(point[name]) for name in region.names]) - region.centre
    return np.linalg.norm(np.linalg.solve(region.root, offset)) <= region.radius


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["max", "min"])
@pytest.mark.parametrize("kind", ["reach", "reward"])
def test_bounds_hold_at_the_true_point_and_are_no_wider_than_those_of_intervals(direction, kind):
    rng = np.random.default_rng([74, direction == "max", kind == "reach"])
    n_checked = n_tighter = 0
    for _ in range(N_CASES):
        problem = random_problem(rng, sure=kind == "reward", least=Fraction(1, 100) if kind == "reward" else 0)
        region = random_ellipsoid(rng, problem)
        if not holds(region, problem.point):
            continue
        n_checked += 1
        reach = pl.model.Reach(problem.target, np.zeros_like(problem.target), direction)
        objective = reach if kind == "reach" else pl.model.Reward(problem.reward, direction, problem.target)
        imdp = rectangular(problem.model, region)
        worst = pl.stages.solve(imdp, objective, nature="robust")
        best = pl.stages.evaluate(imdp, worst.policy, objective, nature="optimistic")
        truth = pl.stages.evaluate(pl.stages.instantiate(problem.model, problem.point), worst.policy, objective)
        low, high = (worst, best) if direction == "max" else (best, worst)
        assert (low.lower <= truth.upper).all()
        assert (truth.lower <= high.upper).all()
        by_interval = pl.stages.solve(expression_wise(problem.model, region), objective, nature="robust")
        if direction == "max":
            assert (worst.upper >= by_interval.lower - 1e-9).all()
            n_tighter += (worst.lower > by_interval.upper + 1e-9).any()
        else:
            assert (worst.lower <= by_interval.upper + 1e-9).all()
            n_tighter += (worst.upper < by_interval.lower - 1e-9).any()
    assert n_checked > N_CASES / 4
    assert n_tighter > 0

"""Coupled bounds of a policy hold at every point: against exact rational solutions at single points."""

from fractions import Fraction

import numpy as np
import pytest
from coupled_points import exact_value, points_of, random_ellipsoid, random_policy
from random_pmdps import random_problem

from plumdp.model.objective import Reach, Reward
from plumdp.region.conflict import Conflict
from plumdp.relaxation.relax import expression_wise, rectangular
from plumdp.solver.coupled.bounds import find_coupled_bounds


def objectives_of(problem):
    """Return one objective of each kind that has a value without a bound on its steps."""
    nowhere = np.zeros_like(problem.target)
    return [
        Reach(problem.target, nowhere, "max"),
        Reach(problem.target, nowhere, "min", complement=True),
        Reward(problem.reward, "min", target=problem.target),
        Reward(problem.reward, "max"),
        Reward(problem.reward, "max", discount="0.9"),
    ]


@pytest.mark.parametrize("seed", range(40))
def test_values_at_points_lie_within_the_bounds(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, least=0 if seed % 2 else Fraction(1, 100), sure=seed % 3 == 0)
    model = problem.model
    region = random_ellipsoid(rng, model.space, widest=10 ** -rng.uniform(0, 3))
    if isinstance(region, Conflict):
        pytest.skip("the ellipsoid misses the space")
    uncertain = (rectangular if seed % 4 else expression_wise)(model, region)
    policy, points = random_policy(rng, model.graph), points_of(rng, model, region, 30)
    for objective in objectives_of(problem):
        found = find_coupled_bounds(model, policy, objective, region, uncertain)
        if isinstance(found, str):
            continue
        for point in points:
            value = exact_value(model, policy, objective, point)
            assert found.lower <= value <= found.upper, (objective, point)


def step_objectives_of(problem):
    """Return one objective of each kind with a number of steps."""
    nowhere = np.zeros_like(problem.target)
    avoid = nowhere.copy()
    avoid[problem.model.graph.n_states // 2] = True
    return [
        Reach(problem.target, nowhere, "max", steps=(0, 4)),
        Reach(problem.target, avoid, "min", steps=(2, 5)),
        Reach(problem.target, avoid, "min", steps=(1, 3), complement=True),
        Reach(problem.target, nowhere, "max", steps=(0, 0)),
        Reward(problem.reward, "max", steps=5),
        Reward(problem.reward, "min", steps=4, discount="0.75"),
        Reward(problem.reward, "min", steps=4, target=problem.target),
    ]


@pytest.mark.parametrize("seed", range(40))
def test_values_over_steps_at_points_lie_within_the_bounds(seed):
    rng = np.random.default_rng(1000 + seed)
    problem = random_problem(rng)
    model = problem.model
    region = random_ellipsoid(rng, model.space, widest=10 ** -rng.uniform(0, 3))
    if isinstance(region, Conflict):
        pytest.skip("the ellipsoid misses the space")
    uncertain = (rectangular if seed % 4 else expression_wise)(model, region)
    policy, points = random_policy(rng, model.graph), points_of(rng, model, region, 20)
    for objective in step_objectives_of(problem):
        found = find_coupled_bounds(model, policy, objective, region, uncertain)
        assert not isinstance(found, str)
        for point in points:
            value = exact_value(model, policy, objective, point)
            assert found.lower <= value <= found.upper, (objective, point)

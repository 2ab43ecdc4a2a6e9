"""Coupled bounds of a policy hold at every point: against exact rational solutions at single points."""

from fractions import Fraction

import numpy as np
import pytest
from coupled_points import exact_value, points_of, random_ellipsoid, random_policy, random_product_model
from random_pmdps import random_problem
from tiers import size

import plumdp as pl
from plumdp.base.errors import WhyNot
from plumdp.model.objectives import Reach, Reward
from plumdp.region.ball import ball_around
from plumdp.region.box_forms import full
from plumdp.region.conflict import Conflict
from plumdp.relaxation.relax import expression_wise, parameter_wise, rectangular
from plumdp.solver.coupled.bounds import find_coupled_bounds
from plumdp.solver.coupled.brackets import Expandable, bracket_of, setting_of
from plumdp.solver.coupled.chain import policy_chain
from plumdp.solver.coupled.expansion import TaylorExpansion, first_order, residual_bounds, second_order
from plumdp.solver.coupled.forms import forms_on
from plumdp.solver.coupled.gradient import policy_gradient
from plumdp.solver.coupled.remainder import error_model

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize("seed", range(size(8, 40)))
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
        if isinstance(found, WhyNot):
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


@pytest.mark.parametrize("seed", range(size(16, 40)))
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
        assert not isinstance(found, WhyNot)
        for point in points:
            value = exact_value(model, policy, objective, point)
            assert found.lower <= value <= found.upper, (objective, point)


def disturbed(rng, chain, guess):
    """Return an expansion with random errors at the open nodes; closed ones must stay as they are."""
    parts = []
    for part in (guess.values, guess.slopes, guess.curvatures):
        noise = np.zeros_like(part)
        noise[: chain.n_open] = rng.normal(size=noise[: chain.n_open].shape) * 10 ** -rng.uniform(1, 7)
        parts.append(part + noise)
    return TaylorExpansion(*parts)


@pytest.mark.parametrize("seed", range(size(15, 30)))
def test_bounds_hold_whatever_numbers_an_expansion_has(seed):
    rng = np.random.default_rng(2000 + seed)
    problem = random_problem(rng, least=Fraction(1, 100), sure=seed % 2 == 0)
    model = problem.model
    region = random_ellipsoid(rng, model.space, widest=10 ** -rng.uniform(0, 3))
    policy, points = random_policy(rng, model.graph), points_of(rng, model, region, 20)
    for objective in (
        Reach(problem.target, np.zeros_like(problem.target), "max"),
        Reward(problem.reward, "min", target=problem.target),
    ):
        chain = policy_chain(model, policy, objective)
        if isinstance(chain, WhyNot) or chain.n_open == 0:
            continue
        uncertain = rectangular(model, region)
        setting, errors = setting_of(model, chain, region, uncertain), error_model(chain, uncertain)
        equations = setting.equations()
        first = first_order(setting.chain, setting.forms, equations)
        quadratic = residual_bounds(setting.chain, setting.forms, first).quadratic
        for guess in (first, second_order(setting.chain, equations, first, quadratic)):
            wrong = disturbed(rng, chain, guess)
            residuals = residual_bounds(setting.chain, setting.forms, wrong)
            near = Expandable(setting, equations, first).approximation(wrong, residuals, errors, 1e-6)
            if near is None:
                continue
            found = bracket_of(near, setting.linear_range(near.slope))
            for point in points:
                assert found.low.value <= exact_value(model, policy, objective, point) <= found.high.value


@pytest.mark.parametrize("seed", range(size(15, 30)))
def test_values_at_points_lie_within_the_bounds_of_products(seed):
    rng = np.random.default_rng(3000 + seed)
    model = random_product_model(rng)
    region = random_ellipsoid(rng, model.space, widest=10 ** -rng.uniform(0.5, 3))
    uncertain = parameter_wise(model, region)
    policy, points = random_policy(rng, model.graph), points_of(rng, model, region, 20)
    goal = model.labels["goal"]
    for objective in (
        Reach(goal, np.zeros_like(goal), "max"),
        Reward(model.rewards["steps"], "min", target=goal),
        Reward(model.rewards["steps"], "min", discount="0.8"),
        Reward(model.rewards["steps"], "min", steps=4),
    ):
        found = find_coupled_bounds(model, policy, objective, region, uncertain)
        for point in points if not isinstance(found, WhyNot) else ():
            assert found.lower <= exact_value(model, policy, objective, point) <= found.upper, (objective, point)


@pytest.mark.parametrize("seed", range(20))
def test_forms_are_expressions_up_to_what_they_say(seed):
    """The exact value of a polynomial of degree up to three at a point, in fractions."""
    rng = np.random.default_rng(5000 + seed)
    model = random_product_model(rng)
    table, region = model.expressions, random_ellipsoid(rng, model.space)
    ball = ball_around(region, model.space.dimension)
    forms = forms_on(table, np.arange(len(table)), ball)
    matrices = full(forms.curvatures, forms.dimension)
    for _ in range(20):
        x = rng.normal(size=forms.dimension)
        x = [Fraction(float(c)) for c in x / np.linalg.norm(x) * rng.random()]
        at = exact_point(ball, x, model.space.names)
        for f, polynomial in enumerate(table.polynomials):
            value = Fraction(forms.means[f]) + sum(
                Fraction(b) * c for b, c in zip(forms.spreads[f].tolist(), x, strict=True)
            )
            value += sum(Fraction(float(matrices[f, i, j])) * a * b for i, a in enumerate(x) for j, b in enumerate(x))
            assert abs(value - polynomial.evaluate(at)) <= Fraction(forms.errors[f]) + Fraction(forms.tails[f])


def exact_point(ball, x, names):
    """Return centre + factor x in fractions."""
    return {
        name: Fraction(float(c)) + sum((Fraction(float(f)) * y for f, y in zip(row, x, strict=True)), Fraction(0))
        for name, c, row in zip(names, ball.centre, ball.factor, strict=True)
    }


@pytest.mark.parametrize("seed", range(15))
def test_gradient_is_that_of_exact_values(seed):
    rng = np.random.default_rng(6000 + seed)
    problem = random_problem(rng, least=Fraction(1, 100), sure=True)
    model, policy = problem.model, random_policy(rng, problem.model.graph)
    corners = np.array([[float(v[name]) for name in model.space.names] for v in model.space.vertices])
    point, step = corners.mean(axis=0), 1e-4
    for objective in [*objectives_of(problem)[1:3], objectives_of(problem)[4], *step_objectives_of(problem)[1:6]]:
        value, gradient = policy_gradient(model, policy, objective, point)
        exact = [
            [
                exact_value(
                    model, policy, objective, dict(zip(model.space.names, map(Fraction, moved.tolist()), strict=True))
                )
                for moved in (point - step * axis, point, point + step * axis)
            ]
            for axis in np.eye(len(point))
        ]
        assert value == pytest.approx(float(exact[0][1]), abs=1e-12)
        differences = [float((high - low) / Fraction(2 * step)) for low, _, high in exact]
        assert gradient == pytest.approx(differences, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_gradient_of_products_is_that_of_exact_values(seed):
    rng = np.random.default_rng(8000 + seed)
    model = random_product_model(rng)
    goal, point, step = model.labels["goal"], rng.uniform(0.3, 0.7, model.space.dimension), 1e-4
    policy, objective = model.graph.first_choice[:-1], Reward(model.rewards["steps"], "min", discount="0.9")
    assert goal.any()
    value, gradient = policy_gradient(model, policy, objective, point)
    for axis, slope in zip(np.eye(len(point)), gradient, strict=True):
        low, middle, high = (
            exact_value(model, policy, objective, dict(zip(model.space.names, map(Fraction, at.tolist()), strict=True)))
            for at in (point - step * axis, point, point + step * axis)
        )
        assert value == pytest.approx(float(middle), abs=1e-12)
        assert slope == pytest.approx(float((high - low) / Fraction(2 * step)), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_balls_hold_the_vertices_of_polytopes(seed):
    rng = np.random.default_rng(7000 + seed)
    problem = random_problem(rng)
    model = problem.model
    values = model.probabilities(problem.point)
    width = 10 ** -rng.uniform(0, 4)
    lower, upper = values - width * rng.random(len(values)), values + width * rng.random(len(values))
    region = pl.stages.build_region(model.space, model.expressions.polynomials, lower, upper)
    ball = ball_around(region, model.space.dimension)
    inverse = np.linalg.inv(ball.factor)
    vertices = region.table.vertices * region.scale
    lengths = np.linalg.norm((vertices - ball.centre) @ inverse.T, axis=1)
    assert lengths.max() <= 1 + 1e-9
    assert lengths.max() >= 0.9 or model.space.dimension > 3 or isinstance(region, Conflict)

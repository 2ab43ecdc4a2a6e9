"""Bounds by pieces of a region hold at every point: against exact values in fractions at single points."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from coupled_points import (
    exact_value,
    points_of,
    random_ellipsoid,
    random_policy,
    random_product_model,
)
from random_pmdps import random_problem
from tiers import size

import plumdp as pl
from plumdp.base.errors import WhyNot
from plumdp.model.objectives import Reach, Reward
from plumdp.region import boxes as box_bounds
from plumdp.region.ball import Ball
from plumdp.region.box_forms import forms_on_boxes
from plumdp.region.boxes import Boxes, Cover, OnBoxes, Quadratic, on_boxes
from plumdp.region.build import build_region
from plumdp.region.conflict import Conflict
from plumdp.relaxation.relax import expression_wise, parameter_wise, rectangular
from plumdp.solver.coupled.box_expansions import _BoxRows
from plumdp.solver.coupled.pieces import find_by_pieces

SEEDS = size(6, 400)


def objectives_of(problem):
    """Return one objective of each kind, with and without a number of steps."""
    nowhere = np.zeros_like(problem.target)
    avoid = nowhere.copy()
    avoid[problem.model.graph.n_states // 2] = True
    return [
        Reward(problem.reward, "min", target=problem.target),
        Reach(problem.target, nowhere, "max"),
        Reach(problem.target, nowhere, "min", complement=True),
        Reward(problem.reward, "max"),
        Reward(problem.reward, "max", discount="0.9"),
        Reach(problem.target, avoid, "min", steps=(2, 5)),
        Reach(problem.target, avoid, "min", steps=(1, 3), complement=True),
        Reward(problem.reward, "max", steps=5),
        Reward(problem.reward, "min", steps=4, discount="0.75"),
        Reward(problem.reward, "min", steps=4, target=problem.target),
    ]


def wrong_values(seed, seen, *, n_objectives=10):
    """Return exact values and differences outside of their bounds, at points of an ellipsoid that may be wide."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, least=0 if seed % 2 else Fraction(1, 100), sure=seed % 3 == 0)
    model = problem.model
    region = random_ellipsoid(rng, model.space, widest=10 ** -rng.uniform(0, 2))
    if isinstance(region, Conflict):
        return []
    uncertain = (rectangular if seed % 4 else expression_wise)(model, region)
    policies, points = [random_policy(rng, model.graph) for _ in range(2)], points_of(rng, model, region, 12)
    return [
        (seed, objective, less, found)
        for number, objective in enumerate(objectives_of(problem)[:n_objectives])
        for less in ((None, policies[1]) if (seed + number) % 3 == 0 else (None,))
        for found in [find_by_pieces(model, policies[0], objective, region, uncertain, less=less)]
        if are_outside(found, [values_at(model, policies[0], less, objective, p) for p in points], seen)
    ]


def values_at(model, policy, less, objective, point):
    """Return the exact value of a policy, less that of another one."""
    value = exact_value(model, policy, objective, point)
    return value if less is None else value - exact_value(model, less, objective, point)


def are_outside(found, values, seen):
    """Return whether some values are not within bounds, counting those that are compared."""
    if isinstance(found, WhyNot):
        seen["none"] += 1
        return False
    seen["bounded"] += 1
    seen["cut"] += found.cover is not None and len(found.cover[1].low) > 1
    return any(not found.lower <= value <= found.upper for value in values)


@pytest.mark.slow
def test_values_at_points_lie_within_the_bounds():
    seen = Counter()
    assert [wrong for seed in range(SEEDS) for wrong in wrong_values(seed, seen)] == []
    assert seen["bounded"] > 2 * seen["none"]
    assert seen["cut"] > 3


@pytest.mark.slow
def test_values_at_points_lie_within_the_bounds_of_products():
    seen, wrong = Counter(), []
    for seed in range(SEEDS):
        rng = np.random.default_rng(3000 + seed)
        model = random_product_model(rng)
        region = random_ellipsoid(rng, model.space, widest=10 ** -rng.uniform(0, 2))
        uncertain, goal = parameter_wise(model, region), model.labels["goal"]
        policy, points = random_policy(rng, model.graph), points_of(rng, model, region, 12)
        for objective in (
            Reach(goal, np.zeros_like(goal), "max"),
            Reward(model.rewards["steps"], "min", target=goal),
            Reward(model.rewards["steps"], "min", steps=4),
        ):
            found = find_by_pieces(model, policy, objective, region, uncertain)
            if are_outside(found, [exact_value(model, policy, objective, point) for point in points], seen):
                wrong.append((seed, objective, found))
    assert wrong == []
    assert seen["bounded"] > 2 * seen["none"]


def pieces_that_are_forgotten(monkeypatch):
    """Of two halves, one is left out."""
    halves = Cover.halves
    monkeypatch.setattr(Cover, "halves", lambda self: tuple(end[: len(end) // 2] for end in halves(self)))


def no_remainders(monkeypatch):
    """Parts of degree three and more are taken to be zero."""
    monkeypatch.setattr(_BoxRows, "higher", lambda self, after: np.zeros((len(after.values), self.chain.n_open)))


@pytest.mark.slow
@pytest.mark.parametrize("planted", [pieces_that_are_forgotten, no_remainders])
def test_a_planted_error_is_found(planted, monkeypatch):
    planted(monkeypatch)
    seen = Counter()
    assert any(wrong_values(seed, seen, n_objectives=1) for seed in range(60))


def loop(d):
    """Return a run that goes on with probability (1 + Σ x / 2d) / 2 and costs one each time: 2 / (1 - Σ x / 2d)."""
    names = [f"x{i}" for i in range(d)]
    going = sum(pl.parameters(*names), Fraction(0)) if d > 1 else pl.parameters(*names)[0]
    going = Fraction(1, 2) + going * Fraction(1, 4 * d)
    model = pl.explore(
        lambda s: {"go": [(going, s), (1 - going, s._replace(over=1))]} if not s.over else {"stay": [(1, s)]},
        {"over": 0},
        space=pl.ParameterSpace.box(dict.fromkeys(names, (-1, 1))),
        labels={"over": lambda s: s.over == 1},
        rewards={"cost": lambda s: 1 - s.over},
    )
    return model, Reward(model.rewards["cost"], "min", target=model.labels["over"])


def one_box(d):
    """Return bounds on the cost of a loop on the whole cube, in one piece, and the exact ends."""
    model, objective = loop(d)
    region = build_region(model.space, (), (), ())
    found = find_by_pieces(model, [0, 1], objective, region, rectangular(model, region))
    return found, Fraction(2) / (1 + Fraction(1, 2)), Fraction(2) / (1 - Fraction(1, 2))


@pytest.mark.parametrize("d", [1, 2, 4])
def test_bounds_hold_in_the_corners_of_a_box(d):
    found, low, high = one_box(d)
    assert found.lower <= low <= high <= found.upper
    assert found.upper - found.lower <= 1.03 * float(high - low)


def test_no_more_boxes_are_made_than_work_allows(monkeypatch):
    """Of a chain with two steps and three parameters, each box has 2 * 27 products, and is made with another one."""
    monkeypatch.setattr("plumdp.solver.coupled.pieces._MOST_WORK", 2 * 3.5 * (2 * 27 + 3e4))
    found, low, high = one_box(3)
    assert found.lower <= low <= high <= found.upper
    assert len(found.cover[1].low) == 3


def test_euclidean_norms_on_a_box_are_found(monkeypatch):
    """All entries of a slope, a matrix and a tensor are the same here, so that its norm is a root of its sum."""
    higher, first = _BoxRows.higher, _BoxRows.first
    monkeypatch.setattr(_BoxRows, "higher", lambda self, after: higher(self, after) / 4**1.5)
    monkeypatch.setattr(_BoxRows, "growth", lambda self, margins: np.sqrt((first(self, margins) ** 2).sum(2)))
    monkeypatch.setattr("plumdp.solver.coupled.pieces._MOST_PIECES", 0)
    found, low, high = one_box(4)
    assert not found.lower <= low <= high <= found.upper


@pytest.mark.parametrize("seed", range(size(10, 100)))
def test_forms_on_boxes_are_expressions_up_to_what_they_say(seed):
    """The exact value of a polynomial of degree up to three at a point of a box, corners included, in fractions."""
    rng = np.random.default_rng(seed)
    model = random_product_model(rng)
    table, d = model.expressions, model.space.dimension
    ball = Ball(rng.uniform(0.2, 0.8, d), rng.normal(size=(d, d)) * 10 ** -rng.uniform(0, 2))
    boxes = Boxes(ball, rng.uniform(-1, 1, (3, d)), rng.uniform(0, 1, (3, d)))
    forms = forms_on_boxes(table, np.arange(len(table)), boxes)
    exact = np.vectorize(Fraction, otypes=[object])
    for b in range(3):
        for x in (exact(rng.uniform(-1, 1, d)), exact(rng.choice([-1.0, 1.0], d))):
            at = exact(ball.centre) + exact(ball.factor) @ (exact(boxes.middle[b]) + exact(boxes.reach[b]) * x)
            for f, polynomial in enumerate(table.polynomials):
                value = Fraction(float(forms.means[b, f])) + exact(forms.spreads[b, f]) @ x
                value += 0 if forms.curvatures is None else x @ exact(forms.curvatures[b, f]) @ x
                off = abs(value - polynomial.evaluate(dict(zip(model.space.names, at, strict=True))))
                assert off <= Fraction(float(forms.errors[b, f])) + Fraction(float(forms.tails[b, f]))


def points_beyond_bounds(seed):
    """Return how many points of an ellipsoid in boxes have values of random functions beyond their bounds.

    Some multipliers are negative.
    """
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    region = random_ellipsoid(rng, pl.ParameterSpace.unit(*"abcd"[:d]), widest=0.7)
    ball = Ball(region.centre, region.radius * region.root)
    boxes = Boxes(ball, rng.uniform(-0.7, 0.7, (4, d)), rng.uniform(0.1, 0.6, (4, d)))
    within, square = on_boxes(region, boxes), rng.normal(size=(4, d, d))
    q = Quadratic(rng.normal(size=4), rng.normal(size=(4, d)), square + square.swapaxes(1, 2), np.zeros(4))
    y = rng.normal(size=within.heights.shape) * rng.choice([0.0, 0.1, 3.0], within.heights.shape)
    proposed = within.lagrangian(q, y, rng.normal(size=4))
    found = np.minimum(within.upper(q)[0], proposed) + 1e-12
    n_beyond = 0
    for b in range(4):
        x = np.clip(rng.uniform(-1.5, 1.5, (200, d)), -1, 1)
        in_ball = boxes.middle[b] + boxes.reach[b] * x
        in_ball /= np.maximum(np.linalg.norm(in_ball, axis=1), 1)[:, None]  # many at the surface
        x = (in_ball - boxes.middle[b]) / boxes.reach[b]
        is_inside = (np.abs(x) <= 1).all(1)
        is_inside &= ((ball.centre + in_ball @ ball.factor.T) @ region.rows.T <= region.offsets).all(1)
        values = q.value[b] + x @ q.slope[b] + np.einsum("ni,ij,nj->n", x, q.curvature[b], x)
        n_beyond += int((values[is_inside] > found[b]).sum())
    return n_beyond


def test_whatever_multipliers_are_proposed_bounds_hold_at_points():
    assert [points_beyond_bounds(seed) for seed in range(size(60, 2000))] == [0] * size(60, 2000)


def multipliers_of_any_sign(monkeypatch):
    """A negative multiplier is taken as it is."""
    monkeypatch.setattr(box_bounds, "nonnegative", lambda multipliers: multipliers)


def half_spaces_that_are_too_close(monkeypatch):
    """Slacks are smaller than they are at some points of a box."""

    def closer(region, boxes):
        within = box_bounds.on_boxes(region, boxes)
        return replace(within, slacks=within.slacks - np.abs(within.rows).sum(2))

    monkeypatch.setitem(globals(), "on_boxes", closer)


def a_ball_of_the_wrong_side(monkeypatch):
    """What is far from the centre counts as inside."""
    of_boxes = OnBoxes.lagrangian
    monkeypatch.setattr(OnBoxes, "lagrangian", lambda self, q, y, nu: of_boxes(self, q, y, nu) - 2 * np.abs(nu))


@pytest.mark.parametrize("planted", [multipliers_of_any_sign, half_spaces_that_are_too_close, a_ball_of_the_wrong_side])
def test_a_planted_error_in_bounds_is_found(planted, monkeypatch):
    planted(monkeypatch)
    assert sum(points_beyond_bounds(seed) for seed in range(60)) > 0


def test_what_is_not_a_number_bounds_nothing():
    region = random_ellipsoid(np.random.default_rng(1), pl.ParameterSpace.unit("a", "b"))
    boxes = Boxes(Ball(region.centre, region.radius * region.root), np.zeros((4, 2)), np.full((4, 2), 0.5))
    parts = [np.zeros(4), np.ones((4, 2)), np.zeros((4, 2, 2)), np.zeros(4)]
    for row, part in enumerate(parts):
        part[row] = np.nan
    with np.errstate(invalid="ignore"):
        bounds, _ = on_boxes(region, boxes).upper(Quadratic(*parts))
    assert (bounds == np.inf).all()


def test_a_box_without_points_of_the_region_has_no_value():
    region = random_ellipsoid(np.random.default_rng(1), pl.ParameterSpace.unit("a", "b"), widest=0.1)
    ball = Ball(region.centre, region.radius * region.root)
    boxes = Boxes(ball, np.array([[0.95, 0.95], [0.0, 0.0]]), np.full((2, 2), 0.05))
    q = Quadratic(np.ones(2), np.ones((2, 2)), np.zeros((2, 2, 2)), np.zeros(2))
    bounds, inner = on_boxes(region, boxes).upper(q)
    assert bounds[0] == -np.inf
    assert inner[0] == -np.inf
    assert inner[1] <= bounds[1]
    assert bounds[1] == pytest.approx(3)

"""Ellipsoids and L1 balls of models with products of parameters, against exact points of these sets.

Which points of the space a set holds is decided in rational numbers, from its definition. Every one of them must lie in
the region, and no relaxation may exclude what it gives the expressions.
"""

from dataclasses import replace
from fractions import Fraction
from math import prod

import numpy as np
import pytest
from random_products import KINDS, random_product_problem

from plumdp.model.expressions.table import ExpressionTable
from plumdp.region.build import project
from plumdp.region.conflict import Conflict
from plumdp.relaxation.relax import expression_wise, parameter_wise
from studies.l1_balls import build_l1_region, row_bounds
from studies.least_squares import build_ellipsoid_region, least_squares

pytestmark = pytest.mark.slow

ERROR = 0.1


def ellipsoid(problem):
    return least_squares(problem.model, problem.counts, error=ERROR)


def balls(problem):
    return row_bounds(problem.model, problem.counts, error=ERROR)


def ellipsoid_region(problem, found):
    return build_ellipsoid_region(problem.model.space, problem.model.expressions, found)


def l1_region(problem, found):
    return build_l1_region(problem.model.space, found)


def is_in_ellipsoid(problem, found):
    """Return the exact test of a point: (v - centre)·V (v - centre) <= radius², where v has the products as well."""
    matrix = [[Fraction(x) for x in row] for row in found.matrix.tolist()]
    centre, reach = [Fraction(x) for x in found.centre.tolist()], Fraction(found.radius) ** 2

    def test(point):
        values = [prod(x**k for x, k in zip(point.values(), e, strict=True)) for e in found.exponents.tolist()]
        away = [v - c for v, c in zip(values, centre, strict=True)]
        return (
            sum(a * m * b for a, row in zip(away, matrix, strict=True) for m, b in zip(row, away, strict=True)) <= reach
        )

    return test


def is_in_balls(problem, found):
    """Return the exact test of a point: Σ |probability - share| <= radius for every class of rows."""
    shares, radii = [Fraction(x) for x in found.shares.tolist()], [Fraction(x) for x in found.radius.tolist()]

    def test(point):
        off = [abs(f.evaluate(point) - share) for f, share in zip(found.outcomes, shares, strict=True)]
        ends = found.first.tolist()
        return all(sum(off[a:b]) <= radius for a, b, radius in zip(ends[:-1], ends[1:], radii, strict=True))

    return test


def narrowed(found):
    """Return the same set with half its radius: smaller than what the data say."""
    return replace(found, radius=found.radius / 2)


SETS = {
    "ellipsoid": (ellipsoid, ellipsoid_region, is_in_ellipsoid),
    "l1": (balls, l1_region, is_in_balls),
}


def members(rng, problem, test, n=40):
    """Return exact points of the space that pass a test: near the true point at all scales, and far from it."""
    space = problem.model.space
    middle = np.array([float(problem.point[name]) for name in space.names])
    near = [middle + 10 ** rng.uniform(-4, 0) * rng.normal(size=len(middle)) for _ in range(n)]
    points = [np.clip(x, 0, 1) for x in [*near, *rng.random((n // 2, len(middle)))]]
    exact = [dict(zip(space.names, map(Fraction, x.tolist()), strict=True)) for x in points]
    return [x for x in [problem.point, *exact] if test(x)]


def exceeds(problem, region, points):
    """Return how many of the points are lost: to the region itself, or to what a relaxation makes of it."""
    model, lost = problem.model, 0
    by_box, by_expression = parameter_wise(model, region), expression_wise(model, region)
    objectives = np.random.default_rng(3).normal(size=(4, len(region.names)))
    minima = region.minimise(objectives)
    for point in points:
        values = model.expressions.evaluate_exact(model.space, point)
        at = [prod(factor(x, point) for x in name.split("*")) for name in region.names]
        lost += not (
            all(Fraction(a) <= v <= Fraction(b) for v, a, b in zip(values, by_box.lower, by_box.upper, strict=True))
            and all(
                Fraction(a) <= v <= Fraction(b)
                for v, a, b in zip(values, by_expression.lower, by_expression.upper, strict=True)
            )
            and all(dot(row, at) <= Fraction(b) for row, b in zip(region.rows, region.offsets, strict=True))
            and all(Fraction(m) <= dot(g, at) for g, m in zip(objectives, minima, strict=True))
        )
    return lost


def factor(text, point):
    name, _, power = text.partition("^")
    return point[name] ** int(power or 1)


def dot(row, at):
    return sum(Fraction(a) * x for a, x in zip(row.tolist(), at, strict=True))


@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize("kind", [*KINDS, None])
def test_every_point_of_the_set_is_in_the_region_exactly_and_within_all_bounds(sets, kind):
    draw, build, is_in = SETS[sets]
    rng = np.random.default_rng([len(kind or ""), 5])
    n_members = 0
    for _ in range(8):
        problem = random_product_problem(rng, kinds=kind and [kind])
        found = draw(problem)
        region, points = build(problem, found), members(rng, problem, is_in(problem, found))
        if isinstance(region, Conflict):
            assert not points
            continue
        n_members += len(points)
        assert exceeds(problem, region, points) == 0
    assert n_members > 50


@pytest.mark.parametrize("sets", SETS)
def test_a_region_of_a_smaller_set_loses_points(sets):
    """The check can fail."""
    draw, build, is_in = SETS[sets]
    rng = np.random.default_rng(6)
    lost = 0
    for _ in range(12):
        if lost > 5:
            break
        problem = random_product_problem(rng)
        found = draw(problem)
        region = build(problem, narrowed(found))
        if not isinstance(region, Conflict):
            lost += exceeds(problem, region, members(rng, problem, is_in(problem, found)))
    assert lost > 5


@pytest.mark.parametrize("sets", SETS)
def test_bounds_come_close_to_the_points_of_the_set(sets):
    """With much data of two coins; the range that points attain is found on a grid."""
    draw, build, _ = SETS[sets]
    rng = np.random.default_rng(7)
    for _ in range(4):
        problem = random_product_problem(rng, kinds=["coins"], n_parameters=2, most=10**6)
        found = draw(problem)
        region = build(problem, found)
        lower, upper = project(region, problem.model.expressions)
        low, high = region.lower[:2], region.upper[:2]
        grid = np.stack(np.meshgrid(*(np.linspace(a, b, 150) for a, b in zip(low, high, strict=True))), axis=-1)
        points = grid.reshape(-1, 2)
        inside = points[floats_in(sets, problem, found, points)]
        values = problem.model.expressions.evaluate(inside)
        attained = values.max(axis=1) - values.min(axis=1)
        unknown = problem.model.expressions.is_unknown
        assert ((upper - lower)[unknown] <= 1.1 * attained[unknown] + 1e-9).all()


def floats_in(sets, problem, found, points):
    """Return which points lie in a set, in floats."""
    if sets == "ellipsoid":
        away = np.prod(points[:, None, :] ** found.exponents[None], axis=2) - found.centre
        return np.einsum("ki,ij,kj->k", away, found.matrix, away) <= found.radius**2
    table = ExpressionTable.build(found.outcomes, problem.model.space.names)
    off = np.abs(table.evaluate(points) - found.shares[:, None])
    return (np.add.reduceat(off, found.first[:-1], axis=0) <= found.radius[:, None]).all(axis=0)

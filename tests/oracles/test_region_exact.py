"""Minima over regions against exact rational optima, on well over a thousand polytopes, most of them unpleasant.

The oracle is a dual simplex method over the rationals. It returns an optimum only after checking, exactly, a point of
the polytope and multipliers with the same value, so that how it got there does not matter.
"""

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from flint import fmpq
from tiers import size

import plumdp as pl
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.region import kernels, vertex_kernels
from plumdp.region.build import build_region, project
from plumdp.region.conflict import Conflict
from plumdp.region.half_spaces import Contradiction, half_spaces
from plumdp.region.kernels import LEVEL
from plumdp.region.shapes import Polytope, intersection

pytestmark = pytest.mark.slow

NAMES = ("a", "b", "c", "d", "e", "f")
ZERO = fmpq(0)


def rational(number):
    numerator, denominator = Fraction(number).as_integer_ratio()
    return fmpq(numerator, denominator)


def dot(left, right):
    return sum((x * y for x, y in zip(left, right, strict=True)), ZERO)


def exact_minimum(rows, offsets, objective):
    """Return the minimum of ``objective @ x`` over ``rows @ x <= offsets``, or None if no point meets all rows.

    The first rows are a box. Bland's rule: the first row in either choice, so that it cannot run in circles.
    """
    rows, offsets = [[rational(x) for x in row] for row in rows], [rational(x) for x in offsets]
    objective = [rational(x) for x in objective]
    d = len(objective)
    basis = [j if objective[j] >= 0 else d + j for j in range(d)]
    edges = [[-rows[basis[i]][j] for j in range(d)] for i in range(d)]
    while True:
        point = [-dot([edge[j] for edge in edges], [offsets[r] for r in basis]) for j in range(d)]
        multipliers = [dot(objective, edge) for edge in edges]
        assert all(y >= 0 for y in multipliers)
        entering = next((r for r, row in enumerate(rows) if dot(row, point) > offsets[r]), None)
        if entering is None:
            assert dot(objective, point) == -dot(multipliers, [offsets[r] for r in basis])
            return dot(objective, point)
        slopes = [dot(rows[entering], edge) for edge in edges]
        falling = [(multipliers[i] / -slopes[i], basis[i], i) for i in range(d) if slopes[i] < 0]
        if not falling:  # the multipliers are slopes >= 0, and 1 for the entering row: Farkas
            assert dot(slopes, [offsets[r] for r in basis]) + offsets[entering] < 0
            return None
        leaving = min(falling)[2]
        for i in range(d):
            if i != leaving and slopes[i] != 0:
                factor = slopes[i] / slopes[leaving]
                edges[i] = [x - factor * y for x, y in zip(edges[i], edges[leaving], strict=True)]
        edges[leaving] = [x / -slopes[leaving] for x in edges[leaving]]
        basis[leaving] = entering


def slab(rng, rows, offsets, point, half_width):
    """Return the half-spaces with one more slab of the given half width around a point."""
    normal = rng.normal(size=len(point))
    middle = normal @ point
    return np.vstack([rows, normal, -normal]), np.append(offsets, [middle + half_width, half_width - middle])


def many_slabs(rng, point, half_widths):
    normals = rng.normal(size=(len(half_widths), len(point)))
    middle = normals @ point
    return np.vstack([normals, -normals]), np.append(middle + half_widths, half_widths - middle)


def generic(rng, rows, offsets, point):
    return rows, offsets


def integer(rng, rows, offsets, point):
    rows = rng.integers(-2, 3, size=rows.shape).astype(float)
    return rows, np.round(rows @ point + rng.integers(0, 2, len(rows)))


def decimal(rng, rows, offsets, point):
    rows = rows.round(1)
    return rows, (rows @ point + 0.1).round(1)


def duplicate(rng, rows, offsets, point):
    factor = rng.uniform(0.1, 3, size=len(rows))
    return np.vstack([rows, rows * factor[:, None], rows]), np.concatenate([offsets, offsets * factor, offsets])


def flat(rng, rows, offsets, point):
    return slab(rng, rows, offsets, point, 0.0)


def thin(rng, rows, offsets, point):
    return slab(rng, rows, offsets, point, rng.choice([1e-9, 1e-11]))


def tiny(rng, rows, offsets, point):
    return many_slabs(rng, point, rng.choice([1e-9, 1e-11]) * rng.uniform(0.2, 1, 3 * len(point)))


def uneven(rng, rows, offsets, point):
    return many_slabs(rng, point, 10 ** rng.uniform(-12, -1, 2 * len(point)))


def data_like(rng, rows, offsets, point):
    half_widths = rng.uniform(1e-4, 1e-2, 30)
    rows, offsets = many_slabs(rng, point, half_widths)
    shift = half_widths * rng.uniform(-0.9, 0.9, 30)
    return rows, offsets + np.append(shift, -shift)


def simplex_like(rng, rows, offsets, point):
    share = point / point.sum() * rng.choice([1.0, 0.7])
    rows = np.vstack([np.ones(len(point)), rows])
    return rows, np.append(1.0, rows[1:] @ share + rng.choice([0, 1e-6, 0.05], len(rows) - 1))


def cross_polytope(rng, rows, offsets, point):
    rows = np.array(list(product([-1.0, 1.0], repeat=len(point))))
    return rows, rows @ np.full(len(point), 0.5) + 0.25


def one_point(rng, rows, offsets, point):
    rows = (8 * rows).round() / 8  # so that the offsets are exact, and the point is there
    return np.vstack([rows, -rows]), np.append(rows @ point, -rows @ point)


def nearly_empty(rng, rows, offsets, point):
    return slab(rng, rows, offsets, point, rng.choice([-1e-3, -1e-9, -3e-11, -1e-12, 1e-15, 1e-12, 1e-10]))


def nearly_parallel(rng, rows, offsets, point):
    turned = rows[0] + 10 ** rng.uniform(-10, -4, size=(4, 1)) * rng.normal(size=(4, len(point)))
    more = np.vstack([turned, -rows[:1]])
    room = 10 ** rng.uniform(-11, -2) * rng.uniform(0, 1, 5)
    return np.vstack([rows, more]), np.append(offsets, more @ point + room)


FAMILIES = [
    generic, integer, decimal, duplicate, flat, thin, tiny, uneven, data_like, simplex_like, cross_polytope, one_point,
    nearly_empty, nearly_parallel,
]  # fmt: skip
PER_FAMILY = size(45, 90)


def polytopes(family):
    """Yield rows and offsets, box first, and some objectives: across, along an axis, and along a row."""
    rng = np.random.default_rng([FAMILIES.index(family), 5])
    for k in range(PER_FAMILY):
        d = 1 + k % 6
        point, scale = rng.integers(7, 58, d) / 64, np.ones(d)
        rows = rng.normal(size=(rng.integers(1, 4 * d + 2), d))
        rows, offsets = family(rng, rows, rows @ point + rng.uniform(0.02, 0.3, len(rows)), point)
        box = np.zeros(d), np.ones(d)
        if k % 7 == 3:
            box[0][0] = box[1][0] = point[0]  # a known parameter
        if k % 5 == 4:
            scale = 10 ** rng.uniform(-6, 6, d).round()
        rows = np.vstack([-np.eye(d), np.eye(d), rows / scale])
        offsets = np.concatenate([-box[0] * scale, box[1] * scale, offsets])
        objectives = np.vstack([rng.normal(size=d) / scale, np.eye(d)[rng.integers(d)], -rows[rng.integers(len(rows))]])
        yield rows, offsets, objectives


@cache
def solved(family):
    """Return polytopes of a family with their exact minima."""
    found = [*polytopes(family)]
    return [(*each, [exact_minimum(*each[:2], objective) for objective in each[2]]) for each in found]


def how_far_below(values, exact, rows, offsets, objectives):
    """Return exact minimum minus value, relative to the largest value that the objective's terms can have."""
    d = objectives.shape[1]
    reach = np.maximum(np.abs(offsets[:d]), np.abs(offsets[d : 2 * d]))
    distance = [e - rational(v) for v, e in zip(values, exact, strict=True)]
    size = np.maximum(np.abs(objectives) @ reach, 1e-300)
    return [float(Fraction(int(x.p), int(x.q))) / s for x, s in zip(distance, size, strict=True)]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_minima_are_never_above_the_exact_optimum_and_close_to_it(family):
    seen = 0
    for rows, offsets, objectives, exact in solved(family):
        region = intersection(NAMES[: rows.shape[1]], rows, offsets)
        if isinstance(region, Contradiction):
            assert exact[0] is None
        elif exact[0] is not None:
            below = how_far_below(region.minimise(objectives), exact, rows, offsets, objectives)
            assert min(below) >= 0
            if family is not nearly_parallel:  # where rounding one row moves the optimum by far more than that
                assert max(below) <= 1e-9
            seen += 1
    assert seen > (PER_FAMILY / 5 if family is nearly_empty else PER_FAMILY / 2)


def test_the_plain_minimum_over_vertices_is_above_the_exact_optimum_time_and_again():
    """The negative control: the test above can fail, and does so without the certificate."""
    above = total = 0
    for rows, offsets, objectives, exact in solved(data_like)[:30]:
        region = intersection(NAMES[: rows.shape[1]], rows, offsets)
        assert isinstance(region, Polytope)
        plain = (objectives @ (region.table.vertices * region.scale).T).min(axis=1)
        below = how_far_below(plain, exact, rows, offsets, objectives)
        above += sum(x < 0 for x in below)
        total += len(below)
    assert above > total / 10


@pytest.mark.parametrize("family", [generic, flat, tiny, data_like, cross_polytope, one_point, nearly_parallel])
def test_no_vertex_of_the_table_claims_more_than_the_exact_optimum(family):
    """At the best vertex and at any other: value less margin less what falling edges could bring."""
    for rows, offsets, objectives, exact in solved(family)[:30]:
        region = intersection(NAMES[: rows.shape[1]], rows, offsets)
        if isinstance(region, Contradiction) or exact[0] is None:
            continue
        table, scaled = region.table, objectives * region.scale
        size = np.abs(scaled).sum(axis=1)
        falls = np.maximum(0, -np.einsum("vij,kj->kvi", table.edges, scaled) - LEVEL * size[:, None, None])
        bounds = scaled @ table.vertices.T - table.margin * size[:, None] - (falls * table.reach).sum(axis=2)
        best = bounds.max(axis=1)
        below = how_far_below(best, exact, rows, offsets, objectives)
        assert min(below) >= 0
        if family in (generic, data_like, cross_polytope):
            assert max(below) <= 1e-9


@pytest.mark.parametrize("noise", [1e-8, 1e-2, 10.0])
def test_corrupted_vertices_loosen_bounds_but_never_break_them(noise):
    rng = np.random.default_rng(7)
    for rows, offsets, objectives, exact in solved(data_like)[:18]:
        region = intersection(NAMES[: rows.shape[1]], rows, offsets)
        assert isinstance(region, Polytope)
        graph = region.graph
        graph.enumerate_all()
        found = graph.found
        for array in (found.points, found.edges, found.lengths):
            array *= 1 + noise * rng.normal(size=array.shape)
        position = rng.integers(0, found.n[0], len(objectives)).astype(np.int32)
        for start in (position, graph.walk(objectives * region.scale)[0]):
            values = np.empty(len(objectives))
            box = region.lower / region.scale, region.upper / region.scale
            vertex_kernels.safe_minima(objectives * region.scale, start, graph.rows, graph.offsets, *box, found, values)
            assert min(how_far_below(values, exact, rows, offsets, objectives)) >= 0


def test_the_dual_simplex_alone_gives_safe_and_tight_minima():
    """The way for polytopes with more vertices than memory allows."""
    for rows, offsets, objectives, exact in solved(data_like)[:30]:
        region = intersection(NAMES[: rows.shape[1]], rows, offsets)
        assert isinstance(region, Polytope)
        graph, values = region.graph, np.empty(len(objectives))
        box = region.lower / region.scale, region.upper / region.scale
        kernels.simplex_minima(objectives * region.scale, graph.relaxed, graph.rows, graph.offsets, *box, values)
        below = how_far_below(values, exact, rows, offsets, objectives)
        assert min(below) >= 0
        assert max(below) <= 1e-9


def test_all_vertices_are_found_as_qhull_counts_them():
    from scipy.spatial import HalfspaceIntersection

    for rows, offsets, *_ in solved(data_like)[:24]:
        d = rows.shape[1]
        if d > 1 and (offsets[:d] != -offsets[d : 2 * d]).all():
            region = intersection(NAMES[:d], rows, offsets)
            assert isinstance(region, Polytope)
            centre = (region.table.vertices * region.scale).mean(axis=0)
            facets = HalfspaceIntersection(np.column_stack([rows, -offsets]), centre)
            assert region.table.is_complete
            assert len(region.table) == len(facets.intersections)
            assert (region.table.neighbours >= 0).all()


def random_polynomials(rng, names, n):
    """Return distinct affine expressions with coefficients that floats cannot hold."""
    variables = pl.parameters(*names)
    found = {}
    for _ in range(n):
        weights = [Fraction(int(x), 3 * 7 * 11) for x in rng.integers(-60, 60, len(names))]
        terms = (v * w for v, w in zip(variables, weights, strict=True))
        found[sum(terms, Polynomial(Fraction(int(rng.integers(1, 40)), 77)))] = None
    return [f for f in found if not f.is_constant]


def exact_rows(space, polynomials, lower, upper):
    """Return box, space and intervals as exact half-spaces."""
    d, rows, offsets = space.dimension, [], []
    for sign, side in ((-1, 0), (1, 1)):
        for j in range(d):
            rows.append([sign * int(i == j) for i in range(d)])
            offsets.append(sign * space.bounds[j][side])
    unit = [tuple(int(i == j) for i in range(d)) for j in range(d)]
    pairs = [(-c, Fraction(0)) for c in space.constraints]
    pairs += [(f, Fraction(u)) for f, u in zip(polynomials, upper, strict=True)]
    pairs += [(-f, -Fraction(low)) for f, low in zip(polynomials, lower, strict=True)]
    for polynomial, bound in pairs:
        terms = polynomial.terms(space.names)
        rows.append([terms.get(u, Fraction(0)) for u in unit])
        offsets.append(bound - terms.get((0,) * d, Fraction(0)))
    return rows, offsets


def test_no_point_on_the_boundary_is_lost_when_rows_become_floats():
    """Points at which a rational expression equals its float bound exactly meet the float half-spaces exactly."""
    rng = np.random.default_rng(17)
    for k in range(60):
        names = NAMES[: 1 + k % 4]
        space = pl.ParameterSpace.box(dict.fromkeys(names, (-9, 9)))
        polynomials = random_polynomials(rng, names, 5)
        bounds = rng.uniform(0.1, 0.9, len(polynomials))
        known = half_spaces(space, ExpressionTable.build(polynomials, names), bounds, bounds)
        for f, bound in zip(polynomials, bounds, strict=True):
            point = {
                name: Fraction(int(x), 77) for name, x in zip(names, rng.integers(-77, 77, len(names)), strict=True)
            }
            unknown = f.names[0]
            at_zero, at_one = (f.evaluate(point | {unknown: Fraction(x)}) for x in (0, 1))
            point[unknown] = (Fraction(bound) - at_zero) / (at_one - at_zero)
            if space.contains(point):
                assert f.evaluate(point) == Fraction(bound)
                for row in np.flatnonzero(known.expression == polynomials.index(f)):
                    terms = zip(known.rows[row], point.values(), strict=True)
                    assert sum(Fraction(x) * y for x, y in terms) <= Fraction(known.offsets[row])


def test_rational_coefficients_and_bounds_are_covered_when_they_become_floats():
    """Projections of expressions with thirds and sevenths, over regions given by such, contain the exact range."""
    rng = np.random.default_rng(11)
    for k in range(size(16, 40)):
        names = NAMES[: 1 + k % 4]
        space = pl.ParameterSpace.simplex(*names) if k % 2 else pl.ParameterSpace.unit(*names)
        share = Fraction(1, 7 * len(names))
        point = {name: share * int(x) for name, x in zip(names, rng.integers(1, 7, len(names)), strict=True)}
        polynomials = random_polynomials(rng, names, 8)
        true = [f.evaluate(point) for f in polynomials]
        width = rng.choice([0, 1e-12, 1e-6, 1e-2])
        lower = np.array([np.nextafter(float(x), -1) - width for x in true])
        upper = np.array([np.nextafter(float(x), 2) + width for x in true])
        region = build_region(space, polynomials, lower, upper)
        assert isinstance(region, Polytope)
        asked = random_polynomials(rng, names, 4) + polynomials[:2]
        low, high = project(region, ExpressionTable.build(asked, names))
        rows, offsets = exact_rows(space, polynomials, lower, upper)
        for f, at_least, at_most in zip(asked, low, high, strict=True):
            terms = f.terms(names)
            constant = rational(terms.get((0,) * len(names), 0))
            slope = [terms.get(tuple(int(i == j) for i in range(len(names))), 0) for j in range(len(names))]
            least = constant + exact_minimum(rows, offsets, slope)
            most = constant - exact_minimum(rows, offsets, [-x for x in slope])
            assert rational(at_least) <= least <= most <= rational(at_most)
            assert rational(at_most) - most <= rational(1e-9)
            assert least - rational(at_least) <= rational(1e-9)


def test_conflicts_are_exactly_those_of_empty_regions_and_their_multipliers_prove_them():
    rng = np.random.default_rng(13)
    n_empty = 0
    for k in range(n := size(40, 120)):
        names = NAMES[: 1 + k % 3]
        space = pl.ParameterSpace.simplex(*names) if k % 2 else pl.ParameterSpace.unit(*names)
        polynomials = random_polynomials(rng, names, 6)
        point = dict.fromkeys(names, Fraction(1, 5))
        middle = np.array([float(f.evaluate(point)) for f in polynomials]) + rng.normal(size=len(polynomials)) / 50
        half = rng.uniform(0.001, 0.06, len(polynomials))
        region = build_region(space, polynomials, middle - half, middle + half)
        rows, offsets = exact_rows(space, polynomials, middle - half, middle + half)
        is_empty = exact_minimum(rows, offsets, [1] * len(names)) is None
        assert isinstance(region, Conflict) == is_empty
        if isinstance(region, Conflict):
            n_empty += 1
            assert 1 <= len(region.expressions) <= len(names) + 1
            assert_proves(region, space, polynomials, middle - half, middle + half)
            assert_least_stretch(region, space, polynomials, middle, half)
    assert n / 4 < n_empty < 0.92 * n


def assert_proves(conflict, space, polynomials, lower, upper):
    """At all corners of the space, hence everywhere, the weighted sum of what bounds are missed by is positive."""
    for corner in space.vertices:
        total = Fraction(0)
        for f, multiplier in zip(conflict.expressions, conflict.multipliers, strict=True):
            bound = Fraction(upper[f] if multiplier > 0 else lower[f])
            total += Fraction(multiplier) * (polynomials[f].evaluate(corner) - bound)
        assert total > 0


def assert_least_stretch(conflict, space, polynomials, middle, half):
    """A little less stretch leaves the intervals in conflict; a little more gives them a point in common."""
    for factor, is_empty in ((0.9999, True), (1.0001, False)):
        width = half * conflict.stretch * factor
        rows, offsets = exact_rows(space, polynomials, middle - width, middle + width)
        assert (exact_minimum(rows, offsets, [1] * space.dimension) is None) == is_empty


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6])
def test_the_true_point_lies_in_every_projected_interval(d):
    rng = np.random.default_rng(d)
    names = NAMES[:d]
    space = pl.ParameterSpace.unit(*names)
    for width in (0.0, 1e-12, 1e-3, 0.1):
        point = {name: Fraction(int(x), 17) for name, x in zip(names, rng.integers(1, 17, d), strict=True)}
        polynomials = random_polynomials(rng, names, 150)
        true = [f.evaluate(point) for f in polynomials]
        lower = np.array([np.nextafter(float(x), -9) for x in true]) - width * rng.uniform(0, 1, len(true))
        upper = np.array([np.nextafter(float(x), 9) for x in true]) + width * rng.uniform(0, 1, len(true))
        region = build_region(space, polynomials, lower, upper)
        assert isinstance(region, Polytope)
        low, high = project(region, ExpressionTable.build(polynomials, names))
        assert all(Fraction(a) <= x <= Fraction(b) for a, x, b in zip(low, true, high, strict=True))
        box = zip(region.lower, point.values(), region.upper, strict=True)
        assert all(Fraction(a) <= x <= Fraction(b) for a, x, b in box)
        assert (low >= lower - 1e-12).all()
        assert (high <= upper + 1e-12).all()

"""Parameter spaces against exact arithmetic, polygon clipping and known shapes."""

from fractions import Fraction
from itertools import combinations, product
from math import comb, inf, nextafter

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from tiers import examples

import plumdp as pl
from plumdp import ParameterSpace, parameters
from plumdp.confidence import space_moments
from plumdp.confidence.space_moments import _analytic_centre, is_nonnegative, moments
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.space import float_above, float_below, independent_blocks

NAMES = ("b", "c", "a")  # not in alphabetical order
b, c, a = parameters(*NAMES)
coefficients = st.sampled_from([Fraction(0), Fraction(1), Fraction(-1)]) | st.fractions(-3, 3, max_denominator=30)
ends = st.tuples(coefficients, coefficients).map(sorted)


@st.composite
def polytopes(draw, dimension=None):
    """Draw names, bounds, and constraints as (offset, slopes): offset + slopes * point >= 0, two slopes not zero."""
    n = dimension or draw(st.integers(2, 3))
    bounds = [tuple(draw(ends)) for _ in range(n)]
    rows = draw(st.lists(st.tuples(coefficients, st.tuples(*[coefficients] * n)), max_size=3))
    rows = [(offset, slopes) for offset, slopes in rows if sum(slope != 0 for slope in slopes) > 1]
    constraints = [dot(slopes, (b, c, a)) + offset for offset, slopes in rows]
    return ParameterSpace.box(dict(zip(NAMES, bounds, strict=False)), constraints=constraints), bounds, rows


def dot(slopes, values):
    return sum(slope * value for slope, value in zip(slopes, values, strict=False))


def is_inside(point, bounds, rows):
    in_box = all(low <= x <= high for x, (low, high) in zip(point, bounds, strict=True))
    return in_box and all(offset + dot(slopes, point) >= 0 for offset, slopes in rows)


@given(st.fractions() | st.floats(allow_nan=False, allow_infinity=False).map(Fraction), st.integers(-330, 0))
@example(Fraction(1), -400)
@example(Fraction(-1), -400)
@example(Fraction(-1, 3), 0)
def test_float_neighbours_enclose_the_number_as_tightly_as_possible(number, exponent):
    assume(abs(number) < 10**300)
    number *= Fraction(10) ** exponent
    low, high = float_below(number), float_above(number)
    assert Fraction(low) <= number < Fraction(nextafter(low, inf))
    assert Fraction(nextafter(high, -inf)) < number <= Fraction(high)


def test_numbers_beyond_all_floats_are_enclosed_too():
    huge, largest = Fraction(10**400), np.finfo(np.float64).max
    assert (float_below(huge), float_above(huge)) == (largest, inf)
    assert (float_below(-huge), float_above(-huge)) == (-inf, -largest)


@pytest.mark.slow
@given(polytopes(), st.data())
def test_no_point_of_the_space_violates_the_float_inequalities(polytope, data):
    space, bounds, rows = polytope
    parts = st.fractions(0, 1, max_denominator=7)
    point = [low + (high - low) * data.draw(parts) for low, high in bounds]
    inside = [tuple(vertex.values()) for vertex in space.vertices] + [point] * is_inside(point, bounds, rows)
    matrix, offset = space.inequalities
    for found in inside:
        assert all(
            Fraction(low) <= x <= Fraction(high) for low, x, high in zip(space.lower, found, space.upper, strict=True)
        )
        for row, limit in zip(matrix, offset, strict=True):
            assert dot(map(Fraction, row), found) <= Fraction(limit)


@given(polytopes())
def test_the_float_inequalities_are_off_by_rounding_only(polytope):
    space, _, _ = polytope
    matrix, limits = space.inequalities
    assert matrix.shape == (len(space.constraints), space.dimension)
    for row, limit, constraint in zip(matrix, limits, space.constraints, strict=True):
        zero = dict.fromkeys(space.names, Fraction(0))
        exact = [
            float(constraint.evaluate(zero) - constraint.evaluate({**zero, name: Fraction(1)})) for name in space.names
        ]
        np.testing.assert_allclose(row, exact, rtol=1e-15, atol=0)
        assert 0 <= Fraction(limit) - constraint.evaluate(zero) < Fraction(1, 10**14)


@pytest.mark.slow
@given(polytopes(), st.tuples(*[coefficients] * 3))
def test_contains_is_decided_exactly(polytope, point):
    space, bounds, rows = polytope
    point = point[: space.dimension]
    assert space.contains(point) == is_inside(point, bounds, rows)
    assert space.contains(dict(zip(reversed(space.names), reversed(point), strict=True))) == is_inside(
        point, bounds, rows
    )


def clip(polygon, offset, slopes):
    """Return the part of a convex polygon where offset + slopes * point >= 0 (Sutherland and Hodgman 1974)."""
    kept = []
    for x, y in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        at_x, at_y = offset + dot(slopes, x), offset + dot(slopes, y)
        if at_x >= 0:
            kept.append(x)
        if at_x * at_y < 0:
            kept.append(tuple(u + (v - u) * at_x / (at_x - at_y) for u, v in zip(x, y, strict=True)))
    return kept


@given(polytopes(dimension=2))
def test_vertices_in_the_plane_are_those_of_the_clipped_rectangle(polytope):
    space, ((left, right), (bottom, top)), rows = polytope
    polygon = [(left, bottom), (right, bottom), (right, top), (left, top)]
    for offset, slopes in rows:
        polygon = clip(polygon, offset, slopes)
    found = [tuple(vertex[name] for name in space.names) for vertex in space.vertices]
    assert len(set(found)) == len(found)
    assert set(found) == set(polygon)


def determinant(m):
    return sum(m[0][i] * (m[1][i - 2] * m[2][i - 1] - m[1][i - 1] * m[2][i - 2]) for i in range(3))


@given(polytopes(dimension=3))
@settings(max_examples=examples(50))
def test_vertices_in_space_are_the_feasible_meeting_points_of_three_planes(polytope):
    space, bounds, rows = polytope
    planes = [(-end, tuple(Fraction(i == j) for j in range(3))) for i, pair in enumerate(bounds) for end in pair] + rows
    expected = set()
    for chosen in combinations(planes, 3):
        slopes = [list(row) for _, row in chosen]
        if (whole := determinant(slopes)) != 0:  # Cramer's rule
            replaced = [
                [[-chosen[i][0] if k == j else slopes[i][k] for k in range(3)] for i in range(3)] for j in range(3)
            ]
            expected.add(tuple(determinant(matrix) / whole for matrix in replaced))
    expected = {point for point in expected if is_inside(point, bounds, rows)}
    assert {tuple(vertex[name] for name in space.names) for vertex in space.vertices} == expected


@pytest.mark.parametrize("n", range(1, 6))
def test_a_simplex_has_its_unit_points_and_the_origin(n):
    names = [f"w{i}" for i in range(n)]
    found = {tuple(vertex[name] for name in names) for vertex in ParameterSpace.simplex(*names).vertices}
    assert found == {tuple(int(i == j) for j in range(n)) for i in range(n + 1)}


def test_a_cube_has_its_corners_until_they_are_too_many():
    found = {tuple(vertex.values()) for vertex in ParameterSpace.unit(*NAMES).vertices}
    assert found == set(product([0, 1], repeat=3))
    assert ParameterSpace.unit().vertices == ({},)
    assert comb(18, 9) > 20_000
    assert ParameterSpace.unit(*(f"x{i}" for i in range(9))).vertices is None


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.filter_too_much])  # many cuts are of a parameter that there is not
@given(polytopes(), st.lists(st.tuples(coefficients, coefficients, st.integers(0, 2)), min_size=1, max_size=3))
def test_cutting_by_one_parameter_tightens_its_bounds_exactly(polytope, cuts):
    space, bounds, _ = polytope
    expected = list(bounds)
    for offset, slope, j in cuts:
        assume(slope and j < space.dimension)
        low, high = expected[j]
        root = -offset / slope
        expected[j] = (max(low, root), high) if slope > 0 else (low, min(high, root))
        assume(expected[j][0] <= expected[j][1])
    tighter = space.cut([offset + slope * (b, c, a)[j] for offset, slope, j in cuts])
    assert tighter.bounds == tuple(expected)
    assert tighter.constraints == space.constraints


@pytest.mark.parametrize("constraint", [b - b, Polynomial(0), Polynomial(2), a - a])
def test_a_constraint_that_always_holds_changes_nothing(constraint):
    space = ParameterSpace.unit("b", "c").cut([1 - b - c, constraint])
    assert space.bounds == ((0, 1), (0, 1))
    assert len(space.vertices) == 3
    assert space.cut([1 - b - c, 2 - 1 - (c + b)]) == space


@pytest.mark.parametrize("n", [1, 2, 10, 100, 5000])
def test_the_generic_point_lies_inside_the_box(n):
    bounds = tuple((Fraction(-i), Fraction(1, 2)) for i in range(n))
    values = ParameterSpace(tuple(f"x{i}" for i in range(n)), bounds).generic_point().values()
    assert all(low < value < high for (low, high), value in zip(bounds, values, strict=True))


BOX = ParameterSpace.box({"b": (0, 1), "c": ("1/3", 0.5)})


def test_misuse_is_refused_by_name():
    refused("polynomials:spaces", globals())


# Mean and covariance of parameter spaces, against closed forms and sampling


p, q, r = pl.parameters("p", "q", "r")


def sampled(space, n=400_000):
    """Return mean and covariance of the uniform law, by rejection."""
    points = np.random.default_rng(1).uniform(space.lower, space.upper, (n, space.dimension))
    rows, offsets = space.inequalities
    inside = points[(points @ rows.T <= offsets).all(axis=1)]
    return inside.mean(axis=0), np.cov(inside.T)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 50])
def test_a_simplex_has_the_moments_of_dirichlet(d):
    """Of d + 1 weights with the Dirichlet law of ones, the mean is 1/(d+1), and Cov = (p [i=j] - p²)/(d+2)."""
    mean, covariance = moments(pl.ParameterSpace.simplex(*(f"w{i}" for i in range(d))))
    share = 1 / (d + 1)
    assert mean == pytest.approx(np.full(d, share))
    assert covariance == pytest.approx((share * np.eye(d) - share**2) / (d + 2))


def test_a_box_with_fifty_parameters_needs_no_corners():
    mean, covariance = moments(pl.ParameterSpace.box({f"w{i}": (0, i + 1) for i in range(50)}))
    assert mean == pytest.approx((np.arange(50) + 1) / 2)
    assert covariance == pytest.approx(np.diag((np.arange(50) + 1.0) ** 2 / 12))


def test_constraints_that_say_nothing_change_nothing():
    simplex = pl.ParameterSpace.simplex("p", "q", "r")
    for space, more in ((simplex, [2 - p - q, 1 - p / 2 - r / 3]), (pl.ParameterSpace.unit("p", "q"), [2 - p - q])):
        for one, other in zip(moments(space), moments(space.cut(more)), strict=True):
            assert np.array_equal(one, other)


@pytest.mark.parametrize(
    "constraints",
    [[1 - p - q, p - q], [p + q - 1], [p + q - r, p - q / 2, r - q], [1 - p - q - r, 3 * p + q - r - 1 / 4]],
    ids=str,
)
def test_other_spaces_have_about_the_moments_of_their_points(constraints):
    """The barrier gives an inner point, and a covariance within a factor of three in every direction."""
    space = pl.ParameterSpace.unit("p", "q", "r").cut(constraints)
    mean, covariance = moments(space)
    expected, spread = sampled(space)
    assert space.contains([float(x.round(12)) for x in mean])
    assert (mean - expected) @ np.linalg.solve(spread, mean - expected) < 1
    ratios = np.linalg.eigvals(np.linalg.solve(spread, covariance)).real
    assert 1 / 3 < ratios.min() <= ratios.max() < 3


def test_the_barrier_of_a_simplex_and_a_box_is_what_theory_says():
    """(d+2)/(d+1) times the covariance for a simplex without its upper bounds, 1.5 times for a box."""
    d = 3
    rows, offsets = np.vstack([-np.eye(d), np.ones((1, d))]), np.append(np.zeros(d), 1.0)
    centre, covariance = _analytic_centre(rows, offsets, np.full(d, 0.1))
    mean, expected = moments(pl.ParameterSpace.simplex("p", "q", "r"))
    assert centre == pytest.approx(mean)
    assert covariance == pytest.approx(expected * (d + 2) / (d + 1))
    rows, offsets = np.vstack([-np.eye(d), np.eye(d)]), np.append(np.zeros(d), np.ones(d))
    assert _analytic_centre(rows, offsets, np.full(d, 0.1))[1] == pytest.approx(1.5 * np.eye(d) / 12)


def test_flat_spaces_and_known_parameters_have_a_covariance_that_can_be_inverted():
    line = pl.ParameterSpace.unit("p", "q").cut([p - q, q - p])
    known = pl.ParameterSpace.box({"p": (0, 1), "q": ("1/4", "1/4")})
    point = pl.ParameterSpace.box({"p": ("1/2", "1/2"), "q": ("1/4", "1/4")})
    short = pl.ParameterSpace.unit("p", "q").cut([p + q - 0.5, 0.5 - p - q])
    for space, middle in ((line, (0.5, 0.5)), (known, (0.5, 0.25)), (point, (0.5, 0.25)), (short, (0.25, 0.25))):
        mean, covariance = moments(space)
        assert mean.tolist() == list(middle)
        assert np.linalg.eigvalsh(covariance).min() > 0


def test_signs_over_a_space_are_shown_or_not_claimed():
    simplex = pl.ParameterSpace.simplex("p", "q")
    assert all(is_nonnegative(f, simplex) for f in (p, 1 - p, 1 - p - q, 2 - 2 * p - 2 * q, 1 - p / 2 - q))
    assert not any(is_nonnegative(f, simplex) for f in (p - q, -p, 1 - 2 * p - q, p - 1))
    large = pl.ParameterSpace.simplex(*(f"w{i}" for i in range(30)))  # too many corners to list
    weights = pl.parameters(*large.names)
    assert is_nonnegative(1 - sum(weights, 0 * weights[0]), large)
    assert not is_nonnegative(1 - 2 * sum(weights, 0 * weights[0]), large)


def pair(first, second):
    """Return constraints that tie two parameters, so that neither a box nor a simplex is left."""
    return [1 - first / 2 - second, first + second / 3 - 1 / 8, 2 - first - 3 * second / 2]


def test_a_product_of_blocks_has_the_moments_of_the_whole_searched_at_once(monkeypatch):
    """Two pairs and a single parameter: the barrier is a sum, so its minimum and its curvature are those of blocks."""
    u, v, w, x = pl.parameters("u", "v", "w", "x")
    space = pl.ParameterSpace.unit("u", "p", "v", "w", "x").cut([*pair(u, v), *pair(w, x)])
    in_blocks = moments.__wrapped__(space)
    monkeypatch.setattr(space_moments, "independent_blocks", whole)
    at_once = moments.__wrapped__(space)
    for one, other in zip(in_blocks, at_once, strict=True):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-12)
    alone = moments(pl.ParameterSpace.unit("u", "v").cut(pair(u, v)))
    assert in_blocks[0][[0, 2]] == pytest.approx(alone[0], rel=1e-12)
    assert in_blocks[1][np.ix_([0, 2], [0, 2])] == pytest.approx(alone[1], rel=1e-9)


def whole(rows):
    return [(np.arange(rows.shape[1]), np.arange(len(rows)))]


def test_a_product_with_a_flat_block_is_flat():
    u, v = pl.parameters("u", "v")
    space = pl.ParameterSpace.unit("p", "q", "u", "v").cut([p - q, q - p, *pair(u, v)])
    mean, covariance = moments(space)
    assert space.contains([float(x.round(12)) for x in mean])
    assert np.linalg.eigvalsh(covariance).min() > 0


# Blocks of variables are the connected components of what rows tie together, by SciPy's search for them


@pytest.mark.slow
def test_blocks_are_connected_components_and_their_rows_in_order_of_their_first_variables():
    rng, n_several = np.random.default_rng(1), 0
    for _ in range(300):
        n, d = int(rng.integers(0, 20)), int(rng.integers(1, 12))
        rows = rng.integers(-3, 4, (n, d)) * (rng.random((n, d)) < 0.4 * rng.random())
        found = independent_blocks(rows.astype(float))
        if not rows.any():
            assert [(len(columns), len(own)) for columns, own in found] == [(d, n)]
            continue
        _, label = connected_components(csr_array(rows != 0).T @ csr_array(rows != 0), directed=False)
        assert [columns.tolist() for columns, _ in found] == [
            np.flatnonzero(label == b).tolist() for b in np.unique(label)
        ]
        for number, (columns, own) in enumerate(found):
            is_about = (rows[:, columns] != 0).any(axis=1) | ((rows == 0).all(axis=1) & (number == 0))
            assert own.tolist() == np.flatnonzero(is_about).tolist()
        n_several += len(found) > 1
    assert n_several > 100


def test_a_long_chain_whose_variables_are_in_no_order_is_one_block():
    rows = (np.eye(200) + np.eye(200, k=1))[:-1, np.random.default_rng(2).permutation(200)]
    ((columns, own),) = independent_blocks(rows)
    assert len(columns) == 200
    assert len(own) == 199

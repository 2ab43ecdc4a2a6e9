"""Regions by hand: small sets whose minima, vertices and conflicts can be calculated on paper."""

from fractions import Fraction

import numpy as np
import pytest

import plumdp as pl
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.region import vertices
from plumdp.region.build import build_region, project
from plumdp.region.conflict import Conflict, estimate_multipliers
from plumdp.region.ellipsoid import build_ellipsoid
from plumdp.region.find import holds, moved_into
from plumdp.region.shapes import Box, Polytope, bounding_box, intersection

P, Q, R = pl.parameters("p", "q", "r")
UNIT = pl.ParameterSpace.unit("p", "q")


def near(value):
    return pytest.approx(value, abs=1e-12)


def region_of(space, polynomials, lower, upper):
    region = build_region(space, polynomials, lower, upper)
    assert isinstance(region, Polytope)
    return region


def conflict_of(space, polynomials, lower, upper):
    conflict = build_region(space, polynomials, lower, upper)
    assert isinstance(conflict, Conflict)
    return conflict


def triangle():
    """Return p, q >= 0 with p + q <= 1/2, as a region of the unit square."""
    return region_of(UNIT, [P + Q], [0], [0.5])


def test_a_triangle_has_its_three_corners_and_the_minima_they_give():
    """p + q least 0 at (0, 0); p - q least -1/2 at (0, 1/2); 3q - p least -1/2 at (1/2, 0)."""
    region = triangle()
    corners = {tuple(corner) for corner in (region.table.vertices * region.scale).round(9) + 0.0}
    assert corners == {(0, 0), (0.5, 0), (0, 0.5)}
    values = region.minimise(np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 3.0], [0.0, 0.0]]))
    assert values == near([0, -0.5, -0.5, 0])
    assert values[3] == 0


def test_edges_of_the_table_lead_to_and_fro():
    table = triangle().table
    for v in range(len(table)):
        for end in table.neighbours[v]:
            assert v in table.neighbours[end]
    assert table.is_complete
    assert (table.margin < 1e-12).all()


def test_without_data_the_region_is_the_space():
    """Of the simplex p + q + r <= 1: p + 2q + 3r is least 0 and at most 3."""
    region = region_of(pl.ParameterSpace.simplex("p", "q", "r"), [], [], [])
    assert (region.lower == 0).all()
    assert region.upper == near([1, 1, 1])
    assert -region.minimise(np.array([[-1.0, -2.0, -3.0]])) == near([3])


def test_intervals_that_say_nothing_change_nothing():
    region = region_of(UNIT, [P, P - Q], [-np.inf, -np.inf], [np.inf, 2])
    assert (region.lower == 0).all()
    assert (region.upper == 1).all()


def test_one_parameter_is_cut_from_both_sides():
    """p in [0.4, 0.5] and 1 - p in [0.3, 0.55], so that p is in [0.45, 0.5]."""
    region = region_of(pl.ParameterSpace.unit("p"), [P, 1 - P], [0.4, 0.3], [0.5, 0.55])
    assert (region.lower, region.upper) == (near([0.45]), near([0.5]))


def test_equations_leave_one_point():
    """p = 1/4 and q = 1/2, and p + q = 3/4 which says no more: p - q is -1/4."""
    bounds = [0.25, 0.5, 0.75]
    region = region_of(UNIT, [P, Q, P + Q], bounds, bounds)
    assert (region.lower, region.upper) == (near([0.25, 0.5]), near([0.25, 0.5]))
    lower, upper = project(region, ExpressionTable.build([P - Q], ("p", "q")))
    assert (lower, upper) == (near([-0.25]), near([-0.25]))


def test_a_known_parameter_and_one_of_another_size_are_no_trouble():
    """p is 1/3 and p + q/100 in [0.5, 0.6], so that q is in [50/3, 80/3]."""
    space = pl.ParameterSpace.box({"p": (Fraction(1, 3), Fraction(1, 3)), "q": (0, 100)})
    region = region_of(space, [P + Q / 100], [0.5], [0.6])
    assert (region.lower, region.upper) == (near([1 / 3, 50 / 3]), near([1 / 3, 80 / 3]))


def test_a_model_without_parameters_has_a_region_of_one_point():
    table = ExpressionTable.build([Polynomial(Fraction(1, 3)), Polynomial(1)], ())
    region = region_of(pl.ParameterSpace.box({}), table, [0.2, 0.9], [0.5, 1])
    assert region.minimise(np.zeros((2, 0))).tolist() == [0, 0]
    lower, upper = project(region, table)
    assert lower[0] < Fraction(1, 3) < upper[0]
    assert upper[0] == np.nextafter(lower[0], 1)
    assert lower[1] == upper[1] == 1


def test_constants_project_to_themselves():
    lower, upper = project(triangle(), ExpressionTable.build([Polynomial(1), Polynomial("3/4"), P], ("p", "q")))
    assert lower[:2].tolist() == upper[:2].tolist() == [1, 0.75]


def test_the_box_around_a_region_gives_wider_intervals_than_the_region():
    """Over the triangle p + q is at most 1/2; over its box at most 1."""
    region = triangle()
    table = ExpressionTable.build([P + Q, P], ("p", "q"))
    box = Box(region.names, *bounding_box(region))
    assert project(region, table)[1] == near([0.5, 0.5])
    assert project(box, table)[1] == near([1, 0.5])
    assert project(box, table)[0] == near([0, 0])
    assert (box.minimise(np.array([[0.1, 0.2], [-0.1, 0.2]])) <= [0, -0.05]).all()


def test_three_intervals_that_exclude_each_other_are_named_with_their_stretch():
    """p <= 0.3 and q <= 0.55 but p + q >= 0.9: missed by 0.05, with half widths 3 · 0.025, so stretch by 5/3."""
    conflict = conflict_of(UNIT, [P - Q, P, Q, P + Q], [-0.5, 0.25, 0.5, 0.9], [0.5, 0.3, 0.55, 0.95])
    assert sorted(conflict.expressions) == [1, 2, 3]
    assert conflict.stretch == pytest.approx(5 / 3, rel=1e-9)
    signs = {f: np.sign(m) for f, m in zip(conflict.expressions, conflict.multipliers, strict=True)}
    assert signs == {1: 1, 2: 1, 3: -1}
    assert set(conflict.constraints) == {"p in [0.25, 0.3]", "q in [0.5, 0.55]", "p + q in [0.9, 0.95]"}
    assert "1.67 times as wide" in str(conflict)


def test_a_conflict_with_the_space_names_the_part_of_the_space():
    """In the simplex p + q <= 1, but the data say p >= 0.6 and q >= 0.5."""
    conflict = conflict_of(pl.ParameterSpace.simplex("p", "q"), [P, Q], [0.6, 0.5], [0.7, 0.7])
    assert set(conflict.constraints) == {"-p - q + 1 >= 0", "p in [0.6, 0.7]", "q in [0.5, 0.7]"}


def test_a_bound_outside_the_box_names_the_parameter():
    conflict = conflict_of(pl.ParameterSpace.box({"p": (0, 0.5)}), [P], [0.6], [0.7])
    assert conflict.constraints == ("p in [0, 0.5]", "p in [0.6, 0.7]")


def test_points_that_exclude_each_other_cannot_be_stretched():
    conflict = conflict_of(UNIT, [P, Q, P + Q], [0.25, 0.5, 0.9], [0.25, 0.5, 0.9])
    assert conflict.stretch == np.inf
    assert "wide" not in str(conflict)


@pytest.mark.parametrize("space", [pl.ParameterSpace.box({}), UNIT])
def test_a_constant_outside_its_interval_is_a_conflict(space):
    """1/3 is 7/60 off the middle of [0.4, 0.5], which is 7/3 half widths."""
    conflict = conflict_of(space, [Polynomial(Fraction(1, 3))], [0.4], [0.5])
    assert conflict.expressions == (0,)
    assert conflict.stretch == pytest.approx(7 / 3)


def test_an_interval_that_is_empty_by_itself_is_a_conflict():
    assert set(conflict_of(UNIT, [P], [0.5], [0.4]).expressions) == {0}


def test_what_floats_can_tell_apart_is_a_conflict_and_what_they_cannot_is_none():
    assert isinstance(build_region(UNIT, [P, P + Q - Q / 2], [0.5, 0], [0.6, 0.5 - 1e-9]), Conflict)
    assert isinstance(build_region(UNIT, [P, P + Q / 2], [0.5, 0], [0.6, 0.5 - 1e-14]), Polytope)


def test_bounds_are_in_order_even_if_the_region_is_empty_by_a_rounding_error():
    region = region_of(UNIT, [P, P + Q / 2], [0.5, 0], [0.6, 0.5 - 1e-13])
    lower, upper = project(region, ExpressionTable.build([P, Q, P + Q], ("p", "q")))
    assert (lower <= upper).all()
    assert (region.lower <= region.upper).all()


def test_a_space_without_points_is_refused():
    space = pl.ParameterSpace.box({"p": (0, 1), "q": (0, 1)}, constraints=[P + Q - Fraction(3, 2), 1 - P - Q])
    with pytest.raises(pl.ModelError, match="the parameter space is empty"):
        build_region(space, [P], [0], [1])


def test_products_that_the_region_does_not_know_are_refused_by_name():
    with pytest.raises(pl.ModelError, match=r"p\*q is not affine"):
        project(triangle(), ExpressionTable.build([P * Q], ("p", "q")))


def test_bounds_must_be_one_number_for_each_expression():
    with pytest.raises(pl.DataError, match="one number for each"):
        build_region(UNIT, [P, Q], [0], [1, 1])
    with pytest.raises(pl.DataError, match="upper bound of expression 1 is not a number"):
        build_region(UNIT, [P, Q], [0, 0], [1, np.nan])


def test_expressions_may_come_as_a_table():
    table = ExpressionTable.build([P, P + Q], ("p", "q"))
    as_table = region_of(UNIT, table, [0.1, 0.2], [0.2, 0.4])
    as_list = region_of(UNIT, [P, P + Q], [0.1, 0.2], [0.2, 0.4])
    assert as_table.upper.tolist() == as_list.upper.tolist()


def test_more_rows_shrink_the_region_and_redundant_ones_are_dropped():
    rng = np.random.default_rng(1)
    weights = [Fraction(int(k), 997) for k in rng.permutation(996)[:300] + 1]
    polynomials = [P * w + Q * (1 - w) for w in weights]
    true = np.array([float(0.3 * w + 0.6 * (1 - w)) for w in weights])
    half = rng.uniform(0.01, 0.1, 300)
    all_of_them = region_of(UNIT, polynomials, true - half, true + half)
    half_of_them = region_of(UNIT, polynomials[:150], true[:150] - half[:150], true[:150] + half[:150])
    assert (all_of_them.lower >= half_of_them.lower - 1e-12).all()
    assert (all_of_them.upper <= half_of_them.upper + 1e-12).all()
    assert len(all_of_them.rows) < 60


def test_a_walk_goes_on_from_where_it_was():
    region = triangle()
    objectives = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 3.0]])
    position, is_optimal = region.graph.walk(objectives)
    again, _ = region.graph.walk(objectives * 1.01, position)
    assert is_optimal.all()
    assert again.tolist() == position.tolist()


def test_minima_stay_tight_when_memory_allows_for_few_vertices_only(monkeypatch):
    """The cube of dimension 9 has 512 vertices; with room for 64 the simplex method does the rest."""
    names = tuple("abcdefghi")
    objectives = np.random.default_rng(2).normal(size=(300, 9))
    exact = np.minimum(objectives, 0).sum(axis=1)
    monkeypatch.setattr(vertices, "_MAX_BYTES", 2**10)
    region = region_of(pl.ParameterSpace.unit(*names), [], [], [])
    assert region.minimise(objectives) == near(exact)
    assert not region.graph.walk(objectives)[1].all()
    assert not region.table.is_complete
    assert len(region.table) == 64


def test_high_dimension_needs_no_list_of_all_vertices():
    """A cube of dimension 40 has 10^12 vertices; the minimum is at the corner that the signs point to."""
    names = tuple(f"p{i}" for i in range(40))
    region = region_of(pl.ParameterSpace.unit(*names), [], [], [])
    objectives = np.random.default_rng(3).normal(size=(20, 40))
    assert region.minimise(objectives) == pytest.approx(np.minimum(objectives, 0).sum(axis=1), abs=1e-11)


def test_what_the_linear_program_cannot_solve_is_no_answer():
    """Without a row that bounds it, a free variable has no minimum."""
    row, first = np.array([[1.0]]), np.array([0])
    assert estimate_multipliers(np.ones(1), row, np.ones(1), first) is None
    found = estimate_multipliers(-np.ones(1), row, np.ones(1), first)
    assert found is not None
    assert found[1] == near([1])


def random_conflict(n):
    """Return the conflict of ``n`` random intervals of affine expressions in three parameters."""
    rng = np.random.default_rng(n)
    p, q, r = pl.parameters("p", "q", "r")
    weights = rng.integers(-9, 10, (n, 3)).tolist()
    lower = rng.uniform(-0.35, 0.25, n)
    polynomials = [a * p / 30 + b * q / 30 + c * r / 30 for a, b, c in weights]
    return conflict_of(pl.ParameterSpace.unit("p", "q", "r"), polynomials, lower, lower + rng.uniform(0.02, 0.2, n))


@pytest.mark.parametrize(
    ("n", "expressions", "stretch"),
    [
        (3, (0, 1, 2), 2.1401974569200855),
        (5, (0, 1, 3), 1.9031269239498299),
        (8, (4, 5), 10.225635285825765),
        (20, (4, 16, 18), 7.890838986528233),
        (40, (3, 17, 26, 36), 8.493033302679429),
        (100, (7, 26, 86), 16.028632304634833),
        (300, (3, 171), 22.80071772707826),
        (1000, (487, 801), 32.21591715782523),
    ],
)
def test_the_stretch_of_conflicts_is_the_largest_that_can_be_proved(n, expressions, stretch):
    """The numbers are those of HiGHS by its own interface, which starts each round from the last one's basis."""
    conflict = random_conflict(n)
    assert conflict.expressions == expressions
    assert conflict.stretch == pytest.approx(stretch, rel=3e-13)


def test_the_linear_program_gets_the_rows_that_it_misses():
    """Least x + y over the tangents of a circle of radius 1 about (2, 2): 4 - sqrt(2), up to their number."""
    angle = np.linspace(0, 2 * np.pi, 1000)
    rows = np.column_stack([np.cos(angle), np.sin(angle)])
    offsets = 1 + 2 * rows.sum(axis=1)
    found = estimate_multipliers(np.ones(2), rows, offsets, np.array([400, 500, 700, 800]))
    assert found is not None
    used, multipliers = found
    assert -multipliers @ offsets[used] == pytest.approx(4 - np.sqrt(2), abs=1e-4)
    assert 4 < len(used) < 500


@pytest.mark.parametrize("seed", range(6))
def test_where_rows_almost_depend_on_each_other_no_vertex_is_lost(seed):
    """A prism of 20 sides, slanted by 10⁻⁵ each, and both ends of a cube: 22 faces make 2 · 22 - 4 vertices (Euler).

    A lost vertex is an edge that leads nowhere, where a walk ends and a bound is loose.
    """
    rng = np.random.default_rng(seed)
    turn, angle = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.uniform(0, 2 * np.pi, 20)
    sides = np.outer(np.cos(angle), turn[0]) + np.outer(np.sin(angle), turn[1]) + 1e-5 * rng.normal(size=(20, 3))
    offsets = sides @ rng.uniform(0.3, 0.7, 3) + 1e-3
    cube = np.vstack([-np.eye(3), np.eye(3)]), np.repeat([0.0, 1.0], 3)
    region = intersection(("p", "q", "r"), np.vstack([cube[0], sides]), np.append(cube[1], offsets))
    assert isinstance(region, Polytope)
    assert len(region.table) == 40
    assert (region.table.neighbours >= 0).all()


# Whether a region holds a point


def test_a_region_holds_points_as_their_definition_says():
    square, product = region_of(UNIT, [], [], []), region_of(UNIT, [P * Q * Q], [0.25], [0.5])
    disc = build_ellipsoid(np.array([0.25, 0.5]), np.eye(2), 0.5, within=square)
    for point in np.random.default_rng(1).uniform(-0.2, 1.2, (500, 2)):
        in_square = bool((point >= 0).all() and (point <= 1).all())
        assert holds(square, point) == in_square
        assert holds(disc, point) == (in_square and np.hypot(*(point - [0.25, 0.5])) <= 0.5)
        if holds(product, point):
            assert in_square
            assert 0.24 <= point[0] * point[1] ** 2 <= 0.51
        elif in_square:
            assert not 0.2501 <= point[0] * point[1] ** 2 <= 0.4999


def test_a_point_is_moved_by_no_more_than_rounding():
    simplex = region_of(pl.ParameterSpace.simplex("p", "q"), [], [], [])

    def moved(*point):
        return moved_into(simplex, np.array(point), inner=np.array([0.3, 0.3]))

    assert holds(simplex, moved(0.5, 0.5 + 1e-10))
    assert moved(0.5, 0.5 + 1e-10) == pytest.approx([0.5, 0.5], abs=1e-6)
    assert moved(0.5, 0.501) is None
    assert moved(0.2, -1e-12).tolist() == [0.2, 0.0]
    assert moved(0.2, 0.3).tolist() == [0.2, 0.3]

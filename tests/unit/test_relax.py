"""The four relaxations of one model, by hand: which intervals its transitions get, and from which points."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_intervals import with_ends
from random_pmdps import exact_vertices, random_intervals, random_problem
from refusals import refused
from row_models import row_model

import plumdp as pl
from plumdp.base.vocabulary import Relaxation
from plumdp.confidence.bounds import expression_bounds
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.region.build import build_region
from plumdp.region.shapes import Box
from plumdp.relaxation.intervals import IntervalMDP, check_rows
from plumdp.relaxation.relax import (
    RELAXATIONS,
    expression_wise,
    interval_wise,
    parameter_wise,
    rectangular,
    row_region,
    seen_from,
)
from plumdp.solver.nature import loops_for

a, b = pl.parameters("a", "b")
THIRD = Fraction(1, 3)


def model_of_two_rows():
    """Return a model with the rows a, b/2, rest and 1/3, 2/3."""
    rows = {"one": [a, b / 2, 1 - a - b / 2], "two": [THIRD, 2 * THIRD]}
    return row_model(rows, pl.ParameterSpace.unit("a", "b"))


@pytest.fixture
def model():
    return model_of_two_rows()


@pytest.fixture
def region(model):
    """a in [1/4, 1/2] and a + b in [1/2, 3/4]: a parallelogram with the box [1/4, 1/2] × [0, 1/2]."""
    return build_region(model.space, [a, a + b], [0.25, 0.5], [0.5, 0.75])


def intervals(model, imdp):
    """Return the interval of each expression."""
    ends = zip(imdp.lower.tolist(), imdp.upper.tolist(), strict=True)
    return dict(zip(model.expressions.polynomials, map(pytest.approx, ends), strict=True))


def known_bounds(model, *ends):
    nothing = pl.TransitionCounts(model.graph, np.zeros(model.graph.n_transitions, dtype=np.int64), "independent")
    bounds = expression_bounds(model, nothing)
    return with_ends(bounds, *ends) if ends else bounds


def test_each_expression_has_its_range_over_the_region(model, region):
    """At the vertices (1/4, 1/4), (1/4, 1/2), (1/2, 0), (1/2, 1/4) a + b/2 is 3/8, 1/2, 1/2, 5/8."""
    found = intervals(model, expression_wise(model, region))
    assert found[a] == (0.25, 0.5)
    assert found[b / 2] == (0, 0.25)
    assert found[1 - a - b / 2] == (0.375, 0.625)


def test_each_expression_has_its_range_over_the_box_around_the_region(model, region):
    """At the corners of the box a + b/2 is 1/4 to 3/4."""
    found = intervals(model, parameter_wise(model, region))
    assert found[a] == (0.25, 0.5)
    assert found[b / 2] == (0, 0.25)
    assert found[1 - a - b / 2] == (0.25, 0.75)


def test_each_expression_has_the_interval_of_the_data(model):
    lower, upper = np.linspace(0.1, 0.2, len(model.expressions)), np.linspace(0.3, 0.4, len(model.expressions))
    imdp = interval_wise(model, known_bounds(model, lower, upper))
    np.testing.assert_array_equal([imdp.lower, imdp.upper], [lower, upper])
    assert imdp.region is None


def test_known_probabilities_are_rounded_outward_by_one_float(model, region):
    for imdp in (
        interval_wise(model, known_bounds(model)),
        parameter_wise(model, region),
        expression_wise(model, region),
        rectangular(model, region),
    ):
        f = model.expressions.polynomials.index(Polynomial(THIRD))
        assert Fraction(imdp.lower[f]) < THIRD < Fraction(imdp.upper[f])
        assert imdp.upper[f] == np.nextafter(imdp.lower[f], 1)
        one = model.expressions.polynomials.index(Polynomial(1))
        assert imdp.lower[one] == imdp.upper[one] == 1


@pytest.mark.parametrize("relaxation", [parameter_wise, expression_wise, rectangular])
def test_a_relaxation_can_be_cut_to_another(model, region, relaxation):
    """Both hold what is true, and so does their intersection."""
    alone = relaxation(model, region)
    lower, upper = alone.lower.copy(), alone.upper.copy()
    lower[:2], upper[1:3] = (0.3, 0.1), (0.2, 1)
    cut = relaxation(model, region, within=interval_wise(model, known_bounds(model, lower, upper)))
    np.testing.assert_array_equal(cut.lower, [0.3, 0.1, *alone.lower[2:]])
    np.testing.assert_array_equal(cut.upper, [alone.upper[0], 0.2, *alone.upper[2:]])


def test_intervals_stay_probabilities(model, region):
    wide = interval_wise(model, known_bounds(model, np.full(6, -1.0), np.full(6, 2.0)))
    assert (wide.lower == 0).all()
    assert (wide.upper == 1).all()


def test_the_rectangular_relaxation_has_the_intervals_and_the_points(model, region):
    """The region of a row keeps its vertices, and what they give each expression."""
    imdp = rectangular(model, region)
    np.testing.assert_array_equal(imdp.lower, expression_wise(model, region).lower)
    rows = imdp.region
    values = rows.constants + rows.vertices.vertices @ rows.coefficients.T
    by_name = dict(zip(model.expressions.polynomials, values.T, strict=True))
    found = set(zip(by_name[a].round(9).tolist(), (by_name[b / 2].round(9) + 0.0).tolist(), strict=True))
    assert found == {(0.25, 0.125), (0.25, 0.25), (0.5, 0), (0.5, 0.125)}


def test_known_probabilities_can_be_added_to_the_region_of_a_row(model, region):
    rows = row_region(region, model.expressions)
    more = rows.with_constants(np.array([0.25, 0.75]))
    np.testing.assert_array_equal(more.constants, [*rows.constants, 0.25, 0.75])
    np.testing.assert_array_equal(more.coefficients[-2:], 0)
    assert more.vertices is rows.vertices


def test_the_tables_of_kernels_are_the_fields_in_their_order(model, region):
    rows = row_region(region, model.expressions)
    of = rows.vertices
    expected = (
        rows.coefficients,
        rows.constants,
        rows.sizes,
        of.vertices,
        of.edges,
        of.neighbours,
        of.margin,
        of.reach,
    )
    assert all(table is field for table, field in zip(rows.tables, expected, strict=False))
    assert [len(table) for table in rows.tables[len(expected) :]] == [0, 0, 0]  # one polytope for all kinds of rows


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_ranges_are_those_of_the_exact_vertices_rounded_outward(seed):
    """An affine expression has its least and largest value over a polytope at vertices; here found in rationals."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    model = problem.model
    bounds = random_intervals(rng, problem)
    region = build_region(model.space, model.expressions, *bounds)
    vertices = exact_vertices(model.space, model.expressions.polynomials, *bounds)
    imdp = check_rows(expression_wise(model, region))
    for f, polynomial in enumerate(model.expressions.polynomials):
        values = [polynomial.evaluate(vertex) for vertex in vertices]
        assert 0 <= min(values) - Fraction(imdp.lower[f]) < 1e-12
        assert 0 <= Fraction(imdp.upper[f]) - max(values) < 1e-12
    box = parameter_wise(model, region)
    for f, polynomial in enumerate(model.expressions.polynomials):
        low, high = box_range(polynomial, vertices)
        assert Fraction(box.lower[f]) <= max(low, 0)
        assert Fraction(box.upper[f]) >= min(high, 1)
        assert box.lower[f] == pytest.approx(float(max(low, 0)), abs=1e-12)
        assert box.upper[f] == pytest.approx(float(min(high, 1)), abs=1e-12)


def box_range(polynomial, points):
    """Return the range of an affine polynomial over the smallest box around some points: that over its corners."""
    sides = {name: {min(v[name] for v in points), max(v[name] for v in points)} for name in polynomial.names}
    values = [polynomial.evaluate(dict(zip(sides, corner, strict=True))) for corner in product(*sides.values())]
    return min(values), max(values)


@dataclass(frozen=True)
class Wrapped:
    """A region of a kind that the package does not know."""

    names: tuple
    lower: np.ndarray
    upper: np.ndarray

    def minimise(self, objectives):
        return Box(self.names, self.lower, self.upper).minimise(objectives)


@pytest.fixture
def new_kind(region):
    return Wrapped(region.names, region.lower, region.upper)


def test_a_new_kind_of_region_has_the_relaxations_of_intervals_at_once(model, region, new_kind):
    expected = parameter_wise(model, region)
    np.testing.assert_allclose(parameter_wise(model, new_kind).lower, expected.lower, atol=1e-12)
    assert (expression_wise(model, new_kind).lower >= expected.lower - 1e-12).all()
    assert (expression_wise(model, new_kind).upper <= expected.upper + 1e-12).all()


def test_a_new_kind_of_region_is_rectangular_once_it_says_what_rows_see(model, new_kind):
    class Seen(Wrapped):
        pass

    seen_from.register(Seen, lambda region, expressions, lower, upper: ("seen", len(expressions), lower.shape))
    imdp = rectangular(model, Seen(new_kind.names, new_kind.lower, new_kind.upper))
    assert imdp.region == ("seen", len(model.expressions), (len(model.expressions),))
    with pytest.raises(
        TypeError, match=r"^nature cannot pick points of a Wrapped: choose the relaxation 'expression'$"
    ):
        rectangular(model, new_kind)


def test_rows_that_the_solver_has_no_loops_for_are_refused(new_kind):
    with pytest.raises(TypeError, match=r"^nature cannot pick from Wrapped: register loops for it in solver/nature$"):
        loops_for(new_kind, 1, 1, 0)


def test_every_relaxation_that_users_may_name_is_in_the_table_from_loose_to_tight():
    assert tuple(RELAXATIONS) == get_args(Relaxation)
    names = list(RELAXATIONS)
    for name, relaxation in RELAXATIONS.items():
        assert all(names.index(looser) < names.index(name) for looser in relaxation.looser)


def test_the_table_calls_a_relaxation_looser_only_if_its_intervals_are(model, region):
    bounds = known_bounds(model)
    built = {name: each.build(model, bounds, region) for name, each in RELAXATIONS.items()}
    for name, each in RELAXATIONS.items():
        for looser in each.looser:
            assert (built[looser].lower <= built[name].lower).all()
            assert (built[looser].upper >= built[name].upper).all()


# Interval MDPs from arrays


GOOD = {
    "first_choice": [0, 2, 3],
    "first_transition": [0, 2, 3, 4],
    "successor": [0, 1, 1, 1],
    "lower": [0.1, 0.5, 1, 1],
    "upper": [0.5, 0.9, 1, 1],
    "states": {"x": [0, 1]},
    "action": [0, 1, 1],
    "action_names": ("go", "stay"),
}


def test_bad_arrays_are_refused_with_their_reason():
    refused("solver:arrays", lambda change: IntervalMDP.from_arrays(**(GOOD | eval(change))))


def test_good_arrays_are_taken_as_they_are():
    imdp = IntervalMDP.from_arrays(**GOOD)
    assert imdp.graph.describe_choice(1) == "state (x=0), action 'stay'"
    assert imdp.lower[imdp.expression].tolist() == GOOD["lower"]

"""Regions of polynomial expressions against what points of the space do, in exact arithmetic and by local search.

The set U of all points at which the expressions lie within their intervals is known by its members: points of the
space, found by sampling or by walking to the ends of an expression's range, are tested exactly. Every one of them must
lie in the lifted polytope, and no bound may exclude its value.
"""

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from shorthand import compare
from tiers import examples

import plumdp as pl
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.region import build as lifting
from plumdp.region.build import build_region, project
from plumdp.region.conflict import Conflict
from plumdp.region.half_spaces import in_variables
from plumdp.region.mccormick import ProductVariables
from plumdp.region.shapes import Box, Polytope

pytestmark = pytest.mark.slow

NAMES = ("p", "q", "r", "s")
P, Q, R, S = pl.parameters(*NAMES)
fractions = st.fractions(-2, 2, max_denominator=12)


@st.composite
def polynomials(draw, n, degree, max_terms=3):
    """Draw a polynomial of at most the given degree in the first n parameters; not a constant."""
    exponents = st.lists(st.integers(0, n - 1), min_size=0, max_size=degree).map(
        lambda factors: tuple(factors.count(i) for i in range(n))
    )
    some = draw(st.dictionaries(exponents, fractions.filter(bool), min_size=1, max_size=max_terms))
    return sum((c * monomial(e) for e, c in some.items()), Polynomial(0))


def monomial(exponents):
    return prod((x**k for x, k in zip((P, Q, R, S), exponents, strict=False)), start=Polynomial(1))


@st.composite
def problems(draw):
    """Draw a space, distinct polynomials of degree up to 5 in up to 4 parameters, intervals, and a point within all."""
    n = draw(st.integers(1, 4))
    names = NAMES[:n]
    drawn = draw(st.lists(polynomials(n, draw(st.integers(2, 5))), min_size=1, max_size=3, unique=True))
    expressions = [f for f in drawn if not f.is_constant] + [P * P, P * Q if n > 1 else P]
    if draw(st.booleans()):
        space = pl.ParameterSpace.simplex(*names)
    else:
        low = draw(st.sampled_from([Fraction(0), Fraction(-1), Fraction(1, 3)]))
        space = pl.ParameterSpace.box(dict.fromkeys(names, (low, 1)))
    inside = st.sampled_from(random_points(space, 20, seed=draw(st.integers(0, 99))))
    point = draw(inside)
    width = draw(st.sampled_from([Fraction(1), Fraction(1, 20), Fraction(1, 1000)]))
    values = [f.evaluate(point) for f in dict.fromkeys(expressions)]
    share = [Fraction(draw(st.integers(0, 8)), 8) for _ in values]
    lower = [float(value - width * part) - 1e-12 for value, part in zip(values, share, strict=True)]
    upper = [float(value + width * (1 - part)) + 1e-12 for value, part in zip(values, share, strict=True)]
    return space, list(dict.fromkeys(expressions)), np.array(lower), np.array(upper), point


def random_points(space, n, seed):
    """Return exact points of a space: mixtures of its vertices."""
    rng = np.random.default_rng(seed)
    vertices, points = space.vertices, []
    for parts in rng.dirichlet(np.full(len(vertices), 0.4), n):
        weights = [int(part) for part in np.round(2**20 * parts)]
        total = sum(weights)
        points.append(
            {x: sum(w * v[x] for w, v in zip(weights, vertices, strict=True)) / Fraction(total) for x in space.names}
        )
    return points


def is_within(expressions, lower, upper, point):
    values = (f.evaluate(point) for f in expressions)
    return all(Fraction(a) <= v <= Fraction(b) for v, a, b in zip(values, lower, upper, strict=True))


def members(space, expressions, lower, upper, point):
    """Return exact points of U: around the given one and at the ends of the ranges of some expressions."""
    rng = np.random.default_rng(1)
    table = ExpressionTable.build(expressions, space.names)
    start = np.array([float(point[name]) for name in space.names])
    candidates = [start + 10 ** rng.uniform(-6, 0) * rng.normal(size=len(start)) for _ in range(20)]
    for f in range(min(3, len(table))):
        for sign in (1, -1):
            candidates += ends_of_range(table, f, sign, lower, upper, start)
    exact = [dict(zip(space.names, map(Fraction, x.tolist()), strict=True)) for x in candidates]
    mixed = [{k: (63 * x[k] + point[k]) / 64 for k in x} for x in exact]  # what just misses U may lie in it now
    found = [x for x in [*exact[::-1], *mixed[::-1], *random_points(space, 20, 2)] if space.contains(x)]
    return [point, *(x for x in found if is_within(expressions, lower, upper, x))][:25]


def ends_of_range(table, f, sign, lower, upper, start):
    """Return where a local search from the start ends that makes an expression as small (or large) as U allows."""

    def value(x):
        return table.evaluate(x[None])[:, 0]

    within = {"type": "ineq", "fun": lambda x: np.append(value(x) - lower, upper - value(x))}
    with np.errstate(all="ignore"):
        found = minimize(lambda x: sign * value(x)[f], start, constraints=[within], options={"maxiter": 15})
    return [found.x] if np.isfinite(found.x).all() else []


def lifted(region, point):
    """Return the exact values of a region's variables at a point."""
    return [prod((Polynomial(1), *factors(name)), start=Polynomial(1)).evaluate(point) for name in region.names]


def rational(number):
    return fmpq(*Fraction(number).as_integer_ratio())


def exact(matrix):
    return fmpq_mat([[rational(x) for x in row] for row in matrix.tolist()])


def assert_at_most(values, bounds):
    """Require that no entry of a row of exact values is above the row's bound."""
    for row, bound in zip(values.tolist(), bounds.tolist(), strict=True):
        assert max(row) <= rational(bound)


def factors(name):
    for factor in name.split("*"):
        base, _, exponent = factor.partition("^")
        yield dict(zip(NAMES, (P, Q, R, S), strict=True))[base] ** int(exponent or 1)


@settings(max_examples=examples(30))
@given(problems())
@pytest.mark.filterwarnings("ignore")  # of the local search
def test_every_point_within_all_intervals_is_in_the_region_exactly_and_within_every_bound(problem):
    space, expressions, lower, upper, point = problem
    region = build_region(space, expressions, lower, upper)
    assert isinstance(region, Polytope)
    table = ExpressionTable.build(expressions, space.names)
    least, most = project(region, table)
    box = Box(space.names, region.lower[: space.dimension], region.upper[: space.dimension])
    box_least, box_most = project(box, table)
    objectives = np.random.default_rng(3).normal(size=(5, len(region.names)))
    minima = region.minimise(objectives)
    found = members(space, expressions, lower, upper, point)
    at = fmpq_mat([[rational(x) for x in lifted(region, member)] for member in found]).transpose()
    assert_at_most(exact(region.rows) * at, region.offsets)
    assert_at_most(exact(-objectives) * at, -minima)
    assert_at_most(at, region.upper)
    assert_at_most(-at, -region.lower)
    for member in found:
        for f, *bounds in zip(expressions, least, most, box_least, box_most, strict=True):
            assert max(bounds[0], bounds[2]) <= f.evaluate(member) <= min(bounds[1], bounds[3])


@settings(max_examples=examples(40))
@given(st.integers(1, 3).flatmap(lambda n: st.tuples(st.just(n), polynomials(n, 4, max_terms=5))), st.data())
def test_the_range_over_a_box_encloses_all_values_and_is_exact_for_multilinear_polynomials(drawn, data):
    n, f = drawn
    names = NAMES[:n]
    sides = [sorted((data.draw(fractions), data.draw(fractions))) for _ in names]
    box = Box(names, *(np.array([float(side[i]) for side in sides]) for i in (0, 1)))
    table = ExpressionTable.build([f, P * P * P], names)
    (low, _), (high, _) = project(box, table)
    grid = [
        [Fraction(a) + (Fraction(b) - Fraction(a)) * Fraction(k, 4) for k in range(5)]
        for a, b in zip(box.lower.tolist(), box.upper.tolist(), strict=True)
    ]
    values = [f.evaluate(dict(zip(names, x, strict=True))) for x in product(*grid)]
    assert Fraction(low) <= min(values)
    assert max(values) <= Fraction(high)
    if all(max(e) <= 1 for e in f.terms(names)):
        assert float(low) == pytest.approx(float(min(values)), abs=1e-12)
        assert float(high) == pytest.approx(float(max(values)), abs=1e-12)


def region_of(names, polynomials, lower, upper):
    region = build_region(pl.ParameterSpace.unit(*names), polynomials, lower, upper)
    assert isinstance(region, Polytope)
    return region


def test_products_over_a_box_of_parameters_have_their_exact_ranges():
    """With p in [1/4, 1/2] and q in [1/2, 3/4], p q and p (1 - q) are extreme at corners: McCormick is exact there."""
    region = region_of(("p", "q"), [P, Q, P * Q], [0.25, 0.5, 0], [0.5, 0.75, 1])
    assert region.names == ("p", "q", "p*q")
    lower, upper = project(region, ExpressionTable.build([P * Q, P * (1 - Q)], ("p", "q")))
    assert (lower, upper) == (pytest.approx([0.125, 0.0625]), pytest.approx([0.375, 0.25]))


def test_what_no_corner_shows_is_found_by_cells():
    """p (1 - p) is at most 1/4, in the middle of the space; tangents at cells' corners come close."""
    region = region_of(("p",), [P * P], [0], [1])
    _, upper = project(region, ExpressionTable.build([P * (1 - P)], ("p",)))
    assert 0.25 <= upper[0] <= 0.2501 + 1 / 256


@pytest.mark.parametrize("n", [1, 2, 3])
def test_cells_only_make_bounds_tighter(n, monkeypatch):
    names = NAMES[:n]
    expressions = [f for f in (P * P * Q, P * Q - R * R, P * P, Q * Q, P * R, Q + R) if set(f.names) <= set(names)]
    table = ExpressionTable.build(expressions, names)
    lower, upper = np.full(len(table), -0.5), np.full(len(table), 0.4)
    with_cells = project(region_of(names, table, lower, upper), table)
    monkeypatch.setattr(lifting, "_CELLS", {})
    without = project(region_of(names, table, lower, upper), table)
    assert (with_cells[0] >= without[0] - 1e-9).all()
    assert (with_cells[1] <= without[1] + 1e-9).all()


def test_more_factorisations_than_a_chain_are_used():
    """With p q in [0.1, 0.2] and r s in [0.1, 0.2], p q r s is in [0.01, 0.04]: a chain p (q (r s)) cannot tell."""
    table = ExpressionTable.build([P * Q, R * S, P * Q * R * S], NAMES)
    region = region_of(NAMES, table, [0.1, 0.1, 0], [0.2, 0.2, 1])
    lower, upper = project(region, table)
    assert (lower[2], upper[2]) == (pytest.approx(0.01, abs=1e-9), pytest.approx(0.04, abs=1e-9))


def test_high_powers_need_few_variables():
    """p^64 in [0.5, 1] makes p at least 0.5^(1/64) = 0.98923; half the exponent again and again is enough to see it."""
    lift = ProductVariables.of(ExpressionTable.build([P**64], ("p",)))
    assert lift.names == ("p", "p^2", "p^4", "p^8", "p^16", "p^32", "p^64")
    region = region_of(("p",), [P**64], [0.5], [1])
    assert 0.9 < region.lower[0] <= 0.5 ** (1 / 64)


def test_every_product_of_a_lift_has_factors_in_it():
    expressions = [P**3 * Q**2, P * Q * R * S**2, Q**7 * S, (P + Q + R + S) ** 3]
    lift = ProductVariables.of(ExpressionTable.build(expressions, NAMES))
    made = {tuple(map(sum, zip(lift.variables[i], lift.variables[j], strict=True))) for i, j in lift.factorisations}
    assert set(lift.variables[4:]) <= made
    assert {tuple(e) for f in expressions for e in f.terms(NAMES)} <= {*lift.variables}


@settings(max_examples=examples(60))
@given(st.integers(1, 3), st.data())
def test_envelopes_are_at_least_zero_exactly_wherever_variables_are_within_bounds(n, data):
    names = NAMES[:n]
    table = ExpressionTable.build([data.draw(polynomials(n, 4)), P * P], names)
    lift = ProductVariables.of(table)
    sides = [sorted((data.draw(fractions), data.draw(fractions))) for _ in names]
    bounds = lift.bounds(tuple((a, b) for a, b in sides))
    point = {name: a + (b - a) * data.draw(st.fractions(0, 1)) for name, (a, b) in zip(names, sides, strict=True)}
    for x, (low, high) in zip(lift.polynomials, bounds, strict=True):
        assert low <= x.evaluate(point) <= high
    envelopes = lift.envelopes(bounds)
    assert all(f.evaluate(point) >= 0 for f in envelopes)
    assert in_variables(ExpressionTable.build(envelopes, names), lift.names).is_affine.all()


@pytest.mark.parametrize("seed", range(8))
def test_thin_regions_are_bounded_as_tightly_as_wide_ones(seed):
    """Polynomials of degree four within 10⁻⁵ of their values: in one parameter, a grid shows their true ranges.

    Points that miss a row by far more than rounding, if taken for vertices, made bounds up to 165 times as wide.
    """
    rng = np.random.default_rng([4, seed])
    terms = rng.integers(-20, 21, (15, 4)) / 20
    table = ExpressionTable.build([sum((c * P ** (k + 1) for k, c in enumerate(row)), 0 * P) for row in terms], ("p",))
    at = rng.uniform(0.1, 0.9)
    half = 1e-5 * 10 ** rng.uniform(-0.5, 0.5, len(table))
    middle = table.evaluate(np.array([[at]]))[:, 0] + half * rng.uniform(-0.8, 0.8, len(table))
    lower, upper = project(region_of(("p",), table, middle - half, middle + half), table)
    values = table.evaluate(at + np.linspace(-1e-3, 1e-3, 400_001)[:, None])
    inside = ((values >= (middle - half)[:, None]) & (values <= (middle + half)[:, None])).all(axis=0)
    attained = values[:, inside].max(axis=1) - values[:, inside].min(axis=1)
    assert (upper - lower <= 1.05 * attained).all()


def test_intervals_that_one_sum_proves_to_exclude_each_other_come_with_it():
    """p, q >= 0.9 make p q at least 0.8, by p q >= p + q - 1. The sum must be above zero on the whole square."""
    expressions, lower, upper = [P, Q, P * Q], [0.9, 0.9, 0.1], [0.95, 0.95, 0.2]
    conflict = build_region(pl.ParameterSpace.unit("p", "q"), expressions, lower, upper)
    assert isinstance(conflict, Conflict)
    assert conflict.expressions == (0, 1, 2)
    assert {"p in [0.9, 0.95]", "q in [0.9, 0.95]", "p*q in [0.1, 0.2]"} < set(conflict.constraints)
    for x, y in product(np.linspace(0, 1, 21), repeat=2):
        total = sum(
            m * (value - (high if m > 0 else low))
            for m, value, low, high in zip(conflict.multipliers, (x, y, x * y), lower, upper, strict=True)
        )
        assert total > 0
    assert conflict.stretch == pytest.approx(1 + 0.6 / (0.025 + 0.025 + 0.05))


@pytest.mark.parametrize(
    ("expressions", "lower", "upper"),
    [
        ([P, Q, P * Q], [0.5, 0.5, 0.1], [0.6, 0.6, 0.2]),  # p q is at least 0.25
        ([P, P * P], [0.4, 0.2], [0.41, 0.205]),  # p² is at most 0.1681
        ([P * P, P * P * P], [0.25, 0.5], [0.3, 0.51]),  # p³ is at most 0.1643
    ],
)
def test_intervals_that_only_tighter_bounds_prove_to_exclude_each_other_are_named(expressions, lower, upper):
    """In the whole space, the envelopes alone allow these intervals."""
    others = [Q / 2, Q / 3]
    bounds = [*lower, -1, -1], [*upper, 2, 2]
    conflict = build_region(pl.ParameterSpace.unit("p", "q"), [*expressions, *others], *bounds)
    assert isinstance(conflict, Conflict)
    assert conflict.expressions == tuple(range(len(expressions)))
    assert str(conflict).startswith(f"no parameters fit {expressions[0]} in [{lower[0]:g}, {upper[0]:g}] and ")


def test_intervals_that_every_cell_excludes_are_a_conflict(monkeypatch):
    """p² is at most 0.1681; without a round of tightening, the cells find that out."""
    monkeypatch.setattr(lifting, "_ROUNDS", 0)
    conflict = build_region(pl.ParameterSpace.unit("p"), [P, P * P], [0.4, 0.2], [0.41, 0.205])
    assert isinstance(conflict, Conflict)
    assert conflict.constraints == ("p in [0.4, 0.41]", "p^2 in [0.2, 0.205]")


def test_a_space_without_points_is_refused():
    space = pl.ParameterSpace.box({"p": (0, 1), "q": (0, 1)}, constraints=[P + Q - Fraction(3, 2), 1 - P - Q])
    with pytest.raises(pl.ModelError, match="the parameter space is empty"):
        build_region(space, [P * Q], [0], [1])


def test_products_that_a_region_does_not_know_are_refused_by_name():
    region = region_of(("p", "q"), [P * Q], [0], [1])
    with pytest.raises(pl.ModelError, match=r"p\^2 \+ q is not affine in p, q, p\*q, the variables of the region"):
        project(region, ExpressionTable.build([P * Q, P * P + Q], ("p", "q")))


def test_affine_expressions_need_no_further_variables():
    assert region_of(("p", "q"), [P, P + Q], [0, 0], [1, 1]).names == ("p", "q")


@pytest.mark.night
@pytest.mark.parametrize("name", ["glider:11,9", "parallel:5"])
def test_relaxations_of_case_studies_hold_the_truth_and_are_nested(name):
    study = pl.case_study(name)
    counts = pl.simulate(study.model, study.true_point, 3000, rng=1, max_steps=study.max_steps)
    truth = pl.stages.solve(pl.stages.instantiate(study.model, study.true_point), study.objective)
    start, before = study.model.graph.initial_state, None
    for certificate in compare(
        study.model,
        counts,
        study.objective,
        confidence_set="interval",
        relaxations=("parameter", "expression", "rectangular"),
        policy=truth.policy,
    ):
        assert certificate.lower <= truth.upper[start]
        assert truth.lower[start] <= certificate.upper
        if before is not None:
            assert before.lower - 1e-6 <= certificate.lower
            assert certificate.upper <= before.upper + 1e-6
        before = certificate

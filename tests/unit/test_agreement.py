"""Whether any parameters agree with all tests: lower bounds against a search, and where floats are coarse."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from row_models import row_model
from tiers import examples

import plumdp as pl
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.fit.agreement import AffineTests, _bound, _CombinedTests, _inequalities, find_agreement
from plumdp.fit.cell_tests import NO_CELLS, CellTests

p, q = pl.parameters("p", "q")
LINE, SQUARE = pl.ParameterSpace.unit("p"), pl.ParameterSpace.unit("p", "q")
TRIANGLE = pl.ParameterSpace.simplex("p", "q")
CORNER = SQUARE.cut([Fraction(3, 2) - p - q, 2 * p + q - Fraction(1, 2), 3 - p - q / 2])
ONE = likelihood_table(row_model([[p, 1 - p], [p / 3, 1 - p / 3], [(1 + p) / 2, (1 - p) / 2]], LINE))
SIDES = [[p, 1 - p], [q, 1 - q], [(p + q) / 2, 1 - (p + q) / 2], [(1 + p - q) / 2, (1 - p + q) / 2]]
TWO = likelihood_table(row_model(SIDES, SQUARE))
THREE = likelihood_table(row_model([*SIDES, [p, q, 1 - p - q]], TRIANGLE))
CASES = {"line": (LINE, ONE), "square": (SQUARE, TWO), "triangle": (TRIANGLE, THREE), "corner": (CORNER, TWO)}
NOTHING = AffineTests(np.zeros((0, 1)), np.zeros(0))


def all_tests(outcomes, affine, cells, points):
    """Return the largest test at each of many points (n, d); infinity where something seen has no probability."""
    values = outcomes.constants + points @ outcomes.coefficients.T
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(values > 0, np.log(values), -np.inf)
    found = points @ affine.slopes.T + affine.constants
    parts = [
        gained - logs[:, cells.outcome[a:b]] @ cells.seen[a:b]
        for gained, a, b in zip(cells.gained, cells.first[:-1], cells.first[1:], strict=True)
    ]
    return np.column_stack([found, *parts]).max(axis=1)


def searched(space, outcomes, affine, cells):
    """Return the least of the largest test over ever finer grids of the space: never below the true minimum.

    Every grid has half the reach of the last one, about its best point.
    """
    rows, offsets = space.inequalities
    low, high = space.lower.copy(), space.upper.copy()
    best = np.inf
    for _ in range(9):
        axes = [np.linspace(a, b, 2001 if space.dimension == 1 else 61) for a, b in zip(low, high, strict=True)]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, space.dimension)
        points = points[(points @ rows.T <= offsets).all(axis=1)]
        found = all_tests(outcomes, affine, cells, points)
        where, width = points[np.argmin(found)], (high - low) / 4
        best = min(best, float(found.min()))
        low, high = np.maximum(where - width, space.lower), np.minimum(where + width, space.upper)
    return best


@st.composite
def drawn_tests(draw, outcomes, *, most=300.0):
    """Return tests: some affine ones, and cells that have seen some outcomes."""
    d, n = outcomes.coefficients.shape[1], len(outcomes.constants)
    number = st.floats(-100, 100)
    n_affine, n_cells = draw(st.integers(0, 3)), draw(st.integers(1, 4))
    slopes = np.array(draw(st.lists(number, min_size=n_affine * d, max_size=n_affine * d))).reshape(n_affine, d)
    constants = np.array(draw(st.lists(st.floats(-50, 50), min_size=n_affine, max_size=n_affine)))
    seen = [
        draw(st.dictionaries(st.integers(0, n - 1), st.floats(0.5, most), min_size=1, max_size=4))
        for _ in range(n_cells)
    ]
    gained = np.array(draw(st.lists(st.floats(-100, 30), min_size=n_cells, max_size=n_cells)))
    first = np.cumsum([0, *map(len, seen)])
    outcome = np.array([j for one in seen for j in sorted(one)])
    amount = np.array([one[j] for one in seen for j in sorted(one)])
    return AffineTests(slopes, constants), CellTests(np.arange(n_cells), gained, first, outcome, amount)


def middle(space):
    return likelihood_table(row_model([[p, 1 - p]], space)).middle


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=examples(25))
@given(data=st.data())
def test_the_bound_is_never_above_any_point_and_within_a_twentieth_of_the_best(name, data):
    space, outcomes = CASES[name]
    affine, cells = data.draw(drawn_tests(outcomes))
    found = find_agreement(space, outcomes, affine, cells, middle(space))
    at = all_tests(outcomes, affine, cells, found.point[None, :])[0]
    best = min(at, searched(space, outcomes, affine, cells))
    rows, offsets = space.inequalities
    assert (found.point >= space.lower).all()
    assert (found.point <= space.upper).all()
    assert (rows @ found.point <= offsets).all()
    assert best - 0.05 <= found.least <= best
    assert max([*found.affine_values, *found.cell_values]) == pytest.approx(at, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=examples(40))
@given(data=st.data())
def test_whatever_proposes_point_and_multipliers_the_bound_holds(name, data):
    """Any inner point, any multipliers and any weight of the barrier, at random: nothing that Newton's method found."""
    space, outcomes = CASES[name]
    affine, cells = data.draw(drawn_tests(outcomes, most=20.0))
    corners = np.array([[float(x) for x in corner.values()] for corner in space.vertices])
    share = st.floats(0.01, 1)
    weights = np.array(data.draw(st.lists(share, min_size=len(corners), max_size=len(corners))))
    point = weights / weights.sum() @ corners
    n_tests = len(affine.constants) + len(cells)
    multipliers = np.array(data.draw(st.lists(share, min_size=n_tests, max_size=n_tests)))
    limits, tests = _inequalities(space, point), _CombinedTests(outcomes, affine, cells)
    found = _bound(limits, tests, point, multipliers, data.draw(st.sampled_from([0.001, 1.0, 30.0])))
    assert found <= searched(space, outcomes, affine, cells)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=examples(60))
@given(data=st.data())
def test_the_bound_is_not_positive_where_tests_have_a_point_in_common(name, data):
    """Constants are such that all tests are at most zero at a planted point, often on the border of the space."""
    space, outcomes = CASES[name]
    affine, cells = data.draw(drawn_tests(outcomes, most=1e6))
    corners = np.array([[float(x) for x in corner.values()] for corner in space.vertices])
    weights = np.array(data.draw(st.lists(st.floats(0, 1), min_size=len(corners), max_size=len(corners)))) + 1e-12
    weights = data.draw(st.sampled_from([weights, weights**8, weights > 0.99 * weights.max()])) * 1.0
    point = weights / weights.sum() @ corners
    values = outcomes.constants + outcomes.coefficients @ point
    if not (values[cells.outcome] > 1e-6).all():
        return
    with np.errstate(divide="ignore"):
        worth = cells.values(np.where(values > 0, np.log(np.maximum(values, 1e-300)), 0))
    cells = CellTests(cells.cell, cells.gained - worth - 1e-6, cells.first, cells.outcome, cells.seen)
    affine = AffineTests(affine.slopes, -affine.slopes @ point - 1e-9)
    assert find_agreement(space, outcomes, affine, cells, middle(space)).least <= 0


@pytest.mark.parametrize("n", [10**3, 10**9, 10**14])
@pytest.mark.parametrize("share", [Fraction(1, 3), Fraction(1, 10**6), Fraction(1, 10**12)])
def test_rounding_never_adds_to_the_bound(n, share):
    """Two coins that both have shown the share, and the least value of max(T, T') in many digits: T = T' at the share.

    Floats have a coarse idea of the sums: n = 10^14 leaves an error of some nats.
    """
    heads = round(n * share)
    if not heads:
        return
    coin = likelihood_table(row_model([[p, 1 - p]], LINE))
    seen = np.array([heads, n - heads] * 2, dtype=float)
    with localcontext(prec=60):
        k, m, total = Decimal(heads), Decimal(n - heads), Decimal(n)
        entropy = -(k * (k / total).ln() + m * (m / total).ln())
        gained = float(-entropy) * (1 + 1e-15) + 1
        exact = Decimal(gained) + entropy
    cells = CellTests(np.arange(2), np.full(2, gained), np.array([0, 2, 4]), np.array([0, 1, 0, 1]), seen)
    found = find_agreement(LINE, coin, NOTHING, cells, np.array([0.5]))
    assert Decimal(found.least) <= exact
    assert found.least >= float(exact) - 0.05 - 1e-12 * n


@pytest.mark.parametrize("number", [Fraction(1, 3), Fraction(1, 10), Fraction(3, 7), Fraction(2, 3)])
def test_probabilities_that_are_not_floats_do_not_add_to_the_bound(number):
    """10^14 visits of an outcome with a constant probability, against its logarithm to sixty digits.

    The nearest float is off by up to one in 10^16, so that the sum of logarithms is off by up to a hundredth, and the
    slope is zero: nothing but the step for rounding is left to make up for it.
    """
    n, rest = 10**14, 1 - number
    table = likelihood_table(row_model([[number, rest * p, rest * (1 - p)]], LINE))
    outcome = [j for j, f in enumerate(table.outcomes) if f.is_constant]
    with localcontext(prec=60):
        exact = -n * (Decimal(number.numerator) / Decimal(number.denominator)).ln()
        gained = -float(exact)
        least = exact + Decimal(gained)
    cells = CellTests(np.arange(1), np.array([gained]), np.array([0, 1]), np.array(outcome), np.array([float(n)]))
    limits = _inequalities(LINE, np.array([0.5]))
    assert Decimal(_bound(limits, _CombinedTests(table, NOTHING, cells), np.array([0.5]), np.ones(1), 1e-12)) <= least


def test_tests_that_exclude_each_other_are_proved_to_by_their_multipliers():
    """p <= 0.2 by 100 (p - 0.2) and p >= 0.8 by 50 (0.8 - p): they cross at p = 0.4, where both are 20.

    By hand: the multipliers 1/3 and 2/3 give a sum that does not depend on p: 100/3 (p - 0.2) + 100/3 (0.8 - p) = 20.
    """
    affine = AffineTests(np.array([[100.0], [-50.0]]), np.array([-20.0, 40.0]))
    found = find_agreement(LINE, ONE, affine, NO_CELLS, np.array([0.5]))
    assert 19.95 <= found.least <= 20
    assert found.affine == pytest.approx([1 / 3, 2 / 3], abs=0.01)
    assert found.point == pytest.approx([0.4], abs=0.01)


def test_more_tests_than_are_looked_at_once_leave_a_valid_bound():
    """A thousand cells; in two of them only other outcomes were seen, which the start does not show."""
    seen = np.ones(1000)
    outcome = np.zeros(1000, dtype=np.int64)
    outcome[500] = 1
    seen[[499, 500]] = 1000
    cells = CellTests(np.arange(1000), np.zeros(1000), np.arange(1001), outcome, seen)
    found = find_agreement(LINE, ONE, NOTHING, cells, np.array([0.9]))
    assert found.least == pytest.approx(1000 * np.log(2), abs=0.05)
    assert found.least <= 1000 * np.log(2)
    assert len(found.cells) == len(found.cell_values) == 1000


@pytest.mark.parametrize("space", [LINE, SQUARE, TRIANGLE])
def test_without_tests_nothing_is_said(space):
    affine = AffineTests(np.zeros((0, space.dimension)), np.zeros(0))
    found = find_agreement(space, likelihood_table(row_model([[p, 1 - p]], space)), affine, NO_CELLS, middle(space))
    assert found.least == -np.inf


def test_a_start_where_something_seen_cannot_happen_says_nothing():
    cells = CellTests(np.zeros(1, dtype=int), np.zeros(1), np.array([0, 1]), np.zeros(1, dtype=int), np.ones(1))
    assert find_agreement(LINE, ONE, NOTHING, cells, np.zeros(1)).least == -np.inf


@pytest.mark.parametrize(
    "space",
    [
        pl.ParameterSpace.box({"p": (0.5, 0.5), "q": (0, 1)}),
        pl.ParameterSpace.box({"p": (Fraction(1, 3), Fraction(1, 3)), "q": (Fraction(1, 3), Fraction(1, 3))}),
        pl.ParameterSpace.box({"p": (0.5, 0.5 + 1e-7), "q": (0, 1)}),
        SQUARE.cut([1 - p - q, p + q - 1]),
    ],
    ids=["known p", "both known", "almost known", "known sum"],
)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_spaces_without_inner_points_have_bounds_too(space, data):
    affine, cells = data.draw(drawn_tests(TWO))
    found = find_agreement(space, TWO, affine, cells, middle(space))
    low = np.array([float(a) for a, _ in space.bounds])
    high = np.array([float(b) for _, b in space.bounds])
    if space.constraints:
        line = np.linspace(0.0005, 0.9995, 20_001)
        points = np.column_stack([line, 1 - line])
    else:
        points = low + np.linspace(0.00005, 0.99995, 20_001)[:, None] * (high - low)
    best = all_tests(TWO, affine, cells, points).min()
    assert found.least <= best + 1e-9
    assert found.least >= best - 0.3


def test_a_space_without_parameters_has_the_largest_constant():
    table = likelihood_table(row_model([[Fraction(1, 2), Fraction(1, 2)]], pl.ParameterSpace.unit()))
    affine = AffineTests(np.zeros((2, 0)), np.array([3.0, -1.0]))
    found = find_agreement(pl.ParameterSpace.unit(), table, affine, NO_CELLS, np.zeros(0))
    assert 2.9 <= found.least <= 3


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_cell_that_has_seen_nothing_is_refused_wherever_it_is(place):
    """A sum over it would be that of the next cell, and right data would contradict a right model."""
    first = np.insert(np.array([0, 2, 4]), place, [0, 2, 4][place])
    with pytest.raises(ValueError, match="needs an outcome that was seen"):
        CellTests(np.arange(3), np.zeros(3), first, np.array([0, 1, 0, 1]), np.array([9.0, 1.0, 90.0, 10.0]))


@pytest.mark.parametrize("gained", [np.inf, np.nan])
def test_evidence_that_is_not_a_number_is_refused(gained):
    with pytest.raises(ValueError, match="must be a number"):
        CellTests(np.arange(1), np.array([gained]), np.array([0, 1]), np.array([0]), np.ones(1))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_test_without_evidence_silences_no_other_test(place):
    """900 of 1,000 heads and 100 of 1,000 contradict one coin; a third test has found no evidence."""
    gained, seen = np.full(2, 1000 * np.log(0.5)), [[900.0, 100.0], [100.0, 900.0]]
    outcome = np.array([0, 1, 0, 1])
    two = CellTests(np.arange(2), gained, np.array([0, 2, 4]), outcome, np.ravel(seen))
    seen.insert(place, [500.0, 500.0])
    more = np.insert(gained, place, -np.inf)
    three = CellTests(np.arange(3), more, np.array([0, 2, 4, 6]), np.append(outcome, [0, 1]), np.ravel(seen))
    found = [find_agreement(LINE, ONE, NOTHING, cells, np.array([0.4])) for cells in (two, three)]
    assert found[0].least == found[1].least > -100
    assert found[1].cells[place] == 0

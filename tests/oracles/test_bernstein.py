"""Bernstein ranges against sampling, corners and polar forms, all in exact arithmetic."""

from fractions import Fraction
from itertools import combinations, product
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from plumdp import parameters
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable, box_range

pytestmark = pytest.mark.slow

NAMES = ("q", "r", "p")
VARIABLES = parameters(*NAMES)
eighths = st.integers(-16, 16).map(lambda k: Fraction(k, 8))  # floats without rounding
boxes = st.tuples(*[st.tuples(eighths, eighths).map(sorted)] * 3)
coefficients = st.fractions(-3, 3, max_denominator=9)


def terms(max_exponent, max_terms=6):
    exponents = st.tuples(*[st.integers(0, max_exponent)] * 3)
    return st.dictionaries(exponents, coefficients.filter(bool), max_size=max_terms)


def write(found):
    products = (
        c * prod((x**k for x, k in zip(VARIABLES, e, strict=True)), start=Polynomial(1)) for e, c in found.items()
    )
    return sum(products, Polynomial(0))


def value(found, point):
    return sum((c * prod(x**k for x, k in zip(point, e, strict=True)) for e, c in found.items()), Fraction(0))


def size(found, box):
    """Return the largest possible sum of absolute terms: what rounding errors are relative to."""
    return float(value({e: abs(c) for e, c in found.items()}, [max(abs(low), abs(high)) for low, high in box]))


def ranges(group, box):
    """Return (low, high, allowance for rounding) of each polynomial."""
    table = ExpressionTable.build([write(found) for found in group], NAMES)
    lower, upper = (np.array([float(pair[i]) for pair in box]) for i in (0, 1))
    low, high = box_range(table, np.arange(len(group), dtype=np.int32), lower, upper)
    # on [low, high] the powers of low + (high - low) t are expanded: up to (|low| + |high - low|)^degree
    wide = [(0, abs(low) + abs(high - low)) for low, high in box]
    return [(a, b, 1e-13 * size(found, wide)) for a, b, found in zip(low, high, group, strict=True)]


groups = st.lists(terms(4), min_size=1, max_size=4)


@given(groups, boxes)
@settings(max_examples=examples(60))
def test_no_sampled_value_lies_outside_the_range(group, box):
    grid = [[low + (high - low) * Fraction(k, 5) for k in range(6)] for low, high in box]
    for found, (low, high, allowance) in zip(group, ranges(group, box), strict=True):
        values = [value(found, point) for point in product(*grid)]
        assert low - allowance <= min(values)
        assert max(values) <= high + allowance


@given(st.lists(terms(1), min_size=1, max_size=3), st.lists(terms(4), max_size=2), boxes)
def test_a_multilinear_polynomial_has_its_extremes_at_the_corners_in_any_company(multilinear, others, box):
    for found, (low, high, allowance) in zip(multilinear, ranges(multilinear + others, box), strict=False):
        corners = [float(value(found, corner)) for corner in product(*box)]
        assert abs(low - min(corners)) <= 16 * allowance
        assert abs(high - max(corners)) <= 16 * allowance


def polar(exponent, degree, arguments):
    """Return the polar form of x^exponent: the mean over all ways to pick that many of the ``degree`` arguments."""
    return sum((prod(chosen) for chosen in combinations(arguments, exponent)), Fraction(0)) / comb(degree, exponent)


@given(terms(3), boxes)
def test_the_range_of_a_single_polynomial_is_that_of_its_polar_values(found, box):
    """Coefficient i is the polar form at i times the upper end and degree - i times the lower (Ramshaw 1987)."""
    degrees = [max((e[j] for e in found), default=0) for j in range(3)]
    values = [
        sum(
            c * prod(polar(e[j], n, [box[j][1]] * i[j] + [box[j][0]] * (n - i[j])) for j, n in enumerate(degrees))
            for e, c in found.items()
        )
        for i in product(*(range(n + 1) for n in degrees))
    ]
    ((low, high, allowance),) = ranges([found], box)
    assert abs(low - float(min(values))) <= allowance
    assert abs(high - float(max(values))) <= allowance


@given(st.integers(0, 12), eighths.filter(lambda x: x >= 0), eighths.filter(lambda x: x >= 0))
def test_a_power_on_a_box_without_negative_numbers_has_its_extremes_at_the_ends(exponent, x, y):
    """All Bernstein coefficients of x^k lie between the first and the last, since they increase."""
    low_end, high_end = sorted((x, y))
    ((low, high, allowance),) = ranges([{(0, exponent, 0): Fraction(1)}], ((0, 0), (low_end, high_end), (0, 0)))
    assert abs(low - float(low_end**exponent)) <= allowance
    assert abs(high - float(high_end**exponent)) <= allowance


def test_constants_and_zero_are_their_own_range():
    table = ExpressionTable.build([Polynomial(0), Polynomial(Fraction(1, 4)), VARIABLES[2] * 2], NAMES)
    low, high = box_range(table, np.array([1, 0, 2, 1]), np.array([-1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0]))
    assert (low.tolist(), high.tolist()) == ([0.25, 0.0, 6.0, 0.25], [0.25, 0.0, 8.0, 0.25])
    empty = box_range(table, np.array([], dtype=np.int32), np.zeros(3), np.ones(3))
    assert [len(end) for end in empty] == [0, 0]


def test_a_polynomial_of_too_high_degree_spoils_only_its_own_range():
    """The limit is per polynomial: p stays exact beside p^5000."""
    p = VARIABLES[2]
    table = ExpressionTable.build([p, p**5000], NAMES)
    low, high = box_range(table, np.array([0, 1]), np.zeros(3), np.ones(3))
    assert (low[0], high[0]) == (0.0, 1.0)
    assert low[1] <= 0 <= 1 <= high[1]

"""Polynomials against Fraction arithmetic on expression trees and against the school method."""

import copy
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from strategies import NAMES, expand, fold, numbers, points, trees, write

from plumdp import ModelError, ParameterSpace, parameters
from plumdp.model.expressions.polynomial import Polynomial, exact
from plumdp.model.expressions.table import ExpressionTable, terms_of

p, q, r = parameters("p", "q", "r")


@given(trees, points)
def test_a_polynomial_has_the_value_of_the_expression_it_was_written_as(tree, point):
    assert write(tree).evaluate(point) == fold(tree, point, lambda leaf: leaf.meant)


@given(trees)
def test_terms_names_and_degree_are_those_of_the_school_method(tree):
    polynomial, terms = write(tree), expand(tree)
    degree = max((sum(exponents) for exponents in terms), default=0)
    used = tuple(name for i, name in enumerate(NAMES) if any(exponents[i] for exponents in terms))
    assert polynomial.terms(NAMES) == terms
    assert polynomial.terms(("r", "x", "p", "q")) == {(k, 0, i, j): value for (i, j, k), value in terms.items()}
    assert (polynomial.names, polynomial.degree, bool(polynomial)) == (used, degree, bool(terms))
    assert (polynomial.is_affine, polynomial.is_constant) == (degree <= 1, degree == 0)


@given(trees, trees)
def test_two_polynomials_are_equal_exactly_if_they_have_the_same_terms(left, right):
    a, b = write(left), write(right)
    assert (a == b) == (expand(left) == expand(right))
    assert (len({a, b}) == 1) == (a == b)


@given(trees)
def test_the_same_terms_written_term_by_term_are_one_dictionary_key(tree):
    variables = parameters(*reversed(NAMES))[::-1]
    rebuilt = sum(
        (c * math.prod((x**k for x, k in zip(variables, e, strict=True)), start=1) for e, c in expand(tree).items()),
        Polynomial(0),
    )
    assert {write(tree): "found"}[rebuilt] == "found"
    assert str(rebuilt) == str(write(tree))


@pytest.mark.parametrize(
    "ways",
    [
        (0.3 * p, 3 * p / 10, p * Fraction(3, 10), p * Decimal("0.3"), np.float64(0.3) * p, p - 0.7 * p),
        (p * (1 - q), p - p * q, -(p * q) + p, -p * (q - 1)),
        ((p + q) ** 2, p**2 + 2 * p * q + q * q, (q + p) * (p + q)),
        (1 - p, -(p - 1), (1 - p * p) - (p - p * p)),
        (p - p, Polynomial(0), 0 * q, q * p - p * q),
        (p / 3, p * Fraction(1, 3), Fraction(1, 3) * p, p - 2 * p / 3),
    ],
)
def test_ways_of_writing_one_expression_are_equal_and_hash_alike(ways):
    assert all(way == ways[0] for way in ways)
    assert len(set(ways)) == 1


@pytest.mark.parametrize("zero", [p - p, 0 * p, p * q - q * p, Polynomial(0)])
def test_the_zero_polynomial_mentions_no_parameter(zero):
    assert (zero.names, zero.degree, zero.is_constant, zero.constant) == ((), 0, True, 0)
    assert zero.terms(()) == {}
    assert zero.evaluate({}) == 0


@pytest.mark.parametrize(("a", "b"), [(p, q), (p, 2 * p), (p, p + 1), (p, p**2), (p * q, p + q), (p, Polynomial(1))])
def test_different_expressions_differ(a, b):
    assert a != b
    assert len({a, b}) == 2


@pytest.mark.slow
@given(trees, points)
def test_copies_and_pickles_are_equal_and_hash_alike(tree, point):
    original = write(tree)
    for again in (pickle.loads(pickle.dumps(original)), copy.copy(original), copy.deepcopy(original)):
        assert again == original
        assert hash(again) == hash(original)
        assert again.evaluate(point) == original.evaluate(point)


@given(numbers)
def test_a_number_that_equals_a_constant_hashes_like_it(number):
    constant = Polynomial(number.written)
    assert constant == number.meant
    assert constant.constant == number.meant
    assert hash(constant) == hash(number.meant)
    assert constant != number.written or hash(constant) == hash(number.written)


@pytest.mark.parametrize("number", [3, True, Fraction(3, 4), 0.75, np.int64(3), np.int32(0), np.float64(0.5)])
def test_a_constant_equals_the_number_it_was_made_from(number):
    assert Polynomial(int(number) if isinstance(number, np.integer) else number) == number
    assert number == Polynomial(int(number) if isinstance(number, np.integer) else number)


@pytest.mark.parametrize("other", [0.1 + 0.2, math.nan, math.inf, -math.inf, "3/10", None, [], 1j])
def test_comparing_with_what_is_no_exact_number_is_false_and_raises_nothing(other):
    assert (Polynomial(Fraction(3, 10)) == other) is False
    assert Polynomial(Fraction(3, 10)) != other


@given(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(-290, 290))
def test_a_float_of_up_to_15_digits_is_read_as_that_decimal(digits, exponent):
    assert exact(float(f"{digits}e{exponent}")) == digits * Fraction(10) ** exponent


@given(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False))
def test_a_float_is_read_as_its_shortest_decimal_or_refused(number):
    digits, exponent = f"{number:.14e}".split("e")
    short = float(f"{number:.14e}") == number  # 15 digits are enough to tell this float from all others
    if short:
        assert exact(number) == Fraction(digits) * Fraction(10) ** int(exponent)
    else:
        with pytest.raises(ModelError, match="looks like the rounded result of a calculation"):
            exact(number)


def test_misuse_is_refused_by_name():
    refused("polynomials:one", globals())


@pytest.mark.parametrize("name", ["α", "größe", "名"])
def test_a_name_outside_ascii_is_refused_as_a_name(name):
    """The library of polynomials knows ASCII names only."""
    with pytest.raises(ModelError, match=f"parameter name {name!r}"):
        parameters(name)


@pytest.mark.parametrize(
    "action",
    [lambda a: a * p, lambda a: p * a, lambda a: a + p, lambda a: p - a, lambda a: a / p, lambda a: p / a],
)
def test_a_numpy_array_never_swallows_a_polynomial(action):
    with pytest.raises((TypeError, ModelError)):
        action(np.array([1, 2]))


def test_numpy_integers_are_integers():
    assert np.int32(3) * p / np.int64(2) + np.uint8(1) == Fraction(3, 2) * p + 1
    assert p ** np.int64(2) == p * p


@given(st.lists(trees, max_size=4))
def test_terms_read_from_texts_are_those_of_the_expanded_trees(group):
    polynomials = [write(tree) for tree in group]
    terms = terms_of(polynomials)
    nearest = ExpressionTable.build(polynomials, tuple(NAMES), terms).coefficient
    for f, tree in enumerate(group):
        own = terms.term[terms.first[f] : terms.first[f + 1]].tolist()
        powers = [dict(terms.monomials[terms.monomial[t]]) for t in own]
        found = {
            tuple(power.get(n, 0) for n in NAMES): Fraction(terms.above[t], terms.below[t])
            for t, power in zip(own, powers, strict=True)
        }
        assert found == expand(tree)
        assert nearest[terms.first[f] : terms.first[f + 1]].tolist() == [float(found[key]) for key in found]


def test_coefficients_longer_than_python_reads_are_exact():
    (terms,) = (terms_of([p * Fraction(10**9000 + 1, 3**9000)]),)
    assert (terms.above, terms.below) == ((10**9000 + 1,), (3**9000,))


# The table of expressions against exact evaluation of the expression trees


orders = st.permutations([*NAMES, "unused"]).map(tuple)
groups = st.lists(trees, max_size=5, unique_by=write)


def table_of(group, names):
    return ExpressionTable.build([write(tree) for tree in group], names)


@pytest.mark.slow
@given(groups, orders, st.lists(points, min_size=1, max_size=3))
def test_float_values_are_the_exact_ones_up_to_rounding(group, names, where):
    table = table_of(group, names)
    values = table.evaluate(np.array([[float({**point, "unused": 7}[name]) for name in names] for point in where]))
    assert values.shape == (len(group), len(where))
    for tree, row in zip(group, values, strict=True):
        for point, value in zip(where, row, strict=True):
            size = sum(abs(c) * np.prod([3.0**k for k in e]) for e, c in expand(tree).items())  # |point| <= 3
            assert abs(value - float(fold(tree, point, lambda leaf: leaf.meant))) <= 1e-13 * float(size)


@pytest.mark.slow
@given(groups, orders, points)
def test_exact_values_are_those_of_the_trees(group, names, point):
    space = ParameterSpace.box(dict.fromkeys(names, (-3, 3)))
    values = table_of(group, names).evaluate_exact(space, {**point, "unused": 1})
    assert values == [fold(tree, point, lambda leaf: leaf.meant) for tree in group]


@given(groups, orders)
def test_degrees_tell_constants_and_affine_expressions(group, names):
    table = table_of(group, names)
    degrees = [max((sum(exponents) for exponents in expand(tree)), default=0) for tree in group]
    assert table.degree.tolist() == degrees
    assert table.is_unknown.tolist() == [degree > 0 for degree in degrees]
    assert table.is_affine.tolist() == [degree <= 1 for degree in degrees]


@given(groups, orders)
def test_terms_are_sparse_and_no_monomial_is_listed_twice(group, names):
    table = table_of(group, names)
    monomials = [tuple(row) for row in table.monomials.tolist()]
    expected = {
        tuple(dict(zip(NAMES, e, strict=True)).get(n, 0) for n in names) for tree in group for e in expand(tree)
    }
    assert len(set(monomials)) == len(monomials)
    assert set(monomials) == expected
    assert len(table.coefficient) == sum(len(expand(tree)) for tree in group)
    assert not table.coefficients.toarray().size or np.count_nonzero(table.coefficients.toarray()) == len(
        table.coefficient
    )


def test_a_table_of_constants_needs_no_parameters():
    table = ExpressionTable.build([Polynomial(0), Polynomial(Fraction(1, 4))], ())
    assert table.evaluate(np.zeros((3, 0))).tolist() == [[0, 0, 0], [0.25, 0.25, 0.25]]
    assert table.degree.tolist() == [0, 0]
    assert table.evaluate_exact(ParameterSpace.unit(), {}) == [0, Fraction(1, 4)]


def test_an_expression_that_cancels_to_zero_mentions_no_parameter():
    p, q = parameters("p", "q")
    table = ExpressionTable.build([q - q, p], ("p",))
    assert table.evaluate(np.array([[0.5]])).tolist() == [[0.0], [0.5]]


def test_zero_to_the_power_zero_is_one():
    p, q = parameters("p", "q")
    table = ExpressionTable.build([1 + q, p * q], ("q", "p"))
    assert table.evaluate(np.zeros((1, 2))).tolist() == [[1.0], [0.0]]


def test_the_arrays_of_a_table_cannot_be_written():
    table = ExpressionTable.build(list(parameters("p", "q")), ("p", "q"))
    for array in (table.monomials, table.first_term, table.monomial, table.coefficient, table.degree, table.is_affine):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("q", "p"), "expression p - r: r is not declared; the declared parameters are q, p"),
        ((), "expression p - r: p, r is not declared; the declared parameters are none"),
    ],
)
def test_an_undeclared_parameter_is_refused_with_its_expression(names, message):
    p, _, r = parameters("p", "q", "r")
    with pytest.raises(ModelError) as caught:
        ExpressionTable.build([Polynomial(1), p - r], names)
    assert str(caught.value) == message


def test_a_name_that_a_polynomial_does_not_use_need_not_be_declared():
    p, _ = parameters("p", "spare")
    assert ExpressionTable.build([p / 2], ("p",)).evaluate(np.array([[3.0]])).tolist() == [[1.5]]

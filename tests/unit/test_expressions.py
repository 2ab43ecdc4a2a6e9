"""The table of expressions against exact evaluation of the expression trees."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import NAMES, expand, fold, points, trees, write

from plumdp import ModelError, ParameterSpace, parameters
from plumdp.model import Polynomial
from plumdp.model.expressions.table import ExpressionTable

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

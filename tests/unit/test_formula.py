"""Formulas on whole columns against Python's arithmetic with Fractions, row by row."""

import operator
from fractions import Fraction
from functools import cache
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from plumdp import ModelError, parameters
from plumdp.model.expressions.arrays import PolynomialArray
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.language.formula import _OPERATORS, DistinctEvaluator, Formula, evaluate, literal, variable

PYTHON = {
    "+": operator.add,
    "-": lambda a, *b: a - b[0] if b else -a,
    "*": operator.mul,
    "/": lambda a, b: Fraction(a) / b,
    "pow": lambda a, b: Fraction(a) ** b,
    "mod": lambda a, b: a - b * floor(Fraction(a, b)),
    "min": min,
    "max": max,
    "floor": floor,
    "ceil": ceil,
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "!": operator.not_,
    "&": lambda a, b: a and b,
    "|": lambda a, b: a or b,
    "=>": lambda a, b: b if a else True,
    "<=>": operator.eq,
    "xor": operator.ne,
}
COLUMNS = {"x": st.integers(-4, 4), "y": st.integers(-2, 2), "k": st.integers(1, 4), "flag": st.booleans()}
NUMBERS = {"n": st.integers(-3, 3), "h": st.fractions(-2, 2, max_denominator=6), "set": st.booleans()}


def apply(symbol, *operands):
    return Formula(symbol, operands)


def slow(formula, row):
    """Return the value of a formula in one row, by Python."""
    if formula.operator == "literal":
        return formula.value
    if formula.operator == "variable":
        return row[formula.value]
    if formula.operator == "?":
        condition, then, otherwise = formula.operands
        return slow(then if slow(condition, row) else otherwise, row)
    return PYTHON[formula.operator](*(slow(operand, row) for operand in formula.operands))


def names(*choices):
    return st.sampled_from(choices).map(variable)


def nodes(symbols, *operands):
    return st.builds(apply, st.sampled_from(symbols.split()), *operands)


@cache
def integers(depth):
    leaves = names("x", "y", "k", "n") | st.integers(-3, 3).map(literal)
    if not depth:
        return leaves
    inner, divisors = integers(depth - 1), names("k") | st.integers(1, 5).map(literal)
    return st.one_of(
        leaves,
        nodes("+ - * min max", inner, inner),
        nodes("-", inner),
        nodes("mod", inner, divisors),
        nodes("pow", leaves, names("k") | st.integers(0, 3).map(literal)),
        nodes("floor ceil", rationals(depth - 1)),
        nodes("?", booleans(depth - 1), inner, inner),
    )


@cache
def rationals(depth):
    leaves = names("h") | NUMBERS["h"].map(literal)
    if not depth:
        return leaves
    inner = rationals(depth - 1) | integers(depth - 1)
    return st.one_of(
        leaves,
        nodes("+ - * min max", inner, inner),
        nodes("min max", inner, inner, inner),
        nodes("-", inner),
        nodes("/", inner, names("k") | NUMBERS["h"].filter(bool).map(literal)),
        nodes("pow", leaves, st.integers(0, 3).map(literal)),
        nodes("?", booleans(depth - 1), inner, inner),
    )


@cache
def booleans(depth):
    leaves = names("flag", "set") | st.booleans().map(literal)
    if not depth:
        return leaves
    inner, numbers = booleans(depth - 1), rationals(depth - 1) | integers(depth - 1)
    return st.one_of(
        leaves,
        nodes("= != < <= > >=", numbers, numbers),
        nodes("& | => <=> xor = !=", inner, inner),
        nodes("!", inner),
        nodes("?", inner, inner, inner),
    )


def rows_of(value, length):
    """Return a value as a list with one Python number per row."""
    if isinstance(value, PolynomialArray):
        return [value.table[i].constant for i in value.index.tolist()]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [value.constant if isinstance(value, Polynomial) else value] * length


def tables(draw, length):
    drawn = {name: draw(st.lists(kind, min_size=length, max_size=length)) for name, kind in COLUMNS.items()}
    columns = {name: np.array(values, dtype=bool if name == "flag" else np.int32) for name, values in drawn.items()}
    return drawn, columns, {name: draw(kind) for name, kind in NUMBERS.items()}


@pytest.mark.slow
@given(st.data(), st.integers(1, 5), st.sampled_from([integers, rationals, booleans]))
@settings(max_examples=examples(300))
def test_a_formula_on_columns_has_the_value_of_each_row(data, length, kind):
    formula = data.draw(kind(3))
    drawn, columns, numbers = tables(data.draw, length)
    expected = [slow(formula, {**numbers, **{name: drawn[name][i] for name in drawn}}) for i in range(length)]
    for value in (evaluate(formula, {**columns, **numbers}), DistinctEvaluator(columns, numbers)(formula)):
        assert rows_of(value, length) == expected
        if kind is booleans:
            assert all(isinstance(element, bool | np.bool_) for element in rows_of(value, length))


def test_every_operator_is_compared_with_python():
    assert PYTHON.keys() == _OPERATORS.keys() - {"?"}


@given(st.data(), st.integers(1, 4), st.fractions(-2, 2, max_denominator=9))
def test_a_parameter_may_stand_in_arithmetic(data, length, value):
    """p * formula - formula / 3 + p, chosen by a Boolean, with a value put for p afterwards or before."""
    number, condition = data.draw(rationals(2)), data.draw(booleans(1))
    p = variable("p")
    left = apply("-", apply("*", p, number), apply("/", number, literal(3)))
    formula = apply("?", condition, apply("+", left, p), apply("pow", apply("-", literal(1), p), literal(2)))
    drawn, columns, numbers = tables(data.draw, length)
    unknown = {**numbers, "p": parameters("p")[0]}
    result = DistinctEvaluator(columns, unknown)(formula)
    for i in range(length):
        row = {**numbers, **{name: drawn[name][i] for name in drawn}, "p": value}
        found = result.table[result.index[i]] if isinstance(result, PolynomialArray) else result
        assert found.evaluate({"p": value}) == slow(formula, row)


X = variable("x")
SMALL = np.array([0, 1, 2], dtype=np.int32)


def test_text_columns_are_compared_as_text():
    place = np.array(["home", "away", "home"])
    assert evaluate(apply("=", variable("place"), literal("home")), {"place": place}).tolist() == [True, False, True]


@pytest.mark.parametrize("symbol", ["!", "&", "|", "=>", "xor"])
def test_logic_on_constants_gives_truth_values_that_can_be_compared_and_chosen(symbol):
    truth = apply(symbol, literal(True)) if symbol == "!" else apply(symbol, literal(True), literal(False))
    expected = slow(truth, {})
    assert evaluate(apply("=", truth, literal(True)), {}) == expected
    chosen = evaluate(apply("?", apply(">", X, literal(0)), truth, literal(False)), {"x": SMALL})
    assert chosen.tolist() == [False, expected, expected]


@pytest.mark.parametrize("symbol", ["/", "mod"])
def test_a_condition_guards_a_division(symbol):
    """x > 0 ? 6 / x : 0, as PRISM allows: where x is 0 the division is not asked for."""
    guarded = apply("?", apply(">", X, literal(0)), apply(symbol, literal(6), X), literal(0))
    assert rows_of(evaluate(guarded, {"x": SMALL}), 3) == [slow(guarded, {"x": x}) for x in (0, 1, 2)]


@pytest.mark.parametrize(
    "formula",
    [
        apply("*", apply("*", X, X), X),
        apply("+", X, literal(2**70)),
        apply("-", apply("pow", X, literal(3)), literal(1)),
        apply("?", apply(">", X, literal(5)), X, literal(2**40)),
        apply("max", X, literal(2**65)),
    ],
    ids=["product", "sum", "power", "choice", "maximum"],
)
def test_integers_beyond_the_column_type_are_exact_or_refused(formula):
    """The largest int32 cubed needs 93 bits."""
    values = [2**31 - 1, -3]
    try:
        result = evaluate(formula, {"x": np.array(values, dtype=np.int32)})
    except (ModelError, OverflowError):
        return
    assert rows_of(result, 2) == [slow(formula, {"x": x}) for x in values]


@pytest.mark.parametrize("base", [literal(2), apply("+", X, literal(2))], ids=["number", "column"])
def test_a_negative_power_of_an_integer_is_a_fraction_or_refused(base):
    formula = apply("pow", base, literal(-1))
    try:
        result = evaluate(formula, {"x": SMALL})
    except ModelError:
        return
    assert rows_of(result, 3) == [slow(formula, {"x": x}) for x in (0, 1, 2)]


@pytest.mark.parametrize(
    "formula",
    [
        apply("mod", literal(Fraction(7, 2)), literal(2)),
        apply("mod", apply("/", X, literal(2)), literal(2)),
        apply("mod", literal(7), literal(0)),
        apply("mod", literal(7), X),
        apply("/", literal(7), X),
        apply("pow", literal(4), literal(Fraction(1, 2))),
        apply("pow", X, literal(Fraction(1, 2))),
        apply("<", variable("p"), literal(1)),
        apply("floor", variable("p")),
    ],
    ids=[
        "mod of a fraction",
        "mod of a quotient",
        "mod 0",
        "mod x",
        "division",
        "root",
        "root of x",
        "compare",
        "round",
    ],
)
def test_what_has_no_value_is_refused(formula):
    with pytest.raises(ModelError):
        evaluate(formula, {"x": SMALL, "p": parameters("p")[0]})

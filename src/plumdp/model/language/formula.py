"""Formulas over state variables, evaluated on whole columns, exactly and as in the PRISM language.

A value is a Boolean or integer array, an array of polynomials (exact rationals included), or a single number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.model.expressions.arrays import PolynomialArray, constant_array, distinct, tabulate
from plumdp.model.expressions.polynomial import Polynomial, exact, polynomial

Value: TypeAlias = Any

_LIMIT = 2**62  # integers of columns stay below


@dataclass(frozen=True, eq=False)
class Formula:
    """A node of a formula, which is an operator with operands, a literal, or a variable by name."""

    operator: str
    operands: tuple[Formula, ...] = ()
    value: bool | int | Fraction | str | None = None

    def variables(self) -> set[str]:
        """Return the names that occur, visiting each node once, also where formulas share one."""
        nodes, pending = {id(self): self}, [self]
        while pending:
            new = [operand for operand in pending.pop().operands if id(operand) not in nodes]
            nodes.update((id(operand), operand) for operand in new)
            pending += new
        return {str(node.value) for node in nodes.values() if node.operator == "variable"}


def literal(value: bool | int | Fraction) -> Formula:
    """Return a constant."""
    return Formula("literal", value=value)


def variable(name: str) -> Formula:
    """Return a reference to a state variable, constant or parameter."""
    return Formula("variable", value=name)


def evaluate(formula: Formula, values: Mapping[str, Value]) -> Value:
    """Return the value of a formula where each name has the given value (a number or a column)."""
    return _evaluate(formula, values, {})


class DistinctEvaluator:
    """Evaluates formulas on columns, at some positions if they are given.

    Each formula is evaluated once per distinct valuation of the columns that occur, each shared node once.
    """

    def __init__(
        self, columns: Mapping[str, npt.NDArray[Any]], numbers: Mapping[str, Value], positions: Any = slice(None)
    ) -> None:
        self._columns, self._numbers, self._positions = columns, numbers, positions
        self._domains: dict[tuple[str, ...], tuple[Mapping[str, Value], Any, dict[int, Value]]] = {}

    def __call__(self, formula: Formula) -> Value:
        """Return the value of the formula, a column, or one number if no column occurs in it."""
        values, inverse, evaluated = self._domain(tuple(sorted(formula.variables() & self._columns.keys())))
        value = _evaluate(formula, values, evaluated)
        is_column = isinstance(value, np.ndarray | PolynomialArray)
        return value[inverse] if is_column and inverse is not None else value

    def _domain(self, names: tuple[str, ...]) -> tuple[Mapping[str, Value], Any, dict[int, Value]]:
        if names not in self._domains:
            few, inverse = {}, None
            if names:
                columns = [self._columns[name][self._positions] for name in names]
                representatives, inverse = distinct(columns)
                few = {name: column[representatives] for name, column in zip(names, columns, strict=True)}
            self._domains[names] = {**self._numbers, **few}, inverse, {}
        return self._domains[names]


def _evaluate(formula: Formula, values: Mapping[str, Value], evaluated: dict[int, Value]) -> Value:
    """Evaluate each node once, also where formulas share one."""
    key = id(formula)
    if key not in evaluated:
        if formula.operator == "literal":
            evaluated[key] = formula.value
        elif formula.operator == "variable":
            evaluated[key] = values[str(formula.value)]
        elif formula.operator == "?":
            evaluated[key] = _if_then_else(formula, values, evaluated)
        else:
            arguments = [_evaluate(operand, values, evaluated) for operand in formula.operands]
            evaluated[key] = _OPERATORS[formula.operator](*arguments)
    return evaluated[key]


def _if_then_else(formula: Formula, values: Mapping[str, Value], evaluated: dict[int, Value]) -> Value:
    """Evaluate each branch only where it is chosen, so that ``x=0 ? 0 : 1/x`` divides by no zero."""
    condition, *branches = formula.operands
    chosen = _evaluate(condition, values, evaluated)
    if not isinstance(chosen, np.ndarray):
        return _evaluate(branches[0] if chosen else branches[1], values, evaluated)
    if chosen.all() or not chosen.any():
        return _spread(_evaluate(branches[0] if chosen.any() else branches[1], values, evaluated), len(chosen))
    parts = []
    for branch, mask in zip(branches, (chosen, ~chosen), strict=True):
        subset = {name: v[mask] if isinstance(v, np.ndarray | PolynomialArray) else v for name, v in values.items()}
        parts.append(_spread(_evaluate(branch, subset, {}), int(mask.sum())))
    return _merge(chosen, *parts)


def _spread(value: Value, length: int) -> Value:
    """Return a value as a column."""
    if isinstance(value, np.ndarray | PolynomialArray):
        return value
    if isinstance(value, Fraction | Polynomial) or (isinstance(value, int) and abs(value) >= _LIMIT):
        return constant_array(value, length)
    return np.full(length, value)


def _merge(chosen: Any, then: Value, otherwise: Value) -> Value:
    if isinstance(then, np.ndarray) and isinstance(otherwise, np.ndarray):
        result = np.empty(len(chosen), dtype=np.result_type(then, otherwise))
        result[chosen], result[~chosen] = then, otherwise
        return result
    first, second = _column(then), _column(otherwise)
    position = np.empty(len(chosen), dtype=np.int32)
    position[chosen], position[~chosen] = first.index, second.index + len(first.table)
    return tabulate((*first.table, *second.table).__getitem__, position)


def _is_integral(*values: Value) -> bool:
    return all(
        isinstance(value, int | np.integer | np.bool_) or (isinstance(value, np.ndarray) and value.dtype.kind in "biu")
        for value in values
    )


def _map(function: Callable[..., Any], *values: Value) -> tuple[Any, Any]:
    """Apply a function of numbers to columns, and return results per distinct row, and the row of each element."""
    columns = [value for value in values if isinstance(value, np.ndarray | PolynomialArray)]
    if not columns:
        return function(*values), None
    keys = [column.index if isinstance(column, PolynomialArray) else column for column in columns]
    representatives, inverse = distinct(keys)
    arguments = [_elements(value, representatives) for value in values]
    return [function(*row) for row in zip(*arguments, strict=True)], inverse


def _elements(value: Value, positions: Any) -> list[Any]:
    if isinstance(value, PolynomialArray):
        return [value.table[i] for i in value.index[positions].tolist()]
    return value[positions].tolist() if isinstance(value, np.ndarray) else [value] * len(positions)


def _arithmetic(operation: Callable[[Any, Any], Any]) -> Callable[[Value, Value], Value]:
    def apply(a: Value, b: Value) -> Value:
        if not _is_integral(a, b):
            return operation(_exact(a), _exact(b))
        if operation(_largest(a), _largest(b)) >= _LIMIT or _largest(a) + _largest(b) >= _LIMIT:
            raise ModelError(f"the result of {operation.__name__} on integers is too large (2^62 and more)")
        return operation(_widen(a), _widen(b))

    return apply


def _largest(value: Value) -> int:
    """Return the largest absolute value of an integer or a column of integers."""
    if not isinstance(value, np.ndarray):
        return abs(int(value))
    return max(abs(int(value.min())), abs(int(value.max()))) if len(value) else 0


def _modulo(a: Value, b: Value) -> Value:
    if not _is_integral(a, b):
        raise ModelError("mod is only possible between integers")
    if np.any(np.asarray(b) <= 0):
        raise ModelError("mod by zero or by a negative number")
    return _widen(a) % _widen(b)


def _exact(value: Value) -> Polynomial | PolynomialArray:
    """Return a value as polynomials, which calculate exactly."""
    return _column(value) if isinstance(value, np.ndarray | PolynomialArray) else polynomial(value)


def _column(value: npt.NDArray[Any] | PolynomialArray) -> PolynomialArray:
    return value if isinstance(value, PolynomialArray) else tabulate(Polynomial, value)


def _exact_map(function: Callable[..., Polynomial], *values: Value) -> Value:
    results, inverse = _map(function, *values)
    return results if inverse is None else tabulate(results.__getitem__, inverse)


def _power(a: Value, b: Value) -> Value:
    def apply(x: Any, y: Any) -> Polynomial:
        base, exponent = polynomial(x), polynomial(y)
        if not exponent.is_constant or exponent.constant.denominator != 1:
            advice = "" if base.is_constant and exponent.is_constant else "; give the power a parameter of its own"
            raise ModelError(f"pow({x}, {y}): only whole exponents are possible{advice}")
        power = int(exponent.constant)
        return base**power if power >= 0 else 1 / base ** (-power)

    results, inverse = _map(apply, a, b)
    if _is_integral(a, b):  # of integers, as long as no exponent is negative
        numbers = [results] if inverse is None else results
        if all(f.constant.denominator == 1 and abs(f.constant) < _LIMIT for f in numbers):
            return int(results.constant) if inverse is None else _integers([int(f.constant) for f in results], inverse)
    return results if inverse is None else tabulate(results.__getitem__, inverse)


def _comparison(operation: Callable[[Any, Any], Any]) -> Callable[[Value, Value], Value]:
    def apply(a: Value, b: Value) -> Value:
        if _is_text(a) or _is_text(b) or _is_integral(a, b):
            return operation(a, b)
        results, inverse = _map(lambda x, y: bool(operation(_number(x), _number(y))), a, b)
        return results if inverse is None else np.array(results, dtype=np.bool_)[inverse]

    return apply


def _choose(pick: Callable[[Any, Any], Any], whole: Callable[[Any, Any], Any]) -> Callable[..., Value]:
    def apply(first: Value, *rest: Value) -> Value:
        for other in rest:
            if _is_integral(first, other) and max(_largest(first), _largest(other)) < _LIMIT:
                first = whole(_widen(first), _widen(other))
            else:
                first = _exact_map(lambda x, y: Polynomial(pick(_number(x), _number(y))), first, other)
        return first

    return apply


def _rounding(function: Callable[[Fraction], int]) -> Callable[[Value], Value]:
    return lambda a: a if _is_integral(a) else _integers(*_map(lambda x: function(_number(x)), a))


def _integers(results: Any, inverse: Any) -> Value:
    return results if inverse is None else np.array(results, dtype=np.int64)[inverse]


def _is_text(value: Value) -> bool:
    return isinstance(value, str) or (isinstance(value, np.ndarray) and value.dtype.kind == "U")


def _widen(value: Value) -> Value:
    return value.astype(np.int64) if isinstance(value, np.ndarray) else int(value)


def _number(value: Any) -> Fraction:
    if isinstance(value, Polynomial):
        if not value.is_constant:
            advice = "give the result a parameter of its own"
            raise ModelError(f"{value} depends on a parameter and cannot be compared or rounded; {advice}")
        return value.constant
    return exact(value)


def _negate(a: Value) -> Value:
    return -_widen(a) if _is_integral(a) else -_exact(a)


_OPERATORS: dict[str, Callable[..., Value]] = {
    "+": _arithmetic(operator.add),
    "-": lambda a, *b: _arithmetic(operator.sub)(a, *b) if b else _negate(a),
    "*": _arithmetic(operator.mul),
    "/": lambda a, b: _exact(a) / _exact(b),
    "pow": _power,
    "mod": _modulo,
    "min": _choose(min, np.minimum),
    "max": _choose(max, np.maximum),
    "floor": _rounding(floor),
    "ceil": _rounding(ceil),
    "=": _comparison(operator.eq),
    "!=": _comparison(operator.ne),
    "<": _comparison(operator.lt),
    "<=": _comparison(operator.le),
    ">": _comparison(operator.gt),
    ">=": _comparison(operator.ge),
    "!": np.logical_not,
    "&": np.logical_and,
    "|": np.logical_or,
    "=>": lambda a, b: np.logical_or(np.logical_not(a), b),
    "<=>": operator.eq,
    "xor": np.logical_xor,
}

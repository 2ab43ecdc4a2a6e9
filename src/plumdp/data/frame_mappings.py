"""Mappings as expressions of Narwhals, which the engine of a data frame evaluates: the same rules as in SQL."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, NamedTuple

from plumdp.data.mapping_language import COMPARISONS, Kind, Term
from plumdp.data.mapping_sql import other_kind
from plumdp.data.mappings import OUTSIDE

_SPACE = " \t\r\n"
_NUMBER = rf"^[{_SPACE}]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[{_SPACE}]*$"
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "=": operator.eq, "!=": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_ROUNDINGS: dict[str, Callable[[Any], Any]] = {
    "floor": lambda value: value.floor(),
    "ceil": lambda value: value.ceil(),
    "round": lambda value: (value + 0.5).floor(),
    "abs": lambda value: value.abs(),
}


class _Known(NamedTuple):
    """An expression, and where its value is known: some engines have no null, and compare with NaN instead.

    Where a truth value is not known, it is false.
    """

    value: Any
    is_known: Any


def mapped_expression(term: Term, schema: Mapping[str, Any]) -> Any:
    """Return a mapping as an expression of Narwhals, null where the value is not known."""
    import narwhals as nw

    if term.operator == "column" and term.kind == "any":
        return nw.col(str(term.value))
    found = _checked(_evaluate(term, schema)) if term.kind == "number" else _evaluate(term, schema)
    return nw.when(found.is_known).then(found.value)


def _evaluate(term: Term, schema: Mapping[str, Any]) -> _Known:
    import narwhals as nw

    if term.operator in ("number", "text", "truth"):
        return _Known(nw.lit(term.value), nw.lit(True))
    if term.operator == "column":
        return _column(str(term.value), schema[str(term.value)], term.kind)
    parts = [_evaluate(operand, schema) for operand in term.operands]
    if term.operator in ("and", "or", "not"):
        return _connective(term.operator, parts)
    if term.operator == "if":
        return _conditional(*parts)
    if term.operator == "bins":
        assert isinstance(term.value, tuple)
        return _bins(_checked(parts[0]), term.value)
    if term.operator in COMPARISONS:
        one, other = map(_checked, parts) if term.operands[0].kind == "number" else parts
        return _comparison(term.operator, one, other)
    return _arithmetic(term.operator, parts)


def _arithmetic(name: str, parts: list[_Known]) -> _Known:
    is_known = reduce(operator.and_, (part.is_known for part in parts))
    if name in _ROUNDINGS:
        return _Known(_ROUNDINGS[name](parts[0].value), is_known)
    if name in ("min", "max"):
        return reduce(lambda one, other: _extreme(name, one, other), map(_checked, parts))
    if name in ("/", "mod"):
        dividend, divisor = parts[0], _checked(parts[1])
        is_known = dividend.is_known & divisor.is_known & (divisor.value != 0)
        below = _where(is_known, divisor.value, 1.0)
        value = dividend.value / below
        return _Known(dividend.value - below * value.floor() if name == "mod" else value, is_known)
    values = [part.value for part in parts]
    return _Known(-1.0 * values[0] if len(values) == 1 else _OPERATORS[name](*values), is_known)


def _extreme(name: str, one: _Known, other: _Known) -> _Known:
    is_known = one.is_known & other.is_known
    is_first = _comparison("<=" if name == "min" else ">=", one, other).value
    return _Known(_where(is_first, one.value, other.value), is_known)


def _comparison(name: str, one: _Known, other: _Known) -> _Known:
    is_known = one.is_known & other.is_known
    return _Known(_where(is_known, _OPERATORS[name](one.value, other.value), False), is_known)


def _connective(name: str, parts: list[_Known]) -> _Known:
    """As in SQL: false and unknown is false, true or unknown is true."""
    if name == "not":
        return _Known(parts[0].is_known & ~parts[0].value, parts[0].is_known)
    one, other = parts
    both = one.is_known & other.is_known
    if name == "and":
        return _Known(one.value & other.value, both | (one.is_known & ~one.value) | (other.is_known & ~other.value))
    return _Known(one.value | other.value, both | one.value | other.value)


def _conditional(condition: _Known, then: _Known, otherwise: _Known) -> _Known:
    is_known = condition.is_known & ((condition.value & then.is_known) | (~condition.value & otherwise.is_known))
    return _Known(_where(condition.value, then.value, otherwise.value), is_known)


def _bins(found: _Known, edges: tuple[float, ...]) -> _Known:
    value = _where(found.value <= edges[-1], float(len(edges) - 2), float(OUTSIDE))
    for number, edge in reversed([*enumerate(edges[1:-1])]):
        value = _where(found.value < edge, float(number), value)
    return _Known(_where(found.value < edges[0], -float(OUTSIDE), value), found.is_known)


def _checked(found: _Known) -> _Known:
    """Return numbers as known only where they are finite, and 0 where they are not known."""
    is_known = found.is_known & ~found.value.is_null() & found.value.is_finite()
    return _Known(_where(is_known, found.value, 0.0), is_known)


def _where(condition: Any, then: Any, otherwise: Any) -> Any:
    import narwhals as nw

    return nw.when(condition).then(_lit(then)).otherwise(_lit(otherwise))


def _lit(value: Any) -> Any:
    import narwhals as nw

    return nw.lit(value) if isinstance(value, bool | int | float | str) else value


def _column(name: str, dtype: Any, kind: Kind) -> _Known:
    import narwhals as nw

    column = nw.col(name)
    is_there = ~column.is_null()
    is_text = dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object)  # of pandas, truth values with gaps are objects
    if kind == "number" and dtype.is_numeric():
        number = column.cast(nw.Float64)
        return _Known(number, is_there & number.is_finite())
    if kind == "truth" and (dtype.is_numeric() or dtype == nw.Boolean):
        return _truth(column, is_there, dtype)
    if not is_text:
        raise other_kind(name, str(dtype), kind)
    text = _where(is_there, column.cast(nw.String), "")
    if kind == "text":
        return _Known(text.str.strip_chars(" "), is_there)
    if kind == "truth":
        word = text.str.strip_chars(" ").str.to_lowercase()
        is_true, is_false = word.is_in(["true", "yes", "1"]), word.is_in(["false", "no", "0"])
        return _Known(is_true, is_true | is_false)
    is_number = text.str.contains(_NUMBER)
    return _Known(_where(is_number, text, "0").str.strip_chars(_SPACE).cast(nw.Float64), is_number)


def _truth(column: Any, is_there: Any, dtype: Any) -> _Known:
    """Return truth values, or numbers, as truth values: 1 and 0."""
    import narwhals as nw

    if dtype == nw.Boolean:
        return _Known(_where(is_there, column, False), is_there)
    number = _where(is_there, column.cast(nw.Float64), -1.0)
    return _Known(number == 1, (number == 1) | (number == 0))

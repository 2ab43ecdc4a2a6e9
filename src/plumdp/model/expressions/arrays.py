"""Arrays of polynomials, with an index per element into a table of the distinct ones.

A model of ten million transitions has a few thousand distinct expressions. Exact arithmetic is done on the
table, once per distinct value. The elements only carry an int32 index. Tables remember what was calculated from them,
so that the layers of an exploration share one calculation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any, TypeAlias, cast
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.model.expressions.interned import Memo, PolynomialTable
from plumdp.model.expressions.polynomial import Polynomial, polynomial
from plumdp.model.text import number_of, one_line

Column: TypeAlias = "npt.NDArray[Any] | PolynomialArray"
"""An integer or Boolean array, or an array of polynomials."""


@dataclass(frozen=True, eq=False)
class PolynomialArray:
    """The polynomials ``table[index[i]]`` by element, none of which is in the table twice."""

    table: PolynomialTable
    index: npt.NDArray[np.int32]  # (n,)

    __array_ufunc__ = None

    def __post_init__(self) -> None:
        if not isinstance(self.table, PolynomialTable):  # any sequence of distinct polynomials may be given
            object.__setattr__(self, "table", PolynomialTable(self.table))

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.table[:3])) + (", …" if len(self.table) > 3 else "")
        return one_line(self, number_of(len(self), "element"), f"{len(self.table):,} distinct: {shown}")

    def __getitem__(self, key: Any) -> PolynomialArray:
        return PolynomialArray(self.table, self.index[key])

    def __add__(self, other: Any) -> PolynomialArray:
        return _apply(operator.add, self, other)

    def __sub__(self, other: Any) -> PolynomialArray:
        return _apply(operator.sub, self, other)

    def __mul__(self, other: Any) -> PolynomialArray:
        return _apply(operator.mul, self, other)

    def __truediv__(self, other: Any) -> PolynomialArray:
        return _apply(operator.truediv, self, other)

    def __pow__(self, other: Any) -> PolynomialArray:
        return _apply(operator.pow, self, other)

    def __radd__(self, other: Any) -> PolynomialArray:
        return _apply(operator.add, other, self)

    def __rsub__(self, other: Any) -> PolynomialArray:
        return _apply(operator.sub, other, self)

    def __rmul__(self, other: Any) -> PolynomialArray:
        return _apply(operator.mul, other, self)

    def __rtruediv__(self, other: Any) -> PolynomialArray:
        return _apply(operator.truediv, other, self)

    def __neg__(self) -> PolynomialArray:
        return _calculate(operator.neg, [self], self.table.memo("neg"))


def tabulate(function: Callable[..., Any], *columns: Column) -> PolynomialArray:
    """Return ``function`` applied element by element, called once per distinct combination of its arguments.

    Parameters
    ----------
    function
        Plain Python on single numbers, which returns an expression.
    *columns
        Arrays of state variables or of polynomials, all of one length.

    Returns
    -------
    PolynomialArray
        One expression for each line.

    Examples
    --------
    >>> from plumdp import parameters
    >>> (p,) = parameters("p")
    >>> tuple(tabulate(lambda level: p / 2 if level > 1 else p, np.array([0, 1, 2, 3])).table)
    (Polynomial('p'), Polynomial('1/2*p'))
    """
    return _calculate(function, columns, _memo_of(function, columns))


def _calculate(function: Callable[..., Any], columns: Sequence[Column], memo: Memo | None) -> PolynomialArray:
    """Return the function of each row of the columns.

    A memo has the results of earlier calls, and remembers new ones.
    """
    keys = [column.index if isinstance(column, PolynomialArray) else column for column in columns]

    def results(positions: npt.NDArray[np.intp]) -> Iterator[Any]:
        return (function(*row) for row in zip(*(_elements(column, positions) for column in columns), strict=True))

    if memo is not None and _may_be_remembered(keys):
        codes = memo.codes(keys, results)
        if codes is not None:
            return PolynomialArray(memo.table, codes)
    representatives, inverse = distinct(keys)
    table = PolynomialTable()
    return PolynomialArray(table, table.numbers(results(representatives))[inverse])


def _may_be_remembered(keys: Sequence[npt.NDArray[Any]]) -> bool:
    lengths = {len(key) for key in keys}
    return len(lengths) == 1 and lengths != {0} and all(key.dtype.kind in "bi" for key in keys)


def _elements(column: Column, positions: npt.NDArray[np.intp]) -> list[Any]:
    if isinstance(column, PolynomialArray):
        return [column.table[i] for i in column.index[positions].tolist()]
    values: list[Any] = column[positions].tolist()
    return values


_CACHED = type(cache(int))
_CONSTANTS = (int, float, Fraction, Polynomial)  # operands that are remembered by type and value
_MEMOS: WeakKeyDictionary[Any, dict[Hashable, Memo]] = WeakKeyDictionary()


def _memo_of(function: Callable[..., Any], columns: Sequence[Column]) -> Memo | None:
    """Return the memo of a function that its author has declared to be pure, by ``functools.cache``.

    Such a function is never asked the same twice anyway. The memo lives as long as the function.
    """
    fixed: Hashable = ()
    if type(function) is partial:
        fixed = (function.args, *sorted(function.keywords.items()))
        function = function.func
    if not isinstance(function, _CACHED) or function.cache_parameters()["maxsize"] is not None:
        return None
    if any(isinstance(column, PolynomialArray) for column in columns):
        return None
    return _MEMOS.setdefault(function, {}).setdefault((fixed, len(columns)), Memo())


def constant_array(value: Any, length: int) -> PolynomialArray:
    """Return an array that holds one value everywhere."""
    return PolynomialArray(PolynomialTable([polynomial(value)]), np.zeros(length, dtype=np.int32))


def number_in(table: PolynomialTable, value: Polynomial | PolynomialArray) -> Any:
    """Return the number of a polynomial in a growing table, or the numbers of an array, adding new ones."""
    if isinstance(value, Polynomial):
        return table.number(value)
    return table.numbers_from(value.table, value.index)


def distinct(columns: Sequence[npt.NDArray[Any]]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return one position per distinct combination of integers, and for each position the number of its combination."""
    if not columns:
        raise ModelError("tabulate needs at least one column")
    if len({len(column) for column in columns}) != 1:
        raise ModelError(f"arrays of different lengths: {', '.join(str(len(column)) for column in columns)}")
    key, size = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        code, width = _offset(column)
        if size * width >= 2**62:  # too many combinations for one integer: number those that occur
            size, key = _renumbered(key)
            width, code = _renumbered(code)
        key, size = key * width + code, size * width
    if size <= 4 * len(key) + 2**12:
        return _distinct_dense(key, size)
    _, representatives, inverse = np.unique(key, return_index=True, return_inverse=True)
    return representatives, inverse


def _distinct_dense(key: npt.NDArray[np.int64], size: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    representative = np.full(size, -1, dtype=np.intp)
    representative[key] = np.arange(len(key))
    present = np.flatnonzero(representative >= 0)
    number = np.empty(size, dtype=np.intp)
    number[present] = np.arange(len(present))
    return representative[present], number[key]


def _offset(column: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], int]:
    if column.dtype.kind not in "biu":
        raise ModelError(f"an array of {column.dtype} has no distinct values to tabulate; use integers or Booleans")
    code = column.astype(np.int64)
    if not len(code):
        return code, 1
    low, high = int(code.min()), int(code.max())
    if high - low >= 2**62:
        size, code = _renumbered(code)
        return code, size
    return code - low, high - low + 1


def _renumbered(code: npt.NDArray[np.int64]) -> tuple[int, npt.NDArray[np.int64]]:
    unique, number = np.unique(code, return_inverse=True)
    return len(unique), number.astype(np.int64)


def _apply(operation: Callable[[Any, Any], Any], left: Any, right: Any) -> PolynomialArray:
    if not isinstance(right, PolynomialArray | np.ndarray):
        memo = _memo_of_constant(left, operation, "right", right)
        return _calculate(lambda element: operation(element, right), [left], memo)
    if not isinstance(left, PolynomialArray | np.ndarray):
        memo = _memo_of_constant(right, operation, "left", left)
        return _calculate(lambda element: operation(left, element), [right], memo)
    return _calculate(operation, [left, right], _memo_of_pairs(operation, left, right))


def _memo_of_constant(array: Any, operation: Callable[[Any, Any], Any], side: str, constant: Any) -> Memo | None:
    """Return the memo of an operation with a constant on one side, or None if the constant is unusual."""
    if type(constant) not in _CONSTANTS:
        return None
    return cast(Memo, array.table.memo((operation, side, type(constant), constant)))


def _memo_of_pairs(operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Memo:
    """Return the memo of an operation on two columns, one of which may be of integers."""
    if not isinstance(left, PolynomialArray):
        return cast(Memo, right.table.memo(("integers", operation)))
    other: Hashable = right.table if isinstance(right, PolynomialArray) else "integers"
    return left.table.memo((operation, other))

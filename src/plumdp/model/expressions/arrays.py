"""Arrays of polynomials: an index per element into a table of the distinct ones.

A model of ten million transitions has a few thousand distinct expressions. Exact arithmetic is done on the
table, once per distinct value; the elements only carry an int32 index.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.errors import ModelError
from plumdp.model.expressions.polynomial import Polynomial, polynomial
from plumdp.model.text import number_of, one_line

Column: TypeAlias = "npt.NDArray[Any] | PolynomialArray"
"""An integer or Boolean array, or an array of polynomials."""


@dataclass(frozen=True, eq=False)
class PolynomialArray:
    """Polynomials by element: ``table[index[i]]``. No polynomial is in the table twice."""

    table: tuple[Polynomial, ...]
    index: npt.NDArray[np.int32]  # (n,)

    __array_ufunc__ = None

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
        return tabulate(operator.neg, self)


def tabulate(function: Callable[..., Any], *columns: Column) -> PolynomialArray:
    """Return ``function`` applied element by element, called once per distinct combination of its arguments.

    The function is plain Python on single numbers and returns an expression; the columns are arrays of state
    variables or of polynomials, all of one length.

    >>> from plumdp import parameters
    >>> (p,) = parameters("p")
    >>> tabulate(lambda level: p / 2 if level > 1 else p, np.array([0, 1, 2, 3])).table
    (Polynomial('p'), Polynomial('1/2*p'))
    """
    keys = [column.index if isinstance(column, PolynomialArray) else column for column in columns]
    representatives, inverse = distinct(keys)
    arguments = [
        [column.table[i] for i in key[representatives].tolist()]
        if isinstance(column, PolynomialArray)
        else key[representatives].tolist()
        for column, key in zip(columns, keys, strict=True)
    ]
    table: dict[Polynomial, int] = {}
    position = [table.setdefault(polynomial(function(*row)), len(table)) for row in zip(*arguments, strict=True)]
    return PolynomialArray(tuple(table), np.array(position, dtype=np.int32)[inverse])


def constant_array(value: Any, length: int) -> PolynomialArray:
    """Return an array that holds one value everywhere."""
    return PolynomialArray((polynomial(value),), np.zeros(length, dtype=np.int32))


def number_in(table: dict[Polynomial, int], value: Polynomial | PolynomialArray) -> Any:
    """Return the number of a polynomial in a growing table, or the numbers of an array of them; new ones are added."""
    if isinstance(value, Polynomial):
        return table.setdefault(value, len(table))
    number = np.array([table.setdefault(f, len(table)) for f in value.table], dtype=np.int32)
    return number[value.index]


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
        return tabulate(lambda element: operation(element, right), left)
    if not isinstance(left, PolynomialArray | np.ndarray):
        return tabulate(lambda element: operation(left, element), right)
    return tabulate(operation, left, right)

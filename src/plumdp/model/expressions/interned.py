"""Growing tables of distinct polynomials, which remember the results of operations on them.

A polynomial gets its number once, by its canonical text. After that, whole arrays are calculated by number, so that
exact arithmetic is done once for each combination of numbers that was not met before, in this call or in an earlier
one.

Results are remembered as long as someone has one of them. A table of results holds its memo, a memo the tables that it
calculates from, and these know their memos by weak references only.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from plumdp.model.expressions.polynomial import Polynomial, polynomial

Codes = npt.NDArray[np.int32]

_MAX_CELLS = 1 << 20  # of a memo; larger ones would take more memory than time
_ADDING = Lock()  # of new polynomials: a number is given out once, also if several threads explore


class PolynomialTable(Sequence[Polynomial]):
    """Distinct polynomials, numbered in the order in which they came, with numbers that never change."""

    def __init__(self, polynomials: Iterable[Polynomial] = ()) -> None:
        self._polynomials: list[Polynomial] = []
        self._number: dict[str, int] = {}
        self._memos: WeakValueDictionary[Hashable, Memo] = WeakValueDictionary()
        self._source: Memo | None = None  # whose results these are
        self._numbers_of: dict[PolynomialTable, Codes] = {}
        self.numbers(polynomials)

    def __len__(self) -> int:
        return len(self._polynomials)

    def __getitem__(self, i: Any) -> Any:
        return self._polynomials[i]

    def __iter__(self) -> Iterator[Polynomial]:
        return iter(self._polynomials)

    def __repr__(self) -> str:
        return repr(tuple(self._polynomials))

    def __reduce__(self) -> tuple[Any, ...]:
        return PolynomialTable, (tuple(self._polynomials),)

    def number(self, value: Any) -> int:
        """Return the number of an expression, which is added if it is new."""
        number = self._number.get(str(polynomial(value)))
        return int(self.numbers([value])[0]) if number is None else number

    def numbers(self, values: Iterable[Any]) -> Codes:
        """Return the numbers of expressions, adding new ones."""
        polynomials = [polynomial(value) for value in values]
        texts, number, numbers = [str(f) for f in polynomials], self._number, []
        with _ADDING:
            for f, text in zip(polynomials, texts, strict=True):
                n = number.get(text)
                if n is None:
                    n = len(self._polynomials)
                    self._polynomials.append(f)
                    number[text] = n
                numbers.append(n)
        return np.array(numbers, dtype=np.int32)

    def numbers_from(self, other: PolynomialTable, codes: Codes) -> Codes:
        """Return the numbers here of polynomials that are given by their numbers in another table."""
        numbers = self._numbers_of.get(other)
        if numbers is None or len(numbers) < len(other):
            n_known = 0 if numbers is None else len(numbers)
            more = self.numbers(other[n_known:])
            numbers = more if numbers is None else np.concatenate([numbers, more])
            self._numbers_of[other] = numbers
        return numbers[codes]

    def memo(self, key: Hashable) -> Memo:
        """Return the memo under a key, with results of one operation on the polynomials of this table."""
        memo = self._memos.get(key)
        if memo is None:
            memo = self._memos[key] = Memo(self, key)
            memo.table._source = memo
        return memo


class Memo:
    """Results by the integers that they were calculated from, in a dense array over the box of all integers so far."""

    def __init__(self, *operands: Any) -> None:
        self.table = PolynomialTable()
        self._operands = operands  # kept, so that who calculates the same again finds this memo
        self._box: tuple[list[int], Codes] | None = None  # least integers; a dimension for each column, -1: not known

    def codes(
        self, columns: Sequence[npt.NDArray[Any]], calculate: Callable[[npt.NDArray[np.intp]], Iterable[Any]]
    ) -> Codes | None:
        """Return the number of each result in ``table``, or None if the integers are too far apart to remember.

        ``calculate`` returns the results at some positions of the columns, one for each combination that is new.
        """
        ends = [(int(column.min()), int(column.max())) for column in columns]
        box = _covering(self._box, ends)
        if box is None:
            return None
        self._box = box
        low, numbers = box
        key = _place(columns, low, numbers.shape)
        flat = numbers.reshape(-1)
        codes = flat[key]
        if codes.min() < 0:
            missing = np.flatnonzero(codes < 0)
            once = missing[_first_of_each(key[missing], flat.size)]
            flat[key[once]] = self.table.numbers(calculate(once))
            codes = flat[key]
        return codes


def _place(columns: Sequence[npt.NDArray[Any]], low: Sequence[int], shape: tuple[int, ...]) -> Codes:
    """Return the place of each row of integers in a flat box that includes all."""
    key: Codes = np.zeros(0, dtype=np.int32)
    for j, column in enumerate(columns):
        wide = column if column.dtype.itemsize >= 4 else column.astype(np.int32)
        offset = (wide - low[j]).astype(np.int32, copy=False)
        key = offset if j == 0 else key * np.int32(shape[j]) + offset
    return key


def _first_of_each(key: Codes, size: int) -> npt.NDArray[np.intp]:
    """Return the position of the first occurrence of each key, in the order of the keys, all below the size."""
    if 16 * len(key) < size:
        return np.unique(key, return_index=True)[1]
    first = np.full(size, -1, dtype=np.intp)
    first[key[::-1]] = np.arange(len(key) - 1, -1, -1)
    return first[first >= 0]


def _covering(box: tuple[list[int], Codes] | None, ends: list[tuple[int, int]]) -> tuple[list[int], Codes] | None:
    """Return a box that includes the given one and the given ranges, or None if it has too many cells."""
    if box is None:
        box = [low for low, _ in ends], np.full([1] * len(ends), -1, dtype=np.int32)
    old = list(zip(box[0], box[1].shape, strict=True))
    grown = [_extended(low, width, *end) for (low, width), end in zip(old, ends, strict=True)]
    if grown == old:
        return box
    if np.prod([float(width) for _, width in grown]) > _MAX_CELLS:
        return None
    codes = np.full([width for _, width in grown], -1, dtype=np.int32)
    inside = [slice(low - new, low - new + width) for (low, width), (new, _) in zip(old, grown, strict=True)]
    codes[tuple(inside)] = box[1]
    return [low for low, _ in grown], codes


def _extended(low: int, width: int, first: int, last: int) -> tuple[int, int]:
    """Return the start and width of a range with another inside, which grows by half at least, and so rarely."""
    start = low if first >= low else min(first, low - width // 2)
    end = low + width if last < low + width else max(last + 1, low + width + width // 2)
    return start, end - start

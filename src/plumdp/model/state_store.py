"""The set of states found so far, one int32 row each, numbered in the order of discovery."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.model import kernels
from plumdp.model.graph import IntArray

Ends = npt.NDArray[np.int64]  # (n_columns)

_CELLS = 8  # of a box for each state in it: as much memory as the slots of a hash table
_SMALL_BOX = 1 << 20  # cells that are always possible


class StateStore:
    """Rows of integers with a number each. Looking up and adding is compiled, and exact.

    As long as the states fill a good part of a box, their numbers are in a dense array over the box, in which states
    that are close to each other are close in memory. After that they are in a hash table.
    """

    def __init__(self, n_columns: int) -> None:
        self.rows: IntArray = np.empty((1024, n_columns), dtype=np.int32)
        self.n = 0
        self._low, self._width = np.zeros((2, n_columns), dtype=np.int64)
        self._box: IntArray | None = np.full(1, -1, dtype=np.int32)  # None once there is a hash table
        self._slots: IntArray = np.zeros(0, dtype=np.int32)

    def intern(self, rows: IntArray) -> IntArray:
        """Return the numbers of the given rows, adding those that are new."""
        needed = self.n + len(rows)
        if needed > len(self.rows):
            grown = np.empty((max(2 * len(self.rows), needed), self.rows.shape[1]), dtype=np.int32)
            grown[: self.n] = self.rows[: self.n]
            self.rows = grown
        index = np.empty(len(rows), dtype=np.int32)
        done = 0
        while self._box is not None and done < len(rows):
            where = (self._low, self._width, self._box)
            self.n, done = kernels.intern_in_box(rows, done, *where, self.rows, self.n, index)
            if done < len(rows):
                self._extend_box(rows[done:])
        if done < len(rows):
            self._extend_slots(needed)
            self.n = kernels.intern_rows(rows[done:], self._slots, self.rows, self.n, index[done:])
        return index

    def _extend_box(self, rows: IntArray) -> None:
        """Extend the box to the given rows, and further if there is room, or give it up if the states are few in it."""
        first, last = rows.min(axis=0).astype(np.int64), rows.max(axis=0).astype(np.int64)
        if not self.n:
            self._low, self._width = first, np.zeros_like(first)
        low, width = _extended(self._low, self._width, first, last, 4)
        if self._is_sparse(width, len(rows)) and self.n:
            least = self.rows[: self.n].min(axis=0).astype(np.int64)
            low, width = _extended(least, self.rows[: self.n].max(axis=0) + 1 - least, first, last, 8)
        if self._is_sparse(width, len(rows)):
            self._box = None
            return
        self._low, self._width = low, width
        self._box = np.full(int(np.prod(width)), -1, dtype=np.int32)
        stored, index = self.rows[: self.n], np.empty(self.n, dtype=np.int32)
        kernels.intern_in_box(stored, 0, low, width, self._box, stored, 0, index)  # each gets its number again

    def _is_sparse(self, width: Ends, n_more: int) -> bool:
        most = max(_SMALL_BOX, _CELLS * (self.n + n_more))
        return bool(np.prod(width.astype(np.float64)) > most)

    def _extend_slots(self, needed: int) -> None:
        if 2 * needed > len(self._slots):
            self._slots = np.full(1 << max(12, (4 * needed).bit_length()), -1, dtype=np.int32)
            kernels.rebuild_slots(self.rows, self.n, self._slots)


def kind_of(field: str, value: Any) -> Any:
    """Return the type of a state variable's column, given its first value, or refuse all but ints and Booleans."""
    if not isinstance(value, int | np.integer | np.bool_):
        raise ModelError(f"state variable {field} is {value!r}; explore_batch takes ints and Booleans")
    return np.bool_ if isinstance(value, bool) else np.int32


def _extended(low: Ends, width: Ends, first: Ends, last: Ends, part: int) -> tuple[Ends, Ends]:
    """Return the box with rows from ``first`` to ``last`` inside.

    Where it grows, it grows by a share of its size at least.
    """
    end, more = low + width, width // part
    start = np.where(first < low, np.minimum(first, low - more), low)
    return start, np.where(last >= end, np.maximum(last + 1, end + more), end) - start

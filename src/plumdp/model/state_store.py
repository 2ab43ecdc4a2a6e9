"""The set of states found so far: one int32 row each, numbered in the order of discovery."""

from __future__ import annotations

import numpy as np

from plumdp.model import kernels
from plumdp.model.graph import IntArray


class StateStore:
    """Rows of integers with a number each; looking up and adding is compiled, and exact whatever the hash."""

    def __init__(self, n_columns: int) -> None:
        self.rows: IntArray = np.empty((1024, n_columns), dtype=np.int32)
        self.n = 0
        self._slots: IntArray = np.full(4096, -1, dtype=np.int32)

    def intern(self, rows: IntArray) -> IntArray:
        """Return the numbers of the given rows, adding those that are new."""
        needed = self.n + len(rows)
        if needed > len(self.rows):
            grown = np.empty((max(2 * len(self.rows), needed), self.rows.shape[1]), dtype=np.int32)
            grown[: self.n] = self.rows[: self.n]
            self.rows = grown
        if 2 * needed > len(self._slots):
            self._slots = np.full(1 << (4 * needed).bit_length(), -1, dtype=np.int32)
            kernels.rebuild_slots(self.rows, self.n, self._slots)
        index = np.empty(len(rows), dtype=np.int32)
        self.n = kernels.intern_rows(rows, self._slots, self.rows, self.n, index)
        return index

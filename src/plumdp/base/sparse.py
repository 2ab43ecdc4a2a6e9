"""Matrices with few entries: dense while they are small, as importing SciPy takes longer than all work on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.rounding import FloatArray

_SMALL = 1 << 17  # entries, zeros included


def sparse(entries: FloatArray, columns: npt.NDArray[Any], first: npt.NDArray[Any], width: int) -> Any:
    """Return a matrix of entries row after row, those of a place added up: of NumPy if it is small, or else of SciPy.

    Both have ``@``, ``.T``, ``abs`` and slices.

    >>> sparse(np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 2, 3]), 2)
    array([[0., 3.],
           [3., 0.]])
    """
    n = len(first) - 1
    if n * width > _SMALL:
        from scipy.sparse import csr_array

        return csr_array((entries, columns, first), shape=(n, width))
    place = np.repeat(np.arange(n) * width, np.diff(first)) + columns
    return np.bincount(place, entries, n * width).reshape(n, width)

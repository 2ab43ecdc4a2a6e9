"""Norms of batches of vectors and small symmetric matrices, from above."""

from __future__ import annotations

import numpy as np

from plumdp.model.graph import FloatArray
from plumdp.rounding import UNIT, UP

_MAX_WORK = 2e6  # n d³ up to which eigenvalues are calculated


def lengths(vectors: FloatArray) -> FloatArray:
    """Return Euclidean norms of the rows, rounded up unless squares underflow."""
    norms: FloatArray = np.sqrt((vectors**2).sum(axis=1)) * UP
    return norms


def packed_norms(packed: FloatArray, d: int) -> FloatArray:
    """Return Frobenius norms of packed symmetric matrices (n, d (d + 1) / 2), rounded up unless squares underflow."""
    if not packed.shape[1]:
        return np.zeros(len(packed))
    i, j = np.triu_indices(d)
    norms: FloatArray = np.sqrt(packed**2 @ np.where(i == j, 1.0, 2.0)) * UP
    return norms


def extreme_eigenvalues(matrices: FloatArray, *, exact: bool = True) -> tuple[FloatArray, FloatArray]:
    """Return upper bounds on the largest eigenvalues of symmetric matrices Q (n, d, d) and of -Q, or zero if negative.

    Small batches are left to LAPACK, whose error is a small multiple of the unit roundoff and of the norm. Otherwise,
    no eigenvalue is further from trace / d than sqrt((d - 1) (|Q|² - trace² / d) / d), with equality for d <= 2
    (Wolkowicz and Styan 1980).
    """
    n, d = matrices.shape[:2]
    norm = np.sqrt((matrices**2).sum(axis=(1, 2))) * UP
    middle, radius = _location(matrices, norm)
    above, below = np.minimum(middle + radius, norm), np.minimum(radius - middle, norm)
    if exact and d > 2 and n * d**3 <= _MAX_WORK:
        found, slack = np.linalg.eigvalsh(matrices), 1e-13 * (1 + d / 8) * norm
        above, below = np.minimum(above, found[:, -1] + slack), np.minimum(below, slack - found[:, 0])
    return np.maximum(above, 0.0), np.maximum(below, 0.0)


def _location(matrices: FloatArray, norm: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean of the eigenvalues, and how far from it they may lie at most; covers rounding in both."""
    d = matrices.shape[1]
    mean = np.trace(matrices, axis1=1, axis2=2) / max(d, 1)
    square = np.maximum(norm**2 / max(d, 1) - mean**2, 0.0) + 16 * (d + 4) * UNIT * norm**2
    radius: FloatArray = np.sqrt(max(d - 1, 0) * square) * UP + 4 * (d + 4) * UNIT * norm
    return mean, radius

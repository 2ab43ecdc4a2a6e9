"""Upper bounds on norms of batches of vectors and symmetric matrices.

Symmetric matrices are packed into the entries on and above the diagonal, row by row.
"""

from __future__ import annotations

import numpy as np

from plumdp.base.rounding import UNIT, UP
from plumdp.model.graph import FloatArray

_MAX_WORK = 2e6  # n d³ up to which eigenvalues are calculated
_TOGETHER = 2**19  # entries that are squared together, so that the squares stay in the cache


def lengths(vectors: FloatArray) -> FloatArray:
    """Return Euclidean norms of the rows, rounded up unless squares underflow."""
    norms: FloatArray = np.sqrt((vectors**2).sum(axis=1)) * UP
    return norms


def packed_norms(packed: FloatArray, d: int) -> FloatArray:
    """Return Frobenius norms of packed symmetric matrices (n, d (d + 1) / 2), rounded up unless squares underflow."""
    if not packed.shape[1]:
        return np.zeros(len(packed))
    i, j = np.triu_indices(d)
    weights, step = np.where(i == j, 1.0, 2.0), max(_TOGETHER // packed.shape[1], 1)
    squares = [packed[start : start + step] ** 2 @ weights for start in range(0, len(packed), step)]
    norms: FloatArray = np.sqrt(np.concatenate([np.zeros(0), *squares])) * UP
    return norms


def extreme_eigenvalues(packed: FloatArray, d: int, *, exact: bool = True) -> tuple[FloatArray, FloatArray]:
    """Return upper bounds on the largest eigenvalues of packed symmetric matrices Q and of -Q, or zero if negative.

    Small batches are left to LAPACK, whose error is a small multiple of the unit roundoff and of the norm. Otherwise,
    no eigenvalue is further from trace / d than sqrt((d - 1) (|Q|² - trace² / d) / d), with equality for d <= 2
    (Wolkowicz and Styan 1980).
    """
    n = len(packed)
    if not packed.shape[1]:
        return np.zeros(n), np.zeros(n)
    norm = packed_norms(packed, d)
    middle, radius = _location(packed, d, norm)
    # no eigenvalue is larger than the Frobenius norm, nor further out than their location says
    above, below = np.minimum(middle + radius, norm), np.minimum(radius - middle, norm)
    if exact and d > 2 and n * d**3 <= _MAX_WORK:
        eigenvalues, slack = np.linalg.eigvalsh(full(packed, d)), 1e-13 * (1 + d / 8) * norm
        above, below = np.minimum(above, eigenvalues[:, -1] + slack), np.minimum(below, slack - eigenvalues[:, 0])
    return np.maximum(above, 0.0), np.maximum(below, 0.0)


def _location(packed: FloatArray, d: int, norm: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean of the eigenvalues, and the largest distance they may have from it, with rounding in both."""
    i, j = np.triu_indices(d)
    mean = packed[:, i == j].sum(axis=1) / d
    square = np.maximum(norm**2 / d - mean**2, 0.0) + 16 * (d + 4) * UNIT * norm**2
    radius: FloatArray = np.sqrt((d - 1) * square) * UP + 4 * (d + 4) * UNIT * norm
    return mean, radius


def full(packed: FloatArray, d: int) -> FloatArray:
    """Return packed symmetric matrices (n, d (d + 1) / 2) as full ones (n, d, d)."""
    result = np.zeros((len(packed), d, d))
    if packed.shape[1]:
        i, j = np.triu_indices(d)
        result[:, i, j] = result[:, j, i] = packed
    return result


def packed(matrices: FloatArray) -> FloatArray:
    """Return symmetric matrices (n, d, d) packed as (n, d (d + 1) / 2)."""
    i, j = np.triu_indices(matrices.shape[-1])
    entries: FloatArray = matrices[:, i, j]
    return entries

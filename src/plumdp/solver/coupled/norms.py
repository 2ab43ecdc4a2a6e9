"""Norms of batches of vectors and small symmetric matrices, from above."""

from __future__ import annotations

import numpy as np

from plumdp.model.graph import FloatArray
from plumdp.rounding import UNIT, UP

_MAX_WORK = 3e7  # n d³ up to which eigenvalues are calculated
_MAX_PRODUCTS = 5e9  # n d³ up to which matrices are multiplied


def lengths(vectors: FloatArray) -> FloatArray:
    """Return Euclidean norms of the rows, rounded up unless squares underflow."""
    norms: FloatArray = np.sqrt((vectors**2).sum(axis=1)) * UP
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


def spectral_norms(matrices: FloatArray) -> FloatArray:
    """Return upper bounds on the spectral norms of symmetric matrices D (n, d, d).

    The better of the bound of Wolkowicz and Styan on both ends of the spectrum, and of |D⁴|^¼ with Frobenius' norm.
    For |D| = 1 the float D⁴ is off by at most 4 (d + 4) UNIT.
    """
    n, d = matrices.shape[:2]
    norm = np.sqrt((matrices**2).sum(axis=(1, 2))) * UP
    middle, radius = _location(matrices, norm)
    bound: FloatArray = np.minimum(norm, np.abs(middle) + radius)
    if d > 2 and n * d**3 <= _MAX_PRODUCTS:
        unit = matrices / np.where(norm > 0, norm, 1.0)[:, None, None]
        square = unit @ unit
        fourth = square @ square
        length = np.sqrt((fourth**2).sum(axis=(1, 2))) * UP + 8 * (d + 4) * UNIT
        bound = np.minimum(bound, length**0.25 * norm * UP)
    return bound


def _location(matrices: FloatArray, norm: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean of the eigenvalues, and how far from it they may lie at most; covers rounding in both."""
    d = matrices.shape[1]
    mean = np.trace(matrices, axis1=1, axis2=2) / max(d, 1)
    square = np.maximum(norm**2 / max(d, 1) - mean**2, 0.0) + 16 * (d + 4) * UNIT * norm**2
    radius: FloatArray = np.sqrt(max(d - 1, 0) * square) * UP + 4 * (d + 4) * UNIT * norm
    return mean, radius

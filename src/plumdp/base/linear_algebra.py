"""Linear algebra in floats with a proved bound on what it is off."""

from __future__ import annotations

import numpy as np

from plumdp.base.rounding import UNIT, UP, FloatArray


def inverse_root(matrix: FloatArray, matrix_error: FloatArray) -> tuple[FloatArray, float]:
    """Return a triangular root of the inverse of a matrix, and a bound on what it is off; infinite if that fails.

    The root M is what floats make of it, but the largest row sum of |Mᵀ A M - I|, the defect η, is bounded with all its
    roundings, for every symmetric A within ``matrix_error`` of the matrix. Hence (1 - η) I <= Mᵀ A M <= (1 + η) I, and
    for every s, ``s·A⁻¹ s <= |Mᵀ s|² / (1 - η)``: a rigorous bound on the quadratic form, without an exact inverse.
    """
    d = len(matrix)
    try:
        root = np.linalg.inv(np.linalg.cholesky(matrix)).T
    except np.linalg.LinAlgError:
        return np.eye(d), np.inf
    root = np.triu(root)
    size = np.abs(root).T @ ((2 * d + 8) * UNIT * np.abs(matrix) + matrix_error) @ np.abs(root)
    off = np.abs(root.T @ matrix @ root - np.eye(d)) + size + 4 * UNIT
    return root, float(off.sum(axis=1).max(initial=0.0)) * UP

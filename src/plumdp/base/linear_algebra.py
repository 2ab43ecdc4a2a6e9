"""Numerics in floats: roots with a proved bound on what they are off, and solutions that are proposals."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from plumdp.base.rounding import UNIT, UP, FloatArray


def solve_nearly(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Return about the solution of equations with a symmetric matrix, the shortest one if floats find them singular.

    There may be several matrices (m, d, d), and a solution for each. Nothing bounds what it is off, so that it only
    proposes. It is not finite if the equations are not.
    """
    is_finite = bool(np.isfinite(matrix).all() and np.isfinite(right).all())
    with suppress(np.linalg.LinAlgError):
        if is_finite:
            return np.asarray(np.linalg.solve(matrix, right))
    if matrix.ndim > 2:
        return np.array([solve_nearly(each, right) for each in matrix])
    if not is_finite:
        return np.full_like(right, np.nan)
    size = np.sqrt(np.abs(np.diagonal(matrix)))
    size = np.where(size > 0, size, 1.0)  # blocks of very different sizes count alike
    return np.asarray((np.linalg.lstsq(matrix / np.outer(size, size), (right.T / size).T)[0].T / size).T)


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


def last_that(holds: Callable[[float], bool], good: float, bad: float, halvings: int) -> float:
    """Return the last number on the way from a good to a bad one at which something holds, up to so many halvings."""
    for _ in range(halvings):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good

"""Linear algebra in ball arithmetic: what it returns is proved, or it gives up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flint import arb, arb_mat

from .reading import Ball, work


def is_positive(number: Ball) -> bool:
    """Return whether a number is surely above zero."""
    return bool(arb(number) > 0)


def norm(vector: Sequence[Any]) -> Ball:
    """Return the Euclidean length."""
    return sum((arb(x) * arb(x) for x in vector), start=arb(0)).nonnegative_part().sqrt()


def is_positive_definite(matrix: Sequence[Sequence[Any]]) -> bool:
    """Return whether a symmetric matrix is surely positive definite: all pivots of its elimination are positive."""
    n = len(matrix)
    work(n**3 // 3 + n**2)
    rows = [[arb(x) for x in row] for row in matrix]
    for i in range(n):
        if not rows[i][i] > 0:
            return False
        for j in range(i + 1, n):
            factor = rows[j][i] / rows[i][i]
            for k in range(i, n):
                rows[j][k] -= factor * rows[i][k]
    return True


def inverse(matrix: Sequence[Sequence[Any]]) -> list[list[Ball]] | None:
    """Return the inverse of a symmetric positive definite matrix, or None if it cannot be bounded."""
    if not is_positive_definite(matrix):
        return None
    if not len(matrix):
        return []
    try:
        rows: list[list[Ball]] = arb_mat([[arb(x) for x in row] for row in matrix]).inv().tolist()
    except ZeroDivisionError:
        return None
    return rows


def log_determinant(matrix: Sequence[Sequence[Any]]) -> Ball:
    """Return the logarithm of the determinant of a positive definite matrix."""
    return arb_mat([[arb(x) for x in row] for row in matrix]).det().log() if len(matrix) else arb(0)


def quadratic(matrix: Sequence[Sequence[Any]], vector: Sequence[Any]) -> Ball:
    """Return xᵀ M x."""
    total = arb(0)
    work(len(vector) ** 2)
    for row, x in zip(matrix, vector, strict=True):
        for entry, y in zip(row, vector, strict=True):
            total += arb(entry) * arb(x) * arb(y)
    return total

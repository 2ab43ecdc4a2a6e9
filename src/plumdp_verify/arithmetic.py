"""Vectors and matrices of balls: what is returned is proved, or it gives up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from flint import arb, arb_mat, fmpq

from .reading import Ball, work

_SMALL = fmpq(1, 10**9)


def sums(numbers: Sequence[Ball]) -> Ball:
    """Return the sum of balls."""
    return sum(numbers, start=arb(0))


def max_of(numbers: Sequence[Ball]) -> Ball:
    """Return the largest of several numbers."""
    return reduce(lambda a, b: a.max(b), numbers)


def min_of(numbers: Sequence[Ball]) -> Ball:
    """Return the least of several numbers."""
    return reduce(lambda a, b: a.min(b), numbers)


def curvature(t: Ball) -> Ball:
    """Return κ(t) = 2 (-t - ln(1 - t)) / t² or more, which grows in t: -ln(1 - s) <= s + κ(t) s² / 2 for s <= t."""
    end = arb(t.upper())
    if not end < 1:
        return arb("inf")
    # κ(t) = 1 + 2t/3 + t²/2 + …, which is below 1 + t where t is small
    return 1 + end if end < arb(_SMALL) else 2 * (-end - (-end).log1p()) / (end * end)


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

"""Ranges of polynomials over a box by their Bernstein coefficients.

A polynomial on a box is a weighted mean of its Bernstein coefficients (Bernstein 1912), so they enclose its range. The
enclosure is exact for multilinear polynomials, whose coefficients are the values at the corners.
"""

from __future__ import annotations

from math import comb

import numpy as np

from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, Indices, IntArray, owners

_MAX_COEFFICIENTS = 4096  # per polynomial; beyond, the trivial range is returned


def box_range(
    table: ExpressionTable, which: Indices, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return for the expressions ``which`` an outer range over the box, up to float rounding."""
    low, high = np.full(len(which), -np.inf), np.full(len(which), np.inf)
    matrix = table.coefficients[which]
    shapes, group = np.unique(_degrees(table)[which], axis=0, return_inverse=True)
    for g, degrees in enumerate(shapes):  # polynomials of the same degrees share their basis
        members = np.flatnonzero(group == g)
        rows = matrix[members]
        used = np.unique(rows.indices)
        support = degrees > 0
        basis = _bernstein_rows(table.monomials[used][:, support], lower[support], upper[support])
        if basis is not None:
            values = rows[:, used] @ basis
            low[members], high[members] = values.min(axis=1), values.max(axis=1)
    return low, high


def _degrees(table: ExpressionTable) -> IntArray:
    """Return the degree of each expression in each parameter (n_expressions, n_parameters)."""
    degrees = np.zeros((len(table), len(table.names)), dtype=np.int32)
    np.maximum.at(degrees, owners(table.first_term), table.monomials[table.monomial])
    return degrees


def _bernstein_rows(exponents: IntArray, lower: FloatArray, upper: FloatArray) -> FloatArray | None:
    """Return the Bernstein coefficients of each monomial (n_monomials, n_coefficients), or None if too many."""
    degrees = exponents.max(axis=0, initial=0)
    if np.prod(degrees + 1.0) > _MAX_COEFFICIENTS:
        return None
    result = np.ones((len(exponents), 1))
    for j, degree in enumerate(degrees):
        factor = _univariate(int(degree), float(lower[j]), float(upper[j]))[exponents[:, j]]
        result = (result[:, :, None] * factor[:, None, :]).reshape(len(exponents), -1)
    return result


def _univariate(degree: int, lower: float, upper: float) -> FloatArray:
    """Return the Bernstein coefficients of degree ``degree`` of each power x^e, in row e, on [lower, upper]."""
    powers = np.zeros((degree + 1, degree + 1))  # x^e = sum over j of powers[e, j] t^j with x = lower + (upper-lower) t
    for e in range(degree + 1):
        for j in range(e + 1):
            powers[e, j] = comb(e, j) * lower ** (e - j) * (upper - lower) ** j
    change = np.array([[comb(i, j) / comb(degree, j) for i in range(degree + 1)] for j in range(degree + 1)])
    coefficients: FloatArray = powers @ change
    return coefficients

"""Intervals of affine expressions as half-spaces in floats, rounded outward: no point that fits is lost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumdp.errors import ModelError
from plumdp.model.expressions import ExpressionTable
from plumdp.model.graph import FloatArray, IntArray
from plumdp.model.space import ParameterSpace

UNIT = 2.0**-53  # relative error of one rounding
UNDERFLOW = 1e-300  # more than what products too small for a float can add up to


@dataclass(frozen=True, eq=False)
class HalfSpaces:
    """The half-spaces ``rows @ point <= offsets``: the box (lower sides, upper sides), the space, and the intervals."""

    rows: FloatArray  # (n, d)
    offsets: FloatArray  # (n)
    expression: IntArray  # (n): whose interval it is, or -1 for the box and the space
    side: IntArray  # (n): 1 for an upper bound, -1 for a lower one, 0 for the box and the space
    half_width: FloatArray  # (n): of the interval; 0 for the box and the space


def half_spaces(space: ParameterSpace, table: ExpressionTable, lower: FloatArray, upper: FloatArray) -> HalfSpaces:
    """Return the box and the constraints of a space, and ``lower <= expression <= upper`` for each expression."""
    d, n = space.dimension, len(table)
    constant, matrix = affine_forms(table)
    reach = np.maximum(np.abs(space.lower), np.abs(space.upper))
    size = np.abs(constant) + np.abs(matrix) @ reach  # of the terms, each of which is rounded
    constraints, limits = space.inequalities
    rows = np.vstack([-np.eye(d), np.eye(d), constraints, matrix, -matrix])
    at_most, at_least = _outward(upper - constant, size), _outward(constant - lower, size)
    offsets = np.concatenate([-space.lower, space.upper, limits, at_most, at_least])
    known = len(offsets) - 2 * n
    number, zero = np.arange(n), np.zeros(known, dtype=np.int64)
    with np.errstate(invalid="ignore"):
        half_width = np.nan_to_num((upper - lower) / 2, nan=0, posinf=0).clip(min=0)
    return HalfSpaces(
        rows,
        offsets,
        np.concatenate([zero - 1, number, number]),
        np.concatenate([zero, np.ones_like(number), -np.ones_like(number)]),
        np.concatenate([zero, half_width, half_width]),
    )


def affine_forms(table: ExpressionTable) -> tuple[FloatArray, FloatArray]:
    """Return the constants (n) and the coefficients (n, d) of expressions, each rounded to the nearest float."""
    if not table.is_affine.all():
        worst = table.polynomials[int(np.argmax(table.degree))]
        raise ModelError(f"the expression {worst} is not affine: regions are built from affine expressions so far")
    degree = table.monomials.sum(axis=1)
    column = np.where(degree > 0, table.monomials.argmax(axis=1) + 1, 0) if len(table.names) else degree
    dense = np.zeros((len(table), len(table.names) + 1))
    dense[np.repeat(np.arange(len(table)), np.diff(table.first_term)), column[table.monomial]] = table.coefficient
    return dense[:, 0], np.ascontiguousarray(dense[:, 1:])


def _outward(offset: FloatArray, size: FloatArray) -> FloatArray:
    """Return the offsets, increased by what rounding of the offset and of terms of that size may take away."""
    return offset + (4 * UNIT * (np.abs(offset) + size) + UNDERFLOW)

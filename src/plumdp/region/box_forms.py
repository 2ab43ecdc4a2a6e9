"""Expressions as quadratic functions on boxes of parameters, with bounds on rounding and on higher terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any

import numpy as np

from plumdp.base.rounding import UNDERFLOW, UNIT, UP
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, Indices, IntArray
from plumdp.region.boxes import Boxes, Quadratic


@dataclass(frozen=True, eq=False)
class BoxForms:
    """Expressions as ``means + spreads·x + xᵀ curvatures x + rest`` on boxes, for coordinates up to ±1.

    The rest is at most ``errors``, for rounding, plus ``tails``, for all terms of degree three or more.
    A term of degree two has a full matrix, and curvatures are None if all expressions are affine.
    """

    means: FloatArray  # (n_boxes, n)
    spreads: FloatArray  # (n_boxes, n, d)
    curvatures: FloatArray | None  # (n_boxes, n, d, d)
    errors: FloatArray  # (n_boxes, n)
    tails: FloatArray  # (n_boxes, n)


def forms_on_boxes(expressions: ExpressionTable, used: Indices, boxes: Boxes, factor: float = 1.0) -> BoxForms:
    """Return some expressions of a table, times a factor that is itself rounded, as functions on boxes."""
    picked, monomials, degree, gamma = used_part(expressions, used)
    (b, d), m, centre, factors = boxes.middle.shape, len(monomials), boxes.centres, boxes.spreads
    # on the cube, a linear part reaches as far as the sum of its absolute values
    reach = np.abs(factors).sum(axis=2) * UP
    every = [np.repeat(part, m, axis=0) for part in (centre, factors, reach)]
    parts = expanded_monomials(np.tile(monomials, (b, 1)), every, 2 if degree > 1 else 1)

    def summed(matrix: Any, part: FloatArray) -> FloatArray:
        rows = part.reshape(b, m, -1).transpose(1, 0, 2)
        sums = np.asarray(matrix @ rows.reshape(m, -1)).reshape(len(used), b, -1)
        return np.asarray(factor * sums.transpose(1, 0, 2))

    means, spreads, packed = (summed(picked, part) for part in parts[:3])
    tails = summed(abs(picked), parts[3][:, 3])[:, :, 0]
    curvatures = full(packed.reshape(b * len(used), -1), d).reshape(b, len(used), d, d) if degree > 1 else None
    # the centre itself is rounded, relative to the terms that it is the sum of
    sizes = summed(abs(picked), np.prod((boxes.sizes * UP)[:, None] ** monomials, axis=2))[:, :, 0]
    errors = sizes * ((gamma + (degree * (d + 4) + 8) * UNIT) * UP) + UNDERFLOW
    return BoxForms(means[:, :, 0], spreads, curvatures, errors, tails * UP)


def full(packed: FloatArray, d: int) -> FloatArray:
    """Return packed symmetric matrices (n, d (d + 1) / 2) as full ones (n, d, d)."""
    result = np.zeros((len(packed), d, d))
    if packed.shape[1]:
        i, j = np.triu_indices(d)
        result[:, i, j] = result[:, j, i] = packed
    return result


def used_part(expressions: ExpressionTable, used: Indices) -> tuple[Any, IntArray, int, float]:
    """Return coefficients of some expressions, the monomials that they have, their degree, and their rounding."""
    picked = expressions.coefficients[used]
    n_terms, degree = int(np.diff(picked.indptr).max(initial=0)), int(expressions.degree[used].max(initial=0))
    is_used = np.zeros(len(expressions.monomials), dtype=np.bool_)
    is_used[picked.indices] = True
    monomials = np.where(is_used[:, None], expressions.monomials, 0)
    gamma = (6 * max(degree, 1) + n_terms + 16) * UNIT  # coefficients are the nearest floats: one more rounding
    return picked, monomials, degree, gamma


def expanded_monomials(
    exponents: IntArray, every: Sequence[FloatArray], order: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return mean, spread and curvature of monomials, and bounds on their terms of degree 0, 1, 2, and 3 or more.

    Each has a centre (n, d) and a factor (n, d, d) of its own, whose rows reach so far (n, d).
    """
    (n, d), (centre, factor, reach) = exponents.shape, every
    i, j = np.triu_indices(d if order > 1 else 0)
    mean, spread, curvature, size = np.ones(n), np.zeros((n, d)), np.zeros((n, len(i))), np.zeros((n, 4))
    size[:, 0] = 1
    factors_so_far = np.cumsum(exponents, axis=1)
    for position in range(int(factors_so_far[:, -1].max(initial=0)) if d else 0):
        which = np.flatnonzero(factors_so_far[:, -1] > position)
        parameter = (factors_so_far[which] <= position).sum(axis=1)
        c, r, length = centre[which, parameter], factor[which, parameter], reach[which, parameter]
        a, b, s = mean[which], spread[which], size[which]
        curvature[which] = curvature[which] * c[:, None] + (b[:, i] * r[:, j] + b[:, j] * r[:, i]) / 2
        spread[which] = b * c[:, None] + a[:, None] * r
        mean[which] = a * c
        shifted = np.column_stack([np.zeros(len(which)), s[:, :2], s[:, 2] + s[:, 3]])
        # terms of degree three or more stay together, as their sum is all that is bounded
        size[which] = (s * np.abs(c)[:, None] + shifted * length[:, None]) * UP
    return mean, spread, curvature, size


@dataclass(frozen=True, eq=False)
class Inequality:
    """The slack of the points at which one expression, perhaps of a large degree, is at most an offset."""

    expression: ExpressionTable  # with one expression
    offset: float
    is_bent: bool = False

    @cached_property
    def _terms(self) -> tuple[IntArray, FloatArray, float]:
        """The exponents of the monomials in lexical order, their coefficients, and the rounding of their sum."""
        picked, monomials, degree, gamma = used_part(self.expression, np.zeros(1, dtype=np.int64))
        d = monomials.shape[1]
        exponents = np.vstack([np.zeros_like(monomials, shape=(1, d)), monomials[picked.indices]])  # with a constant
        order = np.lexsort(exponents.T[::-1])
        # about the middle, each term is a product of powers, which are themselves products
        return exponents[order], np.append(0.0, picked.data)[order], gamma + (degree * (d + 6) + 8 * d + 32) * UNIT

    def above(self, boxes: Boxes) -> Quadratic:
        """Return functions above the slack on boxes."""
        (exponents, coefficients, gamma), spreads = self._terms, boxes.spreads
        d, reach = exponents.shape[1], np.abs(spreads).sum(2) * UP
        parts, powers = derivatives(exponents, coefficients, boxes.centres, 2)
        total = powers.sum(1)
        slope = (parts[:, None, total == 1] @ powers[total == 1] @ spreads)[:, 0]
        bends = np.zeros_like(spreads)
        for part, places in zip(parts.T, powers, strict=True):
            if places.sum() == 2:
                i, j = np.repeat(np.arange(d), places)
                bends[:, i, j] += part / 2
                bends[:, j, i] += part / 2
        bends = spreads.swapaxes(1, 2) @ bends @ spreads
        # all terms of absolute values at a corner, less those of degree two or less, are the others
        sizes, most = (
            derivatives(exponents, np.abs(coefficients), corner, 0)[0][:, 0]
            for corner in (boxes.sizes * UP, np.abs(boxes.centres) + reach)
        )
        known, _ = derivatives(exponents, np.abs(coefficients), np.abs(boxes.centres), 2)
        tail = most - (known * np.prod(reach[:, None] ** powers, axis=2)).sum(1)
        value = self.offset - parts[:, total == 0][:, 0]
        rest = np.maximum(tail, 0.0) + 4 * gamma * sizes + 4 * UNIT * (np.abs(value) + abs(self.offset)) + UNDERFLOW
        return Quadratic(value, -slope, -bends, rest * UP)

    def at(self, points: FloatArray) -> FloatArray:
        """Return about the slack at points (n, d)."""
        exponents, coefficients, _ = self._terms
        return np.asarray(self.offset - derivatives(exponents, coefficients, points, 0)[0][:, 0])


def derivatives(
    exponents: IntArray, coefficients: FloatArray, points: FloatArray, order: int
) -> tuple[FloatArray, IntArray]:
    """Return the coefficients of a polynomial about points (n, n_powers), up to a degree, and their powers.

    With exponents in lexical order, monomials that differ in the last parameters alone are next to each other, so that
    one parameter after the other is put in.
    """
    d = exponents.shape[1]
    found, powers = np.asarray(coefficients)[None, :, None], np.zeros((1, 0), dtype=np.int32)
    for i in range(d - 1, -1, -1):
        most = int(exponents[:, i].max(initial=0))
        values = np.cumprod(np.column_stack([np.ones(len(points)), *[points[:, i]] * most]), axis=1)
        exponent, k = np.arange(most + 1)[:, None], np.arange(order + 1)
        chosen = values[:, np.maximum(exponent - k, 0)] * np.vectorize(comb)(exponent, k)
        pairs = [(row, k) for row in range(len(powers)) for k in range(order + 1 - int(powers[row].sum()))]
        row, power = np.array(pairs, dtype=np.int32).T
        products = found[:, :, row] * chosen[:, exponents[:, i]][:, :, power]
        is_new = np.append(True, (np.diff(exponents[:, :i], axis=0) != 0).any(axis=1))
        found = np.add.reduceat(products, np.flatnonzero(is_new), axis=1)
        exponents, powers = exponents[is_new], np.column_stack([power, powers[row]])
    return found[:, 0], powers

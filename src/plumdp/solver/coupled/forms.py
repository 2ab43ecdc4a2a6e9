"""Expressions as quadratic functions on a ball of parameters, with bounds on rounding and on higher terms.

Symmetric matrices are packed into the entries on and above the diagonal, row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plumdp.base.rounding import SQUARES_UNDERFLOW, UNDERFLOW, UNIT, UP
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, Indices, IntArray, read_only
from plumdp.region.ball import Ball
from plumdp.region.shapes import Region

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


MAX_DEGREE = 16


@dataclass(frozen=True, eq=False)
class Forms:
    """Expression f is ``means[f] + spreads[f]·x + xᵀ curvatures[f] x + rest`` at the point ``centre + factor @ x``.

    For |x| <= 1 the rest is at most ``errors[f]``, for rounding, plus ``tails[f]``, for all terms of degree three or
    more. The tails of a row sum to zero at every point, as the row sums to one and so do its other terms.
    Symmetric matrices are packed into the entries on and above the diagonal, row by row.
    """

    means: FloatArray  # (n)
    spreads: FloatArray  # (n, d)
    curvatures: FloatArray  # (n, d (d + 1) / 2), or (n, 0) if all expressions are affine
    errors: FloatArray  # (n)
    tails: FloatArray  # (n)
    lower: FloatArray  # (n): bounds on the expression over the region itself, which may be smaller than the ball
    upper: FloatArray  # (n)

    @property
    def dimension(self) -> int:
        """The number of parameters."""
        return int(self.spreads.shape[1])

    @property
    def is_affine(self) -> bool:
        """Whether no expression has a product of parameters."""
        return bool(self.curvatures.shape[1] == 0)

    def scaled(self, factor: float) -> Forms:
        """Return the forms times a positive number that is itself rounded, such as a discount."""
        if factor == 1:
            return self
        size = np.abs(self.means) + lengths(self.spreads) + packed_norms(self.curvatures, self.dimension)
        return Forms(
            self.means * factor,
            self.spreads * factor,
            self.curvatures * factor,
            (self.errors * factor + 4 * UNIT * factor * size) * UP,
            self.tails * (factor * UP),
            self.lower * factor,
            self.upper * factor,
        )

    def reaches(self) -> FloatArray:
        """Return bounds on ``|spreads·x|`` over the region.

        They follow from the ball, and for affine expressions from their bounds as well.
        """
        by_ball = lengths(self.spreads)
        is_affine = (packed_norms(self.curvatures, self.dimension) == 0) & (self.tails == 0)
        by_bounds = np.maximum(self.upper - self.means, self.means - self.lower)
        slack = self.errors + 8 * UNIT * (np.abs(self.means) + np.abs(self.lower) + np.abs(self.upper))
        reaches: FloatArray = np.where(is_affine, np.minimum(by_ball, (by_bounds + slack) * UP), by_ball)
        return reaches


def forms_on(
    expressions: ExpressionTable,
    used: Indices,
    ball: Ball,
    *,
    bounds: tuple[FloatArray, FloatArray] | None = None,
    order: int = 2,
) -> Forms:
    """Return some expressions of a table as functions on a ball, of order one without curvatures, for estimates.

    ``bounds`` are lower and upper bounds of all expressions over the region that the ball is put around.

    A monomial is multiplied up factor by factor: (a + b·x + xᵀ C x)(c + r·x) = a c + (c b + a r)·x + xᵀ (c C + b rᵀ) x
    and terms of degree three. Its size, the same with absolute values, bounds each of them.
    """
    picked, monomials, degree, gamma = _used_part(expressions, used)
    n = len(monomials)
    every = [np.broadcast_to(part, (n, *part.shape)) for part in (ball.centre, ball.factor, lengths(ball.factor))]
    means, spreads, curvatures, sizes = _monomials(monomials, every, order if degree > 1 else 1)
    absolute = abs(picked)
    return Forms(
        read_only(picked @ means),
        read_only(picked @ spreads),
        read_only(picked @ curvatures),
        read_only(absolute @ sizes.sum(axis=1) * (gamma * UP) + UNDERFLOW),
        read_only(absolute @ sizes[:, 3] * UP),
        np.full(len(used), -np.inf) if bounds is None else read_only(bounds[0][used]),
        np.full(len(used), np.inf) if bounds is None else read_only(bounds[1][used]),
    )


@dataclass(frozen=True, eq=False)
class BoxForms:
    """Expressions as in ``Forms``, on each of some boxes of a ball, in coordinates none of which is beyond ±1.

    A term of degree two has a full matrix, and curvatures are None if all expressions are affine.
    """

    means: FloatArray  # (n_boxes, n)
    spreads: FloatArray  # (n_boxes, n, d)
    curvatures: FloatArray | None  # (n_boxes, n, d, d)
    errors: FloatArray  # (n_boxes, n)
    tails: FloatArray  # (n_boxes, n)


@dataclass(frozen=True, eq=False)
class Boxes:
    """The points ``ball.centre + ball.factor @ (middle + reach * x)`` where no entry of x is beyond ±1."""

    ball: Ball
    middle: FloatArray  # (n_boxes, d)
    reach: FloatArray  # (n_boxes, d)

    def __getitem__(self, which: Any) -> Boxes:
        return replace(self, middle=self.middle[which], reach=self.reach[which])


def forms_on_boxes(expressions: ExpressionTable, used: Indices, boxes: Boxes, factor: float = 1.0) -> BoxForms:
    """Return some expressions of a table, times a factor that is itself rounded, as functions on boxes."""
    picked, monomials, degree, gamma = _used_part(expressions, used)
    (b, d), m, turn = boxes.middle.shape, len(monomials), boxes.ball.factor
    centre, factors = boxes.ball.centre + boxes.middle @ turn.T, turn * boxes.reach[:, None]
    # on the cube, a linear part reaches as far as the sum of its absolute values
    reach = np.abs(factors).sum(axis=2) * UP
    every = [np.repeat(part, m, axis=0) for part in (centre, factors, reach)]
    parts = _monomials(np.tile(monomials, (b, 1)), every, 2 if degree > 1 else 1)

    def summed(matrix: Any, part: FloatArray) -> FloatArray:
        rows = part.reshape(b, m, -1).transpose(1, 0, 2)
        sums = np.asarray(matrix @ rows.reshape(m, -1)).reshape(len(used), b, -1)
        return np.asarray(factor * sums.transpose(1, 0, 2))

    means, spreads, packed = (summed(picked, part) for part in parts[:3])
    tails = summed(abs(picked), parts[3][:, 3])[:, :, 0]
    curvatures = full(packed.reshape(b * len(used), -1), d).reshape(b, len(used), d, d) if degree > 1 else None
    # the centre itself is rounded, relative to the terms that it is the sum of
    bulk = np.abs(boxes.ball.centre) + np.abs(boxes.middle) @ np.abs(turn).T + reach
    sizes = summed(abs(picked), np.prod(bulk[:, None] ** monomials, axis=2))[:, :, 0]
    errors = sizes * ((gamma + (degree * (d + 4) + 8) * UNIT) * UP) + UNDERFLOW
    return BoxForms(means[:, :, 0], spreads, curvatures, errors, tails * UP)


def _used_part(expressions: ExpressionTable, used: Indices) -> tuple[Any, IntArray, int, float]:
    """Return coefficients of some expressions, the monomials that they have, their degree, and their rounding."""
    picked = expressions.coefficients[used]
    n_terms, degree = int(np.diff(picked.indptr).max(initial=0)), int(expressions.degree[used].max(initial=0))
    is_used = np.zeros(len(expressions.monomials), dtype=np.bool_)
    is_used[picked.indices] = True
    monomials = np.where(is_used[:, None], expressions.monomials, 0)
    gamma = (6 * max(degree, 1) + n_terms + 16) * UNIT  # coefficients are the nearest floats: one more rounding
    return picked, monomials, degree, gamma


def _monomials(
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


@dataclass(frozen=True)
class LinearRange:
    """Bounds on a linear function, and the share of rounding in them."""

    lower: float
    upper: float
    rounding: float = 0.0
    direction: FloatArray | None = None  # (d): about its gradient in the variables of the region, if that was asked


def linear_range(region: Region, ball: Ball, slope: FloatArray) -> LinearRange:
    """Return bounds on ``slope @ x`` over all x for which ``centre + factor @ x`` is a point of the region.

    For any direction g of the parameters, slope·x = g·(v - centre) + (slope - factorᵀ g)·x, where |x| <= 1.
    """
    length = float(np.sqrt((slope**2).sum())) * UP + SQUARES_UNDERFLOW
    direction = np.linalg.lstsq(ball.factor.T, slope, rcond=None)[0]
    if not np.isfinite(direction).all():
        return LinearRange(-length, length)
    n, d = len(slope), len(region.names)
    gamma = (n + 8) * UNIT
    mismatch = float(np.sqrt(((slope - ball.factor.T @ direction) ** 2).sum())) * UP
    size = float(np.linalg.norm(np.abs(ball.factor.T) @ np.abs(direction))) + length
    offset = float(direction @ ball.centre)
    slack = mismatch + gamma * (size + float(np.abs(direction) @ np.abs(ball.centre))) * UP + SQUARES_UNDERFLOW
    objectives = np.zeros((2, d))
    objectives[0, :n], objectives[1, :n] = direction, -direction
    least, most = region.minimise(objectives) * np.array([1.0, -1.0])
    slack += 4 * UNIT * float(abs(least) + abs(most) + abs(offset))
    lower, upper = max(float(least) - offset - slack, -length), min(float(most) - offset + slack, length)
    return LinearRange(lower, upper, slack, objectives[0])

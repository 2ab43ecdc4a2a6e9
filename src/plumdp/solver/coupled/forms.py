"""Expressions as quadratic functions on a ball of parameters, with bounds on rounding and on higher terms.

Symmetric matrices are packed into the entries on and above the diagonal, row by row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumdp.base.rounding import UNDERFLOW, UNIT, UP
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, Indices, read_only
from plumdp.region.ball import Ball
from plumdp.region.box_forms import expanded_monomials, full, used_part

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
    picked, monomials, degree, gamma = used_part(expressions, used)
    n = len(monomials)
    every = [np.broadcast_to(part, (n, *part.shape)) for part in (ball.centre, ball.factor, lengths(ball.factor))]
    means, spreads, curvatures, sizes = expanded_monomials(monomials, every, order if degree > 1 else 1)
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

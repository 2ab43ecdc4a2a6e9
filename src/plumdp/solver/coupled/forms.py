"""Expressions as quadratic functions on a ball of parameters, with bounds on rounding and on higher terms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumdp.base.rounding import UNDERFLOW, UNIT, UP
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, Indices, IntArray, read_only
from plumdp.region.ball import Ball
from plumdp.solver.coupled.norms import lengths, packed_norms

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
    picked = expressions.coefficients[used]
    n_terms, degree = int(np.diff(picked.indptr).max(initial=0)), int(expressions.degree[used].max(initial=0))
    is_used = np.zeros(len(expressions.monomials), dtype=np.bool_)
    is_used[picked.indices] = True
    monomials = np.where(is_used[:, None], expressions.monomials, 0)
    means, spreads, curvatures, sizes = _monomials(monomials, ball, order if degree > 1 else 1)
    absolute = abs(picked)
    gamma = (6 * max(degree, 1) + n_terms + 16) * UNIT  # coefficients are the nearest floats: one more rounding
    return Forms(
        read_only(picked @ means),
        read_only(picked @ spreads),
        read_only(picked @ curvatures),
        read_only(absolute @ sizes.sum(axis=1) * (gamma * UP) + UNDERFLOW),
        read_only(absolute @ sizes[:, 3] * UP),
        np.full(len(used), -np.inf) if bounds is None else read_only(bounds[0][used]),
        np.full(len(used), np.inf) if bounds is None else read_only(bounds[1][used]),
    )


def _monomials(exponents: IntArray, ball: Ball, order: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return mean, spread and curvature of monomials, and bounds on their terms of degree 0, 1, 2, and 3 or more."""
    n, d = exponents.shape
    i, j = np.triu_indices(d if order > 1 else 0)
    mean, spread, curvature, size = np.ones(n), np.zeros((n, d)), np.zeros((n, len(i))), np.zeros((n, 4))
    size[:, 0] = 1
    reach = lengths(ball.factor)
    factors_so_far = np.cumsum(exponents, axis=1)
    for position in range(int(factors_so_far[:, -1].max(initial=0)) if d else 0):
        which = np.flatnonzero(factors_so_far[:, -1] > position)
        parameter = (factors_so_far[which] <= position).sum(axis=1)
        c, r, length = ball.centre[parameter], ball.factor[parameter], reach[parameter]
        a, b, s = mean[which], spread[which], size[which]
        curvature[which] = curvature[which] * c[:, None] + (b[:, i] * r[:, j] + b[:, j] * r[:, i]) / 2
        spread[which] = b * c[:, None] + a[:, None] * r
        mean[which] = a * c
        shifted = np.column_stack([np.zeros(len(which)), s[:, :2], s[:, 2] + s[:, 3]])
        # terms of degree three or more stay together, as their sum is all that is bounded
        size[which] = (s * np.abs(c)[:, None] + shifted * length[:, None]) * UP
    return mean, spread, curvature, size

"""Ellipsoids and tangents that enclose the points of large likelihood, about any point.

Let ℓ(v) = Σ count[j] ln f[j](v), v̂ any point with f[j](v̂) > 0 for all outcomes that were seen, and g the gradient of
ℓ there. For a point v of a polytope write f[j](v) = f[j](v̂) (1 + s[j]), with s[j] at most its largest value over the
polytope, S[j]. Then ln(1 + s) <= s - κ(S) s² / 2 with κ(S) = 2 (S - ln(1 + S)) / S², which falls with S. So

    ℓ(v) <= ℓ(v̂) + g·(v - v̂) - |v - v̂|²_H / 2,    H = Σ count[j] κ(S[j]) b[j] b[j]ᵀ / f[j](v̂)²,

and a point with ℓ(v) >= threshold has, with τ = ℓ(v̂) - threshold and G the maximum of g·(v - v̂) over the polytope,

    |v - v̂|²_H <= 2 (τ + G)    and    g·(v - v̂) >= -τ.

By the first, S[j] can be made smaller, which makes H larger. The second is a valid half-space, since ℓ is concave.

*Directions that were not seen.* There H is singular. If |v - v̂|²_P <= r² holds in the polytope, then so does
|v - v̂|²_{H + αP} <= 2 (τ + G) + α r², the sum of both, whatever α is. P projects onto the directions that were not
seen, up to rounding, and r² is calculated for the point v̂ at hand, about which nothing is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import fsum, sqrt

import numpy as np

from plumdp.base.linear_algebra import inverse_root
from plumdp.base.rounding import SQUARES_UNDERFLOW, UNDERFLOW, UNIT, UP
from plumdp.confidence.estimates import estimate, find_estimate, is_never_seen, span_of
from plumdp.confidence.evidence import PSEUDO_COUNTS, curvature_below
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.model.graph import FloatArray
from plumdp.region.shapes import Polytope

_SHARE = 0.005  # of the square of the radius, for directions that were not seen
_ROUNDS = 10
_WORTH = 0.99  # a further round, if this one has made some S smaller by this factor
_CANCELLED = 1e-12  # relative error of a probability from which on it is calculated exactly
_MANY = 400  # objectives in many dimensions: their maxima over the polytope are then taken from its box


@dataclass(frozen=True, eq=False)
class LikelihoodEllipsoid:
    """An ellipsoid and a half-space, ``tangent @ point >= offset``, with all points of large likelihood of a polytope.

    If ``reserve``, an upper bound on τ + G, is negative, there are none.
    """

    centre: FloatArray  # (d)
    matrix: FloatArray  # (d, d)
    radius: float
    log_volume: float  # an estimate, to compare with others
    tangent: FloatArray  # (d)
    offset: float
    reserve: float


def likelihood_ellipsoids(
    table: LikelihoodTable, seen: FloatArray, threshold: float, within: Polytope
) -> list[LikelihoodEllipsoid]:
    """Return ellipsoids around the points of a polytope with ℓ >= threshold, smallest first.

    Each of them holds all these points. ``seen`` has the count of each outcome.
    """
    has_unseen = bool(is_never_seen(table, seen).any())
    points = [find_estimate(table, seen)]
    points += [estimate(table, seen, pseudo=c) for c in PSEUDO_COUNTS[1:] if has_unseen]
    heights = _heights(table, seen, within)
    ellipsoids = [
        likelihood_ellipsoid(table, seen, threshold, point, within, heights=heights)
        for point in ([point for point in points if point is not None] or [table.middle])
    ]
    return sorted((one for one in ellipsoids if one is not None), key=lambda one: one.log_volume)


def likelihood_ellipsoid(
    table: LikelihoodTable,
    seen: FloatArray,
    threshold: float,
    point: FloatArray,
    within: Polytope,
    *,
    heights: FloatArray | None = None,
) -> LikelihoodEllipsoid | None:
    """Return an ellipsoid about a point that holds all points of a polytope where ℓ >= threshold.

    ``heights`` are upper bounds on the maxima over the polytope of ``coefficients @ point``, for outcomes that were
    seen. It is None if floats cannot prove it.
    """
    low, high = _probabilities(table, seen, point)
    if not (low[seen > 0] > 0).all():
        return None
    terms = seen[seen > 0] * np.log(high[seen > 0])
    excess = (fsum(terms) - threshold) + 16 * UNIT * (fsum(np.abs(terms)) + abs(threshold))
    here = _about(table, seen, point, low, high, within)
    slack = float(here.gradient_error @ here.reach) * UP
    slack += (len(point) + 8) * UNIT * float(np.abs(here.gradient) @ here.size)
    level = float(here.gradient @ point)
    highest = -float(within.minimise(-here.gradient[None, :])[0])
    slack += 8 * UNIT * (abs(level) + abs(highest) + abs(excess))
    # both outward: a larger reserve makes a larger ellipsoid, a lower offset a larger half-space
    reserve, offset = excess + highest - level + slack, level - excess - slack
    square = 2 * max(reserve, 0.0) * UP + UNDERFLOW
    heights = _heights(table, seen, within) if heights is None else heights
    ellipsoid = _ellipsoid(here, heights, square, within) or _ellipsoid(here, heights, square, within, everywhere=True)
    if ellipsoid is None:
        return None
    matrix, radius, log_volume = ellipsoid
    return LikelihoodEllipsoid(point, matrix, radius, log_volume, here.gradient, offset, reserve)


def _probabilities(table: LikelihoodTable, seen: FloatArray, point: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the probability of each outcome at a point, from exact fractions where floats cancel."""
    values, errors = table.values(point)
    exact = {name: Fraction(x) for name, x in zip(table.names, point.tolist(), strict=True)}
    for j in np.flatnonzero((seen > 0) & (errors > _CANCELLED * np.abs(values))).tolist():
        values[j] = float(table.outcomes[j].evaluate(exact))
        errors[j] = 2 * UNIT * abs(values[j])
    return values - errors, values + errors


@dataclass(frozen=True, eq=False)
class _LocalLikelihood:
    """The outcomes that were seen, but for constants, about a point, and how far the polytope reaches from it."""

    point: FloatArray  # (d)
    counts: FloatArray  # (n)
    slopes: FloatArray  # (n, d), to the nearest float
    low: FloatArray  # (n): bounds on the probabilities
    high: FloatArray  # (n)
    gradient: FloatArray  # (d)
    gradient_error: FloatArray  # (d)
    reach: FloatArray  # (d): at least |v - point| for all points v of the polytope
    size: FloatArray  # (d): at least |v| + |point|


def _about(
    table: LikelihoodTable, seen: FloatArray, point: FloatArray, low: FloatArray, high: FloatArray, within: Polytope
) -> _LocalLikelihood:
    used = (seen > 0) & (table.direction >= 0)
    counts, slopes, low, high = seen[used], table.coefficients[used], low[used], high[used]
    middle = (low + high) / 2
    gradient = slopes.T @ (counts / middle)
    error = np.abs(slopes).T @ (counts / low * ((high - low) / low + (len(counts) + 8) * UNIT)) * UP
    reach = np.maximum(within.upper - point, point - within.lower) * UP + UNDERFLOW
    size = np.maximum(np.abs(within.upper), np.abs(within.lower)) + np.abs(point)
    return _LocalLikelihood(point, counts, slopes, low, high, gradient, error, reach, size)


def _heights(table: LikelihoodTable, seen: FloatArray, within: Polytope) -> FloatArray:
    """Return upper bounds on the maxima over a polytope of ``coefficients @ point``, for outcomes that were seen."""
    slopes = table.coefficients[(seen > 0) & (table.direction >= 0)]
    if len(slopes) <= _MANY or slopes.shape[1] <= 4:
        return -within.minimise(-slopes)
    # the box around the polytope gives bounds that are looser, and cheaper
    largest = np.maximum(slopes * within.lower, slopes * within.upper).sum(axis=1)
    size = np.abs(slopes) @ np.maximum(np.abs(within.lower), np.abs(within.upper))
    return np.asarray(largest + slopes.shape[1] * UNIT * size)


def _ellipsoid(
    here: _LocalLikelihood, heights: FloatArray, square: float, within: Polytope, *, everywhere: bool = False
) -> tuple[FloatArray, float, float] | None:
    """Return the matrix, radius and log-volume of an ellipsoid about a point, or None if floats cannot tell.

    ``everywhere`` adds a multiple of P in all directions, also those that were seen.
    """
    d = len(here.point)
    added, added_error, more = _completion(here, square, within, everywhere=everywhere)
    radius = sqrt(square + more) * UP
    slopes = np.abs(here.slopes)
    largest = (heights - here.slopes @ here.point + (d + 8) * UNIT * (slopes @ here.size)) / here.low
    largest = np.maximum(largest, 0) * UP
    ellipsoid = None
    for _ in range(_ROUNDS):
        # κ falls with S, so that an upper bound on S gives a lower bound on κ, and a matrix that is not too large
        weights = here.counts * curvature_below(largest) / here.high**2 * (1 - 1e-12)
        matrix = (here.slopes * weights[:, None]).T @ here.slopes + added
        matrix = (matrix + matrix.T) / 2
        error = (len(slopes) + 16) * UNIT * (slopes.T @ (weights[:, None] * slopes) + np.abs(added)) + added_error
        root, defect = inverse_root(matrix, error)
        if not defect < 0.5:
            break
        # a larger radius covers what the root of the inverse is off by
        stretched = radius * sqrt((1 + defect) / (1 - defect)) * UP
        ellipsoid = matrix, stretched, d * np.log(stretched) + float(np.log(np.diagonal(root)).sum())
        across = np.linalg.norm(np.abs(here.slopes @ root) + (d + 4) * UNIT * slopes @ np.abs(root), axis=1)
        reached = radius * (across + SQUARES_UNDERFLOW) / sqrt(1 - defect) / here.low * UP
        if not (reached < _WORTH * largest).any():
            break
        largest = np.minimum(largest, reached)  # the ellipsoid bounds S as well: a smaller one may follow
    return ellipsoid


def _completion(
    here: _LocalLikelihood, square: float, within: Polytope, *, everywhere: bool
) -> tuple[FloatArray, FloatArray, float]:
    """Return αP, which makes the matrix regular, a bound on its rounding, and αr²."""
    d, share = len(here.point), _SHARE * max(square, 1.0)
    if everywhere:
        added = np.diag(share / d / np.maximum(here.reach, SQUARES_UNDERFLOW) ** 2)
        return added, 8 * UNIT * added, share * UP
    basis = span_of(here.slopes)
    rest = np.linalg.qr(np.hstack([basis, np.eye(d)]))[0][:, basis.shape[1] :]
    if not rest.shape[1]:
        return np.zeros((d, d)), np.zeros((d, d)), 0.0
    ends = np.stack([-within.minimise(-rest.T) - rest.T @ here.point, rest.T @ here.point - within.minimise(rest.T)])
    far = np.abs(ends).max(axis=0) + (d + 8) * UNIT * (np.abs(rest.T) @ here.size) + SQUARES_UNDERFLOW
    total = float(far @ far) * UP
    factor = share / total
    size = np.abs(rest) @ np.abs(rest.T)
    return factor * (rest @ rest.T), (d + 8) * UNIT * factor * size, factor * total * UP

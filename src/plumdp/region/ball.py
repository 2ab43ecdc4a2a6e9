"""Ellipsoids of the parameters alone that hold a region, each the image of the unit ball under an affine map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from plumdp.base.rounding import SQUARES_UNDERFLOW, UNDERFLOW, UNIT, UP
from plumdp.model.graph import FloatArray, read_only
from plumdp.region.ellipsoid import Ellipsoid, Enclosed
from plumdp.region.shapes import Region

_ATTEMPTS = 4  # to scale a factor
_LOOSE = 0.999  # a factor that could be smaller than this share of itself is scaled
_MAX_DEFECT = 1e-3  # of an inverse that is trusted


@dataclass(frozen=True, eq=False)
class Ball:
    """The points ``centre + factor @ x`` with ``|x| <= 1``, for exactly these floats."""

    centre: FloatArray  # (n)
    factor: FloatArray  # (n, n)


@singledispatch
def ball_around(region: Region, n_parameters: int) -> Ball:
    """Return a ball that holds the parameters of every point of a region, without its products of parameters.

    A kind of region that knows better than the box around it registers its own function.
    """
    return ball_around_box(region.lower[:n_parameters], region.upper[:n_parameters])


def ball_around_box(lower: FloatArray, upper: FloatArray) -> Ball:
    """Return the smallest ellipsoid around a box that has the same axes.

    Its semi-axes are the half-widths of the box times the root of n. A side of length zero gets a tiny width, so that
    the factor can be inverted.
    """
    centre = (lower + upper) / 2
    reach = np.maximum(upper - centre, centre - lower)
    reach = np.maximum(reach, 4 * UNIT * np.abs(centre) + UNDERFLOW) * (UP * np.sqrt(max(len(centre), 1)))
    return Ball(read_only(centre), read_only(np.diag(reach)))


@ball_around.register
def _around_ellipsoid(region: Ellipsoid, n_parameters: int) -> Ball:
    """Return the ellipsoid itself, or its shadow on the parameters.

    If floats cannot prove that it holds the region, it is the ball around the box.
    """
    centre, rows = region.centre[:n_parameters].copy(), region.radius * region.root[:n_parameters]
    ball = _with_factor(centre, rows, rows if rows.shape[0] == rows.shape[1] else _root(rows @ rows.T))
    return ball_around_box(region.lower[:n_parameters], region.upper[:n_parameters]) if ball is None else ball


def turned(ball: Ball, axes: FloatArray) -> Ball:
    """Return a ball with about the given orthogonal axes (d, d), as columns, that holds another one, or that one."""
    return _with_factor(ball.centre, ball.factor, ball.factor @ axes) or ball


def _with_factor(centre: FloatArray, rows: FloatArray, factor: FloatArray) -> Ball | None:
    """Return the ball of a multiple of a factor that holds all points ``centre + rows @ x`` with |x| <= 1."""

    def reach(inverse: FloatArray, gamma: float) -> float:
        size = np.linalg.norm(np.abs(inverse) @ np.abs(rows))
        return float(np.linalg.norm(inverse @ rows, 2) * (1 + 1e-12) + gamma * size)

    return fitted(centre, factor, reach)


@ball_around.register
def _around_enclosed(region: Enclosed, n_parameters: int) -> Ball:
    """Return the ball of the ellipsoid."""
    return _around_ellipsoid(region.ellipsoid, n_parameters)


def fitted(centre: FloatArray, factor: FloatArray, reach: Callable[[FloatArray, float], float]) -> Ball | None:
    """Return the ball of a multiple of a factor that is proved to hold a set, or None if floats cannot tell.

    ``reach(inverse, gamma)`` is at least the largest |inverse @ (v - centre)| over the points v of the set, where a sum
    of products may be off by gamma times the sum of their absolute values. With G about the inverse of the factor F and
    D = I - G F of norm below one, |F⁻¹ (v - centre)| <= |G (v - centre)| / (1 - |D|).
    """
    n = len(factor)
    gamma = (2 * n + 16) * UNIT
    for _ in range(_ATTEMPTS):
        try:
            inverse = np.linalg.inv(factor).astype(np.float64)
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(inverse).all():
            return None
        size = np.linalg.norm(np.abs(inverse) @ np.abs(factor))
        defect = float(np.linalg.norm(np.eye(n) - inverse @ factor) + gamma * size)
        if not defect < _MAX_DEFECT:
            return None
        needed = reach(inverse, gamma) / (1 - defect) * UP  # at least |F⁻¹ (v - centre)|, by the defect D = I - G F
        if _LOOSE < needed <= 1:
            return Ball(read_only(centre), read_only(factor))
        factor = factor * (needed * (1 + 1e-9))
    return None


def _root(matrix: FloatArray) -> FloatArray:
    """Return about a square root of a symmetric matrix."""
    values, vectors = np.linalg.eigh(matrix)
    root: FloatArray = vectors * np.sqrt(np.maximum(values, 1e-30 * np.abs(values).max(initial=0)))
    return root


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

"""Ranges of linear functions over the points of a region, in the coordinates of a ball around it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumdp.base.rounding import SQUARES_UNDERFLOW, UNIT, UP
from plumdp.model.graph import FloatArray
from plumdp.region.ball import Ball
from plumdp.region.shapes import Region


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

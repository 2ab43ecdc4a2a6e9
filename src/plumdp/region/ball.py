"""Balls around regions: an ellipsoid of the parameters alone that holds a region, as the image of the unit ball."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from plumdp.model.graph import FloatArray, read_only
from plumdp.region.ellipsoid import Ellipsoid
from plumdp.region.enclosed import Enclosed
from plumdp.region.shapes import Region
from plumdp.rounding import UNDERFLOW, UNIT, UP

_ATTEMPTS = 4  # to enlarge a factor
_MAX_DEFECT = 1e-3  # of an inverse that is trusted


@dataclass(frozen=True, eq=False)
class Ball:
    """The points ``centre + factor @ x`` with ``|x| <= 1``, for exactly these floats."""

    centre: FloatArray  # (n)
    factor: FloatArray  # (n, n)


@singledispatch
def ball_around(region: Region, n_parameters: int) -> Ball:
    """Return a ball that holds the first variables of every point of a region: the parameters, without products.

    A kind of region that knows better than the box around it registers its own function.
    """
    return ball_around_box(region.lower[:n_parameters], region.upper[:n_parameters])


def ball_around_box(lower: FloatArray, upper: FloatArray) -> Ball:
    """Return the smallest ellipsoid around a box that has the same axes: its half-widths, times the root of n.

    A side of length zero gets a tiny width, so that the factor can be inverted.
    """
    centre = (lower + upper) / 2
    reach = np.maximum(upper - centre, centre - lower)
    reach = np.maximum(reach, 4 * UNIT * np.abs(centre) + UNDERFLOW) * (UP * np.sqrt(max(len(centre), 1)))
    return Ball(read_only(centre), read_only(np.diag(reach)))


@ball_around.register
def _around_ellipsoid(region: Ellipsoid, n_parameters: int) -> Ball:
    """Return the ellipsoid itself, or its shadow on the parameters; the ball around its box if floats cannot tell."""
    rows = region.radius * region.root[:n_parameters]
    factor = rows if rows.shape[0] == rows.shape[1] else _root(rows @ rows.T)

    def reach(inverse: FloatArray, gamma: float) -> float:
        size = np.linalg.norm(np.abs(inverse) @ np.abs(rows))
        return float(np.linalg.norm(inverse @ rows, 2) * (1 + 1e-12) + gamma * size)

    found = inflated(region.centre[:n_parameters].copy(), factor, reach)
    return ball_around_box(region.lower[:n_parameters], region.upper[:n_parameters]) if found is None else found


@ball_around.register
def _around_enclosed(region: Enclosed, n_parameters: int) -> Ball:
    """Return the ball of the ellipsoid."""
    return _around_ellipsoid(region.ellipsoid, n_parameters)


def inflated(centre: FloatArray, factor: FloatArray, reach: Callable[[FloatArray, float], float]) -> Ball | None:
    """Return the ball of a factor that is enlarged until it is proved to hold a set; None if floats cannot tell.

    ``reach(inverse, gamma)`` is at least the largest |inverse @ (v - centre)| over the points v of the set, where a sum
    of products may be off by gamma times the sum of their absolute values. With G about the inverse of the factor F and
    D = I - G F of norm below one, |F⁻¹ (v - centre)| <= |G (v - centre)| / (1 - |D|).
    """
    n = len(factor)
    gamma = (2 * n + 16) * UNIT
    for _ in range(_ATTEMPTS):
        inverse = _inverse(factor)
        if inverse is None:
            return None
        size = np.linalg.norm(np.abs(inverse) @ np.abs(factor))
        defect = float(np.linalg.norm(np.eye(n) - inverse @ factor) + gamma * size)
        if not defect < _MAX_DEFECT:
            return None
        needed = reach(inverse, gamma) / (1 - defect) * UP
        if needed <= 1:
            return Ball(read_only(centre), read_only(factor))
        factor = factor * (needed * (1 + 1e-9))
    return None


def _inverse(factor: FloatArray) -> FloatArray | None:
    try:
        inverse = np.linalg.inv(factor).astype(np.float64)
    except np.linalg.LinAlgError:
        return None
    return inverse if np.isfinite(inverse).all() else None


def _root(matrix: FloatArray) -> FloatArray:
    """Return about a square root of a symmetric matrix."""
    values, vectors = np.linalg.eigh(matrix)
    root: FloatArray = vectors * np.sqrt(np.maximum(values, 1e-30 * np.abs(values).max(initial=0)))
    return root

"""Cuts rectangles in the plane by half-planes, rounded outward."""

from __future__ import annotations

from math import pi

import numpy as np

from plumdp.model.graph import FloatArray

_OUTWARD = 1e-9  # by which half-planes are moved, relative to coordinates; far more than rounding


def directions_around(n: int) -> FloatArray:
    """Return n directions of length one (n, 2), evenly around the circle."""
    angle = 2 * pi * np.arange(n) / n
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def clipped(box: tuple[FloatArray, FloatArray], normals: FloatArray, offsets: FloatArray) -> FloatArray:
    """Return the corners (k, 2) of a polygon around all points of a box with ``normals @ point <= offsets``.

    Normals have length one. Each half-plane, and the box, is moved outward by more than the rounding error, so that no
    such point is lost, as long as coordinates are not much larger than the widths of the box.

    >>> corners = clipped((np.zeros(2), np.ones(2)), np.array([[1.0, 0.0]]), np.array([0.5]))
    >>> bool(0.5 <= corners[:, 0].max() < 0.5 + 1e-6)
    True
    """
    margin = _OUTWARD * (1 + max(np.abs(box[0]).max(), np.abs(box[1]).max()))
    (left, bottom), (right, top) = box[0] - margin, box[1] + margin
    polygon = np.array([[left, bottom], [right, bottom], [right, top], [left, top]])
    for normal, offset in zip(normals, offsets + margin, strict=True):
        cut = _cut(polygon, polygon @ normal - offset)
        polygon = cut if len(cut) > 2 else polygon  # outward: what is around a sliver is kept
    return polygon


def _cut(polygon: FloatArray, beyond: FloatArray) -> FloatArray:
    """Return the part of a convex polygon that is not beyond a line, given how far each corner is beyond it."""
    if (beyond <= 0).all():
        return polygon
    after, next_beyond = np.roll(polygon, -1, axis=0), np.roll(beyond, -1)
    corners: list[FloatArray] = []
    for here, there, a, b in zip(polygon, after, beyond, next_beyond, strict=True):
        if a <= 0:
            corners.append(here)
        if (a <= 0) != (b <= 0):
            corners.append(here + (there - here) * (a / (a - b)))
    return np.array(corners).reshape(-1, 2)

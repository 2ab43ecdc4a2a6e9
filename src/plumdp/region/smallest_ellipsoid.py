"""Khachiyan's method for about the smallest ellipsoid around points, a guess that others prove."""

from __future__ import annotations

import numpy as np

from plumdp.model.graph import FloatArray

_MAX_STEPS = 300
_TOLERANCE = 1e-3  # of the squared radius
_FLAT = 1e-12  # width relative to the largest coordinate, below which an ellipsoid is not tried


def smallest_ellipsoid(points: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return about the centre and factor of the smallest ellipsoid around points (n, d), or None if they are flat.

    By Khachiyan's method (1996), weights of the points move towards the one that is furthest out.
    """
    n, d = points.shape
    low, high = points.min(axis=0), points.max(axis=0)
    middle, scale = (low + high) / 2, (high - low) / 2
    if not (scale > _FLAT * np.abs(points).max(axis=0)).all():
        return None
    x = (points - middle) / scale
    lifted, weights = np.column_stack([x, np.ones(n)]), np.full(n, 1 / n)
    try:
        for _ in range(_MAX_STEPS):
            inverse = np.linalg.inv((lifted * weights[:, None]).T @ lifted)
            distance = np.einsum("ij,jk,ik->i", lifted, inverse, lifted)
            worst = int(distance.argmax())
            excess = distance[worst] - (d + 1)
            if excess <= _TOLERANCE * (d + 1):
                break
            step = excess / ((d + 1) * (distance[worst] - 1))
            weights *= 1 - step
            weights[worst] += step
        centre = weights @ x
        spread = d * ((x * weights[:, None]).T @ x - np.outer(centre, centre))
        factor = np.linalg.cholesky(spread)
    except np.linalg.LinAlgError:
        return None
    return middle + scale * centre, scale[:, None] * factor

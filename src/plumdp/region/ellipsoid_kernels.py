"""Compiled loops of ellipsoids cut by half-spaces: safe bounds, and the multipliers that make them tight.

The ellipsoid is {centre + factor @ x : |x| <= 1}; in the variables x it is the unit ball. A multiplier y[i] >= 0 says
how much of an objective the half-space ``rows[i] @ v <= offsets[i]`` pays for. Nothing but ``safe_minimum`` decides
whether a bound is a bound: the multipliers may be wrong and it is still sound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plumdp.compiled import compiled

UNIT = 2.0**-53  # relative error of one rounding
UNDERFLOW = 1e-150  # more than what is lost where squares are too small for a float
PERTURBATION = 1e-11  # what objectives are moved by, so that none is a combination of half-spaces by accident
MISSED = 1e-12  # half-spaces that are missed by less count as met
DEPENDENT = 1e-10  # a half-space this close to a combination of others is taken as one
FAR = 1e6
MAX_STEPS = 200


@compiled
def safe_minimum(
    objective: Any, multipliers: Any, rows: Any, offsets: Any, centre: Any, factor: Any, lower: Any, upper: Any
) -> float:
    """Return a number never above the minimum of ``objective @ v`` over the ellipsoid, the half-spaces and the box.

    For every y >= 0 and every such v, with s = objective + sum of y[i] rows[i], weak duality gives ``objective @ v =
    s @ v - sum of y[i] (rows[i] @ v) >= s @ centre - |factorᵀ s| - sum of y[i] offsets[i]``. Only this is rounded, by
    at most k roundings in a row, relative to the sizes added up: the absolute values of all entries of the factor stand
    for the norm. With the box alone another bound follows; the better one counts.
    """
    d, n = len(objective), len(multipliers)
    value, size, squares, box, box_size, is_zero = 0.0, 0.0, 0.0, 0.0, 0.0, True
    total = objective.copy()
    for j in range(d):
        weight, spread = abs(objective[j]), 0.0
        is_zero = is_zero and objective[j] == 0.0
        box += min(objective[j] * lower[j], objective[j] * upper[j])
        box_size += weight * max(abs(lower[j]), abs(upper[j]))
        for i in range(n):
            if multipliers[i] > 0.0:
                term = multipliers[i] * rows[i, j]
                total[j] += term
                weight += abs(term)
        for i in range(d):
            spread += abs(factor[j, i])
        value += total[j] * centre[j]
        size += weight * (abs(centre[j]) + spread)
    for i in range(d):
        image = 0.0
        for j in range(d):
            image += factor[j, i] * total[j]
        squares += image * image
    value -= np.sqrt(squares)
    for i in range(n):
        if multipliers[i] > 0.0:
            value -= multipliers[i] * offsets[i]
            size += abs(multipliers[i] * offsets[i])
    k = float(2 * d + n + 16) * UNIT
    bound = value - (1.01 * k * size + UNDERFLOW)
    fallback = 0.0 if is_zero else box - (1.01 * k * box_size + UNDERFLOW)
    return bound if bound > fallback else fallback  # written so that a bound that is no number loses


@compiled
def minima(
    objectives: Any, walls: Any, heights: Any, lengths: Any, rows: Any, offsets: Any, centre: Any, factor: Any,
    lower: Any, upper: Any, shake: Any, values: Any,
) -> None:  # fmt: skip
    """Write a safe minimum for each objective.

    ``walls @ x <= heights`` are the half-spaces in the variables of the ball, divided by their lengths.
    """
    n, d = rows.shape
    direction, multipliers = np.empty(d), np.zeros(n)
    for k in range(len(objectives)):
        size = 0.0
        for i in range(d):
            direction[i] = 0.0
            for j in range(d):
                direction[i] += factor[j, i] * objectives[k, j]
            size += direction[i] ** 2
        size = np.sqrt(size)
        if n > 0 and size > 0.0:
            for i in range(d):
                direction[i] = direction[i] / size + PERTURBATION * shake[i]
            find_multipliers(direction, walls, heights, multipliers)
            for i in range(n):
                multipliers[i] *= size / lengths[i]
        values[k] = safe_minimum(objectives[k], multipliers, rows, offsets, centre, factor, lower, upper)


@compiled
def find_multipliers(direction: Any, walls: Any, heights: Any, multipliers: Any) -> None:
    """Write multipliers of the walls for the least ``direction @ x`` in the unit ball, by ascent in the dual.

    Like Lawson and Hanson's method for least squares (1974): the wall that is missed most enters, the multipliers of
    all walls that bind move together to where the dual is largest, and a wall whose multiplier would turn negative on
    the way leaves. Each move increases the dual, so that no set of binding walls comes twice. With binding walls p[i]
    of heights h[i], G the matrix of their inner products, u = G⁻¹ h and w = G⁻¹ p·direction, the best multipliers are
    -(τ u + w), where τ² (1 - h·u) is the square of the part of the direction that is no combination of walls.
    """
    n, d = walls.shape
    multipliers[:] = 0.0
    active, n_active = np.empty(d + 1, dtype=np.int64), 0
    u, w, chol = np.empty(d + 1), np.empty(d + 1), np.empty((d + 1, d + 1))
    x, rest = np.empty(d), np.empty(d)
    length = 0.0
    for j in range(d):
        length += direction[j] ** 2
    for j in range(d):
        x[j] = -direction[j] / np.sqrt(length)
    for _ in range(MAX_STEPS):
        entering = most_missed(walls, heights, x, active, n_active)
        if entering < 0:
            return
        if not exchange_if_dependent(entering, walls, active, n_active, chol, w, multipliers):
            active[n_active] = entering
            n_active += 1
        else:
            n_active = drop_idle(active, n_active, entering, multipliers)
            if n_active < 0:
                return
        while True:
            if n_active > d or not factorise(walls, active, n_active, chol):
                return
            for k in range(n_active):
                u[k] = heights[active[k]]
                w[k] = 0.0
                for j in range(d):
                    w[k] += walls[active[k], j] * direction[j]
            solve_factorised(chol, n_active, u)
            solve_factorised(chol, n_active, w)
            depth, length = 0.0, 0.0
            for k in range(n_active):
                depth += heights[active[k]] * u[k]
            for j in range(d):
                rest[j] = direction[j]
                for k in range(n_active):
                    rest[j] -= w[k] * walls[active[k], j]
                length += rest[j] ** 2
            is_empty = depth >= 1.0
            scale = FAR if is_empty else np.sqrt(length / (1.0 - depth))
            for k in range(n_active):
                w[k] = -(scale * u[k] + w[k])
            leaving = move(active, n_active, w, multipliers)
            if leaving < 0:
                break
            n_active -= 1
            for k in range(leaving, n_active):
                active[k] = active[k + 1]
        if is_empty:
            return
        for j in range(d):
            x[j] = 0.0 if n_active == d or length == 0.0 else -rest[j] * np.sqrt((1.0 - depth) / length)
            for k in range(n_active):
                x[j] += u[k] * walls[active[k], j]


@compiled
def most_missed(walls: Any, heights: Any, x: Any, active: Any, n_active: int) -> int:
    """Return the wall beyond which a point lies furthest, other than the active ones; -1 if it misses none."""
    worst, found = MISSED, -1
    for i in range(len(walls)):
        excess = -heights[i]
        for j in range(len(x)):
            excess += walls[i, j] * x[j]
        if excess > worst:
            is_active = False
            for k in range(n_active):
                is_active = is_active or active[k] == i
            if not is_active:
                worst, found = excess, i
    return found

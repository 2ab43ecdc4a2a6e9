"""Compiled loops for safe bounds over ellipsoids cut by half-spaces, and for the multipliers that make them tight.

The ellipsoid is {centre + radius root @ x : |x| <= 1}, which is the unit ball in the variables x. A multiplier
y[i] >= 0 says how much of an objective the half-space ``rows[i] @ v <= offsets[i]`` pays for. Nothing but
``safe_minimum`` decides whether a bound is valid. The multipliers may be wrong, and it is still sound.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from plumdp.base.compiled import compiled, compiled_leaf
from plumdp.base.rounding import SQUARES_UNDERFLOW, UNIT

PERTURBATION = 1e-11  # what objectives are moved by, so that none is a combination of half-spaces by accident
MISSED = 1e-12  # half-spaces that are missed by less count as met
DEPENDENT = 1e-13  # a normal whose square distance from the combinations of others is less is taken as one of them
FAR = 1e6
MAX_STEPS = 200


@compiled
def safe_minimum(
    objective: Any, multipliers: Any, rows: Any, offsets: Any, centre: Any, root: Any, radius: float, lower: Any,
    upper: Any,
) -> float:  # fmt: skip
    """Return a number never above the minimum of ``objective @ v`` over the ellipsoid, the half-spaces and the box.

    For every y >= 0 and every such v, with s = objective + sum of y[i] rows[i], weak duality gives ``objective @ v = s
    @ v - sum of y[i] (rows[i] @ v) >= s @ centre - radius |rootᵀ s| - sum of y[i] offsets[i]``. Only this is rounded,
    by at most k roundings in a row, relative to the sizes added up, where the sum of the absolute values of a row of
    the root stands for its norm. With the box alone another bound follows, and the better one counts.
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
            spread += radius * abs(root[j, i])
        value += total[j] * centre[j]
        size += weight * (abs(centre[j]) + spread)
    for i in range(d):
        image = 0.0
        for j in range(d):
            image += root[j, i] * total[j]
        squares += image * image
    value -= radius * np.sqrt(squares)
    for i in range(n):
        if multipliers[i] > 0.0:
            value -= multipliers[i] * offsets[i]
            size += abs(multipliers[i] * offsets[i])
    k = float(2 * d + n + 16) * UNIT
    # outward: too low is loose, too high would be unsound
    bound = value - (1.01 * k * size + SQUARES_UNDERFLOW)
    fallback = 0.0 if is_zero else box - (1.01 * k * box_size + SQUARES_UNDERFLOW)
    return bound if bound > fallback else fallback  # written so that a bound that is not a number loses


@partial(compiled, small=5_000)
def minima(
    objectives: Any, normals: Any, heights: Any, lengths: Any, perturbation: Any, rows: Any, offsets: Any, centre: Any,
    root: Any, radius: float, lower: Any, upper: Any, values: Any,
) -> None:  # fmt: skip
    """Write a safe minimum for each objective.

    ``normals @ x <= heights`` are the half-spaces in the variables of the ball, divided by their lengths.
    """
    n, d = rows.shape
    direction, multipliers = np.empty(d), np.zeros(n)
    for k in range(len(objectives)):
        size = 0.0
        for i in range(d):
            direction[i] = 0.0
            for j in range(d):
                direction[i] += radius * root[j, i] * objectives[k, j]
            size += direction[i] * direction[i]
        size = np.sqrt(size)
        if n > 0 and size > 0.0:
            for i in range(d):
                direction[i] = direction[i] / size + PERTURBATION * perturbation[i]
            find_multipliers(direction, normals, heights, multipliers)
            for i in range(n):
                multipliers[i] *= size / lengths[i]
        values[k] = safe_minimum(
            objectives[k], multipliers, rows, offsets, centre, root, radius, lower, upper,
        )  # fmt: skip


@partial(compiled, small=2_000)
def find_multipliers(direction: Any, normals: Any, heights: Any, multipliers: Any) -> Any:
    """Write multipliers of the half-spaces for the least ``direction @ x`` in the unit ball, and return about that x.

    This is ascent in the dual. As in Lawson and Hanson's method for least squares (1974), the half-space that is missed
    most enters. The multipliers of all half-spaces that bind move together towards where the dual is largest. A
    half-space whose multiplier would turn negative on the way leaves. Each move increases the dual, so that no set of
    binding half-spaces comes twice.
    """
    d = normals.shape[1]
    for i in range(len(multipliers)):
        multipliers[i] = 0.0
    binding, work, gram = np.empty(d + 1, dtype=np.int64), np.empty((5, d + 1)), np.empty((d + 1, d + 1))
    n = np.int64(0)
    is_bounded = best_multipliers(direction, normals, heights, multipliers, binding, n, work, gram)
    for _ in range(MAX_STEPS):
        entering = most_missed(normals, heights, work, binding, n)
        if entering < 0 or n > d:
            break
        binding[n] = entering
        n += 1
        leaving = 0
        while leaving >= 0:
            is_bounded = best_multipliers(direction, normals, heights, multipliers, binding, n, work, gram)
            leaving = move(binding, n, work, multipliers)
            if leaving >= 0:
                n -= 1
                for k in range(leaving, n):
                    binding[k] = binding[k + 1]
        if not is_bounded:  # no point of the ball meets all half-spaces: no bound is too large
            break
    return work[1, :d]


@compiled_leaf
def best_multipliers(
    direction: Any, normals: Any, heights: Any, multipliers: Any, binding: Any, n: int, work: Any, gram: Any
) -> bool:
    """Write the multipliers of binding normals p[i] at which the dual is largest, and the best point x on them.

    At the point, p[i]·x = h[i]. With G the inner products of the normals, u = G⁻¹ h and w = G⁻¹ (p·direction), they are
    -(τ u + w), where τ² (1 - h·u) is the square of what is left of the direction without its combination w of normals.
    Return False if the dual grows forever. If h·u >= 1, it does along -u. If the last normal is a combination of the
    others, it does along minus that and plus itself, which leaves the objective as it is. The target is then far out in
    that direction.

    The first ``n`` of ``binding`` count. The rows of ``work`` are the multipliers (n), the point x (d), and room.
    """
    d = len(direction)
    target, x, u, w, rest = work[0], work[1], work[2], work[3], work[4]
    is_free = factorise(normals, binding, n, gram) == n
    for i in range(n):
        u[i], w[i] = heights[binding[i]], 0.0
        for j in range(d):
            w[i] += normals[binding[i], j] * (direction[j] if is_free else normals[binding[n - 1], j])
    # the last normal is a combination of the others: the dual grows along that direction
    if not is_free:
        solve_factorised(gram, w, n - 1)
        for k in range(n):
            target[k] = multipliers[binding[k]] + FAR * (1.0 if k == n - 1 else -w[k])
        return False
    solve_factorised(gram, u, n)
    solve_factorised(gram, w, n)
    depth, left = 0.0, 0.0
    for i in range(n):
        depth += u[i] * heights[binding[i]]
    for j in range(d):
        x[j], combined = 0.0, 0.0
        for i in range(n):
            x[j] += u[i] * normals[binding[i], j]
            combined += w[i] * normals[binding[i], j]
        rest[j] = direction[j] - combined
        left += rest[j] * rest[j]
    if depth >= 1.0:
        for k in range(n):
            target[k] = multipliers[binding[k]] - FAR * u[k]
        return False
    left, height = np.sqrt(left), np.sqrt(1.0 - depth)
    for k in range(n):
        target[k] = -(left / height * u[k] + w[k])
    if n < d:
        for j in range(d):
            x[j] -= rest[j] * (height / left)
    return True


@compiled_leaf
def most_missed(normals: Any, heights: Any, work: Any, binding: Any, n: int) -> int:
    """Return the half-space beyond which a point lies furthest, of those that do not bind, or -1 if it misses none."""
    worst, furthest = MISSED, -1
    for i in range(len(normals)):
        excess = -heights[i]
        for j in range(normals.shape[1]):
            excess += normals[i, j] * work[1, j]
        if excess > worst:
            is_binding = False
            for k in range(n):
                is_binding = is_binding or binding[k] == i
            if not is_binding:
                worst, furthest = excess, i
    return furthest


@compiled_leaf
def move(binding: Any, n: int, work: Any, multipliers: Any) -> int:
    """Move the multipliers to their targets, or until one is zero, and return the place of that one, or -1."""
    share, leaving, target = 1.0, -1, work[0]
    for k in range(n):
        now = multipliers[binding[k]]
        if target[k] < 0.0 and now <= share * (now - target[k]):
            share, leaving = now / (now - target[k]), k
    for k in range(n):
        multipliers[binding[k]] += share * (target[k] - multipliers[binding[k]])
    if leaving >= 0:
        multipliers[binding[leaving]] = 0.0
    return leaving


@compiled_leaf
def factorise(normals: Any, binding: Any, n: int, gram: Any) -> int:
    """Write Cholesky's factor of the inner products of the ``n`` binding normals.

    Return the number of normals before the first that depends on those before it.
    """
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(normals.shape[1]):
                total += normals[binding[i], k] * normals[binding[j], k]
            for k in range(j):
                total -= gram[i, k] * gram[j, k]
            if i == j and total < DEPENDENT:
                return i
            gram[i, j] = np.sqrt(total) if i == j else total / gram[j, j]
    return n


@compiled_leaf
def solve_factorised(gram: Any, values: Any, n: int) -> None:
    """Replace the first ``n`` values by the solution of the equations whose matrix has the given Cholesky factor."""
    for i in range(n):
        for j in range(i):
            values[i] -= gram[i, j] * values[j]
        values[i] /= gram[i, i]
    for k in range(n):
        i = n - 1 - k
        for j in range(i + 1, n):
            values[i] -= gram[j, i] * values[j]
        values[i] /= gram[i, i]

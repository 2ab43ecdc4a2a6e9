"""Compiled loops over half-spaces for safe bounds, the dual simplex method, and rays.

All work on half-spaces ``rows[r] @ x <= offsets[r]`` in ``d`` variables. The first ``2 d`` rows are the faces of a
box, ``-x[j] <= -lower[j]`` for each variable and then ``x[j] <= upper[j]``. A *basis* is a set of ``d`` rows that meet
in one point. Its *edges* are the ``d`` directions that leave one row and stay on the others.

Nothing but ``safe_minimum`` decides whether a bound is valid. Everything else may be wrong, and bounds are still sound.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from plumdp.base.compiled import compiled, compiled_leaf
from plumdp.base.rounding import UNDERFLOW, UNIT

RELAXATION = 1e-12  # how far offsets are relaxed, for variables and rows of size one
LEVEL = 1e-13  # edges along which an objective of size one falls by less are taken as level
PIVOT = 1e-10  # a row whose slope along an edge is less is taken as parallel to it
FEASIBLE = 1e-14  # a row that is missed by less is taken as met, if edges are of length one
LONG = 100.0  # edges that are longer are calculated anew in each step
MAX_STEPS = 2_000  # of one objective from vertex to vertex
NONE: Any = np.int64(-1)  # no literal, for which numba would compile helpers on their own


@compiled
def safe_minimum(
    objective: Any, basis: Any, multipliers: Any, rows: Any, offsets: Any, lower: Any, upper: Any
) -> float:
    """Return a number that is never above the minimum of ``objective @ x`` over the half-spaces within the box.

    For every y >= 0 and every x of the region, with s = objective + sum of y[i] rows[i], weak duality gives
    ``objective @ x = s @ x - sum of y[i] (rows[i] @ x) >= sum of min(s[j] lower[j], s[j] upper[j]) - sum of
    y[i] offsets[i]``. The multipliers are what they are, so that only this is rounded. No term passes more than
    d + n + 5 roundings on its way, each relative to the sizes added up, which bounds the error (Higham 2002, section
    3.1). Negative multipliers count as zero, and with none at all the box remains.
    """
    d, n = len(objective), len(basis)
    value, paid, size, box, box_size, is_zero = 0.0, 0.0, 0.0, 0.0, 0.0, True
    for j in range(d):
        total, weight = objective[j], abs(objective[j])
        reach = max(abs(lower[j]), abs(upper[j]))
        is_zero = is_zero and (total == 0.0 or reach == 0.0)
        box += min(total * lower[j], total * upper[j])
        box_size += weight * reach
        for i in range(n):
            if multipliers[i] > 0.0:
                term = multipliers[i] * rows[basis[i], j]
                total += term
                weight += abs(term)
        value += min(total * lower[j], total * upper[j])  # the least s[j] x[j] in the box
        size += weight * reach
    for i in range(n):
        if multipliers[i] > 0.0:
            term = multipliers[i] * offsets[basis[i]]
            paid += term
            size += abs(term)
    k = float(d + n + 12) * UNIT
    # outward: too low is loose, too high would be unsound
    bound = (value - paid) - (1.01 * k * size + UNDERFLOW)
    fallback = 0.0 if is_zero else box - (1.01 * k * box_size + UNDERFLOW)
    return bound if bound > fallback else fallback  # written so that a bound that is not a number loses


@compiled_leaf
def edges_of(basis: Any, rows: Any, edges: Any, work: Any) -> bool:
    """Write the edges of a basis, so that ``rows[basis[k]] @ edges[i]`` is -1 for k = i and else 0.

    Return False if it is singular. Gauss-Jordan elimination on the transposed basis makes the edges come out as rows.
    """
    d = len(basis)
    for i in range(d):
        for j in range(d):
            work[j, i] = rows[basis[i], j]
            edges[i, j] = -1.0 if i == j else 0.0
    for column in range(d):
        pivot = column
        for i in range(column + 1, d):
            if abs(work[i, column]) > abs(work[pivot, column]):
                pivot = i
        if abs(work[pivot, column]) < FEASIBLE:
            return False
        for j in range(d):
            work[column, j], work[pivot, j] = work[pivot, j], work[column, j]
            edges[column, j], edges[pivot, j] = edges[pivot, j], edges[column, j]
        scale = 1.0 / work[column, column]
        for j in range(d):
            work[column, j] *= scale
            edges[column, j] *= scale
        for i in range(d):
            factor = work[i, column]
            if i != column and factor != 0.0:
                for j in range(d):
                    work[i, j] -= factor * work[column, j]
                    edges[i, j] -= factor * edges[column, j]
    return True


@partial(compiled, small=10_000)
def dual_simplex(objective: Any, rows: Any, offsets: Any, basis: Any, edges: Any, multipliers: Any, point: Any) -> int:
    """Move to the vertex with the least ``objective @ x``, and return -1, or the row that stood in the way.

    Starts at the best corner of the box and takes in the most violated row until none is left. The multipliers stay at
    least zero, so that each stop gives a bound. If no row of the basis can make way for a violated one, no point meets
    them all (or floats cannot tell).
    """
    d = len(objective)
    work, slopes, longest, entering = np.empty((d, d)), np.empty(d), 1.0, -1
    for j in range(d):
        basis[j] = j if objective[j] >= 0.0 else d + j
    for step in range(MAX_STEPS):
        if (step % 16 == 0 or longest > LONG) and not edges_of(basis, rows, edges, work):
            break
        longest = evaluate_basis(objective, offsets, basis, edges, multipliers, point)
        entering = most_violated(rows, offsets, point, FEASIBLE * longest)
        if entering < 0:
            return -1
        leaving, ratio = NONE, np.inf
        for i in range(d):
            slopes[i] = 0.0
            for j in range(d):
                slopes[i] += rows[entering, j] * edges[i, j]
            if slopes[i] < -PIVOT and max(multipliers[i], 0.0) < -ratio * slopes[i]:
                leaving, ratio = i, max(multipliers[i], 0.0) / -slopes[i]
        if leaving < 0:  # no point meets all these rows, or floats cannot tell
            break
        basis[leaving] = entering
        pivot(edges, slopes, leaving)
    return int(entering)


@compiled_leaf
def evaluate_basis(objective: Any, offsets: Any, basis: Any, edges: Any, multipliers: Any, point: Any) -> float:
    """Write the multipliers and the vertex of a basis, and return the length of its longest edge."""
    d, longest = len(objective), 0.0
    for i in range(d):
        multipliers[i], point[i], length = 0.0, 0.0, 0.0
        for j in range(d):
            multipliers[i] += objective[j] * edges[i, j]
            point[i] -= offsets[basis[j]] * edges[j, i]
            length += edges[i, j] * edges[i, j]
        longest = max(longest, np.sqrt(length))
    return float(longest)


@compiled_leaf
def pivot(edges: Any, slopes: Any, leaving: int) -> None:
    """Update edges for a basis in which one row is replaced by another, given the slopes of the new row along them."""
    for i in range(len(slopes)):
        if i != leaving:
            factor = slopes[i] / slopes[leaving]
            for j in range(len(slopes)):
                edges[i, j] -= factor * edges[leaving, j]
    for j in range(len(slopes)):
        edges[leaving, j] /= -slopes[leaving]


@compiled_leaf
def most_violated(rows: Any, offsets: Any, point: Any, tolerance: float) -> int:
    """Return the row that a point misses most, or -1 if it misses none by more than the tolerance."""
    worst, most = tolerance, -1
    for r in range(len(rows)):
        excess = -offsets[r]
        for j in range(len(point)):
            excess += rows[r, j] * point[j]
        if excess > worst:
            worst, most = excess, r
    return most


@partial(compiled, small=5_000)
def simplex_minima(objectives: Any, relaxed: Any, rows: Any, offsets: Any, lower: Any, upper: Any, values: Any) -> None:
    """Write a safe minimum for each objective, by the dual simplex on the relaxed offsets, each from the start."""
    d = objectives.shape[1]
    basis, edges = np.empty(d, dtype=np.int32), np.empty((d, d))
    multipliers, point = np.empty(d), np.empty(d)
    for k in range(len(objectives)):
        dual_simplex(objectives[k], rows, relaxed, basis, edges, multipliers, point)
        values[k] = safe_minimum(objectives[k], basis, multipliers, rows, offsets, lower, upper)


@partial(compiled, small=20_000)
def shoot(directions: Any, rows: Any, slack: Any, hit: Any) -> None:
    """Write the row that each ray from a point inside meets first, given the slack of the rows at that point.

    A row that the ray reaches only beyond the end of its direction does not count. It is -1 if there is none.
    """
    for k in range(len(directions)):
        nearest = 1.0
        hit[k] = -1
        for r in range(len(rows)):
            rise = 0.0
            for j in range(directions.shape[1]):
                rise += rows[r, j] * directions[k, j]
            if rise > nearest * slack[r]:
                nearest, hit[k] = rise / slack[r], r

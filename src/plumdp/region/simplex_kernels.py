"""Compiled loops of the primal simplex method, which walk from basis to basis and prove a bound with the last one.

Where a polytope has more vertices than memory could keep, objectives walk from the basis of the one before, and a basis
is all that is kept. Rows are given twice, by row and by column: a step goes through the columns in which its edge is
not zero, which are few where half-spaces are about few variables. As in ``kernels.py``, only ``safe_minimum`` decides
whether a bound is valid.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from plumdp.base.compiled import compiled, compiled_leaf
from plumdp.region.kernels import LEVEL, NONE, PIVOT, RELAXATION, edges_of, safe_minimum

REFRESH = 64  # steps after which edges are calculated anew
TIED = 0.1 * RELAXATION  # rows that are met within this of each other are met at once: the steepest one is taken
PROVED = 1e-11  # a bound that is within this of the value at the vertex is as good as floats allow


@partial(compiled, small=5_000)
def walk_bases(
    objectives: Any, start: Any, bases: Any, max_steps: int, columns: Any, relaxed: Any, rows: Any, offsets: Any,
    lower: Any, upper: Any, values: Any, points: Any, steps: Any,
) -> None:  # fmt: skip
    """Write for each objective a number never above its minimum, the basis and vertex of its walk's end, and its steps.

    Objective k starts at the basis of number ``start[k]``, or where the one before ended if that is negative. The basis
    of its end is written to the last ``bases``. A walk that takes more than the given number of steps is stopped, and
    its last basis proves a bound all the same.
    """
    d, n, n_known = objectives.shape[1], len(rows), len(bases) - len(objectives)
    basis = bases[0].copy()
    edges, work, lengths = np.empty((d, d)), np.empty((d, d)), np.empty(d)
    point, slack, rise = np.empty(d), np.empty(n), np.empty(n)
    multipliers, slopes = np.empty(d), np.empty(d)
    begin(basis, rows, columns, relaxed, edges, work, lengths, point, slack)
    age = 0
    for k in range(len(objectives)):
        objective = objectives[k]
        if start[k] >= 0 and start[k] != n_known + k - 1:
            for i in range(d):
                basis[i] = bases[start[k], i]
            begin(basis, rows, columns, relaxed, edges, work, lengths, point, slack)
            age = 0
        size = 0.0
        for j in range(d):
            size += abs(objective[j])
        values[k], n_steps = -np.inf, 0
        for attempt in range(2):
            if attempt == 1:
                if age == 0:
                    break
                begin(basis, rows, columns, relaxed, edges, work, lengths, point, slack)
                age = 0
            write_multipliers(objective, edges, multipliers)
            while n_steps < max_steps:
                leaving, best = NONE, -LEVEL * size
                for i in range(d):
                    if multipliers[i] < best * lengths[i]:
                        leaving, best = i, multipliers[i] / lengths[i]
                if leaving < 0:
                    break
                entering = first_met(edges[leaving], lengths[leaving], columns, slack, rise)
                if entering < 0:
                    break
                move(leaving, entering, rows, edges, lengths, point, slack, rise, slopes)
                update_multipliers(multipliers, slopes, leaving)
                basis[leaving] = entering
                n_steps += 1
                age += 1
                if age >= REFRESH:
                    begin(basis, rows, columns, relaxed, edges, work, lengths, point, slack)
                    age = 0
                    write_multipliers(objective, edges, multipliers)
            write_multipliers(objective, edges, multipliers)
            # whatever basis the walk has come to, its multipliers prove a bound
            value = safe_minimum(objective, basis, multipliers, rows, offsets, lower, upper)
            if value > values[k]:
                values[k] = value
            reached = 0.0
            for j in range(d):
                reached += objective[j] * point[j]
            if reached - values[k] <= PROVED * size:
                break
        for j in range(d):
            points[k, j] = point[j]
            bases[n_known + k, j] = basis[j]
        steps[k] = n_steps


@compiled_leaf
def begin(
    basis: Any, rows: Any, columns: Any, relaxed: Any, edges: Any, work: Any, lengths: Any, point: Any, slack: Any
) -> bool:
    """Write edges, their lengths, the vertex of a basis and the slack of all rows there.

    Return False if the basis is singular.
    """
    d = len(basis)
    if not edges_of(basis, rows, edges, work):
        return False
    for j in range(d):
        point[j] = 0.0
    for i in range(d):
        length = 0.0
        for j in range(d):
            length += edges[i, j] * edges[i, j]
            point[j] -= edges[i, j] * relaxed[basis[i]]
        lengths[i] = np.sqrt(length)
    for r in range(len(slack)):
        slack[r] = relaxed[r]
    for j in range(d):
        for r in range(len(slack)):
            slack[r] -= columns[j, r] * point[j]
    for i in range(d):
        slack[basis[i]] = 0.0
    return True


@compiled_leaf
def first_met(edge: Any, length: float, columns: Any, slack: Any, rise: Any) -> int:
    """Write the slope of an edge towards each row, and return the row it meets first, the steepest of those tied."""
    for r in range(len(slack)):
        rise[r] = 0.0
    for j in range(len(edge)):
        slope = edge[j]
        if slope != 0.0:
            for r in range(len(slack)):
                rise[r] += columns[j, r] * slope
    soonest = 0.0  # the inverse of the distance; selections, not branches, which are hard to predict here
    for r in range(len(slack)):
        distance = slack[r] if slack[r] > 0.0 else 0.0
        speed = rise[r] if rise[r] > PIVOT * length else 0.0
        inverse = speed / (distance + TIED)
        soonest = inverse if inverse > soonest else soonest
    met, steepest = NONE, PIVOT * length
    for r in range(len(slack)):
        if slack[r] * soonest <= rise[r] and rise[r] > steepest:
            met, steepest = r, rise[r]
    return int(met)


@compiled_leaf
def move(
    leaving: int, entering: int, rows: Any, edges: Any, lengths: Any, point: Any, slack: Any, rise: Any, slopes: Any
) -> None:
    """Go along an edge to the row that it meets, and write the edges, lengths, vertex and slack there."""
    d = len(slopes)
    step = max(slack[entering], 0.0) / rise[entering]
    for j in range(d):
        point[j] += step * edges[leaving, j]
    for r in range(len(slack)):
        slack[r] -= step * rise[r]
    slack[entering] = 0.0
    for i in range(d):
        slopes[i] = 0.0
    for j in range(d):
        if rows[entering, j] != 0.0:
            for i in range(d):
                slopes[i] += rows[entering, j] * edges[i, j]
    for i in range(d):
        if i != leaving and slopes[i] != 0.0:
            factor, length = slopes[i] / slopes[leaving], 0.0
            for j in range(d):
                edges[i, j] -= factor * edges[leaving, j]
                length += edges[i, j] * edges[i, j]
            lengths[i] = np.sqrt(length)
    for j in range(d):
        edges[leaving, j] /= -slopes[leaving]
    lengths[leaving] /= abs(slopes[leaving])


@compiled_leaf
def update_multipliers(multipliers: Any, slopes: Any, leaving: int) -> None:
    """Write the multipliers of the edges after a move, given the slopes of the row that was met along those before."""
    for i in range(len(slopes)):
        if i != leaving and slopes[i] != 0.0:
            multipliers[i] -= slopes[i] / slopes[leaving] * multipliers[leaving]
    multipliers[leaving] /= -slopes[leaving]


@compiled_leaf
def write_multipliers(objective: Any, edges: Any, multipliers: Any) -> None:
    """Write the slopes of the objective along the edges of the basis, which are its multipliers."""
    for i in range(len(multipliers)):
        multipliers[i] = 0.0
        for j in range(len(objective)):
            multipliers[i] += edges[i, j] * objective[j]

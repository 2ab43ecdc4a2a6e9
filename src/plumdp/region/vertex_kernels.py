"""Compiled loops that walk to the best vertex of a polytope, explore vertices on the way, and prove a bound there.

``vertices`` is the ``FoundVertices`` of the polytope, to which vertices are added as they are met.

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
from plumdp.region.kernels import LEVEL, MAX_STEPS, NONE, PIVOT, RELAXATION, edges_of, most_violated, safe_minimum

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


MISSED = 10 * RELAXATION  # a point that misses a row by more is not a vertex
UNEXPLORED, DEAD = -1, -2  # what stands instead of a neighbour; a dead edge leads to no vertex that floats can tell


@partial(compiled, small=50_000)
def walk(
    objectives: Any, start: int, position: Any, is_optimal: Any, may_grow: bool, rows: Any, relaxed: Any, vertices: Any
) -> int:
    """Move each objective from ``start`` on to its best vertex, steepest edge first, and return how many are done.

    An objective starts at ``position[k]``, or where the one before it ended if that is negative. Vertices are added as
    they are met. Once there is no room for a further one, the rest is left undone if the caller may make room, and does
    without otherwise.
    """
    d = objectives.shape[1]
    edges, neighbours = vertices.edges, vertices.neighbours
    v = position[start - 1] if start > 0 else 0
    for k in range(start, len(objectives)):
        v = position[k] if position[k] >= 0 else v
        level = 0.0
        for j in range(d):
            level -= LEVEL * abs(objectives[k, j])
        for _ in range(MAX_STEPS):
            steepest, best, is_blocked = NONE, level, False
            is_full = vertices.n[0] == len(edges)
            for i in range(d):
                slope = 0.0
                for j in range(d):
                    slope += edges[v, i, j] * objectives[k, j]
                if slope < best:
                    end = neighbours[v, i]
                    if end == DEAD or (end == UNEXPLORED and is_full and not may_grow):
                        is_blocked = True
                    else:
                        steepest, best = i, slope
            if steepest < 0:
                is_optimal[k] = not is_blocked  # a blocked edge may lead further down
                break
            if neighbours[v, steepest] == UNEXPLORED:
                if is_full:
                    position[k] = v
                    return k
                explore(v, steepest, rows, relaxed, vertices)
            if neighbours[v, steepest] >= 0:
                v = neighbours[v, steepest]
        position[k] = v
    return len(objectives)


@partial(compiled, small=20_000)
def enumerate_all(start: int, rows: Any, relaxed: Any, vertices: Any) -> int:
    """Explore every edge of the vertices from ``start`` on, and return the first one left for lack of room."""
    v = start
    while v < vertices.n[0]:
        for i in range(rows.shape[1]):
            if vertices.neighbours[v, i] == UNEXPLORED:
                if vertices.n[0] == len(vertices.edges):
                    return v
                explore(v, i, rows, relaxed, vertices)
        v += 1
    return v


@compiled
def explore(v: int, i: int, rows: Any, relaxed: Any, vertices: Any) -> None:
    """Follow edge ``i`` of vertex ``v`` to the first row it meets, and make the vertex there its neighbour."""
    entering, shortest = NONE, np.inf
    for r in range(len(rows)):
        slope, slack = 0.0, relaxed[r]
        for j in range(rows.shape[1]):
            slope += rows[r, j] * vertices.edges[v, i, j]
            slack -= rows[r, j] * vertices.points[v, j]
        if slope > PIVOT and slack < shortest * slope:
            entering, shortest = r, slack / slope
    vertices.neighbours[v, i] = DEAD
    if entering < 0:
        return
    basis = vertices.bases[v].copy()
    place = replace_sorted(basis, i, entering)
    other = add_vertex(basis, rows, relaxed, 1.0 / PIVOT, vertices)
    if other >= 0:
        vertices.neighbours[v, i] = other
        vertices.neighbours[other, place] = v


@compiled_leaf
def replace_sorted(numbers: Any, i: int, new: int) -> int:
    """Replace the ``i``-th of sorted numbers, keep them sorted, and return the place of the new one."""
    while i > 0 and numbers[i - 1] > new:
        numbers[i] = numbers[i - 1]
        i -= 1
    while i + 1 < len(numbers) and numbers[i + 1] < new:
        numbers[i] = numbers[i + 1]
        i += 1
    numbers[i] = new
    return i


@compiled
def add_vertex(basis: Any, rows: Any, relaxed: Any, longest: float, vertices: Any) -> int:
    """Return the number of the vertex of a sorted basis, added if it is new, or -1 if floats cannot tell it.

    That is if its edges are too long, or if it misses a row, which happens in polytopes that are very thin. (The first
    vertex, for which edges may have any length, is taken as it is.)
    """
    d = len(basis)
    slot = find_slot(basis, vertices)
    v = vertices.slots[slot]
    if v >= 0:
        return int(v)
    v = vertices.n[0]
    if not edges_of(basis, rows, vertices.edges[v], np.empty((d, d))):
        return -1
    place_vertex(basis, rows, relaxed, vertices.edges[v], vertices.points[v])
    for i in range(d):
        length = 0.0
        for j in range(d):
            length += vertices.edges[v, i, j] * vertices.edges[v, i, j]
        vertices.lengths[v, i] = np.sqrt(length)
        if vertices.lengths[v, i] > longest:
            return -1
    if longest < np.inf and most_violated(rows, relaxed, vertices.points[v], MISSED) >= 0:
        return -1
    for i in range(d):
        for j in range(d):
            vertices.edges[v, i, j] /= vertices.lengths[v, i]
        vertices.bases[v, i] = basis[i]
        vertices.neighbours[v, i] = UNEXPLORED
    vertices.slots[slot] = v
    vertices.n[0] = v + 1
    return int(v)


@compiled
def place_vertex(basis: Any, rows: Any, relaxed: Any, edges: Any, point: Any) -> None:
    """Write the point where the rows of a basis meet.

    It is calculated a second time from the residuals, as long edges magnify rounding.
    """
    d = len(basis)
    residual = np.empty(d)
    for j in range(d):
        point[j] = 0.0
    for _ in range(2):
        for i in range(d):
            residual[i] = relaxed[basis[i]]
            for j in range(d):
                residual[i] -= rows[basis[i], j] * point[j]
        for i in range(d):
            for j in range(d):
                point[j] -= edges[i, j] * residual[i]


@compiled_leaf
def find_slot(basis: Any, vertices: Any) -> int:
    """Return the slot of a basis in the hash table, whose size is a power of two, or the slot it would have."""
    key = np.uint64(0x9E3779B97F4A7C15)
    for i in range(len(basis)):
        key = (key ^ np.uint64(basis[i])) * np.uint64(0x100000001B3)
    mask = np.uint64(len(vertices.slots) - 1)
    slot = (key ^ (key >> np.uint64(29))) & mask
    while vertices.slots[slot] >= 0 and not is_same(vertices.bases[vertices.slots[slot]], basis):
        slot = (slot + np.uint64(1)) & mask
    return int(slot)


@compiled_leaf
def is_same(one: Any, other: Any) -> bool:
    """Return whether two lists of numbers of one length are equal."""
    for i in range(len(one)):  # noqa: SIM110  # plain, for the compiler
        if one[i] != other[i]:
            return False
    return True


@compiled
def fill_slots(vertices: Any) -> None:
    """Enter all vertices into an empty hash table."""
    for v in range(vertices.n[0]):
        vertices.slots[find_slot(vertices.bases[v], vertices)] = v


@partial(compiled, small=20_000)
def safe_minima(
    objectives: Any, position: Any, rows: Any, offsets: Any, lower: Any, upper: Any, vertices: Any, values: Any
) -> None:
    """Write for each objective a number that is never above its minimum, from the multipliers of its vertex."""
    d = objectives.shape[1]
    multipliers = np.empty(d)
    for k in range(len(objectives)):
        v = position[k]
        for i in range(d):
            multipliers[i] = 0.0
            for j in range(d):
                multipliers[i] += vertices.edges[v, i, j] * objectives[k, j]
            # edges are stored with length one, and the multiplier belongs to the long one
            multipliers[i] *= vertices.lengths[v, i]
        values[k] = safe_minimum(objectives[k], vertices.bases[v], multipliers, rows, offsets, lower, upper)

"""Compiled loops that walk to the best vertex of a polytope, explore vertices on the way, and prove a bound there.

``vertices`` is the ``FoundVertices`` of the polytope, to which vertices are added as they are met.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from plumdp.base.compiled import compiled, compiled_leaf
from plumdp.region.kernels import LEVEL, MAX_STEPS, NONE, PIVOT, RELAXATION, edges_of, most_violated, safe_minimum

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

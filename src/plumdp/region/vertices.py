"""The vertices of a polytope as a graph: from any vertex a few steps along its edges lead to the best one.

Vertices are found as objectives ask for them. An objective that has hardly changed since it was last asked costs one
look at the ``d`` edges of its vertex.

With many variables there are more vertices than memory could keep, and few are met twice: then only the basis of the
last one is kept, and objectives walk from there (``simplex_kernels.py``).

Where more than ``d`` rows meet in a point, or the polytope is flat, a vertex has many bases or the walk could go in
circles; vertices are therefore those of a polytope whose offsets are relaxed by a little, at random. The multipliers
that prove a bound belong to the rows alone, so that this costs next to no tightness.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plumdp.model.graph import BoolArray, FloatArray, IntArray
from plumdp.region import kernels, simplex_kernels, vertex_kernels
from plumdp.region.kernels import MAX_STEPS, RELAXATION

MANY = 9  # variables from which on vertices are not kept to find minima
_MAX_BYTES = 2**27  # what the edges of all vertices may take


def relax(offsets: FloatArray) -> FloatArray:
    """Return the offsets a little larger, by different amounts, the same in each call."""
    return offsets + RELAXATION * np.random.default_rng(1).uniform(1, 2, len(offsets))


class FoundVertices(NamedTuple):
    """Arrays with room for more vertices than the ``n[0]`` that are there; kernels add to them."""

    n: IntArray  # (1): how many there are
    bases: IntArray  # (capacity, d): the rows that meet, sorted
    points: FloatArray  # (capacity, d)
    edges: FloatArray  # (capacity, d, d): directions of length one; edge i leaves row i and stays on the others
    lengths: FloatArray  # (capacity, d): the multiplier of row i is its length · (edge @ objective)
    neighbours: IntArray  # (capacity, d): the vertex at the end of an edge, or negative
    slots: IntArray  # hash table: basis → vertex

    @staticmethod
    def with_room(capacity: int, d: int) -> FoundVertices:
        """Return arrays without vertices; the capacity is a power of two."""
        return FoundVertices(
            np.zeros(1, dtype=np.int32),
            np.empty((capacity, d), dtype=np.int32),
            np.empty((capacity, d)),
            np.empty((capacity, d, d)),
            np.empty((capacity, d)),
            np.empty((capacity, d), dtype=np.int32),
            np.full(4 * capacity, -1, dtype=np.int32),
        )


class VertexGraph:
    """The vertices met so far of ``rows @ x <= relaxed``, with their edges.

    It grows while it is walked, so that two threads must not walk one graph.
    """

    def __init__(self, rows: FloatArray, offsets: FloatArray, relaxed: FloatArray, first: IntArray) -> None:
        self.rows = rows  # (n_rows, d), each of size one
        self.offsets = offsets  # (n_rows)
        self.relaxed = relaxed  # (n_rows)
        self.first = np.sort(first).astype(np.int32)  # (d): the rows that meet in the vertex to start from
        self.found = FoundVertices.with_room(64, rows.shape[1])
        vertex_kernels.add_vertex(self.first, rows, relaxed, np.inf, self.found)

    def walk(self, objectives: FloatArray, start: IntArray | None = None) -> tuple[IntArray, BoolArray]:
        """Return the best vertex of each objective, and whether it was reached; ``start`` is where it was before."""
        position = np.full(len(objectives), -1, dtype=np.int32) if start is None else start.copy()
        is_optimal = np.zeros(len(objectives), dtype=np.bool_)
        result = (position, is_optimal)
        done = 0
        while True:
            done = vertex_kernels.walk(objectives, done, *result, self._may_grow(), self.rows, self.relaxed, self.found)
            if done == len(objectives):
                return result
            self._grow()

    def enumerate_all(self) -> bool:
        """Find all vertices; return whether memory allowed it. (A polytope's graph is connected: Balinski 1961.)"""
        done = vertex_kernels.enumerate_all(0, self.rows, self.relaxed, self.found)
        while done < self.found.n[0] and self._may_grow():
            self._grow()
            done = vertex_kernels.enumerate_all(done, self.rows, self.relaxed, self.found)
        return bool(done == self.found.n[0])

    def minimise(
        self, objectives: FloatArray, lower: FloatArray, upper: FloatArray, *, max_steps: int = MAX_STEPS
    ) -> tuple[FloatArray, FloatArray]:
        """Return numbers never above the minima over ``rows @ x <= offsets`` within a box, and the points reached.

        With many variables, a walk is cut short after the given number of steps: then its number is loose.
        """
        if self.rows.shape[1] < MANY:
            values, position = self.minimise_by_graph(objectives, lower, upper)
            return values, self.found.points[position]
        values, points = np.empty(len(objectives)), np.empty(objectives.shape)
        steps, columns = np.empty(len(objectives), dtype=np.int32), np.ascontiguousarray(self.rows.T)
        polytope = (self.rows, self.offsets, lower, upper)
        simplex_kernels.walk_bases(
            objectives, self.first.copy(), max_steps, columns, self.relaxed, *polytope, values, points, steps
        )
        return values, points

    def minimise_by_graph(
        self, objectives: FloatArray, lower: FloatArray, upper: FloatArray
    ) -> tuple[FloatArray, IntArray]:
        """Return the same, with the numbers of the vertices reached, which are kept."""
        position, is_optimal = self.walk(objectives)
        values = np.empty(len(objectives))
        polytope = (self.rows, self.offsets, lower, upper)
        vertex_kernels.safe_minima(objectives, position, *polytope, self.found, values)
        rest = np.flatnonzero(~is_optimal)
        if len(rest):
            again = np.empty(len(rest))
            kernels.simplex_minima(objectives[rest], self.relaxed, *polytope, again)
            values[rest] = np.maximum(values[rest], again)
        return values, position

    def _may_grow(self) -> bool:
        return 2 * self.found.edges.nbytes <= _MAX_BYTES

    def _grow(self) -> None:
        n, old = self.found.n[0], self.found
        new = FoundVertices.with_room(2 * len(old.points), self.rows.shape[1])
        new.n[0] = n
        for name in ("bases", "points", "edges", "lengths", "neighbours"):
            getattr(new, name)[:n] = getattr(old, name)[:n]
        vertex_kernels.fill_slots(new)
        self.found = new

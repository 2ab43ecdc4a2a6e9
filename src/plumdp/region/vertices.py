"""The graph of the vertices of a polytope, in which a few steps along edges lead from any vertex to the best one.

Vertices are found as objectives ask for them. An objective that has hardly changed since it was last asked costs one
look at the ``d`` edges of its vertex.

With many variables there are more vertices than memory could keep, and few are met twice. Then only the basis of the
last one is kept, and objectives walk from there (``simplex_kernels.py``).

Where more than ``d`` rows meet in a point, or the polytope is flat, a vertex has many bases or the walk could go in
circles. Vertices are therefore those of a polytope whose offsets are relaxed by a little, at random. The multipliers
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
    """Arrays of ``n[0]`` vertices with room for more, which kernels add."""

    n: IntArray  # (1): how many there are
    bases: IntArray  # (capacity, d): the rows that meet, sorted
    points: FloatArray  # (capacity, d)
    edges: FloatArray  # (capacity, d, d): directions of length one; edge i leaves row i and stays on the others
    lengths: FloatArray  # (capacity, d): the multiplier of row i is its length · (edge @ objective)
    neighbours: IntArray  # (capacity, d): the vertex at the end of an edge, or negative
    slots: IntArray  # hash table: basis → vertex

    @staticmethod
    def with_room(capacity: int, d: int) -> FoundVertices:
        """Return arrays without vertices, whose capacity must be a power of two."""
        return FoundVertices(
            np.zeros(1, dtype=np.int32),
            np.empty((capacity, d), dtype=np.int32),
            np.empty((capacity, d)),
            np.empty((capacity, d, d)),
            np.empty((capacity, d)),
            np.empty((capacity, d), dtype=np.int32),
            np.full(4 * capacity, -1, dtype=np.int32),
        )


class Minima(NamedTuple):
    """Lower bounds on the minima of objectives, and about where they are attained."""

    values: FloatArray  # (k): never above the minima
    points: FloatArray  # (k, d): about where they are attained
    position: IntArray  # (k): the numbers of the vertices there, to start from next time
    steps: IntArray  # (k): how many vertices were passed, about


class VertexGraph:
    """The vertices met so far of ``rows @ x <= relaxed``, with their edges.

    It grows while it is walked, so that two threads must not walk one graph.
    """

    def __init__(self, rows: FloatArray, offsets: FloatArray, relaxed: FloatArray, first: IntArray) -> None:
        self.rows = rows  # (n_rows, d), each of size one
        self.offsets = offsets  # (n_rows)
        self.relaxed = relaxed  # (n_rows)
        self.first = np.sort(first).astype(np.int32)  # (d): the rows that meet in the vertex to start from
        self.n_left_out = 0  # half-spaces that were dropped although they may matter
        self.bases = self.first[None, :]  # (n, d): where minima ended, with many variables
        self.found = FoundVertices.with_room(64, rows.shape[1])
        vertex_kernels.add_vertex(self.first, rows, relaxed, np.inf, self.found)

    def walk(self, objectives: FloatArray, start: IntArray | None = None) -> tuple[IntArray, BoolArray]:
        """Return the best vertex of each objective, and whether it was reached.

        ``start`` has the vertices where the objectives were before.
        """
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
        """Find all vertices, and return whether memory allowed it. (The graph is connected: Balinski 1961.)"""
        done = vertex_kernels.enumerate_all(0, self.rows, self.relaxed, self.found)
        while done < self.found.n[0] and self._may_grow():
            self._grow()
            done = vertex_kernels.enumerate_all(done, self.rows, self.relaxed, self.found)
        return bool(done == self.found.n[0])

    def minimise(
        self,
        objectives: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        *,
        start: IntArray | None = None,
        max_steps: int = MAX_STEPS,
    ) -> Minima:
        """Return numbers never above the minima over ``rows @ x <= offsets`` within a box, and where they are.

        ``start`` has positions from earlier answers, or -1. With many variables, a walk is stopped after the given
        number of steps, and then its number is loose.
        """
        if self.rows.shape[1] < MANY:
            return self._minimise_by_graph(objectives, lower, upper, start)
        n, (k, d) = len(self.bases), objectives.shape
        first = np.full(k, -1, dtype=np.int32) if start is None else start
        bases = np.vstack([self.bases, np.empty((k, d), dtype=np.int32)])
        values, points, steps = np.empty(k), np.empty((k, d)), np.empty(k, dtype=np.int32)
        columns, polytope = np.ascontiguousarray(self.rows.T), (self.rows, self.offsets, lower, upper)
        simplex_kernels.walk_bases(
            objectives, first, bases, max_steps, columns, self.relaxed, *polytope, values, points, steps
        )
        position = np.arange(n, n + k, dtype=np.int32)
        if start is None or bases.nbytes > _MAX_BYTES:
            return Minima(values, points, np.maximum(first, 0, dtype=np.int32), steps)
        self.bases = bases
        return Minima(values, points, position, steps)

    def _minimise_by_graph(
        self, objectives: FloatArray, lower: FloatArray, upper: FloatArray, start: IntArray | None
    ) -> Minima:
        position, is_optimal = self.walk(objectives, None if start is None else start.astype(np.int32))
        values = np.empty(len(objectives))
        polytope = (self.rows, self.offsets, lower, upper)
        vertex_kernels.safe_minima(objectives, position, *polytope, self.found, values)
        rest = np.flatnonzero(~is_optimal)
        if len(rest):
            again = np.empty(len(rest))
            kernels.simplex_minima(objectives[rest], self.relaxed, *polytope, again)
            # each number is a lower bound, so that the larger one is the better
            values[rest] = np.maximum(values[rest], again)
        return Minima(values, self.found.points[position], position, np.ones_like(position))

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

"""The graph of the vertices of a polytope, in which a few steps along edges lead from any vertex to the best one.

Vertices are found as objectives ask for them. An objective that has hardly changed since it was last asked costs one
look at the ``d`` edges of its vertex.

With many variables there are more vertices than memory could keep, and few are met twice. Then only the basis of the
last one is kept, and objectives walk from there (``vertex_kernels.py``).

Where more than ``d`` rows meet in a point, or the polytope is flat, a vertex has many bases or the walk could go in
circles. Vertices are therefore those of a polytope whose offsets are relaxed by a little, at random. The multipliers
that prove a bound belong to the rows alone, so that this costs next to no tightness.

A sweep of the solver asks for a minimum per choice, millions of times. It walks along falling edges of a table of all
vertices, from the choice's last vertex on, and takes the value at the vertex where it ends, less a margin: one number
per vertex, calculated once, that covers rounding in the vertex, in its edges and in the sweep.

Proof. Let x be the vertex, a[i] its rows with offsets b[i], e[i] its edges of length one times their lengths, so that
R = I + sum of e[i] a[i]ᵀ would be zero without rounding. For a point p of the polytope and an objective g,
g·p = g·x + g·R(p - x) - sum of (g·e[i]) (a[i]·p - a[i]·x). The second term is at least -|g| max over j of sum over k of
|R[j,k]| |p[k] - x[k]|, with |g| the sum of absolute values and p in the bounding box. In the third, a[i]·p <= b[i]
counts where g·e[i] >= 0, and elsewhere p is in the bounding box, which gives the reach.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plumdp.base.rounding import UNDERFLOW, UNIT
from plumdp.model.graph import BoolArray, FloatArray, IntArray, read_only
from plumdp.region import kernels, vertex_kernels
from plumdp.region.kernels import LEVEL, MAX_STEPS
from plumdp.region.vertex_table import VertexTable

MANY = 9  # variables from which on vertices are not kept to find minima
_MAX_BYTES = 2**27  # what the edges of all vertices may take


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
        vertex_kernels.walk_bases(
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


def vertex_table(graph: VertexGraph, scale: FloatArray, lower: FloatArray, upper: FloatArray) -> VertexTable:
    """Return all vertices of a graph, for a polytope within a (scaled) box."""
    is_complete = graph.enumerate_all()
    n = graph.found.n[0]
    edges, lengths, bases = graph.found.edges[:n], graph.found.lengths[:n], graph.found.bases[:n]
    offsets = graph.offsets[bases]
    vertices = -np.einsum("vij,vi->vj", edges, lengths * offsets)
    margin, reach = _safety(vertices, edges, lengths, graph.rows[bases], offsets, lower, upper)
    return VertexTable(
        scale,
        read_only(vertices),
        read_only(edges.copy()),
        read_only(graph.found.neighbours[:n].copy()),
        read_only(margin),
        read_only(reach),
        is_complete,
    )


def _safety(
    x: FloatArray,
    edges: FloatArray,
    lengths: FloatArray,
    rows: FloatArray,
    offsets: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return margin (n) and reach (n, d) of vertices, by the proof above. Gamma covers all roundings."""
    d = x.shape[1]
    gamma = (4 * d + 16) * UNIT
    long_edges = edges * lengths[:, :, None]
    size = np.eye(d) + np.einsum("vij,vik->vjk", np.abs(long_edges), np.abs(rows))
    residual = np.abs(np.eye(d) + np.einsum("vij,vik->vjk", long_edges, rows)) + gamma * size  # |R|
    width = np.maximum(np.abs(upper - x), np.abs(x - lower))
    level = np.einsum("vij,vj->vi", rows, x)
    level_size = np.abs(offsets) + np.einsum("vij,vj->vi", np.abs(rows), np.abs(x))
    # by how much a[i]·x may be below b[i], where the third term counts a[i]·p <= b[i]
    slack = np.maximum(offsets - level, 0) + gamma * level_size
    fall = np.maximum(rows * (x - lower)[:, None, :], rows * (x - upper)[:, None, :]).sum(axis=2)
    reach = lengths * (np.maximum(fall, 0) + gamma * np.einsum("vij,vj->vi", np.abs(rows), width))
    margin = (
        np.einsum("vjk,vk->vj", residual, width).max(axis=1, initial=0)  # the second term of the proof
        + (np.abs(long_edges).max(axis=2, initial=0) * slack).sum(axis=1)  # the third term
        + (LEVEL + gamma) * reach.sum(axis=1)  # slopes that count as level
        + gamma * np.abs(x).max(axis=1, initial=0)
    )
    return margin * (1 + 1e-9) + UNDERFLOW, reach * (1 + 1e-9)

"""A table of all vertices of a polytope as plain arrays, each with a safety margin, for solvers inside a sweep.

A sweep asks for a minimum per choice, millions of times. It walks from the choice's last vertex along falling edges,
and takes the value at the vertex where it ends, less a margin: one number per vertex, calculated once, that covers
rounding in the vertex, in its edges and in the sweep.

Proof. Let x be the vertex, a[i] its rows with offsets b[i], e[i] its edges of length one times their lengths, so that
R = I + sum of e[i] a[i]ᵀ would be zero without rounding. For a point p of the polytope and an objective g,
g·p = g·x + g·R(p - x) - sum of (g·e[i]) (a[i]·p - a[i]·x). The second term is at least -|g| max over j of sum over k of
|R[j,k]| |p[k] - x[k]|, with |g| the sum of absolute values and p in the bounding box. In the third, a[i]·p <= b[i]
counts where g·e[i] >= 0, and elsewhere p is in the bounding box, which gives the reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumdp.base.rounding import UNDERFLOW, UNIT
from plumdp.model.graph import FloatArray, IntArray, read_only
from plumdp.region.kernels import LEVEL
from plumdp.region.vertices import VertexGraph


@dataclass(frozen=True, eq=False)
class VertexTable:
    """The vertices of a polytope in variables divided by ``scale``, by which an objective g is multiplied first.

    With ``|g|`` the sum of absolute values and ``slope[i] = g @ edges[v, i]``, for every g and every vertex v, the
    number ``g @ vertices[v] - margin[v] |g| - sum of max(0, -slope[i] - LEVEL |g|) reach[v, i]``, calculated in floats
    in any order, is never above the minimum of ``g @ x``. At the best vertex no slope is below ``-LEVEL |g|``, and the
    sum is zero. Where there is such a slope, ``neighbours[v, i]`` is a better vertex. A negative number means that it
    is not known, and the walk ends. (``LEVEL`` is that of ``kernels.py``.)
    """

    scale: FloatArray  # (d), powers of two
    vertices: FloatArray  # (n, d)
    edges: FloatArray  # (n, d, d): directions of length one
    neighbours: IntArray  # (n, d)
    margin: FloatArray  # (n)
    reach: FloatArray  # (n, d)
    is_complete: bool  # whether memory allowed for all vertices

    def __len__(self) -> int:
        return len(self.vertices)


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


def joined_tables(tables: Sequence[VertexTable | None], d: int) -> tuple[VertexTable, IntArray]:
    """Return several tables, of at most ``d`` variables each, as one, and the number of the table of each vertex.

    Variables that a table does not have are there and do nothing: its vertices and edges are zero in them.
    """
    present = [(number, table) for number, table in enumerate(tables) if table is not None]
    n = sum(len(table) for _, table in present)
    vertices, edges, neighbours = np.zeros((n, d)), np.zeros((n, d, d)), np.full((n, d), -1, dtype=np.int32)
    margin, reach, number_of_vertex = np.zeros(n), np.zeros((n, d)), np.zeros(n, dtype=np.int32)
    start = 0
    for number, table in present:
        end, k = start + len(table), table.vertices.shape[1]
        vertices[start:end, :k], edges[start:end, :k, :k] = table.vertices, table.edges
        neighbours[start:end, :k] = np.where(table.neighbours >= 0, table.neighbours + start, -1)
        margin[start:end], reach[start:end, :k], number_of_vertex[start:end] = table.margin, table.reach, number
        start = end
    table = VertexTable(np.ones(d), vertices, edges, neighbours, margin, reach, is_complete=False)
    return table, number_of_vertex


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

"""Defines ``VertexTable``, the vertices of a polytope with what proves the minima that are read off it."""

from __future__ import annotations

from dataclasses import dataclass

from plumdp.model.graph import FloatArray, IntArray


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

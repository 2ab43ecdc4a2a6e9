"""Regions as the rows of a model see them, which is all that the solver knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.rounding import UNIT
from plumdp.model.graph import FloatArray, Indices, IntArray, read_only
from plumdp.region.vertex_table import VertexTable

OUTSIDE, CUT = 1, 2


@dataclass(frozen=True, eq=False)
class RowEllipsoid:
    """The values of each expression over an ellipsoid, ``means[f] + spreads[f] @ x`` for all ``|x| <= 1``.

    A row of a choice is worth Σ value·means ± |Σ value·spreads|, the sums over its transitions. The solver needs a
    worth that grows with every value, so that no probability may be negative. An expression is ``OUTSIDE`` if the
    ellipsoid, not yet cut by half-spaces, makes it so, and rows with such an expression are bounded by intervals. It is
    ``CUT`` if its interval is narrower than its range over the ellipsoid, and rows with one take the better of both.
    """

    means: FloatArray  # (n_expressions)
    spreads: FloatArray  # (n_expressions, d)
    sizes: FloatArray  # (n_expressions): largest sum of the absolute values of the terms, for rounding
    kinds: npt.NDArray[np.int8]  # (n_expressions): OUTSIDE and CUT, added up

    @property
    def tables(self) -> tuple[npt.NDArray[Any], ...]:
        """All arrays, as the kernels take them."""
        return self.means, self.spreads, self.sizes, self.kinds

    def with_constants(self, values: FloatArray) -> RowEllipsoid:
        """Return the ellipsoid with known probabilities as further expressions."""
        return replace(
            self,
            means=read_only(np.concatenate([self.means, values])),
            spreads=read_only(np.vstack([self.spreads, np.zeros((len(values), self.spreads.shape[1]))])),
            sizes=read_only(np.concatenate([self.sizes, values])),
            kinds=read_only(np.concatenate([self.kinds, np.zeros(len(values), dtype=np.int8)])),
        )


@dataclass(frozen=True, eq=False)
class RowRegion:
    """The vertices of a region that nature picks points of, and the values of expressions at its points.

    Expression ``f`` is ``constants[f] + coefficients[f] @ x``, where ``x`` is a point of the region with each variable
    divided by its scale.
    """

    coefficients: FloatArray  # (n_expressions, d)
    constants: FloatArray  # (n_expressions)
    sizes: FloatArray  # (n_expressions): largest sum of the absolute values of the terms, for rounding
    vertices: VertexTable

    @property
    def tables(self) -> tuple[FloatArray | IntArray, ...]:
        """All arrays, as the kernels take them."""
        of, none = self.vertices, np.empty(0, dtype=np.int32)
        arrays = (of.vertices, of.edges, of.neighbours, of.margin, of.reach)
        return self.coefficients, self.constants, self.sizes, *arrays, none, none, none  # there is one kind of row

    def at_vertices(self, expressions: IntArray, margin: float) -> FloatArray | None:
        """Return the values of a row's expressions at each vertex, (n, k), or None if their margin is too large."""
        table = self.vertices
        # values at some of the vertices would say too little: nature may be at the others
        if not table.is_complete or not table.margin.max(initial=0) <= margin:
            return None
        values: FloatArray = self.constants[expressions] + table.vertices @ self.coefficients[expressions].T
        return values

    def with_constants(self, values: FloatArray) -> RowRegion:
        """Return the region with known probabilities as further expressions."""
        nothing = np.zeros((len(values), self.coefficients.shape[1]))
        return replace(
            self,
            coefficients=read_only(np.vstack([self.coefficients, nothing])),
            constants=read_only(np.concatenate([self.constants, values])),
            sizes=read_only(np.concatenate([self.sizes, values])),
        )


@dataclass(frozen=True, eq=False)
class RowKind:
    """The rows with the same expressions; some of these are variables that determine the others.

    Expression ``members[i]`` is ``constants[i] + coefficients[i] @ x``, where ``x`` has the values of ``variables``, up
    to ``errors[i]`` and to the rounding of numbers of the size of ``coefficients[i]``.
    """

    members: IntArray  # (n): expressions, in order
    coefficients: FloatArray  # (n, m)
    constants: FloatArray  # (n)
    errors: FloatArray  # (n)
    variables: IntArray  # (m): expressions


@dataclass(frozen=True, eq=False)
class RowPolytopes:
    """The probabilities that nature may give each kind of row, as vertices of polytopes around them.

    Rows of other kinds, and those of kinds without a table, are left to their intervals.
    """

    kinds: tuple[RowKind, ...]
    of_kind: tuple[VertexTable | None, ...]
    upper: FloatArray  # (n_expressions): expressions that cannot be positive do not count in rows
    left_out: str  # what was left out to save time, in words; empty if nothing

    @cached_property
    def tables(self) -> tuple[FloatArray | IntArray, ...]:
        """The arrays of ``RowRegion`` as the kernels take them, with the kind of each vertex at the end."""
        width = max((kind.coefficients.shape[1] for kind in self.kinds), default=1)
        coefficients = [np.pad(k.coefficients, ((0, 0), (0, width - k.coefficients.shape[1]))) for k in self.kinds]
        constants = np.concatenate([np.zeros(0), *(kind.constants for kind in self.kinds)])
        stacked = np.vstack([np.zeros((0, width)), *coefficients])
        errors = np.concatenate([np.zeros(0), *(kind.errors for kind in self.kinds)])
        # errors enter as sizes, which the kernels multiply by UNIT
        sizes = 1 + np.abs(constants) + np.abs(stacked).sum(axis=1) + errors / UNIT  # variables are at most one
        table, kind = joined_tables(self.of_kind, width)
        members = np.concatenate([np.zeros(0, dtype=np.int32), *(kind.members for kind in self.kinds)])
        first = np.cumsum([0, *(len(kind.members) for kind in self.kinds)])
        arrays = (table.vertices, table.edges, table.neighbours, table.margin, table.reach)
        return stacked, constants, sizes, *arrays, kind, first.astype(np.int32), members.astype(np.int32)

    def first_vertices(self, first: Indices, expression: Indices) -> IntArray:
        """Return the vertex where the walk of each row begins, or -1.

        Row c begins with transition ``first[c]``.
        """
        lengths = np.array([0 if table is None else len(table) for table in self.of_kind], dtype=np.int64)
        begin = np.where(lengths > 0, np.cumsum(lengths) - lengths, -1)
        number = {kind.members.tobytes(): int(b) for kind, b in zip(self.kinds, begin, strict=True)}
        keys, of_row = distinct_rows(first, expression, self.upper)
        return np.array([number.get(key.tobytes(), -1) for key in keys] or [-1], dtype=np.int32)[of_row]

    def at_vertices(self, expressions: IntArray, margin: float) -> FloatArray | None:
        """Return the values of a row's expressions at each vertex, (n, k), or None if their margin is too large."""
        key = np.unique(expressions[(self.upper[expressions] > 0)]).astype(np.int32).tobytes()
        for kind, table in zip(self.kinds, self.of_kind, strict=True):
            if table is not None and kind.members.tobytes() == key and table.margin.max(initial=0) <= margin:
                place = np.searchsorted(kind.members, expressions).clip(max=len(kind.members) - 1)
                values = (kind.constants + table.vertices @ kind.coefficients.T)[:, place]
                return np.where(kind.members[place] == expressions, values, 0.0)
        return None

    def with_constants(self, values: FloatArray) -> RowPolytopes:
        """Return the polytopes unchanged, as rows of known probabilities are of no kind that has one."""
        return RowPolytopes(self.kinds, self.of_kind, np.concatenate([self.upper, values]), self.left_out)


def distinct_rows(first: Indices, expression: Indices, upper: FloatArray) -> tuple[list[IntArray], Indices]:
    """Return the different sets of expressions in rows, and the number of the set of each row.

    Expressions that cannot be positive do not count. Rows of less than three transitions have an empty set.
    """
    length = np.diff(first.astype(np.int64))
    keys: dict[bytes, int] = {b"": 0}
    sets: list[IntArray] = [np.empty(0, dtype=np.int32)]
    of_row = np.zeros(len(length), dtype=np.int64)
    for k in np.unique(length[length > 2]).tolist():
        rows = np.flatnonzero(length == k)
        members = np.sort(expression[first[rows].astype(np.int64)[:, None] + np.arange(k)].astype(np.int32), axis=1)
        different, inverse = np.unique(members, axis=0, return_inverse=True)
        number = np.empty(len(different), dtype=np.int64)
        for i, row in enumerate(different):
            key = np.unique(row[upper[row] > 0])
            number[i] = keys.setdefault(key.tobytes(), len(keys))
            if number[i] == len(sets):
                sets.append(key)
        of_row[rows] = number[inverse.reshape(-1)]
    return sets, of_row


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

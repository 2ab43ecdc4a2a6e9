"""The rectangular relaxation, in which nature picks a point of the region at each choice, anew at each visit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, IntArray, read_only
from plumdp.region.half_spaces import affine_forms, in_variables
from plumdp.region.shapes import Polytope
from plumdp.region.vertex_table import VertexTable


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


def row_region(region: Polytope, expressions: ExpressionTable, *bounds: FloatArray) -> RowRegion:
    """Return the vertices of a region, and the values of affine expressions of its variables at its points.

    Bounds on the expressions are not needed, and there for ``seen_from`` alone.
    """
    constants, matrix = affine_forms(in_variables(expressions, region.names))
    coefficients = matrix * region.scale
    reach = np.maximum(np.abs(region.lower), np.abs(region.upper)) / region.scale
    sizes = np.abs(constants) + np.abs(coefficients) @ reach
    return RowRegion(read_only(coefficients), read_only(constants), read_only(sizes), region.table)

"""The rectangular relaxation: at each choice nature picks a point of the region itself, anew at each visit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumdp.model.expressions import ExpressionTable
from plumdp.model.graph import FloatArray, IntArray, read_only
from plumdp.region.shapes import Polytope

_MARGIN = 1e-9  # of the box around the relaxed region, in scaled variables


@dataclass(frozen=True, eq=False)
class RowRegion:
    """What nature's points give each expression, and the vertices of the region they are picked from.

    Expression ``f`` is ``constants[f] + coefficients[f] @ x``, where ``x`` is a point of the region with each variable
    divided by its scale. The region is ``rows @ x <= offsets`` with offsets relaxed by about 1e-12, so that its
    vertices are simple; it contains the region of the data. Vertex ``v`` is where the rows ``bases[v]`` meet; edge ``i`` leaves the
    ``i``-th of them and leads to ``neighbours[v, i]``, or nowhere if that is negative.
    """

    coefficients: FloatArray  # (n_expressions, d)
    constants: FloatArray  # (n_expressions)
    sizes: FloatArray  # (n_expressions): largest sum of the absolute values of the terms, for rounding
    rows: FloatArray  # (n_rows, d)
    offsets: FloatArray  # (n_rows)
    lower: FloatArray  # (d): a box around the region
    upper: FloatArray  # (d)
    bases: IntArray  # (n_vertices, d)
    points: FloatArray  # (n_vertices, d)
    edges: FloatArray  # (n_vertices, d, d)
    lengths: FloatArray  # (n_vertices, d)
    neighbours: IntArray  # (n_vertices, d)

    @property
    def tables(self) -> tuple[FloatArray | IntArray, ...]:
        """All arrays, as the kernels take them."""
        return (
            self.coefficients, self.constants, self.sizes, self.rows, self.offsets, self.lower, self.upper,
            self.bases, self.points, self.edges, self.lengths, self.neighbours,
        )  # fmt: skip

    def with_constants(self, values: FloatArray) -> RowRegion:
        """Return the same with known probabilities as further expressions."""
        nothing = np.zeros((len(values), self.coefficients.shape[1]))
        return replace(
            self,
            coefficients=np.vstack([self.coefficients, nothing]),
            constants=np.concatenate([self.constants, values]),
            sizes=np.concatenate([self.sizes, values]),
        )


def row_region(region: Polytope, expressions: ExpressionTable) -> RowRegion:
    """Return the region with its vertices, seen from the expressions; each monomial is a variable of the region."""
    graph = region.graph
    graph.close()
    found, n = graph.found, int(graph.found.n[0])
    constants, coefficients = linear_form(expressions, region.names)
    scaled = coefficients * region.scale
    lower, upper = region.lower / region.scale - _MARGIN, region.upper / region.scale + _MARGIN
    reach = np.maximum(np.abs(lower), np.abs(upper))
    arrays = (
        scaled, constants, np.abs(constants) + np.abs(scaled) @ reach, graph.rows, graph.relaxed, lower, upper,
        found.bases[:n], found.points[:n], found.edges[:n], found.lengths[:n], found.neighbours[:n],
    )  # fmt: skip
    return RowRegion(*(read_only(array) for array in arrays))


def linear_form(expressions: ExpressionTable, variables: tuple[str, ...]) -> tuple[FloatArray, FloatArray]:
    """Return constants (n) and coefficients (n, d) of all expressions in the variables, each to the nearest float."""
    column = [variables.index(name) for name in expressions.names]
    constants, coefficients = np.zeros(len(expressions)), np.zeros((len(expressions), len(variables)))
    expression = np.repeat(np.arange(len(expressions)), np.diff(expressions.first_term))
    degree = expressions.monomials.sum(axis=1)[expressions.monomial]
    assert (degree <= 1).all(), "products of parameters need a lifted region"
    is_constant = degree == 0
    constants[expression[is_constant]] = expressions.coefficient[is_constant]
    parameter = np.argmax(expressions.monomials, axis=1)[expressions.monomial[~is_constant]]
    place = np.array(column, dtype=np.int64)[parameter]
    coefficients[expression[~is_constant], place] = expressions.coefficient[~is_constant]
    return constants, coefficients

"""The rectangular relaxation where a region has too many vertices, with one polytope for each kind of row.

A row of a few transitions sees a region of many variables through the probabilities of these transitions alone. For
each kind of row (a set of expressions) its polytope begins with the intervals of the expressions, and half-spaces
around the image of the region are added. So the rectangular relaxation never allows for more than the intervals do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from plumdp.base.rounding import UNDERFLOW, UNIT
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import BoolArray, FloatArray, Indices, IntArray, read_only
from plumdp.model.text import number_of
from plumdp.region.half_spaces import Contradiction, affine_forms, essential_part, in_variables
from plumdp.region.images import MAX_DIMENSION, AffineMap, Image, images
from plumdp.region.shapes import Polytope
from plumdp.region.vertex_table import VertexTable
from plumdp.region.vertices import VertexGraph, vertex_table
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.relaxation.row_regions import RowKind, RowPolytopes, distinct_rows

_WORK = 5e7  # products of two numbers that are spent on images, for each variable of the region
_DEPENDENT = 1e-10  # expressions that differ from a combination of others by less, relative, are one
_FOLLOWS = 1e-12  # if this is all that it is off by, for probabilities
_NEAR = 1e-6  # half-spaces that are this close to the image say what it says


class _AffineForms(NamedTuple):
    """All expressions as affine functions of the variables of a region, ``constants + matrix @ point``."""

    constants: FloatArray  # (n)
    matrix: FloatArray  # (n, d)
    sizes: FloatArray  # (n): largest sum of the absolute values of the terms
    reach: FloatArray  # (d): largest absolute values of the variables


def row_polytopes(region: Polytope, expressions: ExpressionTable, imdp: IntervalMDP) -> RowPolytopes:
    """Return a polytope for each kind of row of a model with at least three transitions, within the given intervals."""
    constants, matrix = affine_forms(in_variables(expressions, region.names))
    reach = np.maximum(np.abs(region.lower), np.abs(region.upper))
    sizes = np.abs(constants) + np.abs(matrix) @ reach
    keys, _ = distinct_rows(imdp.graph.first_transition, imdp.expression, imdp.upper)
    counted = _multiplicities(imdp, keys)
    forms = _AffineForms(constants, matrix, sizes, reach)
    kinds = [_kind(key, counts, expressions.is_unknown, forms) for key, counts in counted if len(key) > 1]
    # rows of other kinds keep their intervals, which is looser and sound
    few = [kind for kind in kinds if 0 < len(kind.variables) <= MAX_DIMENSION]
    maps = [AffineMap(constants[k.variables], matrix[k.variables], sizes[k.variables]) for k in few]
    row_images = images(region, maps, max_work=_WORK * len(region.names))
    tables = [_table(kind, image, imdp) for kind, image in zip(few, row_images, strict=True)]
    left_out = _left_out(len(kinds) - len(few), [image.distance for image in row_images])
    return RowPolytopes(tuple(few), tuple(tables), imdp.upper, left_out)


def _multiplicities(imdp: IntervalMDP, keys: Sequence[IntArray]) -> list[tuple[IntArray, IntArray]]:
    """Return for each set of expressions how often each of them occurs in a row that has the set."""
    graph, (_, of_row) = imdp.graph, distinct_rows(imdp.graph.first_transition, imdp.expression, imdp.upper)
    _, sample = np.unique(of_row, return_index=True)
    counted = []
    for row, key in zip(sample.tolist(), (keys[int(of_row[row])] for row in sample), strict=True):
        of_sample = imdp.expression[graph.first_transition[row] : graph.first_transition[row + 1]]
        counted.append((key, (of_sample[:, None] == key[None, :]).sum(axis=0)))
    return counted


def _kind(key: IntArray, counts: IntArray, is_unknown: BoolArray, forms: _AffineForms) -> RowKind:
    """Return the kind of rows with a set of expressions, by which all of them follow from some.

    Expressions without parameters are numbers. In a row that sums to one, an expression that occurs there once is one
    minus the others, whatever the parameters. Others may follow from each other as well, such as p/2 from p/3.
    """
    unknown = np.flatnonzero(is_unknown[key])
    single = unknown[counts[unknown] == 1]
    rest = int(single[-1]) if len(single) and len(unknown) > 1 else -1
    several = unknown[unknown != rest]
    variables, factors, shifts, errors = _independent(several, key, forms)
    coefficients, constants = np.zeros((len(key), len(variables))), np.where(is_unknown[key], 0.0, forms.constants[key])
    coefficients[several], constants[several] = factors, shifts
    uncertain = np.zeros(len(key))
    uncertain[several] = errors
    if rest >= 0:
        # the row sums to one, which makes one expression of it follow from the others
        others = np.arange(len(key)) != rest
        coefficients[rest] = -(counts[others] @ coefficients[others])
        constants[rest] = 1.0 - float(counts[others] @ constants[others])
        size = counts[others] @ (np.abs(coefficients[others]).sum(axis=1) + np.abs(constants[others]))
        uncertain[rest] = counts @ uncertain + (len(key) + 4) * UNIT * (1 + size)
    return RowKind(read_only(key), read_only(coefficients), read_only(constants), read_only(uncertain), key[variables])


def _independent(
    several: Indices, key: IntArray, forms: _AffineForms
) -> tuple[Indices, FloatArray, FloatArray, FloatArray]:
    """Return some of several expressions from which all follow, with factors, constants and errors.

    The factors are found in floats, and an error is the largest difference over the box around the region.
    """
    m, rows, constants = len(several), forms.matrix[key[several]], forms.constants[key[several]]
    if m == 0:
        return several, np.zeros((0, 0)), constants, constants
    from scipy.linalg import qr

    triangle, order = qr(rows.T, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = max(int((diagonal > _DEPENDENT * diagonal.max(initial=0)).sum()), 1)
    chosen, factors = np.sort(order[:rank]), np.zeros((m, rank))
    factors[chosen] = np.eye(rank)
    left = np.setdiff1d(np.arange(m), chosen)
    factors[left] = np.linalg.lstsq(rows[chosen].T, rows[left].T, rcond=None)[0].T
    shifts = np.where(np.isin(np.arange(m), chosen), 0.0, constants - factors @ constants[chosen])
    size = forms.sizes[key[several]] + np.abs(factors) @ forms.sizes[key[several[chosen]]]
    off = np.abs(rows - factors @ rows[chosen]) @ forms.reach + 4 * (rank + len(forms.reach) + 4) * UNIT * size
    off[chosen] = 0.0
    if (off > _FOLLOWS).any():  # too loose: every expression is a variable, which is exact
        return several, np.eye(m), np.zeros(m), np.zeros(m)
    return several[chosen], factors, shifts, off


def _table(kind: RowKind, image: Image, imdp: IntervalMDP) -> VertexTable | None:
    """Return the vertices of the polytope of a kind of rows, or None.

    The polytope is the box of its variables, cut by the intervals of the other expressions and by the image. It is None
    if floats cannot tell a point inside, or if not all vertices could be found.
    """
    m, lower, upper = len(kind.variables), imdp.lower, imdp.upper
    is_other = ~np.isin(kind.members, kind.variables)
    others, rows = kind.members[is_other], kind.coefficients[is_other]
    size = np.abs(kind.constants[is_other]) + np.abs(rows).sum(axis=1) + 1
    error = kind.errors[is_other] + 4 * (m + 4) * UNIT * size + UNDERFLOW
    # outward: both half-spaces are larger by all that the other expressions may be off
    at_most = upper[others] - kind.constants[is_other] + error
    at_least = kind.constants[is_other] - lower[others] + error
    used = rows.any(axis=1)
    all_rows = np.vstack([-np.eye(m), np.eye(m), rows[used], -rows[used], image.rows])
    box = [-lower[kind.variables], upper[kind.variables]]
    graph = _essential(all_rows, np.concatenate([*box, at_most[used], at_least[used], image.offsets]))
    if graph is None or not graph.enumerate_all():
        return None
    return vertex_table(graph, np.ones(m), lower[kind.variables], upper[kind.variables])


def _essential(rows: FloatArray, offsets: FloatArray) -> VertexGraph | None:
    """Return the half-spaces that matter, with their vertices, or None if floats cannot tell a point in them."""
    size = 2.0 ** np.floor(np.log2(np.abs(rows).max(axis=1)))  # powers of two, which round nothing
    graph = essential_part(np.ascontiguousarray(rows / size[:, None]), offsets / size)
    return None if isinstance(graph, Contradiction) else graph


def _left_out(n_long: int, distances: Sequence[float]) -> str:
    """Return a description of what was left out to save time, empty if nothing was."""
    parts = []
    if n_long:
        parts.append(
            f"{number_of(n_long, 'kind')} of rows with more than {MAX_DIMENSION + 1} transitions: single intervals"
        )
    far = [distance for distance in distances if distance > _NEAR]
    if far:
        worst = "an unknown share" if not np.isfinite(max(far)) else f"{max(far):.2g}"
        parts.append(
            f"{number_of(len(far), 'kind')} of rows: half-spaces around what the parameters allow, off by up to {worst}"
        )
    return "; ".join(parts)

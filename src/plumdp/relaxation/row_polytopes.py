"""The rectangular relaxation where a region has too many vertices, with one polytope for each kind of row.

A row of a few transitions sees a region of many variables through the probabilities of these transitions alone. For
each kind of row (a set of expressions) its polytope begins with the intervals of the expressions, and half-spaces
around the image of the region are added. So the rectangular relaxation never allows for more than the intervals do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from plumdp.base.rounding import UNDERFLOW, UNIT
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import BoolArray, FloatArray, Indices, IntArray, read_only
from plumdp.model.text import number_of
from plumdp.region.half_spaces import Contradiction, affine_forms, essential_part, in_variables
from plumdp.region.images import MAX_DIMENSION, AffineMap, Image, images
from plumdp.region.shapes import Polytope
from plumdp.region.vertices import VertexGraph, VertexTable, joined_tables, vertex_table
from plumdp.relaxation.intervals import IntervalMDP

_WORK = 5e7  # products of two numbers that are spent on images, for each variable of the region
_DEPENDENT = 1e-10  # expressions that differ from a combination of others by less, relative, are one
_FOLLOWS = 1e-12  # if this is all that it is off by, for probabilities
_NEAR = 1e-6  # half-spaces that are this close to the image say what it says


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

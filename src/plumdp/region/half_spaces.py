"""Half-spaces in floats for intervals of affine expressions, rounded outward so that no point that fits is lost.

The essential part of very many half-spaces, a few dozen rows that bound the same polytope as hundreds of thousands.

By Clarkson's idea (1994), a row is redundant if the polytope of the rows kept so far does not reach beyond it. Keeping
more rows only shrinks that polytope, so that this is decided once and for all. Where the polytope does reach beyond
some rows, rays from a point inside find those that really bound it. To drop a row is always sound.

With many variables most rows matter, and to find out costs as much as what is asked later on. Then all are kept, or if
they are very many those that cut off the points that objectives would choose without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.base.rounding import up
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, Indices, IntArray, owners, owners_of, read_only
from plumdp.model.space import ParameterSpace
from plumdp.region import kernels
from plumdp.region.kernels import RELAXATION
from plumdp.region.vertices import MANY, VertexGraph

_TOLERANCE = 4 * RELAXATION  # rows that are passed by less do not matter
_MAX_ROUNDS = 50
_MAX_RAYS = 256  # in each round
_MAX_DROPS = 100
_SAME = 12  # digits by which directions of rows are told apart
_MAX_ROWS = 4000  # that are kept where there are many variables


@dataclass(frozen=True, eq=False)
class Contradiction:
    """Rows that no point meets together, with the multipliers at least zero that prove it (Farkas)."""

    rows: IntArray
    multipliers: FloatArray


def essential_part(rows: FloatArray, offsets: FloatArray) -> VertexGraph | Contradiction:
    """Return the vertices of those half-spaces ``rows @ x <= offsets`` that matter, or a contradiction.

    The first ``2 d`` rows are a box, and are always kept.
    """
    d = rows.shape[1]
    relaxed = offsets + RELAXATION * np.random.default_rng(1).uniform(1, 2, len(offsets))  # the same in each call
    if d >= MANY:
        return _bounded_part(rows, offsets, relaxed)
    corners = _corners(rows, offsets, relaxed, _directions(d))
    if isinstance(corners, Contradiction):
        return corners
    bases, points = corners
    centre = points.mean(axis=0)
    slack = np.maximum(relaxed - rows @ centre, RELAXATION / 1000)
    kept = np.union1d(np.arange(2 * d), bases)
    left = np.delete(np.arange(len(rows)), kept)
    for _ in range(_MAX_ROUNDS):
        graph = VertexGraph(rows[kept], offsets[kept], relaxed[kept], np.searchsorted(kept, bases[0]))
        best = graph.minimise(-rows[left], -offsets[:d], offsets[d : 2 * d])
        # -best.values is at least the maximum: a row may count as passed though it is not, which costs time only
        is_passed = -best.values > offsets[left] + _TOLERANCE
        left = left[is_passed]
        # rays from the centre to some of the vertices beyond rows, the same in each call
        ends = np.random.default_rng(3).permutation(np.unique(best.position[is_passed]))[:_MAX_RAYS]
        first = np.empty(len(ends), dtype=np.int64)
        kernels.shoot(graph.found.points[ends] - centre, rows[left], slack[left], first)
        hit = np.unique(first[first >= 0])
        if not len(hit):
            break
        kept, left = np.union1d(kept, left[hit]), np.delete(left, hit)
    return graph


def _bounded_part(rows: FloatArray, offsets: FloatArray, relaxed: FloatArray) -> VertexGraph | Contradiction:
    """Return the vertices of a bounded number of half-spaces, those that the box does not imply.

    If these are too many, cutting planes choose among them: points that are best for some objective over the rows kept
    so far say which rows are missed most (Kelley 1960).
    """
    d = rows.shape[1]
    lower, upper = -offsets[:d], offsets[d : 2 * d]
    objectives = _directions(d)
    corners = _corners(rows, offsets, relaxed, objectives[:1])
    if isinstance(corners, Contradiction):
        return corners
    basis = corners[0][0]
    reach = np.maximum(rows * lower, rows * upper).sum(axis=1)
    always_kept = np.union1d(np.arange(2 * d), basis)
    # what the box implies is left out, and of parallel rows all but the tightest
    left = np.setdiff1d(_tightest(rows, offsets, np.flatnonzero((reach > offsets) & np.isfinite(relaxed))), always_kept)
    if len(always_kept) + len(left) <= _MAX_ROWS:
        kept = np.union1d(always_kept, left)
        return VertexGraph(rows[kept], offsets[kept], relaxed[kept], np.searchsorted(kept, basis))
    objectives = np.vstack([objectives, -rows[left[:: -(-len(left) // _MAX_RAYS)]]])
    kept = always_kept
    for _ in range(_MAX_ROUNDS):
        graph = VertexGraph(rows[kept], offsets[kept], relaxed[kept], np.searchsorted(kept, basis))
        missed = graph.minimise(objectives, lower, upper).points @ rows[left].T - relaxed[left]
        worst = np.unique(missed.argmax(axis=1)[missed.max(axis=1) > _TOLERANCE])
        if not len(worst) or len(kept) + len(worst) > _MAX_ROWS:
            break
        kept, left = np.union1d(kept, left[worst]), np.delete(left, worst)
    # the region is larger than it need be, and the certificate says so
    graph.n_left_out = len(left) if len(worst) else 0
    return graph


def _tightest(rows: FloatArray, offsets: FloatArray, candidates: Indices) -> Indices:
    """Return the row with the least offset of each group of parallel rows among the given ones."""
    size = np.linalg.norm(rows[candidates], axis=1)
    order = np.lexsort([offsets[candidates] / size])
    _, first = np.unique((rows[candidates] / size[:, None])[order].round(_SAME), axis=0, return_index=True)
    return candidates[order[first]]


def _directions(d: int) -> FloatArray:
    """Return objectives along all axes and across, perturbed, as ties could stall the simplex method."""
    rng = np.random.default_rng(2)
    axes = np.vstack([np.eye(d), -np.eye(d)]) + rng.normal(size=(2 * d, d)) / 10
    return np.vstack([axes, rng.normal(size=(2 * d + 4, d))])


def _corners(
    rows: FloatArray, offsets: FloatArray, relaxed: FloatArray, objectives: FloatArray
) -> tuple[IntArray, FloatArray] | Contradiction:
    """Return bases and points of best vertices, or a contradiction that is proved.

    Rows that floats cannot cope with are dropped. A dropped row has an infinite relaxed offset. (Rows almost parallel
    to each other can end there.)
    """
    for _ in range(_MAX_DROPS):
        corners = _try_corners(rows, relaxed, objectives)
        # a contradiction counts only if its excess proves it; otherwise a row is dropped, which is sound
        if not isinstance(corners, Contradiction) or excess(corners, rows, offsets) > 0:
            return corners
        weight = np.where(corners.rows >= 2 * rows.shape[1], corners.multipliers, -1.0)
        relaxed[corners.rows[np.argmax(weight)]] = np.inf
    relaxed[2 * rows.shape[1] :] = np.inf
    return _try_corners(rows, relaxed, objectives)


def _try_corners(
    rows: FloatArray, relaxed: FloatArray, objectives: FloatArray
) -> tuple[IntArray, FloatArray] | Contradiction:
    d = rows.shape[1]
    bases, points = np.empty(objectives.shape, dtype=np.int32), np.empty(objectives.shape)
    edges, multipliers = np.empty((d, d)), np.empty(d)
    for k, objective in enumerate(objectives):
        row = kernels.dual_simplex(objective, rows, relaxed, bases[k], edges, multipliers, points[k])
        if row >= 0:
            conflicting = np.append(bases[k], np.int32(row))
            return Contradiction(conflicting, np.append(np.maximum(edges @ rows[row], 0), 1.0))
    return bases, points


def excess(proof: Contradiction, rows: FloatArray, offsets: FloatArray) -> float:
    """Return a number that proves, if it is positive, that no point meets the rows.

    It is never above the minimum of zero over the points that meet them. If there were one, the number would be at most
    zero.
    """
    d = rows.shape[1]
    box = (-offsets[:d], offsets[d : 2 * d])
    return float(kernels.safe_minimum(np.zeros(d), proof.rows, proof.multipliers, rows, offsets, *box))


@dataclass(frozen=True, eq=False)
class HalfSpaces:
    """The half-spaces ``rows @ point <= offsets`` of a box, of the space, and of intervals, in this order.

    Those of the box are all its lower bounds, then all its upper bounds.
    """

    rows: FloatArray  # (n, d)
    offsets: FloatArray  # (n)
    expression: IntArray  # (n): whose interval it is, or -1 for the box and the space
    side: IntArray  # (n): 1 for an upper bound, -1 for a lower one, 0 for the box and the space
    half_width: FloatArray  # (n): of the interval; 0 for the box and the space


def half_spaces(space: ParameterSpace, table: ExpressionTable, lower: FloatArray, upper: FloatArray) -> HalfSpaces:
    """Return the box and the constraints of a space, and ``lower <= expression <= upper`` for each expression."""
    d, n = space.dimension, len(table)
    constant, matrix = affine_forms(table)
    reach = np.maximum(np.abs(space.lower), np.abs(space.upper))
    size = np.abs(constant) + np.abs(matrix) @ reach  # of the terms, each of which is rounded
    constraints, limits = space.inequalities
    rows = np.vstack([-np.eye(d), np.eye(d), constraints, matrix, -matrix])
    # up: a half-space that is too large loses no point
    at_most, at_least = up(upper - constant, size), up(constant - lower, size)
    offsets = np.concatenate([-space.lower, space.upper, limits, at_most, at_least])
    n_of_space = len(offsets) - 2 * n
    number, zero = np.arange(n), np.zeros(n_of_space, dtype=np.int64)
    with np.errstate(invalid="ignore"):
        half_width = np.nan_to_num((upper - lower) / 2, nan=0, posinf=0).clip(min=0)
    return HalfSpaces(
        rows,
        offsets,
        np.concatenate([zero - 1, number, number]),
        np.concatenate([zero, np.ones_like(number), -np.ones_like(number)]),
        np.concatenate([zero, half_width, half_width]),
    )


def in_variables(table: ExpressionTable, names: tuple[str, ...]) -> ExpressionTable:
    """Return a table of the same expressions, affine in variables that are parameters or products of parameters.

    A product is named as a polynomial prints it, such as ``p*q`` or ``p^2``.

    >>> from plumdp import parameters
    >>> p, q = parameters("p", "q")
    >>> table = ExpressionTable.build([p * (1 - q)], ("p", "q"))
    >>> affine_forms(in_variables(table, ("p", "q", "p*q")))[1]
    array([[ 1.,  0., -1.]])
    """
    if table.names == names and table.is_affine.all():
        return table
    monomial_names = [monomial_name(exponents, table.names) for exponents in table.monomials.tolist()]
    missing = np.array([bool(name) and name not in names for name in monomial_names], dtype=np.bool_)
    if missing.any():
        term = int(np.argmax(missing[table.monomial]))
        worst = table.polynomials[int(owners_of(table.first_term, term))]
        variables = ", ".join(names) or "nothing"
        raise ModelError(
            f"the expression {worst} is not affine in {variables}, the variables of the region; "
            "build the region from expressions with the same products of parameters"
        )
    monomials = np.array([[name == other for other in names] for name in monomial_names], dtype=np.int32)
    return replace(table, names=names, monomials=read_only(monomials.reshape(len(monomial_names), len(names))))


def monomial_name(exponents: Sequence[int], names: tuple[str, ...]) -> str:
    """Return a monomial as polynomials print it, or nothing if it is the constant one."""
    powers = sorted((name, e) for name, e in zip(names, exponents, strict=True) if e)
    return "*".join(name if e == 1 else f"{name}^{e}" for name, e in powers)


def affine_forms(table: ExpressionTable) -> tuple[FloatArray, FloatArray]:
    """Return the constants (n) and the coefficients (n, d) of expressions, each rounded to the nearest float."""
    if not table.is_affine.all():
        worst = table.polynomials[int(np.argmax(table.degree))]
        raise ModelError(f"the expression {worst} is not affine; give its products names, with in_variables")
    return affine_parts(table)


def affine_parts(table: ExpressionTable) -> tuple[FloatArray, FloatArray]:
    """Return constants and coefficients as ``affine_forms`` does, with zeros for expressions that are not affine."""
    degree = table.monomials.sum(axis=1)
    column = np.where(degree > 0, table.monomials.argmax(axis=1) + 1, 0) if len(table.names) else degree
    dense = np.zeros((len(table), len(table.names) + 1))
    dense[owners(table.first_term), column[table.monomial]] = table.coefficient
    dense[~table.is_affine] = 0
    return dense[:, 0], np.ascontiguousarray(dense[:, 1:])

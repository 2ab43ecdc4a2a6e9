"""The region of all points at which expressions lie in their intervals, and the ranges of expressions over a region.

Regions of polynomial expressions, with products of parameters as variables, in which the expressions are affine.

The points (p, q, p q) form no polytope. Envelopes around them do, and they fit the closer, the narrower the bounds of p
and q. So the region gives bounds, these give envelopes, and these a smaller region. With few parameters, the same is
done in each cell of a grid, and what holds in all cells holds for the region.

All rounding is that of half-spaces and of ``minimise``, outward: envelopes are exact polynomials of exact bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, EmptySpace
from plumdp.base.rounding import UNDERFLOW, UNIT, UP, down
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable, box_range
from plumdp.model.graph import FloatArray, owners, read_only
from plumdp.model.space import ParameterSpace, float_above, float_below
from plumdp.region.conflict import Conflict as Conflict
from plumdp.region.conflict import explain
from plumdp.region.ellipsoid import Ellipsoid
from plumdp.region.half_spaces import Contradiction, HalfSpaces, affine_forms, affine_parts, half_spaces, in_variables
from plumdp.region.mccormick import Bounds, ProductVariables
from plumdp.region.shapes import Box, Polytope, Region, bounding_box, in_order, intersection

_ROUNDS = 4
_WORTH = 0.95  # a further round, if this one has made the bounds of some variable shorter by this factor
_CELLS = {1: 8, 2: 4, 3: 3}  # per parameter, by the number of parameters
_FOR_ROUNDS, _FOR_CELLS = 24, 12  # variables; with more, one round is enough to wait for, and cells are too many
_CUTS = 1000


def lifted_region(
    space: ParameterSpace, table: ExpressionTable, lower: FloatArray, upper: FloatArray
) -> Polytope | Conflict:
    """Return a polytope of parameters and their products with all points at which expressions are within bounds.

    Its variables are the parameters, in the order of the space, and products as polynomials print them: ``p*q``.
    """
    lift = ProductVariables.of(table)
    whole = ParameterSpace(lift.names, lift.bounds(space.bounds), space.constraints)
    envelopes = lift.envelopes(whole.bounds)
    all_expressions = _joined(table, envelopes)
    bounds = np.append(lower, np.zeros(len(envelopes))), np.append(upper, np.full(len(envelopes), np.inf))
    constraints = half_spaces(whole, in_variables(all_expressions, lift.names), *bounds)
    region = intersection(lift.names, constraints.rows, constraints.offsets)
    if isinstance(region, Contradiction):
        return _without_envelopes(explain(region, constraints, whole, all_expressions, *bounds), len(table), space)
    tight = _tightened(lift, region)
    if tight is not None:
        tight = _cut_by_cells(lift, tight, affine_forms(in_variables(table, lift.names))[1])
    return _conflict_by_cases(region, constraints, table, lower, upper) if tight is None else tight


def _tightened(lift: ProductVariables, region: Polytope) -> Polytope | None:
    """Return a smaller polytope around the same points, or None if there are none.

    Bounds of the variables make envelopes, and envelopes make tighter bounds.
    """
    for _ in range(_ROUNDS if len(lift.names) <= _FOR_ROUNDS else 1):
        smaller = _part(lift, region, _bounds(region))
        if smaller is None:
            return None
        before, after = region.upper - region.lower, smaller.upper - smaller.lower
        region = smaller
        if not (after < _WORTH * before).any():
            break
    return region


def _part(lift: ProductVariables, region: Polytope, bounds: Bounds) -> Polytope | None:
    """Return the points of a region within bounds, cut by the envelopes of these bounds, or None if there are none."""
    table = in_variables(ExpressionTable.build(lift.envelopes(bounds), lift.parameters), lift.names)
    added = half_spaces(ParameterSpace(lift.names, bounds), table, np.zeros(len(table)), np.full(len(table), np.inf))
    # the half-spaces of the region without its box, in whose place the bounds come
    others = np.arange(len(region.rows)) >= 2 * len(lift.names)
    rows, offsets = (
        np.vstack([added.rows, region.rows[others]]),
        np.append(added.offsets, region.offsets[others]),
    )
    return _unless_empty(intersection(lift.names, rows, offsets))


def _cut_by_cells(lift: ProductVariables, region: Polytope, directions: FloatArray) -> Polytope | None:
    """Return a smaller polytope around the same points, by the closer envelopes of the cells of a grid.

    Every point lies in a cell. The half-spaces of the region are moved in as far as all cells allow, and so are those
    across the directions. It is None if all cells are empty.
    """
    per_parameter = _CELLS.get(len(lift.parameters), 0)
    if not per_parameter or len(lift.names) > _FOR_CELLS:
        return region
    parts = (_part(lift, region, bounds) for bounds in _grid(lift, region, per_parameter))
    cells = [part for part in parts if part is not None]
    if not cells:
        return None
    chosen = directions[:: -(-len(directions) // _CUTS)]
    d = len(lift.names)
    normals = np.vstack([-np.eye(d), np.eye(d), region.rows[2 * d :], chosen, -chosen])
    present = np.concatenate([-region.lower, region.upper, region.offsets[2 * d :], np.full(2 * len(chosen), np.inf)])
    # a half-space around every cell is one around their union, and so around all points
    offsets = np.minimum(present, np.max([-cell.minimise(-normals) for cell in cells], axis=0))
    return _unless_empty(intersection(lift.names, normals, offsets))


def _unless_empty(region: Polytope | Contradiction) -> Polytope | None:
    return None if isinstance(region, Contradiction) else region


def _grid(lift: ProductVariables, region: Polytope, per_parameter: int) -> Iterator[Bounds]:
    """Yield the bounds of all variables in each cell of a grid over the bounds of the parameters."""
    whole = _bounds(region)
    ticks = [[low + (high - low) * Fraction(i, per_parameter) for i in range(per_parameter + 1)] for low, high in whole]
    for intervals in product(*(pairwise(ends) for ends in ticks[: len(lift.parameters)])):
        cell = lift.bounds(intervals)
        meet = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(cell, whole, strict=True)]
        if all(low <= high for low, high in meet):
            yield tuple(meet)


def _bounds(region: Polytope) -> Bounds:
    ends = zip(region.lower.tolist(), region.upper.tolist(), strict=True)
    return tuple((Fraction(low), Fraction(high)) for low, high in ends)


def _joined(table: ExpressionTable, more: list[Polynomial]) -> ExpressionTable:
    """Return the table with further polynomials at its end."""
    other = ExpressionTable.build(more, table.names)
    return ExpressionTable(
        table.names,
        table.polynomials + other.polynomials,
        read_only(np.vstack([table.monomials, other.monomials])),
        read_only(np.append(table.first_term, table.first_term[-1] + other.first_term[1:])),
        read_only(np.append(table.monomial, len(table.monomials) + other.monomial)),
        read_only(np.append(table.coefficient, other.coefficient)),
    )


def _without_envelopes(conflict: Conflict, n_expressions: int, space: ParameterSpace) -> Conflict:
    """Return the conflict of the expressions alone, without envelopes among its constraints.

    At points of the space envelopes are at least zero, and leaving them out makes the sum that proves it larger.
    """
    is_expression = [f < n_expressions for f in conflict.expressions]
    if not any(is_expression):
        raise EmptySpace(f"the parameter space is empty: {'; '.join(space.describe())}")
    return replace(
        conflict,
        expressions=tuple(f for f in conflict.expressions if f < n_expressions),
        multipliers=read_only(conflict.multipliers[is_expression]),
    )


def _conflict_by_cases(
    region: Polytope, given: HalfSpaces, table: ExpressionTable, lower: FloatArray, upper: FloatArray
) -> Conflict:
    """Return the conflict of the intervals that bound a region, proved by tighter bounds but by no single sum."""
    d = len(region.names)
    bounding = np.isin(_directed(given.rows, given.offsets), _directed(region.rows[2 * d :], region.offsets[2 * d :]))
    used = np.unique(given.expression[bounding & (given.expression < len(table)) & (given.expression >= 0)])
    words = tuple(f"{table.polynomials[f]} in [{lower[f]:.6g}, {upper[f]:.6g}]" for f in used)
    return Conflict(tuple(used.tolist()), read_only(np.full(len(used), np.nan)), words, np.nan)


def _directed(rows: FloatArray, offsets: FloatArray) -> npt.NDArray[np.void]:
    """Return half-spaces as items to compare, which are equal for rows that differ by a power of two."""
    size = np.abs(rows).max(axis=1, keepdims=True, initial=0)
    items = np.ascontiguousarray(np.hstack([rows, offsets[:, None]]) / np.where(size > 0, size, 1.0))
    return items.view(np.dtype((np.void, items.dtype.itemsize * items.shape[1])))[:, 0]


def build_region(
    space: ParameterSpace,
    expressions: ExpressionTable | Sequence[Polynomial],
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
) -> Polytope | Conflict:
    """Return all points of the space at which each expression lies between its bounds, or a conflict if there is none.

    The region contains every such point, since all rounding is outward, and a conflict is proved. Products of
    parameters in the expressions become variables of the region, behind the parameters.

    Parameters
    ----------
    space
        The parameters and their bounds.
    expressions
        Polynomials.
    lower, upper
        The bounds of each.

    Returns
    -------
    Polytope or Conflict
        The region, or which bounds exclude each other.

    Examples
    --------
    >>> from plumdp import ParameterSpace, parameters
    >>> p, q = parameters("p", "q")
    >>> region = build_region(ParameterSpace.unit("p", "q"), [p, p + q], [0.25, 0.5], [0.5, 0.75])
    >>> region.minimise(np.array([[0.0, 1.0], [0.0, -1.0]])).round(9) + 0.0  # q is least 0 and at most 1/2
    array([ 0. , -0.5])
    """
    table = expressions if isinstance(expressions, ExpressionTable) else ExpressionTable.build(expressions, space.names)
    bounds = _checked(lower, len(table), "lower"), _checked(upper, len(table), "upper")
    if not table.is_affine.all():
        return lifted_region(space, table, *bounds)
    constraints = half_spaces(space, table, *bounds)
    region = intersection(space.names, constraints.rows, constraints.offsets)
    return explain(region, constraints, space, table, *bounds) if isinstance(region, Contradiction) else region


def project(region: Region, expressions: ExpressionTable) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest value of each expression over a region, rounded outward.

    Products of parameters in the expressions must be variables of the region, unless it is a box or an ellipsoid of
    parameters. Then their ranges are those over the box around it.

    >>> from plumdp import ParameterSpace, parameters
    >>> p, q = parameters("p", "q")
    >>> region = build_region(ParameterSpace.unit("p", "q"), [p, p + q], [0.25, 0.5], [0.5, 0.75])
    >>> lower, upper = project(region, ExpressionTable.build([q, p - q], ("p", "q")))
    >>> lower.round(9) + 0.0, upper.round(9)
    (array([ 0.  , -0.25]), array([0.5, 0.5]))
    """
    if expressions.is_affine.all() or not isinstance(region, Box | Ellipsoid):
        return _by_support(region, in_variables(expressions, region.names), expressions)
    if isinstance(region, Box):
        return _over_box(region, expressions)
    ends = zip(
        _over_box(Box(region.names, region.lower, region.upper), expressions),
        _by_support(region, expressions, expressions),
        strict=True,
    )
    # the box holds the ellipsoid, so that a range over the box is outer; by support it is tighter, if affine
    lower, upper = (np.where(expressions.is_affine, of_support, of_box) for of_box, of_support in ends)
    return read_only(lower), read_only(upper)


def _by_support(region: Region, affine: ExpressionTable, expressions: ExpressionTable) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the range of each expression that is affine in the variables of a region."""
    constant, matrix = affine_parts(affine)
    box = np.maximum(*map(np.abs, bounding_box(region)))
    size = np.abs(constant) + np.abs(matrix) @ box
    # outward on both sides: minimise never returns more than the minimum
    lower = down(constant + region.minimise(matrix), size)
    upper = -down(region.minimise(-matrix) - constant, size)
    return _with_constants(expressions, lower, upper)


def _over_box(box: Box, expressions: ExpressionTable) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the range of each expression over a box of its parameters, which are exact for multilinear ones.

    Bernstein coefficients enclose the range. On the way to one, a term is rounded no more often than counted here, each
    time relative to its size at the sums of |lower end| and width.
    """
    lower, upper = box_range(expressions, np.arange(len(expressions)), box.lower, box.upper)
    reach = (np.abs(box.lower) + np.abs(box.upper - box.lower)) * UP
    terms = np.abs(expressions.coefficient) * expressions.monomial_values(reach[None, :])[expressions.monomial, 0]
    size = np.bincount(owners(expressions.first_term), terms, len(lower))
    degrees = expressions.monomials.max(axis=0, initial=0)
    error = (4 * (degrees + 4).sum() + len(expressions.monomials) + 8) * UNIT * size * (1 + 1e-9) + UNDERFLOW
    return _with_constants(expressions, lower - error, upper + error)


def _with_constants(
    expressions: ExpressionTable, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the bounds, with exact ones for expressions that are constants."""
    for f in np.flatnonzero(~expressions.is_unknown):
        value = expressions.polynomials[f].constant
        lower[f], upper[f] = float_below(value), float_above(value)
    low, high = in_order(lower, upper)
    return read_only(low), read_only(high)


def _checked(bounds: npt.ArrayLike, n: int, side: str) -> FloatArray:
    values = np.asarray(bounds, dtype=np.float64)
    if values.shape != (n,):
        raise DataError(f"{side} bounds of shape {values.shape} for {n} expressions; give one number for each")
    if np.isnan(values).any():
        raise DataError(f"the {side} bound of expression {int(np.argmax(np.isnan(values)))} is not a number")
    return values

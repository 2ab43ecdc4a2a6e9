"""Regions of polynomial expressions, with products of parameters as variables, in which the expressions are affine.

The points (p, q, p q) form no polytope. Envelopes around them do, and they fit the closer, the narrower the bounds of p
and q. So the region gives bounds, these give envelopes, and these a smaller region. With few parameters, the same is
done in each cell of a grid, and what holds in all cells holds for the region.

All rounding is that of half-spaces and of ``minimise``, outward: envelopes are exact polynomials of exact bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import EmptySpace
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, read_only
from plumdp.model.space import ParameterSpace
from plumdp.region.conflict import Conflict, explain
from plumdp.region.half_spaces import HalfSpaces, affine_forms, half_spaces, in_variables
from plumdp.region.mccormick import Bounds, ProductVariables
from plumdp.region.redundancy import Contradiction
from plumdp.region.shapes import Polytope, intersection

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
        constraints=tuple(constraint.replace(" in [0, inf]", " >= 0") for constraint in conflict.constraints),
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

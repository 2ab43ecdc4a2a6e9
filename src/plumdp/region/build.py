"""The region of all points at which expressions lie in their intervals, and the ranges of expressions over a region."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError
from plumdp.base.rounding import UNDERFLOW, UNIT, UP, down
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable, box_range
from plumdp.model.graph import FloatArray, owners, read_only
from plumdp.model.space import ParameterSpace, float_above, float_below
from plumdp.region.conflict import Conflict as Conflict
from plumdp.region.conflict import explain
from plumdp.region.ellipsoid import Ellipsoid
from plumdp.region.half_spaces import affine_parts, half_spaces, in_variables
from plumdp.region.lift import lifted_region
from plumdp.region.redundancy import Contradiction
from plumdp.region.shapes import Box, Polytope, Region, bounding_box, in_order, intersection


def build_region(
    space: ParameterSpace,
    expressions: ExpressionTable | Sequence[Polynomial],
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
) -> Polytope | Conflict:
    """Return all points of the space at which each expression lies between its bounds, or a conflict if there is none.

    The region contains every such point, since all rounding is outward. A conflict is proved. A region that is empty by
    less than floats can tell counts as one that is not. Products of parameters in the expressions become variables of
    the region, behind the parameters, and it is a polytope around the points. Affine expressions need no such
    variables.

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

"""Ellipsoids cut by half-spaces, over which a linear objective has a closed form where no half-space matters.

Where many do, a region is held in two forms, as an ellipsoid and as a polytope around the same points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property

import numpy as np

from plumdp.base.linear_algebra import inverse_root
from plumdp.base.rounding import UP
from plumdp.model.expressions.polynomial import Polynomial, from_terms
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, read_only
from plumdp.model.text import listing, one_line
from plumdp.region import ellipsoid_kernels
from plumdp.region.conflict import Conflict
from plumdp.region.mccormick import ProductVariables
from plumdp.region.shapes import Polytope, bounding_box

_SPREAD = {2: 24, 3: 100, 4: 150}  # pairs of tangents, by the number of variables
_MAX_GRADIENTS = 200


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """The points ``centre + radius * root @ x`` with ``|x| <= 1`` that also lie in some half-spaces.

    The least value of an objective g over the ellipsoid alone is g·centre - radius |rootᵀ g|. Where a half-space
    excludes the point at which it is attained, multipliers make it as large as the half-spaces allow.
    """

    names: tuple[str, ...]
    lower: FloatArray  # (d): the bounding box, rounded outward
    upper: FloatArray  # (d)
    centre: FloatArray  # (d)
    root: FloatArray  # (d, d)
    radius: float
    rows: FloatArray  # (n, d): the half-spaces ``rows @ point <= offsets`` that reach into the ellipsoid
    offsets: FloatArray  # (n)

    def __repr__(self) -> str:
        return one_line(self, f"radius {self.radius:.6g} in {', '.join(self.names)}")

    def minimise(self, objectives: FloatArray) -> FloatArray:
        """Return for each row of ``objectives`` (k, d) a number never above the minimum of ``objective @ point``."""
        objectives = np.ascontiguousarray(objectives, dtype=np.float64)
        values = np.empty(len(objectives))
        ellipsoid_kernels.minima(
            objectives, *self.half_spaces_of_ball, _perturbed_start(len(self.names)), *self.tables, values
        )
        return values

    @property
    def tables(self) -> tuple[FloatArray | float, ...]:
        """The half-spaces, the ellipsoid and the box, as the kernels take them."""
        return self.rows, self.offsets, self.centre, self.root, self.radius, self.lower, self.upper

    @cached_property
    def half_spaces_of_ball(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The half-spaces as ``normals @ x <= heights``, with normals of length one, and the lengths they had."""
        return _in_the_ball(self.rows, self.offsets, self.centre, self.radius * self.root)


@dataclass(frozen=True, eq=False)
class Enclosed:
    """The points that lie in an ellipsoid of the parameters and in a polytope, both cut by the same half-spaces.

    The variables of the polytope are the parameters and, behind them, products of parameters. Bounds are the better of
    both. Nature, which needs vertices, picks points of the polytope.
    """

    ellipsoid: Ellipsoid
    polytope: Polytope

    def __repr__(self) -> str:
        return one_line(self, repr(self.ellipsoid), repr(self.polytope))

    @property
    def names(self) -> tuple[str, ...]:
        """The variables of the polytope, in the order of the coordinates."""
        return self.polytope.names

    @property
    def lower(self) -> FloatArray:
        """The least value of each variable, rounded down."""
        d = len(self.ellipsoid.names)
        return np.append(np.maximum(self.polytope.lower[:d], self.ellipsoid.lower), self.polytope.lower[d:])

    @property
    def upper(self) -> FloatArray:
        """The largest value of each variable, rounded up."""
        d = len(self.ellipsoid.names)
        return np.append(np.minimum(self.polytope.upper[:d], self.ellipsoid.upper), self.polytope.upper[d:])

    def minimise(self, objectives: FloatArray) -> FloatArray:
        """Return for each row of ``objectives`` (k, d) a number never above the minimum of ``objective @ point``."""
        d = len(self.ellipsoid.names)
        values = self.polytope.minimise(objectives)
        is_affine = ~objectives[:, d:].any(axis=1)
        # both numbers are lower bounds, as the points lie in both sets
        values[is_affine] = np.maximum(values[is_affine], self.ellipsoid.minimise(objectives[is_affine, :d]))
        return values


def build_ellipsoid(centre: FloatArray, matrix: FloatArray, radius: float, *, within: Polytope) -> Ellipsoid | Conflict:
    """Return the points v of a polytope with ``(v - centre) @ matrix @ (v - centre) <= radius**2``, or a conflict.

    The matrix is symmetric. No such point is lost, as the radius is enlarged by what can be proved about the root of
    the inverse (see ``inverse_root``). The polytope may be a whole space, ``build_region(space, (), (), ())``, or what
    intervals have left of it.

    >>> from plumdp import ParameterSpace
    >>> from plumdp.stages import build_region
    >>> square = build_region(ParameterSpace.unit("p", "q"), (), (), ())
    >>> disc = build_ellipsoid(np.array([0.25, 0.5]), np.eye(2), 0.5, within=square)
    >>> disc.minimise(np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 1.0]])).round(9) + 0.0
    array([ 0.       , -0.75     ,  0.0669873])
    """
    root, defect = inverse_root(matrix, np.zeros_like(matrix))
    reach = radius / np.sqrt(1 - defect) * UP if defect < 0.5 else np.inf
    if not reach < np.inf:  # floats cannot tell: an ellipsoid around the whole polytope
        centre, root = (within.lower + within.upper) / 2, np.diag(within.upper - within.lower)
        reach = np.sqrt(len(centre))
    rows = within.rows
    # a half-space at distance one or more from the centre of the unit ball holds all of it; to drop one is sound
    matters = _in_the_ball(rows, within.offsets, centre, reach * root)[1] < 1
    half_spaces = read_only(rows[matters]), read_only(within.offsets[matters])
    middle = read_only(np.array(centre, dtype=np.float64))
    region = Ellipsoid(within.names, within.lower, within.upper, middle, read_only(root), float(reach), *half_spaces)
    conflict = _conflict(region)
    if conflict is not None:
        return conflict
    low, high = bounding_box(region)
    lower, upper = np.maximum(low, within.lower), np.minimum(high, within.upper)
    return replace(region, lower=read_only(lower), upper=read_only(upper))


def cut_further(region: Ellipsoid, rows: FloatArray, offsets: FloatArray) -> Ellipsoid | Conflict:
    """Return the points of an ellipsoid that also have ``rows @ point <= offsets``, or a conflict if there are none."""
    matters = _in_the_ball(rows, offsets, region.centre, region.radius * region.root)[1] < 1
    all_rows, all_offsets = np.vstack([region.rows, rows[matters]]), np.append(region.offsets, offsets[matters])
    cut = replace(region, rows=read_only(all_rows), offsets=read_only(all_offsets))
    conflict = _conflict(cut)
    if conflict is not None:
        return conflict
    low, high = bounding_box(cut)
    return replace(cut, lower=read_only(np.maximum(low, cut.lower)), upper=read_only(np.minimum(high, cut.upper)))


def _conflict(region: Ellipsoid) -> Conflict | None:
    """Return the conflict of half-spaces that keep all points of the ellipsoid out, if multipliers prove that they do.

    They prove it if they make the least value of the objective zero positive.
    """
    normals, heights, lengths = region.half_spaces_of_ball
    weights = np.zeros(len(normals))
    if len(normals):
        ellipsoid_kernels.find_multipliers(_perturbed_start(len(region.names)), normals, heights, weights)
    multipliers = weights / lengths
    # over a set with a point the minimum of zero is zero, so that a positive bound on it proves that there is none
    if not ellipsoid_kernels.safe_minimum(np.zeros(len(region.names)), multipliers, *region.tables) > 0:
        return None
    objective = multipliers @ region.rows
    distance = objective @ region.centre - multipliers @ region.offsets
    stretch = float(distance / (region.radius * np.linalg.norm(region.root.T @ objective))) * (1 - 1e-9)
    words = [
        _text(region.names, *half_space)
        for half_space in zip(region.rows[weights > 0], region.offsets[weights > 0], strict=True)
    ]
    return Conflict((), read_only(np.zeros(0)), (about(region), *words), stretch)


def about(region: Ellipsoid) -> str:
    """Return a description of the ellipsoid."""
    centre = listing([f"{name} = {value:.6g}" for name, value in zip(region.names, region.centre, strict=True)])
    return f"the ellipsoid about {centre}"


def _text(names: tuple[str, ...], row: FloatArray, offset: float) -> str:
    terms = [f"{value:.6g}*{name}" for name, value in zip(names, row, strict=True) if value]
    return f"{' + '.join(terms)} <= {offset:.6g}"


def _in_the_ball(
    rows: FloatArray, offsets: FloatArray, centre: FloatArray, factor: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return half-spaces of ``centre + factor @ x`` as half-spaces of x.

    They are given by normals of length one, offsets, and the lengths that the normals had.
    """
    normals, slack = rows @ factor, offsets - rows @ centre
    lengths = np.sqrt((normals**2).sum(axis=1))
    lengths = np.where(lengths > 0, lengths, 1.0)
    return normals / lengths[:, None], slack / lengths, lengths


@cache
def _perturbed_start(d: int) -> FloatArray:
    """Return a direction without special relations to half-spaces, the same in each call, to move objectives by."""
    return np.random.default_rng(4).uniform(1, 2, d)  # kernels are compiled for arrays that could be written to


def combination(coefficients: Sequence[float], of: ProductVariables) -> Polynomial:
    """Return the sum of the variables of a lift times floats, exactly."""
    order = sorted(range(len(of.parameters)), key=of.parameters.__getitem__)
    terms = zip(of.variables, coefficients, strict=True)
    exact = {tuple(exponents[i] for i in order): Fraction(c) for exponents, c in terms if c}
    return from_terms(tuple(of.parameters[i] for i in order), exact)


def normalised(rows: FloatArray) -> FloatArray:
    """Return rows divided by their largest entries, without rows of zeros."""
    size = np.abs(rows).max(axis=1, keepdims=True, initial=0)
    return np.ascontiguousarray((rows / np.where(size > 0, size, 1.0))[size[:, 0] > 0])


def spread_directions(d: int) -> FloatArray:
    """Return directions of length one, none opposite to another, many in two to four dimensions, else the axes."""
    n = _SPREAD.get(d, d)
    if d == 2:
        angle = np.arange(n) * np.pi / n
        return np.column_stack([np.cos(angle), np.sin(angle)])
    if d == 3:  # a spiral of equal steps in height, turned by the golden section
        height, angle = (np.arange(n) + 0.5) / n, np.arange(n) * np.pi * (3 - np.sqrt(5))
        return np.column_stack([*(np.sqrt(1 - height**2) * turn for turn in (np.cos(angle), np.sin(angle))), height])
    if d == 4:
        points = np.random.default_rng(5).normal(size=(n, d))  # the same in each call
        return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))
    return np.eye(d)


def slopes(ellipsoid: Ellipsoid, expressions: ExpressionTable, lift: ProductVariables) -> FloatArray:
    """Return the slope of expressions in each variable.

    It is that at the centre if they have products that are not variables.
    """
    n, number = len(lift.parameters), {e: i for i, e in enumerate(lift.variables)}
    centre = np.clip(ellipsoid.centre, ellipsoid.lower, ellipsoid.upper)[:n]
    of_monomials = np.zeros((len(expressions.monomials), len(lift.variables)))
    for row, e in zip(of_monomials, expressions.monomials.tolist(), strict=True):
        if tuple(e) in number:
            row[number[tuple(e)]] = 1
        else:
            row[:n] = [k * np.prod(centre ** np.maximum(e - np.eye(n, dtype=int)[j], 0)) for j, k in enumerate(e)]
    unknown = np.flatnonzero(expressions.is_unknown)
    return np.asarray(expressions.coefficients[unknown[:: -(-len(unknown) // _MAX_GRADIENTS)]] @ of_monomials)

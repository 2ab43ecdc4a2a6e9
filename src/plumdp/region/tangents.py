"""The regions of least squares, ellipsoids cut by the space, and polytopes around them where there are products.

Over an ellipsoid, affine expressions have a closed form. Products of parameters need envelopes, which are half-spaces.
So for them the ellipsoid becomes a polytope, between pairs of tangents, and the lift does the rest. The choice of
tangents matters for tightness only, since ``minimise`` proves their offsets.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from plumdp.confidence.least_squares import LeastSquares
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, read_only
from plumdp.model.space import ParameterSpace
from plumdp.region.build import build_region
from plumdp.region.conflict import Conflict
from plumdp.region.ellipsoid import Ellipsoid, about, build_ellipsoid
from plumdp.region.mccormick import Lift
from plumdp.region.shapes import Polytope

_SPREAD = {2: 24, 3: 100, 4: 150}  # pairs of tangents, by the number of variables
_MAX_GRADIENTS = 200


def build_ellipsoid_region(
    space: ParameterSpace, expressions: ExpressionTable, fit: LeastSquares
) -> Ellipsoid | Polytope | Conflict:
    """Return the points of the space within the ellipsoid of least squares, or a conflict if there is none.

    If some expression has a product of parameters, this is a polytope of parameters and products around these points.

    >>> from plumdp import case_study, simulate
    >>> from plumdp.confidence.least_squares import least_squares
    >>> study = case_study("parallel:5")
    >>> counts = simulate(study.model, study.true_point, 1000, rng=1, max_steps=6)
    >>> region = build_ellipsoid_region(study.model.space, study.model.expressions, least_squares(study.model, counts))
    >>> region.names
    ('p1', 'p2', 'p1*p2')
    """
    lift = Lift(space.names, tuple(map(tuple, fit.exponents.tolist())))
    whole = build_region(ParameterSpace(lift.names, lift.bounds(space.bounds), space.constraints), (), (), ())
    assert isinstance(whole, Polytope)
    ellipsoid = build_ellipsoid(fit.centre, fit.matrix, fit.radius, within=whole)
    if isinstance(ellipsoid, Conflict) or expressions.is_affine.all():
        return ellipsoid
    directions = _directions(ellipsoid, expressions, lift)
    tangents = [combination(row, lift.polynomials) for row in directions.tolist()]
    unknown = [f for f in expressions.polynomials if not f.is_constant]  # probabilities, whatever the data say
    lower = np.append(ellipsoid.minimise(directions), np.zeros(len(unknown)))
    upper = np.append(-ellipsoid.minimise(-directions), np.ones(len(unknown)))
    region = build_region(space, [*tangents, *unknown], lower, upper)
    if isinstance(region, Conflict):
        return replace(region, expressions=(), multipliers=read_only(np.zeros(0)), constraints=(about(ellipsoid),))
    return region


def combination(coefficients: list[float], of: tuple[Polynomial, ...]) -> Polynomial:
    """Return the sum of polynomials times floats, exactly."""
    return sum((Fraction(c) * x for c, x in zip(coefficients, of, strict=True)), Polynomial(0))


def _directions(ellipsoid: Ellipsoid, expressions: ExpressionTable, lift: Lift) -> FloatArray:
    """Return the directions of tangents.

    These are the axes, directions spread evenly over the ellipsoid, and with many variables the slopes of expressions.
    """
    d = len(ellipsoid.names)
    spread = np.linalg.solve(ellipsoid.root.T, (spread_directions(d) if d < 4 else np.eye(d)).T).T
    rows = np.vstack([np.eye(d), spread, *([slopes(ellipsoid, expressions, lift)] if d > 3 else [])])
    return normalised(rows)


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


def slopes(ellipsoid: Ellipsoid, expressions: ExpressionTable, lift: Lift) -> FloatArray:
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

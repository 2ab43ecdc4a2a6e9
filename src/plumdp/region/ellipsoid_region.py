"""Ellipsoids of least squares as regions: cut by the space, and with products of parameters as a polytope around them.

Over an ellipsoid, affine expressions have a closed form. Products of parameters need envelopes, which are half-spaces;
so for them the ellipsoid becomes a polytope, between pairs of tangents, and the lift does the rest. Which tangents are
taken is a matter of tightness only: where they stand is what ``minimise`` proves.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plumdp.confidence.least_squares import LeastSquares
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, read_only
from plumdp.model.space import ParameterSpace
from plumdp.region.build import build_region
from plumdp.region.conflict import Conflict
from plumdp.region.ellipsoid import (
    Ellipsoid,
    about,
    build_ellipsoid,
    combination,
    normalised,
    slopes,
    spread_directions,
)
from plumdp.region.mccormick import ProductVariables
from plumdp.region.shapes import Polytope


def build_ellipsoid_region(
    space: ParameterSpace, expressions: ExpressionTable, found: LeastSquares
) -> Ellipsoid | Polytope | Conflict:
    """Return the points of the space within the ellipsoid that least squares has found; or why there is none.

    If some expression has a product of parameters, this is a polytope of parameters and products around these points.

    >>> from plumdp import case_study, simulate
    >>> from plumdp.confidence.least_squares import least_squares
    >>> study = case_study("parallel:5")
    >>> counts = simulate(study.model, study.true_point, 1000, rng=1, max_steps=6)
    >>> region = build_ellipsoid_region(study.model.space, study.model.expressions, least_squares(study.model, counts))
    >>> region.names
    ('p1', 'p2', 'p1*p2')
    """
    lift = ProductVariables(space.names, tuple(map(tuple, found.exponents.tolist())))
    whole = build_region(ParameterSpace(lift.names, lift.bounds(space.bounds), space.constraints), (), (), ())
    assert isinstance(whole, Polytope)
    ellipsoid = build_ellipsoid(found.centre, found.matrix, found.radius, within=whole)
    if isinstance(ellipsoid, Conflict) or expressions.is_affine.all():
        return ellipsoid
    directions = _directions(ellipsoid, expressions, lift)
    tangents = [combination(row, lift) for row in directions.tolist()]
    unknown = [f for f in expressions.polynomials if not f.is_constant]  # probabilities, whatever the data say
    lower = np.append(ellipsoid.minimise(directions), np.zeros(len(unknown)))
    upper = np.append(-ellipsoid.minimise(-directions), np.ones(len(unknown)))
    region = build_region(space, [*tangents, *unknown], lower, upper)
    if isinstance(region, Conflict):
        return replace(region, expressions=(), multipliers=read_only(np.zeros(0)), constraints=(about(ellipsoid),))
    return region


def _directions(ellipsoid: Ellipsoid, expressions: ExpressionTable, lift: ProductVariables) -> FloatArray:
    """Return the axes, directions spread evenly over the ellipsoid, and with many variables those of expressions."""
    d = len(ellipsoid.names)
    spread = np.linalg.solve(ellipsoid.root.T, (spread_directions(d) if d < 4 else np.eye(d)).T).T
    rows = np.vstack([np.eye(d), spread, *([slopes(ellipsoid, expressions, lift)] if d > 3 else [])])
    return normalised(rows)

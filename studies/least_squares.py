"""An ellipsoid about the least-squares estimate, which holds all parameters at once.

A visit of a row is an observation of some of its events, whose probabilities are f[e](v) = c[e] + b[e]·v. Ridge
regression gives an estimate, and the self-normalised bound of Abbasi-Yadkori, Pál and Szepesvári (2011, Theorem 2) a
radius that holds at all times.

Their theorem asks that, given the past, E exp(x·z) <= exp(R² x·A x / 2) for what a step adds to the noise, z, and to
the matrix, A, and every x. We have R = 1/2, since a visit counts for as much of a trial of each event as that allows
(see ``observations``). The paper counts every outcome in full with R = 1/2, and its ellipsoid misses the true point
more often than it says.

Products of parameters are variables like parameters: the ellipsoid is one of both.

Affine expressions have a closed form. Products of parameters need envelopes, which are half-spaces; so
for them the ellipsoid becomes a polytope, between pairs of tangents, and the lift does the rest. Which tangents are
taken is a matter of tightness only: where they stand is what ``minimise`` proves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum, sqrt
from typing import cast

import numpy as np

from plumdp.base.errors import DataError
from plumdp.base.linear_algebra import inverse_root
from plumdp.base.rounding import UNIT, UP
from plumdp.base.vocabulary import Guarantee, Sets
from plumdp.confidence.bets import HalfSpace
from plumdp.confidence.sets import Constraint, Counted, Evidence, require_error, whole_set
from plumdp.data.counts import TransitionCounts, require_same_graph
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, IntArray, read_only
from plumdp.model.parametric import ParametricMDP
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
from plumdp.region.find import REGIONS
from plumdp.region.mccormick import ProductVariables
from plumdp.region.shapes import Polytope
from studies.observations import Observations, observations

RIDGE = 0.01  # the weight of the middle of the space
_NOISE = 0.5


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """The points v with ``(v - centre) @ matrix @ (v - centre) <= radius**2``, taken exactly as these floats say.

    The true point is one of them with probability at least 1 - ``error``. Its coordinates are the
    parameters and, behind them, products of powers of parameters.
    """

    exponents: IntArray  # (d, n_parameters): the powers that make up each coordinate
    centre: FloatArray  # (d)
    matrix: FloatArray  # (d, d)
    radius: float
    error: float
    method: str
    guarantee: Guarantee
    intervals: None = None  # an ellipsoid has none of its own

    def half_spaces(self, names: tuple[str, ...]) -> tuple[HalfSpace, ...]:
        """Return none: no picture draws them."""
        return ()

    def widened(self, by: float) -> None:
        """Return None: nothing is proved for rows that are off."""


def least_squares(
    model: ParametricMDP, counts: TransitionCounts, *, error: float = 0.001, ridge: float = RIDGE
) -> LeastSquares:
    """Return an ellipsoid that contains the true point at all times with probability at least 1 - error.

    The policy and the end of the data may depend on what was seen. ``ridge`` weighs the middle of the space as if it
    had been observed.

    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26)
    >>> found = least_squares(study.model, counts)
    >>> found.guarantee, bool(abs(found.centre[0] - float(study.true_point["p"])) < 0.01)
    ('finite-sample, anytime', True)
    """
    require_error(error)
    if not ridge > 0:
        raise DataError(f"ridge={ridge}: give a number above 0, such as 0.01")
    require_same_graph(model.graph, counts.graph)
    seen = observations(model, counts)
    fitted = fit(seen, *_before(model.space, seen.exponents), error=error, ridge=ridge)
    return LeastSquares(seen.exponents, *fitted, error, "self-normalised least squares", Guarantee.ANYTIME)


def _before(space: ParameterSpace, exponents: IntArray) -> tuple[FloatArray, float]:
    """Return the middle of a box around all variables, and how far from it the true point can be at most."""
    low, high = np.ones((2, len(exponents)))
    for lower, upper, powers in zip(space.lower, space.upper, exponents.T, strict=True):
        ends = np.array([lower**powers, upper**powers])
        least = np.where((powers > 0) & (powers % 2 == 0) & (lower < 0 < upper), 0.0, ends.min(axis=0))
        corners = np.stack([a * b for a in (low, high) for b in (least, ends.max(axis=0))])
        low, high = corners.min(axis=0), corners.max(axis=0)
    middle = (low + high) / 2
    size = np.maximum(np.abs(low), np.abs(high))  # of which rounding may have taken a share
    half = np.maximum(high - middle, middle - low) + np.where(exponents.sum(axis=1) > 1, 1e-12 * size, 0.0)
    return middle, sqrt(fsum(half**2)) * UP


def fit(
    seen: Observations, middle: FloatArray, reach: float, *, error: float, ridge: float
) -> tuple[FloatArray, FloatArray, float]:
    """Return centre, matrix and radius of the ellipsoid, given that the true point is within ``reach`` of the middle.

    With V = ridge I + Σ trials b bᵀ, the centre is middle + V⁻¹ Σ b (successes - trials f(middle)), and the radius
    sqrt(ln det(V / ridge) + 2 ln(1 / error)) / 2 + sqrt(ridge) reach; it is enlarged by what rounding may have moved.
    """
    d, b = len(middle), seen.coefficients
    sizes = np.abs(seen.constants) + np.abs(b) @ np.abs(middle)
    surplus = seen.successes - seen.trials * (seen.constants + b @ middle)
    matrix = ridge * np.eye(d) + _sums(b, seen.trials, b)
    matrix = (matrix + matrix.T) / 2  # rounding may differ on the two sides
    matrix_error = 16 * UNIT * (ridge * np.eye(d) + _sums(np.abs(b), seen.trials, np.abs(b)))
    right = _sums(b, surplus, np.ones((len(b), 1)))[:, 0]
    right_error = (d + 32) * UNIT * (np.abs(b).T @ (seen.successes + seen.trials * sizes))
    root, defect = inverse_root(matrix, matrix_error)
    if not defect < 0.5:  # floats cannot tell: what was known before the data
        return read_only(middle), read_only(np.eye(d)), reach * UP
    offset = root @ (root.T @ right)
    offset += root @ (root.T @ (right - matrix @ offset))
    missed = np.abs(right - matrix @ offset) + right_error + 2 * matrix_error @ np.abs(offset)
    missed += (d + 4) * UNIT * (np.abs(right) + np.abs(matrix) @ np.abs(offset))
    log_det = -2 * fsum(np.log(np.diagonal(root))) + d * np.log1p(defect) + 1e-12 * (d + 1)
    radius = _NOISE * sqrt(max(log_det - d * np.log(ridge), 0) - 2 * np.log(error)) + sqrt(ridge) * reach
    radius += float(np.linalg.norm(np.abs(root).T @ missed)) / sqrt(1 - defect) * UP
    centre = middle + offset  # rounded once more: by at most this, in the norm of the matrix
    radius += float(np.linalg.norm(4 * UNIT * np.abs(centre))) * sqrt(np.trace(matrix)) * UP
    return read_only(centre), read_only(matrix), radius * sqrt((1 + defect) / (1 - defect)) * UP


def _sums(left: FloatArray, weights: FloatArray, right: FloatArray) -> FloatArray:
    """Return leftᵀ diag(weights) right, where only the last step of each sum is rounded."""
    weighted = left * weights[:, None]
    return np.array([[fsum(a * b) for b in right.T] for a in weighted.T]).reshape(left.shape[1], right.shape[1])


def build_ellipsoid_region(
    space: ParameterSpace, expressions: ExpressionTable, found: LeastSquares
) -> Ellipsoid | Polytope | Conflict:
    """Return the points of the space within the ellipsoid that least squares has found; or why there is none.

    If some expression has a product of parameters, this is a polytope of parameters and products around these points.

    >>> from plumdp import case_study, simulate
    >>> from studies.least_squares import least_squares
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


def _ellipsoid(
    space: ParameterSpace, expressions: ExpressionTable, constraints: Sequence[Constraint]
) -> Ellipsoid | Polytope | Conflict:
    return build_ellipsoid_region(space, expressions, cast("LeastSquares", constraints[0]))


REGIONS[LeastSquares] = _ellipsoid


def ellipsoid_evidence(given: Counted) -> Evidence:
    """Return evidence of an ellipsoid about the least-squares estimate."""
    budget = given.divided(whole_set())
    found = least_squares(given.model, given.counts, error=budget.error_of_set(given.error))
    return Evidence.of(cast("Sets", "ellipsoid"), found, budget)

"""Finds the region of the points that constraints leave.

The first constraint decides which shape the region has, and the others cut it. New kinds of constraints that need a
shape of their own register it with ``enclose``.

**L1 balls.** Shares and probabilities both sum to one. So an L1 ball says that no set of outcomes has a probability
that is off by more than half the radius, which is one interval for each of 2^k sets. At a given point the set that is
off most is known at once: the outcomes that are more probable there than their shares. So we start with the whole space
and take in the worst set at each vertex, until no vertex is off anywhere. The region is then the intersection of all
balls, and before that it contains it, so that stopping early is sound. With products of parameters, vertices are points
of parameters and products (see ``lift``), and the start is some single outcomes.

**Ellipsoids.** Affine expressions have a closed form. Products of parameters need envelopes, which are half-spaces; so
for them the ellipsoid becomes a polytope, between pairs of tangents, and the lift does the rest. Which tangents are
taken is a matter of tightness only: where they stand is what ``minimise`` proves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch

import numpy as np

from plumdp.base.errors import EmptySpace
from plumdp.base.rounding import UNIT
from plumdp.confidence.bounds import ExpressionBounds
from plumdp.confidence.least_squares import LeastSquares
from plumdp.confidence.likelihood import LevelSet, LinearConstraints
from plumdp.confidence.multinomial import L1Balls
from plumdp.confidence.sets import Constraint
from plumdp.confidence.studies import Study
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, owners_of, read_only
from plumdp.model.space import ParameterSpace
from plumdp.region.build import build_region
from plumdp.region.conflict import NOTHING_FITS, Conflict
from plumdp.region.ellipsoid import (
    Ellipsoid,
    Enclosed,
    about,
    build_ellipsoid,
    combination,
    normalised,
    slopes,
    spread_directions,
)
from plumdp.region.half_spaces import affine_forms, in_variables
from plumdp.region.likelihood_region import build_likelihood_region
from plumdp.region.mccormick import ProductVariables
from plumdp.region.shapes import Polytope, Region


def find_region(
    space: ParameterSpace, expressions: ExpressionTable, constraints: Sequence[Constraint]
) -> Region | Conflict:
    """Return a region around the points of the space that all constraints leave, or a conflict if there is none.

    >>> from plumdp import case_study, simulate
    >>> from plumdp.confidence.bounds import expression_bounds
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26)
    >>> region = find_region(study.model.space, study.model.expressions, [expression_bounds(study.model, counts)])
    >>> bool(region.lower[0] < 0.55 < region.upper[0])
    True
    """
    studies = [each for each in constraints if isinstance(each, Study)]
    others = [each for each in constraints if not isinstance(each, Study)]
    try:
        space = space.cut(side for study in studies for side in study.sides) if studies else space
        return enclose(others[0], space, expressions, others) if others else build_region(space, (), (), ())
    except EmptySpace:
        if not studies:
            raise
        return NOTHING_FITS  # of the space, studies leave nothing


@singledispatch
def enclose(
    first: Constraint, space: ParameterSpace, expressions: ExpressionTable, constraints: Sequence[Constraint]
) -> Region | Conflict:
    """Return a region of the shape that the first of some constraints asks for."""
    raise TypeError(f"no region is made of {type(first).__name__}: register its shape with region.find.enclose")


@enclose.register
def _polytope(first: ExpressionBounds, space: ParameterSpace, *_: object) -> Region | Conflict:
    return build_region(space, first.events.polynomials, first.event_lower, first.event_upper)


@enclose.register
def _within_balls(first: L1Balls, space: ParameterSpace, *_: object) -> Region | Conflict:
    return build_l1_region(space, first)


@enclose.register
def _ellipsoid(
    first: LeastSquares, space: ParameterSpace, expressions: ExpressionTable, *_: object
) -> Region | Conflict:
    return build_ellipsoid_region(space, expressions, first)


@enclose.register(LevelSet)
@enclose.register(LinearConstraints)
def _likely(
    first: LevelSet | LinearConstraints,
    space: ParameterSpace,
    expressions: ExpressionTable,
    constraints: Sequence[Constraint],
) -> Region | Conflict:
    return build_likelihood_region(space, expressions, constraints)


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


_TOLERANCE = 1e-10  # balls that a vertex misses by less count as met
_MAX_ROUNDS, _MAX_LIFTS = 100, 10  # without and with products of parameters
_FOR_ALL = 9  # variables; with more, there are too many vertices to look at all of them
_MAX_VERTICES = 2000  # that are looked at in a round
_FIRST = 300  # single outcomes to start with

OutcomeSet = tuple[int, tuple[int, ...]]  # a class, and some of its outcomes, whose probability has an interval


def build_l1_region(space: ParameterSpace, bounds: L1Balls) -> Polytope | Conflict:
    """Return all points of the space that lie in the L1 ball of every class of rows, or a conflict if there is none.

    With products of parameters it is a polytope of parameters and products around these points.

    >>> from plumdp import case_study, simulate
    >>> from plumdp.confidence.multinomial import row_bounds
    >>> study = case_study("engagement:10")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=study.max_steps)
    >>> region = build_l1_region(study.model.space, row_bounds(study.model, counts))
    >>> bool((region.lower <= region.upper).all())
    True
    """
    table = ExpressionTable.build(bounds.outcomes, space.names)
    is_affine = bool(table.is_affine.all())
    outcome_sets = dict.fromkeys(() if is_affine else _first_cuts(bounds, table))
    region = build_region(space, *_intervals(bounds, tuple(outcome_sets)))
    for _ in range(_MAX_ROUNDS if is_affine else _MAX_LIFTS):
        if isinstance(region, Conflict):
            break
        balls = _Balls(bounds, *affine_forms(in_variables(table, region.names)))
        new = dict.fromkeys(
            outcome_set for vertex in _vertices(region, balls.matrix) for outcome_set in balls.worst_at(vertex)
        )
        if new.keys() <= outcome_sets.keys():  # no vertex is off by more: this is the intersection of all balls
            break
        outcome_sets |= new
        region = build_region(space, *_intervals(bounds, tuple(outcome_sets)))
    return region


def _first_cuts(bounds: L1Balls, table: ExpressionTable) -> list[OutcomeSet]:
    """Return some single outcomes, among them one with each product, so that all products become variables."""
    with_product = owners_of(table.first_term, np.unique(table.monomial, return_index=True)[1])
    evenly = np.arange(0, len(table), -(-len(table) // _FIRST))
    chosen = np.union1d(with_product, evenly)
    return [(int(c), (int(j),)) for c, j in zip(owners_of(bounds.first, chosen), chosen, strict=True)]


def _intervals(
    bounds: L1Balls, outcome_sets: tuple[OutcomeSet, ...]
) -> tuple[list[Polynomial], FloatArray, FloatArray]:
    """Return the probabilities of sets of outcomes, and their bounds, rounded outward."""
    sums = [sum((bounds.outcomes[j] for j in outcomes), Polynomial(0)) for _, outcomes in outcome_sets]
    shares = np.array([bounds.shares[list(outcomes)].sum() for _, outcomes in outcome_sets])
    # outward, by more than the rounding of the sum of shares
    reach = np.array([bounds.radius[c] / 2 + (len(outcomes) + 4) * UNIT for c, outcomes in outcome_sets])
    return sums, shares - reach, shares + reach


@dataclass(frozen=True, eq=False)
class _Balls:
    bounds: L1Balls
    constants: FloatArray  # (n_outcomes)
    matrix: FloatArray  # (n_outcomes, d)

    def worst_at(self, point: FloatArray) -> list[OutcomeSet]:
        """Return the ball that a point misses most, with the outcomes too probable there, or nothing if it misses none.

        This is found in floats without care for rounding, since the interval of any set of outcomes holds.
        """
        first = self.bounds.first
        if len(first) == 1:
            return []
        excess = self.constants + self.matrix @ point - self.bounds.shares
        beyond = np.add.reduceat(np.maximum(excess, 0), first[:-1]) - self.bounds.radius / 2
        c = int(np.argmax(beyond))
        outcomes = tuple((first[c] + np.flatnonzero(excess[first[c] : first[c + 1]] > 0)).tolist())
        return [(c, outcomes)] if beyond[c] > _TOLERANCE else []


def _vertices(region: Polytope, objectives: FloatArray) -> FloatArray:
    """Return the vertices of a polytope, up to rounding, or those best for an objective if there are many variables."""
    if len(region.names) <= _FOR_ALL:
        vertices = region.table.vertices
    else:
        reached, _ = region.graph.walk(np.vstack([objectives, -objectives]) * region.scale)
        vertices = region.graph.found.points[np.unique(reached)]
    return vertices[:: -(-len(vertices) // _MAX_VERTICES)] * region.scale


_ROUNDING = 1e-9  # relative to the size of a parameter
_SHARES = (1e-12, 1e-9, 1e-6)  # of the way to the middle of the region that a point may be moved


@singledispatch
def holds(region: Region, point: FloatArray) -> bool:
    """Return whether a region holds a point of the parameters (d), up to rounding.

    For an unknown kind of region the answer is that of its box.

    >>> from plumdp import ParameterSpace, parameters
    >>> from plumdp.stages import build_region
    >>> p, q = parameters("p", "q")
    >>> region = build_region(ParameterSpace.unit("p", "q"), [p * q], [0.25], [0.5])
    >>> holds(region, np.array([0.7, 0.6])), holds(region, np.array([0.4, 0.4]))
    (True, False)
    """
    d = len(point)
    return bool((region.lower[:d] <= point).all() and (point <= region.upper[:d]).all())


@holds.register
def _in_polytope(region: Polytope, point: FloatArray) -> bool:
    values = _values(region.names, point) / region.scale
    return all(bool((graph.rows @ values[columns] <= graph.offsets).all()) for columns, graph in region.blocks)


@holds.register
def _in_ellipsoid(region: Ellipsoid, point: FloatArray) -> bool:
    values = _values(region.names, point)
    try:
        off = np.linalg.solve(region.root, values - region.centre)
    except np.linalg.LinAlgError:
        return False
    is_near = float(np.linalg.norm(off)) <= region.radius
    in_box = bool((region.lower <= values).all() and (values <= region.upper).all())
    return is_near and in_box and bool((region.rows @ values <= region.offsets).all())


@holds.register
def _in_enclosed(region: Enclosed, point: FloatArray) -> bool:
    return _in_ellipsoid(region.ellipsoid, point) and _in_polytope(region.polytope, point)


def moved_into(region: Region, point: FloatArray, *, inner: FloatArray) -> FloatArray | None:
    """Return a point (d) that a region holds, moved by no more than rounding, or None if it lies outside.

    It is moved towards the middle of the box around the region, or towards an ``inner`` point of the space.
    """
    low, high = region.lower[: len(point)], region.upper[: len(point)]
    held = np.clip(point, low, high)
    if (np.abs(held - point) > _ROUNDING * np.maximum(np.abs(low), np.abs(high))).any():
        return None
    ways = [share * (end - held) for share in _SHARES for end in ((low + high) / 2, inner)]
    return next((held + way for way in (np.zeros(len(held)), *ways) if holds(region, held + way)), None)


def _values(names: tuple[str, ...], point: FloatArray) -> FloatArray:
    """Return the values of a region's variables at a point, parameters first, then products such as p*q^2."""
    value_of = dict(zip(names, point.tolist(), strict=False))
    products = [[factor.partition("^") for factor in name.split("*")] for name in names[len(point) :]]
    powers = [np.prod([value_of[name] ** int(power or 1) for name, _, power in factors]) for factors in products]
    return np.append(point, powers)

"""Finds the region of the points that constraints leave.

The first constraint decides which shape the region has, and the others cut it. New kinds of constraints that need a
shape of their own register it with ``enclose``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

from plumdp.base.errors import EmptySpace
from plumdp.confidence.bounds import ExpressionBounds
from plumdp.confidence.least_squares import LeastSquares
from plumdp.confidence.likelihood import LevelSet, LinearConstraints
from plumdp.confidence.multinomial import L1Balls
from plumdp.confidence.sets import Constraint
from plumdp.confidence.studies import Study
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.space import ParameterSpace
from plumdp.region.build import build_region
from plumdp.region.conflict import NOTHING_FITS, Conflict
from plumdp.region.ellipsoid_region import build_ellipsoid_region
from plumdp.region.l1_region import build_l1_region
from plumdp.region.likelihood_region import build_likelihood_region
from plumdp.region.shapes import Region


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

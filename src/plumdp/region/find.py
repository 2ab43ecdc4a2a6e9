"""Finds the region of the points that constraints leave.

The first constraint decides which shape the region has, and the others cut it. New kinds of constraints that need a
shape of their own have it in ``REGIONS``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import TypeAlias, cast

import numpy as np

from plumdp.base.kinds import Kinds
from plumdp.confidence.bounds import ExpressionBounds
from plumdp.confidence.sets import Constraint
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import ParameterSpace
from plumdp.region.build import build_region
from plumdp.region.conflict import Conflict
from plumdp.region.ellipsoid import (
    Ellipsoid,
    Enclosed,
)
from plumdp.region.shapes import Polytope, Region


def find_region(model: ParametricMDP, constraints: Sequence[Constraint]) -> Region | Conflict:
    """Return a region around the points of the space that all constraints leave, or a conflict if there is none.

    >>> from plumdp import case_study, simulate
    >>> from plumdp.confidence.bounds import expression_bounds
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26)
    >>> region = find_region(study.model, [expression_bounds(study.model, counts)])
    >>> bool(region.lower[0] < 0.55 < region.upper[0])
    True
    """
    if not constraints:
        return build_region(model.space, (), (), ())
    kind = type(constraints[0])
    if kind not in REGIONS:
        raise TypeError(f"no region is made of {kind.__name__}: add its shape to region.find.REGIONS")
    return REGIONS[kind](model.space, model.asked_expressions, constraints)


def _polytope(
    space: ParameterSpace, expressions: ExpressionTable, constraints: Sequence[Constraint]
) -> Region | Conflict:
    first = cast("ExpressionBounds", constraints[0])
    return build_region(space, first.events.polynomials, first.event_lower, first.event_upper)


Shape: TypeAlias = Callable[[ParameterSpace, ExpressionTable, Sequence[Constraint]], Region | Conflict]

REGIONS: Kinds[type, Shape] = Kinds({ExpressionBounds: _polytope})
"""How regions are made, by the type of the first constraint."""

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

"""Upper bounds on quadratic functions over the points of a region that lie in boxes, by multipliers of its constraints.

If c[i](x) >= 0 at all points of the region, then for every y >= 0 a function q is at most the largest value of q + Σ
y[i] c[i] on the box, at these points. The constraints are half-spaces, a ball around the region, and the sides of the
box. Multipliers are those of a linear function, the tangent of q at about the point where it is largest. Where the ball
is bent more than q, they are exact there.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import singledispatch

import numpy as np

from plumdp.base.rounding import SQUARES_UNDERFLOW, UNDERFLOW, UNIT, UP
from plumdp.model.graph import BoolArray, FloatArray, Indices, IntArray
from plumdp.region import ellipsoid_kernels
from plumdp.region.ellipsoid import Ellipsoid, Enclosed
from plumdp.region.shapes import Polytope, Region
from plumdp.solver.coupled.box_expansions import Quadratic
from plumdp.solver.coupled.forms import Boxes

_ROUNDS = 2
_FEASIBLE = 1e-7  # relative: what estimates may miss a constraint by


@dataclass(frozen=True, eq=False)
class Cover:
    """Boxes that cover a region, and bounds on a value at the points of the region in each of them."""

    lower: FloatArray  # (k, d): of the boxes, in the coordinates of the ball
    upper: FloatArray  # (k, d)
    low: FloatArray  # (k): of the value, infinite where a box holds no point of the region
    high: FloatArray  # (k), likewise
    near: FloatArray  # (k): about the least value at a point of the region in the box, if one was found
    far: FloatArray  # (k): about the largest
    axis: IntArray  # (k): along which to cut

    def take(self, which: Indices) -> Cover:
        """Return some of the boxes."""
        return Cover(*(getattr(self, each.name)[which] for each in fields(self)))

    def halves(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper ends of both halves of all boxes."""
        rows, high, low = np.arange(len(self.low)), self.upper.copy(), self.lower.copy()
        middle = ((self.lower + self.upper) / 2)[rows, self.axis]
        high[rows, self.axis] = low[rows, self.axis] = middle  # the same float, so that halves leave no gap
        return np.vstack([self.lower, low]), np.vstack([high, self.upper])


@singledispatch
def half_spaces(region: Region, d: int) -> tuple[FloatArray, FloatArray]:
    """Return half-spaces ``rows @ v <= offsets`` of the parameters alone that hold a region."""
    sides = np.eye(d)
    return np.vstack([-sides, sides]), np.append(-region.lower[:d], region.upper[:d])


@half_spaces.register
def _of_polytope(region: Polytope, d: int) -> tuple[FloatArray, FloatArray]:
    rows, offsets = region.rows, region.offsets
    alone = ~rows[:, d:].any(axis=1)
    return np.ascontiguousarray(rows[alone, :d]), offsets[alone]


@half_spaces.register
def _of_ellipsoid(region: Ellipsoid, d: int) -> tuple[FloatArray, FloatArray]:
    return region.rows, region.offsets


@half_spaces.register
def _of_both(region: Enclosed, d: int) -> tuple[FloatArray, FloatArray]:
    return _of_ellipsoid(region.ellipsoid, d)


@dataclass(frozen=True, eq=False)
class OnBoxes:
    """The constraints of a region on boxes of a ball around it, in the coordinates of the boxes."""

    boxes: Boxes
    normals: FloatArray  # (m + 2 d, d): of half-spaces and of the sides of boxes, in the ball, of length one
    lengths: FloatArray  # (m + 2 d): that they had
    heights: FloatArray  # (b, m + 2 d)
    rows: FloatArray  # (b, m, d): of half-spaces ``rows @ x <= slacks`` in each box
    slacks: FloatArray  # (b, m), rounded up

    def upper(self, q: Quadratic) -> tuple[FloatArray, FloatArray]:
        """Return upper bounds on functions on boxes (b), and about their values at points of the region.

        Without such a point it is minus infinity, and so is the bound if multipliers prove that there is none.
        """
        point = np.zeros_like(q.slope)
        best, inner = q.value + largest(q.slope, q.curvature), np.full(len(point), -np.inf)
        is_empty = np.zeros(len(point), dtype=np.bool_)
        for _ in range(_ROUNDS):
            tangent = q.slope + 2 * (q.curvature @ point[:, :, None])[:, :, 0]
            y, of_ball, point = self.multipliers(tangent)
            best = np.fmin(best, self.lagrangian(q, y, of_ball))
            is_empty |= self.lagrangian(Quadratic(*map(np.zeros_like, q)), y, of_ball) < 0
            at = q.value + (point * (q.slope + (q.curvature @ point[:, :, None])[:, :, 0])).sum(1)
            inner = np.fmax(inner, np.where(self.is_near(point), at, -np.inf))
        bound = (best + q.error) + 8 * UNIT * (np.abs(q.value) + np.abs(best) + q.error)
        # what is not a number bounds nothing
        return np.where(is_empty, -np.inf, np.where(np.isnan(bound), np.inf, bound)), inner

    def multipliers(self, slope: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return multipliers for the largest slope·x, of half-spaces and sides (b, m + 2 d) and the ball (b), and x."""
        boxes, (b, d) = self.boxes, slope.shape
        directions = slope / boxes.reach
        found, rest, points = np.zeros_like(self.heights), np.zeros(b), np.zeros((b, d))
        nudge = ellipsoid_kernels.PERTURBATION * np.random.default_rng(4).uniform(1, 2, d)
        for k in range(b):
            size = float(np.sqrt(directions[k] @ directions[k]))
            if 0 < size < np.inf:
                near = nudge - directions[k] / size
                points[k] = ellipsoid_kernels.find_multipliers(near, self.normals, self.heights[k], found[k])
                left = directions[k] - size * found[k] @ self.normals
                rest[k] = float(np.sqrt(left @ left)) / 2
                found[k] *= size / self.lengths
        found[:, -2 * d :] *= np.hstack([boxes.reach, boxes.reach])
        return found, rest, np.clip((points - boxes.middle) / boxes.reach, -1.0, 1.0)

    def is_near(self, point: FloatArray) -> BoolArray:
        """Return about whether points are in the region."""
        excess = (self.rows @ point[:, :, None])[:, :, 0] - self.slacks
        of_ball = np.linalg.norm(self.boxes.middle + self.boxes.reach * point, axis=1)
        return np.asarray((excess <= _FEASIBLE * np.abs(self.rows).sum(2)).all(1) & (of_ball <= 1 + _FEASIBLE))

    def lagrangian(self, q: Quadratic, multipliers: FloatArray, of_ball: FloatArray) -> FloatArray:
        """Return upper bounds on functions plus multipliers times slacks on boxes, whatever the multipliers are."""
        d, middle, reach = q.slope.shape[1], self.boxes.middle, self.boxes.reach
        multipliers, nu = nonnegative(multipliers), nonnegative(of_ball)  # weak duality needs no more
        y, down, up = multipliers[:, : -2 * d], multipliers[:, -2 * d : -d], multipliers[:, -d:]
        # 1 - |middle + reach x|² >= 0 in the ball
        constant = (y * self.slacks).sum(1) + down.sum(1) + up.sum(1) + nu * (1 - (middle**2).sum(1))
        slope = q.slope - (y[:, None] @ self.rows)[:, 0] + down - up - 2 * nu[:, None] * middle * reach
        curvature = q.curvature - (nu[:, None] * reach**2)[:, :, None] * np.eye(d)
        size = (y * (np.abs(self.slacks) + np.abs(self.rows).sum(2))).sum(1) + 2 * (down + up).sum(1)
        size += np.abs(q.value) + np.abs(q.slope).sum(1) + np.abs(q.curvature).sum((1, 2))
        size += nu * (1 + ((np.abs(middle) + reach) ** 2).sum(1))
        slack = (len(self.lengths) + 4 * d + 32) * UNIT * size + SQUARES_UNDERFLOW
        return np.asarray(q.value + constant + largest(slope, curvature) + slack * UP)


def nonnegative(multipliers: FloatArray) -> FloatArray:
    """Return zero for multipliers that are negative."""
    return np.maximum(multipliers, 0.0)


def on_boxes(region: Region, boxes: Boxes) -> OnBoxes:
    """Return the constraints of a region on boxes of a ball around it."""
    ball, middle, reach = boxes.ball, boxes.middle, boxes.reach
    d = middle.shape[1]
    rows, offsets = half_spaces(region, d)
    turned = rows @ ball.factor
    sides = np.vstack([turned, -np.eye(d), np.eye(d)])
    lengths = np.sqrt((sides**2).sum(axis=1))
    lengths = np.where(lengths > 0, lengths, 1.0)
    level = rows @ ball.centre
    # outward: slacks are no less than they are at any point of a box
    rounding = (
        (3 * d + 16) * UNIT * (np.abs(rows) @ (np.abs(ball.centre) + np.abs(ball.factor).sum(axis=1)) + np.abs(offsets))
    )
    slacks = offsets - level - middle @ turned.T + rounding * UP + UNDERFLOW
    heights = np.hstack([np.tile(offsets - level, (len(middle), 1)), reach - middle, reach + middle]) / lengths
    return OnBoxes(
        boxes, sides / lengths[:, None], lengths, np.ascontiguousarray(heights), turned * reach[:, None], slacks
    )


def largest(slope: FloatArray, curvature: FloatArray) -> FloatArray:
    """Return upper bounds on slope·x + xᵀ curvature x over the cube (b): in the axes of the curvature, or term by term.

    With V about orthogonal, curvature = V Λ Vᵀ + E, and slope·x = (Vᵀ slope)·(Vᵀ x) + slope·(I - V Vᵀ) x. No
    factorisation is trusted.
    """
    d = slope.shape[1]
    size = np.abs(slope).sum(1) + np.abs(curvature).sum((1, 2))
    is_finite = np.isfinite(size)
    matrix = np.where(is_finite[:, None, None], curvature, 0.0)
    values, v = np.linalg.eigh(matrix)
    along, wide = (slope[:, None] @ v)[:, 0], np.abs(v).sum(1) * UP
    edge = np.abs(along) * wide + values * wide**2
    # a parabola that is bent down has its largest value inside, or at the edge
    is_inside = np.abs(along) < -2 * values * wide
    turned = np.where(is_inside, along**2 / np.where(is_inside, -4 * values, 1.0), edge)
    off = np.abs(matrix - (v * values[:, None]) @ v.swapaxes(1, 2)).sum((1, 2))
    skew = np.abs(v @ v.swapaxes(1, 2) - np.eye(d)).sum((1, 2))
    rounding = (16 * d * d + 64) * UNIT * (size + np.abs(turned).sum(1))
    first = turned.sum(1) + off + skew * np.abs(slope).sum(1) + rounding
    bends = np.diagonal(matrix, axis1=1, axis2=2)
    apart = np.abs(matrix).sum((1, 2)) - np.abs(bends).sum(1)
    second = np.abs(slope).sum(1) + apart + np.maximum(bends, 0.0).sum(1) + rounding
    return np.where(is_finite, np.fmin(first, second), np.inf)

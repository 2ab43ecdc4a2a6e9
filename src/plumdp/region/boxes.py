"""Upper bounds on quadratic functions over the points of a region that lie in boxes, by multipliers of its constraints.

If c[i](x) >= 0 at all points of the region, then for every y >= 0 a function q is at most the largest value of q + Σ
y[i] c[i] on the box, at these points. The constraints are half-spaces, a ball around the region, and the sides of the
box. Multipliers are those of a linear function, the tangent of q at about the point where it is largest. Where the ball
is bent more than q, they are exact there.

Any other set of points may cut the region, if it is a ``Slack``: a function that is at least zero at its points, with a
quadratic function above it on each box. That takes the place of c[i].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import singledispatch
from typing import Any, NamedTuple, Protocol

import numpy as np

from plumdp.base.rounding import SQUARES_UNDERFLOW, UNDERFLOW, UNIT, UP
from plumdp.model.graph import BoolArray, FloatArray, Indices, IntArray
from plumdp.region import ellipsoid_kernels
from plumdp.region.ball import Ball
from plumdp.region.ellipsoid import Ellipsoid, Enclosed
from plumdp.region.shapes import Polytope, Region

_ROUNDS = 2
_FEASIBLE = 1e-7  # relative: what estimates may miss a constraint by
_TRIED = (0.3, 1.0, 3.0)  # multiples of the multiplier that a slack would have if it were all that cuts a box
_FLAT = 1e-3  # relative to the largest: the least curvature of a slack that its multiplier is estimated with


@dataclass(frozen=True, eq=False)
class Boxes:
    """The points ``ball.centre + ball.factor @ (middle + reach * x)`` where no entry of x is beyond ±1."""

    ball: Ball
    middle: FloatArray  # (n_boxes, d)
    reach: FloatArray  # (n_boxes, d)

    def __getitem__(self, which: Any) -> Boxes:
        return replace(self, middle=self.middle[which], reach=self.reach[which])

    @property
    def centres(self) -> FloatArray:
        """The parameters in the middle of each box, up to rounding (n_boxes, d)."""
        return np.asarray(self.ball.centre + self.middle @ self.ball.factor.T)

    @property
    def spreads(self) -> FloatArray:
        """How the parameters change with the coordinates of each box, up to rounding (n_boxes, d, d)."""
        return np.asarray(self.ball.factor * self.reach[:, None])

    @property
    def sizes(self) -> FloatArray:
        """The sums of the absolute values that parameters are the sums of (n_boxes, d), which bound their rounding."""
        ball = self.ball
        return np.asarray(np.abs(ball.centre) + (np.abs(self.middle) + self.reach) @ np.abs(ball.factor).T)


class Quadratic(NamedTuple):
    """The functions ``value + slope·x + xᵀ curvature x``, up to ``error``, on some boxes."""

    value: FloatArray  # (b)
    slope: FloatArray  # (b, d)
    curvature: FloatArray  # (b, d, d)
    error: FloatArray  # (b), perhaps infinite

    def times(self, weight: float) -> Quadratic:
        """Return the functions times a number, with the errors of products and of adding up a few of them."""
        value, slope, curvature = self.value * weight, self.slope * weight, self.curvature * weight
        size = np.abs(value) + np.abs(slope).sum(1) + np.abs(curvature).sum((1, 2))
        return Quadratic(value, slope, curvature, (self.error * abs(weight) + 16 * UNIT * size) * UP)

    @property
    def most(self) -> FloatArray:
        """Their values in the middle plus their errors, rounded up."""
        return np.asarray((self.value + self.error) + 4 * UNIT * (np.abs(self.value) + self.error))

    def plus(self, other: Quadratic, weights: FloatArray) -> Quadratic:
        """Return the functions plus weights (b), none negative, times others, with the errors of products and sums."""
        parts = zip(self[:3], other[:3], (weights, weights[:, None], weights[:, None, None]), strict=True)
        value, slope, curvature = (mine + weight * its for mine, its, weight in parts)
        size = np.abs(value) + np.abs(slope).sum(1) + np.abs(curvature).sum((1, 2))
        size += weights * (np.abs(other.value) + np.abs(other.slope).sum(1) + np.abs(other.curvature).sum((1, 2)))
        return Quadratic(value, slope, curvature, (self.error + weights * other.error + 16 * UNIT * size) * UP)


class Slack(Protocol):
    """A function of the parameters that is at least zero at the points that a region is cut to."""

    @property
    def is_bent(self) -> bool:
        """Whether its curvature matters on boxes as large as the region."""

    def above(self, boxes: Boxes) -> tuple[FloatArray, ...]:
        """Return value, slope, curvature and error of functions above it on boxes (see ``Quadratic``)."""

    def at(self, points: FloatArray) -> FloatArray:
        """Return about its values at points (n, d)."""


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
    normals: FloatArray  # (b, m + 2 d, d): of half-spaces and of the sides of boxes, in the ball, of length one
    lengths: FloatArray  # (b, m + 2 d): that they had
    heights: FloatArray  # (b, m + 2 d)
    rows: FloatArray  # (b, m, d): of half-spaces ``rows @ x <= slacks`` in each box, those of other sets last
    slacks: FloatArray  # (b, m), rounded up
    cuts: Sequence[tuple[Slack, Quadratic]] = ()  # other sets that cut the region, with functions above their slacks

    def upper(self, q: Quadratic) -> tuple[FloatArray, FloatArray]:
        """Return upper bounds on functions on boxes (b), and about their values at points of the region.

        Without such a point it is minus infinity, and so is the bound if multipliers prove that there is none.
        """
        best, inner = self.within_half_spaces(q)
        total = q
        for above in (above for slack, above in self.cuts if slack.is_bent):
            # where the slack has no value above zero, the box holds no point of the region
            best = np.where(self.within_half_spaces(above)[0] < 0, -np.inf, best)
            weight = multiplier(total, above)
            for share in _TRIED:
                best = np.fmin(best, self.within_half_spaces(total.plus(above, share * weight))[0])
            total = total.plus(above, weight)
        if self.cuts:
            inner = self.value_inside(q, total)
        return best, inner

    def contracted(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the ends of smaller boxes that hold all points of boxes with these ends at which no slack is negative.

        Where there is no such point, the lower end of a box may be above the upper one.
        """
        middle, reach, (b, d) = self.boxes.middle, self.boxes.reach, self.boxes.reach.shape
        sides, nothing = np.repeat(np.vstack([np.eye(d), -np.eye(d)]), b, axis=0), np.zeros(2 * d * b)
        for above in (above for slack, above in self.cuts if slack.is_bent):
            every = Quadratic(*(np.concatenate([part] * (2 * d)) for part in above))
            side = Quadratic(nothing, sides, np.zeros((2 * d * b, d, d)), nothing)
            # of ±x at the points where the slack is at least zero, by a multiple of it
            total = side.plus(every, multiplier(side, every))
            most = (total.most + largest(total.slope, total.curvature)).reshape(2, d, b).swapaxes(1, 2)
            high, low = most * reach + (np.abs(most) * reach + np.abs(middle)) * (8 * UNIT)
            lower, upper = np.fmax(lower, middle - low), np.fmin(upper, middle + high)
        return lower, upper

    def value_inside(self, q: Quadratic, total: Quadratic) -> FloatArray:
        """Return about the values of functions where they, plus multiples of slacks, are largest, or in the middle."""
        d, inner = q.slope.shape[1], np.full(len(q.value), -np.inf)
        bent = np.where(np.isfinite(total.curvature), total.curvature, 0.0)
        values, v = np.linalg.eigh(-2 * bent)
        steps = (total.slope[:, None] @ v)[:, 0] / np.maximum(
            values, _FLAT * values.max(1, keepdims=True, initial=1e-9)
        )
        for point in (np.clip((v @ steps[:, :, None])[:, :, 0], -1.0, 1.0), np.zeros((len(q.value), d))):
            points = self.boxes.centres + (self.boxes.spreads @ point[:, :, None])[:, :, 0]
            is_inside = self.is_near(point)
            for slack, _ in self.cuts:
                is_inside &= slack.at(points) >= 0
            at = q.value + (point * (q.slope + (q.curvature @ point[:, :, None])[:, :, 0])).sum(1)
            inner = np.fmax(inner, np.where(is_inside, at, -np.inf))
        return inner

    def score(self, q: Quadratic, across: FloatArray) -> FloatArray:
        """Return the worth of a cut along each axis of boxes (b, d), for functions and slacks."""
        score, share = np.zeros_like(across), across / across.sum(1, keepdims=True)
        for each, weight in ((q, np.ones(len(across))), *((above, multiplier(q, above)) for _, above in self.cuts)):
            score += weight[:, None] * (np.abs(each.curvature).sum(2) + each.error[:, None] * share)
        return np.where(np.isfinite(score).all(axis=1, keepdims=True), score, across)

    def within_half_spaces(self, q: Quadratic) -> tuple[FloatArray, FloatArray]:
        """Return upper bounds on functions on boxes, and about their values at points, by half-spaces and the ball."""
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
                points[k] = ellipsoid_kernels.find_multipliers(near, self.normals[k], self.heights[k], found[k])
                left = directions[k] - size * found[k] @ self.normals[k]
                rest[k] = float(np.sqrt(left @ left)) / 2
                found[k] *= size / self.lengths[k]
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
        bends = [(y[:, k, None, None], above.curvature) for k, (_, above) in enumerate(self.cuts, -len(self.cuts))]
        curvature = sum((weight * bend for weight, bend in bends), curvature)
        size = (y * (np.abs(self.slacks) + np.abs(self.rows).sum(2))).sum(1) + 2 * (down + up).sum(1)
        size += np.abs(q.value) + np.abs(q.slope).sum(1) + np.abs(q.curvature).sum((1, 2))
        size += nu * (1 + ((np.abs(middle) + reach) ** 2).sum(1))
        size += sum(((weight * np.abs(bend)).sum((1, 2)) for weight, bend in bends), np.zeros(len(size)))
        slack = (self.lengths.shape[1] + 4 * d + 32) * UNIT * size + SQUARES_UNDERFLOW
        return np.asarray(q.value + constant + largest(slope, curvature) + slack * UP)


def multiplier(q: Quadratic, above: Quadratic) -> FloatArray:
    """Return about the multipliers (b) of slacks for the largest values of q, if nothing else cut the boxes.

    The largest s·x with h + g·x - xᵀ A x >= 0 has the multiplier ½ (sᵀ A⁻¹ s / (h + ¼ gᵀ A⁻¹ g))^½.
    """
    bent = np.where(np.isfinite(above.curvature), -above.curvature, 0.0)
    values, v = np.linalg.eigh(bent)
    values = np.maximum(values, _FLAT * values.max(1, keepdims=True, initial=1e-9))
    along, across = ((part[:, None] @ v)[:, 0] ** 2 / values for part in (q.slope, above.slope))
    level = np.maximum(above.value + above.error + across.sum(1) / 4, 1e-2)
    return np.asarray(np.nan_to_num(np.sqrt(along.sum(1) / level) / 2, nan=0.0, posinf=0.0))


def nonnegative(multipliers: FloatArray) -> FloatArray:
    """Return zero for multipliers that are negative."""
    return np.maximum(multipliers, 0.0)


def on_boxes(region: Region, boxes: Boxes, slacks: Sequence[Slack] = ()) -> OnBoxes:
    """Return the constraints of a region on boxes of a ball around it, and of sets that cut it."""
    cuts = [(slack, known(Quadratic(*slack.above(boxes)))) for slack in slacks]
    ball, middle, reach = boxes.ball, boxes.middle, boxes.reach
    b, d = middle.shape
    rows, offsets = half_spaces(region, d)
    turned, level = rows @ ball.factor, rows @ ball.centre
    # outward: slacks are no less than they are at any point of a box
    rounding = (
        (3 * d + 16) * UNIT * (np.abs(rows) @ (np.abs(ball.centre) + np.abs(ball.factor).sum(axis=1)) + np.abs(offsets))
    )
    room = offsets - level - middle @ turned.T + rounding * UP + UNDERFLOW
    slopes = np.concatenate([turned * reach[:, None], *(-above.slope[:, None] for _, above in cuts)], axis=1)
    room = np.column_stack([room, *(above.most for _, above in cuts)])
    sides = np.broadcast_to(np.vstack([-np.eye(d), np.eye(d)]), (b, 2 * d, d))
    normals = np.concatenate([slopes / reach[:, None], sides], axis=1)
    lengths = np.sqrt((normals**2).sum(axis=2))
    lengths = np.where(lengths > 0, lengths, 1.0)
    heights = np.hstack([room + (normals[:, : -2 * d] @ middle[:, :, None])[:, :, 0], reach - middle, reach + middle])
    return OnBoxes(
        boxes,
        np.ascontiguousarray(normals / lengths[:, :, None]),
        lengths,
        np.ascontiguousarray(heights / lengths),
        slopes,
        room,
        cuts,
    )


def known(above: Quadratic) -> Quadratic:
    """Return functions, or zero where they are not numbers: any multiple of that says nothing."""
    is_known = np.isfinite(sum(part.reshape(len(above.value), -1).sum(1) for part in above))
    return Quadratic(*(np.where(is_known.reshape(-1, *(1,) * (part.ndim - 1)), part, 0.0) for part in above))


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

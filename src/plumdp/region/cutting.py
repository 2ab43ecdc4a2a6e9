"""Cuts a region into boxes, those that hold an end of a function's range first, for bounds on it at every point.

The boxes are in the coordinates of a ball around the region. Those that hold an end of the bracket are halved until
what is not explained by points of the region is a small share of the width. Sets that cut the region make boxes smaller
before. They cover what is left of it whenever that stops, so that the bounds hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from plumdp.base.progress import Teller
from plumdp.base.rounding import UNDERFLOW, UNIT, UP
from plumdp.model.graph import FloatArray
from plumdp.region.ball import Ball, ball_around, linear_range
from plumdp.region.boxes import Boxes, Cover, Quadratic, Slack, on_boxes
from plumdp.region.shapes import Region

MATTERS = 0.02  # share of the remainder from which on more is tried
_NEGLIGIBLE = 1e-7  # remainder, absolute or relative
_PAYS = 0.9  # share of the excess that twice as many boxes may leave; if it is more, halving goes no further
_UNTIL_FINITE = 512  # boxes, after which the bounds must be finite
_ROUNDS = 2  # for the ranges of all parameters
_MATTERS_OF_RANGES = 0.25  # share of the width of these
_MOSTLY = 0.9  # share of boxes that may be left, if the next parameter is to start from these
_MOST_OF_RANGES = 150  # boxes more, for the range of each parameter
TOGETHER = 64  # boxes that are expanded at once, unless they take too much memory


@dataclass(frozen=True, eq=False)
class Cuttable:
    """A function on boxes of a ball around a region, and how many of these may be made."""

    expand: Callable[[Boxes], Quadratic]
    region: Region
    ball: Ball
    widths: FloatArray  # (d): how far rows reach along the axes of the ball
    most: int  # boxes that may cover the region
    together: int = TOGETHER  # boxes that are expanded at once
    slacks: Sequence[Slack] = ()  # of other sets that cut the region
    matters: float = MATTERS  # share of the width that is not worth more boxes

    def bounded(self, lower: FloatArray, upper: FloatArray) -> Cover:
        """Return bounds on the function in boxes."""
        middle = (lower + upper) / 2
        boxes = Boxes(self.ball, middle, np.maximum(upper - middle, middle - lower) * UP + UNDERFLOW)
        parts = []
        for start in range(0, len(middle), self.together):
            some = boxes[start : start + self.together]
            with np.errstate(all="ignore"):  # what is not a number bounds nothing
                q, within = self.expand(some), on_boxes(self.region, some, self.slacks)
                (high, far), (low, near) = within.upper(q), within.upper(q.times(-1.0))
                is_told = q.error <= np.abs(q.slope).sum(1) + np.abs(q.value)  # else it says nothing about points
                score = within.score(q, some.reach * self.widths)
                ends = within.contracted(lower[start : start + len(high)], upper[start : start + len(high)])
            near, far = (np.where(is_told, end, -np.inf) for end in (near, far))
            is_empty = (ends[0] > ends[1]).any(1)
            low, high = (np.where(is_empty, -np.inf, end) for end in (low, high))
            parts.append((*ends, -low, high, -near, far, score.argmax(1)))
        return Cover(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def first(self) -> tuple[FloatArray, FloatArray]:
        """Return the ends of a box that holds the region."""
        ends = [linear_range(self.region, self.ball, axis) for axis in np.eye(len(self.widths))]
        return np.array([[end.lower for end in ends]]), np.array([[end.upper for end in ends]])


def parameter_ranges(region: Region, slacks: Sequence[Slack], d: int) -> tuple[FloatArray, FloatArray] | None:
    """Return the least and the largest value of each parameter (d) where slacks cut a region, or None if nowhere."""
    ball, lower, upper, cover = ball_around(region, d), region.lower[:d].copy(), region.upper[:d].copy(), None
    is_good = np.zeros(d, dtype=np.bool_)
    for k, i in enumerate([*range(d)] * _ROUNDS):
        if is_good[i] or (k >= d and cover is None):
            continue

        def expand(boxes: Boxes, i: int = i) -> Quadratic:
            value, slope = boxes.centres[:, i], boxes.spreads[:, i]
            return Quadratic(value, slope, np.zeros_like(boxes.spreads), (d + 8) * UNIT * boxes.sizes[:, i] * UP)

        # what one parameter's boxes have shown to be empty is so for the next one
        most = _MOST_OF_RANGES + (0 if cover is None else len(cover.low))
        found, (least, largest) = cut(
            Cuttable(expand, region, ball, np.ones(d), most, TOGETHER, slacks, _MATTERS_OF_RANGES), cover
        )
        lower[i], upper[i] = max(lower[i], found.low.min()), min(upper[i], found.high.max())
        if lower[i] > upper[i]:
            return None
        left = np.flatnonzero(found.low <= found.high)
        cover = found.take(left) if len(left) < _MOSTLY * len(found.low) else cover
        is_good[i] = upper[i] - lower[i] <= (1 + _MATTERS_OF_RANGES) * (largest - least)
    return lower, upper


def cut(total: Cuttable, within: Cover | None = None) -> tuple[Cover, tuple[float, float]]:
    """Return boxes that are halved, those with the outermost ends first, and about the range at points of the region.

    They are made of the boxes of a cover, if one is given. The range is infinite if no point was found.
    """
    ends = total.first() if within is None else (within.lower, within.upper)
    cover, teller = total.bounded(*ends), Teller("cutting the region", "pieces")
    looked, left = 1, np.inf  # the number of boxes when it was last seen whether halving pays, and the excess then
    while True:
        inner = float(cover.near.min()), float(cover.far.max())
        about = inner if np.isfinite(inner).all() else (0.0, 0.0)
        room = max(total.matters / 2 * (about[1] - about[0]), _NEGLIGIBLE * (1 + max(map(abs, about))))
        excess = np.maximum(cover.high - about[1], about[0] - cover.low)
        order = np.argsort(-excess, kind="stable")
        wide = order[((excess > room) & (cover.low <= cover.high))[order]]
        if not len(wide) or len(cover.low) >= total.most:
            return cover, inner
        if len(cover.low) >= 2 * max(looked, TOGETHER):
            size = (cover.upper - cover.lower)[wide]
            volume = np.prod(np.where(size > 0, size, 1.0), axis=1)  # of the sides that a piece has
            looked, last, left = len(cover.low), left, float(volume @ excess[wide])
            if not left <= _PAYS * last and (looked > _UNTIL_FINITE or last < np.inf):
                return cover, inner
        teller.tell(len(cover.low))
        chosen = wide[: min(max(TOGETHER // 2, len(wide) // 4), total.most - len(cover.low))]
        whole, rest = cover.take(chosen), np.setdiff1d(np.arange(len(excess)), chosen)
        new = total.bounded(*whole.halves())
        np.minimum(new.high, np.resize(whole.high, len(new.high)), out=new.high)  # a half has no points of its own
        np.maximum(new.low, np.resize(whole.low, len(new.low)), out=new.low)
        new.near[0], new.far[0] = min(new.near[0], inner[0]), max(new.far[0], inner[1])  # no value is forgotten
        both = zip(*(vars(each).values() for each in (cover.take(rest), new)), strict=True)
        cover = Cover(*(np.concatenate(pair) for pair in both))

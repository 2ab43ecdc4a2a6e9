"""Cuts a region into boxes, those that hold an end of a function's range first, for bounds on it at every point.

The boxes are in the coordinates of a ball around the region. Those that hold an end of the bracket are halved until
what is not explained by points of the region is a small share of the width. They cover the region whenever that stops,
so that the bounds hold.
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
_PAYS = 0.95  # share of the width that twice as many boxes may leave; if it is more, halving goes no further
_UNTIL_FINITE = 512  # boxes, after which the bounds must be finite
_MOST_OF_RANGES = 300  # boxes, for the range of each parameter
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
            near, far = (np.where(is_told, end, -np.inf) for end in (near, far))
            parts.append((-low, high, -near, far, score.argmax(1)))
        return Cover(lower, upper, *(np.concatenate(each) for each in zip(*parts, strict=True)))

    def first(self) -> tuple[FloatArray, FloatArray]:
        """Return the ends of a box that holds the region."""
        ends = [linear_range(self.region, self.ball, axis) for axis in np.eye(len(self.widths))]
        return np.array([[end.lower for end in ends]]), np.array([[end.upper for end in ends]])


def parameter_ranges(region: Region, slacks: Sequence[Slack], d: int) -> tuple[FloatArray, FloatArray] | None:
    """Return the least and the largest value of each parameter (d) where slacks cut a region, or None if nowhere."""
    ball, lower, upper = ball_around(region, d), np.zeros(d), np.zeros(d)
    for i in range(d):

        def expand(boxes: Boxes, i: int = i) -> Quadratic:
            value, slope = boxes.centres[:, i], boxes.spreads[:, i]
            return Quadratic(value, slope, np.zeros_like(boxes.spreads), (d + 8) * UNIT * boxes.sizes[:, i] * UP)

        cover, _ = cut(Cuttable(expand, region, ball, np.ones(d), _MOST_OF_RANGES, slacks=slacks))
        lower[i], upper[i] = cover.low.min(), cover.high.max()
        if lower[i] > upper[i]:
            return None
    return np.maximum(lower, region.lower[:d]), np.minimum(upper, region.upper[:d])


def cut(total: Cuttable) -> tuple[Cover, tuple[float, float]]:
    """Return boxes that are halved, those with the outermost ends first, and about the range at points of the region.

    The range is infinite if no point was found.
    """
    cover, teller = total.bounded(*total.first()), Teller("cutting the region", "pieces")
    looked, width = 1, np.inf  # the number of boxes when it was last seen whether halving pays, and the width then
    while True:
        inner = float(cover.near.min()), float(cover.far.max())
        about = inner if np.isfinite(inner).all() else (0.0, 0.0)
        room = max(MATTERS / 2 * (about[1] - about[0]), _NEGLIGIBLE * (1 + max(map(abs, about))))
        excess = np.maximum(cover.high - about[1], about[0] - cover.low)
        order = np.argsort(-excess, kind="stable")
        wide = order[((excess > room) & (cover.low <= cover.high))[order]]
        if not len(wide) or len(cover.low) >= total.most:
            return cover, inner
        if len(cover.low) >= 2 * max(looked, TOGETHER):
            looked, last, width = len(cover.low), width, float(cover.high.max() - cover.low.min())
            if not width <= _PAYS * last and (looked > _UNTIL_FINITE or last < np.inf):
                return cover, inner
        teller.tell(len(cover.low))
        chosen = wide[: min(max(TOGETHER // 2, len(wide) // 4), total.most - len(cover.low))]
        rest, new = np.setdiff1d(np.arange(len(excess)), chosen), total.bounded(*cover.take(chosen).halves())
        new.near[0], new.far[0] = min(new.near[0], inner[0]), max(new.far[0], inner[1])  # no value is forgotten
        both = zip(*(vars(each).values() for each in (cover.take(rest), new)), strict=True)
        cover = Cover(*(np.concatenate(pair) for pair in both))

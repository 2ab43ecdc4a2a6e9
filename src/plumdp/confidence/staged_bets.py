"""Makes half-spaces from bets that are renewed while data come in, so that the length of the data need not be planned.

At a few moments, decided without what came later, bets are placed anew by what was seen until then, and stay until the
next moment. A bet is made for a horizon, the amount of data at which it wins most. As nobody knows how long the data
will be, the wealth is divided among horizons m, with weights w[m] that were fixed beforehand and sum to at most one:

    F(v) = Σ w[m] E[m](v),    ln E[m](v) = Σ over stages s of Σ K[s,j] ln e[m,s,j] - Σ N[s,r] ln Z[m,s,r](v),

with outcomes K and visits N of each stage. At the true point this is a martingale that starts below one, so that it
stays below 1 / error at all times with probability at least 1 - error (Ville 1939). For all p[m] >= 0 with the sum one,

    ln F  >=  Σ p[m] (ln E[m] + ln w[m] - ln p[m]),

and each ln E[m] is bounded from below by an affine function (see ``bets``), which gives a half-space. The numbers p,
and the points of the tangents, may depend on all data. The best are those of the point at which F reaches 1 / error.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf, log, nan, sqrt
from typing import NamedTuple

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.confidence.bets import (
    HalfSpace,
    PartialBets,
    common_half_space,
    factors_along,
    log_gains,
    sharpened,
    sharpness_of,
    unit_steps,
)
from plumdp.confidence.estimates import SPACE_AS_DATA, Law, information, mean_of_pilot
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.data.counts import Pilot, TransitionCounts
from plumdp.data.seen import Seen
from plumdp.model.graph import BoolArray, FloatArray, read_only

_HORIZONS = 5  # that are used, those nearest to the length of the data
FIRST_HORIZON = 12  # in lengths of the first stage
_RENEWED = {True: 0.8, False: 0.5}  # weight of bets that are renewed for a length that was planned, or expected
_EVEN = 8  # horizons that divide a quarter of the other weight evenly
_AHEAD = 0.15  # standard deviations at the planned length, by which a point that is bet against is inside of the bound
_LATE = 0.3  # part of the data after which half-spaces are made at each moment
_AGAIN = 2.0  # growth of the data after which directions are chosen anew
_NEWTON = 40  # steps
_SAME = 1e-10  # nats
_MOST_NATS = 1e3  # that bets are taken to have won
_FURTHEST = 60.0  # standard deviations
_LEAST_SHARE = 1e-4  # of a horizon in the half-space


class DataStage(NamedTuple):
    """The estimate when a stage of the data begins, and the outcomes that were seen in the stage."""

    point: FloatArray  # (d): the estimate
    per_length: FloatArray  # (d, d): information of one run or row there
    outcome_counts: FloatArray  # (n_outcomes)
    mixed: FloatArray | None = None  # (n_groups): how much less than coins values vary that were seen in the stage
    sharpness: FloatArray | None = None  # (n_groups): how much less they are expected to, by those seen before
    length: float = 0.0  # of the data when it begins, in runs or rows


class Horizons(NamedTuple):
    """Lengths of the data that bets are made for, in runs or rows, and the logarithms of their weights.

    If a length was planned or expected, it is the first one, and the sizes of its bets are renewed.
    """

    length: FloatArray  # (M)
    log_weight: FloatArray  # (M)
    is_renewed: bool = False


class BetsOnOneSide(NamedTuple):
    """What the bets on one side of a direction are made of, for somebody who makes a half-space again."""

    direction: int
    sign: int
    until: int  # number of stages that the half-space is made of
    units: FloatArray  # (S, d): of one standard deviation at the first horizon
    steps: FloatArray  # (S, M, d): by which the true parameters are bet to differ from the estimate of a stage
    shares: FloatArray  # (M): of horizons in the logarithm of the wealth
    near: FloatArray  # (d): where tangents are taken


class Bets(NamedTuple):
    """The bets across all directions, both sides of each."""

    points: FloatArray  # (S, d): estimates when stages begin
    horizons: Horizons
    n_directions: int
    sides: tuple[BetsOnOneSide, ...]


class PlacedBets(NamedTuple):
    """The half-space that bets leave, the bets of each stage that it is made of, and what these are made of."""

    left: HalfSpace
    parts: list[PartialBets]  # of the first stages, as many as it is made of
    side: BetsOnOneSide


def find_stages(table: LikelihoodTable, counts: TransitionCounts, space: Law) -> list[DataStage]:
    """Return the stages of the data, each of which begins at a moment of the pilot."""
    if counts.pilot is None:
        return []
    moments = [*counts.pilot.seen_at_moments, counts.seen]
    return [
        _stage(table, before, after, length, space)
        for length, (before, after) in zip(counts.pilot.lengths, pairwise(moments), strict=True)
    ]


def _stage(table: LikelihoodTable, before: Seen, after: Seen, length: float, space: Law) -> DataStage:
    """Return the stage between two moments, the first of which is ``length`` runs or rows from the start."""
    pooled = table.pool_seen(before)
    sharpness = sharpness_of(table, *pooled)
    sharp_counts = pooled.outcome_counts * sharpness[table.group]
    point = read_only(mean_of_pilot(table, sharp_counts, space)[0])
    # what was seen of rare outcomes says little about how they vary: visits and their chances at the point say more
    expected = table.visits(sharp_counts)[table.group] * np.maximum(table.chances(point), 0.0)
    weights = np.where(table.is_class[table.group], expected, sharp_counts)
    per_length = information(table, weights, point) / length
    return DataStage(point, per_length, *table.pool_seen(after - before), sharpness, length)


def chosen_anew(stages: Sequence[DataStage]) -> list[int]:
    """Return for each stage the one at which its directions were chosen: anew when the data have doubled."""
    chosen: list[int] = []
    for s, stage in enumerate(stages):
        chosen.append(s if not s or stage.length >= _AGAIN * stages[chosen[-1]].length else chosen[-1])
    return chosen


def find_horizons(pilot: Pilot, total: int) -> Horizons:
    """Return the horizons nearest to the length of the data, of all those that have a weight.

    Horizons double. Three quarters of the weight fall by the root of two, and a quarter is even over eight that are a
    factor of four apart. Bets that are renewed for a length that was planned have four fifths of all weight, or half if
    it was only expected, and the horizons divide the rest. All weights sum to one.

    >>> pilot = Pilot(np.array([160, 0]), lengths=(16.0,), ratio=9.0)
    >>> horizons = find_horizons(pilot, 1600)
    >>> float(horizons.length[0]), float(np.exp(horizons.log_weight[0]).round(6)), horizons.is_renewed
    (160.0, 0.8, True)
    """
    steps = np.arange(60)
    length, falling = FIRST_HORIZON * pilot.lengths[0] * 2.0**steps, (1 - 2**-0.5) * 2.0 ** (-steps / 2)
    weight = 0.75 * falling + 0.25 * ((steps % 2 == 0) & (steps < 2 * _EVEN)) / _EVEN
    reached = pilot.lengths[-1] * total / max(int(pilot.moments[-1].sum()), 1)
    near = np.argsort(np.abs(np.log(length / reached)), kind="stable")[:_HORIZONS]
    length, weight = length[near], weight[near]
    if pilot.expected is not None:
        renewed = _RENEWED[pilot.is_planned]
        length, weight = np.append(pilot.expected, length), np.append(renewed, (1 - renewed) * weight)
    return Horizons(length.astype(np.float64), np.log(weight), pilot.expected is not None)


def staged_half_spaces(
    table: LikelihoodTable,
    stages: Sequence[DataStage],
    gradients: FloatArray,
    horizons: Horizons,
    space: Law,
    *,
    near: FloatArray,
    error: float,
    texts: Sequence[str],
    is_bet_on: BoolArray | None = None,
) -> list[PlacedBets]:
    """Return the half-spaces that bets along gradients (S, J, d) leave, jointly with probability at least 1 - error.

    There are two for each of J directions, one on either side. Each stage has its own gradients, chosen by what was
    seen before it. ``near`` is an estimate from all data. Bets are placed on all outcomes, or on those (n_outcomes) of
    ``is_bet_on``.
    """
    share, half_spaces = equal_parts(error, len(texts)), []  # union bound over directions
    of_side = horizons._replace(log_weight=horizons.log_weight - log(2))  # both sides together weigh at most one
    pairs = zip(stages, gradients, strict=True)
    steps = np.array([steps_of_stage(table, stage, of_stage, of_side.length, space) for stage, of_stage in pairs])
    rays = _rays(table, stages, gradients[-1], space, near)
    for j, text in enumerate(texts):
        for side in (1, -1) if steps[:, :, j].any() else ():
            of_one = side * steps[:, :, j]
            about = BetsOnOneSide(j, side, len(stages), of_one[:, 0], of_one, of_side.log_weight, near)
            half_spaces += _place(table, stages, of_side, about, -side * rays[j], share, text, is_bet_on)
    return half_spaces


def steps_of_stage(
    table: LikelihoodTable, stage: DataStage, gradients: FloatArray, lengths: FloatArray, space: Law
) -> FloatArray:
    """Return the steps (M, J, d) of one standard deviation of values at each horizon, by the information until then."""
    prior = SPACE_AS_DATA * space.precision
    matrices = lengths[:, None, None] * stage.per_length + prior
    return unit_steps(table, matrices, gradients, stage.point)


def _rays(
    table: LikelihoodTable, stages: Sequence[DataStage], gradients: FloatArray, space: Law, near: FloatArray
) -> FloatArray:
    """Return the steps (J, d) of one standard deviation of values with these gradients (J, d)."""
    nothing = np.zeros(len(table.outcomes))
    total = sum((sharpened(table, stage.outcome_counts, stage.mixed) for stage in stages), nothing)
    return unit_steps(table, information(table, total, near) + SPACE_AS_DATA * space.precision, gradients, near)


@np.errstate(divide="ignore", invalid="ignore")  # where a mean is zero, wealth is infinite
def _place(
    table: LikelihoodTable,
    stages: Sequence[DataStage],
    horizons: Horizons,
    side: BetsOnOneSide,
    ray: FloatArray,
    error: float,
    text: str,
    is_bet_on: BoolArray | None,
) -> list[PlacedBets]:
    """Return the half-spaces that bets on one side leave at the end, and at the best of the moments before.

    Bets are placed stage after stage. ``side`` has steps of one standard deviation (S, M, d) for each horizon.
    """
    goals = -log(error) - horizons.log_weight
    steps = np.sqrt(2 * goals)[:, None] * side.steps
    wealth, cuts = _RayWealth(table, horizons), list[_RayCut]()
    for s, stage in enumerate(stages):
        if horizons.is_renewed and s:
            size = _renewed_size(wealth, cuts, stage, horizons.length[0], -side.steps[s, 0], float(goals[0]))
            steps[s, 0] = size * side.steps[s, 0]
        factors = factors_along(table, stage.point, steps[s], stage.sharpness)
        wealth.add(stage, factors if is_bet_on is None else np.where(is_bet_on, factors, 1.0))
        if s + 1 < len(stages) and horizons.is_renewed and stages[s + 1].length >= _LATE * horizons.length[0]:
            cuts.append(wealth.cut(stages[s + 1].point, -side.steps[s + 1, 0], -log(error), is_renewed=True))
    last = wealth.cut(side.near, ray, -log(error), is_compared=bool(cuts))
    # Ville: all of them hold at one error
    best = min([*cuts, last], key=lambda cut: cut.exit(side.near, ray)) if cuts else last
    side = side._replace(steps=steps)
    return [wealth.half_space(cut, side, error, text) for cut in ([last] if best is last else [best, last])]


class _RayCut(NamedTuple):
    """About where the wealth of the first stages reaches its bound."""

    until: int  # number of these stages
    point: FloatArray  # (d): on a ray
    row: FloatArray  # (d): in which direction the wealth grows there
    shares: FloatArray  # (M): of horizons in it

    def exit(self, point: FloatArray, ray: FloatArray) -> float:
        """Return about where another ray comes to a wealth of this size."""
        slope = float(self.row @ ray)
        return float(self.row @ (self.point - point)) / slope if slope > 0 else inf


def _renewed_size(
    wealth: _RayWealth, cuts: Sequence[_RayCut], stage: DataStage, planned: float, ray: FloatArray, goal: float
) -> float:
    """Return the size of a bet in standard deviations at a planned length, from the data before the stage alone.

    The bets are against the point on the ray that is to be excluded next: a little inside of what they excluded so far,
    or of where bets of one size would end. There the wealth must still grow by what is missing, in the data left. What
    bets for other horizons won is not looked at: which of these are used depends on the end of the data.
    """
    left = 1 - stage.length / planned
    if left <= 0:
        return 0.0  # the plan is over, and what was won is kept
    wealth.look(stage.point, ray, is_renewed=True)
    won = wealth.renewed(0.0)
    slope = max(wealth.renewed(1.0) - won, 0.0)
    t = (sqrt(slope**2 + 2 * left * max(goal - won, 0.0)) - slope) / left
    t = max(min([t, *(cut.exit(stage.point, ray) for cut in cuts)]) - _AHEAD, 0.0)
    return sqrt(2 * max(goal - wealth.renewed(t), 0.0) / left)


class _RayWealth:
    """The logarithm of the wealth F of the stages so far, on a ray from a point: for sizes and tangents alone."""

    def __init__(self, table: LikelihoodTable, horizons: Horizons) -> None:
        self._table, self._horizons = table, horizons
        self._stages: list[DataStage] = []
        self._factors: list[FloatArray] = []  # (M, n_outcomes) each
        self._won = horizons.log_weight
        self._visits: list[FloatArray] = []

    def add(self, stage: DataStage, factors: FloatArray) -> None:
        """Add a stage, and the factors (M, n_outcomes) of its bets."""
        self._stages.append(stage)
        self._factors.append(factors)
        self._visits.append(self._table.visits(stage.outcome_counts))
        self._won = self._won + log_gains(self._table, stage.outcome_counts, factors, stage.mixed).sum(axis=1)

    def look(self, point: FloatArray, ray: FloatArray, *, is_renewed: bool = False) -> None:
        """Look at a ray from a point, and at all horizons or at bets that are renewed alone."""
        table, visits = self._table, np.array(self._visits)
        self._n = 1 if is_renewed else len(self._won)
        self._looked_at = np.array([of_stage[: self._n] for of_stage in self._factors])
        is_open: BoolArray = visits.max(axis=0) > 0
        ends = np.array([table.chances(point), table.coefficients @ ray])
        self._start, self._slope = table.by_group(ends[:, None, None] * self._looked_at).compress(is_open, axis=-1)
        self._is_open, self._open_visits, self._at = is_open, visits[:, None, is_open], nan
        self._is_visited = None if self._open_visits.all() else self._open_visits > 0

    def logarithms(self, t: float) -> FloatArray:
        """Return ln(w E) for each horizon that is looked at, infinite beyond where a mean is zero."""
        if t != self._at:
            self._at, self._means = t, self._start + t * self._slope
            each = self._open_visits * np.log(self._means)
            lost = (each if self._is_visited is None else np.where(self._is_visited, each, 0.0)).sum(axis=(0, 2))
            self._logarithms = np.where(np.isnan(lost), inf, self._won[: self._n] - lost)
        return self._logarithms

    def renewed(self, t: float) -> float:
        """Return ln E of the bets that are renewed."""
        return min(float(self.logarithms(t)[0] - self._horizons.log_weight[0]), _MOST_NATS)

    def value(self, t: float) -> float:
        """Return ln F."""
        logarithms = self.logarithms(t)
        largest = float(logarithms.max())
        return largest + float(np.log(np.exp(logarithms - largest).sum())) if largest < inf else inf

    def cut(
        self, point: FloatArray, ray: FloatArray, bound: float, *, is_renewed: bool = False, is_compared: bool = True
    ) -> _RayCut:
        """Return about where ln F, or its part by bets that are renewed, reaches a bound on a ray from a point.

        Its row is zero unless it is to be compared with others.
        """
        self.look(point, ray, is_renewed=is_renewed)
        t = self.reaches(bound)
        shares = self.shares(t)
        row = np.zeros(len(point))
        if is_compared:
            weights = np.zeros((*self._means.shape[:2], len(self._is_open)))
            weights[..., self._is_open] = self._per_visit(shares)
            of_outcomes = (weights[..., self._table.group] * self._looked_at).sum(axis=1).sum(axis=0)
            row = -self._table.weighted_slopes(of_outcomes)
        return _RayCut(len(self._stages), point + t * ray, row, np.pad(shares, (0, len(self._won) - self._n)))

    def half_space(self, cut: _RayCut, side: BetsOnOneSide, error: float, text: str) -> PlacedBets:
        """Return the half-space of the first stages with tangents where their wealth reaches 1 / error.

        Tangents at any other point, and any other shares, would give a half-space that holds as well.
        """
        used, n = np.flatnonzero(cut.shares), cut.until
        shares = cut.shares[used]
        parts = [
            PartialBets(shares, stage.outcome_counts, factors[used], stage.mixed)
            for stage, factors in zip(self._stages[:n], self._factors[:n], strict=True)
        ]
        spent = float(shares @ (np.log(shares) - self._horizons.log_weight[used]))
        left = common_half_space(self._table, parts, near=cut.point, bound=spent - log(error), text=text)
        return PlacedBets(left, parts, side._replace(until=n, shares=cut.shares, near=cut.point))

    def reaches(self, bound: float) -> float:
        """Return the point at which the convex ln F reaches a bound, or the furthest point that is tried."""
        low, high = 0.0, 4.0
        if self.value(low) >= bound:
            return low
        while (value := self.value(high)) < bound and high < _FURTHEST:
            low, high = high, 2 * high
        t = high
        for _ in range(_NEWTON if value >= bound else 0):
            t = (low + high) / 2 if value == inf else high - (value - bound) / self.slope(high)
            there = self.value(t)
            if abs(there - bound) < _SAME:
                break
            low, high, value = (t, high, value) if there < bound else (low, t, there)
        return t

    def slope(self, t: float) -> float:
        """Return by how much ln F grows at a point."""
        return -float((self._per_visit(self.shares(t)) * self._slope).sum())

    def _per_visit(self, shares: FloatArray) -> FloatArray:
        """Return shares · visits / Z of each stage, horizon and class at the point whose logarithms were asked last."""
        per_visit = self._open_visits / self._means * shares[:, None]
        return np.where(np.isfinite(per_visit), per_visit, 0.0)

    def shares(self, t: float) -> FloatArray:
        """Return the shares in F at a point that horizons have which are looked at, without the smallest ones."""
        logarithms = self.logarithms(t)
        is_finite = np.isfinite(logarithms)
        if not is_finite.any():
            return np.array([1.0, *[0.0] * (len(logarithms) - 1)])
        share: FloatArray = np.exp(np.where(is_finite, logarithms - logarithms[is_finite].max(), -inf))
        share = np.where(share < _LEAST_SHARE * share.sum(), 0.0, share)
        return np.asarray(share / share.sum(), dtype=np.float64)

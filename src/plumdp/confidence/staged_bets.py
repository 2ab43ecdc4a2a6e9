"""Makes half-spaces from bets that are renewed while data come in, so that the length of the data need not be planned.

At a few moments, decided without what came later, bets are placed anew by what was seen until then, and stay until the
next moment. A bet is made for a horizon, the amount of data at which it wins most. As nobody knows how long the data
will be, the fortune is divided among horizons m, with weights w[m] that were fixed beforehand and sum to at most one:

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
from math import inf, log
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
from plumdp.confidence.estimates import SPACE_AS_DATA, Law, information, law_of_pilot
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.data.counts import Pilot, TransitionCounts
from plumdp.data.seen import Seen
from plumdp.model.graph import BoolArray, FloatArray

_HORIZONS = 5  # that are used, those nearest to the length of the data
_FIRST_HORIZON = 6  # in lengths of the first stage
_PLANNED = 0.8  # weight of the planned length; the rest is for data that were added later
_HALVINGS = 24
_FURTHEST = 60.0  # standard deviations
_LEAST_SHARE = 1e-4  # of a horizon in the half-space


class Stage(NamedTuple):
    """The estimate when a stage of the data begins, and the outcomes that were seen in the stage."""

    point: FloatArray  # (d): the estimate
    per_length: FloatArray  # (d, d): information of one run or row there
    outcome_counts: FloatArray  # (n_outcomes)
    mixed: FloatArray | None = None  # (n_groups): how much less than coins values vary that were seen in the stage
    sharpness: FloatArray | None = None  # (n_groups): how much less they are expected to, by those seen before


class Horizons(NamedTuple):
    """Lengths of the data that bets are made for, in runs or rows, and the logarithms of their weights."""

    length: FloatArray  # (M)
    log_weight: FloatArray  # (M)


class BetsOnOneSide(NamedTuple):
    """What the bets on one side of a direction are made of, for somebody who makes the half-space again."""

    direction: int
    steps: FloatArray  # (S, M, d): by which the true parameters are bet to differ from the estimate of a stage
    shares: FloatArray  # (M): of horizons in the logarithm of the fortune
    near: FloatArray  # (d): where tangents are taken


class Bets(NamedTuple):
    """The bets across all directions, both sides of each."""

    points: FloatArray  # (S, d): estimates when stages begin
    lengths: FloatArray  # (M): horizons
    n_directions: int
    sides: tuple[BetsOnOneSide, ...]


class Placed(NamedTuple):
    """The half-space that bets leave, the bets of each stage that it is made of, and what these are made of."""

    left: HalfSpace
    parts: list[list[PartialBets]]  # (S)
    side: BetsOnOneSide


def find_stages(table: LikelihoodTable, counts: TransitionCounts, space: Law) -> list[Stage]:
    """Return the stages of the data, each of which begins at a moment of the pilot."""
    if counts.pilot is None:
        return []
    moments = [*counts.pilot.seen_at_moments, counts.seen]
    return [
        _stage(table, before, after, length, space)
        for length, (before, after) in zip(counts.pilot.lengths, pairwise(moments), strict=True)
    ]


def _stage(table: LikelihoodTable, before: Seen, after: Seen, length: float, space: Law) -> Stage:
    """Return the stage between two moments, the first of which is ``length`` runs or rows from the start."""
    pooled = table.pool_seen(before)
    sharp_counts, sharpness = sharpened(table, *pooled), sharpness_of(table, *pooled)
    point = law_of_pilot(table, sharp_counts, space).mean
    per_length = information(table, sharp_counts, point) / length
    return Stage(point, per_length, *table.pool_seen(after - before), sharpness)


def find_horizons(pilot: Pilot, total: int) -> Horizons:
    """Return the horizons nearest to the length of the data, of all those that have a weight.

    Without an expected length, horizons double, with weights that fall by the root of two. Around an expected length,
    the horizon 2^i times as long has the weight 1/((1 + |i|)(2 + |i|)) · 2/3. If the length was planned, it has four
    fifths, and all horizons divide the rest. All weights sum to one.

    >>> pilot = Pilot(np.array([160, 0]), lengths=(16.0,), ratio=9.0)
    >>> horizons = find_horizons(pilot, 1600)
    >>> float(horizons.length[0]), bool(np.exp(horizons.log_weight[0]) > 0.8)
    (160.0, True)
    """
    expected = pilot.expected
    if expected is None:
        steps = np.arange(60)
        length, weight = _FIRST_HORIZON * pilot.lengths[0] * 2.0**steps, (1 - 2**-0.5) * 2.0 ** (-steps / 2)
    else:
        steps = np.arange(-40, 41)
        length, weight = expected * 2.0**steps, 2 / 3 / ((1 + np.abs(steps)) * (2 + np.abs(steps)))
    if pilot.is_planned:
        weight = (1 - _PLANNED) * weight + _PLANNED * (steps == 0)
    reached = pilot.lengths[-1] * total / max(int(pilot.moments[-1].sum()), 1)
    near = np.argsort(np.abs(np.log(length / reached)), kind="stable")[:_HORIZONS]
    return Horizons(length[near].astype(np.float64), np.log(weight[near]))


def staged_half_spaces(
    table: LikelihoodTable,
    stages: Sequence[Stage],
    gradients: FloatArray,
    horizons: Horizons,
    space: Law,
    *,
    near: FloatArray,
    error: float,
    texts: Sequence[str],
    is_bet_on: BoolArray | None = None,
) -> list[Placed]:
    """Return the half-spaces that bets along gradients (S, J, d) leave, jointly with probability at least 1 - error.

    There are two for each of J directions, one on either side. Each stage has its own gradients, chosen by what was
    seen before it. ``near`` is an estimate from all data. Bets are placed on all outcomes, or on those (n_outcomes) of
    ``is_bet_on``.
    """
    share, half_spaces = equal_parts(error, len(texts)), []  # union bound over directions
    of_side = horizons._replace(log_weight=horizons.log_weight - log(2))  # both sides together weigh at most one
    scales = np.sqrt(-2 * (of_side.log_weight + log(share)))
    pairs = zip(stages, gradients, strict=True)
    steps = np.array([steps_of_stage(table, stage, of_stage, of_side.length, space) for stage, of_stage in pairs])
    rays = _rays(table, stages, gradients[-1], space, near)
    for j, text in enumerate(texts):
        for side in (1, -1) if steps[:, :, j].any() else ():
            scaled = side * scales[:, None] * steps[:, :, j]
            factors = np.array(
                [
                    [factors_along(table, stage.point, step, stage.sharpness) for step in of_stage]
                    for stage, of_stage in zip(stages, scaled, strict=True)
                ]
            )
            factors = factors if is_bet_on is None else np.where(is_bet_on, factors, 1.0)
            left, parts, shares, at = _half_space(table, stages, factors, of_side, near, -side * rays[j], share, text)
            half_spaces.append(Placed(left, parts, BetsOnOneSide(j, scaled, shares, at)))
    return half_spaces


def steps_of_stage(
    table: LikelihoodTable, stage: Stage, gradients: FloatArray, lengths: FloatArray, space: Law
) -> list[FloatArray]:
    """Return the steps (J, d) of one standard deviation of values at each horizon, by the information until then."""
    prior = SPACE_AS_DATA * space.precision
    return [unit_steps(table, length * stage.per_length + prior, gradients) for length in lengths]


def _rays(
    table: LikelihoodTable, stages: Sequence[Stage], gradients: FloatArray, space: Law, near: FloatArray
) -> FloatArray:
    """Return the steps (J, d) of one standard deviation of values with these gradients (J, d)."""
    nothing = np.zeros(len(table.outcomes))
    total = sum((sharpened(table, stage.outcome_counts, stage.mixed) for stage in stages), nothing)
    return unit_steps(table, information(table, total, near) + SPACE_AS_DATA * space.precision, gradients)


def _half_space(
    table: LikelihoodTable,
    stages: Sequence[Stage],
    factors: FloatArray,
    horizons: Horizons,
    near: FloatArray,
    ray: FloatArray,
    error: float,
    text: str,
) -> tuple[HalfSpace, list[list[PartialBets]], FloatArray, FloatArray]:
    """Return the half-space with tangents where the fortune reaches 1 / error on a ray, its parts, shares and point.

    Tangents at any other point, and any other shares, would give a half-space that holds as well.
    """
    fortune = _Fortune(table, stages, factors, horizons, near, ray)
    t = fortune.reaches(-log(error))
    share = fortune.shares(t)
    used = np.flatnonzero(share)
    parts = [
        [PartialBets(float(share[m]), stage.outcome_counts, factors[s, m], stage.mixed) for m in used.tolist()]
        for s, stage in enumerate(stages)
    ]
    spent = float(share[used] @ (np.log(share[used]) - horizons.log_weight[used]))
    all_parts = [part for of_stage in parts for part in of_stage]
    at = near + t * ray
    return common_half_space(table, all_parts, near=at, bound=spent - log(error), text=text), parts, share, at


class _Fortune:
    """Estimates the logarithm of the fortune F on a ray from a point, for the choice of tangents alone."""

    def __init__(
        self,
        table: LikelihoodTable,
        stages: Sequence[Stage],
        factors: FloatArray,
        horizons: Horizons,
        near: FloatArray,
        ray: FloatArray,
    ) -> None:
        n_stages, n_horizons, _ = factors.shape
        gains = (
            [log_gains(table, stage.outcome_counts, of_horizon, stage.mixed).sum() for of_horizon in of_stage]
            for stage, of_stage in zip(stages, factors, strict=True)
        )
        visits = np.array([table.visits(stage.outcome_counts) for stage in stages])
        is_open: BoolArray = visits.max(axis=0) > 0
        group = np.cumsum(is_open)[table.group] - 1
        kept = is_open[table.group]
        probability, slope = table.values(near)[0], table.coefficients @ ray
        shape = n_stages * n_horizons, int(is_open.sum())
        index = (np.arange(shape[0])[:, None] * shape[1] + group[kept]).ravel()

        def by_class(values: FloatArray) -> FloatArray:
            sums = np.bincount(index, (values * factors)[..., kept].ravel(), shape[0] * shape[1])
            return sums.reshape(n_stages, n_horizons, shape[1]).astype(np.float64)

        self._start, self._slope = by_class(probability), by_class(slope)
        self._visits = visits[:, None, is_open]
        self._won = horizons.log_weight + np.sum([*gains], axis=0)

    def logarithms(self, t: float) -> FloatArray:
        """Return ln(w E) for each horizon (M), infinite beyond where a mean is zero."""
        means = self._start + t * self._slope
        with np.errstate(divide="ignore", invalid="ignore"):
            lost = np.where(self._visits > 0, self._visits * np.log(means), 0.0).sum(axis=(0, 2))
        return np.asarray(np.where(np.isnan(lost), inf, self._won - lost))

    def value(self, t: float) -> float:
        """Return ln F."""
        logarithms = self.logarithms(t)
        largest = float(logarithms.max())
        return largest + float(np.log(np.exp(logarithms - largest).sum())) if largest < inf else inf

    def reaches(self, bound: float) -> float:
        """Return an estimate from below of where ln F reaches a bound, or the furthest point that is tried."""
        low, high = 0.0, 4.0
        while self.value(high) < bound and high < _FURTHEST:
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.value(middle) < bound else (low, middle)
        return low

    def shares(self, t: float) -> FloatArray:
        """Return the shares (M) that horizons have in F at a point, without the smallest ones."""
        logarithms = self.logarithms(t)
        logarithms = np.where(np.isfinite(logarithms), logarithms, -inf)
        if not np.isfinite(logarithms).any():
            return np.array([1.0, *[0.0] * (len(logarithms) - 1)])
        share: FloatArray = np.exp(logarithms - logarithms.max())
        share = np.where(share < _LEAST_SHARE * share.sum(), 0.0, share)
        return np.asarray(share / share.sum(), dtype=np.float64)

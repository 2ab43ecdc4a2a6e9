"""Half-spaces from bets that are renewed while data come in, so that no length of the data need be planned.

At a few moments, decided without what came later, bets are placed anew by what was seen until then; they hold until the
next moment. A bet is made for a horizon, the amount of data at which it wins most. As nobody knows how long the data
will be, the fortune is divided among horizons m, with weights w[m] that were fixed beforehand and sum to at most one:

    F(v) = Σ w[m] E[m](v),    ln E[m](v) = Σ over stages s of Σ K[s,j] ln e[m,s,j] - Σ N[s,r] ln Z[m,s,r](v),

with outcomes K and visits N of each stage. At the true point this is a martingale that starts below one, so that it
stays below 1 / error at all times with probability at least 1 - error (Ville 1939). For all p[m] >= 0 with the sum one,

    ln F  >=  Σ p[m] (ln E[m] + ln w[m] - ln p[m]),

and each ln E[m] is bounded from below by an affine function (see ``bets``): a half-space. The numbers p, and where the
tangents are taken, may depend on all data; the best are those of the point at which F reaches 1 / error.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf, log
from typing import NamedTuple

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.confidence.bets import HalfSpace, Part, common_half_space, factors_along, unit_steps
from plumdp.confidence.estimates import information
from plumdp.confidence.laws import SPACE_AS_DATA, Law, law_of_pilot
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.data.counts import CountArray, Pilot, TransitionCounts
from plumdp.model.graph import BoolArray, FloatArray

_HORIZONS = 5  # that are looked at: those nearest to the length that the data have
_FIRST_HORIZON = 6  # in lengths of the first stage
_PLANNED = 0.8  # weight of the planned length; the rest is for data that were added later
_HALVINGS = 24
_FURTHEST = 60.0  # standard deviations
_LEAST_SHARE = 1e-4  # of a horizon in the half-space


class Stage(NamedTuple):
    """What is known when a stage begins, and what was seen in it."""

    point: FloatArray  # (d): an estimate
    per_length: FloatArray  # (d, d): information of one run or row there
    seen: FloatArray  # (n_outcomes)


class Horizons(NamedTuple):
    """Lengths of the data that bets are made for, in runs or rows, and the logarithms of their weights."""

    length: FloatArray  # (M)
    log_weight: FloatArray  # (M)


class Placed(NamedTuple):
    """The half-space that bets have left, and for each stage the bets that it is made of."""

    left: HalfSpace
    parts: list[list[Part]]  # (S)


def find_stages(table: LikelihoodTable, counts: TransitionCounts, space: Law) -> list[Stage]:
    """Return the stages of data with moments, each of which begins one."""
    if counts.pilot is None:
        return []
    moments = [*counts.pilot.moments, counts.counts]
    return [
        _stage(table, before, after, length, space)
        for length, (before, after) in zip(counts.pilot.lengths, pairwise(moments), strict=True)
    ]


def _stage(table: LikelihoodTable, before: CountArray, after: CountArray, length: float, space: Law) -> Stage:
    """Return the stage between two moments, the first of which is so many runs or rows from the start."""
    known = table.pool(before)
    point = law_of_pilot(table, known, space).mean
    return Stage(point, information(table, known, point) / length, table.pool(after - before))


def find_horizons(pilot: Pilot, total: int) -> Horizons:
    """Return the horizons nearest to the length of the data, of all those that have a weight.

    Without an expected length, these are powers of two with weights that fall by the root of two. Around an expected
    length, the powers of two have the weights 1/((1 + i)(2 + i)) · 2/3 for the i-th on either side, and if the length
    was planned, it has four fifths. All weights sum to one.

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
    """Return what bets along gradients (S, J, d) leave on both sides, jointly with probability at least 1 - error.

    Each stage has its own gradients, chosen by what was seen before it; each of the J directions has an equal part of
    the error, and each side half of its weights. ``near`` is an estimate from all data. Some outcomes (n_outcomes) may
    be left out of the bets.
    """
    share, found = equal_parts(error, len(texts)), []
    of_side = horizons._replace(log_weight=horizons.log_weight - log(2))
    scales = np.sqrt(-2 * (of_side.log_weight + log(share)))
    steps = np.array([_steps(table, *each, of_side.length, space) for each in zip(stages, gradients, strict=True)])
    rays = _rays(table, stages, gradients[-1], space, near)
    for j, text in enumerate(texts):
        for side in (1, -1) if steps[:, :, j].any() else ():
            points = [stage.point for stage in stages]
            placed = (side * scales[:, None] * steps[s, :, j] for s in range(len(stages)))
            factors = np.array(
                [[factors_along(table, at, step) for step in of_one] for at, of_one in zip(points, placed, strict=True)]
            )
            factors = factors if is_bet_on is None else np.where(is_bet_on, factors, 1.0)
            found.append(_half_space(table, stages, factors, of_side, near, -side * rays[j], share, text))
    return found


def _steps(
    table: LikelihoodTable, stage: Stage, gradients: FloatArray, lengths: FloatArray, space: Law
) -> list[FloatArray]:
    """Return for each horizon the steps (J, d) of one standard deviation of values, with the information until then."""
    prior = SPACE_AS_DATA * space.precision
    return [unit_steps(table, length * stage.per_length + prior, gradients) for length in lengths]


def _rays(
    table: LikelihoodTable, stages: Sequence[Stage], gradients: FloatArray, space: Law, near: FloatArray
) -> FloatArray:
    """Return the steps (J, d) of one standard deviation of values with these gradients (J, d)."""
    seen = sum((stage.seen for stage in stages), np.zeros(len(table.outcomes)))
    return unit_steps(table, information(table, seen, near) + SPACE_AS_DATA * space.precision, gradients)


def _half_space(
    table: LikelihoodTable,
    stages: Sequence[Stage],
    factors: FloatArray,
    horizons: Horizons,
    near: FloatArray,
    ray: FloatArray,
    error: float,
    text: str,
) -> Placed:
    """Return the half-space with tangents where the fortune reaches 1 / error on a ray; any other point would do."""
    fortune = _Fortune(table, stages, factors, horizons, near, ray)
    t = fortune.reaches(-log(error))
    share = fortune.shares(t)
    used = np.flatnonzero(share)
    parts = [
        [Part(float(share[m]), stage.seen, factors[s, m]) for m in used.tolist()] for s, stage in enumerate(stages)
    ]
    spent = float(share[used] @ (np.log(share[used]) - horizons.log_weight[used]))
    flat = [part for of_stage in parts for part in of_stage]
    left = common_half_space(table, flat, near=near + t * ray, bound=spent - log(error), text=text)
    return Placed(left, parts)


class _Fortune:
    """The logarithm of the fortune F on a ray from a point, in floats: where it is taken decides no bound."""

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
        seen = np.array([stage.seen for stage in stages])
        visits = np.array([table.visits(stage.seen) for stage in stages])
        is_open: BoolArray = visits.max(axis=0) > 0
        group = np.cumsum(is_open)[table.group] - 1
        kept = is_open[table.group]
        at, slope = table.values(near)[0], table.coefficients @ ray
        shape = n_stages * n_horizons, int(is_open.sum())
        index = (np.arange(shape[0])[:, None] * shape[1] + group[kept]).ravel()

        def by_class(values: FloatArray) -> FloatArray:
            sums = np.bincount(index, (values * factors)[..., kept].ravel(), shape[0] * shape[1])
            return sums.reshape(n_stages, n_horizons, shape[1]).astype(np.float64)

        self._start, self._slope = by_class(at), by_class(slope)
        self._visits = visits[:, None, is_open]
        self._won = horizons.log_weight + np.einsum("sj,smj->m", seen, np.log(factors))

    def logarithms(self, t: float) -> FloatArray:
        """Return ln(w E) for each horizon (M); infinite beyond where a mean is zero."""
        means = self._start + t * self._slope
        with np.errstate(divide="ignore", invalid="ignore"):
            lost = np.where(self._visits > 0, self._visits * np.log(means), 0.0).sum(axis=(0, 2))
        found: FloatArray = np.where(np.isnan(lost), inf, self._won - lost)
        return found

    def value(self, t: float) -> float:
        """Return ln F."""
        each = self.logarithms(t)
        largest = float(each.max())
        return largest + float(np.log(np.exp(each - largest).sum())) if largest < inf else inf

    def reaches(self, bound: float) -> float:
        """Return about where ln F reaches a bound, from below, or the furthest point that is looked at."""
        low, high = 0.0, 4.0
        while self.value(high) < bound and high < _FURTHEST:
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.value(middle) < bound else (low, middle)
        return low

    def shares(self, t: float) -> FloatArray:
        """Return the shares (M) of F that horizons have at a point, without those that hardly matter."""
        each = self.logarithms(t)
        each = np.where(np.isfinite(each), each, -inf)
        if not np.isfinite(each).any():
            return np.array([1.0, *[0.0] * (len(each) - 1)])
        share: FloatArray = np.exp(each - each.max())
        share = np.where(share < _LEAST_SHARE * share.sum(), 0.0, share)
        return np.asarray(share / share.sum(), dtype=np.float64)

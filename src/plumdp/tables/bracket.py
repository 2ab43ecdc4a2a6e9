"""The bracket of a value by a product of bets on temporal differences.

Let F(V) be the logarithm of the product of all bets, at the true values V below ln(1 / error) with the confidence that
was asked for. It is nearly concave in the payoffs: for every vector C of values (the centre) and D' = V - C,

    ln(1/error)  >  F(V)  >=  F(C) + F'(C) D' - q / 2,      q = Σ counts κ (payoff of D')² / (1 + payoff of C)².

The weights were made such that F'(C) = ± scale (first node + miss), with a small and known vector ``miss``. So the
value of the first node is bounded by what the bets won, plus q, plus miss · D', of which D' = (V̂ - C) + D, where D is
bounded by ``contraction``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from plumdp.base.errors import WhyNot
from plumdp.base.rounding import UNDERFLOW, UNIT
from plumdp.model.graph import FloatArray
from plumdp.tables.chain import OpenChain, regular_equations
from plumdp.tables.contraction import Contraction, contract
from plumdp.tables.joint import JointNorm, joined
from plumdp.tables.plan import (
    BettingPlan,
    BettingStage,
    curvature,
    make_plan,
    make_reference,
    next_weights,
    tilted_rows,
)

_LOOSE = 0.05  # of the statistics
_LATE = 0.5  # of the data after the pilot, from where on moments are looked at
_LEAST_SHARE = 0.05  # of the pilot, that is planned for at least
_AT_END, _NEXT = 0.9, 2.0  # of the planned data, from where on bets are for so many times as many as there are
_ROUNDS = 8  # to the centre
_LEAST_FACTOR = 0.3
_LARGEST = 0.5  # payoff at the true values, in size
_UP = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class BetMoments:
    """What had been seen at the end of the pilot, at later moments, and in all, and after how many runs or rows."""

    counts: tuple[FloatArray, ...]  # (n_places) each, the last being all data
    lengths: tuple[float, ...]  # of all but the last
    planned: float  # the length of all data, as it was planned


@dataclass(frozen=True)
class Errors:
    """The errors of the parts of a bracket."""

    of_side: float  # of the bets on the value, on either side
    rows: float
    ball: float


@dataclass(frozen=True, eq=False)
class TableBounds:
    """Both ends of a bracket, either of which may be absent, and what they follow from."""

    low: End | None
    high: End | None
    plan: BettingPlan
    near: Contraction
    joint: JointNorm | None  # if it was asked for, and is proved
    by_rows: tuple[End | None, End | None]  # both ends without it

    @property
    def estimate(self) -> float:
        """The value of the frequencies."""
        return float(self.plan.table.start @ self.near.values)

    @property
    def size(self) -> float:
        """The sum of the sizes of the values that the estimate is made of, which it is rounded by."""
        return float(np.abs(self.plan.table.start) @ np.abs(self.near.values))

    @property
    def distance(self) -> float:
        """How far the value is from the estimate at most, by rows alone."""
        return float(np.abs(self.plan.table.start) @ self.near.distance)


def table_bounds(
    table: OpenChain, moments: BetMoments, errors: Errors, lower: FloatArray, upper: FloatArray
) -> TableBounds | WhyNot:
    """Return bounds on what is sought, such as the value of the first node, or in words why there are none.

    ``lower`` and ``upper`` (n) are bounds on the values of the open nodes that hold jointly with the bets.
    """
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        return WhyNot("the data do not exclude an infinite value")
    pilot, plan = moments.counts[0], plan_of(table, moments, errors)
    if plan is None:
        return WhyNot("the pilot leaves nothing to bet on")
    near = contract(plan, make_reference(plan, errors.rows, errors.ball), moments.counts[-1] - pilot, lower, upper)
    if near is None:
        return WhyNot("the frequencies have no proved solution")
    stages = {sign: make_stages(plan, moments, sign) for sign in (-1, 1)}
    low, high = by_rows = best_end(plan, stages[-1], near, -1), best_end(plan, stages[1], near, 1)
    joint = joined(near) if _is_loose(low) or _is_loose(high) else None
    if joint is not None:
        for s, end in zip((-1, 1), by_rows, strict=True):
            # norms take time: at the end, and at the moment that is best without them
            until = {len(stages[s]), len(stages[s] if end is None else end.stages)}
            ends = [bracket_end(plan, stages[s][:b], joint.near, s, joint) for b in sorted(until)]
            low, high = (_better([low, *ends], s), high) if s < 0 else (low, _better([high, *ends], s))
    return TableBounds(low, high, plan, near, joint, by_rows)


def best_end(plan: BettingPlan, stages: Sequence[BettingStage], near: Contraction, sign: int) -> End | None:
    """Return the tightest end of a side, by what the bets had won at the end of any stage: all hold at once.

    Stages after which less than half of the data were left to come are looked at.
    """
    seen = np.cumsum([stage.counts.sum() for stage in stages])
    ends = [b + 1 for b in range(len(stages)) if seen[b] >= _LATE * seen[-1]]
    return _better([bracket_end(plan, stages[:b], near, sign) for b in ends], sign)


def plan_of(table: OpenChain, moments: BetMoments, errors: Errors) -> BettingPlan | None:
    """Return the plan of bets on the value of a chain, which the pilot fixes, or None if there is nothing to bet on."""
    # fewer data may have been expected than there are
    ratio = max(moments.planned / moments.lengths[0] - 1, _LEAST_SHARE)
    return make_plan(table, moments.counts[0], ratio, float(np.log(1 / errors.of_side)))


def _is_loose(end: End | None) -> bool:
    """Return whether an end is so far from what the bets allow to first order that more work may pay."""
    return end is None or end.curvature + end.mismatch > _LOOSE * end.statistics


def _better(ends: Sequence[End | None], sign: int) -> End | None:
    """Return the tightest of the ends that there are, which all hold."""
    return min((end for end in ends if end is not None), key=lambda end: sign * end.value, default=None)


def make_stages(plan: BettingPlan, moments: BetMoments, sign: int) -> list[BettingStage]:
    """Return the stages of the data after the pilot, with weights each of which is fixed by what came before it."""
    stages: list[BettingStage] = []
    for (before, after), length in zip(pairwise(moments.counts), moments.lengths, strict=True):
        # data that go on after what was planned are bet on for twice their length, and the aim grows with its root
        goes_on = length > _AT_END * moments.planned
        horizon = _NEXT * length if goes_on else moments.planned
        planned = (plan.table.visits(before) + 0.5) * (horizon - length) / length
        beyond = horizon / max(moments.planned, 1.0) if goes_on else 1.0
        further = replace(plan, scale=plan.scale * float(np.sqrt(beyond)))
        stages.append(BettingStage(next_weights(further, before, stages, sign, planned), after - before))
    return stages


@dataclass(frozen=True, eq=False)
class End:
    """A bound on the value of the first node from one side, the parts of its distance, and what it was made with."""

    value: float
    statistics: float  # what the bets leave open to first order
    curvature: float  # q, in units of the value
    mismatch: float  # what the direction of the bets missed
    centre: FloatArray  # (n)
    scale: float
    stages: Sequence[BettingStage]  # until the moment at which it is tightest


def bracket_end(
    plan: BettingPlan, stages: Sequence[BettingStage], near: Contraction, sign: int, joint: JointNorm | None = None
) -> End | None:
    """Return the upper (sign 1) or lower (sign -1) bound by bets, or None if bets may have been too large."""
    table = plan.table
    if not _are_small(table, stages, near):
        return None
    centre = _centre(table, stages, near)
    expansion = _expand(table, stages, near, centre, joint)
    if expansion is None:
        return None
    scales = _scales(plan, near, expansion.gradient, sign)
    ends = [_end(plan, near, expansion, centre, sign, scale, joint) for scale in scales]
    best = min(ends, key=lambda end: sign * end.value)
    statistics = sign * (best.value - float(table.start @ near.values)) - best.curvature - best.mismatch
    return replace(best, statistics=statistics, stages=stages)


def _are_small(table: OpenChain, stages: Sequence[BettingStage], near: Contraction) -> bool:
    """Return whether no payoff can be larger than one half at the true values, which are near V̂."""
    first, second = _two_largest(table, table.ahead(near.distance, closed=0.0))
    further = np.minimum(table.discount * (first + second), near.reference.largest * near.deviation)
    rounding = 8 * UNIT * float(np.abs(near.values).max(initial=0.0))
    ranges = np.minimum((table.ranges(table.ahead(near.values)) + further) * _UP + rounding, near.largest_range)
    for stage in stages:
        # payoffs of tied rows add up; |d| is at most the range, as its mean is zero at the truth
        most = table.by_place(np.abs(stage.weight[table.owner]) * ranges[table.owner])
        if most.max(initial=0.0) > _LARGEST:
            return False
    return True


def _two_largest(table: OpenChain, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the two largest values (n_transitions) of each row, where the second of a single value is 0."""
    first = np.maximum.reduceat(values, table.chain.first[:-1])
    is_first = values >= first[table.owner]
    repeated = table.sums(is_first.astype(np.float64)) > 1
    rest = np.maximum.reduceat(np.where(is_first, 0.0, values), table.chain.first[:-1])
    return first, np.where(repeated, first, rest)


def _centre(table: OpenChain, stages: Sequence[BettingStage], near: Contraction) -> FloatArray:
    """Return values of the table near the frequencies that is least favourable to the bets; any vector is valid."""
    centre = near.values
    for _ in range(_ROUNDS):
        masses = [(table.of_places(stage.counts), stage) for stage in stages]
        tilted = np.where(near.is_known[table.owner], tilted_rows(table, masses, centre), 0.0)
        equations = regular_equations(table, tilted)
        if equations is None:
            return near.values
        centre = equations.values(np.where(near.is_known, table.chain.reward, near.values))
        low, high = near.values - near.distance, near.values + near.distance
        centre = np.clip(centre, low, high)
    is_safe = all((1 + stage.payoffs(table, centre)).min(initial=1.0) >= _LEAST_FACTOR for stage in stages)
    return centre if is_safe else near.values


@dataclass(frozen=True, eq=False)
class _LogProduct:
    """The logarithm F of the product of bets at the centre from below, its gradient, and q from above."""

    log_product: float
    gradient: FloatArray  # (n)
    gradient_error: FloatArray  # (n)
    twice_remainder: float  # q


def _expand(
    table: OpenChain,
    stages: Sequence[BettingStage],
    near: Contraction,
    centre: FloatArray,
    joint: JointNorm | None,
) -> _LogProduct | None:
    """Return the expansion of the bets at the centre, or None if a factor is too small there."""
    moved = table.differences(near.values) - table.differences(centre)  # from the centre to V̂
    reach = near.distance[table.owner] + table.discount * table.ahead(near.distance, closed=0.0)  # of D
    scale = float(max(np.abs(each).max(initial=0.0) for each in (centre, table.ahead(centre), table.chain.reward)))
    log_product, gradient, gradient_error = 0.0, np.zeros(table.n), np.zeros(table.n)
    of_square, moved_square, by_reach = np.zeros(len(table.place)), 0.0, 0.0
    n_terms = max(near.equations.n_terms, int(table.n_successors.max(initial=0)))  # closed successors are terms as well
    n_tied = int(np.bincount(table.place[table.place >= 0], minlength=1).max(initial=0))
    for stage in stages:
        payoff, weight = stage.payoffs(table, centre), np.abs(stage.weight)[table.owner]
        factor = 1 + payoff
        if factor.min(initial=1.0) < _LEAST_FACTOR:
            return None
        terms = stage.counts * np.log1p(payoff)
        rounding = (16 + 4 * n_tied) * UNIT * scale * table.by_place(weight)  # of payoffs
        log_product += float(terms.sum()) - float((1e-12 * np.abs(terms) + stage.counts / factor * rounding).sum())
        slope, size = stage.gradient(table, centre)
        relative = (n_terms + 16) * UNIT + 2 * float((rounding / factor).max(initial=0.0))
        gradient, gradient_error = gradient + slope, gradient_error + relative * size
        furthest = table.by_place(weight * (reach + np.abs(moved))) / factor
        bent = curvature(np.minimum(np.maximum(1 - _LARGEST / factor, 0.0), furthest) * _UP)
        each = stage.counts * bent / factor**2 * _UP  # of the square of a payoff
        of_moved = np.abs(table.by_place(stage.weight[table.owner] * moved)) + 2 * rounding
        moved_square += float((each * of_moved**2).sum())
        # (Σ w x)² <= Σ|w| Σ |w| x² for the payoffs of tied rows
        together = table.of_places(each) * weight * table.of_places(table.by_place(weight))
        of_square += np.where(near.is_known[table.owner], together, 0.0)
        by_reach += float((together * reach**2)[~near.is_known[table.owner]].sum())
    # under the frequencies the mean of D ahead, minus D here, is δ, and its variance that of D ahead
    per_visit = of_square / np.where(near.frequency > 0, near.frequency, 1.0)
    largest = np.maximum.reduceat(per_visit, table.chain.first[:-1])
    largest = np.where(near.is_known, largest, 0.0)
    first = float(largest @ (_variance(near) + near.size**2))
    if joint is not None:
        first = min(first, joint.square(largest * _UP))
    q = (np.sqrt((first + by_reach) * _UP) + np.sqrt(moved_square * _UP)) ** 2
    return _LogProduct(log_product, gradient, gradient_error, float(q * _UP))


def _variance(near: Contraction) -> FloatArray:
    """Return a bound on the variance of the discounted D ahead under the frequencies, of each row."""
    table = near.table
    by_distance = table.sums(near.frequency * table.ahead(near.distance, closed=0.0) ** 2) * table.discount**2
    return np.asarray(np.minimum(near.rows.psi * near.deviation**2, by_distance) * _UP)


def _scales(plan: BettingPlan, near: Contraction, gradient: FloatArray, sign: int) -> list[float]:
    """Return scales to try: the planned one, and the one at which the bets miss least."""
    of_bets = near.equations.solve_transposed(gradient)
    of_value = sign * near.equations.solve_transposed(plan.table.start)
    size = near.size**2
    fitted = float((size * of_bets * of_value).sum() / max(float((size * of_value**2).sum()), UNDERFLOW))
    return [plan.scale, *([fitted] if np.isfinite(fitted) and fitted > 0 else [])]


def _end(
    plan: BettingPlan,
    near: Contraction,
    at: _LogProduct,
    centre: FloatArray,
    sign: int,
    scale: float,
    joint: JointNorm | None,
) -> End:
    """Return the end of the bracket for a scale that the gradient is compared with; every scale is valid."""
    table = plan.table
    miss = at.gradient / (sign * scale) - table.start
    weight = near.equations.solve_transposed(miss)
    value, rounding = near.equations.applied_transposed(weight)
    # miss · D = -weight · δ + (miss - weight (I - P)) · D
    unsolved = float(((np.abs(miss - value) + rounding) * near.distance).sum())
    to_estimate = near.values - centre
    off = at.gradient_error / scale + 4 * UNIT * (np.abs(miss) + np.abs(table.start))
    rounded = float((off * (near.distance + np.abs(to_estimate))).sum())
    rounded += 2 * UNIT * len(miss) * float(np.abs(miss * to_estimate).sum())
    missed = near.functional(weight)
    missed = missed if joint is None else min(missed, joint.functional(weight))
    mismatch = (missed + unsolved + rounded) * _UP
    bent = at.twice_remainder / (2 * scale) * _UP
    won = (plan.log_error - at.log_product) / scale
    end = float(table.start @ centre) + sign * (won + bent + mismatch) - float(miss @ to_estimate)
    outward = 1e-12 * (abs(won) + float(np.abs(table.start) @ np.abs(centre)) + bent + mismatch)
    return End(float(end + sign * outward), 0.0, bent, mismatch, centre, scale, ())

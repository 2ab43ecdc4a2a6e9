"""The bracket of a value by a product of bets on temporal differences.

Let F(V) be the logarithm of the product of all bets, at the true values V below ln(1 / error) with the confidence that
was asked for. It is nearly concave in the payoffs: for the values V̂ of the frequencies and D = V - V̂,

    ln(1/error)  >  F(V)  >=  F(V̂) + F'(V̂) D - q / 2,      q = Σ counts κ (payoff of D)² / (1 + payoff of V̂)².

The weights were made such that F'(V̂) = ± scale (first node + miss), with a small and known vector ``miss``. So the
value of the first node is bounded by what the bets won, plus q, plus miss · D, where D is bounded by ``contraction``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from plumdp.base.errors import WhyNot
from plumdp.base.rounding import UNDERFLOW, UNIT
from plumdp.model.graph import FloatArray
from plumdp.tables.chain import OpenChain
from plumdp.tables.contraction import Contraction, contract
from plumdp.tables.plan import (
    BettingPlan,
    BettingStage,
    curvature,
    make_plan,
    make_reference,
    next_weights,
)

_LATE = 0.5  # of the data after the pilot, from where on moments are looked at
_LEAST_SHARE = 0.05  # of the pilot, that is planned for at least
AT_END, NEXT = 0.9, 2.0  # of the planned data, from where on bets are for so many times as many as there are
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
    """The errors of the parts of a bracket, and of which bets it is made."""

    of_side: float  # of the bets on the value, on either side
    rows: float
    ball: float
    are_tilted: bool = False  # then the sets of rows have the errors of both rows and ball


@dataclass(frozen=True, eq=False)
class TableBounds:
    """Both ends of a bracket, either of which may be absent, and what they follow from."""

    low: End | None
    high: End | None
    plan: BettingPlan
    near: Contraction

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
    return TableBounds(best_end(plan, stages[-1], near, -1), best_end(plan, stages[1], near, 1), plan, near)


def best_end(plan: BettingPlan, stages: Sequence[BettingStage], near: Contraction, sign: int) -> End | None:
    """Return the tightest end of a side, by what the bets had won at the end of any stage: all hold at once.

    Stages after which less than half of the data were left to come are looked at.
    """
    seen = np.cumsum([stage.counts.sum() for stage in stages])
    ends = [b + 1 for b in range(len(stages)) if seen[b] >= _LATE * seen[-1]]
    found = [bracket_end(plan, stages[:b], near, sign) for b in ends]
    return min((end for end in found if end is not None), key=lambda end: sign * end.value, default=None)


def plan_of(table: OpenChain, moments: BetMoments, errors: Errors) -> BettingPlan | None:
    """Return the plan of bets on the value of a chain, which the pilot fixes, or None if there is nothing to bet on."""
    # fewer data may have been expected than there are
    ratio = max(moments.planned / moments.lengths[0] - 1, _LEAST_SHARE)
    return make_plan(table, moments.counts[0], ratio, float(np.log(1 / errors.of_side)))


def make_stages(plan: BettingPlan, moments: BetMoments, sign: int) -> list[BettingStage]:
    """Return the stages of the data after the pilot, with weights each of which is fixed by what came before it."""
    stages: list[BettingStage] = []
    for (before, after), length in zip(pairwise(moments.counts), moments.lengths, strict=True):
        # data that go on after what was planned are bet on for twice their length, and the aim grows with its root
        goes_on = length > AT_END * moments.planned
        horizon = NEXT * length if goes_on else moments.planned
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
    scale: float
    stages: Sequence[BettingStage]  # until the moment at which it is tightest


def bracket_end(plan: BettingPlan, stages: Sequence[BettingStage], near: Contraction, sign: int) -> End | None:
    """Return the upper (sign 1) or lower (sign -1) bound by bets, or None if bets may have been too large."""
    table = plan.table
    if not _are_small(table, stages, near):
        return None
    expansion = _expand(table, stages, near)
    if expansion is None:
        return None
    scales = _scales(plan, near, expansion.gradient, sign)
    ends = [_end(plan, near, expansion, sign, scale) for scale in scales]
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


@dataclass(frozen=True, eq=False)
class _LogProduct:
    """The logarithm F of the product of bets at V̂ from below, its gradient, and q from above."""

    log_product: float
    gradient: FloatArray  # (n)
    gradient_error: FloatArray  # (n)
    twice_remainder: float  # q


def _expand(table: OpenChain, stages: Sequence[BettingStage], near: Contraction) -> _LogProduct | None:
    """Return the expansion of the bets at V̂, or None if a factor is too small there."""
    values = near.values
    reach = near.distance[table.owner] + table.discount * table.ahead(near.distance, closed=0.0)  # of D
    scale = float(max(np.abs(each).max(initial=0.0) for each in (values, table.ahead(values), table.chain.reward)))
    log_product, gradient, gradient_error = 0.0, np.zeros(table.n), np.zeros(table.n)
    of_square, by_reach = np.zeros(len(table.place)), 0.0
    n_terms = max(near.equations.n_terms, int(table.n_successors.max(initial=0)))  # closed successors are terms as well
    n_tied = int(np.bincount(table.place[table.place >= 0], minlength=1).max(initial=0))
    for stage in stages:
        payoff, weight = stage.payoffs(table, values), np.abs(stage.weight)[table.owner]
        factor = 1 + payoff
        if factor.min(initial=1.0) < _LEAST_FACTOR:
            return None
        terms = stage.counts * np.log1p(payoff)
        rounding = (16 + 4 * n_tied) * UNIT * scale * table.by_place(weight)  # of payoffs
        log_product += float(terms.sum()) - float((1e-12 * np.abs(terms) + stage.counts / factor * rounding).sum())
        slope, size = stage.gradient(table, values)
        relative = (n_terms + 16) * UNIT + 2 * float((rounding / factor).max(initial=0.0))
        gradient, gradient_error = gradient + slope, gradient_error + relative * size
        furthest = table.by_place(weight * reach) / factor
        bent = curvature(np.minimum(np.maximum(1 - _LARGEST / factor, 0.0), furthest) * _UP)
        each = stage.counts * bent / factor**2 * _UP  # of the square of a payoff
        # (Σ w x)² <= Σ|w| Σ |w| x² for the payoffs of tied rows
        together = table.of_places(each) * weight * table.of_places(table.by_place(weight))
        of_square += np.where(near.is_known[table.owner], together, 0.0)
        by_reach += float((together * reach**2)[~near.is_known[table.owner]].sum())
    # under the frequencies the mean of D ahead, minus D here, is δ, and its variance that of D ahead
    per_visit = of_square / np.where(near.frequency > 0, near.frequency, 1.0)
    largest = np.maximum.reduceat(per_visit, table.chain.first[:-1])
    largest = np.where(near.is_known, largest, 0.0)
    first = float(largest @ (_variance(near) + near.size**2))
    return _LogProduct(log_product, gradient, gradient_error, (first + by_reach) * _UP)


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
    sign: int,
    scale: float,
) -> End:
    """Return the end of the bracket for a scale that the gradient is compared with; every scale is valid."""
    table = plan.table
    miss = at.gradient / (sign * scale) - table.start
    weight = near.equations.solve_transposed(miss)
    value, rounding = near.equations.applied_transposed(weight)
    # miss · D = -weight · δ + (miss - weight (I - P)) · D
    unsolved = float(((np.abs(miss - value) + rounding) * near.distance).sum())
    off = at.gradient_error / scale + 4 * UNIT * (np.abs(miss) + np.abs(table.start))
    rounded = float((off * near.distance).sum())
    mismatch = (near.functional(weight) + unsolved + rounded) * _UP
    bent = at.twice_remainder / (2 * scale) * _UP
    won = (plan.log_error - at.log_product) / scale
    end = float(table.start @ near.values) + sign * (won + bent + mismatch)
    outward = 1e-12 * (abs(won) + float(np.abs(table.start) @ np.abs(near.values)) + bent + mismatch)
    return End(float(end + sign * outward), 0.0, bent, mismatch, scale, ())

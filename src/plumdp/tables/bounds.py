"""Bounds on the value of a policy in a table, from what was seen at the moments of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from plumdp.model.graph import FloatArray
from plumdp.tables.bracket import End, bracket_end
from plumdp.tables.chain import TableChain
from plumdp.tables.contraction import Contraction, contract
from plumdp.tables.joint import Joint, joined
from plumdp.tables.plan import Plan, Stage, make_plan, next_weights
from plumdp.tables.rows import make_reference

_LOOSE = 0.05  # of the statistics
_LEAST_SHARE = 0.05  # of the data so far, that a stage is planned for at least


@dataclass(frozen=True, eq=False)
class Moments:
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
    stages: Mapping[int, Sequence[Stage]]  # of the lower (-1) and upper (1) end
    plan: Plan
    near: Contraction
    joint: Joint | None  # if it was asked for, and is proved
    by_rows: tuple[End | None, End | None]  # both ends without it

    @property
    def estimate(self) -> float:
        """The value of the frequencies."""
        return float(self.near.values[self.plan.table.chain.initial])

    @property
    def distance(self) -> float:
        """How far the value is from the estimate at most, by rows alone."""
        return float(self.near.distance[self.plan.table.chain.initial])


def table_bounds(
    table: TableChain, moments: Moments, errors: Errors, lower: FloatArray, upper: FloatArray
) -> TableBounds | str:
    """Return bounds on the value of the first node, or in words why there are none.

    ``lower`` and ``upper`` (n) are bounds on the values of the open nodes that hold jointly with the bets.
    """
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        return "the data do not exclude an infinite value"
    pilot, plan = moments.counts[0], plan_of(table, moments, errors)
    if plan is None:
        return "the pilot leaves nothing to bet on"
    near = contract(plan, make_reference(plan, errors.rows, errors.ball), moments.counts[-1] - pilot, lower, upper)
    if near is None:
        return "the frequencies have no proved solution"
    stages = {sign: make_stages(plan, moments, sign) for sign in (-1, 1)}
    low, high = by_rows = bracket_end(plan, stages[-1], near, -1), bracket_end(plan, stages[1], near, 1)
    joint = joined(near) if _is_loose(low) or _is_loose(high) else None
    if joint is not None:
        low, high = (
            _better(end, bracket_end(plan, stages[s], joint.near, s, joint), s)
            for end, s in zip(by_rows, (-1, 1), strict=True)
        )
    return TableBounds(low, high, stages, plan, near, joint, by_rows)


def plan_of(table: TableChain, moments: Moments, errors: Errors) -> Plan | None:
    """Return what the pilot fixes for the value of a chain; None if there is nothing to bet on."""
    # fewer data may have been expected than there are
    ratio = max(moments.planned / moments.lengths[0] - 1, _LEAST_SHARE)
    return make_plan(table, moments.counts[0], ratio, float(np.log(1 / errors.of_side)))


def _is_loose(end: End | None) -> bool:
    """Return whether an end is so far from what the bets allow to first order that more work may pay."""
    return end is None or end.curvature + end.mismatch > _LOOSE * end.statistics


def _better(one: End | None, other: End | None, sign: int) -> End | None:
    """Return the tighter of two ends that both hold."""
    ends = [end for end in (one, other) if end is not None]
    return min(ends, key=lambda end: sign * end.value) if ends else None


def make_stages(plan: Plan, moments: Moments, sign: int) -> list[Stage]:
    """Return the stages of the data after the pilot, with weights each of which is fixed by what came before it."""
    stages: list[Stage] = []
    for (before, after), length in zip(pairwise(moments.counts), moments.lengths, strict=True):
        left = max(moments.planned - length, _LEAST_SHARE * length)
        planned = (plan.table.visits(before) + 0.5) * left / length
        stages.append(Stage(next_weights(plan, before, stages, sign, planned), after - before))
    return stages

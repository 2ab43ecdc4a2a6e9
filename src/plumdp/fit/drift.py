"""Tests whether parameters are the same wherever the model says so, by bets that depend on a variable or the action.

If the parameters are what the model says, bets that differ from state to state are as fair as all others, and the
half-spaces that they leave hold the true point (see ``bets``). If a parameter drifts with a variable h, bets that it is
larger where h is large, and smaller where h is small, win whatever the parameters are, and their half-space contradicts
the others.

The bet on outcome j of a visit in a cell with the number h is u = λ ((h - h̄) a[j] - b[j]·γ / f[j](v)), with the score
a[j] = b[j]·z / f[j](v) of a direction z in which parameters may drift, or that of the first, second … outcome of all
classes becoming more likely, and the pilot's estimate v. All of it is fixed by the pilot: h̄ is the mean, γ makes the
bets indifferent to a change of the parameters themselves (it solves Σ K b bᵀ/f² γ = Σ K (h - h̄) a b/f over the pilot's
counts), and λ is so large that the main data, as much as was planned, win most if the drift is just large enough to be
seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log, sqrt
from typing import NamedTuple

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.confidence.bets import LEAST_PROBABILITY, HalfSpace, half_space
from plumdp.confidence.contrasts import Contrast
from plumdp.confidence.likelihood import LinearConstraints, Range
from plumdp.confidence.likelihood_table import AffineOutcomes, CellCounts, LikelihoodTable
from plumdp.confidence.tolerant import range_of_bets, safe_groups
from plumdp.data.counts import CountArray, TransitionCounts
from plumdp.fit.fit_record import Drift, bet_factors
from plumdp.model.graph import FloatArray, Indices, ranges
from plumdp.model.parametric import ParametricMDP

_MOST_AXES = 8  # parameters that are looked at one by one: with more, outcomes alone
_MOST_PLACES = 6  # of outcomes in their class, that are looked at one by one
_LEAST_SHARE = 1e-3  # of the variation of a bet that is not explained by a change of the parameters themselves


@dataclass(frozen=True, eq=False)
class PilotView:
    """The estimate and the plan that the pilot has fixed, the same for all contrasts."""

    table: LikelihoodTable
    counts: CountArray  # (n_transitions)
    point: FloatArray  # (d): its estimate
    ratio: float  # planned amount of main data per pilot
    precision: FloatArray  # (d, d): a little of the space, so that no information is singular

    @cached_property
    def inverse(self) -> FloatArray:
        """One over the probability of each outcome (n) that can be bet on, and zero for others."""
        probability = self.table.chances(self.point)
        is_bet_on = self.table.is_class[self.table.group] & (probability > LEAST_PROBABILITY)
        return np.where(is_bet_on, 1 / np.where(is_bet_on, probability, 1.0), 0.0)

    @cached_property
    def scores(self) -> FloatArray:
        """The scores (n, k) of the parameters, in coordinates of the directions that outcomes depend on."""
        scores: FloatArray = self.table.coefficients * self.inverse[:, None] @ self.table.basis
        return scores

    @cached_property
    def of_parameters(self) -> list[tuple[str, FloatArray]]:
        """The scores (n) of parameters, or axes, that may drift, with names."""
        basis = self.table.basis
        return [(name, self.scores @ (basis.T @ axis)) for name, axis in parameter_axes(self.table)]

    @cached_property
    def of_outcomes(self) -> list[tuple[str, FloatArray]]:
        """The scores (n) of the first outcome of every class becoming more likely, of the second one, and so on.

        Its probability f grows by one, as it were, and those of the others shrink by their share of the rest. Of two
        outcomes, the second says what the first does. They have no names.
        """
        group, inverse = self.table.group, self.inverse
        first = np.searchsorted(group, np.arange(len(self.table.is_class)))
        size, place = np.bincount(group, minlength=len(first)), np.arange(len(group)) - first[group]
        probability = 1 / np.where(inverse > 0, inverse, np.inf)
        all_scores = []
        for i in range(min(int(size.max(initial=0)), _MOST_PLACES)):
            which = np.flatnonzero(size > (i if i != 1 else 2))
            rest, of_place = np.zeros(len(size)), inverse[first[which] + i]
            left = 1 - probability[first[which] + i]
            is_split = (left > LEAST_PROBABILITY) & (of_place > 0)
            rest[which] = np.where(is_split, -1 / np.maximum(left, LEAST_PROBABILITY), 0.0)
            score = np.where(place == i, inverse, rest[group]) * np.isin(group, which) * (inverse > 0)
            if score.any():
                all_scores.append(("", score))
        return all_scores


class _Plan(NamedTuple):
    """A drift that can be seen, where the bet on outcome j in a cell is ± scale (level slope[j] - rest[j])."""

    contrast: Contrast
    parameter: str
    slope: FloatArray  # (n_outcomes)
    rest: FloatArray  # (n_outcomes)
    spread: float  # root of Σ K u² over the pilot's counts, times the planned ratio, for scale 1


def drift_tests(
    pilot: PilotView,
    counts: TransitionCounts,
    contrasts: Sequence[Contrast],
    *,
    near: FloatArray,
    error: float,
) -> list[Drift]:
    """Return half-spaces for both sides of each drift that the pilot can tell, jointly valid but for the error.

    Drifting is each parameter that matters, if these are few, and the probability of the first outcome of all classes,
    of the second, and so on. ``near`` is where the tangents are taken, such as the estimate from all data.
    """
    first, main = (pilot.table.pool_by_choice(seen) for seen in (pilot.counts, counts.main))
    plans = [plan for contrast in contrasts for plan in _plans(pilot, first, contrast)]
    # the plans come from the pilot alone, so that their number may divide the error
    share, drifts = equal_parts(error, 2 * len(plans)), []
    last: tuple[Contrast, _Split] | None = None
    for plan in plans:
        if last is None or last[0] is not plan.contrast:
            last = plan.contrast, _split(pilot.table, main, plan.contrast)
        for side in (1, -1):
            scale, split = side * sqrt(-2 * log(share)) / plan.spread, last[1]
            slope, rest = scale * plan.slope, scale * plan.rest
            factors = bet_factors(split.level * slope[split.outcome] - rest[split.outcome])
            left = half_space(split.outcomes, split.seen, factors, near=near, error=share)
            drifts.append(Drift(plan.contrast, plan.parameter, side, left, slope, rest))
    return drifts


def parameter_axes(table: LikelihoodTable) -> list[tuple[str, FloatArray]]:
    """Return the directions in which parameters may drift, with names, single parameters if all of them matter."""
    d, k = table.basis.shape
    if k > _MOST_AXES or not k:
        return []
    if k == d:
        return list(zip(table.names, np.eye(d), strict=True))
    used = np.abs(table.basis).max(axis=1) > 0
    names = [name for name, is_used in zip(table.names, used, strict=True) if is_used]
    return [(_joined(names), axis) for axis in table.basis.T]


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _plans(pilot: PilotView, seen: CellCounts, contrast: Contrast) -> list[_Plan]:
    """Return the drifts with a contrast that are neither constant in the pilot nor a change of the parameters.

    ``seen`` has the counts of the pilot at each choice.
    """
    pooled = seen.pool_by(contrast.at(seen.cell))
    slopes = visible_slopes(pilot, pooled, contrast.levels, has_parameters=not contrast.action)
    return [_Plan(contrast, *each) for each in slopes]


def visible_slopes(
    pilot: PilotView, seen: CellCounts, levels: FloatArray, *, has_parameters: bool = True
) -> list[tuple[str, FloatArray, FloatArray, float]]:
    """Return the fields of drifts, but for their contrast, with numbers of cells, given what the pilot saw in each."""
    basis, scores = pilot.table.basis, pilot.scores
    used = pilot.inverse[seen.outcome] > 0
    outcome, weight = seen.outcome[used], seen.counts[used]
    level = levels[seen.cell[used]]
    if not len(level) or np.ptp(level) == 0:
        return []
    level -= (middle := np.average(level, weights=weight))
    information = scores[outcome].T @ (scores[outcome] * weight[:, None]) + basis.T @ pilot.precision @ basis
    slopes = []
    for name, slope in [*(pilot.of_parameters if has_parameters else []), *pilot.of_outcomes]:
        bets = level * slope[outcome]
        rest = scores @ np.linalg.lstsq(information, scores[outcome].T @ (weight * bets), rcond=None)[0]
        plain, left = weight @ bets**2, weight @ (bets - rest[outcome]) ** 2
        # otherwise the bets would win or lose as the parameters themselves change, and say nothing of a drift
        if left > _LEAST_SHARE * plain:
            slopes.append((name, slope, rest + middle * slope, sqrt(pilot.ratio * left)))
    return slopes


class _Split(NamedTuple):
    """Outcomes of all classes that were visited, apart for each cell."""

    outcomes: AffineOutcomes
    seen: FloatArray  # (n)
    outcome: Indices  # (n): of the table
    level: FloatArray  # (n)


def _split(table: LikelihoodTable, seen: CellCounts, contrast: Contrast) -> _Split:
    """Return the outcomes apart for each cell of a contrast, given the counts at each choice."""
    return split(table, seen.pool_by(contrast.at(seen.cell)), contrast.levels)


def split(table: LikelihoodTable, pooled: CellCounts, levels: FloatArray) -> _Split:
    """Return the outcomes apart for each cell with a number, given the counts in each."""
    n_groups = len(table.is_class)
    is_class = table.is_class[table.group[pooled.outcome]]
    cell, outcome, amount = pooled.cell[is_class], pooled.outcome[is_class], pooled.counts[is_class]
    pairs, pair = np.unique(cell * n_groups + table.group[outcome], return_inverse=True)
    first = np.searchsorted(table.group, np.arange(n_groups + 1))  # outcomes of a group are neighbours
    start, end = first[pairs % n_groups], first[pairs % n_groups + 1]
    all_outcomes, own_pair = ranges(start, end), np.repeat(np.arange(len(pairs)), end - start)
    offset = np.cumsum(end - start) - (end - start)
    counted = np.zeros(len(all_outcomes))
    counted[offset[pair] + outcome - start[pair]] = amount
    level = np.repeat(levels[pairs // n_groups], end - start)
    return _Split(table.split(all_outcomes, own_pair), counted, all_outcomes, level)


def drift_constraints(
    model: ParametricMDP, counts: TransitionCounts, table: LikelihoodTable, drifts: Sequence[Drift], error: float
) -> LinearConstraints:
    """Return the half-spaces of drift tests, with the ranges of their bets at each choice, to be moved by a tolerance.

    Drifts that bet on a group that is not safe are left out.
    """
    is_safe, half_spaces, moved = safe_groups(model, table)[table.group], [], []
    visits = model.graph.sum_by_choice(counts.main.astype(np.float64))
    for drift in drifts:
        widths, cell = np.zeros(model.graph.n_choices), drift.contrast.cell
        for i in range(len(drift.contrast.levels)):
            factors = drift.factors(i)
            if (factors[~is_safe] != 1).any():
                break
            widths = np.where(cell == i, range_of_bets(model.graph, table, factors), widths)
        else:
            words = f"the half-space that bets on a drift with {drift.contrast.name} left"
            half_spaces.append(HalfSpace(drift.left.row, drift.left.offset, words))
            moved.append((Range(1.0, visits, widths),))
    return LinearConstraints.of(half_spaces, len(table.names), error, ranges=tuple(moved))

"""Tests that where a step leads depends on the state and the action alone, and not on what came before in the run.

A context of a visit is known before its outcome (``data.contexts``), so that visits in one context are as good a set as
those of one row, and whatever is fair for rows is fair for pairs of a row and a context. Two kinds of bets look for
memory. Those of classes and rows learn a law of their own for each value of a context (Statement F1). Directed ones
say, by what the pilot saw, that an outcome is more likely the larger the value of a context is, or after one of its
values (Statement F2). These need little data, and there are few of them: their mean is one test.

The mean of bets exp(T[b](v)) with shares w[b] is convex in v, as each T[b] is, and at least the affine function

    ln Σ w[b] exp(T[b](v))  >=  Σ π[b] (T[b](v) + ln w[b] - ln π[b])

for any weights π that sum to one (Gibbs), here with a tangent in the place of each T[b]. So it is bounded at all points
of the space, however far they are from the pilot's estimate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log, sqrt
from typing import NamedTuple

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.base.rounding import UNIT
from plumdp.confidence.likelihood_table import AffineOutcomes, CellCounts, LikelihoodTable
from plumdp.data.contexts import Context, ContextKind
from plumdp.data.counts import CountArray, Pilot
from plumdp.data.pilots import SIZES, pilot_size
from plumdp.fit.agreement import AffineTests
from plumdp.fit.cell_tests import NO_CELLS, CellTests, cell_tests, joined
from plumdp.fit.drift import PilotView, split, visible_slopes
from plumdp.fit.part_tests import Parts, log_mean, log_product
from plumdp.model.graph import FloatArray, Indices, ranges, read_only

_EXPECTED = 0.8  # of the error of bets by a pilot, for that of the number of runs that was pre-specified
_SIZES = ((1.0, 0.7), (2.0, 0.2), (4.0, 0.1))  # of bets over the one that wins most just where it is seen, with shares
_LARGEST_BET = 1.5
_ROUNDING = 1e-13
_ORDERED = (ContextKind.VISITS, ContextKind.STEP, ContextKind.SINCE)


class DirectedBet(NamedTuple):
    """Bets that an outcome is more likely where the number of a context's value is larger."""

    context: int
    parameter: str
    share: float
    levels: FloatArray  # (n_values)
    slope: FloatArray  # (n_outcomes): the bet on outcome j is ``level * slope[j] - rest[j]``, up to the largest bet
    rest: FloatArray  # (n_outcomes)

    def factors(self, level: FloatArray, outcome: Indices) -> FloatArray:
        """Return the factors of the bets on outcomes in cells with the given levels."""
        bets = level * self.slope[outcome] - self.rest[outcome]
        return np.asarray(np.exp(bets.clip(-_LARGEST_BET, _LARGEST_BET)))


@dataclass(frozen=True, eq=False)
class MemoryTests:
    """Tests of memory, in units in which they contradict a point at their share of the error above zero."""

    affine: AffineTests  # the mean of directed bets, or nothing
    classes: CellTests
    rows: CellTests


def memory_tests(
    table: LikelihoodTable,
    contexts: Sequence[Context],
    view: PilotView | None,
    pilot: Pilot | None,
    *,
    near: FloatArray,
    of_bets: float,
    of_rows: float,
) -> MemoryTests:
    """Return tests of memory that are jointly valid but for two errors, that of directed bets, and that of the others.

    ``view`` is what the pilot has fixed, if there is one, and ``near`` is where the tangents are taken.
    """
    affine = AffineTests(np.zeros((0, len(table.names))), np.zeros(0))
    if view is not None and pilot is not None:
        error = of_bets * weight_of(pilot)
        bets = directed_bets(view, contexts, error=error)
        affine = _mean_of_bets(table, contexts, bets, near=near, error=error)
    # how many laws there are follows from the model and the kinds of contexts; half for classes, half for rows
    of_each = equal_parts(of_rows, 2 * len(contexts))
    of_kinds = [_laws_of_their_own(table, context, of_each) for context in contexts]
    return MemoryTests(affine, *(joined([kinds[i] for kinds in of_kinds]) for i in range(2)))


def weight_of(pilot: Pilot) -> float:
    """Return the share of the error for bets that the pilot places, one of those that data might have had.

    If somebody said beforehand how many runs there would be, the pilot of as many has most, and the others the rest.

    >>> nothing = np.zeros(1, dtype=np.int64)
    >>> one, sizes = nothing + 1, tuple(map(float, SIZES[:3]))
    >>> ends = Pilot(one, "power of four", moments=(nothing, one, one), lengths=sizes, expected=300.0)
    >>> weight_of(ends), weight_of(Pilot(one, "power of four"))
    (0.8, 0.16666666666666666)
    """
    if pilot.is_planned or pilot.expected is None or not pilot.lengths or pilot.n_pilots < 2:
        return pilot.weight
    per_run = max(round(pilot.lengths[0] / SIZES[0]), 1)  # rows count as a fraction of a run
    expected, own = pilot_size(int(pilot.expected), per_run), pilot.first_bets
    is_expected = own is not None and pilot.lengths[own] == expected
    return _EXPECTED if is_expected else (1 - _EXPECTED) / (pilot.n_pilots - 1)


def _numbers(context: Context) -> Iterator[FloatArray]:
    """Yield numbers of the values of a context: their order, or one against all others where they have none."""
    n = len(context.values)
    if context.kind in _ORDERED:
        yield np.arange(n, dtype=np.float64)
    else:
        yield from np.eye(n)


def _in_cells(table: LikelihoodTable, context: Context, counts: CountArray) -> CellCounts:
    """Return the count of each outcome at each value of a context."""
    seen = np.flatnonzero(counts)
    return table.pool_by_cell(context.transition[seen], context.value[seen], counts[seen])


def directed_bets(view: PilotView, contexts: Sequence[Context], *, error: float) -> list[DirectedBet]:
    """Return bets on memory by what the pilot saw of each context, with shares that sum to at most one."""
    bets: list[DirectedBet] = []
    for i, context in enumerate(contexts):
        seen = _in_cells(view.table, context, context.pilot)
        plans = [(n, *plan) for n in _numbers(context) for plan in visible_slopes(view, seen, n)]
        for levels, name, slope, rest, spread in plans:
            for size, share in _SIZES:
                for side in (1, -1):
                    scale = side * size * sqrt(-2 * log(error)) / spread
                    own = share / 2 / len(plans) / len(contexts)
                    bets.append(DirectedBet(i, name, own, levels, scale * slope, scale * rest))
    return bets


def _mean_of_bets(
    table: LikelihoodTable, contexts: Sequence[Context], bets: Sequence[DirectedBet], *, near: FloatArray, error: float
) -> AffineTests:
    """Return an affine function below the logarithm of the mean of bets on the data after the pilot."""
    if not bets:
        return AffineTests(np.zeros((0, len(table.names))), np.zeros(0))
    slopes, constants = [], []
    # bets on one context with the same numbers are neighbours
    for (i, _), group in groupby(bets, key=lambda bet: (bet.context, bet.levels.tobytes())):
        alike, main = [*group], _in_cells(table, contexts[i], contexts[i].count - contexts[i].pilot)
        cells = split(table, main, alike[0].levels)
        factors = np.array([bet.factors(cells.level, cells.outcome) for bet in alike])
        slope, constant = tangents(cells.outcomes, cells.seen, factors, near)
        slopes.append(slope)
        constants.append(constant + np.log([bet.share for bet in alike]) + log(error))
    slope, constant = np.vstack(slopes), np.concatenate(constants)
    at = slope @ near + constant
    weights = np.exp(at - at.max())
    weights /= weights.sum()
    used = weights > 0
    entropy = -float(weights[used] @ np.log(weights[used]))
    sizes = float(weights @ np.abs(constant)) + float(weights @ np.abs(slope) @ np.abs(near)) + 1
    # down: by more than sums of as many terms are off
    lower = float(weights @ constant) + entropy - _ROUNDING * len(bets) * sizes
    return AffineTests(read_only((weights @ slope)[None, :]), read_only(np.array([lower])))


def tangents(
    outcomes: AffineOutcomes, seen: FloatArray, factors: FloatArray, near: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return slopes (B, d) and constants (B) of affine functions below ln of the wealths of bets (B, n), at any point.

    As ln Z <= Z / Y - 1 + ln Y, that is Σ K ln e + Σ N (1 - ln Y - Z(v) / Y), with Y = Z at the point ``near``, which
    need not be exact. Each sum has at most so many terms, and each term a few roundings.
    """
    n_groups, group = len(outcomes.is_class), outcomes.group
    starts = np.searchsorted(group, np.arange(n_groups))  # outcomes of a group are neighbours
    visits = outcomes.visits(seen)
    values = outcomes.chances(near)
    lowest, highest = (each.reduceat(factors, starts, axis=1) for each in (np.minimum, np.maximum))
    means = np.clip(np.add.reduceat(factors * values, starts, axis=1), lowest, highest)
    weights = (visits / means)[:, group] * factors
    gains = seen * np.log(factors)
    constant = gains.sum(axis=1) + (visits * (1 - np.log(means))).sum(axis=1) - weights @ outcomes.constants
    size = np.abs(gains).sum(axis=1) + (visits * (1 + np.abs(np.log(means)))).sum(axis=1) + 2 * weights @ outcomes.sizes
    # down: by more than all sums are off, those of slopes at any point of the space included
    return -weights @ outcomes.coefficients, constant - (len(seen) + 32) * UNIT * size


def _laws_of_their_own(table: LikelihoodTable, context: Context, error: float) -> tuple[CellTests, CellTests]:
    """Return a test of each class, and one of each row, by laws for each value of a context, at equal shares."""
    n = len(context.values)
    choice = table.rows.place_of(context.transition)[0].astype(np.int64)
    cell: Indices = np.asarray(choice * n + context.value, dtype=np.int64)
    of_rows = table.pool_by_cell(context.transition, cell, context.count)
    pooled = _in_cells(table, context, context.count)
    of_classes = pooled.pool_by(table.group[pooled.outcome].astype(np.int64) * n + pooled.cell)  # in order again
    pairs = (of_classes, len(table.is_class)), (of_rows, table.n_tied)
    classes, rows = (_by_owner(cell_tests(table, seen), n, equal_parts(error, m)) for seen, m in pairs)
    return classes, rows


def evidence_of_rows(context: Context, place_of: Indices, first: Indices) -> FloatArray:
    """Return ln e of each row (n_rows), from below, against every law that it may have whatever came before in a run.

    Row r has the places ``first[r]`` up to ``first[r + 1]``, and ``place_of`` says that of each transition. With a law
    of its own for each value, what is seen is e times as likely as under the best single law; at the truth, that is at
    most a supermartingale that starts at one. Rows bet on visits of their own, so that (1 + e) / 2 may be multiplied
    over rows, though not over contexts, which share their visits.
    """
    if not len(context.value):
        return np.zeros(len(first) - 1)
    place = place_of[context.transition]
    n, group_of = len(context.values), np.repeat(np.arange(len(first) - 1), np.diff(first))
    group = group_of[place]
    parts, part = np.unique(group * n + context.value, return_inverse=True)
    sizes = np.diff(first)[parts // n]
    start = np.concatenate([[0], np.cumsum(sizes)])
    seen = np.bincount(start[part] + place - first[group], context.count, int(start[-1]))
    places = ranges(first[parts // n], first[parts // n + 1])
    return Parts(seen.astype(np.float64), start, parts // n, places, np.asarray(first)).evidence()


def evidence_of_memory(contexts: Sequence[Context], place_of: Indices, first: Indices, rows: Indices) -> float:
    """Return ln of the mean of e over contexts, half of it that of some rows one by one, and half of all together."""
    of_rows = [evidence_of_rows(context, place_of, first)[rows] for context in contexts]
    return log_mean([half for each in of_rows for half in (each, np.array([log_product(each)]))])


def _by_owner(tests: CellTests, n: int, error: float) -> CellTests:
    """Return the products of the tests of n values each, which bet on visits of their own, at a share of the error."""
    if not len(tests):
        return NO_CELLS
    owners, owner = np.unique(tests.cell // n, return_inverse=True)
    gained = np.bincount(owner, tests.gained, len(owners)).astype(np.float64)
    size = np.bincount(owner, np.abs(tests.gained), len(owners)) + abs(log(error))
    of_outcome = np.repeat(owner, np.diff(tests.first))
    stride = int(tests.outcome.max()) + 1
    keys, place = np.unique(of_outcome * stride + tests.outcome, return_inverse=True)
    first = np.searchsorted(keys // stride, np.arange(len(owners) + 1))
    # down, by more than sums of as few terms are off
    gained = gained + log(error) - _ROUNDING * size
    seen = np.bincount(place, tests.seen, len(keys)).astype(np.float64)
    return CellTests(owners, read_only(gained), first, keys % stride, seen)

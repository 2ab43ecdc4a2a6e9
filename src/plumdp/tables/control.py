"""Bounds on the value of a policy in a table less the mean of whole runs, by one bet on each run.

Runs of practice earn X, with the mean V'. Some of their steps are steps of the policy's own chain. What follows on
such a step, less what follows on average, says how far the value V of the policy is off. So a run is a bet on

    size · (V' - X)  +  Σ over its steps (score of the outcome - mean score of its row),

in which each term has the mean zero at the true rows and the true V', whatever practice depends on. Scores are such
that the sum over runs is about size · (V' - V + what was seen of both), as far as V is linear in the rows. What a step
pays may be an outcome, too, with an unknown mean. The page "Tables: differences" has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import compress, pairwise, product
from math import ceil, log
from typing import NamedTuple

import numpy as np

from plumdp.base.error_budget import ErrorBudget, Share, equal_parts
from plumdp.base.errors import WhyNot
from plumdp.base.linear_algebra import last_that
from plumdp.base.rounding import UNDERFLOW
from plumdp.confidence.bounded_means import Tally, mean_bounds
from plumdp.data.returns import Outcomes, Range
from plumdp.model.graph import BoolArray, FloatArray, Indices
from plumdp.tables.bracket import AT_END, NEXT, BetMoments
from plumdp.tables.chain import OpenChain
from plumdp.tables.plan import curvature
from plumdp.tables.tilted import Aim, ChainShape, aim_of, shape_of, view_at

_PILOT = 0.1  # of the runs
_LATER = np.arange(2, 8) / 8  # of the runs, after which bets are placed anew
_GUARDS = np.array([0.5, 0.8, 1.2, 2.0, 3.5])  # times the deviation of what steps of runs so far would have won
_USUAL, _ROOM = 0.9, 1.25  # of runs so far; and beyond what these had
_SELDOM = 0.5  # steps that runs so far are taken to have had, if they had none
_PLANNED_LOSS, _LARGEST_LOSS = 0.9, 0.97  # of the capital in one run
_MOST_UNSURE = 2  # stages of which it need not be known whether they were bet on
_DOUBLINGS, _HALVINGS = 30, 20
_OUTWARD = 1e-11  # more than the roundings of a sum, relative to its terms


_PARTS = ErrorBudget(
    (
        Share("bets", Fraction(4, 5), "bets on whole runs"),
        Share("sets", Fraction(1, 5), "sets of rows, and of mean rewards"),
    )
)


class Step(NamedTuple):
    """Steps of whole runs that the policy's chain has, in the order of their runs."""

    run: Indices
    kind: Indices  # each of which has one row and one mean reward
    place: Indices  # of the outcome; -1 if the row is known
    paid: FloatArray  # beyond the mean reward that the chain has

    def take(self, runs: Indices) -> Step:
        """Return the steps of all runs in another order of these."""
        number = np.empty(len(runs), dtype=np.int64)
        number[runs] = np.arange(len(runs))
        order = np.argsort(number[self.run], kind="stable")
        return Step(number[self.run][order], self.kind[order], self.place[order], self.paid[order])


@dataclass(frozen=True, eq=False)
class StepKinds:
    """The kinds of steps in a chain, and between which numbers what they pay lies, beyond the rewards of the chain."""

    of_node: Indices  # (n): -1 where nothing is unknown
    least: FloatArray  # (n_kinds)
    most: FloatArray  # (n_kinds)

    def by_node(self, values: FloatArray) -> FloatArray:
        """Return values (..., n_kinds) of each node, zero where nothing is unknown."""
        return np.where(self.of_node >= 0, values[..., self.of_node], 0.0)

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sum of values (n) over the nodes of each kind."""
        is_open = self.of_node >= 0
        return np.bincount(self.of_node[is_open], values[is_open], len(self.least)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _SidedRuns:
    """Runs with their steps side by side, and what is known of their returns as a number that bets say is larger."""

    kind: Indices  # (n_runs, n_steps): -1 after the last step
    place: Indices
    paid: FloatArray
    value: FloatArray  # (n_runs): at least the return, times the sign
    most: FloatArray  # (n_runs): what that can be, as is known before the run

    def part(self, first: int, last: int) -> _SidedRuns:
        part = slice(first, last)
        return _SidedRuns(self.kind[part], self.place[part], self.paid[part], self.value[part], self.most[part])


@dataclass(frozen=True, eq=False)
class _Bet:
    """What is bet on each run of a stage: fixed by what came before.

    Steps count as long as no outcome makes the sum of a run's scores less than -``guard``, nor the sum of their
    ``doubt`` more than ``doubts``: that is known before the outcome.
    """

    size: float
    score: FloatArray  # (n_places + 1): 0 for rows that are known, whose place is -1
    rate: FloatArray  # (n_kinds): of what is paid beyond ``mean``
    mean: FloatArray  # (n_kinds)
    guard: float
    doubt: FloatArray  # (n_kinds): about how far the mean score of a step may be from zero
    doubts: float
    least: FloatArray  # (n_kinds): score of an outcome
    worst: FloatArray  # (n_kinds): the least score of what is paid
    expected: float  # of the value of a run
    top: float  # the most that this can be, of runs on which all of the bet is placed

    def times(self, part: float) -> _Bet:
        """Return a part of the bet, of which the same steps count."""
        scaled = ("size", "score", "rate", "guard", "doubt", "doubts", "least", "worst")
        return replace(self, **{name: part * getattr(self, name) for name in scaled})

    def share(self, most: FloatArray) -> FloatArray:
        """Return the part of the bet that is placed on runs, given the most that the value of each can be."""
        usual, each = (self.size * (top - self.expected) + self.guard for top in (self.top, most))
        return np.where(each > usual, usual / np.maximum(each, usual), 1.0)

    def sums(self, runs: _SidedRuns) -> tuple[FloatArray, FloatArray]:
        """Return the sum of scores of each run, and its steps that count (n_runs, n_kinds)."""
        n, at = len(runs.kind), np.arange(len(runs.kind))
        total, doubts, counted = np.zeros(n), np.zeros(n), np.zeros((n, len(self.rate)))
        for kind, place, paid in zip(runs.kind.T, runs.place.T, runs.paid.T, strict=True):
            after = total + self.least[kind] + self.worst[kind]
            is_here = (kind >= 0) & (after >= -self.guard) & (doubts + self.doubt[kind] <= self.doubts)
            gain = np.where(np.isnan(paid), self.worst[kind], self.rate[kind] * (paid - self.mean[kind]))
            total = np.where(is_here, total + self.score[place] + gain, total)
            doubts = np.where(is_here, doubts + self.doubt[kind], doubts)
            counted[at[is_here], kind[is_here]] += 1
        return total, counted


def difference_by_runs(
    table: OpenChain, made: Outcomes, steps: Step, kinds: StepKinds, error: float, planned: float
) -> Range | WhyNot:
    """Return bounds on the value of the first node less the mean of what runs earned, or in words why there are none.

    ``planned`` is how many runs were pre-specified before there were any.
    """
    n, pilot, shape = len(made.lower), ceil(_PILOT * planned), shape_of(table)
    if pilot >= n or shape is None or not len(table.one_of_each):
        return WhyNot("too few runs, or a chain that comes back to a node, has more than some hundred, or is known")
    ends = [_Side(shape, kinds, made, steps, error, planned, pilot, sign).end() for sign in (-1, 1)]
    return -ends[0], ends[1]


class _Side:
    """The bets on one side: that sign · (V - V') is less than its upper end."""

    def __init__(
        self,
        shape: ChainShape,
        kinds: StepKinds,
        made: Outcomes,
        steps: Step,
        error: float,
        planned: float,
        pilot: int,
        sign: int,
    ) -> None:
        table, n, is_paid = shape.table, len(made.lower), kinds.most > kinds.least
        self._shape, self._table, self._kinds, self._sign, self._planned = shape, table, kinds, sign, planned
        of_bets, of_sets = (_PARTS.error_in_set(each.name, error) for each in _PARTS.of_set)
        n_sets = len(table.one_of_each) + int(is_paid.sum())
        self._log_error, log_sets = log(1 / equal_parts(of_bets, 2)), log(n_sets / of_sets)
        lengths = [each for each in sorted({pilot, *(int(part * planned) for part in _LATER)}) if pilot <= each < n]
        self._ends, self._runs = (*lengths, n), _side_by_side(made, steps, sign)
        self._later = max(planned - pilot, 1.0)  # runs that are bet on
        counts = [
            np.bincount(steps.place[(steps.place >= 0) & (steps.run < end)], minlength=table.n_places).astype(float)
            for end in self._ends
        ]
        moments = BetMoments(tuple(counts), tuple(map(float, lengths)), planned)
        self._paid = [self._paid_at(steps, end, log_sets, equal_parts(of_sets, n_sets)) for end in self._ends]
        self._views = [view_at(shape, moments, b, log_sets, kinds.by_node(paid)) for b, paid in enumerate(self._paid)]
        at = shape.transitions
        self._row, self._chances = np.full(table.n_places, -1), np.zeros((len(counts), table.n_places))
        self._row[table.place[at]] = shape.rows
        self._chances[:, table.place[at]] = [table.frequencies(each)[at] for each in counts]
        self._row_of, node = np.full(len(kinds.least), -1), np.flatnonzero((kinds.of_node >= 0) & table.is_free)
        self._row_of[kinds.of_node[node]] = self._row[table.place[table.chain.first[node]]]
        self._places_of = ((self._row_of[:, None] == self._row) & (self._row >= 0)).astype(float)
        self._rows_of = (self._row[:, None] == np.arange(len(table.one_of_each))).astype(float)

    def _paid_at(self, steps: Step, end: int, log_error: float, error: float) -> FloatArray:
        """Return about the mean of what each kind pays (n_kinds), and how far above and below that it may be."""
        found, is_last = np.zeros((3, len(self._kinds.least))), end == self._ends[-1]
        for k in np.flatnonzero(self._kinds.most > self._kinds.least):
            paid = steps.paid[(steps.kind == k) & (steps.run < end)]
            least, width = self._kinds.least[k], self._kinds.most[k] - self._kinds.least[k]
            share = np.clip((paid - least) / width, 0.0, 1.0)  # not a number if what was paid is missing
            low, high = np.nan_to_num(share - _OUTWARD, nan=0.0), np.nan_to_num(share + _OUTWARD, nan=1.0)
            middle = (float(low.sum() + high.sum()) / 2 + 0.5) / (len(paid) + 1)
            if is_last:
                ends = mean_bounds(Tally.of(np.maximum(low, 0.0)), Tally.of(np.minimum(high, 1.0)), error)
            else:
                later = max(len(paid) * self._planned / end, 1.0)
                off = float(np.std([*high, 0.0, 1.0])) * (2 * log_error / later) ** 0.5 + 1 / later
                ends = middle - off, middle + off
            found[:, k] = least + width * middle, width * (ends[1] - middle), width * (middle - ends[0])
        found[1:] = np.maximum(found[1:], 0.0) + _OUTWARD * (self._kinds.most - self._kinds.least)
        return found

    def _rows_beyond(self, b: int, target: FloatArray, chance: FloatArray) -> FloatArray:
        """Return how much larger p · target may be in each row (..., n_rows) than at given rows, within their sets."""
        one, table = self._table.one_of_each, self._table
        ahead = np.where(table.place >= 0, target[..., table.place], 0.0)[..., self._shape.column[one]]
        found = self._views[b].sets.largest(np.moveaxis(ahead, -2, 0), one)
        return np.asarray(np.moveaxis(found, 0, -1) - self._row_sums(chance * target))

    def _paid_beyond(self, b: int, rate: FloatArray, mean: FloatArray) -> FloatArray:
        """Return how much larger rate · mean reward may be of each kind (..., n_kinds) than at given mean rewards."""
        middle, above, below = self._paid[b]
        return np.asarray(np.maximum(rate * (middle + above - mean), rate * (middle - below - mean)))

    def _doubt(self, b: int, bet: _Bet, chance: FloatArray, mean: FloatArray) -> FloatArray:
        """Return how far the mean score of each kind (n_kinds) may be from that at given rows and mean rewards.

        With no rows, zeros, it is how far it may be from zero.
        """
        score = bet.score[:-1]
        rows = self._rows_beyond(b, np.array([score, -score]), chance).max(axis=0)
        return np.asarray(
            self._of_kinds(rows) + self._paid_beyond(b, np.array([bet.rate, -bet.rate]), mean).max(axis=0)
        )

    def _of_kinds(self, rows: FloatArray) -> FloatArray:
        """Return values (n_rows) of the row of each kind, zero where it is known."""
        return np.where(self._row_of >= 0, rows[self._row_of], 0.0)

    def _by_row(self, counted: FloatArray) -> FloatArray:
        """Return the sum of numbers (..., n_kinds) over the kinds of the row of each place (..., n_places)."""
        return np.asarray(counted @ self._places_of)

    def _row_sums(self, values: FloatArray) -> FloatArray:
        """Return the sum of values (..., n_places) over the places of each row (..., n_rows)."""
        return np.asarray(values @ self._rows_of)

    def end(self) -> float:
        """Return the upper end of sign · (V - V')."""
        first, bets = aim_of(self._shape, self._views[0], self._sign), list[_Bet]()
        for b in range(len(self._ends) - 1):
            aim = aim_of(self._shape, self._views[b], self._sign, first.is_most) if b else first
            bets.append(self._next_bet(bets, b, aim))
        return self._end_of(bets, aim_of(self._shape, self._views[-1], self._sign, first.is_most))

    def _aimed(self, aim: Aim) -> tuple[FloatArray, FloatArray]:
        """Return what the value gains by the probability of each place, and by each mean reward."""
        return aim.target, self._sign * self._kinds.sums(aim.exposure)

    def _next_bet(self, bets: Sequence[_Bet], b: int, aim: Aim) -> _Bet:
        """Return the bet of a stage, such that with runs like those so far all bets together are aimed at the target.

        Its size, and what steps may lose, are those at which the end is expected to be nearest.
        """
        begin, aimed, owed = self._ends[b], self._aimed(aim), [np.zeros(len(each)) for each in self._aimed(aim)]
        past = self._runs.part(0, begin)
        horizon = NEXT * begin if begin > AT_END * self._planned else self._planned
        for bet, (start, stop) in zip(bets, pairwise(self._ends), strict=False):
            part = self._runs.part(start, stop)
            share = bet.share(part.most)
            n, placed = share @ bet.sums(part)[1], bet.size * float(share.sum())
            owed[0] += placed * aimed[0] + self._by_row(n) * bet.score[:-1]
            owed[1] += placed * aimed[1] + n * bet.rate
        lacking = [each / max(horizon - begin, 1.0) for each in owed]
        visits = np.array([np.bincount(each[each >= 0], minlength=len(aimed[1])) for each in past.kind])
        expected = float(past.value.mean())
        top = max(float(np.median(past.most)), expected)
        often = visits.mean(axis=0)
        spare = max(float(self._rows_beyond(b, aimed[0], self._chances[b]).sum()), 0.0)

        def bet_of(size: float, guard: float, lacking: Sequence[FloatArray]) -> tuple[_Bet, float]:
            """Return a bet whose steps may lose so much, and what it may lose in a run."""
            score, rate = (-(size * each + more) for each, more in zip(aimed, lacking, strict=True))
            made = self._bet(b, size, (score, rate), often, guard, (expected, top))
            doubt = (self._planned / begin) ** 0.5 * self._doubt(b, made, np.zeros(len(aimed[0])), made.mean)
            made = replace(made, doubt=doubt, doubts=_ROOM * float(np.quantile(visits @ doubt, _USUAL)))
            return made, size * (top - expected + spare) + guard + made.doubts

        nothing, best = [np.zeros(len(each)) for each in aimed], (np.inf, 0.0, 0.0)
        usual = float(np.std(bet_of(1.0, np.inf, nothing)[0].sums(past)[0]))
        for guard in _GUARDS * max(usual, UNDERFLOW):
            one, most = bet_of(1.0, guard, nothing)
            spread = float(np.mean((one.sums(past)[0] - past.value + expected) ** 2)) ** 0.5
            size = min((2 * self._log_error / self._later) ** 0.5 / max(spread, UNDERFLOW), _PLANNED_LOSS / most)
            best = min(best, (self._log_error / size / self._later + size * spread**2 / 2, size, guard))
        _, size, guard = best
        bet, most = bet_of(size, size * guard, lacking)
        return bet.times(min(1.0, _PLANNED_LOSS / most))

    def _bet(
        self,
        b: int,
        size: float,
        wanted: tuple[FloatArray, FloatArray],
        often: FloatArray,
        guard: float,
        usual: tuple[float, float],
    ) -> _Bet:
        """Return a bet whose scores have the wanted sums in a run with so many steps of each kind, if none is cut."""
        chance, mean, kinds = self._chances[b], self._paid[b][0], self._kinds
        often, has_row = np.maximum(often, _SELDOM / self._ends[b]), self._row >= 0
        score = np.where(has_row, wanted[0] / np.where(has_row, self._by_row(often), 1.0), 0.0)
        score = np.where(has_row, np.maximum(score - self._row_sums(chance * score)[self._row], -guard), 0.0)
        rate = np.where(kinds.most > kinds.least, wanted[1] / often, 0.0)
        lost = -np.minimum(rate * (kinds.least - mean), rate * (kinds.most - mean))
        rate = rate * np.minimum(guard / np.maximum(lost, UNDERFLOW), 1.0)
        worst = np.minimum(rate * (kinds.least - mean), rate * (kinds.most - mean))
        low = np.full(len(self._table.one_of_each) + 1, np.inf)
        np.minimum.at(low, self._row, score)
        low[-1] = 0.0
        nothing = np.zeros(len(rate))
        return _Bet(size, np.append(score, 0.0), rate, mean, guard, nothing, np.inf, low[self._row_of], worst, *usual)

    def _end_of(self, bets: Sequence[_Bet], aim: Aim) -> float:
        """Return the end at which the bets have won enough, whatever rows and mean rewards are within their sets."""
        (target, rate), chance, mean = self._aimed(aim), self._chances[-1], self._paid[-1][0]
        either = (
            self._rows_beyond(-1, np.array([target, -target]), chance),
            self._paid_beyond(-1, np.array([rate, -rate]), mean),
        )
        off, has_row = sum(float(each.sum(axis=-1).max()) for each in either), self._row >= 0
        parts, risks = [], list[tuple[float, float, float]]()
        for bet, (start, stop) in zip(bets, pairwise(self._ends), strict=True):
            runs = self._runs.part(start, stop)
            share, (total, counted) = bet.share(runs.most), bet.sums(runs)
            middle = self._of_kinds(self._row_sums(chance * bet.score[:-1])) + bet.rate * (mean - bet.mean)
            doubt = self._doubt(-1, bet, np.zeros(len(chance)), bet.mean)
            larger = float(np.max(doubt / np.maximum(bet.doubt, UNDERFLOW), where=doubt > 0, initial=0.0))
            slope = bet.size * target + self._by_row(counted) * bet.score[:-1]
            slopes = np.column_stack([slope[:, has_row], bet.size * rate + counted * bet.rate])
            reach = bet.size * off + counted @ self._doubt(-1, bet, chance, mean)
            risks.append((bet.size, bet.top + off, bet.guard + larger * bet.doubts))
            own = np.full(len(share), bet.size), total - counted @ middle, reach
            parts.append((*(share * each for each in own), runs.value, share[:, None] * slopes))
        size, score, reach, value, slopes = (np.concatenate(each) for each in zip(*parts, strict=True))
        stage, n_places = np.repeat(np.arange(len(bets)), np.diff(self._ends)), int(has_row.sum())
        spread = np.sqrt((slopes**2).sum(axis=0))
        scale = 1 / np.where(spread > 0, spread, 1.0)

        def largest(along: FloatArray) -> FloatArray:
            """Return the largest sums of rows and mean rewards, less those of the frequencies, by given weights."""
            places = np.zeros((len(along), len(target)))
            places[:, has_row] = along[:, :n_places]
            rows = self._rows_beyond(-1, places, chance).sum(axis=-1)
            return np.asarray(rows + self._paid_beyond(-1, along[:, n_places:], mean).sum(axis=-1))

        def won(at: float) -> float:
            """Return at least the logarithm of what was won, if - sign · V' is at least a number at the frequencies.

            Of some stages it is not known whether runs were bet on, as that could have lost too much: either may be so.
            What could be lost at the top is the most that a run could lose, as shares of others are no larger.
            """
            unsure = [b for b, (n, top, risk) in enumerate(risks) if n * (top - at) + risk > _LARGEST_LOSS]
            if len(unsure) > _MOST_UNSURE:
                return -np.inf
            return min(
                won_in(at, ~np.isin(stage, list(compress(unsure, way))))
                for way in product((False, True), repeat=len(unsure))
            )

        def won_in(at: float, is_bet: BoolArray) -> float:
            payoff, reached, along = (each[is_bet] for each in (size * (at - value) + score, reach, slopes * scale))
            if not len(payoff) or (payoff - reached).min() < -_LARGEST_LOSS:
                return -np.inf
            weight, terms = 1 / (1 + payoff), np.log1p(payoff)
            bent = curvature(reached * weight * (1 + 1e-9)) * weight**2
            if not np.isfinite(bent).all():
                return -np.inf
            squares, axes = np.linalg.eigh((along * bent[:, None]).T @ along)
            axes = axes.T / scale
            furthest = np.maximum(largest(axes), largest(-axes))
            lost = float((np.maximum(squares, 0.0) * furthest**2).sum()) / 2 * (1 + 1e-6)
            lost += float(largest((weight @ along / scale)[None])[0])
            return float(terms.sum()) - lost - _OUTWARD * float(np.abs(terms).sum() + abs(lost) + len(terms))

        middle, step = float(np.average(value - score / size, weights=size)), 1 / float(size.sum())
        tried = (middle + step * 2.0**k for k in range(_DOUBLINGS))
        end = next((at for at in tried if won(at) >= self._log_error), np.inf)
        if np.isfinite(end):
            end = last_that(lambda at: won(at) >= self._log_error, end, middle, _HALVINGS)
        outward = _OUTWARD * (aim.size + float(np.abs(value).max()) + abs(end))
        return aim.constant + aim.remainder + float(target @ chance) + end + outward


def _side_by_side(made: Outcomes, steps: Step, sign: int) -> _SidedRuns:
    """Return runs whose value, times the sign, is at most a number that is known of each."""
    n, (begin, end) = len(made.lower), made.within
    width = end - begin
    reach = (np.zeros(n), np.ones(n)) if made.reach is None else made.reach
    value, most = (made.upper, reach[1]) if sign < 0 else (-made.lower, -reach[0])
    value, most = (-sign * begin + width * each for each in (value, most))
    size = _OUTWARD * (abs(begin) + abs(end) + width)
    length = np.bincount(steps.run, minlength=n)
    place = np.arange(len(steps.run)) - np.repeat(np.cumsum(length) - length, length)
    table = np.full((2, n, max(int(length.max(initial=0)), 1)), -1)
    table[:, steps.run, place] = steps.kind, steps.place
    paid = np.zeros(table.shape[1:])
    paid[steps.run, place] = steps.paid
    return _SidedRuns(table[0], table[1], paid, value + size, np.maximum(most, value) + size)

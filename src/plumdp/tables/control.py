"""Bounds on the value of a policy in a table less the mean of whole runs, by the steps that both share.

Runs of practice earn X, with the mean V'. They take some steps in rows of the policy's own chain. A score of outcomes
makes a sum C over these steps, whose mean is Σ visits p · score over the rows, with the visits that a run is expected
to have. So for the value V of the policy,

    V - V'  =  (V - Σ visits p · score)  -  (mean of X - C),

and with scores that go with what an outcome is worth to the policy, both terms vary less than V and V' do: the first
one is for tilted bets, the second one for bets on whole runs. The page "Tables: differences" has the proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np

from plumdp.base.error_budget import ErrorBudget, Share, equal_parts
from plumdp.base.errors import WhyNot
from plumdp.confidence.run_bets import mean_ends
from plumdp.data.returns import Outcomes, Range
from plumdp.model.graph import BoolArray, FloatArray, Indices
from plumdp.tables.bracket import BetMoments, Errors
from plumdp.tables.chain import OpenChain, regular_equations
from plumdp.tables.tilted import TakenOff, shape_of, tilted_bounds

_PILOT = 0.1  # of the runs
_LATER = np.arange(2, 8) / 8  # of the runs, after which bets are placed anew
_SETTLED = 0.7  # of what an outcome is worth to the policy, by whole runs
_OFTEN = 1.0  # visits in a run of practice from where on a row is shared
_ROOM = 1.25  # beyond what runs of the pilot had
_OUTWARD = 1e-12  # more than the roundings of a sum, relative to its terms


_PARTS = ErrorBudget(
    (
        Share("runs", Fraction(1, 2), "bets on whole runs"),
        Share("rows", Fraction(2, 5), "bets on rows"),
        Share("visits", Fraction(1, 50), "expected visits"),
        Share("sets", Fraction(2, 25), "sets of rows"),
    )
)


class Step(NamedTuple):
    """Steps of whole runs in unknown rows, in the order of their runs."""

    run: Indices
    place: Indices  # of the outcome


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores of outcomes, and how many steps of a run they count for: as long as its sum stays within bounds."""

    score: FloatArray  # (n_places)
    row: Indices  # (n_places): of each place; -1 where the policy has none
    most: Indices  # (n_rows): steps of a run that count
    within: Range  # of the sum of a run; it has 0

    def sums(self, steps: Step, n_runs: int) -> tuple[FloatArray, FloatArray]:
        """Return the sum of each run (n_runs), and its steps that count (n_runs, n_rows).

        Whether a step counts is known before its outcome.
        """
        n_rows, total, n = len(self.most), [0.0] * n_runs, np.zeros((n_runs, len(self.most)))
        least, most = ([float(pick(self.score[self.row == r])) for r in range(n_rows)] for pick in (np.min, np.max))
        for run, place in zip(steps.run.tolist(), steps.place.tolist(), strict=True):
            r, so_far = self.row[place], total[run]
            is_near = self.within[0] <= so_far + least[r] and so_far + most[r] <= self.within[1]
            if is_near and n[run, r] < self.most[r]:
                total[run] = so_far + self.score[place]
                n[run, r] += 1
        return np.array(total), n


def difference_by_runs(table: OpenChain, made: Outcomes, steps: Step, error: float, planned: float) -> Range | WhyNot:
    """Return bounds on the value of the first node less the mean of what runs earned, or in words why there are none.

    The first runs choose scores; nothing else of them is used for the mean of runs. ``planned`` is how many runs were
    pre-specified before there were any.
    """
    n, pilot = len(made.lower), ceil(_PILOT * planned)
    if pilot >= n or shape_of(table) is None:
        return WhyNot("too few runs, or a chain that comes back to a node or has more than some hundred")
    row = _rows_of_places(table)
    steps = Step(*(each[row[steps.place] >= 0] for each in steps))
    lengths = [each for each in sorted({pilot, *(int(share * planned) for share in _LATER)}) if pilot <= each < n]
    counts = [np.bincount(steps.place[steps.run < end], minlength=table.n_places) for end in (*lengths, n)]
    moments = BetMoments(tuple(each.astype(float) for each in counts), tuple(map(float, lengths)), planned)
    scores = _scores(table, row, moments.counts[0], Step(*(each[steps.run < pilot] for each in steps)), pilot)
    total, visits = scores.sums(steps, n)
    of_runs, of_rows, of_visits, of_sets = (_PARTS.error_in_set(each.name, error) for each in _PARTS.of_set)
    low, high = _mean_of_rest(made, total, scores.within, of_runs, pilot, planned)
    least, most = _mean_visits(visits[pilot:], scores, of_visits, planned - pilot)
    at = [np.where(row >= 0, (visits[:end].sum(axis=0) / end)[row], 0.0) for end in lengths]
    off = TakenOff(scores.score, at, *(np.where(row >= 0, each[row], 0.0) for each in (least, most)))
    found = tilted_bounds(table, moments, Errors(equal_parts(of_rows, 2), of_sets, 0.0), off)
    if isinstance(found, WhyNot):
        return found
    outward = _OUTWARD * (abs(low) + abs(high) + abs(found.low.value) + abs(found.high.value))
    return found.low.value - high - outward, found.high.value - low + outward


def _rows_of_places(table: OpenChain) -> Indices:
    """Return the number of the row of each place, among the unknown rows of a chain, and -1 of other rows."""
    row, first = np.full(table.n_places, -1), table.chain.first
    for number, node in enumerate(table.one_of_each.tolist()):
        row[table.place[first[node] : first[node + 1]]] = number
    return row


def _scores(table: OpenChain, row: Indices, seen: FloatArray, steps: Step, n_runs: int) -> _Scores:
    """Return the scores that first runs propose: a part of what an outcome is worth to the policy, by visits of runs.

    Rows that runs are seldom in have none, as few large scores would move their sums.
    """
    probability, n_rows = table.frequencies(seen), len(table.one_of_each)
    equations = regular_equations(table, probability)
    assert equations is not None  # no run comes back
    ahead = table.discount * table.ahead(equations.values())
    worth = table.by_place(equations.solve_transposed(table.start)[table.owner] * ahead)
    visits = np.bincount(row[steps.place], minlength=n_rows) / n_runs
    is_often: BoolArray = np.where(row >= 0, visits[row] >= _OFTEN, False)
    per_visit = np.where(is_often, _SETTLED * worth / np.maximum(visits, _OFTEN)[row], 0.0)
    chance, first = np.zeros(table.n_places), table.chain.first
    for node in table.one_of_each.tolist():
        own = slice(first[node], first[node + 1])
        chance[table.place[own]] = probability[own]
    mean = np.bincount(np.maximum(row, 0), chance * per_visit, n_rows)
    score = np.where(is_often, per_visit - mean[row], 0.0)
    free = _Scores(score, row, np.full(n_rows, len(steps.run) + 1), (-np.inf, np.inf))
    total, n = free.sums(steps, n_runs)
    most = np.ceil(_ROOM * n.max(axis=0, initial=0.0)).astype(np.int64)
    return _Scores(score, row, most, (_ROOM * min(total.min(), 0.0), _ROOM * max(total.max(), 0.0)))


def _mean_of_rest(made: Outcomes, total: FloatArray, within: Range, error: float, pilot: int, planned: float) -> Range:
    """Return bounds on the mean of what runs earned less their sums, by the runs after the pilot."""
    begin, width = made.within[0], made.within[1] - made.within[0]
    down, up = -within[0] / width, within[1] / width
    span = (1 + down + up) * (1 + _OUTWARD)
    reach = (np.zeros(len(total)), np.ones(len(total))) if made.reach is None else made.reach
    low, high = (
        (each - total / width + up + side * _OUTWARD) / span for side, each in ((-1, made.lower), (1, made.upper))
    )
    ends = reach[0] / span, (reach[1] + down + up + 3 * _OUTWARD) / span
    least, most = np.maximum(low, ends[0]), np.minimum(high, ends[1])
    later = slice(pilot, None)
    found = mean_ends(least[later], most[later], error, planned - pilot, (ends[0][later], ends[1][later]))
    first, last = (float(begin + width * (each * span - up)) for each in found)
    size = _OUTWARD * (abs(begin) + width * span)
    return first - size, last + size


def _mean_visits(visits: FloatArray, scores: _Scores, error: float, planned: float) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the expected steps of a run that count in each row, which is 0 where no score is."""
    shared = np.flatnonzero([scores.score[scores.row == r].any() for r in range(len(scores.most))])
    least, most = np.zeros(len(scores.most)), np.zeros(len(scores.most))
    for r in shared:
        part = visits[:, r] / scores.most[r]
        least[r], most[r] = (
            each * scores.most[r] for each in mean_ends(part, part, equal_parts(error, len(shared)), planned)
        )
    return least * (1 - _OUTWARD), most * (1 + _OUTWARD)

"""Runs as a control: sums of scores have the mean that the proof says, exactly, and its bets are fair to all data.

Practice remembers what it did, so that its runs have no Markov property but in the rows that it shares with the rule.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from controlled_runs import all_runs, as_data, chain, true_difference
from table_cases import row_of_place
from test_tilted_bets import LOOSE, layered, seen_at, tables_allowed, value_and_visits, won
from tiers import size

from plumdp.tables import control, tilted
from plumdp.tables.control import difference_by_runs
from plumdp.tables.tilted import TakenOff, tilted_bounds

TRUTH = [Fraction(n, 12) for n in (9, 3, 7, 3, 2)]
STEPS = 3
WAYS = [
    {},
    {"most": np.array([1, 2])},  # that is, one step in the row of good machines
    {"within": (-0.4, 0.6)},
]


def scores(**options):
    """Return scores of five outcomes, of which floats are exact, and up to where they are added up."""
    score, row = np.array([-0.25, 0.5, -0.5, 0.25, 1.5]), np.array([0, 0, 1, 1, 1])
    return replace(control._Scores(score, row, np.array([9, 9]), (-np.inf, np.inf)), **options)


def gap(made, sums=control._Scores.sums):
    """Return the mean of a run's sum less that of its visits times p · score, in fractions."""
    runs = list(all_runs(TRUTH, STEPS))
    total, visits = sums(made, as_data(runs, STEPS)[1], len(runs))
    of_row = [Fraction(0), Fraction(0)]
    for r, p, x in zip(made.row, TRUTH, made.score, strict=True):
        of_row[r] += p * Fraction(float(x))
    mean = sum(chance * Fraction(float(each)) for (*_, chance), each in zip(runs, total, strict=True))
    visited = [sum(chance * int(n) for (*_, chance), n in zip(runs, each, strict=True)) for each in visits.T]
    return mean - sum(n * each for n, each in zip(visited, of_row, strict=True))


@pytest.mark.parametrize("way", WAYS)
def test_the_mean_of_a_sum_of_scores_is_that_of_visits_times_the_mean_score_of_a_row(way):
    assert gap(scores(**way)) == 0


def test_leaving_out_a_step_for_its_outcome_is_found():
    def mistaken(made, steps, n_runs):
        total, visits = made.sums(steps, n_runs)
        return np.minimum(total, 0.6), visits  # stops after the outcome that was too much

    assert gap(scores(), mistaken) != 0


@pytest.mark.parametrize("end", [4, 30])
def test_the_first_runs_alone_choose_the_scores(end, monkeypatch):
    """Whatever comes later, also if there are more or fewer runs than were planned."""
    made, runs = [], list(all_runs(TRUTH, STEPS))
    sums = control._Scores.sums
    monkeypatch.setattr(control._Scores, "sums", lambda self, *args: made.append(self) or sums(self, *args))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        later = [runs[i] for i in rng.integers(len(runs), size=end)]
        difference_by_runs(chain(STEPS), *as_data([*runs[:5], *later], STEPS), 0.1, 40.0)
    first, *others = made[1::2]  # each of which is used after the pilot has been looked at
    for other in others:
        assert (other.score == first.score).all()
        assert (other.most == first.most).all()
        assert other.within == first.within


def expectation(monkeypatch, *, tilt=True, n_steps=2, n_runs=3):
    """Return the exact mean of what both sides' tilted bets win over all data of some runs, one of them the pilot."""
    seen, make, means, table = {}, tilted.tilted_stages, {-1: Fraction(0), 1: Fraction(0)}, chain(n_steps)

    def captured(shape, views, moments, log_error, sign, *args):
        seen[sign] = make(shape, views, moments, log_error, sign, *args)
        return seen[sign]

    monkeypatch.setattr(tilted, "tilted_stages", captured)
    runs = list(all_runs(TRUTH, n_steps))
    for each in product(runs, repeat=n_runs):
        difference_by_runs(table, *as_data(each, n_steps), 0.5, float(n_runs))
        chance = prod((c for *_, c in each), start=Fraction(1))
        for sign, (stages, _) in seen.items():
            means[sign] += chance * prod((won(table, TRUTH, one, tilt=tilt) for one in stages), start=Fraction(1))
    return means


@pytest.mark.slow
def test_bets_on_rows_less_what_runs_settle_are_fair_with_a_pilot_of_one_run(monkeypatch):
    """All data of two or three runs: that which is taken off depends on runs that came before alone."""
    monkeypatch.setattr(control, "_OFTEN", 0.1)
    means = expectation(monkeypatch, n_runs=size(2, 3))
    assert min(means.values()) > 0.5
    assert max(means.values()) <= 1


@pytest.mark.slow
def test_a_tilt_left_out_is_found(monkeypatch):
    monkeypatch.setattr(control, "_OFTEN", 0.1)
    assert max(expectation(monkeypatch, tilt=False, n_runs=2).values()) > 1


def test_values_less_visits_that_nothing_excludes_are_in_the_bracket():
    """Rows that neither sets nor bets exclude, with any visits within their bounds."""
    tried = 0
    for seed in range(size(8, 100)):
        rng = np.random.default_rng(seed)
        table, truth = layered(rng)
        moments, rows = seen_at(table, truth, rng), row_of_place(table)
        least = rng.uniform(0.5, 2, table.n_places)[rows]
        most = least * rng.uniform(1, 1.3, table.n_places)[rows]
        at = [(least + most) / 2 for _ in moments.lengths]
        off = TakenOff(rng.normal(size=table.n_places), at, least, most)

        def stages(*args, off=off):
            return tilted_bounds(*args, off)

        found = tilted_bounds(table, moments, LOOSE, off)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("test_tilted_bets.tilted_bounds", stages)
            for p in tables_allowed(table, truth, moments, rng, LOOSE, 30):
                value, _ = value_and_visits(table, p)
                visits = np.where(rng.random(table.n_places) < 0.5, least, most)[rows]
                tried += 1
                assert found.low.value <= value - (visits * p * off.score).sum() <= found.high.value
    assert tried > 100


def test_a_bracket_of_many_runs_is_narrower_than_that_of_both_apart(monkeypatch):
    rng, n_steps = np.random.default_rng(5), 8
    runs = list(all_runs(TRUTH, n_steps))
    chance = np.array([float(c) for *_, c in runs])
    data = as_data([runs[i] for i in rng.choice(len(runs), size=600, p=chance / chance.sum())], n_steps)
    low, high = difference_by_runs(chain(n_steps), *data, 0.05, 600.0)
    assert low <= true_difference(chain(n_steps), TRUTH, n_steps) <= high
    monkeypatch.setattr(control, "_SETTLED", 0.0)
    least, most = difference_by_runs(chain(n_steps), *data, 0.05, 600.0)
    assert high - low < 0.9 * (most - least)

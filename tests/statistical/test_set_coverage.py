"""Likelihood sets and half-spaces miss the true point at most as often as they say, and mutants of them more often.

Refuted is what misses in so many repetitions that this has a probability of at most 1 %. Seeds are fixed, so that a
test passes always or never. ``studies/set_coverage.py`` has more repetitions and more models.
"""

from dataclasses import replace
from functools import cache
from math import log

import coin_ends
import numpy as np
import pytest
from constraints import likelihood_of
from coverage_game import (
    ERROR,
    ERRORS,
    Sizes,
    critical_value,
    evidence_above_truth,
    gains,
    judge,
    make_plan,
    play,
    prepare,
    upper_evidence,
)
from coverage_mutants import bets_from_main_data, prior_from_main_data
from tiers import size

import plumdp as pl
from plumdp.confidence import estimates, evidence, likelihood
from plumdp.confidence.bets import Direction, half_space
from plumdp.confidence.evidence import log_evidence
from plumdp.data.counts import N_PILOTS
from plumdp.data.pilots import moments_of, open_pilot, pilot_size
from plumdp.data.seen import Seen
from studies.layered import layered_model

pytestmark = pytest.mark.slow

STUDIES = ["engagement:20", "glider:11,9", "rover:10,10", "parallel:5", "betting:25", "aircraft:20,10"]
LAYERED = ["mixture 8", "sparse 8", "bilinear 8", "sparse 20"]
N_PLAYED, N_COINS = 60, size(100, 300)


@cache
def played(name):
    """Return a game and its repetitions."""
    if ":" in name:
        game = prepare(pl.case_study(name), n_runs=1000)
    else:
        kind, d = name.split()
        game = prepare(
            layered_model(kind, int(d), n_rows=30, n_layers=8, width=12), Sizes(200, 20, 100, 5), n_runs=1000
        )
    return game, play(game, N_PLAYED, np.random.default_rng(1))


@pytest.mark.parametrize("name", STUDIES + LAYERED)
def test_no_set_misses_the_true_point_too_often(name):
    found = judge(*played(name))
    for kind, missed in found.ever.items():
        assert missed.sum() < critical_value(N_PLAYED, ERRORS[kind]), kind


@pytest.mark.parametrize("name", [*STUDIES, "sparse 8"])
def test_half_spaces_exclude_the_true_point_only_where_the_process_does(name):
    """And they do where the tangent is taken at the true point, up to rounding."""
    game, data = played(name)
    until = data.until(np.arange(game.sizes.batches))
    for plan, seen in list(zip(data.plans, until, strict=True))[:4]:
        for factors in plan.factors(game.table, ERROR):
            process = seen @ gains(game, factors)
            for at, won in zip(seen[::3], process[::3], strict=True):
                for near, is_tight in ((game.truth, True), (game.table.middle, False)):
                    found = half_space(game.table, at, factors, near=near, error=ERROR / 2)
                    is_out = found.row @ game.truth > found.offset
                    assert not is_out or won > log(2 / ERROR) - 1e-6
                    assert is_out or not is_tight or won < log(2 / ERROR) + 1e-6


@pytest.mark.parametrize("name", ["engagement:20", "aircraft:20,10", "sparse 20"])
def test_evidence_is_below_an_upper_bound_by_another_method(name):
    """The count of misses skips evidence where this bound says that it is too small; it must not skip too much."""
    game, data = played(name)
    seen = data.until(game.sizes.looks)[:8, -1]
    laws = [plan.law for plan in data.plans[:8]]
    upper = upper_evidence(game, seen, laws)
    lower = np.array([log_evidence(game.table, row, *law) for row, law in zip(seen, laws, strict=True)])
    assert (lower <= upper + 1e-9).all()
    assert np.median(upper - lower) < 1 + 0.6 * game.table.basis.shape[1]


@pytest.mark.parametrize("name", ["engagement:20", "betting:25"])
def test_what_is_counted_is_what_likelihood_set_uses(name):
    game, _ = played(name)
    study = pl.case_study(name)
    counts = pl.simulate(study.model, study.true_point, 660, rng=5, max_steps=study.max_steps)
    counts = replace(counts, contexts=())  # the game has no tests of memory, which would have a share of the error
    found = likelihood.likelihood_set(
        study.model, counts, error=0.925 * ERROR, directions=lambda point: [Direction(game.gradient(point))]
    )
    plan, seen = make_plan(game, game.table.pool(counts.pilot.counts)), game.table.pool(counts.main)
    likely = likelihood_of(found)
    assert likely.outcome_counts.tolist() == seen.tolist()
    assert likely.threshold == pytest.approx(log_evidence(game.table, seen, *plan.law) + log(0.1 * ERROR), abs=1e-6)


# What must be found


@pytest.mark.parametrize("name", ["engagement:20", "sparse 8", "betting:25"])
def test_ten_times_the_error_is_found(name):
    game, data = played(name)
    factors = np.array([plan.factors(game.table, 10 * ERROR) for plan in data.plans])
    process = np.cumsum(np.einsum("rsj,rbj->rbs", gains(game, factors), data.batches), axis=1)
    missed = (process >= -log(5 * ERROR)).any(axis=(1, 2))
    assert missed.sum() >= critical_value(N_PLAYED, ERROR)


@pytest.mark.parametrize("name", ["sparse 8", "mixture 8"])
def test_bets_from_the_main_data_are_found(name):
    """Estimate, information and direction are taken from what judges the bets."""
    assert bets_from_main_data(*played(name)).sum() >= critical_value(N_PLAYED, ERROR)


def test_a_prior_from_the_main_data_is_found():
    assert prior_from_main_data(*played("sparse 20")).sum() >= critical_value(N_PLAYED, ERROR)


def test_evidence_that_forgets_outcomes_never_seen_is_found(monkeypatch):
    """With chances of one in a thousand; without the check, probabilities of what was never seen become negative."""
    game = prepare(layered_model("rare", 4, n_rows=30, n_layers=8, width=12), Sizes(60, 5, 20, 5), n_runs=1000)
    data = play(game, 30, np.random.default_rng(2))
    seen = data.until(game.sizes.looks)[:, 0] + data.pilots()
    laws = [game.space] * len(seen)
    assert ((seen == 0) & estimates.is_in_seen_group(game.table, seen[0])).any()
    with_check, _ = evidence_above_truth(game, seen, laws)
    assert (with_check > -log(ERROR)).sum() < critical_value(len(seen), ERROR)
    for module in (evidence, estimates):
        monkeypatch.setattr(module, "is_in_seen_group", lambda table, seen: seen > 0)
    without, _ = evidence_above_truth(game, seen, laws)
    assert (without > -log(ERROR)).sum() >= critical_value(len(seen), ERROR)


# Pilots of one coin, whose throws end at the worst moment


def coin_misses(rule, chance):
    rate = coin_ends.miss_rate(rule, chance, error=ERROR, n_repetitions=N_COINS, n_ends=100)
    return round(rate * N_COINS)


@pytest.mark.parametrize("chance", [0.5, 0.1])
@pytest.mark.parametrize("name", ["1,000 throws, planned", "20 throws, planned", "powers of four with weights"])
def test_pilots_that_are_planned_or_powers_of_four_with_weights_are_accepted(name, chance):
    assert coin_misses(coin_ends.RULES[name], chance) < critical_value(N_COINS, ERROR)


@pytest.mark.parametrize(
    "name", ["the first tenth", "the first twentieth", "the last tenth", "many powers without weights"]
)
def test_pilots_that_depend_on_an_end_which_was_chosen_are_found(name):
    assert coin_misses(coin_ends.RULES[name], 0.5) >= critical_value(N_COINS, ERROR)


def test_coins_are_excluded_by_half_spaces_where_their_process_says_so():
    rng = np.random.default_rng(3)
    heads, pilots = rng.binomial(900, 0.5, 60) + rng.integers(-60, 60, 60), rng.binomial(100, 0.5, 60)
    found = coin_ends.excluded(pilots, 100, heads, 900, 0.5, ERROR, 9.0)
    assert 0 < found.sum() < 60
    for pilot, k, is_out in zip(pilots.tolist(), heads.tolist(), found.tolist(), strict=True):
        assert coin_ends.excluded_by_half_spaces(pilot, 100, k, 900, 0.5, ERROR, 9.0) == is_out


def test_the_same_number_of_throws_gives_the_size_that_the_package_takes():
    for n in [0, 127, 128, 511, 512, 5000, 10**6, 2**62]:
        assert pilot_size(n) == coin_ends.largest_power(n, n_powers=N_PILOTS)


def test_all_pilots_that_data_may_end_with_have_the_whole_error_together():
    nothing = Seen.nothing(2)
    sizes = {pilot_size(n): open_pilot([nothing] * len(moments_of(n)), n, nothing).weight for n in 2 ** np.arange(40)}
    assert sum(weight for size, weight in sizes.items() if size) == pytest.approx(1)


# One coin, exactly


def is_in_set_of_coin(heads, n, chance):
    """Return whether the likelihood set against the unit interval has the true chance."""
    seen = np.empty(2)
    seen[coin_ends.HEADS], seen[coin_ends.TAILS] = heads, n - heads
    likelihood = heads * log(chance) + (n - heads) * log(1 - chance)
    return likelihood >= log_evidence(coin_ends.COIN, seen, np.array([0.5]), np.array([[12.0]])) + log(ERROR)


def ends_of_set(chance, n, least, most):
    """Return the least and the largest number of heads after n throws at which the set has the true chance.

    The search starts from those after one throw less; accepted numbers are an interval.
    """
    most += 1
    while least > 0 and is_in_set_of_coin(least - 1, n, chance):
        least -= 1
    while not is_in_set_of_coin(least, n, chance):
        least += 1
    while most < n and is_in_set_of_coin(most + 1, n, chance):
        most += 1
    while not is_in_set_of_coin(most, n, chance):
        most -= 1
    return least, most


def test_the_likelihood_set_of_a_coin_without_pilot_ever_misses_with_at_most_its_error():
    """By dynamic programming over all throws of a coin with the chance 1/5, looked at after each."""
    chance, n_throws, missed = 0.2, size(80, 200), 0.0
    alive, heads = np.zeros(n_throws + 2), np.arange(n_throws + 2)
    alive[0], least, most = 1, 0, 0
    for n in range(1, n_throws + 1):
        alive[1:], alive[0] = chance * alive[:-1] + (1 - chance) * alive[1:], (1 - chance) * alive[0]
        least, most = ends_of_set(chance, n, least, most)
        is_out = (heads < least) | (heads > most)
        missed += alive[is_out].sum()
        alive[is_out] = 0
    assert ERROR / 50 <= missed <= ERROR

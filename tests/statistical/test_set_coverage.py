"""Likelihood sets and half-spaces miss the true point at most as often as they say, and mutants of them more often.

Refuted is what misses in so many repetitions that this has a probability of at most 1 %. Seeds are fixed, so that a
test passes always or never. ``studies/set_coverage.py`` has more repetitions and more models.
"""

from collections.abc import Callable
from functools import cache
from math import log
from typing import NamedTuple

import numpy as np
import pytest
from bet_tables import place_bets
from constraints import likelihood_of
from coverage_game import (
    ERROR,
    ERRORS,
    Game,
    Plan,
    Played,
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
from row_models import row_model
from tiers import size

import plumdp as pl
from plumdp.confidence import estimates, evidence, likelihood
from plumdp.confidence.bets import Direction, half_space
from plumdp.confidence.estimates import SPACE_AS_DATA, estimate_inside, information, law_of_pilot
from plumdp.confidence.evidence import log_evidence
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.data.counts import N_PILOTS
from plumdp.data.pilots import moments_of, open_pilot, pilot_size
from plumdp.data.seen import Seen
from studies.layered import layered_model

(p,) = pl.parameters("p")
COIN = likelihood_table(row_model([[p, 1 - p]], pl.ParameterSpace.unit("p")))
HEADS, TAILS = COIN.outcomes.index(p), COIN.outcomes.index(1 - p)


class Rule(NamedTuple):
    """How many throws are the pilot of an end n, and the share of the error that its bets may use."""

    size: Callable[[int], int]
    weight: Callable[[int], float] = lambda n: 1.0
    ratio: float = 9.0  # of main to pilot data, as planned
    is_last: bool = False  # the pilot is taken from the end


def largest_power(n: int, *, n_powers: int = 6) -> int:
    """Return the largest of 16, 64, 256, …, so many of them, that is at most an eighth of n; zero if there is none."""
    return max((size for size in (16 * 4**i for i in range(n_powers)) if 8 * size <= n), default=0)


RULES = {
    "1,000 throws, planned": Rule(lambda n: 1000 if n > 1000 else 0),
    "20 throws, planned": Rule(lambda n: 20),
    "powers of four with weights": Rule(largest_power, lambda n: 1 / 6, 16.0),
    "many powers without weights": Rule(lambda n: 2 ** (n // 10).bit_length() // 2, ratio=13.0),
    "the first tenth": Rule(lambda n: n // 10),
    "the first twentieth": Rule(lambda n: n // 20, ratio=19.0),
    "the last tenth": Rule(lambda n: n // 10, is_last=True),
}


def ends(n_ends: int, first: int = 40, last: int = 200_000) -> np.ndarray:
    """Return different numbers of throws, about evenly spaced in their logarithms."""
    return np.unique(np.geomspace(first, last, n_ends).round().astype(np.int64))


def miss_rate(rule: Rule, chance: float, *, error: float, n_repetitions: int, n_ends: int, seed: int = 1) -> float:
    """Return the share of repetitions in which some end, with the pilot of that end, excludes the true chance."""
    rng = np.random.default_rng(seed)
    stops = ends(n_ends)
    sizes = np.array([rule.size(n) for n in stops.tolist()])
    cuts = stops - sizes if rule.is_last else sizes
    times = np.unique(np.concatenate([stops, cuts]))
    heads = np.cumsum(rng.binomial(np.diff(times, prepend=0), chance, (n_repetitions, len(times))), axis=1)
    missed = np.zeros(n_repetitions, dtype=bool)
    for n, of_pilot, cut in zip(stops.tolist(), sizes.tolist(), cuts.tolist(), strict=True):
        if 0 < of_pilot < n:
            until_cut, all_heads = (heads[:, np.searchsorted(times, t)] for t in (cut, n))
            pilot = all_heads - until_cut if rule.is_last else until_cut
            missed |= excluded(
                pilot, of_pilot, all_heads - pilot, n - of_pilot, chance, rule.weight(n) * error, rule.ratio
            )
    return float(missed.mean())


def excluded(pilot, size, heads, n, chance, error, ratio) -> np.ndarray:
    """Return where the bets of pilots (heads of size) exclude the chance, given the main data (heads of n)."""
    different, which = np.unique(pilot, return_inverse=True)
    found = np.zeros(len(pilot), dtype=bool)
    for side in (1, -1):
        factors = np.array([bets(k, size, error / 2, side, ratio) for k in different.tolist()])
        u, mean = np.log(factors), chance * factors[:, HEADS] + (1 - chance) * factors[:, TAILS]
        process = heads * u[which, HEADS] + (n - heads) * u[which, TAILS] - n * np.log(mean)[which]
        found |= process >= -log(error / 2)
    return found


def bets(heads: int, size: int, error: float, side: int, ratio: float) -> np.ndarray:
    """Return the factors (2) that a pilot of so many throws places; its estimate counts one more of each side."""
    point, seen = np.array([(heads + 1) / (size + 2)]), np.empty(2)
    seen[HEADS], seen[TAILS] = heads + 1, size - heads + 1
    return place_bets(COIN, point, ratio * information(COIN, seen, point), np.ones(1), error=error, side=side)


def excluded_by_half_spaces(pilot, size, heads, n, chance, error, ratio) -> bool:
    """Return what ``excluded`` does for one repetition, from half-spaces with tangents at the true chance."""
    seen = np.empty(2)
    seen[HEADS], seen[TAILS] = heads, n - heads
    for side in (1, -1):
        factors = bets(pilot, size, error / 2, side, ratio)
        found = half_space(COIN, seen, factors, near=np.array([chance]), error=error / 2)
        if found.row[0] * chance > found.offset:
            return True
    return False


def bets_from_main_data(game: Game, played: Played, *, in_hindsight: bool = True) -> np.ndarray:
    """Return the misses of bets whose estimate, information and direction are taken from the data that judge them.

    In hindsight, the direction is that in which the main data have moved away from the truth; otherwise it is the
    gradient of the value at the estimate of the main data.
    """
    table, missed = game.table, np.zeros(len(played.plans), dtype=bool)
    for seen in played.until(game.sizes.looks).swapaxes(0, 1):
        factors = []
        for row in seen:
            point, _ = estimate_inside(table, row, prior=game.space)
            matrix = information(table, row, point) + SPACE_AS_DATA * game.space.precision
            gradient = matrix @ (point - game.truth) if in_hindsight else game.gradient(point)
            factors.append(Plan(row, (point, matrix), matrix, gradient).factors(table, ERROR))
        missed |= _is_missed(game, np.array(factors), seen)
    return missed


def prior_from_main_data(game: Game, played: Played) -> np.ndarray:
    """Return the misses of the likelihood at the end, against a prior that was made from the same data."""
    seen = played.until(game.sizes.looks)[:, -1]
    laws = [law_of_pilot(game.table, row, game.space) for row in seen]
    return evidence_above_truth(game, seen, laws, least=-log(ERROR))[0] > -log(ERROR)


def _is_missed(game: Game, factors: np.ndarray, seen: np.ndarray) -> np.ndarray:
    process = np.einsum("rsj,rj->rs", gains(game, factors), seen)
    return (process >= log(2 / ERROR)).any(axis=1)


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
    rate = miss_rate(rule, chance, error=ERROR, n_repetitions=N_COINS, n_ends=100)
    return round(rate * N_COINS)


@pytest.mark.parametrize("chance", [0.5, 0.1])
@pytest.mark.parametrize("name", ["1,000 throws, planned", "20 throws, planned", "powers of four with weights"])
def test_pilots_that_are_planned_or_powers_of_four_with_weights_are_accepted(name, chance):
    assert coin_misses(RULES[name], chance) < critical_value(N_COINS, ERROR)


@pytest.mark.parametrize(
    "name", ["the first tenth", "the first twentieth", "the last tenth", "many powers without weights"]
)
def test_pilots_that_depend_on_an_end_which_was_chosen_are_found(name):
    assert coin_misses(RULES[name], 0.5) >= critical_value(N_COINS, ERROR)


def test_coins_are_excluded_by_half_spaces_where_their_process_says_so():
    rng = np.random.default_rng(3)
    heads, pilots = rng.binomial(900, 0.5, 60) + rng.integers(-60, 60, 60), rng.binomial(100, 0.5, 60)
    found = excluded(pilots, 100, heads, 900, 0.5, ERROR, 9.0)
    assert 0 < found.sum() < 60
    for pilot, k, is_out in zip(pilots.tolist(), heads.tolist(), found.tolist(), strict=True):
        assert excluded_by_half_spaces(pilot, 100, k, 900, 0.5, ERROR, 9.0) == is_out


def test_the_same_number_of_throws_gives_the_size_that_the_package_takes():
    for n in [0, 127, 128, 511, 512, 5000, 10**6, 2**62]:
        assert pilot_size(n) == largest_power(n, n_powers=N_PILOTS)


def test_all_pilots_that_data_may_end_with_have_the_whole_error_together():
    nothing = Seen.nothing(2)
    sizes = {pilot_size(n): open_pilot([nothing] * len(moments_of(n)), n, nothing).weight for n in 2 ** np.arange(40)}
    assert sum(weight for size, weight in sizes.items() if size) == pytest.approx(1)


# One coin, exactly


def is_in_set_of_coin(heads, n, chance):
    """Return whether the likelihood set against the unit interval has the true chance."""
    seen = np.empty(2)
    seen[HEADS], seen[TAILS] = heads, n - heads
    likelihood = heads * log(chance) + (n - heads) * log(1 - chance)
    return likelihood >= log_evidence(COIN, seen, np.array([0.5]), np.array([[12.0]])) + log(ERROR)


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

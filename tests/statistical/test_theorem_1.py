"""Theorem 1: with probability 1 - δ the bounds hold all at once, for the data that they are said to be valid for."""

from dataclasses import replace

import numpy as np
import pytest
from repetitions import (
    CRITICAL,
    ERROR,
    REPETITIONS,
    coins,
    count_misses,
    counted_twice,
    first_visits,
    independent,
    ruin,
    stopped,
    trajectories,
)
from scipy.stats import binom

from plumdp.confidence.binomial import beta_binomial, clopper_pearson
from plumdp.confidence.bounds import expression_bounds

pytestmark = pytest.mark.slow


@pytest.fixture
def rng():
    return np.random.default_rng(2026)


def test_the_critical_value_is_that_of_a_binomial_test_at_one_in_a_million():
    assert binom.sf(CRITICAL, REPETITIONS, ERROR) <= 1e-6 < binom.sf(CRITICAL - 1, REPETITIONS, ERROR)


def test_independent_samples(rng):
    model = coins()
    missed = count_misses(model, independent(model, 300, rng))
    assert missed <= CRITICAL


def test_runs_of_a_gambler_who_stops_when_ruined_or_rich(rng):
    model = ruin(clock=False)
    assert count_misses(model, trajectories(model, 30, 40, rng)) <= CRITICAL


def test_runs_that_try_each_event_at_most_once(rng):
    model = ruin(clock=True)
    data = list(trajectories(model, 100, 8, rng))
    assert expression_bounds(model, data[0]).method == "Clopper–Pearson"
    assert count_misses(model, data) <= CRITICAL


def test_first_visits_of_runs(rng):
    model = ruin(clock=False)
    data = list(first_visits(model, 100, 40, rng))
    assert expression_bounds(model, data[0]).method == "Clopper–Pearson"
    assert count_misses(model, data) <= CRITICAL


@pytest.mark.parametrize("adversary", [beta_binomial, clopper_pearson])
def test_data_of_an_opponent_who_stops_when_it_is_bad_for_us(adversary, rng):
    model = coins()
    assert count_misses(model, stopped(model, adversary, 150, rng)) <= CRITICAL


def test_clopper_pearson_fails_against_an_opponent_who_stops(rng):
    model = coins()
    data = (replace(counts, sampling="independent") for counts in stopped(model, clopper_pearson, 150, rng))
    assert count_misses(model, data) > CRITICAL


def test_counting_complements_twice_fails(rng):
    model = coins()
    assert count_misses(model, independent(model, 300, rng), tamper=counted_twice) > CRITICAL


def test_ten_times_the_error_fails(rng):
    model = coins()
    assert count_misses(model, independent(model, 300, rng), error=0.999) > CRITICAL

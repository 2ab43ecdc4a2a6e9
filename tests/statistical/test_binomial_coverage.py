"""How often an interval misses the true probability, calculated exactly: no randomness."""

import numpy as np
import pandas as pd
import pytest
from coin_model import COIN
from scipy.stats import binom
from tiers import size

import plumdp as pl
from plumdp.confidence.binomial import beta_binomial, clopper_pearson
from plumdp.confidence.bounds import expression_bounds

pytestmark = pytest.mark.slow

PROBABILITIES = [1e-3, 0.02, 0.2, 0.5, 0.77, 0.999]


def misses(method, n, probabilities, error):
    """Return for each p the probability that the interval of n trials misses it: of all counts whose interval does."""
    k = np.arange(n + 1)
    lower, upper = method(k, n, error)
    return np.array([binom.pmf(k, n, p)[(p < lower) | (upper < p)].sum() for p in probabilities])


def ever_misses(method, n, probabilities, error):
    """Return for each p the probability that one of the intervals after 1, 2, … n trials misses it.

    By dynamic programming: carried along is the distribution of successes of the runs that have not missed so far.
    """
    trials = np.repeat(np.arange(1, n + 1), np.arange(2, n + 2))
    successes = np.concatenate([np.arange(m + 1) for m in range(1, n + 1)])
    lower, upper = method(successes, trials, error)
    p = np.array(probabilities)[:, None]
    alive, missed, start = np.ones((len(p), 1)), np.zeros(len(p)), 0
    for m in range(1, n + 1):
        step = np.pad(alive * (1 - p), ((0, 0), (0, 1))) + np.pad(alive * p, ((0, 0), (1, 0)))
        is_hit = (lower[start : start + m + 1] <= p) & (p <= upper[start : start + m + 1])
        missed += np.where(is_hit, 0, step).sum(axis=1)
        alive, start = np.where(is_hit, step, 0), start + m + 1
    return missed


@pytest.mark.parametrize("method", [clopper_pearson, beta_binomial])
@pytest.mark.parametrize("error", [0.1, 1e-3, 1e-6])
def test_after_a_fixed_number_of_trials_an_interval_misses_with_at_most_its_error(method, error):
    for n in (1, 2, 5, 10, 50, 200, *size((1000,), (1000, 5000))):
        assert (misses(method, n, PROBABILITIES, error) <= error).all()


@pytest.mark.night
@pytest.mark.parametrize("error", [0.1, 1e-3, 1e-6])
def test_clopper_pearson_spends_most_of_its_error(error):
    assert misses(clopper_pearson, 5000, [0.5], error) >= 0.8 * error


@pytest.mark.parametrize("error", [0.1, 1e-3, 1e-6])
def test_the_anytime_interval_ever_misses_with_at_most_its_error(error):
    ever = ever_misses(beta_binomial, size(400, 1200), [0.5, 0.2, 0.02], error)
    assert (ever <= error).all()
    assert ever[0] >= 0.2 * error  # neither is it too wide


def test_other_intervals_miss_at_some_time_more_often():
    """The check can fail: an interval for a fixed number of trials is no anytime interval."""
    assert ever_misses(clopper_pearson, 150, [0.5], 1e-3) > 1.5e-3


# a coin, and someone who looks at the certificate after every run until it is false


def interval_from_a_log(**claim):
    """Return the interval for p that ``learn`` draws around a log with so many heads and throws, as a method."""

    def method(heads, throws, error):
        ends = np.array([_box(int(k), int(n), error, claim) for k, n in zip(heads, throws, strict=True)])
        return ends[:, 0], ends[:, 1]

    return method


def _box(heads, throws, error, claim):
    rows = pd.DataFrame({"x": 0, "action": "go", "next_x": [1, 2], "n": [heads, throws - heads]})
    bounds = expression_bounds(COIN, pl.read_log(COIN, rows, **claim).counts, error=error)
    return float(bounds.event_lower[0]), float(bounds.event_upper[0])


@pytest.mark.night
def test_whoever_looks_after_every_run_is_rarely_deceived_by_what_is_read_by_default():
    """Up to 12 runs, with a confidence of 0.9; to claim that the number of runs was fixed beforehand would be false."""
    assert ever_misses(interval_from_a_log(), 12, [0.5], 0.1) <= 0.1
    assert ever_misses(interval_from_a_log(sampling="trajectories"), 12, [0.5], 0.1) > 0.1


@pytest.mark.parametrize("probability", [0.5, 0.3])
def test_what_a_log_claims_decides_which_of_two_intervals_it_gets_and_one_of_them_deceives(probability):
    """The same for hundreds of looks, with the two intervals themselves, where 0.1 is allowed."""
    for heads, throws in ((0, 1), (3, 7), (60, 100), (200, 200)):
        assert _box(heads, throws, 0.1, {}) == pytest.approx([float(end) for end in beta_binomial(heads, throws, 0.1)])
        claimed = _box(heads, throws, 0.1, {"sampling": "trajectories"})
        assert claimed == pytest.approx([float(end) for end in clopper_pearson(heads, throws, 0.1)])
    assert ever_misses(beta_binomial, size(200, 400), [probability], 0.1) <= 0.1
    assert ever_misses(clopper_pearson, size(200, 400), [probability], 0.1) > 0.4

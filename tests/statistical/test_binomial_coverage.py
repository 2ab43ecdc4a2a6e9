"""How often an interval misses the true probability, calculated exactly: no randomness."""

import numpy as np
import pytest
from scipy.stats import binom

from plumdp.confidence.binomial import beta_binomial, clopper_pearson, hoeffding

PROBABILITIES = [1e-3, 0.02, 0.2, 0.5, 0.77, 0.999]


def misses(method, n, p, error):
    """Return the probability that the interval of n trials misses p: the sum over all counts whose interval does."""
    k = np.arange(n + 1)
    lower, upper = method(k, n, error)
    return binom.pmf(k, n, p)[(p < lower) | (upper < p)].sum()


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


@pytest.mark.parametrize("method", [clopper_pearson, hoeffding, beta_binomial])
@pytest.mark.parametrize("error", [0.1, 1e-3, 1e-6])
def test_after_a_fixed_number_of_trials_an_interval_misses_with_at_most_its_error(method, error):
    for n in (1, 2, 5, 10, 50, 200, 1000, 5000):
        for p in PROBABILITIES:
            assert misses(method, n, p, error) <= error


@pytest.mark.parametrize("error", [0.1, 1e-3, 1e-6])
def test_clopper_pearson_spends_most_of_its_error(error):
    assert misses(clopper_pearson, 5000, 0.5, error) >= 0.8 * error


@pytest.mark.parametrize("error", [0.1, 1e-3, 1e-6])
def test_the_anytime_interval_ever_misses_with_at_most_its_error(error):
    ever = ever_misses(beta_binomial, 1200, [0.5, 0.2, 0.02], error)
    assert (ever <= error).all()
    assert ever[0] >= 0.2 * error  # neither is it too wide


@pytest.mark.parametrize("method", [clopper_pearson, hoeffding])
def test_other_intervals_miss_at_some_time_more_often(method):
    """The check can fail: an interval for a fixed number of trials is no anytime interval."""
    assert ever_misses(method, 500, [0.5], 1e-3) > 1.5e-3

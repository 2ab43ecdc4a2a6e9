"""The mean of rewards of any law lies in the set at all times, but for the error, against who stops at the worst.

Laws are a coin, values at three points, one that seldom pays much, and one that varies little. The adversary looks at
32 to 256 values.
"""

import numpy as np
import pytest
from constraints import half_spaces_of, likelihood_of
from evidence import until_refuted
from paid_models import counts_of, one_payment
from tiers import size

from plumdp.confidence.bets import Direction
from plumdp.confidence.likelihood import likelihood_set
from plumdp.confidence.reward_coins import Pooled, RewardCoins
from plumdp.confidence.sets import ModelCache

pytestmark = pytest.mark.slow
ERROR, REPETITIONS = 0.1, size(30, 2000)
MODEL = one_payment()
CACHE = ModelCache(MODEL)
LAWS = [
    ((0.0, 1.0), (0.5, 0.5)),
    ((0.0, 0.5, 1.0), (0.3, 0.4, 0.3)),
    ((0.1, 1.0), (0.97, 0.03)),
    ((0.4, 0.5, 0.6), (0.25, 0.5, 0.25)),
]


def is_missed(mean, values):
    """Return whether the mean is not a point of the set."""
    counts = counts_of(MODEL, values, expected=256)
    directions = [Direction(np.ones(1))]
    found = likelihood_set(MODEL, counts, error=ERROR, directions=lambda _: directions, cache=CACHE)
    likely, sides = likelihood_of(found), half_spaces_of(found)
    likelihood = likely.outcome_counts @ np.log(likely.table.values(np.array([mean]))[0])
    return likelihood < likely.threshold or (sides.rows @ np.array([mean]) > sides.offsets).any()


def misses(seed):
    """Return whether the mean is outside of the set at some time at which the adversary looks."""
    values, shares = LAWS[seed % len(LAWS)]
    drawn = np.random.default_rng(seed).choice(values, 256, p=shares)
    return any(is_missed(float(np.dot(values, shares)), drawn[:n]) for n in (32, 64, 128, 256))


def test_means_are_missed_seldom_enough():
    assert not until_refuted(map(misses, range(REPETITIONS)), rate=ERROR).is_refuted


def test_values_that_count_ten_times_are_found(monkeypatch):
    shown = RewardCoins.shown
    monkeypatch.setattr(RewardCoins, "shown", lambda *args: Pooled(*(10 * each for each in shown(*args))))
    assert until_refuted(map(misses, range(REPETITIONS)), rate=ERROR).is_refuted

"""Tests of proposed ties and of memory reject what holds at most as often as they say, and find what does not.

Whoever looks three times, and stops at the least p-value, is allowed for. That the evidence is fair is calculated in
``unit/test_proposed_ties.py``, where errors are planted as well.
"""

import numpy as np
import pytest
from evidence import until_refuted
from proposed_ties import counts_of_runs, play, runs_of, walk
from tiers import size

from plumdp.fit.proposed import memory_test, tie_tests

pytestmark = pytest.mark.slow

ERROR, LOOKS, MANY = 0.05, (5, 15, 40), (200,)  # runs of 60 steps
TIES = ["x", "light", "walk = run"]
MODEL = walk()


def first_runs(runs, n):
    length = int(runs.first[1])
    return runs_of(runs.state.reshape(-1, length)[:n], runs.action.reshape(-1, length)[:n])


def least(seed, looks=LOOKS, **violation):
    """Return the least p-value of each test over all looks at one sample."""
    runs = play(MODEL, np.random.default_rng(seed), max(looks), **violation)
    looked = [first_runs(runs, n) for n in looks]
    tests = [(*tie_tests(MODEL.graph, counts_of_runs(MODEL, part), TIES), memory_test(MODEL, part)) for part in looked]
    return np.min([[test.p_value for test in each] for each in tests], axis=0)


def test_what_holds_is_rejected_no_more_often_than_said():
    p_values = np.array([least(seed) for seed in range(size(40, 2000))])
    for each in p_values.T:
        assert not until_refuted(each <= ERROR, rate=ERROR).is_refuted


@pytest.mark.parametrize(
    ("violation", "which"),
    [({"by_light": 0.15}, 1), ({"by_action": 0.15}, 2), ({"by_past": 0.25}, 3)],
    ids=["light", "actions", "memory"],
)
def test_what_does_not_hold_is_found_and_nothing_else(violation, which):
    """In 12,000 steps a chance of a quarter that becomes 0.4, or a half, is found in most samples."""
    p_values = np.array([least(seed, MANY, **violation) for seed in range(size(6, 200))])
    is_found = p_values <= ERROR
    assert is_found[:, which].mean() >= 0.75
    assert not np.delete(is_found, which, axis=1).any()

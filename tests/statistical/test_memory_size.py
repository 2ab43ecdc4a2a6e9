"""The test of memory rejects what holds at most as often as it says, and finds what does not.

Whoever looks three times, and stops at the least p-value, is allowed for. That the evidence is fair is calculated in
``unit/test_memory_test.py``, where errors are planted as well.
"""

import numpy as np
import pytest
from evidence import until_refuted
from mindful_walk import play, runs_of, walk
from tiers import size

from plumdp.fit.memory import memory_test

pytestmark = pytest.mark.slow

ERROR, LOOKS, MANY = 0.05, (5, 15, 40), (200,)  # runs of 60 steps
MODEL = walk()


def first_runs(runs, n):
    length = int(runs.first[1])
    return runs_of(runs.state.reshape(-1, length)[:n], runs.action.reshape(-1, length)[:n])


def least(seed, looks=LOOKS, **violation):
    """Return the least p-value over all looks at one sample."""
    runs = play(MODEL, np.random.default_rng(seed), max(looks), **violation)
    return min(memory_test(MODEL, first_runs(runs, n)).p_value for n in looks)


def test_what_holds_is_rejected_no_more_often_than_said():
    p_values = np.array([least(seed) for seed in range(size(40, 2000))])
    assert not until_refuted(p_values <= ERROR, rate=ERROR).is_refuted


@pytest.mark.parametrize(
    ("violation", "is_memory"),
    [({"by_light": 0.15}, False), ({"by_action": 0.15}, False), ({"by_past": 0.25}, True)],
    ids=["light", "actions", "memory"],
)
def test_memory_is_found_and_nothing_else(violation, is_memory):
    """In 12,000 steps a chance of a quarter that becomes a half is found in most samples."""
    is_found = np.array([least(seed, MANY, **violation) for seed in range(size(6, 200))]) <= ERROR
    assert is_found.mean() >= 0.75 if is_memory else not is_found.any()

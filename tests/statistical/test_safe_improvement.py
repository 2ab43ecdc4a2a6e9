"""A policy that ``improve`` returns is worse than the baseline in at most a tenth of all repetitions at the error 0.1.

All coins but those of the baseline are a little worse than fair. So whatever is returned in place of the baseline is
worse. A rule that goes by estimates returns one nearly always.
"""

import numpy as np
import pytest
from arms import WINS, chances, row_of_arms
from evidence import until_refuted
from shorthand import improve
from tiers import size

import plumdp as pl

pytestmark = pytest.mark.night  # verdicts by estimates are found by unit/test_difference_verdicts
ERROR, REPETITIONS, N = 0.1, size(12, 500), 4
WORSE = chances(N, **{f"b{i}": 0.5 - 1e-9 for i in range(N)})


def is_worse(seed):
    """Return whether the policy that is returned throws a coin which is worse than that of the baseline."""
    n_runs = int(np.random.default_rng(seed).choice([30, 100, 300]))
    model = row_of_arms(N)
    counts = pl.simulate(model, WORSE, n_runs, rng=seed, max_steps=N + 1)
    found = improve(model, counts, WINS, over="a", confidence=1 - ERROR)
    return not np.array_equal(found.policy.choice, pl.PolicyTable.from_actions(model.graph, "a").choice)


def test_a_policy_that_is_returned_is_seldom_worse_than_the_baseline(capsys):
    found = until_refuted(map(is_worse, range(REPETITIONS)), rate=ERROR)
    assert not found.is_refuted
    if REPETITIONS > 100:
        with capsys.disabled():
            print(f"\nworse than the baseline in {found.happened} of {found.n} repetitions")

"""A policy that ``improve`` returns is worse than the baseline in at most a tenth of all repetitions at the error 0.1.

All coins but those of the baseline are a little worse than fair. So whatever is returned in place of the baseline is
worse. A rule that goes by estimates returns one nearly always. By day, a sequential test decides after a few dozen
repetitions: the product of the likelihood ratios of the rates 0.5 and 0.1 has a mean of at most one if failures are as
rare as promised, so that it ever reaches 10^6 with a probability of at most 10^-6 (Ville).
"""

from itertools import accumulate
from math import log

import numpy as np
import pytest
from arms import WINS, chances, row_of_arms
from coverage_game import critical_value
from shorthand import improve
from tiers import size

import plumdp as pl
from plumdp.base.vocabulary import Standing
from plumdp.certifying.difference import Difference

pytestmark = pytest.mark.slow
ERROR, REPETITIONS, N = 0.1, size(16, 500), 4
WORSE = chances(N, **{f"b{i}": 0.5 - 1e-9 for i in range(N)})


def is_worse(seed):
    """Return whether the policy that is returned throws a coin which is worse than that of the baseline."""
    n_runs = int(np.random.default_rng(seed).choice([30, 100, 300]))
    model = row_of_arms(N)
    counts = pl.simulate(model, WORSE, n_runs, rng=seed, max_steps=N + 1)
    found = improve(model, counts, WINS, over="a", confidence=1 - ERROR)
    return not np.array_equal(found.policy.choice, pl.PolicyTable.from_actions(model.graph, "a").choice)


def evidence(failures, repetitions):
    """Return the logarithm of the likelihood ratio of the rates 0.5 and 0.1 to the base ten."""
    return (failures * log(0.5 / ERROR) + (repetitions - failures) * log(0.5 / (1 - ERROR))) / log(10)


def test_a_policy_that_is_returned_is_seldom_worse_than_the_baseline(capsys):
    failures = [*accumulate(is_worse(seed) for seed in range(REPETITIONS))]
    assert not any(evidence(n_worse, n) >= 6 for n, n_worse in enumerate(failures, start=1))
    assert failures[-1] < critical_value(REPETITIONS, ERROR)
    if REPETITIONS > 100:
        with capsys.disabled():
            print(f"\nworse than the baseline in {failures[-1]} of {REPETITIONS} repetitions")


def test_a_rule_that_goes_by_estimates_is_found(monkeypatch):
    """It takes the policy whose value is larger at the middle of the bounds, certified or not."""
    right = Difference.verdicts.fget

    def wrong(self):
        return (Standing.BETTER,) if self.lower + self.upper > 0 else right(self)

    monkeypatch.setattr(Difference, "verdicts", property(wrong))
    failures = accumulate(is_worse(seed) for seed in range(REPETITIONS))
    assert any(evidence(n_worse, n) >= 6 for n, n_worse in enumerate(failures, start=1))

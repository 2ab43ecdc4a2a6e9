"""Intervals of the outcomes of rows are not much wider than those of the package confseq, tuned to each sample size.

It is not among the dependencies, as it needs Boost to be built. ``benchmarks/table_steps.py`` compares steps with it.
"""

import pytest

from plumdp.confidence.binomial import beta_binomial

boundaries = pytest.importorskip("confseq.boundaries", reason="the package confseq is not installed")

SHARES = (0.01, 0.1, 0.3, 0.5)
WIDER = {20: 1.2, 300: 1.15, 5000: 1.15, 100_000: 1.25}  # the price of not knowing how many trials there will be


@pytest.mark.parametrize("error", [1e-3, 1e-6])
@pytest.mark.parametrize("trials", WIDER)
def test_intervals_are_hardly_wider_than_those_that_know_how_many_trials_there_will_be(trials, error):
    for successes in {round(share * trials) for share in SHARES}:
        lower, upper = (float(end) for end in beta_binomial(successes, trials, error))
        least, most = boundaries.bernoulli_confidence_interval(successes, trials, error, trials, error)
        assert max(lower, least) <= successes / trials <= min(upper, most)
        assert upper - lower <= WIDER[trials] * (most - least)

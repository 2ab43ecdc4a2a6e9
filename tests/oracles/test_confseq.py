"""Bounds beside those of the package confseq: intervals of outcomes, and means of runs.

It is not among the dependencies, as it needs Boost to be built. ``studies/table_steps.py`` compares steps with it.
"""

import numpy as np
import pytest

from plumdp.confidence.binomial import beta_binomial
from plumdp.confidence.bounded_means import FRACTIONS, PARTS, Tally, log_capital, mean_bounds

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


@pytest.fixture(scope="module")
def betting():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "float_", np.float64, raising=False)  # confseq 0.0.11 is older than NumPy 2
        return pytest.importorskip("confseq.betting")


@pytest.mark.parametrize("mean", [0.2, 0.25, 0.3])
def test_bets_on_a_mean_win_what_those_of_confseq_win(betting, mean):
    numbers = np.random.default_rng(1).beta(2, 5, 200)
    bets = [lambda x, m, f=f: np.full(len(x), f / m) for f in FRACTIONS]
    won = [betting.betting_mart(numbers, mean, lambdas_fn_positive=bet, theta=1, trunc_scale=1)[-1] for bet in bets]
    assert log_capital(Tally.of(numbers), mean) == pytest.approx(np.log(np.average(won, weights=PARTS)), rel=1e-9)


LAWS = {
    "coin 0.1": lambda rng, n: (rng.random(n) < 0.1).astype(float),
    "coin 0.5": lambda rng, n: (rng.random(n) < 0.5).astype(float),
    "beta(2, 5)": lambda rng, n: rng.beta(2, 5, n),
    "beta(30, 30)": lambda rng, n: rng.beta(30, 30, n),
}


@pytest.mark.parametrize(("n", "wider"), [(100, 1.3), (1000, 1.15)])
@pytest.mark.parametrize("law", LAWS)
def test_bounds_on_a_mean_are_hardly_wider_than_those_of_confseq(betting, law, n, wider):
    """Bets there follow the numbers seen so far, and depend on their order."""
    numbers = LAWS[law](np.random.default_rng(1), n)
    lower, upper = mean_bounds(Tally.of(numbers), Tally.of(numbers), 0.05)
    least, most = (ends[-1] for ends in betting.betting_cs(numbers, alpha=0.05))
    assert max(lower, least) <= numbers.mean() <= min(upper, most)
    assert upper - lower <= wider * (most - least)

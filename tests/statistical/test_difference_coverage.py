"""Differences hold for pairs that an adversary picks after looking at all data, but for the error.

In each of some states, a coin is thrown or not. The adversary, who knows the truth, compares the policy that throws
coins which were lucky with the one that throws the others, each the more often the luckier or unluckier it was. Of
all pairs, their difference is overestimated most. Bets on this pair, as if it had been pre-specified, would be placed
by the data that they are about.
"""

import numpy as np
import pytest
from constraints import half_spaces_of, likelihood_of
from evidence import until_refuted
from tiers import size

import plumdp as pl
from plumdp.confidence.bets import Direction
from plumdp.confidence.likelihood import likelihood_set
from plumdp.confidence.sets import ModelCache

pytestmark = pytest.mark.slow
ERROR, REPETITIONS, N, RUNS = 0.1, size(8, 2000), 20, 300
NAMES = [f"p{i}" for i in range(N)]
COINS = pl.parameters(*NAMES)


def row_of_coins():
    """Return a walk along states, in each of which a coin of its own may be thrown."""

    def step(state):
        if state.at == N:
            return {"stay": [(1, state)]}
        won, lost = (state._replace(at=state.at + 1, won=won) for won in (1, 0))
        return {"throw": [(COINS[state.at], won), (1 - COINS[state.at], lost)], "pass": [(1, lost)]}

    return pl.explore(step, {"at": 0, "won": 0}, space=pl.ParameterSpace.unit(*NAMES))


MODEL = row_of_coins()
CACHE = ModelCache(MODEL)


def slope_of_lucky_pair(counts):
    """Return the slope of the difference in each parameter, which is how much luckier a coin was than a fair one."""
    pooled = dict(zip(CACHE.table.outcomes, CACHE.table.pool(counts.counts), strict=True))
    return np.array([pooled[coin] / (pooled[coin] + pooled[1 - coin]) - 0.5 for coin in COINS])


def misses(seed, *, is_prespecified):
    """Return whether the set loses the truth, and with it the difference of some pair."""
    truth = np.full(N, 0.5)
    counts = pl.simulate(MODEL, dict.fromkeys(NAMES, 0.5), RUNS, rng=seed, max_steps=N + 1)
    asked = slope_of_lucky_pair(counts) if is_prespecified else np.ones(N)  # as of the policy that throws all coins
    found = likelihood_set(MODEL, counts, error=ERROR, directions=lambda _: [Direction(asked)], cache=CACHE)
    likely, sides = likelihood_of(found), half_spaces_of(found)
    likelihood = likely.outcome_counts @ np.log(likely.table.values(truth)[0])
    return likelihood < likely.threshold or (sides.rows @ truth > sides.offsets).any()


def test_a_pair_that_is_picked_after_looking_is_missed_seldom_enough():
    games = (misses(seed, is_prespecified=False) for seed in range(REPETITIONS))
    assert not until_refuted(games, rate=ERROR).is_refuted


def test_bets_on_a_pair_that_was_picked_after_looking_are_found():
    games = (misses(seed, is_prespecified=True) for seed in range(REPETITIONS))
    assert until_refuted(games, rate=ERROR).is_refuted

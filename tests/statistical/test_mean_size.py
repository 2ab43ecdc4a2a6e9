"""Bets on means of runs, on two families: how often an adversary who stops excludes the truth.

Returns of many runs are a pool; draws from it have its average as their mean, exactly.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from repetitions import CRITICAL, ERROR, REPETITIONS

import plumdp as pl
from plumdp.confidence import bounded_means
from plumdp.confidence.bounded_means import FRACTIONS, PARTS, Tally, log_capital
from plumdp.data.returns import choices_of, ends_of, reach_returns, reward_returns, taken_somewhere
from plumdp.data.trajectories import record
from plumdp.data.whole_runs import read_whole_runs
from plumdp.model.objectives import Reach
from plumdp.model.policy import policy_weights
from plumdp.model.question import as_objective

FAMILIES = {"betting:25": ('R{"money"}max=? [ F "end" ]', 150.0), "rover:4,4,2": ('Pmax=? [ F<=9 "target" ]', 1.0)}
LONGEST = 80


@cache
def pool(name):
    """Return the returns of 2,000 runs under uniform choices, between 0 and 1."""
    study = pl.case_study(name)
    (text, largest), model = FAMILIES[name], study.model
    objective = as_objective(text, model)
    policy = pl.PolicyTable(model.graph, policy_weights(model.graph, "uniform"))
    log = record(model, study.true_point, 2000, rng=1, max_steps=study.max_steps + 1, policy=policy)
    runs = read_whole_runs(model, pd.DataFrame(log.columns("trajectories")))
    ends = ends_of(objective, runs, model.graph, None)
    if isinstance(objective, Reach):
        returns = reach_returns(objective, runs, ends)
    else:
        choice = choices_of(policy.graph, policy, model, runs, ends)
        returns = reward_returns(
            objective, runs, ends, choice, model.graph, taken_somewhere(policy.graph, policy, model)
        )
    return np.clip(returns.lower / largest, 0, 1)


def stopped(draws, mean):
    """Yield the numbers seen by an adversary who stops when the bets at the true mean have won most."""
    for row in draws:
        logs = []
        for values, truth in ((row, mean), (1 - row, 1 - mean)):
            with np.errstate(divide="ignore"):
                factors = np.log([bounded_means.multiplied(f, values, truth) for f in FRACTIONS])
            logs.append(np.logaddexp.reduce(np.cumsum(factors, axis=1) + np.log(PARTS)[:, None]))
        yield Tally.of(row[: 1 + int(np.argmax(np.maximum(*logs)))])


def misses(name):
    values = pool(name)
    mean = float(values.mean())
    draws = np.random.default_rng(5).choice(values, (REPETITIONS, LONGEST))
    missed = 0
    for seen in stopped(draws, mean):
        mirrored = Tally(1 - seen.value, seen.n)
        most = max(log_capital(seen, mean), log_capital(mirrored, 1 - mean))
        missed += bool(most >= np.log(2 / ERROR))  # then the mean is outside of the bounds
    return missed


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_an_opponent_who_stops_excludes_the_truth_as_rarely_as_said(name):
    assert misses(name) <= CRITICAL


@pytest.mark.slow
def test_a_biased_bet_is_caught(monkeypatch):
    """The bet gives back half of what was lost."""
    monkeypatch.setattr(bounded_means, "multiplied", lambda f, x, m: 1 - 0.5 * f + f * (x / m))
    assert misses("rover:4,4,2") > CRITICAL

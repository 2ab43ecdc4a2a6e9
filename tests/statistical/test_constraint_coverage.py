"""A policy that is called feasible breaks its threshold in at most a tenth of all repetitions at the error 0.1.

In each of some states, one of two coins is thrown. The objective is to throw the first one, which wins less often than
is asked for; the second one wins more often. So the best policy that keeps within the threshold draws, and its value
is that of the threshold. What is called feasible is looked at with the true chances.
"""

from itertools import accumulate

import numpy as np
import pytest
from arms import WINS, chances, row_of_arms
from coverage_game import critical_value
from tiers import size

import plumdp as pl
from plumdp.decisions import certify_within
from plumdp.model.objectives import Reward
from plumdp.model.parametric import RewardStructure

pytestmark = pytest.mark.night  # wrong bounds are found by oracles/test_constraints
ERROR, REPETITIONS, N = 0.1, size(7, 500), 3
TRUTH = chances(N, **{f"b{i}": 0.8 for i in range(N)})
LEAST = 0.65 * (N - 1)  # what is won in the last state does not count
THRESHOLD = f'R{{"wins"}}>={LEAST} [ F "end" ]'


def outcome(seed):
    """Return whether a policy is called feasible, and whether it breaks the threshold at the true chances."""
    rng = np.random.default_rng(seed)
    model = row_of_arms(N)
    counts = pl.simulate(model, TRUTH, int(rng.choice([200, 1000])), rng=seed, max_steps=N + 1)
    asked = throwing_first(model)
    learned = pl.learn(model, counts, objectives=[asked, WINS], confidence=1 - ERROR)
    found = certify_within(learned, asked, subject_to=[THRESHOLD])
    at = pl.stages.instantiate(model, TRUTH)
    value = pl.stages.evaluate(at, found.policy, pl.parse_property(WINS, model)).upper[model.graph.initial_state]
    return found.is_feasible, bool(found.is_feasible and value < LEAST)


def throwing_first(model):
    """Return the objective to throw the first coins as often as possible."""
    graph = model.graph
    is_first = np.array([name == "a" for name in graph.action_names])[graph.action]
    reward = RewardStructure(None, is_first.astype(float))
    return Reward(reward, "max", target=model.labels["end"])


def test_a_policy_that_is_called_feasible_seldom_breaks_its_threshold(capsys):
    outcomes = [outcome(seed) for seed in range(REPETITIONS)]
    failures = [*accumulate(breaks for _, breaks in outcomes)]
    assert sum(is_feasible for is_feasible, _ in outcomes) > REPETITIONS / 4
    assert failures[-1] < critical_value(REPETITIONS, ERROR)
    if REPETITIONS > 100:
        with capsys.disabled():
            called = sum(is_feasible for is_feasible, _ in outcomes)
            print(f"\n{called} called feasible, {failures[-1]} wrongly, of {REPETITIONS} repetitions")

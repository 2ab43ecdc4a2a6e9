"""Greedy steps by what choices are worth find the policy with the best average in the long run, of all policies."""

from fractions import Fraction
from itertools import count

import numpy as np
import pytest
from coupled_points import rows_at
from test_constraints import all_policies
from test_long_run import exact_average, random_model, random_reward
from tiers import size

from plumdp.certifying.policy_search import worths_at
from plumdp.model.objectives import Reward

N_MODELS = size(8, 500)


def improved(model, objective, point, policy):
    """Return the policy that greedy steps end with."""
    graph = model.graph
    for _ in range(20):
        worths = worths_at(model, objective, point, policy)
        spans = zip(graph.first_choice[:-1], graph.first_choice[1:], policy, strict=True)
        best = [max(range(a, b), key=lambda c, own=own: worths[c] + 1e-9 * (c == own)) for a, b, own in spans]
        if np.array_equal(best, policy):
            break
        policy = np.array(best)
    return policy


def losses(n):
    """Yield how much less the policy of greedy steps earns than the best of all, exactly, on random models."""
    for seed in count():
        rng = np.random.default_rng([seed, 7])
        model = random_model(rng)
        objective = Reward(random_reward(rng, model.graph), str(rng.choice(["max", "min"])), average=True)
        point = rng.integers(7, 58, 2) / 64
        rows = rows_at(model, dict(zip(model.space.names, map(Fraction, point.tolist()), strict=True)))
        found = improved(model, objective, point, model.graph.first_choice[:-1])
        averages = [exact_average(model, each, objective, rows) for each in [found, *all_policies(model.graph)]]
        if None not in averages:
            yield float(max(averages) - averages[0] if objective.direction == "max" else averages[0] - min(averages))
            n -= 1
        if not n:
            return


@pytest.mark.slow
def test_greedy_steps_find_the_best_average_of_all_policies():
    assert max(losses(N_MODELS)) < 1e-9


@pytest.mark.slow
def test_steps_by_the_average_alone_are_found(monkeypatch):
    monkeypatch.setattr("plumdp.certifying.policy_search.relative_values", lambda graph, *_: np.zeros(graph.n_states))
    assert max(losses(N_MODELS)) > 1e-3

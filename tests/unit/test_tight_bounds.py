"""Bounds are as tight as rounding allows, however coarse the precision: candidates are moved by what a step misses."""

from __future__ import annotations

import numpy as np
import pytest
from random_models import model_of
from test_fronts import two_ways

import plumdp as pl
from plumdp.solver.solve import solve


def ruin(n: int, up: float) -> tuple[pl.stages.IntervalMDP, np.ndarray]:
    """Return a gambler's ruin on 0 to n: one up with a probability, else one down, until either end."""
    level = np.arange(n + 1)
    is_end = (level == 0) | (level == n)
    successor = np.where(is_end[:, None], level[:, None], np.stack([level - 1, level + 1], axis=1))
    probability = np.tile([1 - up, up], n + 1)
    mdp = pl.stages.IntervalMDP.from_arrays(
        [*level.tolist(), n + 1], 2 * np.arange(n + 2), successor.ravel(), probability, probability
    )
    return mdp, is_end


@pytest.mark.parametrize("precision", [1e-2, 1e-6])
@pytest.mark.parametrize("n", [4, 60, 500])
def test_the_duration_of_a_fair_game_is_known_to_nine_digits(n, precision):
    """By hand: k (n - k) steps from k, for a fair coin (Feller, volume 1, XIV.3)."""
    mdp, is_end = ruin(n, 0.5)
    cost = pl.model.RewardStructure((~is_end).astype(np.float64), None)
    solution = solve(mdp, pl.Reward(cost, "min", target=is_end), precision=precision)
    expected = np.arange(n + 1.0) * (n - np.arange(n + 1.0))
    assert (solution.lower <= expected).all()
    assert (solution.upper >= expected).all()
    assert (solution.upper - solution.lower <= 1e-9 * np.maximum(1, expected)).all()


def test_where_runs_are_too_long_for_floats_lower_bounds_grow_beyond_the_number_of_sweeps():
    """By hand: from 0, reflecting, to n against odds of 9 to 1 takes more than 9 ** (n - 1) steps."""
    n = 60
    level = np.arange(n + 1)
    successor = np.stack([np.maximum(level - 1, 0), np.minimum(level + 1, n)], axis=1)
    successor[n] = n
    probability = np.tile([0.9, 0.1], n + 1)
    mdp = pl.stages.IntervalMDP.from_arrays(
        np.arange(n + 2), 2 * np.arange(n + 2), successor.ravel(), probability, probability
    )
    objective = pl.Reward(pl.model.RewardStructure((level < n).astype(np.float64), None), "min", target=level == n)
    solution = solve(mdp, objective)
    assert 1e8 < solution.lower[0] < 9.0 ** (n - 1)
    assert solution.sweeps < 20_000


def test_policy_iteration_goes_on_as_long_as_it_improves():
    mdp, objective = two_ways(400, 1.0)
    solution = solve(mdp, objective, precision=1e-2)
    level = np.arange(401)
    expected = np.minimum(2.0 * level, 2.0 * (400 - level))
    assert (np.abs(solution.lower - expected) <= 1e-9 * np.maximum(1, expected)).all()
    assert (np.abs(solution.upper - expected) <= 1e-9 * np.maximum(1, expected)).all()


def test_values_that_are_equal_stay_equal_where_the_agent_may_go_round_for_nothing():
    """By hand: 7/4 for each of 20 tries of the last state; rows without reward lead from each state to the others."""
    loop = [[(1, 1.0, 1.0)]], [[(2, 0.05, 0.7), (1, 0.6, 1.0)], [(1, 0.0, 0.6875), (0, 0.0, 0.6875)]], [[(2, 1.0, 1.0)]]
    cost = pl.model.RewardStructure(None, np.array([0.0, 1.75, 0.0, 0.0]))
    solution = solve(model_of(loop), pl.Reward(cost, "min", target=np.arange(3) == 2), nature="robust")
    assert solution.status == "converged"
    assert np.abs(solution.lower - [35, 35, 0]).max() < 1e-9
    assert np.abs(solution.upper - [35, 35, 0]).max() < 1e-9

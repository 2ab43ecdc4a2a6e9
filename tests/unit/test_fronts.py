"""Long chains in which two ways out compete: policy iteration in windows finds the border between them."""

from __future__ import annotations

import numpy as np
import pytest

import plumdp as pl
from plumdp.solver import policy_iteration
from plumdp.solver.solve import solve


def two_ways(n_levels: int, up_cost: float) -> tuple[pl.stages.IntervalMDP, pl.Reward]:
    """Return a line of levels with both ends as targets: one choice steps down, for 1, the other one up.

    A step succeeds with probability 1/2 and else stays, so that it takes two tries on average.
    """
    level = np.arange(n_levels + 1)
    is_end = (level == 0) | (level == n_levels)
    n_choices = np.where(is_end, 1, 2)
    first_choice = np.concatenate([[0], np.cumsum(n_choices)])
    state = np.repeat(level, n_choices)
    is_up = np.concatenate([[False], state[1:] == state[:-1]])
    target = np.where(is_end[state], state, state + np.where(is_up, 1, -1))
    mdp = pl.stages.IntervalMDP.from_arrays(
        first_choice,
        2 * np.arange(len(state) + 1),
        np.stack([target, state], axis=1).ravel(),
        np.full(2 * len(state), 0.5),
        np.full(2 * len(state), 0.5),
    )
    cost = pl.model.RewardStructure(None, np.where(is_end[state], 0.0, np.where(is_up, up_cost, 1.0)))
    return mdp, pl.Reward(cost, "min", target=is_end)


@pytest.mark.slow
@pytest.mark.parametrize("up_cost", [0.2, 1.0, 3.0])
def test_every_level_takes_the_cheaper_way_out(up_cost):
    """By hand: two tries for each level that is left, so the cheaper of 2 k and 2 c (n - k)."""
    mdp, objective = two_ways(6000, up_cost)
    solution = solve(mdp, objective, nature="robust")
    level = np.arange(6001)
    expected = np.minimum(2.0 * level, 2.0 * up_cost * (6000 - level))
    assert solution.status == "converged"
    assert (solution.lower <= expected * (1 + 1e-9)).all()
    assert (solution.upper >= expected * (1 - 1e-9)).all()


@pytest.mark.slow
def test_a_long_chain_takes_few_solutions_of_the_whole_component(monkeypatch):
    """The published optimum of Engagement (300); without windows there are 23 solutions."""
    n_states = []
    original = policy_iteration.evaluate_moves

    def counted(component, moves):
        n_states.append(len(component))
        return original(component, moves)

    monkeypatch.setattr(policy_iteration, "evaluate_moves", counted)
    study = pl.case_study("engagement:300")
    solution = solve(pl.stages.instantiate(study.model, study.true_point), study.objective)
    start = study.model.graph.initial_state
    assert solution.lower[start] <= 42.4427700
    assert solution.upper[start] >= 42.4427698
    assert solution.status == "converged"
    assert solution.sweeps < 100
    assert len(n_states) <= 12

"""Bounds are as tight as rounding allows, however coarse the precision: candidates are moved by what a step misses."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from near_ties import misses, near_tie, policy_value
from random_models import model_of

import plumdp as pl
from plumdp.model.objectives import Reward
from plumdp.model.parametric import RewardStructure
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver import by_sweeps, policy_iteration
from plumdp.solver.solve import solve


def ruin(n: int, up: float) -> tuple[IntervalMDP, np.ndarray]:
    """Return a gambler's ruin on 0 to n: one up with a probability, else one down, until either end."""
    level = np.arange(n + 1)
    is_end = (level == 0) | (level == n)
    successor = np.where(is_end[:, None], level[:, None], np.stack([level - 1, level + 1], axis=1))
    probability = np.tile([1 - up, up], n + 1)
    mdp = IntervalMDP.from_arrays(
        [*level.tolist(), n + 1], 2 * np.arange(n + 2), successor.ravel(), probability, probability
    )
    return mdp, is_end


@pytest.mark.parametrize("precision", [1e-2, 1e-6])
@pytest.mark.parametrize("n", [4, 60, 500])
def test_the_duration_of_a_fair_game_is_known_to_nine_digits(n, precision):
    """By hand: k (n - k) steps from k, for a fair coin (Feller, volume 1, XIV.3)."""
    mdp, is_end = ruin(n, 0.5)
    cost = RewardStructure((~is_end).astype(np.float64), None)
    solution = solve(mdp, pl.model.Reward(cost, "min", target=is_end), precision=precision)
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
    mdp = IntervalMDP.from_arrays(np.arange(n + 2), 2 * np.arange(n + 2), successor.ravel(), probability, probability)
    objective = pl.model.Reward(RewardStructure((level < n).astype(np.float64), None), "min", target=level == n)
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
    cost = RewardStructure(None, np.array([0.0, 1.75, 0.0, 0.0]))
    solution = solve(model_of(loop), pl.model.Reward(cost, "min", target=np.arange(3) == 2), nature="robust")
    assert solution.status == "converged"
    assert np.abs(solution.lower - [35, 35, 0]).max() < 1e-9
    assert np.abs(solution.upper - [35, 35, 0]).max() < 1e-9


# Long chains in which two ways out compete


def two_ways(n_levels: int, up_cost: float) -> tuple[IntervalMDP, pl.model.Reward]:
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
    mdp = IntervalMDP.from_arrays(
        first_choice,
        2 * np.arange(len(state) + 1),
        np.stack([target, state], axis=1).ravel(),
        np.full(2 * len(state), 0.5),
        np.full(2 * len(state), 0.5),
    )
    cost = RewardStructure(None, np.where(is_end[state], 0.0, np.where(is_up, up_cost, 1.0)))
    return mdp, pl.model.Reward(cost, "min", target=is_end)


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


@pytest.mark.night
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


# Discounted games


SEEDS = range(60)


def discounted(seed, discount="0.99"):
    """Return a random model with intervals, a discounted objective, and what nature does."""
    imdp, objective, nature, _ = near_tie(seed, kinds=("discounted",))
    return imdp, replace(objective, discount=Fraction(discount)), nature


@pytest.mark.night
@pytest.mark.parametrize("discount", ["0.9", "0.99", "0.999"])
def test_bounds_hold_the_exact_value_of_the_policy_and_take_few_sweeps(discount):
    """Value iteration alone would take some hundred sweeps with 0.9, and some twenty thousand with 0.999."""
    for seed in SEEDS:
        imdp, objective, nature = discounted(seed, discount)
        found = pl.stages.solve(imdp, objective, nature=nature)
        assert misses(found, policy_value(imdp, objective, nature, found.policy)) == []
        assert found.status == "converged"
        assert found.sweeps <= by_sweeps._PATIENCE + by_sweeps._MANY


@pytest.mark.slow
def test_values_that_solve_no_equation_do_no_harm(monkeypatch):
    """Bounds from nonsense, and from values a little off on either side, hold all the same."""
    solved = by_sweeps._solved
    for wrong in (lambda v: 0 * v + 1e6, lambda v: v - 1e-3, lambda v: v + 1e-3, lambda v: v + np.nan):
        monkeypatch.setattr(by_sweeps, "_solved", lambda *given, wrong=wrong: wrong(solved(*given)))
        for seed in SEEDS[:20]:
            imdp, objective, nature = discounted(seed, "0.9")
            found = pl.stages.solve(imdp, objective, nature=nature)
            assert misses(found, policy_value(imdp, objective, nature, found.policy)) == []
            assert found.status == "converged"


@pytest.mark.slow
def test_bounds_meet_those_of_value_iteration_also_if_rewards_are_negative(monkeypatch):
    for seed in SEEDS[:20]:
        imdp, objective, nature = discounted(seed, "0.95")
        paid = objective.reward.choice - 2.0
        objective = Reward(RewardStructure(None, paid), objective.direction, discount=objective.discount)
        found = pl.stages.solve(imdp, objective, nature=nature)
        with monkeypatch.context() as patch:
            patch.setattr(by_sweeps, "_PATIENCE", 10**9)
            slow = pl.stages.solve(imdp, objective, nature=nature)
        assert found.sweeps < slow.sweeps
        assert (slow.lower <= found.upper).all()
        assert (found.lower <= slow.upper).all()
        assert (found.upper - found.lower <= slow.upper - slow.lower + 1e-9).all()


def test_it_ends_where_rounding_keeps_the_bounds_apart():
    imdp, objective, nature = discounted(1)
    found = pl.stages.solve(imdp, objective, nature=nature, precision=1e-18)
    assert found.sweeps < 2_000
    assert found.status.startswith("open")


@pytest.mark.night
def test_equations_whose_factorisation_fills_up_are_left_to_sweeps(monkeypatch):
    """Successors anywhere: a factorisation would have most of all entries, and take longer than all sweeps."""
    monkeypatch.setattr(by_sweeps, "solve_chain", lambda chain: pytest.fail("equations were solved"))
    rng, n = np.random.default_rng(1), 3_000
    probability = np.tile([0.5, 0.25, 0.25], n)
    imdp = IntervalMDP.from_arrays(
        np.arange(n + 1), np.arange(0, 3 * n + 1, 3), rng.integers(0, n, 3 * n), probability - 0.05, probability + 0.05
    )
    objective = pl.model.Reward(RewardStructure(rng.random(n), None), "max", discount=Fraction("0.99"))
    solution = pl.stages.solve(imdp, objective)
    assert solution.status == "converged"
    assert solution.sweeps > 100

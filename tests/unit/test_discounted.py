"""Discounted games: equations make bounds tight where sweeps are slow, and prove nothing by themselves."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from near_ties import misses, near_tie, policy_value

import plumdp as pl
from plumdp.model.objective import Reward
from plumdp.solver import by_sweeps

SEEDS = range(60)


def discounted(seed, discount="0.99"):
    """Return a random model with intervals, a discounted objective, and what nature does."""
    imdp, objective, nature, _ = near_tie(seed, kinds=("discounted",))
    return imdp, replace(objective, discount=Fraction(discount)), nature


@pytest.mark.slow
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
        objective = Reward(pl.model.RewardStructure(None, paid), objective.direction, discount=objective.discount)
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


@pytest.mark.slow
def test_equations_whose_factorisation_fills_up_are_left_to_sweeps(monkeypatch):
    """Successors anywhere: a factorisation would have most of all entries, and take longer than all sweeps."""
    monkeypatch.setattr(by_sweeps, "solve_chain", lambda chain: pytest.fail("equations were solved"))
    rng, n = np.random.default_rng(1), 3_000
    probability = np.tile([0.5, 0.25, 0.25], n)
    imdp = pl.stages.IntervalMDP.from_arrays(
        np.arange(n + 1), np.arange(0, 3 * n + 1, 3), rng.integers(0, n, 3 * n), probability - 0.05, probability + 0.05
    )
    objective = pl.Reward(pl.model.RewardStructure(rng.random(n), None), "max", discount=Fraction("0.99"))
    solution = pl.stages.solve(imdp, objective)
    assert solution.status == "converged"
    assert solution.sweeps > 100

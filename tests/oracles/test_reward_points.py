"""Bounds on values with rewards that depend on parameters hold at every point: against exact rational solutions."""

from copy import copy
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from coupled_points import mixed_value, points_of, random_ellipsoid, random_policy, rows_at, value_of_rows
from drawn_weights import random_weights, shares_of
from random_pmdps import random_problem
from tiers import size

import plumdp as pl
from plumdp.base.errors import WhyNot
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.learned_rewards import LearnedRewards, learned_rewards
from plumdp.model.objectives import Reward
from plumdp.model.parametric import RewardStructure
from plumdp.model.question import ask
from plumdp.region.conflict import Conflict
from plumdp.relaxation.relax import expression_wise, rectangular
from plumdp.solver.coupled.bounds import find_coupled_bounds
from plumdp.solver.coupled.chain import PolicyChain
from plumdp.solver.coupled.gradient import policy_gradient
from plumdp.solver.evaluate import evaluate

pytestmark = pytest.mark.slow

N_MODELS = size(8, 200)


def paying(rng, problem):
    """Return the model of a problem with rewards in its parameters and one more, and the mean of each choice."""
    model = problem.model
    space = pl.ParameterSpace.box({"pay": (Fraction(1, 4), 3)})
    space = replace(model.space, names=(*model.space.names, "pay"), bounds=(*model.space.bounds, *space.bounds))
    pay, x = pl.parameters("pay")[0], pl.parameters(model.space.names[0])[0]
    kinds = [pay, pay + Fraction(1, 2), 2 * x, 2 * pay + 3 * x, 1 - x, Fraction(3, 4), 0]
    picked = [kinds[i] for i in rng.integers(0, len(kinds), model.graph.n_choices)]
    goal = problem.target[model.graph.state_of_choice()]
    loops = model.graph.successor[model.graph.first_transition[:-1]] == model.graph.state_of_choice()
    is_sink = goal | (loops & (np.diff(model.graph.first_transition) == 1))
    means = [0 if over else mean for mean, over in zip(picked, is_sink, strict=True)]
    numbers = {f: i for i, f in enumerate(model.expressions.polynomials)}
    rewards = {"earned": RewardStructure(None, *learned_rewards("earned", means, space, numbers))}
    table = ExpressionTable.build(tuple(numbers), space.names)
    return replace(model, declared_space=space, space=space, expressions=table, rewards=rewards), means


def objectives_of(problem, reward):
    """Return one objective of each kind that has rewards."""
    return [
        Reward(reward, "min", target=problem.target),
        Reward(reward, "max"),
        Reward(reward, "max", discount="0.9"),
        Reward(reward, "min", steps=5),
        Reward(reward, "max", steps=4, discount="0.75"),
        Reward(reward, "min", steps=4, target=problem.target),
    ]


def with_means(objective, means, point):
    """Return the objective with the exact rewards at a point."""
    at = [mean.evaluate(point) if isinstance(mean, Polynomial) else Fraction(mean) for mean in means]
    exact = copy(objective)
    object.__setattr__(exact, "reward", SimpleNamespace(state=None, choice=at))
    return exact


def cases(seed):
    """Yield everything about a random model, region, policy and points, for each objective."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, least=0 if seed % 2 else Fraction(1, 100), sure=seed % 3 == 0)
    model, means = paying(rng, problem)
    region = random_ellipsoid(rng, model.space, widest=10 ** -rng.uniform(0, 3))
    if not isinstance(region, Conflict):
        uncertain = (rectangular if seed % 4 else expression_wise)(model, region)
        policies = [random_policy(rng, model.graph) for _ in range(2)]
        points = points_of(rng, model, region, 12)
        for objective in objectives_of(problem, model.rewards["earned"]):
            yield SimpleNamespace(
                rng=rng, model=model, region=region, uncertain=uncertain, policies=policies, points=points,
                objective=objective, means=means,
            )  # fmt: skip


def values_at(case, point):
    """Return the exact value of both policies at a point."""
    exact = with_means(case.objective, case.means, point)
    rows = rows_at(case.model, point)
    return [value_of_rows(case.model.graph, rows, policy, exact) for policy in case.policies]


def misses(seed):
    """Yield the values and differences outside of their bounds at points of a region."""
    for case in cases(seed):
        shared = case.objective, case.region, case.uncertain
        coupled = find_coupled_bounds(case.model, case.policies[0], *shared)
        apart = find_coupled_bounds(case.model, case.policies[0], *shared, less=case.policies[1])
        worst, best = (
            evaluate(case.uncertain, case.policies[0], case.objective, nature=nature)
            for nature in ("robust", "optimistic")
        )
        start, is_max = case.model.graph.initial_state, case.objective.direction == "max"
        low, high = (worst, best) if is_max else (best, worst)
        for point in case.points:
            value, other = values_at(case, point)
            if not low.lower[start] <= value <= high.upper[start]:
                yield "against nature", case.objective, point
            if not isinstance(coupled, WhyNot) and not coupled.lower <= value <= coupled.upper:
                yield "coupled", case.objective, point
            if not isinstance(apart, WhyNot) and not apart.lower <= value - other <= apart.upper:
                yield "difference", case.objective, point


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(N_MODELS))
def test_values_at_points_lie_within_all_bounds(seed):
    assert not [*misses(seed)]


def natures_pick_the_least(patch):
    """Nature picks the lowest rewards, whatever it wants."""
    added = LearnedRewards.added_to
    patch.setattr(LearnedRewards, "added_to", lambda self, reward, f, side: added(self, reward, 0.9 * f, side))


def coins_pay_nothing(patch):
    """A coin is not thrown in coupled bounds."""
    patch.setattr(PolicyChain, "with_coins", lambda chain: replace(chain, learned=None))


def payments_are_not_divided(patch):
    """What coins pay is discounted."""
    coins = PolicyChain.with_coins

    def discounted(chain):
        found = coins(chain)
        known = found.known.copy()
        known[len(known) - found.n_payments :] *= chain.discount
        return replace(found, known=known)

    patch.setattr(PolicyChain, "with_coins", discounted)


@pytest.mark.parametrize("error", [natures_pick_the_least, coins_pay_nothing, payments_are_not_divided])
def test_a_planted_error_is_found(error, monkeypatch):
    error(monkeypatch)
    assert any(next(misses(seed), None) for seed in range(6))


def test_bounds_of_policies_that_draw_hold_at_points():
    n = 0
    for seed in range(4):
        for case in cases(100 + seed):
            if case.objective.discount is not None:
                continue
            weights = random_weights(case.rng, case.model.graph)
            found = find_coupled_bounds(case.model, weights, case.objective, case.region, case.uncertain)
            for point in case.points if not isinstance(found, WhyNot) else ():
                exact = with_means(case.objective, case.means, point)
                shares = shares_of(case.model.graph, weights)
                value = mixed_value(case.model.graph, rows_at(case.model, point), shares, exact)
                assert found.lower <= value <= found.upper
                n += 1
    assert n > 30


def test_the_gradient_is_that_of_exact_values():
    """By differences of exact values at a step of 10^-4, which are off by its square."""
    n = 0
    for seed in range(4):
        for case in cases(200 + seed):
            step, names = Fraction(1, 10_000), case.model.space.names
            for point in case.points[:1]:
                middle = {
                    name: (low + high) / 2 for name, (low, high) in zip(names, case.model.space.bounds, strict=True)
                }
                at = {name: (point[name] + middle[name]) / 2 for name in names}
                ends = [values_at(case, {**at, "pay": at["pay"] + side * step})[0] for side in (1, -1)]
                if not np.isfinite([float(end) for end in ends]).all():
                    continue
                floats = np.array([float(at[name]) for name in names])
                _, gradient = policy_gradient(case.model, case.policies[0], case.objective, floats)
                assert gradient[-1] == pytest.approx(float((ends[0] - ends[1]) / (2 * step)), rel=1e-6, abs=1e-9)
                n += 1
    assert n > 5


def test_a_product_with_a_step_counter_pays_the_same():
    """A policy that does not count has the same value with and without the counter, at a point in exact numbers."""
    for seed in range(6):
        for case in cases(300 + seed):
            if case.objective.steps is None:
                continue
            counted = ask(case.objective, case.model)
            if counted.model is case.model:
                continue
            memory, point = counted.model.graph.memory, {name: float(v) for name, v in case.points[0].items()}
            of_product = [
                np.flatnonzero(memory.choice[first:last] == case.policies[0][state])[0] + first
                for first, last, state in zip(
                    counted.model.graph.first_choice[:-1],
                    counted.model.graph.first_choice[1:],
                    memory.state,
                    strict=True,
                )
            ]
            plain = evaluate(pl.stages.instantiate(case.model, point), case.policies[0], case.objective)
            product = evaluate(pl.stages.instantiate(counted.model, point), np.array(of_product), counted.objective)
            start = case.model.graph.initial_state
            assert product.lower[0] == pytest.approx(plain.lower[start], rel=1e-6, abs=1e-6)

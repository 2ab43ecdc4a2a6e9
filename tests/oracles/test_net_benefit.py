"""Net benefits of policies of small random models, against exact values at points and against all policies."""

from collections import Counter
from fractions import Fraction
from itertools import count

import numpy as np
import pytest
from coupled_points import rows_at, value_of_rows
from random_pmdps import random_counts, random_problem
from set_points import points_of_set
from test_constraints import all_policies
from tiers import size

import plumdp as pl
from plumdp.base.errors import ModelError, WhyNot
from plumdp.certifying import net_benefit as module
from plumdp.certifying.net_benefit import net_benefit
from plumdp.certifying.pipeline import relax
from plumdp.certifying.policy_search import Weighing
from plumdp.model import Question
from plumdp.model.objectives import Reward
from plumdp.model.parametric import RewardStructure
from plumdp.solver.coupled import bounds
from plumdp.solver.coupled.bounds import find_differences

pytestmark = pytest.mark.slow
N_CLAIMS, N_SUMS, N_MODELS = size(12, 4000), size(30, 10_000), size(3, 200)
PAIRS = (
    ('R{"earned"}max=? [ C<=6 ]', 'Pmin=? [ F "goal" ]'),
    ('Pmax=? [ F "goal" ]', 'R{"earned"}min=? [ C<=6 ]'),
    ('Pmax=? [ G !"goal" ]', 'R{"earned"}max=? [ C<=3 ]'),
)
END = 4.0


def random_case(seed):
    """Return what was learned about a random model, two objectives, and points of the confidence set."""
    rng = np.random.default_rng([seed, 5])
    problem, pair = random_problem(rng, n_states=(3, 5)), PAIRS[rng.integers(len(PAIRS))]
    learned = pl.learn(problem.model, random_counts(rng, problem, most=20_000), objectives=pair, confidence=0.9)
    points = [] if learned.conflict is not None else points_of_set(rng, learned, [], 6)
    return rng, learned, [pl.parse_property(text, problem.model) for text in pair], points


def exact_value(model, point, policy, objective):
    """Return the exact value of a policy at a point, by the complement if that is what is solved."""
    flipped = objective.flipped()
    value = value_of_rows(model.graph, rows_at(model, point), policy, flipped or objective)
    return value if flipped is None else 1 - value


def net(model, point, policy, objectives, weight):
    """Return the exact net benefit of a policy at a point."""
    signs = [1 if objective.direction == "max" else -1 for objective in objectives]
    effect, cost = (
        sign * exact_value(model, point, policy, each) for sign, each in zip(signs, objectives, strict=True)
    )
    return Fraction(weight) * effect + cost


def wrong_claims(seed, seen):
    """Yield weights in the range of a policy at which another one is better at a point of the set."""
    rng, learned, objectives, points = random_case(seed)
    if not points:
        return
    found, model = net_benefit(learned, *objectives, willingness=(0, END)), learned.model
    for one in found.strategies:
        for other in found.strategies if one.best is not None else ():
            weights = [*one.best, rng.uniform(*one.best)] if other is not one else []
            for weight, point in ((weight, point) for weight in weights for point in points):
                seen["claims"] += 1
                if not net(model, point, one.policy.choice, objectives, weight) > net(
                    model, point, other.policy.choice, objectives, weight
                ):
                    yield seed, weight


def wrong_sums(seed, seen):
    """Yield weighted sums of differences outside of their bounds at points of the set."""
    rng, learned, objectives, points = random_case(seed)
    graph = learned.model.graph
    policies = [rng.integers(graph.first_choice[:-1], graph.first_choice[1:]) for _ in range(2)]
    if not points:
        return
    uncertain = relax(learned, "coupled")
    found = find_differences(learned.model, *policies, objectives, learned.region, uncertain)
    if isinstance(found, WhyNot):
        return
    for point in points:
        apart = [
            np.subtract(*(exact_value(learned.model, point, each, one) for each in policies)) for one in objectives
        ]
        for weights in rng.uniform(-2, 2, (3, 2)).tolist():
            seen["sums"] += 1
            bounds, exact = found.bounds(weights), sum(Fraction(w) * x for w, x in zip(weights, apart, strict=True))
            if not bounds.lower <= exact <= bounds.upper:
                yield seed, weights


def all_wrong(check, name, n):
    """Return all that is wrong in cases until enough was looked at."""
    seen = Counter()
    for seed in count():
        wrong = [*check(seed, seen)]
        if wrong or seen[name] >= n:
            return wrong
    raise AssertionError


def test_a_policy_is_better_at_all_weights_of_its_range_and_at_all_points_of_the_set():
    assert all_wrong(wrong_claims, "claims", N_CLAIMS) == []


def test_weighted_sums_of_differences_lie_within_their_bounds_at_points_of_the_set():
    assert all_wrong(wrong_sums, "sums", N_SUMS) == []


def test_a_proof_at_one_weight_for_all_weights_is_found(monkeypatch):
    right = module._where_better
    monkeypatch.setattr(
        module, "_where_better", lambda *given: None if right(*given) is None else (given[-2], given[-1])
    )
    assert all_wrong(wrong_claims, "claims", 200 * N_CLAIMS)


def test_sums_without_remainders_are_found(monkeypatch):
    right = bounds.weighted_sum

    def wrong(parts, weights):
        return type(parts[0])(*list(vars(right(parts, weights)).values())[:3], 0.0, 0.0, 0.0)

    monkeypatch.setattr(bounds, "weighted_sum", wrong)
    assert all_wrong(wrong_sums, "sums", 200 * N_SUMS)


def test_the_search_finds_a_best_policy_for_every_weight():
    """Against all policies of small models, for discounted sums of two random rewards, at the centre of the region."""
    seeds = count()
    for _ in range(N_MODELS):
        rng = np.random.default_rng([next(seeds), 6])
        problem = random_problem(rng, n_states=(3, 5))
        graph = problem.model.graph
        policies = all_policies(graph, 16)
        learned = pl.learn(problem.model, random_counts(rng, problem), confidence=0.9)
        if len(policies) < 4 or learned.conflict is not None:
            continue
        rewards = [RewardStructure(rng.random(graph.n_states), rng.random(graph.n_choices)) for _ in range(2)]
        objectives = [Reward(each, way, discount=0.9) for each, way in zip(rewards, ("max", "min"), strict=True)]
        weighing = Weighing(learned, [Question(problem.model, each) for each in objectives])
        proposed = [weighing.values(each) for each in module._proposed(weighing, 0.0, END)]
        every = [weighing.values(each) for each in policies]
        for weight in np.linspace(0, END, 9):
            best, found = (max(np.dot([weight, 1], each) for each in those) for those in (every, proposed))
            assert found > best - 1e-5


def test_given_strategies_are_told_by_their_names_and_boundaries_hold_the_true_one():
    """Two coins: the first is won more often and costs one, so that it pays from a willingness of 1 / (p - q) on."""
    p, q = pl.parameters("p", "q")

    def step(state):
        if state.over:
            return {"stay": [(1, state)]}
        over = state._replace(over=1)
        return {name: [(x, over._replace(won=1)), (1 - x, over)] for name, x in (("dear", p), ("cheap", q))}

    model = pl.explore(
        step,
        {"over": 0, "won": 0},
        space=pl.ParameterSpace.unit("p", "q"),
        labels={"won": lambda s: s.won == 1, "over": lambda s: s.over == 1},
        choice_rewards={"price": lambda s, action: int(action == "dear")},
    )
    counts = pl.simulate(model, {"p": 0.75, "q": 0.25}, 10_000, rng=1, max_steps=2)
    asked = ['Pmax=? [ F "won" ]', 'R{"price"}min=? [ F "over" ]']
    learned = pl.learn(model, counts, objectives=asked)
    found = net_benefit(learned, *asked, willingness=(0, 5), strategies={"the dear": "dear", "the cheap": "cheap"})
    ((one, other, (low, high)),) = found.boundaries
    assert (one, other) == ("the cheap", "the dear")
    assert 1.7 < low < 2 < high < 2.3
    assert [each.name for each in found.strategies] == ["the cheap", "the dear"]
    assert "the cheap is best at a willingness to pay of 0 to 1." in found.sentence
    assert found.to_dict()["boundaries"] == [[one, other, [low, high]]]
    lower, upper = found.strategies[1].net_benefit(2.0)
    assert lower < 2 * 0.75 - 1 < upper
    (axes,) = pl.draw("net benefit", found).figure.axes
    drawn = sorted(tuple(line.get_xdata()) for line in axes.lines)
    assert drawn == [(0, low), (high, 5)]
    searched = net_benefit(learned, *asked, willingness=(0, 5))
    assert np.allclose(searched.boundaries[0][2], (low, high))
    few = pl.learn(model, pl.simulate(model, {"p": 0.5, "q": 0.5}, 10, rng=1, max_steps=2), objectives=asked)
    assert net_benefit(few, *asked, willingness=(1, 5)).boundaries == ()


def test_a_range_that_is_none_is_refused():
    _, learned, objectives, _ = random_case(0)
    with pytest.raises(ModelError, match="at least 0"):
        net_benefit(learned, *objectives, willingness=(2, 1))
    with pytest.raises(ModelError, match="at least one policy"):
        net_benefit(learned, *objectives, willingness=(0, 1), strategies={})

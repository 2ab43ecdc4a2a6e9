"""Certificates of policies that draw: what is claimed, saved, read, explained and refused."""

from itertools import pairwise

import numpy as np
import pytest
from shorthand import altered, compare, explain

import plumdp as pl
from plumdp.model.objectives import Reward
from plumdp.model.parametric import RewardStructure
from plumdp.model.policy import check_policy
from plumdp.solver.reduce import draw_first, exact_shares

STUDY = pl.case_study("betting:5")
GRAPH = STUDY.model.graph


def mixed(money, step):
    """Bet one or nothing, by a coin of three sides whose floats do not sum to one."""
    return {"bet0": 1 / 3, "bet1": 1 / 3, "bet2": 1 - 1 / 3 - 1 / 3} if money > 3 else "bet0"


@pytest.fixture(scope="module")
def counts():
    return pl.simulate(STUDY.model, STUDY.true_point, 1_000, rng=1, max_steps=6)


@pytest.fixture(scope="module")
def learned(counts):
    return pl.learn(STUDY.model, counts, objectives=[STUDY.objective])


@pytest.fixture(scope="module")
def certificate(learned):
    return pl.conclude(learned, STUDY.objective, policy=mixed)


def test_the_true_value_lies_between_coupled_bounds_and_the_certificate_says_that_it_is_drawn(certificate):
    """With p = 0.55 a bet of 1 earns 2p - 1 = 0.1 on average, and about 1 is bet in each of five steps."""
    assert certificate.how.not_coupled == ""
    assert certificate.lower < 10.5 < certificate.upper < 11
    assert ("policy", f"draws its action in {certificate.policy.n_drawn} of 225 states") in certificate.page().facts


@pytest.mark.slow
def test_another_policy_beside_the_same_bounds_is_refused(certificate, counts):
    other = pl.conclude(pl.learn(STUDY.model, counts, objectives=[STUDY.objective]), STUDY.objective, policy="uniform")
    other = altered(other, policy=certificate.policy)
    with pytest.raises(pl.DataError, match=r"^the counts and options of this certificate give lower "):
        explain(STUDY.model, counts, other)


def test_probabilities_of_one_are_the_same_as_choices_to_the_last_bit(learned):
    chosen = pl.PolicyTable.from_actions(GRAPH, lambda money, step: "bet1" if money > 3 else "bet0")
    weights = np.zeros(GRAPH.n_choices)
    weights[chosen.choice] = 1
    assert pl.PolicyTable(GRAPH, weights).weights is None
    one, other = (pl.conclude(learned, STUDY.objective, policy=policy) for policy in (chosen, weights))
    assert (one.lower, one.upper, one.how.solver) == (other.lower, other.upper, other.how.solver)


def test_draws_sum_to_one_exactly_and_choices_without_weight_are_not_reached():
    weights = check_policy(GRAPH, mixed)
    taken = np.flatnonzero(weights)
    shares = exact_shares(GRAPH, weights, taken)
    sums = {}
    for state, share in zip(GRAPH.state_of_choice()[taken].tolist(), shares, strict=True):
        sums[state] = sums.get(state, 0) + share
    assert set(sums.values()) == {1}
    assert len(sums) == GRAPH.n_states
    draws = draw_first(GRAPH, weights)
    assert set(draws.graph.successor[: len(draws.constant)].tolist()) == set((GRAPH.n_states + taken).tolist())


def test_bounds_of_relaxations_are_nested_for_a_policy_that_draws(learned):
    found = compare(STUDY.model, learned.counts, STUDY.objective, policy=mixed)
    assert [one.how.relaxation for one in found] == ["interval", "parameter", "expression", "rectangular", "coupled"]
    assert all(a.lower <= b.lower and b.upper <= a.upper for a, b in pairwise(found))


def test_a_discount_is_refused_in_words(learned):
    discounted = Reward(RewardStructure(np.ones(GRAPH.n_states), None), "max", discount="0.9")
    with pytest.raises(pl.ModelError, match=r"^a policy that draws its choices cannot be evaluated with a discount"):
        pl.conclude(learned, discounted, policy=mixed)

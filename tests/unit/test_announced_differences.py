"""Differences that are announced to ``learn``: the region is narrow across them, and results say what that needs."""

import numpy as np
import pytest

import plumdp as pl
from plumdp.explaining.explain import learn_again
from plumdp.learning.learned import value_directions
from plumdp.model import Question
from plumdp.solver.coupled.gradient import policy_gradient

STUDY = pl.case_study("parallel:5")
MODEL, ASKED = STUDY.model, STUDY.objective
GIVEN = "you chose the policy before looking at these data (as you stated)"


@pytest.fixture(scope="module")
def counts():
    return pl.simulate(MODEL, STUDY.true_point, 100_000, rng=2, max_steps=STUDY.max_steps + 1)


@pytest.fixture(scope="module")
def policies():
    """Return two policies that other data led to, so that these were not looked at."""
    before = pl.simulate(MODEL, STUDY.true_point, 100_000, rng=1, max_steps=STUDY.max_steps + 1)
    learned = pl.learn(MODEL, before, objectives=[ASKED])
    return [pl.conclude(learned, ASKED, relaxation=each).policy for each in ("coupled", "interval")]


def width(counts, policies, question):
    found = pl.difference(pl.learn(MODEL, counts, objectives=[question]), ASKED, *policies)
    return found.upper - found.lower


@pytest.mark.slow
def test_a_difference_that_is_announced_has_narrower_bounds(counts, policies):
    announced = Question(MODEL, ASKED, *policies)
    assert width(counts, policies, announced) < 0.9 * width(counts, policies, ASKED)
    assert width(counts, policies, Question(MODEL, ASKED, against=policies[1])) < width(counts, policies, ASKED)


@pytest.mark.slow
def test_a_policy_that_is_announced_has_narrower_bounds(counts):
    found = [pl.learn(MODEL, counts, objectives=[each]) for each in (ASKED, Question(MODEL, ASKED, "uniform"))]
    value, announced = (pl.conclude(learned, ASKED, policy="uniform") for learned in found)
    assert announced.upper - announced.lower < value.upper - value.lower


def test_bets_are_placed_across_the_difference_of_both_gradients(policies):
    """Central differences of the values at points beside the point are the oracle of the gradient itself."""
    point = np.array([STUDY.true_point[name] for name in MODEL.space.names], dtype=float)
    (direction,) = value_directions([Question(MODEL, ASKED, *policies)], {})(point)
    for i, step in enumerate(1e-5 * np.eye(len(point))):
        values = [
            [policy_gradient(MODEL, each, ASKED, at)[0] for each in policies] for at in (point + step, point - step)
        ]
        slope = (np.subtract(*values[0]) - np.subtract(*values[1])) / 2e-5
        assert direction.gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-6)
    assert direction.policy is None
    assert direction.text.startswith("a difference in the value of ")


@pytest.mark.slow
def test_the_result_says_that_policies_were_chosen_before_and_is_not_learned_again_without_them(counts):
    learned = pl.learn(MODEL, counts, objectives=[Question(MODEL, ASKED, against="uniform")])
    certificate = pl.conclude(learned, ASKED)
    assert GIVEN in certificate.assumptions
    assert GIVEN not in pl.certify(MODEL, counts, ASKED).assumptions
    with pytest.raises(pl.DataError, match="the question has no text, so that it cannot be learned again"):
        learn_again(MODEL, counts, certificate)


@pytest.mark.slow
def test_the_same_difference_is_announced_once_and_others_beside_it():
    one, other = Question(MODEL, ASKED, against="uniform"), Question(MODEL, ASKED, policy="uniform")
    counts = pl.simulate(MODEL, STUDY.true_point, 100, rng=1, max_steps=STUDY.max_steps + 1)
    learned = pl.learn(MODEL, counts, objectives=[ASKED, one, other])
    assert len(learned.bounds.directions) == 3
    with pytest.raises(pl.ModelError, match="this is asked twice"):
        pl.learn(MODEL, counts, objectives=[one, Question(MODEL, ASKED, against="uniform")])
    with pytest.raises(pl.ModelError, match="choose 'uniform' or one action"):
        Question(MODEL, ASKED, against="no such action")

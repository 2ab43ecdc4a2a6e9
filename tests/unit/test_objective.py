"""Objectives made by hand: what is refused and in which words, what is read in a generous way, and what it means."""

from fractions import Fraction

import numpy as np
import pytest
from refusals import refused
from row_models import listed

import plumdp as pl
from plumdp.model.objectives import digest
from plumdp.model.parametric import RewardStructure
from plumdp.relaxation.intervals import IntervalMDP

YES, NO = np.array([False, True, False]), np.zeros(3, dtype=bool)
REWARD = RewardStructure(np.array([1.0, 10.0, 100.0]), None)


@pytest.fixture(scope="module")
def chain():
    """Return 0 -> 1 -> 2 and a loop there."""
    return IntervalMDP.from_arrays([0, 1, 2, 3], [0, 1, 2, 3], [1, 2, 2], [1, 1, 1], [1, 1, 1])


def test_what_is_no_objective_is_refused(chain):
    refused("objectives:refused", globals(), chain=chain)


def test_lists_and_zeros_and_ones_are_sets_of_states(chain):
    for target in (YES, YES.tolist(), YES.astype(int), YES.astype(np.uint8)):
        assert pl.stages.solve(
            chain, pl.model.Reach(target, [0, 0, 0], "max", steps=[np.int64(0), 1])
        ).lower.tolist() == [
            1,
            1,
            0,
        ]


@pytest.mark.parametrize("discount", [Fraction(1, 2), 0.5, "0.5", "1/2"])
def test_a_discount_is_the_number_it_shows(chain, discount):
    """From state 1: 10 and from then on 100 · (1/2 + 1/4 + …)."""
    objective = pl.model.Reward(REWARD, "max", discount=discount)
    assert objective.discount == Fraction(1, 2)
    solution = pl.stages.solve(chain, objective)
    assert solution.lower[1] <= 110 <= solution.upper[1]


def test_steps_go_together_with_a_target_and_with_a_discount(chain):
    """Until state 1: 1. Two steps at half: 1 + 10/2, 10 + 100/2, 100 + 100/2."""
    until = pl.stages.solve(chain, pl.model.Reward(REWARD, "max", steps=2, target=YES))
    halved = pl.stages.solve(chain, pl.model.Reward(REWARD, "max", steps=2, discount=0.5))
    assert np.allclose(until.lower, [1, 0, 200], rtol=1e-9)
    assert np.allclose(halved.lower, [6, 60, 150], rtol=1e-9)


def test_a_digest_tells_objectives_apart_by_what_they_ask():
    base = {"reward": REWARD, "direction": "max"}
    objectives = [
        pl.model.Reach(YES, NO, "max"),
        pl.model.Reach(YES, NO, "min"),
        pl.model.Reach(NO, YES, "max"),
        pl.model.Reach(YES, NO, "max", complement=True),
        pl.model.Reach(YES, NO, "max", steps=(0, 3)),
        pl.model.Reach(YES, NO, "max", nature="robust"),
        pl.model.Reward(**base),
        pl.model.Reward(**base, target=YES),
        pl.model.Reward(**base, steps=3),
        pl.model.Reward(**base, discount=0.5),
        pl.model.Reward(RewardStructure(None, REWARD.state), "max"),
        pl.model.Reward(RewardStructure(REWARD.state + 1, None), "max"),
    ]
    assert len({digest(objective) for objective in objectives}) == len(objectives)
    assert digest(pl.model.Reach(YES.tolist(), NO, "max", text="F goal")) == digest(objectives[0])


def test_only_a_probability_is_capped_and_only_a_reward_is_discounted():
    reach, reward = pl.model.Reach(YES, NO, "max", steps=(2, 5)), pl.model.Reward(REWARD, "max", steps=3)
    assert (reach.cap, reach.n_steps, reach.is_discounted) == (1.0, 5, False)
    assert (reward.cap, reward.n_steps, reward.is_discounted) == (np.inf, 3, False)
    assert pl.model.Reward(REWARD, "max", discount=0.9).is_discounted
    assert pl.model.Reach(YES, NO, "max").n_steps is pl.model.Reward(REWARD, "max").n_steps is None


def test_at_a_step_targets_count_within_their_window_and_states_to_avoid_end_the_run():
    values, avoid = np.array([0.25, 0.5, 0.75]), np.array([False, False, True])
    reach = pl.model.Reach(YES, avoid, "max", steps=(1, 2))
    assert reach.at_step(values, 0).tolist() == [0.25, 0.5, 0.0]
    assert reach.at_step(values, 1).tolist() == [0.25, 1.0, 0.0]
    assert reach.at_step(values, 2).tolist() == [0.0, 1.0, 0.0]
    assert pl.model.Reward(REWARD, "max", target=YES, steps=2).at_step(values, 0).tolist() == [0.25, 0.0, 0.75]
    assert pl.model.Reward(REWARD, "max", steps=2).at_step(values, 0).tolist() == [0.25, 0.5, 0.75]


@pytest.mark.parametrize(
    ("objective", "vacuous", "telling"),
    [
        (pl.model.Reach(YES, NO, "max"), 0.0, 1e-9),
        (pl.model.Reach(YES, NO, "min"), 1.0, 1 - 1e-9),
        (pl.model.Reach(YES, NO, "max", complement=True), 0.0, 1e-9),
        (pl.model.Reward(REWARD, "max", target=YES), 0.0, 1e-9),
        (pl.model.Reward(REWARD, "min", target=YES), np.inf, 1e300),
        (pl.model.Reward(REWARD, "min", steps=3), np.inf, 1.0),
        (pl.model.Reward(REWARD, "max", steps=3), None, -1.0),  # rewards over some steps may be negative
        (pl.model.Reward(REWARD, "max", discount=0.5), None, -1.0),
    ],
)
def test_a_bound_is_vacuous_if_every_value_keeps_it(objective, vacuous, telling):
    assert not objective.is_vacuous(telling)
    assert vacuous is None or objective.is_vacuous(vacuous)


def test_only_a_complement_is_flipped():
    flipped = pl.model.Reach(YES, NO, "max", steps=(1, 2), complement=True).flipped()
    assert (flipped.direction, flipped.complement, flipped.steps) == ("min", False, (1, 2))
    assert (
        flipped.flipped()
        is pl.model.Reach(YES, NO, "max").flipped()
        is pl.model.Reward(REWARD, "max").flipped()
        is None
    )


def test_choices_that_become_states_take_their_rewards_along_and_double_the_steps(chain):
    reward = RewardStructure(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0]))
    stretched = pl.model.Reward(reward, "max", target=YES, steps=2).stretched(chain.graph)
    assert stretched.reward.state.tolist() == [1.0, 2.0, 3.0, 10.0, 20.0, 30.0]
    assert stretched.reward.choice is None
    assert stretched.target.tolist() == [*YES, False, False, False]
    assert stretched.steps == 4
    assert pl.model.Reach(YES, NO, "max", steps=(1, 3)).stretched(chain.graph).steps == (2, 6)


def test_a_policy_takes_the_rewards_of_its_own_choices():
    reward = RewardStructure(None, np.array([10.0, 20.0, 30.0, 40.0]))
    restricted = pl.model.Reward(reward, "max").restricted_to(np.array([0, 2, 3]))
    assert restricted.reward.choice.tolist() == [10.0, 30.0, 40.0]
    reach = pl.model.Reach(YES, NO, "max")
    assert reach.restricted_to(np.array([0, 2, 3])) is reach


# Infinite rewards


(P,) = pl.parameters("p")


def _model(has_detour):
    """Return a walk that wins with p and is lost otherwise; with a detour there is an action that tries again."""

    ways = {"go": [(P, 1), (1 - P, 2)]} | ({"retry": [(P, 1), (1 - P, 0)]} if has_detour else {})
    return listed({0: ways}, labels={"goal": 1}, rewards={"steps": lambda s: 1.0})


def _certificate(model, counts, direction="min", **options):
    seen = np.zeros(model.graph.n_transitions, dtype=np.int64)
    seen[:2] = counts
    data = pl.TransitionCounts(model.graph, seen, "independent")
    return pl.certify(model, data, f'R{{"steps"}}{direction}=? [ F "goal" ]', **options)


_END = ", so its expected reward is infinite, as long as every transition of the model can happen"


@pytest.mark.parametrize(("counts", "lower"), [((0, 0), 1), ((600, 400), np.inf), ((1000, 0), 1)])
def test_a_target_that_no_policy_surely_reaches_is_named_as_such(counts, lower):
    """If p may be 1, the first step may always win; if not, the infinite value is proved."""
    certificate = _certificate(_model(has_detour=False), counts)
    assert (certificate.lower, certificate.upper) == (pytest.approx(lower), np.inf)
    assert certificate.claim.reason == f"no policy reaches the target with certainty{_END}"
    if lower == 1:
        assert certificate.status == "inconclusive"
        assert f"because         {certificate.claim.reason.partition(';')[0]}" in str(certificate)
    else:
        assert certificate.status == "certified"
        assert certificate.headline.endswith(" is infinite (confidence 99.9 %).")
        assert ("because", certificate.claim.reason) in certificate.page().facts


def test_a_given_policy_that_may_miss_the_target_is_named_as_such():
    model = _model(has_detour=True)
    certificate = _certificate(model, (600, 400), policy=[0, 2, 3])
    assert certificate.claim.reason == f"this policy does not surely reach the target{_END}"
    assert certificate.headline.endswith(" is infinite (confidence 99.9 %).")
    assert _certificate(model, (600, 400), policy=[1, 2, 3]).status == "certified"


@pytest.mark.slow
def test_a_lack_of_data_is_still_called_one():
    certificate = _certificate(_model(has_detour=True), (0, 0))
    assert certificate.upper == np.inf
    assert certificate.claim.reason == "there are no data (all counts are 0)"
    assert "because         there are no data (all counts are 0)" in str(certificate)

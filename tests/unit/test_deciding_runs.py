"""How many more runs tell which of two policies is better: whoever makes as many is told, and no less would do."""

import json

import numpy as np
import pytest

import plumdp as pl
from plumdp.decisions import runs_to_tell

STUDY = pl.case_study("betting:5")
NAMES = ("a small bet", "none")


def learned_from(n_runs, rng):
    counts = pl.simulate(STUDY.model, STUDY.true_point, n_runs, rng=rng, max_steps=6)
    return pl.learn(STUDY.model, counts, objectives=[STUDY.objective])


def differing(learned, *policies):
    return pl.difference(learned, STUDY.objective, *policies, names=NAMES)


@pytest.fixture(scope="module")
def few():
    return learned_from(200, rng=1)


@pytest.fixture(scope="module")
def told(few):
    return runs_to_tell(few, STUDY.objective, differing(few, "bet1", "bet0"))


@pytest.mark.slow
def test_as_many_runs_as_predicted_tell_and_a_tenth_of_them_do_not(told):
    """Simulated anew at the true point: the prediction is certified alone, so that the new runs are all data."""
    assert told.prediction.is_alone
    for rng in (5, 6):
        later = differing(learned_from(told.prediction.runs, rng), "bet1", "bet0")
        assert later.verdict == "yes"
        assert later.upper - later.lower == pytest.approx(told.prediction.width, rel=0.15)
        assert differing(learned_from(told.prediction.runs // 10, rng), "bet1", "bet0").verdict == "unknown"


def test_the_gain_is_the_difference_of_both_values_at_the_estimate(few, told):
    values = [pl.conclude(few, STUDY.objective, policy=policy).estimated_value for policy in ("bet1", "bet0")]
    assert told.gain == pytest.approx(values[0] - values[1], rel=1e-9)
    assert told.prediction.width <= told.gain * 1.02
    assert told.sentence.startswith("At the estimate a small bet is better by 0.567; if that is so, about 1,6")


def test_the_second_policy_may_be_the_better_one(few, told):
    other = runs_to_tell(few, STUDY.objective, differing(few, "bet0", "bet1"))
    assert other.gain == -told.gain
    assert other.sentence.startswith("At the estimate none is better by 0.567") is True
    assert other.prediction.runs == told.prediction.runs


def test_nothing_is_predicted_of_what_is_known_or_of_equal_policies(few):
    assert runs_to_tell(few, STUDY.objective, differing(few, "bet0", "uniform")) is None
    same = runs_to_tell(few, STUDY.objective, differing(few, "bet1", "bet1"))
    assert (same.gain, same.prediction) == (0, None)
    assert same.sentence == "No number of runs like these up to 10^12 is predicted to tell."


def test_nothing_is_predicted_of_data_that_are_not_runs():
    graph = STUDY.model.graph
    learned = pl.learn(STUDY.model, pl.TransitionCounts(graph, np.ones(graph.n_transitions, dtype=int), "adaptive"))
    assert runs_to_tell(learned, STUDY.objective, differing(learned, "bet1", "bet0")) is None


def test_it_can_be_written_as_json(told):
    content = json.loads(json.dumps(told.to_dict()))
    assert content["prediction"]["runs"] == told.prediction.runs
    assert content["sentence"] == told.sentence

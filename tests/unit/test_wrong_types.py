"""The right thing in the wrong place gets one sentence that says what to write; some things may be given either way."""

import copy
import pickle
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from refusals import refused
from shorthand import certify_all, check_model, compare

import plumdp as pl
from plumdp.certifying.pipeline import conclude, relax
from plumdp.confidence.bounds import expression_bounds
from plumdp.data.counts import EventCounts
from plumdp.data.log import Log
from plumdp.learning.learn import learn
from plumdp.model.language.threshold import parse_threshold
from studies.least_squares import least_squares

STUDY = pl.case_study("betting:5")
MODEL, GOAL = STUDY.model, STUDY.objective
MDP = pl.stages.instantiate(MODEL, STUDY.true_point)
COUNTS = pl.simulate(MODEL, STUDY.true_point, 2000, rng=1, max_steps=6)
SIMULATOR = pl.online.simulator(MODEL, STUDY.true_point, rng=1, max_steps=6)

LEARNING = {
    each.__name__: each
    for each in (check_model, compare, expression_bounds, EventCounts, least_squares, parse_threshold, relax)
}


@cache
def certificate():
    return pl.certify(MODEL, COUNTS, GOAL)


def _env():
    return pl.data.as_env(MODEL, STUDY.true_point, max_steps=6)


def _online(environment, model=MODEL, objective=GOAL):
    return list(pl.learn_online(model, environment, objective, episodes=3))


def test_the_wrong_thing_gets_a_sentence_that_says_what_to_write():
    refused("types:wrong", globals(), (pl.ModelError, pl.DataError))


@pytest.mark.slow
def test_wrong_values_get_a_sentence_that_says_what_to_write():
    (P, Q), TABLE = pl.parameters("p", "q"), pl.model.free_rows(MODEL)
    OTHER = pl.case_study("betting:6").model
    refused("types:values", globals(), (pl.ModelError, pl.DataError), P=P, Q=Q, TABLE=TABLE, OTHER=OTHER, **LEARNING)


def test_the_policy_of_another_model_is_refused_with_both_fingerprints():
    other, own = pl.case_study("betting:6").model.graph, MODEL.graph
    with pytest.raises(pl.ModelError) as caught:
        pl.stages.evaluate(MDP, pl.PolicyTable(other, other.first_choice[:-1]), GOAL)
    assert str(caught.value) == (
        "the policy belongs to another model: that one has 300 states, 901 choices and the fingerprint "
        f"{other.fingerprint[:8]}, this one 225, 624 and {own.fingerprint[:8]}"
    )


def test_the_policy_of_a_certificate_is_taken_wherever_a_policy_is():
    policy = certificate().policy
    runs = {"rng": 1, "max_steps": 6}
    assert (pl.stages.evaluate(MDP, policy, GOAL).lower == pl.stages.evaluate(MDP, policy.choice, GOAL).lower).all()
    assert pl.certify(MODEL, COUNTS, GOAL, policy=policy).claim.bound == pytest.approx(
        certificate().claim.bound, abs=1e-5
    )
    by_table, by_array = (pl.simulate(MODEL, {"p": 0.5}, 50, policy=p, **runs) for p in (policy, policy.choice))
    assert (by_table.counts == by_array.counts).all()
    assert len(pl.data.record(MODEL, {"p": 0.5}, 5, policy=policy, **runs)) == 30
    assert (pl.PolicyTable(MODEL.graph, policy).choice == policy.choice).all()


def test_the_policy_of_a_certificate_is_taken_in_environments():
    assert pl.data.sample_env(MODEL, _env(), 5, rng=1, policy=certificate().policy).total == 30


@pytest.mark.slow
def test_a_text_is_taken_wherever_there_is_a_model_to_read_it_with():
    assert pl.certify(MODEL, COUNTS, GOAL.text).claim.bound == certificate().claim.bound
    assert pl.certify(MODEL, COUNTS, GOAL.text).claim.objective == GOAL.text
    both = [compare(MODEL, COUNTS, asked, relaxations=["interval"])[0].lower for asked in (GOAL, GOAL.text)]
    assert both[0] == both[1]
    assert conclude(learn(MODEL, COUNTS, objectives=[GOAL]), GOAL.text).claim.bound == certificate().claim.bound
    assert conclude(learn(MODEL, COUNTS, objectives=[GOAL.text]), GOAL).claim.bound == certificate().claim.bound
    assert [each.claim.bound for each in certify_all(MODEL, COUNTS, [GOAL.text])] == [certificate().claim.bound]
    assert _online(SIMULATOR, objective=GOAL.text)[-1].bound == _online(SIMULATOR)[-1].bound


def test_the_counts_of_a_log_are_written_as_they_are(tmp_path):
    log = Log(COUNTS)
    pl.write_counts(log, tmp_path / "counts.parquet")
    assert (pl.read_counts(MODEL, tmp_path / "counts.parquet").counts == COUNTS.counts).all()


@pytest.mark.slow
@pytest.mark.parametrize("again", [lambda thing: pickle.loads(pickle.dumps(thing)), copy.deepcopy])
def test_what_was_learned_can_be_copied_and_gives_the_same_certificate(again):
    learned = learn(MODEL, COUNTS, objectives=[GOAL])
    conclude(learned, GOAL)  # what is kept for later questions is copied, or made again
    other = again(learned)
    for asked in (GOAL, other.questions[0]):
        found = conclude(other, asked)
        assert (found.lower, found.upper) == (certificate().lower, certificate().upper)
        assert (found.policy.choice == certificate().policy.choice).all()
    assert pl.explain(other, certificate(), parts=["expressions"]).n_expressions > 0


def test_points_that_numpy_draws_are_taken_as_the_decimals_they_show():
    (drawn,) = np.random.default_rng(1).random(1)
    runs = {"rng": 1, "max_steps": 6}
    exact = pl.simulate(MODEL, {"p": Fraction("0.5118216247002567")}, 50, **runs)
    for point in ({"p": drawn}, [drawn], np.array([drawn]), {"p": np.array(drawn)}, {"p": float(drawn)}):
        assert (pl.simulate(MODEL, point, 50, **runs).counts == exact.counts).all()
    assert MODEL.space.point({"p": np.float32(0.3)}) == {"p": Fraction(3, 10)}
    with pytest.raises(pl.ModelError, match="nan cannot be part of an expression"):
        MODEL.space.point({"p": np.nan})

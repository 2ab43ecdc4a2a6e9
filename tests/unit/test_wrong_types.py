"""The right thing in the wrong place gets one sentence that says what to write; some things may be given either way."""

import copy
import pickle
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import plumdp as pl
from plumdp.certifying.pipeline import conclude
from plumdp.learning.learn import learn

STUDY = pl.case_study("betting:5")
MODEL, GOAL = STUDY.model, STUDY.objective
OTHER = pl.case_study("betting:6")
MDP = pl.stages.instantiate(MODEL, STUDY.true_point)
COUNTS = pl.simulate(MODEL, STUDY.true_point, 2000, rng=1, max_steps=6)
SIMULATOR = pl.online.simulator(MODEL, STUDY.true_point, rng=1, max_steps=6)


@cache
def certificate():
    return pl.certify(MODEL, COUNTS, GOAL)


def _env():
    return pl.data.as_env(MODEL, STUDY.true_point, max_steps=6)


def _online(environment, model=MODEL, objective=GOAL):
    return list(pl.learn_online(model, environment, objective, episodes=3))


def _other_policy():
    policy = pl.PolicyTable(OTHER.model.graph, OTHER.model.graph.first_choice[:-1])
    return pl.stages.evaluate(MDP, policy, GOAL)


_UNKNOWN = (
    " takes an interval MDP, and this model has unknown parameters: write instantiate(model, point) for its "
    "probabilities at a point, or certify(model, counts, objective) for what data say"
)
_NO_LABELS = (
    "an interval MDP has no labels that a text could name: give {} an IntervalModel, or the objective "
    "parse_property(text, model)"
)
_ARRAY = (
    "counts of type {}: write TransitionCounts(model.graph, counts, sampling), which says how the data came about: "
    "'independent', 'trajectories' or 'adaptive'"
)
_OBJECTIVE = "give a property such as 'Pmax=? [ F \"goal\" ]', a Reach or a Reward as objective, not ndarray"
_FINGERPRINTS = (OTHER.model.graph.fingerprint[:8], MODEL.graph.fingerprint[:8])
WRONG = {
    "solve a parametric model": (lambda: pl.stages.solve(MODEL, GOAL), f"solve{_UNKNOWN}"),
    "evaluate a parametric model": (
        lambda: pl.stages.evaluate(MODEL, certificate().policy, GOAL),
        f"evaluate{_UNKNOWN}",
    ),
    "solve a graph": (
        lambda: pl.stages.solve(MODEL.graph, GOAL),
        "solve takes an interval MDP, such as instantiate(model, point), not Graph",
    ),
    "solve a text": (lambda: pl.stages.solve(MDP, GOAL.text), _NO_LABELS.format("solve")),
    "evaluate a text": (
        lambda: pl.stages.evaluate(MDP, certificate().policy, GOAL.text),
        _NO_LABELS.format("evaluate"),
    ),
    "solve a mask": (
        lambda: pl.stages.solve(MDP, GOAL.target),
        "solve takes an objective, such as parse_property(text, model), not ndarray",
    ),
    "certify an array": (lambda: pl.certify(MODEL, COUNTS.counts, GOAL), _ARRAY.format("ndarray")),
    "compare a list": (lambda: pl.compare(MODEL, COUNTS.counts.tolist(), GOAL), _ARRAY.format("list")),
    "certify a case study": (
        lambda: pl.certify(STUDY, COUNTS, GOAL),
        "certify takes a parametric MDP (its .model gives one), not CaseStudy",
    ),
    "certify an interval MDP": (
        lambda: pl.certify(MDP, COUNTS, GOAL),
        "certify takes a parametric MDP (explore or read_prism gives one), not IntervalMDP",
    ),
    "simulate a case study": (
        lambda: pl.simulate(STUDY, STUDY.true_point, 10, rng=1, max_steps=6),
        "a simulation takes a parametric MDP (its .model gives one), not CaseStudy",
    ),
    "certify a mask": (lambda: pl.certify(MODEL, COUNTS, GOAL.target), _OBJECTIVE),
    "learn with a mask": (lambda: _online(SIMULATOR, objective=GOAL.target), _OBJECTIVE),
    "learn in a model": (
        lambda: _online(MODEL),
        "learn_online takes a Gymnasium environment, or one such as simulator(model, point, ...), not ParametricMDP",
    ),
    "sample a model": (
        lambda: pl.sample_env(MODEL, MODEL, 3, rng=1),
        "give a Gymnasium environment, such as as_env(model, point), not ParametricMDP",
    ),
    "sample an environment for learning": (
        lambda: pl.sample_env(MODEL, pl.data.gym_environment(MODEL, _env(), rng=1), 3, rng=1),
        "this is an environment for learn_online already: give the Gymnasium environment inside, .env",
    ),
    "sample without a model": (
        lambda: pl.sample_env(STUDY, _env(), 3, rng=1),
        "an environment takes a parametric MDP (its .model gives one), not CaseStudy",
    ),
    "policy of another model": (
        _other_policy,
        "the policy belongs to another model: that one has 300 states, 901 choices and the fingerprint "
        "{}, this one 225, 624 and {}".format(*_FINGERPRINTS),
    ),
    "confidence in words": (
        lambda: pl.certify(MODEL, COUNTS, GOAL, confidence="0.9"),
        "confidence='0.9': give a number between 0 and 1, such as 0.999",
    ),
    "precision in words": (
        lambda: pl.stages.solve(MDP, GOAL, precision="1e-6"),
        "precision='1e-6': it must be above 0",
    ),
    "crooked policy": (
        lambda: pl.stages.evaluate(MDP, [[0], [1, 2]], GOAL),
        "a policy is one list of numbers; this one has lists of unequal lengths inside",
    ),
    "write a model as counts": (lambda: pl.write_counts(MODEL, "x.parquet"), _ARRAY.format("ParametricMDP")),
    "counts of a model": (
        lambda: pl.TransitionCounts(MODEL, COUNTS.counts, "adaptive"),
        "TransitionCounts takes the graph of a model, such as model.graph, not ParametricMDP",
    ),
    "table of a model": (
        lambda: pl.PolicyTable(MODEL, [0]),
        "PolicyTable takes the graph of a model, such as model.graph, not ParametricMDP",
    ),
    "conclude from a model": (
        lambda: pl.conclude(MODEL, GOAL),
        "conclude takes what learn(model, counts) returns, not ParametricMDP",
    ),
    "decide from a certificate": (
        lambda: pl.decide(certificate(), "P>=0.5 [ F x ]"),
        "decide takes what learn(model, counts) returns, not Certificate",
    ),
    "advise from counts": (
        lambda: pl.advise(COUNTS, GOAL),
        "advise takes what learn(model, counts) returns, not TransitionCounts",
    ),
    "certify one of all": (
        lambda: pl.certify_all(MODEL, COUNTS, GOAL),
        "objectives=Reward: give a list of objectives, even if there is only one",
    ),
    "parse a model": (
        lambda: pl.parse_property(MODEL, GOAL.text),
        "parse_property takes the text of a property, such as 'Pmax=? [ F \"goal\" ]', first, not ParametricMDP",
    ),
    "report without findings": (
        lambda: pl.write_report(certificate(), "report.html", None),
        "write_report takes findings, which explain returns, after the certificate, not str",
    ),
    "read a certificate": (lambda: pl.read_result(certificate()), "read_result takes a path, not Certificate"),
    "read a model of nothing": (lambda: pl.read_model(None), "read_model takes a path, not NoneType"),
    "environment of a case study": (
        lambda: pl.data.as_env(STUDY, STUDY.true_point),
        "as_env takes a parametric MDP (its .model gives one), not CaseStudy",
    ),
    "a word as a seed": (
        lambda: pl.simulate(MODEL, {"p": 0.5}, 9, rng="one", max_steps=3),
        "rng='one': give a whole number, at least 0, or a generator of NumPy",
    ),
    "a point of nothing": (
        lambda: pl.simulate(MODEL, None, 9, rng=1, max_steps=3),
        "a point is one number for each parameter (p), as a mapping by name or in their order, not NoneType",
    ),
    "ladder of numbers": (lambda: pl.draw("ladder", [1]), "draw('ladder', certificates) takes certificates, not int"),
    "region of counts": (
        lambda: pl.draw("region", COUNTS),
        "draw('region', certificate, findings) takes a certificate, not TransitionCounts",
    ),
    "map of an array": (
        lambda: pl.draw("policy", certificate().policy.choice),
        "draw('policy', policy) takes a PolicyTable, or a certificate, which has one, not ndarray",
    ),
    "learning of a certificate": (
        lambda: pl.draw("online", certificate()),
        "draw('online', run) takes an OnlineRun, or its records, not Certificate",
    ),
    "table of probabilities": (
        lambda: pl.PolicyTable(MODEL.graph, np.ones(MODEL.graph.n_choices)),
        "state (money=10, step=0): the policy's probabilities sum to 5, not 1",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_the_wrong_thing_gets_a_sentence_that_says_what_to_write(case):
    call, message = WRONG[case]
    with pytest.raises((pl.ModelError, pl.DataError)) as caught:
        call()
    assert str(caught.value) == message


def test_the_policy_of_a_certificate_is_taken_wherever_a_policy_is():
    policy = certificate().policy
    runs = {"rng": 1, "max_steps": 6}
    assert (pl.stages.evaluate(MDP, policy, GOAL).lower == pl.stages.evaluate(MDP, policy.choice, GOAL).lower).all()
    assert pl.certify(MODEL, COUNTS, GOAL, policy=policy).bound == pytest.approx(certificate().bound, abs=1e-5)
    by_table, by_array = (pl.simulate(MODEL, {"p": 0.5}, 50, policy=p, **runs) for p in (policy, policy.choice))
    assert (by_table.counts == by_array.counts).all()
    assert len(pl.data.record(MODEL, {"p": 0.5}, 5, policy=policy, **runs)) == 30
    assert (pl.PolicyTable(MODEL.graph, policy).choice == policy.choice).all()


def test_the_policy_of_a_certificate_is_taken_in_environments():
    assert pl.sample_env(MODEL, _env(), 5, rng=1, policy=certificate().policy).total == 30


@pytest.mark.slow
def test_a_text_is_taken_wherever_there_is_a_model_to_read_it_with():
    assert pl.certify(MODEL, COUNTS, GOAL.text).bound == certificate().bound
    assert pl.certify(MODEL, COUNTS, GOAL.text).objective == GOAL.text
    both = [pl.compare(MODEL, COUNTS, asked, relaxations=["interval"])[0].lower for asked in (GOAL, GOAL.text)]
    assert both[0] == both[1]
    assert conclude(learn(MODEL, COUNTS, objectives=[GOAL]), GOAL.text).bound == certificate().bound
    assert conclude(learn(MODEL, COUNTS, objectives=[GOAL.text]), GOAL).bound == certificate().bound
    assert [each.bound for each in pl.certify_all(MODEL, COUNTS, [GOAL.text])] == [certificate().bound]
    assert _online(SIMULATOR, objective=GOAL.text)[-1].bound == _online(SIMULATOR)[-1].bound


def test_the_counts_of_a_log_are_written_as_they_are(tmp_path):
    log = pl.data.Log(COUNTS)
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

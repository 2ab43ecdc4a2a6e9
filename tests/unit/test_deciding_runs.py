"""How many more runs tell how two policies compare: whoever makes as many is told, and no less would do."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_pmdps import random_problem

import plumdp as pl
from plumdp.decisions import runs_to_tell
from plumdp.explaining.expected_runs import RunLaw, law_of, seen_runs, whole_counts
from plumdp.explaining.predicted_width import DecidingRuns
from plumdp.model.policy import normalised
from plumdp.result.advice import Prediction

STUDY = pl.case_study("betting:5")
NAMES = ("a small bet", "none")


def learned_from(n_runs, rng):
    counts = pl.simulate(STUDY.model, STUDY.true_point, n_runs, rng=rng, max_steps=6)
    return pl.learn(STUDY.model, counts, objectives=[STUDY.objective])


def differing(learned, *policies, margin=0.0):
    return pl.difference(learned, STUDY.objective, *policies, margin=margin, names=NAMES)


@pytest.fixture(scope="module")
def few():
    return learned_from(200, rng=1)


@pytest.fixture(scope="module")
def told(few):
    return runs_to_tell(few, STUDY.objective, differing(few, "bet1", "bet0"))


@pytest.mark.night
def test_as_many_runs_as_predicted_tell_and_a_tenth_of_them_do_not(told):
    """Simulated anew at the true point: the prediction is certified alone, so that the new runs are all data."""
    better = told.predictions["better"]
    assert better.is_alone
    for rng in (5, 6):
        later = differing(learned_from(better.runs, rng), "bet1", "bet0")
        assert later.verdicts == ("better",)
        assert later.upper - later.lower == pytest.approx(better.width, rel=0.15)
        assert differing(learned_from(better.runs // 10, rng), "bet1", "bet0").verdicts == ("inconclusive",)


def test_the_gain_is_the_difference_of_both_values_at_the_estimate(few, told):
    values = [pl.conclude(few, STUDY.objective, policy=policy).beside.estimated_value for policy in ("bet1", "bet0")]
    assert told.gain == pytest.approx(values[0] - values[1], rel=1e-9)
    assert told.predictions["better"].width <= told.gain * 1.02
    assert told.sentence.startswith("By the estimate, a small bet is better by 0.567; if this is true, about 1,6")


@pytest.mark.slow
def test_the_second_policy_may_be_the_better_one(few, told):
    other = runs_to_tell(few, STUDY.objective, differing(few, "bet0", "bet1"))
    assert other.gain == -told.gain
    assert other.sentence.startswith("By the estimate, none is better by 0.567") is True
    assert other.predictions["worse"].runs == told.predictions["better"].runs


def test_nothing_is_predicted_of_what_is_known_or_of_equal_policies(few):
    assert runs_to_tell(few, STUDY.objective, differing(few, "bet0", "uniform")) is None
    assert runs_to_tell(few, STUDY.objective, differing(few, "bet1", "bet1")) is None


def test_where_no_number_of_runs_decides_it_is_said():
    assert DecidingRuns(0.0, {}, ("a", "b")).sentence == "Even 10^12 runs like these are predicted not to decide."


def test_nothing_is_predicted_of_data_that_are_not_runs():
    graph = STUDY.model.graph
    learned = pl.learn(STUDY.model, pl.TransitionCounts(graph, np.ones(graph.n_transitions, dtype=int), "adaptive"))
    assert runs_to_tell(learned, STUDY.objective, differing(learned, "bet1", "bet0")) is None


def test_it_can_be_written_as_json(told):
    content = json.loads(json.dumps(told.to_dict()))
    assert content["predictions"]["better"]["runs"] == told.predictions["better"].runs
    assert content["sentence"] == told.sentence


@pytest.mark.night
def test_each_verdict_has_its_own_distance_from_where_it_would_be_wrong(few, told):
    """The gain g is 0.567: above 0 by g, above -0.1 by g + 0.1, and below 0.9 by 0.9 - g; what is known is left out."""
    wanted = {
        0.1: {"better": told.gain, "not worse by more than the margin": told.gain + 0.1},
        0.9: {"better": told.gain, "the same within the margin": 0.9 - told.gain},
    }
    for margin, widths in wanted.items():
        found = differing(few, "bet1", "bet0", margin=margin)
        more = runs_to_tell(few, STUDY.objective, found)
        assert {verdict: each.width for verdict, each in more.predictions.items()} == {
            verdict: pytest.approx(width, rel=0.025) for verdict, width in widths.items()
        }
        assert not {*found.verdicts} & {*more.predictions}
    assert more.sentence.index("that a small bet is better") < more.sentence.index("that both are the same within 0.9")
    assert runs_to_tell(few, STUDY.objective, differing(few, "bet1", "bet0", margin=100.0)) is None


def walk(s):
    if s.x in (0, 4):
        return {"end": [(1, s)]}
    up, down = s._replace(x=s.x + 1), s._replace(x=s.x - 1)
    return {"walk": pl.unknown(up, down), "run": pl.unknown(up, down)}


def test_runs_of_a_table_are_predicted_by_the_root_of_their_number():
    """Bounds that are to be w / t times as close need (w / t)^2 times as many runs as there are."""
    goal = 'Pmax=? [ F "goal" ]'
    labels = {"goal": lambda s: s.x == 4, "end": lambda s: s.x in (0, 4)}
    model = pl.explore(walk, {"x": 2}, labels=labels)
    rows = {1: [1.0], 2: [0.5, 0.5]}
    chances = np.concatenate([rows[n] for n in np.diff(model.graph.first_transition)])
    counts = pl.simulate(model, chances, 400, rng=1, max_steps=100, stop=model.labels["end"])
    learned = pl.learn(model, counts, objectives=[goal], confidence=0.95)
    unknown = pl.difference(learned, goal, "walk", "run", margin=0.3)
    more = runs_to_tell(learned, goal, unknown)
    width = unknown.upper - unknown.lower
    target = 0.3 - abs(more.gain)
    assert more.predictions["the same within the margin"].runs == pytest.approx(
        400 * ((width / target) ** 2 - 1), rel=0.02
    )
    (verdict,) = {"better", "worse"} & {*more.predictions}
    far = more.gain - unknown.lower if verdict == "better" else unknown.upper - more.gain
    half = (unknown.approximate[1] - unknown.approximate[0]) / 2  # one end alone has to come near the estimate
    wanted = 400 * (((far + half) / abs(more.gain)) ** 2 - 1)
    assert more.predictions[verdict].runs == pytest.approx(wanted, rel=0.02)


def test_the_smallest_number_of_runs_comes_first_and_two_may_be_equal():
    """What is certified from new runs alone is said once if it is so of all."""
    alone, together = (Prediction("like these", 50, 1.0, is_alone=is_alone) for is_alone in (True, False))
    both = DecidingRuns(1.0, {"better": alone, "not worse by more than the margin": alone}, NAMES, 0.5)
    assert both.sentence == (
        "By the estimate, a small bet is better by 1; if this is true, about 50 more runs like these would show that a "
        "small bet is better; about 50 that a small bet is not worse by more than 0.5, if you certify from these only."
    )
    some = replace(both, predictions={"better": alone, "the same within the margin": together})
    assert some.sentence.endswith(
        "is better, if you certify from these only; about 50 that both are the same within 0.5."
    )


# Expected visits against dense matrices, loops and simulations; and what counts alone show of the runs behind them


def random_law(seed, max_steps):
    """Return the law of runs of a small random model that end in its goal."""
    problem = random_problem(np.random.default_rng(seed))
    model = problem.model
    point = np.array([float(problem.point[name]) for name in model.space.names])
    probability = model.expressions.evaluate(point[None, :])[:, 0][model.expression]
    return RunLaw(model.graph, probability, np.asarray(problem.target), max_steps)


def dense_visits(law, weights_at):
    """Return expected visits by dense matrices, for a policy that may depend on the step."""
    graph, owner = law.graph, law.graph.state_of_choice()
    choice = graph.choice_of_transition()
    mass, visits = np.eye(graph.n_states)[graph.initial_state], np.zeros(graph.n_choices)
    for step in range(law.max_steps):
        taken = np.where(law.is_end, 0.0, mass)[owner] * weights_at(step)
        visits += taken
        mass = np.zeros(graph.n_states)
        np.add.at(mass, graph.successor, law.probability * taken[choice])
    return visits


@pytest.mark.parametrize("seed", range(10))
def test_expected_visits_are_those_of_dense_matrices(seed):
    law = random_law(seed, max_steps=7)
    weights = normalised(law.graph, np.random.default_rng(seed).random(law.graph.n_choices))
    assert np.allclose(law.visits(weights), dense_visits(law, lambda step: weights), atol=1e-14)


@pytest.mark.parametrize("seed", range(10))
def test_no_policy_gathers_more_than_the_best_visits(seed):
    """All policies without memory, and one found by a backward loop over states that knows the steps that are left."""
    law = random_law(seed, max_steps=4)
    graph, rng = law.graph, np.random.default_rng(seed)
    reward = rng.random(graph.n_choices)
    visits = law.best_visits(reward)
    value = np.zeros(graph.n_states)
    for _ in range(law.max_steps):
        new = np.zeros(graph.n_states)
        for state in np.flatnonzero(~law.is_end):
            choices = range(graph.first_choice[state], graph.first_choice[state + 1])
            rows = [slice(graph.first_transition[c], graph.first_transition[c + 1]) for c in choices]
            gains = [law.probability[row] @ value[graph.successor[row]] for row in rows]
            new[state] = max(reward[c] + gain for c, gain in zip(choices, gains, strict=True))
        value = new
    assert visits @ reward == pytest.approx(value[graph.initial_state], rel=1e-9)
    own = [range(a, b) for a, b in zip(graph.first_choice[:-1], graph.first_choice[1:], strict=True)]
    for policy in list(product(*own))[:100]:
        weights = np.bincount(policy, minlength=graph.n_choices).astype(float)
        assert law.visits(weights) @ reward <= visits @ reward * (1 + 1e-9)


@pytest.mark.parametrize(("name", "steps"), [("betting:5", 6), ("glider:11,9", 40), ("rover:10,10", 20)])
def test_counts_show_how_many_runs_they_are_and_how_long(name, steps):
    """Of those that may come back to where they began, nothing shows where they ended but their length."""
    study = pl.case_study(name)
    counts = pl.simulate(study.model, study.true_point, 2_000, rng=1, max_steps=steps)
    law = law_of(counts, study.model.probabilities(study.true_point)[study.model.expression])
    seen = seen_runs(law, counts)
    assert seen.n_runs == pytest.approx(2_000, rel=0.01)
    assert seen.max_steps == pytest.approx(steps, abs=1)


def test_steps_that_begin_elsewhere_are_not_runs():
    study = pl.case_study("betting:5")
    model = study.model
    counts = pl.TransitionCounts(model.graph, np.ones(model.graph.n_transitions, dtype=np.int64), "independent")
    assert seen_runs(law_of(counts, model.probabilities({"p": 0.5})[model.expression]), counts) is None


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 5)), min_size=1, max_size=40))
def test_whole_counts_have_the_sums_of_expected_ones(pairs):
    group, expected = np.array([g for g, _ in pairs]), np.array([x for _, x in pairs])
    found = whole_counts(expected, group)
    assert (found >= 0).all()
    for g in set(group.tolist()):
        assert abs(found[group == g].sum() - expected[group == g].sum()) <= 0.5 + 1e-9

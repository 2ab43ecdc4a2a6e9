"""The policy with the largest certified gain over a baseline, or the baseline: whatever the baseline is given as."""

import json

import numpy as np
import pytest
from arms import WINS, chances, row_of_arms
from shorthand import improve

import plumdp as pl
from plumdp.certifying import policy_search
from plumdp.data.practice import practice_of

N, MODEL = 3, row_of_arms(3)
TRUTH = chances(N, b0=0.8, a1=0.45)


def data(n_runs, truth=TRUTH, model=MODEL, **options):
    return pl.simulate(model, truth, n_runs, rng=1, max_steps=N + 1, **options)


def value(policy, truth=TRUTH):
    """Return the expected number of wins: in each state the mean of the coins that the policy throws."""
    weights = policy.weights if policy.weights is not None else np.isin(np.arange(MODEL.graph.n_choices), policy.choice)
    names = [MODEL.graph.action_names[action] for action in MODEL.graph.action]
    places = MODEL.graph.states["at"][MODEL.graph.state_of_choice()]
    shares = {}
    for name, at, weight in zip(names, places.tolist(), weights, strict=True):
        if at < N:  # both states at a place have the same coins, and the policies here the same actions
            shares[f"{name}{at}"] = float(weight)
    return sum(truth[coin] * share for coin, share in shares.items())


BASELINES = {
    "an action": "a",
    "a function": lambda state: "a",
    "a dict": {(at, won): "a" for at in range(N) for won in (0, 1) if at or not won},
    "a table": pl.PolicyTable.from_actions(MODEL.graph, "a"),
    "numbers of choices": np.asarray(MODEL.graph.first_choice[:-1]),
    "a policy that draws": lambda state: {"a": 0.75, "b": 0.25},
    "uniform": "uniform",
    "practice": "practice",
}


@pytest.mark.parametrize("baseline", BASELINES)
def test_a_policy_that_is_certified_to_be_better_is_returned(baseline):
    found = improve(MODEL, data(2000), WINS, over=BASELINES[baseline])
    assert found.is_better
    assert found.policy.action(at=0, won=0) == "b"
    gained = value(found.policy) - value(found.difference.second.policy)
    assert 0 < found.gain <= gained <= found.difference.upper
    assert found.gain == found.difference.lower
    assert found.certificate is found.difference.first
    assert found.headline.startswith("Certified: ")
    assert "under the recommended policy than under " in found.headline


@pytest.mark.night
@pytest.mark.parametrize("direction", ["max", "min"])
def test_the_baseline_is_returned_if_it_is_the_best_or_if_too_little_is_known(direction):
    asked = WINS.replace("max", direction)
    best = (lambda state: "b" if state.at < 2 else "a") if direction == "max" else (lambda state: "a")
    learned = pl.learn(MODEL, data(500), objectives=[asked])
    for over in (best, "uniform"):
        given = pl.conclude(learned, asked, policy=over)
        found = pl.decisions.improve(pl.learn(MODEL, data(20), objectives=[asked]), asked, over=over)
        assert not found.is_better
        assert np.array_equal(found.policy, given.policy)
        assert found.gain == 0
        assert found.headline.endswith("Keep the baseline: no policy is known to be better.")
    assert not pl.decisions.improve(learned, asked, over=best).is_better


def test_smaller_values_are_better_if_they_are_asked_for():
    found = improve(MODEL, data(2000), WINS.replace("max", "min"), over="b")
    assert found.is_better
    assert found.gain == -found.difference.upper > 0
    assert found.gain <= value(found.difference.second.policy) - value(found.policy)


@pytest.mark.slow
def test_only_states_where_it_pays_are_changed(monkeypatch):
    """One coin of six states is better: to change them all costs more certainty than it gains."""
    model, truth = row_of_arms(6), chances(6, b0=0.7)
    counts = pl.simulate(model, truth, 4000, rng=2, max_steps=7)
    found = improve(model, counts, WINS, over="uniform")
    assert found.is_better
    assert found.policy.action(at=0, won=0) == "b"
    assert found.policy.n_drawn >= 8  # of 11 states
    monkeypatch.setattr(policy_search, "_where_it_pays", lambda graph, policy, rival, worths: [policy])
    assert not improve(model, counts, WINS, over="uniform").is_better


def test_practice_is_how_often_the_data_take_each_action():
    """By hand: state 0 has 3 of a and 1 of b; the state after a win has one b; that after a loss has no data."""
    graph = MODEL.graph
    counts = np.zeros(graph.n_transitions, dtype=np.int64)
    names = [graph.action_names[action] for action in graph.action]
    states = [tuple(int(graph.states[name][s]) for name in ("at", "won")) for s in graph.state_of_choice()]
    taken = {((0, 0), "a"): 3, ((0, 0), "b"): 1, ((1, 1), "b"): 1}
    for choice, key in enumerate(zip(states, names, strict=True)):
        counts[graph.first_transition[choice]] = taken.get(key, 0)
    weights = practice_of(counts, MODEL)
    shown = dict(zip(zip(states, names, strict=True), weights.tolist(), strict=True))
    assert (shown[(0, 0), "a"], shown[(0, 0), "b"]) == (0.75, 0.25)
    assert (shown[(1, 1), "a"], shown[(1, 1), "b"]) == (0, 1)
    assert (shown[(1, 0), "a"], shown[(1, 0), "b"]) == (0.5, 0.5)


@pytest.mark.slow
def test_the_assumption_about_practice_is_printed_with_the_states_without_data():
    found = improve(MODEL, data(300), WINS)
    said = found.assumptions[-1]
    assert said.startswith("practice takes each action as often as these data do in the same state")
    assert "without data" not in said
    assert "practice acts as in the log" in " ".join(str(found).split())
    assert said in found.to_dict()["assumptions"]
    assert {*found.certificate.rests_on.assumptions} < {*found.assumptions}
    said = improve(MODEL, data(1), WINS).assumptions[-1]
    assert said.endswith("; in 2 states without data, it draws all actions alike")
    assert "practice" not in str(improve(MODEL, data(300), WINS, over="a"))


def test_data_that_contradict_the_model_improve_nothing():
    p = pl.parameters("p")[0]
    graph = {"start": {"go": [(p, "up"), (1 - p, "down")], "wait": [(p, "down"), (1 - p, "up")]}}

    def step(state):
        rows = graph.get(state.place, {"stay": [(1, state.place)]})
        return {action: [(f, state._replace(place=place)) for f, place in row] for action, row in rows.items()}

    model = pl.explore(
        step, {"place": "start"}, space=pl.ParameterSpace.unit("p"), labels={"up": lambda state: state.place == "up"}
    )
    is_up = model.labels["up"][model.graph.successor]
    counts = np.where(is_up, 900, 100) * (model.graph.state_of_choice()[model.graph.choice_of_transition()] == 0)
    found = improve(model, pl.TransitionCounts(model.graph, counts, "adaptive"), 'Pmax=? [ F "up" ]', over="wait")
    assert not found.is_better
    assert found.policy.action(place="start") == "wait"
    assert found.headline.startswith("Model rejected: ")


@pytest.mark.parametrize(
    "options", [{"confidence_set": "interval"}, {"model_tolerance": 0.01}, {"confidence_set": "l1"}]
)
def test_every_set_with_a_guarantee_improves(options):
    found = improve(MODEL, data(5000), WINS, over="a", **options)
    assert 0 < found.gain <= value(found.policy) - value(found.difference.second.policy)


def test_an_improvement_can_be_printed_shown_and_written_as_json():
    found = improve(MODEL, data(2000), WINS, over="a")
    content = json.loads(json.dumps(found.to_dict()))
    assert (content["schema"], content["is_better"]) == ("plumdp/improvement/1", True)
    assert content["gain"] == content["difference"]["lower"] == found.gain
    assert repr(found).startswith("Improvement(by at least 0.")
    assert found._repr_html_().startswith("<p><b>Certified: ")


def test_a_baseline_of_another_model_is_refused():
    with pytest.raises(pl.ModelError, match="choose 'uniform' or one action"):
        improve(MODEL, data(10), WINS, over="c")

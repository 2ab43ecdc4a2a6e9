"""Policies that are called with observations, saved and read again; files that are not such a policy are refused."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plumdp as pl


def rooms_model():
    """Return a model with a text, a truth value and a number; its states have one to three actions."""
    (p,) = pl.parameters("p")

    def step(s):
        if s.room == "exit, at last":
            return {"rest": [(1, s)]}
        out = s._replace(room="exit, at last")
        actions = {"walk": [(p, out), (1 - p, s._replace(n=min(s.n + 1, 3)))]}
        actions |= {"switch": [(1, s._replace(is_lit=not s.is_lit))]}
        return actions | ({"run, fast": [(p / 2, out), (1 - p / 2, s)]} if s.is_lit else {})

    return pl.explore(step, {"room": "hall", "is_lit": False, "n": 0}, space=pl.ParameterSpace.unit("p"))


MODEL = rooms_model()
GRAPH = MODEL.graph
FIRST = pl.PolicyTable(GRAPH, GRAPH.first_choice[:-1])


@given(st.lists(st.integers(0, 5), min_size=GRAPH.n_states, max_size=GRAPH.n_states))
def test_a_policy_is_the_same_after_saving_and_reading(tmp_path_factory, places):
    path = tmp_path_factory.mktemp("policy") / "policy.csv"
    choice = GRAPH.first_choice[:-1] + np.array(places) % np.diff(GRAPH.first_choice)
    policy = pl.PolicyTable(GRAPH, choice)
    policy.to_csv(path)
    assert pl.read_policy(path, MODEL).choice.tolist() == choice.tolist()
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([lines[0], *reversed(lines[1:])]).replace("True", " true"), encoding="utf-8-sig")
    assert pl.read_policy(str(path), GRAPH).choice.tolist() == choice.tolist()


def test_calling_a_policy_is_looking_up_its_row():
    policy = pl.PolicyTable(GRAPH, GRAPH.first_choice[1:] - 1)
    columns = policy.columns()
    for row in zip(*(values.tolist() for values in columns.values()), strict=True):
        *state, action = row
        named = dict(zip(GRAPH.states, state, strict=True))
        assert policy(named) == policy.action(**named) == policy(tuple(state), observe=tuple) == action


def test_what_the_environment_of_the_model_shows_can_be_given_to_the_policy():
    """Truth values are 0 and 1 there; each action that the policy names is one that the state has."""
    env = pl.as_env(MODEL, {"p": "1/3"}, unavailable="error")
    for seed in range(5):
        observation, _ = env.reset(seed=seed)
        for _ in range(10):
            observation, *_ = env.step(GRAPH.action_names.index(FIRST(observation)))
    assert observation["room"] in ("hall", "exit, at last")


def test_a_policy_is_still_an_array_of_choices_to_numpy():
    assert np.asarray(FIRST).tolist() == FIRST.choice.tolist()
    assert np.array(FIRST, dtype=np.int64).dtype == np.int64
    assert not np.shares_memory(np.array(FIRST), FIRST.choice)


def test_a_policy_of_an_online_record_is_saved_run_and_proved_again(tmp_path):
    study = pl.case_study("betting:5")
    environment = pl.simulator(study.model, study.true_point, rng=1, max_steps=6)
    *_, last = pl.learn_online(study.model, environment, study.objective, episodes=300, spacing=2.0)
    assert isinstance(last.policy, pl.PolicyTable)
    last.policy.to_csv(tmp_path / "policy.csv")
    policy = pl.read_policy(tmp_path / "policy.csv", study.model)
    truth = pl.instantiate(study.model, study.true_point)
    worth = pl.evaluate(truth, policy, study.objective)
    assert worth.lower[0] <= last.true_value <= worth.upper[0]
    counts = pl.simulate(study.model, study.true_point, 50, rng=1, max_steps=6, policy=policy)
    assert set(np.flatnonzero(counts.visits)) <= set(last.policy.choice.tolist())


CALLS = {
    "unknown": (lambda: FIRST({"room": "attic", "is_lit": 0, "n": 0}), "(room=attic, is_lit=0, n=0) is not a state of"),
    "missing": (lambda: FIRST({"room": "hall"}), "the observation {'room': 'hall'} says nothing about is_lit, n"),
    "number": (
        lambda: FIRST(7),
        "the observation 7 is not a mapping of state variables; give observe=..., a function from an observation to a "
        "dict with the keys room, is_lit, n",
    ),
    "broken": (
        lambda: FIRST(7, observe=lambda seen: seen.room),
        "observe fails at the observation 7: AttributeError: 'int' object has no attribute 'room'",
    ),
}


@pytest.mark.parametrize(("call", "message"), CALLS.values(), ids=CALLS)
def test_observations_that_say_no_state_are_refused(call, message):
    with pytest.raises(pl.DataError) as caught:
        call()
    assert str(caught.value).startswith(f"policy: {message}")


def changed(old, new):
    return lambda text: text.replace(old, new, 1)


FILES = {
    "column": (changed("is_lit", "lit"), " is not a policy of this model: it has no column is_lit"),
    "empty": (lambda text: "", " is not a policy of this model: it has no column room, is_lit, n, action"),
    "state": (
        changed("hall,False,0", "hall,False,9"),
        ": row 1, (room=hall, is_lit=False, n=9) is not a state of the model",
    ),
    "values": (changed("hall,False,0,", ""), ": row 1 has 1 values, but there are 4 columns"),
    "twice": (
        lambda text: text + text.splitlines()[1] + "\n",
        " has several rows for the state (room=hall, is_lit=false, n=0)",
    ),
    "lacking": (
        lambda text: "\n".join(line for line in text.splitlines() if "hall" not in line),
        " says nothing about 8 states of the model with several actions, such as ({}), ({}), ({})",
    ),
    "action": (
        changed("hall,False,0,walk", "hall,False,0,fly"),
        ": row 1, state (room=hall, is_lit=false, n=0): 'fly' is not one of its actions, 'walk', 'switch', or stands "
        "for several",
    ),
}


@pytest.mark.parametrize(("change", "message"), FILES.values(), ids=FILES)
def test_files_that_are_not_a_policy_of_the_model_are_refused(tmp_path, change, message):
    path = tmp_path / "policy.csv"
    FIRST.to_csv(path)
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(pl.DataError) as caught:
        pl.read_policy(path, MODEL)
    halls = [GRAPH.describe_state(state) for state in np.flatnonzero(GRAPH.states["room"] == "hall")]
    assert str(caught.value) == f"{path}{message}".format(*halls)


def test_states_with_one_action_may_be_left_out(tmp_path):
    path = tmp_path / "policy.csv"
    FIRST.to_csv(path)
    kept = [line for line in path.read_text(encoding="utf-8").splitlines() if "rest" not in line]
    path.write_text("\n".join(kept), encoding="utf-8")
    assert len(kept) <= GRAPH.n_states
    assert pl.read_policy(path, MODEL).choice.tolist() == FIRST.choice.tolist()


def test_a_file_that_is_not_there_and_something_that_is_no_model_are_refused(tmp_path):
    with pytest.raises(pl.DataError, match=r"nothing\.csv cannot be read as a policy: .*No such file"):
        pl.read_policy(tmp_path / "nothing.csv", MODEL)
    with pytest.raises(pl.ModelError, match=r"read_policy takes a parametric MDP \(its \.model gives one\)"):
        pl.read_policy(tmp_path / "nothing.csv", pl.case_study("betting:5"))


@given(st.lists(st.sampled_from(GRAPH.action_names), min_size=GRAPH.n_states, max_size=GRAPH.n_states))
def test_named_actions_are_taken_or_the_first_state_that_lacks_one_is_named(names):
    offered = [
        [GRAPH.action_names[a] for a in GRAPH.action[first:last]]
        for first, last in zip(GRAPH.first_choice, GRAPH.first_choice[1:], strict=False)
    ]
    taken = [own[0] if len(own) == 1 else name for own, name in zip(offered, names, strict=True)]
    wrong = [state for state, own in enumerate(offered) if taken[state] not in own]
    if wrong:
        with pytest.raises(pl.DataError, match=re.escape(f"state ({GRAPH.describe_state(wrong[0])}): ")):
            pl.PolicyTable.from_actions(GRAPH, names)
    else:
        policy = pl.PolicyTable.from_actions(GRAPH, names)
        assert policy.columns()["action"].tolist() == taken


def test_one_name_stands_for_all_states_and_lengths_are_checked():
    policy = pl.PolicyTable.from_actions(GRAPH, "walk")
    assert set(policy.columns()["action"]) == {"walk", "rest"}
    with pytest.raises(pl.DataError, match=f"3 names of actions for {GRAPH.n_states} states"):
        pl.PolicyTable.from_actions(GRAPH, ["walk"] * 3)

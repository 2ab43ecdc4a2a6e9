"""Policies that are called with observations, saved and read again; files that are not such a policy are refused."""

from collections import namedtuple
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from row_models import listed
from shorthand import compare
from tiers import examples

import plumdp as pl
from plumdp.model.graph import Graph
from plumdp.model.policy import check_policy, policy_weights
from plumdp.model.question import ask

STUDY = pl.case_study("rover:4,4,2")
COUNTS = pl.simulate(STUDY.model, STUDY.true_point, 200, rng=1, max_steps=20)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_frame_of_counts_has_what_was_counted(kind):
    frame = getattr(COUNTS, f"to_{kind}")()
    again = pl.read_log(STUDY.model, frame, pl.LogFormat(form="counts"))
    assert np.array_equal(again.counts.counts, COUNTS.counts)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("given", ["uniform", None])
def test_a_frame_of_a_policy_is_that_policy(kind, given):
    policy = pl.certify(STUDY.model, COUNTS, ask(STUDY.objective, STUDY.model, memory=False), policy=given).policy
    frame = getattr(policy, f"to_{kind}")()
    again = pl.certify(STUDY.model, COUNTS, ask(STUDY.objective, STUDY.model, memory=False), policy=frame).policy
    assert np.array_equal(again.choice, policy.choice)
    assert given is None or np.allclose(again.weights, policy.weights)


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
    assert pl.read_policy(MODEL, path).choice.tolist() == choice.tolist()
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([lines[0], *reversed(lines[1:])]).replace("True", " true"), encoding="utf-8-sig")
    assert pl.read_policy(GRAPH, str(path)).choice.tolist() == choice.tolist()


def test_calling_a_policy_is_looking_up_its_row():
    policy = pl.PolicyTable(GRAPH, GRAPH.first_choice[1:] - 1)
    columns = policy.columns()
    for row in zip(*(values.tolist() for values in columns.values()), strict=True):
        *state, action = row
        named = dict(zip(GRAPH.states, state, strict=True))
        assert policy(named) == policy.action(**named) == policy(tuple(state), observe=tuple) == action


def test_what_the_environment_of_the_model_shows_can_be_given_to_the_policy():
    """Truth values are 0 and 1 there; each action that the policy names is one that the state has."""
    env = pl.data.as_env(MODEL, {"p": "1/3"}, unavailable="error")
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
    environment = pl.online.simulator(study.model, study.true_point, rng=1, max_steps=6)
    *_, last = pl.learn_online(study.model, environment, study.objective, episodes=300, spacing=2.0)
    assert isinstance(last.policy, pl.PolicyTable)
    last.policy.to_csv(tmp_path / "policy.csv")
    policy = pl.read_policy(study.model, tmp_path / "policy.csv")
    truth = pl.stages.instantiate(study.model, study.true_point)
    worth = pl.stages.evaluate(truth, policy, study.objective)
    assert worth.lower[0] <= last.true_value <= worth.upper[0]
    counts = pl.simulate(study.model, study.true_point, 50, rng=1, max_steps=6, policy=policy)
    assert set(np.flatnonzero(counts.visits)) <= set(last.policy.choice.tolist())


def test_observations_that_say_no_state_are_refused():
    refused("policies:observations", globals(), pl.DataError)


def changed(old, new):
    return lambda text: text.replace(old, new, 1)


def test_files_that_are_not_a_policy_of_the_model_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FIRST.to_csv("policy.csv")
    written = Path("policy.csv").read_text(encoding="utf-8")

    def read(change):
        Path("policy.csv").write_text(eval(change)(written), encoding="utf-8")
        pl.read_policy(MODEL, "policy.csv")

    refused("policies:files", read, pl.DataError)


def test_states_with_one_action_may_be_left_out(tmp_path):
    path = tmp_path / "policy.csv"
    FIRST.to_csv(path)
    kept = [line for line in path.read_text(encoding="utf-8").splitlines() if "rest" not in line]
    path.write_text("\n".join(kept), encoding="utf-8")
    assert len(kept) <= GRAPH.n_states
    assert pl.read_policy(MODEL, path).choice.tolist() == FIRST.choice.tolist()


def test_a_file_that_is_not_there_and_something_that_is_no_model_are_refused(tmp_path):
    with pytest.raises(pl.DataError, match=r"nothing\.csv cannot be read as a policy: .*No such file"):
        pl.read_policy(MODEL, tmp_path / "nothing.csv")
    with pytest.raises(pl.ModelError, match=r"read_policy takes a parametric MDP \(its \.model gives one\)"):
        pl.read_policy(pl.case_study("betting:5"), tmp_path / "nothing.csv")


def offered(state):
    """Return the names of the actions of a state."""
    own = GRAPH.action[GRAPH.first_choice[state] : GRAPH.first_choice[state + 1]]
    return [GRAPH.action_names[action] for action in own]


LISTED = [*zip(*(values.tolist() for values in GRAPH.states.values()), strict=True)]  # by the number of the state
OFFERED = [offered(state) for state in range(GRAPH.n_states)]
SEVERAL = [state for state in range(GRAPH.n_states) if len(OFFERED[state]) > 1]
DRAWN = st.tuples(*(st.sampled_from(names) for names in OFFERED))


def in_columns(rows, names):
    columns = dict(zip(GRAPH.states, ([*values] for values in zip(*rows, strict=True)), strict=True))
    return columns | {"action": [*names]}


def forms(names, order):
    """Return one policy in every form that is taken; rows are given in the order."""
    named = dict(zip(LISTED, names, strict=True))
    rows, chosen = [LISTED[state] for state in order], [names[state] for state in order]
    columns = in_columns(rows, chosen)
    Turned = namedtuple("Turned", [*GRAPH.states][::-1])
    turned = {Turned(*row[::-1]): name for row, name in zip(rows, chosen, strict=True)}
    yield "function", (lambda state: named[state.room, state.is_lit, state.n]), None
    yield "dict", dict(zip(rows, chosen, strict=True)), None
    yield "named tuples with their fields in another order", turned, None
    yield "columns", columns, None
    yield "pandas", pd.DataFrame(columns), None
    yield "polars", polars.DataFrame(columns), None
    yield "pyarrow", pa.table(columns), None
    yield "lazy", polars.LazyFrame(columns), None
    yield "list with states", chosen, rows
    yield "array with columns of states", np.array(chosen), {name: columns[name] for name in GRAPH.states}
    yield "array with a frame of states", np.array(chosen), pd.DataFrame(columns)


@settings(max_examples=examples(25))
@given(DRAWN, st.permutations(range(GRAPH.n_states)))
def test_every_form_of_a_policy_gives_each_state_the_action_that_was_said_for_it(names, order):
    for form, actions, states in forms(names, order):
        policy = pl.PolicyTable.from_actions(GRAPH, actions, states=states)
        assert policy.columns()["action"].tolist() == [*names], form


@settings(max_examples=examples(25))
@given(DRAWN, st.permutations(SEVERAL))
def test_states_with_one_action_may_be_left_out_of_every_form(names, order):
    for form, actions, states in forms(names, order):
        policy = pl.PolicyTable.from_actions(GRAPH, actions, states=states)
        assert policy.columns()["action"].tolist() == [*names], form


def test_none_is_the_only_action_of_a_state_in_every_form():
    names = [own[0] if len(own) > 1 else None for own in OFFERED]
    for form, actions, states in forms(names, range(GRAPH.n_states)):
        policy = pl.PolicyTable.from_actions(GRAPH, actions, states=states)
        assert policy.columns()["action"].tolist() == [own[0] for own in OFFERED], form


def test_the_state_that_a_function_gets_is_a_named_tuple_as_in_explore():
    seen = []
    pl.PolicyTable.from_actions(GRAPH, lambda state: seen.append(state) or "walk")
    assert [tuple(state) for state in seen] == [LISTED[state] for state in SEVERAL]
    assert seen[0]._asdict() == {"room": "hall", "is_lit": False, "n": 0}
    assert {type(value) for state in seen for value in state} == {str, bool, int}


def test_one_name_is_taken_wherever_there_are_several_actions():
    policy = pl.PolicyTable.from_actions(GRAPH, "walk")
    assert set(policy.columns()["action"]) == {"walk", "rest"}


START, DARK, AWAY = ("hall", False, 0), ("hall", False, 1), ("exit, at last", False, 0)
WALK = dict.fromkeys((LISTED[state] for state in SEVERAL), "walk")
FORMS = (
    "a function of the state, a dict from states to names of actions, or a table with a column for each state variable "
    "and one for the action"
)


def test_policies_that_do_not_say_what_to_do_in_each_state_are_refused():
    refused("policies:said", globals(), pl.DataError, from_actions=pl.PolicyTable.from_actions)


def corridor():
    """Return cells 0 to 3, explored from cell 2: their order in the graph is 2, 1, 3, 0."""
    (p,) = pl.parameters("p")

    rows = {x: {"left": [(p, x - 1), (1 - p, x)], "right": [(p, x + 1), (1 - p, x)]} for x in (1, 2)}
    rows |= {x: {"done": [(1, x)]} for x in (0, 3)}
    return listed(rows, at="cell", start=2, labels={"goal": 3})


MINE = ["done", "left", "right", "done"]  # by the number of the cell


BY_CELL = {"cell": [*range(4)], "action": MINE}
GIVEN = {
    "all cells": dict(enumerate(MINE)),
    "cells with a choice": {1: "left", 2: "right"},
    "tuples": {(1,): "left", (2,): "right"},
    "function": lambda s: MINE[s.cell],
    "columns": BY_CELL,
    "pandas": pd.DataFrame(BY_CELL),
    "polars": polars.DataFrame(BY_CELL),
    "pyarrow": pa.table(BY_CELL),
}


@pytest.mark.parametrize("policy", GIVEN.values(), ids=GIVEN)
def test_a_policy_by_the_numbers_of_cells_is_valued_run_and_proved_for_those_cells(policy):
    """It goes right from cell 2, where runs begin, until it is in cell 3: the probability is 1."""
    model, question = corridor(), 'Pmax=? [ F "goal" ]'
    counts = pl.simulate(model, {"p": 0.9}, 200, rng=1, max_steps=9)
    assert pl.certify(model, counts, question, policy=policy).lower > 0.999
    learned = pl.learn(model, counts, objectives=[question])
    certificate = pl.conclude(learned, question, policy=policy)
    assert certificate.policy.action(cell=2) == "right"
    assert certificate.policy.action(cell=1) == "left"
    assert [each.lower > 0.999 for each in compare(model, counts, question, policy=policy)] == [True] * 5
    assert (
        pl.stages.evaluate(pl.stages.instantiate(model, {"p": 0.9}), policy, pl.parse_property(question, model)).lower[
            0
        ]
        > 0.999
    )
    run = pl.simulate(model, {"p": 0.9}, 200, rng=1, max_steps=9, policy=policy)
    assert {model.graph.describe_choice(choice) for choice in np.flatnonzero(run.visits)} == {
        "state (cell=2), action 'right'",
        "state (cell=3), action 'done'",
    }
    assert pl.PolicyTable.from_actions(model.graph, policy).choice.tolist() == certificate.policy.choice.tolist()


def test_names_by_number_of_cell_are_taken_with_the_numbers_and_refused_without():
    graph = corridor().graph
    policy = pl.PolicyTable.from_actions(graph, np.array(MINE), states=range(4))
    assert policy.columns()["cell"].tolist() == [2, 1, 3, 0]
    assert policy.columns()["action"].tolist() == ["right", "left", "done", "done"]
    with pytest.raises(pl.DataError, match=r"^a list of names does not say which state each of them is for; "):
        pl.PolicyTable.from_actions(graph, MINE)


@pytest.mark.parametrize("names", [MINE, np.array(MINE)])
def test_names_without_states_are_not_a_policy_to_certify_or_run(names):
    model = corridor()
    with pytest.raises(pl.ModelError) as caught:
        pl.stages.evaluate(
            pl.stages.instantiate(model, {"p": 0.9}), names, pl.parse_property("Pmax=? [ F cell=3 ]", model)
        )
    assert str(caught.value) == (
        f"a policy is {FORMS}; for a list of names there is PolicyTable.from_actions, which asks for the states"
    )


def as_weights(policy):
    """Return a policy as every function takes it, as probabilities of choices."""
    return policy_weights(GRAPH, policy).tolist()


def test_words_stand_for_one_action_or_for_all_alike_wherever_a_policy_is_taken():
    assert as_weights("walk") == as_weights(pl.PolicyTable.from_actions(GRAPH, "walk"))
    sizes = np.diff(GRAPH.first_choice)
    assert as_weights("uniform") == np.repeat(1 / sizes, sizes).tolist()
    message = "policy='fly': choose 'uniform' or one action, 'walk', 'switch', 'rest', 'run, fast'; or give a function"
    with pytest.raises(pl.ModelError, match=f"^{message}"):
        check_policy(GRAPH, "fly")


def test_a_function_of_the_variables_gets_their_values():
    by_name = check_policy(GRAPH, lambda n, room, is_lit: "switch" if is_lit and n < 2 and room else "walk")
    of_state = check_policy(GRAPH, lambda s: "switch" if s.is_lit and s.n < 2 else "walk")
    assert by_name.tolist() == of_state.tolist()


SHARES = {"walk": 0.25, "switch": 0.75}
DRAWING = [*((LISTED[state], name, share) for state in SEVERAL for name, share in SHARES.items())]


def test_every_form_of_a_policy_that_draws_is_the_same_policy(tmp_path):
    expected = np.zeros(GRAPH.n_choices)
    for state, names in enumerate(OFFERED):
        own = SHARES if len(names) > 1 else {names[0]: 1}
        expected[GRAPH.first_choice[state] : GRAPH.first_choice[state + 1]] = [own.get(name, 0) for name in names]
    rows, names, shares = zip(*DRAWING, strict=True)
    columns = in_columns(rows, names) | {"probability": [*shares]}
    table = pl.PolicyTable(GRAPH, expected)
    table.to_csv(tmp_path / "drawn.csv")
    pl.exchange.write_policy(table, tmp_path / "drawn.json")
    policies = {
        "function": lambda s: SHARES,
        "dict": {LISTED[state]: SHARES for state in SEVERAL},
        "columns": columns,
        "pandas": pd.DataFrame(columns).sample(frac=1, random_state=1),
        "polars": polars.DataFrame(columns),
        "table": table,
        "csv": pl.read_policy(MODEL, tmp_path / "drawn.csv"),
        "json": pl.read_policy(MODEL, tmp_path / "drawn.json"),
    }
    for form, policy in policies.items():
        assert as_weights(policy) == expected.tolist(), form
    assert table.n_drawn == len(SEVERAL)
    assert np.asarray(table).tolist() == expected.tolist()
    assert repr(table) == f"PolicyTable({GRAPH.n_states} states, draws in {len(SEVERAL)} of them)"
    assert set(table.by_state()["action"]) == {"mostly switch", "rest"}


def test_a_policy_that_draws_needs_a_generator_where_it_does():
    table = pl.PolicyTable.from_actions(GRAPH, lambda s: SHARES if s.n == 0 else "walk")
    assert table.action(room="hall", is_lit=False, n=1) == "walk"
    with pytest.raises(
        pl.DataError, match=r"^state \(room=hall, is_lit=false, n=0\): the policy draws its action; call"
    ):
        table.action(room="hall", is_lit=False, n=0)
    rng = np.random.default_rng(1)
    drawn = [table({"room": "hall", "is_lit": False, "n": 0}, rng=rng) for _ in range(200)]
    assert {name: round(drawn.count(name) / 200, 1) for name in SHARES} == {"walk": 0.2, "switch": 0.8}


def test_probabilities_that_are_not_a_policy_are_refused():
    refused("policies:drawn", lambda shares: check_policy(GRAPH, lambda s: eval(shares)), pl.DataError)


def test_numbers_are_names_of_actions_only_where_actions_are_called_so():
    (p,) = pl.parameters("p")

    def step(s):
        return {"1": [(p, s._replace(x=1)), (1 - p, s)], "0": [(1, s)]} if s.x == 0 else {"0": [(1, s)]}

    graph = pl.explore(step, {"x": 0}, space=pl.ParameterSpace.unit("p")).graph
    assert pl.PolicyTable.from_actions(graph, lambda s: 1).action(x=0) == "1"
    assert pl.PolicyTable.from_actions(graph, np.array([0, 1]), states=[1, 0]).action(x=0) == "1"


def test_names_that_stand_for_several_choices_and_states_that_look_the_same_are_refused():
    twins = Graph(
        first_choice=np.array([0, 2, 3], dtype=np.int32),
        first_transition=np.arange(4, dtype=np.int32),
        successor=np.zeros(3, dtype=np.int32),
        initial_state=0,
        states={"x": np.zeros(2, dtype=np.int32)},
        action=np.zeros(3, dtype=np.int32),
        action_names=("go",),
    )
    with pytest.raises(pl.DataError, match=r"^the policy: state \(x=0\): 'go' stands for several of its choices$"):
        pl.PolicyTable.from_actions(twins, lambda s: "go")
    message = r"^several states have the valuation \(x=0\), so that a table cannot tell them apart$"
    with pytest.raises(pl.DataError, match=message):
        pl.PolicyTable.from_actions(twins, {0: "go"})


def test_states_of_a_shuffled_table_are_found_by_their_columns():
    """The model has several thousand states; the answers are those of the same rule as a function."""
    graph = pl.case_study("betting:25").model.graph
    order = np.random.default_rng(1).permutation(graph.n_states)
    is_decision = np.diff(graph.first_choice)[order] > 1
    states = {name: values[order][is_decision] for name, values in graph.states.items()}
    bold = np.where((states["money"] >= 5) & (states["money"] <= 250), "bet5", "bet0")
    table = pl.PolicyTable.from_actions(graph, {**states, "action": bold})
    rule = pl.PolicyTable.from_actions(graph, lambda s: "bet5" if 5 <= s.money <= 250 else "bet0")
    assert table.choice.tolist() == rule.choice.tolist()

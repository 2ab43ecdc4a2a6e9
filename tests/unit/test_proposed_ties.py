"""Ties that are proposed, and memory, are tested: evidence is fair, rows are compared as said, results are told."""

import json
from itertools import product
from math import exp

import numpy as np
import pandas as pd
import pytest
from proposed_ties import counts_of_runs, play, runs_of, walk
from shorthand import check_model
from typer.testing import CliRunner

import plumdp as pl
from plumdp.base.errors import DataError
from plumdp.cli import app
from plumdp.fit import proposed
from plumdp.fit.proposed import ProposalTest, memory_test, tie_tests

COIN = (0.3, 0.8)  # of a step to the second state, from either


def two_states():
    """Return a chain of two states, each of which may lead to both."""
    return pl.explore(lambda s: {"go": pl.unknown(s._replace(x=0), s._replace(x=1))}, {"x": 0})


def expected_evidence(monkeypatch, length):
    """Return the exact expectation of the evidence against a chain without memory, over all of its runs of a length."""
    model, total, seen = two_states(), 0.0, []
    monkeypatch.setattr(proposed, "p_value_of", lambda evidence: seen.append(evidence) or 1.0)
    for ends in product((0, 1), repeat=length):
        states = np.array([[0, *ends]])
        chance = np.prod([COIN[s] if t else 1 - COIN[s] for s, t in zip(states[0], ends, strict=False)])
        actions = np.append(np.zeros(length, dtype=int), -1)[None, :]
        memory_test(model, runs_of(states, actions))
        total += chance * exp(seen[-1])
    return total


def test_evidence_of_memory_has_an_expectation_of_at_most_one(monkeypatch):
    assert 0.2 < expected_evidence(monkeypatch, 8) <= 1


@pytest.mark.slow
def test_a_planted_look_ahead_into_what_comes_next_is_found(monkeypatch):
    """Parts by the state that a step leads to, in place of the one before it."""
    by_past = proposed._by_past
    ahead = lambda graph, choice, transition, past, *rest: by_past(  # noqa: E731
        graph, choice, transition, graph.successor[transition], *rest
    )
    monkeypatch.setattr(proposed, "_by_past", ahead)
    assert expected_evidence(monkeypatch, 8) > 1.2


def test_rows_are_compared_by_what_changes_and_not_at_walls():
    """Of 4 places, 2 are between walls: 2 actions, 2 lights, 2 places. In both lights all 16 rows can be compared."""
    model = walk()
    counts = counts_of_runs(model, play(model, np.random.default_rng(1), 30))
    x, light, actions = tie_tests(model.graph, counts, ["x", "light", "walk = run"])
    assert [test.n_rows for test in (x, light, actions)] == [8, 16, 16]


def test_ties_that_are_proposed_together_divide_the_error():
    """Otherwise ten right ones at 95 % would be contradicted, one or another, with up to 50 %."""
    model = context()
    counts = counted(model, {"wet": 600, "dry": 500})
    (alone,), both = (tie_tests(model.graph, counts, ties) for ties in (["sky"], ["sky", "x"]))
    assert 0 < alone.p_value < 0.5
    assert both[0].p_value == 2 * alone.p_value
    assert both[1].p_value <= 1


def context():
    """Return a table in which the weather never changes, and a coin is tossed."""
    step = lambda s: {"toss": [s._replace(x=1), s._replace(x=2)] if s.x == 0 else [s._replace(x=0)]}  # noqa: E731

    def start(s):
        return {"look": [s._replace(sky="wet"), s._replace(sky="dry")]} if s.sky == "?" else step(s)

    return pl.explore(start, {"x": 0, "sky": "?"})


def counted(model, heads, *, of=1000):
    """Return counts with so many heads in each sky."""
    graph, counts = model.graph, np.zeros(model.graph.n_transitions, dtype=np.int64)
    for choice in np.flatnonzero(np.diff(graph.first_transition) == 2).tolist():
        sky = str(graph.states["sky"][graph.state_of_choice()[choice]])
        counts[graph.first_transition[choice] :][:2] = heads.get(sky, 0), of - heads.get(sky, of)
    return pl.TransitionCounts(graph, counts, "adaptive")


def test_a_text_that_rows_depend_on_is_found_and_one_that_they_do_not_is_not():
    model = context()
    found = check_model(model, counted(model, {"wet": 600, "dry": 300}), ties=["sky"])
    (test,) = found.proposals
    assert test.p_value < 1e-9
    assert test.n_rows == 2
    assert not found.is_contradicted  # the model does not claim it
    assert "proposal        the data contradict that rows do not depend on sky (p = " in str(found)
    assert check_model(model, counted(model, {"wet": 500, "dry": 520}), ties=["sky"]).proposals[0].p_value == 1


def test_a_tie_of_nothing_that_the_model_has_is_refused():
    model = context()
    counts = counted(model, {})
    for text in ("colour", "toss = toss", "toss = win", "x = sky"):
        with pytest.raises(DataError, match="give a state variable, or two actions"):
            check_model(model, counts, ties=[text])


def test_a_p_value_is_rounded_up():
    assert "(p = 0.0011, 2 rows compared" in ProposalTest("x", "rows are the same", 0.00104, 2, "").sentence(0.99)


def test_memory_contradicts_the_model_at_half_of_the_error_and_is_explained():
    model, rng = walk(), np.random.default_rng(2)
    plain, mindful = play(model, rng, 100), play(model, rng, 100, by_past=0.35)
    check = check_model(model, counts_of_runs(model, mindful), runs=mindful)
    assert check.is_contradicted
    assert check.p_value == check.proposals[0].p_value == 2 * memory_test(model, mindful).p_value
    assert check.headline.endswith("no rows explain the data.")
    assert "because         the data contradict that the next state depends on state and action alone" in str(check)
    assert "try             add what matters of the step before to the state" in str(check)
    assert not check_model(model, counts_of_runs(model, plain), runs=plain).is_contradicted


def test_the_command_tests_ties_and_memory(tmp_path):
    """The model is written as PRISM, since commands read no Python: a walk that goes on as it went."""
    text = "dtmc\nconst double p;\nconst double q;\nmodule walk\n x : [0..3] init 0;\n"
    text += "\n".join(
        f" [go] x={x} -> {'pq'[x % 2]}:(x'={(x + 1) % 4}) + 1-{'pq'[x % 2]}:(x'={(x + 3) % 4});" for x in range(4)
    )
    (tmp_path / "walk.prism").write_text(text + "\nendmodule\n", encoding="utf-8")
    rng, rows = np.random.default_rng(1), []
    for run in range(40):
        x, way = 0, 1
        for step in range(51):
            rows.append((run, step, x, "go" if step < 50 else None))
            way = way if rng.random() < 0.8 else -way
            x = (x + way) % 4
    pd.DataFrame(rows, columns=["episode", "step", "x", "action"]).to_csv(tmp_path / "log.csv", index=False)
    command = ["check-model", str(tmp_path / "walk.prism"), str(tmp_path / "log.csv"), "--json"]
    result = CliRunner().invoke(app, [*command, "--tie", "x", "--tie", "history"])
    assert result.exit_code == 3, result.output
    tie, memory = json.loads(result.output)["proposals"]
    assert (tie["proposal"], tie["n_rows"]) == ("x", 4)  # 0 and 2 lead to the same states, and so do 1 and 3
    assert memory["p_value"] < 1e-9
    assert CliRunner().invoke(app, command).exit_code == 0
    refused = CliRunner().invoke(app, [*command, "--tie", "y"]).exception
    assert str(refused).startswith("ties=['y']: give a state variable, or two actions as in 'one = other'")

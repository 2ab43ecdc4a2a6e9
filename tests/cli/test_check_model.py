"""``plumdp check-model`` as a user types it: texts, JSON, pictures, exit codes and misuse."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import plumdp as pl
from plumdp.cli import app
from plumdp.data.counts import Pilot

RUNNER = CliRunner()
STUDY = "betting:6"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with counts of a right game, and of one in which those who own 10 or more win more often."""
    folder = tmp_path_factory.mktemp("counts")
    model = pl.case_study(STUDY).model
    graph, rng = model.graph, np.random.default_rng(1)
    money = graph.states["money"][graph.state_of_choice()]
    fair = model.probabilities({"p": "0.5"})[model.expression]
    for name, size in (("right", 0.0), ("wrong", 0.08)):
        parts = []
        for visits in (40, 760):
            counts = np.zeros(graph.n_transitions, dtype=np.int64)
            for c in np.flatnonzero(np.diff(graph.first_transition) == 2).tolist():
                first = graph.first_transition[c]
                won = rng.binomial(visits, fair[first] + size * (money[c] >= 10))
                counts[first : first + 2] = won, visits - won
            parts.append(counts)
        both = pl.TransitionCounts(graph, parts[0] + parts[1], "independent", Pilot(parts[0], ratio=19.0))
        pl.write_counts(both, folder / f"{name}.parquet")
    return folder


def run(folder, name, *options, columns=120):
    arguments = ["check-model", STUDY, str(folder / f"{name}.parquet"), *options]
    return RUNNER.invoke(app, arguments, env={"COLUMNS": str(columns)})


def test_a_right_model_ends_with_0_and_is_said_to_be_in_order(folder):
    result = run(folder, "right")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("Model test passed (p = ")
    assert "\nbecause" not in result.output


@pytest.mark.slow
def test_a_wrong_model_ends_with_3_and_says_where_and_what_to_try(folder):
    result = run(folder, "wrong")
    assert result.exit_code == 3, result.output
    printed = " ".join(result.output.split())
    assert printed.startswith("Model rejected with confidence 99.9 % (p = ")
    assert "because the data fit another p where money is large: from money = " in printed
    assert "try let p depend on money, such as with one value from money = " in printed
    assert "observed minus expected, as probabilities" in printed


@pytest.mark.night
def test_json_is_json_only_with_the_same_exit_codes(folder):
    for name, code in (("right", 0), ("wrong", 3)):
        result = run(folder, name, "--json")
        read = json.loads(result.output)
        assert (result.exit_code, read["rejected"]) == (code, code == 3)
        assert bool(read["diagnosis"]) is (code == 3)
        assert {"kind", "where", "what", "observations", "difference"} <= read["residuals"][0].keys()


@pytest.mark.night
def test_properties_may_be_given(folder):
    asked = ["-p", 'R{"money"}max=? [ F "end" ]', "-p", "Pmax=? [ F money>=20 ]"]
    assert run(folder, "wrong", "--json", *asked).exit_code == 3


@pytest.mark.night
def test_a_narrow_screen_has_sentences_and_no_torn_table(folder):
    result = run(folder, "wrong", columns=40)
    lines = result.output.splitlines()
    assert max(map(len, lines)) <= 40
    assert "┃" not in result.output
    printed = " ".join(result.output.split())
    assert "the probability that money goes up is 0.0" in printed
    assert "more probable than the model says" in printed


def test_misuse_says_what_to_do(folder):
    cases = [
        (
            ["--order", "time"],
            f"--order: {folder / 'right.parquet'} is a file of counts, which keeps the order that it was counted with; "
            "count the log again with --order, or give the log itself",
        ),
        (["--confidence", "1"], "--confidence 1: give a number between 0 and 1, such as 0.999"),
    ]
    for options, message in cases:
        result = run(folder, "right", *options)
        assert isinstance(result.exception, pl.DataError), options
        assert str(result.exception) == message
    assert isinstance(run(folder, "right", "-p", "Pmax=? [ F nothing>3 ]").exception, pl.ModelError)

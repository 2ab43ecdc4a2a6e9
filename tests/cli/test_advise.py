"""``plumdp advise`` on counts of a case study: sentences, JSON, the policy as a file, and misuse."""

import csv
import json

import explained
import pytest
from typer.testing import CliRunner

import plumdp as pl
from plumdp.cli import app

RUNNER = CliRunner()
STUDY = "betting:5"


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "counts.parquet"
    pl.write_counts(explained.COUNTS, path)
    return str(path)


@pytest.fixture(scope="module")
def advice():
    return pl.advise(explained.learned(), explained.STUDY.objective)


@pytest.fixture
def known(monkeypatch, advice):
    """Give the command the advice of before, in tests that are not about what it says."""
    monkeypatch.setattr(pl, "advise", lambda *_, **options: advice)


def refusal(arguments):
    """Return the sentence with which a command ends that raises an error of ours."""
    with pytest.raises((pl.DataError, pl.ModelError)) as error:
        RUNNER.invoke(app, ["advise", *arguments], catch_exceptions=False)
    return str(error.value)


@pytest.mark.slow
def test_advice_in_sentences_and_the_policy_in_a_file(counts, known, tmp_path):
    file = tmp_path / "policy.csv"
    result = RUNNER.invoke(app, ["advise", STUDY, counts, "-o", str(file)], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    assert result.output.startswith("To halve the width of the bracket (now ")
    assert f"under the policy in {file}" in " ".join(result.output.split())
    assert "money=10, step=0: bet" in result.output
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    first = [float(row["probability"]) for row in rows if row["money"] == "10" and row["step"] == "0"]
    assert sum(first) == pytest.approx(1)


@pytest.mark.slow
def test_the_json_has_what_the_sentences_say(counts):
    result = RUNNER.invoke(app, ["advise", STUDY, counts, "--runs", "500", "--json"])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.output)
    assert (facts["schema"], facts["runs"]) == ("plumdp/advice/2", 1_000)
    assert {p["runs"] for p in facts["predictions"]} == {500}
    assert set(facts["choices"][0]) == {"state", "action", "rate", "visits", "visits_per_run", "probability"}


@pytest.mark.night
def test_no_number_is_cut_on_a_narrow_terminal(counts, known):
    result = RUNNER.invoke(app, ["advise", STUDY, counts], env={"COLUMNS": "40"})
    assert result.exit_code == 0
    assert "…" not in result.output


@pytest.mark.night
def test_an_earlier_file_is_replaced_only_by_force(counts, known, tmp_path):
    file = tmp_path / "policy.csv"
    file.write_text("old")
    said = refusal([STUDY, counts, "-o", str(file)])
    assert said == f"{file} already exists; choose another file, or replace it with --force"
    assert file.read_text() == "old"
    result = RUNNER.invoke(app, ["advise", STUDY, counts, "-o", str(file), "--force", "--json"])
    assert result.exit_code == 0
    assert file.read_text().startswith("money,step,action,probability")


def test_no_runs_are_refused(counts):
    assert refusal([STUDY, counts, "--runs", "0"]) == "--runs 0: give a whole number, at least 1"


def test_a_folder_is_not_a_file(counts, tmp_path):
    assert refusal([STUDY, counts, "-o", str(tmp_path)]) == f"{tmp_path} is a folder; name a file in it"


def test_a_property_that_no_parameter_decides_is_refused(counts):
    said = refusal([STUDY, counts, "-p", 'Pmax=? [ F "end" ]'])
    assert said == "the value of the policy does not depend on the parameters: no data narrow it"


@pytest.mark.slow
def test_data_that_contradict_the_model_end_with_3(tmp_path):
    import numpy as np

    model = pl.case_study(STUDY).model
    rng = np.random.default_rng(1)
    array = rng.integers(0, 2, model.graph.n_transitions) * 5_000
    pl.write_counts(pl.TransitionCounts(model.graph, array, "adaptive"), tmp_path / "counts.parquet")
    result = RUNNER.invoke(app, ["advise", STUDY, str(tmp_path / "counts.parquet")])
    assert result.exit_code == 3

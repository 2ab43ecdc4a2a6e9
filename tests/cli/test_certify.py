"""From a case study to a certificate by commands alone, with the exit codes that scripts rely on."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import plumdp as pl
from plumdp.cli import app

RUNNER = CliRunner()
STUDY = "aircraft:20,10"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the same runs as transitions, as trajectories and as counts."""
    folder = tmp_path_factory.mktemp("runs")
    for name, options in {"runs": [], "states": ["--form", "trajectories"], "counts": ["--counts"]}.items():
        output = ["-n", "5000", "--seed", "3", "-o", str(folder / f"{name}.parquet")]
        result = RUNNER.invoke(app, ["simulate", STUDY, *output, *options])
        assert result.exit_code == 0, result.output
    return folder


def test_runs_counted_from_either_form_are_those_counted_at_once(folder):
    model = pl.benchmark(STUDY).model
    direct = pl.read_counts(folder / "counts.parquet", model)
    assert direct.total == 5000 * 21
    for name in ("runs", "states"):
        counted = folder / f"{name}.counts.parquet"
        result = RUNNER.invoke(app, ["count", STUDY, str(folder / f"{name}.parquet"), "-o", str(counted)])
        assert result.exit_code == 0, result.output
        assert "105,000 matched" in result.output
        assert (pl.read_counts(counted, model).counts == direct.counts).all()


def test_certify_prints_a_claim_and_writes_policy_and_certificate(folder, tmp_path):
    result = RUNNER.invoke(app, ["certify", STUDY, str(folder / "counts.parquet"), "-o", str(tmp_path / "result")])
    assert result.exit_code == 0
    assert result.output.startswith("The policy's value lies between 0.")
    saved = json.loads((tmp_path / "result" / "certificate.json").read_text())
    assert saved["status"] == "certified"
    with (tmp_path / "result" / "policy.csv").open() as file:
        rows = list(csv.DictReader(file))
    study = pl.benchmark(STUDY)
    assert len(rows) == study.model.graph.n_states
    assert {row["action"] for row in rows} <= set(study.model.graph.action_names)


def test_the_json_of_logs_is_that_of_their_counts(folder):
    of = {}
    for name in ("runs", "counts"):
        result = RUNNER.invoke(app, ["certify", STUDY, str(folder / f"{name}.parquet"), "--json"])
        of[name] = json.loads(result.output)
    assert of["runs"]["lower"] == of["counts"]["lower"]
    truth = pl.benchmark(STUDY)
    value = pl.solve(pl.instantiate(truth.model, truth.true_point), truth.objective).lower[0]
    assert of["runs"]["lower"] <= value  # the robust policy is no better than the best one


def test_compare_shows_all_relaxations_in_order(folder):
    result = RUNNER.invoke(app, ["compare", STUDY, str(folder / "counts.parquet"), "--json"])
    certificates = json.loads(result.output)
    assert [c["relaxation"] for c in certificates] == ["interval", "parameter", "expression", "rectangular"]
    lower = {c["relaxation"]: c["lower"] for c in certificates}
    assert lower["interval"] <= lower["expression"] <= lower["rectangular"]
    assert lower["parameter"] <= lower["expression"]
    table = RUNNER.invoke(app, ["compare", STUDY, str(folder / "counts.parquet")]).output
    assert "rectangular" in table


def test_data_that_contradict_the_model_end_with_3(tmp_path):
    """All bets of 1 won when 10 is owned and lost when 11 is: both have probability p."""
    model = pl.benchmark("betting:25").model
    graph = model.graph
    counts = np.zeros(graph.n_transitions, dtype=np.int64)
    bets = np.flatnonzero(graph.action == graph.action_names.index("bet1"))
    for row, won in ((bets[0], True), (bets[1], False)):
        first = graph.first_transition[row]
        money = graph.states["money"][graph.successor[first : first + 2]]
        counts[first + (np.argmax(money) if won else np.argmin(money))] = 10_000
    bets2 = np.flatnonzero(graph.action == graph.action_names.index("bet2"))[0]
    first = graph.first_transition[bets2]
    counts[first : first + 2] = 0
    counts[first + np.argmax(graph.states["money"][graph.successor[first : first + 2]])] = 10_000
    path = tmp_path / "counts.parquet"
    pl.write_counts(pl.TransitionCounts(graph, counts, "trajectories"), path)
    result = RUNNER.invoke(app, ["certify", "betting:25", str(path)])
    assert result.exit_code == 3
    assert result.output.startswith("MODEL CONTRADICTED")


def test_no_data_end_with_4(tmp_path):
    model = pl.benchmark(STUDY).model
    nothing = np.zeros(model.graph.n_transitions, dtype=np.int64)
    pl.write_counts(pl.TransitionCounts(model.graph, nothing, "trajectories"), tmp_path / "nothing.parquet")
    options = ["--relaxation", "interval"]
    result = RUNNER.invoke(app, ["certify", STUDY, str(tmp_path / "nothing.parquet"), *options])
    assert result.exit_code == 4
    assert result.output.startswith("Nothing certified")


def test_published_constructions_are_estimates_and_end_with_4(folder):
    arguments = ["certify", STUDY, str(folder / "counts.parquet"), "--paper"]
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 4
    assert result.output.startswith("Estimate, no guarantee: ")
    for sets in ("interval", "ellipsoid"):
        result = RUNNER.invoke(app, [*arguments, "--sets", sets, "--json"])
        assert result.exit_code == 4
        assert json.loads(result.output)["status"] == "no guarantee"
    table = RUNNER.invoke(app, ["compare", STUDY, str(folder / "counts.parquet"), "--paper"]).output
    assert table.count("no guarantee") == 4
    assert "certified" not in table


def test_published_constructions_that_do_not_exist_are_misuse(folder):
    arguments = [STUDY, str(folder / "counts.parquet"), "--paper", "--sets", "l1"]
    result = RUNNER.invoke(app, ["certify", *arguments])
    assert isinstance(result.exception, pl.DataError)
    assert "the paper does not say how it makes L1 balls" in str(result.exception)


def test_the_printed_query_names_every_column():
    result = RUNNER.invoke(app, ["counts-sql", STUDY, "--dialect", "bigquery", "--table", "lake.flights"])
    assert result.exit_code == 0
    assert all(f"`next_{name}`" in result.output for name in ("x", "y", "ax", "ay"))
    assert "lake.flights" in result.output

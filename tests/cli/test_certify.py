"""From a case study to a certificate by commands alone, with the exit codes that scripts rely on."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
import tank
from shorthand import certify_all
from support.refusals import misused
from typer.testing import CliRunner

import plumdp as pl
from plumdp.cli import app
from plumdp.cli.inputs import read_data
from plumdp.cli.options import Options

RUNNER = CliRunner()
STUDY = "aircraft:6,4,1"
ALL = ["--relaxation", "all"]
SAVED = ["certificate.json", "data.npz", "policy.csv"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the same runs as transitions, as trajectories and as counts."""
    folder = tmp_path_factory.mktemp("runs")
    for name, options in {"runs": [], "states": ["--form", "trajectories"], "counts": ["--form", "counts"]}.items():
        output = ["-n", "5000", "--seed", "3", "-o", str(folder / f"{name}.parquet")]
        result = RUNNER.invoke(app, ["simulate", STUDY, *output, *options])
        assert result.exit_code == 0, result.output
    return folder


@pytest.mark.slow
def test_certify_prints_a_claim_and_writes_policy_and_certificate(folder, tmp_path):
    result = RUNNER.invoke(app, ["certify", STUDY, str(folder / "counts.parquet"), "-o", str(tmp_path / "result")])
    assert result.exit_code == 0
    assert result.output.startswith("Certified: under the recommended policy, the ")
    saved = json.loads((tmp_path / "result" / "certificate.json").read_text())
    assert saved["status"] == "certified"
    with (tmp_path / "result" / "policy.csv").open() as file:
        rows = list(csv.DictReader(file))
    study = pl.case_study(STUDY)
    assert len(rows) == study.model.graph.n_states
    assert {row["action"] for row in rows} <= set(study.model.graph.action_names)


@pytest.mark.slow
def test_a_log_is_adaptive_unless_more_is_claimed_and_counts_keep_what_was_said(folder, tmp_path):
    """Of the runs of a file, nobody knows who decided when to stop."""
    log, counts = str(folder / "runs.parquet"), str(tmp_path / "counts.parquet")
    model = pl.case_study(STUDY).model
    for claim, kept in (([], "adaptive"), (["--sampling", "trajectories"], "trajectories")):
        assert RUNNER.invoke(app, ["count", STUDY, log, "-o", counts, "--force", *claim]).exit_code == 0
        assert pl.read_counts(model, counts).sampling == kept
    for data, claim, is_anytime in ((log, [], True), (counts, [], False), (counts, ["--sampling", "adaptive"], True)):
        options = ["--confidence-set", "interval", "--json", *claim]  # the likelihood assumes nothing of the end
        certificate = json.loads(RUNNER.invoke(app, ["certify", STUDY, data, *options]).output)
        assert (certificate["guarantee"] == "finite-sample, anytime") is is_anytime
        assert any("you fixed their number" in text for text in certificate["assumptions"]) is not is_anytime


def test_what_cannot_be_asked_of_counts_or_together_is_misuse(folder):
    misused("commands:certify_counts", folder=folder)


@pytest.mark.slow
def test_a_log_that_shows_what_the_model_excludes_ends_with_3_also_through_a_file_of_counts(folder, tmp_path):
    """Half of the rows of glider:5,5,4,4 go from (0, 0) to (4, 0), which is a state, but not next to it."""
    lines = ["x,y,action,next_x,next_y", *["0,0,east,1,0"] * 50, *["0,0,east,4,0"] * 50]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    counted = ["count", "glider:5,5,4,4", str(tmp_path / "log.csv"), "-o", str(tmp_path / "counts.parquet")]
    assert isinstance(RUNNER.invoke(app, counted).exception, pl.DataError)
    assert RUNNER.invoke(app, [*counted, "--keep-going"]).exit_code == 0
    arguments = ["certify", "glider:5,5,4,4", str(tmp_path / "counts.parquet")]
    result = RUNNER.invoke(app, [*arguments, "--json"])
    assert result.exit_code == 3
    certificate = json.loads(result.output)
    assert (certificate["lower"], certificate["upper"]) == (None, None)
    assert certificate["data_quality"]["report"]["rows"] == {"matched": 50, "impossible transition": 50}
    printed = " ".join(RUNNER.invoke(app, arguments).output.split())
    assert printed.startswith("Model rejected: 50 log rows show what the model excludes. Nothing is claimed.")


@pytest.mark.night
def test_steps_that_the_likelihood_ignores_are_named(tmp_path):
    counts = pl.simulate(tank.blind_tank(), tank.BLIND_TRUTH, 300, rng=1, max_steps=6)
    pl.write_counts(counts, tmp_path / "counts.parquet")
    arguments = ["certify", f"{tank.__file__}:blind_tank", str(tmp_path / "counts.parquet"), "-p", tank.BAD]
    printed = " ".join(RUNNER.invoke(app, arguments).output.split())
    assert "likelihood ignores " in printed
    assert (
        "(-inflow*pump + inflow, -inflow*pump + pump, 2*inflow*pump - inflow - pump + 1) need not be concave, so "
        "only intervals of their probabilities are used; on new data, bounds may be tighter with "
        "the confidence set 'interval' parameters"
    ) in printed
    found = json.loads(RUNNER.invoke(app, [*arguments, "--json"]).output)
    assert found["not_in_likelihood"].endswith("so only intervals of their probabilities are used")
    for name, (low, high) in found["parameters"].items():
        assert low <= found["estimate"][name] <= high
    assert found["lower"] <= found["estimated_value"] <= found["upper"]
    assert "likelihood ignores" not in RUNNER.invoke(app, [*arguments, "--confidence-set", "interval"]).output


def test_no_data_end_with_4(tmp_path):
    model = pl.case_study(STUDY).model
    nothing = np.zeros(model.graph.n_transitions, dtype=np.int64)
    pl.write_counts(pl.TransitionCounts(model.graph, nothing, "trajectories"), tmp_path / "nothing.parquet")
    options = ["--relaxation", "interval"]
    result = RUNNER.invoke(app, ["certify", STUDY, str(tmp_path / "nothing.parquet"), *options])
    assert result.exit_code == 4
    assert result.output.startswith("Inconclusive")


def test_the_printed_query_names_every_column():
    result = RUNNER.invoke(app, ["count", STUDY, "lake.flights", "--sql", "bigquery"])
    assert result.exit_code == 0
    assert all(f"`next_{name}`" in result.output for name in ("x", "y", "ax", "ay"))
    assert "lake.flights" in result.output


def assert_same_moments(counts, other):
    assert [moment.tolist() for moment in counts.pilot.moments] == [moment.tolist() for moment in other.pilot.moments]


@pytest.mark.slow
def test_pilots_of_commands_are_those_of_the_functions(tmp_path):
    model, point = pl.case_study("betting:5").model, pl.case_study("betting:5").true_point
    log, out = str(tmp_path / "log.parquet"), str(tmp_path / "counts.parquet")

    def run(*arguments):
        result = RUNNER.invoke(app, [*arguments])
        assert result.exit_code == 0, result.output
        return result.output

    run("simulate", "betting:5", "-n", "400", "-o", log, "--form", "trajectories")
    said = run("simulate", "betting:5", "-n", "400", "-o", out, "--form", "counts")
    assert said.endswith("steps of 400 runs, counted, with bets after the first 4, 16, 64, 79, 143, 195, …, 399\n")
    expected = pl.simulate(model, point, 400, rng=0, max_steps=6)
    assert_same_moments(pl.read_counts(model, out), expected)
    assert read_data(Options(data=[out]), model).pilot is not None
    # nobody says that the length was planned
    assert read_data(Options(data=[out], sampling="adaptive"), model).pilot is None
    assert run("count", "betting:5", log, "-o", out, "--force").endswith(
        "2,400 steps, counted, without bets, as the order of the data is not known (--order)\n"
    )
    said = run("count", "betting:5", log, "-o", out, "--force", "--order", "runs")
    assert said.endswith(
        "2,400 steps, counted, with bets after the first 4, 16, 64, 256 (the runs of the log are numbered in the order "
        "in which they were made, each ended before the next began)\n"
    )
    assert pl.read_counts(model, out).pilot.lengths == (4, 16, 64, 256)
    assert pl.read_counts(model, out).pilot.expected is None
    run("count", "betting:5", log, "-o", out, "--force", "--order", "runs", "--expected", "1000")
    assert pl.read_counts(model, out).pilot.expected == 1000
    said = run("count", "betting:5", log, "-o", out, "--force", "--sampling", "trajectories")
    assert said.endswith(
        "2,400 steps, counted, with bets after the first 4, 16, 64, 79, 143, 195, …, 399 (the runs are independent, "
        "all under one policy, and were numbered without looking at how they went)\n"
    )
    assert_same_moments(pl.read_counts(model, out), expected)
    assert "n_first_16384" in run("count", "betting:5", "log", "--sql", "duckdb", "--order", "runs")


@pytest.mark.slow
def test_short_logs_in_order_have_an_empty_pilot_which_less_sampling_keeps(tmp_path):
    model = pl.case_study("betting:5").model
    log, out = str(tmp_path / "log.parquet"), str(tmp_path / "counts.parquet")
    RUNNER.invoke(app, ["simulate", "betting:5", "-n", "4", "-o", log, "--form", "trajectories"])
    said = RUNNER.invoke(app, ["count", "betting:5", log, "-o", out, "--order", "runs", "--sampling", "independent"])
    assert said.output.endswith(
        "24 steps, counted, without bets, as there are too few data for the first (the runs of the "
        "log are numbered in the order in which they were made, each ended before the next began)\n"
    )
    for sampling in ("independent", "adaptive"):
        pilot = read_data(Options(data=[out], sampling=sampling), model).pilot
        assert (pilot.total, pilot.moments, pilot.end) == (0, (), "power of four")


@pytest.mark.night
@pytest.mark.parametrize("relaxations", [[], ["--relaxation", "all"]])
def test_a_log_given_directly_has_the_pilot_of_its_order(tmp_path, relaxations):
    """The same certificates as from counts of the log, and others than without a pilot."""
    log, out = str(tmp_path / "log.parquet"), str(tmp_path / "counts.parquet")
    RUNNER.invoke(app, ["simulate", "betting:5", "-n", "2000", "-o", log, "--form", "trajectories"])

    def certified(*arguments):
        options = ["--confidence-set", "likelihood", "--json", *relaxations]
        result = RUNNER.invoke(app, ["certify", "betting:5", *arguments, *options])
        assert result.exit_code == 0, result.output
        found = json.loads(result.output)
        return [(one["relaxation"], one["lower"], one["upper"]) for one in (found if relaxations else [found])]

    for options in (["--order", "runs"], ["--order", "runs", "--expected", "3000"], ["--sampling", "trajectories"]):
        assert RUNNER.invoke(app, ["count", "betting:5", log, "-o", out, "--force", *options]).exit_code == 0
        assert certified(log, *options) == certified(out) != certified(log)


# Several properties

SEVERAL = ['Pmin=? [ F "collision" ]', 'Pmax=? [ !"collision" U "goal" ]']
ASKED = [part for text in SEVERAL for part in ("-p", text)]


@pytest.mark.night
def test_several_properties_are_certified_from_one_set_in_their_order(folder):
    data = str(folder / "counts.parquet")
    result = RUNNER.invoke(app, ["certify", STUDY, data, *ASKED, "--json"])
    assert result.exit_code == 0, result.output
    study = pl.case_study(STUDY)
    expected = certify_all(study.model, pl.read_counts(study.model, data), SEVERAL)
    found = json.loads(result.output)
    assert [(one["objective"], one["lower"], one["upper"], one["jointly"]) for one in found] == [
        (one.claim.objective, one.lower, one.upper, list(one.rests_on.jointly)) for one in expected
    ]
    printed = RUNNER.invoke(app, ["certify", STUDY, data, *ASKED]).output
    words = " ".join(printed.split())
    heads = re.findall(r"Certified: .*? \(confidence [^()]*\)\.", words)
    assert heads == [one.headline for one in expected]
    assert words.count("holds together with the certificates of 1 other property") == 2


@pytest.mark.night
def test_comparisons_of_several_properties_come_one_after_the_other(folder):
    data = str(folder / "counts.parquet")
    found = json.loads(RUNNER.invoke(app, ["certify", STUDY, data, *ALL, *ASKED, "--json"]).output)
    relaxations = ["interval", "parameter", "expression", "rectangular", "coupled"]
    assert [(one["objective"], one["relaxation"]) for one in found] == [(t, r) for t in SEVERAL for r in relaxations]
    assert all(len(one["jointly"]) == 1 for one in found)
    printed = RUNNER.invoke(app, ["certify", STUDY, data, *ALL, *ASKED]).output
    assert printed.index(SEVERAL[0]) < printed.index(SEVERAL[1])
    assert printed.count("rectangular") == 2


@pytest.mark.night
def test_several_results_get_a_folder_each_and_replace_each_other_only_by_force(folder, tmp_path):
    arguments = ["certify", STUDY, str(folder / "counts.parquet"), "-o", str(tmp_path / "result")]
    assert RUNNER.invoke(app, [*arguments, *ASKED]).exit_code == 0
    files = sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.*"))
    assert files == [f"result/{k}/{name}" for k in (1, 2) for name in SAVED]
    saved = [json.loads((tmp_path / "result" / f"{k}" / "certificate.json").read_text()) for k in (1, 2)]
    assert [one["objective"] for one in saved] == SEVERAL
    refused = RUNNER.invoke(app, arguments)
    assert str(refused.exception).endswith(
        "result already exists; choose another folder, or replace it with force=True"
    )
    (tmp_path / "result" / "2" / "notes.txt").write_text("mine")
    refused = RUNNER.invoke(app, [*arguments, "--force"])
    assert str(refused.exception).endswith("holds other files than a result (2/notes.txt); name another folder")
    (tmp_path / "result" / "2" / "notes.txt").unlink()
    assert RUNNER.invoke(app, [*arguments, "--force"]).exit_code == 0
    assert sorted(file.name for file in (tmp_path / "result").iterdir()) == SAVED


@pytest.mark.night
def test_the_weakest_of_several_results_decides_the_exit_code(tmp_path):
    """Nothing was seen, so a bound on a probability is 0; that something is reached in no step is known anyway."""
    model = pl.case_study(STUDY).model
    nothing = np.zeros(model.graph.n_transitions, dtype=np.int64)
    pl.write_counts(pl.TransitionCounts(model.graph, nothing, "trajectories"), tmp_path / "nothing.parquet")
    arguments = ["certify", STUDY, str(tmp_path / "nothing.parquet"), "-r", "interval"]
    known, unknown = 'Pmax=? [ F "init" ]', SEVERAL[0]
    codes = [
        RUNNER.invoke(app, [*arguments, *(part for text in texts for part in ("-p", text))]).exit_code
        for texts in ([known], [known, unknown], [unknown, known])
    ]
    assert codes == [0, 4, 4]


@pytest.mark.night
def test_all_properties_of_a_model_file_are_those_beside_it(tmp_path):
    pytest.importorskip("stormpy")
    model_file, data = tmp_path / "die.prism", tmp_path / "counts.parquet"
    model_file.write_text((Path(__file__).parents[1] / "models" / "die.prism").read_text())
    model = pl.read_model(model_file)
    pl.write_counts(pl.simulate(model, {"p": 0.5}, 1000, rng=1, max_steps=10), data)
    arguments = [str(model_file), str(data), "-p", "all", "--json"]
    for options in (arguments, arguments[:2]):
        refused = RUNNER.invoke(app, ["certify", *options])
        assert str(refused.exception) == (f"{model_file}: no property comes with the model; give one with --property")
    texts = ['Pmax=? [ F "six" ]', 'R{"flips"}min=? [ F s=7 ]']
    (tmp_path / "die.props").write_text("// two questions\n" + "\n".join(texts))
    for relaxations, n_each in (([], 1), (ALL, 5)):
        found = json.loads(RUNNER.invoke(app, ["certify", *arguments, *relaxations]).output)
        assert [one["objective"] for one in found] == [text for text in texts for _ in range(n_each)]
        refused = RUNNER.invoke(app, ["certify", *arguments[:2], *relaxations])
        assert str(refused.exception) == (f"{model_file}: choose one with --property, or all: {'; '.join(texts)}")

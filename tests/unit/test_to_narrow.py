"""The one thing that helps most to get narrower bounds: the right one, in the words of the interface that was used."""

import pandas as pd
import pytest
from command_line import plumdp
from in_format import in_format
from log_models import LAMP, runs

import plumdp as pl
from plumdp.reporting.page import front_of

ROWS = runs(LAMP, {"p": 0.6}, 40)[0]
RUNS, MOVES = pd.DataFrame(ROWS["trajectories"]), pd.DataFrame(ROWS["transitions"])
ASKED = "Pmax=? [ F<=3 place_x=2 ]"
SHARED = pd.concat([RUNS[RUNS.episode < 20], RUNS[RUNS.episode >= 20].assign(episode=RUNS.episode - 20)])
ORDER = (
    "say order='runs' if its runs are numbered as they were made, one after another, or order='time' if its rows are "
    "in order, or sampling='trajectories' if the number of runs was fixed beforehand; then the first data decide how "
    "bets are placed"
)
OVERLAP = "say order='time' if the rows of the log are in the order of time, " + ORDER[ORDER.index("or sampling") :]
FEW = "collect more than 4 runs, or 64 rows if these are in order; the first bets are placed then"
OPEN = (
    "for the next data, fix the number of runs before you look at any, and say sampling='trajectories', or say how "
    "many you expect, with expected=…"
)
MORE = "collect more data: four times as much roughly halves the width (see advise)"
CASES = {
    "nobody said an order": (RUNS, {}, {}, ORDER),
    "runs that overlap": (RUNS.assign(step=RUNS.step + RUNS.episode), {}, {}, OVERLAP),
    "dates of one fleet": (
        RUNS.assign(step=pd.Timestamp("2024-01-01") + pd.to_timedelta(RUNS.step, "D")),
        {},
        {},
        OVERLAP,
    ),
    "runs one after the other": (RUNS.assign(step=RUNS.step + 99 * RUNS.episode), {}, {}, ORDER),
    "runs without names": (
        MOVES.drop(columns="episode"),
        {"sampling": "trajectories"},
        {},
        "name the run of each row, with columns={'episode': …}; then the first data decide how bets are placed",
    ),
    "names of several runs": (
        SHARED,
        {"order": "runs", "on_unmatched": "report"},
        {},
        "give different runs different names, as rows with the same run and step contradict each other; if each file "
        "numbers its runs anew, count each file by itself, and add the counts; then the first data decide how "
        "bets are placed",
    ),
    "no data": (RUNS[:0], {}, {}, "give data: there are no data (the log has 0 rows)"),
    "few runs": (RUNS[RUNS.episode < 4], {"order": "runs"}, {}, FEW),
    "few runs, planned": (RUNS[RUNS.episode < 4], {"sampling": "trajectories"}, {}, FEW),
    "few rows": (MOVES.head(64), {"order": "time"}, {}, FEW),
    "an open end": (RUNS, {"order": "runs"}, {}, OPEN),
    "an expected end": (RUNS, {"order": "runs", "expected": 50}, {}, MORE),
    "a planned end": (RUNS, {"sampling": "trajectories"}, {}, MORE),
    "no bets wanted": (RUNS, {"pilot": False}, {}, MORE),
    "bets that are drawn": (RUNS, {"sampling": "independent"}, {}, MORE),
    "another relaxation": (
        RUNS,
        {"sampling": "trajectories"},
        {"relaxation": "rectangular"},
        "ask for relaxation='coupled', with one point for all states",
    ),
    "a model tolerance": (
        RUNS,
        {"sampling": "trajectories"},
        {"model_tolerance": 0.01},
        "allow for less, with a smaller model_tolerance, if you are sure of it: "
        "no amount of data wins back what it costs",
    ),
    "a set without bets": (RUNS, {}, {"confidence_set": "interval"}, MORE),
}


@pytest.mark.parametrize("case", CASES)
def test_each_certificate_says_what_narrows_its_bounds(case):
    log, said, asked, expected = CASES[case]
    certificate = pl.certify(LAMP, pl.read_log(LAMP, log, **in_format(**said)), ASKED, confidence=0.9, **asked)
    assert certificate.how.to_narrow == f"to get narrower bounds: {expected}"
    assert ("to narrow it", expected) in certificate.page().facts
    assert certificate.to_dict()["narrower"] == expected
    assert not any("no bets" in each for each in certificate.rests_on.assumptions)


def test_the_line_is_kept_with_counts_and_results_and_is_on_the_first_screen_of_a_report(tmp_path):
    counts = pl.read_log(LAMP, RUNS).counts
    pl.write_counts(counts, tmp_path / "counts.parquet")
    certificate = pl.certify(LAMP, pl.read_counts(LAMP, tmp_path / "counts.parquet"), ASKED, confidence=0.9)
    pl.write_result(certificate, tmp_path / "result")
    again = pl.read_result(tmp_path / "result")
    assert again.how.to_narrow == certificate.how.to_narrow == f"to get narrower bounds: {ORDER}"
    assert f"To get narrower bounds: {ORDER}." in front_of(again, title="", system="", author="").wanted
    first = counts + pl.read_log(LAMP, RUNS.assign(episode=RUNS.episode + 1000), order="runs").counts
    assert first.report.no_bets == "order"  # the bets of a sum are those of its first part


def test_nothing_is_said_where_no_data_help():
    known = pl.certify(LAMP, pl.read_log(LAMP, RUNS), "Pmax=? [ F true ]", confidence=0.9)
    assert (known.lower, known.upper, known.how.narrower) == (1, 1, ())
    wrong = pl.read_log(LAMP, MOVES.assign(next_place_x=2), on_unmatched="report")
    assert pl.certify(LAMP, wrong, ASKED).how.narrower == ()


@pytest.mark.slow
def test_the_command_line_speaks_of_its_flags(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = pl.data.record(pl.case_study("betting:5").model, {"p": 0.9}, 40, rng=1, max_steps=6)
    pd.DataFrame(runs.columns("trajectories")).to_csv("log.csv", index=False)
    code, said, _ = plumdp("certify", "betting:5", "log.csv", "--confidence", "0.5")
    assert code in (0, 4)
    assert "to narrow it    say --order runs if its runs are numbered as they were made, one" in said
    assert "--order runs if its runs are numbered as they were made" in " ".join(said.split())
    _, said, _ = plumdp("certify", "betting:5", "log.csv", "--order", "runs", "--confidence", "0.5", "--json")
    assert '"narrower": "for the next data, fix the number of runs before you look at any, and say --sampling' in said
    assert "without bets, as the order of the data is not known (--order)" in plumdp("count", "betting:5", "log.csv")[1]
    compared = ["certify", "betting:5", "log.csv", "--policy", "bet0", "--against", "bet1"]
    for command in (compared, ["certify", "betting:5", "log.csv", "--against", "bet0"]):
        plumdp(*command, "--order", "runs", "--confidence", "0.5", "-o", "result", "--force")
        assert "--sampling trajectories" in pl.read_result("result").how.to_narrow


def test_without_data_no_parameters_are_called_likely_and_no_test_is_passed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    RUNS[:0].to_csv("log.csv", index=False)
    (tmp_path / "lamp.py").write_text("from log_models import LAMP\n")
    code, said, warning = plumdp("certify", "lamp.py:LAMP", "log.csv", "--prop", ASKED)
    assert (code, warning) == (4, "warning: there are no data (the log has 0 rows)\n")
    assert "estimate" not in said
    assert "model test      nothing was tested, as there are no data\n" in said

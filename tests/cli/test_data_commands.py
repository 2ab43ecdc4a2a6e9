"""``plumdp simulate``, ``count`` and ``counts-sql``: files, policies, mapped states, and how misuse ends."""

import numpy as np
import pytest

import plumdp as pl
from plumdp.cli import main

STUDY = pl.case_study("betting:5")
LOG = """lon,battery,action,next_lon,next_battery
0.2,5,east,0.7,5
0.3,5,east,0.9,5
0.2,abc,east,0.9,15
0.2,500,east,0.9,15
"""
MAPPED = ["--state", "x=floor(lon/0.5)", "--state", "y=[0,10,100]", "--column", "y=battery,next_y=next_battery"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a log, a policy, and a file that is in the way."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "old.parquet").write_text("")
    pl.PolicyTable(STUDY.model.graph, STUDY.model.graph.first_choice[:-1]).to_csv(tmp_path / "policy.csv")
    return tmp_path


def run(capsys, *arguments):
    """Run the command line; return exit code, standard output and standard error."""
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return end.value.code or 0, *capsys.readouterr()


@pytest.mark.parametrize("ending", ["parquet", "csv", "json", "jsonl"])
def test_simulate_writes_the_format_that_the_name_says(ending, folder, capsys):
    done = run(capsys, "simulate", "betting:5", "-n", "20", "--seed", "4", "-o", f"runs.{ending}")
    assert done == (0, f"runs.{ending}: 120 steps of 20 runs, as transitions\n", "")
    expected = pl.simulate(STUDY.model, STUDY.true_point, 20, rng=4, max_steps=6)
    assert np.array_equal(pl.read_log(f"runs.{ending}", STUDY.model).counts.counts, expected.counts)
    assert (
        (folder / f"runs.{ending}").read_bytes().startswith({"parquet": b"PAR1", "csv": b"episode,"}.get(ending, b"{"))
    )


def test_simulate_follows_a_saved_policy(folder, capsys):
    code, *_ = run(capsys, "simulate", "betting:5", "-n", "20", "--policy", "policy.csv", "--counts", "-o", "c.parquet")
    counts = pl.read_counts("c.parquet", STUDY.model)
    first = STUDY.model.graph.first_choice[:-1]
    assert code == 0
    assert counts.visits.sum() == counts.visits[first].sum() == 120


def test_force_replaces_a_file(folder, capsys):
    assert run(capsys, "simulate", "betting:5", "-n", "5", "-o", "old.parquet", "--force")[0] == 0
    assert run(capsys, "count", "betting:5", "old.parquet", "-o", "counts.parquet")[0] == 0
    assert run(capsys, "count", "betting:5", "old.parquet", "-o", "counts.parquet", "--force")[0] == 0


def test_count_maps_states_and_reports_what_does_not_fit(folder, capsys):
    assert run(capsys, "count", "glider:11,9", "log.csv", *MAPPED, "--keep-going", "-o", "counts.parquet") == (
        0,
        "4 rows of transitions: 2 matched, 2 rejected\n"
        "  unknown state: 1 row; (x=0, y=above 100) (1×, row 4); y is 0 to 8 in the model\n"
        "  unreadable state: 1 row; (x=0, y=null) 'east' → (x=1, y=1) (1×, row 3)\n"
        "counts.parquet: 2 steps, counted\n",
        "",
    )


def test_counts_sql_prints_mapped_states_and_snowflakes_capitals(capsys):
    code, query, _ = run(
        capsys, "counts-sql", "glider:11,9", "--dialect", "snowflake", "--table", "lake.log", *MAPPED,
        "--action", "if thrust > 0 then 'north' else 'south'",
    )  # fmt: skip
    assert code == 0
    for part in ('"LON"', '"BATTERY"', '"NEXT_BATTERY"', 'CAST("THRUST" AS DOUBLE)', "'north'", "FROM lake.log"):
        assert part in query
    assert '"battery"' not in query


MISUSES = {
    "a file that is there": (["simulate", "betting:5", "-o", "old.parquet"],
                             "old.parquet is there already; name another file, or replace it with --force"),
    "an unknown ending": (["simulate", "betting:5", "-o", "runs.xlsx"],
                          "runs.xlsx: the name of a file of runs must end in one of .parquet, .csv, .json, .jsonl"),
    "counts as CSV": (["simulate", "betting:5", "--counts", "-o", "c.csv"],
                      "c.csv: counts are kept as Parquet; name a file that ends in .parquet"),
    "no policy": (["simulate", "betting:5", "--policy", "mine.csv", "-o", "runs.csv"],
                  "--policy mine.csv: there is no such file"),
    "a policy of another model": (["simulate", "betting:5", "--policy", "log.csv", "-o", "runs.csv"],
                                  "log.csv is not a policy of this model: it has no column money, step"),
    "counts that are there": (["count", "glider:11,9", "log.csv", "-o", "old.parquet"],
                              "old.parquet is there already; name another file, or replace it with --force"),
    "no expression": (["count", "glider:11,9", "log.csv", "--state", "x=floor(lon", "-o", "c.parquet"],
                      "--state x=floor(lon: the text ends where ) is expected\n  floor(lon\n           ^"),
    "no name": (["count", "glider:11,9", "log.csv", "--state", "floor(lon)", "-o", "c.parquet"],
                "--state floor(lon): write NAME=EXPRESSION, such as 'x=floor(lon / 0.5)', or NAME=[0, 20, 60]"),
    "two mappings": (["count", "glider:11,9", "log.csv", "--state", "x=lon", "--state", "x=1", "-o", "c.parquet"],
                     "--state x: this variable has two mappings; give one"),
    "edges": (["count", "glider:11,9", "log.csv", "--state", "x=[0,a]", "-o", "c.parquet"],
              "--state x=[0,a]: the edges of bins are numbers, such as [0, 20, 60, 100]"),
    "no variable": (["counts-sql", "glider:11,9", "--state", "z=[0,1]"],
                    "--state z=…: the model has no state variable of this name, only x, y"),
    "no text": (["counts-sql", "glider:11,9", "--action", "1 + 1"],
                "--action 1 + 1: the expression must give the names of actions, as texts in single quotes"),
    "no table": (["counts-sql", "glider:11,9", "--table", "a b"],
                 "--table a b: this is not the name of a table; write it as lake.log, with quotes if need be"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISUSES)
def test_misuse_ends_with_a_sentence_in_the_words_of_the_command_line(case, folder, capsys):
    arguments, message = MISUSES[case]
    assert run(capsys, *arguments) == (2, "", f"error: {message}\n")

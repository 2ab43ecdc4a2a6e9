"""Misuse of the commands that go from a model and data to results: exact messages, in the words of the command line."""

import pytest
from command_line import plumdp

import plumdp as pl

NOTHING = "; plumdp certify -h shows what there is"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("misuse")
    study = pl.case_study("betting:5")
    counts = pl.simulate(study.model, study.true_point, 100, rng=1, max_steps=6)
    pl.write_counts(counts, folder / "counts.parquet")
    (folder / "names.csv").write_text("money,state_step,action,next_money,nextstep\n10,0,bet1,11,1\n")
    (folder / "rows.csv").write_text(
        "money,state_step,action,next_money,next_step\n10,0,bet1,11,1\n10,0,bet1,19,1\n10,0,bet1,9,1\n"
    )
    return folder


LOG = ["betting:5", "rows.csv"]
COUNTS = ["betting:5", "counts.parquet"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["certify", "betting:5", "names.csv"],
            "the log looks like transitions, but it lacks next_step; its columns are money, state_step, action, "
            "next_money, nextstep: say which they are with --column NAME=COLUMN, or give --form",
        ),
        (
            ["certify", *LOG, "--column", "mony=x"],
            "--column mony=…: plumdp has no column of this name, only money, state_step, action, next_money, "
            "next_step, place, episode, step, n",
        ),
        (["certify", *LOG, "--column", "money=x"], "--column money=x: the log has no such column, only money, "),
        (
            ["certify", *LOG, "--expected", "100"],
            "--expected 100: this is for a log whose order is known; say --order runs or --order time, or leave it out",
        ),
        (
            ["certify", *LOG, "--expected", "-2", "--order", "time"],
            "--expected -2: give the number of runs, or of rows, that you expected, above 0",
        ),
        (
            ["certify", *COUNTS, "--misfit", "0.1", "--confidence-set", "l1"],
            "--misfit 0.1: there is no tolerant set of the kind 'l1'; choose 'interval' or 'likelihood'",
        ),
        (["certify", *COUNTS, "-o", "counts.parquet"], "counts.parquet is a file; name a folder for the result"),
        (
            ["certify", *COUNTS, "--column", "x=y"],
            "--column: counts.parquet is a file of counts, in which nothing has another name; leave it out, or give "
            "the log itself",
        ),
        (
            ["certify", *COUNTS, "--sampling", "independent"],
            "--sampling independent: counts.parquet was counted as trajectories, which claims less; if the stronger "
            "claim is true, count the log again with --sampling independent",
        ),
        (["certify", "betting:6", "counts.parquet"], "counts.parquet: the counts belong to another model: "),
        (
            ["certify", *COUNTS, "-p", 'Pmax=? [ F "edn" ]'],
            '"edn" is not a label of the model (did you mean "end"?); it has "init", "deadlock", "end"\n'
            '  Pmax=? [ F "edn" ]\n             ^\n',
        ),
        (["check-model", "betting:5", "nowhere.csv"], "nowhere.csv: there is no such file, nor a folder of "),
        (["check-model", *COUNTS, "--confidence", "0"], "--confidence 0: give a number between 0 and 1, such as 0.999"),
        (["check-model", *COUNTS, "-p", "money"], "--property money: no property of betting:5 has this name; "),
        (["advise", *COUNTS, "--runs", "0"], "--runs 0: give a whole number, at least 1"),
        (["advise", *COUNTS, "-o", "nowhere/x.csv"], "nowhere/x.csv: there is no folder nowhere; make it first"),
        (
            ["advise", *COUNTS, "-p", 'P>=0.5 [ F "end" ]'],
            "P>= asks yes or no, which certify answers; here ask for the value with Pmax=? or Pmin=?",
        ),
        (["advise", *COUNTS, "--confidence", "2"], "--confidence 2: give a number between 0 and 1, such as 0.999"),
        (["info", "betting:5", "-c", "N"], "--constant N: write NAME=VALUE"),
        (["info", "betting:5", "--space", "p<=-1"], "--space: p<=-1: parameter p: no value in [0, 1] satisfies "),
    ],
)
def test_misuse_says_what_to_change_in_the_words_of_the_command_line(arguments, message, folder, monkeypatch):
    monkeypatch.chdir(folder)
    ended = plumdp(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {message}")
    assert "={" not in ended.err
    assert "on_unmatched" not in ended.err


@pytest.mark.slow
def test_rows_that_do_not_fit_are_counted_out_by_keep_going(folder, monkeypatch):
    monkeypatch.chdir(folder)
    refused = plumdp("certify", *LOG)
    assert refused.code == 2
    assert refused.err.startswith("error: 1 of 3 rows do")
    assert refused.err.endswith("with --keep-going; --rejected rejected.csv writes all of these rows to a file\n")
    for command in ("certify", "check-model"):
        assert plumdp(command, *LOG, "--keep-going").code == 3  # the row contradicts the graph


@pytest.mark.slow
def test_columns_are_renamed_on_every_command_that_reads_a_log(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for command in ("certify", "check-model"):
        ended = plumdp(command, "betting:5", "names.csv", "--column", "next_step=nextstep", "--form", "transitions")
        assert (ended.code in (0, 4), ended.err) == (True, "")

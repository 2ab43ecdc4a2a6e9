"""Misuse of the commands that go from a model and data to results: exact messages, in the words of the command line."""

import pytest
from command_line import plumdp
from support import refusals

import plumdp as pl


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


def test_misuse_says_what_to_change_in_the_words_of_the_command_line(folder, monkeypatch):
    monkeypatch.chdir(folder)
    refusals.misused("commands:data")


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

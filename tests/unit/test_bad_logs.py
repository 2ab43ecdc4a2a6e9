"""Bad logs: each is refused with what is wrong, where, and how to fix it."""

import gzip
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from in_format import in_format
from log_models import LAMP, recount, runs
from support import refusals

import plumdp as pl
from plumdp.data import steps
from plumdp.data.duckdb_errors import in_our_words
from plumdp.data.duckdb_tables import find_files
from plumdp.data.logs import read_log
from plumdp.data.sql import counts_query

ROWS, _ = runs(LAMP, {"p": 0.6}, 3, max_steps=4)
MOVES, RUNS = (pd.DataFrame(ROWS[form]) for form in ("transitions", "trajectories"))
ANEW = "if each file numbers its runs anew, count each file by itself, and add the counts"
ADVICE = (
    "correct the log or the model, or count the other rows with on_unmatched='report'; "
    "rejected='rejected.csv' writes all of these rows to a file"
)


def with_states(**states):
    """Return the model with other state variables."""
    return replace(LAMP, graph=replace(LAMP.graph, states=states))


PLACE = LAMP.graph.states["place_x"]
TABLES = (
    *("", " ", "t') UNION SELECT 1 --", "a; DROP TABLE x", "t -- c", "(SELECT * FROM secret) s", "t s", "t, u"),
    *("read_parquet('/etc/passwd')", "`a`.b", "a.b.c.d.e", "select", None, 5),
)


def test_a_bad_log_is_refused_with_its_reason():
    given = {"polars": polars, "pyarrow": pyarrow, "with_states": with_states, "PLACE": PLACE}
    refusals.refused("logs:read", globals(), pl.DataError, **given)


def test_what_is_not_the_name_of_a_table_is_refused():
    for table in TABLES:
        with pytest.raises(pl.DataError) as caught:
            counts_query(LAMP, pl.LogFormat(form="transitions"), table=table, dialect="duckdb")
        said = "this is not the name of a table; write it as lake.log, with quotes if need be"
        assert str(caught.value) == f"table={table!r}: {said}"


def written(folder, name, lines):
    (folder / name).write_text("\n".join(lines), encoding="utf-8")
    return folder / name


LINES = MOVES.to_csv(index=False).splitlines()


def test_a_bad_file_is_refused_with_its_reason(tmp_path):
    refusals.refused(
        "logs:bad_files", lambda name, code: read_log(LAMP, written(tmp_path, name, eval(code))), pl.DataError
    )


TEXT = "\n".join(LINES)
WORDS_OF_DUCKDB = re.compile(r"\b(Error|Exception|Original Line|LINE \d|magic bytes|SELECT|duckdb)\b|\n\n")


def test_a_broken_file_is_refused_in_words_of_plumdp(tmp_path):
    MOVES.to_parquet(tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()

    def read(name, code):
        path = tmp_path / name
        path.write_bytes(eval(code, {"LINES": LINES, "TEXT": TEXT, "MOVES": MOVES, "gzip": gzip, "whole": whole}))
        message = refused(LAMP, path)
        assert not WORDS_OF_DUCKDB.search(message)
        assert len(message) < 300
        raise pl.DataError(message.removeprefix(f"{path}").removeprefix("the data"))

    refusals.refused("logs:broken_files", read, pl.DataError)


def test_columns_of_other_types_in_other_files_are_named(tmp_path):
    MOVES.assign(lit="yes").to_parquet(tmp_path / "a.parquet")
    MOVES.assign(lit=[[1]] * len(MOVES)).to_parquet(tmp_path / "b.parquet")
    assert refused(LAMP, tmp_path) == (
        f"{tmp_path / 'a.parquet'}: column lit has the type VARCHAR here, but BIGINT[] in another file; give it the "
        "same type in all files"
    )


FULL = (
    'IO Error: Async write failed for range [offset=0]: {"exception_message":"Could not write file '
    '\\"/a/.plumdp-x1/b.pq\\": No space left on device","errno":"28"}'
)
MEMORY = "Out of Memory Error: could not allocate block of size 256.0 KiB\n\nSET memory_limit"
NO_EXTENSION = (
    "An error occurred while trying to automatically install the required extension 'httpfs:\nFailed to download "
    'extension "httpfs" at URL "http://extensions.duckdb.org"\n\nLINE 1: SELECT file FROM glob(\'s3://lake/*.csv\')'
)
NO_FILE = "HTTP Error: HTTP GET error reading 's3://lake/a.csv' in region 'us-east-1' (HTTP 404 Not Found)"
SAID = {  # by DuckDB, where no file shows it
    NO_EXTENSION: "s3://lake/*.csv: DuckDB needs its extension httpfs for it, which is not installed and could not be "
    "downloaded; run INSTALL httpfs in DuckDB where there is a network, or copy the files to this computer first",
    NO_FILE: "s3://lake/a.csv: there is no such file",
    NO_FILE.replace("404 Not Found", "403 Forbidden"): "s3://lake/a.csv: access is denied; give DuckDB the "
    "credentials, with CREATE PERSISTENT SECRET",
    "IO Error: Could not resolve hostname error for HTTP HEAD to 'https://host/a.csv'\nLINE 1: SELECT * FROM "
    "read_csv(['gs://lake/a.csv'])": "gs://lake/a.csv: the server cannot be reached; check the name and the network",
    MEMORY: "the data: there is not enough memory to count it; give fewer files at a time",
    FULL: "/a/b.pq cannot be written: No space left on device",
    "IO Error: Failed to write to temporary file: No space left on device": "the data: No space left on device; make "
    "room for results and for temporary files",
    'IO Error: Cannot open file "/x.csv": Permission denied': "/x.csv: the file cannot be opened; check its name and "
    "permissions",
    'Binder Error: Cannot compare values\nLINE 1: SELECT "a"': "the data: this cannot be read or written (Cannot "
    "compare values)",
    "Conversion Error: Could not convert string 'x' to INT64": "the data: a value does not have the type of its "
    "column; correct the value, or the type",
}


def test_a_pattern_far_away_stands_for_its_files_by_their_names(tmp_path):
    for number in (1, 2, 10):
        (tmp_path / f"day-{number}.csv").touch()
    assert [Path(file).name for file in find_files(f"file://{tmp_path}/*.csv")] == [
        "day-1.csv",
        "day-2.csv",
        "day-10.csv",
    ]
    with pytest.raises(pl.DataError, match=r"x\*\.csv: there are no such files"):
        find_files(f"file://{tmp_path}/x*.csv")


@pytest.mark.parametrize("text", SAID)
def test_what_duckdb_says_is_said_in_words_of_plumdp(text):
    assert str(in_our_words(text)) == SAID[text]


TWICE = (
    "{} and {} have the same content, which would be counted twice; leave out one if it is a copy; if they are "
    "different runs that look alike, read both at once, as one data frame in which each run has a name of its own"
)


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_the_same_file_twice_is_refused(name, tmp_path):
    path, other = tmp_path / name, tmp_path / f"other-{name}"
    (MOVES.to_csv if name == "log.csv" else MOVES.to_parquet)(path, index=False)
    other.write_bytes(path.read_bytes())
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / name).symlink_to(path)
    twice = f"{path} is named twice, so that it would be counted twice; name it once"
    same = f"{path} and {tmp_path / 'linked' / name} are the same file, so that it would be counted twice; name it once"
    for source, message in (
        ([path, path], twice),
        ([path, str(tmp_path / "log.*")], twice),
        ([path, tmp_path / "linked" / name], same),
        ([path, other], TWICE.format(path, other)),
        (tmp_path, TWICE.format(path, other)),
    ):
        with pytest.raises(pl.DataError) as caught:
            read_log(LAMP, source)
        assert str(caught.value) == message
    both = pd.concat([MOVES, MOVES.assign(episode=-1 - MOVES.episode)])
    assert read_log(LAMP, both).counts.total == 2 * len(MOVES)


def test_files_of_one_size_and_files_without_rows_are_not_taken_for_copies(tmp_path):
    rows = [line.replace(",rest,", ",idle,") for line in LINES]
    for name, lines in (("a.csv", LINES), ("b.csv", rows), ("c.csv", LINES[:1]), ("d.csv", LINES[:1])):
        written(tmp_path, name, lines)
    assert (tmp_path / "a.csv").stat().st_size == (tmp_path / "b.csv").stat().st_size
    assert read_log(LAMP, tmp_path, on_unmatched="report").report.total == 2 * len(MOVES)


def test_files_of_several_formats_are_refused(tmp_path):
    files = [written(tmp_path, name, LINES) for name in ("log.csv", "log.json")]
    with pytest.raises(pl.DataError) as caught:
        read_log(LAMP, files)
    assert str(caught.value) == "files of several formats (csv, json): read one after the other"


# run numbers that are used again, and files in their order


def days(folder, form="transitions", ending="csv", columns=(), n=2, n_runs=200):
    """Write files that number their runs anew, each with runs of its own; return them."""
    files = [folder / f"day-{day}.{ending}" for day in range(1, n + 1)]
    for day, file in enumerate(files):
        frame = pd.DataFrame(runs(LAMP, {"p": 0.6}, n_runs, seed=day)[0][form]).drop(columns=[*columns])
        frame.to_csv(file, index=False) if ending == "csv" else frame.to_parquet(file)
    return files


def refused(*arguments, **options):
    with pytest.raises(pl.DataError) as caught:
        read_log(*arguments, **in_format(**options))
    return str(caught.value)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("form", ["transitions", "trajectories"])
def test_files_that_number_their_runs_anew_are_refused_with_what_to_say(form, ending, tmp_path):
    files = days(tmp_path, form, ending)
    message = refused(LAMP, files)
    assert message.splitlines()[0].endswith("rows do not fit the model:")
    assert message.splitlines()[1].startswith("  repeated step: ")
    assert message.splitlines()[-2:] == [ANEW, ADVICE]
    both = sum(read_log(LAMP, file).counts for file in files)
    assert np.array_equal(both.counts, sum(runs(LAMP, {"p": 0.6}, 200, seed=day)[1] for day in range(2)))


@pytest.mark.parametrize("kept", [steps._KEPT, 0])
@pytest.mark.parametrize("options", [{"order": "runs"}, {"sampling": "trajectories"}])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_without_steps_a_run_in_two_files_is_refused_where_its_number_matters(
    ending, options, kept, tmp_path, monkeypatch
):
    monkeypatch.setattr(steps, "_KEPT", kept)
    files = days(tmp_path, ending=ending, columns=["step"])
    assert refused(LAMP, files, **options) == (
        f"episode 0 is in day-1.{ending} and in day-2.{ending} (and 199 other runs in several files), and no column "
        "step tells whether a run goes on in the next file; so it is not known which runs came first; "
        f"{ANEW}; if runs go on, give a column step that numbers their steps "
        "0, 1, 2, …; or pilot=False, to do without bets"
    )
    total = sum(read_log(LAMP, file, **in_format(**options)).counts for file in files).total
    for unused in ({}, {"order": "time"}, {**options, "pilot": False}):
        assert read_log(LAMP, files, **unused).counts.total == total


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("is_shuffled", [False, True])
def test_a_run_that_goes_on_in_the_next_file_is_one_run(ending, is_shuffled, tmp_path):
    """Two files, and the cut between them is in the middle of a run; or rows in any order, as clusters write them."""
    rows, counts = runs(LAMP, {"p": 0.6}, 400)
    frame = pd.DataFrame(rows["transitions"])
    frame = frame.sample(frac=1, random_state=1) if is_shuffled else frame
    for part, rows_of_part in enumerate((frame.iloc[:1003], frame.iloc[1003:])):
        write = rows_of_part.to_csv if ending == "csv" else rows_of_part.to_parquet
        write(tmp_path / f"{part}.{ending}", index=False)
    log = read_log(LAMP, tmp_path, order="runs")
    assert np.array_equal(log.counts.counts, counts)
    assert np.array_equal(log.counts.pilot.counts, read_log(LAMP, frame, order="runs").counts.pilot.counts)


def test_a_run_whose_steps_jump_between_files_may_be_two_runs(tmp_path):
    """The steps are numbered through all runs of a day, so that no step of a run comes twice."""
    frame = pd.DataFrame(ROWS["transitions"])
    for day in (1, 2):
        frame.assign(step=1000 * day + np.arange(len(frame))).to_csv(tmp_path / f"{day}.csv", index=False)
    assert refused(LAMP, tmp_path, order="runs").startswith(
        "episode 0 is in 1.csv and in 2.csv (and 2 other runs in several files), whose steps are not consecutive "
        "numbers, as those of a run that goes on in the next file are; so it is not known which runs came first; "
    )
    assert read_log(LAMP, tmp_path).counts.total == 2 * len(frame)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_of_a_folder_are_read_in_the_order_of_their_numbers_and_the_assumption_says_so(ending, tmp_path):
    """As text, day-10 is before day-2, and the pilot would have rows of both; a list keeps its order."""
    files = days(tmp_path, ending=ending, columns=["step"], n=25, n_runs=20)
    plain = [row for day in range(2) for row in runs(LAMP, {"p": 0.6}, 20, seed=day)[0]["transitions"]]
    first = recount([{**row, "step": None} for row in plain[:256]], LAMP.graph, "transitions")[0]
    options = {"order": "time"}
    for source in (tmp_path, f"{tmp_path}/day-*.{ending}", files):
        pilot = read_log(LAMP, source, **in_format(**options)).counts.pilot
        assert np.array_equal(pilot.counts, first)
        assert pilot.rests_on == (
            "the rows of the log are in the order in which their steps happened; its files follow one another in "
            f"this order: day-1.{ending}, day-2.{ending}, day-3.{ending}, …, day-25.{ending} (25 files)"
        )

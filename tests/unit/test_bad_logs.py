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
from log_models import LAMP, recount, runs

import plumdp as pl
from plumdp.data import steps
from plumdp.data.duckdb_errors import in_our_words
from plumdp.data.duckdb_tables import find_files
from plumdp.data.logs import read_log
from plumdp.data.sql import counts_query

ROWS, _ = runs(LAMP, {"p": 0.6}, 3, max_steps=4)
MOVES, RUNS = (pd.DataFrame(ROWS[form]) for form in ("transitions", "trajectories"))
MOVE_COLUMNS = "episode, step, place_x, lit, mode, action, next_place_x, next_lit, next_mode"
ANEW = "if each file numbers its runs anew, count each file by itself, and add the counts"
ADVICE = (
    "correct the log or the model, or count the other rows with on_unmatched='report'; "
    "rejected='rejected.csv' writes all of these rows to a file"
)
UNPLACED = "steps are numbers, or dates and times such as 2024-01-31 07:00:00"
LARGE = "'9007199254740992.0'"
ORDERED = "if steps only order the rows of a run, and none is missing, say steps='ordered'"
REPEATED = "repeated step: 2 rows; episode 0, step 0 (2 rows: lit=false in row 1, lit=true in row {})"  # step 1: a copy
NAMES = "give different runs different names, and number the steps of each run"
STEPS = (
    "but steps are numbers, dates or times, which order the rows of an episode; number the rows of each episode in "
    "their order"
)


def with_states(**states):
    """Return the model with other state variables."""
    return replace(LAMP, graph=replace(LAMP.graph, states=states))


PLACE = LAMP.graph.states["place_x"]
BAD = {
    "unknown state": (
        lambda: read_log(LAMP, MOVES.assign(place_x=[7] * 8 + [None] * 4)),
        "12 of 12 rows do not fit the model:\n"
        "  unknown state: 8 rows; (place_x=7.0, lit=false, mode=rest) (5×), (place_x=7.0, lit=true, mode=rest) (2×), "
        "(place_x=7.0, lit=false, mode=work) (1×); place_x is 0 to 2 in the model\n"
        "  unreadable state: 4 rows; "
        "(place_x=null, lit=false, mode=rest) 'rest' → (place_x=0, lit=false, mode=rest) (2×), "
        "(place_x=null, lit=false, mode=rest) 'go' → (place_x=1, lit=false, mode=work) (1×), "
        f"(place_x=null, lit=false, mode=work) 'rest' → (place_x=0, lit=false, mode=rest) (1×)\n{ADVICE}",
    ),
    "unknown and impossible": (
        lambda: read_log(LAMP, MOVES.assign(next_place_x=2)),
        "11 of 12 rows do not fit the model:\n"
        "  unknown next state: 8 rows; (place_x=2, lit=false, mode=rest) (6×), (place_x=2, lit=true, mode=rest) (2×); "
        "each value is known, but the model has no state with all of them\n"
        "  impossible transition: 3 rows; (place_x=0, lit=false, mode=rest) 'go' → (place_x=2, lit=false, mode=work) "
        f"(3×); the model has no such edge, so it may be wrong\n{ADVICE}",
    ),
    "unknown action": (
        lambda: read_log(LAMP, MOVES.assign(action=["fly"] * 8 + [None] * 4)),
        f"12 of 12 rows do not fit the model:\n  unknown action: 12 rows; 'fly' (8×), null (4×); the actions "
        f"are 'go', 'rest'\n{ADVICE}",
    ),
    "gap": (
        lambda: read_log(LAMP, RUNS.drop(index=[1, 2])),
        "1 of 13 rows do not fit the model:\n"
        f"  gap in steps: 1 row; episode 0 has 3 rows and 3 of the steps 0 to 4\n{ORDERED}\n{ADVICE}",
    ),
    "other rows of a step": (
        lambda: read_log(LAMP, pd.concat([RUNS, RUNS.head(2).assign(lit=True)])),
        f"2 of 17 rows do not fit the model:\n  {REPEATED.format(16)}\n{ADVICE}",
    ),
    "other rows of a step and a copy": (
        lambda: read_log(LAMP, pd.concat([RUNS, RUNS.head(2).assign(lit=True), RUNS.tail(1)])),
        f"2 of 18 rows do not fit the model:\n  {REPEATED.format(16)}\n{ADVICE}",
    ),
    "other transitions of a step": (
        lambda: read_log(LAMP, pd.concat([MOVES, MOVES.head(2).assign(lit=True)])),
        f"2 of 14 rows do not fit the model:\n  {REPEATED.format(13)}\n{ADVICE}",
    ),
    "other transitions of a step, through DuckDB": (
        lambda: read_log(LAMP, pyarrow.Table.from_pandas(pd.concat([MOVES, MOVES.head(2).assign(lit=True)]))),
        f"2 of 14 rows do not fit the model:\n  {REPEATED.format(13)}\n{ADVICE}",
    ),
    "other transitions at one time": (
        lambda: read_log(
            LAMP,
            pyarrow.Table.from_pandas(
                pd.concat([MOVES, MOVES.head(1).assign(lit=True)]).assign(step=np.datetime64("2024-01-01", "us"))
            ).slice(0, 2),
        ),
        "2 of 2 rows do not fit the model:\n  repeated step: 2 rows; episode 0, step 2024-01-01 00:00:00 (2 rows: "
        "lit=false and action=go in row 1, lit=true and action=rest in row 2)\n"
        f"{NAMES}\n{ADVICE}",
    ),
    "missing step": (
        lambda: read_log(LAMP, RUNS.assign(step=[None, *RUNS.step[1:]])),
        f"1 of 15 rows do not fit the model:\n  no episode or step: 1 row; {UNPLACED}\n{ADVICE}",
    ),
    "steps too large to tell apart": (
        lambda: read_log(LAMP, RUNS.assign(step=RUNS.step + 2.0**53)),
        f"15 of 15 rows do not fit the model:\n  no episode or step: 15 rows; {LARGE}; {UNPLACED}\n{ADVICE}",
    ),
    "steps too large to tell apart, through DuckDB": (
        lambda: read_log(LAMP, pyarrow.Table.from_pandas(RUNS.assign(step=(RUNS.step + 2.0**53).astype(str)))),
        f"15 of 15 rows do not fit the model:\n  no episode or step: 15 rows; {LARGE}; {UNPLACED}\n{ADVICE}",
    ),
    "missing column": (
        lambda: read_log(LAMP, RUNS.drop(columns=["lit", "step"])),
        "the log looks like trajectories, but it lacks step, lit; its columns are episode, place_x, mode, action: "
        "say which they are with columns={…}, or give form=…",
    ),
    "missing column of the given form": (
        lambda: read_log(LAMP, MOVES, form="counts"),
        f"as a log of counts, it lacks n; its columns are {MOVE_COLUMNS}: say which they are with columns={{…}}",
    ),
    "mapping from an unknown name": (
        lambda: read_log(LAMP, MOVES, columns={"x": "place_x"}),
        "columns={'x': …}: plumdp has no column of this name, only place_x, lit, mode, action, next_place_x, next_lit, "
        "next_mode, place, episode, step, n",
    ),
    "mapping to an unknown column": (
        lambda: read_log(LAMP, MOVES, columns={"place_x": "x"}),
        f"columns={{'place_x': 'x'}}: the log has no such column, only {MOVE_COLUMNS}",
    ),
    "one time for all steps": (
        lambda: read_log(LAMP, pyarrow.Table.from_pandas(RUNS.assign(step=np.datetime64("2024-01-01", "us")))),
        "15 of 15 rows do not fit the model:\n  repeated step: 15 rows; episode 0, step 2024-01-01 00:00:00 (5 rows: "
        "lit=false and action=go in row 1, lit=true and action=rest in row 2), "
        "episode 1, step 2024-01-01 00:00:00 (5 rows), episode 2, step 2024-01-01 00:00:00 (5 rows)\n"
        f"{NAMES}\n{ADVICE}",
    ),
    "words for steps": (
        lambda: read_log(LAMP, polars.from_pandas(RUNS).with_columns(step=polars.lit("first"))),
        f"15 of 15 rows do not fit the model:\n  no episode or step: 15 rows; 'first'; {UNPLACED}\n{ADVICE}",
    ),
    "truth values for steps": (
        lambda: read_log(LAMP, RUNS.assign(step=True)),
        f"column step has the type BOOLEAN, {STEPS}",
    ),
    "negative count": (
        lambda: read_log(LAMP, MOVES.assign(n=-1), form="counts"),
        "column n: -1 is not a count; counts are whole numbers from 0",
    ),
    "missing count": (
        lambda: read_log(LAMP, MOVES.assign(n=[1] * 11 + [None]), form="counts"),
        "column n: null is not a count; counts are whole numbers from 0",
    ),
    "unknown place": (
        lambda: read_log(LAMP, MOVES.assign(n=1, place="here"), form="counts"),
        "column place: 'here' is none of step, last, gap, apart, duplicate, unplaced",
    ),
    "lists for values": (
        lambda: read_log(LAMP, pyarrow.Table.from_pandas(MOVES.assign(place_x=[[1]] * 12))),
        "a column holds values like array([1]); it must hold numbers, truth values or text",
    ),
    "lists in pandas": (
        lambda: read_log(LAMP, MOVES.assign(place_x=[[1]] * 12, mode="rest", action="go", next_lit=False, lit=False)),
        "12 of 12 rows do not fit the model:\n"
        "  unreadable state: 12 rows; "
        "(place_x=[1], lit=false, mode=rest) 'go' → (place_x=0, lit=false, mode=rest) (8×), "
        "(place_x=[1], lit=false, mode=rest) 'go' → (place_x=1, lit=false, mode=work) (3×), "
        f"(place_x=[1], lit=false, mode=rest) 'go' → (place_x=2, lit=false, mode=work) (1×)\n{ADVICE}",
    ),
    "columns of one name": (
        lambda: read_log(LAMP, pd.concat([MOVES, MOVES.lit], axis=1)),
        "the columns lit, lit have the same name but for capitals; rename them",
    ),
    "columns that differ in capitals": (
        lambda: read_log(LAMP, pyarrow.Table.from_pandas(MOVES.assign(Lit=True))),
        "the columns lit, Lit have the same name but for capitals; rename them",
    ),
    "no file": (
        lambda: read_log(LAMP, "nowhere/*.csv"),
        "nowhere/*.csv: there is no such file, nor a folder of Parquet, CSV or JSON files",
    ),
    "no files": (lambda: read_log(LAMP, []), "the list of files is empty"),
    "no log": (
        lambda: read_log(LAMP, {"place_x": [1]}),
        "a log of type dict cannot be read; give a path, a pattern, a list of paths, or a data frame of pandas, "
        "Polars, PyArrow, PySpark or DuckDB",
    ),
    "rows that can be read once": (
        lambda: read_log(LAMP, pyarrow.Table.from_pandas(MOVES).to_reader()),
        "a log of type RecordBatchReader cannot be read; give a path, a pattern, a list of paths, or a data frame of "
        "pandas, Polars, PyArrow, PySpark or DuckDB",
    ),
    "a column": (
        lambda: read_log(LAMP, MOVES.lit),
        "a log of type Series cannot be read; give a path, a pattern, a list of paths, or a data frame of pandas, "
        "Polars, PyArrow, PySpark or DuckDB",
    ),
    "form": (
        lambda: read_log(LAMP, MOVES, form="rows"),
        "form='rows': choose one of 'transitions', 'trajectories', 'counts'",
    ),
    "sampling": (
        lambda: read_log(LAMP, MOVES, sampling="iid"),
        "sampling='iid': choose one of 'independent', 'trajectories', 'adaptive'",
    ),
    "on_unmatched": (
        lambda: read_log(LAMP, MOVES, on_unmatched="drop"),
        "on_unmatched='drop': choose 'error' or 'report'",
    ),
    "cut_off": (
        lambda: read_log(LAMP, MOVES, cut_off="random"),
        "cut_off='random': choose 'unrelated', or leave it out",
    ),
    "model without variables": (
        lambda: read_log(with_states(), MOVES),
        "the states of this model have no variables, so that a log cannot name them",
    ),
    "model with equal states": (
        lambda: read_log(with_states(place_x=PLACE), MOVES),
        "several states have the valuation (place_x=0), so that a log cannot tell them apart",
    ),
    "variables like columns": (
        lambda: read_log(with_states(x=PLACE, next_x=PLACE), MOVES),
        "two columns of the log would be called next_x; rename a state variable",
    ),
    "variables that differ in capitals": (
        lambda: read_log(with_states(x=PLACE, X=PLACE), MOVES),
        "two columns of the log would be called X, next_X, next_x, x, which differ in capitals only; rename a state "
        "variable",
    ),
    "variables like columns, written": (
        lambda: pl.data.record(with_states(x=PLACE, next_x=PLACE), {"p": 0.6}, 3, rng=1, max_steps=4).columns(
            "transitions"
        ),
        "two columns of the log would be called next_x; rename a state variable",
    ),
    "dialect": (
        lambda: counts_query(LAMP, table="log", dialect="oracle", form="transitions"),
        "dialect='oracle': choose one of 'bigquery', 'snowflake', 'spark', 'trino', 'postgres', 'duckdb'",
    ),
    **{
        f"table {table!r}": (
            lambda table=table: counts_query(LAMP, table=table, dialect="duckdb", form="transitions"),
            f"table={table!r}: this is not the name of a table; write it as lake.log, with quotes if need be",
        )
        for table in (
            "",
            " ",
            "t') UNION SELECT 1 --",
            "a; DROP TABLE x",
            "t -- c",
            "(SELECT * FROM secret) s",
            "t s",
            "t, u",
            "read_parquet('/etc/passwd')",
            "`a`.b",
            "a.b.c.d.e",
            "select",
            None,
            5,
        )
    },
    "counts beyond 2^53": (
        lambda: read_log(LAMP, MOVES.assign(n=2**61), form="counts"),
        "counts sum to 27,670,116,110,564,327,424, but no more than 2^53 = 9,007,199,254,740,992 steps can be counted "
        "exactly; check that these are numbers of steps, or give a part of the data that nobody chose by looking at it",
    ),
    "query for another column": (
        lambda: counts_query(LAMP, table="log", dialect="spark", form="transitions", columns={"time": "t"}),
        "columns={'time': …}: a log of transitions has no such column, only place_x, lit, mode, action, next_place_x, "
        "next_lit, next_mode, episode, step",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_log_is_refused_with_its_reason(case):
    read, message = BAD[case]
    with pytest.raises(pl.DataError) as caught:
        read()
    assert str(caught.value) == message


def written(folder, name, lines):
    (folder / name).write_text("\n".join(lines), encoding="utf-8")
    return folder / name


LINES = MOVES.to_csv(index=False).splitlines()
FILES = {
    "no rows, no names": ("log.csv", [], "{path}: the first line must name the columns, but it is empty"),
    "too few values": (
        "log.csv",
        [*LINES[:3], "1,2,3", *LINES[3:]],
        "{path}, line 4: this line has 3 values, but the first line names 9 columns; correct the line",
    ),
    "too many values": (
        "log.csv",
        [*LINES[:3], f"{LINES[3]},9"],
        "{path}, line 4: this line has 10 values, but the first line names 9 columns; correct the line",
    ),
    "no names": (
        "log.csv",
        LINES[1:],
        f"{{path}}: several columns have the same name in the first line {LINES[1]}",
    ),
    "a line before the names": (
        "log.csv",
        ["# flights of today", *LINES],
        "the log looks like transitions, but it lacks place_x, lit, mode, action, next_place_x, next_lit, next_mode; "
        "its columns are # flights of today: say which they are with columns={{…}}, or give form=…",
    ),
    "another kind of file": (
        "log.xlsx",
        LINES,
        "{path}: the name must end in .parquet, .pq, .csv, .tsv, .txt, .xes, .json, .jsonl, .ndjson (or these and "
        ".gz); save it as one of these",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_a_bad_file_is_refused_with_its_reason(case, tmp_path):
    name, lines, message = FILES[case]
    path = written(tmp_path, name, lines)
    with pytest.raises(pl.DataError) as caught:
        read_log(LAMP, path)
    assert str(caught.value) == message.format(path=path)


TEXT = "\n".join(LINES)
BROKEN = {
    "an open quotation mark": ("log.csv", "\n".join([*LINES[:3], '"1,2']).encode(), ", line 4: a quotation mark is"),
    "quotation marks in a value": ("log.csv", TEXT.replace("rest", '"r"t"').encode(), ", line 2: a quotation mark is"),
    "Latin-1": ("log.csv", TEXT.replace("rest", "r\xe9st").encode("latin-1"), ", line 2: this is not text in UTF-8"),
    "UTF-16": ("log.csv", TEXT.encode("utf-16"), ", line 1: this is not text in UTF-8"),
    "random bytes": ("log.csv", bytes(range(256)), ", line "),
    "an endless line": ("log.csv", f"{LINES[0]}\n{'x' * 2_100_000}".encode(), ", line 2: the line has more than"),
    "half of Parquet": ("log.parquet", lambda whole: whole[: len(whole) // 2], ": the file is damaged"),
    "the start of Parquet": ("log.parquet", lambda whole: whole[:6], ": the file is damaged"),
    "empty Parquet": ("log.parquet", b"", ": the file is damaged"),
    "zeros in Parquet": ("log.parquet", lambda whole: whole[:90] + bytes(200) + whole[290:], ": the file is damaged"),
    "another footer": ("log.parquet", lambda whole: whole[:-40] + b"x" * 32 + whole[-8:], ": "),
    "text for Parquet": ("log.parquet", TEXT.encode(), ": the file is damaged"),
    "JSON that is cut off": ("log.json", MOVES.to_json(orient="records").encode()[:-30], ": this is not JSON from"),
    "no JSON": ("log.jsonl", b'{"place_x": 1,\nhello', ": this is not JSON from byte"),
    "not packed": ("log.csv.gz", TEXT.encode(), ": it cannot be unpacked"),
    "packed and cut off": ("log.csv.gz", gzip.compress(TEXT.encode())[:60], ": it cannot be unpacked"),
    "not packed by Zstandard": ("log.csv.zst", TEXT.encode(), ": it cannot be unpacked"),
}
WORDS_OF_DUCKDB = re.compile(r"\b(Error|Exception|Original Line|LINE \d|magic bytes|SELECT|duckdb)\b|\n\n")


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_refused_in_words_of_plumdp(case, tmp_path):
    name, content, start = BROKEN[case]
    path = tmp_path / name
    if callable(content):
        MOVES.to_parquet(path)
        content = content(path.read_bytes())
    path.write_bytes(content)
    message = refused(LAMP, path)
    assert not WORDS_OF_DUCKDB.search(message)
    assert message.startswith((f"{path}{start}", f"the data{start}"))
    assert len(message) < 300


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
        read_log(*arguments, **options)
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
    total = sum(read_log(LAMP, file, **options).counts for file in files).total
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
        pilot = read_log(LAMP, source, **options).counts.pilot
        assert np.array_equal(pilot.counts, first)
        assert pilot.rests_on == (
            "the rows of the log are in the order in which their steps happened, file after file: "
            f"day-1.{ending}, day-2.{ending}, day-3.{ending}, …, day-25.{ending} (25 files)"
        )

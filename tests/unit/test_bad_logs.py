"""Bad logs: each is refused with what is wrong, where, and how to fix it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from log_models import LAMP, runs

import plumdp as pl
from plumdp.data.logs import read_log
from plumdp.data.sql import counts_query

ROWS, _ = runs(LAMP, {"p": 0.6}, 3, max_steps=4)
MOVES, RUNS = (pd.DataFrame(ROWS[form]) for form in ("transitions", "trajectories"))
MOVE_COLUMNS = "episode, step, place_x, lit, mode, action, next_place_x, next_lit, next_mode"
ADVICE = 'correct the log or the model, or count the other rows with on_unmatched="report"'
STEPS = (
    "but steps are whole numbers, one more in each row of an episode; number the rows of each episode in their order"
)


def with_states(**states):
    """Return the model with other state variables."""
    return replace(LAMP, graph=replace(LAMP.graph, states=states))


PLACE = LAMP.graph.states["place_x"]
BAD = {
    "unknown state": (
        lambda: read_log(MOVES.assign(place_x=[7] * 8 + [None] * 4), LAMP),
        "12 of 12 rows do not fit the model:\n"
        "  unknown state: 8 rows; (place_x=7.0, lit=false, mode=rest) (5×), (place_x=7.0, lit=true, mode=rest) (2×), "
        "(place_x=7.0, lit=false, mode=work) (1×); place_x is 0 to 2 in the model\n"
        "  unreadable state: 4 rows; "
        "(place_x=null, lit=false, mode=rest) 'rest' → (place_x=0, lit=false, mode=rest) (2×), "
        "(place_x=null, lit=false, mode=rest) 'go' → (place_x=1, lit=false, mode=work) (1×), "
        f"(place_x=null, lit=false, mode=work) 'rest' → (place_x=0, lit=false, mode=rest) (1×)\n{ADVICE}",
    ),
    "unknown and impossible": (
        lambda: read_log(MOVES.assign(next_place_x=2), LAMP),
        "11 of 12 rows do not fit the model:\n"
        "  unknown next state: 8 rows; (place_x=2, lit=false, mode=rest) (6×), (place_x=2, lit=true, mode=rest) (2×); "
        "each value is known, but the model has no state with all of them\n"
        "  impossible transition: 3 rows; (place_x=0, lit=false, mode=rest) 'go' → (place_x=2, lit=false, mode=work) "
        f"(3×); the model has no such edge, so it may be wrong\n{ADVICE}",
    ),
    "unknown action": (
        lambda: read_log(MOVES.assign(action=["fly"] * 8 + [None] * 4), LAMP),
        f"12 of 12 rows do not fit the model:\n  unknown action: 12 rows; 'fly' (8×), null (4×); the actions "
        f"are 'go', 'rest'\n{ADVICE}",
    ),
    "gap": (
        lambda: read_log(RUNS.drop(index=[1, 2]), LAMP),
        "1 of 13 rows do not fit the model:\n"
        f"  gap in steps: 1 row; episode 0 has 3 rows and 3 of the steps 0 to 4\n{ADVICE}",
    ),
    "repeated rows": (
        lambda: read_log(pd.concat([RUNS, RUNS.head(2)]), LAMP),
        "4 of 17 rows do not fit the model:\n  repeated step: 4 rows; episode 0 has 7 rows and 5 of the steps 0 to 4; "
        f'if each file numbers its episodes anew, give partitions="files"\n{ADVICE}',
    ),
    "missing step": (
        lambda: read_log(RUNS.assign(step=[None, *RUNS.step[1:]]), LAMP),
        f"1 of 15 rows do not fit the model:\n  no episode or step: 1 row\n{ADVICE}",
    ),
    "steps too large to tell apart": (
        lambda: read_log(RUNS.assign(step=RUNS.step + 2.0**53), LAMP),
        f"15 of 15 rows do not fit the model:\n  no episode or step: 15 rows\n{ADVICE}",
    ),
    "steps too large to tell apart, through DuckDB": (
        lambda: read_log(pyarrow.Table.from_pandas(RUNS.assign(step=(RUNS.step + 2.0**53).astype(str))), LAMP),
        f"15 of 15 rows do not fit the model:\n  no episode or step: 15 rows\n{ADVICE}",
    ),
    "missing column": (
        lambda: read_log(RUNS.drop(columns=["lit", "step"]), LAMP),
        "the log looks like trajectories, but it lacks step, lit; its columns are episode, place_x, mode, action: "
        "say which they are with columns={…}, or give form=…",
    ),
    "missing column of the given form": (
        lambda: read_log(MOVES, LAMP, form="counts"),
        f"as a log of counts, it lacks n; its columns are {MOVE_COLUMNS}: say which they are with columns={{…}}",
    ),
    "mapping from an unknown name": (
        lambda: read_log(MOVES, LAMP, columns={"x": "place_x"}),
        "columns={'x': …}: plumdp has no column of this name, only place_x, lit, mode, action, next_place_x, next_lit, "
        "next_mode, place, episode, step, n",
    ),
    "mapping to an unknown column": (
        lambda: read_log(MOVES, LAMP, columns={"place_x": "x"}),
        f"columns={{'place_x': 'x'}}: the log has no such column, only {MOVE_COLUMNS}",
    ),
    "times for steps": (
        lambda: read_log(pyarrow.Table.from_pandas(RUNS.assign(step=np.datetime64("2024-01-01", "us"))), LAMP),
        f"column step has the type TIMESTAMP, {STEPS}",
    ),
    "text for steps": (
        lambda: read_log(polars.from_pandas(RUNS).cast({"step": polars.String}), LAMP),
        f"column step has the type String, {STEPS}",
    ),
    "negative count": (
        lambda: read_log(MOVES.assign(n=-1), LAMP, form="counts"),
        "column n: -1 is not a count; counts are whole numbers from 0",
    ),
    "missing count": (
        lambda: read_log(MOVES.assign(n=[1] * 11 + [None]), LAMP, form="counts"),
        "column n: null is not a count; counts are whole numbers from 0",
    ),
    "unknown place": (
        lambda: read_log(MOVES.assign(n=1, place="here"), LAMP, form="counts"),
        "column place: 'here' is none of step, last, gap, duplicate, unplaced",
    ),
    "lists for values": (
        lambda: read_log(pyarrow.Table.from_pandas(MOVES.assign(place_x=[[1]] * 12)), LAMP),
        "a column holds values like array([1]); it must hold numbers, truth values or text",
    ),
    "lists in pandas": (
        lambda: read_log(MOVES.assign(place_x=[[1]] * 12), LAMP),
        "the rows of the log cannot be compared: unhashable type: 'list'",
    ),
    "no file": (
        lambda: read_log("nowhere/*.csv", LAMP),
        "nowhere/*.csv: there is no such file, nor a folder of Parquet, CSV or JSON files",
    ),
    "no files": (lambda: read_log([], LAMP), "the list of files is empty"),
    "no log": (
        lambda: read_log({"place_x": [1]}, LAMP),
        "a log of type dict cannot be read; give a path, a pattern, a list of paths, or a data frame of pandas, "
        "Polars, PyArrow, PySpark or DuckDB",
    ),
    "form": (
        lambda: read_log(MOVES, LAMP, form="rows"),
        "form='rows': choose one of 'transitions', 'trajectories', 'counts'",
    ),
    "sampling": (
        lambda: read_log(MOVES, LAMP, sampling="iid"),
        "sampling='iid': choose one of 'independent', 'trajectories', 'adaptive'",
    ),
    "on_unmatched": (
        lambda: read_log(MOVES, LAMP, on_unmatched="drop"),
        "on_unmatched='drop': choose 'error' or 'report'",
    ),
    "partitions": (
        lambda: read_log(MOVES, LAMP, partitions=0),
        "partitions=0: give a whole number above 0, 'files', or leave it out",
    ),
    "partitions of a frame": (
        lambda: read_log(MOVES, LAMP, partitions=4),
        "partitions are for files; a data frame is counted as a whole, by its own engine",
    ),
    "memory": (
        lambda: read_log(pyarrow.Table.from_pandas(MOVES), LAMP, memory_limit="1GB"),
        "memory_limit='1GB': give a number of bytes, at least 100,000,000",
    ),
    "model without variables": (
        lambda: read_log(MOVES, with_states()),
        "the states of this model have no variables, so that a log cannot name them",
    ),
    "model with equal states": (
        lambda: read_log(MOVES, with_states(place_x=PLACE)),
        "several states have the valuation (place_x=0), so that a log cannot tell them apart",
    ),
    "variables like columns": (
        lambda: read_log(MOVES, with_states(x=PLACE, next_x=PLACE)),
        "two columns of the log would be called next_x; rename a state variable",
    ),
    "variables like columns, written": (
        lambda: pl.record(with_states(x=PLACE, next_x=PLACE), {"p": 0.6}, 3, rng=1, max_steps=4).columns("transitions"),
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
    "counts beyond 2^63": (
        lambda: read_log(MOVES.assign(n=2**61), LAMP, form="counts"),
        "counts sum to 27,670,116,110,564,327,424, but no more than 2^63 - 1 = 9,223,372,036,854,775,807 steps can be "
        "counted",
    ),
    "query for another column": (
        lambda: counts_query(LAMP, table="log", dialect="spark", form="transitions", columns={"step": "t"}),
        "columns={'step': …}: a log of transitions has no such column, only place_x, lit, mode, action, next_place_x, "
        "next_lit, next_mode",
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
        "Invalid Input Error: CSV Error on Line: 4\nOriginal Line: 1,2,3\nExpected Number of Columns: 9 Found: 3",
    ),
    "too many values": (
        "log.csv",
        [*LINES[:3], f"{LINES[3]},9"],
        f"Invalid Input Error: CSV Error on Line: 4\nOriginal Line: {LINES[3]},9\n"
        "Expected Number of Columns: 9 Found: 10",
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
        "{path}: the name must end in .parquet, .pq, .csv, .tsv, .txt, .json, .jsonl, .ndjson (or these and .gz)",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_a_bad_file_is_refused_with_its_reason(case, tmp_path):
    name, lines, message = FILES[case]
    path = written(tmp_path, name, lines)
    with pytest.raises(pl.DataError) as caught:
        read_log(path, LAMP, on_unmatched="report")
    assert str(caught.value) == message.format(path=path)


@pytest.mark.parametrize(
    ("name", "start"), [("log.parquet", "Invalid Input Error: "), ("log.json", "Invalid Input Error: ")]
)
def test_what_duckdb_says_of_a_broken_file_is_passed_on(name, start, tmp_path):
    with pytest.raises(pl.DataError) as caught:
        read_log(written(tmp_path, name, ['{"place_x": 1,', "hello"]), LAMP)
    assert str(caught.value).startswith(start)
    assert name in str(caught.value)


TWICE = (
    "{} and {} have the same content, so that it would be counted twice; leave out one of them if it is a copy. If "
    "they are different runs that happen to look alike, or if each file numbers its episodes anew, give "
    'partitions="files"'
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
            read_log(source, LAMP)
        assert str(caught.value) == message
    assert read_log([path, other], LAMP, partitions="files").counts.total == 2 * len(MOVES)
    with pytest.raises(pl.DataError) as caught:
        read_log([path, path], LAMP, partitions="files")
    assert str(caught.value) == twice


def test_files_of_one_size_and_files_without_rows_are_not_taken_for_copies(tmp_path):
    rows = [line.replace(",rest,", ",idle,") for line in LINES]
    for name, lines in (("a.csv", LINES), ("b.csv", rows), ("c.csv", LINES[:1]), ("d.csv", LINES[:1])):
        written(tmp_path, name, lines)
    assert (tmp_path / "a.csv").stat().st_size == (tmp_path / "b.csv").stat().st_size
    assert read_log(tmp_path, LAMP, on_unmatched="report").report.total == 2 * len(MOVES)


def test_files_of_several_formats_are_refused(tmp_path):
    files = [written(tmp_path, name, LINES) for name in ("log.csv", "log.json")]
    with pytest.raises(pl.DataError) as caught:
        read_log(files, LAMP)
    assert str(caught.value) == "files of several formats (csv, json): read one after the other"


def test_files_that_are_read_one_by_one_must_have_the_same_columns(tmp_path):
    RUNS.to_parquet(tmp_path / "a.parquet")
    RUNS.drop(columns="lit").to_parquet(tmp_path / "b.parquet")
    with pytest.raises(pl.DataError) as caught:
        read_log(tmp_path, LAMP, partitions="files")
    assert str(caught.value) == (
        f"{tmp_path / 'a.parquet'} has the columns episode, step, place_x, lit, mode, action, "
        f"but {tmp_path / 'b.parquet'} has episode, step, place_x, mode, action"
    )

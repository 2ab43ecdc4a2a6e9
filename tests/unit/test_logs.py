"""Logs in files and frames: what is counted is what was logged, and every row is accounted for."""

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_format import in_format
from log_models import LAMP, recount, runs
from tiers import examples, pairs

import plumdp as pl
from plumdp.data import open_logs
from plumdp.data.duckdb_engine import connect, write_parquet
from plumdp.data.logs import read_log
from plumdp.data.matching import Matcher
from plumdp.data.sql import counts_query
from plumdp.model.values import RowIndex, Texts

STUDIES = ("aircraft:20,10", "betting:25", "engagement:50", "rover:10,10", "glider:11,9", "parallel:6")
FORMS = ("transitions", "trajectories")
ROWS, COUNTS = runs(LAMP, {"p": 0.6}, 200)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "form"), pairs(STUDIES, FORMS))
def test_a_simulated_log_is_read_back_as_the_counts_in_memory(name, form, tmp_path):
    study = pl.case_study(name)
    options = {"rng": 3, "max_steps": 40}
    pl.data.write_runs(study.model, study.true_point, 5000, tmp_path / "log.parquet", form=form, **options)
    log = read_log(study.model, tmp_path / "log.parquet")
    expected = pl.simulate(study.model, study.true_point, 5000, **options)
    assert np.array_equal(log.counts.counts, expected.counts)
    assert (log.report.form, log.report.matched, log.report.rejected) == (form, expected.total, 0)
    assert log.report.rows["last row"] == (5000 if form == "trajectories" else 0)


WRITERS = {
    "log.parquet": lambda frame, path: frame.to_parquet(path),
    "log.csv": lambda frame, path: frame.to_csv(path, index=False),
    "log.tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "semicolons.csv": lambda frame, path: frame.to_csv(path, index=False, sep=";"),
    "log.csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "log.json": lambda frame, path: frame.to_json(path, orient="records"),
    "log.jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "log.ndjson.gz": lambda frame, path: frame.to_json(path, orient="records", lines=True),
}


@pytest.mark.parametrize(("file", "form"), pairs(WRITERS, FORMS))
def test_every_format_of_files_gives_the_same_counts(file, form, tmp_path):
    WRITERS[file](pd.DataFrame(ROWS[form]), tmp_path / file)
    log = read_log(LAMP, tmp_path / file)
    assert np.array_equal(log.counts.counts, COUNTS)
    assert log.report.form == form


def many_files(folder, form):
    """Write the runs into three files, each with whole runs."""
    frame = pd.DataFrame(ROWS[form])
    for part in range(3):
        frame[frame.episode % 3 == part].to_parquet(folder / f"part-{part}.parquet")
    (folder / "_SUCCESS").touch()
    return [folder / f"part-{part}.parquet" for part in range(3)]


@pytest.mark.parametrize("form", FORMS)
def test_a_folder_a_pattern_and_a_list_stand_for_their_files(form, tmp_path):
    files = many_files(tmp_path, form)
    for source in (tmp_path, str(tmp_path / "part-*.parquet"), files, tuple(map(str, files))):
        assert np.array_equal(read_log(LAMP, source).counts.counts, COUNTS)


@pytest.mark.parametrize("name", ["log[1].parquet", "log*.csv", "it's.json"])
def test_a_file_whose_name_looks_like_a_pattern_is_read_by_itself(name, tmp_path):
    frame = pd.DataFrame(ROWS["transitions"])
    WRITERS[f"log.{name.rpartition('.')[2]}"](frame, tmp_path / name)
    WRITERS[f"log.{name.rpartition('.')[2]}"](frame, tmp_path / name.replace("[1]", "1").replace("*", "-2"))
    assert np.array_equal(read_log(LAMP, tmp_path / name).counts.counts, COUNTS)


@pytest.mark.parametrize("order", ["as written", "shuffled", "episodes backwards", "episodes as text"])
def test_the_order_of_rows_makes_no_difference(order, tmp_path):
    frame = pd.DataFrame(ROWS["trajectories"])
    if order == "shuffled":
        frame = frame.sample(frac=1, random_state=1)
    elif order == "episodes backwards":
        frame["episode"] = -frame.episode
    elif order == "episodes as text":
        frame["episode"] = [f"{7 * episode % 199:03}-run" if episode else "first" for episode in frame.episode]
    frame.to_parquet(tmp_path / "log.parquet")
    log = read_log(LAMP, tmp_path / "log.parquet")
    assert np.array_equal(log.counts.counts, COUNTS)
    assert log.report.rows["last row"] == 200


@pytest.mark.night
def test_rows_that_do_not_fit_into_memory_have_the_same_counts(tmp_path, monkeypatch):
    study = pl.case_study("betting:25")
    frame = pd.DataFrame(
        pl.data.record(study.model, study.true_point, 40_000, rng=1, max_steps=25).columns("trajectories")
    )
    frame.sample(frac=1, random_state=1).to_parquet(tmp_path / "log.parquet")
    monkeypatch.setattr(open_logs, "connect", partial(connect, 1e8))
    log = read_log(study.model, tmp_path / "log.parquet")
    expected = pl.simulate(study.model, study.true_point, 40_000, rng=1, max_steps=25)
    assert np.array_equal(log.counts.counts, expected.counts)


def test_files_that_number_their_episodes_anew_are_read_with_names_of_their_own(tmp_path):
    for file in "ab":
        pd.DataFrame(ROWS["trajectories"]).to_parquet(tmp_path / f"{file}.parquet")
    with pytest.raises(pl.DataError, match="have the same content"):
        read_log(LAMP, tmp_path)
    files = f"read_parquet('{tmp_path}/*.parquet', filename = true)"
    run = "dense_rank() OVER (ORDER BY filename, episode) AS episode"
    both = duckdb.sql(f"SELECT * EXCLUDE (filename) REPLACE ({run}) FROM {files}")
    assert np.array_equal(read_log(LAMP, both, order="runs").counts.counts, 2 * COUNTS)


# rows that come twice


@pytest.mark.parametrize("is_shuffled", [False, True])
@pytest.mark.parametrize(("file", "form"), pairs(["log.parquet", "log.csv", "log.json"], FORMS))
def test_copies_of_rows_are_counted_once_and_said(file, form, is_shuffled, tmp_path):
    """An export that was appended to itself, or two exports that overlap in 100 rows."""
    frame = pd.DataFrame(ROWS[form])
    twice = pd.concat([frame, frame])
    twice = twice.sample(frac=1, random_state=1) if is_shuffled else twice
    WRITERS[file](twice, tmp_path / file)
    log = read_log(LAMP, tmp_path / file)
    assert np.array_equal(log.counts.counts, COUNTS)
    last = ", 200 ends of runs" if form == "trajectories" else ""
    total, n = f"{2 * len(frame):,}", f"{COUNTS.sum():,}"
    assert str(log) == f"{total} log rows: {n} matched{last}, {len(frame):,} exact duplicates left out, 0 rejected"
    for part, rows in enumerate((frame.head(1000), frame.tail(-900))):
        WRITERS[file](rows, tmp_path / f"{part}-{file}")
    overlapping = read_log(LAMP, [tmp_path / f"{part}-{file}" for part in range(2)], order="runs")
    assert (overlapping.report.rows["copy"], overlapping.report.rejected) == (100, 0)
    assert np.array_equal(overlapping.counts.counts, COUNTS)
    assert np.array_equal(overlapping.counts.pilot.counts, read_log(LAMP, frame, order="runs").counts.pilot.counts)


def test_rows_that_are_alike_are_no_copies_if_others_show_that_runs_share_a_number():
    """Of two runs with one number, steps with the same outcome would be counted and others not."""
    frame = pd.DataFrame(ROWS["transitions"])
    days = pd.concat([frame[frame.episode < 100], frame[frame.episode >= 100].assign(episode=frame.episode - 100)])
    report = read_log(LAMP, days, on_unmatched="report", order="runs").report
    n_shared = int(days.groupby(["episode", "step"]).size().sub(1).sum())
    assert (report.rows["repeated step"], report.rows["copy"]) == (2 * n_shared, 0)
    pilot = read_log(LAMP, days, on_unmatched="report", order="runs").counts.pilot
    assert (pilot.total, pilot.moments) == (0, ())  # nobody knows which run is which


@pytest.mark.parametrize("columns", [["episode"], ["step"], ["episode", "step"]])
def test_rows_that_do_not_name_run_and_step_are_all_counted(columns, tmp_path):
    frame = pd.DataFrame(ROWS["transitions"]).drop(columns=columns)
    pd.concat([frame, frame]).to_parquet(tmp_path / "log.parquet")
    assert np.array_equal(read_log(LAMP, tmp_path / "log.parquet").counts.counts, 2 * COUNTS)
    nothing = pd.DataFrame(ROWS["transitions"]).assign(**dict.fromkeys(columns))
    assert np.array_equal(read_log(LAMP, pd.concat([nothing, nothing])).counts.counts, 2 * COUNTS)


def test_a_state_variable_called_step_is_not_the_step_of_a_run():
    (p,) = pl.parameters("p")
    step = lambda s: {"go": [(p, s._replace(step=1 - s.step)), (1 - p, s)]}  # noqa: E731
    model = pl.explore(step, {"step": 0}, space=pl.ParameterSpace.unit("p"))
    log = pd.DataFrame({"episode": 1, "step": [0, 0, 1], "action": "go", "next_step": [0, 1, 1]})
    columns = {"state_step": "step"}
    assert read_log(model, log, pl.LogFormat(columns=columns)).counts.total == 3
    with pytest.raises(pl.DataError, match=r"repeated step: 2 rows; episode 1, step 0 \(2 rows: next_step=0 in "):
        read_log(model, log, pl.LogFormat(columns=columns | {"step": "step"}))


# runs that end before the outcome of their last action


def censoring(n, n_runs=200, form="trajectories"):
    """Return runs of which the first n lack their last state; some of them end in a state that "rest" never leaves."""
    frame = pd.DataFrame(ROWS[form])
    is_last = frame.episode != frame.episode.shift(-1)
    return frame[(frame.episode < n_runs) & ~(is_last & (frame.episode < n))]


def pending(frame):
    """Return the runs that end with an action which may lead somewhere else."""
    last = frame[frame.episode != frame.episode.shift(-1)]
    stays = (last.action == "rest") & (last["mode"] == "rest") & (last.place_x == 0)
    return last.episode[last.action.notna() & ~stays].tolist()


@pytest.mark.slow
def test_most_runs_without_their_last_state_are_refused_with_what_to_do(tmp_path):
    frame = censoring(200)
    n = len(pending(frame))
    assert 100 < n < 200
    message = (
        f"{n} of 200 runs end before the outcome of their last action: their last row has an action, and no row shows "
        "the state after it. If the outcome decided what was logged, as with a recorder that never writes the state in "
        "which a run ends, every result is wrong. Add a row with the last state of each run, and no action. If the "
        "runs were censored for reasons that have nothing to do with that outcome, such as a limit on the number of "
        "steps, or if the last action was never carried out, say censoring='unrelated'"
    )
    frame.to_csv(tmp_path / "log.csv", index=False)
    counted = duckdb.sql(counts_query(LAMP, pl.LogFormat(form="trajectories"), table="frame", dialect="duckdb")).df()
    for source in (tmp_path / "log.csv", frame, polars.DataFrame(frame), counted):
        for options in ({}, {"on_unmatched": "report"}):
            with pytest.raises(pl.DataError) as caught:
                read_log(LAMP, source, **in_format(**options))
            assert str(caught.value) == message
        log = read_log(LAMP, source, pl.LogFormat(censoring="unrelated"))
        assert log.report.summary.endswith(f", 200 ends of runs ({n} censored), 0 rejected")
        assert log.report.to_dict()["rows"]["censored"] == n
        assert log.report.to_dict()["censoring"] == "unrelated"


def test_half_of_the_runs_may_be_cut_off():
    """With one whole run less it is more than half."""
    frame = censoring(100)
    names = pending(frame)
    n = len(names)
    half = frame[frame.episode.isin([*names, *range(100, 100 + n)])]
    assert read_log(LAMP, half).report.rows["censored"] == n
    with pytest.raises(pl.DataError, match=f"^{n} of {2 * n - 1} runs end before the outcome of their last action"):
        read_log(LAMP, half[half.episode < 100 + n - 1])


@pytest.mark.parametrize("name", STUDIES)
def test_runs_that_plumdp_writes_are_not_cut_off(name, tmp_path):
    study = pl.case_study(name)
    pl.data.write_runs(study.model, study.true_point, 50, tmp_path / "log.csv", rng=1, max_steps=7, form="trajectories")
    assert read_log(study.model, tmp_path / "log.csv").report.rows["censored"] == 0


FRAMES = {
    "pandas": pd.DataFrame,
    "Polars": polars.DataFrame,
    "Polars, lazy": polars.LazyFrame,
    "PyArrow": lambda rows: pyarrow.Table.from_pylist(rows),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("library", FRAMES)
def test_columns_under_other_names_are_found(library, form):
    names = {"place_x": "Position", "action": "cmd", "next_lit": "lamp after", "step": 'the "step"'}
    rows = [{names.get(name, name): value for name, value in row.items()} for row in ROWS[form]]
    columns = {name: there for name, there in names.items() if there in rows[0]}
    log = read_log(LAMP, FRAMES[library](rows), pl.LogFormat(columns=columns))
    assert np.array_equal(log.counts.counts, COUNTS)


def test_capitals_of_a_warehouse_do_not_matter():
    rows = [{name.upper(): value for name, value in row.items()} for row in ROWS["transitions"]]
    assert np.array_equal(read_log(LAMP, pd.DataFrame(rows)).counts.counts, COUNTS)


def test_a_log_with_next_states_and_steps_is_one_of_transitions_unless_said_otherwise():
    frame = pd.DataFrame(ROWS["transitions"])
    assert read_log(LAMP, frame).report.form == "transitions"
    as_runs = read_log(LAMP, frame, pl.LogFormat(form="trajectories", censoring="unrelated"))
    assert as_runs.report.n_runs == 200
    assert as_runs.counts.total == COUNTS.sum() - 200


def test_ready_made_counts_weigh_each_row():
    rows = [
        {name: value for name, value in row.items() if name not in ("episode", "step")} for row in ROWS["transitions"]
    ]
    frame = pd.DataFrame(rows)
    counted = frame.groupby([*frame.columns], as_index=False).size().rename(columns={"size": "n"})
    log = read_log(LAMP, counted)
    assert np.array_equal(log.counts.counts, COUNTS)
    assert (log.report.form, log.report.total) == ("counts", COUNTS.sum())
    assert np.array_equal(
        read_log(LAMP, counted.rename(columns={"n": "times"}), pl.LogFormat(columns={"n": "times"})).counts.counts,
        COUNTS,
    )


def test_a_column_n_of_another_meaning_does_not_make_counts_of_a_log_of_runs():
    frame = pd.DataFrame(ROWS["transitions"]).assign(n=5)
    assert np.array_equal(read_log(LAMP, frame).counts.counts, COUNTS)
    assert np.array_equal(read_log(LAMP, frame, pl.LogFormat(form="counts")).counts.counts, 5 * COUNTS)


@pytest.mark.parametrize("sampling", ["independent", "trajectories", "adaptive"])
def test_the_counts_say_how_they_were_sampled(sampling):
    assert read_log(LAMP, pd.DataFrame(ROWS["transitions"]), sampling=sampling).counts.sampling == sampling


def test_a_log_without_rows_has_no_counts():
    for form in FORMS:
        frame = pd.DataFrame(ROWS[form]).head(0)
        for source in (frame, polars.DataFrame(ROWS[form]).head(0), pyarrow.Table.from_pylist(ROWS[form])[:0]):
            log = read_log(LAMP, source)
            assert (log.report.total, log.counts.total) == (0, 0)


SPELLINGS = {
    "numbers as text": {"place_x": str},
    "numbers as floats": {"place_x": float},
    "floats as text": {"place_x": lambda x: f"{float(x)} "},
    "truth as numbers": {"lit": int},
    "truth as floats": {"lit": float},
    "truth as words": {"lit": lambda x: str(x).upper()},
    "truth as digits": {"lit": lambda x: str(int(x))},
    "steps as text": {"step": str},
    "text with spaces": {"mode": lambda x: f" {x} ", "action": lambda x: None if x is None else f"{x} "},
}


@pytest.mark.parametrize(("spelling", "library"), pairs(SPELLINGS, FRAMES))
def test_values_are_known_in_other_types(spelling, library):
    ways = SPELLINGS[spelling]
    for form in FORMS:
        rows = [
            {name: ways.get(name.removeprefix("next_"), lambda x: x)(value) for name, value in row.items()}
            for row in ROWS[form]
        ]
        assert np.array_equal(read_log(LAMP, FRAMES[library](rows)).counts.counts, COUNTS)


def test_objects_of_pandas_are_read_as_they_are_written_whatever_comes_late():
    """DuckDB would guess a type from some of the rows, and stumble over the others."""
    frame = pd.DataFrame(ROWS["transitions"]).astype({"place_x": object, "next_lit": object, "mode": object})
    frame = pd.concat([frame] * 3, ignore_index=True).drop(columns=["episode", "step"])
    late = len(frame) - 7
    odd = [" 1 ", "one", None, float("nan"), pd.NA, 2.5, [1]]
    frame.loc[late:, "place_x"] = pd.Series(odd, index=frame.index[late:], dtype=object)
    frame.loc[late - 1, "mode"] = 3
    rows = [{k: None if v is pd.NA else str(v) if isinstance(v, list) else v for k, v in row.items()}
            for row in frame.to_dict("records")]  # fmt: skip
    rows[late]["place_x"] = 1
    check_against_recount(frame, "transitions", rows)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("library", FRAMES)
def test_frames_in_any_order_have_the_same_counts(library, form):
    rows = [ROWS[form][i] for i in np.random.default_rng(1).permutation(len(ROWS[form]))]
    log = read_log(LAMP, FRAMES[library](rows))
    assert np.array_equal(log.counts.counts, COUNTS)
    assert log.report.rejected == 0


def test_a_lazy_frame_whose_rows_change_their_order_is_counted_as_it_was_first():
    """A lazy frame is calculated whenever it is read, and only the columns that are needed."""
    frame = polars.DataFrame(ROWS["trajectories"]).with_columns(note=polars.lit("a"))
    seeds, widths = iter(range(99)), []

    def shuffled(rows):
        widths.append(rows.width)
        return rows if len(rows) < 2 else rows.sample(fraction=1.0, shuffle=True, seed=next(seeds))

    lazy = frame.lazy().map_batches(shuffled, projection_pushdown=True)
    log = read_log(LAMP, lazy)
    assert np.array_equal(log.counts.counts, COUNTS)
    assert (len(widths), log.report.rejected) == (1, 0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["N", "Place", "Step", "Episode", "Action"])
def test_a_variable_whose_name_differs_from_that_of_a_column_in_capitals_is_told_apart(name, form, tmp_path):
    """SQL does not tell capitals apart."""
    (p,) = pl.parameters("p")
    step = lambda s: {"go": [(p, s._replace(**{name: 1 - s[0]})), (1 - p, s)]}  # noqa: E731
    model = pl.explore(step, {name: 0}, space=pl.ParameterSpace.unit("p"))
    recorded = pl.data.record(model, {"p": 0.3}, 50, rng=1, max_steps=5)
    write_parquet(tmp_path / "log.parquet", [recorded.columns(form)])
    frame = pd.DataFrame(recorded.columns(form))
    counted = duckdb.sql(counts_query(model, pl.LogFormat(form=form), table="frame", dialect="duckdb")).df()
    for source in (frame, polars.from_pandas(frame), tmp_path / "log.parquet", counted):
        assert np.array_equal(read_log(model, source).counts.counts, recorded.counts().counts)


WITHOUT_PYARROW = """
import sys

class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyarrow":
            raise ModuleNotFoundError(name=name)

sys.meta_path.insert(0, Nowhere())
import duckdb, pandas, polars
from log_models import LAMP, runs
from plumdp.data.logs import read_log

rows, counts = runs(LAMP, {"p": 0.6}, 20)
columns = {name: [row[name] for row in rows["trajectories"]] for name in rows["trajectories"][0]}
frames = [pandas.DataFrame(columns), polars.DataFrame(columns), polars.LazyFrame(columns)]
for frame in [*frames, duckdb.from_df(frames[0])]:
    assert read_log(LAMP, frame).counts.counts.tolist() == counts.tolist(), type(frame)
"""


@pytest.mark.night
def test_frames_are_read_without_pyarrow():
    folder = Path(__file__).parents[1] / "support"
    paths = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    subprocess.run([sys.executable, "-c", WITHOUT_PYARROW], check=True, env={**os.environ, "PYTHONPATH": paths})


def test_categories_and_nullable_types_of_pandas_are_values_too():
    frame = pd.DataFrame(ROWS["transitions"]).astype(
        {"action": "category", "mode": "category", "place_x": "Int64", "lit": "boolean", "next_mode": "string"}
    )
    assert np.array_equal(read_log(LAMP, frame).counts.counts, COUNTS)
    frame.loc[0, ["place_x", "lit", "next_mode"]] = pd.NA
    report = read_log(LAMP, frame, on_unmatched="report").report
    assert report.rows["unreadable state"] == 1
    (worst,) = report.worst["unreadable state"]
    assert worst.startswith("(place_x=null, lit=null, mode=rest) '")


def test_the_report_names_the_worst_offenders_first():
    rows = [dict(row) for row in ROWS["transitions"]]
    for row in rows[:9]:
        row |= {"place_x": 7}
    for row in rows[9:14]:
        row |= {"place_x": None}
    for row in rows[14:20]:
        row |= {"action": "fly"}
    report = read_log(LAMP, pd.DataFrame(rows), on_unmatched="report").report
    valuations = Counter((row["place_x"], row["lit"], row["mode"]) for row in rows[:9])
    assert (report.rows["unknown state"], report.rows["unreadable state"]) == (9, 5)
    assert [line.rpartition("(")[2] for line in report.worst["unknown state"]] == [
        f"{n}×)" for _, n in valuations.most_common(3)
    ]
    assert [*report.worst["unknown action"]] == ["'fly' (6×)"]
    assert str(report).splitlines()[0] == f"{len(rows):,} log rows: {len(rows) - 20:,} matched, 20 rejected"


# random corruptions: one column is damaged in some rows, or rows are moved, repeated or lost

TEXT = {
    "place_x": st.sampled_from(["0", "1", "2", "2.0", "3", "-1", "1.5", "abc", "", None]),
    "lit": st.sampled_from(["true", "false", "1", "0", "yes", None]),
    "mode": st.sampled_from(["work", "rest", "Work", None]),
    "action": st.sampled_from(["go", "rest", "fly", None]),
}
MIXED = {
    "place_x": st.sampled_from([0, 1, 2, "0", "1.0", 1.0, 2.5, 99, "abc", float("nan"), None]),
    "lit": st.sampled_from([True, False, 1, 0, "true", "no", 2, None]),
    "mode": st.sampled_from(["work", "rest", 5, None]),
    "action": st.sampled_from(["go", "rest", "fly", 3, None]),
}


@st.composite
def corrupted(draw, pool):
    """Draw some runs, and rows of them with wrong values, moved steps, lost rows and rows that come twice."""
    form = draw(st.sampled_from(FORMS))
    start = draw(st.integers(0, 20))
    rows = [dict(row) for row in ROWS[form] if start <= row["episode"] < start + 4]
    if pool is TEXT:
        rows = [row | {"place_x": str(row["place_x"]), "lit": str(row["lit"]).lower()} for row in rows]
        if form == "transitions":
            rows = [row | {"next_place_x": str(row["next_place_x"]), "next_lit": str(row["next_lit"])} for row in rows]
    names = [name for name in rows[0] if name.removeprefix("next_") in pool]
    for _ in range(draw(st.integers(0, 12))):
        row = rows[draw(st.integers(0, len(rows) - 1))]
        change = draw(st.sampled_from(["value", "value", "value", "place", "again", "lost"]))
        if change == "value":
            name = draw(st.sampled_from(names))
            row[name] = draw(pool[name.removeprefix("next_")])
        elif change == "place":
            row[draw(st.sampled_from(["episode", "step"]))] = draw(st.sampled_from([None, 0, 1, 2, 3, 20]))
        elif change == "again":
            rows.append(dict(row))
        elif len(rows) > 1:
            rows.remove(row)
    return form, draw(st.permutations(rows)) if draw(st.booleans()) else rows


def check_against_recount(frame, form, rows):
    log = read_log(LAMP, frame, pl.LogFormat(form=form, censoring="unrelated"), on_unmatched="report")
    counts, kinds = recount(rows, LAMP.graph, form)
    assert {kind: n for kind, n in log.report.rows.items() if n} == kinds
    others = log.report.n_runs + log.report.rows["copy"] + log.report.rejected
    assert log.report.matched + others == log.report.total == len(rows)
    assert np.array_equal(log.counts.counts, counts)


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(corrupted(TEXT))
def test_every_row_of_a_corrupted_log_of_text_is_counted_as_a_slow_recount_does(log):
    form, rows = log
    types = {name: pyarrow.int64() if name in ("episode", "step") else pyarrow.string() for name in rows[0]}
    table = pyarrow.Table.from_pylist(rows, schema=pyarrow.schema(types.items()))
    check_against_recount(table, form, rows)
    check_against_recount(polars.from_arrow(table).lazy(), form, rows)
    with TemporaryDirectory() as folder:
        polars.from_arrow(table).write_csv(f"{folder}/log.csv")
        check_against_recount(f"{folder}/log.csv", form, rows)


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(corrupted(MIXED))
def test_every_row_of_a_corrupted_log_of_mixed_types_is_counted_as_a_slow_recount_does(log):
    form, rows = log
    frame = pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=object) for name in rows[0]})
    check_against_recount(frame.astype({"episode": "Int64", "step": "Float64"}), form, rows)


# the lookup of states and transitions


def test_nothing_is_no_empty_word():
    words = Texts(("", "3", "a b"))
    assert words.code(np.array([None, "", " ", 3, 3.0, "3.0", " a b", "a  b"], dtype=object)).tolist() == [
        -1, 0, 0, 1, 1, -1, 2, -1
    ]  # fmt: skip
    assert words.code(np.ma.masked_array([3, 3], [True, False])).tolist() == [-1, 1]


@given(st.data())
def test_rows_of_codes_are_found_as_a_dict_finds_them(data):
    sizes = data.draw(st.lists(st.sampled_from([1, 2, 5, 1000, 2**31, 2**40]), min_size=1, max_size=5))
    row = st.tuples(*(st.integers(0, min(size, 7) - 1) | st.integers(0, size - 1) for size in sizes))
    rows = data.draw(st.lists(row, min_size=1, max_size=30))
    asked = data.draw(st.lists(st.sampled_from(rows) | row | st.just((-1,) * len(sizes)), max_size=30))
    index = RowIndex(sizes, list(np.array(rows, dtype=np.int64).T))
    found = index.find(list(np.array(asked, dtype=np.int64).reshape(-1, len(sizes)).T))
    assert found.tolist() == [rows.index(row) if row in rows else -1 for row in asked]
    assert set(index.repeated.tolist()) == {i for i, row in enumerate(rows) if row in rows[i + 1 :]}


@pytest.mark.night
def test_every_transition_of_a_large_model_is_found_by_its_values():
    graph = pl.case_study("rover:50,50").model.graph
    choice = graph.choice_of_transition()
    state = graph.state_of_choice()[choice]
    block = {name: values[state] for name, values in graph.states.items()}
    block |= {"action": np.array(graph.action_names, dtype=object)[graph.action[choice]]}
    block |= {f"next_{name}": values[graph.successor] for name, values in graph.states.items()}
    kinds, transition = Matcher(graph).match(block)
    assert not kinds.any()
    assert np.array_equal(transition, np.arange(graph.n_transitions))


def two_choices_of_one_name(first, second):
    """Return a model in which the action "go" of state 0 has two choices with the given successors."""

    def step(states):
        for targets in (first, second):
            share = [1 / len(targets)] * len(targets)
            outcomes = [
                (q, states._replace(x=np.where(states.x == 0, t, states.x)))
                for q, t in zip(share, targets, strict=True)
            ]
            yield "go", states.x == 0, outcomes
        yield "stay", states.x > 0, [(1, states)]

    return pl.model.explore_batch(step, {"x": 0}, space=pl.ParameterSpace.unit("p"))


def test_choices_of_one_name_are_told_apart_by_where_they_lead():
    model = two_choices_of_one_name([1, 2], [3, 4])
    log = pd.DataFrame({"x": [0, 0, 0], "action": ["go"] * 3, "next_x": [2, 3, 3]})
    counts = read_log(model, log).counts
    assert counts.visits.tolist()[:2] == [1, 2]


def test_choices_of_one_name_that_lead_to_the_same_state_are_refused():
    model = two_choices_of_one_name([1, 2], [2, 3])
    log = pd.DataFrame({"x": [0, 0], "action": ["go"] * 2, "next_x": [1, 3]})
    assert read_log(model, log).counts.visits.tolist()[:2] == [1, 1]
    with pytest.raises(pl.DataError) as caught:
        read_log(model, log.assign(next_x=2), on_unmatched="report")
    assert str(caught.value) == (
        "state (x=0), action 'go': several choices have this name and lead to (x=2), so that a log cannot tell them "
        "apart; give them different names in the model"
    )


def test_gzip_and_nested_json_values_are_read_as_text(tmp_path):
    row = {
        "place_x": [1],
        "lit": False,
        "mode": "rest",
        "action": "rest",
        "next_place_x": 0,
        "next_lit": 0,
        "next_mode": "rest",
    }
    with gzip.open(tmp_path / "log.json.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(json.dumps(r) for r in [row, row | {"place_x": 0}]))
    report = read_log(LAMP, tmp_path / "log.json.gz", on_unmatched="report").report
    assert (report.matched, report.rows["unreadable state"]) == (1, 1)
    assert [*report.worst["unreadable state"]] == [
        "(place_x=[1], lit=false, mode=rest) 'rest' → (place_x=0, lit=0, mode=rest) (1×, row 1)"
    ]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_that_was_written_again_is_read_again(ending, tmp_path):
    """DuckDB could keep the contents of files: another file of the same name, size and moment would be the old one."""
    path, frame = tmp_path / f"log.{ending}", pd.DataFrame(ROWS["transitions"]).drop(columns=["episode", "step"])
    is_go = frame.action == "go"
    totals = []
    for rows in (frame[is_go].head(8), frame[~is_go].head(8)):
        if ending == "csv":
            rows.to_csv(path, index=False)
        else:
            rows.to_parquet(path)
        os.utime(path, (0, 0))
        counts = read_log(LAMP, path).counts
        totals.append([int(counts.visits[LAMP.graph.action == number].sum()) for number in (0, 1)])
    assert sorted(totals) == [[0, 8], [8, 0]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_that_was_forked_reads_logs_too(tmp_path):
    frame = pd.DataFrame(ROWS["transitions"])
    assert read_log(LAMP, frame).counts.total == COUNTS.sum()
    child = os.fork()
    if child == 0:
        os._exit(0 if read_log(LAMP, frame).counts.total == COUNTS.sum() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

"""Moments of logs: what had been seen at each, that no later row changes it, and that counts stay what they were."""

from functools import cache

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
from refusals import refused
from tiers import pairs

import plumdp as pl
from plumdp.data import steps
from plumdp.data.counts import PilotEnd
from plumdp.data.logs import read_log
from plumdp.data.pilots import moments_of, pilot_assumption, planned_moments
from plumdp.data.sql import counts_query

STUDIES = ("aircraft:20,10", "betting:25", "engagement:50", "rover:10,10", "glider:11,9", "parallel:6")
FORMS = ("transitions", "trajectories")
N_RUNS = 400
ROWS, COUNTS = runs(LAMP, {"p": 0.6}, N_RUNS)


def parquet(rows, path):
    pd.DataFrame(rows).to_parquet(path)
    return path


def csv(rows, path):
    pd.DataFrame(rows).to_csv(path.with_suffix(".csv"), index=False)
    return path.with_suffix(".csv")


SOURCES = {
    "Parquet": parquet,
    "CSV": csv,
    "pandas": lambda rows, path: pd.DataFrame(rows),
    "Polars": lambda rows, path: polars.DataFrame(rows),
    "Polars, lazy": lambda rows, path: polars.LazyFrame(rows),
    "PyArrow": lambda rows, path: pyarrow.Table.from_pylist(rows),
}


@cache
def slow_runs(form, n):
    return recount([row for row in ROWS[form] if row["episode"] < n], LAMP.graph, form)[0]


def slow_rows(rows, form):
    """Return what had been seen after 64, 256, … rows."""
    return [recount(rows[:size], LAMP.graph, form)[0] for size in (64, 256, 1024, 4096) if size < len(rows)]


def same(moments, expected):
    return [moment.tolist() for moment in moments] == [moment.tolist() for moment in expected]


# the counts stay what they were, and the pilot is what a recount of its part says


@pytest.mark.night
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", STUDIES)
def test_a_simulated_log_has_the_counts_and_the_pilot_of_the_simulation(name, form, tmp_path):
    study = pl.case_study(name)
    options = {"rng": 3, "max_steps": 40}
    pl.data.write_runs(study.model, study.true_point, 2000, tmp_path / "log.parquet", form=form, **options)
    expected = pl.simulate(study.model, study.true_point, 2000, **options)
    plain = read_log(study.model, tmp_path / "log.parquet")
    assert plain.counts.pilot is None
    planned = read_log(study.model, tmp_path / "log.parquet", sampling="trajectories")
    assert same(planned.counts.pilot.moments, expected.pilot.moments)
    assert np.array_equal(planned.counts.pilot.counts, expected.pilot.counts)
    assert (planned.counts.pilot.end, planned.counts.pilot.weight) == (PilotEnd.PLANNED, 1)
    assert planned.counts.pilot.ratio == expected.pilot.ratio == 2000 / 64 - 1
    by_runs = read_log(study.model, tmp_path / "log.parquet", order="runs")
    first = [pl.simulate(study.model, study.true_point, n, **options).counts for n in (4, 16, 64, 256, 1024)]
    assert same(by_runs.counts.pilot.moments, first)
    assert np.array_equal(by_runs.counts.pilot.counts, first[2])  # 8 · 256 is more than 2000
    assert (by_runs.counts.pilot.end, by_runs.counts.pilot.weight) == (PilotEnd.POWER_OF_FOUR, 1 / 6)
    by_time = read_log(study.model, tmp_path / "log.parquet", order="time")
    for log in (plain, planned, by_runs, by_time):
        assert np.array_equal(log.counts.counts, expected.counts)
        assert str(log) == str(plain)


@pytest.mark.night
@pytest.mark.parametrize(("source", "form"), pairs(SOURCES, FORMS))
def test_every_source_has_the_same_pilots(source, form, tmp_path):
    log = SOURCES[source](ROWS[form], tmp_path / "log.parquet")
    planned = read_log(LAMP, log, sampling="trajectories").counts
    by_runs = read_log(LAMP, log, order="runs", expected=1000).counts
    for pilot, lengths in ((planned.pilot, planned_moments(400)), (by_runs.pilot, (4, 16, 64, 256))):
        assert same(pilot.moments, [slow_runs(form, n) for n in lengths])
        assert np.array_equal(pilot.counts, slow_runs(form, 16))
        assert pilot.lengths == lengths
    assert (planned.pilot.end, planned.pilot.ratio, planned.pilot.expected) == (PilotEnd.PLANNED, 24, 400)
    assert (by_runs.pilot.end, by_runs.pilot.ratio, by_runs.pilot.expected) == (PilotEnd.POWER_OF_FOUR, 16, 1000)
    by_time = read_log(LAMP, log, order="time").counts
    assert same(by_time.pilot.moments, slow_rows(ROWS[form], form))
    assert (by_time.pilot.lengths, by_time.pilot.expected) == ((64, 256, 1024), None)
    for counts in (planned, by_runs, by_time):
        assert np.array_equal(counts.counts, COUNTS)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("source", "order"), [("query", "runs"), *((source, order) for source in SOURCES for order in ("runs", "time"))]
)
def test_what_had_been_seen_at_a_moment_is_the_same_however_long_the_log_is(source, order, form, tmp_path):
    """Otherwise whoever ends the log would choose between bets; copies of rows of all runs may come late as well."""
    before, per_run = (), 1 if order == "runs" else 16
    for n_runs in (17, 64, 65, 300):
        rows = [row for row in ROWS[form] if row["episode"] < n_runs]
        rows += rows[::7] if order == "runs" else []
        if source == "query":
            counts = read_log(LAMP, counted_elsewhere(pd.DataFrame(rows), form, order="runs")).counts
        else:
            counts = read_log(LAMP, SOURCES[source](rows, tmp_path / f"{n_runs}.parquet"), order=order).counts
        moments = counts.pilot.moments
        assert same(moments[: len(before)], before)
        assert counts.pilot.lengths == moments_of(n_runs if order == "runs" else len(rows), per_run)
        before = moments
    assert len(before) > 1


def test_the_first_runs_are_found_in_rows_in_any_order(tmp_path):
    frame = pd.DataFrame(ROWS["trajectories"]).sample(frac=1, random_state=2)
    log = read_log(LAMP, parquet(frame, tmp_path / "log.parquet"), order="runs")
    assert same(log.counts.pilot.moments, [slow_runs("trajectories", n) for n in (4, 16, 64, 256)])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_runs_whose_rows_are_in_no_order_have_the_same_moments(ending, tmp_path):
    frame = pd.DataFrame(ROWS["trajectories"]).sample(frac=1, random_state=2)
    log = parquet(frame, tmp_path / "log.parquet") if ending == "parquet" else csv(frame, tmp_path / "log")
    found = read_log(LAMP, log, order="runs").counts
    assert np.array_equal(found.counts, COUNTS)
    assert same(found.pilot.moments, [slow_runs("trajectories", n) for n in (4, 16, 64, 256)])


@pytest.mark.parametrize("source", SOURCES)
def test_a_column_that_is_called_as_the_table_of_runs_calls_its_own_changes_nothing(source, tmp_path):
    rows = [row | {"run": row["step"]} for row in ROWS["transitions"]]
    found = read_log(LAMP, SOURCES[source](rows, tmp_path / "log.parquet"), order="runs").counts
    named = [{"run" if name == "episode" else name: row[name] for name in row} for row in ROWS["transitions"]]
    log = SOURCES[source](named, tmp_path / "named.parquet")
    for counts in (found, read_log(LAMP, log, pl.LogFormat(columns={"episode": "run"}), order="runs").counts):
        assert same(counts.pilot.moments, [slow_runs("transitions", n) for n in (4, 16, 64, 256)])


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(250, 700))
def test_the_pilot_of_interleaved_runs_is_what_was_seen_up_to_a_moment(seed, n_rows):
    """Runs side by side: a step is in the pilot only if the row that shows where it led is."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(ROWS["trajectories"])
    chosen = frame[frame.episode < 80].copy()
    chosen["when"] = chosen.step + rng.uniform(0, 20, 80)[chosen.episode]
    rows = chosen.sort_values("when", kind="stable").drop(columns="when").head(n_rows)
    counts = read_log(LAMP, rows, pl.LogFormat(censoring="unrelated"), order="time").counts
    records = rows.to_dict("records")
    assert same(counts.pilot.moments, slow_rows(records, "trajectories"))
    assert np.array_equal(counts.counts, recount(records, LAMP.graph, "trajectories")[0])


def test_rows_of_samples_fixed_beforehand_have_a_planned_length():
    rows = [{key: row[key] for key in row if key not in ("episode", "step")} for row in ROWS["transitions"]]
    pilot = read_log(LAMP, pd.DataFrame(rows), sampling="independent", order="time").counts.pilot
    assert same(pilot.moments, slow_rows(rows, "transitions"))
    assert np.array_equal(pilot.counts, pilot.moments[1])  # 256 of some 3,500: an eighth is 450
    assert (pilot.end, pilot.weight, pilot.expected) == (PilotEnd.PLANNED, 1, len(rows))


def test_rows_of_runs_are_not_of_a_number_fixed_beforehand():
    """How many rows a fixed number of runs have depends on how the runs went."""
    rows = pd.DataFrame(ROWS["transitions"]).drop(columns="episode")
    counts = read_log(LAMP, rows, sampling="trajectories", order="time").counts
    assert counts.pilot.end == PilotEnd.POWER_OF_FOUR


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_files_in_order_have_their_first_runs_and_rows_in_the_first_files(form, tmp_path):
    frame = pd.DataFrame(ROWS[form])
    for part in range(8):
        frame[frame.episode // 50 == part].to_parquet(tmp_path / f"{part}.parquet")
    planned = read_log(LAMP, tmp_path, sampling="trajectories").counts
    by_runs = read_log(LAMP, tmp_path, order="runs").counts
    for counts, lengths in ((planned, planned_moments(400)), (by_runs, moments_of(400))):
        assert same(counts.pilot.moments, [slow_runs(form, n) for n in lengths])
        assert np.array_equal(counts.counts, COUNTS)
    by_time = read_log(LAMP, tmp_path, order="time").counts
    assert same(by_time.pilot.moments, slow_rows(ROWS[form], form))


@pytest.mark.night
@pytest.mark.parametrize("kind", ["list", "arrow", "pandas", "polars", "lazy"])
def test_the_first_rows_of_many_files_and_chunks_are_those_of_the_first(kind, tmp_path):
    """Enough rows that several threads read them, the runs of a later file under smaller numbers."""
    study = pl.case_study("betting:25")
    runs = pl.data.record(study.model, study.true_point, 20_000, rng=5, max_steps=25)
    frame = pd.DataFrame(runs.columns("transitions")).assign(episode=19_999 - runs.episode)
    parts = [frame.iloc[start : start + 70_000] for start in range(0, len(frame), 70_000)]
    files = [tmp_path / f"{9 - number}.parquet" for number in range(len(parts))]
    for part, file in zip(parts, files, strict=True):
        part.to_parquet(file)
    source = {
        "list": lambda: files,
        "arrow": lambda: pyarrow.concat_tables([pyarrow.Table.from_pandas(part) for part in parts]),
        "pandas": lambda: frame,
        "polars": lambda: polars.concat([polars.from_pandas(part) for part in parts], rechunk=False),
        "lazy": lambda: polars.scan_parquet(files),
    }[kind]()
    counts = read_log(study.model, source, order="time").counts
    first = [np.bincount(runs.transition[:size], minlength=len(counts.counts)) for size in moments_of(len(frame), 16)]
    assert same(counts.pilot.moments, first)
    assert len(first) == 7
    assert np.array_equal(counts.counts, runs.counts().counts)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"sampling": "trajectories"}, {"order": "runs"}])
@pytest.mark.parametrize("is_packed", [False, True])
def test_text_that_is_kept_in_memory_has_the_pilot_of_text_that_is_read_again(
    is_packed, options, tmp_path, monkeypatch
):
    """How often a file is read must not show: not in counts, pilot or report, some rows of which do not fit."""
    frame = pd.DataFrame(ROWS["transitions"]).assign(remark="a, b")
    frame.loc[7, "action"] = "fly"
    for part in range(4):
        name = f"{part}.csv.gz" if is_packed else f"{part}.csv"
        frame[frame.episode // 100 == part].to_csv(tmp_path / name, index=False)
    options = options | {"on_unmatched": "report"}
    found = read_log(LAMP, tmp_path, **in_format(**options))
    monkeypatch.setattr(steps, "_KEPT", 0)
    again = read_log(LAMP, tmp_path, **in_format(**options))
    assert same(found.counts.pilot.moments, again.counts.pilot.moments)
    assert len(found.counts.pilot.moments) == len(planned_moments(400) if "sampling" in options else moments_of(400))
    assert np.array_equal(found.counts.counts, again.counts.counts)
    assert str(found) == str(again)
    assert found.report.rejected == 1


def test_runs_in_text_files_are_in_the_order_of_numbers(tmp_path):
    """As text, 10 comes before 2, whether DuckDB takes the column as text or as numbers."""
    rows = [row | {"episode": str(row["episode"])} for row in ROWS["trajectories"]]
    for log in (csv(ROWS["trajectories"], tmp_path / "log"), parquet(rows, tmp_path / "log.parquet")):
        moments = read_log(LAMP, log, order="runs").counts.pilot.moments
        assert same(moments, [slow_runs("trajectories", n) for n in (4, 16, 64, 256)])


# counts that were made elsewhere


def counted_elsewhere(log, form, **options):
    """Return the result of the printed query for a table called log."""
    return duckdb.sql(counts_query(LAMP, table="log", dialect="duckdb", **in_format(form=form, **options))).df()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_runs", [10, 16, 17, 127, 128, 400])
def test_the_printed_query_counts_the_pilot_too(form, n_runs):
    log = pd.DataFrame([row for row in ROWS[form] if row["episode"] < n_runs])
    direct, back = read_log(LAMP, log, order="runs"), read_log(LAMP, counted_elsewhere(log, form, order="runs"))
    assert back.report.form == "counts"
    assert np.array_equal(back.counts.counts, direct.counts.counts)
    assert same(back.counts.pilot.moments, direct.counts.pilot.moments)
    assert np.array_equal(back.counts.pilot.counts, direct.counts.pilot.counts)
    assert back.counts.pilot.lengths == direct.counts.pilot.lengths == moments_of(n_runs)
    assert (back.counts.pilot.end, back.counts.pilot.weight) == (PilotEnd.POWER_OF_FOUR, 1 / 6)
    assert (back.counts.pilot.total == 0) is (n_runs < 128)
    assert back.counts.pilot.rests_on == direct.counts.pilot.rests_on


def test_runs_that_a_query_put_in_no_order_are_not_an_order_of_adaptive_data():
    log = pd.DataFrame(ROWS["transitions"])
    result = counted_elsewhere(log, "transitions", sampling="trajectories", columns={"episode": "episode"})
    assert "n_unordered_runs" in result
    pilot = read_log(LAMP, result, sampling="trajectories").counts.pilot
    assert same(pilot.moments, [slow_runs("transitions", n) for n in (4, 16, 64, 256)])
    assert (pilot.end, pilot.weight, pilot.ratio, pilot.expected) == (PilotEnd.PLANNED, 1, 24, 400)
    assert (
        pilot.rests_on
        == "the runs are independent, all under one policy, and were numbered without looking at how they went"
    )
    assert read_log(LAMP, result).counts.pilot is None
    assert read_log(LAMP, result, sampling="trajectories", pilot=False).counts.pilot is None


def test_results_of_several_queries_have_no_common_pilot():
    parts = [pd.DataFrame([row for row in ROWS["transitions"] if row["episode"] < n]) for n in (200, 400)]
    both = pd.concat([counted_elsewhere(log, "transitions", order="runs") for log in parts])
    with pytest.raises(pl.DataError, match=r"^these counts are not those of one query: they do not agree on how many"):
        read_log(LAMP, both)
    assert np.array_equal(read_log(LAMP, both, pilot=False).counts.counts, COUNTS + slow_runs("transitions", 200))


@pytest.mark.slow
def test_a_query_knows_no_order_of_rows_and_no_pilot_of_rows_without_a_run():
    with pytest.raises(pl.DataError, match=r"^order='time': the rows of a table in a warehouse have no order"):
        counts_query(LAMP, pl.LogFormat(form="transitions"), table="log", dialect="spark", order="time")
    log = pd.DataFrame(ROWS["transitions"])
    for first_with_run in (1, 1000, len(log)):
        log["episode"] = pd.DataFrame(ROWS["transitions"]).episode.where(log.index >= first_with_run)
        pilot = read_log(LAMP, counted_elsewhere(log, "transitions", order="runs")).counts.pilot
        assert (pilot.total, pilot.moments, pilot.end) == (0, (), PilotEnd.POWER_OF_FOUR)
        options = {"sampling": "trajectories", "columns": {"episode": "episode"}}
        result = counted_elsewhere(log, "transitions", **options)
        assert read_log(LAMP, result, sampling="trajectories").counts.pilot is None
    assert "n_first_16" not in counts_query(LAMP, pl.LogFormat(form="trajectories"), table="log", dialect="duckdb")


def test_a_variable_with_the_name_of_a_column_of_the_query_is_refused():
    (p,) = pl.parameters("p")
    step = lambda s: {"go": [(p, s._replace(n_runs=1)), (1 - p, s)]}  # noqa: E731
    model = pl.explore(step, {"n_runs": 0}, space=pl.ParameterSpace.unit("p"))
    with pytest.raises(pl.DataError, match=r"^the query would have two columns n_runs; rename a state variable"):
        counts_query(model, pl.LogFormat(form="trajectories"), table="log", dialect="duckdb", order="runs")


# where there is none


def test_without_an_order_nothing_is_a_pilot():
    for form in FORMS:
        frame = pd.DataFrame(ROWS[form])
        assert read_log(LAMP, frame).counts.pilot is None
        assert read_log(LAMP, frame, sampling="independent").counts.pilot is None
        assert read_log(LAMP, frame, sampling="trajectories", pilot=False).counts.pilot is None
    plain = pd.DataFrame(ROWS["transitions"]).drop(columns=["episode", "step"])
    assert read_log(LAMP, plain, sampling="trajectories").counts.pilot is None
    assert read_log(LAMP, plain, order="time", pilot=False).counts.pilot is None


@pytest.mark.parametrize("source", SOURCES)
def test_logs_in_order_that_are_too_short_for_a_moment_have_an_empty_pilot(source, tmp_path):
    """They may have stopped before there was one because of what they showed, which must not give the whole error.

    None is for those of which nobody says an order, whatever their length, or whose length was planned.
    """
    plain = pd.DataFrame(ROWS["transitions"]).drop(columns=["episode", "step"])
    log = SOURCES[source](plain.head(65).to_dict("records"), tmp_path / "long.parquet")
    assert read_log(LAMP, log, order="time").counts.pilot.moments[0].sum() == 64
    short = SOURCES[source](plain.head(64).to_dict("records"), tmp_path / "short.parquet")
    few = SOURCES[source]([row for row in ROWS["trajectories"] if row["episode"] < 4], tmp_path / "runs.parquet")
    for log in (read_log(LAMP, short, order="time"), read_log(LAMP, few, order="runs")):
        pilot = log.counts.pilot
        assert (pilot.total, pilot.moments, pilot.end) == (0, (), PilotEnd.POWER_OF_FOUR)
        assert not pilot_assumption(pilot)
        assert log.report.no_bets == "few"
    planned, unordered = read_log(LAMP, few, sampling="trajectories"), read_log(LAMP, short)
    assert (planned.counts.pilot, planned.report.no_bets) == (None, "few")
    assert (unordered.counts.pilot, unordered.report.no_bets) == (None, "order")


@pytest.mark.parametrize("where", [0, 100, -1])
@pytest.mark.parametrize("source", ["Parquet", "CSV", "pandas", "Polars", "PyArrow"])
def test_rows_without_a_run_belong_to_no_pilot_of_runs(source, where, tmp_path):
    rows = [dict(row) for row in ROWS["transitions"]]
    rows[where]["episode"] = None
    frame = SOURCES[source](rows, tmp_path / "log.parquet")
    assert read_log(LAMP, frame, sampling="trajectories").counts.pilot is None
    with pytest.raises(pl.DataError) as caught:
        read_log(LAMP, frame, order="runs")
    assert str(caught.value) == "order='runs': some rows have no episode, so that it is not known when they happened"


@pytest.mark.slow
def test_moments_of_runs_with_gaps_or_repeated_steps_are_those_of_the_steps_that_are_known():
    """A row whose double comes later is not in the pilot, as it is not in the counts."""
    first = ROWS["trajectories"][0]
    rows = [*ROWS["trajectories"], first | {"lit": not first["lit"]}]
    whole = ROWS["trajectories"][1:]  # the first row of the first run is not known
    by_run = [[row for row in whole if row["episode"] < n] for n in (4, 16, 64, 256)]
    prefixes = {"time": [whole[: size - 1] for size in (64, 256, 1024)], "runs": by_run}
    parts = {
        order: [recount(part, LAMP.graph, "trajectories")[0] for part in parts] for order, parts in prefixes.items()
    }
    for order in ("time", "runs"):
        log = read_log(LAMP, pd.DataFrame(rows), order=order, on_unmatched="report")
        assert same(log.counts.pilot.moments, parts[order])
        counted = counted_elsewhere(pd.DataFrame(rows), "trajectories", order="runs")
        back = read_log(LAMP, counted, on_unmatched="report").counts
        assert np.array_equal(back.counts, log.counts.counts)
        assert same(back.pilot.moments, parts["runs"])
    gap = ROWS["trajectories"][:2] + ROWS["trajectories"][3:]
    by_time = read_log(LAMP, pd.DataFrame(gap), order="time", on_unmatched="report").counts
    assert same(by_time.pilot.moments, slow_rows(gap, "trajectories"))
    by_runs = read_log(LAMP, pd.DataFrame(gap), order="runs", on_unmatched="report").counts
    parts = [[row for row in gap if row["episode"] < n] for n in (4, 16, 64, 256)]
    assert same(by_runs.pilot.moments, [recount(part, LAMP.graph, "trajectories")[0] for part in parts])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", ["time", "runs"])
def test_copies_are_neither_in_the_pilot_nor_in_the_counts(form, order):
    rows = [*ROWS[form], *ROWS[form][::9]]
    counts = read_log(LAMP, pd.DataFrame(rows), order=order).counts
    assert np.array_equal(counts.counts, COUNTS)
    first = slow_rows(rows, form) if order == "time" else [slow_runs(form, n) for n in (4, 16, 64, 256)]
    assert same(counts.pilot.moments, first)


@pytest.mark.parametrize("source", ["Parquet", "pandas", "Polars"])
def test_names_of_runs_that_are_not_numbers_are_no_order_of_runs(source, tmp_path):
    rows = [row | {"episode": f"run {row['episode']}"} for row in ROWS["trajectories"]]
    log = SOURCES[source](rows, tmp_path / "log.parquet")
    with pytest.raises(
        pl.DataError, match=r"^order='runs': column episode has the type .*, and its values are not all"
    ):
        read_log(LAMP, log, order="runs")
    planned = read_log(LAMP, log, sampling="trajectories").counts
    named = sorted({row["episode"] for row in rows})[:16]
    part = [row for row in rows if row["episode"] in named]
    assert np.array_equal(planned.pilot.counts, recount(part, LAMP.graph, "trajectories")[0])


def test_what_cannot_be_said_of_a_log_is_refused():
    log = pd.DataFrame(ROWS["trajectories"])
    refused("logs:orders", {"read": lambda **options: read_log(LAMP, log, **in_format(**options))}, pl.DataError)


def test_an_order_of_runs_needs_their_names():
    with pytest.raises(pl.DataError) as caught:
        read_log(LAMP, pd.DataFrame(ROWS["transitions"]).drop(columns="episode"), order="runs")
    expected = "order='runs': the log has no column episode; say which it is with columns={'episode': …}"
    assert str(caught.value) == expected
    renamed = pd.DataFrame(ROWS["transitions"]).rename(columns={"episode": "mission"})
    assert read_log(LAMP, renamed, pl.LogFormat(columns={"episode": "mission"}), order="runs").counts.pilot is not None


def test_ready_made_counts_have_the_order_of_their_query():
    counted = counted_elsewhere(pd.DataFrame(ROWS["transitions"]), "transitions", order="runs")
    for order in ("time", "runs"):
        with pytest.raises(pl.DataError) as caught:
            read_log(LAMP, counted, order=order)
        assert str(caught.value) == (
            "ready-made counts have the order in which they were counted, if any; say it there, with order='runs'"
        )
    assert read_log(LAMP, counted, expected=1000).counts.pilot.expected == 1000


def test_files_with_other_headers_have_no_order(tmp_path):
    frame = pd.DataFrame(ROWS["transitions"])
    frame.head(100).to_csv(tmp_path / "a.csv", index=False)
    frame.tail(-100)[frame.columns[::-1]].to_csv(tmp_path / "b.csv", index=False)
    assert np.array_equal(read_log(LAMP, tmp_path).counts.counts, COUNTS)
    with pytest.raises(pl.DataError) as caught:
        read_log(LAMP, tmp_path, order="time")
    assert str(caught.value) == "order='time': the files have their columns in different orders; read one at a time"


def test_the_assumption_says_what_the_order_of_the_log_rests_on():
    frame = pd.DataFrame(ROWS["trajectories"])
    texts = {
        (): "the runs are independent, all under one policy, and were numbered without looking at how they went",
        ("runs",): "the runs of the log are numbered in the order in which they were made, each ended before the "
        "next began",
        ("time",): "the rows of the log are in the order in which their steps happened",
    }
    for order, text in texts.items():
        options = {"order": order[0]} if order else {"sampling": "trajectories"}
        assert pilot_assumption(read_log(LAMP, frame, **in_format(**options)).counts.pilot).endswith(f"; {text}")

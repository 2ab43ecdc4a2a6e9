"""Pilots of logs: which part is taken, that it is the part that came first, and that the counts stay what they were."""

import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_models import LAMP, recount, runs

import plumdp as pl
from plumdp.data import file_logs
from plumdp.data.counts import PilotEnd
from plumdp.data.duckdb_tables import write_parquet
from plumdp.data.log_pilots import pilot_of_log
from plumdp.data.logs import read_log
from plumdp.data.pilots import pilot_assumption, power_of_two_pilot
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


def slow_runs(form, n):
    return recount([row for row in ROWS[form] if row["episode"] < n], LAMP.graph, form)[0]


# the counts stay what they were, and the pilot is what a recount of its part says


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", STUDIES)
def test_a_simulated_log_has_the_counts_and_the_pilot_of_the_simulation(name, form, tmp_path):
    study = pl.case_study(name)
    options = {"rng": 3, "max_steps": 40}
    blocks = pl.record_blocks(study.model, study.true_point, 2000, **options)
    write_parquet(tmp_path / "log.parquet", (block.columns(form) for block in blocks))
    expected = pl.simulate(study.model, study.true_point, 2000, **options)
    plain = read_log(tmp_path / "log.parquet", study.model)
    assert plain.counts.pilot is None
    planned = read_log(tmp_path / "log.parquet", study.model, sampling="trajectories")
    assert np.array_equal(planned.counts.pilot.counts, expected.pilot.counts)
    assert (planned.counts.pilot.end, planned.counts.pilot.weight) == (PilotEnd.PLANNED, 1)
    assert planned.counts.pilot.ratio == expected.pilot.ratio
    by_runs = read_log(tmp_path / "log.parquet", study.model, order="runs")
    first = pl.simulate(study.model, study.true_point, 128, **options)
    assert np.array_equal(by_runs.counts.pilot.counts, first.counts)
    assert (by_runs.counts.pilot.end, by_runs.counts.pilot.weight) == (PilotEnd.POWER_OF_TWO, 0.9 / 20)
    by_time = read_log(tmp_path / "log.parquet", study.model, order="time")
    for log in (plain, planned, by_runs, by_time):
        assert np.array_equal(log.counts.counts, expected.counts)
        assert str(log) == str(plain)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_has_the_same_pilots(source, form, tmp_path):
    log = SOURCES[source](ROWS[form], tmp_path / "log.parquet")
    planned = read_log(log, LAMP, sampling="trajectories", pilot=0.25).counts
    assert np.array_equal(planned.pilot.counts, slow_runs(form, N_RUNS // 4))
    by_runs = read_log(log, LAMP, order="runs").counts
    assert np.array_equal(by_runs.pilot.counts, slow_runs(form, 32))
    assert (by_runs.pilot.end, by_runs.pilot.weight, by_runs.pilot.ratio) == (PilotEnd.POWER_OF_TWO, 0.9 / 6, 13)
    by_time = read_log(log, LAMP, order="time").counts
    size, weight = power_of_two_pilot(len(ROWS[form]))
    assert np.array_equal(by_time.pilot.counts, recount(ROWS[form][:size], LAMP.graph, form)[0])
    assert by_time.pilot.weight == weight
    for counts in (planned, by_runs, by_time):
        assert np.array_equal(counts.counts, COUNTS)


def test_the_first_runs_are_found_in_rows_in_any_order(tmp_path):
    frame = pd.DataFrame(ROWS["trajectories"]).sample(frac=1, random_state=2)
    log = read_log(parquet(frame, tmp_path / "log.parquet"), LAMP, order="runs")
    assert np.array_equal(log.counts.pilot.counts, slow_runs("trajectories", 32))


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(160, 700))
def test_the_pilot_of_interleaved_runs_is_what_was_seen_up_to_a_moment(seed, n_rows):
    """Runs side by side: a step is in the pilot only if the row that shows where it led is."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(ROWS["trajectories"])
    chosen = frame[frame.episode < 80].copy()
    chosen["when"] = chosen.step + rng.uniform(0, 20, 80)[chosen.episode]
    rows = chosen.sort_values("when", kind="stable").drop(columns="when").head(n_rows)
    counts = read_log(rows, LAMP, order="time", cut_off="unrelated").counts
    size, weight = power_of_two_pilot(len(rows))
    records = rows.to_dict("records")
    assert np.array_equal(counts.pilot.counts, recount(records[:size], LAMP.graph, "trajectories")[0])
    assert np.array_equal(counts.counts, recount(records, LAMP.graph, "trajectories")[0])
    assert counts.pilot.weight == weight


def test_samples_fixed_beforehand_have_a_share_of_their_rows():
    rows = [{key: row[key] for key in row if key not in ("episode", "step")} for row in ROWS["transitions"]]
    counts = read_log(pd.DataFrame(rows), LAMP, sampling="independent", order="time").counts
    size = round(0.1 * len(rows))
    assert np.array_equal(counts.pilot.counts, recount(rows[:size], LAMP.graph, "transitions")[0])
    assert (counts.pilot.end, counts.pilot.weight) == (PilotEnd.PLANNED, 1)
    assert counts.pilot.ratio == pytest.approx(9, rel=0.01)


def test_rows_of_runs_are_not_of_a_number_fixed_beforehand():
    """How many rows a fixed number of runs have depends on how the runs went."""
    rows = pd.DataFrame(ROWS["transitions"]).drop(columns="episode")
    counts = read_log(rows, LAMP, sampling="trajectories", order="time").counts
    assert counts.pilot.end == PilotEnd.POWER_OF_TWO


@pytest.mark.parametrize("form", FORMS)
def test_files_in_order_have_their_first_runs_and_rows_in_the_first_files(form, tmp_path):
    frame = pd.DataFrame(ROWS[form])
    for part in range(8):
        frame[frame.episode // 50 == part].assign(episode=frame.episode % 50).to_parquet(tmp_path / f"{part}.parquet")
    options = {"partitions": "files"}
    planned = read_log(tmp_path, LAMP, sampling="trajectories", pilot=0.3, **options).counts
    assert np.array_equal(planned.pilot.counts, slow_runs(form, 120))
    by_time = read_log(tmp_path, LAMP, order="time", **options).counts
    size, _ = power_of_two_pilot(len(frame))
    assert np.array_equal(by_time.pilot.counts, recount(ROWS[form][:size], LAMP.graph, form)[0])
    assert np.array_equal(planned.counts, COUNTS)


@pytest.mark.parametrize("kind", ["list", "arrow"])
def test_the_first_rows_of_many_files_and_chunks_are_those_of_the_first(kind, tmp_path):
    """Enough rows that several threads read them, the runs of a later file under smaller numbers."""
    study = pl.case_study("betting:25")
    runs = pl.record(study.model, study.true_point, 20_000, rng=5, max_steps=25)
    frame = pd.DataFrame(runs.columns("transitions")).assign(episode=19_999 - runs.episode)
    parts = [frame.iloc[start : start + 70_000] for start in range(0, len(frame), 70_000)]
    files = [tmp_path / f"{9 - number}.parquet" for number in range(len(parts))]
    for part, file in zip(parts, files, strict=True):
        part.to_parquet(file)
    source = files if kind == "list" else pyarrow.concat_tables([pyarrow.Table.from_pandas(part) for part in parts])
    counts = read_log(source, study.model, order="time").counts
    size, _ = power_of_two_pilot(len(frame))
    assert np.array_equal(counts.pilot.counts, np.bincount(runs.transition[:size], minlength=len(counts.counts)))
    assert np.array_equal(counts.counts, runs.counts().counts)


@pytest.mark.parametrize("options", [{"sampling": "trajectories"}, {"order": "runs"}])
@pytest.mark.parametrize("partitions", [None, "files"])
@pytest.mark.parametrize("is_packed", [False, True])
def test_text_that_is_kept_in_memory_has_the_pilot_of_text_that_is_read_again(
    is_packed, partitions, options, tmp_path, monkeypatch
):
    """How often a file is read must not show: not in counts, pilot or report, some rows of which do not fit."""
    frame = pd.DataFrame(ROWS["transitions"]).assign(remark="a, b")
    frame.loc[7, "action"] = "fly"
    for part in range(4):
        name = f"{part}.csv.gz" if is_packed else f"{part}.csv"
        frame[frame.episode // 100 == part].to_csv(tmp_path / name, index=False)
    options = options | {"partitions": partitions, "on_unmatched": "report"}
    found = read_log(tmp_path, LAMP, **options)
    monkeypatch.setattr(file_logs, "_KEPT", 0)
    again = read_log(tmp_path, LAMP, **options)
    assert np.array_equal(found.counts.pilot.counts, again.counts.pilot.counts)
    assert np.array_equal(found.counts.counts, again.counts.counts)
    assert str(found) == str(again)
    assert found.report.rejected == 1


def test_runs_in_text_files_are_in_the_order_of_numbers(tmp_path):
    """As text, 10 comes before 2."""
    log = csv(ROWS["trajectories"], tmp_path / "log")
    assert np.array_equal(read_log(log, LAMP, order="runs").counts.pilot.counts, slow_runs("trajectories", 32))


# counts that were made elsewhere


def counted_elsewhere(log, form, **options):
    """Return the result of the printed query for a table called log."""
    return duckdb.sql(counts_query(LAMP, table="log", dialect="duckdb", form=form, **options)).df()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_runs", [10, 159, 160, 319, 320, 400])
def test_the_printed_query_counts_the_pilot_too(form, n_runs):
    log = pd.DataFrame([row for row in ROWS[form] if row["episode"] < n_runs])
    direct, back = read_log(log, LAMP, order="runs"), read_log(counted_elsewhere(log, form, order="runs"), LAMP)
    assert back.report.form == "counts"
    assert np.array_equal(back.counts.counts, direct.counts.counts)
    assert np.array_equal(back.counts.pilot.counts, direct.counts.pilot.counts)
    assert (back.counts.pilot.weight, back.counts.pilot.end) == (direct.counts.pilot.weight, PilotEnd.POWER_OF_TWO)
    assert (back.counts.pilot.total == 0) is (back.counts.pilot.weight == 0.1) is (n_runs < 160)
    assert back.counts.pilot.rests_on == direct.counts.pilot.rests_on


def test_a_planned_pilot_of_a_query_is_not_one_of_adaptive_data():
    log = pd.DataFrame(ROWS["transitions"])
    options = {"sampling": "trajectories", "pilot": 0.3, "columns": {"episode": "episode"}}
    result = counted_elsewhere(log, "transitions", **options)
    pilot = read_log(result, LAMP, sampling="trajectories").counts.pilot
    assert np.array_equal(pilot.counts, slow_runs("transitions", 120))
    assert (pilot.end, pilot.weight, pilot.ratio) == (PilotEnd.PLANNED, 1, pytest.approx(7 / 3))
    with pytest.raises(pl.DataError) as caught:
        read_log(result, LAMP)
    assert str(caught.value) == (
        "a pilot of 120 runs is none of the sizes 16, 32, 64, … that a pilot has if the length of the log was not "
        'fixed beforehand; if it was, say sampling="trajectories"'
    )
    assert read_log(result, LAMP, pilot=0).counts.pilot is None


def test_results_of_several_queries_have_no_common_pilot():
    parts = [pd.DataFrame([row for row in ROWS["transitions"] if row["episode"] < n]) for n in (200, 400)]
    both = pd.concat([counted_elsewhere(log, "transitions", order="runs") for log in parts])
    with pytest.raises(pl.DataError, match=r"^these counts are not those of one query: they do not agree on how many"):
        read_log(both, LAMP)
    assert np.array_equal(read_log(both, LAMP, pilot=0).counts.counts, COUNTS + slow_runs("transitions", 200))


def test_a_query_knows_no_order_of_rows_and_no_pilot_of_rows_without_a_run():
    with pytest.raises(pl.DataError, match=r'^order="time": the rows of a table in a warehouse have no order'):
        counts_query(LAMP, table="log", dialect="spark", form="transitions", order="time")
    log = pd.DataFrame(ROWS["transitions"])
    for first_with_run in (1, 1000, len(log)):
        log["episode"] = pd.DataFrame(ROWS["transitions"]).episode.where(log.index >= first_with_run)
        pilot = read_log(counted_elsewhere(log, "transitions", order="runs"), LAMP).counts.pilot
        assert (pilot.total, pilot.weight, pilot.end) == (0, 0.1, PilotEnd.POWER_OF_TWO)
        options = {"sampling": "trajectories", "columns": {"episode": "episode"}}
        result = counted_elsewhere(log, "transitions", **options)
        assert read_log(result, LAMP, sampling="trajectories").counts.pilot is None
    assert "n_pilot" not in counts_query(LAMP, table="log", dialect="duckdb", form="trajectories")


def test_a_variable_with_the_name_of_a_column_of_the_query_is_refused():
    (p,) = pl.parameters("p")
    step = lambda s: {"go": [(p, s._replace(n_runs=1)), (1 - p, s)]}  # noqa: E731
    model = pl.explore(step, {"n_runs": 0}, space=pl.ParameterSpace.unit("p"))
    with pytest.raises(pl.DataError, match=r"^the query would have two columns n_runs; rename a state variable"):
        counts_query(model, table="log", dialect="duckdb", form="trajectories", order="runs")


# where there is none


def test_without_an_order_nothing_is_a_pilot():
    for form in FORMS:
        frame = pd.DataFrame(ROWS[form])
        assert read_log(frame, LAMP).counts.pilot is None
        assert read_log(frame, LAMP, sampling="independent").counts.pilot is None
        assert read_log(frame, LAMP, sampling="trajectories", pilot=0).counts.pilot is None
    plain = pd.DataFrame(ROWS["transitions"]).drop(columns=["episode", "step"])
    assert read_log(plain, LAMP, sampling="trajectories").counts.pilot is None
    assert read_log(plain.head(159), LAMP, order="time", pilot=0).counts.pilot is None


@pytest.mark.parametrize("source", SOURCES)
def test_logs_in_order_that_are_too_short_for_a_pilot_have_an_empty_one_with_a_weight(source, tmp_path):
    """They may have stopped before there was a pilot because of what they showed, which must not give the whole error.

    None is for those of which nobody says an order, whatever their length, or whose length was planned.
    """
    plain = pd.DataFrame(ROWS["transitions"]).drop(columns=["episode", "step"])
    log = SOURCES[source](plain.head(160).to_dict("records"), tmp_path / "long.parquet")
    assert read_log(log, LAMP, order="time").counts.pilot.total == 16
    short = SOURCES[source](plain.head(159).to_dict("records"), tmp_path / "short.parquet")
    few = [row for row in ROWS["trajectories"] if row["episode"] < 159]
    pilots = [
        read_log(short, LAMP, order="time").counts.pilot,
        read_log(SOURCES[source](few, tmp_path / "runs.parquet"), LAMP, order="runs").counts.pilot,
    ]
    for pilot in pilots:
        assert (pilot.total, pilot.weight, pilot.end) == (0, 0.1, PilotEnd.POWER_OF_TWO)
    assert pilot_assumption(pilots[0]).startswith("the pilot is empty (fewer than 160 runs or rows, or ")
    assert read_log(short, LAMP).counts.pilot is None


@pytest.mark.parametrize("where", [0, 100, -1])
@pytest.mark.parametrize("source", ["Parquet", "CSV", "pandas", "Polars", "PyArrow"])
def test_rows_without_a_run_belong_to_no_pilot_of_runs(source, where, tmp_path):
    rows = [dict(row) for row in ROWS["transitions"]]
    rows[where]["episode"] = None
    frame = SOURCES[source](rows, tmp_path / "log.parquet")
    assert read_log(frame, LAMP, sampling="trajectories").counts.pilot is None
    with pytest.raises(pl.DataError) as caught:
        read_log(frame, LAMP, order="runs")
    assert str(caught.value) == 'order="runs": some rows have no episode, so that it is not known when they happened'


def test_no_prefix_of_runs_with_gaps_or_repeated_steps_is_a_pilot():
    """A row whose double comes later would be in the pilot, but not in the counts."""
    first = ROWS["trajectories"][0]
    rows = [*ROWS["trajectories"], first | {"lit": not first["lit"]}]
    for order in ("time", "runs"):
        log = read_log(pd.DataFrame(rows), LAMP, order=order, on_unmatched="report")
        assert (log.counts.pilot.total, log.counts.pilot.weight) == (0, 0.1)
        counted = counted_elsewhere(pd.DataFrame(rows), "trajectories", order="runs")
        back = read_log(counted, LAMP, on_unmatched="report").counts
        assert np.array_equal(back.counts, log.counts.counts)
        assert (back.pilot.total, back.pilot.weight) == (0, 0.1)
    gap = ROWS["trajectories"][:2] + ROWS["trajectories"][3:]
    assert read_log(pd.DataFrame(gap), LAMP, order="time", on_unmatched="report").counts.pilot.total == 0
    by_runs = read_log(pd.DataFrame(gap), LAMP, order="runs", on_unmatched="report").counts
    part = [row for row in gap if row["episode"] < 32]
    assert np.array_equal(by_runs.pilot.counts, recount(part, LAMP.graph, "trajectories")[0])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", ["time", "runs"])
def test_copies_are_neither_in_the_pilot_nor_in_the_counts(form, order):
    rows = [*ROWS[form], *ROWS[form][::9]]
    counts = read_log(pd.DataFrame(rows), LAMP, order=order).counts
    assert np.array_equal(counts.counts, COUNTS)
    size, _ = power_of_two_pilot(len(rows) if order == "time" else N_RUNS)
    part = rows[:size] if order == "time" else [row for row in rows if row["episode"] < size]
    assert np.array_equal(counts.pilot.counts, recount(part, LAMP.graph, form)[0])


@pytest.mark.parametrize("source", ["Parquet", "pandas", "Polars"])
def test_names_of_runs_that_are_not_numbers_are_no_order_of_runs(source, tmp_path):
    rows = [row | {"episode": f"run {row['episode']}"} for row in ROWS["trajectories"]]
    log = SOURCES[source](rows, tmp_path / "log.parquet")
    with pytest.raises(
        pl.DataError, match=r'^order="runs": column episode has the type .*, and its values are not all'
    ):
        read_log(log, LAMP, order="runs")
    planned = read_log(log, LAMP, sampling="trajectories", pilot=0.1).counts
    named = sorted({row["episode"] for row in rows})[:40]
    part = [row for row in rows if row["episode"] in named]
    assert np.array_equal(planned.pilot.counts, recount(part, LAMP.graph, "trajectories")[0])


BAD = {
    "order": ({"order": "rows"}, "order='rows': choose one of 'time', 'runs', or leave it out"),
    "share": ({"pilot": 1.5}, "pilot=1.5: it is a share of the log, from 0 (no pilot) to less than 1"),
    "unknown order": (
        {"pilot": 0.1},
        'pilot=0.1: nothing is known of the order of this log; say order="time" if its rows are in the order in which '
        'they happened, or order="runs" if its runs are',
    ),
    "a share of adaptive rows": (
        {"pilot": 0.1, "order": "time"},
        "pilot=0.1: a share is a pilot only if the length of the log was fixed beforehand, which sampling='adaptive' "
        "does not say of its rows; leave it out, and the pilot will be a power of two",
    ),
    "a share of adaptive runs": (
        {"pilot": 0.1, "order": "runs"},
        "pilot=0.1: a share is a pilot only if the length of the log was fixed beforehand, which sampling='adaptive' "
        "does not say of its runs; leave it out, and the pilot will be a power of two",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_a_pilot_is_refused(case):
    options, message = BAD[case]
    with pytest.raises(pl.DataError) as caught:
        read_log(pd.DataFrame(ROWS["trajectories"]), LAMP, **options)
    assert str(caught.value) == message


def test_an_order_of_runs_needs_their_names():
    with pytest.raises(pl.DataError) as caught:
        read_log(pd.DataFrame(ROWS["transitions"]).drop(columns="episode"), LAMP, order="runs")
    expected = 'order="runs": the log has no column episode; say which it is with columns={"episode": …}'
    assert str(caught.value) == expected
    renamed = pd.DataFrame(ROWS["transitions"]).rename(columns={"episode": "mission"})
    assert read_log(renamed, LAMP, order="runs", columns={"episode": "mission"}).counts.pilot is not None


def test_ready_made_counts_have_no_order():
    with pytest.raises(pl.DataError, match=r"^ready-made counts have no order, so that no part of them can be taken"):
        pilot_of_log("counts", "adaptive", "time", None, has_runs=False)


def test_files_with_other_headers_have_no_order(tmp_path):
    frame = pd.DataFrame(ROWS["transitions"])
    frame.head(100).to_csv(tmp_path / "a.csv", index=False)
    frame.tail(-100)[frame.columns[::-1]].to_csv(tmp_path / "b.csv", index=False)
    assert np.array_equal(read_log(tmp_path, LAMP).counts.counts, COUNTS)
    with pytest.raises(pl.DataError) as caught:
        read_log(tmp_path, LAMP, order="time")
    assert str(caught.value) == 'order="time": the files have their columns in different orders; read one at a time'


def test_the_assumption_says_what_the_order_of_the_log_rests_on():
    frame = pd.DataFrame(ROWS["trajectories"])
    texts = {
        (): "the runs of the log were numbered without looking at how they went",
        ("runs",): "the runs of the log are numbered in the order in which they were made, each ended before the "
        "next began",
        ("time",): "the rows of the log are in the order in which their steps happened",
    }
    for order, text in texts.items():
        options = {"order": order[0]} if order else {"sampling": "trajectories"}
        assert pilot_assumption(read_log(frame, LAMP, **options).counts.pilot).endswith(f"; {text}")

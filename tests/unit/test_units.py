"""A log that is counted by unit gives what the rows of each unit alone give, and certificates are those of a loop."""

import os
import pickle
import random
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from in_format import in_format
from tiers import size

import plumdp as pl
from plumdp.base.vocabulary import Assumption, Group
from plumdp.data.units import read_units
from plumdp.model.question import ask
from plumdp.watching import units


def pump(state):
    if state.at == "down":
        return {"repair": [(1, state._replace(at="good"))]}
    wear, fail = pl.parameters("wear", "fail")
    if state.at == "good":
        return {"run": [(1 - wear, state), (wear, state._replace(at="worn"))]}
    worn = [(1 - fail, state), (fail, state._replace(at="down"))]
    return {"run": worn, "service": [(1, state._replace(at="good"))]}


COSTS = {"repair": 10, "service": 2, "run": 0}
MODEL = pl.explore(
    pump,
    {"at": "good"},
    space=pl.ParameterSpace.unit("wear", "fail"),
    choice_rewards={"cost": lambda state, action: COSTS[action]},
)
QUESTION = 'R{"cost"}min=? [ C<=20 ]'
ABOUT = {"question": QUESTION, "direction": "min", "confidence": 0.9, "together": "each", "error": 0.1}


def pumps(n_units, n_runs=9, n_steps=15, seed=1):
    """Return rows of runs of pumps, in which units have the same names of runs and differ in their number."""
    rng, rows = np.random.default_rng(seed), []
    for unit in range(n_units):
        wear, fail = rng.uniform(0.05, 0.2), rng.uniform(0.1, 0.4)
        for run in range(1 + n_runs * (1 + unit % 3)):
            at = "good"
            for step in range(n_steps + 1):
                action = {"down": "repair", "good": "run"}.get(at) or ("service" if rng.random() < 0.4 else "run")
                rows.append((f"pump-{unit}", run, step, at, action if step < n_steps else None))
                moves = rng.random() < (wear if at == "good" else fail)
                after = {"good": "worn", "worn": "down"}.get(at, "good") if moves else at
                at = "good" if action in ("repair", "service") else after
    return pd.DataFrame(rows, columns=["unit", "episode", "step", "at", "action"])


def moves_of(frame):
    """Return the same as rows with their next states."""
    after = frame.groupby(["unit", "episode"])["at"].shift(-1)
    return frame.assign(next_at=after)[frame.action.notna()].reset_index(drop=True)


ROWS = pumps(5)
SHUFFLED, MOVES = (each.sample(frac=1, random_state=1, ignore_index=True) for each in (ROWS, moves_of(ROWS)))
LOGS = {
    "runs": (ROWS, {}),
    "runs in order": (ROWS, {"order": "runs"}),
    "shuffled": (SHUFFLED, {"order": "runs"}),
    "planned": (SHUFFLED, {"sampling": "trajectories"}),
    "by day": (ROWS.sort_values(["step", "episode"], kind="stable").reset_index(drop=True), {"order": "runs"}),
    "transitions": (MOVES, {"order": "runs"}),
    "no runs": (MOVES.drop(columns=["episode", "step"]), {}),
    "in time": (ROWS, {"order": "time"}),
    "copies": (pd.concat([ROWS, ROWS[ROWS.unit == "pump-2"].head(3)], ignore_index=True), {"order": "runs"}),
}


@pytest.mark.parametrize("name", LOGS)
def test_counts_by_unit_are_those_of_the_rows_of_each_unit_alone(name):
    frame, options = LOGS[name]
    found = dict(read_units(MODEL, frame, "unit", **in_format(**options)))
    assert list(found) == [f"pump-{i}" for i in range(5)]
    for unit, rows in frame.groupby("unit"):
        alone = pl.read_log(MODEL, rows.reset_index(drop=True), **in_format(**options)).counts
        assert found[unit].counts.fingerprint == alone.fingerprint
        assert found[unit].counts.no_contexts == alone.no_contexts
        assert found[unit].report.rows == alone.report.rows
        assert found[unit].report.censored_runs == alone.report.censored_runs


def test_rows_that_cannot_be_counted_are_the_trouble_of_their_unit_alone(tmp_path):
    rows = ROWS.copy()
    rows.loc[(rows.unit == "pump-1") & (rows.step == 3), "at"] = "lost"
    rows.loc[rows.unit == "pump-3", "unit"] = None
    rows.to_csv(tmp_path / "log.csv", index=False)
    found = dict(read_units(MODEL, tmp_path / "log.csv", "unit"))
    assert [name for name, each in found.items() if isinstance(each, pl.DataError)] == ["", "pump-1"]
    assert "no value in column unit" in str(found[""])
    assert "unknown state" in str(found["pump-1"])
    assert "first in row 164, episode 0" in str(found["pump-1"])
    assert sum([found["pump-0"].counts, found["pump-2"].counts]).total > 0  # which have no data in common
    with pytest.raises(pl.DataError, match="counted twice"):
        found["pump-0"].counts + found["pump-0"].counts


def test_a_column_of_units_that_is_not_there_is_refused():
    with pytest.raises(pl.DataError, match="by='site': the log has no such column"):
        list(read_units(MODEL, ROWS, "site"))


def certified(rows):
    """Return what rows say, but for the time that they took and where they were found."""
    return [row._replace(seconds=0.0, key="") for row in rows]


COUNTS = {name: log.counts for name, log in read_units(MODEL, ROWS, "unit", order="runs")}


def test_each_row_is_what_a_certificate_by_itself_says():
    table = pl.certify_each(MODEL, COUNTS, QUESTION, confidence=0.9)
    assert [row.unit for row in table.rows] == [*COUNTS]
    for row in table.rows:
        alone = pl.certify(MODEL, COUNTS[row.unit], QUESTION, confidence=0.9)
        assert (row.verdict, row.lower, row.upper) == (alone.status, alone.lower, alone.upper)
        assert row.p == alone.beside.p_value
        assert row.exit_code == 0


@pytest.mark.parametrize("objective", ['R{"cost"}<=6 [ C<=20 ]', 'R{"cost"}<=2 [ C<=20 ]'])
def test_thresholds_are_decided_as_one_by_one(objective):
    table = pl.certify_each(MODEL, COUNTS, objective, confidence=0.9)
    for row in table.rows:
        learned = pl.learn(MODEL, COUNTS[row.unit], objectives=[QUESTION], confidence=0.9)
        assert row.verdict == pl.decide(learned, objective).verdict
        assert row.exit_code == {"yes": 0, "no": 1, "inconclusive": 4}[row.verdict]


@pytest.mark.parametrize("is_told", [True, False])
def test_policies_are_valued_as_one_by_one(is_told):
    by_state = {"good": "run", "worn": "service", "down": "repair"}
    policy = pl.PolicyTable.from_actions(MODEL.graph, lambda state: by_state[state.at]) if is_told else "practice"
    logs = dict(read_units(MODEL, ROWS[ROWS.unit.isin(["pump-0", "pump-3"])], "unit", order="runs"))
    for row in pl.certify_each(MODEL, logs, QUESTION, policy=policy, prespecified=is_told).rows:
        alone = pl.certify(MODEL, logs[row.unit], QUESTION, policy=policy, prespecified=is_told)
        assert (row.lower, row.upper) == (alone.lower, alone.upper)


def test_equal_counts_are_certified_once(monkeypatch):
    asked, whole = [], units._Job.__call__
    monkeypatch.setattr(units._Job, "__call__", lambda job, batch: asked.extend(batch) or whole(job, batch))
    one = COUNTS["pump-0"]
    table = pl.certify_each(MODEL, {"a": one, "b": COUNTS["pump-3"], "c": one}, QUESTION)
    assert len(asked) == 2
    first, _, third = certified(table.rows)
    assert third == first._replace(unit="c")


def test_a_job_that_was_killed_goes_on_where_it_was_and_ends_with_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(units, "_BATCH", 1)
    monkeypatch.setattr(units, "_SECONDS", 0.0)
    monkeypatch.setattr(units, "_TIMES", 0.0)
    file, asked, whole = tmp_path / "results.parquet", [], units._Job.__call__
    expected = pl.certify_each(MODEL, COUNTS, QUESTION)

    def dies(job, batch):
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(batch)
        return whole(job, batch)

    monkeypatch.setattr(units._Job, "__call__", dies)
    with pytest.raises(KeyboardInterrupt):
        pl.certify_each(MODEL, COUNTS, QUESTION, output=file)
    assert 1 <= len(units.read_units_table(file).rows) <= 2
    monkeypatch.setattr(units._Job, "__call__", lambda job, batch: asked.append(batch) or whole(job, batch))
    found = pl.certify_each(MODEL, COUNTS, QUESTION, output=file)
    assert len(asked) == len(COUNTS)  # none twice
    assert certified(found.rows) == certified(expected.rows)
    assert certified(units.read_units_table(file).rows) == certified(expected.rows)
    assert found.assumptions == expected.assumptions
    monkeypatch.setattr(units._Job, "__call__", dies)
    asked[2:] = []
    with pytest.raises(KeyboardInterrupt):  # another question, of which nothing is known
        pl.certify_each(MODEL, COUNTS, 'R{"cost"}max=? [ C<=20 ]', output=file)


def test_a_unit_that_cannot_be_certified_is_a_row_that_says_why():
    given = {**COUNTS, "pump-x": pl.DataError("its rows are gone"), "pump-y": pl.case_study("betting:5")}
    given["pump-y"] = pl.simulate(given["pump-y"].model, given["pump-y"].true_point, 10, rng=1, max_steps=6)
    table = pl.certify_each(MODEL, given, QUESTION)
    rows = {row.unit: row for row in table.rows}
    assert rows["pump-x"].why == "its rows are gone"
    assert "another model" in rows["pump-y"].why
    assert [rows[name].exit_code for name in ("pump-x", "pump-y", "pump-0")] == [2, 2, 0]
    assert np.isnan(rows["pump-x"].lower)
    assert table.exit_code == 2
    assert "5 certified, 2 failed" in table.sentence


def test_a_table_is_read_as_it_was_written(tmp_path):
    table = pl.certify_each(MODEL, {"a": COUNTS["pump-0"], "b": pl.DataError("gone")}, QUESTION, together="rate")
    table.write(tmp_path / "table.parquet")
    again = units.read_units_table(tmp_path / "table.parquet")
    assert repr(again.rows) == repr(table.rows)
    assert (again.to_dict(), str(again)) == (table.to_dict(), str(table))


def test_assumptions_of_one_kind_are_told_once_on_later_nights_too(tmp_path):
    """What differs is what one log has of it, as its fields say; numbers in words are left as they are."""
    file = tmp_path / "table.parquet"
    for night, told in enumerate([["rows (3) are copies"], ["rows (5) are copies", "rows (7) are copies"]]):
        found = units._UnitRows(ABOUT, file, units.read_units_table(file) if night else None)
        found._assume([*(Assumption(each, Group.PLAN, "", kind="rows are copies") for each in told), "2 + 2 is 4"])
        table = found.table()
        table.write(file)
        expected = ["rows are copies" if night else told[0], "2 + 2 is 4"]
        assert [*table.assumptions] == [*units.read_units_table(file).assumptions] == expected
        assert [each.group for each in units.read_units_table(file).assumptions] == [Group.PLAN, Group.DATA]


def test_a_table_keeps_under_which_policy_values_are(tmp_path):
    by_state = {"good": "run", "worn": "service", "down": "repair"}
    policy = pl.PolicyTable.from_actions(MODEL.graph, lambda state: by_state[state.at])
    one = {"a": COUNTS["pump-0"]}
    table = pl.certify_each(MODEL, one, QUESTION, policy=policy, prespecified=True, output=tmp_path / "t.parquet")
    assert units.read_units_table(tmp_path / "t.parquet").under == table.under == "given"
    assert pl.certify_each(MODEL, one, QUESTION).under == "own"


def test_rows_that_hold_at_once_share_the_error():
    table = pl.certify_each(MODEL, COUNTS, QUESTION, confidence=0.95, together="all")
    alone = pl.certify(MODEL, COUNTS["pump-1"], QUESTION, confidence=1 - (1 - 0.95) / 5)
    assert (table.rows[1].lower, table.rows[1].upper) == (alone.lower, alone.upper)
    assert "all rows hold at once with confidence 95 %; each has an error of 1 %" in str(table)


def row_of(verdict):
    return units.UnitRow("", verdict, 0.0, 1.0, 1.0, 0, "", 0.0, "")


@pytest.mark.parametrize(("n_named", "is_list"), [(6, True), (4, False), (0, False)])
def test_a_list_is_given_if_one_in_twenty_units_has_a_verdict(n_named, is_list):
    """By hand: of 100 units with an error of 0.1 / 20, e = 200; k of them need 200 >= 100 / (0.1 k), k >= 5."""
    rows = tuple(row_of("no" if i < n_named else "inconclusive") for i in range(100))
    table = units.UnitTable(rows, "", "max", 0.9, "rate", 0.1 / 20, ())
    assert len(table.named) == (n_named if is_list else 0)
    assert ("on average at most 10 % of the verdicts are wrong" in table.promise) == is_list


def test_maps_of_joblib_and_of_a_pool_find_the_rows_of_a_plain_loop(monkeypatch):
    joblib = pytest.importorskip("joblib")
    monkeypatch.setattr(units, "_BATCH", 2)
    expected = certified(pl.certify_each(MODEL, COUNTS, QUESTION).rows)

    def mapped(work, batches):
        return joblib.Parallel(2, backend="threading")(joblib.delayed(work)(batch) for batch in batches)

    with ThreadPoolExecutor(2) as pool:
        for each in (mapped, pool.map):
            assert certified(pl.certify_each(MODEL, COUNTS, QUESTION, map=each).rows) == expected
    job = units._Job(MODEL, ask(QUESTION, MODEL), None, None, None, {})
    assert pickle.loads(pickle.dumps(job)).key == job.key


@contextmanager
def processes():
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        yield pool.map


@contextmanager
def joblib_map():
    joblib = pytest.importorskip("joblib")
    yield lambda work, batches: joblib.Parallel(2)(joblib.delayed(work)(batch) for batch in batches)


@contextmanager
def dask_map():
    distributed = pytest.importorskip("dask.distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield lambda work, batches: client.gather(client.map(work, batches))


@contextmanager
def ray_map():
    ray, pools = pytest.importorskip("ray"), pytest.importorskip("ray.util.multiprocessing")
    ray.init(num_cpus=2, include_dashboard=False)
    with pools.Pool(2) as pool:
        yield pool.map
    ray.shutdown()


@pytest.mark.slow
@pytest.mark.night
@pytest.mark.parametrize("engine", [processes, joblib_map, dask_map, ray_map])
def test_units_certified_by_engines_have_the_rows_of_a_plain_loop(engine, monkeypatch):
    """Each line is that of the page; an engine that is not installed is passed over."""
    monkeypatch.setattr(units, "_BATCH", 2)
    with engine() as mapped:
        found = pl.certify_each(MODEL, COUNTS, QUESTION, map=mapped)
    assert repr(certified(found.rows)) == repr(certified(pl.certify_each(MODEL, COUNTS, QUESTION).rows))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_job_that_is_killed_at_any_time_may_run_again(tmp_path, monkeypatch):
    """Rows are written after each unit, so that kills come before, between and within writings."""
    for name, at_once in (("_BATCH", 1), ("_BATCHES", 1), ("_SECONDS", 0.0), ("_TIMES", 0.0)):
        monkeypatch.setattr(units, name, at_once)
    file, rng, n_killed, n_kept = tmp_path / "results.parquet", random.Random(1), 0, 0
    begun = time.monotonic()
    whole = pl.certify_each(MODEL, COUNTS, QUESTION)
    takes = time.monotonic() - begun
    while n_killed < size(4, 50):
        if not (job := os.fork()):
            pl.certify_each(MODEL, COUNTS, QUESTION, output=file)
            os._exit(0)
        time.sleep(rng.uniform(0, takes))
        os.kill(job, signal.SIGKILL)
        n_killed += os.waitpid(job, 0)[1] == signal.SIGKILL
        if file.exists():
            rows = units.read_units_table(file).rows  # never half a table
            n_kept += bool(rows)
            assert {*map(repr, certified(rows))} <= {*map(repr, certified(whole.rows))}
            if len(rows) == len(COUNTS):
                file.unlink()
    found = pl.certify_each(MODEL, COUNTS, QUESTION, output=file)
    assert n_kept
    assert certified(found.rows) == certified(units.read_units_table(file).rows) == certified(whole.rows)
    assert found.assumptions == whole.assumptions


def test_a_file_that_is_no_table_of_units_is_not_replaced(tmp_path):
    ROWS.to_parquet(tmp_path / "log.parquet")
    with pytest.raises(pl.DataError, match="this is not a table of units"):
        pl.certify_each(MODEL, COUNTS, QUESTION, output=tmp_path / "log.parquet")


def batches_of(frame, kind, folder):
    """Return rows as something that hands them over as Arrow, once or more often."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table, folder / "part.parquet")
    dataset = ds.dataset(folder / "part.parquet")
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=100))
    return {"reader": reader, "dataset": dataset, "scanner": dataset.scanner(columns=[*frame])}[kind]


@pytest.mark.parametrize("kind", ["reader", "dataset", "scanner"])
def test_rows_that_are_handed_over_in_batches_are_counted_as_a_table(kind, tmp_path):
    expected = pl.read_log(MODEL, ROWS[ROWS.unit == "pump-1"], order="runs").counts
    rows = batches_of(ROWS[ROWS.unit == "pump-1"], kind, tmp_path)
    assert pl.read_log(MODEL, rows, order="runs").counts.fingerprint == expected.fingerprint
    found = dict(read_units(MODEL, batches_of(ROWS, kind, tmp_path), "unit", order="runs"))
    assert found["pump-1"].counts.fingerprint == expected.fingerprint


def test_rows_handed_over_twice_are_the_same_data(tmp_path):
    rows = ROWS[ROWS.unit == "pump-1"]
    one, other = (pl.read_log(MODEL, batches_of(rows, "reader", tmp_path)) for _ in range(2))
    with pytest.raises(pl.DataError, match="would be counted twice"):
        one.counts + other.counts


def rows_of(frame):
    """Return the table of the units of a frame, as Spark asks for it."""
    return pl.certify_each(MODEL, read_units(MODEL, frame, "unit", order="runs"), QUESTION).to_pandas()


@pytest.mark.slow
@pytest.mark.night
def test_units_certified_inside_spark_have_the_rows_of_a_plain_loop():
    """Workers run this file as it was pickled, by value."""
    sql = pytest.importorskip("pyspark.sql")
    pickled_by_value = pytest.importorskip("pyspark.cloudpickle").register_pickle_by_value
    pickled_by_value(sys.modules[__name__])
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    columns = "unit string, verdict string, lower double, upper double, p double, exit_code long, why string"
    frame = spark.createDataFrame(ROWS.astype(object).where(ROWS.notna(), None))
    group = sql.functions.expr("pmod(hash(unit), 2)")
    found = frame.groupBy(group).applyInPandas(rows_of, f"{columns}, seconds double, key string").toPandas()
    spark.stop()
    told = sorted(units.UnitRow(*row) for row in found.itertuples(index=False))
    assert repr(certified(told)) == repr(certified(pl.certify_each(MODEL, COUNTS, QUESTION).rows))

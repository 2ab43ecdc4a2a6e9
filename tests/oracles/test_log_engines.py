"""The same log in every frame: DuckDB counts as a slow recount does, Spark as DuckDB does, and so does printed SQL."""

import io
import math
import os
import re
import shutil
import subprocess
import tempfile
import warnings
from datetime import datetime, timedelta
from functools import partial
from itertools import product
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow
import pyarrow.csv
import pytest
import sqlglot
from in_format import in_format
from log_models import LAMP, recount, rows_of, runs
from mapping_oracle import known
from past_oracle import MODEL, by_hand, cells, log_of
from tiers import pairs

import plumdp as pl
from plumdp.data.duckdb_engine import column_types, connect, write_parquet
from plumdp.data.frames import _Result, open_spark
from plumdp.data.logs import read_log
from plumdp.data.mapping_language import parse_mapping
from plumdp.data.mapping_sql import mapped_sql
from plumdp.data.pilots import moments_of, planned_moments, table_moments
from plumdp.data.sql import counts_query, select_sql

pytestmark = pytest.mark.slow

FORMS = ("transitions", "trajectories")
ORDERS = ({"order": "runs"}, {"sampling": "trajectories"})
DIALECTS = ("bigquery", "snowflake", "databricks", "redshift", "spark", "trino", "postgres", "duckdb")
ROWS, COUNTS = runs(LAMP, {"p": 0.6}, 60)
ANYHOW = {"on_unmatched": "report", "censoring": "unrelated"}
PLACES = {"episode": "episode", "step": "step"}  # columns of a table that a query cannot look at


@pytest.fixture(scope="session")
def spark():
    """A small Spark on this machine."""
    pyspark = pytest.importorskip("pyspark.sql")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Spark needs Java")
    options = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # starts fast
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.log.level": "ERROR",
    }
    builder = pyspark.SparkSession.builder.master("local[1]").appName("plumdp tests")
    for name, value in options.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Spark's own start
        session = builder.getOrCreate()
    yield session
    session.stop()


def corrupted_rows(form, n_others=20):
    """Return the runs with wrong values, missing rows, copies, other rows of a step and missing steps, in no order."""
    rng = np.random.default_rng(5)
    rows = [dict(row) for row in ROWS[form] if rng.random() > 0.02]
    for row in rows:
        name = rng.choice(["place_x", "lit", "mode", "action", "step", "episode", ""], p=[0.05] * 6 + [0.7])
        if name:
            row[name] = None
        if rng.random() < 0.05:
            row["place_x"] = int(rng.integers(-3, 6))
    rows += [dict(rows[i]) for i in rng.choice(len(rows), 20)]
    rows += [dict(rows[i]) | {"lit": rng.random() < 0.5} for i in rng.choice(len(rows), n_others)]
    return [rows[i] for i in rng.permutation(len(rows))]


def arrow(rows):
    kinds = {int: pyarrow.int64(), bool: pyarrow.bool_(), str: pyarrow.string()}
    schema = {name: next(kinds[type(row[name])] for row in rows if row[name] is not None) for name in rows[0]}
    return pyarrow.Table.from_pylist(rows, schema=pyarrow.schema(schema.items()))


ENGINES = {
    "pandas": lambda rows, spark: arrow(rows).to_pandas(),
    "pandas with Arrow": lambda rows, spark: arrow(rows).to_pandas(types_mapper=pd.ArrowDtype),
    "Polars": lambda rows, spark: polars.from_arrow(arrow(rows)),
    "Polars, lazy": lambda rows, spark: polars.from_arrow(arrow(rows)).lazy(),
    "PyArrow": lambda rows, spark: arrow(rows),
    "DuckDB": lambda rows, spark: duckdb.from_arrow(arrow(rows)),
    "Spark": lambda rows, spark: spark().createDataFrame(arrow(rows)),
}


@pytest.mark.parametrize("form", FORMS)
def test_corrupted_rows_have_copies_or_repeated_steps(form):
    kinds = recount(corrupted_rows(form), LAMP.graph, form)[1]
    assert kinds["repeated step"] > 15
    assert kinds["copy"] > 10
    assert recount(corrupted_rows(form, n_others=0), LAMP.graph, form)[1]["copy"] > 10


@pytest.mark.parametrize(("engine", "form"), pairs(ENGINES, FORMS))
def test_every_engine_counts_the_rows_as_a_slow_recount_does(engine, form, request):
    for rows in (ROWS[form], corrupted_rows(form), corrupted_rows(form, n_others=0)):
        source = ENGINES[engine](rows, lambda: request.getfixturevalue("spark"))
        log = read_log(LAMP, source, **in_format(form=form, **ANYHOW))
        counts, kinds = recount(rows, LAMP.graph, form)
        assert np.array_equal(log.counts.counts, counts)
        assert {kind: n for kind, n in log.report.rows.items() if n} == kinds
        if engine != "pandas":  # which has floats where a number is missing
            expected = read_log(LAMP, arrow(rows), **in_format(form=form, **ANYHOW))
            assert without_pairs(log) == without_pairs(expected)  # with the same examples
            assert ("in one row, " in str(log)) == (engine in ("DuckDB", "Spark") and "repeated step" in str(log))


def without_pairs(log):
    """Return what is said of a log, but not which rows contradict each other: a table in no order has no numbers."""
    return re.sub(r" rows: [^)]*\)", " rows)", str(log))


@pytest.mark.parametrize(("engine", "form"), pairs(ENGINES, FORMS))
def test_every_engine_finds_the_first_runs(engine, form, request):
    rows = runs(LAMP, {"p": 0.6}, 200)[0][form]
    rows += rows[::9] + [row | {"lit": not row["lit"]} for row in rows[::70]]  # copies, and rows that contradict others
    source = ENGINES[engine](rows, lambda: request.getfixturevalue("spark"))
    for options, lengths in zip(ORDERS, (moments_of(200), planned_moments(200)), strict=True):
        counts = read_log(LAMP, source, **in_format(**options, **ANYHOW)).counts
        assert np.array_equal(counts.counts, recount(rows, LAMP.graph, form)[0])
        for n, moment in zip(lengths, counts.pilot.moments, strict=True):
            part = [row for row in rows if row["episode"] < n]
            assert np.array_equal(moment, recount(part, LAMP.graph, form)[0])


@pytest.mark.night
@pytest.mark.parametrize("options", ORDERS)
def test_spark_finds_the_contexts_and_the_first_runs_of_a_table(options, spark):
    """Moments of a table begin with 16 runs, and those of a planned length are no powers of four."""
    rows = log_of(200, np.random.default_rng(7), n_odd=60).assign(site=lambda rows: rows["run"] % 3)
    log = spark.createDataFrame(pyarrow.Table.from_pandas(rows, preserve_index=False))
    about = {"columns": {"episode": "run", "state": "x"}, "known": ["site"], **ANYHOW}
    counts = read_log(MODEL, log, **in_format(**about, **options)).counts
    lengths = table_moments(200, is_planned="sampling" in options)
    assert counts.pilot.lengths == lengths
    for n, moment in zip(lengths, counts.pilot.moments, strict=True):
        seen = np.zeros_like(moment)
        for (kind, _, transition), times in by_hand(rows[rows["run"] < n]).items():
            seen[transition] += times * (kind == "visits")
        assert seen.sum() > 16
        assert np.array_equal(moment, seen)
    assert cells(counts.contexts) == by_hand(rows, "site")
    assert cells(counts.contexts, of_pilot=True) == by_hand(rows[rows["run"] < 16], "site")


def test_spark_takes_no_order_from_steps_that_are_texts(spark):
    """In which 10 is before 9; what had happened before a step would then be what came later."""
    rows = pd.DataFrame([(0, str(step), 0, "a", step % 8) for step in range(12)])
    rows = rows.set_axis(["episode", "step", "state", "action", "next_state"], axis=1)
    log = read_log(
        MODEL, spark.createDataFrame(pyarrow.Table.from_pandas(rows, preserve_index=False)), **in_format(**ANYHOW)
    )
    assert log.counts.total == 12
    assert log.counts.no_contexts == "order"
    assert not log.report.censored_runs.cut


@pytest.mark.night
@pytest.mark.parametrize("engine", ["DuckDB", "Spark"])
def test_tables_without_an_order_have_no_first_rows(engine, request):
    source = ENGINES[engine](ROWS["transitions"], lambda: request.getfixturevalue("spark"))
    with pytest.raises(pl.DataError, match=r"order='time': the rows of a table of .* have no order of their own"):
        read_log(LAMP, source, order="time")


@pytest.mark.night
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["betting:25", "engagement:50", "rover:10,10"])
def test_spark_and_duckdb_count_the_runs_of_a_case_study(name, form, spark, tmp_path):
    study = pl.case_study(name)
    runs = pl.data.record(study.model, study.true_point, 300, rng=1, max_steps=20)
    write_parquet(tmp_path / "log.parquet", [runs.columns(form)])
    sources = spark.read.parquet(str(tmp_path / "log.parquet")), duckdb.read_parquet(f"{tmp_path}/log.parquet")
    logs = [read_log(study.model, source) for source in sources]
    for log in logs:
        assert np.array_equal(log.counts.counts, runs.counts().counts)
    assert logs[0].report.censored_runs == logs[1].report.censored_runs
    assert (
        sum(map(sum, (logs[0].report.censored_runs.cut, logs[0].report.censored_runs.over)))
        == (form == "trajectories") * 300
    )


# the printed query


def ordered(rows):
    return sorted((tuple(map(str, row)) for row in rows), key=str)


@pytest.mark.night
@pytest.mark.parametrize("form", FORMS)
def test_the_printed_query_gives_the_same_table_on_duckdb_and_on_spark(form, spark):
    columns = {"place_x": "Pos `x`", "action": "group", "step": "the step", "episode": "episode"}
    log = arrow(corrupted_rows(form)).rename_columns(columns)
    queries = {
        d: counts_query(LAMP, pl.LogFormat(columns=columns, form=form), table="log", dialect=d)
        for d in ("duckdb", "spark")
    }
    spark.createDataFrame(log).createOrReplaceTempView("log")
    on_duckdb = duckdb.sql(queries["duckdb"]).fetchall()
    on_spark = [tuple(row) for row in spark.sql(queries["spark"]).collect()]
    assert ordered(on_duckdb) == ordered(on_spark)
    counted = pd.DataFrame(on_spark, columns=duckdb.sql(queries["duckdb"]).columns)
    direct = read_log(LAMP, log, **in_format(form=form, columns=columns, **ANYHOW))
    for result in (counted, spark.sql(queries["spark"]), duckdb.sql(queries["duckdb"])):
        back = read_log(LAMP, result, **in_format(**ANYHOW))
        assert back.report.form == "counts"
        assert back.report.rows == direct.report.rows
        assert np.array_equal(back.counts.counts, direct.counts.counts)


@pytest.mark.night
@pytest.mark.parametrize("form", FORMS)
def test_the_printed_query_counts_the_same_pilot_on_duckdb_and_on_spark(form, spark):
    rows = runs(LAMP, {"p": 0.6}, 320)[0][form]
    log = arrow(rows)
    queries = {
        d: counts_query(LAMP, pl.LogFormat(form=form), table="log", dialect=d, order="runs")
        for d in ("duckdb", "spark")
    }
    spark.createDataFrame(log).createOrReplaceTempView("log")
    for result in (spark.sql(queries["spark"]), duckdb.sql(queries["duckdb"])):
        counts = read_log(LAMP, result).counts
        for n, moment in zip((4, 16, 64, 256), counts.pilot.moments, strict=True):
            part = [row for row in rows if row["episode"] < n]
            assert np.array_equal(moment, recount(part, LAMP.graph, form)[0])


@pytest.fixture(scope="session")
def postgres():
    """Run queries of a table ``log`` in a PostgreSQL of this machine, which does not run as root."""
    if not all(map(shutil.which, ("initdb", "pg_ctl", "psql", "setpriv"))):
        pytest.skip("there is no PostgreSQL")
    folder = tempfile.mkdtemp(prefix="pg")
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    if user:
        os.chown(folder, 65534, 65534)
    run = partial(subprocess.run, cwd=folder, check=True, capture_output=True, text=True)
    run([*user, "initdb", "-D", f"{folder}/data", "-U", "tests", "-A", "trust"])
    server = f"-k {folder} -c listen_addresses="
    run([*user, "pg_ctl", "-D", f"{folder}/data", "-o", server, "-l", f"{folder}/log", "-w", "start"])

    def ask(log, query):
        kinds = {"int64": "BIGINT", "bool": "BOOLEAN", "string": "TEXT"}
        columns = ", ".join(f'"{field.name}" {kinds[str(field.type)]}' for field in log.schema)
        pyarrow.csv.write_csv(log, f"{folder}/log.csv")
        setup = f"DROP TABLE IF EXISTS log; CREATE TABLE log ({columns});"
        copy = f"\\copy log FROM '{folder}/log.csv' CSV HEADER"
        commands = [part for each in (setup, copy) for part in ("-c", each)]
        psql = ["psql", "-h", folder, "-U", "tests", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-q"]
        run([*psql, *commands])
        told = run([*psql, "--csv", "-c", query]).stdout
        options = pyarrow.csv.ConvertOptions(true_values=["t"], false_values=["f"], strings_can_be_null=True)
        return pyarrow.csv.read_csv(io.BytesIO(told.encode()), convert_options=options)

    yield ask
    run([*user, "pg_ctl", "-D", f"{folder}/data", "-m", "immediate", "stop"])
    shutil.rmtree(folder)


@pytest.mark.parametrize(("dialect", "form"), pairs(("postgres", "redshift"), FORMS))
def test_the_query_for_postgres_and_that_for_redshift_run_on_postgres(dialect, form, postgres):
    log = arrow(corrupted_rows(form))
    query = counts_query(LAMP, pl.LogFormat(columns=PLACES, form=form), table="log", dialect=dialect)
    direct = read_log(LAMP, log, **in_format(form=form, **ANYHOW))
    back = read_log(LAMP, postgres(log, query), **in_format(**ANYHOW))
    assert back.report.rows == direct.report.rows
    assert np.array_equal(back.counts.counts, direct.counts.counts)
    assert cells(back.counts.contexts) == cells(direct.counts.contexts)


@pytest.mark.parametrize(("dialect", "form"), pairs(("databricks", "spark"), FORMS))
def test_the_query_for_databricks_and_that_for_spark_run_on_spark(dialect, form, spark):
    log = arrow(corrupted_rows(form))
    spark.createDataFrame(log).createOrReplaceTempView("log")
    query = counts_query(LAMP, pl.LogFormat(columns=PLACES, form=form), table="log", dialect=dialect)
    direct = read_log(LAMP, log, **in_format(form=form, **ANYHOW))
    back = read_log(LAMP, spark.sql(query), **in_format(**ANYHOW))
    assert back.report.rows == direct.report.rows
    assert np.array_equal(back.counts.counts, direct.counts.counts)


@pytest.mark.parametrize(("dialect", "form"), pairs(DIALECTS, FORMS))
def test_the_query_of_every_dialect_means_the_same(dialect, form):
    """Translated back to DuckDB's words and executed there: an independent parser has read it."""
    rows = corrupted_rows(form)
    log = arrow(rows)
    if dialect == "snowflake":
        log = log.rename_columns({name: name.upper() for name in rows[0]})
    text = counts_query(LAMP, pl.LogFormat(columns=PLACES, form=form), table="log", dialect=dialect)
    result = duckdb.sql(sqlglot.transpile(text, read=dialect, write="duckdb")[0])
    direct = read_log(LAMP, log, **in_format(form=form, **ANYHOW))
    back = read_log(LAMP, result, **in_format(**ANYHOW))
    assert back.report.rows == direct.report.rows
    assert np.array_equal(back.counts.counts, direct.counts.counts)


@pytest.mark.parametrize(("dialect", "asked"), pairs(DIALECTS, product(FORMS, ORDERS)))
def test_the_query_of_every_dialect_counts_the_same_pilot(dialect, asked):
    form, options = asked
    rows = runs(LAMP, {"p": 0.6}, 400)[0][form]
    log = arrow(rows)
    if dialect == "snowflake":
        log = log.rename_columns({name: name.upper() for name in rows[0]})
    log = log.take([*range(len(log)), *range(0, len(log), 7)])  # copies, which are neither in the pilot nor counted
    columns = {name: name.upper() if dialect == "snowflake" else name for name in PLACES}
    text = counts_query(LAMP, table="log", dialect=dialect, **in_format(form=form, columns=columns, **options))
    result = duckdb.sql(sqlglot.transpile(text, read=dialect, write="duckdb")[0])
    direct = read_log(LAMP, log, **in_format(**options)).counts
    assert np.array_equal(direct.counts, recount(rows, LAMP.graph, form)[0])
    back = read_log(LAMP, result, sampling=options.get("sampling", "adaptive")).counts
    assert np.array_equal(back.counts, direct.counts)
    moments = dict(zip(direct.pilot.lengths, direct.pilot.moments, strict=True))  # a query keeps those of any log
    assert back.pilot.lengths == moments_of(400)
    for length, moment in zip(back.pilot.lengths, back.pilot.moments, strict=True):
        assert np.array_equal(moment, moments[length])
    for name in ("end", "rests_on", "expected"):
        assert getattr(back.pilot, name) == getattr(direct.pilot, name)


@pytest.mark.parametrize(
    ("dialect", "words"),
    [
        ("bigquery", ["`place_x`", "FROM shop.log", "LEAD(`step`, 2) OVER (PARTITION BY `episode` ORDER BY `step`)"]),
        ("spark", ["`place_x`", "FROM shop.log", "ORDER BY `step`)"]),
        ("snowflake", ['"PLACE_X" AS "place_x"', '"my column" AS "lit"', "FROM shop.log"]),
        ("postgres", ['"place_x"', '"my column" AS "lit"', 'ORDER BY "step")']),
        ("trino", ['"place_x"', "FROM shop.log"]),
    ],
)
def test_names_are_quoted_as_the_dialect_quotes_them(dialect, words):
    text = counts_query(
        LAMP, pl.LogFormat(columns={"lit": "my column"}, form="trajectories"), table="shop.log", dialect=dialect
    )
    for word in words:
        assert word in text


def test_a_variable_called_n_or_place_keeps_its_counts_apart():
    (p,) = pl.parameters("p")
    step = lambda s: {"go": [(p, s._replace(n=1 - s.n)), (1 - p, s._replace(place=1 - s.place))]}  # noqa: E731
    model = pl.explore(step, {"n": 0, "place": 0}, space=pl.ParameterSpace.unit("p"))
    recorded = pl.data.record(model, {"p": 0.3}, 50, rng=1, max_steps=5)
    for form in FORMS:
        log = pyarrow.Table.from_pylist(rows_of(recorded.columns(form)))
        assert np.array_equal(read_log(model, log).counts.counts, recorded.counts().counts)
        result = duckdb.sql(counts_query(model, pl.LogFormat(form=form), table="log", dialect="duckdb")).pl()
        assert {"state_n", "state_place", "n"} <= {*result.columns}
        assert np.array_equal(read_log(model, result).counts.counts, recorded.counts().counts)


def test_what_spark_cannot_do_is_refused_and_no_view_is_left(spark):
    frame = spark.createDataFrame(arrow(ROWS["transitions"]))
    with pytest.raises(pl.DataError, match=r"^order=.runs.: column mode has the type"):
        read_log(LAMP, frame, pl.LogFormat(columns={"episode": "mode"}), order="runs")
    assert [table.name for table in spark.catalog.listTables() if table.name.startswith("plumdp_")] == []


def test_spark_hands_over_rows_where_it_has_no_arrow(spark):
    """As before Spark 4."""
    result = spark.sql("SELECT 1 AS a, 'x' AS b UNION ALL SELECT NULL, NULL ORDER BY a")
    plain = SimpleNamespace(collect=result.collect, columns=result.columns)
    for frame in (result, plain):
        block = _Result(frame).fetchnumpy()
        assert {name: values.tolist() for name, values in block.items()} == {"a": [None, 1], "b": [None, "x"]}


NUMBERS = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 0.5, -7.5, 2.5, 1e17, -1e300, 1e308]
TEXTS = [None, " 3 ", "", "3", "+3", "-3e0", ".5", "1.", "x", "1_000", "inf", "nan", "0x10", "0x1p3", "3f", "1e400"]
EXPRESSIONS = """
floor(lon / 0.5); ceil(lon * 10); round(lon); mod(lon, 7); lon % (count - 1); abs(-lon); lon / count; lon = level;
least(lon, level, 3); greatest(lon, count); floor(lon * 1e308 - lon * 1e308); word + 0; flag != (count > 0);
if(lon > level, 1, count); case when flag and lon < 1 or not flag then lon else 2 end;
if(word = '3', 1, 2); if(count, 1, 0); if(upper(word) = 'X' or lower(word) = 'nan', 1, 0);
date_part('year', time); date_part('isodow', time); date_part('hour', time); date_part('second', time)
""".replace("\n", " ").split(";")


@pytest.mark.night
def test_spark_calculates_what_duckdb_calculates(spark):
    rng = np.random.default_rng(4)
    pools = {"lon": NUMBERS, "level": NUMBERS, "word": TEXTS, "count": [None, 0, 1, 2, -9], "flag": [None, True, False]}
    pools["time"] = [None, *(datetime(1969, 12, 28) + timedelta(seconds=54_321 * i + 0.5) for i in range(40))]
    columns = {name: [pool[i] for i in rng.integers(len(pool), size=300)] for name, pool in pools.items()}
    log = pyarrow.table({"id": range(300), **columns})

    def calculated(connection, table, types, **options):
        terms = {text: mapped_sql(parse_mapping(text), types, **options) for text in EXPRESSIONS}
        return connection.execute(f"{select_sql({'id': 'id', **terms}, table)} ORDER BY id").fetchall()

    with connect() as connection:
        connection.register("log", log)
        expected = calculated(connection, "log", column_types(connection, "log"))
    with open_spark(spark.createDataFrame(log)) as (session, view, types):
        found = calculated(session, view, types, is_warehouse=True)
    for text, *both in zip(["id", *EXPRESSIONS], zip(*expected, strict=True), zip(*found, strict=True), strict=True):
        one, other = ([known(value) for value in values] for values in both)
        assert one == other, text


@pytest.mark.night
def test_spark_orders_rows_by_times(spark):
    rows = corrupted_rows("trajectories")
    start = datetime(2024, 3, 31)  # when clocks in Europe are put forward
    times = [row | {"step": row["step"] and start + timedelta(minutes=17 * row["step"])} for row in rows]
    kinds = {
        "episode": pyarrow.int64(),
        "place_x": pyarrow.int64(),
        "lit": pyarrow.bool_(),
        "step": pyarrow.timestamp("us"),
    }
    schema = pyarrow.schema([(name, kinds.get(name, pyarrow.string())) for name in times[0]])
    table = pyarrow.Table.from_pylist(times, schema=schema)
    expected = read_log(LAMP, table, **in_format(**ANYHOW))
    log = read_log(LAMP, spark.createDataFrame(table), **in_format(**ANYHOW))
    assert np.array_equal(log.counts.counts, expected.counts.counts)
    assert (log.report.rows, log.report.assuming) == (expected.report.rows, expected.report.assuming)
    assert len(log.report.assuming) == 2  # that no row is missing, and that rows which differ are of one step


@pytest.mark.night
@pytest.mark.parametrize("steps", ["monthly", "weekly", "daily", "every=12h"])
def test_spark_counts_periods_as_duckdb_does(steps, spark):
    days = {"monthly": 30.5, "weekly": 7, "daily": 1, "every=12h": 0.5}[steps]
    rows = [row for i, row in enumerate(ROWS["trajectories"]) if i % 13]
    start = datetime(2024, 1, 15)
    table = pyarrow.Table.from_pylist([row | {"step": start + timedelta(days=days * row["step"])} for row in rows])
    expected = read_log(LAMP, table, **in_format(steps=steps, **ANYHOW))
    log = read_log(LAMP, spark.createDataFrame(table), **in_format(steps=steps, **ANYHOW))
    assert np.array_equal(log.counts.counts, expected.counts.counts)
    assert log.report.rows == expected.report.rows
    assert log.report.rows["gap in steps"] > 20


@pytest.mark.night
@pytest.mark.parametrize("form", FORMS)
def test_states_are_mapped_alike_by_duckdb_and_by_spark(form, spark):
    rng = np.random.default_rng(2)
    rows = [dict(row) for row in corrupted_rows(form)]
    for row in rows:
        for before in ("", "next_") if form == "transitions" else ("",):
            place, is_odd = row.pop(f"{before}place_x"), bool((row["step"] or 0) % 2)  # so that copies stay copies
            row[f"{before}lon"] = [np.nan, np.inf][is_odd] if place is None else 0.5 * place + rng.random() / 2
    table = pyarrow.Table.from_pandas(pd.DataFrame(rows).astype({"episode": "Int64", "step": "Int64"}))
    states = {"place_x": "floor(lon / 0.5)"}
    direct = read_log(LAMP, table, **in_format(form=form, states=states, **ANYHOW))
    frame = spark.createDataFrame(table)
    frame.createOrReplaceTempView("mapped")
    assert read_log(LAMP, frame, **in_format(form=form, states=states, **ANYHOW)).report.rows == direct.report.rows
    query = counts_query(LAMP, pl.LogFormat(columns=PLACES, states=states, form=form), table="mapped", dialect="spark")
    back = read_log(LAMP, spark.sql(query), **in_format(**ANYHOW))
    assert back.report.rows == direct.report.rows
    assert np.array_equal(back.counts.counts, direct.counts.counts)

"""Mappings of states: every engine gives what a slow evaluation gives, and bad texts are refused."""

import math
import re
import sys
from functools import cache

import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from log_models import LAMP, recount, runs
from mapping_oracle import EXPRESSIONS, bin_of, known
from refusals import refused
from tiers import examples

import plumdp as pl
from plumdp.data.duckdb_engine import column_types
from plumdp.data.frames import FRAME as TABLE
from plumdp.data.frames import register_frame
from plumdp.data.logs import read_log
from plumdp.data.mapping_language import OUTSIDE, MappingTerm, bins, column, parse_mapping
from plumdp.data.mapping_sql import mapped_sql
from plumdp.data.sql import counts_query

PHASES = (Phase.explicit, Phase.generate)  # shrinking such expressions takes minutes
SCHEMA = pyarrow.schema(
    [
        ("lon", pyarrow.float64()),
        ("count", pyarrow.int32()),
        ("level", pyarrow.float64()),
        ("word", pyarrow.string()),
        ("flag", pyarrow.bool_()),
    ]
)
FLOATS = st.one_of(
    st.none(),
    st.sampled_from([0.0, -0.0, 0.5, -0.5, 1.0, -1.0, -7.5, 2.5, 1e308, math.inf, -math.inf, math.nan]),
    st.floats(-20, 20),
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "lon": FLOATS,
            "count": st.one_of(st.none(), st.integers(-9, 9)),
            "level": FLOATS,
            "word": st.sampled_from([None, "rain", "sun", " rain ", "it's", "1", "yes"]),
            "flag": st.sampled_from([None, True, False]),
        }
    ),
    min_size=1,
    max_size=8,
)


def cleaned(row):
    """Return a row as the rules read it: what is not finite is unknown, spaces around words do not count."""
    word = None if row["word"] is None else row["word"].strip(" ")
    numbers = {name: known(row[name]) for name in ("lon", "count", "level")}
    return {
        **{name: None if value is None else float(value) for name, value in numbers.items()},
        "word": word,
        "flag": row["flag"],
    }


@cache
def database():
    """One for all examples, set up as the one that reads logs: to make one takes longer than to ask it."""
    connection = duckdb.connect()
    connection.execute("SET pandas_analyze_sample = 0")
    return connection


def by_duckdb(frame, term, *, has_types=True, **options):
    with database().cursor() as connection:
        register_frame(connection, frame, term.columns())
        types = column_types(connection, TABLE) if has_types else {}
        query = f"SELECT {mapped_sql(term, types, **options)} FROM {TABLE}"
        return [row[0] for row in connection.execute(query).fetchall()]


ENGINES = {
    "PyArrow": by_duckdb,
    "pandas": lambda table, term: by_duckdb(table.to_pandas(), term),
    "pandas with objects": lambda table, term: by_duckdb(table.to_pandas().astype(object), term),
    "pandas with Arrow": lambda table, term: by_duckdb(table.to_pandas(types_mapper=pd.ArrowDtype), term),
    "Polars": lambda table, term: by_duckdb(polars.from_arrow(table), term),
    "a query for Spark": lambda table, term: by_duckdb(table, term, is_warehouse=True),
    "a query for warehouses": lambda table, term: by_duckdb(table, term, is_warehouse=True, has_types=False),
}


@pytest.mark.slow
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow], phases=PHASES)
@given(EXPRESSIONS, ROWS)
def test_every_engine_evaluates_expressions_as_plain_python_does(expression, rows):
    text, evaluate = expression
    table, term = pyarrow.Table.from_pylist(rows, schema=SCHEMA), parse_mapping(text)
    if term.kind == "any":  # a bare column is handed over as it is
        term = MappingTerm(column(*term.columns(), "number"))
    expected = [known(evaluate(cleaned(row))) for row in rows]
    for name, engine in ENGINES.items():
        found = [None if pd.isna(value) else known(float(value)) for value in engine(table, term)]
        assert found == expected, (name, text)


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(st.lists(FLOATS, min_size=1, max_size=8), st.lists(st.integers(-8, 8), min_size=2, max_size=6, unique=True))
def test_every_engine_finds_the_bin_that_the_definition_names(values, edges):
    edges = sorted(edges)
    table = pyarrow.table({"lon": pyarrow.array(values, pyarrow.float64())})
    term = bins("lon", edges)
    expected = [{"below": -OUTSIDE, "above": OUTSIDE}.get(found, found) for found in (bin_of(v, edges) for v in values)]
    for name, engine in ENGINES.items():
        assert [None if pd.isna(v) else v for v in engine(table, term)] == expected, name


SPELLINGS = [
    "3",
    " 3 ",
    "3.0",
    "+3",
    "-3",
    "3e0",
    ".5",
    "1.",
    "x",
    "",
    "1_000",
    "3 3",
    "inf",
    "nan",
    "0x10",
    "1e400",
    "٣",
    None,
]


def test_texts_in_a_column_of_numbers_are_read_alike_by_every_engine():
    """What is written as a decimal number counts; everything else is unknown."""
    expected = [3.0, 3.0, 3.0, 3.0, -3.0, 3.0, 0.5, 1.0, *[None] * 10]
    table, term = pyarrow.table({"lon": SPELLINGS}), parse_mapping("lon + 0")
    for name in ENGINES.keys() - {"a query for warehouses"}:
        assert [None if pd.isna(v) else known(v) for v in ENGINES[name](table, term)] == expected, name


@pytest.mark.parametrize("engine", sorted(ENGINES.keys() - {"a query for warehouses"}))
def test_truth_values_are_read_in_their_common_spellings(engine):
    words = pyarrow.table({"flag": ["true", "No", " YES", "0", "1", "false", "maybe", "", None]})
    numbers = pyarrow.table({"flag": pyarrow.array([1.0, 0.0, 2.0, math.nan, None])})
    term = parse_mapping("case when flag then 1 else 0 end")
    assert [None if pd.isna(v) else v for v in ENGINES[engine](words, term)] == [1, 0, 1, 0, 1, 0, *[None] * 3]
    assert [None if pd.isna(v) else v for v in ENGINES[engine](numbers, term)] == [1, 0, None, None, None]


def test_integer_division_and_floors_of_negative_numbers_are_those_of_real_numbers():
    table = pyarrow.table({"count": pyarrow.array([-7, -1, 0, 7], pyarrow.int8())})
    cases = {"count / 2": [-3.5, -0.5, 0, 3.5], "floor(count / 2)": [-4, -1, 0, 3], "mod(count, 4)": [-3, -1, 0, 3],
             "count % 4": [-3, -1, 0, 3], "round(count / 2)": [-4, -1, 0, 4],
"if(count in (0, 7), 1, 0)": [0, 0, 1, 1], "if(count between -1 and 0, 1, 0)": [0, 1, 1, 0],
             "count / (count - 7)": [0.5, 0.125, 0, None],
    }  # fmt: skip
    for text, expected in cases.items():
        for name, engine in ENGINES.items():
            assert [None if pd.isna(v) else v for v in engine(table, parse_mapping(text))] == expected, (
                name,
                text,
            )


# through read_log

PLACES = {
    "place_x": "floor(metres / 2.5)",
    "lit": "lux > 10",
    "mode": "case when speed > 0 then 'work' else 'rest' end",
}


def measured(rows):
    """Return rows of the lamp as sensors would have them, some of them out of range or missing."""
    rng = np.random.default_rng(3)
    found = []
    for row in rows:
        out = {name: row[name] for name in ("episode", "step", "action")}
        for before in ("", "next_") if "next_mode" in row else ("",):
            out[f"{before}metres"] = 2.5 * row[f"{before}place_x"] + rng.uniform(0, 2.4)
            out[f"{before}lux"] = 30.0 if row[f"{before}lit"] else 3.0
            out[f"{before}speed"] = 1.5 if row[f"{before}mode"] == "work" else 0.0
        name = rng.choice([name for name in out if name not in ("episode", "step", "action")])
        if rng.random() < 0.2:
            out[name] = rng.choice([None, np.nan, np.inf, -4.0, 1e300])
        found.append(out)
    return found


def by_hand(row, before):
    """Return the mapped values of a row, calculated here."""
    metres, lux, speed = (known(row[f"{before}{name}"]) for name in ("metres", "lux", "speed"))
    return {
        "place_x": None if metres is None else math.floor(metres / 2.5),
        "lit": None if lux is None else lux > 10,
        "mode": None if speed is None else "work" if speed > 0 else "rest",
    }


@pytest.mark.parametrize("form", ["transitions", "trajectories"])
@pytest.mark.parametrize("source", ["pandas", "Polars", "PyArrow", "Parquet", "CSV"])
def test_a_mapped_log_is_counted_as_a_slow_recount_of_its_mapped_rows(source, form, tmp_path):
    rows = measured(runs(LAMP, {"p": 0.6}, 40)[0][form])
    plain = [
        {
            **row,
            **by_hand(row, ""),
            **({f"next_{k}": v for k, v in by_hand(row, "next_").items()} if form == "transitions" else {}),
        }
        for row in rows
    ]
    counts, kinds = recount(plain, LAMP.graph, form)
    assert {"unknown state", "unreadable state", "matched"} <= {*kinds}
    frame = pd.DataFrame(rows)
    table = pyarrow.Table.from_pylist(rows)
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    log = {"pandas": frame, "Polars": polars.from_arrow(table), "PyArrow": table, "Parquet": tmp_path / "log.parquet",
           "CSV": tmp_path / "log.csv"}[source]  # fmt: skip
    read = read_log(LAMP, log, pl.LogFormat(states=PLACES, form=form), on_unmatched="report")
    assert np.array_equal(read.counts.counts, counts)
    assert {kind: n for kind, n in read.report.rows.items() if n} == kinds


@pytest.mark.parametrize("form", ["transitions", "trajectories"])
def test_the_printed_query_maps_states_as_read_log_does(form):
    table = pyarrow.Table.from_pylist(measured(runs(LAMP, {"p": 0.6}, 40)[0][form]))
    query = counts_query(LAMP, pl.LogFormat(states=PLACES, form=form), table="measured", dialect="duckdb")
    with duckdb.connect() as connection:
        connection.register("measured", table)
        counted = connection.sql(query).to_arrow_table()
    direct = read_log(LAMP, table, pl.LogFormat(states=PLACES, form=form), on_unmatched="report")
    assert read_log(LAMP, counted, on_unmatched="report").report.rows == direct.report.rows


def test_values_outside_of_bins_contradict_the_model_and_are_named():
    frame = pd.DataFrame({"m": [1.0, 5.0, 7.5, 99.0, None], "lit": False, "mode": "rest", "action": "rest",
                          "next_m": 1.0, "next_lit": False, "next_mode": "rest"})  # fmt: skip
    columns = {"place_x": "m", "next_place_x": "next_m"}
    log = read_log(
        LAMP, frame, pl.LogFormat(columns=columns, states={"place_x": [0, 2.5, 5, 7.5]}), on_unmatched="report"
    )
    assert str(log) == (
        "5 log rows: 1 matched, 4 rejected\n"
        "  unknown state: 3 rows; (place_x=2, lit=false, mode=rest) (2×), "
        "(place_x=above 7.5, lit=false, mode=rest) (1×); "
        "each value is known, but the model has no state with all of them\n"
        "  unreadable state: 1 row; "
        "(place_x=null, lit=false, mode=rest) 'rest' → (place_x=0, lit=false, mode=rest) (1×)"
    )
    assert log.report.contradicting == 3


def test_actions_may_be_mapped_too():
    rows, counts = runs(LAMP, {"p": 0.6}, 20)
    frame = pd.DataFrame(rows["transitions"])
    frame["thrust"] = np.where(frame.pop("action") == "go", 2.0, 0.0)
    log = read_log(LAMP, frame, pl.LogFormat(actions="case when thrust > 1 then 'go' else 'rest' end"))
    assert np.array_equal(log.counts.counts, counts)


def test_a_column_that_no_step_changes_may_stand_for_itself():
    rows, counts = runs(LAMP, {"p": 0.6}, 20)
    frame = pd.DataFrame(rows["transitions"]).assign(origin=100).drop(columns=["episode", "step"])
    frame["east"], frame["next_east"] = frame.pop("place_x") + 100, frame.pop("next_place_x") + 100
    states = {"place_x": "east - origin"}
    with pytest.raises(pl.DataError) as error:
        read_log(LAMP, frame, pl.LogFormat(states=states))
    assert str(error.value) == (
        "the log looks like transitions, but it lacks next_origin; its columns are lit, mode, action, "
        "next_lit, next_mode, origin, east, next_east: say which they are with columns={…}, or give form=…; the next "
        "state is made of next_origin (if a step never changes origin, say columns={'next_origin': 'origin'})"
    )
    log = read_log(LAMP, frame, pl.LogFormat(columns={"next_origin": "origin"}, states=states))
    assert np.array_equal(log.counts.counts, counts)


def test_columns_alone_and_bins_need_no_sqlglot(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    rows, counts = runs(LAMP, {"p": 0.6}, 5)
    log = read_log(
        LAMP,
        pd.DataFrame(rows["transitions"]),
        pl.LogFormat(states={"lit": "lit", "place_x": [0, 1, 2, 3, 4, 5]}, actions='"action"'),
    )
    assert log.counts.visits.sum() == counts.sum()
    with pytest.raises(ImportError):
        parse_mapping("lit + 1")


# misuse

FRAME = pd.DataFrame(runs(LAMP, {"p": 0.6}, 2)[0]["transitions"]).drop(columns=["episode", "step"])
TOO_LARGE = {
    "(" * 400 + "1" + ")" * 400: "the expression is nested too deeply",
    "1" + "+1" * 400: "the expression has more than 300 parts",
    "1" * 1001: "the expression has 1,001 characters; at most 1,000 are read",
}


def test_a_text_that_is_no_expression_is_refused_with_its_place():
    refused(
        "logs:expressions", lambda text: read_log(LAMP, FRAME, pl.LogFormat(states={"place_x": text})), pl.DataError
    )
    for text, message in TOO_LARGE.items():
        with pytest.raises(pl.DataError) as error:
            read_log(LAMP, FRAME, pl.LogFormat(states={"place_x": text}))
        assert str(error.value) == f"states={{'place_x': {text!r}}}: {message}"


def test_a_wrong_mapping_is_refused_with_its_reason():
    refused("logs:mappings", globals(), pl.DataError)


HOSTILE = st.lists(
    st.sampled_from([*"'\"`;-/*()\\ \n=,xX0\0´", "DROP", "--", "/*", "'; ", "1=1", "''"]), max_size=12
).map("".join)


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(HOSTILE)
def test_no_text_gets_into_a_query_but_as_a_value_or_a_name(text):
    """Whatever is written, the query has one statement without comments, and its texts are those of the expression."""
    import sqlglot

    try:
        term = parse_mapping(f"case when x = '{text}' then 1 else 0 end")
    except pl.DataError:
        return
    written = [found.replace("''", "'") for found in re.findall("'((?:[^']|'')*)'", term.sql)]
    for dialect in ("duckdb", "bigquery", "snowflake", "databricks", "redshift", "spark", "trino", "postgres"):
        query = sqlglot.parse_one(f"SELECT {mapped_sql(term, {}, is_warehouse=True)}", dialect="duckdb").sql(dialect)
        (statement,) = sqlglot.parse(query, dialect=dialect)
        assert not any(node.comments for node in statement.walk())
        texts = [node.this for node in statement.find_all(sqlglot.exp.Literal) if node.is_string]
        assert sorted({*texts}) == sorted({*written})

"""The one query that turns a log into counts: written for DuckDB, and put into the words of others by sqlglot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from plumdp.data.columns import (
    ACTION,
    COUNT,
    EPISODE,
    NEXT_EPISODE,
    NEXT_STEP,
    PLACE,
    SECOND_STEP,
    STEP,
    STEP_BEFORE,
    needed_columns,
    next_columns,
    state_columns,
)
from plumdp.data.trajectories import Form
from plumdp.errors import DataError
from plumdp.model.graph import Graph
from plumdp.model.parametric import ParametricMDP

Dialect: TypeAlias = Literal["bigquery", "snowflake", "spark", "trino", "postgres", "duckdb"]

_TABLE = "table_of_the_log"

_IN_RUNS = f'PARTITION BY "{EPISODE}" ORDER BY "{STEP}"'
_STEPS_AROUND = {STEP_BEFORE: f'lag("{STEP}")', NEXT_STEP: f'lead("{STEP}")', SECOND_STEP: f'lead("{STEP}", 2)'}
_PLACE_IN_RUN = f"""CASE
    WHEN "{EPISODE}" IS NULL OR "{STEP}" IS NULL THEN 'unplaced'
    WHEN "{STEP}" = "{STEP_BEFORE}" OR "{STEP}" = "{NEXT_STEP}" THEN 'duplicate'
    WHEN "{NEXT_STEP}" IS NULL THEN 'last'
    WHEN "{NEXT_STEP}" <> "{STEP}" + 1 OR "{SECOND_STEP}" = "{NEXT_STEP}" THEN 'gap'
    ELSE 'step' END"""

_AS_THEY_LIE = ""
_NEXT_PLACE = {NEXT_STEP: f'lead("{STEP}")', NEXT_EPISODE: f'lead("{EPISODE}")'}
_PLACE_IN_FILE = f"""CASE
    WHEN "{EPISODE}" IS NULL OR "{STEP}" IS NULL THEN 'disorder'
    WHEN "{NEXT_EPISODE}" IS NULL OR "{NEXT_EPISODE}" > "{EPISODE}" THEN 'last'
    WHEN "{NEXT_EPISODE}" < "{EPISODE}" THEN 'jump'
    WHEN "{NEXT_STEP}" = "{STEP}" + 1 THEN 'step'
    WHEN "{NEXT_STEP}" > "{STEP}" THEN 'gap'
    ELSE 'disorder' END"""


def counts_query(
    model: ParametricMDP, *, table: str, dialect: Dialect, form: Form, columns: Mapping[str, str] | None = None
) -> str:
    """Return the query that counts the log in a table of a warehouse or cluster.

    ``read_log`` reads its result, one row for all rows that are alike, as ``form="counts"``. ``columns`` maps plumdp's
    names of the columns to those of the table. Names are quoted, so that their case matters where the engine says so;
    Snowflake, which keeps a name in capitals unless it was quoted, is asked for capitals unless ``columns`` has it.

    >>> from plumdp import case_study
    >>> model, columns = case_study("betting:25").model, {"money": "purse"}
    >>> print(counts_query(model, table="lake.bets", dialect="bigquery", form="transitions", columns=columns))
    WITH log_rows AS (
      SELECT
        `purse` AS `money`,
        `state_step` AS `state_step`,
        `action` AS `action`,
        `next_money` AS `next_money`,
        `next_step` AS `next_step`
      FROM lake.bets
    )
    SELECT
      `money`,
      `state_step`,
      `action`,
      `next_money`,
      `next_step`,
      COUNT(*) AS `n`
    FROM log_rows
    GROUP BY
      `money`,
      `state_step`,
      `action`,
      `next_money`,
      `next_step`
    """
    import sqlglot
    from sqlglot import exp

    for name, value, kinds in (("dialect", dialect, Dialect), ("form", form, Form)):
        if value not in get_args(kinds):
            raise DataError(f"{name}={value!r}: choose one of {', '.join(map(repr, get_args(kinds)))}")
    names = needed_columns(model.graph, form)
    for name in columns or {}:
        if name not in names:
            raise DataError(f"columns={{{name!r}: …}}: a log of {form} has no such column, only {', '.join(names)}")
    default = {name: name.upper() if dialect == "snowflake" else name for name in names}
    there = {name: quoted(column) for name, column in (default | dict(columns or {})).items()}
    query = sqlglot.parse_one(count_sql(model.graph, form, there, _TABLE), dialect="duckdb")
    for term in list(query.find_all(exp.Ordered)):
        term.replace(term.this)  # where missing steps are put makes no difference, so no engine need be told
    log = next(node for node in query.find_all(exp.Table) if node.name == _TABLE)
    log.replace(_table_name(table, dialect))
    text: str = query.sql(dialect=dialect, pretty=True)
    return text


def _table_name(table: str, dialect: Dialect) -> Any:
    """Return the name of a table; anything else that could stand there is refused."""
    import sqlglot
    from sqlglot import exp

    try:
        named = sqlglot.parse_one(table, into=exp.Table, dialect=dialect)
        parts = [part for part in named.parts if isinstance(part, exp.Identifier) and part.name]
        said = {key for key, value in named.args.items() if value} | {
            "comment" for node in named.walk() if node.comments
        }
    except (sqlglot.errors.SqlglotError, AttributeError, ValueError, TypeError):
        parts, said = [], set()
    if not parts or not said <= {"this", "db", "catalog"} or len(parts) != len(said):
        raise DataError(
            f"table={table!r}: this is not the name of a table; write it as lake.log, with quotes if need be"
        )
    return named


def count_sql(graph: Graph, form: Form, columns: Mapping[str, str], table: str) -> str:
    """Return the query in DuckDB's words; ``columns`` has an expression for each column that the form needs."""
    if form == "transitions":
        names = [*state_columns(graph, form), ACTION, *next_columns(graph)]
        rows = {key: columns[name] for key, name in zip(keys(graph), names, strict=True)}
        return f"WITH log_rows AS ({_select(rows, table)})\n{_count(keys(graph), 'log_rows')}"
    return _count_trajectories(graph, columns, table, _IN_RUNS, _STEPS_AROUND, _PLACE_IN_RUN)


def count_ordered_sql(graph: Graph, columns: Mapping[str, str], table: str) -> str:
    """Return a query that counts trajectories in one pass over the rows as they lie, in next to no memory.

    It is right if ``order_sql`` finds no 'disorder', and if no episode starts for a second time after a 'jump': the end
    of an episode before one that does not come later in the order of episodes.
    """
    place = _PLACE_IN_FILE.replace("'jump'", "'last'")
    return _count_trajectories(graph, columns, table, _AS_THEY_LIE, _NEXT_PLACE, place)


def order_sql(columns: Mapping[str, str], table: str) -> str:
    """Return a query that only counts the places of the rows as they lie."""
    rows = {name: columns[name] for name in (EPISODE, STEP)}
    over = {name: f"{function} OVER ({_AS_THEY_LIE})" for name, function in _NEXT_PLACE.items()}
    placed = _select({PLACE: _PLACE_IN_FILE}, f"({_select({'*': '*'} | over, f'({_select(rows, table)})')})")
    return _count([PLACE], f"({placed})")


def keys(graph: Graph) -> list[str]:
    """Return the columns that tell one transition from another."""
    return [*state_columns(graph), ACTION, *next_columns(graph)]


def quoted(name: str) -> str:
    """Return a name as DuckDB writes it between quotes."""
    return '"' + name.replace('"', '""') + '"'


def _count_trajectories(
    graph: Graph, columns: Mapping[str, str], table: str, window: str, others: Mapping[str, str], place: str
) -> str:
    state = state_columns(graph)
    names = [EPISODE, STEP, *state_columns(graph, "trajectories"), ACTION]
    rows = {key: columns[name] for key, name in zip([EPISODE, STEP, *state, ACTION], names, strict=True)}
    after = {name: f"lead({quoted(key)})" for name, key in zip(next_columns(graph), state, strict=True)}
    over = {name: f"{function} OVER ({window})" for name, function in {**after, **others}.items()}
    placed = {name: quoted(name) for name in keys(graph)} | {PLACE: place}
    moves = {name: quoted(name) for name in placed}
    moves |= {name: f"CASE WHEN {quoted(PLACE)} = 'step' THEN {quoted(name)} END" for name in after}
    return (
        f"WITH log_rows AS ({_select(rows, table)}),\n"
        f"rows_with_next AS ({_select({'*': '*'} | over, 'log_rows')}),\n"
        f"rows_with_place AS ({_select(placed, 'rows_with_next')}),\n"
        f"moves AS ({_select(moves, 'rows_with_place')})\n"
        f"{_count([*moves], 'moves')}"
    )


def _select(columns: Mapping[str, str], table: str) -> str:
    parts = ("*" if name == "*" else f"{expression} AS {quoted(name)}" for name, expression in columns.items())
    return f"SELECT {', '.join(parts)} FROM {table}"


def _count(columns: Sequence[str], table: str) -> str:
    names = ", ".join(map(quoted, columns))
    return f"SELECT {names}, count(*) AS {quoted(COUNT)} FROM {table} GROUP BY {names}"

"""Looks at the rows of a log by SQL: profiles of columns, values, and what follows on what in a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from plumdp.data.columns import quoted
from plumdp.data.logs import files_of, open_log
from plumdp.data.mapping_language import MappingNode, parse_mapping
from plumdp.data.mapping_sql import NUMBERS, is_time, mapped_sql
from plumdp.data.raw_logs import RawLog
from plumdp.starting.roles import ColumnProfile

_SAMPLE = 20_000  # rows by which it is judged how texts are written
_TABLE = "looked_at"
_END = "the end of the run"


@dataclass(frozen=True, eq=False)
class LoadedRows:
    """Rows of a log in a table of DuckDB, and its columns."""

    connection: Any
    table: str
    types: Mapping[str, str]  # of columns
    n_copies: int = 0  # of rows that were left out

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query in which {rows} is the table."""
        found: list[tuple[Any, ...]] = self.connection.execute(query.replace("{rows}", self.table)).fetchall()
        return found

    def profiles(self, columns: Sequence[str]) -> list[ColumnProfile]:
        """Return the statistics of columns from one scan."""
        if not columns:
            return []
        parts = ", ".join(part for name in columns for part in _aggregates(quoted(name), self.types[name]))
        ((n, *numbers),) = self.rows(f"SELECT count(*), {parts} FROM {{rows}}")
        size = len(numbers) // len(columns)
        each = (numbers[i * size : (i + 1) * size] for i in range(len(columns)))
        return [ColumnProfile(name, n, *map(int, found)) for name, found in zip(columns, each, strict=True)]

    def values(self, term: str, most: int = 1000) -> dict[str, int]:
        """Return the most frequent values of a term as texts, and how often each occurs."""
        value = f"trim(CAST({term} AS VARCHAR))"
        query = f"SELECT {value} AS value, count(*) AS n FROM {{rows}} WHERE {value} <> '' GROUP BY value"
        return {value: int(n) for value, n in self.rows(f"{query} ORDER BY n DESC, value LIMIT {most}")}

    def sql(self, variable: str, term: str | Sequence[float]) -> str:
        """Return a variable as SQL, from an expression of the mapping language or edges of bins."""
        column = MappingNode("column", value=variable, kind="number")
        bins = MappingNode("bins", (column,), tuple(term), "number") if not isinstance(term, str) else None
        return f"({mapped_sql(bins or parse_mapping(str(term)), self.types)})"

    def number(self, what: str) -> float:
        """Return a number that is selected from all rows."""
        ((found,),) = self.rows(f"SELECT {what} FROM {{rows}}")
        return float(found or 0)


def _aggregates(column: str, kind: str) -> Iterator[str]:
    text = f"trim(CAST({column} AS VARCHAR))"
    present, number, moment = f"nullif({text}, '')", f"TRY_CAST({text} AS DOUBLE)", f"TRY_CAST({text} AS TIMESTAMP)"
    if kind in NUMBERS:  # numbers and dates as texts and back would take most of the time
        present, number, moment = column, f"CAST({column} AS DOUBLE)", "NULL"
    elif is_time(kind):
        present, number, moment = column, "NULL::DOUBLE", column
    yield f"count({present})"
    yield f"approx_count_distinct({present})"
    yield f"count(CASE WHEN isfinite({number}) THEN 1 END)"
    yield f"count(CASE WHEN isfinite({number}) AND {number} = floor({number}) THEN 1 END)"
    yield f"count({moment})"


@contextmanager
def look_at(raw: RawLog, *, keep: bool = False, once: bool = False) -> Iterator[LoadedRows]:
    """Give the rows of a log; ``keep``: after they are read once; ``once``: without copies of rows."""
    with open_log(*files_of(raw)) as log:
        log = log.keep(log.columns, is_read_again=False)
        found = LoadedRows(log.connection, log.table, log.types)
        if keep:
            log.run(_TABLE, f"SELECT {'DISTINCT ' * once}* FROM {log.table}")
            kept = replace(found, table=_TABLE)
            found = replace(kept, n_copies=round(found.number("count(*)") - kept.number("count(*)")) if once else 0)
        yield found


def sample(raw: RawLog) -> dict[str, list[str]]:
    """Return values of columns in the first rows, each once."""
    with look_at(raw) as look:
        names = ", ".join(f"list(DISTINCT CAST({quoted(name)} AS VARCHAR))" for name in look.types)
        few = f"(SELECT * FROM {look.table} LIMIT {_SAMPLE})"
        ((*lists,),) = look.rows(f"SELECT {names} FROM {few}")
    kept = (sorted(value for value in values or [] if value is not None) for values in lists)
    return dict(zip(look.types, kept, strict=True))


def pairs_of(look: LoadedRows, term: str, order: str) -> dict[tuple[str, str], int]:
    """Return the number of times that each value of a term was followed by each other one, or by the run's end."""
    value = f"trim(CAST({term} AS VARCHAR))"
    after = f"CASE WHEN lead(1) OVER ({order}) IS NULL THEN '{_END}' ELSE lead({value}) OVER ({order}) END"
    both = f"SELECT {value} AS one, {after} AS other FROM {{rows}}"
    query = f"SELECT one, other, count(*) FROM ({both}) WHERE one <> '' AND other <> '' GROUP BY ALL"
    return {(one, other): int(n) for one, other, n in look.rows(query)}


def in_runs(run: str, step: str) -> str:
    """Return the window of a run in its order."""
    text = quoted(step)
    number = f"TRY_CAST({text} AS DOUBLE), TRY_CAST({text} AS TIMESTAMP)"
    return f"PARTITION BY {quoted(run)} ORDER BY {number}"

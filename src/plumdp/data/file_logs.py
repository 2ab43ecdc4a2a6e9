"""Logs in files, or in tables that DuckDB reads as they are: counted there, within a limit of memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plumdp.data.columns import COUNT, EPISODE, PLACE, STEP, BrokenEpisode, LogForm
from plumdp.data.sql import count_ordered_sql, count_sql, quoted
from plumdp.data.tables import Block, Progress, pages, watched
from plumdp.errors import DataError
from plumdp.model.graph import Graph

_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_FRACTIONAL = ("FLOAT", "DOUBLE", "DECIMAL", "VARCHAR")
_COUNTED = "counted"  # the table with the counts of one part
_ROW_BYTES, _COLUMN_BYTES = 64, 24  # what DuckDB needs to put rows in order, measured and rounded up


@dataclass(frozen=True, eq=False)
class FileLog:
    """A log that DuckDB reads: all files as one table, or each as its own if no run goes on in another file."""

    connection: Any
    tables: Sequence[str]  # what to select from
    types: Mapping[str, str]  # column → type
    memory_limit: float  # bytes
    partitions: int | None  # of the runs in a table; None: none if the rows are in order, else as few as need be
    progress: Progress | None

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [*self.types]

    def count(self, graph: Graph, form: LogForm, columns: Mapping[str, str]) -> Iterator[Block]:
        """Yield blocks of different rows and how often each occurs; of trajectories, with their place in the run."""
        here = {name: self._expression(name, column) for name, column in columns.items()}
        for number, table in enumerate(self.tables):
            share = (number / len(self.tables), (number + 1) / len(self.tables))
            if form == "trajectories":
                yield from self._count_trajectories(graph, here, table, share)
                continue
            given = ", ".join(f"{expression} AS {quoted(name)}" for name, expression in here.items())
            counted = count_sql(graph, form, here, table) if form == "transitions" else f"SELECT {given} FROM {table}"
            self._run(counted, share)
            yield from pages(self.connection, _COUNTED)

    def broken_episodes(self, columns: Mapping[str, str], n: int) -> list[BrokenEpisode]:
        """Return a few episodes that lack steps or have a step twice, those with the most of them."""
        episode, step = (self._expression(name, columns[name]) for name in (EPISODE, STEP))
        found = []
        for table in self.tables:
            rows = f"SELECT {episode} AS episode, {step} AS step FROM {table}"
            spans = (
                "SELECT episode, count(*) AS n, count(DISTINCT step) AS steps, min(step) AS first, max(step) AS last "
                f"FROM ({rows}) WHERE episode IS NOT NULL AND step IS NOT NULL GROUP BY episode"
            )
            missing = "abs(last - first + 1 - steps) + n - steps"
            query = f"SELECT * FROM ({spans}) WHERE {missing} > 0 ORDER BY {missing} DESC, episode LIMIT {n}"
            found += [BrokenEpisode(*row) for row in self.connection.execute(query).fetchall()]
        return found[:n]

    def _count_trajectories(
        self, graph: Graph, columns: Mapping[str, str], table: str, share: tuple[float, float]
    ) -> Iterator[Block]:
        """Try the rows as they lie first, as most logs are in order; else put the runs in order, a part at a time."""
        start, end = share
        n_parts = self.partitions
        if n_parts is None:
            self._run(count_ordered_sql(graph, columns, table), share)
            if self._is_ordered(columns[EPISODE], table):
                yield from pages(self.connection, _COUNTED)
                return
            n_parts = self._n_partitions(graph)
        for part in range(n_parts):
            rows = f"(SELECT * FROM {table} WHERE hash({columns[EPISODE]}) % {n_parts} = {part})"
            between = (start + (end - start) * part / n_parts, start + (end - start) * (part + 1) / n_parts)
            self._run(count_sql(graph, "trajectories", columns, rows if n_parts > 1 else table), between)
            yield from pages(self.connection, _COUNTED)

    def _run(self, query: str, share: tuple[float, float]) -> None:
        with watched(self.connection, self.progress, *share):
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {_COUNTED} AS {query}")

    def _is_ordered(self, episode: str, table: str) -> bool:
        """Return whether what was counted as the rows lie is right: each run in one piece, its steps ascending."""
        execute = self.connection.execute
        n = dict(execute(f"SELECT {quoted(PLACE)}, sum({quoted(COUNT)}) FROM {_COUNTED} GROUP BY 1").fetchall())
        if "disorder" in n:
            return False
        if "jump" in n:
            ((n_episodes,),) = execute(f"SELECT count(DISTINCT {episode}) FROM {table}").fetchall()
            if n["jump"] + n.get("last", 0) != n_episodes:
                return False
            execute(f"UPDATE {_COUNTED} SET {quoted(PLACE)} = 'last' WHERE {quoted(PLACE)} = 'jump'")
        return True

    def _n_partitions(self, graph: Graph) -> int:
        """Return how many parts of the rows just counted keep to half the memory each."""
        ((n_rows,),) = self.connection.execute(f"SELECT sum({quoted(COUNT)}) FROM {_COUNTED}").fetchall()
        row_bytes = _ROW_BYTES + _COLUMN_BYTES * (2 * len(graph.states) + 1)
        return max(1, math.ceil(2 * int(n_rows) * row_bytes / self.memory_limit))

    def _expression(self, name: str, column: str) -> str:
        """Return a column as SQL; a step as a number, null if it is none."""
        if name != STEP:
            return quoted(column)
        kind = self.types[column].partition("(")[0]
        if kind in _WHOLE:
            return f"TRY_CAST({quoted(column)} AS BIGINT)"
        if kind in _FRACTIONAL:
            number = f"TRY_CAST({quoted(column)} AS DOUBLE)"
            return f"CASE WHEN isfinite({number}) THEN {number} END"
        raise DataError(not_a_number(column, kind))


def not_a_number(column: str, kind: str) -> str:
    """Return what is wrong with a column of steps that has no numbers."""
    return (
        f"column {column} has the type {kind}, but steps are whole numbers that grow by 1; "
        "number the rows of each episode in their order"
    )

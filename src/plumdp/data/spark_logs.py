"""Logs in data frames of Spark, which counts them itself: the same queries as elsewhere, in its words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np

from plumdp.data.columns import EPISODE, N_RUNS, PLACE, STEP, LogForm, Source, quoted
from plumdp.data.duckdb_tables import Block, columns_of, connect
from plumdp.data.example_sql import any_repeated_sql, broken_episodes_sql, repeated_steps_sql
from plumdp.data.log_pilots import Moments, SharedRun, no_order, not_numbered
from plumdp.data.mapping_sql import IN_ORDER, columns_sql
from plumdp.data.report import BrokenEpisode, RepeatedStep
from plumdp.data.sql import count_sql, translated
from plumdp.model.graph import Graph

_TYPES = {"STRING": "VARCHAR", "INT": "INTEGER"}  # that DuckDB calls otherwise


@dataclass(frozen=True, eq=False)
class SparkLog:
    """A log in a data frame of Spark; only counts, and examples of rows that do not fit, leave it."""

    frame: Any
    view: str  # its name for the time being

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [*self.frame.columns]

    def keep(self, columns: Sequence[str], *, is_read_again: bool) -> SparkLog:
        """Return the log as it is: Spark reads no other columns than a query needs."""
        return self

    def count(
        self, graph: Graph, form: LogForm, columns: Mapping[str, Source], moments: Moments | None = None
    ) -> Iterator[Block]:
        """Yield the different rows and how often each occurs, with their place in the run where that matters.

        With ``moments``, also how often each is in the first runs.
        """
        here = self._expressions(form, columns)
        if form == "counts":
            given = ", ".join(f"{expression} AS {quoted(name)}" for name, expression in here.items())
            yield self._run(f"SELECT {given} FROM {self.view}")
            return
        n_runs = None
        if moments is not None and moments.sizes:
            n_runs, here[EPISODE] = N_RUNS, quoted(moments.column)
        once = form == "transitions" and STEP in columns and bool(self._rows(any_repeated_sql(here, self.view)))
        block = self._run(count_sql(graph, form, here, self.view, n_runs=n_runs, once=once))
        if form == "trajectories" and "duplicate" in block[PLACE]:  # which may be copies of a row
            block = self._run(count_sql(graph, form, here, self.view, n_runs=n_runs, once=True))
        yield block

    def first_rows(self, form: LogForm, columns: Mapping[str, Source], offenders: Sequence[Any]) -> Sequence[str]:
        """Return nothing for each: the rows of Spark have no numbers."""
        return [""] * len(offenders)

    def find_runs(self, column: str, *, in_order: bool) -> tuple[int, bool]:
        """Return how many runs there are, and whether each row names its run; ``in_order`` refuses unordered names."""
        kind, run = self._types[column], quoted(column)
        if in_order and not kind.startswith(IN_ORDER):
            raise not_numbered(column, kind)
        ((named, n, n_named),) = self._rows(
            f"SELECT count(DISTINCT {run}) AS named, count(*) AS n, count({run}) AS n_named FROM {self.view}"
        )
        return named, n == n_named

    def shared_runs(self, column: str, step: Source | None) -> SharedRun | None:
        """Return nothing: a data frame has no files."""
        return None

    def has_rows(self, file: str) -> bool:
        """Return that a file has no rows: a data frame has no files."""
        return False

    def count_first_rows(self, graph: Graph, form: LogForm, columns: Mapping[str, Source], n: int) -> Iterator[Block]:
        """Refuse to look for first rows: there are none."""
        raise no_order("Spark")

    def repeated_steps(self, form: LogForm, columns: Mapping[str, Source], n: int) -> list[RepeatedStep]:
        """Return a few steps of which there are several rows that are not alike."""
        query = repeated_steps_sql(self._expressions(form, columns), self.view, n)
        return [RepeatedStep(*row) for row in self._rows(query)]

    def broken_episodes(self, columns: Mapping[str, Source], n: int) -> list[BrokenEpisode]:
        """Return a few episodes that lack steps, those that lack most."""
        query = broken_episodes_sql(self._expressions("trajectories", columns), self.view, n)
        return [BrokenEpisode(*row) for row in self._rows(query)]

    @property
    def _types(self) -> dict[str, str]:
        """The types of the columns, as DuckDB calls them."""
        return {name: _TYPES.get(kind.upper(), kind.upper()) for name, kind in self.frame.dtypes}

    def _expressions(self, form: LogForm, columns: Mapping[str, Source]) -> dict[str, str]:
        return columns_sql(columns, self._types, form, is_warehouse=True)

    def _ask(self, query: str) -> Any:
        return self.frame.sparkSession.sql(translated(query, "spark"))

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._ask(query).collect()]

    def _run(self, query: str) -> Block:
        result = self._ask(query)
        if hasattr(result, "toArrow"):  # from Spark 4 on
            with connect() as connection:
                connection.register("result", result.toArrow())
                return columns_of(connection.execute("SELECT * FROM result"))
        names, rows = result.columns, result.collect()
        values = np.empty((len(rows), len(names)), dtype=np.object_)
        for number, row in enumerate(rows):
            values[number] = row
        return dict(zip(names, values.T, strict=True))


def is_spark(source: Any) -> bool:
    """Return whether this is a data frame of Spark."""
    return hasattr(type(source), "createOrReplaceTempView")


@contextmanager
def open_spark(frame: Any) -> Iterator[SparkLog]:
    """Give the log in a data frame of Spark, which has a name in its session meanwhile."""
    view = f"plumdp_{uuid4().hex}"
    frame.createOrReplaceTempView(view)
    try:
        yield SparkLog(frame, view)
    finally:
        frame.sparkSession.catalog.dropTempView(view)

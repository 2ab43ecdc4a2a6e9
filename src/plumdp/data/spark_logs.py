"""Data frames of Spark, which runs the queries of a log itself: in its own words, on a view that is there meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np

from plumdp.data.duckdb_tables import Block, columns_of, connect
from plumdp.data.sql import translated

SPARK = "Spark"
_TYPES = {"STRING": "VARCHAR", "INT": "INTEGER"}  # that DuckDB calls otherwise


@dataclass(frozen=True, eq=False)
class _Result:
    """What a query of Spark gives, handed over as DuckDB does."""

    frame: Any

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows."""
        return [tuple(row) for row in self.frame.collect()]

    def fetchnumpy(self) -> Block:
        """Return the columns."""
        if hasattr(self.frame, "toArrow"):  # from Spark 4 on
            with connect() as connection:
                connection.register("result", self.frame.toArrow())
                return columns_of(connection.execute("SELECT * FROM result"))
        rows = self.fetchall()
        columns = enumerate(self.frame.columns)
        return {name: np.fromiter((row[i] for row in rows), np.object_, len(rows)) for i, name in columns}


@dataclass(frozen=True, eq=False)
class _Session:
    """A session of Spark that takes queries in DuckDB's words."""

    session: Any

    def execute(self, query: str) -> _Result:
        """Return what a query gives, before it is calculated."""
        return _Result(self.session.sql(translated(query, "spark")))


def is_spark(source: Any) -> bool:
    """Return whether this is a data frame of Spark."""
    return hasattr(type(source), "createOrReplaceTempView")


@contextmanager
def open_spark(frame: Any) -> Iterator[tuple[_Session, str, dict[str, str]]]:
    """Give a connection to Spark, and the table that a data frame is there meanwhile, with the types of its columns."""
    view = f"plumdp_{uuid4().hex}"
    types = {name: _TYPES.get(kind.upper(), kind.upper()) for name, kind in frame.dtypes}
    frame.createOrReplaceTempView(view)
    try:
        yield _Session(frame.sparkSession), view, types
    finally:
        frame.sparkSession.catalog.dropTempView(view)

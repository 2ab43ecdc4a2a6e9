"""Data frames as tables: of pandas, Polars, PyArrow and DuckDB, which DuckDB reads where they are, and of Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np

from plumdp.base.errors import DataError
from plumdp.data.duckdb_engine import Block, columns_of, connect
from plumdp.data.names import quoted
from plumdp.data.sql import translated

FRAME = "frame"  # the table


@dataclass(frozen=True, eq=False)
class _Stream:
    """A frame that hands itself over as Arrow each time it is read; DuckDB would ask PyArrow to do it."""

    frame: Any

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.frame.__arrow_c_stream__(requested_schema)


def frame_columns(source: Any) -> list[str]:
    """Return the names of the columns of a data frame; anything else is refused, and names that are alike."""
    kind = type(source)
    if _is_lazy(kind):
        names = source.collect_schema().names()
    elif hasattr(kind, "column_names"):
        names = source.column_names
    elif hasattr(kind, "columns") and (hasattr(kind, "__len__") or not has_order(source)):  # not a stream, read once
        names = source.columns
    else:
        raise DataError(
            f"a log of type {kind.__name__} cannot be read; give a path, a pattern, a list of paths, "
            "or a data frame of pandas, Polars, PyArrow, PySpark or DuckDB"
        )
    names = [str(name) for name in names]
    times = Counter(name.casefold() for name in names)
    alike = [name for name in names if times[name.casefold()] > 1]
    if alike:
        raise DataError(f"the columns {', '.join(alike)} have the same name but for capitals; rename them")
    return names


def stream_of(source: Any) -> Any:
    """Return the rows of what hands them over once, in batches as Arrow; nothing of a data frame or of paths.

    Readers of record batches, datasets and scanners of PyArrow, and tables and scans of Delta Lake and Iceberg do so.
    """
    kind = type(source)
    if hasattr(kind, "columns") or hasattr(kind, "column_names") or _is_lazy(kind):
        return None
    for step in ("to_pyarrow_dataset", "scan", "scanner", "to_arrow_batch_reader", "to_reader"):
        if step != "scan" or hasattr(type(source), "current_snapshot"):  # of a table of Iceberg
            source = getattr(source, step)() if hasattr(type(source), step) else source
    return source if hasattr(type(source), "__arrow_c_stream__") else None


def register_frame(connection: Any, source: Any, columns: Sequence[str]) -> None:
    """Make a data frame the table ``FRAME`` of a connection; what is calculated only now has these columns alone."""
    kind = type(source)
    if _is_lazy(kind):
        source = source.select(columns).collect()  # once: another time, its rows may be in another order
    elif not has_order(source):
        source = source.project(", ".join(map(quoted, columns)))
    is_known = hasattr(kind, "iloc") or hasattr(kind, "column_names")  # pandas and PyArrow
    hands_over = hasattr(type(source), "__arrow_c_stream__") and not is_known
    connection.register(FRAME, _Stream(source) if hands_over else source)


def has_order(source: Any) -> bool:
    """Return whether the rows of a data frame are always read in one order; those of a table of DuckDB need not be."""
    return not hasattr(type(source), "fetchnumpy")


def _is_lazy(kind: type) -> bool:
    return hasattr(kind, "collect_schema") and hasattr(kind, "collect")


SPARK = "Spark"
_TYPES = {"STRING": "VARCHAR", "INT": "INTEGER"}  # that DuckDB calls otherwise


@dataclass(frozen=True, eq=False)
class _Result:
    """The result of a Spark query, handed over as DuckDB does."""

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
        """Return the relation of a query, before it is calculated."""
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

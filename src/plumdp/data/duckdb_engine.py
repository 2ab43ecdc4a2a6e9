"""The only importer of DuckDB: connections, results in pages of columns, and Parquet written block by block."""

from __future__ import annotations

import atexit
import glob
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.edge import replacing
from plumdp.base.errors import DataError
from plumdp.base.threads import n_threads
from plumdp.data.duckdb_errors import DAMAGED, in_our_words
from plumdp.data.names import literal, quoted

Block: TypeAlias = dict[str, npt.NDArray[Any]]
"""Columns of equal length. Nothing is masked in an array of numbers, and None in an array of Python objects."""

MEMORY = 1e9  # bytes

_WRITING = 3e8  # bytes of memory for a file that is written
_PAGE = 1 << 18  # rows taken out of DuckDB at once
_PARQUET = b"PAR1"  # the first bytes of a file


@contextmanager
def connect(memory_limit: float = MEMORY) -> Iterator[Any]:
    """Give a connection that keeps to so many bytes of memory, puts the rest on disk, and raises our errors.

    It uses as many threads as ``n_threads`` says.
    """
    import duckdb

    try:
        with _database(os.getpid(), int(memory_limit) // 1000, n_threads()).cursor() as connection:
            connection.execute("SET pandas_analyze_sample = 0")  # Python objects are read as text, of whatever types
            with suppress(duckdb.Error):  # a DuckDB without time zones has none
                connection.execute("SET TimeZone = 'UTC'")
            _watch(connection)
            yield connection
    except duckdb.Error as error:
        raise in_our_words(str(error)) from None
    except RuntimeError as error:
        if str(error) == "Query interrupted":  # by Ctrl-C
            raise KeyboardInterrupt from None
        raise


@cache
def _database(process: int, kilobytes: int, threads: int) -> Any:
    """Return the database that connections of a process are made from, as a new one takes tens of milliseconds.

    It keeps nothing: tables are temporary, and contents of files are not cached, since files may change. A process that
    was forked has none of its parent's threads, and makes its own.
    """
    import duckdb

    folder = tempfile.mkdtemp(prefix="plumdp-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    database = duckdb.connect(config={"memory_limit": f"{kilobytes}KB", "temp_directory": folder, "threads": threads})
    with suppress(duckdb.Error):  # an older DuckDB has no such cache
        database.execute("SET enable_external_file_cache = false")
    return database


def _watch(connection: Any) -> None:
    """Let a connection measure the progress of its queries; in a notebook without widgets DuckDB refuses to."""
    import duckdb

    with suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = true")
        connection.execute("SET enable_progress_bar_print = false")


def column_types(connection: Any, table: str) -> dict[str, str]:
    """Return the columns of a table and their types."""
    return {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()}


def pages(connection: Any, table: str, columns: Mapping[str, str] | None = None) -> Iterator[Block]:
    """Yield the rows of a table in the connection's own memory, as many at once as fit well."""
    ((last,),) = connection.execute(f"SELECT coalesce(max(rowid), -1) FROM {table}").fetchall()
    told = (
        "*"
        if columns is None
        else ", ".join("*" if name == "*" else f"{each} AS {quoted(name)}" for name, each in columns.items())
    )
    for start in range(0, last + 1, _PAGE):
        page = f"SELECT {told} FROM {table} WHERE rowid >= {start} AND rowid < {start + _PAGE}"
        yield columns_of(connection.execute(page))


def columns_of(result: Any) -> Block:
    """Return the columns of a whole result of DuckDB."""
    return {name: _column(values) for name, values in result.fetchnumpy().items()}


def _column(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype == np.object_ and np.ma.isMaskedArray(values):
        plain = np.array(np.ma.getdata(values))
        plain[np.ma.getmaskarray(values)] = None  # which np.ma.filled would not put there, but a question mark
        return plain
    return values


def metadata_of(path: str | Path) -> dict[str, str]:
    """Return the words beside the columns of a Parquet file, none of another kind of file; a damaged one is refused."""
    file = literal(glob.escape(str(path)))
    try:
        with connect() as connection:
            entries = connection.execute(f"SELECT key, value FROM parquet_kv_metadata({file})").fetchall()
        return {key.decode(): value.decode() for key, value in entries}
    except (DataError, UnicodeError):
        with Path(path).open("rb") as start:
            if start.read(len(_PARQUET)) == _PARQUET:
                raise DataError(DAMAGED) from None
        return {}


def write_parquet(path: str | Path, blocks: Iterable[Block], *, metadata: Mapping[str, str] | None = None) -> None:
    """Write blocks of columns to one Parquet file, whatever their number: they wait on disk for the last one.

    Arrays of numbers may be masked; arrays of Python objects are text, or None. Both are null in the file.
    """
    with connect(_WRITING) as connection:
        table = ""
        for block in blocks:
            connection.register("block", _plain_columns(block))
            table, verb = "written", f"INSERT INTO {table} BY NAME" if table else "CREATE TEMP TABLE written AS"
            connection.execute(f"{verb} SELECT {', '.join(map(_selected, block, block.values()))} FROM block")
            connection.unregister("block")
        if not table:
            raise DataError(f"{path}: there is no block to write, not even an empty one")
        extra = ", ".join(f"{literal(key)}: {literal(value)}" for key, value in (metadata or {}).items())
        options = "FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd" + (
            f", KV_METADATA {{{extra}}}" if extra else ""
        )
        with replacing(path) as fresh:
            connection.execute(f"COPY written TO {literal(str(fresh))} ({options})")


def _plain_columns(block: Block) -> Block:
    """Return the columns with their masks as columns of their own: not every DuckDB looks at masks."""
    columns = {
        name: np.asarray(values, dtype=np.object_ if values.dtype.kind == "U" else None)
        for name, values in block.items()
    }
    masks = {_mask(name): np.ma.getmaskarray(values) for name, values in block.items() if np.ma.isMaskedArray(values)}
    return columns | masks


def _selected(name: str, values: npt.NDArray[Any]) -> str:
    """Return the expression of a column in the table of a block."""
    column = quoted(name) + ("::VARCHAR" if values.dtype.kind in "OU" else "")
    return (
        f"CASE WHEN NOT {quoted(_mask(name))} THEN {column} END AS {quoted(name)}"
        if np.ma.isMaskedArray(values)
        else f"{column} AS {quoted(name)}"
    )


def _mask(name: str) -> str:
    return f"mask of {name}"

"""Writes the rows of a log that were rejected to a file: as the log has them, with the reason, the file and the row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plumdp.base.errors import DataError, Option
from plumdp.data.columns import PLACE_OF_ROW, quoted
from plumdp.data.duckdb_tables import column_types, literal, pages
from plumdp.data.ingestion import TransitionCounter
from plumdp.data.report import KINDS, REJECTED
from plumdp.data.sql import Every
from plumdp.data.steps import LogSteps

_WRITERS = {".csv": "FORMAT csv, HEADER", ".parquet": "FORMAT parquet, COMPRESSION zstd"}
_EACH, _PLACES = "each_row", "rejected"  # the tables with all rows, and with the places of those that were rejected
_FILE, _ROW = "number of the file", "number of the row"
_IS_REJECTED = np.array([kind in REJECTED for kind in KINDS])


def require_rejected(path: str | Path | None, files: Sequence[str]) -> None:
    """Refuse a file for rejected rows whose name does not say what it is, or that is a file of the log."""
    if path is None:
        return
    if Path(path).suffix.lower() not in _WRITERS:
        raise DataError(Option("rejected", str(path)), f": the name must end in {' or '.join(_WRITERS)}")
    if any(Path(file).resolve() == Path(path).resolve() for file in files):
        raise DataError(Option("rejected", str(path)), ": this is a file of the log; name another one")
    if not Path(path).resolve().parent.is_dir():
        raise DataError(Option("rejected", str(path)), ": there is no such folder")


def write_rejected(path: str | Path, steps: LogSteps, tally: TransitionCounter, *, n: int) -> None:
    """Write the n rejected rows of a log, which is read once more for that; only a header if there are none."""
    log = steps.log
    if log.engine:
        raise DataError(Option("rejected", str(path)), f": the rows of {log.engine} are in no order to find them by")
    log.connection.execute(f'CREATE OR REPLACE TEMP TABLE {_PLACES} ("row" BIGINT, "file" BIGINT, reason VARCHAR)')
    if n:
        every: Every = "row or copy" if tally.shares_names else "row"
        _fill(log.connection, steps.each_row(once=tally.has_alike, every=every), tally)
    options = _WRITERS[Path(path).suffix.lower()]
    rows = log.numbered(as_they_are=True)
    columns = [*column_types(log.connection, rows)]
    log.connection.execute(f"COPY ({_selected(rows, log.files, columns)}) TO {literal(str(path))} ({options})")


def _fill(connection: Any, query: str, tally: TransitionCounter) -> None:
    """Put the places of rows that were rejected into a table, with the reasons."""
    apart = f'{PLACE_OF_ROW}."file" AS "{_FILE}", {PLACE_OF_ROW}."row" AS "{_ROW}"'
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {_EACH} AS SELECT * EXCLUDE ({PLACE_OF_ROW}), {apart} FROM ({query})"
    )
    for block in pages(connection, _EACH):
        kinds = tally.kinds(block)
        rejected = np.flatnonzero(_IS_REJECTED[kinds])
        reasons = np.array(KINDS, dtype=np.object_)[kinds[rejected]]
        found = {"row": block[_ROW][rejected], "file": block[_FILE][rejected], "reason": reasons}
        connection.register("block", {name: np.asarray(values) for name, values in found.items()})
        connection.execute(f'INSERT INTO {_PLACES} SELECT "row", "file", reason::VARCHAR FROM block')
        connection.unregister("block")
    connection.execute(f"DROP TABLE {_EACH}")


def _selected(rows: str, files: Sequence[str], columns: Sequence[str]) -> str:
    """Return the query for the rows at these places, in the order of the log."""
    taken = {name.casefold() for name in columns}
    names = {name: quoted(f"rejected_{name}" if name in taken else name) for name in ("reason", "file", "row")}
    file = f'[{", ".join(map(literal, files))}][place."file" + 1]' if files else "NULL::VARCHAR"
    first = f'place.reason AS {names["reason"]}, {file} AS {names["file"]}, place."row" AS {names["row"]}'
    same = f'place."file" = log.{PLACE_OF_ROW}."file" AND place."row" = log.{PLACE_OF_ROW}."row"'
    joined = f"SELECT {first}, log.* EXCLUDE ({PLACE_OF_ROW}) FROM {rows} AS log JOIN {_PLACES} AS place ON {same}"
    return f'{joined} ORDER BY place."file", place."row"'

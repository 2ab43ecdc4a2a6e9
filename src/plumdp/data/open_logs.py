"""Opens a log, files or a data frame, so that queries can be asked of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import Assumption, Group
from plumdp.data.duckdb_engine import column_types, connect
from plumdp.data.duckdb_tables import copy_of_stream, find_files, has_rows, scan
from plumdp.data.files import is_counts_file
from plumdp.data.frames import FRAME, SPARK, frame_columns, has_order, is_spark, open_spark, stream_of
from plumdp.data.raw_logs import FirstRuns, RawLog, as_raw
from plumdp.data.same_files import TABLES, refuse_copies, refuse_same_files
from plumdp.data.steps import LogTable
from plumdp.model.parametric import ParametricMDP
from plumdp.model.text import number_of


def files_of(source: Any, model: ParametricMDP | None = None) -> tuple[RawLog, list[str]]:
    """Return a log with what is said about how it is read, and its files; none if it is a data frame.

    What its states remember is told apart as far as the model does.
    """
    raw = as_raw(source)
    if (rows := stream_of(raw.source)) is not None:
        raw = replace(raw, source=copy_of_stream(rows))
    if raw.memory is not None and model is not None:
        raw = replace(raw, memory=raw.memory.capped(model))
    return raw, find_files(raw.source) if is_paths(raw.source) else []


@contextmanager
def open_log(raw: RawLog, files: list[str]) -> Iterator[LogTable]:
    """Give a log whose columns are known; ``files`` are those of the source, none if it is a data frame."""
    source, text = raw.source, raw.text
    if (
        not files
        and (raw.part is not None or raw.unit is not None or not text.is_plain)
        and (is_spark(source) or not has_order(source))
    ):
        raise DataError("a table of Spark or DuckDB is read as a whole, without a format; write it to a file first")
    if not files and is_spark(source):
        with open_spark(source) as (session, view, types):
            _require(raw, [*types])
            yield LogTable(session, view, types, engine=SPARK, memory=raw.memory).with_memory(view)
        return
    refuse_same_files(files)
    with connect() as connection:
        if not files:
            engine = "" if has_order(source) else "DuckDB"
            columns = dict.fromkeys(frame_columns(source), "")
            _require(raw, [*columns])
            columns |= {} if raw.memory is None else {raw.memory.column: ""}
            found = {"frame": source, "engine": engine, "text": text, "part": raw.part, "memory": raw.memory}
            found |= {"unit": raw.unit}
            yield LogTable(connection, FRAME, columns, **found)
            return
        table = scan(connection, files, text=text)
        refuse_copies(files, partial(has_rows, connection, text))
        types = column_types(connection, table)
        if {"transition", "n"} <= types.keys():
            _refuse_counts(files)
        engine = next((TABLES[file].kind for file in files if file in TABLES), "")
        _require(raw, [*types])
        about: dict[str, Any] = {"part": raw.part, "memory": raw.memory, "unit": raw.unit}
        log = LogTable(connection, table, types, files, engine=engine, text=text, **about)
        log.find_first_runs(table)
        yield log.with_memory(table)


def _require(raw: RawLog, columns: Sequence[str]) -> None:
    if raw.memory is not None:
        raw.memory.require(columns)
    if raw.unit is not None and raw.unit[0] not in columns:
        raise no_units(raw.unit[0], columns)


def no_units(by: str, columns: Sequence[str]) -> DataError:
    """Return the error for a column of units that is not there."""
    return DataError(Option("by", by), f": the log has no such column, only {', '.join(columns)}")


def _refuse_counts(files: Sequence[str]) -> None:
    """Refuse a file of counts that plumdp wrote, which has other columns than a log."""
    for file in files:
        if is_counts_file(file):
            raise DataError(
                f"{file} is a file of counts that plumdp wrote, not a log; give the log that it was counted from, or "
                "count the other files by themselves and add their counts to it, with ",
                Option("read_counts"),
            )


def is_paths(source: Any) -> bool:
    """Return whether a source names files, and is not a data frame."""
    return isinstance(source, str | Path) or (
        isinstance(source, list | tuple) and all(isinstance(path, str | Path) for path in source)
    )


def others_of(part: FirstRuns | None) -> tuple[str, ...]:
    """Return the assumption about runs that were left out because a table was made of them."""
    if part is None or not part.others:
        return ()
    few = f"the first {number_of(part.n, 'run' if part.run else 'row')}"
    first = f"{few} of the log"
    said = Assumption(
        f"what was done in {first}, and how many these are, did not depend on what happened in the others",
        Group.PLAN,
        "first runs",
    )
    known = f"depends on state and action alone, and is on average what it was in {first}"
    means = Assumption(
        f"the {part.means} of a step {known}; how far these means may be off is in no bound",
        Group.MODEL,
        f"means of {part.means} are exactly those of {few}",
    )
    return (said, means) if part.means else (said,)

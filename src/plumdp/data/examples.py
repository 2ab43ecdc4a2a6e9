"""Rows that do not fit: examples for a report, and all of them as a file, with the reason, the file and the row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from plumdp.base.edge import is_sheet, replacing, write_rows
from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import EPISODE
from plumdp.data.columns import PLACE, STEP
from plumdp.data.duckdb_engine import column_types, pages
from plumdp.data.ingestion import Offender, TransitionCounter
from plumdp.data.mapping_sql import DATES
from plumdp.data.names import PLACE_OF_ROW, literal, quoted
from plumdp.data.periods import spacing_in_words
from plumdp.data.report import KINDS, REJECTED, BrokenEpisode, RepeatedStep
from plumdp.data.reward_values import value_columns
from plumdp.data.sql import Every, select_sql
from plumdp.data.steps import LogSteps
from plumdp.model.values import shown

_STEP = f"{quoted(EPISODE)}, {quoted(STEP)}"
_HAS_STEP = f"{quoted(EPISODE)} IS NOT NULL AND {quoted(STEP)} IS NOT NULL"
_IS_STEP = f"{quoted(PLACE)} IN ('step', 'apart')"
_SPACED = 10**6  # rows, of some runs, whose dates are looked at


def first_rows(steps: LogSteps, offenders: Sequence[Offender], *, once: bool) -> list[str]:
    """Return in which row each offender is first, or nothing where that cannot be told; rows are counted from 1."""
    cases, parameters = [], []
    for number, offender in enumerate(offenders):
        if all(value is None or isinstance(value, str | int | float) for value in offender.values.values()):
            same = [f"{quoted(name)} IS NOT DISTINCT FROM ?" for name in offender.values]
            has_place = steps.form == "trajectories" or once
            same += [_IS_STEP] if has_place and offender.kind != "unknown state" else []
            cases.append(f"WHEN {' AND '.join(same)} THEN {number}")
            parameters += [*offender.values.values()]
    places = [""] * len(offenders)
    if not cases or steps.form == "counts" or not steps.log.files or not steps.log.is_numbered:
        return places
    rows = steps.each_row(once=once, every="first")
    run = f"CAST({quoted(EPISODE)} AS VARCHAR)" if EPISODE in steps.columns else "NULL"
    numbered = f"SELECT CASE {' '.join(cases)} END AS number, {PLACE_OF_ROW} AS place, {run} AS run FROM ({rows})"
    query = f"SELECT number, min(place), arg_min(run, place) FROM ({numbered}) WHERE number IS NOT NULL GROUP BY number"
    for number, place, name in steps.log.connection.execute(query, parameters).fetchall():
        row = _row(place, steps.log.files)
        places[number] = row if name is None else f"{row}, episode {name}"
    return places


def _row(place: Mapping[str, int], files: Sequence[str]) -> str:
    row = f"row {place['row']:,}"
    return row if len(files) < 2 else f"{row} of {Path(files[place['file']]).name}"


def shares_names(steps: LogSteps) -> bool:
    """Return whether rows that contradict each other look like steps of several runs that have one name.

    They do if most steps of such a run have several rows, or most steps of all runs have: a correction, or a second
    record, repeats few.
    """
    columns, table = steps.expressions, steps.log.table
    names = ", ".join(map(quoted, columns))
    alike = f"SELECT {names}, count(*) AS n FROM ({select_sql(columns, table)}) WHERE {_HAS_STEP} GROUP BY {names}"
    each = f"SELECT {_STEP}, count(*) AS n_different, sum(n) AS n_rows FROM ({alike}) GROUP BY {_STEP}"
    several = "sum(CASE WHEN n_rows > 1 THEN 1 ELSE 0 END)"
    runs = (
        f"SELECT max(n_different) AS n_different, {several} AS several, 2 * {several} - count(*) AS surplus "
        f"FROM ({each}) GROUP BY {quoted(EPISODE)}"
    )
    is_one = "max(CASE WHEN n_different > 1 AND several > 1 AND surplus > 0 THEN 1 ELSE 0 END)"
    ((one, surplus),) = steps.log.rows(f"SELECT {is_one}, CAST(sum(surplus) AS BIGINT) FROM ({runs})")
    return bool(one) or (surplus or 0) > 0


def repeated_steps(steps: LogSteps, n: int) -> list[RepeatedStep]:
    """Return n steps with several rows that differ, the first with two such rows."""
    log, own, columns = steps.log, steps.expressions, steps.columns
    table, place = (log.numbered(), PLACE_OF_ROW) if log.is_numbered else (log.table, "NULL")
    rows = select_sql({**own, "shown_step": f"CAST({quoted(steps.dates[0])} AS VARCHAR)", PLACE_OF_ROW: place}, table)
    different = f"SELECT DISTINCT {', '.join(map(quoted, own))} FROM ({rows}) WHERE {_HAS_STEP}"
    few = f"SELECT {_STEP} FROM ({different}) GROUP BY {_STEP} HAVING count(*) > 1 ORDER BY {_STEP} LIMIT {n}"
    same = " AND ".join(f"log_rows.{quoted(name)} = few.{quoted(name)}" for name in (EPISODE, STEP))
    order = ", ".join(f"log_rows.{name}" for name in (quoted(EPISODE), quoted(STEP), PLACE_OF_ROW))
    found = log.rows(f"SELECT log_rows.* FROM ({rows}) AS log_rows JOIN ({few}) AS few ON {same} ORDER BY {order}")
    names = [*columns]
    by_step: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in found:
        by_step.setdefault((row[names.index(EPISODE)], row[names.index(STEP)]), []).append(row)
    repeated = [RepeatedStep(run, alike[0][-2], len(alike)) for (run, _), alike in by_step.items()]
    for one, *others in [*by_step.values()][:1]:
        other = next(row for row in others if row[:-2] != one[:-2])
        differ = {name: i for i, name in enumerate(names) if one[i] != other[i]}
        rewards = value_columns(differ)
        told = {columns[name] if isinstance(columns[name], str) else name: differ[name] for name in differ}
        told = {label: i for label, i in told.items() if label not in rewards}
        texts = [" and ".join(f"{label}={shown(row[i])}" for label, i in told.items()) for row in (one, other)]
        texts = texts if told else [f"one {', '.join(rewards.values())}", "another"]
        where = ["one row", "another"] if one[-1] is None else [_row(row[-1], log.files) for row in (one, other)]
        repeated[0] = replace(repeated[0], pair=f"{texts[0]} in {where[0]}, {texts[1]} in {where[1]}")
    return repeated


def broken_episodes(steps: LogSteps, n: int) -> list[BrokenEpisode]:
    """Return a few episodes that lack steps, those that lack most."""
    rows, step = select_sql({name: steps.expressions[name] for name in (EPISODE, STEP)}, steps.log.table), quoted(STEP)
    spans = (
        f"SELECT {quoted(EPISODE)}, count(*) AS n, count(DISTINCT {step}) AS steps, min({step}) AS first_step, "
        f"max({step}) AS last_step FROM ({rows}) WHERE {_HAS_STEP} GROUP BY {quoted(EPISODE)}"
    )
    missing = "abs(last_step - first_step + 1 - steps)"
    query = f"SELECT * FROM ({spans}) WHERE {missing} > 0 ORDER BY {missing} DESC, {quoted(EPISODE)} LIMIT {n}"
    return [BrokenEpisode(*row) for row in steps.log.rows(query)]


def unread_step(steps: LogSteps) -> str:
    """Return a step that is there and cannot be read, as the log has it; nothing if there is none."""
    text = f"CAST({quoted(steps.dates[0])} AS VARCHAR)"
    is_unread = f"{text} IS NOT NULL AND {steps.expressions[STEP]} IS NULL"
    for (found,) in steps.log.rows(f"SELECT {text} AS text FROM {steps.log.table} WHERE {is_unread} LIMIT 1"):
        return repr(found) if isinstance(steps.columns[STEP], str) else f"{found!r} is not a date"
    return ""


def spacing(steps: LogSteps, n_rows: int) -> str:
    """Return in words how many intervals between dates of runs are about twice as long as usual, if any are."""
    if not steps.dates[1].startswith(DATES):
        return ""
    rows = f"({select_sql(steps.moments, steps.log.table)}) WHERE hash(run) % {math.ceil(n_rows / _SPACED)} = 0"
    before = "lag(moment) OVER (PARTITION BY run ORDER BY moment)"
    lengths = f"SELECT * FROM (SELECT moment - {before} AS interval_length FROM {rows}) WHERE interval_length > 0"
    usual = f"({lengths}) AS every_one CROSS JOIN (SELECT median(interval_length) AS usual FROM ({lengths})) AS all_of"
    about = "interval_length BETWEEN {} * usual AND {} * usual"
    one, two = (
        f"CAST(avg(CASE WHEN {about.format(n - 0.25, n + 0.25)} THEN 1.0 ELSE 0.0 END) AS DOUBLE)" for n in (1, 2)
    )
    ((length, once, twice),) = steps.log.rows(f"SELECT min(usual), {one}, {two} FROM {usual}")
    return spacing_in_words(length, twice) if twice and once > twice else ""  # otherwise nothing is usual


_WRITERS = {".csv": "FORMAT csv, HEADER", ".parquet": "FORMAT parquet, COMPRESSION zstd"}
_AT_ONCE = 10_000  # rows
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
    query = _selected(rows, log.files, columns)
    if is_sheet(path):
        found = log.connection.execute(f"SELECT COLUMNS(*)::VARCHAR FROM ({query})")
        names = [name for name, *_ in found.description]
        write_rows(path, names, chain.from_iterable(iter(partial(found.fetchmany, _AT_ONCE), [])))
        return
    with replacing(path) as fresh:
        log.connection.execute(f"COPY ({query}) TO {literal(str(fresh))} ({options})")


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

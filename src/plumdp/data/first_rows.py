"""Examples for a report: the rows in which offenders are first, steps with several rows, runs without some steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plumdp.data.columns import ACTION, COUNT, EPISODE, N_ALIKE, PLACE, STEP, LogForm, quoted
from plumdp.data.duckdb_tables import numbered_scan
from plumdp.data.ingestion import Offender
from plumdp.data.sql import select_sql

_STEP = f"{quoted(EPISODE)}, {quoted(STEP)}"
_HAS_STEP = f"{quoted(EPISODE)} IS NOT NULL AND {quoted(STEP)} IS NOT NULL"
_ABOUT_ONE_ROW = ("unknown state", "unknown action")  # the others need the next row too


def first_places(
    connection: Any, files: Sequence[str], columns: Mapping[str, str], form: LogForm, offenders: Sequence[Offender]
) -> list[str]:
    """Return in which row each offender is first, or nothing if that cannot be told; rows are counted from 1."""
    names = _names_in_log(columns)
    wanted = {
        number: {names[name]: value for name, value in offender.values.items()}
        for number, offender in enumerate(offenders)
        if _can_be_found(offender, form, names)
    }
    found = [""] * len(offenders)
    scan = numbered_scan(connection, files)
    if not wanted or scan is None:
        return found
    cases, parameters = [], []
    for number, values in wanted.items():
        cases.append(f"WHEN {' AND '.join(f'{columns[name]} IS NOT DISTINCT FROM ?' for name in values)} THEN {number}")
        parameters += [*values.values()]
    rows = f"SELECT CASE {' '.join(cases)} END AS number, place_of_row FROM {scan}"
    query = f"SELECT number, min(place_of_row) FROM ({rows}) WHERE number IS NOT NULL GROUP BY number"
    for number, place in connection.execute(query, parameters).fetchall():
        row = f"row {place['row']:,}"
        found[number] = row if len(files) == 1 else f"{row} of {Path(files[place['file']]).name}"
    return found


def _names_in_log(columns: Mapping[str, str]) -> dict[str, str]:
    """Return the columns by their names in counts: a variable n or place has another name there."""
    named = {name: name for name in columns}
    return {f"state_{name}": name for name in columns if name.casefold() in (COUNT, PLACE)} | named


def _can_be_found(offender: Offender, form: LogForm, names: Mapping[str, str]) -> bool:
    if form == "counts" or (form == "trajectories" and offender.kind not in _ABOUT_ONE_ROW):
        return False
    if form == "trajectories" and offender.values.get(ACTION, "") is None:
        return False  # as in the last row of every run
    is_plain = all(value is None or isinstance(value, str | int | float) for value in offender.values.values())
    return is_plain and all(name in names for name in offender.values)


def any_repeated_sql(columns: Mapping[str, str], table: str) -> str:
    """Return a query that has a row if a step of a run has several; ``columns`` are expressions by name."""
    rows = select_sql({name: columns[name] for name in (EPISODE, STEP)}, table)
    return f"SELECT 1 AS found FROM ({rows}) WHERE {_HAS_STEP} GROUP BY {_STEP} HAVING count(*) > 1 LIMIT 1"


def repeated_steps_sql(columns: Mapping[str, str], table: str, n: int) -> str:
    """Return a query for a few steps of which there are several rows that are not alike: run, step, number of rows."""
    names, rows = ", ".join(map(quoted, columns)), f"({select_sql(columns, table)}) WHERE {_HAS_STEP}"
    alike = f"SELECT {names}, count(*) AS {N_ALIKE} FROM {rows} GROUP BY {names}"
    steps = f"SELECT {_STEP}, CAST(sum({N_ALIKE}) AS BIGINT) AS n_rows FROM ({alike}) GROUP BY {_STEP}"
    return f"{steps} HAVING count(*) > 1 ORDER BY {_STEP} LIMIT {n}"


def broken_episodes_sql(columns: Mapping[str, str], table: str, n: int) -> str:
    """Return a query for a few episodes that lack steps, those that lack most: rows, steps, first and last of them."""
    rows, step = select_sql({name: columns[name] for name in (EPISODE, STEP)}, table), quoted(STEP)
    spans = (
        f"SELECT {quoted(EPISODE)}, count(*) AS n, count(DISTINCT {step}) AS steps, min({step}) AS first_step, "
        f"max({step}) AS last_step FROM ({rows}) WHERE {_HAS_STEP} GROUP BY {quoted(EPISODE)}"
    )
    missing = "abs(last_step - first_step + 1 - steps)"
    return f"SELECT * FROM ({spans}) WHERE {missing} > 0 ORDER BY {missing} DESC, {quoted(EPISODE)} LIMIT {n}"

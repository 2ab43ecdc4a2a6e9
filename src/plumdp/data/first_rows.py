"""Examples for a report: the rows in which offenders are first, steps with several rows, runs without some steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plumdp.data.columns import EPISODE, N_ALIKE, PLACE, PLACE_OF_ROW, STEP, quoted
from plumdp.data.duckdb_tables import text_bytes
from plumdp.data.ingestion import Offender
from plumdp.data.sql import select_sql

_STEP = f"{quoted(EPISODE)}, {quoted(STEP)}"
_HAS_STEP = f"{quoted(EPISODE)} IS NOT NULL AND {quoted(STEP)} IS NOT NULL"
_IS_STEP = f"{quoted(PLACE)} IN ('step', 'apart')"
_NUMBERED = 20  # text files whose rows are numbered for examples


def first_places(
    connection: Any, files: Sequence[str], rows: str, offenders: Sequence[Offender], *, has_runs: bool, has_place: bool
) -> list[str]:
    """Return in which row each offender is first, or nothing if that cannot be told; rows are counted from 1.

    ``rows`` is a query for all rows and where they are, as ``rows_sql`` writes it, maybe with their place in a run.
    """
    cases, parameters = [], []
    for number, offender in enumerate(offenders):
        if all(value is None or isinstance(value, str | int | float) for value in offender.values.values()):
            same = [f"{quoted(name)} IS NOT DISTINCT FROM ?" for name in offender.values]
            same += [_IS_STEP] if has_place and offender.kind != "unknown state" else []
            cases.append(f"WHEN {' AND '.join(same)} THEN {number}")
            parameters += [*offender.values.values()]
    places = [""] * len(offenders)
    if not cases or (len(files) > _NUMBERED and text_bytes(files)):
        return places
    run = f"CAST({quoted(EPISODE)} AS VARCHAR)" if has_runs else "NULL"
    numbered = f"SELECT CASE {' '.join(cases)} END AS number, {PLACE_OF_ROW} AS place, {run} AS run FROM ({rows})"
    query = f"SELECT number, min(place), arg_min(run, place) FROM ({numbered}) WHERE number IS NOT NULL GROUP BY number"
    for number, place, name in connection.execute(query, parameters).fetchall():
        row = f"row {place['row']:,}"
        row = row if len(files) == 1 else f"{row} of {Path(files[place['file']]).name}"
        places[number] = row if name is None else f"{row}, episode {name}"
    return places


def any_repeated_sql(columns: Mapping[str, str], table: str) -> str:
    """Return a query that has a row if a step of a run has several; ``columns`` are expressions by name."""
    rows = select_sql({name: columns[name] for name in (EPISODE, STEP)}, table)
    return f"SELECT 1 AS found FROM ({rows}) WHERE {_HAS_STEP} GROUP BY {_STEP} HAVING count(*) > 1 LIMIT 1"


def repeated_steps_sql(columns: Mapping[str, str], table: str, n: int, *, shown: str) -> str:
    """Return a query for a few steps of which there are several rows that are not alike: run, step, number of rows.

    ``shown`` is the step as the log has it.
    """
    names = ", ".join(map(quoted, columns))
    rows = f"({select_sql({**columns, 'shown_step': shown}, table)}) WHERE {_HAS_STEP}"
    alike = f"SELECT {names}, count(*) AS {N_ALIKE}, min(shown_step) AS shown_step FROM {rows} GROUP BY {names}"
    total = f"CAST(sum({N_ALIKE}) AS BIGINT) AS n_rows"
    several = f"HAVING count(*) > 1 ORDER BY {_STEP} LIMIT {n}"
    steps = f"SELECT {_STEP}, min(shown_step) AS shown_step, {total} FROM ({alike}) GROUP BY {_STEP} {several}"
    return f"SELECT {quoted(EPISODE)}, shown_step, n_rows FROM ({steps}) ORDER BY {_STEP}"


def broken_episodes_sql(columns: Mapping[str, str], table: str, n: int) -> str:
    """Return a query for a few episodes that lack steps, those that lack most: rows, steps, first and last of them."""
    rows, step = select_sql({name: columns[name] for name in (EPISODE, STEP)}, table), quoted(STEP)
    spans = (
        f"SELECT {quoted(EPISODE)}, count(*) AS n, count(DISTINCT {step}) AS steps, min({step}) AS first_step, "
        f"max({step}) AS last_step FROM ({rows}) WHERE {_HAS_STEP} GROUP BY {quoted(EPISODE)}"
    )
    missing = "abs(last_step - first_step + 1 - steps)"
    return f"SELECT * FROM ({spans}) WHERE {missing} > 0 ORDER BY {missing} DESC, {quoted(EPISODE)} LIMIT {n}"

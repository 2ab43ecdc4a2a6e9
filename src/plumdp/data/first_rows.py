"""Examples for a report: the rows in which offenders are first, steps with several rows, runs without some steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from plumdp.data.columns import EPISODE, PLACE, PLACE_OF_ROW, STEP, Source, quoted
from plumdp.data.duckdb_tables import text_bytes
from plumdp.data.ingestion import Offender
from plumdp.data.report import RepeatedStep
from plumdp.data.reward_values import value_columns
from plumdp.data.sql import select_sql
from plumdp.data.values import shown

_STEP = f"{quoted(EPISODE)}, {quoted(STEP)}"
_HAS_STEP = f"{quoted(EPISODE)} IS NOT NULL AND {quoted(STEP)} IS NOT NULL"
_IS_STEP = f"{quoted(PLACE)} IN ('step', 'apart')"
_NUMBERED = 20  # text files whose rows are numbered for examples


def are_numbered(files: Sequence[str]) -> bool:
    """Return whether rows of these files can be numbered in a short time."""
    return not any("://" in file for file in files) and (len(files) <= _NUMBERED or not text_bytes(files))


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
    if not cases or not are_numbered(files):
        return places
    run = f"CAST({quoted(EPISODE)} AS VARCHAR)" if has_runs else "NULL"
    numbered = f"SELECT CASE {' '.join(cases)} END AS number, {PLACE_OF_ROW} AS place, {run} AS run FROM ({rows})"
    query = f"SELECT number, min(place), arg_min(run, place) FROM ({numbered}) WHERE number IS NOT NULL GROUP BY number"
    for number, place, name in connection.execute(query, parameters).fetchall():
        places[number] = _row(place, files) if name is None else f"{_row(place, files)}, episode {name}"
    return places


def _row(place: Mapping[str, int], files: Sequence[str]) -> str:
    row = f"row {place['row']:,}"
    return row if len(files) < 2 else f"{row} of {Path(files[place['file']]).name}"


def any_repeated_sql(columns: Mapping[str, str], table: str) -> str:
    """Return a query that has a row if a step of a run has several; ``columns`` are expressions by name."""
    rows = select_sql({name: columns[name] for name in (EPISODE, STEP)}, table)
    return f"SELECT 1 AS found FROM ({rows}) WHERE {_HAS_STEP} GROUP BY {_STEP} HAVING count(*) > 1 LIMIT 1"


def repeated_steps_sql(columns: Mapping[str, str], table: str, n: int | None = None) -> str:
    """Return a query for the runs and steps of which there are several rows that are not alike: n of them, or all."""
    different = (
        f"SELECT DISTINCT {', '.join(map(quoted, columns))} FROM ({select_sql(columns, table)}) WHERE {_HAS_STEP}"
    )
    few = "" if n is None else f" ORDER BY {_STEP} LIMIT {n}"
    return f"SELECT {_STEP} FROM ({different}) GROUP BY {_STEP} HAVING count(*) > 1{few}"


def shared_names_sql(columns: Mapping[str, str], table: str) -> str:
    """Return a query that says whether rows which contradict each other look like steps of several runs of one name.

    They do if most steps of such a run have several rows, or most steps of all runs have: a correction, or a second
    record, repeats few. Its columns are that of some run, and the steps that have several rows less all others.
    """
    names = ", ".join(map(quoted, columns))
    alike = f"SELECT {names}, count(*) AS n FROM ({select_sql(columns, table)}) WHERE {_HAS_STEP} GROUP BY {names}"
    steps = f"SELECT {_STEP}, count(*) AS n_different, sum(n) AS n_rows FROM ({alike}) GROUP BY {_STEP}"
    several = "sum(CASE WHEN n_rows > 1 THEN 1 ELSE 0 END)"
    runs = (
        f"SELECT max(n_different) AS n_different, {several} AS several, 2 * {several} - count(*) AS surplus "
        f"FROM ({steps}) GROUP BY {quoted(EPISODE)}"
    )
    is_one = "max(CASE WHEN n_different > 1 AND several > 1 AND surplus > 0 THEN 1 ELSE 0 END)"
    return f"SELECT {is_one} AS is_one, CAST(sum(surplus) AS BIGINT) AS surplus FROM ({runs})"


def repeated_rows_sql(columns: Mapping[str, str], table: str, n: int, *, step: str, place: str) -> str:
    """Return a query for the rows of n such steps: what is read, the ``step`` as the log has it, and the ``place``."""
    rows = select_sql({**columns, "shown_step": step, PLACE_OF_ROW: place}, table)
    same = " AND ".join(f"log_rows.{quoted(name)} = steps.{quoted(name)}" for name in (EPISODE, STEP))
    order = ", ".join(f"log_rows.{name}" for name in (quoted(EPISODE), quoted(STEP), PLACE_OF_ROW))
    steps = repeated_steps_sql(columns, table, n)
    return f"SELECT log_rows.* FROM ({rows}) AS log_rows JOIN ({steps}) AS steps ON {same} ORDER BY {order}"


def repeated_steps(
    rows: Sequence[tuple[Any, ...]], columns: Mapping[str, Source], files: Sequence[str]
) -> list[RepeatedStep]:
    """Return the steps that ``repeated_rows_sql`` found, the first with two rows of it that differ."""
    names = [*columns]
    by_step: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in rows:
        by_step.setdefault((row[names.index(EPISODE)], row[names.index(STEP)]), []).append(row)
    steps = [RepeatedStep(run, own[0][-2], len(own)) for (run, _), own in by_step.items()]
    for one, *others in [*by_step.values()][:1]:
        other = next(row for row in others if row[:-2] != one[:-2])
        differ = {name: i for i, name in enumerate(names) if one[i] != other[i]}
        rewards = value_columns(differ)
        told = {columns[name] if isinstance(columns[name], str) else name: differ[name] for name in differ}
        told = {label: i for label, i in told.items() if label not in rewards}
        texts = [" and ".join(f"{label}={shown(row[i])}" for label, i in told.items()) for row in (one, other)]
        texts = texts if told else [f"one {', '.join(rewards.values())}", "another"]
        where = ["one row", "another"] if one[-1] is None else [_row(row[-1], files) for row in (one, other)]
        steps[0] = replace(steps[0], pair=f"{texts[0]} in {where[0]}, {texts[1]} in {where[1]}")
    return steps


def broken_episodes_sql(columns: Mapping[str, str], table: str, n: int) -> str:
    """Return a query for a few episodes that lack steps, those that lack most: rows, steps, first and last of them."""
    rows, step = select_sql({name: columns[name] for name in (EPISODE, STEP)}, table), quoted(STEP)
    spans = (
        f"SELECT {quoted(EPISODE)}, count(*) AS n, count(DISTINCT {step}) AS steps, min({step}) AS first_step, "
        f"max({step}) AS last_step FROM ({rows}) WHERE {_HAS_STEP} GROUP BY {quoted(EPISODE)}"
    )
    missing = "abs(last_step - first_step + 1 - steps)"
    return f"SELECT * FROM ({spans}) WHERE {missing} > 0 ORDER BY {missing} DESC, {quoted(EPISODE)} LIMIT {n}"

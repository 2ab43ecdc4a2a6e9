"""Queries for rows that do not fit together, in DuckDB's words: steps with several rows, and runs without some."""

from __future__ import annotations

from collections.abc import Mapping

from plumdp.data.columns import EPISODE, N_ALIKE, STEP, quoted

_PLACE = f"{quoted(EPISODE)}, {quoted(STEP)}"
_IS_PLACED = f"{quoted(EPISODE)} IS NOT NULL AND {quoted(STEP)} IS NOT NULL"


def any_repeated_sql(columns: Mapping[str, str], table: str) -> str:
    """Return a query that has a row if a step of a run has several rows; ``columns`` are expressions by name."""
    rows = _selected({name: columns[name] for name in (EPISODE, STEP)}, table)
    return f"SELECT 1 AS found FROM ({rows}) WHERE {_IS_PLACED} GROUP BY {_PLACE} HAVING count(*) > 1 LIMIT 1"


def repeated_steps_sql(columns: Mapping[str, str], table: str, n: int) -> str:
    """Return a query for a few steps of which there are several rows that are not alike: run, step, number of rows."""
    names = ", ".join(map(quoted, columns))
    rows = f"({_selected(columns, table)}) WHERE {_IS_PLACED}"
    alike = f"SELECT {names}, count(*) AS {N_ALIKE} FROM {rows} GROUP BY {names}"
    steps = f"SELECT {_PLACE}, CAST(sum({N_ALIKE}) AS BIGINT) AS n_rows FROM ({alike}) GROUP BY {_PLACE}"
    return f"{steps} HAVING count(*) > 1 ORDER BY {_PLACE} LIMIT {n}"


def broken_episodes_sql(columns: Mapping[str, str], table: str, n: int) -> str:
    """Return a query for a few episodes that lack steps, those that lack most: rows, steps, first and last of them."""
    rows = _selected({name: columns[name] for name in (EPISODE, STEP)}, table)
    step = quoted(STEP)
    spans = (
        f"SELECT {quoted(EPISODE)}, count(*) AS n, count(DISTINCT {step}) AS steps, min({step}) AS first_step, "
        f"max({step}) AS last_step FROM ({rows}) WHERE {_IS_PLACED} GROUP BY {quoted(EPISODE)}"
    )
    missing = "abs(last_step - first_step + 1 - steps)"
    return f"SELECT * FROM ({spans}) WHERE {missing} > 0 ORDER BY {missing} DESC, {quoted(EPISODE)} LIMIT {n}"


def _selected(columns: Mapping[str, str], table: str) -> str:
    return f"SELECT {', '.join(f'{expression} AS {quoted(name)}' for name, expression in columns.items())} FROM {table}"

"""Helpers of the reports: Markdown tables, groups of rows, and numbers as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any, TypeAlias

import numpy as np

from studies.published import Table, look_up
from studies.study import Row

Key: TypeAlias = tuple[Any, ...]

SYMBOLS = {"interval": "P_I", "parameter": "P_Θ", "expression": "P_Λ", "rectangular": "P_R"}


def markdown_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown writes it.

    >>> print(markdown_table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    body = [header, ["---"] * len(header), *lines]
    return (
        "\n".join("| " + " | ".join(line) + " |" for line in body).replace("| --- |", "|---|").replace(" --- |", "---|")
    )


def grouped(rows: Iterable[Row], *names: str) -> dict[Key, list[Row]]:
    """Return the rows in groups."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def distinct(rows: Iterable[Row], name: str) -> list[Any]:
    """Return the values of a column, each once, in the order in which they come."""
    return list(dict.fromkeys(row[name] for row in rows))


def middle(rows: Sequence[Row], name: str) -> float:
    """Return the median of a column."""
    return float(median(float(row[name]) for row in rows))


def mean(rows: Sequence[Row], name: str) -> float:
    """Return the mean of a column."""
    return float(np.mean([row[name] for row in rows]))


def total_seconds(rows: Sequence[Row]) -> float:
    """Return the median seconds for construction and solution."""
    return middle(rows, "build_seconds") + middle(rows, "solve_seconds")


def brackets_held(rows: Sequence[Row], *names: str) -> str:
    """Return in how many brackets the true value lies, and which rows the others come from."""
    missed = [" ".join(row[name] for name in names) for row in rows if not row["holds"]]
    others = f"; not in those of {', '.join(missed)}" if missed else ""
    return f"The true value lies in {len(rows) - len(missed)} of {len(rows)} brackets{others}."


def published_figure(table: Table, instance: str, relaxation: str, what: str) -> str:
    """Return the text of a published figure: a dash where there is none, TO for a time-out."""
    entry = look_up(table, instance, relaxation)
    if entry is None:
        return "–"
    return "TO" if entry.is_time_out else short(getattr(entry, what))


def short(number: float) -> str:
    """Return a number with three significant digits, as a cell of a table."""
    if not np.isfinite(number):
        return "∞" if number > 0 else "–"
    if abs(number) >= 1e5:
        return f"{number:.1e}"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def short_seconds(seconds: float) -> str:
    """Return seconds with two significant digits."""
    return "< 0.01" if seconds < 0.01 else f"{seconds:.2g}" if seconds < 10 else f"{seconds:,.0f}"

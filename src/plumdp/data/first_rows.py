"""Finds the rows of files that examples in a report are taken from: the files are read once more for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from plumdp.data.columns import ACTION, COUNT, PLACE, LogForm
from plumdp.data.duckdb_tables import numbered_scan

_ABOUT_ONE_ROW = ("unknown state", "unknown action")  # the others need the next row too


class Offender(Protocol):
    """Rejected rows that are alike: values of some columns."""

    @property
    def kind(self) -> str:
        """Why they were rejected."""

    @property
    def values(self) -> Mapping[str, Any]:
        """The value of each column."""


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

"""Finds out from the names of parts whether one is missing: days, months or numbers that follow one another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from plumdp.base.errors import DataError

_DAY = re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?!\d)")
_MONTH = re.compile(r"(?<!\d)(\d{4})-(\d{2})(?!\d)")
_NUMBER = re.compile(r"(\d+)(?!.*\d)")


def place_of(name: str) -> tuple[str, int] | None:
    """Return the place of a part in time by its name, in days, months or as a number; None if it has none.

    >>> place_of("left-2024-05-12"), place_of("2024-05"), place_of("part 7"), place_of("late")
    (('day', 739018), ('month', 24293), ('number', 7), None)
    """
    if found := _DAY.search(name):
        try:
            return "day", date(*map(int, found.groups())).toordinal()
        except ValueError:
            return None
    if found := _MONTH.search(name):
        return "month", 12 * int(found[1]) + int(found[2])
    return ("number", int(found[1])) if (found := _NUMBER.search(name)) else None


def named_files(files: Sequence[str]) -> dict[str, str]:
    """Return files by their names without folder and ending; refuse two of one name, as a part is one file."""
    named: dict[str, str] = {}
    for file in files:
        name = Path(file).name.partition(".")[0]
        if name in named:
            raise DataError(f"{named[name]} and {file} are both called {name}: give one file for each part")
        named[name] = file
    return named


def find_gap(names: Sequence[str]) -> tuple[int, str] | None:
    """Return the number of the first part before which one is missing, and what is missing; None if none seems to be.

    Days follow one another, or are weeks apart, and months and numbers follow one another.

    >>> find_gap(["2024-05-01", "2024-05-02", "2024-05-04"])
    (2, 'no part between 2024-05-02 and 2024-05-04')
    """
    places = [place_of(name) for name in names]
    if len(names) < 2 or any(place is None or places[0] is None or place[0] != places[0][0] for place in places):
        return None
    numbers = [place[1] for place in places if place is not None]
    is_by_week = all((number - numbers[0]) % 7 == 0 for number in numbers) and places[0] and places[0][0] == "day"
    for i in range(1, len(numbers)):
        apart = numbers[i] - numbers[i - 1]
        if apart <= 0:
            raise DataError(f"{names[i - 1]} and {names[i]} are not one after the other: give one file for each part")
        if apart != (7 if is_by_week else 1):
            return i, f"no part between {names[i - 1]} and {names[i]}"
    return None

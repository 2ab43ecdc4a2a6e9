"""Finds out from the names of parts whether one is missing: days, months or numbers that follow one another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from itertools import pairwise
from math import gcd
from pathlib import Path

from plumdp.base.errors import DataError

_TIME = re.compile(
    r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?:[T _-]?([01]\d|2[0-3])(?:[-:.]?([0-5]\d)){0,2}Z?(?![\da-zA-Z]))?(?!\d)"
)
_WEEK = re.compile(r"(?<!\d)(\d{4})-?W(\d{2})(?!\d)")
_MONTH = re.compile(r"(?<!\d)(\d{4})-(\d{2})(?!\d)")
_NUMBER = re.compile(r"(\d+)(?!.*\d)")
_ENDINGS = re.compile(r"(\.[A-Za-z]\w*)+$")
_DAY = 24 * 60  # minutes
_APART = 7 * _DAY, _DAY, 720, 480, 360, 240, 180, 120, 60, 30, 20, 15, 10, 5, 1  # minutes that times may be apart


def place_of(name: str) -> tuple[str, int] | None:
    """Return the place of a part in time by its name, in minutes, months or as a number; None if it has none.

    >>> place_of("2024-05-12") == place_of("left-20240512-0000") == ("minute", 24 * 60 * 739018)
    True
    >>> place_of("2024-05"), place_of("part 7"), place_of("late")
    (('month', 24293), ('number', 7), None)
    """
    try:
        if found := _TIME.search(name):
            year, month, day, hour, minute = (int(each or 0) for each in found.groups())
            return "minute", _DAY * date(year, month, day).toordinal() + 60 * hour + minute
        if found := _WEEK.search(name):
            return "minute", _DAY * date.fromisocalendar(int(found[1]), int(found[2]), 1).toordinal()
    except ValueError:
        return None
    if found := _MONTH.search(name):
        return "month", 12 * int(found[1]) + int(found[2])
    return ("number", int(found[1])) if (found := _NUMBER.search(name)) else None


def named_files(files: Sequence[str]) -> dict[str, str]:
    """Return files by their names without folder and ending; refuse two of one name, as a part is one file."""
    named: dict[str, str] = {}
    for file in files:
        name = _ENDINGS.sub("", Path(file).name)
        if name in named:
            raise DataError(f"{named[name]} and {file} are both called {name}: give one file for each part")
        named[name] = file
    return named


def find_gap(names: Sequence[str]) -> tuple[int, str] | None:
    """Return the number of the first part before which one is missing, and what is missing; None if none seems to be.

    Months and numbers follow one another. Times are weeks, days, or equal parts of a day or an hour apart.

    >>> find_gap(["2024-05-01", "2024-05-02", "2024-05-04"])
    (2, 'no part between 2024-05-02 and 2024-05-04')
    """
    places = [place for place in map(place_of, names) if place is not None]
    if len(places) < max(len(names), 2) or len({kind for kind, _ in places}) > 1:
        return None
    apart = [later - earlier for (_, earlier), (_, later) in pairwise(places)]
    if min(apart) <= 0:
        i = next(i for i, each in enumerate(apart) if each <= 0)
        raise DataError(
            f"{names[i]} and {names[i + 1]} are not one after the other: give one file for each part, with a date such "
            "as 2024-05-31 in its name"
        )
    usual = 1 if places[0][0] != "minute" else next(each for each in _APART if gcd(*apart) % each == 0)
    i = next((i for i, each in enumerate(apart) if each != usual), -1)
    return None if i < 0 else (i + 1, f"no part between {names[i]} and {names[i + 1]}")

"""The parts of a stream of data, as a watch keeps them: recent ones by themselves, older ones together.

At most 16 parts of each size 1, 2, 4, … are kept, so that their number grows with the logarithm of time. What was kept
depends on the number of parts alone, and so do all numbers that are calculated from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import accumulate, pairwise
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np

from plumdp.base.errors import DataError
from plumdp.data.contexts import VALUES, Context, ContextKind, added
from plumdp.data.seen import Seen
from plumdp.model.graph import FloatArray
from plumdp.watching.detectors import Starts, is_moment, pilot_of
from plumdp.watching.rows import WatchedRows

PER_SIZE = 16


@dataclass(frozen=True, eq=False)
class KeptPart:
    """Successive base parts, and what was seen in all of them."""

    name: str  # of the first one
    size: int
    seen: Seen
    pooled: FloatArray  # how often outcomes of the rows that are watched were seen
    highest: float = -np.inf  # logarithm of the largest sum over starts after one of them
    contexts: tuple[Context, ...] = ()  # none if some steps do not tell what came before

    def joined(self, later: KeptPart) -> KeptPart:
        """Return this part and the next one as one."""
        size, seen, pooled = self.size + later.size, self.seen + later.seen, self.pooled + later.pooled
        return KeptPart(self.name, size, seen, pooled, max(self.highest, later.highest), contexts_of([self, later]))


def contexts_of(parts: Sequence[KeptPart]) -> tuple[Context, ...]:
    """Return the contexts of all steps in some parts, of the kinds that each of them has."""
    first, *others = [part.contexts for part in parts if part.seen.counts.any()] or [()]
    for each in others:
        first = added(first, each)
    return first


@dataclass(frozen=True, eq=False)
class Stream:
    """Parts since a watch began, or began anew."""

    rows: WatchedRows
    parts: tuple[KeptPart, ...] = ()
    moments: Mapping[int, FloatArray] = field(default_factory=dict)  # outcomes that had been seen, for pilots

    @property
    def n(self) -> int:
        """The number of base parts."""
        return sum(part.size for part in self.parts)

    @property
    def ends(self) -> tuple[int, ...]:
        """How many base parts there were before each kept part, nothing before the first."""
        return tuple(accumulate((part.size for part in self.parts[:-1]), initial=0))

    def add(self, name: str, seen: Seen, contexts: tuple[Context, ...] = ()) -> Stream:
        """Return the stream with one more part."""
        parts, size = [*self.parts, KeptPart(name, 1, seen, self.rows.pool(seen.counts), contexts=contexts)], 1
        n = self.n + 1
        moments = dict(self.moments)
        if is_moment(n):
            moments[n] = np.sum([part.pooled for part in parts], axis=0)
        while sum(part.size == size for part in parts) > PER_SIZE:
            i = next(i for i, part in enumerate(parts) if part.size == size)
            parts[i : i + 2] = [parts[i].joined(parts[i + 1])]
            size *= 2
        return replace(self, parts=tuple(parts), moments=moments)

    def with_highest(self, evidence: float) -> Stream:
        """Return the stream after the sum over starts was calculated at its end."""
        last = replace(self.parts[-1], highest=round(evidence, 3))  # for pictures alone
        return replace(self, parts=(*self.parts[:-1], last))

    def starts(self, *, has_pilots: bool) -> Starts:
        """Return all starts that are kept; with pilots, not the one before the first part, nor those without one."""
        pooled = np.array([part.pooled for part in self.parts])
        before, total = np.cumsum(pooled, axis=0) - pooled, pooled.sum(axis=0)
        if not has_pilots:
            return Starts(self.rows.first, before, np.zeros_like(before), total)
        pilots = np.array([self._pilot(pilot_of(end)) for end in self.ends[1:]]).reshape(-1, len(total))
        return Starts(self.rows.first, before[1:], pilots, total)

    def _pilot(self, m: int) -> FloatArray:
        return self.moments[m] if m else np.zeros_like(self.parts[0].pooled)

    def since(self, number: int) -> Seen:
        """Return what was seen from a kept part on, given by its number."""
        seen = [part.seen for part in self.parts[number:]]
        return sum(seen[1:], seen[0])

    def to_json(self) -> dict[str, Any]:
        """Return everything that cannot be calculated, ready for JSON."""
        parts = [[part.name, part.size, part.highest, *_sparse(part.seen)] for part in self.parts]
        told = [_packed(part.contexts) for part in self.parts]
        moments = {str(i): _pairs(seen) for i, seen in self.moments.items()}
        return {"parts": parts, "moments": moments, "contexts": told}

    @staticmethod
    def from_json(content: Mapping[str, Any], rows: WatchedRows, n_learned: int) -> Stream:
        """Return the stream that a file has."""
        parts = []
        told = content.get("contexts", [None] * len(content["parts"]))  # of older files none
        for (name, size, highest, at, n, *rewards), pasts in zip(content["parts"], told, strict=True):
            seen = Seen.nothing(len(rows.outcome), n_learned)
            seen.counts[at] = n
            for sums in rewards:
                seen.rewards[:, :, at] = sums
            parts.append(KeptPart(name, size, seen, rows.pool(seen.counts), highest, _unpacked(pasts, seen)))
        length, moments = len(rows.pool(np.zeros(len(rows.outcome), dtype=np.int64))), {}
        for i, (at, n) in content["moments"].items():
            moments[int(i)] = np.zeros(length)
            moments[int(i)][at] = n
        return Stream(rows, tuple(parts), moments)


def _pairs(pooled: FloatArray) -> list[list[int]]:
    where = np.flatnonzero(pooled)
    return [where.tolist(), pooled[where].astype(np.int64).tolist()]


def _sparse(seen: Seen) -> list[Any]:
    where = np.flatnonzero(seen.counts)
    rewards = [seen.rewards[:, :, where].tolist()] if len(seen.rewards) else []
    return [where.tolist(), seen.counts[where].tolist(), *rewards]


def _packed(contexts: Sequence[Context]) -> list[Any] | None:
    """Return contexts ready for JSON, if there are any, without those of which all steps have the first value."""
    told = [each for each in contexts if each.name or each.value.any()]
    words = ([each.kind, each.name, each.values if each.name else ()] for each in told)
    cells = ([cell.tolist() for cell in each.cells[:3]] for each in told)
    return [[*some, *more] for some, more in zip(words, cells, strict=True)] if contexts else None


def _unpacked(told: Sequence[Any] | None, seen: Seen) -> tuple[Context, ...]:
    """Return the contexts of ``_packed`` for the steps of a part; the pilot of a stream is elsewhere."""
    if told is None:
        return ()
    nothing = np.zeros_like(seen.counts)[None]
    found = {(kind, ""): Context.of(kind, seen.counts[None], nothing) for kind in VALUES}
    for kind, name, values, *cells in told:
        own = ContextKind(kind)
        columns = (np.array(cell, dtype=np.int64) for cell in (*cells, [0] * len(cells[0])))
        found[own, name] = Context(own, name, tuple(values) or VALUES[own], *columns)
    return tuple(found.values())


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
    """Return the place of a part in time by its name, in minutes (of weeks as well), months or as a number, or None.

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
            return "week", _DAY * date.fromisocalendar(int(found[1]), int(found[2]), 1).toordinal()
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

    Months and numbers follow one another. Times are weeks, days, or equal parts of a day or an hour apart. Where the
    kind of names changes, nobody knows whether one is missing.

    >>> find_gap(["2024-05-01", "2024-05-02", "2024-05-04"])
    (2, 'no part between 2024-05-02 and 2024-05-04')
    """
    places = [place for place in map(place_of, names) if place is not None]
    if len(places) < max(len(names), 2):
        return None
    if other := next((i for i, (kind, _) in enumerate(places) if kind != places[0][0]), 0):
        told = f"{names[other - 1]} and {names[other]} are names of two kinds, so that a missing part would not show"
        return find_gap(names[:other]) or (other, f"{told}: name all parts alike")
    apart = [later - earlier for (_, earlier), (_, later) in pairwise(places)]
    if min(apart) <= 0:
        i = next(i for i, each in enumerate(apart) if each <= 0)
        raise DataError(
            f"{names[i]} and {names[i + 1]} are not one after the other: give one file for each part, with a date such "
            "as 2024-05-31 in its name"
        )
    usual = 1 if places[0][0] in ("month", "number") else next(each for each in _APART if gcd(*apart) % each == 0)
    i = next((i for i, each in enumerate(apart) if each != usual), -1)
    return None if i < 0 else (i + 1, f"no part between {names[i]} and {names[i + 1]}")

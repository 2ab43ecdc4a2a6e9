"""Counts at many moments of data whose order is known, so that a change over time can be found.

Base parts are 16 runs each (or 256 rows), and the last one of data that are added up may be shorter. A boundary is the
end of a number of base parts, counted from the first datum. Which boundaries are kept may be chosen by looking at all
data, as tests over time sum over every boundary that there might be, and leaving some out only makes them smaller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Assumption, parts_in
from plumdp.data.seen import CountArray
from plumdp.model.graph import BoolArray, Indices, read_only
from plumdp.model.text import number_of, one_line

RUNS_PER_PART = 16
MOST_TRANSITIONS = 50_000  # of a model, up to which all boundaries are counted: else those at which bets are placed
_MANY = 4096  # entries that are kept apart
_NOTHING = np.zeros((3, 0), dtype=np.int64)
FILED = Assumption(
    "how data were divided into the counts that were added was decided before the outcomes of their steps",
    brief="no outcome decided how data were divided",
)


def boundaries_of(n: int) -> list[int]:
    """Return the boundaries that are kept of n base parts.

    These are 16 to 31 parts of one size, and ever shorter ones at both ends, for changes that came early or late.

    >>> boundaries_of(100)
    [1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72, 76, 80, 84, 88, 92, 96, 98, 99]
    """
    size = 1 << max(n.bit_length() - 5, 0)
    early, late = ([1 << k for k in range(size.bit_length())], [(n - 1) >> k << k for k in range(size.bit_length())])
    return sorted({i for i in (*range(size, n, size), *early, *late) if 0 < i < n})


def runs_of_parts(n_runs: int, moments: Sequence[int], n_transitions: int) -> list[int]:
    """Return after how many runs there are boundaries, given the moments at which bets are placed."""
    if n_transitions > MOST_TRANSITIONS:
        return [moment for moment in moments if moment % RUNS_PER_PART == 0]
    return [RUNS_PER_PART * i for i in boundaries_of(-(-n_runs // RUNS_PER_PART))] if moments else []


@dataclass(frozen=True, eq=False)
class TimeParts:
    """What was seen between the boundaries; what came after the last one is the rest of the counts.

    ``names`` say in words what came right after each boundary, and ``rests_on`` what somebody has to vouch for.

    >>> parts = parts_at([16, 32], [np.array([3, 13]), np.array([7, 25])], 40)
    >>> parts, parts.names, [seen.tolist() for seen in parts.seen_in_parts(2)]
    (TimeParts(3 base parts, 2 boundaries), ('run 17', 'run 33'), [[3, 13], [4, 12]])
    """

    n: int  # base parts in all
    ends: tuple[int, ...]  # base parts before each boundary, ascending
    names: tuple[str, ...]
    entries: CountArray  # (3, n_entries): the number of the boundary that a transition was seen before, and how often
    rests_on: str = ""
    n_added: int = 1  # how many counts were added up

    def __post_init__(self) -> None:
        """Check the boundaries; entries of one part and transition become one, and those after all ends are dropped."""
        bounds, entries = (0, *self.ends, self.n) if self.ends else (), self.entries
        if any(a >= b for a, b in pairwise(bounds)) or len(self.names) != len(self.ends) or (entries < 0).any():
            raise DataError("parts of data over time need boundaries in order, each with a name and what was seen")
        kept = (entries[0] < len(self.ends)) & (entries[2] > 0)
        object.__setattr__(self, "entries", read_only(_pooled(entries[:, kept])))

    def seen_in_parts(self, n_transitions: int) -> Iterator[CountArray]:
        """Yield how often each transition was seen before each boundary, after the one before it."""
        for number in range(len(self.ends)):
            seen = np.zeros(n_transitions, dtype=np.int64)
            _, transition, counts = self.entries[:, slice(*np.searchsorted(self.entries[0], [number, number + 1]))]
            seen[transition] = counts
            yield seen

    @property
    def words(self) -> dict[str, Any]:
        """All that is said beside the entries, for files."""
        return {"n": self.n, "ends": self.ends, "names": self.names, "rests_on": self.rests_on, "n_added": self.n_added}

    @staticmethod
    def from_words(words: Mapping[str, Any], entries: CountArray) -> TimeParts:
        """Return the parts that a file has."""
        told = {**words, "ends": tuple(words["ends"]), "names": tuple(words["names"])}
        return TimeParts(entries=entries, **told)

    def total(self, n_transitions: int) -> CountArray:
        """Return the count of each transition before the last boundary."""
        total = np.zeros(n_transitions, dtype=np.int64)
        np.add.at(total, self.entries[1], self.entries[2])
        return total

    def of_rows(self, is_kept: BoolArray) -> TimeParts:
        """Return the parts with some transitions (n_transitions) alone."""
        return replace(self, entries=self.entries[:, is_kept[self.entries[1]]])

    def then(self, counts: CountArray, other: TimeParts | None, name: str, order: str = "") -> TimeParts:
        """Return the parts of these data and others that came later, which are one part if nothing is known of theirs.

        ``counts`` are those of all of these data, ``name`` is what the others are called, and ``order`` what somebody
        has to vouch for that is about theirs.
        """
        later, place = other or TimeParts(1, (), (), _NOTHING), len(self.ends)
        if not counts.any():
            return replace(later, rests_on="; ".join(filter(None, [later.rests_on, order])))
        called, rest = name or f"counts number {self.n_added + 1:,}", counts - self.total(len(counts))
        ends = (*self.ends, self.n, *(self.n + end for end in later.ends))
        names = (*self.names, called, *(f"{each} of {called}" for each in later.names))
        entries = np.hstack([self.entries, _entries(place, rest), later.entries + np.array([[place + 1], [0], [0]])])
        n, wanted = self.n + later.n, np.array(boundaries_of(self.n + later.n))
        # of too many boundaries, those next to the ones that are kept of so many base parts
        nearest = np.abs(np.array(ends)[:, None] - wanted).argmin(axis=0)
        kept = np.unique(nearest).tolist() if len(ends) > len(wanted) else range(len(ends))
        entries[0] = np.searchsorted(kept, entries[0])
        told = tuple(ends[i] for i in kept), tuple(names[i] for i in kept)
        said = dict.fromkeys([FILED, *parts_in(self.rests_on), *parts_in(later.rests_on), *([order] if order else [])])
        return TimeParts(n, *told, entries, "; ".join(said), self.n_added + later.n_added)

    def __repr__(self) -> str:
        return one_line(self, number_of(self.n, "base part"), f"{len(self.ends):,} boundaries")


class Recorder:
    """Collects what is seen between boundaries, which are after so many runs or rows (``ends``)."""

    def __init__(self, ends: Sequence[int], *, unit: str = "run", per_part: int = RUNS_PER_PART) -> None:
        self.ends, self._unit, self._per_part = ends, unit, per_part
        self._entries = [_NOTHING]

    def add(self, number: Indices | int, transition: Indices, counts: CountArray | int = 1) -> None:
        """Add how often transitions were seen, before the boundary of this number."""
        self._entries.append(np.array(np.broadcast_arrays(number, transition, counts)))
        if len(self._entries) > _MANY:
            self._entries = [_pooled(np.hstack(self._entries))]

    def parts(self, n: int) -> TimeParts:
        """Return the parts of n runs or rows."""
        names = tuple(f"{self._unit} {end + 1:,}" for end in self.ends)
        ends = tuple(end // self._per_part for end in self.ends)
        return TimeParts(-(-n // self._per_part), ends, names, np.hstack(self._entries))


def parts_at(
    ends: Sequence[int], seen: Sequence[CountArray], n: int, *, unit: str = "run", per_part: int = RUNS_PER_PART
) -> TimeParts:
    """Return the parts of n runs or rows, given what had been seen after so many of them, in whole base parts."""
    moments = {end: counts for end, counts in zip(ends, seen, strict=True) if end % per_part == 0 and end < n}
    recorder = Recorder([*moments], unit=unit, per_part=per_part)
    before: CountArray | int = 0
    for number, after in enumerate(moments.values()):
        recorder.add(*_entries(number, after - before))
        before = after
    return recorder.parts(n)


def _entries(number: int, counts: CountArray) -> CountArray:
    """Return the counts before a boundary as entries."""
    seen = np.flatnonzero(counts)
    return np.array([np.full(len(seen), number), seen, counts[seen]])


def _pooled(entries: CountArray) -> CountArray:
    """Return entries in order, each boundary and transition once."""
    size = int(entries[1].max(initial=0)) + 1
    key, place = np.unique(entries[0] * size + entries[1], return_inverse=True)
    sums = np.zeros(len(key), dtype=np.int64)
    np.add.at(sums, place, entries[2])
    return np.array([key // size, key % size, sums])

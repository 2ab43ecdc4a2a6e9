"""``Context``: how often each transition was taken after each kind of past of its run.

A row has one law whatever came before, if the model is right, so that counts which differ between contexts speak
against it. A context is a function of the run before the outcome of a step, and its values are fixed bins: what depends
on the outcome, or on how often a value occurs in the end, would contradict right models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError
from plumdp.base.json_values import read_as
from plumdp.data.seen import CountArray
from plumdp.model.graph import BoolArray, Indices, read_only
from plumdp.model.text import one_line

MOST_VALUES = 8
MOST_TRANSITIONS = 50_000  # of a model whose contexts are counted


class ContextKind(StrEnum):
    """What of the past of a run a context is."""

    VISITS = "visits"
    """Earlier visits of the row in its run, whether or not their outcome was seen."""

    LAST = "last"
    """The outcome of the last of these visits: the place of the transition among those of the row."""

    PREVIOUS = "previous"
    """The choice of the step before, by its place among the choices that may lead to the state."""

    STEP = "step"
    """Earlier steps of the run."""

    SINCE = "since"
    """Steps since the state was entered."""

    KNOWN = "known"
    """A column that is known before a run begins, because somebody says so."""


_BINS = ("0", "1", "2 to 3", "4 to 7", "8 to 15", "16 to 31", "32 to 63", "64 or more")
_STEPS = ("0", "1", "2", "3", "4 to 7", "8 to 15", "16 to 31", "32 or more")
_PLACES = ("none", "first", "second", "third", "fourth", "fifth", "sixth", "another")
VALUES: dict[ContextKind, tuple[str, ...]] = {
    ContextKind.VISITS: _BINS,
    ContextKind.LAST: _PLACES,
    ContextKind.PREVIOUS: _PLACES,
    ContextKind.STEP: _STEPS,
    ContextKind.SINCE: _BINS,
}
"""The values of kinds that have the same ones in all data."""


@dataclass(frozen=True, eq=False)
class Context:
    """How often each transition was taken after each kind of past of its run.

    >>> one, three = np.array([1]), np.array([3])
    >>> Context(ContextKind.VISITS, "", ("0", "1"), one, one, three, one)
    Context(visits, 1 of 2 values seen)
    """

    kind: ContextKind
    name: str  # the column, if ``kind`` is known; otherwise nothing
    values: tuple[str, ...]  # at most 8, in words of the kind
    value: Indices  # (n_cells): by number; cells are sorted by value and transition, each pair once
    transition: Indices  # (n_cells)
    count: CountArray  # (n_cells): above 0
    pilot: CountArray  # (n_cells): of these, those in the pilot of the counts

    def __post_init__(self) -> None:
        for name in ("value", "transition", "count", "pilot"):
            object.__setattr__(self, name, read_only(np.array(getattr(self, name), dtype=np.int64)))
        key = self.value * (1 + self.transition.max(initial=0)) + self.transition
        is_sorted = (np.diff(key) > 0).all() and self.transition.min(initial=0) >= 0 and self.value.min(initial=0) >= 0
        is_counted = (self.count > 0).all() and (self.pilot >= 0).all() and (self.pilot <= self.count).all()
        n = len(self.values)
        if not is_sorted or not is_counted or not self.value.max(initial=-1) < n <= MOST_VALUES:
            raise DataError("cells of a context have a value, a transition, and how often, in order, each once")

    @staticmethod
    def of(
        kind: ContextKind, main: CountArray, pilot: CountArray, *, name: str = "", values: Sequence[str] = ()
    ) -> Context:
        """Return the context that has these counts after and in the pilot (n_values, n_transitions)."""
        value, transition = np.nonzero(main + pilot)
        first = pilot[value, transition]
        return Context(
            kind, name, tuple(values) or VALUES[kind], value, transition, main[value, transition] + first, first
        )

    @property
    def cells(self) -> tuple[npt.NDArray[Any], ...]:
        """The value, transition, count and pilot of each cell."""
        return self.value, self.transition, self.count, self.pilot

    @property
    def words(self) -> dict[str, Any]:
        """All that is said beside the cells, for files."""
        return {"kind": str(self.kind), "name": self.name, "values": [*self.values]}

    @staticmethod
    def from_words(words: Any, cells: CountArray) -> Context:
        """Return the context that a file has, with its cells (4, n_cells)."""
        named: dict[str, type] = {"kind": ContextKind, "name": str, "values": tuple[str, ...]}
        told = read_as(named, words, "contexts")
        return Context(*(told[name] for name in named), *cells)

    def sums(self, n_transitions: int) -> tuple[CountArray, CountArray]:
        """Return the count of each transition in all cells (n_transitions), and that in the pilot."""
        total, pilot = np.zeros((2, n_transitions), dtype=np.int64)
        np.add.at(total, self.transition, self.count)
        np.add.at(pilot, self.transition, self.pilot)
        return total, pilot

    def of_rows(self, is_kept: BoolArray) -> Context:
        """Return the context with some transitions (n_transitions) alone."""
        kept = is_kept[self.transition]
        cells = {name: getattr(self, name)[kept] for name in ("value", "transition", "count", "pilot")}
        return replace(self, **cells)

    def with_pilot(self, is_pilot: bool) -> Context:
        """Return the context of data that are all in the pilot, or none of them."""
        return replace(self, pilot=self.count * is_pilot)

    def __add__(self, other: Context) -> Context:
        """Return the counts of both; values are the same if their words are."""
        values = tuple(dict.fromkeys([*self.values, *other.values]))
        number = np.array([values.index(word) for word in other.values], dtype=np.int64)
        entries = [
            np.concatenate([self.value, number[other.value]]),
            *(np.concatenate([getattr(self, name), getattr(other, name)]) for name in ("transition", "count", "pilot")),
        ]
        size = 1 + int(entries[1].max(initial=0))
        key, place = np.unique(entries[0] * size + entries[1], return_inverse=True)
        count, pilot = np.zeros((2, len(key)), dtype=np.int64)
        np.add.at(count, place, entries[2])
        np.add.at(pilot, place, entries[3])
        return replace(self, values=values, value=key // size, transition=key % size, count=count, pilot=pilot)

    def __repr__(self) -> str:
        name = f"{self.kind} {self.name}" if self.name else str(self.kind)
        return one_line(self, name, f"{len(np.unique(self.value))} of {len(self.values)} values seen")


def added(some: Sequence[Context], others: Sequence[Context]) -> tuple[Context, ...]:
    """Return the contexts that both data have, added up; refuse one that has too many values."""
    named = {(each.kind, each.name): each for each in others}
    pairs = [(each, named[each.kind, each.name]) for each in some if (each.kind, each.name) in named]
    for one, other in pairs:  # to leave it out by looking would give its share of the error to the others
        if (n := len({*one.values, *other.values})) > MOST_VALUES:
            raise DataError(
                f"{one.name} has {n} values in these data together, and at most {MOST_VALUES} are told apart"
            )
    return tuple(one + other for one, other in pairs)

"""The distinct sequences of expressions that the choices of a model have, and the sequence of each choice.

Models have few of them beside their choices. Results that depend on the expressions of a row are found once for each
distinct row, in its *places*, which are the transitions of one choice that has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.model import kernels
from plumdp.model.graph import Indices, IntArray, owners, owners_of, ranges, read_only


@dataclass(frozen=True, eq=False)
class RowClasses:
    """Row ``r`` has the places ``first[r]`` up to ``first[r + 1]``, in the order of the transitions of its choices."""

    first_transition: IntArray  # (n_choices + 1), of the graph
    number: IntArray  # (n_choices): the row of each choice
    representative: IntArray  # (n_rows): the first choice that has it

    def __len__(self) -> int:
        return len(self.representative)

    @cached_property
    def first(self) -> IntArray:
        """The offsets (n_rows + 1) of the places of each row."""
        starts = self.first_transition
        return offsets_of(starts[self.representative + 1] - starts[self.representative])

    @cached_property
    def n_choices(self) -> IntArray:
        """The number of choices that have each row (n_rows)."""
        return read_only(np.bincount(self.number, minlength=len(self)).astype(np.int32))

    @property
    def transition(self) -> Indices:
        """The transition at each place, of the choice that represents the row."""
        starts = self.first_transition
        return ranges(starts[self.representative], starts[self.representative + 1])

    def place_of(self, transitions: Indices) -> tuple[IntArray, Indices]:
        """Return choice and place of some transitions, which are in order."""
        first = self.first_transition
        is_few = 8 * len(transitions) < len(first)  # then each is looked up
        choice = owners_of(first, transitions) if is_few else owners(first)[transitions]
        return choice, transitions + (self.first[self.number[choice]] - first[choice])

    def sum_by_place(self, counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the sums (n_places) of numbers on transitions, exact for whole numbers, most of which may be zero."""
        counted = np.flatnonzero(counts != 0)
        total = np.zeros(self.first[-1], dtype=counts.dtype)
        np.add.at(total, self.place_of(counted)[1], counts[counted])
        return total

    def sum_by_row(self, by_place: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the sums (n_rows) over the places of each row."""
        return np.add.reduceat(by_place, self.first[:-1]) if len(self) else by_place

    def by_transition(self, of_place: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each transition the value that is given for its place."""
        starts = self.first_transition
        first = self.first[:-1][self.number]
        return of_place[ranges(first, first + np.diff(starts))]

    def by_choice(self, first: IntArray, items: npt.NDArray[Any]) -> tuple[IntArray, npt.NDArray[Any]]:
        """Return offsets and items of choices, given those of rows, where row r has those from ``first[r]`` on."""
        start, end = first[:-1][self.number], first[1:][self.number]
        return offsets_of(end - start), items[ranges(start, end)]


def offsets_of(sizes: Indices) -> IntArray:
    """Return the offsets at which groups of the given sizes start, and the end of the last one."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return read_only(offsets)


def find_row_classes(first: IntArray, items: IntArray) -> RowClasses:
    """Return the distinct rows, ``items[first[r]]`` up to ``items[first[r + 1]]``."""
    n_rows = len(first) - 1
    slots = np.full(1 << max(4, (2 * n_rows).bit_length()), kernels.EMPTY, dtype=np.int32)
    number, representative = np.empty(n_rows, dtype=np.int32), np.empty(n_rows, dtype=np.int32)
    n_distinct = kernels.row_classes(read_only(first.view()), read_only(items.view()), slots, number, representative)
    return RowClasses(first, read_only(number), read_only(representative[:n_distinct].copy()))

"""Natures, one module of compiled loops with the same interface for each kind of set that nature may pick from.

``backup`` writes one more step of both players at their best, ``chain_of_best`` the Markov chain of their moves.
"""

from __future__ import annotations

from functools import singledispatch
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plumdp.model.graph import FloatArray
from plumdp.relaxation.row_regions import RowEllipsoid, RowPolytopes, RowRegion
from plumdp.solver.nature import ellipsoid, interval, vertices

Unsigned = npt.NDArray[np.uint32]


class Rows(NamedTuple):
    """The rows, which are choices, where row ``c`` has the transitions ``first[c]`` up to ``first[c + 1]``.

    Transition ``t`` leads to the position ``successor[t]`` with a probability between ``lower[expression[t]]`` and
    ``upper[expression[t]]``. Agent and nature are +1 if they want large values, -1 if they want small ones.
    """

    first_choice: Unsigned  # (n_positions + 1)
    first: Unsigned  # (n_rows + 1)
    successor: Unsigned  # (n_transitions)
    expression: Unsigned  # (n_transitions)
    lower: FloatArray  # (n_expressions)
    upper: FloatArray  # (n_expressions)
    reward: FloatArray  # (n_rows)
    discount: float
    agent: float
    nature: float


class Loops(NamedTuple):
    """The compiled loops for one kind of set that nature picks from, and their arguments besides the rows.

    They remember nature's moves for one copy of the rows and its bounds, so that other copies need loops of their own.
    """

    module: ModuleType
    extra: tuple[Any, ...]
    rooms: tuple[FloatArray, ...]  # those of ``extra`` that are used anew for each row

    def apart(self) -> Loops:
        """Return the same loops with rooms of their own, for another thread, which never has the same row."""
        new = {id(room): np.empty_like(room) for room in self.rooms}
        return self._replace(extra=tuple(new.get(id(each), each) for each in self.extra), rooms=tuple(new.values()))


@singledispatch
def loops_for(region: object, rows: Rows, longest: int, n_kept: int) -> Loops:
    """Return the loops for the set that nature picks from at a row, given the rows and the length of the longest.

    ``n_kept`` is the number of transitions if they are swept so often that nature's moves are worth keeping, else 0.
    """
    raise TypeError(f"nature cannot pick from {type(region).__name__}: register loops for it in solver/nature")


@loops_for.register(type(None))
def _(region: None, rows: Rows, longest: int, n_kept: int) -> Loops:
    room = np.empty(2 * longest)
    return Loops(interval, (room, np.full(n_kept, -1.0)), (room,))


@loops_for.register
def _(region: RowRegion, rows: Rows, longest: int, n_kept: int) -> Loops:
    positions = np.zeros(len(rows.first) - 1, dtype=np.int32)  # the vertex where nature was last, in each row
    rooms = np.empty(region.tables[0].shape[1]), np.empty(longest)
    return Loops(vertices, (positions, *rooms, region.tables), rooms)


@loops_for.register
def _(region: RowPolytopes, rows: Rows, longest: int, n_kept: int) -> Loops:
    rooms = np.empty(region.tables[0].shape[1]), np.empty(longest)
    return Loops(vertices, (region.first_vertices(rows.first, rows.expression), *rooms, region.tables), rooms)


@loops_for.register
def _(region: RowEllipsoid, rows: Rows, longest: int, n_kept: int) -> Loops:
    rooms = np.empty(region.tables[1].shape[1]), np.empty(longest)
    return Loops(ellipsoid, (np.zeros(0, dtype=np.int32), *rooms, region.tables), rooms)

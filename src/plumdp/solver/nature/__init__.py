"""Natures: for each set that nature may pick from, a module of compiled loops with the same interface.

``backup`` writes one more step of both players at their best, ``chain_of_best`` the Markov chain of their moves.
"""

from __future__ import annotations

from functools import singledispatch
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from plumdp.relaxation.ellipsoidal import RowEllipsoid
from plumdp.relaxation.rectangular import RowRegion
from plumdp.relaxation.row_polytopes import RowPolytopes
from plumdp.solver.nature import ellipsoid, interval, vertices
from plumdp.solver.rows import Rows


class Loops(NamedTuple):
    """The compiled loops for one kind of set that nature picks from, and their arguments besides the rows."""

    module: ModuleType
    extra: tuple[Any, ...]


@singledispatch
def loops_for(region: object, rows: Rows, longest: int) -> Loops:
    """Return the loops for what nature picks from at a row, given the rows and the longest of them."""
    raise TypeError(f"nature cannot pick from {type(region).__name__}: register loops for it in solver/nature")


@loops_for.register(type(None))
def _(region: None, rows: Rows, longest: int) -> Loops:
    return Loops(interval, (np.empty(longest),))


@loops_for.register
def _(region: RowRegion, rows: Rows, longest: int) -> Loops:
    positions = np.zeros(len(rows.first) - 1, dtype=np.int32)  # the vertex where nature was last, in each row
    return Loops(vertices, (positions, np.empty(longest), region.tables))


@loops_for.register
def _(region: RowPolytopes, rows: Rows, longest: int) -> Loops:
    positions = region.first_vertices(rows.first, rows.expression)
    return Loops(vertices, (positions, np.empty(longest), region.tables))


@loops_for.register
def _(region: RowEllipsoid, rows: Rows, longest: int) -> Loops:
    return Loops(ellipsoid, (np.empty(longest), region.tables))

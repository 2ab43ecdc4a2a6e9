"""Finds half-spaces around a union of cells, in each of which bets of its own leave some points of an ellipsoid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plumdp.confidence.bets import HalfSpace
from plumdp.confidence.cells import Cells
from plumdp.confidence.likelihood import LinearConstraints
from plumdp.model.graph import FloatArray
from plumdp.region.conflict import Conflict
from plumdp.region.ellipsoid import Ellipsoid, about, cut_further, normalised

_MOST = 40  # cells in which bets are looked at


def around_cells(cells: Cells, ellipsoid: Ellipsoid) -> LinearConstraints | Conflict:
    """Return half-spaces around the points of an ellipsoid that the bets of their cell leave, none if cells are many.

    They lie across the gradients at the estimate and in the cells that reach furthest. Only in these bets are looked
    at: another cell may as well be left whole, as it reaches no further than they do.
    """
    rows = normalised(cells.gradients(cells.best))
    rows = np.vstack([rows, -rows])
    found = cells.partition.meeting(ellipsoid.lower, ellipsoid.upper)
    if found is None or not len(rows):
        return LinearConstraints.of([], len(cells.best), cells.error)
    parts = [(cell, _cut(ellipsoid, cell.sides)) for cell in found]
    whole = [(cell, part, _reach(part, rows)) for cell, part in parts if not isinstance(part, Conflict)]
    left: list[Ellipsoid] = []
    furthest = np.full(len(rows), -np.inf)
    for _ in range(min(_MOST, len(whole))):
        beyond = np.array([reach for _, _, reach in whole]) - furthest
        if not (beyond > 0).any():
            break
        cell, part, _ = whole.pop(int(beyond.max(axis=1).argmax()))
        gradients = cells.gradients(cell.centre)
        cut = _cut(part, [*cells.left(cell, gradients)])
        if not isinstance(cut, Conflict):
            new = normalised(gradients)
            new = np.vstack([new, -new])
            left.append(cut)
            furthest = np.append(
                np.maximum(furthest, _reach(cut, rows)), np.max([_reach(each, new) for each in left], axis=0)
            )
            whole = [(each, part, np.append(reach, _reach(part, new))) for each, part, reach in whole]
            rows = np.vstack([rows, new])
    if not (left or whole):
        return Conflict((), np.zeros(0), (about(ellipsoid), "bets in all cells of it"), np.nan)
    # the truth is in one of the cells, and none reaches further
    offsets = np.max([furthest, *(reach for _, _, reach in whole)], axis=0)
    return LinearConstraints(rows, offsets, ("bets in cells of the space",) * len(rows), cells.error)


def _cut(region: Ellipsoid, half_spaces: Sequence[HalfSpace]) -> Ellipsoid | Conflict:
    rows = np.array([each.row for each in half_spaces]).reshape(len(half_spaces), len(region.names))
    return cut_further(region, rows, np.array([each.offset for each in half_spaces]))


def _reach(region: Ellipsoid, rows: FloatArray) -> FloatArray:
    """Return upper bounds on the largest values of rows (m)."""
    return -region.minimise(-rows)

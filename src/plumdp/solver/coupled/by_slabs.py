"""Expansions in slabs of a ball, which are halved where they hold the ends of the bracket.

The remainder is of second order in the width of a slab, so that a few halvings at each end do away with it if the value
bends along its slope. In the middle slabs, the bounds of the whole ball are good enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from plumdp.model.graph import FloatArray
from plumdp.solver.coupled.brackets import Bracket, Setting, brackets_of
from plumdp.solver.coupled.remainder import ErrorModel
from plumdp.solver.coupled.slabs import Slab, halves, slab_across

_MAX_SLABS = 16  # brackets that are made
_WORTH = 0.003  # share of the width by which an end must have moved for a halving to count as a gain

_ATTEMPTS = 2  # halvings in a row that may gain nothing: a slab's ellipsoid is larger than the slab

_Side: TypeAlias = Literal["low", "high"]


@dataclass(frozen=True, eq=False)
class _Part:
    """A slab and a bracket of the values in it."""

    slab: Slab
    bracket: Bracket


def bracket_by_slabs(
    setting: Setting, slope: FloatArray, whole: Bracket, errors: ErrorModel, precision: float, *, order: int
) -> Bracket | None:
    """Return the bracket of an order in slabs across the slope of the value, or None if there are no slabs."""
    length = float(np.linalg.norm(slope))
    if not 0 < length < np.inf:
        return None
    reach = setting.linear_range(slope / length)
    first = slab_across(slope / length, reach.lower, reach.upper)
    if first is None:
        return None
    pieces, n_made = [_Part(first, whole)], 0
    attempts: dict[_Side, int] = {"low": _ATTEMPTS, "high": _ATTEMPTS}
    while n_made < _MAX_SLABS and any(attempts.values()):
        chosen = [_extreme(pieces, side) for side, left in attempts.items() if left]
        halved = [_halves(setting, piece, errors, precision, order) if piece in chosen else [] for piece in pieces]
        before, width = pieces, _end(_extreme(pieces, "high"), "high") - _end(_extreme(pieces, "low"), "low")
        n_made += sum(map(len, halved))
        pieces = [part for old, new in zip(pieces, halved, strict=True) for part in new or [old]]
        for side, left in attempts.items():
            gains = left > 0 and _gain(before, pieces, side) > _WORTH * width
            attempts[side] = _ATTEMPTS if gains else max(left - 1, 0)
    name = "second" if order == 2 else "first"
    return _union(pieces, whole.middle, f"{name} order in {len(pieces)} slabs") if len(pieces) > 1 else None


def _extreme(pieces: list[_Part], side: _Side) -> _Part:
    """Return the piece that holds one end of the bracket of all."""
    pick = min if side == "low" else max
    return pick(pieces, key=lambda piece: _end(piece, side))


def _end(piece: _Part, side: _Side) -> float:
    return piece.bracket.low.value if side == "low" else piece.bracket.high.value


def _gain(before: list[_Part], after: list[_Part], side: _Side) -> float:
    """Return the distance by which one end of the bracket has moved inward."""
    return abs(_end(_extreme(after, side), side) - _end(_extreme(before, side), side))


def _halves(setting: Setting, piece: _Part, errors: ErrorModel, precision: float, order: int) -> list[_Part]:
    """Return both halves of a piece with their brackets, or nothing if a half has none."""
    parts = []
    for slab in halves(piece.slab):
        found = brackets_of(setting.within(slab), errors, precision, orders=(order,))
        if not found:
            return []
        parts.append(_Part(slab, _better(found[0], piece.bracket)))
    return parts


def _better(inner: Bracket, outer: Bracket) -> Bracket:
    """Return the better ends of two brackets that both hold, as distances from the middle of the outer one."""
    low, high = inner.low, inner.high
    low = replace(low, statistics=low.statistics + outer.middle - inner.middle)
    high = replace(high, statistics=high.statistics + inner.middle - outer.middle)
    return Bracket(
        low if low.value > outer.low.value else outer.low,
        high if high.value < outer.high.value else outer.high,
        outer.middle,
    )


def _union(pieces: list[_Part], middle: float, kind: str) -> Bracket:
    """Return the bracket of a value that lies in one of the pieces."""
    # the point is in some slab, though not known which: the outermost ends hold
    low = min((piece.bracket.low for piece in pieces), key=lambda end: end.value)
    high = max((piece.bracket.high for piece in pieces), key=lambda end: end.value)
    below, above = (
        tuple(dict.fromkeys(piece for each in ends for piece in each.pieces))
        for ends in ([each.bracket.low for each in pieces], [each.bracket.high for each in pieces])
    )
    return Bracket(replace(low, kind=kind, pieces=below), replace(high, kind=kind, pieces=above), middle)

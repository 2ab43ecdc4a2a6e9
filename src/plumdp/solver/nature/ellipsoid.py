"""Compiled backups, rounded outward, and chains of best moves where nature picks points of an ellipsoid.

The interface is that of ``interval.backup`` and ``interval.chain_of_best``. Rows with at most two successors need no
ellipsoid, since over it their expression ranges over an interval, which is all that matters. The value of longer rows
has a closed form. Where intervals are narrower, nature gets the worse of the two for it, since the truth is in both.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from plumdp.base.compiled import compiled, compiled_leaf
from plumdp.base.rounding import SQUARES_UNDERFLOW as UNDERFLOW
from plumdp.base.rounding import UNIT
from plumdp.relaxation.row_regions import CUT, OUTSIDE
from plumdp.solver.nature.interval import infinite_row
from plumdp.solver.nature.shared import interval_move, make_loops


@compiled_leaf
def with_intervals(
    a: int, b: int, successor: Any, expression: Any, lower: Any, upper: Any, source: Any, nature: float, side: float,
    buffer: Any, kind: int, by_ellipsoid: float,
) -> Any:  # fmt: skip
    """Return the value of a row within its intervals, or within the ellipsoid if that is worse for nature."""
    is_finite = True
    for t in range(a, b):
        is_finite = is_finite and abs(source[successor[t]]) < np.inf
        is_possible = abs(source[successor[t]]) == np.inf and upper[expression[t]] > 0.0
        if is_possible and kind & OUTSIDE == 0 and side > 0.0:  # within the ellipsoid nature may be unable to avoid it
            return np.inf
    value, error = infinite_row(a, b, successor, expression, lower, upper, source, nature, buffer)
    value = value + side * error if error != 0.0 else value
    # the truth is within both sets, so that nature gets no more than the worse of the two
    if is_finite and kind & OUTSIDE == 0 and nature * by_ellipsoid <= nature * value:
        return by_ellipsoid
    return value


@partial(compiled, inline="always")
def ellipsoid_sums(
    a: int, b: int, successor: Any, expression: Any, source: Any, tables: Any, direction: Any
) -> tuple[Any, float, Any, float]:
    """Write a row's direction of growth, and return its kind, value at the centre less the first, growth and size.

    Values count as differences to the first one of their row, so that equal values leave nothing to round. With an
    infinite one the size is not finite.
    """
    means, spreads, sizes, kinds = tables
    kind, middle, size, squares = np.int64(kinds[expression[a]]), 0.0, 0.0, 0.0
    reference = source[successor[a]]
    for j in range(len(direction)):
        direction[j] = 0.0
    for t in range(a + 1, b):
        f = expression[t]
        difference = source[successor[t]] - reference
        kind |= kinds[f]
        middle += means[f] * difference
        size += sizes[f] * abs(difference) + (UNDERFLOW if difference != 0.0 else 0.0)
        for j in range(len(direction)):
            direction[j] += spreads[f, j] * difference
    for j in range(len(direction)):
        squares += direction[j] * direction[j]
    return kind, middle, np.sqrt(squares), size


@partial(compiled, inline="always")
def ellipsoid_row(
    a: int, b: int, row: int, successor: Any, expression: Any, lower: Any, upper: Any, source: Any, nature: float,
    side: float, position: Any, direction: Any, buffer: Any, tables: Any,
) -> Any:  # fmt: skip
    """Return the value of a row with nature at its best, rounded to the given side."""
    kind, middle, length, size = ellipsoid_sums(a, b, successor, expression, source, tables, direction)
    value = source[successor[a]]
    if size != 0.0:
        value += middle + nature * length
        error = UNIT * (float(b - a + 2 * len(direction) + 16) * size + 4.0 * abs(value)) + UNDERFLOW
        value += side * error  # outward: below for lower bounds, above for upper ones
        if kind != 0 or not size < np.inf:
            value = with_intervals(
                a, b, successor, expression, lower, upper, source, nature, side, buffer, kind, value,
            )  # fmt: skip
    return value


@compiled_leaf
def best_move(
    a: int, b: int, row: int, successor: Any, expression: Any, lower: Any, upper: Any, judge: Any, nature: float,
    position: Any, direction: Any, move: Any, tables: Any,
) -> None:  # fmt: skip
    """Write nature's best probabilities in a row, from intervals or from the ellipsoid, as the row's value has it."""
    means, spreads, _, _ = tables
    worth = interval_move(a, b, successor, expression, lower, upper, judge, nature, move)
    kind, middle, length, size = ellipsoid_sums(a, b, successor, expression, judge, tables, direction)
    if b - a <= 2 or kind & OUTSIDE != 0 or not size < np.inf:
        return
    if kind & CUT != 0 and nature * worth < nature * (judge[successor[a]] + middle + nature * length):
        return
    for t in range(a, b):
        f = expression[t]
        move[t - a] = means[f]
        for j in range(len(direction)):
            if length > 0.0:
                move[t - a] += nature * spreads[f, j] * direction[j] / length


backup, chain_of_best = make_loops(__name__, ellipsoid_row, best_move, least=UNDERFLOW, small=20_000)

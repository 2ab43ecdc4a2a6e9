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
from plumdp.relaxation.ellipsoidal import CUT, OUTSIDE
from plumdp.solver.chain_kernels import add_entry
from plumdp.solver.nature.interval import infinite_row
from plumdp.solver.nature.shared import interval_move, pair_row, settled, with_reward


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


@partial(compiled, small=20_000)
def backup(
    start: int,
    end: int,
    step: int,
    rows: Any,
    side: float,
    lift: float,
    cap: float,
    source: Any,
    result: Any,
    best_row: Any,
    buffer: Any,
    tables: Any,
) -> tuple[int, float]:
    """Write one more step of both players at their best, as ``interval.backup`` does.

    Values count as differences to the first one of their row, so that equal values leave nothing to round. With an
    infinite one the size is not finite. All in one function: calls with so many arrays take longer than the sums.
    """
    first_choice, first, successor, expression, lower, upper, reward, discount, agent, nature = rows
    means, spreads, sizes, kinds = tables
    direction = np.empty(spreads.shape[1])
    n_larger, change = 0, 0.0
    for k in range(end - start):
        i = start + k if step > 0 else end - 1 - k
        best, chosen = -agent * np.inf, first_choice[i]
        for c in range(first_choice[i], first_choice[i + 1]):
            a, b = np.int64(first[c]), np.int64(first[c + 1])
            if b - a == 1:
                value = source[successor[a]]
            elif b - a == 2:
                value = pair_row(a, successor, expression, lower, upper, source, nature, side)
            else:
                kind, middle, size, squares = np.int64(kinds[expression[a]]), 0.0, 0.0, 0.0
                value = source[successor[a]]
                for j in range(len(direction)):
                    direction[j] = 0.0
                for t in range(a + 1, b):
                    f = expression[t]
                    difference = source[successor[t]] - value
                    kind |= kinds[f]
                    middle += means[f] * difference
                    size += sizes[f] * abs(difference) + (UNDERFLOW if difference != 0.0 else 0.0)
                    for j in range(len(direction)):
                        direction[j] += spreads[f, j] * difference
                for j in range(len(direction)):
                    squares += direction[j] * direction[j]
                if size != 0.0:
                    value += middle + nature * np.sqrt(squares)
                    error = UNIT * (float(b - a + 2 * len(direction) + 16) * size + 4.0 * abs(value)) + UNDERFLOW
                    value += side * error  # outward: below for lower bounds, above for upper ones
                    if kind != 0 or not size < np.inf:
                        value = with_intervals(
                            a, b, successor, expression, lower, upper, source, nature, side, buffer, kind, value,
                        )  # fmt: skip
            value = with_reward(value, reward[c], discount, side, UNDERFLOW)
            if agent * value > agent * best:
                best, chosen = value, c
        result[i], is_larger, change = settled(result[i], best, side, lift, cap, change)
        n_larger += is_larger
        if (agent > 0.0 and side < 0.0 and is_larger) or (agent < 0.0 and side > 0.0):
            best_row[i] = chosen
    return n_larger, change


@compiled_leaf
def ellipsoid_sums(
    a: int, b: int, successor: Any, expression: Any, source: Any, means: Any, spreads: Any, sizes: Any, kinds: Any,
    direction: Any,
) -> tuple[int, float, float, float]:  # fmt: skip
    """Write a row's direction of growth, and return its kind, value at the centre less the first, growth and size.

    The backup has the same sums written out, as a call made its sweeps up to 1.4 times slower.
    """
    kind, middle, size, squares = kinds[expression[a]], 0.0, 0.0, 0.0
    reference = source[successor[a]]
    for j in range(len(direction)):
        direction[j] = 0.0
    for t in range(a + 1, b):
        f = expression[t]
        difference = source[successor[t]] - reference
        kind |= kinds[f]
        middle += means[f] * difference
        size += sizes[f] * abs(difference)
        for j in range(len(direction)):
            direction[j] += spreads[f, j] * difference
    for j in range(len(direction)):
        squares += direction[j] * direction[j]
    return kind, middle, np.sqrt(squares), size


@compiled_leaf
def best_move(
    a: int, b: int, successor: Any, expression: Any, lower: Any, upper: Any, judge: Any, nature: float, move: Any,
    tables: Any, direction: Any,
) -> None:  # fmt: skip
    """Write nature's best probabilities in a row, from intervals or from the ellipsoid, as the row's value has it."""
    means, spreads, sizes, kinds = tables
    worth = interval_move(a, b, successor, expression, lower, upper, judge, nature, move)
    kind, middle, length, size = ellipsoid_sums(
        a, b, successor, expression, judge, means, spreads, sizes, kinds, direction,
    )  # fmt: skip
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


@compiled
def chain_of_best(
    start: int,
    end: int,
    rows: Any,
    judge: Any,
    low: Any,
    high: Any,
    best_row: Any,
    offset: Any,
    column: Any,
    entry: Any,
    constants: Any,
    buffer: Any,
    tables: Any,
) -> int:
    """Write the Markov chain of the given rows and nature's best moves, as ``interval.chain_of_best`` does."""
    _, first, successor, expression, lower, upper, reward, _, _, nature = rows
    direction = np.empty(tables[1].shape[1])
    n_entries = 0
    for i in range(start, end):
        c = best_row[i]
        a, b = np.int64(first[c]), np.int64(first[c + 1])
        constants[i - start, 0] = constants[i - start, 1] = reward[c]
        best_move(a, b, successor, expression, lower, upper, judge, nature, buffer, tables, direction)
        for t in range(a, b):
            p, target = buffer[t - a], np.int64(successor[t])
            n_entries = add_entry(p, target, i, start, end, low, high, column, entry, constants, n_entries)
        offset[i - start + 1] = n_entries
    return n_entries

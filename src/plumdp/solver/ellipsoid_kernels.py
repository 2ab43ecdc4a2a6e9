"""Compiled loops of the solver where nature picks points of an ellipsoid: backups rounded outward, and chains.

The interface is that of ``kernels.backup`` and ``kernels.chain_of_best``. Rows with at most two successors need no
ellipsoid: over it their expression ranges over an interval, which is all that matters. The worth of longer rows is in
closed form; where intervals are narrower, nature gets the worse for it of the two, since the truth is in both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plumdp.compiled import compiled
from plumdp.relaxation.ellipsoidal import CUT, OUTSIDE
from plumdp.solver.kernels import infinite_row
from plumdp.solver.region_kernels import pair_row

UNIT = 2.0**-53  # relative error of one rounding
UNDERFLOW = 1e-150  # more than what is lost where squares are too small for a float


@compiled
def kind_of_row(a: int, b: int, expression: Any, kinds: Any) -> int:
    """Return what the expressions of a row are, taken together."""
    kind = 0
    for t in range(a, b):
        kind |= kinds[expression[t]]
    return kind


@compiled
def has_infinity(a: int, b: int, successor: Any, source: Any) -> bool:
    """Return whether a row leads to an infinite value."""
    for t in range(a, b):  # noqa: SIM110  # plain, for the compiler
        if abs(source[successor[t]]) == np.inf:
            return True
    return False


@compiled
def best_direction(
    a: int, b: int, successor: Any, expression: Any, source: Any, means: Any, spreads: Any, sizes: Any, direction: Any
) -> tuple[float, float, float]:
    """Write which way the row grows; return its worth at the centre less the first value, that length, and a size.

    Values count as differences to the first one, so that equal values leave nothing to round.
    """
    d = len(direction)
    direction[:] = 0.0
    middle, size, squares = 0.0, 0.0, 0.0
    for t in range(a + 1, b):
        f = expression[t]
        difference = source[successor[t]] - source[successor[a]]
        if difference != 0.0:
            middle += means[f] * difference
            size += sizes[f] * abs(difference)
            for j in range(d):
                direction[j] += spreads[f, j] * difference
    for j in range(d):
        squares += direction[j] * direction[j]
    return middle, np.sqrt(squares), size


@compiled
def ellipsoid_row(
    a: int, b: int, successor: Any, expression: Any, source: Any, nature: float, side: float, means: Any,
    spreads: Any, sizes: Any, direction: Any,
) -> Any:  # fmt: skip
    """Return the value of a row with nature at its best in the ellipsoid, rounded to the given side."""
    middle, length, size = best_direction(a, b, successor, expression, source, means, spreads, sizes, direction)
    if size == 0.0:
        return source[successor[a]]
    value = source[successor[a]] + (middle + nature * length)
    error = UNIT * (float(b - a + 2 * len(direction) + 16) * size + 4.0 * abs(value)) + UNDERFLOW
    return value + side * error


@compiled
def row_value(
    a: int, b: int, successor: Any, expression: Any, lower: Any, upper: Any, source: Any, nature: float, side: float,
    buffer: Any, tables: Any, direction: Any,
) -> Any:  # fmt: skip
    """Return the value of a row with nature at its best, rounded to the given side."""
    means, spreads, sizes, kinds = tables
    kind = kind_of_row(a, b, expression, kinds)
    if has_infinity(a, b, successor, source):
        for t in range(a, b):
            is_possible = abs(source[successor[t]]) == np.inf and upper[expression[t]] > 0.0
            if is_possible and kind & OUTSIDE == 0 and side > 0.0:  # the ellipsoid may leave nature no way round it
                return np.inf
        kind = OUTSIDE
    if kind != 0:
        value, error = infinite_row(a, b, successor, expression, lower, upper, source, nature, buffer)
        by_intervals = value + side * error if error != 0.0 else value
        if kind & OUTSIDE != 0:
            return by_intervals
    value = ellipsoid_row(a, b, successor, expression, source, nature, side, means, spreads, sizes, direction)
    if kind != 0 and nature * by_intervals < nature * value:
        return by_intervals
    return value


@compiled
def backup(
    start: int, end: int, step: int, first_choice: Any, first: Any, successor: Any, expression: Any, lower: Any,
    upper: Any, reward: Any, discount: float, agent: float, nature: float, side: float, lift: float, cap: float,
    source: Any, result: Any, best_row: Any, buffer: Any, tables: Any,
) -> tuple[int, float]:  # fmt: skip
    """Write one more step of both players at their best, as ``kernels.backup`` does."""
    direction = np.empty(tables[1].shape[1])
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
                value = row_value(
                    a, b, successor, expression, lower, upper, source, nature, side, buffer, tables, direction,
                )  # fmt: skip
            if discount != 1.0:
                value *= discount
                value += side * 2.0 * UNIT * abs(value)
            if reward[c] != 0.0:
                value += reward[c]
                value += side * 2.0 * UNIT * abs(value)
            if agent * value > agent * best:
                best, chosen = value, c
        old = result[i]
        scale = abs(best) if abs(best) > 1.0 else 1.0
        if side < 0.0:
            if best > old:
                result[i] = best
                n_larger += 1
                if best - old > change * scale:
                    change = (best - old) / scale
                if agent > 0.0:
                    best_row[i] = chosen
        else:
            new = best + lift * scale
            new = new if new < cap else cap
            if new > old:
                n_larger += 1
            if new != old:
                if not abs(new - old) <= change * scale:
                    change = abs(new - old) / scale
                result[i] = new
            if agent < 0.0:
                best_row[i] = chosen
    return n_larger, change


@compiled
def interval_move(
    a: int, b: int, successor: Any, expression: Any, lower: Any, upper: Any, judge: Any, nature: float, move: Any
) -> float:
    """Write nature's best probabilities within intervals, preferred successors first; return what they are worth."""
    free, worth = 1.0, 0.0
    for t in range(a, b):
        free -= lower[expression[t]]
        move[t - a] = -1.0
    free = max(free, 0.0)
    for _ in range(b - a):
        best = -1
        for t in range(a, b):
            if move[t - a] < 0.0 and (best < 0 or nature * judge[successor[t]] > nature * judge[successor[best]]):
                best = t
        f = expression[best]
        extra = min(upper[f] - lower[f], free)
        free -= extra
        move[best - a] = lower[f] + extra
        if move[best - a] > 0.0:
            worth += move[best - a] * judge[successor[best]]
    return worth


@compiled
def best_move(
    a: int, b: int, successor: Any, expression: Any, lower: Any, upper: Any, judge: Any, nature: float, move: Any,
    tables: Any, direction: Any,
) -> None:  # fmt: skip
    """Write nature's best probabilities in a row, from intervals or from the ellipsoid, as the row's value has it."""
    means, spreads, sizes, kinds = tables
    worth = interval_move(a, b, successor, expression, lower, upper, judge, nature, move)
    kind = kind_of_row(a, b, expression, kinds)
    if b - a <= 2 or kind & OUTSIDE != 0 or has_infinity(a, b, successor, judge):
        return
    middle, length, _ = best_direction(a, b, successor, expression, judge, means, spreads, sizes, direction)
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
    start: int, end: int, first: Any, successor: Any, expression: Any, lower: Any, upper: Any, reward: Any,
    nature: float, judge: Any, low: Any, high: Any, best_row: Any, offset: Any, column: Any, entry: Any,
    constants: Any, buffer: Any, tables: Any,
) -> int:  # fmt: skip
    """Write the Markov chain of the given rows and nature's best moves, as ``kernels.chain_of_best`` does."""
    direction = np.empty(tables[1].shape[1])
    n_entries = 0
    for i in range(start, end):
        c = best_row[i]
        a, b = np.int64(first[c]), np.int64(first[c + 1])
        constants[i - start, 0] = constants[i - start, 1] = reward[c]
        best_move(a, b, successor, expression, lower, upper, judge, nature, buffer, tables, direction)
        for t in range(a, b):
            p, target = buffer[t - a], np.int64(successor[t])
            if p > 0.0 and start <= target and target < end:
                column[n_entries] = target - start
                entry[n_entries] = p
                n_entries += 1
            elif p > 0.0:
                constants[i - start, 0] += p * low[target]
                constants[i - start, 1] += p * high[target]
        offset[i - start + 1] = n_entries
    return n_entries

"""Compiled loops in which nature picks points of a region, made of the value of a row, and of nature's move there."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np

from plumdp.base.compiled import compiled_leaf
from plumdp.base.rounding import UNDERFLOW, UNIT
from plumdp.solver.chain_kernels import add_entry

row_value: Any = None  # of the nature that loops are made for, as are the others
best_move: Any = None
LEAST = 0.0


@compiled_leaf
def pair_row(
    a: int, successor: Any, expression: Any, lower: Any, upper: Any, source: Any, nature: float, side: float
) -> Any:
    """Return the value of a row of two successors, rounded to the given side."""
    value, other = source[successor[a]], source[successor[a + 1]]
    f, g = expression[a], expression[a + 1]
    if abs(value) == np.inf or abs(other) == np.inf:
        if abs(value) == np.inf and abs(other) == np.inf:
            return np.inf
        finite, of_infinite = (other, f) if abs(value) == np.inf else (value, g)
        can_hit = upper[of_infinite] > 0.0 and (nature > 0.0 or lower[of_infinite] > 0.0)
        return np.inf if can_hit else finite
    if value == other:
        return value
    if nature * value < nature * other:  # the preferred successor first
        value, other, f, g = other, value, g, f
    p = max(1.0 - upper[f], lower[g])  # what the other one gets at least
    uncertain = p if p <= upper[g] else p + 1.0
    if uncertain == 0.0:  # without rounding: nature may stay forever
        return value
    difference = other - value
    value += p * difference
    return value + side * (UNIT * (10.0 * uncertain * abs(difference) + 2.0 * abs(value)) + UNDERFLOW)


@compiled_leaf
def interval_move(
    a: int, b: int, successor: Any, expression: Any, lower: Any, upper: Any, judge: Any, nature: float, move: Any
) -> float:
    """Write nature's best probabilities within intervals, preferred successors first, and return their value."""
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


@compiled_leaf
def with_reward(value: float, reward: float, discount: float, side: float, underflow: float) -> Any:
    """Return the value of a row before its step, discounted, with the reward added, and rounded to the given side.

    ``underflow`` bounds the error of products too small for a float. Like ``settled`` it takes and returns numbers.
    """
    if discount != 1.0 and value != 0.0:
        value *= discount
        value += side * (3.0 * UNIT * abs(value) + underflow)
    if reward != 0.0:
        value += reward
        value += side * 3.0 * UNIT * abs(value)
    return value


@compiled_leaf
def settled(old: float, best: float, side: float, lift: float, cap: float, change: float) -> tuple[float, bool, float]:
    """Return a state's value after a backup, whether it grew, and the largest relative change so far.

    With side -1 a state only takes a larger value. With side +1 it takes the new value plus the lift, but at most the
    cap. It takes and returns numbers, no arrays, so that the compiler puts it into the loop.
    """
    scale = abs(best) if abs(best) > 1.0 else 1.0
    if side < 0.0:
        if not best > old:
            return old, False, change
        new = best
    else:
        new = best + lift * scale
        new = new if new < cap else cap
    if new != old and not abs(new - old) <= change * scale:
        change = abs(new - old) / scale
    return new, new > old, change


def make_loops(module: str, row_value: Any, best_move: Any, *, least: float, small: int) -> tuple[Any, Any]:
    """Return the kernels ``backup`` and ``chain_of_best`` of a nature, given those of one row.

    ``least`` bounds the error of products too small for a float. They allocate nothing, so that no references to arrays
    are counted, which takes longer than the sums of a row.
    """
    names = {"row_value": row_value, "best_move": best_move, "LEAST": least}

    def bound(loop: Any, **options: Any) -> Any:
        made = FunctionType(loop.__code__, {**globals(), **names, "__name__": module}, loop.__name__)
        made.__module__, made.__doc__ = module, loop.__doc__
        return compiled_leaf(made, is_helper=False, **options)

    return bound(backup, small=small), bound(chain_of_best)


def backup(
    start: int, end: int, step: int, rows: Any, side: float, lift: float, cap: float, source: Any, result: Any,
    best_row: Any, position: Any, room: Any, buffer: Any, tables: Any,
) -> tuple[int, float]:  # fmt: skip
    """Write one more step of both players at their best, as ``interval.backup`` does."""
    first_choice, first, successor, expression, lower, upper, reward, discount, agent, nature = rows
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
                    a, b, c, successor, expression, lower, upper, source, nature, side, position, room, buffer, tables
                )
            value = with_reward(value, reward[c], discount, side, LEAST)
            if agent * value > agent * best:
                best, chosen = value, c
        result[i], is_larger, change = settled(result[i], best, side, lift, cap, change)
        n_larger += is_larger
        if (agent > 0.0 and side < 0.0 and is_larger) or (agent < 0.0 and side > 0.0):
            best_row[i] = chosen
    return n_larger, change


def chain_of_best(
    start: int, end: int, rows: Any, judge: Any, low: Any, high: Any, best_row: Any, offset: Any, column: Any,
    entry: Any, constants: Any, position: Any, room: Any, buffer: Any, tables: Any,
) -> int:  # fmt: skip
    """Write the Markov chain of the given rows and nature's best moves, as ``interval.chain_of_best`` does."""
    _, first, successor, expression, lower, upper, reward, _, _, nature = rows
    n_entries = 0
    for i in range(start, end):
        c = best_row[i]
        a, b = np.int64(first[c]), np.int64(first[c + 1])
        constants[i - start, 0] = constants[i - start, 1] = reward[c]
        best_move(a, b, c, successor, expression, lower, upper, judge, nature, position, room, buffer, tables)
        for t in range(a, b):
            p, target = buffer[t - a], np.int64(successor[t])
            n_entries = add_entry(p, target, i, start, end, low, high, column, entry, constants, n_entries)
        offset[i - start + 1] = n_entries
    return n_entries

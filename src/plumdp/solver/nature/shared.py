"""Compiled helpers for loops in which nature picks points of a region, for short rows, interval moves and rewards."""

from __future__ import annotations

from typing import Any

import numpy as np

from plumdp.base.compiled import compiled_leaf
from plumdp.base.rounding import UNDERFLOW, UNIT


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

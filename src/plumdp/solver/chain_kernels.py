"""Compiled loops on the Markov chain of both players' moves, and the test whether a candidate is inductive."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from plumdp.base.compiled import compiled, compiled_leaf

ONE = np.uint64(1)  # unsigned, so that no index can be negative: signed ones cost a test each


@compiled
def is_inductive(start: int, end: int, values: Any, stepped: Any, side: float, strict: bool) -> bool:
    """Return whether one more step moved every value back from the given side.

    Lower bounds that are zero need no proof.
    """
    for i in range(start, end):
        if side < 0.0 and values[i] == 0.0:  # zero is a lower bound without proof
            continue
        if side * stepped[i] > side * values[i] or (strict and stepped[i] == values[i]):
            return False
    return True


@compiled_leaf
def add_entry(
    p: float,
    target: int,
    i: int,
    start: int,
    end: int,
    low: Any,
    high: Any,
    column: Any,
    entry: Any,
    constants: Any,
    n_entries: int,
) -> int:
    """Add a transition of state ``i`` to its chain, as an entry within the component, or else to the constants."""
    if p > 0.0 and start <= target and target < end:
        column[n_entries] = target - start
        entry[n_entries] = p
        return n_entries + 1
    if p > 0.0:
        constants[i - start, 0] += p * low[target]
        constants[i - start, 1] += p * high[target]
    return n_entries


@compiled
def divide_loops_out(offset: Any, column: Any, entry: Any, constants: Any) -> None:
    """Solve each equation x_i = constant_i + sum of entries times x for x_i."""
    for i in range(len(constants)):
        stay = 0.0
        for t in range(offset[i], offset[i + 1]):
            if column[t] == i:
                stay += entry[t]
                entry[t] = 0.0
        for t in range(offset[i], offset[i + 1]):
            entry[t] /= 1.0 - stay
        for j in range(constants.shape[1]):
            constants[i, j] /= 1.0 - stay


@partial(compiled, small=2_000)
def follow(offset: Any, column: Any, entry: Any, constant: Any, values: Any, n_sweeps: int) -> float:
    """Sweep over the equations x = constant + P x, forwards and backwards, and return the last largest change."""
    n = len(constant)
    change = 0.0
    for number in range(n_sweeps):
        change = 0.0
        for k in range(n):
            i = np.uint64(k if number % 2 == 0 else n - 1 - k)
            value = constant[i]
            for t in range(offset[i], offset[i + ONE]):
                value += entry[t] * values[column[t]]
            scale = abs(value) if abs(value) > 1.0 else 1.0
            if not abs(value - values[i]) <= change * scale:
                change = abs(value - values[i]) / scale
            values[i] = value
    return change

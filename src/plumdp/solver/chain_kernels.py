"""Compiled loops that copy rows into solving order, solve chains of both players' moves, and test an induction."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from plumdp.base.compiled import compiled, compiled_leaf


@compiled
def lay_out(
    order: Any,
    position: Any,
    first_choice: Any,
    first: Any,
    successor: Any,
    expression: Any,
    new_first_choice: Any,
    new_first: Any,
    new_successor: Any,
    new_expression: Any,
    choice: Any,
    has_loop: Any,
    number: Any,
    used: Any,
) -> int:
    """Copy the rows of the states in ``order``, with successors renamed to their positions, and mark self-loops.

    Expressions are numbered as they are met: ``number`` is -1 for each of them before, and ``used`` gets their old
    numbers. If ``number`` is empty they keep their numbers. Returns how many were used.
    """
    n_rows = n_transitions = n_used = 0
    for i in range(len(order)):
        s = order[i]
        new_first_choice[i] = n_rows
        for c in range(first_choice[s], first_choice[s + 1]):
            choice[n_rows] = c
            new_first[n_rows] = n_transitions
            n_rows += 1
            for t in range(first[c], first[c + 1]):
                target, f = position[successor[t]], expression[t]
                if len(number) > 0:
                    if number[f] < 0:
                        number[f] = n_used
                        used[n_used] = f
                        n_used += 1
                    f = number[f]
                has_loop[i] = has_loop[i] or target == i
                new_successor[n_transitions] = target
                new_expression[n_transitions] = f
                n_transitions += 1
    new_first_choice[len(order)] = n_rows
    new_first[n_rows] = n_transitions
    return n_used


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

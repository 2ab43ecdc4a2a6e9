"""Compiled loops that number rows of integers, successors, expressions and states of models."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from plumdp.base.compiled import compiled, compiled_leaf

EMPTY = np.int32(-1)


@partial(compiled, small=10_000)
def intern_rows(rows: Any, slots: Any, stored: Any, n_stored: int, index: Any) -> int:
    """Write the number of each row into ``index``, numbering new rows in order, and return how many are stored.

    By open addressing, ``slots`` (a power of two, more than half free) holds row numbers or -1, and ``stored`` the rows
    themselves, so that equality is exact whatever the hash.
    """
    n_columns = rows.shape[1]
    mask = np.uint64(len(slots) - 1)
    for i in range(rows.shape[0]):
        slot = _hash(rows, i, n_columns) & mask
        while True:
            candidate = slots[slot]
            if candidate == EMPTY:
                slots[slot] = n_stored
                for j in range(n_columns):
                    stored[n_stored, j] = rows[i, j]
                index[i] = n_stored
                n_stored += 1
                break
            same = True
            for j in range(n_columns):
                if stored[candidate, j] != rows[i, j]:
                    same = False
                    break
            if same:
                index[i] = candidate
                break
            slot = (slot + np.uint64(1)) & mask
    return n_stored


@compiled
def intern_in_box(
    rows: Any, start: int, low: Any, width: Any, box: Any, stored: Any, n_stored: int, index: Any
) -> tuple[int, int]:
    """Write the numbers from row ``start`` on, held in a dense array over a box, -1 where there is none.

    Return how many rows are stored, and the first row that is outside the box.
    """
    n_columns = rows.shape[1]
    for i in range(start, rows.shape[0]):
        place = 0
        for j in range(n_columns):
            at = rows[i, j] - low[j]
            if at < 0 or at >= width[j]:
                return n_stored, i
            place = place * width[j] + at
        number = box[place]
        if number < 0:
            number = n_stored
            box[place] = number
            for j in range(n_columns):
                stored[number, j] = rows[i, j]
            n_stored += 1
        index[i] = number
    return n_stored, rows.shape[0]


@compiled
def rebuild_slots(stored: Any, n_stored: int, slots: Any) -> None:
    """Fill an empty, larger table with the rows stored so far, which are all different."""
    mask = np.uint64(len(slots) - 1)
    for i in range(n_stored):
        slot = _hash(stored, i, stored.shape[1]) & mask
        while slots[slot] != EMPTY:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = i


@compiled_leaf
def _hash(rows: Any, i: int, n_columns: int) -> Any:
    h = np.uint64(0x9E3779B97F4A7C15)
    for j in range(n_columns):
        h = (h ^ np.uint64(np.uint32(rows[i, j]))) * np.uint64(0xFF51AFD7ED558CCD)
        h = h ^ (h >> np.uint64(32))
    return h


@compiled
def repeated_successors(first_transition: Any, successor: Any, first_same: Any) -> int:
    """Write the first transition of the same choice and successor for each, and return how many repeat one."""
    n_repeated = 0
    for choice in range(len(first_transition) - 1):
        start, end = first_transition[choice], first_transition[choice + 1]
        for t in range(start, end):
            first_same[t] = t
            for earlier in range(start, t):
                if successor[earlier] == successor[t]:
                    first_same[t] = earlier
                    n_repeated += 1
                    break
    return n_repeated


@partial(compiled, small=100_000)
def row_classes(first_transition: Any, expression: Any, slots: Any, row_class: Any, representative: Any) -> int:
    """Number the choices by their sequence of expressions, and return how many distinct sequences there are."""
    n_classes = 0
    mask = np.uint64(len(slots) - 1)
    for choice in range(len(first_transition) - 1):
        start, end = first_transition[choice], first_transition[choice + 1]
        h = np.uint64(0x9E3779B97F4A7C15)
        for t in range(start, end):
            h = (h ^ np.uint64(expression[t])) * np.uint64(0xFF51AFD7ED558CCD)
            h = h ^ (h >> np.uint64(32))
        slot = h & mask
        while True:
            candidate = slots[slot]
            if candidate == EMPTY:
                slots[slot] = n_classes
                representative[n_classes] = choice
                row_class[choice] = n_classes
                n_classes += 1
                break
            other = first_transition[representative[candidate]]
            same = first_transition[representative[candidate] + 1] - other == end - start
            if same:
                for k in range(end - start):
                    if expression[other + k] != expression[start + k]:
                        same = False
                        break
            if same:
                row_class[choice] = candidate
                break
            slot = (slot + np.uint64(1)) & mask
    return n_classes


@compiled
def number_by_first_use(index: Any, number: Any, order: Any, renumbered: Any) -> int:
    """Number the items that occur in ``index`` in order of first use, and return how many do.

    ``number`` is -1 for every item at first. ``order`` gets the item of each number, ``renumbered`` the new index.
    """
    n_used = 0
    for i in range(len(index)):
        item = index[i]
        if number[item] < 0:
            number[item] = n_used
            order[n_used] = item
            n_used += 1
        renumbered[i] = number[item]
    return n_used


@compiled
def find_distances(first: Any, successor: Any, distance: Any, queue: Any, n_queued: int) -> int:
    """Write the number of steps to each state from those that are queued, and return how many states are reached.

    The distance of others is -1 before and after. The queue gets the states in the order in which they are reached.
    """
    at = 0
    while at < n_queued:
        state = queue[at]
        for t in range(first[state], first[state + 1]):
            target = successor[t]
            if distance[target] < 0:
                distance[target] = distance[state] + 1
                queue[n_queued] = target
                n_queued += 1
        at += 1
    return n_queued

"""Kernels of bets on the outcomes of whole runs (``run_bets.py``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from plumdp.base.compiled import compiled, compiled_leaf

_MOST = 0.875  # of the capital that a run may lose
_CLOSEST = 1e-9  # to the least value that a mean is taken to be, so that no size is infinite
_LOST = 1e-250  # a capital below this is given up, so that no product underflows
_LARGEST = 2.0**60  # that a capital is aimed to grow by
_LOG_2 = 0.6931471805599453


@compiled_leaf
def _log_of(growth: float) -> float:
    """Return about the logarithm of a number from one on, by operations that are the same on all machines."""
    halvings, rest = 0, min(max(growth, 1.0), _LARGEST)
    while rest > 1.5:
        rest *= 0.5
        halvings += 1
    s = (rest - 1) / (rest + 1)
    return halvings * _LOG_2 + 2 * s * (1 + s * s * (1 / 3 + s * s * (1 / 5 + s * s / 7)))


@compiled
def bet_against(value: Any, least: Any, mean: float, goal: float, planned: float, prior: Any, sizes: Any) -> float:
    """Return the largest capital of bets that a mean is larger, up to the run that reaches a goal, and write all sizes.

    Half of the capital is bet for what is still to be won in the runs that are left, half for all at once. The size of
    run i is fixed by the runs before it alone: nothing here may look at ``value[i]`` before the sizes are written.
    """
    renewed, constant, largest = 1.0, 1.0, 1.0
    total, square, count = prior[0], prior[1], 1.0
    aim = 2 * _log_of(2 * goal) / planned
    for i in range(len(value)):
        variance, most = square / count, _MOST / max(mean - least[i], _CLOSEST)
        missing = max(2 * goal - constant, 0.0)
        needed = 2 * _log_of(missing / renewed if renewed > 0 else _LARGEST) / max(planned - i, 1.0)
        sizes[0, i] = min(np.sqrt(needed / variance), most)
        sizes[1, i] = min(np.sqrt(aim / variance), most)
        renewed *= 1 + sizes[0, i] * (value[i] - mean)
        constant *= 1 + sizes[1, i] * (value[i] - mean)
        renewed, constant = (renewed if renewed > _LOST else 0.0), (constant if constant > _LOST else 0.0)
        largest = max(largest, (renewed + constant) / 2)
        if largest >= goal:
            break
        off = value[i] - total / count
        total, square, count = total + value[i], square + off * off, count + 1
    return largest


@compiled
def capital_at(value: Any, sizes: Any, mean: float) -> float:
    """Return the largest capital that bets of these sizes have, up to some run, against a mean."""
    renewed, constant, largest = 1.0, 1.0, 1.0
    for i in range(len(value)):
        renewed *= 1 + sizes[0, i] * (value[i] - mean)
        constant *= 1 + sizes[1, i] * (value[i] - mean)
        renewed, constant = (renewed if renewed > _LOST else 0.0), (constant if constant > _LOST else 0.0)
        largest = max(largest, (renewed + constant) / 2)
    return largest

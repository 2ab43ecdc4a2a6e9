"""Proofs by induction, which move a candidate for bounds outward until one step of both players stays within it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from plumdp.base.rounding import UNIT
from plumdp.model.graph import FloatArray
from plumdp.solver import chain_kernels
from plumdp.solver.component import Component, keep_tighter

LIFT = 1e-13  # what an upward sweep adds for rewards, so that the decrease is strict
MAX_PROOF = 100  # steps in which a candidate may be moved outward
CLOSE_ATTEMPTS = 4  # for a candidate that is moved by what a step misses
MARGIN = 2.0**-6  # of what a step misses, in the first attempt

Outward = Callable[[FloatArray, FloatArray, int], FloatArray | None]
"""From a candidate, what a step made of it and the number of attempts before to the next candidate, if any."""


def prove(
    component: Component,
    bounds: FloatArray,
    candidate: FloatArray,
    side: float,
    attempts: int = MAX_PROOF,
    *,
    outward: Outward | None = None,
) -> bool:
    """Improve the bounds by the candidate, moved outward until induction proves it.

    If that fails, the bounds keep their values. Return whether it was proved.
    """
    part = component.part
    best, rows = bounds[part].copy(), component.best_row[part].copy()
    strict = (side > 0) == component.is_reward
    outward = outward or partial(_moved_by_states, side=side, strict=strict)
    try:
        for attempt in range(attempts):
            bounds[part] = candidate
            stepped = component.room(-np.inf)  # a downward sweep writes only what is larger
            component.layout.sweep(component.start, component.end, bounds, stepped, component.best_row, side=side)
            if chain_kernels.is_inductive(component.start, component.end, bounds, stepped, side, strict):
                keep_tighter(best, rows, candidate, component.best_row[part], side)
                return True
            moved = outward(candidate, stepped[part], attempt)
            if moved is None:
                break
            candidate = np.clip(moved, 0.0, component.cap)
        return False
    finally:  # also when interrupted: leave a bound, and the rows that attain it
        bounds[part], component.best_row[part] = best, rows


def _moved_by_states(
    candidate: FloatArray, stepped: FloatArray, attempt: int, *, side: float, strict: bool
) -> FloatArray:
    """Return a candidate with each state moved outward to where a step has led it."""
    lift = side * LIFT * np.maximum(1.0, np.abs(candidate)) if strict else 0.0
    moved: FloatArray = (np.minimum if side < 0 else np.maximum)(candidate, stepped + lift)
    if not strict and attempt >= 10:  # only rounding changes values: make those equal that differ by it
        grain = LIFT * 2.0 ** (attempt // 8) * max(1.0, float(np.abs(moved).max()))
        moved = side * np.ceil(side * moved / grain) * grain
    return moved


def moved_by_steps(
    candidate: FloatArray, stepped: FloatArray, attempt: int, *, side: float, steps: FloatArray, most: float
) -> FloatArray | None:
    """Return a candidate moved outward for each expected step by what one step misses, or None if that is too much.

    If the steps are those of the best moves, a step from there misses nothing.
    """
    if not np.isfinite(stepped).all():  # floats end here: no fee would do
        return None
    missing = float((side * (stepped - candidate)).max())
    fee = (1 + MARGIN * 4.0**attempt) * missing + UNIT * float(np.abs(candidate).max())
    return candidate + side * fee * steps if fee <= most / CLOSE_ATTEMPTS else None


def moved_further(candidate: FloatArray, stepped: FloatArray, attempt: int, *, by: FloatArray) -> FloatArray:
    """Return a candidate moved by a given amount in each state, and by twice as much with each attempt."""
    return candidate + 2.0**attempt * by


def missing(component: Component, values: FloatArray, side: float) -> FloatArray:
    """Return the distance by which one step moves values outward, in each state."""
    source, stepped = component.bounds(side).copy(), component.room(-np.inf)
    source[component.part] = values
    component.layout.sweep(component.start, component.end, source, stepped, component.best_row.copy(), side=side)
    return np.maximum(side * (stepped[component.part] - values), 0.0)

"""One strongly connected component of a layout, and proofs of bounds on its values by induction.

A candidate for bounds is moved outward until one step of both players stays within it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from plumdp.base.rounding import UNIT
from plumdp.model.graph import FloatArray, IntArray
from plumdp.solver import chain_kernels
from plumdp.solver.layout import SweepLayout


@dataclass(frozen=True, eq=False)
class Hint:
    """Values and rows of a similar game, from which policy iteration starts. They are not trusted."""

    values: FloatArray  # by position, of the whole layout
    best_row: IntArray  # by position, of the undecided states


@dataclass(frozen=True, eq=False)
class Component:
    """The positions of one component, and the arrays of the whole layout that its values are written to."""

    layout: SweepLayout
    start: int
    end: int
    low: FloatArray
    high: FloatArray
    best_row: IntArray
    cap: float
    hint: Hint | None = None

    def __len__(self) -> int:
        return self.end - self.start

    @property
    def part(self) -> slice:
        """The slice of its positions in the layout."""
        return slice(self.start, self.end)

    @property
    def is_reward(self) -> bool:
        """Whether the objective is a reward until a target, which is infinite for a run that stays forever."""
        return self.layout.rank is not None

    @property
    def agent(self) -> float:
        """The direction of the agent, +1 for large values and -1 for small ones."""
        return float(self.layout.rows.agent)

    @property
    def nature(self) -> float:
        """The direction of nature, +1 for large values and -1 for small ones."""
        return float(self.layout.rows.nature)

    def bounds(self, side: float) -> FloatArray:
        """Return the lower bounds (-1) or the upper ones (+1), of the whole layout."""
        return self.low if side < 0 else self.high

    def sweep(self, number: int, values: FloatArray, *, side: float, lift: float = 0.0) -> tuple[int, float]:
        """Update the values in place, forwards or backwards by the number, as ``interval.backup`` does."""
        return self.layout.sweep(
            self.start, self.end, values, values, self.best_row,
            side=side, lift=lift, cap=self.cap, backwards=number % 2 == 0,
        )  # fmt: skip

    def room(self, value: float) -> FloatArray:
        """Return an array by position for the results of a sweep, ``value`` in the component, undefined before it."""
        values = np.empty(self.end)  # not filled: the component may be a small part of it
        values[self.part] = value
        return values

    def greedy(self, values: FloatArray) -> IntArray:
        """Return the agent's best row for each position, and leave rows in nature's order."""
        best_row = self.best_row.copy()
        stepped = self.room(-np.inf if self.agent > 0 else np.inf)
        self.layout.sweep(self.start, self.end, values, stepped, best_row, side=-self.agent)
        return best_row


def improve_rows(layout: SweepLayout, low: FloatArray, high: FloatArray, best_row: IntArray) -> None:
    """Take the agent's best rows by its own bound, where states have inner edges.

    They attain the bound as the old ones do. From above, a step with them stays below the bound since one with the old
    rows does. From below only rows are taken that rise strictly: the argument of ``keep_tighter`` holds for them.
    """
    agent, n = layout.rows.agent, layout.n_undecided
    if len(layout.choice) == n:  # one row in each state: the agent has no choice
        return
    bounds, new_row = low if agent > 0 else high, best_row.copy()
    stepped = np.full(n, -np.inf if agent > 0 else np.inf)
    for start, end, is_loose in layout.parts:
        if not is_loose:
            layout.sweep(start, end, bounds, stepped, new_row, side=-agent)
    old = bounds[:n]
    better = np.isfinite(old) & np.isfinite(stepped) & (stepped > old if agent > 0 else stepped <= old)
    best_row[better] = new_row[better]


def keep_tighter(bounds: FloatArray, rows: IntArray, new: FloatArray, new_rows: IntArray, side: float) -> None:
    """Take over, state by state, the tighter of two bounds on the same side together with its row.

    The mixture of the rows attains the mixture of the bounds. Let Φ be one step with the mixed rows. From above,
    Φ(min) <= min, since a step from either bound stays below it, and Φ is monotone. From below likewise Φ(max) >= max,
    which is enough for rewards until a target. For other objectives the rows could still stay forever in a set of
    states with one positive bound. The new bound rises strictly in a step, so none of these states has a new row, and
    if all have old rows, the old rows do not attain the old bound.
    """
    is_tighter = side * new < side * bounds  # both are proved, so that the tighter one is safe
    bounds[is_tighter], rows[is_tighter] = new[is_tighter], new_rows[is_tighter]


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

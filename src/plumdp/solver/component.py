"""One strongly connected component of a layout, and the arrays that its certified values are written to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumdp.model.graph import FloatArray, IntArray
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

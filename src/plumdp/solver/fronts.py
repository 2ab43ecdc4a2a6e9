"""Policy iteration along chains of many levels, which settles the rows that still change in windows around them.

Where two ways out of a component compete, the states that take one of them border on those that take the other. One
state alone gains nothing by a change of sides, only next to the border it does. So policy iteration moves the border by
a few states for each exact solution, which is of the whole component though nothing changes elsewhere. In a layout
whose inner edges are short, a window of neighbouring positions is a component of its own, with fixed values around it.
Exact solutions of windows move the border at the cost of a window.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from plumdp.model.graph import FloatArray, IntArray
from plumdp.solver.chains import chain_of, solve_chain
from plumdp.solver.component import Component

_REACH = 8  # half of a window, in lengths of the longest inner edge
_LONG = 8  # halves of windows that a component has at least, if windows are to pay
_LOCAL = 0.01  # share of the rows that change, at most, if windows are to pay
_VISITS = 4  # of each window, at most
_SOLUTIONS = 30  # for each visit of a window
SWEEPS_BETWEEN = 4  # sweeps over all rows for one exact solution


def follow_fronts(component: Component, values: FloatArray, rows: IntArray, old_rows: IntArray) -> None:
    """Improve values and rows, in place, in windows around the rows that have changed, until they change no more.

    Nothing is done where many rows change, or where edges are long. The values are proposals, as are the rows.
    """
    changed = np.flatnonzero(rows[component.part] != old_rows[component.part])
    if not 0 < len(changed) <= _LOCAL * len(component):
        return
    half = _REACH * max(longest_edge(component), 1)
    starts = list(range(component.start, component.end - half, half))
    if len(starts) < _LONG:
        return
    last = len(starts) - 1
    near = np.concatenate([changed // half, changed // half - 1]).clip(0, last)
    queue = deque(np.unique(near).tolist())
    visits = [0] * len(starts)
    while queue:
        number = queue.popleft()
        visits[number] += 1
        end = min(starts[number] + 2 * half, component.end)
        # the values around the window stay fixed
        window = Component(component.layout, starts[number], end, values, values, rows, component.cap)
        if _settle(window, values, rows):
            neighbours = (number - 1, number + 1)
            queue.extend(k for k in neighbours if 0 <= k <= last and k not in queue and visits[k] < _VISITS)


def improve_by_sweeps(component: Component, values: FloatArray, rows: IntArray) -> None:
    """Move values and rows towards the best ones, in place, by some sweeps over all rows."""
    for number in range(SWEEPS_BETWEEN):
        component.layout.sweep(
            component.start, component.end, values, values, rows, side=-component.agent, backwards=number % 2 == 1
        )


def longest_edge(component: Component) -> int:
    """Return the largest number of positions that an inner edge of a component leads over."""
    rows, n = component.layout.rows, len(component)
    ends = rows.first[rows.first_choice[component.start : component.end + 1]].astype(np.int64)
    source = np.repeat(np.arange(n), np.diff(ends))
    target = rows.successor[ends[0] : ends[-1]].astype(np.int64) - component.start
    lengths = np.abs(target - source)[(target >= 0) & (target < n)]
    return int(lengths.max(initial=0))


def _settle(window: Component, values: FloatArray, rows: IntArray) -> bool:
    """Improve values and rows of a window by policy iteration, in place, and return whether rows have changed."""
    part, column = window.part, 1 if window.agent < 0 else 0
    has_changed = False
    for _ in range(_SOLUTIONS):
        solution = solve_chain(chain_of(window, values, rows))
        if solution is None:
            break
        values[part], before = solution[:, column], rows[part].copy()
        improve_by_sweeps(window, values, rows)
        if (rows[part] == before).all():
            break
        has_changed = True
    return has_changed

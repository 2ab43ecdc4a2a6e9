"""A picture of many units, sorted by what is certified of each, with brackets and what a share of all reaches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np

from plumdp.model.graph import FloatArray
from plumdp.model.text import cut, number_of
from plumdp.plots.style import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    PHONE,
    PURPLE,
    VERMILION,
    axes_in,
    heading,
    legend_below,
    mark,
    plain_ticks,
)

_NAMED, _LINES = 40, 200  # units with a line and a name of their own; lines, if there are more units
_LONGEST = 18  # characters of a name
_COLOURS = {"yes": BLUE, "certified": BLUE, "inconclusive": GREY, "no": ORANGE}


def draw_units(
    axes: Any, rows: Sequence[Any], *, objective: str, is_max: bool, reached: tuple[float, str] | None = None
) -> Any:
    """Draw a line for each unit, or the medians of as many next to each other, from the best on; return the figure.

    Lines go from the lower end to the upper one, and the end that is certified is marked. ``reached`` is a value that a
    share of all units reaches, and a sentence about it. Units without bounds are counted above.
    """
    shown = [row for row in rows if row.lower == row.lower]
    shown.sort(key=lambda row: -row.lower if is_max else row.upper)
    is_named, is_new = len(shown) <= _NAMED, axes is None
    per = 1 if is_named else -(-len(shown) // _LINES)
    lines = [shown[first : first + per] for first in range(0, len(shown), per)]
    axes = axes_in(axes, PHONE, 1.4 + (0.17 * len(lines) if is_named else 3.2))
    ends = np.array([np.median([(row.lower, row.upper) for row in line], axis=0) for line in lines]).reshape(-1, 2)
    low, high = _view(ends, None if reached is None else reached[0])
    verdicts = [Counter(row.verdict for row in line).most_common(1)[0][0] for line in lines]
    places, colours = 1 + per * np.arange(len(lines)), [_COLOURS.get(verdict, PURPLE) for verdict in verdicts]
    axes.hlines(places, *ends.T, colors=colours, linewidth=3 if is_named else 260 / len(lines), zorder=2)
    look = {"marker": "o", "markersize": 3.5, "linestyle": "none"} if is_named else {"linewidth": 1.4}
    axes.plot(ends[:, 0 if is_max else 1], places, color=BLACK, zorder=3, **look)
    sentence = "" if reached is None else reached[1]
    if reached is not None and np.isfinite(reached[0]):
        sentence = f"Dashed: {sentence}"
        axes.axvline(reached[0], color=VERMILION, linewidth=1.3, linestyle=(0, (5, 2)), zorder=1)
    if is_named:
        axes.set_yticks(places, [cut(row.unit, _LONGEST) for row in shown])
    else:
        plain_ticks(axes.yaxis)
        axes.set_ylabel("units, from the best on")
    axes.set_xlim(low, high)
    axes.set_ylim(per * len(lines) + 0.6, 0.4)
    plain_ticks(axes.xaxis)
    axes.set_xlabel("value of a unit")
    axes.set_title(fill(objective, 52), loc="left")
    handles = [mark(verdict, _COLOURS.get(verdict, PURPLE), line="-", width=3) for verdict in dict.fromkeys(verdicts)]
    handles.append(mark("certified end", BLACK, "o") if is_named else mark("certified end", BLACK, line="-"))
    legend_below(axes, handles, columns=3)
    if is_new:
        rest = Counter(row.verdict for row in rows if row.lower != row.lower)
        told = [f"{number_of(n, 'unit')} without bounds ({verdict})." for verdict, n in rest.items()]
        medians = [f"Lines are medians of {per:,} units."] if per > 1 else []
        heading(axes.figure, sentence, " ".join([*medians, *told]))
    return axes.figure


def _view(ends: FloatArray, reached: float | None) -> tuple[float, float]:
    """Return the ends of the axis around all lines that end, and around what is reached."""
    finite = [*ends[np.isfinite(ends)].tolist(), *([] if reached is None or not np.isfinite(reached) else [reached])]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    room = 0.03 * (high - low) or 0.5
    return low - room, high + room

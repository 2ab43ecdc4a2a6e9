"""The picture of each unknown probability, with its bounds and how often it was tried."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from textwrap import wrap
from typing import Any

from plumdp.model.text import cut, number_of
from plumdp.plots.style import (
    BLACK,
    BLUE,
    ORANGE,
    PHONE,
    axes_in,
    heading,
    legend_below,
    mark,
    number_text,
    plain_ticks,
)
from plumdp.result.findings import ExpressionRow

MOST_ROWS = 20
_LONGEST = 24  # characters of a line
_ROOM = 0.35  # beside all intervals, relative to their range


def draw_expressions(axes: Any, expressions: Sequence[ExpressionRow], n_expressions: int = 0) -> Any:
    """Draw the bounds of those that matter most, with estimate, share in the data and trials, and return the figure.

    A share that is far from all bounds, as it is after few trials, is an arrow at the edge.
    """
    from matplotlib.transforms import blended_transform_factory

    rows = list(expressions)[:MOST_ROWS]
    labels, is_new = [short_expression(row.text) for row in rows], axes is None
    axes = axes_in(axes, PHONE, 1.3 + (0.34 if any("\n" in label for label in labels) else 0.25) * len(rows))
    low, high = _view(rows)
    axes.set_xlim(low, high)
    beside = blended_transform_factory(axes.transAxes, axes.transData)
    for height, row in enumerate(rows):
        axes.plot([row.lower, row.upper], [height, height], color=BLUE, linewidth=5, solid_capstyle="butt", zorder=2)
        if row.trials:
            _draw_share(axes, row.successes / row.trials, height, low, high)
        if row.estimate is not None:
            axes.plot(row.estimate, height, marker="o", markersize=4, color="white", markeredgecolor=BLACK, zorder=4)
        axes.text(1.04, height, f"{row.trials:,}", transform=beside, ha="left", va="center", fontsize=8.5)
    axes.text(1.04, -0.9, "trials", transform=beside, ha="left", va="center", fontsize=8.5, color="#555555")
    axes.set_yticks(range(len(rows)), labels)
    axes.set_ylim(len(rows) - 0.4, -1.2)
    axes.grid(axis="x", linewidth=0.3)
    axes.set_axisbelow(True)
    plain_ticks(axes.xaxis)
    axes.set_xlabel("probability")
    handles = [mark("bounds", BLUE, line="-", width=5), mark("estimate", BLACK, "o", face="white")]
    legend_below(axes, [*handles, mark("share seen", ORANGE, "D")], columns=3)
    rest = max(n_expressions, len(expressions)) - len(rows)
    if is_new and rest:
        heading(axes.figure, f"{number_of(rest, 'expression')} left out, which matter less")
    return axes.figure


def short_expression(text: str) -> str:
    """Return an expression in at most two short lines, with long fractions as decimals.

    >>> short_expression("1509/31250*p + 1/2")
    '0.0483*p + 0.5'
    """
    if re.search(r"\d/\d{4,}", text) or len(text) > 2 * _LONGEST:
        text = re.sub(r"\d+/\d+", lambda match: number_text(float(Fraction(match[0])), 3), text)
    lines = wrap(" ".join(text.split()), _LONGEST, break_long_words=False)
    return "\n".join(lines if len(lines) <= 2 else [lines[0], cut(f"{lines[1]} …", _LONGEST)])


def _view(rows: Sequence[ExpressionRow]) -> tuple[float, float]:
    """Return the ends of the axis around all bounds, with room for shares beside them, within 0 and 1."""
    low, high = min((row.lower for row in rows), default=0.0), max((row.upper for row in rows), default=1.0)
    room = _ROOM * (high - low) or 0.05
    return max(low - room, -0.02), min(high + room, 1.02)


def _draw_share(axes: Any, share: float, height: int, low: float, high: float) -> None:
    if low <= share <= high:
        axes.plot(share, height, marker="D", markersize=4.5, color=ORANGE, zorder=3)
    else:
        edge, marker = (low, "<") if share < low else (high, ">")
        axes.plot(edge, height, marker=marker, markersize=5.5, color=ORANGE, zorder=3, clip_on=False)

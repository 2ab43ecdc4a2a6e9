"""Pictures of lists: unknown probabilities with their bounds, choices worth more data, and residuals of a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil
from textwrap import fill, wrap
from typing import Any

import numpy as np

from plumdp.base.errors import DataError
from plumdp.fit.residual_counts import CellResiduals
from plumdp.model.text import cut, number_of
from plumdp.plots.style import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    PHONE,
    VERMILION,
    axes_in,
    heading,
    legend_below,
    mark,
    new_figure,
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


_MOST_LINES = 3  # of a state


def draw_advice(axes: Any, advice: Mapping[str, Any]) -> Any:
    """Draw the choices at which a run narrows the bounds most, with the visits so far, and return the figure.

    ``advice`` is the result of ``Advice.to_dict``. The bar of a choice is its visits in a run under the advised policy
    times what a visit is worth, relative to the best one, and an estimate.
    """
    choices = list(advice["choices"])
    labels = [_label(choice) for choice in choices]
    lines = max([label.count("\n") for label in labels], default=0) + 1
    axes = axes_in(axes, PHONE, 0.9 + (0.08 + 0.145 * lines) * max(1, len(choices)))
    worth = [choice["rate"] * choice["visits_per_run"] for choice in choices]
    best = max(worth, default=1.0) or 1.0
    for height, (choice, of_choice) in enumerate(zip(choices, worth, strict=True)):
        share = 100 * of_choice / best
        axes.barh(height, share, height=0.62, color=BLUE)
        visits = number_of(choice["visits"], "visit") if choice["visits"] else "never visited"
        inside = share > 55
        look = {"color": "white", "ha": "right"} if inside else {"color": "black", "ha": "left"}
        move = (-3, 0) if inside else (3, 0)
        axes.annotate(visits, (share, height), move, textcoords="offset points", va="center", fontsize=8.5, **look)
    axes.set_yticks(range(len(choices)), labels)
    axes.set_ylim(len(choices) - 0.4, -0.6)
    axes.set_xlim(0, 102)
    axes.set_xticks([0, 50, 100], ["0 %", "50 %", "100 %"])
    axes.set_xlabel("relative benefit of one more run\n(visits so far at the bar)", loc="right")
    return axes.figure


def _label(choice: Mapping[str, Any]) -> str:
    state = ", ".join(
        f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in choice["state"].items()
    )
    lines = wrap(state, _LONGEST)
    shown = (
        lines
        if len(lines) <= _MOST_LINES
        else [*lines[: _MOST_LINES - 1], cut(f"{lines[_MOST_LINES - 1]} …", _LONGEST)]
    )
    return "\n".join([*shown, cut(str(choice["action"]), _LONGEST)])


_ABOVE, _BELOW, _CLOSE = VERMILION, BLUE, GREY
_MARKERS = {_ABOVE: "^", _BELOW: "v", _CLOSE: "o"}
_MEANINGS = {_ABOVE: "more often than expected", _BELOW: "less often than expected", _CLOSE: "about as expected"}
_WIDE = 2.0  # standard deviations of an error bar
_NOTHING = 1e-3  # differences below it are not shown larger than they are
_MOST_IN_A_COLUMN = 3  # panels: with more there are two columns
_LONGEST_LABEL = 14  # characters of a label
_TITLE = 30  # characters of a line


def plot_residuals(axes: Any, residuals: CellResiduals) -> Any:
    """Draw the residuals of one variable, or of all actions, into axes of matplotlib, and return the axes.

    A dot says how much more probable the change was than the model says. Its bar is two standard deviations wide on
    either side, so that a right model has the line at zero within most bars. Without a bar, the estimate has followed
    the data. Then only the rounding of the estimate is left, and the axis is not stretched to show it.
    """
    visited = np.flatnonzero(residuals.residuals.observations > 0)
    difference, margin = residuals.residuals.difference[visited], _WIDE * residuals.residuals.margin[visited]
    is_close = (np.abs(difference) <= margin) | (margin == 0)
    colours = np.where(is_close, _CLOSE, np.where(difference > 0, _ABOVE, _BELOW))
    axes.axhline(0, color="black", linewidth=0.8)
    axes.update_datalim([(0, -_NOTHING), (0, _NOTHING)])  # and not set_ylim, which would hold for all panels
    for colour, marker in _MARKERS.items():
        of_colour = np.flatnonzero(colours == colour)
        look = {"color": colour, "marker": marker, "linestyle": "none", "markersize": 4, "elinewidth": 1}
        axes.errorbar(of_colour, difference[of_colour], margin[of_colour], **look)
    labels = [_cell_label(residuals.cells[i], residuals.name) for i in visited.tolist()]
    is_long = sum(len(label) + 2 for label in labels) > _TITLE
    axes.set_xticks(range(len(visited)), labels, rotation=90 if is_long else 0)
    axes.set_xlim(-0.6, len(visited) - 0.4)
    axes.set_xlabel(residuals.name)
    axes.set_title(fill(f"probability that {residuals.change}", _TITLE), loc="left")
    axes.set_ylabel("observed minus expected")
    return axes


def draw_residuals(axes: Any, panels: Sequence[CellResiduals], headline: str) -> Any:
    """Draw the residuals of variables and actions in a panel each, below a headline, and return the figure."""
    if axes is not None:
        if len(panels) > 1:
            raise DataError("axes: several panels are needed for residuals; leave out axes")
        return plot_residuals(axes, panels[0]).figure
    n_columns = 1 if len(panels) <= _MOST_IN_A_COLUMN else 2
    n_rows = ceil(len(panels) / n_columns)
    figure = new_figure(PHONE if n_columns == 1 else 5.4, 1.1 + 2.3 * n_rows)
    first = None
    for i, panel in enumerate(panels):
        own = plot_residuals(figure.add_subplot(n_rows, n_columns, i + 1, sharey=first), panel)
        first = own if first is None else first
        if i % n_columns:
            own.set_ylabel("")
    title = [fill(headline, 54 if n_columns == 1 else 72), "Bars: two standard deviations to either side"]
    figure.suptitle("\n".join(filter(None, title)), fontsize=9, x=0.01, ha="left")
    handles = [mark(meaning, colour, _MARKERS[colour]) for colour, meaning in _MEANINGS.items()]
    figure.legend(handles=handles, loc="outside lower left", ncols=2)
    return figure


def _cell_label(cell: str, name: str) -> str:
    """Return a cell without the words of the title, such as "17–20" for "money from 17 to 20"."""
    label = cell.removeprefix("action ").strip("'").removeprefix(f"{name} ").removeprefix("= ")
    return cut(label.removeprefix("from ").replace(" to ", "–"), _LONGEST_LABEL)

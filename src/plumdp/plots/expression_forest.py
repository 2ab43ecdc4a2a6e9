"""A forest of expressions: what is known of each unknown probability, and how often it was tried."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

from plumdp.model.text import cut, number_of
from plumdp.plots.style import BLACK, BLUE, ORANGE, PHONE, legend_below, mark, new_figure, plain_ticks
from plumdp.result.findings import ExpressionRow

MOST_ROWS = 20
_LONGEST = 26  # characters of an expression


def plot_forest(axes: Any, expressions: Sequence[ExpressionRow]) -> Any:
    """Draw for each expression its bounds, the estimate, the share that was seen and the trials; return the axes."""
    from matplotlib.transforms import blended_transform_factory

    rows = list(expressions)[:MOST_ROWS]
    beside = blended_transform_factory(axes.transAxes, axes.transData)
    for height, row in enumerate(rows):
        axes.plot([row.lower, row.upper], [height, height], color=BLUE, linewidth=4.5, solid_capstyle="butt", zorder=2)
        if row.trials:
            axes.plot(row.successes / row.trials, height, marker="D", markersize=4.5, color=ORANGE, zorder=3)
        if row.estimate is not None:
            axes.plot(row.estimate, height, marker="o", markersize=4.5, color="white", markeredgecolor=BLACK, zorder=4)
        axes.text(1.03, height, f"{row.trials:,}", transform=beside, ha="left", va="center", fontsize=8.5)
    axes.text(1.03, -0.9, "trials", transform=beside, ha="left", va="center", fontsize=8.5, color="#555555")
    axes.set_yticks(range(len(rows)), [cut(row.text, _LONGEST) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -1.2)
    axes.grid(axis="x", linewidth=0.3)
    axes.set_axisbelow(True)
    plain_ticks(axes.xaxis)
    axes.set_xlabel("probability")
    handles = [mark("bounds", BLUE, line="-", width=4.5), mark("estimate", BLACK, "o", face="white")]
    legend_below(axes, [*handles, mark("share seen", ORANGE, "D")], columns=3)
    return axes


def forest_figure(expressions: Sequence[ExpressionRow], n_expressions: int | None = None) -> Any:
    """Return a figure of the expressions that matter most; it says how many are left out."""
    rows = list(expressions)[:MOST_ROWS]
    figure = new_figure(PHONE, 1.25 + 0.24 * len(rows))
    axes = plot_forest(figure.add_subplot(), rows)
    total = max(n_expressions or 0, len(expressions))
    if total > len(rows):
        left_out = number_of(total - len(rows), "expression")
        axes.figure.suptitle(fill(f"{left_out} left out, which matter less", 56), fontsize=8.5, x=0.01, ha="left")
    return figure

"""The picture of a model's test, with residuals over state variables and actions."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from textwrap import fill
from typing import Any

import numpy as np

from plumdp.base.errors import DataError
from plumdp.explaining.residual_table import CellResiduals
from plumdp.model.text import cut
from plumdp.plots.style import BLUE, GREY, PHONE, VERMILION, mark, new_figure

_ABOVE, _BELOW, _CLOSE = VERMILION, BLUE, GREY
_MARKERS = {_ABOVE: "^", _BELOW: "v", _CLOSE: "o"}
_MEANINGS = {_ABOVE: "more often than expected", _BELOW: "less often than expected", _CLOSE: "about as expected"}
_WIDE = 2.0  # standard deviations of an error bar
_NOTHING = 1e-3  # differences below it are not shown larger than they are
_MOST_IN_A_COLUMN = 3  # panels: with more there are two columns
_LONGEST = 14  # characters of a label
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
    labels = [_label(residuals.cells[i], residuals.name) for i in visited.tolist()]
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


def _label(cell: str, name: str) -> str:
    """Return a cell without the words of the title, such as "17–20" for "money from 17 to 20"."""
    label = cell.removeprefix("action ").strip("'").removeprefix(f"{name} ").removeprefix("= ")
    return cut(label.removeprefix("from ").replace(" to ", "–"), _LONGEST)

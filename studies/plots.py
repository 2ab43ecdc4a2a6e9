"""Helpers of the studies' figures, in the style of all pictures: legend, lines of dots, ticks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt

from plumdp.plots.draw import write_figure
from plumdp.plots.style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, styled
from plumdp.plots.style import mark as line_of
from plumdp.plots.style import new_figure as empty_figure
from plumdp.plots.style import plain_ticks as plain_ticks
from studies.study import Row

NAMES = ("interval", "parameter", "expression", "rectangular")  # as on the command line
COLOURS = dict(zip((*NAMES, "coupled", "untied"), (GREY, ORANGE, BLUE, VERMILION, GREEN, PURPLE), strict=True))
MARKERS = dict(zip((*NAMES, "coupled"), "sDo^P", strict=True))
WIDTH = 6.4  # inches: with larger letters, two columns are legible on a phone
_LETTERS = {"font.size": 10.5, "axes.titlesize": 10.5, "axes.labelsize": 10.5, "legend.fontsize": 10}
_BEYOND = 2e4  # larger values are drawn at the edge
_APART = 0.2  # between the dots of an instance


def draw_dots(
    rows: Sequence[Row], path: Path, filled: Callable[[Row], float], hollow: Callable[[Row], float], label: str
) -> None:
    """Draw one line of dots per instance on a logarithmic axis; what is infinite or very large is an arrow at its end.

    Each relaxation has a height of its own, so that no dot hides another.
    """
    instances = list(dict.fromkeys(row["instance"] for row in rows))
    names = [name for name in NAMES if any(row["relaxation"] == name for row in rows)]
    with new_figure(path, (WIDTH, 0.46 * len(instances) + 1.8)) as figure:
        axes = figure.add_subplot()
        axes.set_xscale("log")
        for row in rows:
            k = names.index(row["relaxation"])
            height = instances.index(row["instance"]) + _APART * (k - (len(names) - 1) / 2)
            look = {"color": COLOURS[row["relaxation"]], "marker": MARKERS[row["relaxation"]], "markersize": 5.5}
            axes.plot(_shown(filled(row)), height, linestyle="none", **look)
            axes.plot(_shown(hollow(row)), height, linestyle="none", markerfacecolor="white", **look)
        right = min(axes.get_xlim()[1], _BEYOND)
        axes.set_xlim(right=right)
        for row in rows:
            if filled(row) > right:
                k = names.index(row["relaxation"])
                height = instances.index(row["instance"]) + _APART * (k - (len(names) - 1) / 2)
                axes.plot(right, height, marker=">", markersize=6, color=COLOURS[row["relaxation"]], clip_on=False)
        plain_ticks(axes.xaxis, is_log=True)
        name_rows(axes, instances)
        axes.grid(axis="x", linewidth=0.3)
        has_arrows = any(filled(row) > right for row in rows)
        axes.set_xlabel(f"{label}\n(arrow: infinite, or larger than all of this)" if has_arrows else label)
        legend(figure, [], names)


def name_rows(axes: Any, names: Sequence[str]) -> None:
    """Write the names of rows at the heights 0, 1, … from the top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)


def _shown(value: float) -> float:
    return float(value) if np.isfinite(value) and value <= _BEYOND else np.nan


def fine_ticks(axis: Any) -> None:
    """Let a logarithmic axis of few decades have ticks at 1, 2, 3 and 5 times powers of ten, written out."""
    from matplotlib.ticker import LogLocator

    plain_ticks(axis, is_log=True)
    axis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))


def finite(values: Any) -> npt.NDArray[np.float64]:
    """Return the values without those that no axis can show."""
    values = np.asarray(values, dtype=float)
    return np.where(np.isfinite(values), values, np.nan)


def line(style: Any, label: str, *, colour: str = "black", marker: str = "", width: float = 1.4) -> Any:
    """Return a line for a legend."""
    return line_of(label, colour, marker, line=style, width=width)


def legend(
    figure: Any, lines: list[Any], names: Sequence[str] = NAMES, *, marked: bool = True, columns: int = 4
) -> None:
    """Draw one legend for all panels, above them, in as many rows as it takes."""
    marks = [line("-", name, colour=COLOURS[name], marker=MARKERS[name] if marked else "") for name in names]
    figure.legend(handles=[*marks, *lines], loc="outside upper center", ncols=columns)


@contextmanager
def new_figure(path: Path, size: tuple[float, float]) -> Iterator[Any]:
    """Yield a new figure, and write it as PNG and SVG at the end."""
    with styled(), mpl.rc_context(_LETTERS):
        figure = empty_figure(*size)
        yield figure
        for kind in (".png", ".svg"):
            write_figure(figure, path.with_suffix(kind))

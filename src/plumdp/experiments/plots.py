"""Helpers of the figures: style, legend, lines of dots. The only importer of matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.experiments.study import Row

LABELS = {
    "interval": r"$\mathcal{P}_I$",
    "parameter": r"$\mathcal{P}_\Theta$",
    "expression": r"$\mathcal{P}_\Lambda$",
    "rectangular": r"$\mathcal{P}_R$",
}
COLOURS = {"interval": "#999999", "parameter": "#e69f00", "expression": "#0072b2", "rectangular": "#d55e00"}
MARKERS = {"interval": "s", "parameter": "D", "expression": "o", "rectangular": "^"}
_BEYOND = 2e4  # larger values are drawn at the edge
_STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "plumdp",  # the same picture is the same file
}


def draw_dots(
    rows: Sequence[Row], path: Path, filled: Callable[[Row], float], hollow: Callable[[Row], float], label: str
) -> None:
    """Draw one line of dots per instance on a logarithmic axis."""
    instances = list(dict.fromkeys(row["instance"] for row in rows))
    names = [name for name in LABELS if any(row["relaxation"] == name for row in rows)]
    with new_figure(path, (7.0, 0.32 * len(instances) + 1.4)) as figure:
        axes = figure.add_subplot()
        for row in rows:
            k = names.index(row["relaxation"])
            height = instances.index(row["instance"]) + 0.16 * (k - (len(names) - 1) / 2)
            look = {"color": COLOURS[row["relaxation"]], "marker": MARKERS[row["relaxation"]], "markersize": 5}
            axes.plot(finite(filled(row)), height, linestyle="none", **look)
            axes.plot(finite(hollow(row)), height, linestyle="none", markerfacecolor="white", **look)
            if filled(row) > _BEYOND:
                edge = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "center"}
                text = "∞" if filled(row) == np.inf else "→"
                axes.annotate(text, (1.0, height), color=COLOURS[row["relaxation"]], **edge)
        axes.set_xscale("log")
        axes.set_xlim(right=min(axes.get_xlim()[1], _BEYOND))
        axes.set_yticks(range(len(instances)), instances)
        axes.set_ylim(len(instances) - 0.5, -0.5)
        axes.grid(axis="x", linewidth=0.3)
        axes.set_xlabel(label)
        legend(figure, [], names)


def finite(values: Any) -> npt.NDArray[np.float64]:
    """Return the values without those that no axis can show."""
    values = np.asarray(values, dtype=float)
    return np.where(np.isfinite(values), values, np.nan)


def line(style: str, label: str, *, colour: str = "black", marker: str = "", width: float = 1.4) -> Any:
    """Return a line for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, linestyle=style, marker=marker, markersize=5, linewidth=width, label=label)


def legend(figure: Any, lines: list[Any], names: Sequence[str] = tuple(LABELS), *, marked: bool = True) -> None:
    """Draw one legend for all panels, above them."""
    marks = [line("-", LABELS[name], colour=COLOURS[name], marker=MARKERS[name] if marked else "") for name in names]
    figure.legend(handles=[*marks, *lines], loc="outside upper center", ncols=len(marks) + len(lines))


@contextmanager
def new_figure(path: Path, size: tuple[float, float]) -> Iterator[Any]:
    """Yield a new figure, and write it as PNG and SVG at the end."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        figure.savefig(path.with_suffix(".png"), dpi=160)
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})

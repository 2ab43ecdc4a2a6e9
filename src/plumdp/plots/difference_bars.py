"""The picture of two policies: the bounds on both values, and those on their difference, which is known better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from plumdp.plots.bounds_ladder import plot_ladder
from plumdp.plots.style import BLACK, PHONE, new_figure
from plumdp.result.certificate import Status
from plumdp.result.findings import Rung
from plumdp.result.json_values import python_value

_ROOM = 0.36  # for numbers on either side of the bar


def plot_difference(axes: Any, comparison: Mapping[str, Any]) -> Any:
    """Draw the bounds on the difference, with a line at zero, and return the axes.

    ``comparison`` is ``Difference.comparison``.
    """
    bar = _bar("difference", comparison["difference"])
    plot_ladder(axes, [bar], objective="")
    if isfinite(bar.lower) and isfinite(bar.upper):
        low, high = min(bar.lower, 0.0), max(bar.upper, 0.0)
        axes.set_xlim(low - _ROOM * (high - low), high + _ROOM * (high - low))
    axes.axvline(0.0, color=BLACK, linewidth=0.8, zorder=1)
    first, second = comparison["names"]
    axes.set_xlabel(f"value of {first}\nless that of {second}")
    return axes


def difference_figure(comparison: Mapping[str, Any], *, objective: str) -> Any:
    """Return a figure of the bounds on both values, above those on their difference."""
    named = zip(comparison["names"], ("first", "second"), strict=True)
    bars = [_bar(name, comparison[which]) for name, which in named]
    figure = new_figure(PHONE, 3.6)
    above, below = figure.subplots(2, 1, height_ratios=[2, 1])
    plot_ladder(above, bars, objective=objective)
    above.get_legend().remove()
    plot_difference(below, comparison)
    return figure


def _bar(name: str, ends: Sequence[Any]) -> Rung:
    lower, upper = python_value(ends)
    return Rung(name, lower, upper, str(Status.CERTIFIED))

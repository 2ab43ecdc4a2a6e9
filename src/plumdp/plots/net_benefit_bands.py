"""The picture of net benefits over the willingness to pay, and of where each policy is certified to be best."""

from __future__ import annotations

from math import isfinite
from typing import Any

from plumdp.certifying.net_benefit import NetBenefit
from plumdp.plots.style import HATCHES, PALETTE, PHONE, legend_below, new_figure, patch, plain_ticks


def plot_net_benefit(axes: Any, found: NetBenefit) -> Any:
    """Draw the bounds on the net benefit of each policy, with a thick line where it is best, and return the axes."""
    handles = []
    for number, each in enumerate(found.strategies):
        colour, hatch = PALETTE[number % len(PALETTE)], HATCHES[number % len(HATCHES)]
        lower, upper = zip(*(each.net_benefit(weight) for weight in found.willingness), strict=True)
        if all(map(isfinite, (*lower, *upper))):
            axes.fill_between(found.willingness, lower, upper, color=colour, alpha=0.35, linewidth=0, hatch=hatch)
        if each.best is not None:
            axes.plot(each.best, [each.net_benefit(weight)[0] for weight in each.best], color=colour, linewidth=3)
        handles.append(patch(each.name, colour, hatch=hatch, alpha=0.35))
    for axis, label in ((axes.xaxis, "willingness to pay"), (axes.yaxis, "net benefit")):
        plain_ticks(axis)
        axis.set_label_text(label)
    axes.set_title("thick: certified to be the best of these", loc="left")
    legend_below(axes, handles)
    return axes


def net_benefit_figure(found: NetBenefit) -> Any:
    """Return a figure of the net benefits of policies."""
    figure = new_figure(PHONE, 3.4 + 0.1 * len(found.strategies))
    plot_net_benefit(figure.add_subplot(), found)
    return figure

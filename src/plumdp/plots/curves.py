"""Pictures of curves: bounds over runs while learning, and net benefits over the willingness to pay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, isfinite, nan
from textwrap import fill
from typing import Any

from plumdp.certifying.net_benefit import NetBenefit
from plumdp.plots.style import BLACK, HATCHES, PALETTE, PHONE, axes_in, legend_below, mark, patch, plain_ticks
from plumdp.watching.watch import Watch

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def draw_online(
    axes: Any, records: Sequence[Any] | Mapping[str, Sequence[Any]], *, objective: str = "", truth: float | None = None
) -> Any:
    """Draw bounds over the number of runs, on a logarithmic axis, and return the figure.

    ``records`` are those of ``learn_online``, or mappings with the same names, or several such lists by their names.
    A solid line is what is certified for the policy, a dashed one what no policy exceeds, and a dotted one what the
    policy is truly worth, if the environment knows it. ``truth`` is the best value that there is.
    """
    axes = axes_in(axes, PHONE, 3.4 + 0.1 * (len(records) if isinstance(records, Mapping) else 0))
    runs = dict(records) if isinstance(records, Mapping) else {"": list(records)}
    styles = {"bound": "-", "optimistic_bound": "--", "true_value": ":"}
    drawn: set[str] = set()
    for i, of_run in enumerate(runs.values()):
        shown = [record for record in of_run if _value(record, "episodes") >= 1]
        episodes = [_value(record, "episodes") for record in shown]
        for part, line in styles.items():
            values = [_value(record, part) for record in shown]
            if any(isfinite(value) for value in values):
                drawn.add(part)
                spread = max(1, len(values) // 6)
                points = (i * spread // max(1, len(runs)), spread)  # marks of several curves are not at the same places
                look = {"color": PALETTE[i % len(PALETTE)], "linestyle": line, "linewidth": 1.6}
                dots = {"marker": _MARKERS[i % len(_MARKERS)], "markersize": 4.5, "markevery": points}
                axes.plot(episodes, values, **look, **(dots if part == "bound" and len(runs) > 1 else {}))
    if truth is not None:
        axes.axhline(truth, color=BLACK, linewidth=0.9)
    axes.set_xscale("log")
    plain_ticks(axes.xaxis, is_log=True)
    plain_ticks(axes.yaxis)
    axes.set_xlabel("runs")
    axes.set_ylabel("value")
    axes.set_title(fill(objective, 52), loc="left")
    _legend(axes, list(runs), [part for part in styles if part in drawn], styles, truth is not None)
    return axes.figure


def draw_watch(axes: Any, watch: Watch) -> Any:
    """Draw the largest sum over starts in each stretch of parts that is kept, and alarms, and return the figure."""
    axes, stream = axes_in(axes, PHONE, 3.2), watch.state.stream
    limit, first = watch.state.plan.thresholds["rows"], watch.n_parts - stream.n
    ends = [first + end + part.size for end, part in zip(stream.ends, stream.parts, strict=True)]
    sums = [exp(min(part.highest, 600.0)) if isfinite(part.highest) else nan for part in stream.parts]
    axes.plot(ends, sums, color=PALETTE[0], linewidth=1.6, drawstyle="steps-post", marker="o", markersize=3)
    axes.axhline(limit, color=BLACK, linewidth=0.9, linestyle="--")
    axes.set_yscale("log")
    axes.set_ylim(
        min([*(each for each in sums if each > 0), 0.1]) / 2, 10 * max([*(each for each in sums if each > 0), limit])
    )
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis, is_log=True)
    axes.set_xlabel(f"parts, up to {watch.state.last}")
    axes.set_ylabel("evidence that rows changed")
    axes.set_title(fill(watch.sentence, 52), loc="left")
    lines = [("sum over starts", PALETTE[0], "-"), (f"alarm at {limit:,.10g}", BLACK, "--")]
    legend_below(axes, [mark(label, colour, line=line) for label, colour, line in lines])
    return axes.figure


def draw_net_benefit(axes: Any, found: NetBenefit) -> Any:
    """Draw the bounds on the net benefit of each policy, with a thick line where it is best, and return the figure."""
    axes, handles = axes_in(axes, PHONE, 3.4 + 0.1 * len(found.strategies)), []
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
    return axes.figure


def _value(record: Any, name: str) -> float:
    """Return a number of a record, or one that is not drawn if it is missing or infinite."""
    value = record.get(name) if isinstance(record, Mapping) else getattr(record, name)
    return float(value) if value is not None and not isinstance(value, str) and isfinite(value) else nan


def _legend(axes: Any, names: list[str], parts: list[str], styles: Mapping[str, str], has_truth: bool) -> None:
    words = {"bound": "certified", "optimistic_bound": "no policy is better", "true_value": "true value of the policy"}
    colour = PALETTE[0] if len(names) == 1 else BLACK
    handles = [
        mark(name, PALETTE[i % len(PALETTE)], _MARKERS[i % len(_MARKERS)], line="-")
        for i, name in enumerate(names)
        if len(names) > 1
    ]
    handles += [mark(words[part], colour, line=styles[part], width=1.6) for part in parts]
    if has_truth:
        handles.append(mark("best true value", BLACK, line="-", width=0.9))
    legend_below(axes, handles, columns=2)

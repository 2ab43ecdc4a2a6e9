"""Pictures of bounds: of each relaxation, of two policies, over runs, parts, and the willingness to pay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, floor, inf, isfinite, log10, nan
from textwrap import fill
from typing import Any

from plumdp.base.json_values import python_value
from plumdp.base.vocabulary import REJECTIONS, Status
from plumdp.model.language.words import is_probability
from plumdp.plots.style import (
    BLACK,
    BLUE,
    GREY,
    HATCHES,
    PALETTE,
    PHONE,
    PURPLE,
    VERMILION,
    axes_in,
    bound_text,
    legend_below,
    mark,
    new_figure,
    patch,
    plain_ticks,
)
from plumdp.result.findings import Relaxed

WORDS = {"untied": "graph alone"}
_LOOKS = {  # colour, and what it means
    Status.CERTIFIED: (BLUE, "certified bounds"),
    Status.INCONCLUSIVE: (BLUE, "certified bounds"),
    **dict.fromkeys(REJECTIONS, (PURPLE, "bounds without the expressions")),
}
_LONGEST = 25  # times the tightest bar, on either side of it
_ROOM = 0.36  # on either side of the bars, for numbers, relative to the width of all bars


def draw_ladder(
    axes: Any,
    rungs: Sequence[Relaxed],
    *,
    objective: str,
    estimate: float | Sequence[float | None] | None = None,
    truth: float | None = None,
) -> Any:
    """Draw one bar for each relaxation, with its bounds as numbers, and return the figure.

    ``estimate`` is the value of the tightest relaxation's policy at the most likely point, or one for each rung.
    ``truth`` is the value that is known, as in an experiment. A bound that is infinite is an arrow.
    """
    axes = axes_in(axes, PHONE, 1.3 + 0.36 * len(rungs))
    dots = [*estimate] if isinstance(estimate, Sequence) else [*[None] * (len(rungs) - 1), estimate]
    low, high = _view(rungs, [value for value in (*dots, truth) if value is not None])
    axes.set_xlim(low, high)
    for height, (rung, dot) in enumerate(zip(rungs, dots, strict=True)):
        _draw_rung(axes, rung, height, low, high)
        if dot is not None and isfinite(dot):
            axes.plot(dot, height, marker="o", markersize=5.5, color="white", markeredgecolor=BLACK, zorder=4)
    if truth is not None:
        axes.axvline(truth, color=VERMILION, linewidth=1.3, linestyle=(0, (5, 2)), zorder=1)
    axes.set_yticks(range(len(rungs)), [_label(rung) for rung in rungs])
    axes.set_ylim(len(rungs) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    plain_ticks(axes.xaxis)
    _keep_probabilities(axes, rungs, objective)
    axes.set_xlabel("value of the policy")
    axes.set_title(fill(objective, 52), loc="left")
    _legend_of_rungs(axes, rungs, any(dot is not None for dot in dots), truth is not None)
    return axes.figure


def draw_difference(axes: Any, comparison: Mapping[str, Any], *, objective: str) -> Any:
    """Draw the bounds on both values above those on their difference, or into given axes the difference alone."""
    names = comparison["names"]
    if axes is None:
        above, axes = new_figure(PHONE, 3.6).subplots(2, 1, height_ratios=[2, 1])
        draw_ladder(
            above,
            [_bar(*each) for each in zip(names, map(comparison.get, ("first", "second")), strict=True)],
            objective=objective,
        )
        above.get_legend().remove()
    bar = _bar("difference", comparison["difference"])
    draw_ladder(axes, [bar], objective="")
    if isfinite(bar.lower) and isfinite(bar.upper):
        low, high = min(bar.lower, 0.0), max(bar.upper, 0.0)
        axes.set_xlim(low - _ROOM * (high - low), high + _ROOM * (high - low))
    axes.axvline(0.0, color=BLACK, linewidth=0.8, zorder=1)
    axes.set_xlabel("value of {}\nless that of {}".format(*names))
    axes.get_legend().remove()  # it would be in the way of the second line
    return axes.figure


def _bar(name: str, ends: Any) -> Relaxed:
    lower, upper = python_value(ends)
    return Relaxed(name, lower, upper, str(Status.CERTIFIED))


def _view(rungs: Sequence[Relaxed], others: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the axis, with room for numbers beside the bars."""
    ends = [end for rung in rungs for end in (rung.lower, rung.upper) if isfinite(end)]
    ends += [value for value in others if isfinite(value)]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    tight = rungs[-1]
    width = tight.upper - tight.lower
    if 0 < width < inf:  # bars that are much longer end in arrows, so that the others can be seen
        low, high = max(low, tight.lower - _LONGEST * width), min(high, tight.upper + _LONGEST * width)
        low, high = min([low, *(rung.upper for rung in rungs)]), max([high, *(rung.lower for rung in rungs)])
    width = high - low or abs(high) or 1.0
    return low - _ROOM * width, high + _ROOM * width


def _draw_rung(axes: Any, rung: Relaxed, height: int, low: float, high: float) -> None:
    """Draw a bar with its numbers. An end that is infinite is an arrow, and words say so."""
    colour = _LOOKS[Status(rung.status)][0]
    if rung.lower == -inf and rung.upper == inf:
        axes.text((low + high) / 2, height, "no bounds", ha="center", va="center", color=GREY)
        return
    start, end = (max(rung.lower, low), min(rung.upper, high))
    axes.plot([start, end], [height, height], color=colour, linewidth=9, solid_capstyle="butt", zorder=2)
    if end - start < 0.008 * (high - low):  # a bar that nobody would see
        axes.plot((start + end) / 2, height, marker="|", markersize=10, color=colour, markeredgewidth=2, zorder=2)
    for value, side in ((rung.lower, -1), (rung.upper, 1)):
        at, aligned = (start, "right") if side < 0 else (end, "left")
        if low <= value <= high:
            _beside(axes, bound_text(value, side, _digits(rung)), at, height, side, aligned)
        else:
            place = {"xycoords": "data", "textcoords": "offset points", "va": "center", "zorder": 3}
            axes.annotate("", (at, height), (-12 * side, 0), arrowprops={"arrowstyle": "->", "color": "white"}, **place)
            away = {"ha": "left" if side < 0 else "right", "fontsize": 8.5, "color": "white"}
            axes.annotate(bound_text(value, side), (at, height), (-16 * side, -0.5), **away, **place)


def _beside(axes: Any, number: str, at: float, height: int, side: int, aligned: str) -> None:
    place = {"textcoords": "offset points", "ha": aligned, "va": "center", "fontsize": 8.5, "zorder": 3}
    clear = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # of a line through the number
    axes.annotate(number, (at, height), (6 * side, 0), bbox=clear, **place)


def _digits(rung: Relaxed) -> int:
    """Return the number of digits that tell the two bounds apart."""
    width, size = rung.upper - rung.lower, max(abs(rung.lower), abs(rung.upper))
    return min(max(3 + floor(log10(size / width)), 4), 6) if isfinite(width) and 0 < width <= size else 4


def _label(rung: Relaxed) -> str:
    name = WORDS.get(rung.relaxation, rung.relaxation)
    return f"{name}\n(model rejected)" if rung.status == Status.REJECTED else name


def _keep_probabilities(axes: Any, rungs: Sequence[Relaxed], objective: str) -> None:
    """Let the axis of a probability have no ticks below 0 or above 1."""
    if is_probability(objective) and all(rung.lower >= -1e-9 and rung.upper <= 1 + 1e-9 for rung in rungs):
        low, high = axes.get_xlim()
        ticks = axes.xaxis.get_major_locator().tick_values(low, high)
        axes.set_xticks([tick for tick in ticks if max(low, -1e-9) <= tick <= min(high, 1 + 1e-9)])


def _legend_of_rungs(axes: Any, rungs: Sequence[Relaxed], has_dots: bool, has_truth: bool) -> None:
    looks = dict.fromkeys(_LOOKS[Status(rung.status)] for rung in rungs)
    handles = [mark(label, colour, line="-", width=5) for colour, label in looks]
    if has_dots:
        handles.append(mark("estimate", BLACK, "o", face="white"))
    if has_truth:
        handles.append(mark("true value", VERMILION, line="--"))
    legend_below(axes, handles, columns=3)


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


def draw_watch(axes: Any, watch: Any) -> Any:
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
    axes.set_title(fill(watch.sentence, 44), loc="left")
    lines = [("evidence", PALETTE[0], "-"), (f"alarm at {limit:,.10g}", BLACK, "--")]
    legend_below(axes, [mark(label, colour, line=line) for label, colour, line in lines])
    return axes.figure


def draw_net_benefit(axes: Any, found: Any) -> Any:
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

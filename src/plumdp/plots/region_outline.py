"""The picture of the region of parameters, a strip of one, an outline of two, or a triangle of pairs for more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

from plumdp.base.errors import DataError
from plumdp.model.text import number_of
from plumdp.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    PHONE,
    PURPLE,
    SKY,
    VERMILION,
    bound_text,
    heading,
    legend_below,
    mark,
    new_figure,
    patch,
    plain_ticks,
)  # fmt: skip
from plumdp.result.findings import Outline, Point

_CUT_COLOURS = (ORANGE, PURPLE, GREEN, VERMILION, SKY)
_CUT_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
_MARGIN = 0.16  # of the box, around it
_MOST_CUTS = 5  # kinds in a legend
_NAMED = 4  # parameters left out that are named


def draw_region(
    axes: Any,
    outlines: Sequence[Outline],
    parameters: Mapping[str, tuple[float, float]],
    *,
    truth: Mapping[str, float] | None = None,
) -> Any:
    """Draw the region with a panel for each pair of parameters, and words on those left out, and return the figure.

    ``parameters`` are the bounds of all parameters, such as those of a certificate.
    """
    names = tuple(dict.fromkeys(name for outline in outlines for name in outline.names if name))
    if axes is not None:
        if len(outlines) > 1:
            raise DataError("axes: several panels are needed for more than two parameters; leave out axes")
        return _draw_outline(axes, outlines[0], _pair_of(truth, outlines[0])).figure
    if len(names) <= 2:
        figure = new_figure(PHONE, 1.9 if len(names) < 2 else 4.6)
        for outline in outlines:
            _draw_outline(figure.add_subplot(), outline, _pair_of(truth, outline))
    else:
        figure = _triangle(outlines, names, truth)
    left_out = [name for name in parameters if name not in names]
    shown = ", ".join(left_out[:_NAMED]) + ("" if len(left_out) <= _NAMED else ", …")
    note = f"{number_of(len(left_out), 'parameter')} left out, which matter less: {shown}" if left_out else ""
    heading(figure, note)
    return figure


def _draw_outline(axes: Any, outline: Outline, truth: Point | None, *, legend: bool = True) -> Any:
    """Draw the region as two parameters see it, or the interval of one, and return the axes.

    Outlines are drawn around what they show, never inside, so that no parameters that explain the data are left out.
    """
    if not outline.names[1]:
        return _plot_strip(axes, outline, truth)
    _fill(axes, outline.space, facecolor=PALE, edgecolor="none", alpha=0.55, zorder=0)
    if outline.ellipse:
        _fill(axes, outline.ellipse, facecolor="none", edgecolor=SKY, linewidth=1.4, linestyle="-", zorder=2)
    (left, right), (bottom, top) = outline.box
    corners = ((left, bottom), (right, bottom), (right, top), (left, top))
    _fill(axes, corners, facecolor="none", edgecolor=GREY, linewidth=1.0, linestyle=(0, (4, 2)), zorder=2)
    _fill(axes, outline.region, facecolor=BLUE, edgecolor=BLUE, alpha=0.35, linewidth=1.2, zorder=1)
    _view(axes, outline, truth)
    looks = _draw_cuts(axes, outline)
    _draw_points(axes, outline.estimate, truth)
    axes.set_xlabel(outline.names[0])
    axes.set_ylabel(outline.names[1])
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    if legend:
        legend_below(axes, _handles(outline, truth, looks), columns=2 if not looks else 1)
    return axes


def _triangle(outlines: Sequence[Outline], names: Sequence[str], truth: Mapping[str, float] | None) -> Any:
    """Return a figure with a panel for each pair, below the diagonal, and one legend above it."""
    n = len(names) - 1
    side = max(PHONE, 1.0 * n + 0.5)  # at 390 pixels, letters of six parameters are nine pixels high
    figure = new_figure(side, side + (0.7 if n < 3 else 0.0))
    cells = figure.subplots(n, n, squeeze=False, sharex="col", sharey="row")
    for axes in cells.flat:
        axes.set_visible(False)
    for outline in outlines:
        row, column = names.index(outline.names[1]) - 1, names.index(outline.names[0])
        axes = cells[row, column]
        axes.set_visible(True)
        _draw_outline(axes, outline, _pair_of(truth, outline), legend=False)
        for axis, is_outer in ((axes.xaxis, row == n - 1), (axes.yaxis, column == 0)):
            axis.label.set_visible(is_outer)
            axis.label.set_text(_in_lines(axis.label.get_text()))
            axis.set_tick_params(labelleft=is_outer, labelbottom=is_outer)
            axis.get_major_locator().set_params(nbins=2)
        axes.tick_params(axis="x", rotation=35 if n > 2 else 0)
    handles = _handles(outlines[0], None if truth is None else (0.0, 0.0), {})
    if n < 3:
        figure.legend(handles=handles, loc="outside lower right", ncols=2)
    else:
        figure.legend(handles=handles, loc="upper right", bbox_to_anchor=(0.99, 0.97))
    return figure


def _in_lines(name: str, width: int = 10) -> str:
    """Return the name of a parameter in lines that are about as wide as a panel, broken behind underscores.

    >>> _in_lines("restrictive_0_died")
    'restrictive_\\n0_died'
    """
    return fill(name.replace("_", "_ "), width, break_long_words=False).replace("_ ", "_")


def _pair_of(truth: Mapping[str, float] | None, outline: Outline) -> Point | None:
    """Return the two coordinates of a point that an outline shows, if the point has both."""
    if truth is None or any(name and name not in truth for name in outline.names):
        return None
    first, second = outline.names
    return truth[first], truth[second] if second else 0.0


def _fill(axes: Any, points: Sequence[Point], **look: Any) -> None:
    from matplotlib.patches import Polygon

    if len(points) > 2:
        axes.add_patch(Polygon(points, closed=True, **look))


def _view(axes: Any, outline: Outline, truth: Point | None) -> None:
    """Show the box, and the truth if it is near, with a margin."""
    for i, limits in enumerate((axes.set_xlim, axes.set_ylim)):
        low, high = outline.box[i]
        width = high - low or abs(high) or 1.0
        if truth is not None and low - width < truth[i] < high + width:
            low, high = min(low, truth[i]), max(high, truth[i])
        limits(low - _MARGIN * width, high + _MARGIN * width)


def _draw_cuts(axes: Any, outline: Outline) -> dict[str, tuple[str, Any]]:
    """Draw the borders of half-spaces, and return the colour and the line of each kind."""
    origins = list(dict.fromkeys(cut.origin for cut in outline.cuts))[:_MOST_CUTS]
    looks = {origin: (_CUT_COLOURS[i], _CUT_LINES[i]) for i, origin in enumerate(origins)}
    left, right = axes.get_xlim()
    for cut in outline.cuts:
        if cut.origin not in looks:
            continue
        colour, line = looks[cut.origin]
        (a, b), offset = cut.normal, cut.offset
        look = {"color": colour, "linestyle": line, "linewidth": 1.5, "zorder": 2.5}
        if abs(b) > 1e-12 * abs(a):
            axes.plot([left, right], [(offset - a * x) / b for x in (left, right)], scalex=False, scaley=False, **look)
        elif a:
            axes.axvline(offset / a, **look)
    return looks


def _draw_points(axes: Any, estimate: Point | None, truth: Point | None) -> None:
    if estimate is not None:
        axes.plot(*estimate, marker="o", markersize=5.5, color="white", markeredgecolor=BLACK, zorder=4)
    if truth is not None:
        axes.plot(*truth, marker="X", markersize=7, color=VERMILION, markeredgecolor="white", zorder=5)


def _handles(outline: Outline, truth: Point | None, looks: Mapping[str, tuple[str, Any]]) -> list[Any]:
    allowed = "what the data allow"
    handles = [patch(allowed, BLUE, edge=BLUE, alpha=0.35)] if outline.region or not outline.names[1] else []
    handles.append(mark("its box" if outline.region else f"box around {allowed}", GREY, line="--", width=1.0))
    if outline.ellipse:
        handles.append(mark("ellipse of the likelihood", SKY, line="-"))
    handles += [mark(fill(origin, 50), colour, line=line) for origin, (colour, line) in looks.items()]
    if outline.space:
        handles.append(patch("what was possible before", PALE))
    if outline.estimate is not None:
        handles.append(mark("estimate", BLACK, "o", face="white"))
    if truth is not None:
        handles.append(mark("true value", VERMILION, "X"))
    return handles


def _plot_strip(axes: Any, outline: Outline, truth: Point | None) -> Any:
    """Draw the interval of a single parameter within its space."""
    low, high = outline.box[0]
    ends = [x for x, _ in outline.space] or [low, high]
    axes.plot([min(ends), max(ends)], [0, 0], color=PALE, linewidth=16, solid_capstyle="butt", zorder=0)
    axes.plot([low, high], [0, 0], color=BLUE, linewidth=16, solid_capstyle="butt", alpha=0.55, zorder=1)
    for value, side in ((low, -1), (high, 1)):
        place = {"textcoords": "offset points", "ha": "right" if side < 0 else "left", "va": "bottom", "fontsize": 8.5}
        axes.annotate(bound_text(value, side), (value, 0), (2 * side, 10), **place)
    if outline.estimate is not None:
        axes.plot(outline.estimate[0], 0, marker="o", markersize=5.5, color="white", markeredgecolor=BLACK, zorder=4)
    if truth is not None:
        axes.plot(truth[0], 0, marker="X", markersize=7, color=VERMILION, markeredgecolor="white", zorder=5)
    axes.set_ylim(-1, 1.6)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(outline.names[0])
    plain_ticks(axes.xaxis)
    handles = _handles(outline, truth, {})
    legend_below(axes, [handles[0], *handles[2:]], columns=2)
    return axes

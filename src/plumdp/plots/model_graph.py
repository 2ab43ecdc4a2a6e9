"""A small model as a graph, with the policy on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np

from plumdp.errors import DataError
from plumdp.model.graph import FloatArray
from plumdp.model.text import cut, number_of
from plumdp.plots.layered_layout import layered_layout
from plumdp.plots.style import BLACK, BLUE, GREEN, GREY, PALE, PHONE, legend_below, mark, new_figure, number_text
from plumdp.result.findings import Drawing, Edge

MOST_STATES = 400
_MOST_LABELS = 60  # states with texts; with more they are dots
_MOST_EDGE_LABELS = 14  # states up to which transitions have texts
_LONGEST = 16  # characters of a line in a node


def plot_model(axes: Any, drawing: Drawing) -> Any:
    """Draw states and transitions, those of the policy in blue, and return the axes.

    States are in layers by their distance from the initial one. Up to 60 states have texts; of more there are dots.
    """
    n = len(drawing.states)
    if n > MOST_STATES:
        raise DataError(f"{number_of(n, 'state')} are too many to be drawn: a picture has at most {MOST_STATES}")
    places, is_wide = _places(drawing)
    texts, names = _short_texts(drawing.states)
    groups = _together(drawing.edges)
    for (source, target), edges in sorted(groups.items(), key=lambda pair: any(e.is_chosen for e in pair[1])):
        both = (target, source) in groups
        _draw_edge(axes, places, source, target, edges, n=n, bent=both, is_wide=is_wide)
    for state, place in enumerate(places.tolist()):
        _draw_state(axes, place, texts[state] if n <= _MOST_LABELS else "", _role(drawing, state))
    low, high = places.min(axis=0), places.max(axis=0)
    room = 0.6 if n <= _MOST_LABELS else 0.4
    axes.set_xlim(low[0] - room, high[0] + room)
    axes.set_ylim(high[1] + room, low[1] - room)
    axes.set_axis_off()
    if n <= _MOST_LABELS and names:
        axes.set_title(fill(f"states: {names}", 54), fontsize=8.5)
    else:
        axes.set_title(number_of(n, "state"), fontsize=8.5)
    _legend(axes, drawing)
    return axes


def model_figure(drawing: Drawing) -> Any:
    """Return a figure of a model that grows with its layers."""
    places, _ = _places(drawing)
    across, down = np.ptp(places, axis=0) + 1
    is_small = len(drawing.states) <= _MOST_LABELS
    width = max(PHONE, min((0.72 if is_small else 0.16) * across, 11.0))
    height = min(max((0.78 if is_small else 0.3) * down, 1.4), 11.0)
    figure = new_figure(width, height + 0.8)
    plot_model(figure.add_subplot(), drawing)
    return figure


def _places(drawing: Drawing) -> tuple[FloatArray, bool]:
    """Return the place of each state; layers go down, or to the right if that is less wide."""
    _, places = layered_layout(len(drawing.states), drawing.initial, ((e.source, e.target) for e in drawing.edges))
    across, down = np.ptp(places, axis=0)
    is_wide = bool(across > 1.5 * down)
    return (places[:, ::-1], True) if is_wide else (places, False)


def _short_texts(states: Sequence[str]) -> tuple[list[str], str]:
    """Return the values of each state, and the names of the variables if all states have the same.

    >>> _short_texts(["x=1, y=2", "x=3, y=4"])
    (['1, 2', '3, 4'], 'x, y')
    """
    parts = [[part.partition("=") for part in text.split(", ")] for text in states]
    names = {tuple(name for name, _, _ in part) for part in parts}
    if len(names) != 1 or not all(equals for part in parts for _, equals, _ in part):
        return list(states), ""
    return [", ".join(value for _, _, value in part) for part in parts], ", ".join(names.pop())


def _together(edges: Sequence[Edge]) -> dict[tuple[int, int], list[Edge]]:
    groups: dict[tuple[int, int], list[Edge]] = {}
    for edge in edges:
        groups.setdefault((edge.source, edge.target), []).append(edge)
    return groups


def _role(drawing: Drawing, state: int) -> Mapping[str, Any]:
    """Return how a state looks."""
    is_target, is_initial = state in drawing.targets, state == drawing.initial
    return {
        "facecolor": "#bfe6d9" if is_target else "white",
        "edgecolor": GREEN if is_target else BLACK,
        "linewidth": 2.2 if is_initial else 1.0,
    }


def _draw_state(axes: Any, place: Sequence[float], text: str, look: Mapping[str, Any]) -> None:
    if text:
        box = {"boxstyle": "round,pad=0.25", **look}
        axes.text(
            *place, fill(cut(text, 3 * _LONGEST), _LONGEST), ha="center", va="center", fontsize=8, bbox=box, zorder=3
        )
    else:
        fill_of = look["edgecolor"] if look["edgecolor"] == GREEN else GREY
        size = 7 if look["linewidth"] > 2 else 4
        edge = BLACK if look["linewidth"] > 2 else fill_of
        axes.plot(*place, marker="o", markersize=size, color=fill_of, markeredgecolor=edge, zorder=3)


def _draw_edge(
    axes: Any, places: FloatArray, source: int, target: int, edges: Sequence[Edge], *, n: int, bent: bool, is_wide: bool
) -> None:
    """Draw the transitions from one state to another as one arrow."""
    from matplotlib.patches import FancyArrowPatch

    chosen = [edge for edge in edges if edge.is_chosen]
    look: dict[str, Any] = {"color": BLUE if chosen else PALE, "linewidth": 1.5 if chosen else 0.8}
    look |= {"arrowstyle": "-|>", "mutation_scale": 9 if n <= _MOST_LABELS else 5, "zorder": 2 if chosen else 1}
    start, end = places[source], places[target]
    shrink = 13 if n <= _MOST_LABELS else 3
    if source == target:
        side = np.array([0.0, 0.34]) if is_wide else np.array([0.34, 0.0])
        other = np.array([0.16, 0.0]) if is_wide else np.array([0.0, 0.16])
        ends = (start + side - other, start + side + other)
        axes.add_patch(FancyArrowPatch(*ends, connectionstyle="arc3,rad=1.1", shrinkA=0, shrinkB=0, **look))
    else:
        is_long = np.abs(end - start).max() > 1.01
        bow = "arc3,rad=0.22" if bent or is_long else "arc3,rad=0"
        axes.add_patch(FancyArrowPatch(start, end, connectionstyle=bow, shrinkA=shrink, shrinkB=shrink, **look))
    if n <= _MOST_EDGE_LABELS and chosen and source != target:
        words = "\n".join(cut(f"{edge.action} {_share(edge)}", 22) for edge in chosen[:2])
        at = start + 0.5 * (end - start)
        back = {"boxstyle": "square,pad=0.05", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
        axes.text(*at, words, ha="center", va="center", fontsize=7.5, color=BLUE, bbox=back, zorder=2.5)


def _share(edge: Edge) -> str:
    return edge.expression if edge.probability is None else f"≈{number_text(edge.probability, 2)}"


def _legend(axes: Any, drawing: Drawing) -> None:
    handles = [
        mark("taken by the policy", BLUE, line="-", width=1.5),
        mark("not taken", "#bbbbbb", line="-", width=1.0),
    ]
    handles.append(mark("initial state", BLACK, "o", face="white"))
    if drawing.targets:
        handles.append(mark("target", GREEN, "o", face="#bfe6d9"))
    legend_below(axes, handles, columns=2, at=0.08)

"""The picture of a small model as a graph, with the policy on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill, wrap
from typing import Any

import numpy as np

from plumdp.base.errors import DataError
from plumdp.model.graph import FloatArray
from plumdp.model.text import cut, number_of
from plumdp.plots.style import BLACK, BLUE, GREEN, GREY, PALE, PHONE, axes_in, legend_below, mark, number_text
from plumdp.result.findings import Drawing, Edge

MOST_STATES = 400
_MOST_LABELS = 60  # states with texts; with more they are dots
_MOST_EDGE_LABELS = 14  # states up to which transitions have texts
_LONGEST = 9  # characters of a line in a node


def draw_model(axes: Any, drawing: Drawing) -> Any:
    """Draw states and transitions, those that runs of the policy take in blue, and return the figure.

    States are in layers by their distance from the initial one. Up to 60 states have texts. If there are more, they are
    dots.
    """
    n = len(drawing.states)
    if n > MOST_STATES:
        raise DataError(f"{number_of(n, 'state')} are too many to be drawn: a picture has at most {MOST_STATES}")
    places, is_wide = _places(drawing)
    axes = axes_in(axes, *_size(drawing, places, is_wide))
    chosen = ((edge.source, edge.target) for edge in drawing.edges if edge.is_chosen)
    reached = {state for layer in layers_from(drawing.initial, chosen) for state in layer}
    low, high = places.min(axis=0), places.max(axis=0)
    axes.set_xlim(low[0] - 0.6, high[0] + 0.6)
    axes.set_ylim(high[1] + 0.6, low[1] - 0.6)
    if n <= _MOST_LABELS:
        names = _draw_with_texts(axes, drawing, places, reached, is_wide)
    else:
        names = ""
        _draw_as_dots(axes, drawing, places, reached)
    axes.set_axis_off()
    counted = f"{number_of(n, 'state')}, {len(reached):,} of which the policy reaches"
    axes.set_title(fill(f"{counted}: {names}" if names else counted, 54), fontsize=8.5)
    _legend(axes, drawing)
    return axes.figure


def _size(drawing: Drawing, places: FloatArray, is_wide: bool) -> tuple[float, float]:
    """Return width and height in inches, which grow with the layers."""
    across, down = np.ptp(places, axis=0) + 1
    if len(drawing.states) > _MOST_LABELS:
        return max(PHONE, min(0.12 * across, 11.0)), min(max(0.13 * down, 1.4), 6.5) + 0.8
    nodes = _node_texts(drawing)[0]
    longest = max(len(line) for node in nodes for line in node.split("\n"))
    step = 0.07 * longest + (0.55 if is_wide else 0.25)
    rows = 0.14 * max(node.count("\n") + 1 for node in nodes) + (0.2 if is_wide else 0.55)
    return max(PHONE, min(step * across, 11.0)), min(max(rows * down, 1.4), 11.0) + 0.8


def _places(drawing: Drawing) -> tuple[FloatArray, bool]:
    """Return the place of each state. Layers go down, or to the right if that is less wide."""
    _, places = layered_layout(len(drawing.states), drawing.initial, ((e.source, e.target) for e in drawing.edges))
    across, down = np.ptp(places, axis=0)
    is_wide = bool(across > 1.5 * down)
    return (places[:, ::-1], True) if is_wide else (places, False)


def _draw_as_dots(axes: Any, drawing: Drawing, places: FloatArray, reached: set[int]) -> None:
    """Draw many states as dots, filled where the policy leads, joined by straight lines."""
    from matplotlib.collections import LineCollection

    pairs = {(edge.source, edge.target) for edge in drawing.edges if edge.source != edge.target}
    chosen = {(edge.source, edge.target) for edge in drawing.edges if edge.is_chosen and edge.source in reached}
    for shown, colour, width in ((pairs - chosen, PALE, 0.5), (pairs & chosen, BLUE, 1.1)):
        lines = [places[list(pair)] for pair in sorted(shown)]
        order = 2 if colour == BLUE else 1
        axes.add_collection(LineCollection(lines, colors=colour, linewidths=width, zorder=order), autolim=False)
    for state, place in enumerate(places.tolist()):
        colour = GREEN if state in drawing.targets else BLACK
        size = 7 if state == drawing.initial else 3.6
        face = colour if state in reached else "white"
        edge = colour if state in reached else GREY
        axes.plot(*place, marker="o", markersize=size, color=face, markeredgecolor=edge, markeredgewidth=0.8, zorder=3)


def _draw_with_texts(axes: Any, drawing: Drawing, places: FloatArray, reached: set[int], is_wide: bool) -> str:
    """Draw few states with their values, and return the names of the variables."""
    texts, names = _node_texts(drawing)
    groups: dict[tuple[int, int], list[Edge]] = {}
    for edge in drawing.edges:
        groups.setdefault((edge.source, edge.target), []).append(edge)
    for (source, target), edges in groups.items():
        chosen = [edge for edge in edges if edge.is_chosen and source in reached]
        bent = (target, source) in groups
        _draw_edge(axes, places, source, target, chosen, n=len(texts), bent=bent, is_wide=is_wide)
    for state, place in enumerate(places.tolist()):
        _draw_state(axes, drawing, state, place, texts[state], state in reached)
    return names


def _node_texts(drawing: Drawing) -> tuple[list[str], str]:
    """Return the values of each state in short lines, the action below where there is a choice, and the variables."""
    values, names = _short_texts(drawing.states)
    actions: dict[int, set[str]] = {}
    for edge in drawing.edges:
        actions.setdefault(edge.source, set()).add(edge.action)
    action_of = {edge.source: edge.action for edge in drawing.edges if edge.is_chosen}
    texts = []
    for state, value in enumerate(values):
        lines = wrap(value, _LONGEST)[:3]
        if len(actions.get(state, ())) > 1:
            lines.append(f"▸{cut(action_of.get(state, ''), _LONGEST)}")
        texts.append("\n".join(lines))
    return texts, names


def _short_texts(states: Sequence[str]) -> tuple[list[str], str]:
    """Return the values of each state, and the names of the variables if all states have the same.

    >>> _short_texts(["x=1, y=2", "x=3, y=4"])
    (['1, 2', '3, 4'], 'x, y')
    """
    parts = [[part.partition("=") for part in state.split(", ")] for state in states]
    names = {tuple(name for name, _, _ in part) for part in parts}
    if len(names) != 1 or not all(equals for part in parts for _, equals, _ in part):
        return list(states), ""
    return [", ".join(value for _, _, value in part) for part in parts], ", ".join(names.pop())


def _draw_state(axes: Any, drawing: Drawing, state: int, place: Sequence[float], text: str, is_reached: bool) -> None:
    is_target = state in drawing.targets
    box = {
        "boxstyle": "round,pad=0.25",
        "facecolor": "#bfe6d9" if is_target else "white",
        "edgecolor": GREEN if is_target else BLACK if is_reached else "#aaaaaa",
        "linewidth": 2.2 if state == drawing.initial else 1.0,
    }
    axes.text(*place, text, ha="center", va="center", fontsize=8, bbox=box, zorder=3)


def _draw_edge(
    axes: Any,
    places: FloatArray,
    source: int,
    target: int,
    chosen: Sequence[Edge],
    *,
    n: int,
    bent: bool,
    is_wide: bool,
) -> None:
    """Draw the transitions from one state to another as one arrow, in blue with words if the policy takes them."""
    from matplotlib.patches import FancyArrowPatch

    look: dict[str, Any] = {"color": BLUE if chosen else PALE, "linewidth": 1.5 if chosen else 0.8}
    look |= {"arrowstyle": "-|>", "mutation_scale": 9, "zorder": 2 if chosen else 1}
    start, end = places[source], places[target]
    if source == target:
        if chosen and not all(edge.probability == 1 for edge in chosen):
            _draw_loop(axes, start, look, is_wide)
        return
    bow = 0.22 if bent or np.abs(end - start).max() > 1.01 else 0.0
    style = f"arc3,rad={bow}"
    axes.add_patch(FancyArrowPatch(start, end, connectionstyle=style, shrinkA=13, shrinkB=13, **look))
    shares = [edge.probability for edge in chosen if edge.probability is not None]
    if n <= _MOST_EDGE_LABELS and shares:
        back = {"boxstyle": "square,pad=0.05", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
        words = f"≈{number_text(sum(shares), 2)}"
        at = _middle(axes, start, end, bow)
        axes.text(*at, words, ha="center", va="center", fontsize=7.5, color=BLUE, bbox=back, zorder=2.5)


def _draw_loop(axes: Any, at: FloatArray, look: dict[str, Any], is_wide: bool) -> None:
    from matplotlib.patches import FancyArrowPatch

    side = np.array([0.0, -0.3]) if is_wide else np.array([0.3, 0.0])
    other = np.array([0.14, 0.0]) if is_wide else np.array([0.0, 0.14])
    bow = "arc3,rad=-1.2" if is_wide else "arc3,rad=1.2"
    ends = (at + side - other, at + side + other)
    axes.add_patch(FancyArrowPatch(*ends, connectionstyle=bow, shrinkA=0, shrinkB=0, **look))


def _middle(axes: Any, start: FloatArray, end: FloatArray, bow: float) -> FloatArray:
    """Return the middle of a bent arrow, about, in the coordinates of the axes' data."""
    (x1, y1), (x2, y2) = axes.transData.transform([start, end])
    middle = (x1 + x2) / 2 + bow / 2 * (y2 - y1), (y1 + y2) / 2 - bow / 2 * (x2 - x1)
    return np.asarray(axes.transData.inverted().transform(middle), dtype=np.float64)


def _legend(axes: Any, drawing: Drawing) -> None:
    handles = [
        mark("the policy's runs", BLUE, line="-", width=1.5),
        mark("other transitions", "#bbbbbb", line="-", width=1.0),
    ]
    is_small = len(drawing.states) <= _MOST_LABELS
    handles.append(mark("initial state", BLACK, "o", face="white" if is_small else BLACK))
    if drawing.targets:
        handles.append(mark("target", GREEN, "o", face="#bfe6d9" if is_small else GREEN))
    legend_below(axes, handles, columns=2, at=0.08)


_SWEEPS = 12


def layered_layout(n_states: int, initial: int, edges: Iterable[tuple[int, int]]) -> tuple[list[list[int]], FloatArray]:
    """Return the states of each layer in order, and their places (n_states, 2), position and number of the layer.

    Layers are distances from the initial state. States that cannot be reached come last. Within a layer, states are
    ordered by the mean place of their neighbours, down and up several times, which leaves few crossings.

    >>> layers, places = layered_layout(4, 0, [(0, 1), (0, 2), (1, 3), (2, 3)])
    >>> layers, places.tolist()
    ([[0], [1, 2], [3]], [[0.0, 0.0], [-0.5, 1.0], [0.5, 1.0], [0.0, 2.0]])
    """
    pairs = sorted({(a, b) for a, b in edges if a != b})
    layers = layers_from(initial, pairs)
    others = sorted({*range(n_states)}.difference(*layers))
    layers += [others] if others else []
    number = {state: k for k, layer in enumerate(layers) for state in layer}
    near: list[list[int]] = [[] for _ in range(n_states)]
    for a, b in pairs:
        if number[a] != number[b]:
            near[a].append(b)
            near[b].append(a)
    best, fewest = layers, _crossings(layers, pairs, number)
    for sweep in range(_SWEEPS):
        layers = _swept(layers, near, number, is_down=sweep % 2 == 0)
        now = _crossings(layers, pairs, number)
        if now < fewest:
            best, fewest = layers, now
    places = np.zeros((n_states, 2))
    for k, layer in enumerate(best):
        for i, state in enumerate(layer):
            places[state] = i - (len(layer) - 1) / 2, k
    return best, places


def layers_from(initial: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return the states that can be reached from a state, by their distance from it."""
    after: dict[int, list[int]] = {}
    for a, b in pairs:
        after.setdefault(a, []).append(b)
    reached, layers = {initial}, [[initial]]
    while layers[-1]:
        layers.append(list(dict.fromkeys(b for a in layers[-1] for b in after.get(a, ()) if b not in reached)))
        reached.update(layers[-1])
    return layers[:-1]


def _swept(
    layers: list[list[int]], near: Sequence[Sequence[int]], number: dict[int, int], *, is_down: bool
) -> list[list[int]]:
    """Return the layers, each ordered by the mean place of neighbours in those that were ordered before it."""
    new = [list(layer) for layer in layers]
    at = {state: i / max(1, len(layer) - 1) for layer in new for i, state in enumerate(layer)}
    for k in range(1, len(new)) if is_down else range(len(new) - 2, -1, -1):
        means = {}
        for state in new[k]:
            places = [at[other] for other in near[state] if (number[other] < k) == is_down]
            means[state] = sum(places) / len(places) if places else at[state]
        new[k].sort(key=means.__getitem__)
        at |= {state: i / max(1, len(new[k]) - 1) for i, state in enumerate(new[k])}
    return new


def _crossings(layers: list[list[int]], pairs: Sequence[tuple[int, int]], number: dict[int, int]) -> int:
    """Return the number of lines between neighbouring layers that cross."""
    at = {state: i for layer in layers for i, state in enumerate(layer)}
    between: dict[int, list[tuple[int, int]]] = {}
    for a, b in pairs:
        if abs(number[a] - number[b]) == 1:
            upper, lower = (a, b) if number[a] < number[b] else (b, a)
            between.setdefault(number[upper], []).append((at[upper], at[lower]))
    total = 0
    for lines in between.values():
        ends = np.array(sorted(lines))
        for i in range(len(ends)):
            total += int(((ends[i + 1 :, 0] > ends[i, 0]) & (ends[i + 1 :, 1] < ends[i, 1])).sum())
    return total

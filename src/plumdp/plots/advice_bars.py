"""The picture of choices where the next data help most, ranked by what a run is worth there."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import Any

from plumdp.model.text import cut, number_of
from plumdp.plots.style import BLUE, PHONE, axes_in

_LONGEST = 24  # characters of a line
_MOST_LINES = 3  # of a state


def draw_advice(axes: Any, advice: Mapping[str, Any]) -> Any:
    """Draw the choices at which a run narrows the bounds most, with the visits so far, and return the figure.

    ``advice`` is the result of ``Advice.to_dict``. The bar of a choice is its visits in a run under the advised policy
    times what a visit is worth, relative to the best one, and an estimate.
    """
    choices = list(advice["choices"])
    labels = [_label(choice) for choice in choices]
    lines = max([label.count("\n") for label in labels], default=0) + 1
    axes = axes_in(axes, PHONE, 0.9 + (0.08 + 0.145 * lines) * max(1, len(choices)))
    worth = [choice["rate"] * choice["visits_per_run"] for choice in choices]
    best = max(worth, default=1.0) or 1.0
    for height, (choice, of_choice) in enumerate(zip(choices, worth, strict=True)):
        share = 100 * of_choice / best
        axes.barh(height, share, height=0.62, color=BLUE)
        visits = number_of(choice["visits"], "visit") if choice["visits"] else "never visited"
        inside = share > 55
        look = {"color": "white", "ha": "right"} if inside else {"color": "black", "ha": "left"}
        move = (-3, 0) if inside else (3, 0)
        axes.annotate(visits, (share, height), move, textcoords="offset points", va="center", fontsize=8.5, **look)
    axes.set_yticks(range(len(choices)), labels)
    axes.set_ylim(len(choices) - 0.4, -0.6)
    axes.set_xlim(0, 102)
    axes.set_xticks([0, 50, 100], ["0 %", "50 %", "100 %"])
    axes.set_xlabel("relative benefit of one more run\n(visits so far at the bar)", loc="right")
    return axes.figure


def _label(choice: Mapping[str, Any]) -> str:
    state = ", ".join(
        f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in choice["state"].items()
    )
    lines = wrap(state, _LONGEST)
    shown = (
        lines
        if len(lines) <= _MOST_LINES
        else [*lines[: _MOST_LINES - 1], cut(f"{lines[_MOST_LINES - 1]} …", _LONGEST)]
    )
    return "\n".join([*shown, cut(str(choice["action"]), _LONGEST)])

"""The model of an underwater glider, a bilinear reward study with a current of unknown strength in two directions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from plumdp.model.explore import explore
from plumdp.model.expressions.polynomial import parameters
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import ParameterSpace

TRUE_POINT = {"h": "0.3", "v": "0.7"}
PROPERTY = 'R{"steps"}min=? [ F "goal" ]'

_MOVES = {"west": (-1, 0), "east": (1, 0), "north": (0, 1), "south": (0, -1)}


class Glider(NamedTuple):
    """The cell of the vehicle."""

    x: int
    y: int


def glider(width: int, height: int, goal_x: int, goal_y: int) -> ParametricMDP:
    """Return the model of a grid of the given size and goal cell."""
    h, v = parameters("h", "v")
    goal = Glider(goal_x, goal_y)

    def is_inside(s: Glider) -> bool:
        return 0 <= s.x < width and 0 <= s.y < height

    def current(s: Glider) -> tuple[Fraction, Fraction]:
        fx, fy = Fraction(2 * s.x, width - 1) - 1, Fraction(2 * s.y, height - 1) - 1
        return Fraction("0.6") * fx + Fraction("0.2") * fy, Fraction("-0.2") * fx + Fraction("0.7") * fy

    def outcomes(s: Glider, dx: int, dy: int) -> list[tuple[Any, Glider]]:
        """Return the outcomes of a course, kept or held back, with drift across it or not, by rules for the border."""
        along, across = current(s)
        hold, drift = h * abs(along), v * abs(across)
        moved = Glider(s.x + dx, s.y + dy)
        if dx:
            side = 1 if across >= 0 else -1
            drifted, both = s._replace(y=s.y + side), moved._replace(y=s.y + side)
        else:
            side = 1 if along >= 0 else -1
            drifted, both = s._replace(x=s.x + side), moved._replace(x=s.x + side)
        if is_inside(moved) and is_inside(drifted):
            held = [(hold * (1 - drift), s), (hold * drift, drifted)]
            return [((1 - hold) * (1 - drift), moved), ((1 - hold) * drift, both), *held]
        if is_inside(moved):
            return [(drift, moved), (1 - drift, s)]
        if is_inside(drifted) and dx:
            return [(drift, drifted), (1 - drift, s)]
        return [(1, s)]

    def step(s: Glider) -> dict[str, list[tuple[Any, Glider]]]:
        if s == goal:
            return {"done": [(1, s)]}
        return {action: outcomes(s, dx, dy) for action, (dx, dy) in _MOVES.items()}

    return explore(
        step,
        Glider(0, 0),
        space=ParameterSpace.unit("h", "v"),
        labels={"goal": lambda s: s == goal},
        rewards={"steps": lambda s: float(s != goal)},
    )

"""The model of aircraft collision avoidance, an affine probability study with three unknown mode weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from plumdp.model.explore import Variable, explore_batch
from plumdp.model.expressions.arrays import tabulate
from plumdp.model.expressions.polynomial import Polynomial, parameters
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import ParameterSpace

TRUE_POINT = {"t1": "0.4", "t2": "0.2", "t3": "0.15"}
PROPERTY = 'Pmax=? [ !"collision" U "goal" ]'

# Rates per mode: at the start of the corridor, and at its end (linear in between).
_SUCCESS = (("0.16", "0.24"), ("0.24", "0.18"), ("0.14", "0.24"), ("0.24", "0.20"))
_UP = (("0.08", "0.12"), ("0.10", "0.07"), ("0.09", "0.11"), ("0.06", "0.11"))
_DOWN = (("0.12", "0.10"), ("0.09", "0.12"), ("0.12", "0.08"), ("0.12", "0.11"))


class Aircraft(NamedTuple):
    """Our aircraft (x, y) and the intruder (ax, ay), which comes from the other end."""

    x: Variable
    y: Variable
    ax: Variable
    ay: Variable


def aircraft(length: int, height: int, collision_height: int) -> ParametricMDP:
    """Return the model of a corridor of the given length and height."""
    weights = parameters("t1", "t2", "t3")
    modes = (*weights, 1 - sum(weights, Polynomial(0)))

    def mixture(*rates: Callable[[int, Fraction], Fraction]) -> Callable[[int], Polynomial]:
        """Return x → sum over the modes of weight times the product of the rates."""

        @cache
        def at(x: int) -> Polynomial:
            total = Polynomial(0)
            for mode, weight in enumerate(modes):
                product = Fraction(1)
                for rate in rates:
                    product *= rate(mode, Fraction(x, length))
                total += weight * product
            return total

        return at

    success, failure = _line(_SUCCESS), _complement(_line(_SUCCESS))
    moves = {"up": _line(_UP), "down": _line(_DOWN), "same": _complement(_line(_UP), _line(_DOWN))}
    joint = {(name, outcome): mixture(outcome, move) for name, move in moves.items() for outcome in (success, failure)}
    alone = {name: mixture(move) for name, move in moves.items()}

    def step(s: Aircraft) -> Iterator[Any]:
        flying = s.x < length
        x, ax = s.x + 1, s.ax - 1
        ay = {"up": np.maximum(s.ay - 1, 0), "down": np.minimum(s.ay + 1, height), "same": s.ay}
        for action, y in (("up", np.minimum(s.y + 1, height)), ("down", np.maximum(s.y - 1, 0))):
            yield (
                action,
                flying,
                [
                    (tabulate(probability, s.x), Aircraft(x, y if outcome is success else s.y, ax, ay[name]))
                    for (name, outcome), probability in joint.items()
                ],
            )
        stay = [(tabulate(alone[name], s.x), Aircraft(x, s.y, ax, ay[name])) for name in moves]
        yield "stay", flying, stay
        for action in ("up", "down", "stay"):
            yield action, ~flying, [(1, s)]

    return explore_batch(
        step,
        Aircraft(0, 1, length, 1),
        space=ParameterSpace.simplex("t1", "t2", "t3"),
        labels={
            "collision": lambda s: (abs(s.x - s.ax) < 3) & (abs(s.y - s.ay) < collision_height),
            "goal": lambda s: s.x == length,
        },
    )


def _line(ends: tuple[tuple[str, str], ...]) -> Callable[[int, Fraction], Fraction]:
    rates = [(Fraction(start), Fraction(end)) for start, end in ends]
    return lambda mode, n: rates[mode][0] * (1 - n) + rates[mode][1] * n


def _complement(*rates: Callable[[int, Fraction], Fraction]) -> Callable[[int, Fraction], Fraction]:
    return lambda mode, n: 1 - sum((rate(mode, n) for rate in rates), Fraction(0))

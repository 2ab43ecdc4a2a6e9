"""Mars rover: an affine probability study with the unknown weights of five channel modes."""

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

TRUE_POINT = {"t1": "0.4", "t2": "0.2", "t3": "0.15", "t4": "0.14"}
PROPERTY = 'Pmax=? [ !"crash" U "target" ]'

_CRASH = 6  # unreported positions

# Channel L depends on x, channel H on y: success per mode at the near end and what the far end adds.
_L = ((".05", ".35"), (".0875", ".2875"), (".125", ".225"), (".1625", ".1625"), (".2", ".1"))
_H = ((".18", ".1"), (".15", ".175"), (".12", ".25"), (".09", ".325"), (".06", ".4"))
# Zone factors: rows W, C, E by x; columns S, M, N by y.
_L_ZONE = (("0.85", "0.95", "0.75"), ("1.10", "1.55", "1.00"), ("0.90", "1.20", "1.05"))
_H_ZONE = (("0.85", "1.20", "0.95"), ("0.90", "1.50", "1.10"), ("0.80", "1.25", "1.00"))
# Jammed rectangles: x from, x to, y from, y to.
_L_JAM = ((3, 6, 9, 12), (8, 12, 6, 8))
_H_JAM = ((2, 5, 3, 6), (7, 10, 2, 4))


class Rover(NamedTuple):
    """Position, positions not yet reported, whether a report was sent from here, and failed tries."""

    x: Variable
    y: Variable
    unreported: Variable
    sent: Variable
    tries: Variable


def rover(width: int, height: int, max_tries: int) -> ParametricMDP:
    """Return the model of a grid of the given size."""
    low = _channel(_L, _L_ZONE, _L_JAM, lambda x, y: Fraction(x - 1, width - 1))
    high = _channel(_H, _H_ZONE, _H_JAM, lambda x, y: Fraction(y - 1, height - 1))

    def is_home(s: Rover) -> Any:
        return (s.x == width) & (s.y == height)

    def step(s: Rover) -> Iterator[Any]:
        x, y, sent = s.x, s.y, s.sent
        moved = s._replace(unreported=np.where(sent, 0, np.minimum(s.unreported + 1, _CRASH)), sent=False)
        yield "up", x < width, [(1, moved._replace(x=x + 1))]
        yield "right", y < height, [(1, moved._replace(y=y + 1))]
        may_send = ~sent & (s.tries < max_tries) & ~is_home(s)
        for action, channel in (("sendL", low), ("sendH", high)):
            success = tabulate(channel, x, y)
            outcomes = [(success, s._replace(sent=True, tries=0)), (1 - success, s._replace(tries=s.tries + 1))]
            yield action, may_send, outcomes
        yield "done", is_home(s), [(1, s)]

    return explore_batch(
        step,
        Rover(1, 1, 0, False, 0),
        space=ParameterSpace.simplex("t1", "t2", "t3", "t4"),
        labels={"crash": lambda s: s.unreported == _CRASH, "target": is_home},
    )


def _channel(
    rates: tuple[tuple[str, str], ...],
    zones: tuple[tuple[str, ...], ...],
    jams: tuple[tuple[int, int, int, int], ...],
    position: Callable[[int, int], Fraction],
) -> Callable[[int, int], Polynomial]:
    """Return (x, y) → the probability that a report gets through."""
    weights = parameters("t1", "t2", "t3", "t4")
    modes = (*weights, 1 - sum(weights, Polynomial(0)))

    @cache
    def base(at: Fraction) -> Polynomial:
        terms = [
            weight * (Fraction(near) + Fraction(far) * at) for weight, (near, far) in zip(modes, rates, strict=True)
        ]
        return sum(terms, Polynomial(0))

    @cache
    def success(x: int, y: int) -> Polynomial:
        jammed = any(x1 <= x <= x2 and y1 <= y <= y2 for x1, x2, y1, y2 in jams)
        factor = Fraction(zones[_third(x)][_third(y)]) * (Fraction("0.6") if jammed else 1)
        return base(position(x, y)) * factor

    return success


def _third(coordinate: int) -> int:
    return 0 if coordinate <= 4 else 1 if coordinate <= 8 else 2

"""The model of a Mars rover, an affine probability study with the unknown weights of five channel modes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from plumdp.model.explore import Variable, explore_batch
from plumdp.model.expressions.arrays import PolynomialArray, tabulate
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
    low, high = _channel(_L, _L_ZONE, _L_JAM, width), _channel(_H, _H_ZONE, _H_JAM, height)

    def is_home(s: Rover) -> Any:
        return (s.x == width) & (s.y == height)

    def step(s: Rover) -> Iterator[Any]:
        x, y, sent = s.x, s.y, s.sent
        moved = s._replace(unreported=np.where(sent, 0, np.minimum(s.unreported + 1, _CRASH)), sent=False)
        yield "up", x < width, [(1, moved._replace(x=x + 1))]
        yield "right", y < height, [(1, moved._replace(y=y + 1))]
        may_send = ~sent & (s.tries < max_tries) & ~is_home(s)
        received, lost = s._replace(sent=True, tries=0), s._replace(tries=s.tries + 1)
        for action, success in (("sendL", low(x, x, y)), ("sendH", high(y, x, y))):
            yield action, may_send, [(success, received), (1 - success, lost)]
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
    length: int,
) -> Callable[[Any, Any, Any], PolynomialArray]:
    """Return (coordinate that the channel depends on, x, y) → the probability that a report gets through."""
    weights = parameters("t1", "t2", "t3", "t4")
    modes = (*weights, 1 - sum(weights, Polynomial(0)))

    @cache
    def base(coordinate: int) -> Polynomial:
        at = Fraction(coordinate - 1, length - 1)
        terms = [
            weight * (Fraction(near) + Fraction(far) * at) for weight, (near, far) in zip(modes, rates, strict=True)
        ]
        return sum(terms, Polynomial(0))

    @cache
    def factor(column: int, row: int, is_jammed: bool) -> Polynomial:
        return Polynomial(Fraction(zones[column][row]) * (Fraction("0.6") if is_jammed else 1))

    def success(coordinate: Any, x: Any, y: Any) -> PolynomialArray:
        is_jammed = np.zeros(len(x), dtype=np.bool_)
        for x1, x2, y1, y2 in jams:
            is_jammed |= (x1 <= x) & (x <= x2) & (y1 <= y) & (y <= y2)
        return tabulate(base, coordinate) * tabulate(factor, _third(x), _third(y), is_jammed)

    return success


def _third(coordinate: Any) -> Any:
    return (coordinate > 4).astype(np.int32) + (coordinate > 8)

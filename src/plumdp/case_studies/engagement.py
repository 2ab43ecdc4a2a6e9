"""The model of customer engagement, an affine reward study with the unknown shares of five customer types."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from plumdp.model.explore import explore
from plumdp.model.expressions.polynomial import Polynomial, parameters
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import ParameterSpace

TRUE_POINT = {"t1": "0.3", "t2": "0.2", "t3": "0.1", "t4": "0.25"}
PROPERTY = 'R{"cost"}min=? [ F "target" ]'

_LOW, _MEDIUM, _AGGRESSIVE = 1, 2, 3
_NAMES = {_LOW: "low", _MEDIUM: "medium", _AGGRESSIVE: "aggressive"}
_PRICE = {_LOW: 0.05, _MEDIUM: 0.10, _AGGRESSIVE: 0.30}

# Per action: response by customer type; then factor and shift by zone (cold, warm, hot).
_UP = {_LOW: ".10 .06 .04 .03 .02", _MEDIUM: ".18 .12 .08 .06 .04", _AGGRESSIVE: ".28 .20 .12 .08 .05"}
_DOWN = {_LOW: ".02 .01 .02 .015 .03", _MEDIUM: ".06 .03 .08 .10 .12", _AGGRESSIVE: ".20 .10 .25 .30 .35"}
_UP_FACTOR = {_LOW: "1.15 1.00 .85", _MEDIUM: "1.05 1.15 1.00", _AGGRESSIVE: "1.00 1.05 1.10"}
_DOWN_FACTOR = {_LOW: ".90 1.00 1.05", _MEDIUM: ".95 .95 1.00", _AGGRESSIVE: "1.10 1.05 .95"}
_UP_SHIFT = {_LOW: ".02 0 -.02", _MEDIUM: ".01 .02 0", _AGGRESSIVE: "0 .01 .01"}
_DOWN_SHIFT = {_LOW: "0 0 0", _MEDIUM: "0 0 0", _AGGRESSIVE: ".02 .01 -.01"}


class Engagement(NamedTuple):
    """Level, last action (0 none), rounds since an aggressive one, phase (0 choose, 1 resolve), chosen action."""

    e: int
    last: int
    cooldown: int
    phase: int
    action: int


def engagement(levels: int) -> ParametricMDP:
    """Return the model of a customer who converts at the given level and churns at level 0."""
    weights = parameters("t1", "t2", "t3", "t4")
    types = (*weights, 1 - sum(weights, Polynomial(0)))

    def is_over(s: Engagement) -> bool:
        return s.phase == 0 and s.e in (0, levels)

    def zone(e: int) -> int:
        return 0 if e <= 3 else 1 if e < levels - 2 else 2

    @cache
    def change(action: int, worn: bool, recent: bool, where: int) -> tuple[Polynomial, Polynomial]:
        wear = Fraction("0.8" if action == _AGGRESSIVE else "0.9") if worn else Fraction(1)
        wear *= Fraction("0.7") if action == _AGGRESSIVE and recent else 1
        return (
            wear * _pick(_UP_FACTOR, action, where) * _response(types, _UP[action]) + _pick(_UP_SHIFT, action, where),
            wear * _pick(_DOWN_FACTOR, action, where) * _response(types, _DOWN[action])
            + _pick(_DOWN_SHIFT, action, where),
        )

    def step(s: Engagement) -> dict[str, list[tuple[Any, Engagement]]]:
        if is_over(s):
            return {"done": [(1, s)]}
        if s.phase == 0:
            return {name: [(1, s._replace(phase=1, action=action))] for action, name in _NAMES.items()}
        up, down = change(s.action, s.action == s.last, s.cooldown < 2, zone(s.e))
        cooldown = 0 if s.action == _AGGRESSIVE else min(s.cooldown + 1, 2)
        after = Engagement(s.e, s.action, cooldown, 0, 0)
        outcomes = [(up, after._replace(e=s.e + 1)), (down, after._replace(e=s.e - 1)), (1 - up - down, after)]
        return {"resolve": outcomes}

    return explore(
        step,
        Engagement(2, 0, 2, 0, 0),
        space=ParameterSpace.simplex("t1", "t2", "t3", "t4"),
        labels={"target": is_over},
        rewards={"cost": lambda s: 0.0 if is_over(s) else _PRICE.get(s.action, 1.0)},
    )


def _pick(table: Mapping[int, str], action: int, where: int) -> Fraction:
    return Fraction(table[action].split()[where])


def _response(types: tuple[Polynomial, ...], rates: str) -> Polynomial:
    return sum((weight * Fraction(rate) for weight, rate in zip(types, rates.split(), strict=True)), Polynomial(0))

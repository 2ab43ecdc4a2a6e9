"""The model of a betting game, an affine reward study with one unknown coin."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from plumdp.model.explore import Variable, explore_batch
from plumdp.model.expressions.arrays import tabulate
from plumdp.model.expressions.polynomial import Polynomial, parameters
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import ParameterSpace

TRUE_POINT = {"p": "0.55"}
PROPERTY = 'R{"money"}max=? [ F "end" ]'

_PER_COIN = {1: Fraction(0), 2: Fraction("0.0002"), 5: Fraction("0.0003"), 10: Fraction("0.0004")}


class Betting(NamedTuple):
    """The money at hand and the rounds played."""

    money: Variable
    step: Variable


def betting(rounds: int) -> ParametricMDP:
    """Return the model of a game of the given number of rounds."""
    (p,) = parameters("p")
    odds = {1: p, 2: p, 5: p, 10: p / 2}

    @cache  # the same money comes back in every round
    def win(bet: int, money: int) -> Polynomial:
        return odds[bet] + _PER_COIN[bet] * money

    def step(s: Betting) -> Iterator[Any]:
        later, money = s.step + 1, s.money
        playing = s.step < rounds
        yield "bet0", playing, [(1, s._replace(step=later))]
        for bet in (1, 2, 5, 10):
            chance = tabulate(partial(win, bet), money)
            outcomes = [(chance, Betting(money + bet, later)), (1 - chance, Betting(money - bet, later))]
            yield f"bet{bet}", playing & (money <= 10 * rounds) & (money >= bet), outcomes
        yield "end", s.step == rounds, [(1, s._replace(step=later))]
        yield "done", s.step > rounds, [(1, s)]

    return explore_batch(
        step,
        Betting(10, 0),
        space=ParameterSpace.unit("p"),
        labels={"end": lambda s: s.step == rounds + 1},
        rewards={"money": lambda s: np.where(s.step == rounds, s.money, 0.0)},
    )

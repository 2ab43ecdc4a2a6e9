"""The model of parallel betting, a bilinear reward study with two unknown coins."""

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

TRUE_POINT = {"p1": "0.55", "p2": "0.53"}
PROPERTY = 'R{"money"}max=? [ F "end" ]'

_P1, _P2 = parameters("p1", "p2")
_BETS = (1, 2, 5, 10)
_OUTCOMES = ((True, True), (True, False), (False, True), (False, False))  # who wins: game 1, game 2
_PER_COIN = {
    1: "0",
    2: "0.0002",
    5: "0.0003",
    10: "0.0004",
}  # how much a coin in the purse improves the odds, variant small
_BONUS = {1: "0", 2: "0.1", 5: "0.05", 10: "0.3"}  # game 1, variant const


class Parallel(NamedTuple):
    """The two purses and the rounds played."""

    m: Variable
    q: Variable
    step: Variable


def parallel(rounds: int, small: bool) -> ParametricMDP:
    """Return the model of the given number of rounds, with constant odds in game 1 or small odds in both."""

    @cache  # a purse comes back in every round
    def first_chance(bet: int, purse: int) -> Polynomial:
        return _first(bet, purse, small)

    @cache
    def second_chance(bet: int, purse: int) -> Polynomial:
        return _second(bet, purse, small)

    def step(s: Parallel) -> Iterator[Any]:
        m, q, later = s.m, s.q, s.step + 1
        playing = s.step < rounds
        yield "bet0", playing, [(1, s._replace(step=later))]
        for bet in _BETS:
            first, second = tabulate(partial(first_chance, bet), m), tabulate(partial(second_chance, bet), q)
            chance = {True: (first, second), False: (1 - first, 1 - second)}
            outcomes = [
                (chance[wins[0]][0] * chance[wins[1]][1], Parallel(*_pay(m, q, bet, wins), later)) for wins in _OUTCOMES
            ]
            possible = playing & (np.maximum(m, q) <= 10 * rounds) & (np.minimum(m, q) >= bet)
            yield f"bet{bet}", possible, outcomes
        yield "end", s.step == rounds, [(1, s._replace(step=later))]
        yield "done", s.step > rounds, [(1, s)]

    return explore_batch(
        step,
        Parallel(10, 10, 0),
        space=space(rounds, small),
        labels={"end": lambda s: s.step == rounds + 1},
        rewards={"money": lambda s: np.where(s.step == rounds, s.m + s.q, 0.0)},
    )


def space(rounds: int, small: bool) -> ParameterSpace:
    """Return the coins for which every chance of winning is a probability, up to the fullest purse that may bet."""
    full = 10 * rounds
    chances = [game(bet, full, small) for game in (_first, _second) for bet in _BETS]
    return ParameterSpace.box({"p1": (0, 1), "p2": (0, 1)}, constraints=[1 - chance for chance in chances])


def _pay(m: Any, q: Any, bet: int, wins: tuple[bool, bool]) -> tuple[Any, Any]:
    return (m + bet if wins[0] else m - bet), (q + bet if wins[1] else q - bet)


def _first(bet: int, purse: int, small: bool) -> Polynomial:
    bonus = Fraction(_PER_COIN[bet]) * purse if small else Fraction(_BONUS[bet])
    return (_P1 / 2 if bet == 10 else _P1) + bonus


def _second(bet: int, purse: int, small: bool) -> Polynomial:
    return (_P2 / 2 if bet == 10 else _P2) + Fraction(_PER_COIN[bet]) * purse * (1 if small else 10)

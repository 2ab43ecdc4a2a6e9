"""Rewards whose means are expressions in unknown parameters, as coins whose probabilities data tell.

A reward between two numbers low and high, with the mean low + span f(v) at the parameters v, is worth as much as a coin
that pays ``span`` with the probability f(v). So f and 1 - f are expressions of the model, like those of rows: a region
bounds them, nature picks them, and values are expanded in them. The range of a reward is that of its expression over
the box of the declared space, and every value in a log must lie within it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.base.rounding import UNIT
from plumdp.model.expressions.polynomial import Number, Polynomial, polynomial
from plumdp.model.graph import FloatArray, Indices, IntArray, read_only
from plumdp.model.space import ParameterSpace
from plumdp.model.text import number_of, one_line

_RESOLUTION = 2**30  # whole numbers that values up to the largest are read as, so that sums of them are exact


@dataclass(frozen=True, eq=False)
class LearnedRewards:
    """The rewards of choices that are unknown, each above its lowest value, which is a known reward.

    Values are read in units of 1 / ``per_unit``, of which both ends of every range are multiples.
    """

    coin: IntArray  # (n_choices): which coin stands for the reward, -1 if that is known
    expression: IntArray  # (n_coins, 2): numbers of f and 1 - f among the expressions of the model
    low: tuple[Fraction, ...]  # (n_coins)
    span: tuple[Fraction, ...]  # (n_coins)
    per_unit: int

    def __repr__(self) -> str:
        return one_line(self, number_of(len(self.low), "mean"), number_of(int((self.coin >= 0).sum()), "choice"))

    def of_choices(self, coin: Indices) -> LearnedRewards:
        """Return the rewards of a model with other choices, given the coin of each of them."""
        return replace(self, coin=read_only(np.asarray(coin, dtype=np.int32)))

    @property
    def spans(self) -> FloatArray:
        """The span of each coin (n_coins), to the nearest float."""
        return np.array([float(span) for span in self.span])

    @property
    def units(self) -> tuple[Indices, Indices]:
        """The lowest value and the span of each coin (n_coins), in units."""
        low, span = ([int(each * self.per_unit) for each in ends] for ends in (self.low, self.span))
        return np.array(low, dtype=np.int64), np.array(span, dtype=np.int64)

    def added_to(self, reward: FloatArray, probability: FloatArray, side: float) -> FloatArray:
        """Return rewards (n_choices) plus what coins with these probabilities of expressions pay, rounded to a side.

        Lowest values, spans, products and sums are rounded once each.
        """
        is_coin = self.coin >= 0
        coin = self.coin[is_coin]
        paid = self.spans[coin] * probability[self.expression[coin, 0]]
        total = reward.copy()
        total[is_coin] += paid + side * 8 * UNIT * (np.abs(reward[is_coin]) + self.spans[coin])
        return total


def learned_rewards(
    name: str, means: Iterable[Polynomial | Number], space: ParameterSpace, expressions: dict[Polynomial, int]
) -> tuple[FloatArray, LearnedRewards | None]:
    """Return the known rewards of choices, given all means, and the unknown ones above their lowest values, if any.

    New expressions get numbers after the others.
    """
    every = [polynomial(mean) for mean in means]
    ranges = {mean: _range(name, mean, space) for mean in dict.fromkeys(every) if not mean.is_constant}
    ends = {mean: (low, high - low) for mean, (low, high) in ranges.items() if low < high}
    known = np.array([float(ranges[mean][0] if mean in ranges else mean.constant) for mean in every])
    if not ends:
        return read_only(known), None
    numbers = []
    for mean, (low, span) in ends.items():
        scaled = (mean - low) / span
        numbers.append([expressions.setdefault(each, len(expressions)) for each in (scaled, scaled.complement)])
    coins = {mean: i for i, mean in enumerate(ends)}
    return read_only(known), LearnedRewards(
        read_only(np.array([coins.get(mean, -1) for mean in every], dtype=np.int32)),
        read_only(np.array(numbers, dtype=np.int32)),
        tuple(low for low, _ in ends.values()),
        tuple(span for _, span in ends.values()),
        _per_unit(name, [end for pair in ranges.values() for end in pair]),
    )


def _range(name: str, mean: Polynomial, space: ParameterSpace) -> tuple[Fraction, Fraction]:
    """Return the smallest and the largest value of an affine expression in the box of a space, exactly."""
    if not mean.is_affine:
        raise ModelError(f"rewards {name!r}: {mean} has products of parameters; give sums of parameters and numbers")
    unknown = [each for each in mean.names if each not in space.names]
    if unknown:
        raise ModelError(f"rewards {name!r}: {', '.join(unknown)} is not declared in the parameter space")
    constant, slopes = mean.affine_terms()
    bounds = dict(zip(space.names, space.bounds, strict=True))
    ends = [sorted(slope * end for end in bounds[each]) for each, slope in slopes.items()]
    return constant + sum(low for low, _ in ends), constant + sum(high for _, high in ends)


def _per_unit(name: str, ends: Sequence[Fraction]) -> int:
    """Return a number of which all ends of ranges are parts, as large as sums of many values allow for."""
    per_unit, largest = lcm(*(end.denominator for end in ends)), max(map(abs, ends))
    if per_unit * largest > _RESOLUTION:
        raise ModelError(f"rewards {name!r}: the ends of its ranges have too many digits; round the space's bounds")
    while 2 * per_unit * largest <= _RESOLUTION:
        per_unit *= 2
    return per_unit

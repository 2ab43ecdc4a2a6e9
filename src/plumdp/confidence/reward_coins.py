"""Counts the values of learned rewards as throws of coins, in fractions.

A value x in [0, 1] counts x times for one side of a coin and 1 - x times for the other. Whatever its law, the factor of
a likelihood ratio or of a bet is then convex in x, so that its expectation is at most that of a coin with the same mean
(see the page "Certificates at the statistical limit").
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plumdp.data.counts import CountArray
from plumdp.model.graph import FloatArray, Indices, IntArray


class RewardCoins(NamedTuple):
    """The coins that stand for learned rewards, and the outcomes of a table that they show."""

    of_transition: IntArray  # (n_transitions): the coin that is thrown with a step, -1 if there is none
    low: Indices  # (n_coins): the lowest value, in units
    span: Indices  # (n_coins): in units
    outcome: Indices  # (n_coins, 2): of the table, for the highest value and for the lowest

    def shown(self, counts: CountArray | FloatArray, sums: CountArray | FloatArray) -> FloatArray:
        """Return how often coins show either side (n_coins, 2), in fractions, given steps and sums of their values.

        A value x in [0, 1] of the range counts x times for one side, and 1 - x times for the other. Sums are whole
        numbers of units, so that only quotients are rounded.
        """
        thrown = self.of_transition >= 0
        coin, n = self.of_transition[thrown], len(self.low)
        total, times = (_sums(coin, values[thrown], n) for values in (sums, counts))
        above = total - times * self.low
        sides = np.column_stack([above, times * self.span - above])
        return np.asarray(sides / self.span[:, None], dtype=np.float64)


def _sums(index: Indices, values: CountArray | FloatArray, size: int) -> CountArray | FloatArray:
    """Return the sums of values with the same index, exactly if they are whole numbers."""
    total: npt.NDArray[Any] = np.zeros(size, dtype=values.dtype)
    np.add.at(total, index, values)
    return total

"""Counts the values of learned rewards as throws of coins, in fractions, and how much less they vary than coins.

A value x in [0, 1] counts x times for one side of a coin and 1 - x times for the other. Whatever its law, the factor of
a likelihood ratio or of a bet is then convex in x, so that its expectation is at most that of a coin with the same mean
(see docs/proofs/hidden_paths.md). Bets win more if values vary less than a coin does, of which the
variance is larger by the mean of x (1 - x).
"""

from __future__ import annotations

from math import nextafter
from typing import NamedTuple

import numpy as np

from plumdp.data.seen import SQUARES, CountArray, Seen
from plumdp.model.graph import FloatArray, Indices, IntArray, sum_by


class Pooled(NamedTuple):
    """What was seen of outcomes, and how much less than coins the values of rewards among them vary."""

    outcome_counts: FloatArray  # (n_outcomes)
    mixed: FloatArray  # (n_groups): lower bounds on Σ x (1 - x) over values x; zero where there are none but 0 and 1


class RewardCoins(NamedTuple):
    """The coins that stand for learned rewards, and the outcomes of a table that they show."""

    of_transition: IntArray  # (n_transitions): the coin that is thrown with a step, -1 if there is none
    low: Indices  # (n_coins): the lowest value, in units
    span: Indices  # (n_coins): in units
    outcome: Indices  # (n_coins, 2): of the table, for the highest value and for the lowest

    def thrown(self, transitions: FloatArray) -> FloatArray:
        """Return the throws of each coin (n_coins), given counts of transitions, whole or not."""
        is_thrown = self.of_transition >= 0
        return np.bincount(self.of_transition[is_thrown], transitions[is_thrown], len(self.low)).astype(np.float64)

    def sums(self, seen: Seen, number: int) -> tuple[CountArray, ...]:
        """Return the throws of each coin, the sum of its values in units, and both parts of the sum of squares.

        ``number`` is that of the learned rewards in what was seen, and all sums (n_coins) are exact.
        """
        thrown = self.of_transition >= 0
        coin, n = self.of_transition[thrown], len(self.low)
        return tuple(sum_by(coin, v[thrown], n) for v in (seen.counts, *seen.rewards[number]))

    def shown(self, seen: Seen, number: int) -> Pooled:
        """Return the count of either side of each coin (n_coins, 2), in fractions, and how mixed they are (n_coins).

        ``number`` is that of the learned rewards in what was seen. Sums are whole numbers of units, so that only
        quotients are rounded; the one that must be a lower bound is rounded down.
        """
        times, total, first, second = self.sums(seen, number)
        above = total - times * self.low
        sides = np.column_stack([above, times * self.span - above])
        rows = zip(*(each.tolist() for each in (times, total, first, second, self.low, self.span)), strict=True)
        mixed = [
            ((2 * low + span) * s - (SQUARES * one + two) - low * (low + span) * k) / span**2  # Σ (y - low) (high - y)
            for k, s, one, two, low, span in rows
        ]
        return Pooled(
            np.asarray(sides / self.span[:, None], dtype=np.float64),
            np.array([max(nextafter(each, 0.0), 0.0) for each in mixed]),
        )

"""Estimates what steps that are still to be taken will show of learned rewards, by the values that were seen so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from plumdp.confidence.bets import sharpness_of
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.confidence.reward_coins import RewardCoins
from plumdp.data.seen import SQUARES, CountArray, Seen
from plumdp.learning.learned import Learned
from plumdp.model.graph import FloatArray


class ExpectedRewards(NamedTuple):
    """What a step shows of the means of rewards, as coins whose values vary less than those of coins."""

    table: LikelihoodTable
    probability: FloatArray  # (n_outcomes): at the estimate
    sharpness: FloatArray  # (n_groups): by which the variance of values is smaller than that of coins
    coins: Sequence[RewardCoins]  # of rewards that data have values of
    means: Mapping[int, str]  # of rewards whose values groups have, in words

    @staticmethod
    def of(learned: Learned, table: LikelihoodTable) -> ExpectedRewards:
        """Return what is expected by what was learned."""
        probability = table.values(learned.likely_point)[0].clip(0, 1)
        pooled = table.pool_seen(learned.counts.seen)
        coins = table.coins[: len(learned.counts.rewards)]
        return ExpectedRewards(table, probability, sharpness_of(table, *pooled), coins, _means(learned, table))

    def visits(self, transitions: FloatArray) -> FloatArray:
        """Return how often each group (n_groups) is visited, given counts of transitions, with coins."""
        return self.table.visits(self._pool(transitions))

    def pool(self, transitions: FloatArray) -> FloatArray:
        """Return counts of outcomes (n_outcomes), with coins, that weigh values by how little they vary."""
        return np.asarray(self._pool(transitions) * self.sharpness[self.table.group])

    def _pool(self, transitions: FloatArray) -> FloatArray:
        pooled = self.table.pool(transitions)
        for coins in self.coins:
            np.add.at(pooled, coins.outcome, coins.thrown(transitions)[:, None] * self.probability[coins.outcome])
        return pooled

    def rates(self, of_groups: FloatArray) -> FloatArray:
        """Return the sum of rates of groups (n_groups) over the coins that are thrown with each transition."""
        total = np.zeros(len(self.table.tied))
        for coins in self.coins:
            of_coin = of_groups[self.table.group[coins.outcome[:, 0]]]
            total += np.where(coins.of_transition >= 0, of_coin[coins.of_transition], 0.0)
        return total

    def seen(self, counts: CountArray) -> Seen:
        """Return what steps show if values have the means and variances that are expected, up to rounding."""
        sums = [self._sums(coins, counts) for coins in self.coins]
        return Seen(counts, np.array(sums, dtype=np.int64).reshape(len(sums), 3, len(counts)))

    def _sums(self, coins: RewardCoins, counts: CountArray) -> CountArray:
        is_thrown, mean = coins.of_transition >= 0, self.probability[coins.outcome[:, 0]]
        variance = mean * (1 - mean) / self.sharpness[self.table.group[coins.outcome[:, 0]]]
        value = coins.low + coins.span * mean
        square = value**2 + coins.span.astype(np.float64) ** 2 * variance
        first, second = (np.where(is_thrown, each[coins.of_transition], 0.0) for each in (value, square / SQUARES))
        return np.array([np.rint(counts * first), np.rint(counts * second), 0 * counts], dtype=np.int64)


def _means(learned: Learned, table: LikelihoodTable) -> dict[int, str]:
    """Return the means of learned rewards whose values each group has, in words."""
    means: dict[int, list[str]] = {}
    model, rewards = learned.model.counted, learned.model.counted.learned_rewards
    for (name, each), coins in zip(rewards.items(), table.coins[: len(learned.counts.rewards)], strict=False):
        ends = zip(each.low, each.span, each.expression[:, 0].tolist(), strict=True)
        for group, (low, span, f) in zip(table.group[coins.outcome[:, 0]].tolist(), ends, strict=True):
            means.setdefault(group, []).append(f"{name} = {low + span * model.expressions.polynomials[f]}")
    return {group: " and ".join(texts) for group, texts in means.items()}

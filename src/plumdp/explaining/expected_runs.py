"""Estimates expected visits of choices in runs of a model at a point, and the number and length of runs from counts.

Counts do not say how many runs they come from, nor where these end. But a run that leaves a state has entered it, or
begun there. So as many runs began in the initial state as left it without having entered it, and a run has ended
wherever more entered than left. All numbers here are estimates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from plumdp.base.sparse import sparse
from plumdp.confidence.bets import sharpness_of
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.confidence.reward_coins import RewardCoins
from plumdp.data.counts import CountArray, TransitionCounts
from plumdp.data.seen import SQUARES, Seen
from plumdp.learning.learned import Learned
from plumdp.model.graph import BoolArray, FloatArray, Graph, Indices, IntArray, read_only, sum_by
from plumdp.model.policy import normalised

_LONGEST = 100_000  # steps of a run, if neither data nor user bound them
_ALL = 1 - 1e-6  # share of the steps of a run that are enough to know how long it is
_OFTEN = 10  # arrivals in a state that none left, by which runs end there rather than being cut off by chance
_MOSTLY = 0.99  # share of the runs in the initial state at which nothing shows how many began
_NOTHING = 1e-12  # share of the runs that is rounding


@dataclass(frozen=True, eq=False)
class RunLaw:
    """The law of runs of a model at a point, from the initial state to an end state or a number of steps."""

    graph: Graph
    probability: FloatArray  # (n_transitions)
    is_end: BoolArray  # (n_states)
    max_steps: int

    def visits(self, weights: FloatArray) -> FloatArray:
        """Return the mean number of times that a run takes each choice (n_choices), given a probability for each."""
        visits = np.zeros(self.graph.n_states)
        for mass in self.masses(weights):
            visits += mass
        return visits[self.graph.state_of_choice()] * weights

    def masses(self, weights: FloatArray) -> Iterator[FloatArray]:
        """Yield for each step the share of the runs that take it from each state (n_states)."""
        step = self._rows(self.probability * weights[self.graph.choice_of_transition()], by_state=True).T
        mass = (np.arange(self.graph.n_states) == self.graph.initial_state).astype(np.float64)
        for _ in range(self.max_steps):
            mass = np.where(self.is_end, 0.0, mass)
            if mass.sum() < _NOTHING:
                return
            yield mass
            mass = step @ mass

    def best_visits(self, reward: FloatArray) -> FloatArray:
        """Return the mean number of times that runs with the largest expected reward take each choice (n_choices).

        The reward of each choice (n_choices) is paid whenever it is taken. The best choice may depend on how many steps
        are left.
        """
        rows = self._rows(self.probability, by_state=False)
        plan = self._best_plan(reward, rows)
        visits, back = np.zeros(self.graph.n_choices), rows.T
        mass = (np.arange(self.graph.n_states) == self.graph.initial_state).astype(np.float64)
        for place in reversed(plan):
            taken = np.zeros(self.graph.n_choices)
            taken[self.graph.first_choice[:-1] + place] = np.where(self.is_end, 0.0, mass)
            visits += taken
            mass = back @ taken
        return visits

    def _best_plan(self, reward: FloatArray, rows: Any) -> list[Indices]:
        """Return the place of the best choice in each state (n_states), for one step left, for two, and so on."""
        graph, owner = self.graph, self.graph.state_of_choice()
        first, value, plan = graph.first_choice[:-1], np.zeros(graph.n_states), []
        small = np.min_scalar_type(int(np.diff(graph.first_choice).max()))  # saves memory with many steps
        for _ in range(self.max_steps):
            paid = reward + rows @ value
            best = np.maximum.reduceat(paid, first)
            choice = np.flatnonzero(paid >= best[owner])[::-1]  # of several the first, which is written last
            place = np.zeros(graph.n_states, dtype=small)
            place[owner[choice]] = choice - first[owner[choice]]
            plan.append(place)
            value = np.where(self.is_end, 0.0, best)
        return plan

    def _rows(self, values: FloatArray, *, by_state: bool) -> Any:
        """Return a sparse matrix from choices, or from states, to successors, with a number for each transition."""
        graph = self.graph
        first = graph.first_transition[graph.first_choice] if by_state else graph.first_transition
        return sparse(values, graph.successor, first, graph.n_states)


class SeenRuns(NamedTuple):
    """Estimates of the number of runs that counts come from, and of the steps after which these were cut off."""

    n_runs: int
    max_steps: int


def law_of(counts: TransitionCounts, probability: FloatArray) -> RunLaw:
    """Return the law of runs, given the probability of each transition (n_transitions), that end as the data do.

    Runs end in states that the data entered often and never left.
    """
    is_end = (_entered(counts) >= _OFTEN) & (_left(counts) == 0)
    return RunLaw(counts.graph, read_only(probability), read_only(is_end), _LONGEST)


def seen_runs(law: RunLaw, counts: TransitionCounts) -> SeenRuns | None:
    """Return the number and the length of the runs from the initial state in counts, or None if they are not runs.

    The counts show the m runs that began in the initial state and did not end there. If runs are cut off after T steps,
    the law says which share q(T) ends there, and how many steps L(T) a run has. T is the least number with which
    m / (1 - q(T)) runs have as many steps as there are. The number of runs is exact if they cannot return to the
    initial state, and follows from their length otherwise.

    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 1000, rng=1, max_steps=20)
    >>> seen_runs(law_of(counts, study.model.probabilities(study.true_point)[study.model.expression]), counts)
    SeenRuns(n_runs=1000, max_steps=20)
    """
    start = counts.graph.initial_state
    begun = _left(counts) - _entered(counts)
    shown = int(begun[start])
    begun[start] = 0
    if shown <= 0 or (begun > 0).any():
        return None
    weights = normalised(counts.graph, counts.visits.astype(np.float64))
    steps, total = 0, 0.0
    for mass in law.masses(weights):
        n_runs = shown / (1 - mass[start]) if mass[start] < _MOSTLY else shown
        if steps and total * n_runs >= _ALL * counts.total:
            return SeenRuns(shown if mass[start] < _NOTHING else max(shown, round(counts.total / total)), steps)
        total += float(mass.sum())
        steps += 1
    return SeenRuns(shown, steps)


def _left(counts: TransitionCounts) -> CountArray:
    """Return the number of departures from each state (n_states)."""
    sums = np.concatenate([[0], np.cumsum(counts.visits)])
    return np.asarray(np.diff(sums[counts.graph.first_choice]))


def _entered(counts: TransitionCounts) -> CountArray:
    """Return the number of arrivals in each state (n_states)."""
    return sum_by(counts.graph.successor, counts.counts, counts.graph.n_states)


def whole_counts(expected: FloatArray, group: Indices | IntArray) -> CountArray:
    """Return whole numbers (n_transitions) whose sums over each group differ from expected counts by at most one.

    Rounded one by one, rare transitions would all become zero, however many there are.

    >>> whole_counts(np.array([0.4, 0.4, 2.2, 0.4]), np.array([0, 0, 1, 0])).tolist()
    [0, 1, 2, 0]
    """
    order = np.argsort(group, kind="stable")
    sorted_group = np.asarray(group)[order]
    sums = np.cumsum(expected[order])
    starts = np.flatnonzero(np.diff(sorted_group, prepend=sorted_group[:1] - 1))
    before = np.concatenate([[0.0], sums])[starts]
    within_group = sums - np.repeat(before, np.diff(np.append(starts, len(order))))
    rounded = np.rint(within_group).astype(np.int64)
    last = np.concatenate([[0], rounded[:-1]])
    last[starts] = 0
    counts = np.zeros(len(order), dtype=np.int64)
    counts[order] = np.maximum(rounded - last, 0)
    return counts


class ExpectedRewards(NamedTuple):
    """The information of a step about mean rewards, which vary less than coins with the same means."""

    table: LikelihoodTable
    probability: FloatArray  # (n_outcomes): at the estimate
    sharpness: FloatArray  # (n_groups): by which the variance of values is smaller than that of coins
    coins: Sequence[RewardCoins]  # of rewards that data have values of
    means: Mapping[int, str]  # of rewards whose values groups have, in words

    @staticmethod
    def of(learned: Learned, table: LikelihoodTable) -> ExpectedRewards:
        """Return the expected rewards at the most likely point."""
        probability = table.chances(table.lifted(learned.likely_point)).clip(0, 1)
        pooled = table.pool_seen(learned.counts.seen)
        coins = table.coins[: len(learned.counts.rewards)]
        return ExpectedRewards(table, probability, sharpness_of(table, *pooled), coins, _means(learned, table))

    def visits(self, transitions: FloatArray) -> FloatArray:
        """Return the number of visits to each group (n_groups), given counts of transitions, with coins."""
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
        """Return counts with sums of rewards that have the expected means and variances, up to rounding."""
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

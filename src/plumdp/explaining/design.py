"""Estimates how much a visit of each choice says about a value, and plans the policy whose runs say most about it.

The data have the information I about the parameters (the negative second derivative of the log-likelihood), and the
value has the gradient g. Its certified range is about as wide as sqrt(g·I⁻¹g), times a factor that does not depend on
what is sampled. A visit of choice c adds I(c) = Σ b[j] b[j]ᵀ / f[j] over its outcomes, so that the width falls by the
share g·I⁻¹ I(c) I⁻¹g / (2 g·I⁻¹g) of itself. Runs with a budget are planned by minimising g·(I + N Σ x(c) I(c))⁻¹g over
the expected visits x of policies: a convex problem (c-optimal design, Elfving 1952), solved by the method of Frank and
Wolfe (1956), each step of which is an MDP with these shares as rewards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from plumdp.base.linear_algebra import solve_nearly
from plumdp.confidence.estimates import information
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.explaining.expected_runs import ExpectedRewards, RunLaw
from plumdp.model.graph import FloatArray, Graph, owners, read_only
from plumdp.model.policy import normalised
from plumdp.result.advice import ClassAdvice

_ROUNDS = 30
ENOUGH = 0.02  # share of the variance that more rounds might gain, twice that of the width
_LEAST = 1e-12  # probability of an outcome that counts
UNIFORM_SHARE = 0.02  # of an advised policy, in case the estimate is wrong


class Informed(Protocol):
    """A value that data should narrow, given their information in whatever form."""

    def of_visits(self, visits: FloatArray) -> FloatArray:
        """Return the information of expected visits of choices (n_choices)."""

    def variance(self, information: FloatArray) -> float:
        """Return about the square of the width, up to a factor."""

    def rates(self, information: FloatArray) -> FloatArray:
        """Return the share of itself by which the width falls with one more visit of each choice (n_choices)."""


class Design(Informed, Protocol):
    """The same with all that advice on it needs."""

    @property
    def probability(self) -> FloatArray:
        """The probability of each transition (n_transitions), as far as is known."""

    def information(self, transitions: FloatArray) -> FloatArray:
        """Return the information of expected counts of transitions (n_transitions)."""

    def expected(self, visits: FloatArray) -> FloatArray:
        """Return the expected count of each transition (n_transitions), given visits of choices (n_choices)."""

    def classes(self, seen: FloatArray, per_run: FloatArray) -> tuple[ClassAdvice, ...]:
        """Return the worth of a visit to each class, best first, given counts so far and those of a new run."""

    def directly(self, seen: FloatArray, share: float) -> FloatArray:
        """Return visits of choices (n_choices) that make the width so small a share of itself, if that can be said."""


@dataclass(frozen=True, eq=False)
class ValueQuestion:
    """The value that data should narrow, by its gradient at a point within the span of the likelihood."""

    graph: Graph
    table: LikelihoodTable
    point: FloatArray  # (d): the estimate, in the parameters of the table
    probability: FloatArray  # (n_transitions), there
    gradient: FloatArray  # (d)
    prior: FloatArray  # (d, d): precision of the uniform law on the space, so that nothing is singular
    rewards: ExpectedRewards

    def information(self, transitions: FloatArray) -> FloatArray:
        """Return the information (d, d) of expected counts of transitions, without that of the space."""
        return information(self.table, self._positive(self.rewards.pool(transitions)), self.point)

    def of_visits(self, visits: FloatArray) -> FloatArray:
        """Return the information (d, d) of expected visits of choices (n_choices)."""
        return self.information(self.expected(visits))

    def expected(self, visits: FloatArray) -> FloatArray:
        """Return the expected count of each transition (n_transitions), given visits of choices (n_choices)."""
        return np.asarray(self.probability * visits[self.graph.choice_of_transition()])

    def variance(self, information: FloatArray) -> float:
        """Return g·(I + prior)⁻¹g, which is about the square of the width up to a factor."""
        return float(self._solve(information)[1])

    def rates(self, information: FloatArray) -> FloatArray:
        """Return the share of itself by which the width falls with one more visit of each choice (n_choices)."""
        table = self.table
        of_way = self._scores(information)[table.counts_for] * table.multiple
        of_tied = np.bincount(owners(table.first), of_way, len(table.first) - 1)
        of_coins = self.rewards.rates(np.nan_to_num(self.class_rates(information)))
        return self.graph.sum_by_choice(self.probability * (of_tied[table.tied] + of_coins))

    def class_rates(self, information: FloatArray) -> FloatArray:
        """Return the same share for one more visit of each class (n_groups), and NaN for groups of factors."""
        values = self.table.values(self.point)[0].clip(0, None)
        rates = np.bincount(self.table.group, values * self._scores(information), len(self.table.is_class))
        return np.where(self.table.is_class, rates * self.rewards.sharpness, np.nan)

    def classes(self, seen: FloatArray, per_run: FloatArray) -> tuple[ClassAdvice, ...]:
        """Return all classes whose visits narrow the bounds, in the order of how much those of a run do."""
        table, rates = self.table, self.class_rates(self.information(seen))
        visits, ahead = map(self.rewards.visits, (seen, per_run))
        members: list[list[str]] = [[] for _ in rates]
        for outcome, group in zip(table.outcomes, table.group.tolist(), strict=True):
            members[group].append(str(table.in_parameters(outcome)))
        order = np.argsort(-np.nan_to_num(rates * ahead), kind="stable")
        shares, means = 2 * rates * visits, self.rewards.means
        return tuple(
            ClassAdvice(
                tuple(members[r]), int(visits[r]), float(ahead[r]), float(rates[r]), float(shares[r]), means.get(r)
            )
            for r in order.tolist()
            if rates[r] > 0
        )

    def directly(self, seen: FloatArray, share: float) -> FloatArray:
        """Return zeros: rows that depend on the same parameters are not planned one by one."""
        return read_only(np.zeros(self.graph.n_choices))

    def _scores(self, information: FloatArray) -> FloatArray:
        """Return (b·I⁻¹g / f)² / (2 g·I⁻¹g) for each outcome (n)."""
        step, variance = self._solve(information)
        values = self.table.values(self.point)[0]
        slopes = self.table.coefficients @ step / np.maximum(values, _LEAST)
        return np.asarray(np.where(values > _LEAST, slopes**2, 0.0) / (2 * variance))

    def _solve(self, information: FloatArray) -> tuple[FloatArray, float]:
        basis = self.table.basis_near(self.point)
        slope = basis.T @ self.gradient
        step = solve_nearly(basis.T @ (information + self.prior) @ basis, slope)
        return basis @ step, float(slope @ step)

    def _positive(self, outcome_counts: FloatArray) -> FloatArray:
        """Return counts without those of outcomes that are impossible at the point, whose information is infinite."""
        return np.where(self.table.values(self.point)[0] > _LEAST, outcome_counts, 0.0)


def plan_sampling(
    question: Informed, law: RunLaw, information: FloatArray, runs: int, *, start: FloatArray | None = None
) -> FloatArray:
    """Return the policy (n_choices) a number of whose runs make the width smallest beside known information.

    A share of 2 % is uniform. The policy does not count steps, so that for runs that are cut off it is an approximation
    of the best one. ``start`` is a policy that may be similar. Each round bounds the gain that is left. As the variance
    is convex, that is at most its slope towards the visits that are best for the present rates.
    """
    graph = law.graph
    even = normalised(graph, np.ones(graph.n_choices))
    visits = law.visits(even if start is None else start)
    for _ in range(_ROUNDS):
        gained = runs * question.of_visits(visits)
        rates = question.rates(information + gained)
        better = law.best_visits(rates)
        if 2 * runs * float(rates @ (better - visits)) < ENOUGH:
            break
        share = _best_share(question, information, gained, runs * question.of_visits(better))
        visits = (1 - share) * visits + share * better
    weights = (1 - UNIFORM_SHARE) * normalised(graph, visits) + UNIFORM_SHARE * even
    return read_only(normalised(graph, weights))


def _best_share(question: Informed, information: FloatArray, one: FloatArray, other: FloatArray) -> float:
    """Return the share of the other information that makes the variance, which is convex, smallest."""
    from scipy.optimize import minimize_scalar

    minimum = minimize_scalar(
        lambda share: question.variance(information + (1 - share) * one + share * other),
        bounds=(0.0, 1.0),
        method="bounded",
        options={"xatol": 1e-4},
    )
    return float(minimum.x)

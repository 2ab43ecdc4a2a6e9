"""Estimates how much a visit of each choice says about a value, and plans the policy whose runs say most about it.

The data have the information I about the parameters (the negative second derivative of the log-likelihood), and the
value has the gradient g. Its certified range is about as wide as sqrt(g·I⁻¹g), times a factor that does not depend on
what is sampled. A visit of choice c adds I(c) = Σ b[j] b[j]ᵀ / f[j] over its outcomes, so that the width falls by the
share g·I⁻¹ I(c) I⁻¹g / (2 g·I⁻¹g) of itself. Runs with a budget are planned by minimising g·(I + N Σ x(c) I(c))⁻¹g over
the expected visits x of policies: a convex problem (c-optimal design, Elfving 1952), solved by the method of Frank and
Wolfe (1956), each step of which is an MDP with these shares as rewards.

Estimates how much a visit of each row of a table says about a value, to first order.

The variance of the value of a policy is about Σ v(r) / N(r) over the unknown rows r, with N(r) visits of which each
contributes the variance v(r): that of the values ahead, times the square of how often a run comes there. The width of
the bounds falls like its root once there are enough data for bets, and faster before.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TypeAlias

import numpy as np

from plumdp.base.errors import DataError, WhyNot
from plumdp.base.linear_algebra import last_that, solve_nearly
from plumdp.confidence.estimates import information
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.explaining.expected_runs import ExpectedRewards, RunLaw
from plumdp.learning.learned import Learned
from plumdp.model.graph import FloatArray, Graph, owners, read_only
from plumdp.model.parametric import RowClasses
from plumdp.model.policy import Policy, as_choices, check_policy, normalised
from plumdp.model.question import Question
from plumdp.result.advice import ClassAdvice, Prediction
from plumdp.tables.candidates import smoothed
from plumdp.tables.chain import PRIOR, pooled, regular_equations
from plumdp.tables.plan import row_variances
from plumdp.tables.values import chain_of_policy

_ROUNDS = 30
ENOUGH = 0.02  # share of the variance that more rounds might gain, twice that of the width
_LEAST = 1e-12  # probability of an outcome that counts
UNIFORM_SHARE = 0.02  # of an advised policy, in case the estimate is wrong


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
        values = self.table.chances(self.point).clip(0, None)
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
        values = self.table.chances(self.point)
        slopes = self.table.coefficients @ step / np.maximum(values, _LEAST)
        return np.asarray(np.where(values > _LEAST, slopes**2, 0.0) / (2 * variance))

    def _solve(self, information: FloatArray) -> tuple[FloatArray, float]:
        basis = self.table.basis_near(self.point)
        slope = basis.T @ self.gradient
        step = solve_nearly(basis.T @ (information + self.prior) @ basis, slope)
        return basis @ step, float(slope @ step)

    def _positive(self, outcome_counts: FloatArray) -> FloatArray:
        """Return counts without those of outcomes that are impossible at the point, whose information is infinite."""
        return np.where(self.table.chances(self.point) > _LEAST, outcome_counts, 0.0)


def plan_sampling(
    question: Design, law: RunLaw, information: FloatArray, runs: int, *, start: FloatArray | None = None
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


def _best_share(question: Design, information: FloatArray, one: FloatArray, other: FloatArray) -> float:
    """Return the share of the other information that makes the variance, which is convex, smallest."""
    low, high = 0.0, 1.0
    for _ in range(_SECTIONS):
        third = (high - low) / 3
        left, right = (
            question.variance(information + (1 - share) * one + share * other) for share in (low + third, high - third)
        )
        low, high = (low, high - third) if left < right else (low + third, high)
    return (low + high) / 2


_SECTIONS = 23  # each leaves two thirds, and all of them 1e-4
_HALVINGS = 100
MOST_RUNS = 10**12


@dataclass(frozen=True, eq=False)
class TableQuestion:
    """The value that data should narrow, by the variance that one visit of each row contributes."""

    graph: Graph
    rows: RowClasses
    probability: FloatArray  # (n_transitions): smoothed frequencies
    of_visit: FloatArray  # (n_rows): v, 0 in rows that are known or do not matter
    value: float  # at these frequencies

    def information(self, transitions: FloatArray) -> FloatArray:
        """Return the visits of each row (n_rows), given expected counts of transitions."""
        return np.asarray(self.rows.sum_by_row(self.rows.sum_by_place(transitions)))

    def of_visits(self, visits: FloatArray) -> FloatArray:
        """Return the visits of each row (n_rows), given those of choices (n_choices)."""
        return np.bincount(self.rows.number, visits, len(self.rows)).astype(np.float64)

    def expected(self, visits: FloatArray) -> FloatArray:
        """Return the expected count of each transition (n_transitions), given visits of choices (n_choices)."""
        return np.asarray(self.probability * visits[self.graph.choice_of_transition()])

    def variance(self, information: FloatArray) -> float:
        """Return the variance of the value, which is about the square of the width up to a factor."""
        return float((self.of_visit / (information + PRIOR)).sum())

    def class_rates(self, information: FloatArray) -> FloatArray:
        """Return the share of itself by which the width falls with one more visit of each row (n_rows)."""
        return np.asarray(self.of_visit / (information + PRIOR) ** 2 / (2 * self.variance(information)))

    def rates(self, information: FloatArray) -> FloatArray:
        """Return the same share for one more visit of each choice (n_choices)."""
        return self.class_rates(information)[self.rows.number]

    def classes(self, seen: FloatArray, per_run: FloatArray) -> tuple[ClassAdvice, ...]:
        """Return all rows whose visits narrow the bounds, those with the largest part of the variance first."""
        information = self.information(seen)
        rates, ahead = self.class_rates(information), self.information(per_run)
        shares = 2 * rates * (information + PRIOR)
        order = np.argsort(-shares, kind="stable")
        names = map(self.graph.describe_choice, self.rows.representative[order].tolist())
        each = zip(names, *(a[order].tolist() for a in (information, ahead, rates, shares)), strict=True)
        return tuple(ClassAdvice((name,), int(n), of_run, rate, part) for name, n, of_run, rate, part in each if part)

    def directly(self, seen: FloatArray, share: float) -> FloatArray:
        """Return the fewest more visits of choices (n_choices) that make the width so small a share of itself.

        With v / N² the same in all rows that get more, no visit is better spent in another row.
        """
        information = self.information(seen)
        aim, visits, root = share**2 * self.variance(information), information + PRIOR, np.sqrt(self.of_visit)

        def is_enough(each: float) -> bool:
            return self.variance(np.maximum(visits, each * root) - PRIOR) <= aim

        least = last_that(is_enough, float(root.sum()) / aim, 0.0, _HALVINGS)
        more = np.zeros(self.graph.n_choices)
        more[self.rows.representative] = np.ceil(np.maximum(least * root - visits, 0.0))
        return read_only(more)


Design: TypeAlias = ValueQuestion | TableQuestion
"""The value that data should narrow, given their information in whatever form."""


def table_question(learned: Learned, asked: Question, policy: Policy) -> TableQuestion:
    """Return the value of a policy as a question about rows, or refuse one that no data narrow."""
    counted, model, objective = learned.model.counted, asked.model, asked.objective
    seen = pooled(counted, learned.counts.counts)
    chosen = as_choices(model.graph, check_policy(model.graph, policy))
    bounded = chain_of_policy(model, chosen, objective)
    if isinstance(bounded, WhyNot):
        raise DataError(f"there is no advice on rows: {bounded.reason}")
    table = bounded.table
    probability = table.frequencies(seen)
    equations = regular_equations(table, probability)
    if equations is None:
        raise DataError("there is no advice on rows: by what was seen, runs need not end")
    values = equations.values()
    occupancy = np.maximum(equations.solve_transposed(table.start), 0.0)
    found = row_variances(table, probability, occupancy, table.ahead(values))
    rows, n_known = counted.rows, len(counted.expressions.polynomials)
    row_of_place = np.full(table.n_places, -1)
    first = np.asarray(counted.expression)[rows.transition[rows.first[:-1]]] - n_known
    row_of_place[first[first >= 0]] = np.flatnonzero(first >= 0)
    row = row_of_place[table.place[table.chain.first[table.one_of_each]]]
    of_visit = np.bincount(row[row >= 0], found[row >= 0], len(rows)).astype(np.float64)
    if not of_visit.any():
        raise DataError("the value of the policy does not depend on unknown rows: no data narrow it")
    value = bounded.reduced.value(float(values[table.chain.initial]))
    frequency = smoothed(counted, seen)[counted.expression]
    return TableQuestion(counted.graph, rows, read_only(frequency), read_only(of_visit), value)


@dataclass(frozen=True, eq=False)
class RootLaw:
    """Predicts widths of a table by the root of the variance, for new runs that are added to the data."""

    question: TableQuestion
    information: FloatArray
    width: float  # of the certificate now

    def predict(self, sampling: str, per_run: FloatArray, runs: int) -> Prediction:
        """Return the width after a number of runs, given expected counts of transitions per run."""
        more = self.information + runs * self.question.information(per_run)
        ratio = self.question.variance(more) / self.question.variance(self.information)
        return Prediction(sampling, runs, self.width * float(np.sqrt(ratio)), is_alone=False)

    together = predict

    def alone(self, sampling: str, per_run: FloatArray, runs: int) -> Prediction:
        """Return that new runs by themselves are not predicted: added to the data they say no less."""
        return Prediction(sampling, runs, inf, is_alone=True)

    def runs_for(self, sampling: str, per_run: FloatArray, width: float) -> Prediction | None:
        """Return the number of runs that makes the certificate so narrow, or None if it is above 10^12."""
        low, high = 0, MOST_RUNS
        if self.predict(sampling, per_run, high).width > width:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            is_enough = self.predict(sampling, per_run, middle).width <= width
            low, high = (low, middle) if is_enough else (middle, high)
        return self.predict(sampling, per_run, high)

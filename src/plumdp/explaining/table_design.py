"""Estimates how much a visit of each row of a table says about a value, to first order.

The variance of the value of a policy is about Σ v(r) / N(r) over the unknown rows r, with N(r) visits of which each
contributes the variance v(r): that of the values ahead, times the square of how often a run comes there. The width of
the bounds falls like its root once there are enough data for bets, and faster before.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from plumdp.base.errors import DataError
from plumdp.learning.learned import Learned
from plumdp.model.graph import FloatArray, Graph, read_only
from plumdp.model.policy import Policy, as_choices, check_policy
from plumdp.model.question import Question
from plumdp.model.row_classes import RowClasses
from plumdp.result.advice import ClassAdvice, Prediction
from plumdp.tables.candidates import smoothed
from plumdp.tables.chain import PRIOR, pooled, regular_equations
from plumdp.tables.plan import row_variances
from plumdp.tables.values import chain_of_policy

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
        low, high = 0.0, float(root.sum()) / aim
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            is_enough = self.variance(np.maximum(visits, middle * root) - PRIOR) <= aim
            low, high = (low, middle) if is_enough else (middle, high)
        more = np.zeros(self.graph.n_choices)
        more[self.rows.representative] = np.ceil(np.maximum(high * root - visits, 0.0))
        return read_only(more)


def table_question(learned: Learned, asked: Question, policy: Policy) -> TableQuestion:
    """Return the value of a policy as a question about rows, or refuse one that no data narrow."""
    counted, model, objective = learned.model.counted, asked.model, asked.objective
    seen = pooled(counted, learned.counts.counts)
    chosen = as_choices(model.graph, check_policy(model.graph, policy))
    bounded = chain_of_policy(model, chosen, objective)
    if isinstance(bounded, str):
        raise DataError(f"there is no advice on rows: {bounded}")
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

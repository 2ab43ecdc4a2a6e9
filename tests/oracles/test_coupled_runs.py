"""Bounds on differences by runs that move together hold at every table within the intervals of its rows.

The oracle solves for the values of both policies at one table after another, at corners of the intervals that climb
towards the largest and the smallest difference.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from tiers import size

from plumdp import LogFormat
from plumdp.data import model_from_log
from plumdp.model.policy import check_policy
from plumdp.model.question import ask
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.coupled.chain import PolicyChain
from plumdp.solver.evaluate import evaluate_all
from plumdp.tables import coupling, values
from plumdp.tables.chain import OpenChain
from plumdp.tables.coupling import CoupledChain

ASKED = (
    'R{"r"}max=? [ C<=4 ]',
    "Pmax=? [ F x=0 ]",
    "Pmin=? [ G x>0 ]",
    'R{"r"}min=? [ C{0.8} ]',
    "Pmax=? [ F<=3 x=0 ]",
)


@dataclass(frozen=True)
class Case:
    question: object
    lower: np.ndarray
    upper: np.ndarray
    policies: list

    def uncertain(self, lower, upper):
        return IntervalMDP(self.question.model.graph, self.question.model.expression, lower, upper)

    def bounds(self):
        """Return the bounds on the difference of both policies, and the difference of their brackets."""
        model, objective, both = self.question.model, self.question.objective, self.uncertain(self.lower, self.upper)
        bounded = []
        for policy in self.policies:
            worst, best = evaluate_all([both], policy, objective, ("robust", "optimistic"), precision=1e-9)
            low, high = (worst, best) if objective.direction == "max" else (best, worst)
            bounded.append((policy, low.lower, high.upper))
        found, start = values.difference_by_intervals(model, objective, both, *bounded), model.graph.initial_state
        (_, low, high), (_, less, more) = bounded
        return (found.lower, found.upper), (low[start] - more[start], high[start] - less[start])

    def difference(self, probability):
        """Return the difference of both values at one table."""
        point, start = self.uncertain(probability, probability), self.question.model.graph.initial_state
        return float(np.subtract(*(self._value(point, policy)[start] for policy in self.policies)))

    def _value(self, point, policy):
        return evaluate_all([point], policy, self.question.objective, ("robust",), precision=1e-10)[0].lower

    def extremes(self, rng, n_starts, n_rounds=2):
        """Return the least and the largest difference of some tables, each climbing from corner to corner."""
        table, found = self.question.model.counted, []
        rows = np.split(np.asarray(table.expression), table.graph.first_transition[1:-1])
        for sign in (-1, 1) * n_starts:
            at = self._corner(rows, rng.standard_normal(len(self.lower)))
            best = sign * self.difference(at)
            for _ in range(n_rounds):
                for row in rows:
                    tried = at.copy()
                    tried[row] = self._corner([row], rng.standard_normal(len(at)))[row]
                    value = sign * self.difference(tried)
                    best, at = (value, tried) if value > best else (best, at)
            found.append(sign * best)
        return min(found), max(found)

    def _corner(self, rows, direction):
        at = self.lower.copy()
        for row in rows:
            rest = 1 - at[row].sum()
            for place in row[np.argsort(-direction[row])]:
                more = min(rest, self.upper[place] - self.lower[place])
                at[place], rest = at[place] + more, rest - more
        return at


def random_case(seed):
    """Return a table with two ends, intervals of its rows, and policies that differ in some states."""
    rng = np.random.default_rng(seed)
    n, text, widest = int(rng.integers(4, 6)), ASKED[seed % len(ASKED)], rng.choice([1e-4, 0.1, 0.4])
    rows = [(x, a, y) for x in range(2, n) for a in "lr" for y in range(n)]
    model = model_from_log(
        pd.DataFrame(rows, columns=["x", "action", "next_x"]),
        LogFormat(states="x"),
        initial=n - 1,
        ends=lambda s: s.x <= 1,
        rewards={"r": lambda s: 1.0 * s.x**2},
        closed=True,
    )
    question = ask(text, model)
    graph, table = question.model.graph, model.expressions
    n_known = len(table.polynomials)
    lower = np.array([*(float(f.constant) for f in table.polynomials), *np.zeros(table.n_free)])
    upper = lower.copy()
    for c in range(model.graph.n_choices):
        row = np.asarray(model.expression)[model.graph.first_transition[c] : model.graph.first_transition[c + 1]]
        if row[0] >= n_known:
            p, width = rng.dirichlet(np.ones(len(row))), widest * rng.random()
            lower[row], upper[row] = np.maximum(p - width, 0), np.minimum(p + width, 1)
    draws = "C{" not in text and rng.random() < 0.6
    one, other = (_policy(graph, rng, draws) for _ in range(2))
    is_same = rng.random(graph.n_states) < 0.6
    other = np.where(is_same[graph.state_of_choice()] if draws else is_same, one, other)
    return Case(question, lower, upper, [check_policy(graph, each) for each in (one, other)])


def _policy(graph, rng, draws):
    number = np.diff(graph.first_choice)
    if not draws:
        return graph.first_choice[:-1] + (rng.random(graph.n_states) * number).astype(int)
    weight = rng.random(graph.n_choices) * (rng.random(graph.n_choices) < 0.8) + 1e-3
    return weight / np.add.reduceat(weight, graph.first_choice[:-1])[graph.state_of_choice()]


def missed(seeds, n_starts=1):
    """Return the seeds of cases in which a table has a difference outside of the bounds."""
    found = []
    for seed in seeds:
        case = random_case(seed)
        (low, high), _ = case.bounds()
        least, most = case.extremes(np.random.default_rng(seed), n_starts)
        if not low - 1e-7 <= least <= most <= high + 1e-7:
            found.append(seed)
    return found


@pytest.mark.slow
def test_differences_at_all_tables_within_intervals_lie_in_the_bounds():
    assert missed(range(size(15, 600)), size(1, 6)) == []


@pytest.mark.slow
def test_bounds_are_narrower_than_the_difference_of_both_brackets():
    """Policies that differ in few states have much in common, which cancels: half of the width, in the middle."""
    shares = []
    for seed in range(size(15, 200)):
        (low, high), (less, more) = random_case(seed).bounds()
        assert less - 1e-9 <= low
        assert high <= more + 1e-9
        shares.append((high - low) / (more - less) if more > less else 0.0)
    assert np.median(shares) < 0.5


def steps(n, reward, lower, upper):
    """Return a chain of n steps, each with a reward, of whose values next to nothing is known."""
    states, ones, known = np.arange(n + 1, dtype=np.int32), np.ones(n), np.full(n, -1)
    chain = PolicyChain(states, states, states[1:], 0 * known, reward * ones, np.zeros(1), 0, True, 1.0)
    return CoupledChain(OpenChain(chain, known, ones, 0), ones, ones, known, lower * ones, upper * ones)


@pytest.mark.parametrize("reward", [0.05, 0.1, 0.3, 0.7])
def test_many_steps_are_rounded_outward_by_what_they_sum_to(reward):
    """The difference of 1,000 equal steps is far larger than what is known of either value at first."""
    found = coupling.largest_difference(steps(1000, -reward, -1e9, 0.0), steps(1000, reward, 0.0, 1e9))
    assert 0 <= Fraction(found) + 2000 * Fraction(reward) < 1e-7


def rows_that_differ_move_together(patch):
    """Places in rows stand for the rows."""
    numbered = lambda chain, *_: np.arange(len(chain.table.place)) - chain.table.chain.first[chain.table.owner]  # noqa: E731
    patch.setattr(values.ChainOfPolicy, "labels", numbered)


def nature_is_kind(patch):
    plain = coupling._most
    patch.setattr(coupling, "_most", lambda low, high, values: -plain(low, high, -values))


def draws_are_always_the_same(patch):
    plain = coupling._drawn

    def drawn(one, other, x, y):
        code, share = plain(one, other, x, y)
        first, second = np.divmod(code, other.table.chain.n_nodes)
        share = np.where(one.table.chain.state[first] == other.table.chain.state[second], share, 0)
        return (code, share / share.sum()) if share.any() else plain(one, other, x, y)

    patch.setattr(coupling, "_drawn", drawn)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "seeds"),
    [(rows_that_differ_move_together, (3, 4)), (nature_is_kind, (3, 4)), (draws_are_always_the_same, (10, 15))],
)
def test_a_planted_error_is_found(plant, seeds, monkeypatch):
    assert not missed(seeds)
    plant(monkeypatch)
    assert missed(seeds)

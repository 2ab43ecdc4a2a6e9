"""Bets on candidates that the pilot names are fair, exactly, and a candidate that later data choose is found out.

The model has one state with two actions, whose rows are unknown. Over all data in three batches, the expectation of
what bets on a candidate won is one: the true values are those of the policy that the pilot of the moment names.
"""

from fractions import Fraction
from functools import cache
from itertools import product
from math import comb, prod

import numpy as np
import pytest
from row_models import listed
from tiers import size

from plumdp.data.counts import Pilot, TransitionCounts
from plumdp.model.question import ask
from plumdp.tables import candidates, table_set
from plumdp.tables.bracket import make_stages
from plumdp.tables.plan import make_plan
from plumdp.tables.values import chain_of_policy

TRUTH = {"a": Fraction(1, 3), "b": Fraction(1, 2)}  # probability of the goal by each action
VISITS = size(((2, 1), (1, 0), (0, 1)), ((2, 1), (1, 0), (1, 1)))  # of the rows of both actions in the three batches
PLANNED = 300  # times as much as there is, so that rows may be trusted and bets are small


@cache
def model():
    """Return the table: both actions lead to the goal or to a dead end."""
    return listed({0: {a: [1, 2] for a in TRUTH}}, None, at="x", labels={"goal": 1})


def all_batches(visits):
    """Yield all counts (n_transitions) of a batch with their probabilities."""
    graph, n_choices = model().graph, len(TRUTH)
    for goals in product(*(range(n + 1) for n in visits)):
        counts, chance = np.zeros(graph.n_transitions, dtype=np.int64), Fraction(1)
        for choice, n, k in zip(range(n_choices), visits, goals, strict=True):
            p = TRUTH[graph.action_names[graph.action[choice]]]
            at = graph.first_transition[choice]
            is_goal = model().labels["goal"][graph.successor[at : at + 2]]
            counts[at : at + 2] = np.where(is_goal, k, n - k)
            chance *= comb(n, k) * p**k * (1 - p) ** (n - k)
        yield counts, chance


def winnings(prespecified, moments):
    """Return what the bets on either side of the value of a policy won, in fractions."""
    question = prespecified.question
    table = chain_of_policy(question.model, prespecified.policy, question.objective).table
    truth = true_rows(table)
    values = [Fraction(0)] * table.n
    for _ in range(2):  # a draw is one step before an action
        values = [
            sum(truth[t] * ahead(table, values, t) for t in np.flatnonzero(table.owner == s).tolist())
            for s in range(table.n)
        ]
    plan = make_plan(table, moments.counts[0], moments.planned / moments.lengths[0] - 1, 3.0)
    if plan is None:
        return [Fraction(1)] * 2
    return [prod(won(table, stage, values) for stage in make_stages(plan, moments, sign)) for sign in (-1, 1)]


def true_rows(table):
    """Return the exact probability of each transition of a chain."""
    graph, n_known = model().graph, len(model().expressions.polynomials)
    of_place = {}
    for t in range(graph.n_transitions):
        name = graph.action_names[graph.action[graph.choice_of_transition()[t]]]
        if name in TRUTH:
            is_goal = model().labels["goal"][graph.successor[t]]
            of_place[int(model().expression[t]) - n_known] = TRUTH[name] if is_goal else 1 - TRUTH[name]
    numbers = map(Fraction, table.number.tolist())
    return [of_place[p] if p >= 0 else q for p, q in zip(table.place.tolist(), numbers, strict=True)]


def ahead(table, values, t):
    """Return the value where a transition leads."""
    to = int(table.successor[t])
    return values[to] if to < table.n else Fraction(float(table.chain.known[to - table.n]))


def won(table, stage, values):
    """Return the product of the factors of a stage, with bets that are left out where they are too large."""
    total = Fraction(1)
    for s in np.flatnonzero(table.is_free).tolist():
        span, weight = np.flatnonzero(table.owner == s).tolist(), Fraction(float(stage.weight[s]))
        each = [ahead(table, values, t) for t in span]
        if abs(weight) * (max(each) - min(each)) <= Fraction(1, 2):
            total *= prod(
                (1 + weight * (v - values[s])) ** int(stage.counts[table.place[t]])
                for v, t in zip(each, span, strict=True)
            )
    return total


ALL = []  # all data of the moment, for the mutant that looks at them


def expectations():
    """Return the exact expectation of what bets won, for the first and the last candidate, and how many there were."""
    question, budget = ask('Pmax=? [ F "goal" ]', model()), table_set.table_shares(has_bets=True)
    means, numbers = dict.fromkeys(product(("first", "last"), (-1, 1)), Fraction(0)), set()
    for batches in product(*(list(all_batches(visits)) for visits in VISITS)):
        (a, b, c), chance = (each[0] for each in batches), prod(each[1] for each in batches)
        lengths = (float(a.sum()), float((a + b).sum()))
        pilot = Pilot(a, moments=(a, a + b), lengths=lengths, expected=PLANNED * float((a + b + c).sum()))
        ALL[:] = [a + b + c]
        counts = TransitionCounts(model().graph, a + b + c, "adaptive", pilot)
        found = table_set.table_set(model(), counts, error=0.1, budget=budget, questions=[question])
        numbers.add((len(found.prespecified), *(each.policy.dtype.kind for each in found.prespecified)))
        for which, each in (("first", found.prespecified[0]), ("last", found.prespecified[-1])):
            for sign, product_of_bets in zip((-1, 1), winnings(each, found.moments), strict=True):
                means[which, sign] += chance * product_of_bets
    return means, numbers


@pytest.mark.slow
def test_the_expectation_of_bets_on_every_candidate_is_one():
    means, numbers = expectations()
    assert set(means.values()) == {Fraction(1)}
    assert {n for n, *_ in numbers} == {1, 2}  # so that the pilot decides how many there are


@pytest.mark.slow
def test_a_candidate_that_is_chosen_by_all_data_is_found(monkeypatch):
    chosen = candidates.candidates_of

    def looks_ahead(question, outlook):
        everything = ALL[0]
        seen = table_set.pooled(model(), everything)
        return chosen(question, type(outlook)(**{**vars(outlook), "counts": everything, "seen": seen}))

    monkeypatch.setattr(table_set, "candidates_of", looks_ahead)
    means, _ = expectations()
    assert all(mean != 1 for mean in means.values())

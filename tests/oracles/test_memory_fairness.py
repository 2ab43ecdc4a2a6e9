"""Tests of memory are fair at the truth, over all histories of a few runs, and what would make them unfair is found.

Units run for at most three steps and fail for good with one probability in each, so that a context is the step, the
number of earlier visits and the time since the start at once. Every history of a pilot, which may be a single run, and
of the runs after it is looked at.
"""

from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from math import comb, exp, prod

import numpy as np
import pytest

import plumdp as pl
from plumdp.confidence.estimates import SPACE_AS_DATA, law_of_pilot, law_of_space
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.data.contexts import Context, ContextKind
from plumdp.data.counts import Pilot
from plumdp.fit import context_tests
from plumdp.fit.context_tests import evidence_of_memory, evidence_of_rows, memory_tests
from plumdp.fit.drift import PilotView

STEPS = 3
CHANCES = (Fraction(1, 50), Fraction(3, 10), Fraction(7, 10))
(hazard,) = pl.parameters("hazard")


def _step(s):
    failed = s._replace(status=1)
    return {"run": [(hazard, failed), (1 - hazard, s)]} if not s.status else {"stay": [(1, s)]}


MODEL = pl.explore(_step, {"status": 0}, space=pl.ParameterSpace.unit("hazard"))
TABLE, GRAPH = likelihood_table(MODEL), MODEL.graph
ROW = slice(*GRAPH.first_transition[:2])
FAILS = int(np.argmax(GRAPH.successor[ROW] != 0))  # the other transition of the row is that it goes on


def histories(n):
    """Yield all histories of n runs, each by the step at which it fails (or the last one), with how many orders."""
    for runs in combinations_with_replacement(range(STEPS + 1), n):
        left, orders = n, 1
        for times in Counter(runs).values():
            orders, left = orders * comb(left, times), left - times
        yield runs, orders


def chance_of(runs, p):
    return prod(((p if t < STEPS else 1) * (1 - p) ** t for t in runs), start=Fraction(1))


def counted(runs):
    """Return how often each outcome of the row was seen at each step (8, 2)."""
    seen = np.zeros((8, GRAPH.n_transitions), dtype=np.int64)
    for t in runs:
        seen[: min(t, STEPS), 1 - FAILS] += 1
        if t < STEPS:
            seen[t, FAILS] += 1
    return seen


def context_of(runs, pilot=(), kind=ContextKind.STEP):
    return Context.of(kind, counted(runs), counted(pilot))


@cache
def found_in(runs, pilot, end="planned"):
    """Return the tests of memory of the package for some runs after a pilot."""
    seen, first = counted(runs).sum(axis=0), counted(pilot).sum(axis=0)
    space = law_of_space(MODEL)
    law = law_of_pilot(TABLE, TABLE.pool(first), space)
    view = PilotView(TABLE, first, law.mean, 9.0, SPACE_AS_DATA * space.precision)
    contexts = [context_of(runs, pilot, kind) for kind in (ContextKind.STEP, ContextKind.VISITS, ContextKind.LAST)]
    near = np.array([((seen + first)[FAILS] + 0.5) / ((seen + first).sum() + 1)])
    return memory_tests(TABLE, contexts, view, Pilot(first, end), near=near, of_bets=0.09, of_rows=0.01)


def means_of_bets(p, n_pilot, n, at=None, end="planned"):
    """Yield the mean of all bets over their error, over the histories after each pilot that places any."""
    for pilot, _ in histories(n_pilot):
        total, points = 0.0, [float(p)] if at is None else at(pilot)
        for runs, orders in histories(n):
            bets = found_in(runs, pilot, end).affine
            least = min((bets.slopes @ [v] + bets.constants for v in points), key=sum)
            total += float(orders * chance_of(runs, p)) * np.exp(least).sum() / 0.09
        if len(bets.constants):
            yield total


@pytest.mark.parametrize("p", CHANCES)
@pytest.mark.parametrize(("n_pilot", "n"), [(1, 4), (2, 3)])
def test_bets_on_memory_have_a_mean_of_at_most_one_after_every_pilot(p, n_pilot, n):
    found = [*means_of_bets(p, n_pilot, n)]
    assert found
    assert 0.4 < min(found) <= max(found) <= 1, found  # tangents give some away


@pytest.mark.parametrize("p", CHANCES)
def test_laws_for_each_value_have_a_mean_of_at_most_one(p):
    """Those of classes and those of rows, over their errors."""
    total, log_chances = np.zeros(2), np.log(TABLE.values(np.array([float(p)]))[0])
    for runs, orders in histories(4):
        found = found_in(runs, ())
        wealths = [np.exp(each.values(log_chances)).sum() for each in (found.classes, found.rows)]
        total += float(orders * chance_of(runs, p)) * np.array(wealths) / 0.005
    assert (total <= 1).all(), total
    assert (total > 0.3).all(), total


def test_bets_of_one_of_six_pilots_have_a_sixth():
    found = [*means_of_bets(CHANCES[1], 1, 3, end="power of four")]
    assert max(found) <= Fraction(1, 6)
    assert min(found) > 0.1


def mean_of_rows(p, n, value_of, *, n_values=8, best=lambda evidence: evidence):
    """Return the mean of e of the row against every law, given the value of each visit of all runs."""
    first, total = np.array([0, 2]), 0.0
    for runs in product(range(STEPS + 1), repeat=n):
        visits = [(i, k, k == t) for i, t in enumerate(runs) for k in range(min(t + 1, STEPS))]
        seen = np.zeros((n_values, 2), dtype=np.int64)
        for visit, value in zip(visits, value_of(runs, visits), strict=True):
            seen[value, FAILS if visit[2] else 1 - FAILS] += 1
        context = Context.of(ContextKind.KNOWN, seen, 0 * seen, values=tuple(map(str, range(n_values))))
        total += float(chance_of(runs, p)) * exp(best(evidence_of_rows(context, np.arange(2), first)[0]))
    return total


def earlier_visits(_, visits):
    return [k for _, k, _ in visits]


def site(_, visits):
    return [i % 3 for i, *_ in visits]


@pytest.mark.parametrize("value_of", [earlier_visits, site])
@pytest.mark.parametrize("p", CHANCES)
def test_rows_against_every_law_have_a_mean_of_at_most_one(p, value_of):
    assert mean_of_rows(p, 5, value_of) <= 1


@pytest.mark.parametrize("p", CHANCES)
def test_two_rows_may_be_multiplied_as_they_share_no_visits(p):
    """Two rows with one run each time, and three visits apiece: the mean of the whole, products included."""
    first, place_of, total = np.array([0, 2, 4]), np.arange(4), 0.0
    runs = [*product((0, 1), repeat=3)]
    for one, other in product(runs, repeat=2):
        seen = np.zeros((3, 4), dtype=np.int64)
        for k in range(3):
            seen[k, one[k]] += 1
            seen[k, 2 + other[k]] += 1
        context = Context.of(ContextKind.KNOWN, seen, 0 * seen, values=("0", "1", "2"))
        weight = prod(p if fails else 1 - p for fails in (*one, *other))
        total += float(weight) * exp(evidence_of_memory([context], place_of, first, np.arange(2)))
    assert 0.2 < total <= 1, total


# Errors: what a context must not know, and what a bet must not


def test_a_summary_of_the_run_is_found():
    """ "Ever failed" is constant in a run, but known after it only."""
    assert mean_of_rows(CHANCES[1], 5, lambda runs, visits: [int(runs[i] < STEPS) for i, *_ in visits]) > 2


def test_steps_to_the_end_are_found():
    assert mean_of_rows(CHANCES[1], 5, lambda runs, visits: [min(runs[i], 2) - k for i, k, _ in visits]) > 3


def test_visits_of_one_time_that_are_sorted_by_outcome_are_found():
    """Two visits of a unit have the same time, and its failures are filed first."""
    total = 0.0
    for units in product(product((0, 1), repeat=2), repeat=5):
        seen = np.zeros((2, 2), dtype=np.int64)
        for unit in units:
            for k, fails in enumerate(sorted(unit, reverse=True)):
                seen[k, fails] += 1
        context = Context.of(ContextKind.KNOWN, seen, 0 * seen, values=("0", "1"))
        weight = prod(CHANCES[1] if fails else 1 - CHANCES[1] for unit in units for fails in unit)
        total += float(weight) * exp(evidence_of_rows(context, np.arange(2), np.array([0, 2]))[0])
    assert total > 1.5


def test_values_that_are_joined_by_their_final_counts_are_found():
    """Against a fixed number, of the sites that with most visits in all is kept and the others are joined."""

    def mean_of_laws(p):
        total = 0.0
        for runs in product(range(STEPS + 1), repeat=5):
            visits = [(i % 3, k == t) for i, t in enumerate(runs) for k in range(min(t + 1, STEPS))]
            most = max(range(3), key=lambda s: sum(of == s for of, _ in visits))
            seen = np.zeros((2, GRAPH.n_transitions), dtype=np.int64)
            for of, fails in visits:
                seen[int(of == most), FAILS if fails else 1 - FAILS] += 1
            context = Context.of(ContextKind.KNOWN, seen, 0 * seen, values=("other", "most"))
            tests = context_tests._laws_of_their_own(TABLE, context, 1.0)[0]
            total += float(chance_of(runs, p)) * exp(tests.values(np.log(TABLE.values(np.array([float(p)]))[0]))[0])
        return total * len(TABLE.is_class)

    assert mean_of_laws(CHANCES[2]) > 1.05


def test_laws_near_the_pilot_alone_are_found():
    """The least over laws within a factor of two of a single run's estimate wins on average where that is wrong."""

    def near_the_pilot(pilot):
        seen = counted(pilot).sum(axis=0)[ROW]
        estimate = (seen[FAILS] + 0.5) / (seen.sum() + 1)
        return np.linspace(estimate / 2, min(2 * estimate, 0.999), 20)

    assert max(means_of_bets(CHANCES[2], 1, 6, near_the_pilot)) > 1.05


@pytest.fixture
def anew():
    """Forget what was found by other code, before and after."""
    found_in.cache_clear()
    yield
    found_in.cache_clear()


@pytest.mark.usefixtures("anew")
def test_bets_that_are_normalised_at_another_law_are_found(monkeypatch):
    """At that of the pilot, say: here at one half."""
    own = context_tests.tangents

    def elsewhere(outcomes, seen, factors, near):
        slopes, constants = own(outcomes, seen, factors, np.array([0.5]))
        return 0 * slopes, constants + slopes @ [0.5]

    monkeypatch.setattr(context_tests, "tangents", elsewhere)
    assert max(max(means_of_bets(p, 1, 4)) for p in CHANCES) > 1.05


@pytest.mark.usefixtures("anew")
def test_bets_that_all_have_the_whole_share_are_found(monkeypatch):
    own = context_tests.directed_bets
    monkeypatch.setattr(context_tests, "directed_bets", lambda *a, **k: [b._replace(share=1.0) for b in own(*a, **k)])
    assert max(means_of_bets(CHANCES[1], 1, 3)) > 2


@pytest.mark.usefixtures("anew")
def test_data_of_the_pilot_that_are_bet_on_are_found(monkeypatch):
    own = context_tests._in_cells

    def with_pilot(table, context, counts):
        return own(table, context, context.count if (counts != context.pilot).any() else counts)

    monkeypatch.setattr(context_tests, "_in_cells", with_pilot)
    means = [sum(means_of_bets(p, 2, 3)) for p in CHANCES]
    assert max(means) > 1.05

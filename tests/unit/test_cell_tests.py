"""Tests of rows and classes: Dirichlet mixtures against predictions one by one, in exact fractions."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import log, prod

import numpy as np
import pytest
from cell_models import cell_model, counts_in_cells
from hypothesis import given, settings
from hypothesis import strategies as st
from row_models import row_model
from tiers import examples

import plumdp as pl
from plumdp.confidence.likelihood_table import CellCounts, likelihood_table
from plumdp.fit.cell_tests import NO_CELLS, cell_tests, largest

p, q = pl.parameters("p", "q")
SQUARE = pl.ParameterSpace.unit("p", "q")
SIMPLEX = pl.ParameterSpace.simplex("p", "q")
HALF = Fraction(1, 2)
COIN = likelihood_table(row_model([[p, 1 - p]], SQUARE))
DIE = likelihood_table(row_model([[p, q, 1 - p - q]], SIMPLEX))
# p/8 twice counts as p/4, with the other p/4 as p/2, and with the p/2 that there is already as p
TWINS = likelihood_table(row_model([[p / 8, p / 8, p / 4, p / 2, 1 - p]], SQUARE))
TABLES = {"coin": COIN, "die": DIE, "twins": TWINS}
POINT = {"p": Fraction(1, 3), "q": Fraction(1, 5)}


def probabilities(table, point):
    return [Fraction(f.evaluate({name: point[name] for name in table.names})) for f in table.outcomes]


def by_predictions(table, sequence, point):
    """Return the wealth after a sequence of outcomes, each predicted by half plus how often it was seen before."""
    chances, wealth = probabilities(table, point), Fraction(1)
    for n, j in enumerate(sequence):
        wealth *= (HALF + sequence[:n].count(j)) / (HALF * len(chances) + n) / chances[j]
    return wealth


def wealth_of(table, sequence, point):
    """Return what the test says of the same data."""
    seen = np.bincount(sequence, minlength=len(table.outcomes)).astype(float)
    used = np.flatnonzero(seen)
    tests = cell_tests(table, CellCounts(np.zeros(len(used), dtype=np.int64), used, seen[used]))
    chances = np.array([float(f) for f in probabilities(table, point)])
    return float(tests.values(np.log(chances))[0])


def decimal_log(fraction):
    with localcontext(prec=60):
        return float((Decimal(fraction.numerator) / Decimal(fraction.denominator)).ln())


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=examples(60))
@given(data=st.data())
def test_the_wealth_is_the_product_of_predictions_over_probabilities(name, data):
    table = TABLES[name]
    sequence = data.draw(st.lists(st.integers(0, len(table.outcomes) - 1), min_size=1, max_size=40))
    found, exact = wealth_of(table, sequence, POINT), decimal_log(by_predictions(table, sequence, POINT))
    assert found == pytest.approx(exact, abs=1e-10)
    assert found <= exact + 1e-14 * (1 + abs(exact)) * len(sequence)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_expectation_of_the_wealth_is_one(name, n):
    """Over all sequences of n outcomes, in fractions; each step of the process is covered by the difference in n."""
    table = TABLES[name]
    chances = probabilities(table, POINT)
    assert sum(chances) == 1
    total = Fraction(0)
    for sequence in product(range(len(chances)), repeat=n):
        total += prod((chances[j] for j in sequence), start=Fraction(1)) * by_predictions(table, list(sequence), POINT)
    assert total == 1


@pytest.mark.parametrize("name", TABLES)
def test_what_is_calculated_has_an_expectation_of_at_most_one(name):
    """The same with the numbers of the test itself: not more than one, and one but for rounding."""
    table = TABLES[name]
    chances, total = probabilities(table, POINT), 0.0
    for sequence in product(range(len(chances)), repeat=4):
        total += float(prod((chances[j] for j in sequence), start=Fraction(1))) * np.exp(
            wealth_of(table, sequence, POINT)
        )
    assert 1 - 1e-10 < total < 1 + 1e-13


def test_equal_polynomials_of_a_class_are_one_outcome_however_often_sums_meet_equals():
    """By hand: p/8, p/8, p/4, p/2, 1 - p is the coin p, 1 - p; a first p wins (1/2) / (1/3)."""
    assert TWINS.outcomes == (p, 1 - p)
    assert wealth_of(TWINS, [0], POINT) == pytest.approx(log(3 / 2), abs=1e-12)


def test_rows_throw_all_the_coins_of_their_tree():
    """pq, p (1 - q), 1 - p: the test of the row is the product of that of {p, 1 - p} and that of {q, 1 - q}."""
    model = cell_model([[[p * q, p * (1 - q), 1 - p]]], SQUARE)
    table, counts = likelihood_table(model), counts_in_cells(model, [[[5, 3, 7]]])
    rows = table.pool_by_choice(counts.counts)
    tests = cell_tests(table, rows)
    assert len(tests) == 1
    value = tests.values(np.log(table.values(np.array([1 / 3, 1 / 5]))[0]))[0]
    first = wealth_of(COIN, [0] * 8 + [1] * 7, POINT)
    coin = likelihood_table(row_model([[q, 1 - q]], SQUARE))
    second = wealth_of(coin, [0] * 5 + [1] * 3, POINT)
    assert value == pytest.approx(first + second, abs=1e-10)


def test_groups_of_factors_have_no_test():
    """Factors of q², 2 q (1 - q), (1 - q)² are no law: predictions of them would not be fair."""
    model = cell_model([[[q**2, 2 * q * (1 - q), (1 - q) ** 2]]], SQUARE)
    table = likelihood_table(model)
    rows = table.pool_by_choice(counts_in_cells(model, [[[50, 1, 50]]]).counts)
    assert len(rows.cell) > 0
    assert len(cell_tests(table, rows)) == 0


def test_rows_with_no_data_have_no_test():
    nothing = CellCounts(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
    assert len(cell_tests(COIN, nothing)) == len(NO_CELLS) == 0


@pytest.mark.parametrize("n", [10**6, 10**9, 10**12])
def test_the_wealth_of_many_visits_is_rounded_down(n):
    """Against ln Γ to fifty digits by Stirling's series, where floats have lost ten digits."""
    heads = 7 * n // 10
    seen = CellCounts(np.zeros(2, dtype=np.int64), np.array([0, 1]), np.array([heads, n - heads], dtype=float))
    found = float(cell_tests(COIN, seen).gained[0])
    exact = _log_gamma_half(heads) + _log_gamma_half(n - heads) - _log_gamma_whole(n)
    assert found <= exact
    assert found >= exact - Decimal("1e-11") * n


def _log_gamma_half(k):
    """Return ln Γ(k + 1/2) - ln Γ(1/2) to many digits."""
    return _log_gamma(Decimal(k) + Decimal("0.5")) - _log_gamma(Decimal("0.5"))


def _log_gamma_whole(n):
    """Return ln Γ(n + 1)."""
    return _log_gamma(Decimal(n) + 1)


def _log_gamma(x):
    """Return ln Γ(x) by Stirling's series beyond 40, and Γ(x + 1) = x Γ(x) before."""
    with localcontext(prec=50):
        two_pi = Decimal("6.2831853071795864769252867665590057683943387987502")
        less = Decimal(0)
        while x < 40:
            less, x = less + x.ln(), x + 1
        bernoulli = [Fraction(1, 6), Fraction(-1, 30), Fraction(1, 42), Fraction(-1, 30), Fraction(5, 66)]
        series = sum(
            Decimal(b.numerator) / Decimal(b.denominator) / (2 * k * (2 * k - 1)) / x ** (2 * k - 1)
            for k, b in enumerate(bernoulli, start=1)
        )
        return (x - Decimal("0.5")) * x.ln() - x + two_pi.ln() / 2 + series - less


def test_some_of_the_tests_are_those_tests():
    counts = CellCounts(np.array([0, 0, 1, 2, 2]), np.array([0, 1, 1, 0, 1]), np.array([5.0, 2, 4, 1, 9]))
    tests, logarithms = cell_tests(COIN, counts), np.log([0.4, 0.6])
    assert tests.values(logarithms)[[2, 0]] == pytest.approx(tests.take(np.array([2, 0])).values(logarithms))


def test_the_largest_come_first():
    values = np.array([3.0, np.inf, -1.0, 7.0, 7.0, -np.inf])
    assert largest(values, 3).tolist() == [1, 3, 4]
    assert largest(values, 9).tolist() == [1, 3, 4, 0, 2, 5]
    assert largest(np.zeros(0), 3).tolist() == []

"""Bounds on means of bounded numbers by bets: fair in exact fractions, rounded outward, of the exact size."""

from fractions import Fraction
from math import log

import numpy as np
import pytest
from scipy.stats import beta

from plumdp.confidence import bounded_means
from plumdp.confidence.bounded_means import (
    FRACTIONS,
    PARTS,
    Tally,
    log_capital,
    mean_bounds,
    multiplied,
)

LAWS = [  # probabilities of numbers between 0 and 1
    {Fraction(0): Fraction(1, 3), Fraction(1): Fraction(2, 3)},
    {Fraction(1, 7): Fraction(1, 2), Fraction(1, 2): Fraction(1, 3), Fraction(1): Fraction(1, 6)},
    {Fraction(0): Fraction(99, 100), Fraction(9, 10): Fraction(1, 100)},
]


def exact_capital(seen, mean):
    """Return the capital in exact fractions, one number after the other."""
    total = Fraction(0)
    for fraction, part in zip(map(Fraction, FRACTIONS), PARTS, strict=True):
        capital = Fraction(part, sum(PARTS))
        for value, n in zip(seen.value.tolist(), seen.n.tolist(), strict=True):
            capital *= (1 + fraction / mean * (Fraction(value) - mean)) ** n
        total += capital
    return total


def coin_tally(heads, n):
    return Tally.of(np.repeat([0.0, 1.0], [n - heads, heads]))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("fraction", [*map(Fraction, FRACTIONS)])
def test_every_bet_is_fair_at_the_true_mean_exactly(law, fraction):
    mean = sum(value * share for value, share in law.items())
    bets = {value: multiplied(fraction, value, mean) for value in law}
    assert min(bets.values()) >= 0
    assert sum(bets[value] * share for value, share in law.items()) == 1
    assert bets == {value: 1 + fraction / mean * (value - mean) for value in law}


def test_a_biased_bet_is_not_fair():
    """Leaving out what was bet makes the expectation 1 + fraction."""
    (law, *_), fraction = LAWS, Fraction(1, 2)
    mean = sum(value * share for value, share in law.items())
    assert sum((1 + fraction * value / mean) * share for value, share in law.items()) == 1 + fraction


@pytest.mark.parametrize("seed", range(5))
def test_the_capital_is_a_lower_bound_on_that_in_exact_fractions(seed):
    rng = np.random.default_rng(seed)
    seen, mean = Tally.of(rng.choice(rng.random(6), 40)), float(rng.random())
    exact = log(exact_capital(seen, Fraction(mean)))
    assert exact - 1e-9 < log_capital(seen, mean) <= exact


@pytest.mark.parametrize(("heads", "n"), [(0, 10), (3, 10), (10, 10), (57, 60), (1, 1), (40, 200)])
def test_what_lies_outside_is_excluded_in_exact_fractions(heads, n):
    seen, error = coin_tally(heads, n), 0.01
    lower, upper = mean_bounds(seen, seen, error)
    assert 0 <= lower <= heads / n <= upper <= 1
    wanted = 2 / Fraction(error)
    if lower > 0:
        above = Fraction(lower) + Fraction(1, 10**9)
        assert exact_capital(seen, Fraction(lower)) >= wanted > exact_capital(seen, above)
    if upper < 1:
        mirrored = coin_tally(n - heads, n)
        assert exact_capital(mirrored, 1 - Fraction(upper)) >= wanted


@pytest.mark.parametrize(("heads", "n"), [(0, 10), (3, 10), (30, 30), (57, 60), (40, 200), (2400, 3000)])
def test_bounds_are_never_inside_the_exact_ones_of_a_fixed_number(heads, n):
    """At a fixed number of coins no one-sided test of the same error excludes more than the exact binomial one."""
    lower, upper = mean_bounds(coin_tally(heads, n), coin_tally(heads, n), 0.01)
    exact = beta.ppf(0.005, heads, n - heads + 1) if heads else 0.0, beta.isf(0.005, heads + 1, n - heads)
    assert lower <= exact[0]
    assert upper >= (exact[1] if heads < n else 1.0)
    assert upper - lower < 2.5 * (np.nan_to_num(exact[1], nan=1.0) - exact[0])  # and not much wider


def chance_to_exclude(truth, n, error):
    """Return the exact probability that coins exclude their mean at some time up to n, by all numbers of heads."""
    probability, excluded = np.array([1.0]), 0.0
    for time in range(1, n + 1):
        grown = np.zeros(time + 1)
        grown[1:] += probability * truth
        grown[:-1] += probability * (1 - truth)
        for heads in np.flatnonzero(grown > 0):
            larger = log_capital(coin_tally(int(heads), time), truth)
            smaller = log_capital(coin_tally(time - int(heads), time), 1 - truth)
            if max(larger, smaller) >= log(2 / error):  # then the mean is outside of the bounds
                excluded += grown[heads]
                grown[heads] = 0.0
        probability = grown
    return excluded


@pytest.mark.parametrize("truth", [0.02, 0.5, 0.9])
def test_who_stops_at_the_best_moment_excludes_the_truth_as_rarely_as_said(truth):
    assert chance_to_exclude(truth, 30, 0.1) <= 0.1


def test_a_biased_bet_excludes_the_truth_too_often(monkeypatch):
    monkeypatch.setattr(bounded_means, "multiplied", lambda f, x, m: 1 - 0.7 * f + f * (x / m))
    assert chance_to_exclude(0.5, 30, 0.1) > 0.1


def test_numbers_that_are_not_known_count_for_both_ends():
    lower, upper = coin_tally(50, 100), coin_tally(60, 100)  # ten are either
    low, high = mean_bounds(lower, upper, 0.01)
    assert (low, high) == (mean_bounds(lower, lower, 0.01)[0], mean_bounds(upper, upper, 0.01)[1])

"""Times of events as steps: the factor of a unit is fair in fractions as it is booked, and wrong ways are not."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import acb_mat, arb, ctx

RISK, LENGTH = Fraction(1, 10), 2  # of a day, and the days of a longer step
LONG = 1 - (1 - RISK) ** LENGTH
BETS = [(Fraction(a), Fraction(b)) for a, b in product((1, 2, Fraction(1, 3)), (1, Fraction(1, 2), 3))]


def days(event, seen):
    """Each day until the event, or until the unit is lost: (days that ended well, events)."""
    return (event - 1, 1) if event <= seen else (seen, 0)


def whole_steps(event, seen):
    """Steps that can be seen to their end, whether or not the event happens in them."""
    whole = seen // LENGTH
    at = -(-event // LENGTH)
    return (at - 1, 1) if at <= whole else (whole, 0)


def events_in_lost_steps(event, seen):
    """The step in which a unit is lost is left out, but an event in it counts."""
    return (-(-event // LENGTH) - 1, 1) if event <= seen else (seen // LENGTH, 0)


def lost_are_events(event, seen):
    """A unit that is lost counts as one with the event."""
    return min(event, seen) - 1, 1


def lost_are_left_out(event, seen):
    """Units that are lost are not in the table."""
    return (event - 1, 1) if event <= seen else (0, 0)


def days_as_steps(event, seen):
    """Days are counted where steps are longer: the time is read in the wrong unit."""
    return days(event, seen)


def expectation(booked, risk, bet, seen):
    """Return the expectation of the factor of a unit that is seen for so many days, whatever happens."""
    of_event, of_day = (part / (risk * bet[0] + (1 - risk) * bet[1]) for part in bet)
    cases = [(event, (1 - RISK) ** (event - 1) * RISK) for event in range(1, seen + 1)]
    cases.append((seen + 1, (1 - RISK) ** seen))  # later
    assert sum(chance for _, chance in cases) == 1
    found = [(chance, *booked(event, seen)) for event, chance in cases]
    return sum(chance * of_day**well * of_event**events for chance, well, events in found)


@pytest.mark.parametrize(("booked", "risk"), [(days, RISK), (whole_steps, LONG)])
@pytest.mark.parametrize("seen", [1, 3, 4, 7])
def test_units_have_fair_factors_however_long_they_are_seen(booked, risk, seen):
    assert {expectation(booked, risk, bet, seen) for bet in BETS} == {1}


@pytest.mark.parametrize(
    ("booked", "risk"),
    [(events_in_lost_steps, LONG), (lost_are_events, RISK), (lost_are_left_out, RISK), (days_as_steps, LONG)],
)
def test_wrong_ways_to_book_a_unit_have_expectations_above_one(booked, risk):
    assert max(expectation(booked, risk, bet, 5) for bet in BETS) > Fraction(101, 100)


def rows_of_steps(rates, length):
    """Return the matrix of steps of a chain of states, each left at a rate, in balls."""
    n, matrix = len(rates) + 1, acb_mat(len(rates) + 1, len(rates) + 1)
    for i, rate in enumerate(rates):
        matrix[i, i] = (-arb(rate) * length).exp()
        matrix[i, i + 1] = 1 - (-arb(rate) * length).exp()
    matrix[n - 1, n - 1] = 1
    return matrix


def chance_by(rates, time):
    """Return the probability that all states were left by a time, by the exponential of the matrix of rates."""
    n = len(rates) + 1
    matrix = acb_mat(n, n)
    for i, rate in enumerate(rates):
        matrix[i, i], matrix[i, i + 1] = -arb(rate) * time, arb(rate) * time
    return matrix.exp()[0, n - 1].real


@pytest.mark.parametrize("rates", [[0.5], [0.3, 0.8], [1.5, 0.2, 0.7]], ids=str)
def test_rates_by_small_steps_are_late_by_at_most_a_step_for_each_state(rates):
    """A time T in a state ends in step floor(T / h) + 1 of that state, which is between T / h and T / h + 1."""
    ctx.prec = 128
    for length, n in [(0.125, 8), (0.0625, 40), (0.25, 3)]:
        steps, truth = rows_of_steps(rates, length), chance_by(rates, length * n)
        below = (steps**n)[0, len(rates)].real
        above = (steps ** (n + len(rates)))[0, len(rates)].real
        assert below <= truth + arb("1e-20")
        assert truth < above
        assert chance_by(rates, 2 * length * n) > above or n < 8  # a length read in the wrong unit is out of bounds


def test_whole_steps_in_a_state_with_competing_rates_have_the_law_of_a_row():
    """Σ_n rⁿ bⁿ (1 - r) Σ_j λ_j a_j / (λ Zⁿ⁺¹) = 1 for Z = r b + (1 - r) Σ_j λ_j a_j / λ and r = e^{-λ h}."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        stays = Fraction(int(rng.integers(1, 64)), 64)  # any number is e^{-λ h} for some h
        rates, bets = ([Fraction(int(x), 8) for x in rng.integers(1, 40, 3)] for _ in range(2))
        of_stay, mean = Fraction(int(rng.integers(1, 40)), 8), sum(map(lambda x, y: x * y, rates, bets)) / sum(rates)
        z = stays * of_stay + (1 - stays) * mean
        assert (1 - stays) * mean / z / (1 - stays * of_stay / z) == 1  # the geometric series

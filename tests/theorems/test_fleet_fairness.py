"""Statement W5 in fractions: e-values of a unit have means of at most one, whoever stops it or begins it anew.

An opponent sees all throws of a fair or biased coin so far, each of which is a part. Below are the rules that would be
wrong, with what they would lead to.
"""

from fractions import Fraction
from functools import cache
from math import log

import numpy as np
import pytest
from watch_games import chance_of, changed, outside, streamed

from plumdp.fit.time_tests import weight_of
from plumdp.watching.fleets import Won, e_value
from plumdp.watching.plan import Plan

N = 6
CHANCES = (Fraction(1, 10), Fraction(1, 2))


def fortune(throws, i, chance, *, learned):
    """Return the fortune of the start after part i at the truth, which is above what the package calculates."""
    parts = [[x] for x in throws]
    return changed(parts, i, lambda y: chance_of(y, chance)) if learned else outside(parts, i, chance)


def over_starts(throws, chance, *, learned, weight=lambda _: Fraction(1)):
    """Return the sum over starts, with weights."""
    starts = range(1 if learned else 0, len(throws))
    shift = 0 if learned else 1
    return sum((weight(i + shift) * fortune(throws, i, chance, learned=learned) for i in starts), Fraction(0))


def best(chance, value, throws=(), n=N):
    """Return the largest mean that anybody reaches who stops by looking, after n throws at the latest."""
    now = value(throws)
    if len(throws) == n:
        return now
    later = chance * best(chance, value, (*throws, 1), n) + (1 - chance) * best(chance, value, (*throws, 0), n)
    return max(now, later)


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("learned", [True, False])
def test_sums_over_starts_have_a_mean_of_at_most_their_number_also_of_units_that_stop(chance, learned):
    most = N - 1 if learned else N
    assert best(chance, lambda x: over_starts(x, chance, learned=learned)) <= most


@pytest.mark.parametrize("learned", [True, False])
def test_a_sum_that_is_divided_by_the_starts_before_a_night_chosen_by_looking_is_found(learned):
    chance, first = CHANCES[1], 1 if learned else 0

    def value(throws):
        n = len(throws) - first
        return over_starts(throws, chance, learned=learned) / n if n > 0 else Fraction(0)

    assert best(chance, value) > 1


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("learned", [True, False])
def test_sums_with_weights_have_a_mean_of_at_most_one_on_any_night(chance, learned):
    def test(throws):
        return over_starts(throws, chance, learned=learned, weight=lambda i: Fraction(weight_of(i)))

    assert best(chance, test) <= 1


def test_the_package_calculates_these_sums_from_below():
    """With the largest likelihood in place of that at the truth, or at the reference."""
    low = high = np.array([0.5, 0.5])
    for throws in [(1, 0, 0, 1, 1), (0, 0, 0, 0, 0), (1, 1, 1, 0, 0)]:
        stream = streamed([[x] for x in throws])
        for learned in (True, False):
            plan = Plan(stream.rows, 100, None if learned else (low, high))
            exact = over_starts(throws, CHANCES[1], learned=learned, weight=lambda i: Fraction(weight_of(i)))
            assert plan.log_test(stream) <= log(exact)
            if not learned:
                assert plan.log_test(stream) == pytest.approx(log(exact), abs=1e-9)


def weight_of_cycle(k):
    return Fraction(9, 10) if k == 1 else Fraction(1, 10) / (k * (k - 1))


def begun_anew(chance, weight, *, learned):
    """Return the largest mean at a fixed night of somebody who begins a unit anew whenever that looks best."""

    @cache
    def mean(throws, first, k):
        if len(throws) == N:
            n = N - first - learned
            return weight(k) * over_starts(throws[first:], chance, learned=learned) / n if n > 0 else Fraction(0)
        after = 0
        for x in (0, 1):
            seen = (*throws, x)
            after += (chance if x else 1 - chance) * max(mean(seen, first, k), mean(seen, len(seen), k + 1))
        return after

    return mean((), 0, 1)


@pytest.mark.parametrize("learned", [True, False])
def test_whoever_begins_a_unit_anew_by_looking_wins_nothing(learned):
    assert begun_anew(CHANCES[1], weight_of_cycle, learned=learned) <= 1
    for k in (1, 2, 5):
        value = e_value(Won(0.0, 0.0, 0, False, k), 1, "fixed")
        assert value == pytest.approx(float(weight_of_cycle(k)), rel=1e-12)


@pytest.mark.parametrize("learned", [True, False])
def test_units_that_begin_anew_at_full_weight_are_found(learned):
    assert begun_anew(CHANCES[1], lambda _: Fraction(1), learned=learned) > 1

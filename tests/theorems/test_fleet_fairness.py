"""Statement W5 in fractions: e-values of a unit have means of at most one, whoever stops it or begins it anew.

An adversary sees all throws of a fair or biased coin so far, each of which is a part. Below are the rules that would be
wrong, with what they would lead to.
"""

from fractions import Fraction
from functools import cache
from math import log

import numpy as np
import pytest
from watch_games import chance_of, changed, outside, streamed

from plumdp.confidence.bounded_means import multiplied
from plumdp.watching.fleets import Won, e_value
from plumdp.watching.plan import Plan, weight_of_start

N = 6
CHANCES = (Fraction(1, 10), Fraction(1, 2))


def wealth(throws, i, chance, *, learned):
    """Return the wealth of the start after part i at the truth, which is above what the package calculates."""
    parts = [[x] for x in throws]
    return changed(parts, i, lambda y: chance_of(y, chance)) if learned else outside(parts, i, chance)


def over_starts(throws, chance, *, learned, weight=lambda _: Fraction(1)):
    """Return the sum over starts, with weights."""
    starts = range(1 if learned else 0, len(throws))
    shift = 0 if learned else 1
    return sum((weight(i + shift) * wealth(throws, i, chance, learned=learned) for i in starts), Fraction(0))


def weights_of(n):
    """Return weights of n starts in proportion to those of the package that sum to one, so that nothing is spared."""
    total = sum(Fraction(weight_of_start(i)) for i in range(1, n + 1))
    return lambda i: Fraction(weight_of_start(i)) / total if i <= n else Fraction(0)


def best(chance, value, throws=(), n=N):
    """Return the largest mean that anybody reaches who stops by looking, after n throws at the latest."""
    now = value(throws)
    if len(throws) == n:
        return now
    later = chance * best(chance, value, (*throws, 1), n) + (1 - chance) * best(chance, value, (*throws, 0), n)
    return max(now, later)


@pytest.mark.parametrize("learned", [True, False])
def test_a_sum_that_is_divided_by_the_starts_of_a_unit_that_stopped_is_found(learned):
    """Its nights are counted by its own parts: whoever stops it by looking chooses their number."""
    chance, first = CHANCES[1], 1 if learned else 0

    def value(throws):
        n = len(throws) - first
        return over_starts(throws, chance, learned=learned) / n if n > 0 else Fraction(0)

    assert best(chance, value) > 1


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("learned", [True, False])
def test_sums_with_weights_have_a_mean_of_at_most_one_whenever_a_unit_stops(chance, learned):
    n = N - 1 if learned else N
    assert best(chance, lambda x: over_starts(x, chance, learned=learned, weight=weights_of(n))) <= 1


@pytest.mark.parametrize("limit", [Fraction(3, 10), Fraction(1, 2)])
def test_bets_on_the_value_with_the_last_weight_have_a_mean_of_at_most_one_whenever_a_unit_stops(limit):
    """The e-value of a unit is its sum over starts times the smallest weight of a start."""

    def test(throws):
        total = Fraction(0)
        for x in throws:
            total = (total + 1) * multiplied(Fraction(1, 2), x, limit)
        return total * weights_of(N)(len(throws)) if throws else total

    assert best(limit, test) <= 1


def test_weights_of_starts_fall_and_sum_to_one():
    weights = [Fraction(32, (31 + i) * (32 + i)) for i in range(1, 1000)]  # 32 / (31 + i) - 32 / (32 + i)
    assert sum(weights) == 1 - Fraction(32, 32 + 999)
    assert [weight_of_start(i) for i in range(1, 1000)] == pytest.approx([float(each) for each in weights], rel=1e-15)
    assert weights == sorted(weights, reverse=True)


def test_the_package_calculates_these_sums_from_below():
    """With the largest likelihood in place of that at the truth, or at the reference."""
    low = high = np.array([0.5, 0.5])
    for throws in [(1, 0, 0, 1, 1), (0, 0, 0, 0, 0), (1, 1, 1, 0, 0)]:
        stream = streamed([[x] for x in throws])
        for learned in (True, False):
            plan = Plan(stream.rows, 100, None if learned else (low, high))
            exact = over_starts(throws, CHANCES[1], learned=learned, weight=lambda i: Fraction(weight_of_start(i)))
            assert plan.log_test(stream) <= log(exact)
            if not learned:
                assert plan.log_test(stream) == pytest.approx(log(exact), abs=1e-9)


def weight_of_cycle(k):
    return Fraction(9, 10) if k == 1 else Fraction(1, 10) / (k * (k - 1))


def begun_anew(chance, weight, *, learned, n_starts):
    """Return the largest mean at a fixed night of somebody who begins a unit anew whenever that looks best."""

    @cache
    def mean(throws, first, k):
        if len(throws) == N:
            return weight(k) * over_starts(throws[first:], chance, learned=learned, weight=weights_of(n_starts))
        after = 0
        for x in (0, 1):
            seen = (*throws, x)
            after += (chance if x else 1 - chance) * max(mean(seen, first, k), mean(seen, len(seen), k + 1))
        return after

    return mean((), 0, 1)


@pytest.mark.parametrize("n_starts", [1, N - 1])
@pytest.mark.parametrize("learned", [True, False])
def test_whoever_begins_a_unit_anew_by_looking_wins_nothing(learned, n_starts):
    assert begun_anew(CHANCES[1], weight_of_cycle, learned=learned, n_starts=n_starts) <= 1
    for k in (1, 2, 5):
        value = e_value(Won(0.0, k), "fixed")
        assert value == pytest.approx(float(weight_of_cycle(k)), rel=1e-12)


@pytest.mark.parametrize("learned", [True, False])
def test_units_that_begin_anew_at_full_weight_are_found(learned):
    assert begun_anew(CHANCES[1], lambda _: Fraction(1), learned=learned, n_starts=1) > 1

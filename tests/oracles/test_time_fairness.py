"""Tests over time are fair at the truth, in fractions, whoever ends the parts: and what would make them unfair.

A coin is thrown seven times, and every sequence is looked at. A part may end by what was seen in it, and the test after
it rests on predictions (k + 1/2)/(n + 1) of both stretches, as those of a class do.
"""

from fractions import Fraction
from itertools import product
from math import exp, log, prod

import numpy as np
import pytest
from time_games import SPACE, TABLE, Throws

from plumdp.fit import time_tests
from plumdp.fit.time_tests import SeenOverTime, pilots_of, weight_of

N = 7
CHANCES = (Fraction(1, 10), Fraction(1, 3), Fraction(1, 2))


def predicted(throws):
    """Return the product of predictions, each by what was seen before in the stretch."""
    seen, product_of = [0, 0], Fraction(1)
    for heads in throws:
        product_of *= (seen[heads] + Fraction(1, 2)) / (sum(seen) + 1)
        seen[heads] += 1
    return product_of


def chance_of(throws, chance):
    return prod((chance if heads else 1 - chance for heads in throws), start=Fraction(1))


def since(throws, cut, chance):
    return predicted(throws[cut:]) / chance_of(throws[cut:], chance)


def changed(throws, cut, chance, pilot=0):
    """Return the test of a change; predictions of the first stretch know the pilot, and go on from it."""
    before = predicted(throws[:cut]) / predicted(throws[:pilot])
    return before * predicted(throws[cut:]) / chance_of(throws[pilot:], chance)


def mean(value, chance):
    return sum(chance_of(throws, chance) * value(throws) for throws in product((0, 1), repeat=N))


def with_first_heads(throws):
    return throws.index(1) + 1 if 1 in throws else N


def when_ahead(throws):
    return next(t for t in range(1, N) if t == 4 or 2 * sum(throws[:t]) > t)


def before_first_heads(throws):
    return throws.index(1) if 1 in throws else N


def where_it_looks_best(throws):
    def gap(cut):
        return abs(Fraction(sum(throws[:cut]), cut) - Fraction(sum(throws[cut:]), N - cut))

    return max(range(1, N), key=gap)


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("cut", [lambda _: 2, with_first_heads, when_ahead])
def test_parts_that_end_by_what_was_seen_in_them_are_fair(cut, chance):
    assert mean(lambda throws: since(throws, cut(throws), chance), chance) == 1
    assert mean(lambda throws: changed(throws, cut(throws), chance), chance) == 1


@pytest.mark.parametrize("pilot", [0, 1, 2])
def test_a_pilot_is_fair_if_nobody_chose_it(pilot):
    assert mean(lambda throws: changed(throws, 4, CHANCES[1], pilot), CHANCES[1]) == 1


def test_weights_of_boundaries_and_of_their_pilots_sum_to_at_most_one():
    for m in range(9):
        of_size = sum(Fraction(weight_of(i)) for i in range(2**m, 2 ** (m + 1)))
        assert of_size == pytest.approx(1 / ((m + 1) * (m + 2)), rel=1e-12)
    for i in range(1, 5000):
        assert sum(Fraction(weight) for _, weight in pilots_of(i)) == 1
        assert all(8 * size <= i for size, _ in pilots_of(i))


# Errors: what a boundary or pilot must not know


def test_a_part_that_ends_before_heads_is_found():
    """Whoever files slow outcomes in the next part has told this one what they were."""
    chance = CHANCES[0]
    assert mean(lambda throws: since(throws, before_first_heads(throws), chance), chance) > 3
    assert mean(lambda throws: changed(throws, before_first_heads(throws), chance), chance) > 1


def test_a_cut_by_looking_is_found():
    assert mean(lambda throws: changed(throws, where_it_looks_best(throws), CHANCES[2]), CHANCES[2]) > 2


def test_a_pilot_that_is_replaced_by_looking_is_found():
    def better(throws):
        return max(changed(throws, 4, CHANCES[1], pilot) for pilot in (0, 2))

    assert mean(better, CHANCES[1]) > Fraction(5, 4)


# The package


def thrown(throws, cuts):
    parts = [[(0, heads) for heads in throws[a:b]] for a, b in zip((0, *cuts), (*cuts, N), strict=True)]
    return Throws(parts)


def test_evidence_of_a_class_is_that_of_predictions_against_its_likeliest_law():
    for throws in product((0, 1), repeat=N):
        time, total = thrown(throws, (3,)).counted()
        evidence, where = SeenOverTime.of(TABLE, time, total).of_classes()
        heads = Fraction(sum(throws), N)
        exact = weight_of(1) * changed(throws, 3, heads if 0 < heads < 1 else Fraction(1, 2))
        if heads in (0, 1):  # the likeliest law has no other outcome
            exact /= 2**N
        assert evidence[0] == pytest.approx(log(exact), abs=1e-9)
        assert evidence[1] == pytest.approx(log(weight_of(1)), abs=1e-9)  # of the other coin nothing was seen
        assert where[0] == 0


def expectation_of_terms(chance):
    """Return the mean of the tests of each boundary by normal laws, over their weights."""
    sums = np.zeros(4)
    for throws in product((0, 1), repeat=N):
        time, total = thrown(throws, (2, 4)).counted()
        seen = SeenOverTime.of(TABLE, time, total)
        terms = [term for i in range(2) for term in time_tests._terms(seen, i, SPACE)]
        logs = np.log(TABLE.values(np.array([float(chance)]))[0])
        weight = [weight_of(seen.ends[i]) / 2 for i, *_ in terms]
        values = [exp(gained - lost @ logs) for _, gained, lost in terms]
        sums += float(chance_of(throws, chance)) * np.array(values) / weight
    return sums


@pytest.mark.slow
def test_tests_by_normal_laws_have_an_expectation_of_at_most_one():
    sums = expectation_of_terms(Fraction(1, 3))
    assert (sums <= 1).all()
    assert (sums > 0.2).all()


def test_a_law_that_knows_what_comes_is_found(monkeypatch):
    """The law after a boundary must not know what came after it: here it is as likely as the best one."""

    def best(table, seen, *_):
        is_seen = seen > 0
        return float(seen[is_seen] @ np.log(seen[is_seen] / table.visits(seen)[table.group][is_seen]))

    monkeypatch.setattr(time_tests, "log_evidence", best)
    assert expectation_of_terms(Fraction(1, 3)).max() > 1.1

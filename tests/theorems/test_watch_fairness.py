"""Statements W2 and W3 in fractions, over all sequences of a coin: sums over starts grow by at most one a part.

Whoever ends the parts, or the watch, sees everything before. Below are the rules that would be wrong, with what they
would lead to.
"""

from fractions import Fraction
from functools import cache
from math import exp, log
from types import SimpleNamespace

import numpy as np
import pytest
from coin_model import COIN
from time_games import COINS, FIRST, SPACE, TABLE
from watch_games import (
    COIN_ROWS,
    HALF,
    average,
    chance_of,
    changed,
    counted,
    cut_by,
    largest,
    mean_over,
    outside,
    sequences,
    streamed,
    weights_beside,
)

from plumdp.certifying import since
from plumdp.confidence.bounded_means import FRACTIONS, multiplied
from plumdp.data.seen import Seen
from plumdp.fit.time_tests import weight_of
from plumdp.watching import detectors, rows, watch
from plumdp.watching.detectors import ValueBets
from plumdp.watching.plan import Alarm, Plan, WatchState
from plumdp.watching.rows import watched_rows
from plumdp.watching.stream import Stream

pytestmark = pytest.mark.slow

N = 7
CHANCES = (Fraction(1, 10), Fraction(1, 3), Fraction(1, 2))


def two(_rest, _before):
    return 2


def with_first_heads(rest, _before):
    return rest.index(1) + 1 if 1 in rest else len(rest)


def more_after_heads(_rest, before):
    return 1 if sum(before) else 3


RULES = [(two, two), (with_first_heads, two), (two, more_after_heads)]


@pytest.mark.parametrize("chance", CHANCES)
@pytest.mark.parametrize("rules", RULES)
def test_the_wealth_of_a_change_is_fair_whoever_ends_the_parts(rules, chance):
    for i in (1, 2):
        fair = mean_over(N, chance, lambda x, i=i: changed(cut_by(x, *rules), i, lambda y: chance_of(y, chance)))
        assert fair == 1
        assert mean_over(N, chance, lambda x, i=i: outside(cut_by(x, *rules), i, chance)) == 1


def test_the_package_calculates_these_wealths_from_below():
    low = high = np.array([1 / 3, 2 / 3])
    for throws in sequences(N):
        parts = cut_by(throws, two, two)
        stream = streamed(parts)
        learned = detectors.log_changed(stream.starts(has_pilots=True))[:, 0]
        known = detectors.log_outside(stream.starts(has_pilots=False), low, high)[:, 0]
        assert learned == pytest.approx([log(changed(parts, i, largest)) for i in (1, 2)], abs=1e-9)
        assert known == pytest.approx([log(outside(parts, i, Fraction(1, 3))) for i in (0, 1, 2)], abs=1e-9)
        assert all(learned[i - 1] <= log(changed(parts, i, largest)) for i in (1, 2))


def first_alarm(sums, level):
    """Return the number of parts after which a sum first reaches a level, or of all."""
    return next((n for n, each in enumerate(sums, start=1) if each >= level), len(sums))


@pytest.mark.parametrize("chance", CHANCES)
def test_sums_of_a_known_reference_grow_by_one_a_part_also_up_to_an_alarm(chance):
    """So the mean number of parts up to an alarm at 1/α is at least 1/α (W2 (i)): here parts are single throws."""

    def at_alarm(throws):
        sums = [
            sum((outside([[x] for x in throws[:n]], i, chance) for i in range(n)), Fraction(0)) for n in range(1, N + 1)
        ]
        n = first_alarm(sums, 4)
        return sums[n - 1] - n

    assert mean_over(N, chance, at_alarm) == 0


@pytest.mark.parametrize("chance", CHANCES)
def test_an_alarm_by_a_learned_reference_in_n_parts_has_a_probability_of_at_most_n_times_alpha(chance):
    level = 3

    def alarms_by(throws, n):
        for t in range(2, n + 1):
            parts = [[x] for x in throws[:t]]
            if sum(changed(parts, i, largest) for i in range(1, t)) >= level:
                return 1
        return 0

    for n in range(2, N + 1):
        assert mean_over(n, chance, lambda x, n=n: Fraction(alarms_by(x, n))) <= Fraction(n, level)


def test_with_restarts_a_learned_reference_has_at_most_twice_as_many_false_alarms():
    """N given a restart is at least as large as one of 1, …, M at random, for which the mean number is largest."""
    level = 50
    most = [Fraction(0)]
    for n in range(1, 6 * level):
        most.append(sum((1 + most[n - k] for k in range(1, min(n, level) + 1)), Fraction(0)) / level)
    assert all(number <= Fraction(2 * n, level) for n, number in enumerate(most))
    assert most[level] > Fraction(16, 10)  # so that one in 1/α parts would not be true


LIMIT = Fraction(3, 4)  # of the mean loss, an exact float


def bets_after(throws, fraction, chance_limit=LIMIT):
    """Return the sum over starts of the capital of one fraction, each throw being a part."""
    total = Fraction(0)
    for x in throws:
        total = (total + 1) * multiplied(Fraction(fraction), x, chance_limit)
    return total


@pytest.mark.parametrize("fraction", FRACTIONS[:6])
def test_sums_of_bets_on_the_value_grow_by_at_most_one_a_part_if_means_move_below_the_limit(fraction):
    assert mean_over(N, LIMIT, lambda x: bets_after(x, fraction)) == N
    for step in (Fraction(1, 4), Fraction(1, 2)):  # the mean depends on what came before, and is never above the limit

        def probability(throws, step=step):
            value, chance = Fraction(1), LIMIT
            for x in throws:
                value *= chance if x else 1 - chance
                chance = LIMIT - step if x else LIMIT
            return value

        moving = sum(probability(x) * bets_after(x, fraction) for x in sequences(N))
        assert moving <= N


def test_the_package_bets_these_fractions_from_below():
    for throws in list(sequences(5))[::3]:
        bets = ValueBets.against(float(LIMIT))
        for number, x in enumerate(throws):
            bets = bets.add(f"{number}", np.array([float(x)]))
        exact = [bets_after(throws, fraction) for fraction in FRACTIONS]
        assert np.exp(bets.sums) == pytest.approx([float(each) for each in exact], rel=1e-9)
        assert all(exp(own) <= float(each) for own, each in zip(bets.sums, exact, strict=True))
        assert exp(bets.evidence) == pytest.approx(float(sum(exact) / len(exact)), rel=1e-9)


# Rules that would be wrong


def before_first_heads(rest, _before):
    return rest.index(1) if 1 in rest else len(rest)


def test_outcomes_that_are_filed_in_the_next_part_are_found():
    """A part that ends just before heads has told what comes next."""
    chance = CHANCES[0]
    cut = mean_over(N, chance, lambda x: outside(cut_by(x, before_first_heads), 1, chance))
    assert cut > Fraction(12, 10)


def test_a_start_that_is_moved_by_looking_is_found():
    def best(throws):
        return max(changed([throws[:cut], throws[cut:]], 1, lambda y: chance_of(y, CHANCES[2])) for cut in range(1, N))

    assert mean_over(N, CHANCES[2], best) > Fraction(12, 10)


def test_the_better_of_two_pilots_is_found():
    def best(throws):
        parts = [throws[:2], throws[2:4], throws[4:]]
        return max(changed(parts, 2, lambda y: chance_of(y, CHANCES[1]), pilot) for pilot in (0, 1))

    assert mean_over(N, CHANCES[1], best) > Fraction(11, 10)


def test_a_law_after_a_change_that_knows_what_comes_is_found(monkeypatch):
    """The law after a start has the mean of all data."""
    monkeypatch.setattr(
        detectors,
        "_means",
        lambda starts: detectors._towards_equal(starts.total + 0 * starts.before + 0.5, starts.first),
    )
    chance = CHANCES[1]

    def value(throws):
        starts = streamed([throws[:1], throws[1:]]).starts(has_pilots=True)
        best = detectors.log_changed(starts)[0, 0] + log(largest(throws)) - log(chance_of(throws, chance))
        return Fraction(exp(best))

    assert mean_over(N, chance, value) > Fraction(11, 10)


def test_classes_that_are_not_divided_are_found():
    """Two coins, each with a wealth of its own: the sum of both is not fair, and their average is."""
    first = np.array([0, 2, 4])
    nothing, seen = np.zeros((1, 4)), np.array([1.0, 0.0, 1.0, 0.0])
    wealths = detectors.log_outside(detectors.Starts(first, nothing, nothing, seen), *2 * [np.full(4, 0.5)])
    exact = 2 * average((1, 0), weights_beside(Fraction(1, 2)))
    assert exp(detectors.log_sum(wealths)) == pytest.approx(float(exact), rel=1e-9)
    assert np.exp(wealths).sum() == pytest.approx(2 * float(exact), rel=1e-9)


def test_a_limit_that_looks_ahead_is_found():
    """The certified bound is the mean of the data that are watched."""

    def looking(throws):
        limit = Fraction(counted(throws)[0] + 1, N + 2) * Fraction(1, 2)
        return bets_after(throws, Fraction(1, 2), limit)

    assert mean_over(N, CHANCES[2], looking) > 2 * N


# Certificates about now (W4): the set since a start excludes the truth once the wealth of the start is 1 / its error


def ever_missed(weight, error=Fraction(1, 2), n=9):
    """Return the probability that the set since some start ever misses a fair coin, which never changes."""

    def is_missed(throws):
        stretches = ((i, throws[i:end]) for i in range(n) for end in range(i + 1, n + 1))
        won = ((i, average(counted(some), [HALF, HALF]) / chance_of(some, CHANCES[2])) for i, some in stretches)
        return Fraction(any(wealth * error * weight(i) >= 1 for i, wealth in won))

    return mean_over(n, CHANCES[2], is_missed)


def test_sets_since_all_starts_hold_at_once_if_each_has_its_share():
    assert ever_missed(lambda i: Fraction(weight_of(i + 1))) <= Fraction(1, 2)


def test_starts_that_all_have_the_whole_error_are_found():
    assert ever_missed(lambda _: Fraction(1)) > Fraction(1, 2)


def test_the_errors_of_all_certificates_about_now_sum_to_at_most_that_of_the_watch(monkeypatch):
    errors = []

    def noted(*_args, confidence, **_options):
        errors.append(1 - confidence)
        raise InterruptedError

    monkeypatch.setattr(since, "certify", noted)
    stream = Stream(watched_rows(COIN))
    for part in range(40):
        stream = stream.add(f"part {part + 1}", Seen(np.ones(COIN.graph.n_transitions, dtype=np.int64)))
    for number in range(len(stream.parts)):
        with pytest.raises(InterruptedError):
            watch.since_part(COIN, stream, number, "", None, 0.9, is_chosen=True)
    assert sum(errors) <= 0.1
    assert errors[0] == pytest.approx(0.05)
    with pytest.raises(InterruptedError):
        watch.since_part(COIN, stream, 3, "", None, 0.9, is_chosen=False)
    assert errors[-1] == pytest.approx(0.1)


def share_of(k, before):
    """Return the share of the error since the k-th beginning, after so many parts, as the package has it."""
    alarms = tuple(Alarm("rows", "", 0.0, "", "", acknowledged=str(i)) for i in range(1, k))
    return Fraction(WatchState(Plan(COIN_ROWS, 100), Stream(COIN_ROWS), alarms=alarms, n=before).share)


def most_missed(share, weight=lambda i: Fraction(weight_of(i)), error=Fraction(1, 2), n=8):
    """Return how probably a set since some start misses a fair coin at most, if the watch begins anew at will."""

    def is_missed(throws, own):
        stretches = ((throws[i:], weight(i + 1)) for i in range(len(throws)))
        return any(average(counted(x), [HALF, HALF]) * error * own * w >= chance_of(x, HALF) for x, w in stretches)

    @cache
    def missed(throws, before, k):
        if is_missed(throws, share(k, before)):
            return Fraction(1)
        if before + len(throws) == n:
            return Fraction(0)
        begun = [(throws, before, k), ((), before + len(throws), k + 1)][: 1 + bool(throws)]
        return max(sum(missed((*x, last), *rest) for last in (0, 1)) / 2 for x, *rest in begun)

    return missed((), 0, 1)


def test_sets_since_all_starts_hold_at_once_also_if_somebody_begins_the_watch_anew_by_looking():
    assert Fraction(1, 10) < most_missed(share_of) <= Fraction(1, 2)


def test_beginnings_that_all_have_the_whole_error_are_found():
    first_alone = most_missed(lambda _k, _before: Fraction(1), weight=lambda i: Fraction(i == 1))
    assert first_alone > Fraction(1, 2)


@pytest.mark.parametrize("lengths", [[1] * 40, [31, 1, 1, 500], [32, 7, 64, 1], [1000, 3, 3]])
def test_shares_of_all_beginnings_sum_to_at_most_one(lengths):
    starts = [sum(Fraction(weight_of(i + 1)) for i in range(length)) for length in lengths]
    shares = [share_of(k, sum(lengths[: k - 1])) for k in range(1, len(lengths) + 1)]
    assert sum(own * of_starts for own, of_starts in zip(shares, starts, strict=True)) <= 1
    assert sum(starts) > 1  # as it would be if each had the whole error


# Parameters that tie several rows: a coin with p, and one with p / 2


def means_of_tied(monkeypatch, chance, evidence=None):
    """Return the means of the wealths of two starts by normal laws, at the truth, which stands for the largest."""

    def at_truth(space, outcomes, affine, cells, start):
        return SimpleNamespace(least=float(cells.values(np.log(outcomes.values(np.array([chance]))[0]))[0]))

    monkeypatch.setattr(rows, "find_agreement", at_truth)
    monkeypatch.setattr(rows, "_SHORT", np.inf)  # all starts are looked at
    if evidence is not None:
        monkeypatch.setattr(rows, "log_evidence", evidence)
    parameters, sums = rows.TiedParameters(TABLE, SPACE, COINS.space, None), np.zeros(2)
    for throws in sequences(6):
        seen = np.zeros((6, len(TABLE.outcomes)))
        weight = 1.0
        for t, heads in enumerate(throws):
            once = np.zeros(COINS.graph.n_transitions, dtype=np.int64)
            once[FIRST[t % 2] + 1 - heads] = 1
            seen[t] = TABLE.pool(once)
            weight *= chance / (1 + t % 2) if heads else 1 - chance / (1 + t % 2)
        before = np.array([seen[:2].sum(axis=0), seen[:4].sum(axis=0)])
        pilot = np.array([0 * before[0], before[0]])
        starts = detectors.Starts(np.zeros(0, dtype=np.int64), before, pilot, seen.sum(axis=0))
        sums += weight * np.exp(parameters.log_wealths(starts, 0.0))
    return sums


def test_wealths_of_tied_parameters_have_an_expectation_of_at_most_one(monkeypatch):
    sums = means_of_tied(monkeypatch, 0.3)
    assert (sums <= 1).all()
    assert (sums > 0.2).all()


def test_evidence_that_knows_what_comes_is_found(monkeypatch):
    def best(table, seen, *_):
        is_seen = seen > 0
        return float(seen[is_seen] @ np.log(seen[is_seen] / table.visits(seen)[table.group][is_seen]))

    assert means_of_tied(monkeypatch, 0.3, best).max() > 1.5

"""How often right numbers of a model are excluded, and wrong ones are not: calculated exactly where possible.

Size: with all numbers right, the probability that any is ever excluded is at most the error. Power: a number that is
off by five standard errors is excluded nine times of ten.
"""

from bisect import bisect_left
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from evidence import until_refuted
from row_models import row_model
from scipy.stats import binom
from tiers import size

import plumdp as pl
from plumdp.confidence.constants import excluded_numbers, find_fixed_numbers
from plumdp.learning.learn import learn
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.region.conflict import Conflict

pytestmark = pytest.mark.slow

STUDIES = [
    size("aircraft:6,4,1", "aircraft:20,10"),
    "betting:25",
    "engagement:10",
    "rover:10,10,2",
    "glider:8,8,6,6",
    "parallel:5",
]


def coins(*numbers):
    """Return a model with an action for each coin, which shows heads with the given number."""
    return row_model([[number, 1 - number] for number in numbers], pl.ParameterSpace.unit())


def judge(model, sampling, error):
    """Return a function: whether so many heads and tails of each coin exclude a number."""
    fixed = find_fixed_numbers(model)
    empty = [0] * (model.graph.n_transitions - 2 * (model.graph.first_choice[1]))

    def is_excluded(*seen):
        counts = pl.TransitionCounts(model.graph, np.array([n for pair in seen for n in pair] + empty), sampling)
        return bool(excluded_numbers(model, fixed, counts, error=error, confidence=1 - error))

    return is_excluded


def acceptance(is_excluded, n, number):
    """Return the least and the largest number of heads of n that do not exclude the number."""
    middle = round(n * number)
    assert not is_excluded((middle, n - middle))
    high = middle + bisect_left(range(middle, n + 1), True, key=lambda k: is_excluded((k, n - k))) - 1
    down = range(middle, -1, -1)
    return down[bisect_left(down, True, key=lambda k: is_excluded((k, n - k))) - 1], high


def size_of(is_excluded, n, number):
    """Return the probability that n tosses exclude the number, if it is right; and that on each side."""
    low, high = acceptance(is_excluded, n, number)
    below, above = binom.cdf(low - 1, n, number), binom.sf(high, n, number)
    return below + above, below, above


# Size


@pytest.mark.parametrize("number", [Fraction(1, 2), Fraction(1, 10), Fraction(97, 100)])
@pytest.mark.parametrize("error", [0.1, 1e-3])
def test_a_right_number_is_excluded_by_a_fixed_sample_with_at_most_the_error(number, error):
    is_excluded = judge(coins(number), "independent", error)
    for n in (10, 100, 1000, 10_000):
        size, below, above = size_of(is_excluded, n, float(number))
        assert size <= error
        assert max(below, above) <= error / 2
    assert size >= 0.8 * error  # of the largest sample: neither is it too shy
    assert min(below, above) >= 0.3 * error  # on both sides


@pytest.mark.night
@pytest.mark.parametrize("number", [Fraction(1, 2), Fraction(1, 10)])
def test_looking_after_every_toss_excludes_a_right_number_with_at_most_the_error(number):
    """By dynamic programming over all sequences of tosses; the interval of a fixed sample would fail here."""
    p = float(number)

    def ever(sampling, error, n):
        is_excluded = judge(coins(number), sampling, error)
        alive, excluded = np.ones(1), 0.0
        for m in range(1, n + 1):
            step = np.append(alive * (1 - p), 0) + np.append(0, alive * p)
            low, high = acceptance(is_excluded, m, p)
            is_inside = (np.arange(m + 1) >= low) & (np.arange(m + 1) <= high)
            excluded += step[~is_inside].sum()
            alive = np.where(is_inside, step, 0)
        return excluded

    assert 0.2 * 0.1 <= ever("adaptive", 0.1, size(60, 150)) <= 0.1
    assert ever("independent", 0.1, size(60, 150)) > 0.1


@pytest.mark.night
@pytest.mark.parametrize("numbers", [(Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 2), Fraction(1, 3))])
def test_no_way_of_choosing_the_next_coin_excludes_a_right_number_with_more_than_the_error(numbers):
    """The worst case over all policies and ends, exactly: at each moment the coin is tossed that is more promising.

    Two coins of one number are tested together as well, and all tests share the error.
    """
    error, most = 0.3, size(10, 16)
    is_excluded = judge(coins(*numbers), "adaptive", error)

    @cache
    def worst(*seen):
        if is_excluded(seen[:2], seen[2:]):
            return 1.0
        if sum(seen) == most:
            return 0.0
        one = [[int(i == j) for j in range(4)] for i in range(4)]
        after = [worst(*(a + b for a, b in zip(seen, step, strict=True))) for step in one]
        p, q = map(float, numbers)
        return max(p * after[0] + (1 - p) * after[1], q * after[2] + (1 - q) * after[3])

    assert 0 < worst(0, 0, 0, 0) <= error


def test_many_numbers_share_the_error():
    """The samples of eight coins are independent; eight tests at the whole error would exclude one of them by far
    more often."""
    numbers, n, error = [Fraction(1, i) for i in range(2, 10)], 10_000, 0.1
    is_excluded = judge(coins(*numbers), "independent", error)
    kept = 1.0
    for i, number in enumerate(numbers):
        as_expected = [(round(n * other), n - round(n * other)) for other in numbers]

        def alone(pair, i=i, others=as_expected):
            return is_excluded(*others[:i], pair, *others[i + 1 :])

        kept *= 1 - size_of(alone, n, float(number))[0]
    assert 0.7 * error <= 1 - kept <= error


def test_rows_and_their_class_share_the_error():
    rng, n = np.random.default_rng(1), size(400, 2000)
    is_excluded = judge(coins(*[Fraction(1, 2)] * 20), "independent", 0.1)
    heads = rng.binomial(100, 0.5, (n, 20))
    games = (is_excluded(*[(k, 100 - k) for k in row]) for row in heads.tolist())
    failures = until_refuted(games, rate=0.1)
    assert n / 100 <= failures.happened
    assert not failures.is_refuted


# Power


def power(sampling, n, shift, confidence, number=0.5):
    """Return the probability that the model is contradicted if the number is off by so many standard errors."""
    model = coins(Fraction(number))

    def is_contradicted(pair):
        counts = pl.TransitionCounts(model.graph, np.array([*pair, 0, 0]), sampling)
        return isinstance(learn(model, counts, confidence=confidence).region, Conflict)

    low, high = acceptance(is_contradicted, n, number)
    truth = number + shift * np.sqrt(number * (1 - number) / n)
    return binom.cdf(low - 1, n, truth) + binom.sf(high, n, truth)


@pytest.mark.night
@pytest.mark.parametrize("shift", [5, -5])
@pytest.mark.parametrize("number", [0.5, 0.2])
def test_a_number_that_is_five_standard_errors_off_is_excluded_nine_times_of_ten(shift, number):
    """The tests have a fortieth of the error 0.1, which is three standard errors on each side: Φ(5 - 3.02) = 0.976."""
    for n in size((1000,), (1000, 10_000)):
        assert power("independent", n, shift, 0.9, number) >= 0.9
    assert power("independent", 100_000, shift, 0.9, number) >= 0.9
    assert power("independent", 100_000, shift, 0.9) == pytest.approx(0.976, abs=0.01)


@pytest.mark.night
def test_data_that_may_stop_at_any_time_need_a_larger_shift():
    """The radius ln(1/error) + ½ ln(πn/2) at an error of 0.0025 and n = 10^4 is 10.8: 4.65 standard errors."""
    assert power("adaptive", 10_000, 5, 0.9) == pytest.approx(0.64, abs=0.03)
    assert power("adaptive", 10_000, 6.5, 0.9) >= 0.95


# The case studies


def with_fixed_numbers(model, point):
    """Return the model with each expression replaced by its value at a point."""
    table: dict[Fraction, int] = {}
    index = [table.setdefault(value, len(table)) for value in model.expressions.evaluate_exact(model.space, point)]
    numbers = ExpressionTable.build([Polynomial(value) for value in table], model.space.names)
    return replace(model, expressions=numbers, expression=np.array(index, dtype=np.int32)[model.expression])


@pytest.mark.night
@pytest.mark.parametrize("name", STUDIES)
def test_the_case_studies_are_not_contradicted_by_their_own_data(name):
    """As they are, and with all their numbers fixed at the true ones, which are thousands of tests; seeds are fixed."""
    study = pl.case_study(name)
    fixed = with_fixed_numbers(study.model, study.true_point)
    assert len(find_fixed_numbers(fixed)) > 10
    for seed in range(size(2, 5)):
        seen = pl.simulate(study.model, study.true_point, 2000, rng=seed, max_steps=study.max_steps)
        for sampling in ("trajectories", "adaptive"):
            counts = replace(seen, sampling=sampling)
            for model in (study.model, fixed):
                assert not isinstance(learn(model, counts, confidence=0.9).region, Conflict)


@pytest.mark.night
@pytest.mark.parametrize("name", STUDIES)
def test_the_case_studies_are_contradicted_by_data_of_another_point(name):
    study = pl.case_study(name)
    fixed = with_fixed_numbers(study.model, study.true_point)
    space = study.model.space
    truth = space.point(study.true_point)
    vertex = max(space.vertices, key=lambda point: sum(abs(point[name] - truth[name]) for name in space.names))
    other = {name: (truth[name] + vertex[name]) / 2 for name in space.names}
    counts = pl.simulate(study.model, other, 50_000, rng=1, max_steps=study.max_steps)
    region = learn(fixed, counts).region
    assert isinstance(region, Conflict)
    assert "the model says " in region.numbers[0]

"""Bets on whole runs: fair in exact fractions, sizes that know the past alone, and errors summed over all runs."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom
from tiers import size

from plumdp.confidence import run_bets
from plumdp.confidence.run_bets import (
    Draws,
    bet_against,
    capital_at,
    cell_edges,
    difference_ends,
    mean_ends,
    scores_of,
    value_ends,
)

N = size(8, 12)
PATHS = np.array([*product((0.0, 1.0), repeat=N)])
PLANS = [N, 3, 40]


def sizes_of(values, mean, planned, goal=20.0):
    """Return the sizes of all bets against a mean."""
    sizes = np.zeros((2, len(values)))
    bet_against(values, np.zeros(len(values)), mean, goal, planned, np.array([0.5, 0.25]), sizes)
    return sizes


def worst_chance_above(ends, error):
    """Return the largest probability, over many coins, that the end is the chance of heads or more, in fractions."""
    heads, worst = PATHS.sum(axis=1).astype(int), Fraction(0)
    for mean in (Fraction(i, 64) for i in range(1, 64)):
        counts = np.bincount(heads[ends >= float(mean)], minlength=N + 1)
        worst = max(worst, sum(int(n) * mean**k * (1 - mean) ** (N - k) for k, n in enumerate(counts)))
    return worst / Fraction(error)


@pytest.mark.slow
@pytest.mark.parametrize("planned", PLANS)
@pytest.mark.parametrize("error", [0.5, 0.1])
def test_of_all_sequences_of_coins_as_few_as_said_exclude_the_truth(error, planned):
    """Ends count whatever was excluded before, so that the last end is that of an adversary who stops when he likes."""
    ends = np.array([mean_ends(path, path, 2 * error, planned)[0] for path in PATHS])
    assert 0.05 < worst_chance_above(ends, error) <= 1
    lower = np.array([mean_ends(path[:-1], path[:-1], 2 * error, planned)[0] for path in PATHS])
    assert (lower <= ends + 1e-9).all()


@pytest.mark.slow
def test_runs_prespecified_after_looking_exclude_the_truth_too_often():
    """Whoever ends the data at will, and says then that so many runs were planned, has chosen the sizes by outcomes."""
    looks = [6 * 4**i // 3**i for i in range(12)]
    missed = {"after": 0, "before": 0}
    for values in (np.random.default_rng(6).random((200, looks[-1])) < 0.5).astype(float):
        ends = [mean_ends(values[:n], values[:n], 0.2, n)[0] for n in looks]
        missed["after"] += max(ends) >= 0.5
        missed["before"] += mean_ends(values, values, 0.2, looks[-1])[0] >= 0.5
    assert missed["after"] > binom.ppf(0.999, 200, 0.1) >= missed["before"]


@pytest.mark.parametrize("planned", [5, 30, 400])
def test_a_bet_is_fair_at_the_truth_and_never_loses_all(planned):
    rng = np.random.default_rng(planned)
    for mean in (Fraction(1, 50), Fraction(1, 3), Fraction(9, 10)):
        values = (rng.random(30) < float(mean)).astype(float)
        for bet in map(Fraction, sizes_of(values, float(mean), planned).ravel()):
            won, lost = 1 + bet * (1 - Fraction(float(mean))), 1 - bet * Fraction(float(mean))
            assert Fraction(float(mean)) * won + (1 - Fraction(float(mean))) * lost == 1
            assert lost >= Fraction(1, 9)


def test_the_size_of_a_bet_is_fixed_by_the_runs_before_it():
    rng, values = np.random.default_rng(1), np.random.default_rng(2).random(30)
    whole = sizes_of(values, 0.6, 30, goal=1e9)
    for n in range(30):
        other = np.append(values[:n], rng.random(30 - n))
        assert np.array_equal(sizes_of(other, 0.6, 30, goal=1e9)[:, : n + 1], whole[:, : n + 1])


def test_the_capital_is_no_larger_than_in_exact_fractions():
    rng = np.random.default_rng(3)
    values, mean = rng.random(40), 0.35
    sizes = sizes_of(values, mean, 40, goal=1e9)
    capital = [Fraction(1), Fraction(1)]
    largest = Fraction(1)
    for i, value in enumerate(values):
        for part in (0, 1):
            capital[part] *= 1 + Fraction(sizes[part, i]) * (Fraction(value) - Fraction(mean))
        largest = max(largest, sum(capital) / 2)
    shown = Fraction(capital_at(values, sizes, mean)) * (1 - Fraction(run_bets._off(40)))
    assert largest * (1 - Fraction(1, 10**9)) < shown <= largest


def test_an_excluded_cell_says_nothing_of_cells_below_it(monkeypatch):
    """Here the capital is large in all cells but the fifth; halving the cells would stop at the last one."""
    edges = cell_edges(9, (0.0, 1.0))
    monkeypatch.setattr(run_bets, "bet_against", lambda x, least, mean, *_: 0.0 if mean == edges[5] else 1e9)
    monkeypatch.setattr(run_bets, "capital_at", lambda x, sizes, mean: 0.0)
    assert mean_ends(np.ones(9), np.ones(9), 0.1, 9)[0] == edges[4]


def test_cells_do_not_depend_on_the_data_and_are_closest_near_the_ends():
    edges = cell_edges(100, (0.0, 1.0))
    assert (edges[0], edges[-1], len(edges)) == (0.0, 1.0, 81)
    assert (np.diff(edges) > 0).all()
    assert np.diff(edges).max() < 0.02
    assert edges[1] < 0.001


def test_runs_that_are_not_known_count_for_both_ends():
    rng = np.random.default_rng(4)
    known = (rng.random(80) < 0.6).astype(float)
    is_open = rng.random(80) < 0.2
    lower, upper = np.where(is_open, 0.0, known), np.where(is_open, 1.0, known)
    ends = mean_ends(lower, upper, 0.05, 80)
    assert ends == (mean_ends(lower, lower, 0.05, 80)[0], mean_ends(upper, upper, 0.05, 80)[1])
    whole = mean_ends(known, known, 0.05, 80)
    assert ends[0] < whole[0] < whole[1] < ends[1]


@pytest.mark.slow
@pytest.mark.parametrize("planned", [10, 60, 600])
@pytest.mark.parametrize("error", [0.5, 0.1])
def test_an_opponent_who_picks_the_plan_and_the_end_misses_as_rarely_as_said(error, planned):
    rng, n = np.random.default_rng([planned, int(10 * error)]), size(300, 20_000)
    laws = {
        0.5: lambda: rng.random(60) < 0.5,
        0.02: lambda: rng.random(60) < 0.02,
        0.75: lambda: rng.beta(0.3, 0.1, 60),
    }
    for mean, draw in laws.items():
        missed = 0
        for _ in range(n // len(laws)):
            values = draw().astype(float)
            lower, upper = mean_ends(values, values, error, planned)
            missed += not lower <= mean <= upper
        assert missed <= binom.ppf(0.999, n // len(laws), error)


@pytest.mark.parametrize(("mean", "widest"), [(0.77, 1.25), (0.5, 1.2)])
def test_a_plan_that_comes_true_is_nearly_as_narrow_as_a_normal_interval(mean, widest):
    rng, widths = np.random.default_rng(5), []
    for _ in range(20):
        values = (rng.random(300) < mean).astype(float)
        lower, upper = mean_ends(values, values, 0.05, 300)
        widths.append((upper - lower) / (2 * 1.96 * np.sqrt(mean * (1 - mean) / 300)))
    assert np.mean(widths) < widest


def draws(is_first, chance, task=None):
    n = len(is_first)
    return Draws(np.asarray(is_first, bool), np.full(n, chance), np.zeros(n, np.int64) if task is None else task)


def missed_differences(n_games, error, *, said=0.5, actual=0.5, n_tasks=1, n=80, cut=0.0):
    """Return how often the difference of two arms is missed; ``cut`` is the share of the second's wins not seen."""
    rng, missed = np.random.default_rng([n, n_tasks]), 0
    for _ in range(n_games):
        task, is_first = rng.integers(0, n_tasks, n), rng.random(n) < actual
        chance = np.where(is_first, 0.7, 0.6) + 0.2 * (task - (n_tasks - 1) / 2)
        value = (rng.random(n) < chance).astype(float)
        is_open = ~is_first & (value == 1) & (rng.random(n) < cut)
        ends = difference_ends(np.where(is_open, 0.0, value), value, draws(is_first, said, task), error, n)
        missed += not ends[0] <= 0.1 <= ends[1]
    return missed


@pytest.mark.slow
@pytest.mark.parametrize("error", [0.5, 0.1])
@pytest.mark.parametrize("options", [{}, {"n_tasks": 3}, {"actual": 0.2, "said": 0.2}, {"cut": 0.5}])
def test_differences_of_drawn_arms_are_missed_as_rarely_as_said(options, error):
    n = size(60, 5000)
    assert missed_differences(n, error, **options) <= binom.ppf(0.999, n, error)


@pytest.mark.slow
@pytest.mark.parametrize("is_named", [False, True])
def test_arms_whose_chances_depend_on_the_task_are_missed_as_rarely_as_said(is_named):
    """Both arms are worth one half; sizes that knew the chance of their run missed half of all differences at 0.1 %."""
    n, missed, rates, chances = size(30, 2000), np.zeros(3), np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0.5, 0.02])
    for seed in range(n):
        rng = np.random.default_rng(seed)
        task = rng.integers(0, 2, 100)
        is_first = rng.random(100) < chances[task]
        value = (rng.random(100) < rates[task, 1 - is_first]).astype(float)
        drawn = Draws(is_first, chances[task], task if is_named else np.zeros(100, np.int64))
        ends = [value_ends(value, value, each, 0.5, 100) for each in (drawn, drawn.turned)]
        ends.append(difference_ends(value, value, drawn, 0.5, 100))
        missed += [not low <= truth <= high for (low, high), truth in zip(ends, (0.5, 0.5, 0.0), strict=True)]
    assert (missed <= binom.ppf(0.999, n, 0.5)).all()


def test_a_wrong_chance_of_arms_is_found():
    """The first score is 2 (y - 1/2) or the opposite with a chance of 1/2; drawn with 11/20, its mean is 0.51."""
    mean = 0.0
    for arm, weight, value in ((True, 0.55, 0.8), (False, 0.45, 0.3)):
        won, lost = (scores_of(np.array([y]), draws([arm], 0.5))[0][0] for y in (1.0, 0.0))
        mean += weight * (value * won + (1 - value) * lost)
    assert mean == pytest.approx(0.55 * 0.6 + 0.45 * 0.4)
    assert abs(mean - 0.5) > 0.009


def test_a_run_of_the_second_arm_that_is_not_known_lowers_the_lower_end_by_its_best_outcome():
    """Literally the least outcome of both arms would say more than is known."""
    is_first, value = np.tile([True, False], 40), np.tile([1.0, 1.0, 0.0, 1.0], 20)
    lower = np.where(is_first, value, 0.0)
    literal = difference_ends(lower, lower, draws(is_first, 0.5), 0.1, 80)
    ends = difference_ends(lower, value, draws(is_first, 0.5), 0.1, 80)
    assert ends[0] == difference_ends(value, value, draws(is_first, 0.5), 0.1, 80)[0] < 0 < literal[0]
    assert ends[1] == literal[1]

"""What a visit counts for in least squares: the bound on its noise, and which events are counted in which rows."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from random_pmdps import random_problem
from random_products import KINDS, coin_and_die, random_product_problem
from row_models import row_model

import plumdp as pl
from plumdp.data.counts import TransitionCounts
from plumdp.model.expressions.polynomial import Polynomial
from studies.observations import independent_groups, observations

p, q = pl.parameters("p", "q")
SQUARE = pl.ParameterSpace.unit("p", "q")


def observed(model, *counts):
    """Return the observations of some counts of the first transitions."""
    everything = np.zeros(model.graph.n_transitions, dtype=np.int64)
    everything[: len(counts)] = counts
    return observations(model, TransitionCounts(model.graph, everything, "adaptive"))


def one_visit(model, transition):
    everything = np.zeros(model.graph.n_transitions, dtype=np.int64)
    everything[transition] = 1
    return observations(model, TransitionCounts(model.graph, everything, "adaptive"))


def noise_and_matrix(seen, point):
    """Return what a visit adds to noise and matrix, given its observations and the true point."""
    values = np.prod(np.array([float(x) for x in point.values()]) ** seen.exponents, axis=1)
    f = seen.constants + seen.coefficients @ values
    noise = seen.coefficients.T @ (seen.successes - seen.trials * f)
    return noise, seen.coefficients.T @ (seen.trials[:, None] * seen.coefficients)


def excess(model, point, factor=1):
    """Return the largest ln E exp(x·z) - x·A x / 8 over all rows and many x: it must not be above zero.

    With a factor, a visit counts for so many times as much. The noise must have the mean zero.
    """
    rng, worst = np.random.default_rng(1), -np.inf
    probability = model.probabilities(point)[model.expression]
    for a, b in pairwise(model.graph.first_transition.tolist()):
        visits = [noise_and_matrix(one_visit(model, t), point) for t in range(a, b)]
        noise, matrix = factor * np.array([z for z, _ in visits]), factor * visits[0][1]
        assert probability[a:b] @ noise == pytest.approx(0, abs=1e-12)
        for x in 10 ** rng.uniform(-1, 1, (200, 1)) * rng.normal(size=(200, len(matrix))):
            worst = max(worst, np.log(probability[a:b] @ np.exp(noise @ x)) - x @ matrix @ x / 8)
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_noise_of_a_visit_is_within_its_bound(kind):
    rng = np.random.default_rng(3)
    for _ in range(6):
        problem = random_product_problem(rng, kinds=[kind])
        assert excess(problem.model, problem.point) <= 1e-12


@pytest.mark.slow
def test_the_noise_of_a_visit_is_within_its_bound_in_affine_models():
    rng = np.random.default_rng(4)
    for _ in range(15):
        problem = random_problem(rng)
        assert excess(problem.model, problem.point) <= 1e-12


@pytest.mark.parametrize(
    ("row", "value"),
    [
        ([p, 1 - p], 0.5),
        ([p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)], 0.5),
        ([p * q / 2, 1 - p * q / 2], 1),
        ([p * Fraction(49, 50), (1 - p) * Fraction(49, 50), Fraction(1, 50)], 0.5),
    ],
)
def test_a_visit_that_counts_for_a_tenth_more_breaks_the_bound(row, value):
    """The check can fail, and the weights are as large as they can be: at even chances the bound is attained."""
    model, point = row_model([row], SQUARE), {"p": value, "q": value}
    assert -1e-3 < excess(model, point) <= 1e-12
    assert excess(model, point, factor=1.1) > 0


# Which events


def by_event(model):
    """Return for each event that is counted how much of a trial one visit of the first choice is."""
    width = model.graph.first_transition[1]
    seen = observed(model, *[1] * width)
    rows = zip(seen.constants, seen.coefficients.tolist(), seen.trials / width, strict=True)
    return seen.exponents.tolist(), {(c, *b): w for c, b, w in rows if any(b)}


def test_two_independent_coins_count_in_full_and_need_no_products():
    model = row_model([[p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)]], SQUARE)
    exponents, weights = by_event(model)
    assert exponents == [[1, 0], [0, 1]]
    assert sorted(weights.values()) == [1, 1]
    assert {tuple(map(abs, key[1:])) for key in weights} == {(1, 0), (0, 1)}


def test_a_coin_counts_in_full_beside_a_die_whose_faces_count_half():
    model = row_model([coin_and_die(np.random.default_rng(2), (p, q))], SQUARE)
    assert len(model.expressions) == 7  # six outcomes, all different, and certainty
    exponents, weights = by_event(model)
    assert exponents == [[1, 0], [0, 1]]
    assert sorted(weights.values()) == [0.5, 0.5, 0.5, 1]


def test_one_coin_after_the_other_counts_its_outcomes_half_with_a_variable_for_the_product():
    model = row_model([[p, (1 - p) * q, (1 - p) * (1 - q)]], SQUARE)
    exponents, weights = by_event(model)
    assert exponents == [[1, 0], [0, 1], [1, 1]]
    assert [*weights.values()] == [0.5] * 3


def test_coins_that_fall_alike_are_not_counted_as_two():
    """Both show heads with p q / 2 more than independent coins p and q would: P(both) is no product."""
    both = p * q * Fraction(3, 4)
    model = row_model([[both, p - both, q - both, 1 - p - q + both]], SQUARE)
    assert by_event(model)[1] == pytest.approx(dict.fromkeys(by_event(model)[1], 0.5))
    assert [1, 1] in by_event(model)[0]


def test_rows_of_both_kinds_are_counted_together():
    """10 visits of two coins and 4 of one after the other: p counts 10 times in full, and 4 times half."""
    rows = [p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)], [p, (1 - p) * q, (1 - p) * (1 - q)]
    seen = observed(row_model(rows, SQUARE), 4, 3, 2, 1, 1, 1, 2)
    of_p = [
        (n, k if b[0] > 0 else n - k)
        for n, k, c, b in zip(seen.trials, seen.successes, seen.constants, seen.coefficients.tolist(), strict=True)
        if b[1:] == [0, 0]
    ]
    assert sorted(of_p) == [(2, 0.5), (10, 7)]


def test_three_coins_with_the_pairs_independent_but_not_all_are_one_group():
    """The third tells whether the first two fall alike: with p = q = 1/2 each pair is independent."""
    half = Polynomial(Fraction(1, 2))
    happens = [(True, True, True), (True, False, False), (False, True, False), (False, False, True)]
    assert independent_groups([half / 2] * 4, [half] * 3, happens) == [[0, 1, 2]]
    assert independent_groups([half / 2] * 4, [half] * 2, [kind[:2] for kind in happens]) == [[0], [1]]

"""L1 balls: Weissman's formula and its coverage by enumeration, pooling of tied rows, and the region they make."""

from fractions import Fraction
from itertools import product
from math import log, sqrt

import numpy as np
import pytest
from random_pmdps import random_counts, random_problem
from row_models import row_model
from scipy.stats import multinomial

import plumdp as pl
from plumdp.confidence.tied_rows import KNOWN, find_tied_rows
from plumdp.data.counts import TransitionCounts
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.region.conflict import Conflict
from studies.l1_balls import build_l1_region, dirichlet, row_bounds, weissman

p, q = pl.parameters("p", "q")
SQUARE = pl.ParameterSpace.box({"p": (0, 0.5), "q": (0, 0.5)})


def rows_model(*rows, space=SQUARE):
    """Return a model of one state with a choice for each row."""
    return row_model(rows, space)


def counted(model, counts, sampling="independent"):
    everything = np.zeros(model.graph.n_transitions, dtype=np.int64)
    everything[: len(counts)] = counts
    return TransitionCounts(model.graph, everything, sampling)


# Radii


@pytest.mark.parametrize(("k", "sets"), [(2, 2), (3, 6), (4, 14), (10, 1022)])
def test_weissmans_radius_is_the_formula(k, sets):
    radius = weissman(np.zeros(k), [50], np.array([0, k]), 1e-3)
    assert radius == pytest.approx(sqrt(2 * (log(sets) + log(1000)) / 50), rel=1e-14)


def compositions(n):
    return [(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)]


def distances_and_weights(n, probability):
    counts = np.array(compositions(n))
    return counts, np.abs(counts / n - probability).sum(axis=1), multinomial.pmf(counts, n, probability)


GRID = [
    (1 / 3, 1 / 3, 1 / 3),
    (0.5, 0.5, 0),
    (0.9, 0.05, 0.05),
    (0.6, 0.3, 0.1),
    (0.02, 0.49, 0.49),
    (0.98, 0.01, 0.01),
]


@pytest.mark.parametrize("error", [0.2, 0.05, 1e-3])
@pytest.mark.parametrize("method", [weissman, dirichlet])
def test_a_ball_misses_with_at_most_its_error(method, error):
    """Over all counts of three outcomes, exactly: no randomness."""
    for n, probability in product((1, 2, 5, 12, 30, 60), GRID):
        counts, distance, weight = distances_and_weights(n, probability)
        first = 3 * np.arange(len(counts) + 1)
        radius = method(counts.ravel(), np.full(len(counts), n), first, error)
        assert weight[distance > radius + 1e-12].sum() <= error


def ever_misses(method, n_visits, error):
    """Return the probability that one of the balls after 1, 2, … visits of a fair coin misses it."""
    alive, missed = np.ones(1), 0.0
    for n in range(1, n_visits + 1):
        alive = (np.pad(alive, (0, 1)) + np.pad(alive, (1, 0))) / 2
        counts = np.column_stack([np.arange(n + 1), n - np.arange(n + 1)])
        radius = method(counts.ravel(), np.full(n + 1, n), 2 * np.arange(n + 2), error)
        is_missed = np.abs(counts / n - 0.5).sum(axis=1) > radius
        missed += alive[is_missed].sum()
        alive[is_missed] = 0
    return missed


def test_the_dirichlet_ball_ever_misses_with_at_most_its_error_and_weissmans_more_often():
    """With a look after each visit; a ball for a number of visits that is fixed beforehand is not made for that."""
    assert 0 < ever_misses(dirichlet, 500, 1e-3) <= 1e-3
    assert ever_misses(weissman, 500, 1e-3) > 1.5e-3


# Pooling


def test_rows_are_tied_whatever_the_order_and_equal_successors_are_one_outcome():
    rows = [[p, q, 1 - p - q], [1 - p - q, p, q], [p / 2, 0.5, 0.5 - p / 2], [p / 4, 0.25, p / 4, 0.25, 0.5 - p / 2]]
    model = rows_model(*rows)
    tied = find_tied_rows(model)
    assert tied.class_of_choice[:4].tolist() == [0, 0, 1, 2]
    trials, successes = tied.pool(counted(model, [1, 2, 3, 30, 10, 20, 5, 6, 7, 1, 1, 1, 2, 4]))
    assert trials.tolist() == [66, 18, 9]
    seen = {(c, str(tied.outcomes[j])): int(successes[j]) for c in range(3) for j in range(*tied.first[c : c + 2])}
    assert {key: n for key, n in seen.items() if key[0] == 0} == {(0, "p"): 11, (0, "q"): 22, (0, "-p - q + 1"): 33}
    assert {key: n for key, n in seen.items() if key[0] == 1} == {
        (1, "1/2*p"): 5,
        (1, "1/2"): 6,
        (1, "-1/2*p + 1/2"): 7,
    }
    assert {key: n for key, n in seen.items() if key[0] == 2} == {
        (2, "1/2*p"): 2,
        (2, "1/2"): 3,
        (2, "-1/2*p + 1/2"): 4,
    }
    assert (tied.expression == KNOWN).sum() == 2


def test_intervals_of_expressions_are_half_a_radius_wide_on_either_side():
    model = rows_model([p / 2, p / 2, 1 - p])
    bounds = row_bounds(model, counted(model, [10, 20, 70]))
    table = {str(f): i for i, f in enumerate(model.expressions.polynomials)}
    half = bounds.radius[0] / 2
    assert bounds.upper[table["1/2*p"]] == pytest.approx((0.3 + half) / 2, rel=1e-12)
    assert bounds.lower[table["-p + 1"]] == pytest.approx(0.7 - half, rel=1e-12)


@pytest.mark.parametrize(
    ("sampling", "guarantee"),
    [
        ("independent", "finite-sample, fixed N"),
        ("trajectories", "finite-sample, anytime"),
        ("adaptive", "finite-sample, anytime"),
    ],
)
def test_the_guarantee_fits_how_the_data_were_sampled(sampling, guarantee):
    model = rows_model([p, q, 1 - p - q])
    assert row_bounds(model, counted(model, [10, 20, 70], sampling)).guarantee == guarantee


def test_an_impossible_error_is_refused():
    model = rows_model([p, q, 1 - p - q])
    with pytest.raises(pl.DataError, match="error=0: give a probability"):
        row_bounds(model, counted(model, [10, 20, 70]), error=0)


# The region


def full_region(space, bounds):
    """Return the region of all 2^k sets of outcomes of every class at once."""
    polynomials, lower, upper = [], [], []
    for c, (a, b) in enumerate(zip(bounds.first[:-1], bounds.first[1:], strict=True)):
        for members in product((False, True), repeat=b - a):
            chosen = [j for j, is_member in zip(range(a, b), members, strict=True) if is_member]
            polynomials.append(sum((bounds.outcomes[j] for j in chosen), Polynomial(0)))
            share = bounds.shares[chosen].sum()
            lower.append(share - bounds.radius[c] / 2)
            upper.append(share + bounds.radius[c] / 2)
    return pl.stages.build_region(space, polynomials, lower, upper)


@pytest.mark.slow
def test_cutting_planes_give_the_region_of_all_sets_of_outcomes():
    rng = np.random.default_rng(11)
    n_regions = 0
    for _ in range(60):
        problem = random_problem(rng)
        bounds = row_bounds(problem.model, random_counts(rng, problem), error=0.5)
        lazy, full = build_l1_region(problem.model.space, bounds), full_region(problem.model.space, bounds)
        assert isinstance(lazy, Conflict) == isinstance(full, Conflict)
        if isinstance(lazy, Conflict):
            continue
        n_regions += 1
        d = len(lazy.names)
        asked = np.vstack([np.eye(d), -np.eye(d), rng.normal(size=(20, d))])
        assert lazy.minimise(asked) == pytest.approx(full.minimise(asked), abs=1e-8)
    assert n_regions > 40


@pytest.mark.slow
def test_every_point_within_all_balls_is_in_the_region():
    rng = np.random.default_rng(12)
    model = rows_model([p, q, 1 - p - q], [(p + q) / 2, 0.5 - p / 2, 0.5 - q / 2], [p * 0.5 + 0.2, 0.8 - p * 0.5])
    bounds = row_bounds(model, counted(model, [30, 20, 50, 25, 35, 40, 33, 67]), error=0.1)
    region = build_l1_region(model.space, bounds)
    points = rng.uniform(0, 0.5, (3000, 2))
    values = np.array(
        [[float(f.evaluate({"p": Fraction(a), "q": Fraction(b)})) for f in bounds.outcomes] for a, b in points]
    )
    distance = np.add.reduceat(np.abs(values - bounds.shares), bounds.first[:-1], axis=1)
    is_inside = (distance <= bounds.radius).all(axis=1)
    in_region = (points @ region.rows.T <= region.offsets).all(axis=1)
    assert is_inside.sum() > 100
    assert (in_region == is_inside).all()


def test_balls_without_a_common_point_are_a_conflict_that_names_them():
    model = rows_model([p, 1 - p], [p / 2, 1 - p / 2])
    conflict = build_l1_region(model.space, row_bounds(model, counted(model, [4000, 6000, 500, 9500])))
    assert isinstance(conflict, Conflict)
    assert "p in [" in str(conflict)
    assert "1/2*p in [" in str(conflict) or "-1/2*p + 1 in [" in str(conflict)


def test_two_coins_are_bounded_by_the_sums_of_their_products():
    """p q and p (1 - q) in the same ball: p is off by half a radius at most, not by twice that."""
    model = rows_model([p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)], space=pl.ParameterSpace.unit("p", "q"))
    bounds = row_bounds(model, counted(model, [4200, 2800, 1800, 1200]))
    region = build_l1_region(model.space, bounds)
    assert region.names == ("p", "q", "p*q")
    half = bounds.radius[0] / 2
    assert region.lower == pytest.approx([0.7 - half, 0.6 - half, 0.42 - half], abs=1e-9)
    assert region.upper == pytest.approx([0.7 + half, 0.6 + half, 0.42 + half], abs=1e-9)


def test_balls_of_products_that_no_parameters_meet_are_a_conflict():
    model = rows_model([p, 1 - p], [p * p, 1 - p * p], space=pl.ParameterSpace.unit("p"))
    conflict = build_l1_region(model.space, row_bounds(model, counted(model, [500, 500, 810, 190])))
    assert isinstance(conflict, Conflict)
    assert "p^2 in [" in str(conflict)

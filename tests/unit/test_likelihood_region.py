"""Regions of large likelihood: no point of them is lost, on grids and for all case studies, and conflicts say why."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from random_products import random_product_problem
from row_models import row_model

import plumdp as pl
from plumdp.confidence.bounds import expression_bounds
from plumdp.confidence.estimates import Law
from plumdp.confidence.evidence import log_evidence
from plumdp.confidence.likelihood import LevelSet, LinearConstraints
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.space_moments import moments
from plumdp.region import likelihood_ellipsoid as ellipsoids
from plumdp.region.build import project
from plumdp.region.conflict import Conflict
from plumdp.region.ellipsoid import Ellipsoid, Enclosed
from plumdp.region.likelihood_region import build_likelihood_region
from plumdp.region.shapes import Polytope
from plumdp.relaxation.relax import rectangular

p, q = pl.parameters("p", "q")
LINE, SQUARE = pl.ParameterSpace.unit("p"), pl.ParameterSpace.unit("p", "q")
COINS = [[p, 1 - p], [q, 1 - q], [(p + q) / 2, 1 - (p + q) / 2]]
PRODUCTS = [[p * q, p * (1 - q), 1 - p], [q**2, 2 * q * (1 - q), (1 - q) ** 2]]
AXIS = np.concatenate([[1e-9, 1e-6, 1e-4], (np.arange(300) + 0.5) / 300, [1 - 1e-4, 1 - 1e-6, 1 - 1e-9]])
GRID = np.stack(np.meshgrid(AXIS, AXIS, indexing="ij"), axis=-1).reshape(-1, 2)
STUDIES = {
    "rover:10,10": 20,
    "parallel:5": 6,
    "glider:11,9": 30,
    "engagement:20": 21,
    "aircraft:20,10": 21,
    "betting:25": 26,
}


def likelihood_set(table, seen, threshold, *, rows=(), offsets=(), texts=(), strips=None):
    sides = np.array(rows, dtype=float).reshape(-1, len(table.names)), np.array(offsets, dtype=float)
    words = texts or tuple(f"half-space {i}" for i in range(len(offsets)))
    likelihood = LevelSet(
        table, seen, threshold, Law(table.middle, np.eye(len(table.middle))), 0.001, "likelihood", is_of_main=False
    )
    return likelihood, LinearConstraints(*sides, words, 0.001), *(() if strips is None else (strips,))


def threshold_of(table, seen, space, error=0.001):
    mean, covariance = moments(space)
    return log_evidence(table, seen, mean, np.linalg.inv(covariance)) + np.log(error)


def log_likelihoods(table, seen, points):
    values = (table.constants + points @ table.coefficients.T)[:, seen > 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((values > 0).all(axis=1), np.log(np.maximum(values, 1e-300)) @ seen[seen > 0], -np.inf)


def random_seen(rng, table, most=2000):
    counts = rng.multinomial(int(most ** rng.random()), rng.dirichlet(np.full(len(table.outcomes), 0.5)))
    counts[rng.random(len(counts)) < 0.2] = 0
    return counts.astype(float)


def outside(found, points):
    """Return how many points lie outside of an ellipsoid, or beyond its tangent."""
    off = points - found.centre
    squares = ((off @ found.matrix) * off).sum(axis=1)
    return int(((squares > found.radius**2) | (points @ found.tangent < found.offset)).sum())


def lost_points(rng, table, space, n_cases, *, shift):
    """Return how many points of a grid with enough likelihood are lost by ellipsoids, about estimates and not."""
    whole, lost, kept = pl.stages.build_region(space, (), (), ()), 0, 0
    for _ in range(n_cases):
        seen = random_seen(rng, table)
        if not seen.any():
            continue
        heights = log_likelihoods(table, seen, GRID)
        threshold = heights.max() - float(rng.uniform(0.5, 20))
        points = GRID[heights >= threshold]
        found = ellipsoids.likelihood_ellipsoids(table, seen, threshold, whole)
        moved = table.middle + (found[0].centre - table.middle) * (1 - shift)
        about = ellipsoids.likelihood_ellipsoid(table, seen, threshold, moved, whole)
        for one in [*found, *([] if about is None else [about])]:
            lost, kept = lost + outside(one, points), kept + len(points)
    assert kept > 1000
    return lost


@pytest.mark.slow
@pytest.mark.parametrize("rows", [COINS, PRODUCTS, COINS[:1]], ids=["coins", "products", "one of two seen"])
def test_no_point_of_large_likelihood_is_outside_of_an_ellipsoid_or_beyond_a_tangent(rows):
    table = likelihood_table(row_model(rows, SQUARE))
    assert lost_points(np.random.default_rng(1), table, SQUARE, 30, shift=0.1) == 0


@pytest.mark.slow
def test_a_bound_that_ignores_how_far_the_space_reaches_loses_points(monkeypatch):
    """With κ = 1, the ellipsoid is that of the second derivative alone: points of rare outcomes lie outside."""
    monkeypatch.setattr(ellipsoids, "curvature_below", np.ones_like)
    assert lost_points(np.random.default_rng(1), likelihood_table(row_model(COINS, SQUARE)), SQUARE, 30, shift=0.1) > 0


def test_the_factor_of_the_quadratic_bound_is_never_too_large():
    """κ(S) = 2 ∫ t / (1 + tS) dt over [0, 1], here by Simpson's rule."""
    s = np.concatenate([[0], np.logspace(-9, 6, 200)])
    exact = []
    for x in s:
        t = np.concatenate([[0], np.logspace(-9, 0, 4001)])
        middle = (t[1:] + t[:-1]) / 2
        f = lambda u, x=x: 2 * u / (1 + u * x)  # noqa: E731
        exact.append(float((np.diff(t) / 6 * (f(t[1:]) + 4 * f(middle) + f(t[:-1]))).sum()))
    found = ellipsoids.curvature_below(s)
    assert (found <= np.array(exact) * (1 + 1e-10)).all()
    assert (found >= np.array(exact) * (1 - 1e-4)).all()


@pytest.mark.slow
def test_regions_have_all_points_of_large_likelihood_within_half_spaces():
    """Least values over a region, in random directions, are never above those over points of a grid."""
    rng = np.random.default_rng(4)
    for rows in (COINS, PRODUCTS):
        model = row_model(rows, SQUARE)
        table = likelihood_table(model)
        for _ in range(8):
            seen = random_seen(rng, table)
            if not seen.any():
                continue
            sides = rng.normal(size=(2, 2))
            offsets = sides @ rng.uniform(0.3, 0.7, 2) + 0.1
            threshold = threshold_of(table, seen, SQUARE)
            region = build_likelihood_region(
                SQUARE, model.expressions, likelihood_set(table, seen, threshold, rows=sides, offsets=offsets)
            )
            fits = (log_likelihoods(table, seen, GRID) >= threshold) & (offsets >= GRID @ sides.T).all(axis=1)
            if isinstance(region, Conflict):
                assert not fits.any()
                continue
            assert isinstance(region, Enclosed)
            points = GRID[fits]
            directions = np.vstack([np.eye(2), -np.eye(2), rng.normal(size=(20, 2))])
            lifted = np.zeros((len(directions), len(region.names)))
            lifted[:, :2] = directions
            if len(points):
                least = (points @ directions.T).min(axis=0)
                assert (region.minimise(lifted) <= least + 1e-12).all()
                assert (region.polytope.minimise(lifted) <= least + 1e-12).all()
                values = model.expressions.evaluate(points)
                lower, upper = project(region, model.expressions)
                assert (lower <= values.min(axis=1) + 1e-12).all()
                assert (upper >= values.max(axis=1) - 1e-12).all()


def test_a_coin_that_never_shows_tails_is_bounded_by_the_tangent():
    """ℓ(p) = N ln p >= threshold is p >= exp(threshold / N): the region may be a little larger, of the same order."""
    table = likelihood_table(model := row_model([[p, 1 - p]], LINE))
    for n in (40, 400, 4000):
        seen = np.array([n, 0.0])
        threshold = threshold_of(table, seen, LINE)
        region = build_likelihood_region(LINE, model.expressions, likelihood_set(table, seen, threshold))
        exact = np.exp(threshold / n)
        assert exact - 1.2 * (1 - exact) <= region.lower[0] <= exact
        assert region.upper[0] >= 1


def test_a_parameter_never_seen_has_the_range_of_the_space():
    model = row_model(COINS, SQUARE)
    table = likelihood_table(model)
    seen = np.where([f in (p, 1 - p) for f in table.outcomes], 500.0, 0.0)
    found = likelihood_set(table, seen, threshold_of(table, seen, SQUARE))
    region = build_likelihood_region(SQUARE, model.expressions, found)
    assert region.lower[1] == 0
    assert region.upper[1] == 1
    assert 0.4 < region.lower[0] < region.upper[0] < 0.6


def test_splitting_a_parameter_into_two_that_occur_as_a_sum_changes_nothing():
    r, s = pl.parameters("r", "s")
    whole, split = LINE, pl.ParameterSpace.simplex("r", "s")
    one, two = row_model([[p, 1 - p]], whole), row_model([[r + s, 1 - r - s]], split)
    seen = np.array([300.0, 700.0])
    ends = []
    for model in (one, two):
        table = likelihood_table(model)
        threshold = float(seen @ np.log([0.3, 0.7])) - 10
        region = build_likelihood_region(model.space, model.expressions, likelihood_set(table, seen, threshold))
        ends.append((region.minimise(np.ones((1, model.space.dimension)))[0], region))
    assert ends[0][0] == pytest.approx(ends[1][0], abs=5e-4)
    assert ends[0][0] >= ends[1][0] - 1e-3


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("n", [5, 2000])
def test_regions_of_case_studies_contain_the_true_point(name, n):
    """At an error of 0.001 and with this seed they do; nature can pick points of each of them."""
    study = pl.case_study(name)
    model = study.model
    table, point = likelihood_table(model), np.array([float(study.true_point[name]) for name in model.space.names])
    counts = pl.simulate(model, study.true_point, n, rng=1, max_steps=STUDIES[name])
    seen = table.pool(counts.counts)
    gradient = np.arange(1.0, len(point) + 1)
    sides = {"rows": [gradient, -gradient], "offsets": [gradient @ point + 0.01, 0.01 - gradient @ point]}
    for cuts in ({}, sides, {**sides, "strips": expression_bounds(model, counts, error=1e-4)}):
        found = likelihood_set(table, seen, threshold_of(table, seen, model.space), **cuts)
        region = build_likelihood_region(model.space, model.expressions, found)
        lifted = np.array([float(value_of(name, study)) for name in region.names])
        directions = np.random.default_rng(1).normal(size=(30, len(lifted)))
        assert (region.minimise(directions) <= directions @ lifted).all()
        assert isinstance(region, Ellipsoid if model.expressions.is_affine.all() and not cuts else Enclosed)
        imdp = rectangular(model, region)
        values = model.probabilities(study.true_point)
        assert (imdp.lower <= values).all()
        assert (imdp.upper >= values).all()


def value_of(name, study):
    """Return the value of a variable of a region, a parameter or a product such as p1*p2, at the true point."""
    value = Fraction(1)
    for factor in name.split("*"):
        parameter, _, power = factor.partition("^")
        value *= Fraction(study.true_point[parameter]) ** int(power or 1)
    return value


@pytest.mark.slow
def test_rare_outcomes_have_regions_with_their_true_point():
    """Parameters of about 1/2000, of which some outcomes are never seen."""
    space = pl.ParameterSpace.unit("p", "q")
    rows = [[p / 1000, q / 500, 1 - p / 1000 - q / 500], [p * q / 100, p * (1 - q) / 100, 1 - p / 100]]
    model = row_model(rows, space)
    table, rng = likelihood_table(model), np.random.default_rng(3)
    point = np.array([0.5, 0.25])
    probability = model.probabilities({"p": "1/2", "q": "1/4"})[model.expression]
    for n in (100, 10_000, 1_000_000):
        for _ in range(5):
            counts = np.zeros(model.graph.n_transitions, dtype=np.int64)
            counts[:3], counts[3:6] = rng.multinomial(n, probability[:3]), rng.multinomial(n, probability[3:6])
            seen = table.pool(counts)
            found = likelihood_set(table, seen, threshold_of(table, seen, space))
            region = build_likelihood_region(space, model.expressions, found)
            assert (region.lower[:2] <= point).all()
            assert (region.upper[:2] >= point).all()
    assert region.upper[0] - region.lower[0] < 0.2


def test_fifty_parameters_have_a_region():
    names = [f"w{i}" for i in range(50)]
    weights = pl.parameters(*names)
    space = pl.ParameterSpace.unit(*names)
    model = row_model([[(w + v) / 2, 1 - (w + v) / 2] for w, v in pairwise(weights)], space)
    table = likelihood_table(model)
    assert table.basis.shape == (50, 49)
    seen = np.full(len(table.outcomes), 5000.0)
    found = likelihood_set(table, seen, threshold_of(table, seen, space))
    region = build_likelihood_region(space, model.expressions, found)
    lower, upper = project(region, model.expressions)
    coins = model.expressions.is_unknown
    assert (lower[coins] <= 0.5).all()
    assert (upper[coins] >= 0.5).all()
    assert np.median((upper - lower)[coins]) < 0.25


def test_without_a_likelihood_the_region_is_what_strips_and_half_spaces_leave():
    model = row_model(COINS, SQUARE)
    table = likelihood_table(model)
    found = likelihood_set(table, np.zeros(6), -np.inf, rows=[[1.0, 1.0]], offsets=[0.5])
    region = build_likelihood_region(SQUARE, model.expressions, found)
    assert isinstance(region, Polytope)
    assert region.upper == pytest.approx([0.5, 0.5])


def test_conflicts_say_which_part_disagrees():
    model = row_model(COINS, SQUARE)
    table = likelihood_table(model)
    seen = np.full(6, 5000.0)
    threshold = threshold_of(table, seen, SQUARE)

    def words(*, threshold=threshold, **cuts):
        region = build_likelihood_region(SQUARE, model.expressions, likelihood_set(table, seen, threshold, **cuts))
        assert isinstance(region, Conflict)
        return str(region)

    far = {"rows": [[1.0, 0.0], [0.0, 1.0]], "offsets": [0.3, 0.9], "texts": ("bets on p", "bets on q")}
    assert words(**far).startswith("no parameters fit the likelihood of the data, which is large about p = 0.5")
    assert "bets on p" in words(**far)
    assert "bets on q" not in words(**far)
    apart = {"rows": [[1.0, 1.0], [-1.0, -1.0]], "offsets": [0.3, -0.5], "texts": ("sum is small", "sum is large")}
    assert words(**apart) == "no parameters fit sum is small and sum is large"
    assert "the likelihood of the data" in words(threshold=0.0)
    counts = np.zeros(model.graph.n_transitions, dtype=np.int64)
    counts[:2] = 10, 990
    strips = expression_bounds(model, pl.TransitionCounts(model.graph, counts, "adaptive"), error=1e-4)
    assert "p in [0.00" in words(strips=strips)
    both = words(strips=strips, rows=[[0.0, 1.0]], offsets=[0.9], texts=("bets on q",))
    assert "bets on q" not in both


@pytest.mark.parametrize("rows", [[[p, 1 - p]], [[(p + q) / 2, 1 - (p + q) / 2]], COINS[:2]], ids=str)
def test_a_parameter_that_is_known_stays_known(rows):
    space = pl.ParameterSpace.box({"p": (0, 1), "q": ("1/4", "1/4")})
    model = row_model(rows, space)
    table = likelihood_table(model)
    seen = np.array([500.0, 500.0, 100.0, 300.0])[: len(table.outcomes)]
    found = likelihood_set(table, seen, threshold_of(table, seen, space))
    region = build_likelihood_region(space, model.expressions, found)
    best = 0.75 if len(rows) == 1 and q.names[0] in rows[0][0].names else 0.5
    assert region.lower[1] == region.upper[1] == 0.25
    assert best - 0.2 < region.lower[0] < best < region.upper[0] < best + 0.2


def test_rows_that_have_no_likelihood_leave_the_region_to_strips():
    model = row_model([[p * q, 1 - p * q]], SQUARE)
    table = likelihood_table(model)
    counts = np.zeros(model.graph.n_transitions, dtype=np.int64)
    counts[:2] = 500, 500
    seen = table.pool(counts)
    strips = expression_bounds(model, pl.TransitionCounts(model.graph, counts, "adaptive"), error=1e-3)
    found = likelihood_set(table, seen, threshold_of(table, seen, SQUARE), strips=strips)
    region = build_likelihood_region(SQUARE, model.expressions, found)
    lower, upper = project(region, model.expressions)
    assert 0.4 < lower[0] < 0.5 < upper[0] < 0.6


def ends_of_a_coin(heads, tails, threshold):
    """Return the least and the largest p with heads ln p + tails ln(1 - p) >= threshold, by bisection to 40 digits."""
    with localcontext() as context:
        context.prec = 60
        least = Decimal(threshold)

        def is_likely(x):
            return heads * x.ln() + tails * (1 - x).ln() >= least

        best, ends = Decimal(heads) / Decimal(heads + tails), []
        for outer in (Decimal("1e-30"), 1 - Decimal("1e-30")):
            inner, far = best, outer
            for _ in range(140):
                middle = (inner + far) / 2
                inner, far = (middle, far) if is_likely(middle) else (inner, middle)
            ends.append(Fraction(inner))
        return ends


@pytest.mark.parametrize(
    "counts", [(5, 3), (999, 1), (10**6, 10**6), (10**9, 10**3), (6 * 10**11, 4 * 10**11), (10**13, 10**4)], ids=str
)
def test_no_point_is_lost_where_floats_are_coarse(counts):
    """The exact ends, by decimals with 60 digits, lie in the region, which is at most a fifth wider."""
    model = row_model([[p, 1 - p]], LINE)
    table, seen = likelihood_table(model), np.array(counts, dtype=float)
    threshold = threshold_of(table, seen, LINE)
    region = build_likelihood_region(LINE, model.expressions, likelihood_set(table, seen, threshold))
    low, high = ends_of_a_coin(*counts, threshold)
    assert Fraction(float(region.lower[0])) <= low <= high <= Fraction(float(region.upper[0]))
    if min(counts) > 100:
        assert region.upper[0] - region.lower[0] < 1.2 * float(high - low)


@pytest.mark.parametrize("seed", range(12))
def test_regions_of_random_models_have_the_points_whose_likelihood_is_large_enough(seed):
    """Among random points of the space, and the true one."""
    rng = np.random.default_rng(seed)
    problem = random_product_problem(rng, most=500)
    model, counts = problem.model, problem.counts.counts
    table, d = likelihood_table(model), model.space.dimension
    seen = table.pool(counts)
    threshold = threshold_of(table, seen, model.space)
    region = build_likelihood_region(model.space, model.expressions, likelihood_set(table, seen, threshold))
    true = np.array([float(problem.point[name]) for name in model.space.names])
    points = np.vstack([true, rng.random((20_000, d)), np.clip(true + 0.03 * rng.normal(size=(20_000, d)), 0, 1)])
    points = points[log_likelihoods(table, seen, points) >= threshold]
    directions = np.zeros((40, len(region.names)))
    directions[:, :d] = rng.normal(size=(40, d))
    assert len(points)
    assert (region.minimise(directions) <= (points @ directions[:, :d].T).min(axis=0) + 1e-12).all()
    lower, upper = project(region, model.expressions)
    values = model.expressions.evaluate(points)
    assert (lower <= values.min(axis=1) + 1e-12).all()
    assert (upper >= values.max(axis=1) - 1e-12).all()

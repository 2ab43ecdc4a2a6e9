"""Least squares and ellipsoids: formulas by hand, rounding against exact arithmetic, and what is refused."""

from fractions import Fraction
from math import log, sqrt

import numpy as np
import pytest
from flint import arb, ctx, fmpq, fmpq_mat
from random_pmdps import random_counts, random_problem
from row_models import row_model

import plumdp as pl
from plumdp.data.counts import TransitionCounts
from plumdp.region import ellipsoid_kernels
from plumdp.region.conflict import Conflict
from plumdp.region.ellipsoid import build_ellipsoid
from plumdp.relaxation.relax import expression_wise, parameter_wise
from studies.least_squares import build_ellipsoid_region, least_squares
from studies.observations import observations
from studies.published_sets import published_ellipsoid

ctx.prec = 300


def one_row(*outcomes, space=None):
    """Return a model whose first state has one choice with the given probabilities."""
    return row_model([outcomes], space or pl.ParameterSpace.unit("p"))


def counted(model, *counts):
    everything = np.zeros(model.graph.n_transitions, dtype=np.int64)
    everything[: len(counts)] = counts
    return TransitionCounts(model.graph, everything, "adaptive")


(p,) = pl.parameters("p")


# Least squares


def test_a_coin_counts_like_one_of_its_sides():
    """7 of 10: V = 0.01 + 10, centre 1/2 + (7 - 5) / V, radius ½ sqrt(ln(V / 0.01) + 2 ln 1000) + 0.1 · ½."""
    model = one_row(p, 1 - p)
    found = least_squares(model, counted(model, 7, 3), error=0.001)
    assert found.matrix[0, 0] == pytest.approx(10.01, rel=1e-14)
    assert found.centre[0] == pytest.approx(0.5 + 2 / 10.01, rel=1e-14)
    assert found.radius == pytest.approx(0.5 * sqrt(log(1001) + 2 * log(1000)) + 0.05, rel=1e-9)
    assert found.guarantee == "finite-sample, anytime"


def test_the_published_constants_count_both_sides_and_promise_nothing():
    """V = 0.01 + 20, centre (7 + (10 - 3)) / V, radius ½ sqrt(ln(V / 0.01) + 2 ln 1000) + 0.1 · 1."""
    model = one_row(p, 1 - p)
    found = published_ellipsoid(model, counted(model, 7, 3), error=0.001)
    assert found.matrix[0, 0] == pytest.approx(20.01, rel=1e-14)
    assert found.centre[0] == pytest.approx(14 / 20.01, rel=1e-14)
    assert found.radius == pytest.approx(0.5 * sqrt(log(2001) + 2 * log(1000)) + 0.1, rel=1e-9)
    assert found.guarantee == "none"


def test_equal_successors_are_one_outcome_and_known_ones_say_nothing():
    """(p/4, p/4, 1/2 - p/2, 1/2) with 8 visits: outcomes p/2 and 1/2 - p/2, each half a trial: V = 0.01 + 8/4."""
    model = one_row(p / 4, p / 4, Fraction(1, 2) - p / 2, Fraction(1, 2))
    counts = counted(model, 1, 2, 1, 4)
    seen = observations(model, counts)
    assert (seen.trials.sum(), seen.successes.sum()) == (12, 4)
    assert least_squares(model, counts).matrix[0, 0] == pytest.approx(2.01, rel=1e-14)


def test_without_data_every_point_of_the_space_is_possible():
    space = pl.ParameterSpace.box({"p": (-2, 3), "q": (0, 0.5)})
    model = one_row((p + 2) / 5, (3 - p) / 5, space=space)
    found = least_squares(model, counted(model))
    for corner in space.vertices:
        away = np.array([float(corner[name]) for name in space.names]) - found.centre
        assert away @ found.matrix @ away <= found.radius**2


def test_a_smaller_error_gives_a_larger_ellipsoid():
    model = one_row(p, 1 - p)
    radii = [least_squares(model, counted(model, 70, 30), error=error).radius for error in (0.1, 0.01, 1e-6)]
    assert radii == sorted(radii)


def exact_ellipsoid(model, counts, error):
    """Return V and the centre as rationals and the radius as a ball of 300 bits, straight from the definition."""
    names, d, ridge = model.space.names, model.space.dimension, Fraction(0.01)
    middle = [Fraction(x) for x in (model.space.lower + model.space.upper) / 2]
    matrix = [[ridge * (i == j) for j in range(d)] for i in range(d)]
    right = [Fraction(0)] * d
    seen = {}
    for t, f in enumerate(model.expression):
        choice = int(model.graph.choice_of_transition()[t])
        seen.setdefault((choice, int(f)), []).append(int(counts.counts[t]))
    for (choice, f), successes in seen.items():  # equal successors of a row are one outcome
        terms = (len(successes) * model.expressions.polynomials[f]).terms(names)
        constant = terms.get((0,) * d, Fraction(0))
        b = [terms.get(tuple(int(i == j) for j in range(d)), Fraction(0)) for i in range(d)]
        n, k = int(counts.visits[choice]), sum(successes)
        surplus = k - n * (constant + sum(x * y for x, y in zip(b, middle, strict=True)))
        for i in range(d):
            right[i] += b[i] * surplus / 2
            for j in range(d):
                matrix[i][j] += n * b[i] * b[j] / 2
    rational = fmpq_mat([[fmpq(x.numerator, x.denominator) for x in row] for row in matrix])
    offset = rational.solve(fmpq_mat([[fmpq(x.numerator, x.denominator)] for x in right]))
    centre = [fmpq(m.numerator, m.denominator) + offset[i, 0] for i, m in enumerate(middle)]
    reach = arb(sum(((fmpq(*(high - low).as_integer_ratio()) / 2) ** 2 for low, high in model.space.bounds), fmpq(0)))
    log_det = (arb(rational.det()) / arb(0.01) ** d).log()
    return rational, centre, (log_det - 2 * arb(error).log()).sqrt() / 2 + (arb(0.01) * reach).sqrt()


@pytest.mark.slow
def test_floats_contain_the_exact_ellipsoid():
    """Points on the boundary of the ellipsoid in rational numbers lie inside the one in floats, without a tolerance."""
    rng = np.random.default_rng(7)
    for _ in range(40):
        problem = random_problem(rng)
        counts = random_counts(rng, problem, most=10**9)
        matrix, centre, radius = exact_ellipsoid(problem.model, counts, 0.001)
        found = least_squares(problem.model, counts, error=0.001)
        for direction in rng.normal(size=(5, len(centre))):
            s = fmpq_mat([[fmpq(*Fraction(x).as_integer_ratio())] for x in direction])
            image = matrix.solve(s)
            scale = radius / arb((s.transpose() * image)[0, 0]).sqrt()
            away = [arb(centre[i] - exact(found.centre[i])) + scale * arb(image[i, 0]) for i in range(len(centre))]
            norm = sum(
                (
                    away[i] * arb(float(found.matrix[i, j])) * away[j]
                    for i in range(len(away))
                    for j in range(len(away))
                ),
                arb(0),
            )
            assert norm <= arb(found.radius) ** 2
            assert norm >= arb(found.radius * (1 - 1e-3)) ** 2  # nor is it much larger, with a billion samples


def exact(number):
    return fmpq(*Fraction(float(number)).as_integer_ratio())


# Products of parameters


def test_the_square_of_a_parameter_is_estimated_like_a_parameter():
    """(p², 1 - p²), 36 of 100: in the variable p², V = 0.01 + 100 and the centre 1/2 + (36 - 50) / V; p has no data."""
    model = one_row(p * p, 1 - p * p)
    found = least_squares(model, counted(model, 36, 64))
    assert found.exponents.tolist() == [[1], [2]]
    assert found.matrix == pytest.approx(np.diag([0.01, 100.01]), rel=1e-14)
    assert found.centre == pytest.approx([0.5, 0.5 - 14 / 100.01], rel=1e-14)
    reach = 0.1 * sqrt(0.5)
    assert found.radius == pytest.approx(0.5 * sqrt(log(10001) + 2 * log(1000)) + reach, rel=1e-9)


def test_products_of_negative_parameters_are_reached_from_the_middle_of_their_range():
    """On [-1, 2]², p q is in [-2, 4] and p² in [0, 4]: half diagonals 3/2, 3/2, 3 and 2."""
    q = pl.parameters("q")[0]
    space = pl.ParameterSpace.box({"p": (-1, 2), "q": (-1, 2)})
    f = (p * q + 2) / 10 + p * p / 10
    model = one_row(f, 1 - f, space=space)
    found = least_squares(model, counted(model))
    middle = dict(zip(map(tuple, found.exponents.tolist()), found.centre.tolist(), strict=True))
    assert middle == {(1, 0): 0.5, (0, 1): 0.5, (1, 1): 1.0, (2, 0): 2.0}
    reach = sqrt(1.5**2 + 1.5**2 + 3**2 + 2**2)
    assert found.radius == pytest.approx(0.5 * sqrt(2 * log(1000)) + 0.1 * reach, rel=1e-9)


def test_an_ellipsoid_that_excludes_all_products_is_a_conflict():
    """p² and p² / 4 in 95 of 100 cases each: least squares puts p² at 19 / 17 of that, beyond one."""
    rows = [p * p, 1 - p * p], [p * p / 4, 1 - p * p / 4]
    model = row_model(rows, pl.ParameterSpace.unit("p"))
    counts = pl.TransitionCounts(
        model.graph, [9500, 500, 9500, 500, *[0] * (model.graph.n_transitions - 4)], "adaptive"
    )
    region = build_ellipsoid_region(model.space, model.expressions, least_squares(model, counts))
    assert isinstance(region, Conflict)
    assert region.constraints == (f"the ellipsoid about {about(model, counts)}", "1*p^2 <= 1")
    assert 1 < region.stretch < 10


def test_an_ellipsoid_off_the_curve_of_products_is_a_conflict_too():
    """p = 0.5 and p² = 0.81: each is possible, both together are not."""
    rows = [p, 1 - p], [p * p, 1 - p * p]
    model = row_model(rows, pl.ParameterSpace.unit("p"))
    counts = pl.TransitionCounts(
        model.graph, [5000, 5000, 8100, 1900, *[0] * (model.graph.n_transitions - 4)], "adaptive"
    )
    region = build_ellipsoid_region(model.space, model.expressions, least_squares(model, counts))
    assert isinstance(region, Conflict)
    assert region.constraints == (f"the ellipsoid about {about(model, counts)}",)
    assert not region.stretch <= 1


def about(model, counts):
    centre = least_squares(model, counts).centre
    return f"p = {centre[0]:.6g}, p^2 = {centre[1]:.6g}"


# Regions


@pytest.mark.parametrize("condition", [1, 1e4, 1e8, 1e12])
def test_the_closed_form_is_never_above_the_exact_minimum(condition):
    """bound <= g·c - r sqrt(g·V⁻¹ g) is (g·c - bound)² >= r² g·V⁻¹ g, in rational numbers."""
    rng = np.random.default_rng(int(condition))
    square = pl.stages.build_region(pl.ParameterSpace.box(dict.fromkeys("abc", (-1000, 1000))), (), (), ())
    for _ in range(30):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        matrix = turn @ np.diag([1, np.sqrt(condition), condition]) @ turn.T
        matrix, centre, radius = (matrix + matrix.T) / 2, rng.normal(size=3), float(rng.uniform(0.1, 5))
        region = build_ellipsoid(centre, matrix, radius, within=square)
        inverse = fmpq_mat([[exact(x) for x in row] for row in matrix]).inv()
        for objective in rng.normal(size=(10, 3)):
            g = fmpq_mat([[exact(x)] for x in objective])
            least = exact(region.minimise(objective[None])[0])
            below = sum((g[i, 0] * exact(centre[i]) for i in range(3)), fmpq(0)) - least
            form = (g.transpose() * inverse * g)[0, 0] * exact(radius) ** 2
            assert below >= 0
            assert below**2 >= form
            assert arb(below) <= arb(form).sqrt() * (1 + 1e-9 + 1e-14 * condition) + 1e-12


@pytest.mark.slow
def test_with_any_multipliers_a_bound_is_never_above_its_exact_value():
    """s·c - r |rootᵀ s| - y·b with s = g + Σ y a, of the very floats: in 300 bits, and without a tolerance."""
    rng = np.random.default_rng(8)
    box = np.full(3, -1e9), np.full(3, 1e9)
    for _ in range(300):
        rows, offsets, root = rng.normal(size=(4, 3)), rng.normal(size=4), np.triu(rng.normal(size=(3, 3)))
        objective, centre, radius = rng.normal(size=3), rng.normal(size=3), float(rng.exponential())
        multipliers = np.maximum(rng.normal(size=4), 0)
        bound = ellipsoid_kernels.safe_minimum(objective, multipliers, rows, offsets, centre, root, radius, *box)
        total = [arb(objective[j]) + dot(multipliers, rows[:, j]) for j in range(3)]
        images = [dot(root[:, i], total) for i in range(3)]
        value = dot(centre, total) - dot(images, images).sqrt() * radius - dot(multipliers, offsets)
        assert bound <= value
        assert value <= bound + 1e-13 * (1 + abs(value))


def dot(left, right):
    return sum((arb(x) * arb(y) for x, y in zip(left, right, strict=True)), arb(0))


def test_no_point_of_the_region_is_below_its_minimum():
    rng = np.random.default_rng(9)
    for _ in range(30):
        polytope = pl.stages.build_region(pl.ParameterSpace.simplex("a", "b", "c"), (), (), ())
        matrix = 0.01 * np.eye(3) + np.cov(rng.normal(size=(3, 5))) * 10 ** rng.uniform(-1, 2)
        centre, radius = rng.uniform(0, 0.5, 3), 10 ** rng.uniform(-1, 1)
        region = build_ellipsoid(centre, matrix, radius, within=polytope)
        points = rng.dirichlet(np.ones(4), 2000)[:, :3]
        away = points - centre
        inside = points[np.einsum("ki,ij,kj->k", away, matrix, away) <= radius**2]
        if isinstance(region, Conflict):
            assert len(inside) == 0
            continue
        asked = np.vstack([np.eye(3), -np.eye(3), rng.normal(size=(10, 3))])
        assert ((asked @ inside.T).min(axis=1, initial=np.inf) >= region.minimise(asked) - 1e-15).all()
        assert ((region.lower <= inside) & (inside <= region.upper)).all()


def test_an_ellipsoid_beside_the_space_is_a_conflict_that_says_how_far():
    """A disc of radius 1/4 about (3/2, 1/2) must be twice as large to touch the unit square."""
    square = pl.stages.build_region(pl.ParameterSpace.unit("p", "q"), (), (), ())
    conflict = build_ellipsoid(np.array([1.5, 0.5]), np.eye(2), 0.25, within=square)
    assert isinstance(conflict, Conflict)
    assert conflict.stretch == pytest.approx(2, rel=1e-6)
    assert conflict.constraints == ("the ellipsoid about p = 1.5, q = 0.5", "1*p <= 1")


def test_a_matrix_that_floats_cannot_invert_leaves_the_whole_polytope():
    square = pl.stages.build_region(pl.ParameterSpace.unit("p", "q"), (), (), ())
    region = build_ellipsoid(np.zeros(2), np.ones((2, 2)), 1e-3, within=square)
    assert region.minimise(np.array([[1.0, 0.0], [-1.0, -1.0]])) == pytest.approx([0, -2], abs=1e-9)


def test_parameters_and_expressions_of_an_ellipsoid_contain_the_true_ones():
    """Both relaxations work with any region; over the box around it nothing is narrower than over the region itself."""
    study = pl.case_study("aircraft:20,10")
    counts = pl.simulate(study.model, study.true_point, 10_000, rng=1, max_steps=study.max_steps)
    found = least_squares(study.model, counts)
    space = pl.stages.build_region(study.model.space, (), (), ())
    region = build_ellipsoid(found.centre, found.matrix, found.radius, within=space)
    truth = study.model.probabilities(study.true_point)
    by_box, by_expression = (
        parameter_wise(study.model, region),
        expression_wise(study.model, region),
    )
    for imdp in (by_box, by_expression):
        assert ((imdp.lower <= truth) & (truth <= imdp.upper)).all()
    assert (by_box.lower <= by_expression.lower + 1e-12).all()
    assert (by_expression.upper <= by_box.upper + 1e-12).all()
    assert (by_expression.upper - by_expression.lower).mean() < 0.9 * (by_box.upper - by_box.lower).mean()


# What is refused

"""Regions of many variables: minima by the simplex walk, blocks, and the polytopes of rows, against slower ways.

Oracles are HiGHS, all vertices in rational numbers, the table of all vertices, and the region as one block. To see the
ways for many variables on small models, the number from which on they are taken is lowered.
"""

from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_pmdps import exact_vertices, random_intervals, random_problem
from scipy.optimize import linprog
from tiers import examples

import plumdp as pl
from plumdp.model.objectives import Reach, Reward
from plumdp.region import half_spaces, shapes, vertices
from plumdp.region.conflict import Conflict
from plumdp.region.half_spaces import Contradiction
from plumdp.region.images import AffineMap, images
from plumdp.region.shapes import intersection
from plumdp.relaxation import row_polytopes
from plumdp.relaxation.relax import expression_wise, rectangular
from plumdp.relaxation.row_regions import RowPolytopes, RowRegion
from studies.layered import layered_model

SEEDS = st.integers(0, 2**32)


@contextmanager
def as_if_many(work=1e9):
    """Let two variables count as many, and spend so much work on rows."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (half_spaces, shapes, vertices):
            patch.setattr(module, "MANY", 2)
        patch.setattr(row_polytopes, "_WORK", work)
        yield


def random_half_spaces(rng, d, n):
    """Return a unit box, cut by half-spaces that a point inside meets; some of them touch it, some are duplicates."""
    inside = rng.uniform(0.2, 0.8, d)
    rows = rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.choice([0.3, 1.0]))
    rows = np.vstack([rows, 2 * rows[: n // 4]])
    slack = rng.exponential(0.2, len(rows)) * (rng.random(len(rows)) < 0.9)
    box = np.vstack([-np.eye(d), np.eye(d)])
    return np.vstack([box, rows]), np.concatenate([np.zeros(d), np.ones(d), rows @ inside + slack])


def names(d):
    return tuple(f"x{j}" for j in range(d))


@given(SEEDS)
@settings(max_examples=examples(15))
def test_minima_over_many_variables_are_those_of_highs(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(9, 14))
    rows, offsets = random_half_spaces(rng, d, int(rng.integers(5, 40)))
    region = intersection(names(d), rows, offsets)
    assert not isinstance(region, Contradiction)
    objectives = rng.normal(size=(4, d)) * (rng.random((4, d)) < 0.7)
    found = region.minimise(objectives)
    for objective, value in zip(objectives, found, strict=True):
        other = linprog(objective, A_ub=rows, b_ub=offsets, bounds=(None, None))
        assert value == pytest.approx(other.fun, abs=1e-7)


@pytest.mark.slow
@given(SEEDS)
@settings(max_examples=examples(25))
def test_minima_are_never_above_the_best_vertex_in_rational_numbers(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, n_parameters=(2, 3))
    bounds, model = random_intervals(rng, problem), problem.model
    exact = exact_vertices(model.space, model.expressions.polynomials, *bounds)
    with as_if_many():
        region = pl.stages.build_region(model.space, model.expressions, *bounds)
        assert not isinstance(region, Conflict)
        objectives = rng.normal(size=(6, len(region.names)))
        found, short = region.minimise(objectives), cut_short(region, objectives)
    for objective, value, less in zip(objectives, found, short, strict=True):
        terms = [
            [Fraction(g) * corner[name] for g, name in zip(objective, region.names, strict=True)] for corner in exact
        ]
        least = min(map(sum, terms))
        assert Fraction(value) <= least <= Fraction(value) + Fraction(1, 10**9)
        assert Fraction(less) <= least


def cut_short(region, objectives):
    """Return what the walks prove that end after one step, in each block; the bounds of blocks add up."""
    total = np.zeros(len(objectives))
    for columns, graph in region.blocks:
        box = region.lower[columns] / region.scale[columns], region.upper[columns] / region.scale[columns]
        scaled = np.ascontiguousarray((objectives * region.scale)[:, columns])
        total += graph.minimise(scaled, *box, max_steps=1).values
    return total - 1e-12


@given(SEEDS)
@settings(max_examples=examples(15))
def test_blocks_are_recognised_and_give_what_the_joint_region_gives(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, rng.integers(2, 5)).tolist()
    d = sum(sizes)
    blocks = [random_half_spaces(rng, k, 6) for k in sizes]
    mixed = rng.permutation(d)
    rows, offsets, start = [np.vstack([-np.eye(d), np.eye(d)])], [np.zeros(d), np.ones(d)], 0
    for k, (own, limits) in zip(sizes, blocks, strict=True):
        wide = np.zeros((len(own) - 2 * k, d))
        wide[:, mixed[start : start + k]] = own[2 * k :]
        rows.append(wide)
        offsets.append(limits[2 * k :])
        start += k
    half_spaces = np.vstack(rows), np.concatenate(offsets)
    region = intersection(names(d), *half_spaces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shapes, "independent_blocks", lambda rows: [(np.arange(d), np.arange(len(rows)))])
        joint = intersection(names(d), *half_spaces)
    assert not isinstance(region, Contradiction)
    assert not isinstance(joint, Contradiction)
    assert len(region.blocks) >= len(sizes)
    objectives = rng.normal(size=(10, d)) * (rng.random((10, d)) < 0.5)
    assert region.minimise(objectives) == pytest.approx(joint.minimise(objectives), abs=1e-9)
    assert region.rows[: 2 * d] == pytest.approx(half_spaces[0][: 2 * d])


@given(SEEDS)
@settings(max_examples=examples(15))
def test_the_image_of_a_region_lies_within_its_half_spaces_and_touches_them(seed):
    rng = np.random.default_rng(seed)
    d, m = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    region = intersection(names(d), *random_half_spaces(rng, d, 8))
    assert not isinstance(region, Contradiction)
    matrix = rng.normal(size=(m, d)) * (rng.random((m, d)) < 0.8)
    of = AffineMap(rng.normal(size=m), matrix, np.full(m, 20.0))
    for work in (0.0, 1e9):
        (image,) = images(region, [of], max_work=work)
        corners = of.constants + region.table.vertices * region.scale @ matrix.T
        assert (corners @ image.rows.T <= image.offsets + 1e-9).all()
    reached = (corners @ image.rows.T).max(axis=0, initial=-np.inf)
    assert reached == pytest.approx(image.offsets, abs=1e-9)


def random_models(seed):
    """Return a random model, its region by all vertices, and what nature may do, by intervals and by the table."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, n_parameters=(2, 3))
    bounds, model = random_intervals(rng, problem), problem.model
    region = pl.stages.build_region(model.space, model.expressions, *bounds)
    assert not isinstance(region, Conflict)
    table = rectangular(model, region)
    assert isinstance(table.region, RowRegion)
    return problem, bounds, table


def by_rows(problem, bounds, work):
    with as_if_many(work):
        model = problem.model
        imdp = rectangular(model, pl.stages.build_region(model.space, model.expressions, *bounds))
    assert isinstance(imdp.region, RowPolytopes)
    return imdp


@pytest.mark.slow
@pytest.mark.parametrize("nature", ["robust", "optimistic"])
@given(SEEDS)
@settings(max_examples=examples(25))
def test_polytopes_of_rows_give_what_the_table_of_all_vertices_gives(nature, seed):
    problem, bounds, table = random_models(seed)
    imdp, short = by_rows(problem, bounds, 1e9), by_rows(problem, bounds, 0.0)
    intervals = expression_wise(
        problem.model, pl.stages.build_region(problem.model.space, problem.model.expressions, *bounds)
    )
    assume(imdp.region.of_kind)
    for objective in (
        Reach(problem.target, np.zeros_like(problem.target), "max"),
        Reward(problem.reward, "min", discount=Fraction(9, 10)),
    ):
        options = {"nature": nature, "precision": 1e-9}
        expected = pl.stages.solve(table, objective, **options)
        found, cut, wide = (pl.stages.solve(each, objective, **options) for each in (imdp, short, intervals))
        close = {"rel": 1e-6, "abs": 1e-7}
        if imdp.has_fixed_support():  # else what may vanish together is decided in another way, equally valid
            assert found.lower == pytest.approx(expected.lower, **close)
            assert found.upper == pytest.approx(expected.upper, **close)
        rises = (objective.direction == "max") != (nature == "robust")
        tight, loose = (found.upper, wide.upper) if rises else (-found.lower, -wide.lower)
        between = cut.upper if rises else -cut.lower
        slack = 1e-7 * np.maximum(np.abs(loose), 1)
        assert (between <= loose + slack).all()
        assert (tight <= loose + slack).all()
        if imdp.has_fixed_support():  # else bounds may stay open, and more half-spaces need not help
            assert (tight <= between + slack).all()


@pytest.mark.parametrize("nature", ["robust", "optimistic"])
@pytest.mark.parametrize("direction", ["max", "min"])
@pytest.mark.parametrize("seed", [1039, 1605])
def test_where_transitions_may_vanish_bounds_are_no_wider_than_those_of_intervals(seed, direction, nature):
    """In both models, bounds of minima against nature stay open; the policy attains those of intervals."""
    problem, bounds, table = random_models(seed)
    imdp, model = by_rows(problem, bounds, 1e9), problem.model
    assert not imdp.has_fixed_support()
    intervals = expression_wise(model, pl.stages.build_region(model.space, model.expressions, *bounds))
    objective, options = (
        Reach(problem.target, np.zeros_like(problem.target), direction),
        {"nature": nature, "precision": 1e-9},
    )
    wide = pl.stages.solve(intervals, objective, **options)
    for each in (table, imdp):
        found = pl.stages.solve(each, objective, **options)
        own = pl.stages.evaluate(each, found.policy, objective, **options)
        assert (found.lower <= found.upper).all()
        if (direction == "max") != (nature == "robust"):
            assert (found.upper <= wide.upper + 1e-7).all()
        else:
            assert (found.lower >= wide.lower - 1e-7).all()
        if direction == "max":
            assert (own.upper >= found.lower - 1e-9).all()
        else:
            assert (own.lower <= found.upper + 1e-9).all()


@pytest.mark.slow
def test_a_certificate_says_what_was_cut(monkeypatch):
    """With many variables and no time for facets, rows have half-spaces that may be far from what is known."""
    made = layered_model("mixture", 10, n_rows=5, n_layers=3, width=8)
    counts = pl.simulate(made.model, made.true_point, 300, rng=1, max_steps=made.max_steps)
    learned = pl.learn(made.model, counts, confidence_set="interval")
    monkeypatch.setattr(row_polytopes, "_WORK", 0.0)
    cut = pl.conclude(learned, made.objective, relaxation="rectangular")
    monkeypatch.setattr(row_polytopes, "_WORK", 1e9)
    whole = pl.conclude(learned, made.objective, relaxation="rectangular")
    assert "kinds of rows" in cut.how.left_out
    assert "left out" in str(cut)
    assert cut.to_dict()["left_out"] == cut.how.left_out
    assert not whole.how.left_out
    intervals = pl.conclude(learned, made.objective, relaxation="expression")
    assert intervals.lower - 1e-9 <= cut.lower <= whole.lower + 1e-9

"""Likelihoods of rows with hidden paths: sums in fractions, bounds on logarithms in balls, and points of regions."""

from dataclasses import replace
from fractions import Fraction
from math import prod

import numpy as np
import pytest
from cell_models import cell_model
from flint import arb, ctx, fmpq
from row_models import listed
from tiers import size

import plumdp as pl
from plumdp.certifying.on_pieces import slacks_of
from plumdp.confidence import path_likelihood
from plumdp.confidence.estimates import law_of_space
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.path_likelihood import PathLevelSet, expected_counts, path_level
from plumdp.confidence.path_sums import find_path_sums, total
from plumdp.data.seen import Seen
from plumdp.model.expressions.table import ExpressionTable
from plumdp.region import box_forms
from plumdp.region.ball import Ball
from plumdp.region.box_forms import Inequality
from plumdp.region.boxes import Boxes, OnBoxes, Quadratic
from plumdp.region.build import build_region
from plumdp.region.cutting import parameter_ranges

pytestmark = pytest.mark.slow

A, B, C = pl.parameters("a", "b", "c")
ROWS = [
    [A * B, 1 - A * B],
    [A * B + (1 - A) * (1 - B), A * (1 - B) + B * (1 - A)],
    [B + (1 - B) * A, (1 - B) * (1 - A)],
    [A * B * C + (1 - A) * (1 - B), A + B - A * B - A * B * C],
    [A**2 + (1 - A) ** 2, 2 * A * (1 - A)],
    [A * (1 - B), B * (1 - A), 1 - A - B + 2 * A * B],
    [(1 - A * B) / 3, (1 - A * B) * C / 2, 1 - (1 - A * B) / 3 - (1 - A * B) * C / 2],
    [1 - (1 - A) ** 3 * (1 - B), (1 - A) ** 3 * (1 - B)],
]
SPACES = [pl.ParameterSpace.unit("a", "b", "c"), pl.ParameterSpace.box(dict.fromkeys("abc", ("0.02", "0.6")))]


@pytest.mark.parametrize("row", [*ROWS, [(A - B) ** 2, 1 - (A - B) ** 2]], ids=str)
def test_sums_over_paths_are_the_outcomes_and_factors_are_nowhere_negative(row):
    """Handelman's theorem needs outcomes that are positive: (a - b)² is zero inside the space, and has no such sum."""
    rng = np.random.default_rng(1)
    for space in SPACES:
        sums = find_path_sums(row, space)
        if row[0] == (A - B) ** 2:
            assert sums is None
            continue
        assert [total(paths) for paths in sums] == row
        assert all(path.constant > 0 for paths in sums for path in paths)
        for _ in range(20):
            point = {
                n: low + (high - low) * Fraction(int(rng.integers(65)), 64)
                for n, (low, high) in zip("abc", space.bounds, strict=True)
            }
            assert all(f.evaluate(point) >= 0 for paths in sums for path in paths for f, _ in path.factors)


def test_a_ratio_above_one_is_a_sum_over_paths_if_the_space_makes_its_row_a_law():
    """1 - h p = 5 (1/5 - p) + p (5 - h) is at least zero for p up to 1/5 and h up to 5."""
    h, p = pl.parameters("h", "p")
    row = [h * p, 1 - h * p]
    sums = find_path_sums(row, pl.ParameterSpace.box({"p": (0, "0.2"), "h": ("0.2", 5)}))
    assert [total(paths) for paths in sums] == row
    assert find_path_sums(row, pl.ParameterSpace.box({"p": (0, "0.3"), "h": ("0.2", 5)})) is None


def test_rows_in_a_space_of_many_parameters_are_left_out():
    names = [f"p{i}" for i in range(9)]
    p = pl.parameters(*names)
    model = cell_model([[[p[0] * p[1], 1 - p[0] * p[1]]] * 2], pl.ParameterSpace.unit(*names))
    assert likelihood_table(model).paths is None
    assert len(likelihood_table(model).left_out) == 1


def random_set(rng):
    """Return a likelihood of one or two rows with hidden paths and an affine one, with random counts, and its model."""
    some = [ROWS[i] for i in rng.choice(len(ROWS), int(rng.integers(1, 3)), replace=False)]
    model = cell_model([[row, [A, 1 - A]] for row in some], SPACES[int(rng.integers(2))])
    paths = likelihood_table(model).paths
    counts = rng.choice([0, 1, 3, 17, 400, 12345, 10**6], model.graph.n_transitions)
    seen, hidden = paths.pool(Seen(counts))
    hidden[int(rng.integers(len(hidden)))] += 5
    # far below, so that no number alone excludes a box, but for some
    return PathLevelSet(paths, seen, hidden, float(rng.choice([-1e8, -1e8, -50.0])), 0.1), model


def ball(number):
    return arb(fmpq(number.numerator, number.denominator)) if isinstance(number, Fraction) else arb(float(number))


def log_likelihood(level, point):
    """Return Σ n ln f at a point in fractions, with outcomes as polynomials, or None if it is minus infinity."""
    paths, found = level.paths, arb(0)
    outcomes = [(level.outcome_counts[j], f) for j, f in enumerate(paths.table.outcomes)]
    outcomes += [(n, f) for n, f in zip(level.path_counts, (f for row in paths.rows for f in row), strict=True)]
    for n, f in outcomes:
        value = f.evaluate({name: point[name] for name in f.names}) if n else 1
        if value <= 0:
            return None
        found += arb(int(n)) * ball(Fraction(value)).log()
    return found


def points_above(seed):
    """Return how often a log-likelihood is above the function on a box that bounds it, and how often that was asked.

    Boxes may be large, and may touch points at which factors vanish.
    """
    rng, ctx.prec = np.random.default_rng(seed), 200
    level, model = random_set(rng)
    lower, upper = model.space.lower, model.space.upper
    d, n_boxes = len(lower), 4
    ball_around = Ball((lower + upper) / 2, np.diag((upper - lower) / 2))
    ends = (
        np.sort(rng.uniform(-1, 1, (2, n_boxes, d)), axis=0)
        if seed % 2
        else np.sort(rng.choice([-1.0, -0.5, 0, 0.5, 1.0], (2, n_boxes, d)), axis=0)
    )
    width = 10 ** -rng.uniform(0, 3, (n_boxes, 1)) if seed % 3 else 1.0
    middle, reach = ends.mean(axis=0), (ends[1] - ends[0]) / 2 * width + 1e-9
    boxes = Boxes(ball_around, middle, reach)
    value, slope, bent, error = (np.vectorize(Fraction, otypes=[object])(part) for part in level.above(boxes))
    exact = np.vectorize(Fraction, otypes=[object])
    wrong = asked = 0
    for b in range(n_boxes):
        for i in range(6):
            x = exact(rng.choice([-1.0, 1.0], d) if i < 3 else rng.uniform(-1, 1, d))
            at = exact(ball_around.centre) + exact(ball_around.factor) @ (exact(middle[b]) + exact(reach[b]) * x)
            point = dict(zip(model.space.names, at, strict=True))
            if not all(
                low <= point[name] <= high
                for name, (low, high) in zip(model.space.names, model.space.bounds, strict=True)
            ):
                continue
            found = log_likelihood(level, point)
            if found is not None:
                asked += 1
                most = value[b] + slope[b] @ x + x @ bent[b] @ x + error[b]
                wrong += bool(found - ball(Fraction(level.threshold)) > ball(most))
    return wrong, asked


def test_functions_on_boxes_are_above_the_log_likelihood():
    found = np.array([points_above(seed) for seed in range(size(40, 1500))])
    assert found[:, 0].sum() == 0
    assert found[:, 1].sum() > 8 * len(found)


def lost_information_is_gained(patch):
    """What hidden paths do not tell is added to what the data tell."""
    patch.setattr(path_likelihood, "_psi", lambda reach: -np.ones_like(reach))


def paths_do_not_differ(patch):
    """Numbers of factors are taken to be the same on all paths."""
    of = path_likelihood._UsedPaths.of
    patch.setattr(
        path_likelihood._UsedPaths,
        "of",
        staticmethod(lambda *a, **k: replace(found := of(*a, **k), spans=0 * found.spans)),
    )


def vanishing_factors_count_in_the_middle(patch):
    """Factors that may vanish in a box count as they are in its middle."""
    on = path_likelihood._Factors.on

    def wrong(constants, coefficients, centres, *rest):
        found = on(constants, coefficients, centres, *rest)
        middle = np.log(np.maximum(constants + centres @ coefficients.T, 1e-300))
        return replace(found, logs=np.where(found.change == 0, middle, found.logs))

    patch.setattr(path_likelihood._Factors, "on", staticmethod(wrong))


def curvature_of_the_other_sign(patch):
    """Logarithms are bent as much where factors grow as where they fall."""
    patch.setattr(path_likelihood, "curvature_below", path_likelihood.curvature_above)


def probabilities_that_sum_to_less(patch):
    """Outcomes of a row are taken to sum to a half."""
    most_likely = path_likelihood._most_likely

    def less(paths, factors):
        most, rounding = most_likely(paths, factors)
        return most - paths.counts.sum() * np.log(2), rounding

    patch.setattr(path_likelihood, "_most_likely", less)


PLANTED = [
    lost_information_is_gained,
    paths_do_not_differ,
    vanishing_factors_count_in_the_middle,
    curvature_of_the_other_sign,
    probabilities_that_sum_to_less,
]


@pytest.mark.parametrize("planted", PLANTED)
def test_an_error_planted_in_functions_on_boxes_is_found(planted, monkeypatch):
    planted(monkeypatch)
    assert any(points_above(seed)[0] for seed in range(200))


def rare_path():
    """Return ln f less its bound, for f = (1 + a¹²)/2 at a = 0.925, on a box about a half: one path grows by 1.85¹²."""
    ctx.prec = 200
    model = cell_model([[[(1 + A**12) / 2, (1 - A**12) / 2]]], pl.ParameterSpace.unit("a"))
    paths = likelihood_table(model).paths
    level = PathLevelSet(paths, np.zeros(len(paths.table.outcomes)), np.array([10.0**6, 0.0]), -1e8, 0.1)
    boxes = Boxes(Ball(np.array([0.5]), np.array([[0.5]])), np.zeros((1, 1)), np.full((1, 1), 0.85))
    value, slope, bent, error = level.above(boxes)
    most = Fraction(value[0]) + Fraction(slope[0, 0]) + Fraction(bent[0, 0, 0]) + Fraction(error[0])
    return log_likelihood(level, {"a": Fraction(1, 2) + Fraction(0.85) / 2}) + 10**8 - ball(most)


def test_a_path_that_is_rare_in_the_middle_of_a_box_counts_at_its_ends(monkeypatch):
    assert rare_path() < 0
    monkeypatch.setattr(path_likelihood, "_psi", np.ones_like)  # large changes of logarithms are taken for small ones
    assert rare_path() > 0


def points_below(seed):
    """Return how often the log-likelihood is below that of expected numbers of factors, at points of the space."""
    rng, ctx.prec = np.random.default_rng(seed), 200
    level, model = random_set(rng)
    near = model.space.lower + rng.uniform(0, 1, 3) * (model.space.upper - model.space.lower)
    expected, constant = expected_counts(level.paths, level.path_counts, near)
    wrong = 0
    for i in range(6):
        share = [Fraction(int(rng.integers(1, 512)), 512) if i < 4 else Fraction(1, 10**6) for _ in range(3)]
        point = (
            dict(zip("abc", map(Fraction, near), strict=True))
            if not i
            else {n: low + (high - low) * x for n, (low, high), x in zip("abc", model.space.bounds, share, strict=True)}
        )
        found = log_likelihood(level, point)
        below = arb(constant)
        for n, f in zip(level.outcome_counts + expected, level.paths.table.outcomes, strict=True):
            value = f.evaluate({name: point[name] for name in f.names})
            below += ball(Fraction(float(n))) * ball(value).log() if n else 0
        wrong += found is not None and bool(found < below)
    return wrong


def test_expected_numbers_of_factors_are_below_the_log_likelihood():
    assert sum(points_below(seed) for seed in range(size(40, 1500))) == 0


def test_constants_of_paths_that_are_too_large_are_found(monkeypatch):
    monkeypatch.setattr(path_likelihood, "float_below", lambda number: 1.001 * float(number))
    assert any(points_below(seed) for seed in range(10))


def evidence_by_quadrature(level, law, n=400):
    """Return the logarithm of the average of the likelihood of two parameters over the law, in the unit square."""
    grid = (np.arange(n) + 0.5) / n
    points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    logs = level.at(points) + level.threshold
    off = points - law.mean
    logs = logs - np.einsum("ni,ij,nj->n", off, law.precision, off) / 2
    logs += np.linalg.slogdet(law.precision)[1] / 2 - np.log(2 * np.pi) - 2 * np.log(n)
    top = logs.max()
    return float(top + np.log(np.exp(logs - top).sum()))


@pytest.mark.parametrize("row", [ROWS[0], ROWS[1], ROWS[2]], ids=str)
def test_evidence_is_below_the_average_of_the_likelihood(row):
    """Paths that are hidden cost what the data would tell of them: half of ln det of one matrix over another."""
    model = cell_model([[row, [A, 1 - A]]], pl.ParameterSpace.unit("a", "b"))
    paths, law, rng = likelihood_table(model).paths, law_of_space(model), np.random.default_rng(3)
    for n in (10, 100, 1000):
        chance = model.expressions.evaluate(np.array([[0.8, 0.6]]))[model.expression, 0]
        counts = rng.poisson(n * chance * (chance < 1))
        seen, hidden = paths.pool(Seen(counts))
        level = path_level(paths, seen, hidden, np.array([0.8, 0.6]), law, 1.0)
        best = evidence_by_quadrature(level, law)
        assert best - 2.5 < level.threshold <= best + 1e-3


def test_factors_of_hidden_paths_are_no_class_and_are_never_counted():
    model = cell_model([[ROWS[1], [A, 1 - A]]], SPACES[0])
    paths = likelihood_table(model).paths
    groups = paths.table.group[paths.factors]
    assert not paths.table.is_class[groups].any()
    assert not paths.pool(Seen(np.ones(model.graph.n_transitions, dtype=np.int64)))[0][paths.factors].any()


def sensors():
    """Return a chain of two sensors: the first one is seen alone, then whether both agree, then whether both work."""
    rows = [[A, 1 - A], [A * B + (1 - A) * (1 - B), A + B - 2 * A * B], [A * B, 1 - A * B]]

    rows = {x: {"go": [(good, x + 1), (bad, 4)]} for x, (good, bad) in enumerate(rows)}
    return listed(rows, "a b", at="x", labels={"good": 3})


def values_outside(n_games):
    """Return how many points in all sets have values outside of certificates, and how many points there were."""
    model, objective = sensors(), 'Pmax=? [ F "good" ]'
    value, wrong, asked = A * (A * B + (1 - A) * (1 - B)) * A * B, 0, 0
    for seed in range(n_games):
        counts = pl.simulate(model, {"a": "0.8", "b": "0.6"}, 300, rng=seed, max_steps=20)
        learned = pl.learn(model, counts, confidence=0.9, objectives=[objective])
        certificate, slacks = pl.conclude(learned, objective), slacks_of(learned)
        points = np.random.default_rng(seed).normal(learned.estimate, (0.03, 0.1), (2000, 2)).clip(0, 1)
        is_inside = np.all([slack.at(points) > 0 for slack in slacks], axis=0)
        is_inside &= ((points >= learned.region.lower[:2]) & (points <= learned.region.upper[:2])).all(axis=1)
        for a, b in points[is_inside]:
            at = float(value.evaluate({"a": Fraction(a), "b": Fraction(b)}))
            wrong += not certificate.lower - 1e-9 <= at <= certificate.upper + 1e-9
        asked += int(is_inside.sum())
    return wrong, asked


def test_certificates_hold_at_every_point_of_the_sets():
    wrong, asked = values_outside(size(2, 30))
    assert wrong == 0
    assert asked > 200


def test_a_slack_that_is_too_small_is_found(monkeypatch):
    above = Inequality.above
    monkeypatch.setattr(
        Inequality, "above", lambda self, boxes: above(self, boxes)._replace(error=-np.ones(len(boxes.middle)))
    )
    assert values_outside(2)[0] > 0


def points_beyond_ranges():
    """Return how many points of a likelihood are outside of the ranges of parameters, and how many there were.

    The set of {ab + (1 - a)(1 - b)} alone has two parts, which are mirror images.
    """
    model = cell_model([[ROWS[1]]], pl.ParameterSpace.unit("a", "b"))
    paths = likelihood_table(model).paths
    counts = np.where(model.expressions.is_unknown[model.expression], 0, 0)
    counts[np.flatnonzero(model.expressions.is_unknown[model.expression])] = (700, 300)
    seen, hidden = paths.pool(Seen(counts))
    level = path_level(paths, seen, hidden, np.array([0.8, 0.8]), law_of_space(model), 0.05)
    lower, upper = parameter_ranges(build_region(model.space, (), (), ()), [level], 2)
    points = np.random.default_rng(1).uniform(0, 1, (20_000, 2))
    inside = points[level.at(points) >= 0]
    return (~((lower <= inside) & (inside <= upper)).all(axis=1)).sum(), len(inside)


def test_the_ranges_of_parameters_hold_all_points_of_the_likelihood():
    assert points_beyond_ranges()[0] == 0
    assert points_beyond_ranges()[1] > 100


def test_boxes_that_lose_points_of_the_likelihood_are_found(monkeypatch):
    contracted = OnBoxes.contracted

    def too_small(self, lower, upper):
        lower, upper = contracted(self, lower, upper)
        return lower + (upper - lower) / 10, upper

    monkeypatch.setattr(OnBoxes, "contracted", too_small)
    assert points_beyond_ranges()[0] > 0


def points_above_inequalities(n):
    """Return how often a slack is above the function on a box that bounds it: polynomials, in fractions."""
    rng, exact, wrong = np.random.default_rng(1), np.vectorize(Fraction, otypes=[object]), 0
    for _ in range(n):
        d, f = int(rng.integers(1, 4)), A - A
        for _ in range(int(rng.integers(12))):
            powers = zip((A, B, C)[:d], rng.integers(5, size=d).tolist(), strict=True)
            f += Fraction(int(rng.integers(-9, 10)), 7) * prod(p**power for p, power in powers)
        around, reach = Ball(rng.uniform(0, 1, d), rng.normal(size=(d, d)) / 3), 10 ** -rng.uniform(0.2, 4, (4, d))
        boxes = Boxes(around, rng.uniform(-1, 1, (4, d)), reach)
        above = Inequality(ExpressionTable.build([f], tuple("abc"[:d])), 1.0).above(boxes)
        for b, (value, slope, bent, error) in enumerate(zip(*map(exact, above), strict=True)):
            for i in range(6):
                x = exact(rng.choice([-1.0, 1.0], d) if i < 3 else rng.uniform(-1, 1, d))
                at = exact(around.factor) @ (exact(boxes.middle[b]) + exact(reach[b]) * x) + exact(around.centre)
                found = f.evaluate({name: v for name, v in zip("abc", at, strict=False) if name in f.names})
                wrong += 1 - found > value + slope @ x + x @ bent @ x + error
    return wrong


def test_functions_on_boxes_are_above_slacks_of_polynomials(monkeypatch):
    assert points_above_inequalities(size(20, 500)) == 0
    derivatives = box_forms.derivatives
    for planted in (
        lambda found, powers: (
            found * np.where(powers.sum(1) == 2, 1.1, 1.0),
            powers,
        ),  # what is not known is too small
        lambda found, powers: (found, powers[:, ::-1]),  # parameters are mistaken for each other
    ):
        monkeypatch.setattr(box_forms, "derivatives", lambda *a, planted=planted: planted(*derivatives(*a)))
        assert points_above_inequalities(20) > 0


def test_what_is_not_a_number_on_a_box_does_not_exclude_it():
    class Broken:
        is_bent = True

        def above(self, boxes):
            b, d = boxes.middle.shape
            return Quadratic(np.full(b, np.nan), np.zeros((b, d)), np.zeros((b, d, d)), np.zeros(b))

        def at(self, points):
            return np.zeros(len(points))

    region = build_region(pl.ParameterSpace.unit("a", "b"), (), (), ())
    lower, upper = parameter_ranges(region, [Broken()], 2)
    assert (lower <= 0).all()
    assert (upper >= 1).all()

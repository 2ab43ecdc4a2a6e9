"""Backups over an ellipsoid against exact arithmetic, row by row, and against the points of the ellipsoid."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from random_pmdps import random_counts, random_problem

import plumdp as pl
from plumdp.model.space import affine_coefficients
from plumdp.region.ellipsoid import build_ellipsoid
from plumdp.relaxation.relax import expression_wise, row_ellipsoid
from plumdp.solver.nature import Rows
from plumdp.solver.nature import ellipsoid as ellipsoid_kernels
from studies.least_squares import least_squares

pytestmark = pytest.mark.slow

ctx.prec = 200
TINY = 1e-50  # what 200 bits may be off
PLAYERS = [(agent, nature) for agent in (1.0, -1.0) for nature in (1.0, -1.0)]


def relaxed(rng, problem):
    """Return the ellipsoid of random counts of a problem, its intervals, and the tables of its rows."""
    model = problem.model
    found = least_squares(model, random_counts(rng, problem, most=10 ** int(rng.integers(1, 6))), error=0.5)
    region = build_ellipsoid(
        found.centre, found.matrix, found.radius, within=pl.stages.build_region(model.space, (), (), ())
    )
    imdp = expression_wise(model, region)
    return region, imdp, row_ellipsoid(region, model.expressions, imdp.lower, imdp.upper)


def test_tables_with_known_probabilities_are_of_the_types_that_the_kernel_is_compiled_for():
    """A writable array is another type to numba than a read-only one, and compiling takes seconds."""
    _, _, rows = relaxed(np.random.default_rng(2), random_problem(np.random.default_rng(1)))
    for one, more in zip(rows.tables, rows.with_constants(np.ones(1)).tables, strict=True):
        assert (one.dtype, one.flags.writeable) == (more.dtype, more.flags.writeable)
        assert len(more) == len(one) + 1


def backup(imdp, rows, values, agent, nature, side, *, reward=None):
    """Return one step of all states from the given values."""
    graph = imdp.graph
    result, best_row = np.full(graph.n_states, -np.inf), np.zeros(graph.n_states, dtype=np.int32)
    longest = int(np.diff(graph.first_transition).max())
    ellipsoid_kernels.backup(
        0, graph.n_states, 1, rows_of(imdp, agent, nature, reward), side, 0.0, np.inf, values, result, best_row,
        np.zeros(0, dtype=np.int32), np.empty(rows.tables[1].shape[1]), np.empty(longest), rows.tables,
    )  # fmt: skip
    return result


def rows_of(imdp, agent, nature, reward=None):
    """Return the rows of a model as the kernels take them."""
    graph = imdp.graph
    arrays = (graph.first_choice, graph.first_transition, graph.successor, imdp.expression)
    rewards = np.zeros(graph.n_choices) if reward is None else reward
    return Rows(*(a.astype(np.uint32) for a in arrays), imdp.lower, imdp.upper, rewards, 1.0, agent, nature)


def by_ellipsoid(region, row, values, nature):
    """Return the best value of a row over the ellipsoid alone: at the centre, plus or minus the norm; 200 bits."""
    gradient, at_centre = [arb(0)] * len(region.names), arb(0)
    for f, value in zip(row, values, strict=True):
        constant, slopes = affine_coefficients(f, region.names)
        at_centre += rational(constant) * value
        for j, slope in enumerate(slopes):
            at_centre += rational(slope) * float(region.centre[j]) * value
            gradient[j] += rational(slope) * value
    images = (
        sum((arb(float(region.root[j, i])) * g for j, g in enumerate(gradient)), arb(0)) for i in range(len(gradient))
    )
    norm = sum((image * image for image in images), arb(0)).sqrt() * region.radius
    return at_centre + int(nature) * norm


def rational(number):
    return arb(number.numerator) / number.denominator


def by_intervals(lower, upper, values, nature):
    """Return the best value of a row within its intervals, in fractions: what nature prefers is filled first."""
    free = 1 - sum(map(Fraction, lower))
    total = Fraction(0)
    for value, low, high in sorted(zip(values, lower, upper, strict=True), key=lambda one: -nature * one[0]):
        extra = min(Fraction(high) - Fraction(low), free)
        free -= extra
        total += (Fraction(low) + extra) * Fraction(value)
    return total


def test_rows_are_worth_what_exact_arithmetic_says_rounded_to_the_given_side():
    """Rows on which no probability is negative get the better of ellipsoid and intervals; the others, the intervals."""
    rng = np.random.default_rng(70)
    seen = {"inside": 0, "outside": 0, "cut": 0}
    for _ in range(150):
        problem = random_problem(rng)
        region, imdp, rows = relaxed(rng, problem)
        graph, polynomials = imdp.graph, problem.model.expressions.polynomials
        values = rng.integers(0, 5, graph.n_states) / 3 if rng.random() < 0.5 else rng.exponential(size=graph.n_states)
        one_choice = np.flatnonzero(np.diff(graph.first_choice) == 1)
        for nature in (1.0, -1.0):
            low, high = (backup(imdp, rows, values, 1.0, nature, side) for side in (-1.0, 1.0))
            for s in one_choice:
                choice = graph.first_choice[s]
                transitions = np.arange(*graph.first_transition[choice : choice + 2])
                if len(transitions) < 3:
                    continue
                expression = imdp.expression[transitions]
                row, targets = [polynomials[f] for f in expression], values[graph.successor[transitions]].tolist()
                expected = rational(by_intervals(imdp.lower[expression], imdp.upper[expression], targets, nature))
                if all(by_ellipsoid(region, [f], [1.0], -1.0) >= 0 for f in row):
                    other = by_ellipsoid(region, row, targets, nature)
                    is_cut = nature * expected < nature * other
                    seen["cut" if is_cut else "inside"] += 1
                    expected = expected if is_cut else other
                else:
                    seen["outside"] += 1
                assert arb(low[s]) <= expected + TINY
                assert expected <= arb(high[s]) + TINY
                assert high[s] - low[s] <= 1e-12 * (1 + max(targets))
    assert min(seen.values()) > 10, seen


@pytest.mark.parametrize(("agent", "nature"), PLAYERS)
def test_no_point_of_the_ellipsoid_is_worth_more_to_nature(agent, nature):
    """Of points drawn from the ellipsoid that are also in the space, none leaves the bounds of one step."""
    rng = np.random.default_rng([71, int(agent) + 1, int(nature) + 1])
    n_points = 0
    for _ in range(40):
        problem = random_problem(rng)
        region, imdp, rows = relaxed(rng, problem)
        graph, d = imdp.graph, len(region.names)
        values = rng.exponential(size=graph.n_states)
        bound = backup(imdp, rows, values, agent, nature, nature)
        directions = rng.normal(size=(20, d))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        for x in directions * rng.choice([1.0, 0.5], size=(20, 1)):
            point = dict(
                zip(
                    region.names, map(Fraction, region.centre + 0.999999 * region.radius * region.root @ x), strict=True
                )
            )
            if not problem.model.space.contains(point):
                continue
            n_points += 1
            probability = problem.model.probabilities(point)[problem.model.expression]
            of_choice = graph.sum_by_choice(probability * values[graph.successor])
            best = (np.maximum if agent > 0 else np.minimum).reduceat(of_choice, graph.first_choice[:-1])
            assert (nature * best <= nature * bound + 1e-12).all()
    assert n_points > 50


def test_iterates_from_below_stay_below_the_value_at_a_point_of_the_ellipsoid():
    """Robust reachability: backups from zero never pass the value at the true point, if the ellipsoid contains it."""
    rng = np.random.default_rng(72)
    n_tested = 0
    for _ in range(40):
        problem = random_problem(rng)
        region, imdp, rows = relaxed(rng, problem)
        truth = pl.stages.instantiate(problem.model, problem.point)
        away = np.array([float(problem.point[name]) for name in region.names]) - region.centre
        if np.linalg.norm(np.linalg.solve(region.root, away)) > region.radius:
            continue
        n_tested += 1
        target = problem.target
        values = target.astype(np.float64)
        for _ in range(60):
            values = np.where(target, 1.0, np.maximum(values, backup(imdp, rows, values, 1.0, -1.0, -1.0)))
        objective = pl.model.Reach(target, np.zeros_like(target), "max")
        assert (values <= pl.stages.solve(truth, objective).upper).all()
    assert n_tested > 20


@pytest.mark.parametrize(("agent", "nature"), PLAYERS)
def test_the_chain_of_best_moves_is_worth_what_the_backup_says(agent, nature):
    rng = np.random.default_rng([73, int(agent) + 1, int(nature) + 1])
    for _ in range(40):
        problem = random_problem(rng)
        _, imdp, rows = relaxed(rng, problem)
        graph, n = imdp.graph, imdp.graph.n_states
        values = rng.exponential(size=n)
        one_choice = np.flatnonzero(np.diff(graph.first_choice) == 1)
        expected = backup(imdp, rows, values, agent, nature, nature)
        offset, constants = np.zeros(n + 1, dtype=np.int32), np.ones((n, 3))
        column, entry = np.empty(graph.n_transitions, dtype=np.int32), np.empty(graph.n_transitions)
        used = ellipsoid_kernels.chain_of_best(
            0, n, rows_of(imdp, agent, nature), values, values, values, graph.first_choice[:-1].astype(np.int32),
            offset, column, entry, constants, np.zeros(0, dtype=np.int32), np.empty(rows.tables[1].shape[1]),
            np.empty(int(np.diff(graph.first_transition).max())), rows.tables,
        )  # fmt: skip
        row = np.repeat(np.arange(n), np.diff(offset))
        worth = np.bincount(row, entry[:used] * values[column[:used]], n)
        mass = np.bincount(row, entry[:used], n)
        assert (entry[:used] > 0).all()
        assert mass == pytest.approx(np.ones(n), abs=1e-12)
        assert worth[one_choice] == pytest.approx(expected[one_choice], abs=1e-12)

"""A lower bound on the smallest, over the points of a space, of the largest test of a model at the point.

A test is a convex function of the parameters that is below zero at the true point but for its share of an error (see
``bets`` and ``cell_tests``). Wanted is a lower bound on min over v of max over i of T[i](v). For any point w, any
multipliers λ >= 0 of tests that sum to one, and any η >= 0 of the inequalities A v <= b of the space, all points of it
have

    max T[i](v) >= Σ λ[i] T[i](v) >= Σ λ[i] T[i](w) + η·(A w - b) + (Σ λ[i] ∇T[i](w) + Aᵀη)·(v - w),

as convex functions lie above their tangents, and η·(A v - b) <= 0. The last term is least at a corner of the box. So
whatever proposes w, λ and η, the bound holds. They are proposed by Newton's method for s ln Σ exp(T[i] / s) with a
barrier s Σ ln(b - A v), as s falls: λ and η are the weights in its gradient, which is zero at the minimum. The barrier
needs a space with inner points. One that has none, such as a parameter whose value is known, is widened a little, as a
bound for more points is one for the points of the space.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from plumdp.base.rounding import UNIT
from plumdp.confidence.likelihood_table import AffineOutcomes
from plumdp.confidence.space_moments import simplified
from plumdp.fit.cell_tests import CellTests, largest
from plumdp.model.graph import FloatArray, Indices, read_only
from plumdp.model.space import ParameterSpace

_MOST_CELLS = 200  # tests of cells that are looked at: those that speak most against the point
_ROUNDS = 3  # of looking for further ones
_SMOOTHNESS = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
_MAX_STEPS = 30
_SHORTEST = 2.0**-40
_LEAST_SLACK = 1e-7  # of the start in each inequality, relative to its size: spaces are widened where it has less


@dataclass(frozen=True, eq=False)
class AffineTests:
    """Tests ``slopes @ v + constants`` that are affine in the parameters, rounded down."""

    slopes: FloatArray  # (m, d)
    constants: FloatArray  # (m)


@dataclass(frozen=True, eq=False)
class Agreement:
    """The point at which tests agree best, a lower bound on the largest test anywhere, and multipliers as its proof."""

    least: float
    point: FloatArray  # (d)
    affine: FloatArray  # (m): the multipliers of affine tests
    cells: FloatArray  # (n_cells): those of tests of cells
    affine_values: FloatArray  # (m): at the point
    cell_values: FloatArray  # (n_cells): at the point


class _Space(NamedTuple):
    """The inequalities ``rows @ v <= offsets`` of a space, box included, and its box."""

    rows: FloatArray
    offsets: FloatArray
    lower: FloatArray
    upper: FloatArray


def find_agreement(
    space: ParameterSpace, outcomes: AffineOutcomes, affine: AffineTests, cells: CellTests, start: FloatArray
) -> Agreement:
    """Return a lower bound on the largest test at the best point.

    If it is above zero, no point agrees with all tests. ``start`` is a point of the space, or close to it, where all
    outcomes that were seen can happen. Otherwise the bound is minus infinity, and so it is if there are no tests. Tests
    of cells that gained minus infinity, as no evidence was found, are left out: others speak without them.
    """
    limits, is_proved = _inequalities(space, start), np.isfinite(cells.gained)
    chosen: Indices = np.zeros(0, dtype=np.int64)
    at, best = start, _Saddle(-np.inf, start, np.zeros(len(affine.constants)), np.zeros(0))
    for number in range(_ROUNDS):
        values = np.where(is_proved, cells.values(_logarithms(outcomes, at)), -np.inf)
        strongest = largest(values, _MOST_CELLS)
        more = np.union1d(chosen, strongest[is_proved[strongest]])
        tests = _CombinedTests(outcomes, affine, cells.take(more))
        is_done = number > 0 and len(more) == len(chosen)
        if is_done or not len(tests) or not np.isfinite(_smooth(limits, tests, at, 1.0)[0]):
            break
        chosen, best = more, _saddle(limits, tests, at)
        at = best.point
    multipliers = np.zeros(len(cells))
    multipliers[chosen] = best.cells
    affine_values = affine.slopes @ at + affine.constants
    return Agreement(
        best.least, read_only(at), best.affine, multipliers, affine_values, cells.values(_logarithms(outcomes, at))
    )


def _inequalities(space: ParameterSpace, start: FloatArray) -> _Space:
    """Return the inequalities of a space, moved outward as far as the start needs to be inside."""
    matrix, limits = simplified(space).inequalities
    d, unit = space.dimension, np.eye(space.dimension)
    rows, offsets = np.vstack([-unit, unit, matrix]), np.concatenate([-space.lower, space.upper, limits])
    size = np.abs(rows) @ np.maximum(np.abs(start), np.maximum(np.abs(space.lower), np.abs(space.upper)))
    # outward: a larger space has a smaller minimum, and a larger p-value
    offsets = np.maximum(offsets, rows @ start + _LEAST_SLACK * np.maximum(size, _LEAST_SLACK))
    return _Space(rows, offsets, -offsets[:d], offsets[d : 2 * d])


def _logarithms(outcomes: AffineOutcomes, point: FloatArray) -> FloatArray:
    """Return ln f of each outcome at a point, or minus infinity where f is not positive."""
    values = outcomes.chances(point)
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms: FloatArray = np.where(values > 0, np.log(np.where(values > 0, values, 1.0)), -np.inf)
    return logarithms


class _CombinedTests:
    """Some tests as one function with values, gradients and second derivatives."""

    def __init__(self, outcomes: AffineOutcomes, affine: AffineTests, cells: CellTests) -> None:
        self.affine, self.cells = affine, cells
        self.used, place = np.unique(cells.outcome, return_inverse=True)
        self.renumbered = CellTests(cells.cell, cells.gained, cells.first, place, cells.seen)
        self.constants, self.slopes = outcomes.constants[self.used], outcomes.coefficients[self.used]
        self.owner = np.repeat(np.arange(len(cells)), np.diff(cells.first))

    def __len__(self) -> int:
        return len(self.affine.constants) + len(self.cells)

    def probabilities(self, point: FloatArray) -> FloatArray:
        return self.constants + self.slopes @ point

    def values(self, point: FloatArray) -> FloatArray:
        """Return all tests at a point, infinite where an outcome that was seen has no probability."""
        f = self.probabilities(point)
        if not (f > 0).all():
            return np.full(len(self), np.inf)
        return np.concatenate([self.affine.slopes @ point + self.affine.constants, self.renumbered.values(np.log(f))])

    def gradients(self, point: FloatArray) -> FloatArray:
        """Return the gradient of each test (m, d)."""
        relative = self.slopes / self.probabilities(point)[:, None]
        terms = relative[self.renumbered.outcome] * self.renumbered.seen[:, None]
        cells = (
            -np.add.reduceat(terms, self.renumbered.first[:-1]) if len(self.renumbered) else np.zeros((0, len(point)))
        )
        return np.vstack([self.affine.slopes, cells])

    def curvature(self, point: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the second derivative (d, d) of the sum of multipliers times tests."""
        of_cells = multipliers[len(self.affine.constants) :]
        weights = np.bincount(self.renumbered.outcome, self.renumbered.seen * of_cells[self.owner], len(self.used))
        relative = self.slopes / self.probabilities(point)[:, None]
        second: FloatArray = relative.T @ (relative * weights[:, None])
        return second


class _Saddle(NamedTuple):
    least: float
    point: FloatArray
    affine: FloatArray
    cells: FloatArray


def _saddle(space: _Space, tests: _CombinedTests, start: FloatArray) -> _Saddle:
    """Return the best of the bounds that Newton's method proposes as the smoothing falls."""
    point, m = start, len(tests.affine.constants)
    best = _Saddle(-np.inf, start, np.zeros(m), np.zeros(len(tests.cells)))
    for smoothness in _SMOOTHNESS:
        proposals = _minimise(space, tests, point, smoothness)
        for point, multipliers in proposals:
            least = _bound(space, tests, point, multipliers, smoothness)
            if least > best.least:  # not so for what is not a number
                best = _Saddle(least, point, multipliers[:m], multipliers[m:])
    return best


def _minimise(space: _Space, tests: _CombinedTests, point: FloatArray, s: float) -> list[tuple[FloatArray, FloatArray]]:
    """Return points where s ln Σ exp(T / s) - s Σ ln(b - A v) is about least, and the multipliers of tests there.

    A further one is where a last full step goes. With millions of observations values are too coarse to tell whether it
    leads down, but gradients are not.
    """
    value, weights = _smooth(space, tests, point, s)
    for _ in range(_MAX_STEPS):
        step, promise = _newton_step(space, tests, point, weights, s)
        length = 1.0 if promise > 1e-9 * s else 0.0
        while length > _SHORTEST:
            after, new = _smooth(space, tests, point + length * step, s)
            if after <= value - 1e-4 * length * promise:
                break
            length /= 2
        else:
            break
        point, value, weights = point + length * step, after, new
    after, new = _smooth(space, tests, point + step, s)
    return [(point, weights), (point + step, new)] if np.isfinite(after) else [(point, weights)]


def _newton_step(
    space: _Space, tests: _CombinedTests, point: FloatArray, weights: FloatArray, s: float
) -> tuple[FloatArray, float]:
    """Return the step of Newton's method and by how much the smooth maximum would fall at first."""
    gradients, slack = tests.gradients(point), space.offsets - space.rows @ point
    mean = weights @ gradients
    off = gradients - mean
    slope = mean + s * (space.rows.T @ (1 / slack))
    second = tests.curvature(point, weights) + off.T @ (off * (weights / s)[:, None])
    second += s * (space.rows.T @ (space.rows / slack[:, None] ** 2))
    size = np.sqrt(np.diagonal(second))
    step = -np.linalg.lstsq(second / np.outer(size, size), slope / size, rcond=None)[0] / size
    return step, -float(slope @ step)


def _smooth(space: _Space, tests: _CombinedTests, point: FloatArray, s: float) -> tuple[float, FloatArray]:
    """Return the smooth maximum with its barrier, infinite outside or without tests, and the weights of the tests."""
    slack = space.offsets - space.rows @ point
    values = tests.values(point)
    if not (len(values) and (slack > 0).all() and np.isfinite(values).all()):
        return np.inf, np.zeros(len(values))
    top = values.max()
    weights = np.exp((values - top) / s)
    total = weights.sum()
    return float(top + s * np.log(total) - s * np.log(slack).sum()), weights / total


def _bound(space: _Space, tests: _CombinedTests, point: FloatArray, multipliers: FloatArray, s: float) -> float:
    """Return the bound that multipliers prove by the formula above, less what rounding may have added."""
    # any multipliers that sum to one will do; these are about the best
    multipliers = multipliers / multipliers.sum()
    slack = space.offsets - space.rows @ point
    eta = s / slack
    values, sizes, of_gradients = _terms(tests, point)
    of_tests, pull = float(multipliers @ values), -float(eta @ slack)
    slope = multipliers @ tests.gradients(point) + space.rows.T @ eta
    left = np.minimum(slope * (space.lower - point), slope * (space.upper - point))  # least at a corner of the box
    reach = np.abs(point) + np.maximum(np.abs(space.lower), np.abs(space.upper))
    gradients = np.abs(multipliers) @ of_gradients + np.abs(space.rows).T @ eta
    n = 2 * (len(values) + len(tests.owner) + len(eta) + len(point) + 32)  # multipliers sum to one but for as many
    rounding = (
        n * UNIT * (float(multipliers @ sizes) + float(eta @ np.abs(space.offsets)) * 2 + float(gradients @ reach) * 2)
    )
    bound = of_tests + pull + float(left.sum())
    # down: a smaller bound makes the p-value larger
    return bound - rounding - 4 * UNIT * abs(bound)


def _terms(tests: _CombinedTests, point: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the tests at a point, and the sums of the absolute values of the terms of each, and of its gradient.

    A probability f is rounded by some units of the size of its terms, so that ln f is off by as much relative to f.
    """
    f, outcome, seen = tests.probabilities(point), tests.renumbered.outcome, tests.renumbered.seen
    size = np.abs(tests.constants) + np.abs(tests.slopes) @ np.abs(point)
    terms = (seen * (np.abs(np.log(f)) + 1 + size / f)[outcome]) if len(f) else np.zeros(0)
    cells = np.bincount(tests.owner, terms, len(tests.renumbered)) + np.abs(tests.renumbered.gained)
    affine = np.abs(tests.affine.slopes) @ np.abs(point) + np.abs(tests.affine.constants)
    relative = np.abs(tests.slopes) / f[:, None] * (1 + size / f)[:, None]
    first, gradients = tests.renumbered.first, np.zeros((0, len(point)))
    if len(tests.renumbered):
        gradients = np.add.reduceat(relative[outcome] * seen[:, None], first[:-1])
    return (
        tests.values(point),
        np.concatenate([affine, cells]),
        np.vstack([np.abs(tests.affine.slopes), gradients]),
    )

"""Finds points where a likelihood is large by Newton's method, as estimates that no bound rests on.

The functions maximise ℓ(v) + c Σ h[j] ln f[j](v) - |v - mean|² / 2, where the sum is over outcomes never seen of groups
that were seen, with leverages h[j] (see ``with_pseudo_counts``). Without it (c = 0) there may be no maximum. A coin
that has always come up heads has the likelihood p^N, which grows beyond p = 1.

For rows that a likelihood table leaves out, the likelihood Σ count[f] ln f(v) over all expressions need not be concave.
Then a search ends at some maximum, and nothing proves that there is no larger one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from warnings import catch_warnings

import numpy as np

from plumdp.base.linear_algebra import solve_nearly
from plumdp.base.rounding import UNIT
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.confidence.space_moments import moments, simplified
from plumdp.data.counts import TransitionCounts
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import BoolArray, FloatArray, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import ParameterSpace

_MAX_STEPS = 100
_MAX_WIDTHS = 10.0  # distance from the middle, in widths of the space, beyond which there is no maximum
_SHORTEST = 2.0**-60  # part of a Newton step
_ENOUGH = 1e-11  # twice the gain that is left in the second-order model, at which the search ends
_RANK = 1e-9  # relative size of an eigenvalue below which a direction is not in the span
_MOST_WORK = 200_000  # multiplications for one step, beyond which there is no search
_LEAST = 1e-9  # probability below which the logarithm is continued by its tangent, so that it is finite everywhere
_MAX_SEARCH_STEPS = 200
SPACE_AS_DATA = 1e-3  # weight of the space's precision in the information, so that it is never singular


class Law(NamedTuple):
    """A normal law of the parameters."""

    mean: FloatArray  # (d)
    precision: FloatArray  # (d, d)


def estimate(
    table: LikelihoodTable, outcome_counts: FloatArray, *, prior: Law | None = None, pseudo: float = 0.0
) -> FloatArray:
    """Return a point (d) of large likelihood, the maximum or the last one before Newton's method diverged.

    It starts at the middle of the space. Steps are in the span of the coefficients of the outcomes that were seen, and
    other directions stay as they are in the middle. Outcomes never seen, of groups that were seen, count ``pseudo``
    times.

    >>> from plumdp import case_study, simulate
    >>> from plumdp.confidence.likelihood_table import likelihood_table
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26)
    >>> table = likelihood_table(study.model)
    >>> point = estimate(table, table.pool(counts.counts))
    >>> bool(abs(point[0] - float(study.true_point["p"])) < 0.01)
    True
    """
    return _maximise(table, outcome_counts, prior, pseudo)[0]


def find_estimate(
    table: LikelihoodTable, outcome_counts: FloatArray, *, prior: Law | None = None, pseudo: float = 0.0
) -> FloatArray | None:
    """Return the maximum, if all outcomes of groups that were seen have positive probabilities there, or None.

    The search gives up if Newton's method leaves ten times the space, does not end, or meets a singular matrix.
    """
    point, is_maximum = _maximise(table, outcome_counts, prior, pseudo)
    values, error = table.values(point)
    is_inside = bool((values > 2 * error)[is_in_seen_group(table, outcome_counts)].all())
    return point if is_maximum and is_inside else None


def estimate_inside(
    table: LikelihoodTable, outcome_counts: FloatArray, *, prior: Law | None = None
) -> tuple[FloatArray, float]:
    """Return a point at which all outcomes of groups that were seen have positive probabilities, and its pseudo count.

    The pseudo count is zero if the likelihood itself has such a maximum, and one otherwise.
    """
    point = find_estimate(table, outcome_counts, prior=prior)
    return (point, 0.0) if point is not None else (estimate(table, outcome_counts, prior=prior, pseudo=1.0), 1.0)


def is_in_seen_group(table: LikelihoodTable, outcome_counts: FloatArray) -> BoolArray:
    """Return which outcomes (n) belong to a group that was seen."""
    is_seen: BoolArray = table.visits(outcome_counts) > 0
    return is_seen[table.group]


def is_never_seen(table: LikelihoodTable, outcome_counts: FloatArray) -> BoolArray:
    """Return which outcomes (n) were never seen, of groups that were."""
    return np.asarray(is_in_seen_group(table, outcome_counts) & (outcome_counts == 0))


def with_pseudo_counts(table: LikelihoodTable, outcome_counts: FloatArray, pseudo: float) -> FloatArray:
    """Return the outcome counts with pseudo counts for outcomes never seen of groups that were seen.

    Each counts as its leverage among all of them: once if no others span its slope. So a probability that a hundred
    rows share, each with a known number of its own added, counts once and not a hundred times.
    """
    weights = outcome_counts.copy()
    if pseudo and (unseen := is_never_seen(table, outcome_counts) & (table.direction >= 0)).any():
        slopes = table.coefficients[unseen]
        slopes = slopes / np.abs(slopes).max(axis=1, keepdims=True)
        matrix = slopes.T @ slopes + _RANK * np.eye(slopes.shape[1])
        weights[unseen] = pseudo * (slopes * solve_nearly(matrix, slopes.T).T).sum(axis=1)
    return weights


def information(table: LikelihoodTable, weights: FloatArray, point: FloatArray) -> FloatArray:
    """Return Σ weight b bᵀ / f² (d, d), the negative second derivative of the log-likelihood at a point."""
    used = weights > 0
    slopes = table.coefficients[used] / table.chances(point)[used, None]
    matrix: FloatArray = slopes.T @ (slopes * weights[used, None])
    return (matrix + matrix.T) / 2


def marginal_precision(precision: FloatArray, basis: FloatArray) -> FloatArray:
    """Return the precision of the coordinates of a normal law in an orthonormal basis, averaged over all others."""
    if basis.shape[0] == basis.shape[1] and np.array_equal(basis, np.eye(len(basis))):
        return (precision + precision.T) / 2
    marginal = solve_nearly(basis.T @ solve_nearly(precision, basis), np.eye(basis.shape[1]))
    return np.asarray((marginal + marginal.T) / 2)


class _Function(NamedTuple):
    """y ↦ Σ weight ln(values + slopes y) - (y - mean)·precision (y - mean) / 2, in coordinates about a start."""

    values: FloatArray  # (n)
    slopes: FloatArray  # (n, k)
    weights: FloatArray  # (n)
    mean: FloatArray  # (k)
    precision: FloatArray  # (k, k)

    def at(self, y: FloatArray) -> float:
        f, off = self.values + self.slopes @ y, y - self.mean
        return float(self.weights @ np.log(f) - off @ self.precision @ off / 2) if (f > 0).all() else -np.inf

    def newton(self, y: FloatArray) -> tuple[FloatArray, float] | None:
        """Return a Newton step and twice the gain that it promises, or None if the second derivative is singular."""
        f = self.values + self.slopes @ y
        gradient = self.slopes.T @ (self.weights / f) - self.precision @ (y - self.mean)
        scaled = self.slopes * (np.sqrt(self.weights) / f)[:, None]
        second = scaled.T @ scaled + self.precision
        size = np.sqrt(np.diagonal(second))
        if not (size > 0).all():
            return None
        try:
            root = np.linalg.cholesky(second / np.outer(size, size))
        except np.linalg.LinAlgError:
            return None
        half = np.linalg.solve(root, gradient / size)
        return np.linalg.solve(root.T, half) / size, float(half @ half)


def _maximise(
    table: LikelihoodTable, outcome_counts: FloatArray, prior: Law | None, pseudo: float
) -> tuple[FloatArray, bool]:
    """Return the last point of Newton's method, and whether it is a maximum."""
    weights, start = with_pseudo_counts(table, outcome_counts, pseudo), table.middle
    used = (weights > 0) & (table.direction >= 0)
    values, slopes = table.chances(start)[used], table.coefficients[used]
    if not (values > 0).all():
        return start, False
    basis = span_of(slopes) if prior is None else table.basis
    k = basis.shape[1]
    mean, precision = np.zeros(k), np.zeros((k, k))
    if prior is not None:
        mean, precision = basis.T @ (prior[0] - start), marginal_precision(prior[1], basis)
    function = _Function(values, slopes @ basis, weights[used], mean, precision)
    most = _MAX_WIDTHS * float((table.upper - table.lower).max(initial=0))
    y, is_maximum = _climb(function, most)
    return start + basis @ y, is_maximum


def _climb(function: _Function, most: float) -> tuple[FloatArray, bool]:
    """Return the end of Newton steps with halving from zero, within a distance, and whether it is a maximum.

    Rounding may keep a step from gaining what it promises. A promise below half a nat is good enough for an estimate.
    """
    y, promise = np.zeros(len(function.mean)), np.inf
    value = function.at(y)
    for _ in range(_MAX_STEPS):
        newton = function.newton(y)
        if newton is None:
            return y, False
        step, promise = newton
        noise = 8 * UNIT * abs(value)  # rounding of the function
        if promise < max(_ENOUGH, noise):
            break
        length = 1.0
        while (after := function.at(y + length * step)) < value + 1e-4 * length * promise - noise:
            length /= 2
            if length < _SHORTEST:
                return y, promise < 1
        if np.abs(y + length * step).max(initial=0) > most:
            return y, False
        y, value = y + length * step, after
    return y, promise < 1


def span_of(slopes: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the span of rows, whatever their lengths."""
    d = slopes.shape[1]
    if not len(slopes):
        return np.zeros((d, 0))
    rows = slopes / np.abs(slopes).max(axis=1, keepdims=True)
    sizes, axes = np.linalg.eigh(rows.T @ rows)
    kept: FloatArray = axes[:, sizes > _RANK * sizes.max()]
    return np.eye(d) if kept.shape[1] == d else np.ascontiguousarray(kept)


def law_of_space(model: ParametricMDP) -> Law:
    """Return the normal law with the mean and the covariance of the uniform law on the space."""
    mean, covariance = moments(model.space)
    return Law(mean, np.asarray(np.linalg.inv(covariance), dtype=np.float64))


def law_of_pilot(table: LikelihoodTable, pilot: FloatArray, space: Law) -> Law:
    """Return the normal law about the estimate of a pilot (n_outcomes), with its precision and the space as a prior."""
    mean, pseudo = mean_of_pilot(table, pilot, space)
    weights = with_pseudo_counts(table, pilot, pseudo)
    return Law(read_only(mean), information(table, weights, mean) + space.precision)


def mean_of_pilot(table: LikelihoodTable, pilot: FloatArray, space: Law) -> tuple[FloatArray, float]:
    """Return the estimate of a pilot (n_outcomes), with the space as a prior, and its pseudo count."""
    inside = estimate_inside if table.lifts is None else _estimate_lifted
    return inside(table, pilot, prior=space)


def _estimate_lifted(table: LikelihoodTable, outcome_counts: FloatArray, *, prior: Law) -> tuple[FloatArray, float]:
    """Return about the most likely point, if some parameters are functions of others, and its pseudo count of one.

    Steps are those of Fisher's scoring, halved until the likelihood grows.
    """
    weights = with_pseudo_counts(table, outcome_counts, 1.0)
    used = weights > 0
    n = len(table.names) - (0 if table.lifts is None else len(table.lifts))

    def height(point: FloatArray) -> float:
        values = table.chances(point)[used]
        off = point - prior.mean
        return (
            float(weights[used] @ np.log(values) - off @ prior.precision @ off / 2) if (values > 0).all() else -np.inf
        )

    point = table.lifted(prior.mean[:n])
    best = height(point)
    for _ in range(_MAX_STEPS):
        basis = table.basis_near(point)
        matrix = basis.T @ (information(table, weights, point) + prior.precision) @ basis
        slope = table.coefficients[used].T @ (weights[used] / table.chances(point)[used])
        step = basis @ solve_nearly(matrix, basis.T @ (slope - prior.precision @ (point - prior.mean)))
        tried = ((size, table.lifted((point + size * step)[:n])) for size in 0.5 ** np.arange(30))
        better = next((at for _, at in tried if height(at) > best), None)
        if better is None or height(better) < best + _ENOUGH * abs(best):
            break
        point, best = better, height(better)
    return point, 1.0


def left_out_choices(table: LikelihoodTable, *, but_paths: bool = False) -> BoolArray:
    """Return which choices (n_choices) have unknown outcomes and no part in the likelihood of a table.

    With ``but_paths``, those with hidden paths are not among them.
    """
    n_ways = np.diff(table.first)
    if but_paths and table.paths is not None:
        n_ways[table.paths.outcome] = 1
    n_ways = n_ways[table.tied_place]
    starts = table.rows.first[:-1]
    is_unknown = np.logical_or.reduceat(table.tied_place > 0, starts)
    is_used = np.logical_or.reduceat(n_ways > 0, starts)
    return np.asarray((is_unknown & ~is_used)[table.rows.number])


def search_maximum(
    model: ParametricMDP, counts: TransitionCounts, near: Sequence[FloatArray], prior: Law
) -> FloatArray:
    """Return the most likely point of the space (d) that searches near some points find, with a weak prior.

    Outcomes that were never seen of choices that were visited count once if the maximum makes one of them impossible,
    as in ``estimate_inside``. If the model is too large, the result is the first of the points.
    """
    space, table = simplified(model.space), model.expressions
    if space.dimension**2 * (len(table.monomials) + len(space.constraints)) > _MOST_WORK:
        return near[0]
    starts = [_in_space(space, point, prior[0]) for point in near]
    outcome_counts = np.bincount(model.expression, counts.counts, len(table)).astype(np.float64)
    visited = np.unique(model.expression[counts.visits[model.graph.choice_of_transition()] > 0])
    unknown = visited[table.is_unknown[visited]]
    best = starts[0]
    for pseudo in (0.0, 1.0):
        weights = np.zeros(len(table))
        weights[unknown] = np.where(outcome_counts[unknown] > 0, outcome_counts[unknown], pseudo)
        best = min((_search(table, space, weights, start, prior) for start in starts), key=lambda maximum: maximum[0])[
            1
        ]
        if (table.evaluate(best[None, :])[unknown, 0] > _LEAST).all():
            break
    return best


def _in_space(space: ParameterSpace, point: FloatArray, inner: FloatArray) -> FloatArray:
    """Return the last point of the space on the way from an inner point to another one."""
    rows, offsets = space.inequalities
    axes = np.eye(space.dimension)
    rows, offsets = np.vstack([rows, axes, -axes]), np.concatenate([offsets, space.upper, -space.lower])
    speed, room = rows @ (point - inner), np.maximum(offsets - rows @ inner, 0.0)
    share = np.min(room[speed > 0] / speed[speed > 0], initial=1.0)
    return np.asarray((inner + share * (point - inner)).clip(space.lower, space.upper))


def _search(
    table: ExpressionTable, space: ParameterSpace, weights: FloatArray, start: FloatArray, prior: Law
) -> tuple[float, FloatArray]:
    """Return the least negative log-likelihood per step that a search finds, and its point."""
    from scipy.optimize import minimize

    rows, offsets = space.inequalities
    used, total = np.flatnonzero(weights), max(float(weights.sum()), 1.0)

    def function(v: FloatArray) -> tuple[float, FloatArray]:
        values, slopes = table.value_and_gradient(v)
        positive = np.maximum(values[used], _LEAST)
        logs = np.log(positive) + (values[used] - positive) / _LEAST
        pull = prior[1] @ (v - prior[0])
        gradient = (weights[used] / positive) @ slopes[used] - pull
        return -float(weights[used] @ logs - (v - prior[0]) @ pull / 2) / total, -gradient / total

    half_spaces = {"type": "ineq", "fun": lambda v: offsets - rows @ v, "jac": lambda _: -rows}
    box = list(zip(space.lower.tolist(), space.upper.tolist(), strict=True))
    constraints = [half_spaces] if len(rows) else []
    options = {"method": "SLSQP", "options": {"maxiter": _MAX_SEARCH_STEPS, "ftol": 1e-14}}
    with catch_warnings(action="ignore"):  # of steps that rounding takes out of the box, where they are put back
        maximum = minimize(function, start, jac=True, bounds=box, constraints=constraints, **options)
    point = np.asarray(maximum.x, dtype=np.float64).clip(space.lower, space.upper)
    is_better = np.isfinite(point).all() and not function(point)[0] > function(start)[0]
    return (function(point)[0], point) if is_better else (function(start)[0], start)

"""Points where a likelihood is large, by Newton's method. They are estimates: no bound rests on their precision.

Maximised is ℓ(v) + c Σ ln f[j](v) - |v - mean|² / 2, where the sum is over outcomes never seen of groups that were
seen. Without it (c = 0) there may be no maximum: a coin that has always come up heads has the likelihood p^N, which
grows beyond p = 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plumdp.base.rounding import UNIT
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.model.graph import BoolArray, FloatArray

_MAX_STEPS = 100
_MAX_WIDTHS = 10.0  # from the middle, in widths of the space: further out there is no maximum
_SHORTEST = 2.0**-60  # part of a Newton step
_ENOUGH = 1e-11  # twice what may be left to gain, in the second-order model
_RANK = 1e-9  # relative; directions that are seen by less are left as they are

Prior = tuple[FloatArray, FloatArray]
"""Mean (d) and precision (d, d) of a normal law."""


def estimate(
    table: LikelihoodTable, seen: FloatArray, start: FloatArray, *, prior: Prior | None = None, pseudo: float = 0.0
) -> FloatArray:
    """Return a point (d) of large likelihood: the maximum, or the last one before Newton's method diverged.

    Steps are in the span of the coefficients of what was seen; other directions stay as they are in ``start``, at which
    all outcomes that were seen must have positive probabilities. ``pseudo`` is how often outcomes never seen of groups
    that were seen count.

    >>> from plumdp import case_study, simulate
    >>> from plumdp.confidence.likelihood_table import likelihood_table
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26)
    >>> table = likelihood_table(study.model)
    >>> point = estimate(table, table.pool(counts.counts), table.middle)
    >>> bool(abs(point[0] - float(study.true_point["p"])) < 0.01)
    True
    """
    return _maximise(table, seen, start, prior, pseudo)[0]


def find_estimate(
    table: LikelihoodTable, seen: FloatArray, start: FloatArray, *, prior: Prior | None = None, pseudo: float = 0.0
) -> FloatArray | None:
    """Return the maximum, at which all outcomes of groups that were seen have positive probabilities; None if none is.

    It is given up where Newton's method leaves ten times the space, does not end, or meets a singular matrix.
    """
    point, is_maximum = _maximise(table, seen, start, prior, pseudo)
    values, error = table.values(point)
    is_inside = bool((values > 2 * error)[is_in_seen_group(table, seen)].all())
    return point if is_maximum and is_inside else None


def estimate_inside(
    table: LikelihoodTable, seen: FloatArray, start: FloatArray, *, prior: Prior | None = None
) -> tuple[FloatArray, float]:
    """Return a point at which all outcomes of groups that were seen have positive probabilities, and its pseudo count.

    That is zero if the likelihood itself has such a maximum, and one otherwise.
    """
    found = find_estimate(table, seen, start, prior=prior)
    return (found, 0.0) if found is not None else (estimate(table, seen, start, prior=prior, pseudo=1.0), 1.0)


def is_in_seen_group(table: LikelihoodTable, seen: FloatArray) -> BoolArray:
    """Return which outcomes (n) belong to a group that was seen."""
    found: BoolArray = (table.visits(seen) > 0)[table.group]
    return found


def is_never_seen(table: LikelihoodTable, seen: FloatArray) -> BoolArray:
    """Return which outcomes (n) were never seen, of groups that were."""
    found: BoolArray = is_in_seen_group(table, seen) & (seen == 0)
    return found


def with_pseudo_counts(table: LikelihoodTable, seen: FloatArray, pseudo: float) -> FloatArray:
    """Return how often each outcome (n) counts, if those never seen of groups that were seen count so often."""
    return np.where(is_never_seen(table, seen), pseudo, seen)


def information(table: LikelihoodTable, weights: FloatArray, point: FloatArray) -> FloatArray:
    """Return Σ weight b bᵀ / f² (d, d) at a point: the negative second derivative of the log-likelihood."""
    used = weights > 0
    slopes = table.coefficients[used] / table.values(point)[0][used, None]
    found: FloatArray = slopes.T @ (slopes * weights[used, None])
    return (found + found.T) / 2


def marginal_precision(precision: FloatArray, basis: FloatArray) -> FloatArray:
    """Return the precision of the coordinates of a normal law in an orthonormal basis: the rest is averaged out."""
    if basis.shape[0] == basis.shape[1] and np.array_equal(basis, np.eye(len(basis))):
        return (precision + precision.T) / 2
    marginal = np.linalg.inv(basis.T @ np.linalg.inv(precision) @ basis)
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
        """Return a Newton step and twice what it promises; None if the second derivative is singular."""
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
    table: LikelihoodTable, seen: FloatArray, start: FloatArray, prior: Prior | None, pseudo: float
) -> tuple[FloatArray, bool]:
    """Return the last point of Newton's method, and whether it is a maximum."""
    weights = with_pseudo_counts(table, seen, pseudo)
    used = (weights > 0) & (table.direction >= 0)
    values, slopes = table.values(start)[0][used], table.coefficients[used]
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
    """Return where Newton steps with halving end, from zero and no further than a distance, and if it is a maximum.

    Rounding may keep it from gaining what a step promises; less than a nat is good enough for an estimate.
    """
    y, promise = np.zeros(len(function.mean)), np.inf
    value = function.at(y)
    for _ in range(_MAX_STEPS):
        found = function.newton(y)
        if found is None:
            return y, False
        step, promise = found
        noise = 8 * UNIT * abs(value)  # of the function's own rounding
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
    """Return an orthonormal basis of the span of rows, each of which counts as much as any other."""
    d = slopes.shape[1]
    if not len(slopes):
        return np.zeros((d, 0))
    rows = slopes / np.abs(slopes).max(axis=1, keepdims=True)
    sizes, axes = np.linalg.eigh(rows.T @ rows)
    kept: FloatArray = axes[:, sizes > _RANK * sizes.max()]
    return np.eye(d) if kept.shape[1] == d else np.ascontiguousarray(kept)

"""Bounds the logarithm of the evidence, the average likelihood of the data over a prior, from below.

The prior is the image of a normal law, v = mean + B y with y ~ N(0, h⁻¹), chosen without looking at the data. The
evidence is the integral of the likelihood over all points of it at which no outcome of a group that was seen has a
negative probability. The evidence over the likelihood of the true point v is a supermartingale, so that by Ville's
inequality ℓ(v) >= ln evidence - ln(1 / error) at all times, except with probability ``error``. The same holds for any
lower bound on the evidence.

*Lower bound.* Write f[j](mean + B (y + z)) = f[j] (1 + s[j]) with s[j] = β[j]·z / f[j]. For s >= -t[j], t[j] < 1,

    ln(1 + s) >= s - κ(t[j]) s² / 2,    κ(t) = 2 (-t - ln(1 - t)) / t².

On a symmetric set S of z in which |s[j]| <= t[j] for all outcomes of groups that were seen, the linear terms can be
left out (cosh >= 1), so that with A = h + Σ count[j] κ[j] β[j] β[j]ᵀ / f[j]²

    ln evidence >= ℓ(y) - |y|²_h / 2 + ½ ln det h - ½ ln det A + ln P(S),    z ~ N(0, A⁻¹) in P.

Outcomes never seen need no κ, but t[j] <= 1, so that their probabilities do not become negative. S is a ball,
|z|_A <= ρ, or an intersection of slabs |β[j]·z| <= t[j] f[j], whose probability is at least the product of those of
its directions (Šidák 1967). The point y and the widths t may be chosen by looking at all data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

import numpy as np

from plumdp.base.linear_algebra import inverse_root, solve_nearly
from plumdp.base.rounding import SQUARES_UNDERFLOW, UNIT, UP
from plumdp.confidence.estimates import (
    Law,
    find_estimate,
    information,
    is_in_seen_group,
    is_never_seen,
    marginal_precision,
)
from plumdp.confidence.estimates import estimate as estimate
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.model.graph import FloatArray, IntArray

PSEUDO_COUNTS = (0.0, 0.1, 1.0)  # of outcomes never seen, for the points that are tried
_MASSES = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)  # of balls
_DEVIATIONS = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5)  # half widths of slabs
_MOST = (0.3, 0.5, 0.7, 0.9)  # relative change of the probability of an outcome that was seen, in a slab
_SMALL = 1e-2  # width up to which κ is calculated from its series
_MARGIN = 1e-9  # relative; more than the error of SciPy's erf, erfc and gammainc
_RARE = 0.01  # leverage of an outcome, as a share of its count, that is worth another point
_TOGETHER = 1e7  # numbers that candidates have, up to which they are estimated together
_PROOFS = 3  # candidates at each point whose bounds are proved with all their roundings


def log_evidence(
    table: LikelihoodTable, outcome_counts: FloatArray, prior_mean: FloatArray, prior_precision: FloatArray
) -> float:
    """Return a lower bound on the logarithm of the evidence, or minus infinity if none is found.

    The prior must have been chosen without looking at these data.

    >>> from plumdp import case_study, simulate
    >>> from plumdp.confidence.likelihood_table import likelihood_table
    >>> from plumdp.confidence.space_moments import moments
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 100, rng=1, max_steps=26)
    >>> table = likelihood_table(study.model)
    >>> outcome_counts = table.pool(counts.counts)
    >>> mean, covariance = moments(study.model.space)
    >>> point = estimate(table, outcome_counts)
    >>> largest = float(outcome_counts @ np.log(table.chances(point)))
    >>> evidence = log_evidence(table, outcome_counts, mean, np.linalg.inv(covariance))
    >>> print(f"{largest - evidence:.1f} nats below the maximum")
    2.9 nats below the maximum
    """
    if not outcome_counts.any():
        return 0.0
    proof = best_proof(table, outcome_counts, prior_mean, prior_precision)
    return -np.inf if proof is None else proof.bound


class EvidenceBound(NamedTuple):
    """A lower bound on the logarithm of the evidence, the point it is proved about, and the widths of a set there."""

    bound: float
    point: FloatArray  # (k): coordinates y of the prior
    widths: FloatArray  # (n_outcomes): relative changes t; zero where nothing depends on them


def best_proof(
    table: LikelihoodTable, outcome_counts: FloatArray, prior_mean: FloatArray, prior_precision: FloatArray
) -> EvidenceBound | None:
    """Return the proof of the best lower bound that is found, or None if there is none."""
    precision, best = marginal_precision(prior_precision, table.basis), None
    for point in _points(table, outcome_counts, Law(prior_mean, prior_precision)):
        expansion = _expand(table, outcome_counts, prior_mean, precision, point)
        bound, widths = (-np.inf, None) if expansion is None else _best_bound(expansion)
        if widths is not None and (best is None or bound > best.bound):
            of_all = np.zeros(len(outcome_counts))
            of_all[is_in_seen_group(table, outcome_counts) & (table.direction >= 0)] = widths
            best = EvidenceBound(bound, table.basis.T @ (point - prior_mean), of_all)
    return best


def _points(table: LikelihoodTable, outcome_counts: FloatArray, prior: Law) -> Iterator[FloatArray]:
    """Yield points to expand about, the maxima for all pseudo counts and one near the mean of the posterior law.

    If there is no maximum, the middle of the space is the only point.
    """
    has_unseen = bool(is_never_seen(table, outcome_counts).any())
    pseudo_counts = PSEUDO_COUNTS if has_unseen else PSEUDO_COUNTS[:1]
    maxima = [find_estimate(table, outcome_counts, prior=prior, pseudo=pseudo) for pseudo in pseudo_counts]
    points = [point for point in maxima if point is not None]
    yield from points or [table.middle]
    leverages = _leverages(table, outcome_counts, prior, points[-1]) if points else np.zeros(len(outcome_counts))
    if (leverages > _RARE * outcome_counts).any():
        balanced = find_estimate(table, outcome_counts + leverages, prior=prior, pseudo=pseudo_counts[-1])
        yield from [] if balanced is None else [balanced]


def _leverages(table: LikelihoodTable, outcome_counts: FloatArray, prior: Law, point: FloatArray) -> FloatArray:
    """Return count |b|²_{A⁻¹} / f² for each outcome at a point, which added to the counts turn a mode into a mean.

    A coin that came up K times of N has the mode K/N and, with a flat prior, the mean (K + 1)/(N + 2).
    """
    basis = table.basis
    matrix = basis.T @ information(table, outcome_counts, point) @ basis + marginal_precision(prior[1], basis)
    slopes = table.coefficients @ basis / table.chances(point)[:, None]
    leverages: FloatArray = outcome_counts * (slopes * solve_nearly(matrix, slopes.T).T).sum(axis=1)
    return np.where(outcome_counts > 0, leverages.clip(0, 1), 0.0)


@dataclass(frozen=True, eq=False)
class _Expansion:
    """The likelihood about a point, in coordinates of the prior, by the outcomes of groups seen that are not constant.

    ``slopes`` are off by at most ``slope_errors``. ``value`` is at most ℓ(y) - |y|²_h / 2 + ½ ln det h.
    """

    value: float
    least: FloatArray  # (n): lower bounds on the probabilities, above zero
    counts: FloatArray  # (n)
    slopes: FloatArray  # (n, k)
    slope_errors: FloatArray  # (n, k)
    direction: IntArray  # (n): equal for slopes that are multiples of each other
    precision: FloatArray  # (k, k): of the prior


def _expand(
    table: LikelihoodTable, outcome_counts: FloatArray, mean: FloatArray, precision: FloatArray, point: FloatArray
) -> _Expansion | None:
    """Return the likelihood about the point mean + B y, with y the coordinates of a point, or None if it has no bound.

    Values at that point pass d + k + 5 roundings at most, and slopes d + 1.
    """
    basis = table.basis
    d, k = basis.shape
    y = basis.T @ (point - mean)
    size = np.abs(table.constants) + np.abs(table.coefficients) @ (np.abs(mean) + np.abs(basis) @ np.abs(y))
    values = table.constants + table.coefficients @ (mean + basis @ y)
    least = values - (d + k + 12) * UNIT * size  # a smaller probability makes the evidence smaller, which is safe
    matters = is_in_seen_group(table, outcome_counts)
    if not (least[matters] > 0).all():
        return None
    root, defect = inverse_root(precision, np.zeros_like(precision))
    if not defect < 0.5:
        return None
    square = y @ precision @ y + (2 * k + 8) * UNIT * (np.abs(y) @ np.abs(precision) @ np.abs(y))
    terms = (outcome_counts[matters] * np.log(least[matters])).tolist()
    terms += [-square / 2, log_determinant(root, defect)[0] / 2]
    used = matters & (table.direction >= 0)
    slopes = table.coefficients[used]
    return _Expansion(
        fsum(terms) - 16 * UNIT * fsum(map(abs, terms)),
        least[used],
        outcome_counts[used],
        slopes @ basis,
        (d + 4) * UNIT * (np.abs(slopes) @ np.abs(basis)),
        table.direction[used],
        precision,
    )


def log_determinant(root: FloatArray, defect: float) -> tuple[float, float]:
    """Return bounds on ln det A, given a triangular root M of its inverse and its defect (see ``inverse_root``).

    (1 - η) I <= Mᵀ A M <= (1 + η) I, and the determinant of M is the product of its diagonal.
    """
    logs = np.log(np.diagonal(root))
    middle, error = -2 * fsum(logs), 16 * UNIT * (fsum(np.abs(logs)) + len(root))
    return middle + len(root) * np.log1p(-defect) * UP - error, middle + len(root) * np.log1p(defect) * UP + error


def _best_bound(expansion: _Expansion) -> tuple[float, FloatArray | None]:
    """Return the best of all lower bounds that balls and slabs of different widths give, and its widths."""
    candidates = _widths(expansion)
    n_together = max(int(_TOGETHER // max(expansion.slopes.size, 1)), 1)
    parts = [candidates[start : start + n_together] for start in range(0, len(candidates), n_together)]
    estimates = np.concatenate([np.zeros(0), *(_estimate_bounds(expansion, widths) for widths in parts)])
    best, widths = -np.inf, None
    for i in np.argsort(estimates)[::-1][:_PROOFS].tolist():
        bound = _bound(expansion, candidates[i]) if estimates[i] > best else -np.inf
        if bound > best:
            best, widths = bound, candidates[i]
    return float(best), widths


def _widths(expansion: _Expansion) -> FloatArray:
    """Return relative changes t (m, n) that probabilities may have, below one for outcomes that were seen."""
    from scipy.special import gammaincinv

    is_seen, k = expansion.counts > 0, len(expansion.precision)
    estimated = _estimate_deviations(expansion, np.ones((1, len(expansion.least))))
    if estimated is None:
        return np.zeros((0, len(expansion.least)))
    deviations = estimated[1][0] / expansion.least
    radii = np.sqrt(2 * gammaincinv(k / 2, _MASSES)) if k else np.zeros(0)
    balls = radii[:, None] * deviations * UP
    balls = balls[(balls < np.where(is_seen, 1 - 1e-6, 1.0)).all(axis=1)]
    slabs = [np.minimum(np.multiply.outer(_DEVIATIONS, deviations), np.where(is_seen, most, 1.0)) for most in _MOST]
    return np.concatenate([balls, *slabs])


def _estimate_deviations(expansion: _Expansion, curvature: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return estimates of -½ ln det A (m) and |β|_{A⁻¹} (m, n) for factors κ (m, n), or None if some A is singular."""
    scaled = expansion.slopes * (np.sqrt(expansion.counts * curvature) / expansion.least)[:, :, None]
    try:
        root = np.linalg.cholesky(scaled.swapaxes(1, 2) @ scaled + expansion.precision)
    except np.linalg.LinAlgError:
        return None
    deviations = np.linalg.norm(np.linalg.solve(root, expansion.slopes.T[None]), axis=1)
    return -np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1), deviations


def _estimate_bounds(expansion: _Expansion, widths: FloatArray) -> FloatArray:
    """Return estimates (m) of the bounds for widths (m, n), which say what is worth a proof."""
    estimated = _estimate_deviations(expansion, curvature_above(widths))
    if estimated is None:
        return np.full(len(widths), -np.inf)
    return expansion.value + estimated[0] + _log_masses(expansion, widths, estimated[1])


def _bound(expansion: _Expansion, widths: FloatArray) -> float:
    """Return a lower bound on the logarithm of the evidence, with all roundings, for any widths from 0 to 1.

    ``weights`` are at least those of A. So the determinant and all deviations are at least those of A as well, but for
    the rounding that ``inverse_root`` bounds.
    """
    weights = expansion.counts * curvature_above(widths) / expansion.least**2 * UP
    size = np.abs(expansion.slopes) + expansion.slope_errors
    n, k = expansion.slopes.shape
    matrix = expansion.precision + (expansion.slopes * weights[:, None]).T @ expansion.slopes
    matrix = (matrix + matrix.T) / 2
    relative = (n + 2 * len(expansion.slopes.T) + 16) * UNIT
    off = expansion.slope_errors.T @ (weights[:, None] * size)
    error = relative * (np.abs(expansion.precision) + size.T @ (weights[:, None] * size)) + (off + off.T) * UP
    root, defect = inverse_root(matrix, error)
    if not defect < 0.5:
        return -np.inf
    reach = np.abs(expansion.slopes @ root) + (expansion.slope_errors + (k + 4) * UNIT * size) @ np.abs(root)
    deviations = (np.linalg.norm(reach, axis=1) + SQUARES_UNDERFLOW) / np.sqrt(1 - defect) * UP
    terms = [
        expansion.value,
        -log_determinant(root, defect)[1] / 2,
        float(_log_masses(expansion, widths[None], deviations[None])[0]),
    ]
    return fsum(terms) - 16 * UNIT * fsum(map(abs, terms))


def _log_masses(expansion: _Expansion, widths: FloatArray, deviations: FloatArray) -> FloatArray:
    """Return lower bounds (m) on ln P(S) for the better of the largest ball and the slabs that widths (m, n) allow.

    ``deviations`` are at least those of β·z.
    """
    from scipy.special import gammainc

    if not widths.shape[1]:
        return np.zeros(len(widths))
    ratios = widths * expansion.least / deviations * (1 - 1e-12)
    with np.errstate(divide="ignore"):
        balls = np.log(
            gammainc(len(expansion.precision) / 2, ratios.min(axis=1) ** 2 / 2 * (1 - 1e-12)) * (1 - _MARGIN)
        )
    narrowest = np.full((int(expansion.direction.max()) + 1, len(widths)), np.inf)
    np.minimum.at(narrowest, expansion.direction, ratios.T)
    masses: FloatArray = np.maximum(balls, _log_slabs(narrowest))
    return masses


def _log_slabs(ratios: FloatArray) -> FloatArray:
    """Return lower bounds (m) on Σ ln P(|x| <= ratio) for a standard normal x and ratios (n, m)."""
    from scipy.special import erf, erfc

    scaled = ratios / np.sqrt(2)
    with np.errstate(divide="ignore", invalid="ignore"):  # of what is not taken below
        small, large = np.log(erf(scaled) * (1 - _MARGIN)), np.log1p(-erfc(scaled) * (1 + _MARGIN))
    logs = np.where(ratios < 1, small, large)
    # a sum of n terms is off by at most n roundings of the sum of their sizes
    return np.asarray(logs.sum(axis=0) - (len(logs) + 16) * UNIT * np.abs(logs).sum(axis=0))


def curvature_above(widths: FloatArray) -> FloatArray:
    """Return an upper bound on κ(t) = 2 (-t - ln(1 - t)) / t² = 1 + 2t/3 + t²/2 + 2t³/5 + …, at most that of 0.999999.

    Outcomes never seen may have a width of one, as their factor is not used.
    """
    t = np.minimum(widths, 1 - 1e-6)
    large = np.maximum(t, _SMALL)
    series = 1 + t * (2 / 3 + t * (1 / 2 + t * (2 / 5) / (1 - t)))
    return np.asarray(np.where(t > _SMALL, 2 * (-large - np.log1p(-large)) / large**2, series) * UP)


def curvature_below(largest: FloatArray) -> FloatArray:
    """Return a lower bound on κ(S) = 2 (S - ln(1 + S)) / S² = 1 - 2S/3 + S²/2 - 2S³/5 + …, for S at least zero."""
    large = np.maximum(largest, _SMALL)
    small = np.minimum(largest, _SMALL)
    series = 1 - small * (2 / 3 - small * (1 / 2 - small * (2 / 5)))
    kappa: FloatArray = np.where(largest > _SMALL, 2 * (large - np.log1p(large)) / large**2, series) * (1 - 1e-12)
    return kappa

"""How likely the data are on average over a prior: a lower bound on the logarithm of the evidence.

The prior is the image of a normal law, v = mean + B y with y ~ N(0, h⁻¹), chosen without looking at the data. The
evidence is the integral of the likelihood over it, where points count at which no outcome of a group that was seen has
a negative probability. It is a supermartingale, so that by Ville's inequality the true point v has
ℓ(v) >= ln evidence - ln(1 / error) at all times, except with probability ``error``; and so with any lower bound.

*Lower bound.* Write f[j](mean + B (y + z)) = f[j] (1 + s[j]) with s[j] = β[j]·z / f[j]. For s >= -t[j], t[j] < 1,

    ln(1 + s) >= s - κ(t[j]) s² / 2,    κ(t) = 2 (-t - ln(1 - t)) / t².

On a set S of z that is symmetric, and in which |s[j]| <= t[j] for all outcomes of groups that were seen, the linear
terms can be left out (cosh >= 1), so that with A = h + Σ count[j] κ[j] β[j] β[j]ᵀ / f[j]²

    ln evidence >= ℓ(y) - |y|²_h / 2 + ½ ln det h - ½ ln det A + ln P(S),    z ~ N(0, A⁻¹) in P.

Outcomes never seen need no κ, but t[j] <= 1: their probabilities must not become negative. S is a ball,
|z|_A <= ρ, or an intersection of slabs |β[j]·z| <= t[j] f[j], whose probability is at least the product of those of
its directions (Šidák 1967). The point y and the widths t may be chosen by looking at everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum

import numpy as np

from plumdp.base.linear_algebra import inverse_root
from plumdp.base.rounding import SQUARES_UNDERFLOW, UNIT, UP
from plumdp.confidence.estimates import (
    Prior,
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
_SMALL = 1e-2  # up to here, κ is calculated from its series
_MARGIN = 1e-9  # relative; more than SciPy's erf, erfc and gammainc are off
_RARE = 0.01  # outcomes that count by this share more or less are worth another point
_PROOFS = 3  # candidates that are calculated again with all their roundings, for each point


def log_evidence(
    table: LikelihoodTable, seen: FloatArray, prior_mean: FloatArray, prior_precision: FloatArray
) -> float:
    """Return a number that is never above the logarithm of the evidence; minus infinity if none is found.

    The prior must have been chosen without looking at the data that were seen.

    >>> from plumdp import case_study, simulate
    >>> from plumdp.confidence.likelihood_table import likelihood_table
    >>> from plumdp.confidence.space_moments import moments
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 100, rng=1, max_steps=26)
    >>> table = likelihood_table(study.model)
    >>> seen = table.pool(counts.counts)
    >>> mean, covariance = moments(study.model.space)
    >>> point = estimate(table, seen, table.middle)
    >>> largest = float(seen @ np.log(table.values(point)[0]))
    >>> print(f"{largest - log_evidence(table, seen, mean, np.linalg.inv(covariance)):.1f} nats below the maximum")
    2.9 nats below the maximum
    """
    if not seen.any():
        return 0.0
    precision = marginal_precision(prior_precision, table.basis)
    best = -np.inf
    for point in _points(table, seen, (prior_mean, prior_precision)):
        here = _expand(table, seen, prior_mean, precision, point)
        if here is not None:
            best = max(best, _best_bound(here))
    return float(best)


def _points(table: LikelihoodTable, seen: FloatArray, prior: Prior) -> Iterator[FloatArray]:
    """Yield points to expand about: maxima for all pseudo counts, and one near the mean of the posterior law.

    If there is none of them, the middle of the space will do.
    """
    has_unseen = bool(is_never_seen(table, seen).any())
    pseudo_counts = PSEUDO_COUNTS if has_unseen else PSEUDO_COUNTS[:1]
    found = [find_estimate(table, seen, table.middle, prior=prior, pseudo=pseudo) for pseudo in pseudo_counts]
    points = [point for point in found if point is not None]
    yield from points or [table.middle]
    leverages = _leverages(table, seen, prior, points[-1]) if points else np.zeros(len(seen))
    if (leverages > _RARE * seen).any():
        balanced = find_estimate(table, seen + leverages, table.middle, prior=prior, pseudo=pseudo_counts[-1])
        yield from [] if balanced is None else [balanced]


def _leverages(table: LikelihoodTable, seen: FloatArray, prior: Prior, point: FloatArray) -> FloatArray:
    """Return count |b|²_{A⁻¹} / f² for each outcome at a point; counted as well, they turn a mode into a mean.

    A coin that came up K times of N has the mode K/N and, with a flat prior, the mean (K + 1)/(N + 2).
    """
    basis = table.basis
    matrix = basis.T @ information(table, seen, point) @ basis + marginal_precision(prior[1], basis)
    slopes = table.coefficients @ basis / table.values(point)[0][:, None]
    found: FloatArray = seen * (slopes * np.linalg.solve(matrix, slopes.T).T).sum(axis=1)
    return np.where(seen > 0, found.clip(0, 1), 0.0)


@dataclass(frozen=True, eq=False)
class _Expansion:
    """The likelihood about a point, in coordinates of the prior; outcomes are those of groups seen, but for constants.

    ``slopes`` are off by at most ``slope_errors``. ``value`` is at most ℓ(y) - |y|²_h / 2 + ½ ln det h.
    """

    value: float
    least: FloatArray  # (n): at most the probabilities, and above zero
    counts: FloatArray  # (n)
    slopes: FloatArray  # (n, k)
    slope_errors: FloatArray  # (n, k)
    direction: IntArray  # (n): equal for slopes that are multiples of each other
    precision: FloatArray  # (k, k): of the prior


def _expand(
    table: LikelihoodTable, seen: FloatArray, mean: FloatArray, precision: FloatArray, point: FloatArray
) -> _Expansion | None:
    """Return the likelihood about the point mean + B y, with y the coordinates of a point; None if that is impossible.

    Values at that point pass d + k + 5 roundings at most, and slopes d + 1.
    """
    basis = table.basis
    d, k = basis.shape
    y = basis.T @ (point - mean)
    size = np.abs(table.constants) + np.abs(table.coefficients) @ (np.abs(mean) + np.abs(basis) @ np.abs(y))
    values = table.constants + table.coefficients @ (mean + basis @ y)
    least = values - (d + k + 12) * UNIT * size
    matters = is_in_seen_group(table, seen)
    if not (least[matters] > 0).all():
        return None
    root, defect = inverse_root(precision, np.zeros_like(precision))
    if not defect < 0.5:
        return None
    square = y @ precision @ y + (2 * k + 8) * UNIT * (np.abs(y) @ np.abs(precision) @ np.abs(y))
    terms = (seen[matters] * np.log(least[matters])).tolist()
    terms += [-square / 2, log_determinant(root, defect)[0] / 2]
    used = matters & (table.direction >= 0)
    slopes = table.coefficients[used]
    return _Expansion(
        fsum(terms) - 16 * UNIT * fsum(map(abs, terms)),
        least[used],
        seen[used],
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


def _best_bound(here: _Expansion) -> float:
    """Return the best of all lower bounds that balls and slabs of different widths give."""
    candidates = list(_widths(here))
    rough = [_estimate_bound(here, widths) for widths in candidates]
    best = -np.inf
    for i in np.argsort(rough)[::-1][:_PROOFS].tolist():
        if rough[i] > best:
            best = max(best, _bound(here, candidates[i]))
    return best


def _widths(here: _Expansion) -> Iterator[FloatArray]:
    """Yield widths t (n): how much probabilities may change, relative to themselves; below one for what was seen."""
    from scipy.special import gammaincinv

    is_seen, k = here.counts > 0, len(here.precision)
    found = _estimate_deviations(here, np.ones(len(here.least)))
    if found is None:
        return
    deviations = found[1] / here.least
    for radius in np.sqrt(2 * gammaincinv(k / 2, _MASSES)).tolist() if k else ():
        widths = radius * deviations * UP
        if (widths < np.where(is_seen, 1 - 1e-6, 1.0)).all():
            yield widths
    for most in _MOST:
        for radius in _DEVIATIONS:
            yield np.minimum(radius * deviations, np.where(is_seen, most, 1.0))


def _estimate_deviations(here: _Expansion, curvature: FloatArray) -> tuple[float, FloatArray] | None:
    """Return -½ ln det A and |β|_{A⁻¹} (n) for factors κ, as floats have them; None if A is singular."""
    scaled = here.slopes * (np.sqrt(here.counts * curvature) / here.least)[:, None]
    try:
        root = np.linalg.cholesky(scaled.T @ scaled + here.precision)
    except np.linalg.LinAlgError:
        return None
    deviations = np.linalg.norm(np.linalg.solve(root, here.slopes.T), axis=0)
    return -float(np.log(np.diagonal(root)).sum()), deviations


def _estimate_bound(here: _Expansion, widths: FloatArray) -> float:
    found = _estimate_deviations(here, _curvature(widths))
    return -np.inf if found is None else here.value + found[0] + _log_mass(here, widths, found[1])


def _bound(here: _Expansion, widths: FloatArray) -> float:
    """Return a lower bound on the logarithm of the evidence, with all roundings; widths may be any from 0 to 1.

    ``weights`` are at least those of A; so are, then, its determinant and all deviations but for what ``inverse_root``
    proves about rounding.
    """
    weights = here.counts * _curvature(widths) / here.least**2 * UP
    size = np.abs(here.slopes) + here.slope_errors
    n, k = here.slopes.shape
    matrix = here.precision + (here.slopes * weights[:, None]).T @ here.slopes
    matrix = (matrix + matrix.T) / 2
    relative = (n + 2 * len(here.slopes.T) + 16) * UNIT
    off = here.slope_errors.T @ (weights[:, None] * size)
    error = relative * (np.abs(here.precision) + size.T @ (weights[:, None] * size)) + (off + off.T) * UP
    root, defect = inverse_root(matrix, error)
    if not defect < 0.5:
        return -np.inf
    reach = np.abs(here.slopes @ root) + (here.slope_errors + (k + 4) * UNIT * size) @ np.abs(root)
    deviations = (np.linalg.norm(reach, axis=1) + SQUARES_UNDERFLOW) / np.sqrt(1 - defect) * UP
    terms = [here.value, -log_determinant(root, defect)[1] / 2, _log_mass(here, widths, deviations)]
    return fsum(terms) - 16 * UNIT * fsum(map(abs, terms))


def _log_mass(here: _Expansion, widths: FloatArray, deviations: FloatArray) -> float:
    """Return a lower bound on ln P(S), for the better of the largest ball and the slabs that widths allow.

    ``deviations`` are at least those of β·z.
    """
    from scipy.special import gammainc

    ratios = widths * here.least / deviations * (1 - 1e-12)
    if not len(ratios):
        return 0.0
    radius = float(ratios.min())
    with np.errstate(divide="ignore"):
        ball = float(np.log(gammainc(len(here.precision) / 2, radius**2 / 2 * (1 - 1e-12)) * (1 - _MARGIN)))
    narrowest = np.full(int(here.direction.max()) + 1, np.inf)
    np.minimum.at(narrowest, here.direction, ratios)
    return max(ball, _log_slabs(narrowest[narrowest < np.inf]))


def _log_slabs(ratios: FloatArray) -> float:
    """Return a lower bound on Σ ln P(|x| <= ratio) for a standard normal x."""
    from scipy.special import erf, erfc

    small, large = ratios[ratios < 1] / np.sqrt(2), ratios[ratios >= 1] / np.sqrt(2)
    with np.errstate(divide="ignore"):
        logs = np.append(np.log(erf(small) * (1 - _MARGIN)), np.log1p(-erfc(large) * (1 + _MARGIN)))
    return fsum(logs) - 16 * UNIT * fsum(np.abs(logs))


def _curvature(widths: FloatArray) -> FloatArray:
    """Return an upper bound on κ(t) = 2 (-t - ln(1 - t)) / t² = 1 + 2t/3 + t²/2 + 2t³/5 + …, at most that of 0.999999.

    Outcomes never seen may have a width of one; their factor is not used.
    """
    t = np.minimum(widths, 1 - 1e-6)
    large = np.maximum(t, _SMALL)
    series = 1 + t * (2 / 3 + t * (1 / 2 + t * (2 / 5) / (1 - t)))
    found: FloatArray = np.where(t > _SMALL, 2 * (-large - np.log1p(-large)) / large**2, series) * UP
    return found

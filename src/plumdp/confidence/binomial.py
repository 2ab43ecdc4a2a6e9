"""Computes confidence intervals for a probability from successes, trials and an error.

Each interval misses the true probability with at most that error. Rounding only widens an interval, and without trials
it is [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.rounding import ULP
from plumdp.base.special import log_gamma
from plumdp.model.graph import BoolArray, FloatArray

_OUTWARD = 1e-12  # relative; rounding moves log-odds y by some 4 (1 + |y|) units of 1e-16, and |y| is at most 700
_ULPS = 2 * ULP  # rounding of the last two operations
_NEWTON_STEPS = 6  # from the starting point below, more change nothing up to 10^15 trials
_MAX_RADIUS = 600.0  # beyond, odds would overflow: the interval is then [0, 1]
_MARGIN = 1e-3  # relative; of a tail's probability, which SciPy has to 1e-8 at least within the next limits
_EXACT_TRIALS, _EXACT_ERROR = 1e12, 1e-30
_BISECTIONS = 48  # of the logarithm of a probability; more change nothing in 1e-12
_POSTERIOR = 0.9  # λ, share of the error that tolerant intervals are made at, and of the posterior within each end
_COMPUTED_POSTERIOR = 0.95  # the share that SciPy must compute, so that its rounding leaves at least λ
_LARGE = 16.0  # from here on, three terms of Stirling's series are good to 2e-12

Interval = tuple[FloatArray, FloatArray]


def clopper_pearson(successes: npt.ArrayLike, trials: npt.ArrayLike, error: npt.ArrayLike) -> Interval:
    """Return the interval of all p that neither tail test at level ``error / 2`` rejects (Clopper, Pearson 1934).

    Valid if the number of trials does not depend on their outcomes. Beyond 10^12 trials, where floats cannot tell the
    tails, the interval is the slightly larger one that Chernoff's bound on them leaves: a tail that starts at the share
    K/N has at most the probability exp(-N kl(K/N, p)).

    >>> lower, upper = clopper_pearson([0, 5], [10, 10], 0.05)
    >>> lower.round(3), upper.round(3)
    (array([0.   , 0.187]), array([0.308, 0.813]))
    """
    k, n, m, error = _arrays(successes, trials, _failures(successes, trials), error)
    lower, upper = map(np.array, likelihood_interval(successes, trials, np.log(2 / error)))
    inner = (k > 0) & (m > 0) & (n <= _EXACT_TRIALS) & (error >= _EXACT_ERROR)  # Chernoff is exact for k = 0 and k = n
    lower[inner], upper[inner] = _tail_tests(k[inner], m[inner], error[inner], lower[inner], upper[inner])
    return lower, upper


def _tail_tests(k: FloatArray, m: FloatArray, error: FloatArray, lower: FloatArray, upper: FloatArray) -> Interval:
    """Return the ends that two tail tests do not reject, within given ends, for k successes and m failures."""
    from scipy.special import betainc, betaincc, betainccinv, betaincinv

    tail, share = error / 2 * (1 - _MARGIN), k / (k + m)
    lower = _last_rejected(betainc, k, m + 1, tail, betaincinv(k, m + 1, tail), lower, share)
    upper = _last_rejected(betaincc, k + 1, m, tail, betainccinv(k + 1, m, tail), upper, share)
    return lower * (1 - _OUTWARD), np.minimum(upper * (1 + _OUTWARD), 1.0)


def _last_rejected(
    tail_of: Callable[..., FloatArray],
    a: FloatArray,
    b: FloatArray,
    tail: FloatArray,
    proposed: FloatArray,
    outside: FloatArray,
    inside: FloatArray,
) -> FloatArray:
    """Return a point that the test rejects, close to the last one on the way from outside to inside.

    SciPy's inverse of the beta function only proposes a point, as it can be far off. The tail at that point decides.
    """
    is_between = (np.minimum(outside, inside) <= proposed) & (proposed <= np.maximum(outside, inside))
    is_right = is_between & (tail_of(a, b, np.where(is_between, proposed, inside)) <= tail)
    rejected = np.where(is_right, proposed, outside)
    is_wrong = ~is_right
    a, b, tail, outside, inside = a[is_wrong], b[is_wrong], tail[is_wrong], outside[is_wrong], inside[is_wrong]
    for _ in range(_BISECTIONS if len(a) else 0):
        middle = np.sqrt(outside * inside)
        is_rejected = tail_of(a, b, middle) <= tail
        outside, inside = np.where(is_rejected, middle, outside), np.where(is_rejected, inside, middle)
    rejected[is_wrong] = outside
    return rejected


def beta_binomial(successes: npt.ArrayLike, trials: npt.ArrayLike, error: npt.ArrayLike) -> Interval:
    """Return an interval that holds at all times at once, so that trials may stop for any reason seen in the data.

    Betting on each outcome with odds (K + 1/2) / (N + 1), the average of all fixed bets under a Beta(1/2, 1/2) prior,
    turns one unit of money into B(K + 1/2, N - K + 1/2) / (π p^K (1 - p)^(N - K)). If p is the true probability, this
    is a martingale, and by Ville's inequality it ever reaches 1 / error with probability at most ``error``. The
    interval is where it has not reached that (Robbins 1970; Howard et al. 2021).

    >>> lower, upper = beta_binomial([0, 5], [10, 10], 0.05)
    >>> lower.round(3), upper.round(3)
    (array([0.   , 0.118]), array([0.377, 0.882]))
    """
    k, n, m, error = _arrays(successes, trials, _failures(successes, trials), error)
    return likelihood_interval(successes, trials, -np.log(error) + _log_regret(k, m, n))


def sampled_interval(
    successes: npt.NDArray[Any], trials: npt.NDArray[Any], error: float, is_fixed: BoolArray
) -> Interval:
    """Return the narrowest intervals that are valid for how trials came about, each at the given error.

    They are Clopper–Pearson where the number of trials says nothing about outcomes, and beta-binomial elsewhere.
    """
    lower, upper = np.empty(len(is_fixed)), np.empty(len(is_fixed))
    for method, which in ((clopper_pearson, is_fixed), (beta_binomial, ~is_fixed)):
        lower[which], upper[which] = method(successes[which], trials[which], error)
    return lower, upper


def tolerant_interval(successes: npt.ArrayLike, trials: npt.ArrayLike, error: npt.ArrayLike) -> Interval:
    """Return intervals that hold at all times, once widened by a tolerance, if probabilities vary from trial to trial.

    With Beta(½, ½) cut to [a, 1], the mixture of likelihoods over that of a is a supermartingale as long as no trial
    has a probability above a. It is the mixture of all likelihoods, as in ``beta_binomial``, times the posterior of
    [a, 1]. So if probabilities are at most q + tolerance, and this is below the lower end at λ times the error,
    beyond which lies a share λ of the posterior, the mixture has reached 1 / error. Likewise for the upper end; both
    mixtures together start at one or less. An end with less of the posterior is replaced by 0 or 1.

    >>> lower, upper = tolerant_interval([0, 50], [10, 100], 0.05)
    >>> lower.round(3), upper.round(3)
    (array([0.   , 0.337]), array([0.384, 0.663]))
    """
    from scipy.special import betainc, betaincc

    lower, upper = beta_binomial(successes, trials, _POSTERIOR * np.asarray(error, dtype=np.float64))
    k, m = np.asarray(successes) + 0.5, np.subtract(trials, successes) + 0.5  # of the posterior, Beta(k, m)
    lower = np.where(betaincc(k, m, lower) >= _COMPUTED_POSTERIOR, lower, 0.0)
    return lower, np.where(betainc(k, m, upper) >= _COMPUTED_POSTERIOR, upper, 1.0)


def widened(lower: FloatArray, upper: FloatArray, by: float) -> Interval:
    """Return intervals of probabilities with both ends moved outward, within [0, 1]."""
    if by == 0:
        return lower, upper
    low, high = np.nextafter(lower - by, -np.inf), np.nextafter(upper + by, np.inf)  # outward by one float
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


def likelihood_interval(successes: npt.ArrayLike, trials: npt.ArrayLike, radius: npt.ArrayLike) -> Interval:
    """Return the interval of all p whose log-likelihood is at most ``radius`` below the largest one.

    That is N kl(K/N, p) <= radius. The ends have the odds K / (N - K) times exp(∓shift).
    """
    k, n, m, radius = _arrays(successes, trials, _failures(successes, trials), radius)
    lower, upper = np.zeros(k.shape), np.ones(k.shape)
    none, all_ = (k == 0) & (n > 0), (m == 0) & (n > 0)
    lower[all_] = np.exp(-radius[all_] / n[all_] * (1 + _OUTWARD)) * (1 - _ULPS)
    upper[none] = -np.expm1(-radius[none] / n[none] * (1 + _OUTWARD)) * (1 + _ULPS)
    some = (k > 0) & (m > 0) & (radius < _MAX_RADIUS)
    k, m, radius = k[some], m[some], radius[some]
    lower[some] = _probability(k / m * np.exp(-_log_odds_shift(k, m, radius)) * (1 - _OUTWARD)) * (1 - _ULPS)
    upper[some] = _probability(k / m * np.exp(_log_odds_shift(m, k, radius)) * (1 + _OUTWARD)) * (1 + _ULPS)
    return lower, np.minimum(upper, 1.0)


def _log_odds_shift(k: FloatArray, m: FloatArray, radius: FloatArray) -> FloatArray:
    """Return at least how far the log-odds of the lower end lie below those of k successes and m failures.

    With r the smaller of the two shares and y the shift, to the smaller one's side, N kl = N (log1p(r expm1(y)) - r y),
    which loses no digits however large N is. It is convex in y, so its tangents lie below it: every Newton step ends
    outside the interval, and stopping early is safe.
    """
    n = k + m
    share, side = np.minimum(k, m) / n, np.where(k <= m, -1.0, 1.0)
    y = side * _first_shift(k, m, radius)
    for _ in range(_NEWTON_STEPS):
        growth = np.expm1(y)
        excess = np.log1p(share * growth) - share * y - radius / n
        slope = share * (1 - share) * growth / (1 + share * growth)
        y = y - excess / slope
    return side * y


def _first_shift(k: FloatArray, m: FloatArray, radius: FloatArray) -> FloatArray:
    """Return a shift to start Newton's method from, close to the right one, from two bounds on the likelihood.

    The variance t (1 - t) between p and q = k / n is at most that at q plus its slope times the distance, which bounds
    the distance. The k successes alone have a likelihood of at most p^k, which bounds it as well.
    """
    n = k + m
    q, per_trial, slope = k / n, radius / n, np.maximum(k - m, 0) / n
    distance = per_trial * slope + np.sqrt((per_trial * slope) ** 2 + 2 * per_trial * q * m / n)
    near = np.where(distance < q, np.log1p(distance * n / m) - np.log1p(-np.minimum(distance / q, 0.99)), np.inf)
    return np.minimum(near, radius / k + n / k * np.log(n / m))


def _probability(odds: FloatArray) -> FloatArray:
    return odds / (1 + odds)


def _log_regret(k: FloatArray, m: FloatArray, n: FloatArray) -> FloatArray:
    """Return the log of the best p's likelihood over the average likelihood, max p^K (1-p)^(N-K) / (B(...) / π).

    The large parts of the log-gamma functions cancel in Stirling's formula, which leaves ½ ln(πN/2) and remainders.
    """
    n = np.maximum(n, 1.0)
    remainders = _factorial_remainder(n) - _half_remainder(k) - _half_remainder(m)
    return np.log(np.pi / 2 * n) / 2 + remainders + _OUTWARD  # outward: a larger regret widens the interval


def _factorial_remainder(x: FloatArray) -> FloatArray:
    """Return ln Γ(x + 1) - (x + ½) ln x + x - ½ ln 2π, or slightly more."""
    small, large = np.minimum(x, _LARGE), np.maximum(x, _LARGE)
    exact = log_gamma(small + 1) - (small + 0.5) * np.log(small) + small - np.log(2 * np.pi) / 2
    return np.where(x < _LARGE, exact, 1 / (12 * large) - 1 / (360 * large**3) + 1 / (1260 * large**5))


def _half_remainder(x: FloatArray) -> FloatArray:
    """Return ln Γ(x + ½) - x ln x + x - ½ ln 2π, or slightly less."""
    small, large = np.minimum(x, _LARGE), np.maximum(x, _LARGE)
    exact = log_gamma(small + 0.5) - small * np.log(np.maximum(small, 1e-300)) + small - np.log(2 * np.pi) / 2
    return np.where(x < _LARGE, exact, -1 / (24 * large) + 7 / (2880 * large**3) - 31 / (40320 * large**5))


def _failures(successes: npt.ArrayLike, trials: npt.ArrayLike) -> FloatArray:
    """Return trials - successes, subtracted as whole numbers because floats beyond 2^53 lose digits."""
    return np.asarray(np.subtract(trials, successes), dtype=np.float64)


def _arrays(*values: npt.ArrayLike) -> tuple[FloatArray, ...]:
    return tuple(np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in values)))

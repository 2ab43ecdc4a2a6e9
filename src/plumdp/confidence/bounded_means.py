"""Bounds on the mean of numbers between 0 and 1, by bets that are valid at any time, whatever the law of the numbers.

Somebody bets a fixed fraction of the capital that numbers are larger than a mean m. After a number x the capital is
multiplied by 1 - fraction + fraction x / m, which is 1 + λ (x - m) with λ = fraction / m. At the true mean its
expectation is one, so that the capital, averaged over many fractions, is a martingale that is never negative. With a
probability of at most the error it ever exceeds 1 / error (Ville); when it does, m is not the mean. The capital falls
as m grows, so that no smaller number is the mean either. Bets that numbers are smaller are bets on 1 - x. See
Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86 (2024), section 4.

Fractions are fixed beforehand, so that the order of the numbers makes no difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, nextafter
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.error_budget import equal_parts
from plumdp.base.linear_algebra import last_that
from plumdp.base.rounding import UNDERFLOW, UNIT, UP, FloatArray

FRACTIONS = (1.0, *(part * 2.0**-k for k in range(1, 13) for part in (1.5, 1.0)))
"""The fractions of the capital that are bet.

They are exact floats, and at most a factor of 1.5 apart. The smallest is the best one after some ten million numbers.
"""

PARTS = tuple(4 if 3 <= i < 15 else 1 for i in range(len(FRACTIONS)))
"""The part of the capital that each fraction has, relative to the others: most is for 30 to 30,000 numbers."""

_SMALLEST = UNDERFLOW  # instead of a mean of 0, of which a larger one is an outer approximation
_HALVINGS = 45  # of the distance to a bound, which is then off by less than 10^-13


@dataclass(frozen=True, eq=False)
class Tally:
    """Different numbers from 0 to 1, and how often each was seen."""

    value: FloatArray
    n: npt.NDArray[np.int64]

    @staticmethod
    def of(values: FloatArray) -> Tally:
        """Return the tally of some numbers."""
        return Tally(*np.unique(values, return_counts=True))


def multiplied(fraction: Any, number: Any, mean: Any) -> Any:
    """Return by what a bet of a fraction of the capital that numbers are above a mean multiplies it.

    All may be floats, arrays or exact fractions.
    """
    return 1 - fraction + fraction * (number / mean)


def log_capitals(seen: Tally, mean: float) -> FloatArray:
    """Return lower bounds on the logarithms of the capital after bets of each fraction that the mean is larger.

    A factor passes four roundings, so that its logarithm is off by 5 units beside its own rounding, and a sum of k
    terms by k + 2 units of their size.
    """
    mean, logs = max(mean, _SMALLEST), []
    for fraction in FRACTIONS:
        with np.errstate(divide="ignore"):
            terms = seen.n * np.log(multiplied(fraction, seen.value, mean))
        size = float(np.abs(terms).sum())
        off = 1.01 * UNIT * ((len(terms) + 4) * size + 5 * int(seen.n.sum()))
        logs.append(float(terms.sum()) - off if np.isfinite(size) else -np.inf)
    return np.array(logs)


def log_capital(seen: Tally, mean: float) -> float:
    """Return a lower bound on the logarithm of the capital of bets that the mean is larger."""
    return _mixed(log_capitals(seen, mean))


def mean_bounds(lower: Tally, upper: Tally, error: float) -> tuple[float, float]:
    """Return bounds between which the mean lies at all times at once, but for a probability of at most the error."""
    return _lower_bound(lower, error), min(1.0, _gap(_lower_bound(_mirrored(upper), error)))


def _lower_bound(seen: Tally, error: float) -> float:
    """Return the largest mean that is excluded by bets on larger numbers with half of the capital."""
    wanted = log(1 / equal_parts(error, 2)) * UP
    return last_that(lambda mean: log_capital(seen, mean) >= wanted, 0.0, 1.0, _HALVINGS)


def _mixed(logs: FloatArray) -> float:
    """Return a lower bound on the logarithm of the average, by their parts, of numbers that are given by theirs."""
    most = float(logs.max())
    return (
        _rounded_down(most + log(float(np.average(np.exp(logs - most), weights=PARTS)))) if np.isfinite(most) else most
    )


def _rounded_down(value: float) -> float:
    return value - 1e-12 * (1 + abs(value)) if np.isfinite(value) else value


def _mirrored(seen: Tally) -> Tally:
    """Return lower bounds on one minus each number."""
    return Tally(np.maximum(np.nextafter(1 - seen.value, -1), 0.0), seen.n)


def _gap(mean: float) -> float:
    """Return an upper bound on one minus a mean."""
    return nextafter(1 - mean, 2)

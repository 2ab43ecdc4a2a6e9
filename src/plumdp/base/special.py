"""Logarithms of gamma functions and of sums, without SciPy where little is asked: importing that takes longer."""

from __future__ import annotations

from math import lgamma

import numpy as np
import numpy.typing as npt

from plumdp.base.rounding import FloatArray

_MANY = 20_000  # numbers from which on SciPy's loop repays its import


def log_gamma(x: npt.ArrayLike) -> FloatArray:
    """Return ln Γ of positive numbers, off by at most 16 units in the last place of the larger of the result and 1."""
    x = np.asarray(x, dtype=np.float64)
    if x.size > _MANY:
        from scipy.special import gammaln

        return np.asarray(gammaln(x))
    return np.fromiter(map(lgamma, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


def log_sum(logs: npt.ArrayLike) -> float:
    """Return the logarithm of the sum of numbers whose logarithms are given."""
    logs = np.asarray(logs, dtype=np.float64)
    top = logs.max()
    return float(top + np.log(np.exp(logs - top).sum())) if np.isfinite(top) else float(top)

"""The constants by which bounds are rounded outward, each with the reason why it is enough.

Floats are IEEE doubles, rounded to nearest. A bound is calculated as usual and then moved outward by at least what
rounding may have moved it inward. The size of that step is made of these constants. Kernels read them as constants when
they are compiled: after changing one here, delete the compiled files in ``__pycache__``.
"""

from __future__ import annotations

from math import fsum

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

UNIT = 2.0**-53
"""Relative error of one rounding: a sum, difference, product, quotient or root r is returned as r (1 + e), |e| <= UNIT.

Doubles have 53 significant bits, so that neighbours are at most 2 UNIT |r| apart and the nearest is within half of
that. A term that passes k roundings is off by at most k UNIT / (1 - k UNIT) of its size; where a formula counts k
generously, or multiplies by 1.01, the denominator is covered as long as k is below 10^13. This holds for all sums and
differences, and for products and quotients that do not underflow; for those that do, see ``UNDERFLOW``.
"""

ULP = 2.0**-52
"""Distance of 1 from the next larger float, and so a bound on the distance of neighbours in [0, 1].

A probability that is rounded once, in either direction, is off by at most half of it; a sum of k of them, added up
one by one, by at most k times it.
"""

UNDERFLOW = 1e-300
"""More than all products that are too small for a float can lose together, if their factors are of size at most one.

A product below 2^-1022 is off by at most 2^-1075, less than 1e-323, and no sum here has more than 10^23 terms.
"""

SQUARES_UNDERFLOW = 1e-150
"""More than what a norm loses where squares are too small for a float.

Squares of numbers below 1e-154 underflow. With n of them, the norm is too small by at most the square root of
n 2^-1022, which is less than 1e-150 as long as n is below 10^7.
"""

UP = 1 + 1e-12
"""A factor that is more than a handful of roundings: 4,000 of them, as 4,000 UNIT is less than 1e-12."""

_FEW = 500  # terms that are added up in Python sooner


def down(value: FloatArray, size: FloatArray) -> FloatArray:
    """Return lower bounds on exact values, given the values in floats and the size of their terms.

    Of the four units, one is for the terms, whose coefficients are the nearest floats, one for the sum that made the
    value and one for this subtraction. The fourth covers the rounding of the size and of the step itself.
    """
    return value - 4 * UNIT * (np.abs(value) + size)


def up(value: FloatArray, size: FloatArray) -> FloatArray:
    """Return upper bounds on exact values, given the values in floats and the size of their terms.

    As ``down``, with room for terms that underflow, since offsets of half-spaces may be sums of very small products.
    """
    return value + (4 * UNIT * (np.abs(value) + size) + UNDERFLOW)


def sum_once(terms: FloatArray) -> FloatArray:
    """Return the sums of finite numbers (n, …), rounded once, and off by parts in 10^20 of the sum of their sizes.

    Each sum of two loses a float that float operations find (Knuth's TwoSum). What is lost is added up in floats.
    """
    if terms.ndim == 1 and len(terms) < _FEW:
        return np.asarray(fsum(terms.tolist()))
    lost = np.zeros(terms.shape[1:])
    while len(terms) > 1:
        half = len(terms) // 2
        one, other = terms[:half], terms[half : 2 * half]
        both = one + other
        back = both - one
        lost += ((one - (both - back)) + (other - back)).sum(axis=0)
        terms = np.concatenate([both, terms[2 * half :]])
    return np.asarray(terms.sum(axis=0) + lost)

"""Compiled loops over the transitions of a chain that calculate the parts of the residuals of an expansion.

Symmetric matrices are packed into the entries on and above the diagonal, row by row.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from plumdp.base.compiled import compiled, compiled_leaf
from plumdp.base.rounding import UNIT, UP


@partial(compiled, inline="always")
def add_products(
    s: int, to: int, f: int, a: float, w: float, spreads: Any, bends: Any, slopes: Any, curvatures: Any,
    mean_slopes: Any, mean_curvatures: Any, vector: Any, quadratic: Any,
) -> None:  # fmt: skip
    """Add one transition's products of mean a and value w, which are a w¹, a W², β w⁰ and sym β w¹ᵀ + Γ w⁰.

    The first two go to the means. Of many parameters an expression depends on few: where two entries of β are zero, so
    is that of β w¹ᵀ.
    """
    d, start = len(vector), 0
    for i in range(d):
        mean_slopes[s, i] += a * slopes[to, i]
        vector[i] += spreads[f, i] * w
        if spreads[f, i] != 0.0 or bends.shape[1] > 0:
            for j in range(i, d):
                product = (spreads[f, i] * slopes[to, j] + spreads[f, j] * slopes[to, i]) / 2
                if bends.shape[1] > 0:
                    product += bends[f, start + j - i] * w
                quadratic[s, start + j - i] += product
            above = 0
            for j in range(i if bends.shape[1] == 0 else 0):
                if spreads[f, j] == 0.0:
                    quadratic[s, above + i - j] += spreads[f, i] * slopes[to, j] / 2
                above += d - j
        start += d - i
    for k in range(curvatures.shape[1]):
        mean_curvatures[s, k] += a * curvatures[to, k]


@partial(compiled, small=100_000)
def write_low_degrees(
    edges: Any, forms: Any, after: Any, here: Any, reward: Any, mean: Any, constant: Any, linear: Any, quadratic: Any,
    rounding: Any,
) -> None:  # fmt: skip
    """Write the parts of degree 0, 1 and 2 of each open node's residual, and a bound on the rounding of all parts.

    ``edges`` are first, successor and expression. ``forms`` are means, spreads, curvatures, their sizes and errors.
    ``after`` and ``here`` are values, slopes, curvatures and sizes of the expansion of the successors and of the nodes.
    ``mean`` gets the expected parts of ``after``: values, slopes and curvatures of the rows.
    """
    first, successor, expression = edges
    means, spreads, bends, form_sizes, errors = forms
    values, slopes, curvatures, sizes = after
    vector = np.empty(slopes.shape[1])
    for s in range(len(first) - 1):
        total, size, mean_size, error, error_size = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(len(vector)):
            vector[i] = 0.0
        for t in range(first[s], first[s + 1]):
            to, f = successor[t], expression[t]
            total += means[f] * values[to]
            size += form_sizes[f] * sizes[to]
            mean_size += abs(means[f]) * sizes[to]
            error += errors[f]
            error_size += errors[f] * sizes[to]
            add_products(
                s, to, f, means[f], values[to], spreads, bends, slopes, curvatures, mean[1], mean[2], vector, quadratic
            )
        mean[0][s] = total
        constant[s] = abs(reward[s] + total - here[0][s])
        square = 0.0
        for i in range(len(vector)):
            rest = vector[i] + mean[1][s, i] - here[1][s, i]
            square += rest * rest
        linear[s] = np.sqrt(square)
        for k in range(curvatures.shape[1]):
            quadratic[s, k] += mean[2][s, k] - here[2][s, k]
        gamma = (first[s + 1] - first[s] + 12) * UNIT  # rewards and payments may be rounded three times each
        # errors of coefficients matter times the successor's value, and times the mean that is subtracted
        rounding[s] = gamma * (abs(reward[s]) + size + here[3][s]) + error_size + error * mean_size


@partial(compiled, small=60_000)
def write_high_degrees(
    first: Any, successor: Any, expression: Any, lengths: Any, after: Any, mean: Any, is_sharp: bool, result: Any
) -> None:
    """Write bounds on the part of degree three or more of each open node's residual.

    ``lengths`` are how far the linear parts of the forms reach, norms of their curvatures, and their tails. Roundings
    are few and relative.
    """
    of_spreads, of_bends, tails = lengths
    values, slopes, curvatures, _ = after
    mean_values, mean_slopes, mean_curvatures = mean
    d, width = slopes.shape[1], curvatures.shape[1]
    difference, work = np.empty(width), np.empty((3, d, d))
    for s in range(len(first) - 1):
        total = 0.0
        for t in range(first[s], first[s + 1]):
            to, f = successor[t], expression[t]
            square = 0.0
            for i in range(d):
                rest = slopes[to, i] - mean_slopes[s, i]
                square += rest * rest
            slope, curvature = np.sqrt(square), 0.0
            if width:
                for k in range(width):
                    difference[k] = curvatures[to, k] - mean_curvatures[s, k]
                curvature = spectral_norm(difference, d, is_sharp, work)
            # |β·x| |xᵀ(W² - W̄)x| and |xᵀ Γ x| |(w¹ - w̄)·x + xᵀ(W² - W̄)x|, for |x| <= 1
            total += of_spreads[f] * curvature + of_bends[f] * (slope + curvature)
            if tails[f] > 0.0:
                total += tails[f] * (abs(values[to] - mean_values[s]) + slope + curvature)
        result[s] = total * UP


@compiled
def write_ranges(first: Any, successor: Any, after: Any, mean: Any, result: Any) -> None:
    """Write for each open node the largest distance of its successors' values at a point of the ball, rounded up.

    The value of a successor differs from the expected one of the row by w⁰ - w̄⁰ up to |w¹ - w̄¹| + |W² - W̄²|, the
    last in Frobenius' norm. Roundings of a difference are relative to the sizes of its parts.
    """
    values, slopes, curvatures, sizes = after
    mean_values, mean_slopes, mean_curvatures = mean
    d, width = slopes.shape[1], curvatures.shape[1]
    for s in range(len(first) - 1):
        lowest, highest, size = np.inf, -np.inf, abs(mean_values[s])
        for t in range(first[s], first[s + 1]):
            to = successor[t]
            slope, curvature, k = 0.0, 0.0, 0
            for i in range(d):
                rest = slopes[to, i] - mean_slopes[s, i]
                slope += rest * rest
            if width:
                for i in range(d):
                    for j in range(i, d):
                        rest = curvatures[to, k] - mean_curvatures[s, k]
                        square = rest * rest
                        curvature += square if i == j else 2.0 * square
                        k += 1
            reach = np.sqrt(slope) + np.sqrt(curvature)
            middle = values[to] - mean_values[s]
            lowest, highest = min(lowest, middle - reach), max(highest, middle + reach)
            size = max(size, sizes[to])
        result[s] = max(highest - lowest, 0.0) * UP + 16 * UNIT * size


@compiled_leaf
def spectral_norm(packed: Any, d: int, is_sharp: bool, work: Any) -> Any:
    """Return an upper bound on the spectral norm of a symmetric matrix D.

    No eigenvalue is further from m = trace / d than sqrt((d - 1) (|D|² / d - m²)), with |D| Frobenius' norm (Wolkowicz
    and Styan 1980), which is exact for d <= 2. If it is to be sharp, also |D⁴|^¼: for |D| = 1 the float D⁴ is off by at
    most 4 (d + 4) UNIT.
    """
    square, trace, k = 0.0, 0.0, 0
    for i in range(d):
        trace += packed[k]
        square += packed[k] * packed[k]
        for j in range(1, d - i):
            square += 2 * (packed[k + j] * packed[k + j])
        k += d - i
    norm, middle = np.sqrt(square) * UP, trace / d
    if norm == 0.0:
        return 0.0
    spread = max(square / d - middle * middle, 0.0) + 16 * (d + 4) * UNIT * square
    bound = min(norm, (abs(middle) + np.sqrt((d - 1) * spread)) * UP + 4 * (d + 4) * UNIT * norm)
    if d <= 2 or not is_sharp:
        return bound
    k = 0
    for i in range(d):
        for j in range(i, d):
            work[0, i, j] = work[0, j, i] = packed[k] / norm
            k += 1
    square_of(work[0], work[1])
    square_of(work[1], work[2])
    fourth = 0.0
    for i in range(d):
        for j in range(d):
            fourth += work[2, i, j] * work[2, i, j]
    length = np.sqrt(fourth) * UP + 8 * (d + 4) * UNIT
    return min(bound, np.sqrt(np.sqrt(length)) * norm * UP)


@compiled_leaf
def square_of(matrix: Any, result: Any) -> None:
    """Write the square of a symmetric matrix, row by row."""
    d = len(matrix)
    for i in range(d):
        for j in range(d):
            result[i, j] = 0.0
        for k in range(d):
            factor = matrix[i, k]
            for j in range(d):
                result[i, j] += factor * matrix[k, j]

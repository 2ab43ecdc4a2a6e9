"""The directions in which tangents to an ellipsoid are taken, where products of parameters need half-spaces.

Which directions are taken is a matter of tightness only: where the tangents stand is what ``minimise`` proves.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from plumdp.model.expressions.polynomial import Polynomial, from_terms
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray
from plumdp.region.ellipsoid import Ellipsoid
from plumdp.region.mccormick import Lift

_SPREAD = {2: 24, 3: 100, 4: 150}  # pairs of tangents, by the number of variables
_MAX_GRADIENTS = 200


def combination(coefficients: Sequence[float], of: Lift) -> Polynomial:
    """Return the sum of the variables of a lift times floats, exactly."""
    order = sorted(range(len(of.parameters)), key=of.parameters.__getitem__)
    terms = zip(of.variables, coefficients, strict=True)
    exact = {tuple(exponents[i] for i in order): Fraction(c) for exponents, c in terms if c}
    return from_terms(tuple(of.parameters[i] for i in order), exact)


def normalised(rows: FloatArray) -> FloatArray:
    """Return rows divided by their largest entries, without rows of zeros."""
    size = np.abs(rows).max(axis=1, keepdims=True, initial=0)
    return np.ascontiguousarray((rows / np.where(size > 0, size, 1.0))[size[:, 0] > 0])


def spread_directions(d: int) -> FloatArray:
    """Return directions of length one, none opposite to another, many in two to four dimensions, else the axes."""
    n = _SPREAD.get(d, d)
    if d == 2:
        angle = np.arange(n) * np.pi / n
        return np.column_stack([np.cos(angle), np.sin(angle)])
    if d == 3:  # a spiral of equal steps in height, turned by the golden section
        height, angle = (np.arange(n) + 0.5) / n, np.arange(n) * np.pi * (3 - np.sqrt(5))
        return np.column_stack([*(np.sqrt(1 - height**2) * turn for turn in (np.cos(angle), np.sin(angle))), height])
    if d == 4:
        points = np.random.default_rng(5).normal(size=(n, d))  # the same in each call
        return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))
    return np.eye(d)


def slopes(ellipsoid: Ellipsoid, expressions: ExpressionTable, lift: Lift) -> FloatArray:
    """Return the slope of expressions in each variable.

    It is that at the centre if they have products that are not variables.
    """
    n, number = len(lift.parameters), {e: i for i, e in enumerate(lift.variables)}
    centre = np.clip(ellipsoid.centre, ellipsoid.lower, ellipsoid.upper)[:n]
    of_monomials = np.zeros((len(expressions.monomials), len(lift.variables)))
    for row, e in zip(of_monomials, expressions.monomials.tolist(), strict=True):
        if tuple(e) in number:
            row[number[tuple(e)]] = 1
        else:
            row[:n] = [k * np.prod(centre ** np.maximum(e - np.eye(n, dtype=int)[j], 0)) for j, k in enumerate(e)]
    unknown = np.flatnonzero(expressions.is_unknown)
    return np.asarray(expressions.coefficients[unknown[:: -(-len(unknown) // _MAX_GRADIENTS)]] @ of_monomials)

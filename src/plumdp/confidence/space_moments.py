"""Computes the mean and the covariance of a parameter space, for a normal law that is fixed before any data.

Boxes and simplices have closed forms. Other spaces get the analytic centre, and the inverse second derivative of the
logarithmic barrier there, which is (d + 2)/(d + 1) times the covariance for a simplex of d parameters, and 1.5 times
for a box. Any numbers would be valid as a prior that is chosen without looking at the data, and these are good ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.graph import FloatArray, read_only
from plumdp.model.space import ParameterSpace, affine_entries, independent_blocks

_LEAST_WIDTH = 1e-3  # of a known parameter, relative to the widest, so that the covariance is not singular
_NOTHING = 1e-100  # squares of smaller widths underflow
_STEPS = 100
_WEIGHT = 10.0  # of the largest excess over a half-space, against the barrier, in the first round
_ROUNDS = 20

_Form = tuple[Fraction, list[tuple[int, Fraction]]]  # constant term, and places and coefficients that are not zero


@lru_cache(maxsize=32)
def moments(space: ParameterSpace) -> tuple[FloatArray, FloatArray]:
    """Return mean (d) and covariance (d, d) of the uniform law on a space, exact or by the logarithmic barrier.

    The mean lies inside the space if that has inner points. The mean of a flat space is a point of the space, up to
    rounding, if its corners can be listed.

    >>> mean, covariance = moments(ParameterSpace.unit("p", "q"))
    >>> mean, covariance.round(4)
    (array([0.5, 0.5]), array([[0.0833, 0.    ],
           [0.    , 0.0833]]))
    """
    low, exact_width = space.lower, space.upper - space.lower
    widest = float(exact_width.max(initial=0))
    width = np.maximum(exact_width, _LEAST_WIDTH * (widest if widest > _NOTHING else 1.0))  # any for a single point
    d, sides, size = len(low), *_essential(space)
    if size is not None:
        p = np.full(d, 1 / (d + 1))
        return _scaled(p, (np.diag(p) - np.outer(p, p)) / (d + 2), low, np.full(d, float(size)))
    by_barrier = _by_barrier(*_in_unit_box([form for _, form in sides], low, width)) if sides else None
    if by_barrier is None:  # a box, or a flat space, which gets the covariance of the box around it
        _, covariance = _scaled(np.full(d, 0.5), np.eye(d) / 12, low, width)
        return read_only(_middle_of_flat(space) if sides else (space.lower + space.upper) / 2), covariance
    centre, covariance = by_barrier
    return _scaled(centre * exact_width / width, covariance, low, width)


def _middle_of_flat(space: ParameterSpace) -> FloatArray:
    """Return the mean of the corners of a space, or the middle of its box if there are too many corners to list."""
    corners = space.vertices
    if not corners:
        return np.asarray((space.lower + space.upper) / 2, dtype=np.float64)
    sums = (sum((corner[name] for corner in corners), Fraction(0)) for name in space.names)
    return np.array([float(total / len(corners)) for total in sums])


def simplified(space: ParameterSpace) -> ParameterSpace:
    """Return the space without constraints that hold in its whole box, or on a whole simplex.

    A model has a constraint for each of its expressions. Where parameters are the weights of a mixture, none of these
    excludes a point.

    >>> from plumdp import parameters
    >>> p, q = parameters("p", "q")
    >>> simplified(ParameterSpace.simplex("p", "q").cut([1 - p / 2 - q / 3])).constraints
    (Polynomial('-p - q + 1'),)
    """
    return replace(space, constraints=tuple(side for side, _ in _essential(space)[0]))


@lru_cache(maxsize=32)
def _essential(space: ParameterSpace) -> tuple[list[tuple[Polynomial, _Form]], Fraction | None]:
    """Return the constraints that may exclude a point of the box, and the size of the space if it is a simplex."""
    forms = [(side, affine_entries(side, space.names)) for side in space.constraints]
    sides = [(side, form) for side, form in forms if _least_in_box(form, space) < 0]
    for side, form in sides:
        size = _simplex_size(form, [other for _, other in sides], space)
        if size is not None:
            return [(side, form)], size
    return sides, None


def _scaled(
    mean: FloatArray, covariance: FloatArray, low: FloatArray, width: FloatArray
) -> tuple[FloatArray, FloatArray]:
    return read_only(low + width * mean), read_only(covariance * np.outer(width, width))


def _least_in_box(side: _Form, space: ParameterSpace) -> Fraction:
    """Return the least value of an affine polynomial over the bounds of a space, exactly."""
    constant, slopes = side
    return constant + sum((a * space.bounds[i][0 if a > 0 else 1] for i, a in slopes), Fraction(0))


def _simplex_size(face: _Form, sides: Sequence[_Form], space: ParameterSpace) -> Fraction | None:
    """Return s if the space is all points with Σ (parameter - lower bound) <= s and no term below zero, or None.

    The face bounds the sum, and all sides must hold at the corners, which are the lower bounds, and the lower bounds
    with one parameter larger by s.
    """
    constant, slopes = face
    if len(slopes) < space.dimension or len({slope for _, slope in slopes}) != 1 or slopes[0][1] >= 0:
        return None
    low = [bound for bound, _ in space.bounds]
    size = -(constant / slopes[0][1]) - sum(low)
    fits = size > 0 and all(a + size <= b for a, b in space.bounds)
    return size if fits and all(_value(side, low) + size * _steepest(side) >= 0 for side in sides) else None


def _value(side: _Form, point: Sequence[Fraction]) -> Fraction:
    return side[0] + sum((a * point[i] for i, a in side[1]), Fraction(0))


def _steepest(side: _Form) -> Fraction:
    """Return the least slope along any axis, or zero if it falls along none."""
    return min([Fraction(0), *(a for _, a in side[1])])


def is_nonnegative(polynomial: Polynomial, space: ParameterSpace) -> bool:
    """Return whether it can be shown that an affine polynomial is at least zero at all points of a space."""
    form = affine_entries(polynomial, space.names)
    if _least_in_box(form, space) >= 0:
        return True
    for side in space.constraints:  # is it a positive multiple of a constraint, plus a constant of at least zero?
        constant, slopes = affine_entries(side, space.names)
        if [i for i, _ in form[1]] == [i for i, _ in slopes]:
            ratios = {a / b for (_, a), (_, b) in zip(form[1], slopes, strict=True)}
            if len(ratios) == 1 and (ratio := ratios.pop()) > 0 and form[0] >= ratio * constant:
                return True
    corners = space.vertices
    return bool(corners) and all(polynomial.evaluate(corner) >= 0 for corner in corners or ())


def _in_unit_box(sides: Sequence[_Form], low: FloatArray, width: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the box and the other sides as ``rows @ x <= offsets`` with rows of length one, for low + width x."""
    d = len(low)
    slopes = np.zeros((len(sides), d))
    for row, (_, entries) in zip(slopes, sides, strict=True):
        row[[i for i, _ in entries]] = [float(a) for _, a in entries]
    rows = np.vstack([-np.eye(d), np.eye(d), -slopes * width])
    offsets = np.concatenate([np.zeros(d), np.ones(d), [float(c) for c, _ in sides] + slopes @ low])
    lengths = np.linalg.norm(rows, axis=1)
    return rows / lengths[:, None], offsets / lengths


def _by_barrier(rows: FloatArray, offsets: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return the analytic centre and the inverse second derivative of the barrier there, or None without inner points.

    The barrier of a product of blocks is the sum of theirs, so that each block is searched by itself.
    """
    d = rows.shape[1]
    centre, covariance = np.zeros(d), np.zeros((d, d))
    for columns, block in independent_blocks(rows):
        part = np.ascontiguousarray(rows[np.ix_(block, columns)])
        inner = _inner_point(part, offsets[block])
        if inner is None:
            return None
        centre[columns], covariance[np.ix_(columns, columns)] = _analytic_centre(part, offsets[block], inner)
    return centre, covariance


def _inner_point(rows: FloatArray, offsets: FloatArray) -> FloatArray | None:
    """Return a point strictly within half-spaces, or None if none is found.

    The largest excess over a half-space, t, is a further variable, which is pulled down with a growing weight.
    """
    point = np.full(rows.shape[1], 0.5)
    excess = rows @ point - offsets
    if excess.max() < 0:
        return point
    x = np.append(point, excess.max() + 1)
    lifted = np.hstack([rows, -np.ones((len(rows), 1))])
    weight = _WEIGHT
    for _ in range(_ROUNDS):
        x = _minimise_barrier(lifted, offsets, x, np.append(np.zeros(len(point)), weight))
        if (rows @ x[:-1] - offsets).max() < -1e-9:
            return x[:-1]
        weight *= 4
    return None


def _analytic_centre(rows: FloatArray, offsets: FloatArray, inner: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the point with the largest product of distances from all sides, and the inverse second derivative there.

    The barrier is -Σ ln(distance), and its second derivative Σ row rowᵀ / distance².
    """
    point = _minimise_barrier(rows, offsets, inner, np.zeros(len(inner)))
    slopes = rows / (offsets - rows @ point)[:, None]
    covariance = np.linalg.inv(slopes.T @ slopes)
    return point, (covariance + covariance.T) / 2


def _minimise_barrier(rows: FloatArray, offsets: FloatArray, point: FloatArray, pull: FloatArray) -> FloatArray:
    """Return an estimate of the minimum of pull·x - Σ ln(offset - row·x), by Newton steps of safe length.

    The barrier is self-concordant: a step divided by 1 + its length in the norm of the second derivative stays inside
    (Nesterov and Nemirovskii 1994).
    """
    for _ in range(_STEPS):
        slopes = rows / (offsets - rows @ point)[:, None]
        gradient = pull + slopes.sum(axis=0)
        step = -np.linalg.lstsq(slopes.T @ slopes, gradient, rcond=None)[0]
        length = float(np.linalg.norm(slopes @ step))
        point = point + step / (1 + length if length > 0.25 else 1)
        if length < 1e-9:
            break
    return point

"""Ellipsoids of the parameters alone that hold a region, each the image of the unit ball under an affine map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from plumdp.base.rounding import SQUARES_UNDERFLOW, UNDERFLOW, UNIT, UP
from plumdp.model.graph import FloatArray, read_only
from plumdp.region.ellipsoid import Ellipsoid, Enclosed
from plumdp.region.shapes import Polytope, Region

_MAX_STEPS = 300
_TOLERANCE = 1e-3  # of the squared radius
_FLAT = 1e-12  # width relative to the largest coordinate, below which an ellipsoid is not tried
_ATTEMPTS = 4  # to scale a factor
_LOOSE = 0.999  # a factor that could be smaller than this share of itself is scaled
_CUT = 1.5  # how much wider than the region an ellipsoid is for another one to be tried
_SHARES = (0.9, 0.75, 0.5, 0.25)
_GRID = {1: 1, 2: 64, 3: 24, 4: 10, 5: 6}  # steps along a side of the cube, by the number of parameters
_MAX_DEFECT = 1e-3  # of an inverse that is trusted


@dataclass(frozen=True, eq=False)
class Ball:
    """The points ``centre + factor @ x`` with ``|x| <= 1``, for exactly these floats."""

    centre: FloatArray  # (n)
    factor: FloatArray  # (n, n)


@singledispatch
def ball_around(region: Region, n_parameters: int) -> Ball:
    """Return a ball that holds the parameters of every point of a region, without its products of parameters.

    A kind of region that knows better than the box around it registers its own function.
    """
    return ball_around_box(region.lower[:n_parameters], region.upper[:n_parameters])


def ball_around_box(lower: FloatArray, upper: FloatArray) -> Ball:
    """Return the smallest ellipsoid around a box that has the same axes.

    Its semi-axes are the half-widths of the box times the root of n. A side of length zero gets a tiny width, so that
    the factor can be inverted.
    """
    centre = (lower + upper) / 2
    reach = np.maximum(upper - centre, centre - lower)
    reach = np.maximum(reach, 4 * UNIT * np.abs(centre) + UNDERFLOW) * (UP * np.sqrt(max(len(centre), 1)))
    return Ball(read_only(centre), read_only(np.diag(reach)))


@ball_around.register
def _around_ellipsoid(region: Ellipsoid, n_parameters: int) -> Ball:
    """Return the ellipsoid itself, or its shadow on the parameters.

    If floats cannot prove that it holds the region, it is the ball around the box.
    """
    centre, rows = region.centre[:n_parameters].copy(), region.radius * region.root[:n_parameters]
    ball = _with_factor(centre, rows, rows if rows.shape[0] == rows.shape[1] else _root(rows @ rows.T))
    return ball_around_box(region.lower[:n_parameters], region.upper[:n_parameters]) if ball is None else ball


def turned(ball: Ball, axes: FloatArray) -> Ball:
    """Return a ball with about the given orthogonal axes (d, d), as columns, that holds another one, or that one."""
    return _with_factor(ball.centre, ball.factor, ball.factor @ axes) or ball


def _with_factor(centre: FloatArray, rows: FloatArray, factor: FloatArray) -> Ball | None:
    """Return the ball of a multiple of a factor that holds all points ``centre + rows @ x`` with |x| <= 1."""

    def reach(inverse: FloatArray, gamma: float) -> float:
        size = np.linalg.norm(np.abs(inverse) @ np.abs(rows))
        return float(np.linalg.norm(inverse @ rows, 2) * (1 + 1e-12) + gamma * size)

    return fitted(centre, factor, reach)


@ball_around.register
def _around_enclosed(region: Enclosed, n_parameters: int) -> Ball:
    """Return the ball of the ellipsoid."""
    return _around_ellipsoid(region.ellipsoid, n_parameters)


@ball_around.register
def _around_polytope(region: Polytope, n_parameters: int) -> Ball:
    """Return about the smallest ellipsoid around the vertices, enlarged until it is proved to hold the polytope.

    If that fails, or is larger, it is the ball around the box.
    """
    box = ball_around_box(region.lower[:n_parameters], region.upper[:n_parameters])
    if n_parameters not in _GRID:
        return box
    region.graph.enumerate_all()
    points = region.graph.found.points[: region.graph.found.n[0], :n_parameters] * region.scale[:n_parameters]
    guess = smallest_ellipsoid(points)
    ball = None if guess is None else _fitted_by_cover(region, n_parameters, *guess)
    return box if ball is None or _is_larger(ball, box) else ball


def smaller_ball(region: Region, ball: Ball) -> Ball | None:
    """Return another ball around a region, of a smaller volume, if half-spaces cut much of the first, else None.

    It is smaller where the box around the region is narrow, at the price of being wider elsewhere.
    """
    n = len(ball.centre)
    widths = (region.upper - region.lower)[:n]
    if n not in _GRID or not (2 * np.sqrt((ball.factor**2).sum(axis=1)) > _CUT * widths).any():
        return None
    try:
        guess = _both(ball, ball_around_box(region.lower[:n], region.upper[:n]))
    except np.linalg.LinAlgError:  # NumPy's own, of a matrix that floats cannot invert
        return None
    smaller = None if guess is None else _fitted_by_cover(region, n, *guess)
    return None if smaller is None or _is_larger(smaller, ball) else smaller


def _both(one: Ball, other: Ball) -> tuple[FloatArray, FloatArray] | None:
    """Return about the smallest ellipsoid, of some that hold the intersection of two balls.

    A point of both has λ |F⁻¹(v - c)|² + (1 - λ) |G⁻¹(v - m)|² <= 1, for every λ between 0 and 1.
    """
    least_volume, smallest = np.inf, None
    (c, first), (m, second) = ((ball.centre, np.linalg.inv(ball.factor @ ball.factor.T)) for ball in (one, other))
    for share in _SHARES:
        matrix = share * first + (1 - share) * second
        inverse = np.linalg.inv(matrix)
        centre = inverse @ (share * first @ c + (1 - share) * second @ m)
        apart = share * (c - centre) @ first @ (c - centre) + (1 - share) * (m - centre) @ second @ (m - centre)
        square = 1 - float(apart)
        volume = np.linalg.slogdet(inverse)[1] + len(c) * np.log(max(square, UNDERFLOW))
        # an estimate: the ball that is returned is proved to hold the region by _fitted_by_cover
        if square > 0 and volume < least_volume:
            least_volume, smallest = volume, (centre, _root((inverse + inverse.T) / 2 * square))
    return smallest


def _fitted_by_cover(region: Region, n: int, centre: FloatArray, factor: FloatArray) -> Ball | None:
    """Return the ball of a factor, scaled until supports of the region in many directions prove that it holds it."""
    directions, cosine = _cover(n, _GRID[n])

    def reach(inverse: FloatArray, gamma: float) -> float:
        objectives = np.zeros((len(directions), len(region.names)))
        objectives[:, :n] = directions @ inverse
        # u·G(v - c) is at most h for all directions u of the cover, so that |G(v - c)| is at most h / cosine
        most = -region.minimise(-objectives) - objectives[:, :n] @ centre
        largest = np.maximum(np.abs(region.lower), np.abs(region.upper))[:n] + np.abs(centre)
        size = np.linalg.norm(np.abs(inverse) @ largest)
        return float((most.max() + 2 * gamma * size) / cosine)

    return fitted(centre, factor, reach)


def _cover(n: int, n_steps: int) -> tuple[FloatArray, float]:
    """Return directions of length at least one, and a bound from below on the cosine of the angle to the nearest one.

    They are a grid on the surface of the cube [-1, 1]ⁿ, divided by their lengths. A ray leaves the cube in a point that
    is no further from the grid than δ, half a step times the root of n - 1. Both are at least one away from the middle,
    so that the sine of their angle is at most δ. So if u·y <= h for all directions u, |y| <= h / sqrt(1 - δ²).
    """
    ticks = np.linspace(-1, 1, n_steps + 1)
    grid = np.stack(np.meshgrid(*[ticks] * n, indexing="ij"), axis=-1).reshape(-1, n)
    surface = grid[np.abs(grid).max(axis=1) == 1]
    lengths = np.sqrt((surface**2).sum(axis=1))
    sine = np.sqrt(n - 1) / n_steps
    return surface / lengths[:, None] * (1 + 1e-15), float(np.sqrt(1 - sine**2)) * (1 - 1e-14)


def _is_larger(one: Ball, other: Ball) -> bool:
    """Return whether a ball has the larger volume, up to rounding."""
    first, second = (np.linalg.slogdet(ball.factor)[1] for ball in (one, other))
    return bool(first > second)


def fitted(centre: FloatArray, factor: FloatArray, reach: Callable[[FloatArray, float], float]) -> Ball | None:
    """Return the ball of a multiple of a factor that is proved to hold a set, or None if floats cannot tell.

    ``reach(inverse, gamma)`` is at least the largest |inverse @ (v - centre)| over the points v of the set, where a sum
    of products may be off by gamma times the sum of their absolute values. With G about the inverse of the factor F and
    D = I - G F of norm below one, |F⁻¹ (v - centre)| <= |G (v - centre)| / (1 - |D|).
    """
    n = len(factor)
    gamma = (2 * n + 16) * UNIT
    for _ in range(_ATTEMPTS):
        try:
            inverse = np.linalg.inv(factor).astype(np.float64)
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(inverse).all():
            return None
        size = np.linalg.norm(np.abs(inverse) @ np.abs(factor))
        defect = float(np.linalg.norm(np.eye(n) - inverse @ factor) + gamma * size)
        if not defect < _MAX_DEFECT:
            return None
        needed = reach(inverse, gamma) / (1 - defect) * UP  # at least |F⁻¹ (v - centre)|, by the defect D = I - G F
        if _LOOSE < needed <= 1:
            return Ball(read_only(centre), read_only(factor))
        factor = factor * (needed * (1 + 1e-9))
    return None


def _root(matrix: FloatArray) -> FloatArray:
    """Return about a square root of a symmetric matrix."""
    values, vectors = np.linalg.eigh(matrix)
    root: FloatArray = vectors * np.sqrt(np.maximum(values, 1e-30 * np.abs(values).max(initial=0)))
    return root


def smallest_ellipsoid(points: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return about the centre and factor of the smallest ellipsoid around points (n, d), or None if they are flat.

    By Khachiyan's method (1996), weights of the points move towards the one that is furthest out.
    """
    n, d = points.shape
    low, high = points.min(axis=0), points.max(axis=0)
    middle, scale = (low + high) / 2, (high - low) / 2
    if not (scale > _FLAT * np.abs(points).max(axis=0)).all():
        return None
    x = (points - middle) / scale
    lifted, weights = np.column_stack([x, np.ones(n)]), np.full(n, 1 / n)
    try:
        for _ in range(_MAX_STEPS):
            inverse = np.linalg.inv((lifted * weights[:, None]).T @ lifted)
            distance = np.einsum("ij,jk,ik->i", lifted, inverse, lifted)
            worst = int(distance.argmax())
            excess = distance[worst] - (d + 1)
            if excess <= _TOLERANCE * (d + 1):
                break
            step = excess / ((d + 1) * (distance[worst] - 1))
            weights *= 1 - step
            weights[worst] += step
        centre = weights @ x
        spread = d * ((x * weights[:, None]).T @ x - np.outer(centre, centre))
        factor = np.linalg.cholesky(spread)
    except np.linalg.LinAlgError:
        return None
    return middle + scale * centre, scale[:, None] * factor


@dataclass(frozen=True)
class LinearRange:
    """Bounds on a linear function, and the share of rounding in them."""

    lower: float
    upper: float
    rounding: float = 0.0
    direction: FloatArray | None = None  # (d): about its gradient in the variables of the region, if that was asked


def linear_range(region: Region, ball: Ball, slope: FloatArray) -> LinearRange:
    """Return bounds on ``slope @ x`` over all x for which ``centre + factor @ x`` is a point of the region.

    For any direction g of the parameters, slope·x = g·(v - centre) + (slope - factorᵀ g)·x, where |x| <= 1.
    """
    length = float(np.sqrt((slope**2).sum())) * UP + SQUARES_UNDERFLOW
    direction = np.linalg.lstsq(ball.factor.T, slope, rcond=None)[0]
    if not np.isfinite(direction).all():
        return LinearRange(-length, length)
    n, d = len(slope), len(region.names)
    gamma = (n + 8) * UNIT
    mismatch = float(np.sqrt(((slope - ball.factor.T @ direction) ** 2).sum())) * UP
    size = float(np.linalg.norm(np.abs(ball.factor.T) @ np.abs(direction))) + length
    offset = float(direction @ ball.centre)
    slack = mismatch + gamma * (size + float(np.abs(direction) @ np.abs(ball.centre))) * UP + SQUARES_UNDERFLOW
    objectives = np.zeros((2, d))
    objectives[0, :n], objectives[1, :n] = direction, -direction
    least, most = region.minimise(objectives) * np.array([1.0, -1.0])
    slack += 4 * UNIT * float(abs(least) + abs(most) + abs(offset))
    lower, upper = max(float(least) - offset - slack, -length), min(float(most) - offset + slack, length)
    return LinearRange(lower, upper, slack, objectives[0])

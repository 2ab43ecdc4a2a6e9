"""Finds multipliers that bound a polynomial on a ball and in half-spaces. The checker decides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumdp.base.rounding import UNDERFLOW
from plumdp.model.graph import FloatArray
from plumdp.verifying.checker.polynomials import Exponents, monomials
from plumdp.verifying.expansion import sizes_on_ball

_ROUNDING = 1e-14  # of coefficients, relative to the largest
_MOST_PAIRS = 50  # of half-spaces, whose corners are looked at; tangents come last
_NEARLY_INSIDE, _NEARLY_PARALLEL = 1.2, 0.999


@dataclass(frozen=True)
class Multipliers:
    """Multipliers of half-spaces, as coefficients of polynomials, one of the ball, and an estimate of their bound."""

    cuts: dict[int, list[float]]
    ball: float
    bound: float


def bound_polynomial(numbers: FloatArray, degree: int, rows: FloatArray, offsets: FloatArray) -> Multipliers:
    """Return multipliers that bound a polynomial from below on the ball and on the half-spaces rows·x <= offsets.

    First all multipliers are numbers. Then those of the half-spaces that matter are polynomials, such that little is
    left of higher degrees: if as many half-spaces meet at the minimum as there are coordinates, nothing need be left.
    """
    k = rows.shape[1]
    given = dict(zip(monomials(k, degree), numbers.tolist(), strict=True))
    best = _constant_multipliers(given, rows, offsets)
    if degree < 2 or not k or not len(offsets):
        return best
    one = _of_one(numbers[1 : k + 1], rows, offsets)[0]
    weights = {i: y[0] * float(np.linalg.norm(rows[i])) for i, y in best.cuts.items()}
    active = sorted(weights, key=lambda i: -weights[i])[:k]
    for used in ([one], active[:1], active):
        for top in sorted({2, 3, 4, degree} & set(range(degree + 1))):
            for kept in (1, 2):
                new = _grown(given, used, top, kept, rows, offsets)
                best = new if new is not None and new.bound > best.bound else best
    return best


def _grown(
    given: dict[Exponents, float], used: list[int], top: int, kept: int, rows: FloatArray, offsets: FloatArray
) -> Multipliers | None:
    """Return multipliers of which some are polynomials, such that little is left above one degree and up to another.

    There are none if these polynomials would not be positive on the ball.
    """
    rest, extra = given, _extra(given, top, kept, [(rows[i], float(offsets[i])) for i in used])
    for i, of_one in zip(used, extra, strict=True):
        rest = _less(rest, of_one, rows[i], float(offsets[i]))
    new, order = _constant_multipliers(rest, rows, offsets), monomials(rows.shape[1], top - 1)
    constant = {i: new.cuts.get(i, [0.0])[0] for i in used}
    pairs = list(zip(used, extra, strict=True))
    if any(constant[i] < _size(of_one) * (1 + 1e-9) for i, of_one in pairs):
        return None
    grown = {i: [constant[i], *(of_one.get(e, 0.0) for e in order[1:])] for i, of_one in pairs}
    return Multipliers(new.cuts | grown, new.ball, new.bound)


def _constant_multipliers(polynomial: dict[Exponents, float], rows: FloatArray, offsets: FloatArray) -> Multipliers:
    k = rows.shape[1]
    linear, square = np.zeros(k), np.zeros((k, k))
    for e, number in polynomial.items():
        places = [i for i, power in enumerate(e) for _ in range(power)]
        if len(places) == 1:
            linear[places[0]] += number
        elif len(places) == 2:
            square[places[0], places[1]] += number / 2
            square[places[1], places[0]] += number / 2
    known = polynomial.get((0,) * k, 0.0) - _size({e: c for e, c in polynomial.items() if sum(e) > 2})
    tried = [np.zeros(len(offsets))]
    if k and len(offsets):
        i, best = _of_one(linear, rows, offsets)
        tried += [_at_minimum(linear, square, rows, offsets), np.where(np.arange(len(offsets)) == i, best, 0.0)]
        tried += _of_two(linear, square, rows, offsets, i)
    found, scale = [], max(map(abs, polynomial.values()), default=0.0)
    for y in tried:
        ball, bound = _of_ball(linear + y @ rows, square, float(y @ offsets), _ROUNDING * scale)
        found.append(Multipliers({i: [y[i].item()] for i in np.flatnonzero(y).tolist()}, ball, known + bound))
    return max(found, key=lambda each: each.bound)


def _extra(
    polynomial: dict[Exponents, float], degree: int, kept: int, cuts: list[tuple[FloatArray, float]]
) -> list[dict[Exponents, float]]:
    """Return the terms from degree one on of multipliers of half-spaces that leave little above a degree."""
    if not cuts:
        return []
    k = len(cuts[0][0])
    unknown = [e for e in monomials(k, degree - 1) if sum(e) >= kept]
    wanted = {e: i for i, e in enumerate(e for e in monomials(k, degree) if sum(e) > kept)}
    matrix = np.zeros((len(wanted), len(unknown) * len(cuts)))
    for c, (row, offset) in enumerate(cuts):
        size = max(float(np.linalg.norm(row)), UNDERFLOW)
        for j, e in enumerate(unknown):
            for target, number in _less({}, {e: 1 / size}, row, offset).items():
                if target in wanted:
                    matrix[wanted[target], c * len(unknown) + j] = -number
    solved = np.linalg.lstsq(matrix, np.array([polynomial[e] for e in wanted]), rcond=1e-13)[0]
    parts = np.split(solved, len(cuts))
    return [
        dict(zip(unknown, (part / max(float(np.linalg.norm(row)), UNDERFLOW)).tolist(), strict=True))
        for part, (row, _) in zip(parts, cuts, strict=True)
    ]


def _less(
    polynomial: dict[Exponents, float], multiplier: dict[Exponents, float], row: FloatArray, offset: float
) -> dict[Exponents, float]:
    """Return p(x) - y(x) (offset - row·x)."""
    result = dict(polynomial)
    for e, y in multiplier.items():
        result[e] = result.get(e, 0.0) - y * offset
        for i, q in enumerate(row.tolist()):
            above = (*e[:i], e[i] + 1, *e[i + 1 :])
            result[above] = result.get(above, 0.0) + y * q
    return result


def _size(polynomial: dict[Exponents, float]) -> float:
    return float(sum(sizes_on_ball({e: np.array([c]) for e, c in polynomial.items()}, 1)))


def _of_one(linear: FloatArray, rows: FloatArray, offsets: FloatArray) -> tuple[int, float]:
    """Return the half-space that alone bounds a linear function best, and its multiplier."""
    squares = np.maximum((rows**2).sum(axis=1), UNDERFLOW)
    y = np.maximum(-rows @ linear / squares, 0.0)
    bounds = -y * offsets - np.linalg.norm(linear + y[:, None] * rows, axis=1)
    i = int(np.argmax(bounds))
    return i, float(y[i])


def _of_two(linear: FloatArray, square: FloatArray, rows: FloatArray, offsets: FloatArray, i: int) -> list[FloatArray]:
    """Return multipliers of a half-space and another one, for each that meets it in the ball, at where they meet."""
    from scipy.optimize import nnls

    lengths = np.maximum(np.linalg.norm(rows, axis=1), UNDERFLOW)
    unit, ends = rows / lengths[:, None], offsets / lengths
    ball = 1.1 * max(0.0, -float(np.linalg.eigvalsh(square).min()))  # multiplier that makes the function convex
    found: list[FloatArray] = []
    for j in [j for j in np.flatnonzero(ends < 1).tolist() if j != i][-_MOST_PAIRS:]:
        corner = np.linalg.lstsq(unit[[i, j]], ends[[i, j]], rcond=None)[0]
        if corner @ corner < _NEARLY_INSIDE and abs(unit[i] @ unit[j]) < _NEARLY_PARALLEL:
            y, _ = nnls(unit[[i, j]].T, -(linear + 2 * (square + ball * np.eye(len(linear))) @ corner))
            found.append(np.zeros(len(offsets)))
            found[-1][[i, j]] = y / lengths[[i, j]]
    return found


def _at_minimum(linear: FloatArray, square: FloatArray, rows: FloatArray, offsets: FloatArray) -> FloatArray:
    from scipy.optimize import minimize, nnls

    size = max(float(np.linalg.norm(linear)), UNDERFLOW)
    lengths = np.maximum(np.linalg.norm(rows, axis=1), UNDERFLOW)
    unit, ends = rows / lengths[:, None], offsets / lengths
    near = ends < 1  # others do not cut the ball
    x = minimize(
        lambda x: (linear @ x + x @ square @ x) / size,
        np.zeros(len(linear)),
        jac=lambda x: (linear + 2 * square @ x) / size,
        constraints=[
            {"type": "ineq", "fun": lambda x: 1 - x @ x, "jac": lambda x: -2 * x},
            {"type": "ineq", "fun": lambda x: (ends - unit @ x)[near], "jac": lambda x: -unit[near]},
        ],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 300},
    ).x
    active = np.flatnonzero(near & (ends - unit @ x < 1e-4))
    columns = np.concatenate([unit[active], x[None]])
    y, _ = nnls(columns.T, -(linear + 2 * square @ x) / size)
    result = np.zeros(len(offsets))
    result[active] = y[:-1] * size / lengths[active]
    return result


def _of_ball(linear: FloatArray, square: FloatArray, spent: float, floor: float) -> tuple[float, float]:
    """Return the multiplier ν of the ball that makes -spent - ν - linear·(square + ν)⁻¹ linear / 4 the largest.

    It is never below ``floor``, so that rounding of the linear terms does no harm.
    """
    from scipy.optimize import minimize_scalar

    eigenvalues, axes = np.linalg.eigh(square) if len(square) else (np.zeros(0), np.zeros((0, 0)))
    parts = (axes.T @ linear) ** 2 / 4
    scale = float(np.linalg.norm(linear)) + float(np.abs(eigenvalues).max(initial=0)) + UNDERFLOW
    least = max(0.0, -float(eigenvalues.min(initial=0))) + floor

    def lost(t: float) -> float:
        nu = least + scale * np.exp(t)
        return float(nu + (parts / (eigenvalues + nu)).sum())

    t = minimize_scalar(lost, bounds=(-35.0, 1.0), method="bounded", options={"xatol": 1e-9}).x
    return least + scale * float(np.exp(t)), -spent - lost(t)

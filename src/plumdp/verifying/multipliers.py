"""Finds multipliers that bound a polynomial on a ball and in half-spaces. The checker decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, factorial, prod, sqrt
from typing import Any

import numpy as np

from plumdp.base.rounding import UNDERFLOW
from plumdp.model.graph import BoolArray, FloatArray
from plumdp.verifying.checker.polynomials import Exponents, monomials
from plumdp.verifying.expansion import sizes_on_ball

_ROUNDING = 1e-14  # of coefficients, relative to the largest
_MOST = 1001  # coefficients of multipliers
_MOST_PAIRS = 50  # of half-spaces, whose corners are looked at; tangents come last
_NEARLY_INSIDE, _NEARLY_PARALLEL = 1.2, 0.999


@dataclass(frozen=True)
class Cuts:
    """The points with rows·x + x·squares x + higher terms <= offsets, in the coordinates of a ball."""

    rows: FloatArray  # (n, k)
    offsets: FloatArray  # (n)
    squares: FloatArray  # (n, k, k): zero for half-spaces
    higher: tuple[dict[Exponents, float], ...]  # (n): terms of degree three and more

    @staticmethod
    def of(lefts: Sequence[Mapping[Exponents, float]], k: int) -> Cuts:
        """Return the cuts where polynomials in k coordinates are at least zero."""
        n = len(lefts)
        rows, offsets, squares = np.zeros((n, k)), np.zeros(n), np.zeros((n, k, k))
        for i, left in enumerate(lefts):
            offsets[i], rows[i], squares[i] = _to_degree_two(left, k)
        higher = tuple({e: -c for e, c in left.items() if sum(e) > 2} for left in lefts)
        return Cuts(-rows, offsets, -squares, higher)

    def scaled(self) -> Cuts:
        """Return the same cuts with rows of length one."""
        lengths = self.lengths
        higher = tuple(
            {e: c / length for e, c in terms.items()} for terms, length in zip(self.higher, lengths, strict=True)
        )
        return Cuts(self.rows / lengths[:, None], self.offsets / lengths, self.squares / lengths[:, None, None], higher)

    @property
    def is_flat(self) -> BoolArray:
        """Which cuts are half-spaces (n)."""
        return ~self.squares.any(axis=(1, 2)) & np.array([not terms for terms in self.higher], dtype=np.bool_)

    @property
    def lengths(self) -> FloatArray:
        """The lengths of rows (n)."""
        return np.asarray(np.maximum(np.linalg.norm(self.rows, axis=1), UNDERFLOW))

    def left(self, x: FloatArray) -> FloatArray:
        """Return offsets less the left sides (n) at a point, without higher terms."""
        return np.asarray(self.offsets - self.rows @ x - np.einsum("nij,i,j->n", self.squares, x, x))

    def slopes(self, x: FloatArray) -> FloatArray:
        """Return the derivatives of left sides (n, k) at a point."""
        return np.asarray(self.rows + 2 * self.squares @ x)

    def only(self, chosen: Any) -> Cuts:
        """Return some of the cuts."""
        higher = tuple(self.higher[i] for i in chosen)
        return Cuts(self.rows[chosen], self.offsets[chosen], self.squares[chosen], higher)


def cuts_ball(left: Mapping[Exponents, float]) -> bool:
    """Return whether a polynomial may be below zero somewhere on the ball, by its norms."""
    return sum(c for e, c in left.items() if not any(e)) < _size(left)


def _to_degree_two(polynomial: Mapping[Exponents, float], k: int) -> tuple[float, FloatArray, FloatArray]:
    """Return the constant, the linear and the square terms of a polynomial."""
    linear, square = np.zeros(k), np.zeros((k, k))
    for e, number in polynomial.items():
        places = [i for i, power in enumerate(e) for _ in range(power)]
        if len(places) == 1:
            linear[places[0]] += number
        elif len(places) == 2:
            square[places[0], places[1]] += number / 2
            square[places[1], places[0]] += number / 2
    return polynomial.get((0,) * k, 0.0), linear, square


@dataclass(frozen=True)
class Multipliers:
    """Multipliers of half-spaces, as coefficients of polynomials, one of the ball, and an estimate of their bound."""

    cuts: dict[int, list[float]]
    ball: float
    bound: float


def bound_polynomial(numbers: FloatArray, degree: int, cuts: Cuts) -> Multipliers:
    """Return multipliers that bound a polynomial from below on the ball and where it is not cut off.

    First all multipliers are numbers. Then those of the half-spaces that matter are polynomials, such that little is
    left of higher degrees: if as many half-spaces meet at the minimum as there are coordinates, nothing need be left.
    """
    k = cuts.rows.shape[1]
    given = dict(zip(monomials(k, degree), numbers.tolist(), strict=True))
    best = _constant_multipliers(given, cuts)
    if degree < 2 or not k or not len(cuts.offsets):
        return best
    one = _of_one(numbers[1 : k + 1], cuts)[0]
    weights = {i: y[0] * float(cuts.lengths[i]) for i, y in best.cuts.items()}
    active = sorted(weights, key=lambda i: -weights[i])[:k]
    for used in ([one], active[:1], active):
        tops = [top for top in sorted({2, 3, 4, degree}) if top <= degree and len(used) * comb(k + top, k) <= _MOST]
        for top in tops:
            for kept in (1, 2):
                new = _grown(given, used, top, kept, cuts)
                best = new if new is not None and new.bound > best.bound else best
    return best


def _grown(given: dict[Exponents, float], used: list[int], top: int, kept: int, cuts: Cuts) -> Multipliers | None:
    """Return multipliers of which some are polynomials, such that little is left above one degree and up to another.

    There are none if these polynomials would not be positive on the ball.
    """
    rest, extra = given, _extra(given, top, kept, cuts.only(used))
    for i, of_one in zip(used, extra, strict=True):
        rest = _less(rest, of_one, cuts, i)
    new, order = _constant_multipliers(rest, cuts), monomials(cuts.rows.shape[1], top - 1)
    constant = {i: new.cuts.get(i, [0.0])[0] for i in used}
    pairs = list(zip(used, extra, strict=True))
    if any(constant[i] < _size(of_one) * (1 + 1e-9) for i, of_one in pairs):
        return None
    grown = {i: [constant[i], *(of_one.get(e, 0.0) for e in order[1:])] for i, of_one in pairs}
    return Multipliers(new.cuts | grown, new.ball, new.bound)


def _constant_multipliers(polynomial: dict[Exponents, float], cuts: Cuts) -> Multipliers:
    k = cuts.rows.shape[1]
    known, linear, square = _to_degree_two(polynomial, k)
    n = len(cuts.offsets)
    tried = [np.zeros(n)]
    if k and n:
        i, best = _of_one(linear, cuts)
        tried += [_at_minimum(linear, square, cuts), np.where(np.arange(n) == i, best, 0.0)]
        tried += _of_two(linear, square, cuts, i)
    found, scale = [], max(map(abs, polynomial.values()), default=0.0)
    for y in tried:
        bent = square + np.tensordot(y, cuts.squares, 1)
        ball, bound = _of_ball(linear + y @ cuts.rows, bent, float(y @ cuts.offsets), _ROUNDING * scale)
        chosen = np.flatnonzero(y).tolist()
        high = {e: c for e, c in polynomial.items() if sum(e) > 2}
        for i in chosen:
            for e, c in cuts.higher[i].items():
                high[e] = high.get(e, 0.0) + y[i].item() * c
        bound += known - _size(high)
        found.append(Multipliers({i: [y[i].item()] for i in chosen}, ball, bound))
    return max(found, key=lambda each: each.bound)


def _extra(polynomial: dict[Exponents, float], degree: int, kept: int, cuts: Cuts) -> list[dict[Exponents, float]]:
    """Return the terms from a degree on of multipliers of cuts that leave little above it, in the norms that count."""
    n, k = cuts.rows.shape
    unknown = [e for e in monomials(k, degree - 1) if sum(e) >= kept]
    wanted = {e: i for i, e in enumerate(e for e in monomials(k, degree) if sum(e) > kept)}
    matrix, unit = np.zeros((len(wanted), len(unknown) * n)), cuts.scaled()
    weights = np.array([sqrt(prod(map(factorial, e)) / factorial(sum(e))) for e in wanted])
    for c in range(n):
        for j, e in enumerate(unknown):
            for target, number in _less({}, {e: 1.0}, unit, c).items():
                if target in wanted:
                    matrix[wanted[target], c * len(unknown) + j] = -number
    right = weights * np.array([polynomial[e] for e in wanted])
    solved = np.linalg.lstsq(weights[:, None] * matrix, right, rcond=1e-13)[0]
    parts = zip(np.split(solved, n), cuts.lengths.tolist(), strict=True) if n else ()
    return [dict(zip(unknown, (part / length).tolist(), strict=True)) for part, length in parts]


def _less(
    polynomial: dict[Exponents, float], multiplier: dict[Exponents, float], cuts: Cuts, which: int
) -> dict[Exponents, float]:
    """Return p(x) - y(x) (offset - row·x - x·square x - higher terms) for one of some cuts."""
    result, row, square = dict(polynomial), cuts.rows[which].tolist(), cuts.squares[which]
    terms = [((), -float(cuts.offsets[which])), *(((i,), q) for i, q in enumerate(row))]
    terms += [((i, j), float(square[i, j])) for i, j in zip(*np.nonzero(square), strict=True)]
    powers = [(tuple(places.count(i) for i in range(len(row))), number) for places, number in terms]
    for a, y in multiplier.items():
        for b, number in (*powers, *cuts.higher[which].items()):
            above = tuple(map(sum, zip(a, b, strict=True)))
            result[above] = result.get(above, 0.0) + y * number
    return result


def _size(polynomial: Mapping[Exponents, float]) -> float:
    return float(sum(sizes_on_ball({e: np.array([c]) for e, c in polynomial.items()}, 1)))


def _of_one(linear: FloatArray, cuts: Cuts) -> tuple[int, float]:
    """Return the cut that alone bounds a linear function best, as if it were a half-space, and its multiplier."""
    y = np.maximum(-cuts.rows @ linear / cuts.lengths**2, 0.0)
    bounds = -y * cuts.offsets - np.linalg.norm(linear + y[:, None] * cuts.rows, axis=1)
    i = int(np.argmax(bounds))
    return i, float(y[i])


def _of_two(linear: FloatArray, square: FloatArray, cuts: Cuts, i: int) -> list[FloatArray]:
    """Return multipliers of a half-space and another one, for each that meets it in the ball, at where they meet."""
    from scipy.optimize import nnls

    unit, ends, lengths = cuts.scaled().rows, cuts.scaled().offsets, cuts.lengths
    ball = 1.1 * max(0.0, -float(np.linalg.eigvalsh(square).min()))  # multiplier that makes the function convex
    found: list[FloatArray] = []
    for j in [j for j in np.flatnonzero((ends < 1) & cuts.is_flat).tolist() if j != i][-_MOST_PAIRS:]:
        corner = np.linalg.lstsq(unit[[i, j]], ends[[i, j]], rcond=None)[0]
        if corner @ corner < _NEARLY_INSIDE and abs(unit[i] @ unit[j]) < _NEARLY_PARALLEL:
            y, _ = nnls(unit[[i, j]].T, -(linear + 2 * (square + ball * np.eye(len(linear))) @ corner))
            found.append(np.zeros(len(ends)))
            found[-1][[i, j]] = y / lengths[[i, j]]
    return found


def _at_minimum(linear: FloatArray, square: FloatArray, cuts: Cuts) -> FloatArray:
    from scipy.optimize import minimize, nnls

    size = max(float(np.linalg.norm(linear)), UNDERFLOW)
    unit = cuts.scaled()
    x = minimize(
        lambda x: (linear @ x + x @ square @ x) / size,
        np.zeros(len(linear)),
        jac=lambda x: (linear + 2 * square @ x) / size,
        constraints=[
            {"type": "ineq", "fun": lambda x: 1 - x @ x, "jac": lambda x: -2 * x},
            {"type": "ineq", "fun": unit.left, "jac": lambda x: -unit.slopes(x)},
        ],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 300},
    ).x
    active = np.flatnonzero(unit.left(x) < 1e-4)
    columns = np.concatenate([unit.slopes(x)[active], x[None]])
    y, _ = nnls(columns.T, -(linear + 2 * square @ x) / size)
    result = np.zeros(len(cuts.offsets))
    result[active] = y[:-1] * size / cuts.lengths[active]
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

"""Finds multipliers that bound a polynomial on a ball and in half-spaces. The checker decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb, inf

import numpy as np

from plumdp.base.rounding import UNDERFLOW
from plumdp.model.graph import FloatArray
from plumdp.verifying.cuts import Cuts, norm_of, size_of, to_degree_two, without
from plumdp.verifying.linear_programs import solve_program
from plumdp_verify.polynomials import Exponents, monomials

_ROUNDING = 1e-14  # of coefficients, relative to the largest
_CHEAP = 1e3  # a constant of a multiplier, among the coefficients that are kept small
_ROUNDS = 3  # of multipliers of curved cuts
_MOST = 1001  # coefficients of multipliers
_MOST_PAIRS = 50  # of half-spaces, whose corners are looked at; tangents come last
_NEARLY_INSIDE, _NEARLY_PARALLEL = 1.2, 0.999


@dataclass(frozen=True)
class Multipliers:
    """Multipliers of half-spaces, as coefficients of polynomials, one of the ball, and an estimate of their bound."""

    cuts: dict[int, list[float]]
    ball: float
    bound: float
    lost: float = inf  # of the value at a point of the set, if that is known
    products: dict[tuple[int, ...], list[float]] = field(default_factory=dict)  # multipliers of products of two


def bound_polynomial(numbers: FloatArray, degree: int, cuts: Cuts, *, enough: float = inf) -> Multipliers:
    """Return multipliers that bound a polynomial from below on the ball and where it is not cut off.

    They are the best that are found, or the first with a bound that is enough.

    First all multipliers are numbers. Then those of the half-spaces that matter are polynomials, such that little is
    left of higher degrees: if as many half-spaces meet at the minimum as there are coordinates, nothing need be left.
    """
    k = cuts.rows.shape[1]
    given = dict(zip(monomials(k, degree), numbers.tolist(), strict=True))
    best = _constant_multipliers(given, cuts)
    if degree < 2 or not k or not len(cuts.offsets) or best.bound >= enough:
        return best
    one = _of_one(numbers[1 : k + 1], cuts)[0]
    constant = {i: y[0] for i, y in best.cuts.items()}
    active = sorted(constant, key=lambda i: -constant[i] * float(cuts.lengths[i]))[:k]
    point, _, corner = _at_minimum(
        *to_degree_two(given, k)[1:], cuts
    )  # where cuts meet, perhaps on the surface of the ball
    meeting = np.argsort(-corner * cuts.lengths)[: min(k, int((corner > 0).sum()))].tolist()
    for place, chosen in enumerate((meeting, *dict.fromkeys(((one,), tuple(active[:1]), tuple(active))))):
        used, is_corner = list(chosen), place == 0
        tops = [top for top in sorted({2, 3, 4, degree}) if top <= degree and len(used) * comb(k + top, k) <= _MOST]
        for top in tops:
            new = _at_corner(given, used, top, cuts)
            best = new if new is not None and new.bound > best.bound else best
            if best.bound >= enough or (best.lost <= _ROUNDING * max(map(abs, given.values())) and is_corner):
                return best
            for kept in () if is_corner else (1, 2):
                new = _grown(given, {i: constant.get(i, 0.0) for i in used}, top, kept, cuts)
                best = new if new is not None and new.bound > best.bound else best
                if best.bound >= enough:
                    return best
    new = _by_program(given, point, degree, cuts)
    return new if new.bound > best.bound else best


def _by_program(given: dict[Exponents, float], point: FloatArray, degree: int, cuts: Cuts) -> Multipliers:
    """Return polynomials as multipliers of all cuts near a point, and of products of two."""
    found, rest = solve_program(given, point, degree, cuts)
    ball, bound, _ = _left_of(rest, cuts.rows.shape[1])
    single = {i: y for (i, *others), y in found.items() if not others}
    return Multipliers(single, ball, bound, products={pair: y for pair, y in found.items() if len(pair) > 1})


def _left_of(rest: dict[Exponents, float], k: int) -> tuple[float, float, float]:
    """Return a multiplier of the ball, the bound of a polynomial that it proves, and how far its constant is above."""
    known, linear, square = to_degree_two(rest, k)
    ball, bound = _of_ball(linear, square, 0.0, _ROUNDING * max(map(abs, rest.values())))
    lost = size_of({e: c for e, c in rest.items() if sum(e) > 2}) - bound
    return ball, known - lost, lost - ball


def _at_corner(given: dict[Exponents, float], used: list[int], top: int, cuts: Cuts) -> Multipliers | None:
    """Return polynomials as multipliers that leave little but a constant, the value where enough cuts meet."""
    order, rest = monomials(cuts.rows.shape[1], top - 1), given
    extra = dict(zip(used, _extra(given, top, 0, cuts.only(used)), strict=True))
    for i, of_one in extra.items():
        rest = without(rest, of_one, cuts, i)
    if any(of_one[order[0]] < size_of(of_one) * (1 + 1e-9) for of_one in extra.values()):
        return None
    ball, bound, lost = _left_of(rest, cuts.rows.shape[1])
    return Multipliers({i: [of_one[e] for e in order] for i, of_one in extra.items()}, ball, bound, lost)


def _grown(
    given: dict[Exponents, float], start: dict[int, float], top: int, kept: int, cuts: Cuts
) -> Multipliers | None:
    """Return multipliers of which some are polynomials, such that little is left above one degree and up to another.

    What a curved cut leaves of higher degrees depends on its constant multiplier, so that both are found in rounds.
    There are none if these polynomials would not be positive on the ball.
    """
    k, constant, used = cuts.rows.shape[1], start, list(start)
    order = monomials(k, top - 1)
    for _ in range(1 if cuts.is_flat[used].all() else _ROUNDS):
        left = rest = given
        for i in used:
            left = without(left, {order[0]: constant[i]}, cuts, i)
        extra = dict(zip(used, _extra(left, top, kept, cuts.only(used)), strict=True))
        for i, of_one in extra.items():
            rest = without(rest, of_one, cuts, i)
        new = _constant_multipliers(rest, cuts)
        constant = {i: new.cuts.get(i, [0.0])[0] for i in used}
    if any(constant[i] < size_of(of_one) * (1 + 1e-9) for i, of_one in extra.items()):
        return None
    grown = {i: [constant[i], *(of_one.get(e, 0.0) for e in order[1:])] for i, of_one in extra.items()}
    return Multipliers(new.cuts | grown, new.ball, new.bound)


def _constant_multipliers(polynomial: dict[Exponents, float], cuts: Cuts) -> Multipliers:
    k = cuts.rows.shape[1]
    known, linear, square = to_degree_two(polynomial, k)
    n = len(cuts.offsets)
    tried = [np.zeros(n)]
    if k and n:
        i, best = _of_one(linear, cuts)
        tried += [*_at_minimum(linear, square, cuts)[1:], np.where(np.arange(n) == i, best, 0.0)]
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
        bound += known - size_of(high)
        found.append(Multipliers({i: [y[i].item()] for i in chosen}, ball, bound))
    return max(found, key=lambda each: each.bound)


def _extra(polynomial: dict[Exponents, float], degree: int, kept: int, cuts: Cuts) -> list[dict[Exponents, float]]:
    """Return the terms from a degree on of multipliers of cuts that leave little above it, in the norms that count."""
    n, k = cuts.rows.shape
    unknown = [e for e in monomials(k, degree - 1) if sum(e) >= kept]
    wanted = {e: i for i, e in enumerate(e for e in monomials(k, degree - 1 + cuts.degree) if sum(e) > kept)}
    matrix, unit = np.zeros((len(wanted), len(unknown) * n)), cuts.scaled()
    weights = np.array([norm_of(e) for e in wanted])
    cheap = np.tile([_CHEAP if not any(e) else 1 / norm_of(e) for e in unknown], n)  # constants make others positive
    for c in range(n):
        for j, e in enumerate(unknown):
            for target, number in without({}, {e: 1.0}, unit, c).items():
                if target in wanted:
                    matrix[wanted[target], c * len(unknown) + j] = -number
    right = weights * np.array([polynomial.get(e, 0.0) for e in wanted])
    solved = cheap * np.linalg.lstsq(weights[:, None] * matrix * cheap, right, rcond=1e-13)[0]
    parts = zip(np.split(solved, n), cuts.lengths.tolist(), strict=True) if n else ()
    return [dict(zip(unknown, (part / length).tolist(), strict=True)) for part, length in parts]


def _of_one(linear: FloatArray, cuts: Cuts) -> tuple[int, float]:
    """Return the cut that alone bounds a linear function best, as if it were a half-space, and its multiplier."""
    y = np.maximum(-cuts.rows @ linear / cuts.lengths / cuts.lengths, 0.0)  # a cut may have the length zero
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


def _at_minimum(linear: FloatArray, square: FloatArray, cuts: Cuts) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return where a function is least, and multipliers of the cuts that meet there, with the ball and without it."""
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
    slopes, wanted = unit.slopes(x)[active], -(linear + 2 * square @ x) / size
    result = np.zeros((2, len(cuts.offsets)))
    for y, columns in zip(result, (np.concatenate([slopes, x[None]]), slopes), strict=True):
        if len(columns):
            y[active] = nnls(columns.T, wanted)[0][: len(active)] * size / cuts.lengths[active]
    return x, result[0], result[1]


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

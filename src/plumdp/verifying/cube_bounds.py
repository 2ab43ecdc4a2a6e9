"""Finds multipliers that bound a polynomial on a cube, and in half-spaces and parabolas. The checker decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import factorial, inf, prod, sqrt
from typing import Any, TypeAlias

import numpy as np

from plumdp.base.rounding import UNDERFLOW
from plumdp.model.graph import BoolArray, FloatArray
from plumdp_verify.polynomials import Exponents, monomials

Terms: TypeAlias = dict[Exponents, float]
"""A polynomial, by its monomials."""


@dataclass(frozen=True)
class Cuts:
    """The points with rows·x + x·squares x + higher terms <= offsets, in the coordinates of a cube."""

    rows: FloatArray  # (n, k)
    offsets: FloatArray  # (n)
    squares: FloatArray  # (n, k, k): zero for half-spaces
    higher: tuple[dict[Exponents, float], ...]  # (n): terms of degree three and more

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
    def sizes(self) -> FloatArray:
        """How far left sides may be from zero in the cube, at most (n): what has a larger offset cuts nothing off."""
        of_higher = [sum(map(abs, terms.values())) for terms in self.higher]
        return np.asarray(np.abs(self.rows).sum(axis=1) + np.abs(self.squares).sum(axis=(1, 2)) + of_higher)

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

    def terms(self, i: int) -> Terms:
        """Return the polynomial of a cut, which is at least zero."""
        k, square = self.rows.shape[1], self.squares[i]
        found = dict(zip(monomials(k, 1), [float(self.offsets[i]), *(-self.rows[i]).tolist()], strict=True))
        for m, n in zip(*np.nonzero(square), strict=True):
            e = tuple(int(m == j) + int(n == j) for j in range(k))
            found[e] = found.get(e, 0.0) - float(square[m, n])
        return found | {e: -c for e, c in self.higher[i].items()}

    def only(self, chosen: Any) -> Cuts:
        """Return some of the cuts."""
        higher = tuple(self.higher[i] for i in chosen)
        return Cuts(self.rows[chosen], self.offsets[chosen], self.squares[chosen], higher)


def to_degree_two(polynomial: Mapping[Exponents, float], k: int) -> tuple[float, FloatArray, FloatArray]:
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


def composed(polynomial: Mapping[Exponents, float], forms: Sequence[Terms], k: int) -> Terms:
    """Return a polynomial with affine functions of k variables in place of its own."""
    known: dict[Exponents, Terms] = {(0,) * len(forms): {(0,) * k: 1.0}}

    def power(e: Exponents) -> Terms:
        if e not in known:
            i = next(i for i, n in enumerate(e) if n)
            known[e] = _times(power((*e[:i], e[i] - 1, *e[i + 1 :])), forms[i])
        return known[e]

    total: Terms = {}
    for e, c in polynomial.items():
        for b, number in power(e).items():
            total[b] = total.get(b, 0.0) + c * number
    return total


def _times(left: Terms, right: Terms) -> Terms:
    result: Terms = {}
    for a, x in left.items():
        for b, y in right.items():
            e = tuple(map(sum, zip(a, b, strict=True)))
            result[e] = result.get(e, 0.0) + x * y
    return result


def without(polynomial: Terms, multipliers: Mapping[int, Terms], cuts: Cuts) -> Terms:
    """Return a polynomial less the products of multipliers with cuts, which are at least zero."""
    result = dict(polynomial)
    for i, y in multipliers.items():
        for e, c in _times(y, cuts.terms(i)).items():
            result[e] = result.get(e, 0.0) - c
    return result


def sizes_of(polynomials: dict[Exponents, FloatArray], n: int, radius: float | None) -> FloatArray:
    """Return bounds on how far the polynomials of states differ from constants (see ``size_of`` of the checker)."""
    sizes: dict[int, FloatArray] = {}
    norms: dict[int, FloatArray] = {}
    for e, values in polynomials.items():
        if degree := sum(e):
            sizes[degree] = sizes.get(degree, 0.0) + np.abs(values)
            weighted = sqrt(prod(map(factorial, e)) / factorial(degree)) * values
            norms[degree] = np.hypot(norms.get(degree, 0.0), weighted)
    if radius is not None:
        sizes = {m: np.minimum(size, norms[m] * radius**m) for m, size in sizes.items()}
    return np.asarray(sum(sizes.values(), start=np.zeros(n)))


_ROUNDING = 1e-14  # of coefficients, relative to the largest
_ACTIVE = 1e-4  # distance of a side on which a minimum is
_SPARE = 1e-12  # of the constants of multipliers
_FACTORS = (1.0, 1.1, 1.3, 1.6, 2.0, 3.0)  # of the least multiplier that leaves a ball
_STEPS = 2.0 ** np.arange(-30, 3)
_MOST_STEPS, _SHORTEST, _EMPTY = 150, 1e-6, 100.0  # of Newton's method
_CLOSE, _UNUSED = 1e-12, 1e-9  # relative to the polynomial: the last barrier, and multipliers that are left out


@dataclass(frozen=True)
class Bound:
    """Multipliers of cuts, those of the sides of the cube, and an estimate of the lower bound that they prove."""

    cuts: dict[int, Terms]
    sides: FloatArray  # (k)
    bound: float
    point: FloatArray  # (k): about where the polynomial is least
    score: FloatArray  # (k): how much is lost along each axis


def bound_on_cube(given: Terms, cuts: Cuts, radius: float | None = None, *, enough: float = -inf) -> Bound:
    """Return multipliers that bound a polynomial from below on the cube, where nothing cuts it off.

    They are numbers, or else polynomials for half-spaces that meet where it is least, unless the bound is enough.
    """
    k = cuts.rows.shape[1]
    found = _with(given, {}, np.zeros(k), cuts, np.zeros(k), radius)
    if found.bound >= enough or not len(cuts.offsets):
        return found
    better = _with(given, *_best_numbers(given, cuts, found.sides), cuts, found.point, radius)
    point = found.point
    if better.bound < enough:
        y, beta, point = _at_minimum(given, cuts)
        constant = {i: {(0,) * k: y[i].item()} for i in np.flatnonzero(y).tolist()}
        curved = {i: y[(0,) * k] for i, y in constant.items() if not cuts.is_flat[i]}
        if len(curved) < len(constant) or (curved and _is_flat(curved, cuts)):
            corner = _with(given, _at_corner(given, constant, cuts), beta, cuts, point, radius)
            better = max(better, corner, key=lambda each: each.bound)
    better = max(found, better, key=lambda each: each.bound)
    return replace(better, point=point, score=found.score)


def _best_numbers(given: Terms, cuts: Cuts, sides: FloatArray) -> tuple[dict[int, Terms], FloatArray]:
    """Return the numbers as multipliers of cuts, and of sides of the cube, that prove most of a polynomial.

    With z for all of them, the bound is the least value of a parabola, the polynomial less Σ z g. It is concave in z,
    so that Newton's method finds the best ones, with a barrier where z, or the parabola's curvature, would be negative.
    Terms above degree two are left out.
    """
    (n, k), sizes = cuts.rows.shape, np.maximum(cuts.sizes, UNDERFLOW)
    _, linear, square = to_degree_two(given, k)
    size = float(np.linalg.norm(linear) + np.abs(square).sum())
    if not 0 < size < inf:
        return {}, np.zeros(k)
    linear, square = linear / size, square / size
    rows = np.vstack([cuts.rows / sizes[:, None], np.zeros((k, k))])
    offsets = np.append(cuts.offsets / sizes, np.ones(k))
    squares = np.concatenate([cuts.squares / sizes[:, None, None], np.eye(k)[:, :, None] * np.eye(k)[:, None, :]])
    z, barrier = np.append(np.full(n, 0.01), sides / size + 0.01), 0.1

    def parabola(z: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return its least value with the barrier, where that is, and the inverse of the root of its curvature."""
        slope = linear + z @ rows
        try:
            root = np.linalg.inv(np.linalg.cholesky(square + np.tensordot(z, squares, 1)))
        except np.linalg.LinAlgError:
            return -inf, slope, squares[0]
        x = -root.T @ (root @ slope) / 2
        logs = np.log(z).sum() - 2 * np.log(np.diag(root)).sum()
        return float(slope @ x / 2 - z @ offsets + barrier * logs), x, root

    value, x, root = parabola(z)
    for _ in range(_MOST_STEPS):
        if not -inf < value < _EMPTY:  # no bound is above the largest value of the polynomial, unless nothing is left
            break
        slopes, bends = (rows + 2 * squares @ x) @ root.T * z[:, None], (root @ squares @ root.T) * z[:, None, None]
        ahead = z * (rows @ x + np.einsum("nij,i,j->n", squares, x, x) - offsets)
        ahead += barrier * (1 + np.einsum("nii->n", bends))
        flat = bends.reshape(n + k, -1)
        bent = slopes @ slopes.T / 2 + barrier * (flat @ flat.T + np.eye(n + k))
        try:
            relative = np.linalg.solve(bent, ahead)
        except np.linalg.LinAlgError:  # the parabola is flat, but for rounding
            break
        length = min(1.0, 0.9 / max(-float(relative.min()), UNDERFLOW))
        while length > _SHORTEST and (tried := parabola(z * (1 + length * relative)))[0] < value:
            length /= 2
        if length > _SHORTEST:
            z, (value, x, root) = z * (1 + length * relative), tried
        if ahead @ relative <= barrier or length <= _SHORTEST:
            if barrier < _CLOSE:
                break
            barrier /= 10
            value, x, root = parabola(z)
    used = np.flatnonzero(z[:n] > _UNUSED).tolist()
    return {i: {(0,) * k: size * z[i].item() / sizes[i].item()} for i in used}, 2 * size * z[n:]


def _at_corner(given: Terms, constant: dict[int, Terms], cuts: Cuts) -> dict[int, Terms]:
    """Return polynomials as multipliers of half-spaces, such that all is left that vanishes where these meet.

    With g for these half-spaces and t for coordinates along where they meet, p is a polynomial in g and t, whose terms
    with some g are g times another one. That is the multiplier, which must be positive. Curved cuts whose sum is a
    half-space, such as pq <= a and p - pq <= b, count as one.
    """
    k, zero = cuts.rows.shape[1], (0,) * cuts.rows.shape[1]
    curved = {i: y[zero] for i, y in constant.items() if not cuts.is_flat[i]}
    walls = [{i: y[zero]} for i, y in constant.items() if i not in curved]
    if curved and _is_flat(curved, cuts):
        walls, curved = [*walls, curved], {}
    rows, offsets = (
        np.array([sum(y * of[i] for i, y in wall.items()) for wall in walls]) for of in (cuts.rows, cuts.offsets)
    )
    lengths = np.linalg.norm(rows, axis=1)
    active: list[int] = []
    for i in np.argsort(-lengths, kind="stable").tolist():
        if np.linalg.matrix_rank(rows[[*active, i]] / lengths[[*active, i], None], tol=1e-6) > len(active):
            active.append(i)
    found = {i: constant[i] for i in curved}
    normals, ends = rows[active] / lengths[active, None], offsets[active] / lengths[active]
    along = np.linalg.svd(normals)[2][len(active) :]
    back = np.linalg.inv(np.vstack([normals, along]))
    signs = np.where(np.arange(k) < len(active), -1.0, 1.0)
    order = monomials(k, 1)
    turned = composed(without(given, found, cuts), _affine(back[:, : len(active)] @ ends, back * signs, order), k)
    parts: list[Terms] = [{} for _ in active]
    for e, c in turned.items():
        for i in [i for i in range(len(active)) if e[i]][:1]:
            parts[i][(*e[:i], e[i] - 1, *e[i + 1 :])] = c
    to = _affine(np.append(ends, np.zeros(k - len(active))), signs[:, None] * np.vstack([normals, along]), order)
    for i, part in zip(active, parts, strict=True):
        y = {e: c / float(lengths[i]) for e, c in composed(part, to, k).items()}
        size = sum(abs(c) for e, c in y.items() if any(e)) * (1 + _SPARE)
        y |= {zero: max(y.get(zero, 0.0), size)}
        found |= {cut: {e: weight * c for e, c in y.items()} for cut, weight in walls[i].items()}
    return found


def _is_flat(weights: dict[int, float], cuts: Cuts) -> bool:
    """Return whether a weighted sum of cuts is a half-space, but for rounding."""
    sizes = sum(y * np.abs(cuts.squares[i]).max() for i, y in weights.items())
    total = sum(y * cuts.squares[i] for i, y in weights.items())
    return not any(cuts.higher[i] for i in weights) and float(np.abs(total).max()) <= 1e-9 * sizes


def _affine(constants: FloatArray, slopes: FloatArray, order: list[Exponents]) -> list[Terms]:
    rows = np.column_stack([constants, slopes]).tolist()
    return [{e: c for e, c in zip(order, row, strict=True) if c} for row in rows]


def _with(
    given: Terms, y: dict[int, Terms], beta: FloatArray, cuts: Cuts, point: FloatArray, radius: float | None = None
) -> Bound:
    """Return the bound by multipliers of cuts and, about, of the sides of the cube."""
    k, rest = cuts.rows.shape[1], without(given, y, cuts)
    known, linear, square = to_degree_two(rest, k)
    high = {e: c for e, c in rest.items() if sum(e) > 2}
    known -= sizes_of({e: np.array([c]) for e, c in high.items()}, 1, radius).item()
    scale = _ROUNDING * max(map(abs, given.values()), default=0.0)
    apart = np.abs(square).sum(axis=1) - np.abs(np.diag(square))
    tried = [np.maximum(np.maximum(np.abs(linear) / 2, scale) - np.diag(square) + apart, 0.0)]
    if np.isfinite(square).all() and np.isfinite(beta).all():
        least = max(0.0, -float(np.linalg.eigvalsh(square + np.diag(beta / 2)).min(initial=0.0)))
        size = float(np.abs(linear).sum() + np.abs(square).sum())
        tried += [beta / 2 + least + scale + more for more in (0.0, *(size * _STEPS / 4))]
    lost = _lost(linear, square, np.array(tried))
    best = int(np.argmin(lost))
    score = np.abs(square).sum(axis=1) + sum((np.array(e) * abs(c) for e, c in high.items()), np.zeros(k))
    return Bound(y, tried[best], known - lost[best].item(), point, np.asarray(score))


def _lost(linear: FloatArray, square: FloatArray, sides: FloatArray) -> FloatArray:
    """Return Σ ν + linear·(square + ν)⁻¹ linear / 4 for some ν (n, k), infinite if that is not positive definite."""
    if not (linear.any() or square.any()):
        return np.zeros(len(sides))
    values, axes = np.linalg.eigh(square + sides[:, :, None] * np.eye(len(linear)))
    part = np.einsum("nij,i->nj", axes, linear) ** 2 / np.where(values > 0, values, 1.0)
    is_positive = (values > _ROUNDING * np.abs(values).max(axis=1, keepdims=True)).all(axis=1)
    return np.where(is_positive, sides.sum(axis=1) + part.sum(axis=1) / 4, inf)


def _at_minimum(given: Terms, cuts: Cuts) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return multipliers of cuts and of sides of the cube where a function is least, and that point."""
    from scipy.optimize import minimize, nnls

    k, unit = cuts.rows.shape[1], cuts.scaled()
    _, linear, square = to_degree_two(given, k)
    size = max(float(np.linalg.norm(linear)), UNDERFLOW)
    x = minimize(
        lambda x: (linear @ x + x @ square @ x) / size,
        np.zeros(k),
        jac=lambda x: (linear + 2 * square @ x) / size,
        bounds=[(-1.0, 1.0)] * k,
        constraints=[{"type": "ineq", "fun": unit.left, "jac": lambda x: -unit.slopes(x)}],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 200},
    ).x
    x = np.clip(np.nan_to_num(x), -1.0, 1.0)
    active, wall = np.flatnonzero(unit.left(x) < _ACTIVE), np.flatnonzero(np.abs(x) > 1 - _ACTIVE)
    columns = np.vstack([unit.slopes(x)[active], (np.eye(k) * np.sign(x))[wall]])
    y, beta = np.zeros(len(cuts.offsets)), np.zeros(k)
    if len(columns):
        found = nnls(columns.T, -(linear + 2 * square @ x) / size)[0] * size
        y[active], beta[wall] = found[: len(active)] / cuts.lengths[active], found[len(active) :]
    return y, beta, x


def prove_empty(cuts: Cuts) -> Bound | None:
    """Return multipliers that prove that nothing is left of the cube, if its half-spaces do."""
    from scipy.optimize import linprog

    flat = np.flatnonzero(cuts.is_flat)
    unit, k = cuts.scaled().only(flat), cuts.rows.shape[1]
    if not len(flat):
        return None
    solved = linprog(
        np.append(np.zeros(k), 1.0),
        A_ub=np.hstack([unit.rows, -np.ones((len(flat), 1))]),
        b_ub=unit.offsets,
        bounds=[(-1.0, 1.0)] * k + [(None, None)],
    )
    if solved.x is None or solved.fun <= 1e-9:
        return None
    y = np.maximum(-solved.ineqlin.marginals, 0.0) * 2 / solved.fun / cuts.lengths[flat]
    used = {i: {(0,) * k: c} for i, c in zip(flat.tolist(), y.tolist(), strict=True) if c}
    return _with({(0,) * k: -1.0}, used, np.zeros(k), cuts, np.zeros(k))


def find_radius(cuts: Cuts) -> Bound:
    """Return multipliers of one curved cut that bound minus the square of the distance from the centre of the cube."""
    k = cuts.rows.shape[1]
    given = {tuple(2 * int(i == j) for j in range(k)): -1.0 for i in range(k)}
    found = [_with(given, {}, np.zeros(k), cuts, np.zeros(k))]
    for i in np.flatnonzero(~cuts.is_flat).tolist():
        least = float(np.linalg.eigvalsh(cuts.squares[i]).min())
        weights = [factor / least for factor in _FACTORS] if least > 0 else []
        found += [_with(given, {i: {(0,) * k: y}}, np.zeros(k), cuts, np.zeros(k)) for y in weights]
    return max(found, key=lambda each: each.bound)

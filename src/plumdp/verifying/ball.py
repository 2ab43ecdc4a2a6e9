"""Finds a ball around the set of parameters, and multipliers that bound functions on it. The checker decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from flint import fmpz_mat

from plumdp.base.rounding import UNDERFLOW
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.model.graph import FloatArray

_SPARE = 1e-6  # of the radius, relative
_ROUNDS = 500
_MOST_AT_ONCE = 6  # parameters, all of which may be coordinates
_ENOUGH = 1e-9  # relative change of axes, at which a ball is found

Coordinates: TypeAlias = tuple[FloatArray, list[list[int]]]
"""A basis (d, k) of the directions that a ball has, and whole vectors that span the others."""

Pair: TypeAlias = tuple[int, int, float]
"""Two half-spaces, and the weight of their product."""


@dataclass(frozen=True)
class Ball:
    """The ball of the points centre + axes x with |x| <= 1, and the weights that prove that it holds a set."""

    centre: FloatArray  # (d)
    axes: FloatArray  # (d, k)
    sphere: float
    products: list[Pair]
    weight: float  # of the likelihood
    index: int = -1  # of that

    @property
    def log_volume(self) -> float:
        """The logarithm of the volume, up to a constant."""
        return float(np.linalg.slogdet(self.axes.T @ self.axes)[1]) / 2


@dataclass(frozen=True)
class LikelihoodForm:
    """A likelihood whose logarithm is at least a threshold, as a source of quadratic functions about any centre."""

    table: LikelihoodTable
    seen: FloatArray
    threshold: float
    start: FloatArray  # (d): about where it is largest

    def value(self, point: FloatArray) -> float:
        """Return how far the logarithm of the likelihood is above the threshold."""
        is_seen = self.seen > 0
        f = self.table.values(point)[0][is_seen]
        return float(self.seen[is_seen] @ np.log(f)) - self.threshold if (f > 0).all() else -np.inf

    def at(self, centre: FloatArray, axes: FloatArray | None) -> tuple[float, FloatArray, FloatArray] | None:
        """Return s, r and Q of the function s + 2 r·h - h·Q h of h = v - centre, which holds on the ball with axes."""
        is_seen = self.seen > 0
        f, n = self.table.values(centre)[0][is_seen], self.seen[is_seen]
        if not (f > 0).all():
            return None
        slopes = self.table.coefficients[is_seen] / f[:, None]
        t = np.zeros(len(n)) if axes is None else np.linalg.norm(slopes @ axes, axis=1)
        curvature = np.where(t > 1e-6, 2 * (t - np.log1p(t)) / np.maximum(t, 1e-9) ** 2, 1 - 2 * t / 3)
        excess = float(n @ np.log(f)) - self.threshold
        return 2 * excess, n @ slopes, slopes.T @ ((n * curvature)[:, None] * slopes)


def find_ball(
    rows: FloatArray, offsets: FloatArray, pairs: Sequence[Pair], likelihood: LikelihoodForm | None,
    start: FloatArray, basis: FloatArray, *, share: float,
) -> Ball | None:  # fmt: skip
    """Return a ball {N >= 0} about the set, for the sum N of products of half-spaces and of a likelihood; or None.

    ``share`` is that of the likelihood. What that leaves depends on centre and axes, so that both are found in rounds.
    """
    centre, axes, scale = start, None, 1.0
    products = [(i, j, weight * (1 - share)) for i, j, weight in pairs if weight * (1 - share) > 0]
    for _ in range(_ROUNDS):
        s, r, q = 0.0, np.zeros(len(start)), np.zeros((len(start), len(start)))
        for i, j, weight in products:
            left, right = offsets[i] - rows[i] @ centre, offsets[j] - rows[j] @ centre
            s, r = s + weight * left * right, r - weight * (left * rows[j] + right * rows[i]) / 2
            q -= weight * (np.outer(rows[i], rows[j]) + np.outer(rows[j], rows[i])) / 2
        if likelihood is not None and share:
            form = likelihood.at(centre, axes)
            if form is None or form[0] <= 0:
                return None
            scale = share / form[0]
            s, r, q = s + scale * form[0], r + scale * form[1], q + scale * form[2]
        try:
            root = np.linalg.inv(np.linalg.cholesky(basis.T @ q @ basis)).T
        except np.linalg.LinAlgError:
            return None
        step = root @ (root.T @ (basis.T @ r))
        square = s + float(r @ basis @ step)
        if not 0 < square < np.inf:
            return None
        new = basis @ root * np.sqrt(square) * (1 + _SPARE)
        if axes is not None and np.abs(new - axes).max() <= _ENOUGH * np.abs(new).max() and np.linalg.norm(
            np.linalg.lstsq(new, basis @ step, rcond=None)[0]
        ) <= _ENOUGH:  # fmt: skip
            used = sorted({i for pair in products for i in pair[:2]})
            if (offsets[used] < rows[used] @ centre).any():  # a product is known not to be negative between its sides
                return None
            return Ball(centre, new, square * (1 + _SPARE), products, scale if share else 0.0)
        centre, axes = centre + basis @ step, new
    return None


def find_optimum(
    numbers: FloatArray, rows: FloatArray, offsets: FloatArray, forms: Sequence[LikelihoodForm],
    centre: FloatArray, axes: FloatArray,
) -> FloatArray:  # fmt: skip
    """Return about where a polynomial of degree two is least, in half-spaces, the ball and all likelihood sets."""
    from scipy.optimize import minimize

    k = axes.shape[1]
    linear, square = numbers[1 : k + 1], np.zeros((k, k))
    square[np.triu_indices(k)] = numbers[k + 1 :]
    square = (square + square.T) / 2
    size = max(float(np.linalg.norm(linear)), UNDERFLOW)
    lengths = np.maximum(np.linalg.norm(rows, axis=1), UNDERFLOW)
    near = offsets < lengths
    unit, ends = (rows / lengths[:, None])[near], (offsets / lengths)[near]
    constraints = [
        {"type": "ineq", "fun": lambda x: 1 - x @ x, "jac": lambda x: -2 * x},
        {"type": "ineq", "fun": lambda x: ends - unit @ x, "jac": lambda x: -unit},
    ]
    constraints += [
        {"type": "ineq", "fun": lambda x, form=form: max(form.value(centre + axes @ x), -1e6)} for form in forms
    ]
    found = minimize(
        lambda x: (linear @ x + x @ square @ x) / size,
        np.zeros(k),
        jac=lambda x: (linear + 2 * square @ x) / size,
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 200},
    )
    return np.asarray(centre + axes @ found.x)


def opposite_pairs(rows: FloatArray, offsets: FloatArray, centre: FloatArray) -> list[Pair]:
    """Return pairs of half-spaces with opposite directions, the tightest, with weights that make products at most 1."""
    lengths = np.linalg.norm(rows, axis=1)
    ends = (offsets - rows @ centre) / np.maximum(lengths, UNDERFLOW)
    best: dict[tuple[float, ...], int] = {}
    for i in np.argsort(ends).tolist():
        if lengths[i] > 0:
            best.setdefault(tuple((np.round(rows[i] / lengths[i], 6) + 0.0).tolist()), i)
    pairs = []
    for key, i in best.items():
        j = best.get(tuple((-np.array(key) + 0.0).tolist()))
        if j is not None and i < j and ends[i] + ends[j] > 0:
            half = (ends[i] + ends[j]) / 2
            pairs.append((i, j, 1 / (half * half * lengths[i] * lengths[j])))
    return pairs


def design(rows: FloatArray, pairs: Sequence[Pair], basis: FloatArray) -> list[Pair]:
    """Return the weights of pairs that make their ball small, those of a D-optimal design, without tiny ones."""
    k, scaled = basis.shape[1], np.array([rows[i] * np.sqrt(weight) for i, _, weight in pairs]) @ basis
    lengths = np.array([np.linalg.norm(rows[j]) / max(float(np.linalg.norm(rows[i])), UNDERFLOW) for i, j, _ in pairs])
    scaled = scaled * np.sqrt(lengths)[:, None]
    shares = np.full(len(pairs), 1 / len(pairs))
    for _ in range(_ROUNDS):
        matrix = scaled.T @ (shares[:, None] * scaled)
        if np.linalg.matrix_rank(matrix) < k:
            return []
        shares *= np.einsum("ij,ji->i", scaled, np.linalg.solve(matrix, scaled.T)) / k
    return [
        (i, j, weight * share) for (i, j, weight), share in zip(pairs, shares.tolist(), strict=True) if share > 1e-6
    ]


def idle_directions(table: LikelihoodTable) -> list[list[int]]:
    """Return whole vectors that span the directions in which no outcome changes, exactly."""
    d = len(table.names)
    distinct = {tuple(f.affine_terms()[1].get(name, 0) for name in table.names) for f in table.outcomes}
    rows = [_whole(row) for row in sorted(distinct) if any(row)]
    if not rows:
        return np.eye(d, dtype=int).tolist()
    kernel, nullity = fmpz_mat(rows).nullspace()
    return [[int(kernel[i, j]) for i in range(d)] for j in range(nullity)]


def _whole(row: tuple[Any, ...]) -> list[int]:
    scale = int(np.lcm.reduce([int(x.denominator) for x in row if x] or [1]))
    return [int(x * scale) for x in row]


def deepest_point(half_spaces: Sequence[tuple[FloatArray, float]]) -> FloatArray:
    """Return the centre of a largest ball within half-spaces ``row · v <= offset``."""
    from scipy.optimize import linprog

    rows = np.array([row for row, _ in half_spaces])
    widths = np.linalg.norm(rows, axis=1, keepdims=True)
    found = linprog(
        np.append(np.zeros(rows.shape[1]), -1.0),
        A_ub=np.hstack([rows, widths]),
        b_ub=[offset for _, offset in half_spaces],
        bounds=(None, None),
    )
    return np.zeros(rows.shape[1]) if found.x is None else np.asarray(found.x[:-1])


def coordinates_of(table: LikelihoodTable, *, is_whole: bool) -> list[Coordinates]:
    """Return a basis of the directions in which outcomes change, with the others; and, if there are such, all at once.

    The space may cut across directions in which no outcome changes, so that its sides matter in all of them. If the
    likelihood does not have all outcomes, it does not say in which directions these change.
    """
    (d, k), idle = table.basis.shape, idle_directions(table)
    everything: Coordinates = np.eye(d), []
    if not is_whole and k < d:
        return [everything]
    return [(table.basis, idle), *[everything] * (0 < k < d <= _MOST_AT_ONCE)]


def ball_part(
    coordinates: Coordinates,
    middle: FloatArray,
    forms: Sequence[LikelihoodForm],
    half_spaces: Sequence[tuple[FloatArray, float]],
) -> dict[str, Any] | None:
    """Return a small ball around the set, by likelihoods, by pairs of half-spaces, or by both."""
    basis, idle = coordinates
    rows = np.array([row for row, _ in half_spaces]).reshape(len(half_spaces), len(middle))
    offsets = np.array([offset for _, offset in half_spaces])
    k = basis.shape[1]
    is_idle = np.abs(rows - rows @ basis @ basis.T).sum(axis=1) > _SPARE * np.abs(rows).sum(axis=1)
    rows[is_idle] = 0.0  # these depend on directions in which no outcome changes
    if k == 0:
        return _written(Ball(middle, np.zeros((len(middle), 0)), 0.0, [], 0.0), idle)
    balls = []
    pairs = opposite_pairs(rows, offsets, middle)
    pairs = design(rows, pairs, basis) if pairs else []
    balls.append(find_ball(rows, offsets, pairs, None, middle, basis, share=0.0) if pairs else None)
    for i, form in enumerate(forms):
        centre = form.start
        near = opposite_pairs(rows, offsets, centre)
        for share in (1.0, 0.98, *((k - 1) / k,) * (k > 1)):
            found = find_ball(
                rows, offsets, _narrowest(near, form, rows, centre, basis), form, centre, basis, share=share
            )
            balls.append(None if found is None else replace(found, index=i))
    proved = [ball for ball in balls if ball is not None]
    return _written(min(proved, key=lambda ball: ball.log_volume), idle) if proved else None


def _narrowest(
    pairs: list[Pair], form: LikelihoodForm, rows: FloatArray, centre: FloatArray, basis: FloatArray
) -> list[Pair]:
    """Return the pair of half-spaces that cuts deepest into a likelihood, as seen in its own norm."""
    found = form.at(centre, None)
    if found is None or not pairs:
        return []
    try:
        inverse = np.linalg.inv(basis.T @ found[2] @ basis)
    except np.linalg.LinAlgError:
        return design(rows, pairs, basis)
    width = [weight * (rows[i] @ basis @ inverse @ basis.T @ rows[i]) for i, _, weight in pairs]
    return [pairs[int(np.argmax(width))]]


def _written(ball: Ball, idle: list[list[int]]) -> dict[str, Any]:
    return {
        "centre": ball.centre.tolist(),
        "axes": ball.axes.T.tolist(),
        "idle": idle,
        "sphere": ball.sphere,
        "products": [list(pair) for pair in ball.products],
        "likelihood": {"index": ball.index, "weight": ball.weight} if ball.weight else None,
    }

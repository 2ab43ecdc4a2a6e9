"""Bounds on how far the true values are from those of the frequencies, over all rows together.

Row by row, many rows that are a little off add up as if all were off at once. In the norm ‖d‖² = Σ (σ(D) / unit)² they
add up as independent ones do: D = -G δ, the part of δ that goes with σ(V̂) lies in the ball, and the part that goes with
σ(D) is at most β σ(D) in each row. So ‖d‖ <= radius · first + far + second · ‖d‖, with norms of G that are
proved below, and if second < 1, ‖d‖ <= (radius · first + far) / (1 - second).

Lanczos' method proposes a value from below, and decides nothing. That λ is at least the largest eigenvalue of
diag(a) Gᵀ L G diag(a), with G the inverse of I - M, is proved by a factorisation with positive pivots: if G is at hand,
of λ I minus that matrix; otherwise of λ Bᵀ B - L, B = diag(1/a) (I - M), which is sparse and positive semidefinite in
the same cases. A shift that is larger than all roundings is taken off before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plumdp.base.rounding import UNIT
from plumdp.model.graph import BoolArray, FloatArray, Indices
from plumdp.solver.chains import factorised
from plumdp.tables.chain import RegularEquations
from plumdp.tables.contraction import Contraction

_CORES = (0.2, 1.0)  # rows with a larger relative error count by the sum of their sizes
_LEAST_UNIT = 1e-3  # of the mean
_MIXED = 0.1  # share of the contraction's own norm in that of a weight
_UP = 1 + 1e-9
_ABOVE = (1.02, 1.1, 1.5)  # times the proposal: what is tried to be proved
_FLOORS = (1e-5, 1e-9)  # of the weights, relative to the largest: eigenvalues only grow by it
_TOLERANCE = 5e-3
_SMALL = 1000  # nodes up to which the dense form is the faster one


@dataclass(frozen=True, eq=False)
class JointNorm:
    """A bound on the norm of σ(D) / unit over all known rows, by rows of the core."""

    near: Contraction
    core: BoolArray  # (n)
    unit: FloatArray  # (n)
    relative: float

    def functional(self, weight: FloatArray) -> float:
        """Return a bound on |Σ weight · δ|: the largest parts row by row, the others by the ball and this norm."""
        near, rows = self.near, self.near.rows
        in_ball = np.where(rows.in_ball, np.abs(weight), 0.0)
        of_values = in_ball * rows.mu * near.of_values / np.sqrt(near.visits)
        of_deviation = in_ball * np.where(rows.in_ball, rows.beta, 0.0) * self.unit

        def by_ball(rest: Indices) -> float:
            first, second = (float(np.linalg.norm(each[rest])) for each in (of_values, of_deviation))
            return rows.radius * first + self.relative * second

        return near.partly_by_rows(weight, by_ball)

    def square(self, weight: FloatArray) -> float:
        """Return a bound on Σ weight · (variance of discounted D ahead, by the frequencies, + δ²), of known rows."""
        if not weight.any():
            return 0.0
        near, rows = self.near, self.near.rows
        spread = self._norm(near.frequency, weight)
        of_reference = self._norm(near.reference.probability, weight)
        # a contraction in a norm close to that of the weight itself
        bent = weight * rows.psi
        inner = bent + _MIXED * float((bent * self.unit**2).mean()) / self.unit**2
        first, second = _norms(near, near.reference.probability, inner, self.core, 1 / np.sqrt(inner))
        if second < 1:
            own = (rows.radius * first + _far(near, near.reference.probability, inner, self.core)) / (1 - second)
            spread, of_reference = min(spread, own), min(of_reference, own)
        beta = np.where(self.core, rows.beta, 0.0)
        sizes = np.where(self.core, beta * near.of_values + near.rounding, near.size)
        mean = float(np.sqrt((weight * sizes**2).sum())) + of_reference * float(beta.max(initial=0.0))
        mean = min(mean, float(np.sqrt((weight * near.size**2).sum())))
        return (spread**2 + mean**2) * _UP

    def _norm(self, probability: FloatArray, weight: FloatArray) -> float:
        near = self.near
        first, second = _norms(near, probability, weight, self.core, self.unit)
        return (near.rows.radius * first + _far(near, probability, weight, self.core) + second * self.relative) * _UP


def joined(near: Contraction) -> JointNorm | None:
    """Return the bound in the norm of all known rows, with the sharper bounds of single rows that follow, or None."""
    rows, probability = near.rows, near.reference.probability
    if not rows.in_ball.any():
        return None
    mean = np.sqrt(np.average(near.of_values**2, weights=near.visits * near.is_known + 1e-9))
    unit = np.maximum(near.of_values, _LEAST_UNIT * mean)
    weight = np.where(near.is_known, 1 / unit**2, 0.0)
    best: JointNorm | None = None
    for most in _CORES:
        core = rows.in_ball | (near.is_known & near.table.is_free & (rows.beta <= most))
        first, second = _norms(near, probability, weight, core, unit)
        if not second < 1:
            continue
        relative = (rows.radius * first + _far(near, probability, weight, core)) / (1 - second) * _UP
        if best is None or relative < best.relative:
            best = JointNorm(near, core, unit, float(relative))
    if best is None:
        return None
    deviation = np.where(near.is_known, np.minimum(near.deviation, best.relative * unit), near.deviation)
    return replace(best, near=replace(near, deviation=deviation))


def _norms(
    near: Contraction, probability: FloatArray, weight: FloatArray, core: BoolArray, unit: FloatArray
) -> tuple[float, float]:
    """Return bounds on the norms of what the ball, and what σ(D) / unit in the core, contribute to D."""
    of_ball = np.where(near.rows.in_ball, near.rows.mu * near.of_values / np.sqrt(near.visits), 0.0)
    of_core = np.where(core, near.rows.beta, 0.0) * unit
    return (
        largest_norm(near, probability, weight, of_ball * _UP),
        largest_norm(near, probability, weight, of_core * _UP),
    )


def _far(near: Contraction, probability: FloatArray, weight: FloatArray, core: BoolArray) -> float:
    """Return a bound on the norm of what other rows contribute, by the sum of their sizes."""
    beta = np.where(core, near.rows.beta, 0.0)
    in_core = np.minimum(near.size, beta * near.of_values * _UP + near.rounding)
    rest = np.where(near.rows.in_ball, near.rounding, np.where(core, in_core, near.size))
    above = near.equations.above(rest)
    if above is None:
        return np.inf
    ahead = near.table.ahead(above + near.slack, closed=0.0)
    total = (weight[near.table.owner] * probability * ahead**2).sum()
    return float(near.table.discount * np.sqrt(total)) * _UP


def largest_norm(near: Contraction, probability: FloatArray, weight: FloatArray, scale: FloatArray) -> float:
    """Return a bound on √(Σ weight · variance) of G diag(scale) y ahead of each row, for all |y| <= 1.

    The variance is that of discounted values under a probability (n_transitions), which need not be that of the
    equations. Infinite if nothing is proved.
    """
    if not scale.any() or not weight.any():
        return 0.0
    table = near.table
    moves = table.chain.rows(probability, table.successor, table.chain.n_nodes)[:, : table.n].tocsr()
    proposal = _proposed(near.equations, moves, weight, scale)
    if not np.isfinite(proposal):
        return np.inf
    for factor in _ABOVE:
        if is_above(near, moves, weight, scale, factor * proposal):
            return float(np.sqrt(factor * proposal)) * (1 + 1e-9)
    return np.inf


def _proposed(equations: RegularEquations, moves: Any, weight: FloatArray, scale: FloatArray) -> float:
    """Return about the largest eigenvalue, by Lanczos' method."""
    from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

    table, n, of_state = equations.table, equations.table.n, moves.T @ weight

    def apply(x: FloatArray) -> FloatArray:
        v = equations.solve(scale * x.ravel())
        form = table.discount**2 * (of_state * v - moves.T @ (weight * (moves @ v)))
        return np.asarray(scale * equations.solve_transposed(form))

    if n < 30:
        return float(np.linalg.eigvalsh(np.array([apply(e) for e in np.eye(n)]))[-1])
    start = np.random.default_rng(0).standard_normal(n)
    try:
        operator = LinearOperator((n, n), matvec=apply, dtype=np.float64)
        return float(eigsh(operator, k=1, tol=_TOLERANCE, v0=start, return_eigenvectors=False)[0])
    except (ArpackNoConvergence, ArpackError):
        return np.inf


def is_above(near: Contraction, moves: Any, weight: FloatArray, scale: FloatArray, value: float) -> bool:
    """Return whether it is proved that a value is not below the largest eigenvalue."""
    from scipy.sparse import diags_array

    square = near.table.discount**2
    mean, of_state = moves.T @ diags_array(weight) @ moves, diags_array(moves.T @ weight)
    form, size = square * (of_state - mean), square * (of_state + mean)
    if near.table.n > _SMALL:
        raised = (np.maximum(scale, floor * scale.max()) for floor in _FLOORS)
        if any(_is_above_sparse(near, form, size, each, value) for each in raised):
            return True
    inverse, n_terms = near.inverse, near.equations.n_terms
    return inverse is not None and _is_above_dense(inverse, form, size, scale, value, n_terms)


def _is_above_dense(inverse: FloatArray, form: Any, size: Any, scale: FloatArray, value: float, n_terms: int) -> bool:
    """Return whether λ I - diag(a) Gᵀ L G diag(a) has a Cholesky factor, after all roundings are taken off.

    If it has one in floats, the exact matrix is off by at most (n + 1) UNIT of its trace (Rump 2006).
    """
    n = len(inverse)
    matrix = scale[:, None] * (inverse.T @ (form @ inverse)) * scale
    largest = float((scale * (np.abs(inverse).T @ (size @ (np.abs(inverse) @ scale)))).max())
    margin = (2 * n + 2 * n_terms + 64) * UNIT * largest + 4 * (n + 2) * UNIT * n * value
    try:
        np.linalg.cholesky((value - margin) * np.eye(n) - (matrix + matrix.T) / 2)
    except np.linalg.LinAlgError:
        return False
    return True


def _is_above_sparse(near: Contraction, form: Any, size: Any, scale: FloatArray, value: float) -> bool:
    """Return whether λ Bᵀ B - L is proved to be positive semidefinite, for scales above zero.

    A scale that is raised makes the eigenvalue larger, which is safe.
    """
    from scipy.sparse import diags_array, eye_array

    n, equations = near.table.n, near.equations
    b = diags_array(1 / scale) @ (eye_array(n) - equations.moves)
    square = b.T @ b
    matrix, terms = value * square - form, value * (abs(b).T @ abs(b)) + size
    # in units in which the diagonal is about one, by powers of two, without rounding
    with np.errstate(divide="ignore"):
        unit = 2.0 ** -np.round(np.log2(np.sqrt(value * square.diagonal())))
    if not np.isfinite(unit).all():
        return False
    units = diags_array(unit)
    scaled, sizes = units @ matrix @ units, units @ terms @ units
    formed = (2 * equations.n_terms + 32) * UNIT * float((sizes @ np.ones(n)).max())
    return _is_positive(((scaled + scaled.T) / 2).tocsc(), formed)


def _is_positive(matrix: Any, formed: float) -> bool:
    """Return whether a symmetric matrix is proved to be positive semidefinite, if ``formed`` bounds its own error."""
    shift = max(formed, 1e-13)
    for _ in range(4):
        error = _factor_error(matrix, shift)
        if error is None:
            return False
        if error + formed <= shift:
            return True
        shift = 2 * (error + formed)
    return False


def _factor_error(matrix: Any, shift: float) -> float | None:
    """Return a bound on the norm of A - L D Lᵀ, with A the matrix less a shift, or None if a pivot is not positive.

    The factors L U of A are off by at most k UNIT |L| |U|, k being one more than the terms of a row (Higham 2002,
    Theorem 9.3). What U differs from D Lᵀ is calculated.
    """
    from scipy.sparse import diags_array, eye_array

    n = matrix.shape[0]
    settings = {"SymmetricMode": True, "Equil": False}
    shifted = matrix - shift * eye_array(n)
    factors = factorised(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=settings)
    if factors is None:
        return None
    pivots = factors.U.diagonal()
    if not (factors.perm_r == factors.perm_c).all() or not pivots.min() > 0:
        return None
    lower, upper, ones = abs(factors.L.tocsr()), factors.U.tocsr(), np.ones(n)
    k = int(np.diff(factors.L.tocsr().indptr).max()) + 4
    size = k * UNIT / (1 - k * UNIT) * (lower @ (abs(upper) @ ones)).max()
    differs = abs(upper - diags_array(pivots) @ factors.L.T.tocsr()) + 2 * UNIT * abs(upper)
    off = (lower @ (differs @ ones)).max()
    # the subtraction of the shift is rounded once
    return float((size + off + UNIT * (2 + shift)) * (1 + 1e-9))

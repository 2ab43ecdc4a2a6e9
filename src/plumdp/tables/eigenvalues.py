"""Largest eigenvalues of quadratic forms in the inverse of a chain's equations, with a proof that they are not larger.

Lanczos' method proposes a value from below, and decides nothing. That λ is at least the largest eigenvalue of
diag(a) Gᵀ L G diag(a), with G the inverse of I - M, is proved by a factorisation with positive pivots: if G is at hand,
of λ I minus that matrix; otherwise of λ Bᵀ B - L, B = diag(1/a) (I - M), which is sparse and positive semidefinite in
the same cases. A shift that is larger than all roundings is taken off before.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from plumdp.base.rounding import UNIT
from plumdp.model.graph import FloatArray
from plumdp.solver.equations import factorised
from plumdp.tables.chain import TableChain
from plumdp.tables.equations import RegularEquations


class Solved(Protocol):
    """Equations of a chain, and their inverse if it is at hand."""

    @property
    def table(self) -> TableChain:
        """The chain."""

    @property
    def equations(self) -> RegularEquations:
        """Its equations."""

    @property
    def inverse(self) -> FloatArray | None:
        """About the inverse G (n, n), which stands for the exact one, or None."""


_ABOVE = (1.02, 1.1, 1.5)  # times the proposal: what is tried to be proved
_FLOORS = (1e-5, 1e-9)  # of the weights, relative to the largest: eigenvalues only grow by it
_TOLERANCE = 5e-3
_SMALL = 1000  # nodes up to which the dense form is the faster one


def largest_norm(near: Solved, probability: FloatArray, weight: FloatArray, scale: FloatArray) -> float:
    """Return a bound on √(Σ weight · variance) of G diag(scale) y ahead of each row, for all |y| <= 1.

    The variance is that of discounted values under a probability (n_transitions), which need not be that of the
    equations. Infinite if nothing is proved.
    """
    if not scale.any() or not weight.any():
        return 0.0
    table = near.table
    moves = table.chain.rows(probability, table.successor, table.chain.n_nodes)[:, : table.n].tocsr()
    proposal = _proposed(table, near.equations, moves, weight, scale)
    if not np.isfinite(proposal):
        return np.inf
    for factor in _ABOVE:
        if is_above(near, moves, weight, scale, factor * proposal):
            return float(np.sqrt(factor * proposal)) * (1 + 1e-9)
    return np.inf


def _proposed(
    table: TableChain, equations: RegularEquations, moves: Any, weight: FloatArray, scale: FloatArray
) -> float:
    """Return about the largest eigenvalue, by Lanczos' method."""
    from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

    n, of_state = table.n, moves.T @ weight

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


def is_above(near: Solved, moves: Any, weight: FloatArray, scale: FloatArray, value: float) -> bool:
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


def _is_above_sparse(near: Solved, form: Any, size: Any, scale: FloatArray, value: float) -> bool:
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

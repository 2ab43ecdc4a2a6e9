"""The Markov chain of a component under fixed moves of both players, and the solution of its equations.

Sparse linear equations in floats, factorised once, which propose values.

Nothing here is rounded outward. Residuals, or a step of induction, say how far off a solution is.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from plumdp.model.graph import FloatArray, IntArray
from plumdp.solver import chain_kernels
from plumdp.solver.component import Component
from plumdp.solver.coupled import kernels
from plumdp.solver.coupled.chain import PolicyChain


def factorised(matrix: Any, **settings: Any) -> Any | None:
    """Return the factors of a sparse matrix, or None if it is singular."""
    from scipy.sparse.linalg import splu

    try:
        return splu(matrix.tocsc(), **settings)
    except RuntimeError:  # SciPy's own, of a singular matrix
        return None


@dataclass(frozen=True, eq=False)
class Equations:
    """The equations x = right + P x, for a matrix P of probabilities, perhaps times a discount."""

    factors: Any  # of I - P

    def solve(self, right: FloatArray) -> FloatArray:
        """Return the solution for one right-hand side (n), or for several (n, k)."""
        solution: FloatArray = self.factors.solve(right)
        return solution

    def solve_transposed(self, right: FloatArray) -> FloatArray:
        """Return the solution of x = right + x P for one right-hand side (n)."""
        solution: FloatArray = self.factors.solve(right, trans="T")
        return solution


@dataclass(frozen=True, eq=False)
class _Inverse:
    """Takes the place of factors where the matrix is small and dense."""

    inverse: FloatArray

    def solve(self, right: FloatArray, trans: str = "N") -> FloatArray:
        return (self.inverse if trans == "N" else self.inverse.T) @ right


def equations_of(moves: Any) -> Equations | None:
    """Return the equations of a matrix P, sparse or small, or None if they are singular."""
    if isinstance(moves, np.ndarray):
        with suppress(np.linalg.LinAlgError):
            return Equations(_Inverse(np.asarray(np.linalg.inv(np.eye(len(moves)) - moves), dtype=np.float64)))
        return None
    from scipy.sparse import eye_array

    factors = factorised(eye_array(moves.shape[0]) - moves)
    return None if factors is None else Equations(factors)


def chain_equations(chain: PolicyChain, probability: FloatArray) -> Equations | None:
    """Return the equations of a policy's chain, given probabilities (n_transitions) times the discount.

    They are solved by substitution where runs never come back to a state.
    """
    if chain.is_ordered:
        return Equations(_Substitution(chain, probability))
    return equations_of(chain.rows(probability, chain.successor, chain.n_nodes)[:, : chain.n_open])


@dataclass(frozen=True, eq=False)
class _Substitution:
    """Takes the place of factors where successors come before their states."""

    chain: PolicyChain
    probability: FloatArray

    def solve(self, right: FloatArray, trans: str = "N") -> FloatArray:
        values = np.ascontiguousarray(right, dtype=np.float64).copy()
        substitute = kernels.substitute if trans == "N" else kernels.substitute_transposed
        substitute(self.chain.first, self.chain.successor, self.probability, values)
        return values


_MAX_FILL = 500_000_000  # entries of a factorisation; with more, equations are solved by sweeps
_CHEAP_FILL = 5_000_000  # entries of a factorisation: below, solving equations again and again costs little
_THIN = 100  # entries of a factorisation for each state: below, it costs as much as some dozen sweeps
_SMALL = 1_000  # states: up to here the factorisation is taken to be dense
_BLOCK = 100  # sweeps between two tests of the change
_MAX_BLOCKS = 300
_NO_CHANGE = 1e-15
_HUB = 2_000  # predecessors of a state: with more, the ordering for a symmetric pattern takes long
_LONG = 1e5  # steps, or values: with more, rounding counts, and a solution is refined once
_RESIDUAL = 1e-12  # of the largest value: with more, the factorisation was bad
_SYMMETRIC: dict[
    str, Any
] = {  # I - P has a dominant diagonal, so that pivots come from there; a third to half the fill
    "permc_spec": "MMD_AT_PLUS_A",
    "diag_pivot_thresh": 0.0,
    "relax": 1,
    "panel_size": 4,
    "options": {"SymmetricMode": True},
}


@dataclass(frozen=True, eq=False)
class ComponentChain:
    """Rows of a sparse matrix P within the component, and the contribution of states outside it.

    The columns of ``constants`` are the rewards plus the lower values outside, the same with the upper values outside,
    and ones. The solutions of x = constants + P x are lower values, upper values and expected steps until the chain
    leaves the component.
    """

    offset: IntArray  # (n + 1)
    column: IntArray
    entry: FloatArray
    constants: FloatArray  # (n, 3)

    @property
    def matrix(self) -> Any:
        """The matrix P, as SciPy's csr_array."""
        from scipy.sparse import csr_array

        n = len(self.constants)
        return csr_array((self.entry, self.column, self.offset), shape=(n, n))


def chain_of(component: Component, judge: FloatArray, best_row: IntArray) -> ComponentChain:
    """Return the chain of the given rows and nature's best moves for the values ``judge``.

    Rows must be in nature's order.
    """
    n, rows = len(component), component.layout.rows
    offset, constants = np.zeros(n + 1, dtype=np.int32), np.ones((n, 3))
    chosen = best_row[component.part]
    size = int((rows.first[chosen + 1] - rows.first[chosen]).sum())
    column, entry = np.empty(size, dtype=np.int32), np.empty(size)
    used = component.layout.write_chain(
        component.start, component.end, judge, component.low, component.high, best_row, offset, column, entry, constants
    )
    return ComponentChain(offset, column[:used], entry[:used], constants)


def approach(chain: ComponentChain, values: FloatArray, n_sweeps: int) -> None:
    """Move values, in place, towards the chain's lower values by some sweeps."""
    entry, constants = _without_loops(chain, chain.constants[:, :1])
    _follow(chain, entry, constants[:, 0].copy(), values, n_sweeps)


def solve_chain(chain: ComponentChain) -> FloatArray | None:
    """Return lower values, upper values and expected steps (n, 3) up to rounding, or None if the chain may not end."""
    n = len(chain.constants)
    solution = _factorised(chain) if n * n <= _MAX_FILL or fill(chain) <= _MAX_FILL else _swept(chain)
    if solution is None or not np.isfinite(solution).all():
        return None
    is_sane = (solution[:, 2] > 0).all() and (solution[:, 0] >= -1e-9).all()
    return solution if is_sane else None


def _factorised(chain: ComponentChain) -> FloatArray | None:
    from scipy.sparse import csc_array

    n, end = len(chain.constants), chain.offset[1:]
    entry = np.insert(-chain.entry, end, 1.0)  # diagonal last: the row of a state never left sums to 0 despite rounding
    row = np.insert(chain.column, end, np.arange(n, dtype=np.int32))
    offset = chain.offset + np.arange(n + 1, dtype=np.int32)
    transposed = csc_array((entry, row, offset), shape=(n, n))  # I - P by rows is its transpose by columns
    has_hub = int(np.bincount(chain.column, minlength=1).max()) > _HUB
    for settings in ({},) if has_hub else (_SYMMETRIC, {}):
        factors = factorised(transposed, **settings)
        if factors is None:  # these moves may stay forever
            return None
        solution: FloatArray = factors.solve(chain.constants, trans="T")
        if _LONG < solution.max() < np.inf:
            solution += factors.solve(chain.constants + chain.matrix @ solution - solution, trans="T")
        if _is_solution(chain, solution):
            break
    return solution


def _is_solution(chain: ComponentChain, solution: FloatArray) -> bool:
    if not np.isfinite(solution).all():
        return False
    residual = np.abs(chain.constants + chain.matrix @ solution - solution).max(axis=0)
    return bool((residual <= _RESIDUAL * np.abs(solution).max(axis=0)).all())


def is_cheap(chain: ComponentChain) -> bool:
    """Return whether equations of such chains may be solved again and again, instead of sweeps."""
    return fill(chain) <= max(_CHEAP_FILL, _THIN * len(chain.constants))


def fill(chain: ComponentChain) -> int:
    """Return a bound on the entries of a factorisation, which are few if the reordered matrix has a small bandwidth."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n = len(chain.constants)
    if n <= _SMALL:
        return n * n
    place = np.empty(n, dtype=np.int64)
    place[reverse_cuthill_mckee(chain.matrix)] = np.arange(n)
    row = np.repeat(np.arange(n), np.diff(chain.offset))
    bandwidth = int(np.abs(place[row] - place[chain.column]).max(initial=0)) + 1
    return n * min(2 * bandwidth, n)


def _swept(chain: ComponentChain) -> FloatArray | None:
    entry, solution = _without_loops(chain, chain.constants)
    for column in range(solution.shape[1]):
        constant, values = solution[:, column].copy(), solution[:, column].copy()
        for _ in range(_MAX_BLOCKS):
            if _follow(chain, entry, constant, values, _BLOCK) <= _NO_CHANGE:
                break
        else:
            return None
        solution[:, column] = values
    return solution


def _without_loops(chain: ComponentChain, constants: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return entries and constants of the same equations, solved for the states on their left-hand sides."""
    entry, divided = chain.entry.copy(), constants.copy()
    chain_kernels.divide_loops_out(chain.offset, chain.column, entry, divided)
    return entry, divided


def _follow(chain: ComponentChain, entry: FloatArray, constant: FloatArray, values: FloatArray, n_sweeps: int) -> float:
    offset, column = chain.offset.view(np.uint32), chain.column.view(np.uint32)
    return float(chain_kernels.follow(offset, column, entry, constant, values, n_sweeps))

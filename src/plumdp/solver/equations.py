"""Sparse linear equations in floats, factorised once, which propose values.

Nothing here is rounded outward. Residuals, or a step of induction, say how far off a solution is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plumdp.model.graph import FloatArray
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


def equations_of(moves: Any) -> Equations | None:
    """Return the equations of a sparse matrix P, or None if they are singular."""
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

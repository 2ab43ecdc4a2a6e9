"""The linear equations of a policy's chain, solved by substitution if states never come back, else by factorisation.

Nothing here is rounded outward. The residuals of these solutions say how far off they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plumdp.model.graph import FloatArray
from plumdp.solver.coupled import kernels
from plumdp.solver.coupled.chain import PolicyChain


@dataclass(frozen=True, eq=False)
class Equations:
    """The equations x = right + P x on the open nodes of a chain, for probabilities of its transitions."""

    chain: PolicyChain
    probability: FloatArray  # (n_transitions), times the discount
    factors: Any  # of I - P; None where substitution does

    def solve(self, right: FloatArray) -> FloatArray:
        """Return the solutions for right-hand sides (n_open, k)."""
        values = np.ascontiguousarray(right, dtype=np.float64).copy()
        if self.factors is not None:
            solution: FloatArray = self.factors.solve(values)
            return solution
        kernels.substitute(self.chain.first, self.chain.successor, self.probability, values)
        return values

    def solve_transposed(self, right: FloatArray) -> FloatArray:
        """Return the solution of x = right + x P for one right-hand side (n_open)."""
        values = np.ascontiguousarray(right, dtype=np.float64).copy()
        if self.factors is not None:
            solution: FloatArray = self.factors.solve(values, trans="T")
            return solution
        kernels.substitute_transposed(self.chain.first, self.chain.successor, self.probability, values)
        return values


def equations_of(chain: PolicyChain, probability: FloatArray) -> Equations | None:
    """Return the equations of a chain, ready to be solved, or None if they are singular."""
    if chain.is_ordered:
        return Equations(chain, probability, None)
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    n = chain.n_open
    moves = chain.rows(probability, chain.successor, chain.n_nodes)[:, :n]
    try:
        return Equations(chain, probability, splu((eye_array(n) - moves).tocsc()))
    except RuntimeError:  # SciPy's own, of a singular matrix
        return None

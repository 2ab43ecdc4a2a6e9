"""Linear equations of a chain in floats, with solutions that are proved to be upper bounds.

For A = I - M with M >= 0, if some h >= 0 has A h >= 1/2, then A is regular and its inverse is not negative. So every x
with A x >= b is an upper bound on the exact solution, whatever x was calculated by: the inequality is checked with all
its roundings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plumdp.base.rounding import UNIT
from plumdp.model.graph import FloatArray
from plumdp.solver.equations import Equations, equations_of
from plumdp.tables.chain import TableChain

_TRIALS = 4


@dataclass(frozen=True, eq=False)
class RegularEquations:
    """The matrix I - M of a chain, its equations, and a vector h >= 0 with (I - M) h >= 1/2."""

    moves: Any  # (n, n): M, sparse
    equations: Equations
    witness: FloatArray  # (n): h
    n_terms: int  # that the sums of a row or a column have, at most

    def solve(self, right: FloatArray) -> FloatArray:
        """Return about the solution of (I - M) x = right."""
        return self.equations.solve(right)

    def solve_transposed(self, right: FloatArray) -> FloatArray:
        """Return about the solution of x (I - M) = right."""
        return self.equations.solve_transposed(right)

    def applied(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (I - M) x in floats, and a bound on its rounding, for vectors or matrices."""
        return x - self.moves @ x, self._rounding(np.abs(x) + self.moves @ np.abs(x))

    def applied_transposed(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return x (I - M) in floats, and a bound on its rounding."""
        return x - self.moves.T @ x, self._rounding(np.abs(x) + self.moves.T @ np.abs(x))

    def _rounding(self, size: FloatArray) -> FloatArray:
        return (self.n_terms + 8) * UNIT * size

    def above(self, right: FloatArray) -> FloatArray | None:
        """Return an upper bound on the solution for a right-hand side that is not negative, or None if that fails."""
        return _raised(self, np.maximum(self.solve(right), 0.0), right, self.witness)


def _raised(equations: RegularEquations, x: FloatArray, right: FloatArray, witness: FloatArray) -> FloatArray | None:
    """Return x, raised along the witness until (I - M) x >= right is proved."""
    for _ in range(_TRIALS):
        value, rounding = equations.applied(x)
        lacking = float((right * (1 + 4 * UNIT) - value + rounding).max(initial=0.0))
        if not np.isfinite(lacking):
            return None
        if lacking <= 0:
            return x
        x = x + 4 * lacking * witness
    return None


def regular_equations(table: TableChain, probability: FloatArray) -> RegularEquations | None:
    """Return the equations for probabilities (n_transitions), 0 in rows that are closed; None if not proved regular."""
    from scipy.sparse import csr_array

    n, is_open = table.n, table.successor < table.n
    entries = (table.discount * probability)[is_open], (table.owner[is_open], table.successor[is_open])
    moves = csr_array(entries, shape=(n, n))  # equal successors of a row are added up
    equations = equations_of(moves)
    if equations is None:
        return None
    most = max(int(np.bincount(axis, minlength=1).max(initial=0)) for axis in entries[1])
    plain = RegularEquations(moves, equations, np.zeros(n), most)
    witness = np.maximum(plain.solve(np.ones(n)), 0.0)
    if not np.isfinite(witness).all():
        return None
    value, rounding = plain.applied(witness)
    if not (value - rounding >= 0.5).all():
        return None
    return replace(plain, witness=witness)


def values_of(
    table: TableChain, equations: RegularEquations, probability: FloatArray, reward: FloatArray
) -> FloatArray:
    """Return about the values of the open nodes, given the probabilities and the rewards of their rows."""
    return equations.solve(reward + right_side(table, probability))


def right_side(table: TableChain, probability: FloatArray) -> FloatArray:
    """Return what closed successors contribute to each row."""
    return table.discount * table.sums(probability * table.ahead(np.zeros(table.n)))

"""Linear programs by HiGHS, for what vertices cannot do. Its values are estimates; its multipliers prove bounds.

The solver sees a few rows at first, and gets those that its point misses most until none is missed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plumdp.model.graph import FloatArray, IntArray

_MISSED = 1e-9  # rows missed by less are taken as met
_ROWS_AT_ONCE = 50
_MAX_ROUNDS = 1000


class LinearProgram:
    """Minimises objectives over ``rows @ x <= offsets`` with x between bounds, which may be infinite."""

    def __init__(self, rows: FloatArray, offsets: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
        from highspy import Highs

        self._rows, self._offsets = rows, offsets
        self._given: IntArray = np.empty(0, dtype=np.int64)  # rows that the solver knows
        self._solver: Any = Highs()
        self._solver.setOptionValue("output_flag", False)
        self._solver.setOptionValue("threads", 1)
        for tolerance in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self._solver.setOptionValue(tolerance, 1e-10)
        for low, high in zip(lower, upper, strict=True):
            self._solver.addVar(low, high)

    def solve(self, objective: FloatArray) -> tuple[IntArray, FloatArray] | None:
        """Return rows and their multipliers that prove the minimum, nearly; None if the solver does not get there."""
        from highspy import HighsModelStatus

        self._solver.changeColsCost(len(objective), np.arange(len(objective), dtype=np.int32), objective)
        for _ in range(_MAX_ROUNDS):
            self._solver.run()
            if self._solver.getModelStatus() != HighsModelStatus.kOptimal:
                return None
            solution = self._solver.getSolution()
            missed = self._rows @ np.array(solution.col_value) - self._offsets
            missed[self._given] = 0
            worst = np.argsort(-missed)[:_ROWS_AT_ONCE]
            worst = worst[missed[worst] > _MISSED]
            if not len(worst):
                multipliers = -np.array(solution.row_dual)
                used = np.flatnonzero(multipliers > 0)
                return self._given[used], multipliers[used]
            self._add(worst)
        return None

    def _add(self, new: IntArray) -> None:
        n, d = len(new), self._rows.shape[1]
        starts, columns = np.arange(n, dtype=np.int32) * d, np.tile(np.arange(d, dtype=np.int32), n)
        values = self._rows[new].ravel()
        self._solver.addRows(n, np.full(n, -np.inf), self._offsets[new], n * d, starts, columns, values)
        self._given = np.append(self._given, new)

"""Linear programs by HiGHS. Its values are estimates and are never used; its multipliers prove bounds elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from plumdp.model.graph import FloatArray, IntArray

_MISSED = 1e-9  # rows missed by less are taken as met
_ROWS_AT_ONCE = 50
_MAX_ROUNDS = 1000


def estimate_multipliers(
    objective: FloatArray, rows: FloatArray, offsets: FloatArray, first: IntArray
) -> tuple[IntArray, FloatArray] | None:
    """Return rows and multipliers that come close to proving the minimum of ``objective @ x``; None if HiGHS fails.

    The minimum is over ``rows @ x <= offsets``. The solver gets the first rows, which must bound the objective, and
    then those that its point misses most until none is missed.
    """
    from highspy import HighsModelStatus

    solver, given = _solver(objective), first
    _add(solver, rows[first], offsets[first])
    for _ in range(_MAX_ROUNDS):
        solver.run()
        if solver.getModelStatus() != HighsModelStatus.kOptimal:
            return None
        solution = solver.getSolution()
        missed = rows @ np.array(solution.col_value) - offsets
        missed[given] = 0  # the solver meets them, up to its tolerance
        worst = np.argsort(-missed)[:_ROWS_AT_ONCE]
        worst = worst[missed[worst] > _MISSED]
        if not len(worst):
            return given, np.maximum(-np.array(solution.row_dual), 0)
        _add(solver, rows[worst], offsets[worst])
        given = np.append(given, worst)
    return None


def _solver(objective: FloatArray) -> Any:
    from highspy import Highs

    solver: Any = Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    for tolerance in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        solver.setOptionValue(tolerance, 1e-10)
    for cost in objective:
        solver.addCol(cost, -np.inf, np.inf, 0, [], [])
    return solver


def _add(solver: Any, rows: FloatArray, offsets: FloatArray) -> None:
    n, d = rows.shape
    starts, columns = np.arange(n, dtype=np.int32) * d, np.tile(np.arange(d, dtype=np.int32), n)
    solver.addRows(n, np.full(n, -np.inf), offsets, n * d, starts, columns, rows.ravel())

"""Linear programs solved by HiGHS, whose multipliers prove bounds elsewhere. Its values are never used."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from plumdp.model.graph import FloatArray, IntArray

_MISSED = 1e-9  # rows missed by less are taken as met
_ROWS_AT_ONCE = 50
_MAX_ROUNDS = 1000
_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def estimate_multipliers(
    objective: FloatArray, rows: FloatArray, offsets: FloatArray, first: IntArray
) -> tuple[IntArray, FloatArray] | None:
    """Return rows and multipliers that come close to proving the minimum of ``objective @ x``, or None.

    The minimum is over ``rows @ x <= offsets``. The solver gets the first rows, which must bound the objective, and
    then those that its point misses most until none is missed. It is None if HiGHS fails.
    """
    given = first
    for _ in range(_MAX_ROUNDS):
        solution = linprog(
            objective, A_ub=rows[given], b_ub=offsets[given], bounds=(None, None), method="highs", options=_TOLERANCES
        )
        if solution.status != 0:
            return None
        missed = rows @ solution.x - offsets
        missed[given] = 0  # the solver meets them, up to its tolerance
        worst = np.argsort(-missed)[:_ROWS_AT_ONCE]
        worst = worst[missed[worst] > _MISSED]
        if not len(worst):
            return given, np.maximum(-solution.ineqlin.marginals, 0)
        given = np.append(given, worst)
    return None

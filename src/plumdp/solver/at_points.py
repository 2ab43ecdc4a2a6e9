"""Best policies of a model at points of its parameters, in floats, as proposals for policies but never as bounds.

All points share the graph, so the work that depends on it alone is done once, at the first point.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plumdp.model.graph import BoolArray, FloatArray, IntArray
from plumdp.model.objectives import Objective, is_open_everywhere
from plumdp.model.parametric import ParametricMDP
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.by_steps import keep_best
from plumdp.solver.prepared import Prepared, prepare
from plumdp.solver.problem import Problem, Solution
from plumdp.solver.reduce import reduce
from plumdp.solver.solve import propose_solution, solve

_MAX_SWEEPS = 1000  # in a component: a proposal need not be optimal
_MAX_ROBUST_SWEEPS = 100_000
_PRECISION = 1e-6


def move_inside(model: ParametricMDP, point: FloatArray, middle: FloatArray) -> FloatArray:
    """Return a point moved towards the middle of the space until every expression is a probability there."""
    share, moved = 0.0, point
    while share < 1:
        values = model.expressions.evaluate(moved[None, :])
        if values.min(initial=0) >= 0 and values.max(initial=1) <= 1:
            return moved
        share = min(1.0, 2 * share + 1e-3)
        moved = point + share * (middle - point)
    return middle


class PointSolver:
    """A solver of a model at points, which does the work that depends on the graph alone once, at the first point.

    ``last`` is about the solution at the last point. Each solution starts from the one before, as policies are alike.
    """

    def __init__(self, model: ParametricMDP, objective: Objective, prepared: Prepared | None = None) -> None:
        self._model, self._objective = model, objective
        self.prepared = prepared  # at the first point, or for the first relaxation
        self.last: Solution | None = None
        self._first: tuple[FloatArray, Solution] | None = None  # that of the pilot, which may be asked for again

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: all but the prepared game, which is made again and changes no result."""
        return {**self.__dict__, "prepared": None}

    def without_memory(self) -> PointSolver:
        """Return a solver without points, which shares only the work that depends on graph and objective.

        Of policies that tie, the one found depends on where the search starts. Bets must depend on the pilot alone, so
        a solver that has seen points of earlier data must not choose their direction.
        """
        return PointSolver(self._model, self._objective, self.prepared)

    def policy_at(self, point: FloatArray) -> IntArray:
        """Return the best policy at a point at which all expressions are probabilities."""
        if self._first is not None and np.array_equal(self._first[0], point):
            self.last = self._first[1]
            return self.last.policy
        mdp = self.at(point)
        prepared, objective = self._prepared_for(mdp), self._objective
        if is_open_everywhere(objective) or reduce(Problem(mdp, objective)).steps:
            self.last = self.robust(mdp, _PRECISION, _MAX_SWEEPS)
        else:
            of_point = prepare(mdp, objective, like=prepared)
            self.last = propose_solution(
                of_point.game, of_point.facing(), objective, _PRECISION, _MAX_SWEEPS, self.last
            )
        self._first = self._first or (point, self.last)
        return self.last.policy

    def keep_best(self, mdp: IntervalMDP, keep: BoolArray) -> None:
        """Add the best choice at a point, or against nature, for each state and each number of steps taken."""
        ready = prepare(mdp, self._objective, like=self._prepared_for(mdp))
        keep_best(ready.objective, ready.facing(), self._model.graph, keep)

    def at(self, point: FloatArray) -> IntervalMDP:
        """Return the model at a point."""
        probabilities = self._model.expressions.chances(point)
        return IntervalMDP(self._model.graph, self._model.expression, probabilities, probabilities)

    def robust(self, imdp: IntervalMDP, precision: float, max_sweeps: int = _MAX_ROBUST_SWEEPS) -> Solution:
        """Return the solution of a relaxation of the model, with nature at its worst, starting from the last one."""
        options: Any = {"precision": precision, "max_sweeps": max_sweeps, "start": self.last}
        return solve(imdp, self._objective, nature="robust", prepared=self._prepared_for(imdp), **options)

    def _prepared_for(self, imdp: IntervalMDP) -> Prepared | None:
        """Return the prepared game that fits a relaxation.

        The first relaxation in the model's own expressions prepares it.
        """
        is_of_model = imdp.expression is self._model.expression
        if self.prepared is None and is_of_model and imdp.graph.levels is None:  # what is on disk is not laid out
            self.prepared = prepare(imdp, self._objective)
        return self.prepared

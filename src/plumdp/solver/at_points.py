"""Best policies of a model at points of its parameters, in floats: proposals for policies, never bounds.

All points share the graph, so what depends on it alone is laid out once, at the first point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from plumdp.model.graph import FloatArray, IntArray, read_only
from plumdp.model.objective import Kind, Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.by_components import solve_game
from plumdp.solver.layout import lay_out
from plumdp.solver.qualitative import make_game
from plumdp.solver.solution import Solution
from plumdp.solver.solve import solve

_MAX_SWEEPS = 1000  # in a component: a proposal need not be optimal
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
    """Finds best policies of a model at points: what depends on the graph alone is done once, at the first point.

    ``last`` is the solution at the last point. Each solution starts from the one before, as policies are alike.
    """

    def __init__(self, model: ParametricMDP, objective: Objective) -> None:
        self._model, self._objective = model, objective
        self._solve: _Solver | None = None
        self.last: Solution | None = None

    def policy_at(self, point: FloatArray) -> IntArray:
        """Return the best policy at a point at which all expressions are probabilities."""
        model = self._model
        probabilities = read_only(model.expressions.evaluate(point[None, :])[:, 0].clip(0, 1))
        known = IntervalMDP(model.graph, model.expression, probabilities, probabilities)
        if self._solve is None:
            self._solve = _solver_like(known, self._objective)
        self.last = self._solve(known, self.last)
        return self.last.policy


_Solver: TypeAlias = Callable[[IntervalMDP, Solution | None], Solution]


def _solver_like(first: IntervalMDP, objective: Objective) -> _Solver:
    """Return a function that solves models with the graph of the first, on its layout if they have the same edges."""

    def afresh(known: IntervalMDP, start: Solution | None) -> Solution:
        return solve(known, objective, nature="robust", precision=_PRECISION, max_sweeps=_MAX_SWEEPS, start=start)

    if objective.n_steps is not None or objective.kind == Kind.DISCOUNTED or objective.flipped() is not None:
        return afresh
    game = make_game(first, objective, "robust")
    layout = lay_out(game)

    def again(known: IntervalMDP, start: Solution | None) -> Solution:
        if ((known.upper == 0) != (first.upper == 0)).any():
            return afresh(known, start)
        own = layout.facing(known, game.nature)
        return solve_game(replace(game, imdp=known), own, objective, _PRECISION, _MAX_SWEEPS, start)

    return again

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
from plumdp.solver.problem import Problem, reduce_all
from plumdp.solver.qualitative import make_game
from plumdp.solver.solution import Solution
from plumdp.solver.solve import REDUCTIONS, solve

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


Finder: TypeAlias = Callable[[FloatArray], IntArray]
"""From a point, at which all expressions are probabilities, to the best policy there."""


def policy_finder(model: ParametricMDP, objective: Objective) -> Finder:
    """Return a function that finds best policies at points; what depends on the graph alone it does once."""
    solve_at: Callable[[IntervalMDP], Solution] | None = None

    def find(point: FloatArray) -> IntArray:
        nonlocal solve_at
        known = _at(model, point)
        if solve_at is None:
            solve_at = _solver_like(known, objective)
        return solve_at(known).policy

    return find


def _at(model: ParametricMDP, point: FloatArray) -> IntervalMDP:
    probabilities = read_only(model.expressions.evaluate(point[None, :])[:, 0].clip(0, 1))
    return IntervalMDP(model.graph, model.expression, probabilities, probabilities)


def _solver_like(first: IntervalMDP, objective: Objective) -> Callable[[IntervalMDP], Solution]:
    """Return a function that solves models with the graph of the first, on its layout if they have the same edges."""

    def afresh(known: IntervalMDP) -> Solution:
        return solve(known, objective, nature="robust", precision=_PRECISION, max_sweeps=_MAX_SWEEPS)

    if objective.n_steps is not None or objective.kind == Kind.DISCOUNTED:
        return afresh
    problem, invert = reduce_all(Problem(first, objective, "robust"), REDUCTIONS)
    game = make_game(problem.imdp, problem.objective, "robust")
    layout = lay_out(game)

    def again(known: IntervalMDP) -> Solution:
        if ((known.upper == 0) != (first.upper == 0)).any():
            return afresh(known)
        own = layout.facing(known, game.nature)
        return invert(solve_game(replace(game, imdp=known), own, problem.objective, _PRECISION, _MAX_SWEEPS))

    return again

"""Best policies of a model at points of its parameters, in floats: proposals for policies, never bounds.

All points share the graph, so what depends on it alone is laid out once, at the first point.
"""

from __future__ import annotations

from dataclasses import replace

from plumdp.model.graph import FloatArray, IntArray, read_only
from plumdp.model.objective import Kind, Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.by_components import propose_solution, solve_game
from plumdp.solver.game import Game
from plumdp.solver.layout import SweepLayout, lay_out
from plumdp.solver.qualitative import make_game
from plumdp.solver.solution import Solution
from plumdp.solver.solve import solve

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
    """Finds best policies of a model at points: what depends on the graph alone is done once, at the first point.

    ``last`` is about the solution at the last point. Each solution starts from the one before, as policies are alike.
    """

    def __init__(self, model: ParametricMDP, objective: Objective) -> None:
        self._model, self._objective = model, objective
        self._first: IntervalMDP | None = None  # whose edges the game has
        self._game: Game | None = None
        self._layout: SweepLayout | None = None
        self.last: Solution | None = None

    def policy_at(self, point: FloatArray) -> IntArray:
        """Return the best policy at a point at which all expressions are probabilities."""
        model = self._model
        probabilities = read_only(model.expressions.evaluate(point[None, :])[:, 0].clip(0, 1))
        known = IntervalMDP(model.graph, model.expression, probabilities, probabilities)
        if self._first is None:
            self._lay_out(known)
        self.last = self._solve(known, _PRECISION, _MAX_SWEEPS, is_proposal=True)
        return self.last.policy

    def robust(self, uncertain: IntervalMDP, precision: float) -> Solution:
        """Return the solution of a relaxation of the model, with nature at its worst; it starts from the last one."""
        return self._solve(uncertain, precision, _MAX_ROBUST_SWEEPS)

    def _lay_out(self, first: IntervalMDP) -> None:
        objective, self._first = self._objective, first
        if objective.n_steps is None and objective.kind != Kind.DISCOUNTED and objective.flipped() is None:
            self._game = make_game(first, objective, "robust")
            self._layout = lay_out(self._game)

    def _solve(self, imdp: IntervalMDP, precision: float, max_sweeps: int, *, is_proposal: bool = False) -> Solution:
        """Solve on the layout of the first point, if the same edges are there and none can be dropped."""
        game, layout = self._game, self._layout
        if game is None or layout is None or not self._has_same_edges(imdp):
            return solve(
                imdp, self._objective, nature="robust", precision=precision, max_sweeps=max_sweeps, start=self.last
            )
        own, game = layout.facing(imdp, game.nature), replace(game, imdp=imdp)
        solve_own = propose_solution if is_proposal else solve_game
        return solve_own(game, own, self._objective, precision, max_sweeps, self.last)

    def _has_same_edges(self, imdp: IntervalMDP) -> bool:
        """Return whether nature has no say in what the graph alone decides: every edge of the first model stays."""
        first = self._first
        assert first is not None
        is_alike = imdp.graph is first.graph and imdp.expression is first.expression and not imdp.known_support
        return is_alike and imdp.has_fixed_support() and bool(((imdp.upper == 0) == (first.upper == 0)).all())

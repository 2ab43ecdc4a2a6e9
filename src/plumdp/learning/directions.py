"""Directions in which a region should be narrow: gradients of the values of best policies, at the pilot's estimate."""

from __future__ import annotations

from collections.abc import Mapping

from plumdp.confidence.bets import Direction
from plumdp.confidence.likelihood import Directions
from plumdp.confidence.space_moments import moments
from plumdp.model.graph import FloatArray
from plumdp.model.objective import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.solver.at_points import PointSolver, move_inside
from plumdp.solver.coupled.gradient import policy_gradient


def value_directions(model: ParametricMDP, solvers: Mapping[Objective, PointSolver]) -> Directions:
    """Return a function from a point to the gradients, there, of the values of the best policies for objectives."""

    def directions(point: FloatArray) -> list[Direction]:
        at = move_inside(model, point, moments(model.space)[0])
        found = []
        for objective, solver in solvers.items():
            policy = solver.policy_at(at)
            _, gradient = policy_gradient(model, policy, objective, at)
            found.append(Direction(gradient, policy, f"the value of {objective.text or 'the objective'}"))
        return found

    return directions

"""Searches for policies worth certifying, which are best at points where the bound of another one is at its worst.

The bound on a policy is about its value at the centre of the region, moved along its gradient to where the region ends.
A policy that is a little worse at the centre may have a gradient in which the region is narrow, and so a better bound.
The search need not be trusted. A region holds for all policies at once, so that any may be certified.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from plumdp.confidence.space_moments import moments
from plumdp.model.graph import FloatArray, IntArray
from plumdp.model.objective import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.region.ball import Ball, ball_around
from plumdp.region.shapes import Region
from plumdp.solver.at_points import PointSolver, move_inside
from plumdp.solver.coupled.gradient import find_gradient

_ROUNDS = 3
_EQUAL = 1e-6  # difference of bounds, relative if they are above one, below which policies are ranked by their values
_WORTHWHILE = 0.01  # share of the distance of value and bound by which a better policy must improve the bound


@dataclass(frozen=True, eq=False)
class Candidate:
    """A policy, and estimates of its value and bound with signs such that larger ones are better."""

    policy: IntArray  # (n_states)
    bound: float
    value: float  # at the centre of the region
    gradient: FloatArray  # (n_parameters)
    states: IntArray  # (n_reached): those that the policy reaches

    def does(self, policy: IntArray) -> bool:
        """Return whether another policy does the same in all states that this one reaches."""
        return bool((policy[self.states] == self.policy[self.states]).all())


def search_policies(
    model: ParametricMDP, objective: Objective, region: Region, given: Sequence[IntArray], solver: PointSolver
) -> list[Candidate]:
    """Return the given policies and those that a search found, the one with the best estimated bound first.

    The search asks for the best policy at points towards where the bound of the best one so far is attained, and goes
    on as long as it finds a better one. Of policies with equal bounds, one with the best value at the centre is first.
    """
    ball = ball_around(region, model.space.dimension)
    middle = moments(model.space)[0]
    centre = move_inside(model, ball.centre, middle)
    judge, worst_points = _judge(model, objective, region, centre), []
    candidates: list[Candidate] = []

    def consider(policy: IntArray) -> None:
        if not any(candidate.does(policy) for candidate in candidates):
            candidates.append(judge(policy))

    for policy in [*given, solver.policy_at(centre)]:
        consider(policy)
    best = _best_first(candidates)[0]
    for _ in range(_ROUNDS):
        worst = _worst_point(best.gradient, objective, region, ball)
        worst_points.append(worst)
        points = [worst, (worst + ball.centre) / 2, np.mean(worst_points, axis=0)]
        for point in points[: 2 + (len(worst_points) > 1)]:
            consider(solver.policy_at(move_inside(model, point, middle)))
        last, best = best, _best_first(candidates)[0]
        if not best.bound > last.bound + _WORTHWHILE * abs(last.value - last.bound):
            break
    return _best_first(candidates)


def _best_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates in the order of their bounds, where those as good as the best are in the order of values."""
    best = max(candidate.bound for candidate in candidates)
    tied = best - _EQUAL * max(1.0, abs(best)) if np.isfinite(best) else best

    def rank(candidate: Candidate) -> tuple[bool, float]:
        return (True, candidate.value) if candidate.bound >= tied else (False, candidate.bound)

    return sorted(candidates, key=rank, reverse=True)


def _judge(
    model: ParametricMDP, objective: Objective, region: Region, centre: FloatArray
) -> Callable[[IntArray], Candidate]:
    """Return a function that estimates the bound of a policy to first order, V(c) + min g·(v - c)."""
    sign = 1.0 if objective.direction == "max" else -1.0

    def judge(policy: IntArray) -> Candidate:
        value, gradient, states = find_gradient(model, policy, objective, centre)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return Candidate(policy, -np.inf, -np.inf, np.zeros_like(gradient), states)
        row = np.zeros((1, len(region.names)))
        row[0, : len(centre)] = sign * gradient
        bound = sign * value + float(region.minimise(row)[0]) - sign * float(gradient @ centre)
        return Candidate(policy, bound if np.isfinite(bound) else -np.inf, sign * value, gradient, states)

    return judge


def _worst_point(gradient: FloatArray, objective: Objective, region: Region, ball: Ball) -> FloatArray:
    """Return an estimate of the worst point, in the direction of that of the ball and as far as the region goes."""
    sign = 1.0 if objective.direction == "max" else -1.0
    step = ball.factor @ (ball.factor.T @ gradient)
    row = np.zeros((1, len(region.names)))
    row[0, : len(gradient)] = sign * gradient
    least = sign * float(region.minimise(row)[0])
    slope = float(gradient @ step)
    return ball.centre + (least - float(gradient @ ball.centre)) / slope * step if slope > 0 else ball.centre

"""Searches for policies worth certifying, which are best at points where the bound of another one is at its worst.

The bound on a policy is about its value at the centre of the region, moved along its gradient to where the region ends.
A policy that is a little worse at the centre may have a gradient in which the region is narrow, and so a better bound.
The search need not be trusted. A region holds for all policies at once, so that any may be certified.

If there is a rival, such as what is done today, all of this is about the difference to its value. Each policy is then
also mixed with the rival, which is followed wherever the policy does not pay at all points that were looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.confidence.space_moments import moments
from plumdp.model.graph import FloatArray, Graph, IntArray, read_only
from plumdp.model.objectives import Kind, Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, as_choices, policy_weights
from plumdp.region.ball import Ball, ball_around
from plumdp.region.shapes import Region
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.at_points import PointSolver, move_inside
from plumdp.solver.by_sweeps import relative_values
from plumdp.solver.coupled.gradient import find_gradient
from plumdp.solver.evaluate import evaluate
from plumdp.solver.problem import Problem, Solution
from plumdp.solver.reduce import reduce

_ROUNDS = 3
_EQUAL = 1e-6  # difference of bounds, relative if they are above one, below which policies are ranked by their values
_ROUNDING = 1e-9  # share of the largest gain that is none
_WORTHWHILE = 0.01  # share of the distance of value and bound by which a better policy must improve the bound


@dataclass(frozen=True, eq=False)
class Candidate:
    """A policy, and estimates of its value and bound with signs such that larger ones are better.

    If there is a rival, value, bound and gradient are those of the difference.
    """

    policy: npt.NDArray[Any]  # (n_states): choices; or, of a policy that draws, probabilities (n_choices)
    bound: float
    value: float  # at the centre of the region
    gradient: FloatArray  # (n_parameters)
    states: IntArray  # (n_reached): those that the policy reaches

    def does(self, policy: npt.NDArray[Any]) -> bool:
        """Return whether another policy does the same in all states that this one reaches."""
        if "f" in (self.policy.dtype.kind, policy.dtype.kind):
            return np.array_equal(self.policy, policy)
        return bool((policy[self.states] == self.policy[self.states]).all())


def search_policies(
    model: ParametricMDP,
    objective: Objective,
    region: Region,
    given: Sequence[IntArray],
    solver: PointSolver,
    *,
    rival: Policy | None = None,
) -> list[Candidate]:
    """Return the given policies and those that a search found, the one with the best estimated bound first.

    The search asks for the best policy at points towards where the bound of the best one so far is attained, and goes
    on as long as it finds a better one. Of policies with equal bounds, one with the best value at the centre is first.
    With a rival, bounds are those on the difference to its value, and mixtures with it are among the policies.
    """
    ball = ball_around(region, model.space.dimension)
    middle = moments(model.space)[0]
    centre = move_inside(model, ball.centre, middle)
    judge, worst_points = judge_of(model, objective, region, centre, rival), []
    propose = _proposing(model, objective, solver, rival)
    candidates: list[Candidate] = []

    def consider(policies: Sequence[npt.NDArray[Any]]) -> None:
        for policy in policies:
            if not any(candidate.does(policy) for candidate in candidates):
                candidates.append(judge(policy))

    consider([*given, *propose(centre)])
    best = _best_first(candidates)[0]
    for _ in range(_ROUNDS):
        worst = worst_point(best.gradient, objective, region, ball)
        worst_points.append(worst)
        points = [worst, (worst + ball.centre) / 2, np.mean(worst_points, axis=0)]
        for point in points[: 2 + (len(worst_points) > 1)]:
            consider(propose(move_inside(model, point, middle)))
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


def _proposing(
    model: ParametricMDP, objective: Objective, solver: PointSolver, rival: Policy | None
) -> Callable[[FloatArray], list[npt.NDArray[Any]]]:
    """Return a function from a point to the best policy there, and to its mixtures with the rival if there is one."""
    worths: list[FloatArray] = []  # (n_choices) at each point so far

    def propose(point: FloatArray) -> list[npt.NDArray[Any]]:
        policy = solver.policy_at(point)
        if rival is None or solver.last is None:
            return [policy]
        worths.append(_worths(model, objective, point, solver.last))
        return [policy, *_where_it_pays(model.graph, policy, rival, worths)]

    return propose


def worths_at(model: ParametricMDP, objective: Objective, point: FloatArray, policy: IntArray) -> FloatArray:
    """Return estimates of the worth of each choice at a point if a policy goes on, 0 where runs are over (n_choices).

    The sign is such that larger ones are better.
    """
    objective = reduce(Problem(model, objective)).problem.objective  # which is better in the same direction
    probability = read_only(model.expressions.evaluate(point[None, :])[:, 0].clip(0, 1))
    mdp = IntervalMDP(model.graph, model.expression, probability, probability)
    worths = _worths(model, objective, point, evaluate(mdp, policy, objective))
    is_over = objective.terms(model.graph).is_end[model.graph.state_of_choice()]
    return np.where(is_over, 0.0, worths)


def _worths(model: ParametricMDP, objective: Objective, point: FloatArray, best: Solution) -> FloatArray:
    """Return estimates of the worth of each choice at a point if the best policy goes on (n_choices).

    The sign is such that larger ones are better. Values of infinity have the worth zero, as nothing is known there.
    """
    graph, terms = model.graph, objective.terms(model.graph)
    sign = 1.0 if objective.direction == "max" else -1.0
    of_expressions = model.expressions.evaluate(point[None, :])[:, 0].clip(0, 1)
    probability = of_expressions[model.expression]
    reward = terms.reward if terms.learned is None else terms.learned.added_to(terms.reward, of_expressions, 0.0)
    if objective.kind is Kind.AVERAGE:
        values = relative_values(graph, best.policy, probability, reward)
    else:
        values = np.where(np.isfinite(best.lower), best.lower, 0.0)
    ahead = graph.sum_by_choice(probability * values[graph.successor])
    return np.asarray(sign * (reward + terms.discount * ahead))


def _where_it_pays(
    graph: Graph, policy: IntArray, rival: Policy, worths: Sequence[FloatArray]
) -> Iterator[npt.NDArray[Any]]:
    """Yield the policy in states where it is worth more than the rival at every point, and the rival elsewhere.

    Once these are all such states, and once those where it gains most.
    """
    weights, owner = policy_weights(graph, rival), graph.state_of_choice()
    gains = np.min([worth[policy] - np.bincount(owner, weights * worth, graph.n_states) for worth in worths], axis=0)
    for share in (_ROUNDING, 0.5):
        pays = gains > share * gains.max(initial=0.0)
        if pays.any():
            yield as_choices(graph, np.where(pays[owner], policy_weights(graph, policy), weights))


def judge_of(
    model: ParametricMDP, objective: Objective, region: Region, centre: FloatArray, rival: Policy | None = None
) -> Callable[[npt.NDArray[Any]], Candidate]:
    """Return a function that estimates the bound of a policy to first order, V(c) + min g·(v - c).

    With a rival, V and g are those of the difference, unless the value of the rival is infinite.
    """
    sign, d = 1.0 if objective.direction == "max" else -1.0, model.space.dimension
    base = (0.0, np.zeros(d)) if rival is None else find_gradient(model, rival, objective, centre)[:2]
    base = base if np.isfinite(base[0]) and np.isfinite(base[1]).all() else (0.0, np.zeros(d))

    def judge(policy: npt.NDArray[Any]) -> Candidate:
        value, gradient, states = find_gradient(model, policy, objective, centre)
        value, gradient = value - base[0], gradient - base[1]
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return Candidate(policy, -np.inf, -np.inf, np.zeros_like(gradient), states)
        row = np.zeros((1, len(region.names)))
        row[0, : len(centre)] = sign * gradient
        bound = sign * value + float(region.minimise(row)[0]) - sign * float(gradient @ centre)
        return Candidate(policy, bound if np.isfinite(bound) else -np.inf, sign * value, gradient, states)

    return judge


def worst_point(gradient: FloatArray, objective: Objective, region: Region, ball: Ball) -> FloatArray:
    """Return an estimate of the worst point, in the direction of that of the ball and as far as the region goes."""
    sign = 1.0 if objective.direction == "max" else -1.0
    step = ball.factor @ (ball.factor.T @ gradient)
    row = np.zeros((1, len(region.names)))
    row[0, : len(gradient)] = sign * gradient
    least = sign * float(region.minimise(row)[0])
    slope = float(gradient @ step)
    return ball.centre + (least - float(gradient @ ball.centre)) / slope * step if slope > 0 else ball.centre

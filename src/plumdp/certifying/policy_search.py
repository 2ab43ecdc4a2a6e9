"""Searches for policies worth certifying, which are best at points where the bound of another one is at its worst.

The bound on a policy is about its value at the centre of the region, moved along its gradient to where the region ends.
A policy that is a little worse at the centre may have a gradient in which the region is narrow, and so a better bound.
The search need not be trusted. A region holds for all policies at once, so that any may be certified.

If there is a rival, such as what is done today, all of this is about the difference to its value. Each policy is then
also mixed with the rival, which is followed wherever the policy does not pay at all points that were looked at.

With several objectives, to each policy belongs one point, that of its values. The best policies for weighted sums of
two are corners of the hull of these points, which are found from the outside in: the policy that is best for the
weights across the line through two corners is a corner between them, or there is none (Aneja and Nair 1979).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.base.rounding import UNDERFLOW
from plumdp.confidence.space_moments import moments
from plumdp.learning.learned import Learned
from plumdp.model.graph import FloatArray, Graph, IntArray
from plumdp.model.objectives import Kind, Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy, as_choices, policy_weights
from plumdp.model.question import Question
from plumdp.region.ball import Ball, ball_around
from plumdp.region.conflict import Conflict
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
    probability = model.expressions.chances(point)
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
    of_expressions = model.expressions.chances(point)
    probability = of_expressions[model.expression]
    reward = terms.at(of_expressions, 0.0)
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


_IMPROVEMENTS = 12  # improvements of a policy for one weighted sum


class Weighing:
    """Estimates of the values of policies in several objectives on one model, and policies for weighted sums."""

    def __init__(self, learned: Learned, questions: Sequence[Question]) -> None:
        region, self.model = learned.region, questions[0].model
        assert not isinstance(region, Conflict)
        centre = ball_around(region, self.model.space.dimension).centre
        self._point = move_inside(self.model, centre, moments(self.model.space)[0])
        self._objectives = [question.objective for question in questions]
        self._judges = [judge_of(self.model, each, region, self._point) for each in self._objectives]
        self.best = [learned.at_points(question).policy_at(self._point) for question in questions]
        self._judged: dict[bytes, list[Candidate]] = {}
        self._known: dict[bytes, list[FloatArray]] = {}

    def judged(self, policy: npt.NDArray[Any]) -> list[Candidate]:
        """Return the estimates of a policy's value and bound in each objective; larger is better."""
        key = policy.tobytes()
        if key not in self._judged:
            self._judged[key] = [judge(policy) for judge in self._judges]
        return self._judged[key]

    def values(self, policy: npt.NDArray[Any]) -> FloatArray:
        """Return the estimated values (n_objectives); larger is better."""
        return np.array([candidate.value for candidate in self.judged(policy)])

    @cached_property
    def units(self) -> FloatArray:
        """How much choices of one state differ at most in each objective (n_objectives), if a best policy goes on."""
        of_policies = [[_spread(self.model.graph, each) for each in self._worths(policy)] for policy in self.best]
        return np.asarray(np.maximum(np.max(of_policies, axis=0), 1e-12))

    def improved(self, policy: IntArray, weights: FloatArray) -> IntArray:
        """Return a policy that is as good as can be for a weighted sum of all objectives, by policy iteration."""
        before = {policy.tobytes()}
        for _ in range(_IMPROVEMENTS):
            total = sum(weight * each for weight, each in zip(weights, self._worths(policy), strict=True))
            policy = _best_choices(self.model.graph, np.asarray(total), policy)
            if policy.tobytes() in before:
                break
            before.add(policy.tobytes())
        return policy

    def corner(self, one: IntArray, other: IntArray, axes: FloatArray) -> IntArray | None:
        """Return a policy beyond the line through two others in a plane, or None if none is found.

        ``axes`` (2, n_objectives) has the weights of both sums. In the first the first policy is better, in the second
        the other one.
        """
        (x, y), (less, more) = (axes @ self.values(policy) for policy in (one, other))
        weights = (more - y) * axes[0] + (x - less) * axes[1]
        if not np.isfinite(weights).all() or more <= y or x <= less:
            return None
        found = self.improved(one, weights)
        values, line = weights @ self.values(found), weights @ self.values(one)
        return found if values > line + _ROUNDING * max(abs(line), float(np.abs(weights @ self.units))) else None

    def _worths(self, policy: IntArray) -> list[FloatArray]:
        """Return the value of each choice for each objective if a policy goes on."""
        key = policy.tobytes()
        if key not in self._known:
            self._known[key] = [worths_at(self.model, each, self._point, policy) for each in self._objectives]
        return self._known[key]


def require_same_model(questions: Sequence[Question]) -> None:
    """Refuse questions on different products, such as those of missions, as they have no policies in common."""
    other = next((each for each in questions if each.model is not questions[0].model), None)
    if other is not None:
        texts = f"{questions[0].text or 'the first objective'} and {other.text or 'another one'}"
        raise ModelError(f"{texts}: one remembers more than the state, so that they have no policies in common")


def _spread(graph: Graph, worths: FloatArray) -> float:
    """Return the largest difference between choices of one state."""
    first = graph.first_choice[:-1]
    return float((np.maximum.reduceat(worths, first) - np.minimum.reduceat(worths, first)).max())


def _best_choices(graph: Graph, worths: FloatArray, policy: IntArray) -> IntArray:
    """Return the best choice of each state, that of a policy if no other is better by more than rounding."""
    order = np.lexsort((-worths, graph.state_of_choice()))
    best = order[graph.first_choice[:-1]]
    gains = worths[best] - worths[policy]
    return np.where(gains > _ROUNDING * max(_spread(graph, worths), UNDERFLOW), best, policy).astype(np.int32)

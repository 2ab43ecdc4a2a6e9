"""The reductions that bring a question to the form that solvers and provers take, each once, with its inverse.

``REDUCTIONS`` are for all who walk along the chain of a policy: provers, estimates, advice and writers. They leave a
policy that draws nothing, or none if the best is asked, and a value that is no complement. ``TO_CHAIN`` makes the rows
of the policy the model itself. ``TO_GAME`` is for the solvers against nature, which may then drop transitions.

Three more reductions are taken where what they need is at hand. ``model.memory.count_steps`` makes a number of steps
part of the state, so that policies may count them. ``coupled.by_cycles`` makes an average in the long run two sums
until a state is reached again. ``PolicyChain.with_coins`` makes a reward that depends on parameters a transition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from plumdp.base.rounding import ULP
from plumdp.model.graph import FloatArray, read_only
from plumdp.solver.draws import draw
from plumdp.solver.known_support import known_support
from plumdp.solver.problem import MDP, Problem, Solution, Step

Bounds = TypeVar("Bounds", float, FloatArray)


def complement(problem: Problem[MDP]) -> Step[MDP] | None:
    """Return the problem of reaching the target, optimised in the other direction, if it is never to be reached."""
    flipped, start = problem.objective.flipped(), problem.start
    if flipped is None:
        return None
    if start is not None:
        start = _with_bounds(start, *one_minus(start.lower, start.upper))
    return Step(replace(problem, objective=flipped, start=start), is_complement=True)


def given(problem: Problem[MDP]) -> Step[MDP] | None:
    """Return the problem on the model that has only the rows of a given policy."""
    if problem.policy is None:
        return None
    chosen, mdp, start = problem.policy, problem.mdp, problem.start
    graph, kept = mdp.graph.take(chosen)
    expression, policy = read_only(mdp.expression[kept]), read_only(chosen.astype(np.int32))

    def carry(other: Any) -> Any:
        is_same = other.expression is mdp.expression
        return replace(other, graph=graph, expression=expression if is_same else read_only(other.expression[kept]))

    simpler = Problem(
        carry(mdp),
        problem.objective.restricted_to(chosen),
        nature=problem.nature,
        start=None if start is None else replace(start, policy=graph.first_choice[:-1]),
    )
    return Step(simpler, policy=lambda _: policy, carry=carry)


Reduction = Callable[[Problem[Any]], Step[Any] | None]
REDUCTIONS: tuple[Reduction, ...] = (draw, complement)
TO_CHAIN: tuple[Reduction, ...] = (*REDUCTIONS, given)
TO_GAME: tuple[Reduction, ...] = (*TO_CHAIN, known_support)


@dataclass(frozen=True, eq=False)
class Reduced(Generic[MDP]):
    """A problem to which no reduction applies, and the steps that led to it."""

    problem: Problem[MDP]
    steps: tuple[Step[MDP], ...] = ()

    @property
    def sign(self) -> float:
        """The change of the value that was asked, +1 or -1, if that of the problem grows by one."""
        return -1.0 if sum(step.is_complement for step in self.steps) % 2 else 1.0

    @property
    def keeps_states(self) -> bool:
        """Whether the problem has the states of the one that was asked."""
        return all(step.state is None for step in self.steps)

    def like(self, other: Any) -> Any:
        """Return another model of the rows that were asked about, such as a relaxation, as one of the problem."""
        for step in self.steps:
            other = other if step.carry is None else step.carry(other)
        return other

    def value(self, value: float) -> float:
        """Return the value that was asked, given that of the problem, in one state and without proof."""
        return value if self.sign > 0 else 1 - value

    def bounds(self, lower: Bounds, upper: Bounds) -> tuple[Bounds, Bounds]:
        """Return bounds on values that were asked, rounded outward, given those of the same states of the problem.

        Bounds that were asked give bounds on the values of the problem, too.
        """
        return (lower, upper) if self.sign > 0 else one_minus(lower, upper)

    def invert(self, solution: Solution) -> Solution:
        """Return the solution of what was asked, given that of the problem."""
        for step in reversed(self.steps):
            if step.is_complement:
                solution = _with_bounds(solution, *one_minus(solution.lower, solution.upper))
            elif step.state is not None:
                solution = _with_bounds(solution, solution.lower[step.state], solution.upper[step.state])
            if step.policy is not None:
                solution = replace(solution, policy=read_only(step.policy(solution.policy)))
        return solution


def reduce(problem: Problem[MDP], reductions: Sequence[Reduction] = REDUCTIONS) -> Reduced[MDP]:
    """Return the problem after all reductions that apply, of which the first one is taken each time."""
    steps: list[Step[MDP]] = []
    while True:
        found = (reduction(problem) for reduction in reductions)
        step = next((each for each in found if each is not None), None)
        if step is None:
            return Reduced(problem, tuple(steps))
        steps.append(step)
        problem = step.problem


def one_minus(lower: Bounds, upper: Bounds) -> tuple[Bounds, Bounds]:
    """Return bounds on one minus probabilities, rounded outward except for zero and one, which are exact."""
    low, high = (
        np.clip(1 - bounds + np.where((bounds > 0) & (bounds < 1), outward, 0.0), 0, 1)
        for bounds, outward in ((np.asarray(upper), -ULP), (np.asarray(lower), ULP))
    )
    return (low, high) if isinstance(lower, np.ndarray) else (float(low), float(high))


def _with_bounds(solution: Solution, lower: FloatArray, upper: FloatArray) -> Solution:
    return replace(solution, lower=read_only(lower), upper=read_only(upper))

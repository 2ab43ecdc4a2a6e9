"""Finds the directions in which a region should be narrow, the gradients of the values of best policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from plumdp.confidence.bets import Direction, Directions
from plumdp.confidence.space_moments import moments
from plumdp.model.graph import FloatArray, IntArray
from plumdp.model.memory import no_choices
from plumdp.model.objectives import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import Question, may_narrow, narrowed
from plumdp.solver.at_points import PointSolver, move_inside
from plumdp.solver.coupled.gradient import policy_gradient

Solvers: TypeAlias = dict[tuple[ParametricMDP, Objective], PointSolver]


def solver_of(question: Question, solvers: Solvers) -> PointSolver:
    """Return the solver of a question, and add it to the solvers if it is new."""
    key = (question.model, question.objective)
    return solvers.setdefault(key, PointSolver(*key))


def narrowed_at(question: Question, point: FloatArray, solver: PointSolver) -> Question:
    """Return a question whose product is too large on the choices that are best at a point, and others unchanged."""
    if not may_narrow(question):
        return question
    keep = no_choices(question.model, question.objective)
    solver.keep_best(solver.at(point), keep)
    return narrowed(question, keep)


def value_directions(questions: Sequence[Question], solvers: Solvers) -> Directions:
    """Return a function from a point to the gradients of the values of the best policies there, for all questions.

    A policy that belongs to a question takes the place of the best one, and a rival's gradient is subtracted.
    """

    def directions(point: FloatArray) -> list[Direction]:
        gradients = []
        for question in questions:
            inside = move_inside(question.model, point, moments(question.model.space)[0])
            best: IntArray | None = None
            if question.policy is None:
                question = narrowed_at(question, inside, solver_of(question, solvers))
                best = solver_of(question, solvers).policy_at(inside)
            model, objective = question.model, question.objective
            valued = best if best is not None else question.policy
            assert valued is not None
            _, gradient = policy_gradient(model, valued, objective, inside)
            text = f"the value of {objective.text or 'the objective'}"
            if question.against is not None:
                gradient = gradient - policy_gradient(model, question.against, objective, inside)[1]
                text = f"a difference in {text}"
            gradients.append(Direction(gradient, best, text, has_policies=question.has_policies))
        return gradients

    return directions


@dataclass(frozen=True, eq=False)
class DirectionsAnywhere:
    """A function from points to directions that are the same at a point, whichever points were asked for before.

    Of policies that tie, the one found depends on where a solver starts, so that none remembers a point here.
    """

    questions: Sequence[Question]
    solvers: Solvers

    def __call__(self, point: FloatArray) -> Sequence[Direction]:
        """Return the gradients of the values of the best policies at a point."""
        afresh = {asked: solver.without_memory() for asked, solver in self.solvers.items()}
        return value_directions(self.questions, afresh)(point)

"""Defines ``Learned``, the parameters that are consistent with the data, as a confidence set and a region.

The region should be narrow in some directions, which are found here: the gradients of the values of best policies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from plumdp.base.error_budget import ErrorBudget
from plumdp.base.errors import takes_first
from plumdp.base.vocabulary import Assumption, parts_in
from plumdp.confidence.bets import Direction, Directions
from plumdp.confidence.likelihood import best_point, best_point_of_space
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.confidence.sets import Evidence, ModelCache
from plumdp.confidence.space_moments import moments
from plumdp.data.counts import TransitionCounts
from plumdp.data.quality import DataQuality
from plumdp.fit.fit_record import ModelFit, visible_error
from plumdp.learning.assumptions import assumptions_of_data, assumptions_of_model
from plumdp.learning.methods import Sets
from plumdp.model.graph import FloatArray, IntArray
from plumdp.model.memory import no_choices
from plumdp.model.objectives import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import Question, may_narrow, narrowed
from plumdp.model.text import html_table, number_of, one_line
from plumdp.region.conflict import Conflict
from plumdp.region.find import moved_into
from plumdp.region.shapes import Region
from plumdp.result.printing import outward
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


_SHOWN = 20  # parameters in a notebook


@dataclass(frozen=True, eq=False)
class Learned:
    """The parameters that are consistent with the data, as a confidence set and a region for all objectives.

    Everything that ``conclude`` says about any objective rests on this one region, and holds jointly with probability
    at least 1 - ``error``. The region is a ``Conflict`` if the data reject the model.
    """

    model: ParametricMDP
    counts: TransitionCounts
    error: float
    bounds: Evidence
    region: Region | Conflict
    seconds: dict[str, float]
    solvers: Solvers = field(default_factory=dict)  # of questions that were pre-specified or asked
    rests_on: tuple[str, ...] = ()  # assumptions of the confidence set besides model and sampling, in words
    questions: tuple[Question, ...] = ()  # those that were pre-specified; certificates for all of them hold jointly
    fit: ModelFit | None = None  # whether the model explains the data, if that was tested
    model_tolerance: float = 0.0  # how far rows may be off from those at one point of the space, in total variation
    cache: ModelCache | None = field(default=None, repr=False)  # parts that depend on the model alone
    options: Mapping[str, Any] = field(default_factory=dict)  # see ``plain_options``

    @property
    def conflict(self) -> Conflict | None:
        """The reason why no parameters explain the data, or None if some do."""
        return self.region if isinstance(self.region, Conflict) else None

    @property
    def budget(self) -> ErrorBudget:
        """How the error is divided."""
        return self.bounds.budget

    @property
    def kind(self) -> Sets:
        """The kind of the confidence set, by its name in ``SETS``."""
        return self.bounds.kind

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions that everything rests on which follows from it, in words."""
        return self.assumptions_about(rewards=True)

    def assumptions_about(self, *, rewards: bool) -> tuple[str, ...]:
        """Return the assumptions that values of rewards, or else probabilities, rest on, in words."""
        of_model = assumptions_of_model(
            self.model.counted,
            model_tolerance=self.model_tolerance,
            is_contradicted=self.conflict is not None,
            about_rewards=rewards,
        )
        if self.conflict is not None and not self.conflict.leaves_bounds:
            of_model = ()  # nothing is claimed but that rows changed, or that runs are not as assumed
        return (*of_model, *self.assumptions_of_test) if self.assumptions_of_test else ()

    @property
    def assumptions_of_test(self) -> tuple[str, ...]:
        """Those of the assumptions that a test of the model rests on: all but what it tests."""
        return assumptions_of_data(self.model.counted, self.counts, self.bounds.guarantee, self.rests_on)

    def premises(self) -> list[tuple[str, str]]:
        """Return the data, with rows that were left out, and all assumptions: labels and texts."""
        data = str(DataQuality(self.counts.total, self.counts.report))
        return [("data", data), *(("assuming", Assumption.of(each)) for each in self.assumptions)]

    @property
    def visible_error(self) -> float | None:
        """About how far off a row must be for the test of the model to show it, if there is one that compares rows."""
        return None if self.fit is None or self.model.counted.is_table else visible_error(self.counts, self.error)

    @property
    def parameters(self) -> dict[str, tuple[float, float]]:
        """The bounds of each parameter, by the box around the region; none if the data reject the model."""
        if isinstance(self.region, Conflict):
            return {}
        ends = zip(self.region.names, self.region.lower.tolist(), self.region.upper.tolist(), strict=True)
        # later coordinates are products of parameters
        return {name: (low, high) for name, low, high in list(ends)[: self.model.space.dimension]}

    @property
    def policies(self) -> list[IntArray]:
        """The policies whose values the pilot chose directions for, in which the region is narrow."""
        return [direction.policy for direction in self.bounds.directions if direction.policy is not None]

    def with_points(self, model: ParametricMDP) -> Region | None:
        """Return the region if a model has values at its points: after a contradiction and on disk there are none."""
        return None if isinstance(self.region, Conflict) or model.no_points else self.region

    def at_points(self, question: Question) -> PointSolver:
        """Return the solver of a question at points and against nature, which is kept for later questions."""
        return solver_of(question, self.solvers)

    @cached_property
    def table(self) -> LikelihoodTable:
        """The likelihood of the model as a table of affine outcomes."""
        return (self.cache or ModelCache(self.model.counted)).table

    @property
    def bet_table(self) -> LikelihoodTable:
        """The table that bets are placed on, in which outcomes of rows with hidden paths are parameters."""
        paths = self.table.paths
        return self.table if paths is None or not self.budget["paths"] else paths.bets

    @cached_property
    def best_point(self) -> FloatArray:
        """The point at which the data of all rows are most likely, also outside of the space (n_parameters)."""
        if self.bounds.estimate is not None and not self.table.left_out and self.table.paths is None:
            return self.bounds.estimate
        return best_point(self.model.counted, self.counts, table=self.table, near=self._middles)

    @cached_property
    def estimate(self) -> FloatArray:
        """The point at which the data are most likely, moved to where all rows have probabilities (n_parameters)."""
        return self._inside(self.best_point)

    @cached_property
    def shown_estimate(self) -> FloatArray | None:
        """The most likely point of the region, up to rounding, or None (n_parameters).

        If the data reject the model there is no region. Then it is the estimate for a model that is right.
        """
        region, inner = self.region, moments(self.model.space)[0]
        if isinstance(region, Conflict):
            return self.estimate
        point = moved_into(region, self.estimate, inner=inner)
        if point is None:  # the maximum of the likelihood may lie outside of the space
            best = best_point_of_space(self.model.counted, self.counts, [self.estimate, *self._middles])
            point = moved_into(region, self._inside(best), inner=inner)
        return point

    @property
    def likely_point(self) -> FloatArray:
        """The estimate that is shown, or about the middle of the region if there is none."""
        if self.shown_estimate is not None:
            return self.shown_estimate
        return self._inside(self._middles[0])

    def _inside(self, point: FloatArray) -> FloatArray:
        return move_inside(self.model, point, moments(self.model.space)[0])

    @property
    def _middles(self) -> list[FloatArray]:
        """The middle of the box around the region, if there is one."""
        region, d = self.region, self.model.space.dimension
        return [] if isinstance(region, Conflict) else [((region.lower + region.upper) / 2)[:d]]

    def __repr__(self) -> str:
        confidence = f"confidence {1 - self.error:.10g}"
        return one_line(self, number_of(self.counts.total, "step"), confidence, self.bounds.method, repr(self.region))

    def _repr_html_(self) -> str:
        facts = [
            ("confidence", f"{1 - self.error:.10g}"),
            ("confidence set", self.bounds.method),
        ]
        if self.conflict is not None:
            facts += [("rejected", text) for text in parts_in(str(self.conflict))]
        boxes = self.parameters
        facts += [
            (name, f"{outward(low, -1)} to {outward(high, 1)}") for name, (low, high) in [*boxes.items()][:_SHOWN]
        ]
        facts += [("…", number_of(len(boxes) - _SHOWN, "more parameter"))] if len(boxes) > _SHOWN else []
        if self.fit is not None:
            facts.append(("model test", f"p = {outward(self.fit.p_value, 1, 2)}"))
        return html_table([*facts, *self.premises()])


of_learned = takes_first(Learned, "learn(model, counts)")
"""Lets a verb that rests on something learned refuse anything else, with the line to write."""

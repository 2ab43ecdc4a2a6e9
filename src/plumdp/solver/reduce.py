"""The reductions that bring a question to the form that solvers and provers take, each once, with its inverse.

``REDUCTIONS`` are for all who walk along the chain of a policy: provers, estimates, advice and writers. They leave a
policy that draws nothing, or none if the best is asked, and a value that is no complement. ``TO_CHAIN`` makes the rows
of the policy the model itself, and is for the solvers against nature.

Three more reductions are taken where what they need is at hand. ``model.memory.count_steps`` makes a number of steps
part of the state, so that policies may count them. ``coupled.by_cycles`` makes an average in the long run two sums
until a state is reached again. ``PolicyChain.with_coins`` makes a reward that depends on parameters a transition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np

from plumdp.base.combinations import Trait, refuse
from plumdp.base.rounding import ULP
from plumdp.model.expressions.polynomial import polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, Graph, Indices, IntArray, read_only
from plumdp.model.objectives import Kind
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import likeliest
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.problem import MDP, Problem, Reduction, Solution


def draw(problem: Problem[MDP]) -> Reduction[MDP] | None:
    """Return the problem in which a policy that draws does so in steps of their own.

    A row of the policy is a mixture of rows of its choices. Here each state has one row, with the exact probabilities
    of the draws, and each choice is a state with its own row. So all rows are as affine in the parameters as before,
    nature may do the same at a choice, and the value in a state is that of the mixture, at every point.
    """
    weights, graph = problem.policy, problem.mdp.graph
    if weights is None or weights.dtype.kind != "f":
        return None
    refuse({Trait.DRAWS, problem.objective.kind is Kind.DISCOUNTED and Trait.DISCOUNT})
    draws, chosen = draw_first(graph, weights), likeliest(graph, weights)
    simpler = replace(
        problem,
        mdp=draws.carry(problem.mdp),
        objective=problem.objective.stretched(graph),
        policy=draws.graph.first_choice[:-1],  # there is nothing to choose any more
        start=None,
    )
    return Reduction(simpler, slice(graph.n_states), policy=lambda _: chosen, carry=draws.carry)


@dataclass(frozen=True, eq=False)
class DrawSteps:
    """The graph on which a policy draws first: states as before, then one for each choice, all with a single row."""

    graph: Graph
    constant: IntArray  # (n_draws): index into probability, for the first transitions, which are the draws
    probability: tuple[Fraction, ...]  # distinct, exact

    def carry(self, mdp: IntervalMDP | ParametricMDP) -> Any:
        """Return a model with the draws."""
        return self.model(mdp) if isinstance(mdp, ParametricMDP) else self.intervals(mdp)

    def intervals(self, imdp: IntervalMDP) -> IntervalMDP:
        """Return an interval model with the draws, whose probabilities are known and belong to no row of the model."""
        nearest = np.array([share.numerator / share.denominator for share in self.probability])
        lower, upper = (read_only(np.concatenate([bounds, nearest])) for bounds in (imdp.lower, imdp.upper))
        region = None if imdp.region is None else imdp.region.with_constants(nearest)
        expression = self._expression(imdp.expression, len(imdp.lower))
        return replace(imdp, graph=self.graph, expression=expression, lower=lower, upper=upper, region=region)

    def model(self, model: ParametricMDP) -> ParametricMDP:
        """Return a parametric model with the draws, for the solver alone, without labels, rewards and counted rows."""
        table, n, of_rows = model.expressions, len(model.expressions.polynomials), np.asarray(model.expression)
        constants = map(polynomial, self.probability)
        more = ExpressionTable.build([*table.polynomials, *constants], table.names)
        free_last = np.where(of_rows < n, of_rows, of_rows + len(self.probability))
        return replace(
            model,
            graph=self.graph,
            expressions=replace(more, n_free=table.n_free),
            expression=self._expression(free_last, n),
            labels={},
            rewards={},
            lift=None,
        )

    def _expression(self, of_rows: Indices, first: int) -> IntArray:
        """Return the expression of each transition, given that of the first draw and those of rows."""
        return read_only(np.concatenate([first + self.constant, of_rows]).astype(np.int32))


def draw_first(graph: Graph, weights: FloatArray) -> DrawSteps:
    """Return the graph on which a policy draws first, where nothing reaches choices that it never takes."""
    taken = np.flatnonzero(weights)
    shares = exact_shares(graph, weights, taken)
    numbers = {share: number for number, share in enumerate(dict.fromkeys(shares))}
    constant = np.array([numbers[share] for share in shares], dtype=np.int32)
    n_states, n_choices = graph.n_states, graph.n_choices
    first_draw = np.searchsorted(graph.state_of_choice()[taken], np.arange(n_states))
    first = np.concatenate([first_draw, graph.first_transition + len(taken)])
    split = Graph(
        read_only(np.arange(n_states + n_choices + 1, dtype=np.int32)),
        read_only(first.astype(np.int32)),
        read_only(np.concatenate([n_states + taken, graph.successor]).astype(np.int32)),
        graph.initial_state,
        {name: np.concatenate([values, values[graph.state_of_choice()]]) for name, values in graph.states.items()},
        read_only(np.zeros(n_states + n_choices, dtype=np.int32)),
        ("",),
    )
    return DrawSteps(split, read_only(constant), tuple(numbers))


def exact_shares(graph: Graph, weights: FloatArray, taken: Indices) -> list[Fraction]:
    """Return the exact probabilities of the choices that are taken: floats divided by their sum in the state.

    Floats such as 0.1 need not sum to one, and rows must, as the bounds on values rest on it.
    """
    shares: list[Fraction] = []
    by_floats: dict[tuple[float, ...], list[Fraction]] = {}
    of_states = np.split(weights[taken], np.searchsorted(graph.state_of_choice()[taken], np.arange(1, graph.n_states)))
    for floats in map(tuple, map(np.ndarray.tolist, of_states)):
        if floats not in by_floats:
            total = sum(map(Fraction, floats), Fraction())
            by_floats[floats] = [Fraction(each) / total for each in floats]
        shares += by_floats[floats]
    return shares


Bounds = TypeVar("Bounds", float, FloatArray)


def complement(problem: Problem[MDP]) -> Reduction[MDP] | None:
    """Return the problem of reaching the target, optimised in the other direction, if it is never to be reached."""
    flipped, start = problem.objective.flipped(), problem.start
    if flipped is None:
        return None
    if start is not None:
        start = _with_bounds(start, *one_minus(start.lower, start.upper))
    return Reduction(replace(problem, objective=flipped, start=start), is_complement=True)


def given(problem: Problem[MDP]) -> Reduction[MDP] | None:
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
    return Reduction(simpler, policy=lambda _: policy, carry=carry)


Reducer = Callable[[Problem[Any]], Reduction[Any] | None]
REDUCTIONS: tuple[Reducer, ...] = (draw, complement)
TO_CHAIN: tuple[Reducer, ...] = (*REDUCTIONS, given)


@dataclass(frozen=True, eq=False)
class Reduced(Generic[MDP]):
    """A problem to which no reduction applies, and the steps that led to it."""

    problem: Problem[MDP]
    steps: tuple[Reduction[MDP], ...] = ()

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
        """Return the solution of the question, given that of the problem."""
        for step in reversed(self.steps):
            if step.is_complement:
                solution = _with_bounds(solution, *one_minus(solution.lower, solution.upper))
            elif step.state is not None:
                solution = _with_bounds(solution, solution.lower[step.state], solution.upper[step.state])
            if step.policy is not None:
                solution = replace(solution, policy=read_only(step.policy(solution.policy)))
        return solution


def reduce(problem: Problem[MDP], reductions: Sequence[Reducer] = REDUCTIONS) -> Reduced[MDP]:
    """Return the problem after all reductions that apply; the first that applies is taken each time."""
    steps: list[Reduction[MDP]] = []
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

"""The reduction for a policy that draws its choices, to a model in which the draw is a step before the choice.

A row of the policy is a mixture of rows of its choices. In the reduced model, each state has one row, with the exact
probabilities of the draws, and each choice is a state with its own row. So all rows are as affine in the parameters as
before, what nature may do at a choice is the same, and the value in a state is that of the mixture, at every point.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.expressions.polynomial import polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import FloatArray, Graph, Indices, IntArray, read_only
from plumdp.model.objective import Kind
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import likeliest
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.problem import MDP, Problem, Step


def draw(problem: Problem[MDP]) -> Step[MDP] | None:
    """Return the problem in which a policy that draws does so in steps of their own."""
    weights, graph = problem.policy, problem.mdp.graph
    if weights is None or weights.dtype.kind != "f":
        return None
    if problem.objective.kind is Kind.DISCOUNTED:
        raise ModelError(
            "a policy that draws its choices cannot be evaluated with a discount; give one choice per state, ask for "
            "rewards within a number of steps, such as C<=100, or let every step of the model end the run with the "
            "probability of one minus the discount, and ask for all rewards, C"
        )
    draws, chosen = draw_first(graph, weights), likeliest(graph, weights)
    simpler = replace(
        problem,
        mdp=draws.carry(problem.mdp),
        objective=problem.objective.stretched(graph),
        policy=draws.graph.first_choice[:-1],  # there is nothing to choose any more
        start=None,
    )
    return Step(simpler, slice(graph.n_states), policy=lambda _: chosen, carry=draws.carry)


@dataclass(frozen=True, eq=False)
class Draws:
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


def draw_first(graph: Graph, weights: FloatArray) -> Draws:
    """Return the graph on which a policy draws first; choices that it never takes are reached by nothing."""
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
    return Draws(split, read_only(constant), tuple(numbers))


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

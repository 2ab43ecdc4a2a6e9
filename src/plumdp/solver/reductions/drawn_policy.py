"""The reduction for a policy that draws its choices, to a model in which the draw is a step before the choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.graph import FloatArray, Graph, IntArray, read_only
from plumdp.model.objective import Kind
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.problem import Inverse, Problem
from plumdp.solver.solution import Solution


def drawn_policy(problem: Problem, weights: FloatArray) -> tuple[Problem, Inverse]:
    """Return the problem of one policy, given by the probability of each choice, and the inverse."""
    imdp, objective = problem.imdp, problem.objective
    if objective.kind is Kind.DISCOUNTED:
        raise ModelError(
            "a policy that draws its choices cannot be evaluated with a discount; give one choice per state"
        )
    n_states, likeliest = imdp.graph.n_states, _likeliest(imdp.graph, weights)

    def invert(solution: Solution) -> Solution:
        return replace(solution, lower=solution.lower[:n_states], upper=solution.upper[:n_states], policy=likeliest)

    return replace(problem, imdp=_split(imdp, weights), objective=objective.stretched(imdp.graph)), invert


def _split(imdp: IntervalMDP, weights: FloatArray) -> IntervalMDP:
    """Return the model in which each state draws one of its choices, which become states with one row each."""
    graph, n_states, n_choices = imdp.graph, imdp.graph.n_states, imdp.graph.n_choices
    draws = np.arange(n_states, n_states + n_choices, dtype=np.int32)
    first = np.concatenate([graph.first_choice[:-1], graph.first_transition + n_choices])
    states = {name: np.concatenate([values, values[graph.state_of_choice()]]) for name, values in graph.states.items()}
    n_expressions = len(imdp.lower)
    # states draw first, then the drawn choice moves on: two steps for one
    split = Graph(
        read_only(np.arange(n_states + n_choices + 1, dtype=np.int32)),
        read_only(first.astype(np.int32)),
        read_only(np.concatenate([draws, graph.successor])),
        graph.initial_state,
        states,
        read_only(np.zeros(n_states + n_choices, dtype=np.int32)),
        ("",),
    )
    expression = np.concatenate([n_expressions + np.arange(n_choices), imdp.expression]).astype(np.int32)
    lower, upper = np.concatenate([imdp.lower, weights]), np.concatenate([imdp.upper, weights])
    region = None if imdp.region is None else imdp.region.with_constants(weights)
    return replace(
        imdp,
        graph=split,
        expression=read_only(expression),
        lower=read_only(lower),
        upper=read_only(upper),
        region=region,
    )


def _likeliest(graph: Graph, weights: FloatArray) -> IntArray:
    order = np.lexsort((-weights, graph.state_of_choice()))
    return read_only(order[graph.first_choice[:-1]].astype(np.int32))

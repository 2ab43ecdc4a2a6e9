"""Bounds on the value of a policy in a table, by bets on its chain, and estimates of it.

If the policy draws its actions, the draw is a step of known numbers before the row of its choice. So each state and
action that it may take is a node with an unknown row of its own, and each state is a node whose row is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.error_budget import equal_parts
from plumdp.base.rounding import ULP
from plumdp.model.elsewhere import places_elsewhere
from plumdp.model.graph import FloatArray, Graph, read_only
from plumdp.model.objective import Kind, Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import Question
from plumdp.solver.coupled.bounds import Proof
from plumdp.solver.coupled.chain import policy_chain
from plumdp.solver.problem import Problem
from plumdp.solver.reduce import Reduced, reduce
from plumdp.tables.bracket import BetMoments, Errors, TableBounds, table_bounds
from plumdp.tables.chain import KNOWN, TableChain, regular_equations, table_chain


@dataclass(frozen=True, eq=False)
class ChainOfPolicy:
    """The chain of a policy, and how its values are those that were asked in the states of a graph."""

    table: TableChain
    reduced: Reduced[ParametricMDP]
    graph: Graph

    def start(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds (n) on the values of open nodes, given those (n_states) on the values that were asked.

        What a choice that was drawn is worth is bounded by its own reward, and the least and the largest value where it
        may lead.
        """
        lower, upper = self.reduced.bounds(lower, upper)
        graph, problem, state = self.graph, self.reduced.problem, self.table.chain.state[: self.table.n]
        if not self.reduced.keeps_states:
            own, starts = (
                problem.objective.terms(problem.mdp.graph).reward[graph.n_states :],
                graph.first_transition[:-1],
            )
            low = np.minimum.reduceat(lower[graph.successor], starts)
            high = np.maximum.reduceat(upper[graph.successor], starts)
            outward = 2 * ULP * (np.abs(own) + np.maximum(np.abs(low), np.abs(high)))
            lower, upper = np.concatenate([lower, own + low - outward]), np.concatenate([upper, own + high + outward])
        return lower[state], upper[state]

    def estimate(self, seen: FloatArray) -> float | None:
        """Return about the value that was asked, by smoothed frequencies, or None if these have none."""
        table, probability = self.table, self.table.frequencies(seen)
        equations = regular_equations(table, probability)
        if equations is None:
            return None
        values = equations.values()
        return self.reduced.value(float(values[table.chain.initial]))


def chain_of_policy(
    model: ParametricMDP, policy: npt.NDArray[Any], objective: Objective, *, side: int = -1
) -> ChainOfPolicy | str:
    """Return the chain of a policy, or in words why there is none.

    Runs that leave the table are worth the least (side -1) or the most (side 1) that they may be, so that the values of
    the chain are constants.
    """
    if objective.n_steps is not None:
        return "the number of steps is bounded: there are no bets on such values yet"
    if objective.kind is Kind.AVERAGE:
        return "there are no bets on averages in the long run yet"
    nature, reduced = places_elsewhere(model), reduce(Problem(model, objective, policy))
    problem = reduced.problem
    assert problem.policy is not None
    chain = policy_chain(problem.mdp, problem.policy, problem.objective)
    if isinstance(chain, str):
        return chain
    if chain.n_open == 0:
        return "the value is known"
    table = table_chain(problem.mdp, chain)
    if len(nature):
        is_hers = np.isin(table.place, nature)
        chosen = table.place == nature[0 if side < 0 else 1]
        place, number = np.where(is_hers, KNOWN, table.place), np.where(is_hers, chosen, table.number)
        table = replace(table, place=read_only(place), number=read_only(number.astype(np.float64)))
    return ChainOfPolicy(table, reduced, model.graph)


def value_bounds(
    moments: BetMoments,
    errors: Errors,
    model: ParametricMDP,
    policy: npt.NDArray[Any],
    objective: Objective,
    lower: FloatArray,
    upper: FloatArray,
) -> Proof | str:
    """Return bounds on the value of a policy by bets, or in words why there are none.

    ``lower`` and ``upper`` (n_states) are bounds on its values that hold jointly with the bets. If runs may leave the
    table, the ends are those of two chains.
    """
    may_leave = len(places_elsewhere(model)) > 0
    if may_leave:  # with bets on the rows of each chain
        errors = replace(errors, rows=equal_parts(errors.rows, 2), ball=equal_parts(errors.ball, 2))
    found = list[TableBounds]()
    for side in (-1, 1) if may_leave else (-1,):
        chain = chain_of_policy(model, policy, objective, side=side)
        if isinstance(chain, str):
            return chain
        bounds = table_bounds(chain.table, moments, errors, *chain.start(lower, upper))
        if isinstance(bounds, str):
            return bounds
        found.append(bounds)
        reduced = chain.reduced
    start, low, high = model.graph.initial_state, found[0].low, found[-1].high
    first, last = (each.distance + 2 * ULP * (abs(each.estimate) + each.distance) for each in (found[0], found[-1]))
    least, most = reduced.bounds(float(lower[start]), float(upper[start]))
    # each end is the better one of the bets, the rows and the intervals
    least = max([least, found[0].estimate - first, *([] if low is None else [low.value])])
    most = min([most, found[-1].estimate + last, *([] if high is None else [high.value])])
    ends = [end for end in (low, high) if end is not None]
    least, most = reduced.bounds(float(least), float(most))
    return Proof(
        least,
        most,
        float(sum(end.statistics for end in ends)),
        float(sum(end.curvature + end.mismatch for end in ends)),
        0.0,
        "bets on temporal differences",
    )


def estimate_value(question: Question, policy: npt.NDArray[Any], seen: FloatArray) -> float:
    """Return about the value of a policy by smoothed frequencies, such that a larger one is better.

    It is infinite if these frequencies have none.
    """
    objective = question.objective
    reduced = reduce(Problem(question.model, objective)).problem.objective
    side = -1 if reduced.direction == "max" else 1  # the worst outside of the table
    chain = chain_of_policy(question.model, policy, objective, side=side)
    value = None if isinstance(chain, str) else chain.estimate(seen)
    return np.inf if value is None else value if objective.direction == "max" else -value

"""Bounds on the value of a policy in a table, by bets on its chain, and estimates of it.

If the policy draws its actions, the draw is a step of known numbers before the row of its choice. So each state and
action that it may take is a node with an unknown row of its own, and each state is a node whose row is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.error_budget import equal_parts
from plumdp.base.rounding import ULP
from plumdp.model.graph import FloatArray, Graph, Indices, read_only
from plumdp.model.objective import Kind, Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import policy_weights
from plumdp.model.question import Question
from plumdp.model.unmodelled_exits import places_elsewhere
from plumdp.solver.coupled.bounds import Proof
from plumdp.solver.coupled.chain import policy_chain
from plumdp.solver.problem import Problem
from plumdp.solver.reduce import Reduced, reduce
from plumdp.tables.bracket import BetMoments, Errors, TableBounds, table_bounds
from plumdp.tables.chain import KNOWN, OpenChain, regular_equations, table_chain
from plumdp.tables.side_by_side import side_by_side

_HERS = (-(2**62), -(2**62) - 1)  # labels of what nature chooses, of either chain


@dataclass(frozen=True, eq=False)
class ChainOfPolicy:
    """The chain of a policy, and how its values are those that were asked in the states of a graph."""

    table: OpenChain
    reduced: Reduced[ParametricMDP]
    graph: Graph

    def labels(self, numbers: dict[Fraction, int], own: int) -> Indices:
        """Return a number for the probability of each transition: the same if that is the same, whatever the table is.

        ``numbers`` are those of known probabilities so far. What nature chooses where runs leave has that of ``own``.
        """
        polynomials = self.reduced.problem.mdp.expressions.polynomials
        known = [numbers.setdefault(Fraction(f.constant), len(numbers)) for f in polynomials]
        expression, place = np.asarray(self.table.chain.expression), self.table.place
        of_number = np.array([*(-1 - each for each in known), own])[np.minimum(expression, len(known))]
        return np.where(place == KNOWN, of_number, place)

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


Bounded: TypeAlias = tuple[npt.NDArray[Any], FloatArray, FloatArray]
"""A policy, and bounds (n_states) on its values from below and above that hold jointly with the bets."""


def value_bounds(
    moments: BetMoments, errors: Errors, model: ParametricMDP, objective: Objective, *policies: Bounded
) -> Proof | str:
    """Return bounds by bets on the value of a policy, or of one less another, or in words why there are none.

    If runs may leave the table, the ends are those of two chains, each with bets on its rows, and the lower end of a
    difference has the first policy at its worst outside, and the second at its best.
    """
    sides = (-1, 1) if len(places_elsewhere(model)) else (-1,)
    errors = replace(errors, rows=equal_parts(errors.rows, len(sides)), ball=equal_parts(errors.ball, len(sides)))
    is_drawn = any(policy.dtype.kind == "f" for policy, *_ in policies)  # then the nodes of both are choices, too
    found = list[TableBounds]()
    for side in sides:
        chains, starts = list[ChainOfPolicy](), list[tuple[FloatArray, FloatArray]]()
        for (policy, *values), end in zip(policies, (side, -side), strict=False):
            written = policy_weights(model.graph, policy) if is_drawn else policy
            chain = chain_of_policy(model, written, objective, side=end)
            if isinstance(chain, str):
                return chain
            chains.append(chain)
            starts.append(chain.start(*values))
        table, (lower, upper) = chains[0].table, starts[0]
        if len(chains) > 1:
            numbers: dict[Fraction, int] = {}
            # what nature chooses is never the same: it is the least for one policy, and the most for the other
            labels = [each.labels(numbers, own) for each, own in zip(chains, _HERS, strict=True)]
            table, own = side_by_side(table, chains[1].table, *labels)
            lower, upper = (np.append(each, more[own]) for each, more in zip(*starts, strict=True))
        if not table.start.any():
            return Proof(0.0, 0.0, 0.0, 0.0, 0.0, "the same chain")
        bounds = table_bounds(table, moments, errors, lower, upper)
        if isinstance(bounds, str):
            return bounds
        found.append(bounds)
    low, high = found[0].low, found[-1].high
    first, last = (each.distance + 2 * ULP * (each.size + each.distance) for each in (found[0], found[-1]))
    least = max([found[0].estimate - first, *([] if low is None else [low.value])])
    most = min([found[-1].estimate + last, *([] if high is None else [high.value])])
    reduced, ends = chains[0].reduced, [end for end in (low, high) if end is not None]
    if len(chains) > 1:
        least, most = (least, most) if reduced.sign > 0 else (-most, -least)
    else:  # each end is the better one of the bets, the rows and the intervals
        least, most = reduced.bounds(max(least, float(table.start @ lower)), min(most, float(table.start @ upper)))
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

"""Bounds on the value of a policy in a table, by bets, and estimates of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.error_budget import equal_parts
from plumdp.base.rounding import ULP
from plumdp.model.elsewhere import places_elsewhere
from plumdp.model.graph import FloatArray
from plumdp.model.objective import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import Question
from plumdp.solver.coupled.bounds import Proof
from plumdp.tables.bounds import Errors, Moments, TableBounds, table_bounds
from plumdp.tables.equations import regular_equations, values_of
from plumdp.tables.policies import chain_of_policy


def value_bounds(
    moments: Moments,
    errors: Errors,
    model: ParametricMDP,
    policy: npt.NDArray[Any],
    objective: Objective,
    lower: FloatArray,
    upper: FloatArray,
) -> Proof | str:
    """Return bounds on the value of a policy by bets, or in words why there are none.

    ``lower`` and ``upper`` (n_states) are bounds on its values that hold jointly with the bets.
    """
    flipped = objective.flipped()
    if flipped is not None:
        other = value_bounds(moments, errors, model, policy, flipped, 1 - upper - ULP, 1 - lower + ULP)
        if isinstance(other, str):
            return other
        return replace(other, lower=1 - other.upper - ULP, upper=1 - other.lower + ULP)
    may_leave = len(places_elsewhere(model)) > 0
    if may_leave:  # two chains, with bets on their rows each
        errors = replace(errors, rows=equal_parts(errors.rows, 2), ball=equal_parts(errors.ball, 2))
    found = []
    for side in (-1, 1) if may_leave else (-1,):
        bounded = chain_of_policy(model, policy, objective, lower, upper, side=side)
        if isinstance(bounded, str):
            return bounded
        bounds = table_bounds(bounded.table, moments, errors, bounded.lower, bounded.upper)
        if isinstance(bounds, str):
            return bounds
        found.append(bounds)
    start = model.graph.initial_state
    return _as_bounds(found[0], found[-1], float(lower[start]), float(upper[start]))


def _as_bounds(least: TableBounds, most: TableBounds, lower: float, upper: float) -> Proof:
    """Return the better of the bracket by bets and of bounds by intervals and rows, each end by itself.

    If runs may leave the table, the ends are those of two chains.
    """
    low, high = least.low, most.high
    first, last = (each.distance + 2 * ULP * (abs(each.estimate) + each.distance) for each in (least, most))  # outward
    ends = [
        max([lower, least.estimate - first, *([] if low is None else [low.value])]),
        min([upper, most.estimate + last, *([] if high is None else [high.value])]),
    ]
    statistics = sum(end.statistics for end in (low, high) if end is not None)
    remainder = sum(end.curvature + end.mismatch for end in (low, high) if end is not None)
    return Proof(
        float(ends[0]), float(ends[1]), float(statistics), float(remainder), 0.0, "bets on temporal differences"
    )


def estimate_value(question: Question, policy: npt.NDArray[Any], seen: FloatArray) -> float:
    """Return about the value of a policy by smoothed frequencies, such that a larger one is better.

    It is infinite if these frequencies have none.
    """
    objective, nothing = question.objective, np.zeros(question.model.graph.n_states)
    flipped = objective.flipped()
    side = -1 if (flipped or objective).direction == "max" else 1  # the worst outside of the table
    bounded = chain_of_policy(question.model, policy, flipped or objective, nothing, nothing, side=side)
    if isinstance(bounded, str):
        return np.inf
    table = bounded.table
    probability = table.frequencies(seen)
    equations = regular_equations(table, probability)
    if equations is None:
        return np.inf
    value = float(values_of(table, equations, probability, table.chain.reward)[table.chain.initial])
    value = value if flipped is None else 1 - value
    return value if objective.direction == "max" else -value

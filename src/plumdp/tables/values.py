"""Bounds on the value of a policy in a table, by bets, and estimates of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.rounding import ULP
from plumdp.model.graph import FloatArray
from plumdp.model.objective import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import Question
from plumdp.solver.coupled.bounds import CoupledBounds
from plumdp.tables.bounds import Errors, Moments, TableBounds, table_bounds
from plumdp.tables.equations import equations_of, values_of
from plumdp.tables.policies import chain_of_policy


def value_bounds(
    moments: Moments,
    errors: Errors,
    model: ParametricMDP,
    policy: npt.NDArray[Any],
    objective: Objective,
    lower: FloatArray,
    upper: FloatArray,
) -> CoupledBounds | str:
    """Return bounds on the value of a policy by bets, or in words why there are none.

    ``lower`` and ``upper`` (n_states) are bounds on its values that hold jointly with the bets.
    """
    flipped = objective.flipped()
    if flipped is not None:
        other = value_bounds(moments, errors, model, policy, flipped, 1 - upper - ULP, 1 - lower + ULP)
        if isinstance(other, str):
            return other
        return replace(other, lower=1 - other.upper - ULP, upper=1 - other.lower + ULP)
    bounded = chain_of_policy(model, policy, objective, lower, upper)
    if isinstance(bounded, str):
        return bounded
    table = bounded.table
    found = table_bounds(table, moments.padded(table.n_places), errors, bounded.lower, bounded.upper)
    if isinstance(found, str):
        return found
    start = model.graph.initial_state
    return _as_bounds(found, float(lower[start]), float(upper[start]))


def _as_bounds(found: TableBounds, lower: float, upper: float) -> CoupledBounds:
    """Return the better of the bracket by bets and of bounds by intervals and rows, each end by itself."""
    low, high = found.low, found.high
    distance = found.distance + 2 * ULP * (abs(found.estimate) + found.distance)  # outward
    ends = [
        max([lower, found.estimate - distance, *([] if low is None else [low.value])]),
        min([upper, found.estimate + distance, *([] if high is None else [high.value])]),
    ]
    statistics = sum(end.statistics for end in (low, high) if end is not None)
    remainder = sum(end.curvature + end.mismatch for end in (low, high) if end is not None)
    return CoupledBounds(
        float(ends[0]), float(ends[1]), float(statistics), float(remainder), 0.0, "bets on temporal differences"
    )


def estimate_value(question: Question, policy: npt.NDArray[Any], seen: FloatArray) -> float:
    """Return about the value of a policy by smoothed frequencies, such that a larger one is better.

    It is infinite if these frequencies have none.
    """
    objective, nothing = question.objective, np.zeros(question.model.graph.n_states)
    flipped = objective.flipped()
    bounded = chain_of_policy(question.model, policy, flipped or objective, nothing, nothing)
    if isinstance(bounded, str):
        return np.inf
    table = bounded.table
    probability = table.frequencies(np.concatenate([seen, np.zeros(table.n_places - len(seen))]))
    equations = equations_of(table, probability)
    if equations is None:
        return np.inf
    value = float(values_of(table, equations, probability, table.chain.reward)[table.chain.initial])
    value = value if flipped is None else 1 - value
    return value if objective.direction == "max" else -value

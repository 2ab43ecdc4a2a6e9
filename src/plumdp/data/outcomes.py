"""Outcomes of whole runs as shares of their range, for bets on their mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

import numpy as np

from plumdp.base.errors import DataError, ModelError, Option
from plumdp.base.rounding import FloatArray, down, up
from plumdp.data.returns import (
    Returns,
    choices_of,
    ends_of,
    range_of,
    reach_returns,
    require_start,
    reward_returns,
    taken_somewhere,
)
from plumdp.data.whole_runs import WholeRuns
from plumdp.model.graph import BoolArray, Graph
from plumdp.model.objective import Kind, Objective, Reach, Reward
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy
from plumdp.model.unmodelled_exits import elsewhere_of

Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Bounds on what each run earned, between 0 and 1 where the range of all returns begins and ends."""

    lower: FloatArray  # (n_runs): rounded down, and the least that it may have earned if it is not complete
    upper: FloatArray  # (n_runs): likewise from above
    is_complete: BoolArray  # (n_runs)
    within: Range

    def value(self, share: float, side: int) -> float:
        """Return the number at a share of the range, rounded down or up as the side says."""
        low, high = self.within
        rounded = (down if side < 0 else up)(np.array(low + share * (high - low)), np.array(abs(low) + abs(high)))
        return min(max(float(rounded), low), high)

    def difference(self, share: float, side: int) -> float:
        """Return the difference of two numbers whose shares differ by this, rounded as the side says."""
        low, high = self.within
        return float((down if side < 0 else up)(np.array(share * (high - low)), np.array(abs(low) + abs(high))))


def outcomes_of(
    objective: Objective,
    model: ParametricMDP,
    runs: WholeRuns,
    graph: Graph,
    policy: Policy,
    *,
    return_range: Range | None = None,
) -> Outcomes:
    """Return the outcomes of runs from the initial state that follow a policy of a graph until they are decided."""
    require_start(model, runs)
    within = range_of_returns(objective, model, graph, policy, return_range)
    ends = ends_of(objective, runs, model.graph, elsewhere_of(model))
    choice = choices_of(graph, policy, model, runs, ends)
    if isinstance(objective, Reward):
        may_take = taken_somewhere(graph, policy, model)
        returns = reward_returns(objective, runs, ends, choice, model.graph, may_take)
    else:
        assert isinstance(objective, Reach)
        returns = reach_returns(objective, runs, ends)
    _require_within(returns, runs, within, was_given=return_range is not None)
    lower, upper = scaled(returns.lower, within, down), scaled(returns.upper, within, up)
    return Outcomes(lower, upper, returns.is_complete, within)


def range_of_returns(
    objective: Objective, model: ParametricMDP, graph: Graph, policy: Policy, given: Range | None
) -> Range:
    """Return the range of returns: the given one, or that which the model allows."""
    if objective.kind is Kind.AVERAGE:
        raise ModelError("an average in the long run is not the mean of what single runs earn: runs cannot tell it")
    if given is None:
        within = range_of(objective, model.graph, taken_somewhere(graph, policy, model))
        if not isfinite(within[0]) or not isfinite(within[1]):
            raise DataError(
                "sums of rewards have no largest value here: say between which numbers all returns lie, with ",
                Option("return_range"),
            )
        return (within[0], within[1]) if within[0] < within[1] else (within[0] - 0.5, within[1] + 0.5)
    if not isinstance(objective, Reward):
        raise DataError(Option("return_range"), ": returns of probabilities are 0 or 1; leave it out")
    low, high = given
    if not (isfinite(low) and isfinite(high) and low < high):
        raise DataError(Option("return_range"), ": give two numbers, the smaller one first")
    return float(low), float(high)


def scaled(values: FloatArray, within: Range, rounded: Callable[..., FloatArray]) -> FloatArray:
    """Return values between 0 and 1 in place of those in a range, rounded outward."""
    low, high = within
    clipped = np.clip(values, low, high)
    if within == (0.0, 1.0):
        return clipped
    width = high - low
    return np.asarray(np.clip(rounded((clipped - low) / width, (np.abs(clipped) + abs(low)) / width), 0.0, 1.0))


def _require_within(returns: Returns, runs: WholeRuns, within: Range, *, was_given: bool) -> None:
    is_outside = (returns.lower > within[1]) | (returns.upper < within[0])
    if not is_outside.any():
        return
    run = int(np.argmax(is_outside))
    value = returns.lower[run] if returns.lower[run] > within[1] else returns.upper[run]
    problem = "is infinite" if np.isinf(value) else f"is {value:.6g}"
    place = f"run {runs.names[run]}: its return {problem}, which is not between {within[0]:g} and {within[1]:g}"
    raise DataError(
        place, "; give a range that holds for all runs, " if was_given else "; say ", Option("return_range")
    )

"""Decides what can be done with a model whose rows are in memory, on disk (``explore_batch``), or simply unknown.

A stored model is solved level by level, within intervals. Methods that need the values of all states at points of the
parameters need its rows in memory. A table of unknown rows has no parameters, and intervals and bets of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from plumdp.base.vocabulary import Relaxation
from plumdp.confidence.untied import untied_bounds
from plumdp.data.counts import TransitionCounts
from plumdp.model.graph import read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import lifted_transitions
from plumdp.relaxation.intervals import IntervalMDP


@dataclass(frozen=True)
class Storage:
    """The methods that a model can be used with."""

    no_points: str  # why there are no values at points of the parameters, for estimates, if there are none
    relaxations: tuple[Relaxation, ...]  # from loose to tight
    only: str  # why there are no others
    untied: Callable[[ParametricMDP, TransitionCounts, float], IntervalMDP]  # bounds by the graph alone, at an error
    untied_set: str  # the name of these bounds in certificates

    @property
    def has_points(self) -> bool:
        """Whether there are values at points of the parameters."""
        return not self.no_points


def storage_of(model: ParametricMDP) -> Storage:
    """Return the methods that a model can be used with."""
    if model.counted.is_table:
        return TABLE if model.counted.source is None else replace(TABLE, only=_SEEN)
    return IN_MEMORY if model.graph.levels is None else ON_DISK


def _within_bounds(model: ParametricMDP, counts: TransitionCounts, error: float) -> IntervalMDP:
    """Return an interval for each transition that was counted, at all transitions of the model that stand for it."""
    lower, upper = untied_bounds(counts, error=error)
    expression = lifted_transitions(model)
    if model.counted.learned_rewards:  # their expressions keep their numbers, and may be anything
        n = len(model.expressions)
        lower, upper, expression = np.append(np.zeros(n), lower), np.append(np.ones(n), upper), n + expression
    return IntervalMDP(model.graph, expression.astype(np.int32), read_only(lower), read_only(upper))


def _anything(model: ParametricMDP, counts: TransitionCounts, error: float) -> IntervalMDP:
    """Return the interval [0, 1] for each transition, as data say next to nothing about each of so many."""
    first = np.broadcast_to(np.int32(0), model.graph.n_transitions)
    return IntervalMDP(model.graph, first, np.zeros(1), np.ones(1))


_ALL: tuple[Relaxation, ...] = get_args(Relaxation)
_ANYTHING = "none: transitions of a stored model may have any probability"
_ONE_EACH = "beta-binomial, one for each transition"
_ON_DISK = "a model that is stored on disk is solved within intervals"
_NO_POINTS = "in a table of unknown rows there are bets on values, and none on differences"
_UNKNOWN = "the rows of this model are unknown, without parameters; choose 'interval' or 'coupled'"
_SEEN = "the rows of this model are seen as unknown; choose 'interval' or 'coupled', or the confidence set 'likelihood'"


IN_MEMORY = Storage("", _ALL, "", _within_bounds, _ONE_EACH)
ON_DISK = Storage(_ON_DISK, _ALL[:3], f"{_ON_DISK}; choose 'expression'", _anything, _ANYTHING)
TABLE = Storage(_NO_POINTS, ("interval", "coupled"), _UNKNOWN, _within_bounds, _ONE_EACH)

"""Where the rows of a model are, and what follows from it: in memory, or on disk (``explore_batch``).

A stored model is solved level by level, within intervals. Whatever looks at the values of all states at points of the
parameters needs its rows in memory. This is the only place in which that is decided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from plumdp.confidence.untied import untied_bounds
from plumdp.data.counts import TransitionCounts
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import lifted_transitions
from plumdp.relaxation.intervals import IntervalMDP


@dataclass(frozen=True)
class Storage:
    """What can be done with a model."""

    has_points: bool  # values are found at points of the parameters: coupled bounds, estimates, explanations
    untied: Callable[[ParametricMDP, TransitionCounts, float], IntervalMDP]  # what the graph alone allows, at an error
    untied_set: str  # how certificates call what that draws around the data


def storage_of(model: ParametricMDP) -> Storage:
    """Return what can be done with a model."""
    return IN_MEMORY if model.graph.levels is None else ON_DISK


def _within_bounds(model: ParametricMDP, counts: TransitionCounts, error: float) -> IntervalMDP:
    """Return an interval for each transition that was counted, wherever it is in the model."""
    lower, upper = untied_bounds(counts, error=error)
    return IntervalMDP(model.graph, lifted_transitions(model).astype(np.int32), lower, upper)


def _anything(model: ParametricMDP, counts: TransitionCounts, error: float) -> IntervalMDP:
    """Return all probabilities for each transition: next to nothing of so many was seen."""
    same = np.broadcast_to(np.int32(0), model.graph.n_transitions)
    return IntervalMDP(model.graph, same, np.zeros(1), np.ones(1))


IN_MEMORY = Storage(True, _within_bounds, "beta-binomial, one for each transition")
ON_DISK = Storage(False, _anything, "none: transitions of a stored model may have any probability")

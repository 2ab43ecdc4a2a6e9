"""Today's practice: the policy that takes each action as often as data do."""

from __future__ import annotations

import numpy as np

from plumdp.data.counts import CountArray
from plumdp.model.graph import FloatArray
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import normalised


def practice_of(counts: CountArray, model: ParametricMDP) -> FloatArray:
    """Return the policy that takes each action as often as counts (n_transitions) do in the same state (n_choices).

    States without data have all actions alike. On a product with memory, it is as often as in the counted state.
    """
    return normalised(model.graph, taken_choices(counts, model))


def taken_choices(counts: CountArray, model: ParametricMDP) -> FloatArray:
    """Return how often each choice of a model was taken, or the counted one that it is lifted from (n_choices)."""
    taken = model.counted.graph.sum_by_choice(counts.astype(np.float64))
    return np.asarray(taken if model.lift is None else taken[np.asarray(model.lift.choice)])

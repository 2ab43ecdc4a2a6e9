"""Policies: the number of a choice for each state, or a probability for each choice. Checked where they enter."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.errors import ModelError
from plumdp.model.graph import FloatArray, Graph, Indices, read_only

_ULP = 2.0**-52


def check_policy(graph: Graph, policy: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return the policy as an array: whole numbers (n_states) are choices, floats (n_choices) are probabilities."""
    given = np.asarray(policy)
    if given.dtype.kind in "iu" and given.shape == (graph.n_states,):
        return _checked_choices(graph, given)
    if given.dtype.kind == "f" and given.shape == (graph.n_choices,):
        return _checked_weights(graph, given)
    raise ModelError(
        f"a policy is {graph.n_states} choice numbers (one per state) or {graph.n_choices} probabilities "
        f"(one per choice), not {given.dtype} of shape {given.shape}"
    )


def policy_weights(graph: Graph, policy: npt.ArrayLike) -> FloatArray:
    """Return the probability with which a policy takes each choice (n_choices)."""
    checked = check_policy(graph, policy)
    if checked.dtype.kind == "f":
        return read_only(checked.astype(np.float64))
    weights = np.zeros(graph.n_choices)
    weights[checked] = 1.0
    return read_only(weights)


def _checked_choices(graph: Graph, policy: Indices) -> Indices:
    wrong = (policy < graph.first_choice[:-1]) | (policy >= graph.first_choice[1:])
    if wrong.any():
        state = int(np.argmax(wrong))
        first, last = graph.first_choice[state], graph.first_choice[state + 1] - 1
        raise ModelError(
            f"state ({graph.describe_state(state)}): choice {policy[state]} is not one of its own, {first} to {last}"
        )
    return policy


def _checked_weights(graph: Graph, weights: FloatArray) -> FloatArray:
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ModelError("the probabilities of a policy must be at least 0")
    sums = np.bincount(graph.state_of_choice(), weights, graph.n_states)
    wrong = np.abs(sums - 1) > 4 * _ULP * np.diff(graph.first_choice)
    if wrong.any():
        state = int(np.argmax(wrong))
        raise ModelError(
            f"state ({graph.describe_state(state)}): the policy's probabilities sum to {sums[state]:.17g}, not 1"
        )
    return weights

"""Policies as choices for states, by name or by number, or as probabilities of choices, with the checks on entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError, Option
from plumdp.model.graph import FloatArray, Graph, Indices, IntArray, Memory, read_only
from plumdp.model.named_policy import FORMS, checked_weights, is_frame, policy_by_name
from plumdp.model.text import listing


class ChosenActions(Protocol):
    """A policy that knows its graph, such as that of a certificate."""

    @property
    def graph(self) -> Graph:
        """The graph that the choices are numbered in."""

    @property
    def choice(self) -> IntArray:
        """The number of the choice in each state (n_states)."""

    @property
    def weights(self) -> FloatArray | None:
        """The probability of each choice (n_choices), if the policy draws; otherwise None."""


Policy: TypeAlias = npt.ArrayLike | ChosenActions | Callable[..., Any] | Mapping[Any, Any]
"""A ``PolicyTable``, such as a certificate has; what ``PolicyTable.from_actions`` takes without ``states``: a name,
a function of the state, a dict or a table with names of actions; "uniform", which draws all actions alike; the number
of a choice for each state; or a probability for each choice. Every function takes all of these."""

UNIFORM = "uniform"


def check_policy(graph: Graph, policy: Policy) -> npt.NDArray[Any]:
    """Return the policy as an array that is checked.

    Whole numbers (n_states) are choices, and floats (n_choices) are probabilities.
    """
    if hasattr(policy, "choice") and hasattr(policy, "graph") and hasattr(policy, "weights"):
        if graph.memory is not None and policy.graph.memory is None:
            _require_same_graph(graph.memory.graph, policy.graph)
            return _with_memory(graph, graph.memory, policy.choice, policy.weights)
        _require_no_memory(graph, policy.graph.memory)
        _require_same_graph(graph, policy.graph)
        policy = policy.choice if policy.weights is None else policy.weights
    elif isinstance(policy, str):
        return _by_word(graph, policy)
    elif _is_named(policy):
        return policy_by_name(graph, policy)
    given = _as_array(policy)
    if given.dtype.kind in "iu" and given.shape == (graph.n_states,):
        return _checked_choices(graph, given)
    if given.dtype.kind == "f" and given.shape == (graph.n_choices,):
        return checked_weights(graph, given)
    if given.dtype.kind in "UO":
        raise ModelError(
            f"a policy is {FORMS}; for a list of names there is PolicyTable.from_actions, which asks for the states"
        )
    raise ModelError(
        f"a policy is {graph.n_states} choice numbers (one per state) or {graph.n_choices} probabilities "
        f"(one per choice), not {given.dtype} of shape {given.shape}"
    )


def memory_of(*policies: Policy) -> Graph | bool:
    """Return the graph of the first policy whose actions depend on more than the state, or False if none do."""
    graphs = (getattr(policy, "graph", None) for policy in policies)
    return next((graph for graph in graphs if isinstance(graph, Graph) and graph.memory is not None), False)


def likeliest(graph: Graph, weights: FloatArray) -> IntArray:
    """Return the choice of each state that has the largest probability, the first of equal ones."""
    order = np.lexsort((-weights, graph.state_of_choice()))
    return read_only(order[graph.first_choice[:-1]].astype(np.int32))


def as_choices(graph: Graph, checked: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return choices instead of probabilities if no action is drawn, so that both are one policy to the last bit."""
    if checked.dtype.kind != "f":
        return checked
    chosen = likeliest(graph, checked)
    return checked if (checked[chosen] < 1).any() else chosen


def policy_weights(graph: Graph, policy: Policy) -> FloatArray:
    """Return the probability with which a policy takes each choice (n_choices)."""
    checked = check_policy(graph, policy)
    if checked.dtype.kind == "f":
        return read_only(checked.astype(np.float64))
    weights = np.zeros(graph.n_choices)
    weights[checked] = 1.0
    return read_only(weights)


def normalised(graph: Graph, amounts: FloatArray) -> FloatArray:
    """Return a policy (n_choices) that takes choices in proportion to amounts, or uniformly where all are zero."""
    owner = graph.state_of_choice()
    total = np.bincount(owner, amounts, graph.n_states)
    even = 1.0 / np.diff(graph.first_choice)
    weights = np.where(total[owner] > 0, amounts / np.where(total > 0, total, 1.0)[owner], even[owner])
    return np.asarray(weights / np.bincount(owner, weights, graph.n_states)[owner])


def _by_word(graph: Graph, word: str) -> npt.NDArray[Any]:
    if word == UNIFORM:
        return read_only(1 / np.diff(graph.first_choice)[graph.state_of_choice()])
    if word not in graph.action_names:
        names = listing([f"{name!r}" for name in graph.action_names])
        raise ModelError(Option("policy", word), f": choose {UNIFORM!r} or one action, {names}; or give {FORMS}")
    return policy_by_name(graph, word)


def _with_memory(graph: Graph, memory: Memory, choice: IntArray, weights: FloatArray | None) -> npt.NDArray[Any]:
    """Return a policy without memory as one that does the same whatever it remembers."""
    if weights is not None:
        return checked_weights(graph, weights[memory.choice])
    taken = np.flatnonzero(memory.choice == choice[memory.state][graph.state_of_choice()])
    if len(taken) < graph.n_states:  # a product of few choices
        raise ModelError(
            "the product with all actions is too large, and the policy without memory takes other actions than it has: "
            "value it alone, with memory=False"
        )
    return read_only(taken.astype(np.int32))


def _is_named(policy: Any) -> bool:
    """Return whether a policy names its actions, as a function, a dict or a table does, and an array does not."""
    if isinstance(policy, np.ndarray | list | tuple | str):
        return False
    return callable(policy) or isinstance(policy, Mapping) or is_frame(policy)


def _as_array(policy: Any) -> npt.NDArray[Any]:
    try:
        return np.asarray(policy)
    except ValueError:  # NumPy's own, of lists in lists of unequal lengths
        raise ModelError("a policy is one list of numbers; this one has lists of unequal lengths inside") from None


def _require_no_memory(graph: Graph, memory: Memory | None) -> None:
    """Refuse a policy with memory where a policy of the model without memory is needed."""
    if memory is not None and memory.graph.fingerprint == graph.fingerprint:
        names = ", ".join(memory.names)
        raise ModelError(
            f"the policy remembers {names}, which the states here do not have: give a policy without memory, or the "
            "product that it is for, ask(property, model).model"
        )


def _require_same_graph(graph: Graph, other: Graph) -> None:
    if graph is not other and graph.fingerprint != other.fingerprint:
        raise ModelError(
            f"the policy belongs to another model: that one has {other.n_states:,} states, {other.n_choices:,} choices "
            f"and the fingerprint {other.fingerprint[:8]}, this one {graph.n_states:,}, {graph.n_choices:,} and "
            f"{graph.fingerprint[:8]}"
        )


def _checked_choices(graph: Graph, policy: Indices) -> Indices:
    wrong = (policy < graph.first_choice[:-1]) | (policy >= graph.first_choice[1:])
    if wrong.any():
        state = int(np.argmax(wrong))
        first, last = graph.first_choice[state], graph.first_choice[state + 1] - 1
        may_be_actions = policy.max() < np.diff(graph.first_choice).max()
        hint = "; for numbers of actions, give a function of the state that returns a name" if may_be_actions else ""
        where = f"state ({graph.describe_state(state)})"
        raise ModelError(f"{where}: choice {policy[state]} is not one of its own, {first} to {last}{hint}")
    return policy

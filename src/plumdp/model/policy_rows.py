"""Rows that name a state and an action, perhaps with a probability, turned into a policy; each fault names its row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, ModelError
from plumdp.base.rounding import ULP
from plumdp.model.graph import FloatArray, Graph, Indices, IntArray
from plumdp.model.text import number_of

POLICY = "the policy"  # what messages begin with, if it is not a file
_SHOWN = 3  # states in a message


def policy_of_rows(
    source: str, graph: Graph, state: Indices, names: npt.NDArray[Any], shares: Sequence[Any] | None = None
) -> npt.NDArray[Any]:
    """Return the choice in every state (n_states), or the probability of every choice (n_choices) if rows have shares.

    Only states with one choice may be left out, and none may be given twice.
    """
    return policy_of_choices(source, graph, state, choices_of_rows(source, graph, state, names), shares)


def policy_of_choices(
    source: str, graph: Graph, state: Indices, choice: Indices, shares: Sequence[Any] | None = None
) -> npt.NDArray[Any]:
    """Return the same policy from rows that have the numbers of their choices."""
    if shares is None:
        return _complete(source, graph, state, choice)
    return _weights(source, graph, state, choice, shares)


def action_column(graph: Graph) -> str:
    """Return the name of the column for the action in a table of states."""
    return "action" if "action" not in graph.states else "chosen_action"


def share_column(graph: Graph) -> str:
    """Return the name of the column for the probability of an action in a table of states."""
    return "probability" if "probability" not in graph.states else "chosen_probability"


def choices_of_rows(source: str, graph: Graph, state: Indices, names: npt.NDArray[Any]) -> Indices:
    """Return the choice of each row by its state and the name of its action.

    None is the only action of the state.
    """
    is_only = np.diff(graph.first_choice)[state] == 1
    is_none = np.fromiter((name is None for name in names.tolist()), np.bool_, len(names))
    choice = np.where(is_only & is_none, graph.first_choice[state], _find_choices(graph, state, names))
    if (choice < 0).any():
        row = int(np.argmax(choice < 0))
        number = "" if source == POLICY else f"row {row + 1}, "
        where = f"{source}: {number}state ({graph.describe_state(int(state[row]))})"
        raise DataError(f"{where}: {_no_such_action(names_of(graph, int(state[row])), names[row])}")
    return choice


def _complete(source: str, graph: Graph, state: Indices, choice: Indices) -> IntArray:
    """Return the choice in every state.

    Only states with one choice may be left out, and none may be given twice.
    """
    times = np.bincount(state, minlength=graph.n_states)
    if times.max(initial=0) > 1:
        repeated = np.flatnonzero(times > 1)
        word = "state" if len(repeated) == 1 else "states"
        raise DataError(f"{source} has several rows for the {word} {few(repeated, graph.describe_state)}")
    _require_all(source, graph, times)
    chosen: IntArray = graph.first_choice[:-1].copy()
    chosen[state] = choice
    return chosen


def _weights(source: str, graph: Graph, state: Indices, choice: Indices, shares: Sequence[Any]) -> FloatArray:
    """Return the probability of every choice: 0 for an action without a row, and 1 for the only action of a state."""
    again = np.flatnonzero(np.bincount(choice, minlength=graph.n_choices) > 1)
    if len(again):
        raise DataError(f"{source}: {graph.describe_choice(int(again[0]))}: it has several rows; give one")
    times = np.bincount(state, minlength=graph.n_states)
    weights = np.zeros(graph.n_choices)
    weights[choice] = [_share(source, number, share) for number, share in enumerate(shares, 1)]
    weights[graph.first_choice[:-1][times == 0]] = 1.0
    try:
        checked_weights(graph, weights)
    except ModelError as error:
        raise DataError(f"{source}: {error}") from None
    _require_all(source, graph, times)
    return weights


def _share(source: str, row: int, given: Any) -> float:
    try:
        share = float(given)
    except (TypeError, ValueError):
        share = -1.0
    if not 0 <= share <= 1:
        where = "" if source == POLICY else f"row {row}: "
        raise DataError(f"{source}: {where}{given!r} is not a probability")
    return share


def checked_weights(graph: Graph, weights: FloatArray) -> FloatArray:
    """Return the probabilities of choices (n_choices), or refuse those that are not such of a policy."""
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ModelError("the probabilities of a policy must be at least 0")
    sums = np.bincount(graph.state_of_choice(), weights, graph.n_states)
    wrong = np.abs(sums - 1) > 4 * ULP * np.diff(graph.first_choice)
    if wrong.any():
        state = int(np.argmax(wrong))
        raise ModelError(
            f"state ({graph.describe_state(state)}): the policy's probabilities sum to {sums[state]:.17g}, not 1"
        )
    return weights


def _require_all(source: str, graph: Graph, times: Indices) -> None:
    """Refuse rows that leave out a state with several actions, given how many rows each state has."""
    lacking = np.flatnonzero((times == 0) & (np.diff(graph.first_choice) > 1))
    if len(lacking):
        many, shown = number_of(len(lacking), "state"), few(lacking, graph.describe_state)
        raise DataError(f"{source} says nothing about {many} with several actions: {shown}")


def names_of(graph: Graph, state: int) -> list[str]:
    """Return the names of the actions of a state, in the order of its choices."""
    actions = graph.action[graph.first_choice[state] : graph.first_choice[state + 1]]
    return [graph.action_names[action] for action in actions]


def _find_choices(graph: Graph, state: Indices, names: npt.NDArray[Any]) -> Indices:
    """Return the choice of each state by the name of its action, or -1 if there is none, or several."""
    number = {name: code for code, name in enumerate(graph.action_names)}

    def code_of(name: Any) -> int:
        is_number = isinstance(name, int | np.integer) and not isinstance(name, bool)
        word = name if isinstance(name, str) else f"{name}" if is_number else ""  # 3 is the action "3"
        return number.get(word, number.get(word.strip(), -1))

    action = np.fromiter(map(code_of, names.tolist()), np.int64, len(names))
    keys = graph.state_of_choice().astype(np.int64) * len(number) + graph.action  # names differ
    order = np.argsort(keys, kind="stable")
    first, last = (np.searchsorted(keys[order], state * len(number) + action, side) for side in ("left", "right"))
    is_found = (action >= 0) & (last - first == 1)
    return np.where(is_found, order[np.minimum(first, len(order) - 1)], -1)


def _no_such_action(actions: list[str], name: Any) -> str:
    """Return a description of the fault in the name of an action, in a state with the given ones."""
    names, name = ", ".join(map(repr, actions)), str(name) if isinstance(name, str) else name  # NumPy's have a prefix
    if name is None:
        return f"None stands for the only action, but there are several: {names}"
    if len(actions) == 1:
        return f"{name!r} is not its only action, {names}; give that, or leave the state out"
    if isinstance(name, str) and name.strip() in actions:
        return f"{name!r} stands for several of its choices"
    return f"{name!r} is not one of its actions, {names}"


def few(numbers: Indices, describe: Callable[[int], str]) -> str:
    """Return the first of some states as text, and how many more there are."""
    left = len(numbers) - _SHOWN
    shown = ", ".join(f"({describe(int(number))})" for number in numbers[:_SHOWN])
    return shown if left <= 0 else f"{shown} and {left:,} more"

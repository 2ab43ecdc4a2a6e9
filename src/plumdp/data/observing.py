"""Translates between an environment and a model: states from observations, actions from names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, ModelError
from plumdp.model.graph import BoolArray, Graph, Indices
from plumdp.model.text import cut

Observe: TypeAlias = Callable[[Any], Any]
"""From an observation to the state variables: a dict, or a tuple of their values in the order of the model."""

Act: TypeAlias = Callable[[str], Any] | Mapping[str, Any]
"""From the name of an action to the environment's action; None for an action that the environment does not have."""


@dataclass(frozen=True, eq=False)
class Places:
    """Where observations are in the model; each place is looked up once and remembered.

    Without ``observe``, an observation is a mapping of the state variables, or the value of the only one.
    """

    graph: Graph
    observe: Observe | None = None
    known: dict[Any, int] = field(default_factory=dict)  # a valuation → state; a choice and a valuation → transition

    def state(self, observation: Any, where: str) -> int:
        """Return the state of an observation; ``where`` begins the message if there is none."""
        values = self.values(observation, where)
        if values not in self.known:
            matches = self._matches(np.arange(self.graph.n_states), values)
            if len(matches) != 1:
                problem = "stands for several states" if len(matches) else "is not a state"
                raise DataError(f"{where}: ({self._text(values)}) {problem} of the model")
            self.known[values] = int(matches[0])
        return self.known[values]

    def transition(self, choice: int, observation: Any, where: str) -> int:
        """Return the transition of a choice that leads to an observation."""
        values = self.values(observation, where)
        if (choice, values) not in self.known:
            start, end = self.graph.first_transition[choice], self.graph.first_transition[choice + 1]
            matches = start + self._matches(self.graph.successor[start:end], values)
            if len(matches) != 1:
                is_state = len(self._matches(np.arange(self.graph.n_states), values))
                problem = "not one of its successors in the model" if is_state else "not a state of the model"
                led_to = f"{self.graph.describe_choice(choice)} led to ({self._text(values)})"
                raise DataError(f"{where}: {led_to}, which is {problem}")
            self.known[choice, values] = int(matches[0])
        return self.known[choice, values]

    def values(self, observation: Any, where: str) -> tuple[Any, ...]:
        """Return the values of the state variables that an observation stands for, in the order of the model."""
        shown = observation if self.observe is None else self._observed(observation, where)
        named = shown._asdict() if isinstance(shown, tuple) and hasattr(shown, "_asdict") else shown
        if isinstance(named, Mapping):
            return self._by_name(named, shown, where)
        is_list = isinstance(named, tuple | list) or (isinstance(named, np.ndarray) and named.ndim == 1)
        listed = named if is_list else (named,)
        if len(listed) != len(self.graph.states) or (self.observe is None and len(listed) != 1):
            raise DataError(f"{where}: {self._refusal(observation, shown, len(listed))}")
        return tuple(_plain(value) for value in listed)

    def _by_name(self, named: Mapping[str, Any], shown: Any, where: str) -> tuple[Any, ...]:
        missing = [name for name in self.graph.states if name not in named]
        if missing:
            raise DataError(f"{where}: the observation {cut(repr(shown))} says nothing about {', '.join(missing)}")
        return tuple(_plain(named[name]) for name in self.graph.states)

    def _observed(self, observation: Any, where: str) -> Any:
        assert self.observe is not None
        try:
            return self.observe(observation)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            raise DataError(f"{where}: observe fails at the observation {cut(repr(observation))}: {problem}") from error

    def _refusal(self, observation: Any, shown: Any, length: int) -> str:
        names = ", ".join(self.graph.states)
        if self.observe is not None:
            return (
                f"observe makes {cut(repr(shown))} of the observation {cut(repr(observation))}; it must return a dict "
                f"with the keys {names}, or a tuple with their values in this order"
            )
        hint = "; observe=tuple will do if it holds them in this order" if length == len(self.graph.states) else ""
        return (
            f"the observation {cut(repr(observation))} is not a mapping of state variables; give observe=..., a "
            f"function from an observation to a dict with the keys {names}{hint}"
        )

    def _matches(self, states: Indices, values: tuple[Any, ...]) -> npt.NDArray[np.intp]:
        columns = zip(self.graph.states.values(), values, strict=True)
        return np.flatnonzero(np.logical_and.reduce([column[states] == value for column, value in columns]))

    def _text(self, values: tuple[Any, ...]) -> str:
        return ", ".join(f"{name}={value}" for name, value in zip(self.graph.states, values, strict=True))


def _plain(value: Any) -> Any:
    if isinstance(value, int | str | np.generic):
        return value.item() if isinstance(value, np.generic) else value
    size = value.size if isinstance(value, np.ndarray) else len(value) if isinstance(value, list | tuple) else 1
    if size != 1 or isinstance(value, list | tuple | dict | set):
        many = f"not {size}" if size != 1 else f"not a {type(value).__name__}"
        raise DataError(f"a state variable has one value, {many}: {value!r}; take it apart with observe=...")
    return value.item() if isinstance(value, np.ndarray) else value


def self_loops(graph: Graph) -> BoolArray:
    """Return which choices (n_choices) have a single transition, back to their own state: nothing happens there."""
    is_alone = np.diff(graph.first_transition) == 1
    return np.asarray(is_alone & (graph.successor[graph.first_transition[:-1]] == graph.state_of_choice()))


def never_left(graph: Graph) -> BoolArray:
    """Return the states (n_states) all of whose choices only loop."""
    return np.asarray(np.logical_and.reduceat(self_loops(graph), graph.first_choice[:-1]))


def env_actions(owner: Any, graph: Graph, act: Act | None) -> list[Any]:
    """Return the environment's action for each action of the model, or None; ``owner`` has the ``action_space``.

    Actions that only loop in the model are never sent, and ``act`` is not asked for them.
    """
    sent = [int(number) for number in np.unique(graph.action[~self_loops(graph)])]
    space = getattr(owner, "action_space", None)
    actions: list[Any] = [None] * len(graph.action_names)
    if act is None:
        size = getattr(space, "n", None)
        numbered = range(len(actions)) if size == len(actions) else sent
        if size != len(numbered):
            raise DataError(_no_act(graph, space, sent))
        for place, number in enumerate(numbered):
            actions[number] = int(getattr(space, "start", 0)) + place
        return actions
    for number in sent:
        actions[number] = _asked(act, graph.action_names[number], space)
    return actions


def ask(act: Act, name: str) -> Any:
    """Return the environment's action for the name of an action, or None."""
    return act.get(name) if isinstance(act, Mapping) else act(name)


def _asked(act: Act, name: str, space: Any) -> Any:
    """Return the value of ``act`` for the name of an action, if the environment has it."""
    try:
        action = ask(act, name)
    except Exception as error:
        raise DataError(f"act fails at the action {name!r}: {type(error).__name__}: {error}") from error
    size = getattr(space, "n", None)
    if size is not None and isinstance(action, int | np.integer):
        first = int(getattr(space, "start", 0))
        if not first <= int(action) < first + int(size):
            raise DataError(f"act gives {action} for the action {name!r}, but the environment's actions are {space}")
    return action


def _no_act(graph: Graph, space: Any, sent: list[int]) -> str:
    names = graph.action_names if len(sent) == len(graph.action_names) else [graph.action_names[i] for i in sent]
    problem = (
        "the environment does not say what its actions are"
        if space is None
        else f"the environment's actions are {space}"
    )
    return (
        f"{problem}, but those of the model are {', '.join(names)}; "
        "give act=..., a function from the name of an action to the environment's action"
    )


def require_distinct_actions(graph: Graph) -> None:
    """Refuse a model in which a state has several choices of one name."""
    key = graph.state_of_choice().astype(np.int64) * len(graph.action_names) + graph.action
    _, first, times = np.unique(key, return_index=True, return_counts=True)
    if (times > 1).any():
        text = graph.describe_choice(int(first[times > 1].min()))
        raise ModelError(f"{text} stands for several choices, which an environment cannot tell apart")

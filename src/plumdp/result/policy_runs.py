"""A policy that is followed through one run, which keeps what it has to remember, such as the number of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plumdp.base.errors import DataError
from plumdp.data.observing import Observe, Places
from plumdp.model.graph import Graph


class PolicyRun:
    """Names the action to take after each observation of one run, from its first one on.

    It is called once for each step. A policy without memory may be followed from any state, one with memory from the
    initial state, as its memory begins there.
    """

    def __init__(
        self, graph: Graph, choose: Callable[[int, np.random.Generator | None], int], observe: Observe | None
    ) -> None:
        memory = graph.memory
        self._graph, self._choose = graph, choose
        self._places = Places(graph if memory is None else memory.graph, observe)
        self._choice: int | None = None  # the one that was taken last

    @property
    def memory(self) -> dict[str, Any]:
        """The values of the variables that the policy remembers, at the last observation."""
        memory = self._graph.memory
        if memory is None:
            return {}
        state = self._graph.initial_state if self._choice is None else self._graph.state_of(self._choice)
        return {name: self._graph.states[name][state].item() for name in memory.names}

    def __call__(self, observation: Any, *, rng: np.random.Generator | None = None) -> str:
        """Return the name of the action to take after an observation; a policy that draws it needs ``rng``."""
        self._choice = self._choose(self._state(observation), rng)
        return self._graph.action_names[int(self._graph.action[self._choice])]

    def _state(self, observation: Any) -> int:
        graph, memory = self._graph, self._graph.memory
        seen = self._places.state(observation, "policy")
        if memory is None:
            return seen
        if self._choice is None:
            possible = np.array([graph.initial_state])
            before = "a run begins in the initial state of the model"
        else:
            possible = graph.successor[graph.transitions_of(np.array([self._choice]))]
            before = f"{memory.graph.describe_choice(int(memory.choice[self._choice]))} does not lead there"
        state = possible[memory.state[possible] == seen]
        if not len(state):
            raise DataError(f"policy: ({memory.graph.describe_state(seen)}) cannot be observed now: {before}")
        return int(state[0])

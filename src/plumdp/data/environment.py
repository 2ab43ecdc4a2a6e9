"""A model as a Gymnasium environment: the only importer of Gymnasium."""

from __future__ import annotations

from typing import Any, TypeAlias

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from plumdp.base.errors import DataError
from plumdp.model.graph import BoolArray, FloatArray, Graph
from plumdp.model.parametric import RewardStructure

Observation: TypeAlias = dict[str, Any]


class ModelEnv(gymnasium.Env[Observation, np.int64]):
    """Runs of a model with known probabilities, one step at a time; made by ``as_env``, which says how it behaves."""

    def __init__(
        self,
        graph: Graph,
        cumulative: FloatArray,
        reward: RewardStructure,
        stop: BoolArray,
        max_steps: int | None,
        may_stay: bool,
    ) -> None:
        self.observation_space, self.action_space = spaces_of(graph)
        self.spec = gymnasium.envs.registration.EnvSpec(
            "plumdp/Model-v0", entry_point=lambda **_: ModelEnv(graph, cumulative, reward, stop, max_steps, may_stay)
        )
        self._graph, self._cumulative, self._reward, self._stop = graph, cumulative, reward, stop
        self._max_steps, self._may_stay = max_steps, may_stay
        self._state, self._steps = graph.initial_state, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Return to the initial state."""
        super().reset(seed=seed)
        self._state, self._steps = self._graph.initial_state, 0
        return self._observation(), self._info()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take an action, given by its number."""
        if self._is_over():
            raise DataError("the run is over: call reset() before the next step")
        earned = self._take(int(action))
        self._steps += 1
        terminated = bool(self._stop[self._state])
        return self._observation(), earned, terminated, self._is_over() and not terminated, self._info()

    def _take(self, action: int) -> float:
        """Move to the next state and return what the step earned."""
        graph, available = self._graph, self._available()
        if action not in available:
            if self._may_stay:
                return 0.0
            raise DataError(self._refusal(action, available))
        choice = int(graph.first_choice[self._state]) + available.index(action)
        start, end = graph.first_transition[choice], graph.first_transition[choice + 1]
        drawn = start + np.searchsorted(self._cumulative[start:end], self.np_random.random(), side="right")
        of_state = 0.0 if self._reward.state is None else float(self._reward.state[self._state])
        of_choice = 0.0 if self._reward.choice is None else float(self._reward.choice[choice])
        self._state = int(graph.successor[drawn])
        return of_state + of_choice

    def _available(self) -> list[int]:
        first, end = self._graph.first_choice[self._state], self._graph.first_choice[self._state + 1]
        actions: list[int] = self._graph.action[first:end].tolist()
        return actions

    def _is_over(self) -> bool:
        return bool(self._stop[self._state]) or (self._max_steps is not None and self._steps >= self._max_steps)

    def _observation(self) -> Observation:
        return {
            name: str(values[self._state]) if values.dtype.kind == "U" else np.int64(values[self._state])
            for name, values in self._graph.states.items()
        }

    def _info(self) -> dict[str, Any]:
        mask = np.zeros(len(self._graph.action_names), dtype=np.int8)
        mask[self._available()] = 1
        return {"action_mask": mask}

    def _refusal(self, action: int, available: list[int]) -> str:
        names = self._graph.action_names
        shown = f"action {action} ({names[action]!r})" if 0 <= action < len(names) else f"action {action}"
        offered = ", ".join(f"{number} ({names[number]!r})" for number in available)
        return f"state ({self._graph.describe_state(self._state)}): {shown} is not available, only {offered}"


def spaces_of(graph: Graph) -> tuple[spaces.Dict, spaces.Discrete]:
    """Return the spaces of observations and actions: a dict of the state variables, and the numbers of the actions."""
    observations = spaces.Dict({name: _space(values) for name, values in graph.states.items()})
    return observations, spaces.Discrete(len(graph.action_names))


def _space(values: npt.NDArray[Any]) -> spaces.Space[Any]:
    """Return the space of a state variable's values."""
    if values.dtype.kind == "b":
        return spaces.Discrete(2)
    if values.dtype.kind == "U":
        texts = [str(text) for text in np.unique(values)]
        lengths = [len(text) for text in texts]
        return spaces.Text(max(lengths), min_length=min(lengths), charset=frozenset("".join(texts)))
    lowest, highest = int(values.min()), int(values.max())
    return spaces.Discrete(highest - lowest + 1, start=lowest)

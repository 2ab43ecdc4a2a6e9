"""Gymnasium on both sides: a model as an environment, and counts from the runs of any environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.data.counts import CountArray, Pilot, Sampling, TransitionCounts
from plumdp.data.pilots import planned_size
from plumdp.data.runs import Policy, Rng, require_positive, running_policy, running_sums, stop_mask
from plumdp.errors import DataError, MissingExtra, ModelError
from plumdp.model.graph import FloatArray, Graph, Indices, IntArray
from plumdp.model.objective import Objective
from plumdp.model.parametric import ParametricMDP, RewardStructure, require_model
from plumdp.model.space import Point
from plumdp.model.text import number_of, one_line

if TYPE_CHECKING:
    from plumdp.data.environment import ModelEnv

Valuation: TypeAlias = Mapping[str, Any]
"""State variable → value."""


def as_env(
    model: ParametricMDP,
    point: Point,
    *,
    max_steps: int | None = None,
    stop: npt.ArrayLike | None = None,
    reward: str | None = None,
    unavailable: Literal["stay", "error"] = "stay",
) -> ModelEnv:
    """Return the model at a point as a Gymnasium environment.

    An observation is a dict of the state variables: whole numbers and Booleans as integers, texts as they are. Action k
    is ``model.graph.action_names[k]``, and ``info["action_mask"]`` says which actions the state has. Taking another one
    leaves the state as it is and earns nothing, or raises an error, whichever ``unavailable`` says; neither is a step
    of the model. A run terminates in the states of the mask ``stop`` and is truncated after ``max_steps``. A step earns
    what the reward structure called ``reward`` gives to the state it starts in and to the choice, or else 0.

    >>> from plumdp import case_study
    >>> study = case_study("betting:25")
    >>> env = as_env(study.model, study.true_point, max_steps=25)
    >>> observation, info = env.reset(seed=1)
    >>> print(observation, info["action_mask"])
    {'money': np.int64(10), 'step': np.int64(0)} [1 1 1 1 1 0 0]
    """
    try:
        from plumdp.data.environment import ModelEnv
    except ImportError:
        raise MissingExtra("environments need Gymnasium: pip install 'plumdp[gym]'") from None

    graph = model.graph
    if max_steps is not None:
        require_positive("max_steps", max_steps)
    if unavailable not in ("stay", "error"):
        raise DataError(f"unavailable={unavailable!r}: choose 'stay' or 'error'")
    if reward is not None and reward not in model.rewards:
        known = ", ".join(map(repr, model.rewards)) or "none"
        raise ModelError(f"there is no reward structure {reward!r}; the model has {known}")
    _require_distinct_actions(graph)
    ends = stop_mask(graph, stop)
    if ends[graph.initial_state]:
        initial = graph.describe_state(graph.initial_state)
        raise DataError(f"the initial state ({initial}) is in stop: a run would end before its first step")
    cumulative = running_sums(graph.first_transition, model.probabilities(point)[model.expression])
    earned = RewardStructure(None, None) if reward is None else model.rewards[reward]
    return ModelEnv(graph, cumulative, earned, ends, max_steps, unavailable == "stay")


def sample_env(
    env: Any,
    policy: Policy,
    episodes: int,
    model: ParametricMDP,
    *,
    rng: Rng,
    max_steps: int | None = None,
    sampling: Sampling = "adaptive",
    pilot: float | None = None,
    observe: Callable[[Any], Valuation] | None = None,
    act: Callable[[str], Any] | None = None,
) -> TransitionCounts:
    """Return how often each transition of the model is taken on so many episodes of a Gymnasium environment.

    ``observe`` turns an observation into a mapping of the model's state variables; it may be left out if observations
    are such mappings. ``act`` turns the name of an action into the environment's action; it may be left out if the
    environment has as many discrete actions as the model, in the order of ``model.graph.action_names``. An observation
    that is not a state of the model, or no successor of the choice taken, is an error. An episode ends when the
    environment says so, or after ``max_steps``.

    ``sampling`` is "adaptive" unless you say more: "trajectories" claims that the number of episodes was fixed before
    any was looked at, and that nothing seen in one episode changes the next.

    The first episodes are kept apart as the pilot: a share ``pilot`` of them, by default that of ``pilot_share``, none
    if it is 0. They are run one after the other, and their number is fixed by this call, so that the end of the pilot
    is planned however they are sampled. Of counts that are added up, only the first keep their pilot: give it a share
    that is large enough for all, or sample all episodes at once.

    >>> from plumdp import case_study
    >>> study = case_study("betting:25")
    >>> env = as_env(study.model, study.true_point, max_steps=25)
    >>> sample_env(env, "uniform", 10, study.model, rng=1).total
    250
    """
    require_model("an environment", model)
    weights = running_policy(model.graph, policy)
    require_positive("episodes", episodes)
    runner = gym_environment(env, model, rng=0, max_steps=max_steps, observe=observe, act=act)
    generator = np.random.default_rng(rng)  # the runner's own seeds are for episodes that may be run again
    n_pilot = planned_size(episodes, model.space.dimension, pilot)
    parts = np.zeros((2, model.graph.n_transitions), dtype=np.int64)  # pilot, and what came later
    seed: int | None = int(generator.integers(2**31))
    for episode in range(episodes):
        np.add.at(parts[int(episode >= n_pilot)], runner.episode(episode, weights, generator, seed), 1)
        seed = None  # the environment goes on with its own randomness
    kept = Pilot(parts[0], ratio=episodes / n_pilot - 1) if n_pilot else None
    return TransitionCounts(model.graph, parts.sum(axis=0), sampling, kept)


@dataclass(frozen=True, eq=False)
class GymEnvironment:
    """A Gymnasium environment whose observations and actions are states and actions of a model."""

    env: Any
    graph: Graph
    places: _Places
    actions: list[Any]  # the environment's action for each action of the model
    key: tuple[int, int]
    max_steps: int | None

    def __repr__(self) -> str:
        return one_line(self, type(self.env).__name__, number_of(self.graph.n_states, "state"))

    def run(self, weights: FloatArray, first: int, last: int, limits: CountArray, seen: CountArray) -> int:
        """Run episodes as ``Environment`` of online learning says; each gets seeds that follow from its number."""
        cumulative, choice_of = running_sums(self.graph.first_choice, weights), self.graph.choice_of_transition()
        left = limits.copy()
        for number in range(first, last):
            generator = np.random.default_rng((*self.key, number))
            taken = self.episode(number, cumulative, generator, int(generator.integers(2**31)))
            np.add.at(seen, taken, 1)
            np.subtract.at(left, choice_of[taken], 1)
            if (left[choice_of[taken]] <= 0).any():
                return number + 1
        return last

    def true_value(self, policy: IntArray, objective: Objective) -> None:
        """Return None: nobody knows what a policy is worth in a foreign environment."""

    def episode(self, number: int, weights: FloatArray, generator: np.random.Generator, seed: int | None) -> list[int]:
        """Return the transitions of one episode; ``weights`` are the running sums of a policy."""
        observation, _ = self.env.reset(seed=seed)
        state, is_over = self.places.state(observation, f"episode {number}"), False
        taken: list[int] = []
        while not is_over:
            choice = _draw(self.graph, weights, state, generator)
            observation, _, terminated, truncated, _ = self.env.step(self.actions[self.graph.action[choice]])
            taken.append(self.places.transition(choice, observation, f"episode {number}, step {len(taken)}"))
            state = int(self.graph.successor[taken[-1]])
            is_over = terminated or truncated or len(taken) == self.max_steps
        return taken


def gym_environment(
    env: Any,
    model: ParametricMDP,
    *,
    rng: Rng,
    max_steps: int | None = None,
    observe: Callable[[Any], Valuation] | None = None,
    act: Callable[[str], Any] | None = None,
) -> GymEnvironment:
    """Return a Gymnasium environment as one for ``learn_online``; ``observe`` and ``act`` are as in ``sample_env``.

    Each episode resets the environment with a seed of its own. If nothing but this seed decides what happens, episode k
    is always the same under the same policy, and learning that was interrupted goes on as if it had not been.

    >>> from plumdp import case_study, learn_online
    >>> study = case_study("betting:25")
    >>> env = as_env(study.model, study.true_point, max_steps=25)
    >>> environment = gym_environment(env, study.model, rng=1)
    >>> *_, last = learn_online(study.model, environment, study.objective, episodes=20)
    >>> last.episodes, last.steps, last.true_value
    (20, 500, None)
    """
    require_model("an environment", model)
    if max_steps is not None:
        require_positive("max_steps", max_steps)
    _require_distinct_actions(model.graph)
    _require_gymnasium(env)
    first, second = np.random.default_rng(rng).integers(2**63, size=2).tolist()
    places, actions = _Places(model.graph, observe), _actions(env, model.graph, act)
    return GymEnvironment(env, model.graph, places, actions, (first, second), max_steps)


def _require_gymnasium(env: Any) -> None:
    """Refuse what is not a Gymnasium environment, and say what to write instead."""
    if isinstance(env, GymEnvironment):
        raise DataError("this is an environment for learn_online already: give the Gymnasium environment inside, .env")
    if not (hasattr(env, "reset") and hasattr(env, "step")):
        raise DataError(f"give a Gymnasium environment, such as as_env(model, point), not {type(env).__name__}")


def _draw(graph: Graph, weights: npt.NDArray[np.float64], state: int, generator: np.random.Generator) -> int:
    start, end = int(graph.first_choice[state]), int(graph.first_choice[state + 1])
    if not len(weights):
        return int(generator.integers(start, end))
    return start + int(np.searchsorted(weights[start:end], generator.random(), side="right"))


@dataclass(frozen=True, eq=False)
class _Places:
    """Where observations are in the model; each place is looked up once and remembered."""

    graph: Graph
    observe: Callable[[Any], Valuation] | None
    known: dict[Any, int] = field(default_factory=dict)  # a valuation → state; a choice and a valuation → transition

    def state(self, observation: Any, where: str) -> int:
        """Return the state of an observation."""
        values = self._values(observation, where)
        if values not in self.known:
            found = self._matches(np.arange(self.graph.n_states), values)
            if len(found) != 1:
                problem = "stands for several states" if len(found) else "is not a state"
                raise DataError(f"{where}: ({self._text(values)}) {problem} of the model")
            self.known[values] = int(found[0])
        return self.known[values]

    def transition(self, choice: int, observation: Any, where: str) -> int:
        """Return the transition of a choice that leads to an observation."""
        values = self._values(observation, where)
        if (choice, values) not in self.known:
            start, end = self.graph.first_transition[choice], self.graph.first_transition[choice + 1]
            found = start + self._matches(self.graph.successor[start:end], values)
            if len(found) != 1:
                is_state = len(self._matches(np.arange(self.graph.n_states), values))
                problem = "not one of its successors in the model" if is_state else "not a state of the model"
                led_to = f"{self.graph.describe_choice(choice)} led to ({self._text(values)})"
                raise DataError(f"{where}: {led_to}, which is {problem}")
            self.known[choice, values] = int(found[0])
        return self.known[choice, values]

    def _values(self, observation: Any, where: str) -> tuple[Any, ...]:
        valuation = observation if self.observe is None else self.observe(observation)
        if not isinstance(valuation, Mapping):
            raise DataError(
                f"{where}: the observation {valuation!r} is not a mapping of state variables; give observe=..., a "
                f"function from an observation to a dict with the keys {', '.join(self.graph.states)}"
            )
        missing = [name for name in self.graph.states if name not in valuation]
        if missing:
            raise DataError(f"{where}: the observation {valuation!r} says nothing about {', '.join(missing)}")
        return tuple(_plain(valuation[name]) for name in self.graph.states)

    def _matches(self, states: Indices, values: tuple[Any, ...]) -> npt.NDArray[np.intp]:
        columns = zip(self.graph.states.values(), values, strict=True)
        return np.flatnonzero(np.logical_and.reduce([column[states] == value for column, value in columns]))

    def _text(self, values: tuple[Any, ...]) -> str:
        return ", ".join(f"{name}={value}" for name, value in zip(self.graph.states, values, strict=True))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.size != 1:
        raise DataError(f"a state variable has one value, not {value.size}: {value!r}; take it apart with observe=...")
    return value.item() if isinstance(value, np.generic | np.ndarray) else value


def _actions(env: Any, graph: Graph, act: Callable[[str], Any] | None) -> list[Any]:
    """Return the environment's action for each action of the model."""
    if act is not None:
        return [act(name) for name in graph.action_names]
    space = env.action_space
    if getattr(space, "n", None) != len(graph.action_names):
        raise DataError(
            f"the environment's actions are {space}, but those of the model are {', '.join(graph.action_names)}; "
            "give act=..., a function from the name of an action to the environment's action"
        )
    return [int(space.start) + i for i in range(len(graph.action_names))]


def _require_distinct_actions(graph: Graph) -> None:
    key = graph.state_of_choice().astype(np.int64) * len(graph.action_names) + graph.action
    _, first, times = np.unique(key, return_index=True, return_counts=True)
    if (times > 1).any():
        text = graph.describe_choice(int(first[times > 1].min()))
        raise ModelError(f"{text} stands for several choices, which an environment cannot tell apart")

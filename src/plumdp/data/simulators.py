"""Gymnasium on both sides: a model as an environment, and counts from the runs of any environment."""

from __future__ import annotations

import inspect
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, ModelError, Option, needs
from plumdp.base.progress import tell_share, working
from plumdp.data.context_counts import ContextCounter
from plumdp.data.contexts import MOST_TRANSITIONS
from plumdp.data.counts import CountArray, Sampling, TransitionCounts, require_same_graph
from plumdp.data.observing import Act, Observe, Places, env_actions, require_distinct_actions, self_loops
from plumdp.data.pilots import is_wanted, moments_for, pilot_size, planned_pilot
from plumdp.data.reward_values import add_values
from plumdp.data.runs import Rng, generator_of, require_positive, running_sums, stop_mask
from plumdp.data.same_files import new_parts
from plumdp.data.seen import Seen
from plumdp.data.time_parts import Recorder, runs_of_parts
from plumdp.model.graph import FloatArray, Graph, IntArray
from plumdp.model.learned_rewards import LearnedRewards
from plumdp.model.objectives import Objective
from plumdp.model.parametric import ParametricMDP, RewardStructure, require_model
from plumdp.model.policy import Policy, policy_weights
from plumdp.model.space import Point
from plumdp.model.text import cut, number_of, one_line

if TYPE_CHECKING:
    from plumdp.data.environment import ModelEnv


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
    is ``model.graph.action_names[k]``, and ``info["action_mask"]`` says which actions the state has.

    Parameters
    ----------
    model
        The parametric model.
    point
        The value of each parameter.
    max_steps
        After how many steps a run is truncated.
    stop
        A mask of states in which a run terminates.
    reward
        The reward structure whose values a step earns, or else 0.
    unavailable
        Whether an action that the state does not have leaves it as it is, or raises an error; neither is a step of the
        model.

    Returns
    -------
    ModelEnv
        The environment.

    Raises
    ------
    MissingExtra
        If ``gymnasium`` is not installed.

    Examples
    --------
    >>> from plumdp import case_study
    >>> study = case_study("betting:25")
    >>> env = as_env(study.model, study.true_point, max_steps=25)
    >>> observation, info = env.reset(seed=1)
    >>> print(observation, info["action_mask"])
    {'money': np.int64(10), 'step': np.int64(0)} [1 1 1 1 1 0 0]
    """
    with needs("environments need Gymnasium: pip install 'plumdp[gym]'"):
        from plumdp.data.environment import ModelEnv

    require_model("as_env", model)
    graph = model.graph
    if max_steps is not None:
        require_positive("max_steps", max_steps)
    if unavailable not in ("stay", "error"):
        raise DataError(f"unavailable={unavailable!r}: choose 'stay' or 'error'")
    if reward is not None and reward not in model.rewards:
        structures = ", ".join(map(repr, model.rewards)) or "none"
        raise ModelError(f"there is no reward structure {reward!r}; the model has {structures}")
    require_distinct_actions(graph)
    ends = stop_mask(graph, stop)
    if ends[graph.initial_state]:
        initial = graph.describe_state(graph.initial_state)
        raise DataError(f"the initial state ({initial}) is in stop: a run would end before its first step")
    cumulative = running_sums(graph.first_transition, model.probabilities(point)[model.expression])
    earned = RewardStructure(None, None) if reward is None else model.rewards[reward]
    if earned.learned is not None:  # as its mean
        lowest = np.zeros(graph.n_choices) if earned.choice is None else earned.choice
        earned = RewardStructure(earned.state, earned.learned.added_to(lowest, model.probabilities(point), 0.0))
    return ModelEnv(graph, cumulative, earned, ends, max_steps, unavailable == "stay")


@working("sampling the environment")
def sample_env(
    model: ParametricMDP,
    env: Any,
    episodes: int,
    *,
    rng: Rng,
    max_steps: int | None = None,
    policy: Policy = "uniform",
    sampling: Sampling = "adaptive",
    pilot: bool = True,
    reward: str | None = None,
) -> TransitionCounts:
    """Return the transition counts of episodes of a Gymnasium environment.

    Episodes are run one after the other, and their number is fixed by this call. One ends when the environment says so,
    after ``max_steps``, or where the policy only stays: a choice whose single transition leads back to its own state,
    such as "done" in a state without exit, is never sent to the environment. An observation that is not a state of the
    model, or no successor of the choice taken, is an error.

    Parameters
    ----------
    model
        The parametric model.
    env
        The Gymnasium environment, or what ``gym_environment`` makes of one, which says how observations and actions are
        read.
    episodes
        The number of episodes.
    rng
        A seed or a generator.
    max_steps
        After how many steps an episode is censored.
    policy
        Any ``Policy``, by default uniform choices.
    sampling
        "trajectories" claims that the number of episodes was fixed before any was looked at, and that nothing seen in
        one episode changes the next.
    pilot
        False places no bets.
    reward
        The learned reward whose values the environment gives, which must be the only one.

    Returns
    -------
    TransitionCounts
        How often each transition was taken.

    Raises
    ------
    DataError
        If an observation does not fit the model, or a value is out of its range.

    Examples
    --------
    >>> from plumdp import case_study
    >>> study = case_study("betting:25")
    >>> env = as_env(study.model, study.true_point, max_steps=25)
    >>> sample_env(study.model, env, 10, rng=1).total
    250
    """
    require_model("an environment", model)
    require_positive("episodes", episodes)
    runner = env if isinstance(env, GymEnvironment) else gym_environment(model, env)
    require_same_graph(model.graph, runner.graph)
    if max_steps is not None:
        require_positive("max_steps", max_steps)
        runner = replace(runner, max_steps=max_steps)
    moves = leaving(model.graph, policy_weights(model.graph, policy))
    generator = generator_of(rng)  # the runner's own seeds are for episodes that may be run again
    is_table, n_transitions = model.counted.is_table, model.graph.n_transitions
    sizes = moments_for(episodes, is_table=is_table, n_transitions=n_transitions) if is_wanted(pilot) else ()
    learned = _the_learned(model, reward)
    parts = [Seen.nothing(model.graph.n_transitions, len(learned)) for _ in range(len(sizes) + 1)]
    recorder = Recorder(runs_of_parts(episodes, sizes, model.graph.n_transitions))
    n_pilot = pilot_size(episodes) if sizes else 0
    counter = ContextCounter(model.graph) if model.graph.n_transitions <= MOST_TRANSITIONS else None
    key = sha256(repr(generator.bit_generator.state).encode()).hexdigest()
    seed: int | None = int(generator.integers(2**31))
    for episode in range(episodes):
        stage = bisect_right(sizes, episode)
        tell_share("simulating", episode, episodes)
        taken, values = runner.episode(episode, moves, generator, seed)
        np.add.at(parts[stage].counts, taken, 1)
        recorder.add(bisect_right(recorder.ends, episode), taken)
        if counter is not None:
            counter.add_walks(1, [(np.zeros(1, dtype=np.int64), taken[:, None])], is_pilot=episode < n_pilot)
        for name, each in learned.items():
            add_values(parts[stage].rewards[0], name, each, model.graph, taken, values, f"episode {episode}")
        seed = None  # the environment goes on with its own randomness
    *moments, seen = accumulate(parts)
    kept = planned_pilot(moments, episodes, sizes=sizes) if moments else None
    new = new_parts(int(seen.counts.sum()), key=key, is_simulated=True)
    time = recorder.parts(episodes) if sizes else None
    told: dict[str, Any] = {"parts": new, "rewards": seen.rewards, "time": time}
    told |= {"no_contexts": "size"} if counter is None else {"contexts": ContextCounter.sum([counter])}
    return TransitionCounts(model.graph, seen.counts, sampling, kept, **told)


def _the_learned(model: ParametricMDP, reward: str | None) -> dict[str, LearnedRewards]:
    """Return the learned reward whose values an environment gives, if it is said that it does."""
    learned = model.learned_rewards
    if reward is not None and [*learned] != [reward]:
        names = ", ".join(learned) or "none"
        raise DataError(
            Option("reward", reward), f": an environment gives values of one learned reward; the model has {names}"
        )
    return {} if reward is None else learned


@dataclass(frozen=True, eq=False)
class Moves:
    """What an environment sees of a policy: the choices that it draws among those that are not self-loops.

    These are lists, as one step at a time looks at them.
    """

    first_choice: list[int]  # (n_states + 1)
    cumulative: list[float]  # (n_choices): running sums within each state
    is_end: list[bool]  # (n_states): where the policy only takes self-loops

    def draw(self, state: int, generator: np.random.Generator) -> int:
        """Return a choice of a state."""
        return bisect_right(self.cumulative, generator.random(), self.first_choice[state], self.first_choice[state + 1])


def leaving(graph: Graph, weights: FloatArray) -> Moves:
    """Return the policy with the given weights (n_choices) under the condition that it does not take a self-loop.

    A run that takes self-loops first takes the same choices after them, with the same probabilities.
    """
    source, moving = graph.state_of_choice(), np.where(self_loops(graph), 0.0, weights)
    total = np.bincount(source, moving, graph.n_states)
    is_end = total == 0
    cumulative = running_sums(graph.first_choice, moving / np.where(is_end, 1.0, total)[source])
    return Moves(graph.first_choice.tolist(), cumulative.tolist(), is_end.tolist())


@dataclass(frozen=True, eq=False)
class GymEnvironment:
    """A Gymnasium environment whose observations and actions are states and actions of a model."""

    env: Any
    graph: Graph
    places: Places
    actions: list[Any]  # the environment's action for each action of the model, None if it does not have it
    key: tuple[int, int]
    max_steps: int | None
    takes_seed: bool

    def __repr__(self) -> str:
        return one_line(self, type(self.env).__name__, number_of(self.graph.n_states, "state"))

    def run(self, weights: FloatArray, first: int, last: int, seen: CountArray) -> None:
        """Run episodes as ``Environment`` of online learning says; each gets seeds that follow from its number."""
        moves = leaving(self.graph, weights)
        for number in range(first, last):
            generator = np.random.default_rng((*self.key, number))
            taken, _ = self.episode(number, moves, generator, int(generator.integers(2**31)))
            np.add.at(seen, taken, 1)

    def true_value(self, policy: IntArray, objective: Objective) -> None:
        """Return None: nobody knows what a policy is worth in a foreign environment."""

    def episode(
        self, number: int, moves: Moves, generator: np.random.Generator, seed: int | None
    ) -> tuple[IntArray, list[Any]]:
        """Return the transitions of one episode, and the rewards that the environment gives for them."""
        where = f"episode {number}"
        state, is_over = self.places.state(self._reset(seed, where), where), False
        taken: list[int] = []
        rewards: list[Any] = []
        while not (is_over or moves.is_end[state]):
            where = f"episode {number}, step {len(taken)}"
            choice = moves.draw(state, generator)
            observation, reward, is_over = self._step(choice, where)
            rewards.append(reward)
            taken.append(self.places.transition(choice, observation, where))
            state = int(self.graph.successor[taken[-1]])
            is_over = is_over or len(taken) == self.max_steps
        return np.array(taken, dtype=np.int32), rewards

    def _reset(self, seed: int | None, where: str) -> Any:
        """Return the first observation of an episode."""
        answer = self.env.reset(seed=seed) if self.takes_seed else self.env.reset()
        if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Mapping)):
            raise DataError(
                f"{where}: reset() of {type(self.env).__name__} returns {cut(repr(answer))}; that of a Gymnasium "
                "environment returns an observation and a dict"
            )
        return answer[0]

    def _step(self, choice: int, where: str) -> tuple[Any, Any, bool]:
        """Return observation and reward after a choice, and whether the environment says that the episode is over."""
        action = self.actions[self.graph.action[choice]]
        if action is None:
            raise DataError(
                f"{where}: the policy takes {self.graph.action_names[self.graph.action[choice]]!r} in state "
                f"({self.graph.describe_state(self.graph.state_of(choice))}), for which act gives no action of the "
                "environment"
            )
        answer = self.env.step(action)
        if not (isinstance(answer, tuple) and len(answer) == 5):
            returned = f"{len(answer)} values" if isinstance(answer, tuple) else cut(repr(answer))
            raise DataError(
                f"{where}: step() of {type(self.env).__name__} returns {returned}; that of a Gymnasium environment "
                "returns 5: observation, reward, terminated, truncated and a dict"
            )
        return answer[0], answer[1], bool(answer[2] or answer[3])


def gym_environment(
    model: ParametricMDP,
    env: Any,
    *,
    rng: Rng = 0,
    max_steps: int | None = None,
    observe: Observe | None = None,
    act: Act | None = None,
) -> GymEnvironment:
    """Return a Gymnasium environment as one for ``learn_online`` and ``sample_env``.

    ``observe`` turns an observation into the state variables: a dict, or a tuple in the order of the model. It may be
    left out if observations are mappings of the variables, or the value of the only one. ``act`` is a function or a
    dict that turns the name of an action into the environment's action. It may be left out if the environment has as
    many discrete actions as the model, in the order of ``model.graph.action_names``.

    Each episode resets the environment with a seed of its own. If nothing but this seed decides what happens, episode k
    is always the same under the same policy, and learning that was interrupted goes on as if it had not been. (An
    environment whose ``reset`` takes no seed runs with its own randomness.)

    >>> from plumdp import case_study, learn_online
    >>> study = case_study("betting:25")
    >>> env = as_env(study.model, study.true_point, max_steps=25)
    >>> environment = gym_environment(study.model, env, rng=1)
    >>> *_, last = learn_online(study.model, environment, study.objective, episodes=20)
    >>> last.episodes, last.steps, last.true_value
    (20, 500, None)
    """
    require_model("an environment", model)
    if max_steps is not None:
        require_positive("max_steps", max_steps)
    require_distinct_actions(model.graph)
    _require_gymnasium(env)
    _require_function("observe", observe, "an observation to a dict of the state variables")
    if not isinstance(act, Mapping):
        _require_function("act", act, "the name of an action to the environment's action")
    first, second = generator_of(rng).integers(2**63, size=2).tolist()
    places, actions = Places(model.graph, observe), env_actions(env, model.graph, act)
    return GymEnvironment(env, model.graph, places, actions, (first, second), max_steps, _takes_seed(env))


def is_gymnasium(env: Any) -> bool:
    """Return whether something has what a Gymnasium environment has: ``reset`` and ``step``."""
    return callable(getattr(env, "reset", None)) and callable(getattr(env, "step", None))


def _require_gymnasium(env: Any) -> None:
    """Refuse what is not a Gymnasium environment, and say what to write instead."""
    if isinstance(env, GymEnvironment):
        raise DataError("this was made by gym_environment already: give the Gymnasium environment inside, .env")
    if isinstance(env, str):
        raise DataError(f"this is the name of an environment: give gymnasium.make({env!r})")
    if not is_gymnasium(env):
        raise DataError(f"give a Gymnasium environment, such as as_env(model, point), not {type(env).__name__}")
    if isinstance(env, type):
        raise DataError(f"{env.__name__} is a class: give an environment, {env.__name__}(...)")
    if hasattr(env, "num_envs"):
        raise DataError(f"{type(env).__name__} runs {env.num_envs} environments side by side: give one of them alone")


def _require_function(name: str, given: Any, purpose: str) -> None:
    if given is not None and not callable(given):
        raise DataError(f"{name}= is {cut(repr(given))}: give a function from {purpose}")


def _takes_seed(env: Any) -> bool:
    """Return whether ``reset`` of an environment can be told a seed."""
    try:
        parameters = inspect.signature(env.reset).parameters.values()
    except (TypeError, ValueError):  # of a compiled function
        return True
    return any(parameter.name == "seed" or parameter.kind == parameter.VAR_KEYWORD for parameter in parameters)

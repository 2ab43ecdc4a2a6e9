"""An interval MDP and an objective as a game of agent and nature: what is fixed, what is open, who wants what."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumdp.errors import ModelError
from plumdp.model.graph import BoolArray, FloatArray, Indices, IntArray
from plumdp.model.objective import Nature, Objective, Reach, Reward
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver import kernels


@dataclass(frozen=True, eq=False)
class Game:
    """Values of the closed states are known; those of the open states follow from their rows."""

    imdp: IntervalMDP
    reward: FloatArray  # (n_choices)
    discount: float
    agent: float  # +1 wants large values, -1 small ones
    nature: float
    is_open: BoolArray  # (n_states)
    known: FloatArray  # (n_states): value of the closed states


def make_game(imdp: IntervalMDP, objective: Objective, nature: Nature) -> Game:
    """Return the game of an unbounded objective, with everything closed that the graph alone decides."""
    game = plain_game(imdp, objective, nature)
    if isinstance(objective, Reach):
        hopeful = _can_reach(game, objective.target, game.agent > 0, game.nature > 0)
        return _close(game, game.is_open & ~hopeful, 0.0)
    if objective.discount is not None:
        return game
    if objective.target is None:
        return _close_total_reward(game)
    finite = _almost_surely_reach(game, objective.target, game.agent < 0, game.nature < 0)
    return _close(game, game.is_open & ~finite, np.inf)


def plain_game(imdp: IntervalMDP, objective: Objective, nature: Nature) -> Game:
    """Return the game with only those states closed that the objective names."""
    agent = 1.0 if objective.direction == "max" else -1.0
    opponent = -agent if nature == "robust" else agent
    n_states = imdp.graph.n_states
    if isinstance(objective, Reach):
        reward, discount = np.zeros(imdp.graph.n_choices), 1.0
        is_open, known = ~(objective.target | objective.avoid), objective.target.astype(np.float64)
    else:
        reward, discount = _row_rewards(imdp, objective), float(objective.discount or 1)
        is_open = np.ones(n_states, dtype=np.bool_) if objective.target is None else ~objective.target
        known = np.zeros(n_states)
    return Game(imdp, reward, discount, agent, opponent, is_open, known)


def _row_rewards(imdp: IntervalMDP, objective: Reward) -> FloatArray:
    total = np.zeros(imdp.graph.n_choices)
    if objective.reward.state is not None:
        total += np.repeat(objective.reward.state, np.diff(imdp.graph.first_choice))
    if objective.reward.choice is not None:
        total += objective.reward.choice
    if not np.isfinite(total).all():
        raise ModelError("rewards must be finite numbers")
    if objective.steps is None and objective.discount is None and (total < 0).any():
        choice = imdp.graph.describe_choice(int(np.argmax(total < 0)))
        where = f"{choice}: the reward {total[total < 0][0]:g} is negative"
        raise ModelError(f"{where}; without a bound on steps and without a discount rewards must be at least 0")
    return total


def _close(game: Game, states: BoolArray, value: float) -> Game:
    return replace(game, is_open=game.is_open & ~states, known=np.where(states, value, game.known))


def _close_total_reward(game: Game) -> Game:
    """Close the states without any reward ahead at 0.

    States whose reward may recur for ever have an infinite value; they show by values that no bound can hold.
    """
    earns = np.zeros(game.imdp.graph.n_states, dtype=np.bool_)
    owner = game.imdp.graph.state_of_choice()
    earns[owner[game.reward > 0]] = True
    ahead = _can_reach(game, earns, True, True) | earns
    return _close(game, ~ahead, 0.0)


def _can_reach(game: Game, target: BoolArray, agent_helps: bool, nature_helps: bool) -> BoolArray:
    """Return the states from which the helpers give the target a positive chance."""
    everywhere = np.ones(len(target), dtype=np.bool_)
    return _attract(game, target, everywhere, agent_helps, nature_helps, _predecessors(game))


def _almost_surely_reach(game: Game, target: BoolArray, agent_helps: bool, nature_helps: bool) -> BoolArray:
    """Return the states from which the helpers reach the target with probability one.

    The greatest set within which the target keeps a positive chance from everywhere.
    """
    edges = _predecessors(game)
    inside = np.ones(len(target), dtype=np.bool_)
    while True:
        reached = _attract(game, target, inside, agent_helps, nature_helps, edges)
        if (reached == inside).all():
            return reached
        inside = reached


def _predecessors(game: Game) -> tuple[Indices, IntArray]:
    graph = game.imdp.graph
    offset = np.zeros(graph.n_states + 1, dtype=np.int64)
    source = np.empty(graph.n_transitions, dtype=np.int32)
    kernels.predecessors(graph.first_choice, graph.first_transition, graph.successor, offset, source)
    return offset, source


def _attract(
    game: Game,
    target: BoolArray,
    inside: BoolArray,
    agent_helps: bool,
    nature_helps: bool,
    edges: tuple[Indices, IntArray],
) -> BoolArray:
    reached = (target & inside).copy()
    pending = np.empty(len(target), dtype=np.int32)
    graph, imdp = game.imdp.graph, game.imdp
    rows = (graph.first_choice, graph.first_transition, graph.successor, imdp.expression, imdp.lower, imdp.upper)
    kernels.attract(*rows, *edges, game.is_open, inside, agent_helps, nature_helps, reached, pending)
    return reached

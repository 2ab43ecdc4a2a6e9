"""An interval MDP and an objective as a game of agent and nature: what is fixed, what is open, who wants what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from plumdp.errors import ModelError
from plumdp.model.graph import BoolArray, FloatArray, Indices, IntArray
from plumdp.model.objective import Nature, Objective, Reach, Reward
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver import graph_kernels
from plumdp.solver.zero_sets import Masks, zero_sets


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
    policy: IntArray  # (n_states): attains the value of closed states; keeps the target in reach of a helping agent
    rank: FloatArray | None = None  # (n_states): for rewards, steps until a chance of the target

    def known_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return bounds on the values of the closed states.

        If infinite values are what nature brings about, and only intervals say that it can, they bound one side only.
        """
        low, high = self.known.copy(), self.known.copy()
        if self.nature > 0 and not self.may_drop:
            low[high == np.inf] = 0.0
        return low, high

    @property
    def may_drop(self) -> bool:
        """Whether nature may drop all that intervals let it drop; not so if it picks points of a region."""
        return self.imdp.region is None or self.imdp.has_fixed_support()

    @cached_property
    def rows(self) -> tuple[IntArray, IntArray, IntArray, IntArray, FloatArray, FloatArray, IntArray, Masks]:
        """The rows of the model, as the kernels take them, with what can vanish at once."""
        imdp, graph = self.imdp, self.imdp.graph
        bounds = imdp.expression, imdp.lower, imdp.upper
        return graph.first_choice, graph.first_transition, graph.successor, *bounds, *zero_sets(imdp)


def make_game(imdp: IntervalMDP, objective: Objective, nature: Nature) -> Game:
    """Return the game of an unbounded objective, with everything closed that the graph alone decides."""
    game = plain_game(imdp, objective, nature)
    if isinstance(objective, Reach):
        return _close_hopeless(game, objective.target)
    if objective.discount is not None:
        return game
    return _close_total_reward(game) if objective.target is None else _close_infinite(game, objective.target)


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
    return Game(imdp, reward, discount, agent, opponent, is_open, known, imdp.graph.first_choice[:-1].copy())


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


def _close_hopeless(game: Game, target: BoolArray) -> Game:
    """Close the states from which the target has no chance, at 0; none under any nature, if it may not drop at will."""
    helps = game.agent > 0, game.nature > 0 or not game.may_drop
    everywhere = np.ones(len(target), dtype=np.bool_)
    reached, _ = _attract(game, target, everywhere, *helps, _predecessors(game))
    return _close(game, game.is_open & ~reached, 0.0, everywhere, reached, *helps)


def close_certain(game: Game, target: BoolArray) -> Game:
    """Close the states from which those who want the target reach it almost surely, at 1; likewise."""
    helps = game.agent > 0, game.nature > 0 and game.may_drop
    edges, policy = _predecessors(game), game.policy.copy()
    certain = game.is_open & _keep(game, target, game.is_open | target, *helps, edges, policy)
    return replace(game, is_open=game.is_open & ~certain, known=np.where(certain, 1.0, game.known), policy=policy)


def _close_infinite(game: Game, target: BoolArray) -> Game:
    """Close the states from which those who want small rewards cannot reach the target almost surely, at infinity.

    What remains is the greatest set within which the target keeps a chance from everywhere. States without a chance go
    first, then those that cannot keep out of them, and so on.
    """
    helps = game.agent < 0, game.nature < 0
    edges = _predecessors(game)
    inside = np.ones(len(target), dtype=np.bool_)
    while True:
        reached, rank = _attract(game, target, inside, *helps, edges, policy := game.policy.copy())
        lost = game.is_open & ~reached
        if not lost.any():
            return replace(game, rank=rank, policy=policy)
        game = _close(game, lost, np.inf, inside, reached, *helps)
        inside = inside & reached
        graph_kernels.shed(
            *game.rows, *edges, game.is_open, inside, *helps, lost, policy := game.policy.copy(),
            np.empty(len(target), dtype=np.int32),
        )  # fmt: skip
        is_open, known = game.is_open & ~lost, np.where(lost, np.inf, game.known)
        game = replace(game, is_open=is_open, known=known, policy=policy)


def _close_total_reward(game: Game) -> Game:
    """Close the states from which no reward can be forced at 0, those from which rewards recur for ever at infinity.

    Those who want large rewards win for ever, almost surely, on the greatest set within which a row with a reward keeps
    a chance from everywhere. A positive chance of getting there is enough for an infinite value, so moves that give
    one are as good as won, and the search is repeated until nothing new is won.
    """
    helps = game.agent > 0, game.nature > 0
    edges = _predecessors(game)
    pays = game.reward > 0
    nowhere, everywhere = np.zeros_like(game.is_open), np.ones_like(game.is_open)
    policy, won = game.policy.copy(), nowhere
    while True:
        winning = _keep(game, won, everywhere, *helps, edges, policy, pays, won)
        endless, _ = _attract(game, winning, everywhere, *helps, edges, policy)
        if (endless == won).all():
            break
        won = endless
    hopes = game.agent > 0, game.nature > 0 or not game.may_drop
    ahead, _ = _attract(game, won, everywhere, *hopes, edges, None, pays)
    game = _close(replace(game, policy=policy), won, np.inf, everywhere, won, True, True)
    return _close(game, ~ahead, 0.0, everywhere, ahead, *hopes, pays)


def _close(
    game: Game,
    states: BoolArray,
    value: float,
    inside: BoolArray,
    reached: BoolArray,
    agent_helps: bool,
    nature_helps: bool,
    winning_row: BoolArray | None = None,
) -> Game:
    policy = game.policy.copy()
    if not agent_helps:
        wins = np.zeros(game.imdp.graph.n_choices, dtype=np.bool_) if winning_row is None else winning_row
        graph_kernels.escape_rows(*game.rows, inside, reached, nature_helps, wins, states, policy)
    known = np.where(states, value, game.known)
    return replace(game, is_open=game.is_open & ~states, known=known, policy=policy)


def _keep(
    game: Game,
    target: BoolArray,
    inside: BoolArray,
    agent_helps: bool,
    nature_helps: bool,
    edges: tuple[Indices, IntArray],
    helper: IntArray,
    winning_row: BoolArray | None = None,
    won: BoolArray | None = None,
) -> BoolArray:
    """Return the greatest part of ``inside`` within which the target keeps a chance from everywhere."""
    while True:
        reached, _ = _attract(game, target, inside, agent_helps, nature_helps, edges, helper, winning_row, won)
        if (reached == inside).all():
            return inside
        inside = reached


def _predecessors(game: Game) -> tuple[Indices, IntArray]:
    graph = game.imdp.graph
    offset = np.zeros(graph.n_states + 1, dtype=np.int64)
    source = np.empty(graph.n_transitions, dtype=np.int32)
    graph_kernels.predecessors(graph.first_choice, graph.first_transition, graph.successor, offset, source)
    return offset, source


def _attract(
    game: Game,
    target: BoolArray,
    inside: BoolArray,
    agent_helps: bool,
    nature_helps: bool,
    edges: tuple[Indices, IntArray],
    helper: IntArray | None = None,
    winning_row: BoolArray | None = None,
    won: BoolArray | None = None,
) -> tuple[BoolArray, FloatArray]:
    """Return the states from which the helpers give the target a chance without leaving ``inside``, and their ranks."""
    reached = (target & inside).copy()
    rank = np.full(len(target), np.inf)
    rows = np.zeros(len(target), dtype=np.int32) if helper is None else helper
    wins = np.zeros(game.imdp.graph.n_choices, dtype=np.bool_) if winning_row is None else winning_row
    nowhere, everywhere = np.zeros_like(reached), np.ones_like(reached)
    graph_kernels.attract(
        *game.rows, *edges, game.is_open, inside, agent_helps, nature_helps, reached, wins,
        nowhere if won is None else won, everywhere, rank, rows, np.empty(len(target), dtype=np.int32),
    )  # fmt: skip
    return reached, rank

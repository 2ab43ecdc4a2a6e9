"""Decisions of states whose values, zero, the largest or infinite, follow from the graph and the bounds alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from plumdp.model.graph import BoolArray, FloatArray, IntArray
from plumdp.model.objectives import Kind, Nature, Objective
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver import graph_kernels
from plumdp.solver.game import Backward, Game, plain_game
from plumdp.solver.graph_kernels import BackwardSearch, Helpers


def make_game(imdp: IntervalMDP, objective: Objective, nature: Nature, backward: Backward | None = None) -> Game:
    """Return the game of an unbounded objective, with all states decided that graph and bounds alone decide.

    ``backward`` is that of an earlier game of the same graph and objective, if there was one.
    """
    return _DECIDE[objective.kind](plain_game(imdp, objective, nature, backward))


def _decide_zero(game: Game) -> Game:
    """Decide at 0 the states without a chance of more.

    If nature cannot drop all that intervals allow, there must be no chance with any nature.
    """
    target = game.known > 0
    # a nature that cannot drop all counts as helping: fewer states are decided, which is safe
    helps = Helpers(game.agent > 0, game.nature > 0 or not game.may_drop)
    everywhere = np.ones(len(target), dtype=np.bool_)
    reached, _ = _attract(game, target, everywhere, helps)
    return _decide(game, game.is_undecided & ~reached, 0.0, everywhere, reached, helps)


def decide_certain(game: Game, largest: float) -> Game:
    """Decide the states from which the players who want large values almost surely get the largest value.

    Nature only counts as one of them if it can drop all that intervals allow.
    """
    target = ~game.is_undecided & (game.known == largest)
    # a nature that cannot drop all counts as not helping: fewer states are decided, which is safe
    helps = Helpers(game.agent > 0, game.nature > 0 and game.may_drop)
    policy = game.policy.copy()
    certain = game.is_undecided & _keep(game, target, game.is_undecided | target, helps, policy)
    return replace(
        game, is_undecided=game.is_undecided & ~certain, known=np.where(certain, largest, game.known), policy=policy
    )


def _decide_infinite(game: Game) -> Game:
    """Decide at infinity the states from which those who want small rewards cannot reach a target almost surely.

    What remains is the greatest set within which the target keeps a chance from everywhere. States without a chance are
    removed first, then those from which they cannot be avoided, and so on.
    """
    target = ~game.is_undecided
    helps = Helpers(game.agent < 0, game.nature < 0)
    inside = np.ones(len(target), dtype=np.bool_)
    while True:
        reached, rank = _attract(game, target, inside, helps, policy := game.policy.copy())
        lost = game.is_undecided & ~reached
        if not lost.any():
            return replace(game, rank=rank, policy=policy)
        game = _decide(game, lost, np.inf, inside, reached, helps)
        inside = inside & reached
        policy, queue = game.policy.copy(), np.empty(len(target), dtype=np.int32)
        before = game.backward.predecessors
        graph_kernels.remove_leaving(game.rows, before, helps, game.is_undecided, inside, lost, policy, queue)
        is_undecided, known = game.is_undecided & ~lost, np.where(lost, np.inf, game.known)
        game = replace(game, is_undecided=is_undecided, known=known, policy=policy)


def _decide_total_reward(game: Game) -> Game:
    """Decide the states from which no reward can be forced at 0, those from which rewards recur forever at infinity.

    Those who want large rewards win forever, almost surely, on the greatest set within which a row with a reward keeps
    a chance from everywhere. A positive chance of getting there is enough for an infinite value, so moves that give
    one count as won, and the search is repeated until no more states are won.
    """
    helps = Helpers(game.agent > 0, game.nature > 0)
    pays = game.reward > 0
    nowhere, everywhere = np.zeros_like(game.is_undecided), np.ones_like(game.is_undecided)
    policy, won = game.policy.copy(), nowhere
    while True:
        winning = _keep(game, won, everywhere, helps, policy, pays, won)
        endless, _ = _attract(game, winning, everywhere, helps, policy)
        if (endless == won).all():
            break
        won = endless
    # for the decision at zero, as in _decide_zero
    may_help = Helpers(game.agent > 0, game.nature > 0 or not game.may_drop)
    ahead, _ = _attract(game, won, everywhere, may_help, None, pays)
    game = _decide(replace(game, policy=policy), won, np.inf, everywhere, won, Helpers(agent=True, nature=True))
    return _decide(game, ~ahead, 0.0, everywhere, ahead, may_help, pays)


_DECIDE: Mapping[Kind, Callable[[Game], Game]] = {
    Kind.END: _decide_zero,
    Kind.UNTIL_END: _decide_infinite,
    Kind.FOREVER: _decide_total_reward,
    Kind.AVERAGE: lambda game: game,
    Kind.DISCOUNTED: lambda game: game,  # all values are finite, and none is known from the graph
}


def _decide(
    game: Game,
    states: BoolArray,
    value: float,
    inside: BoolArray,
    reached: BoolArray,
    helps: Helpers,
    winning_row: BoolArray | None = None,
) -> Game:
    policy = game.policy.copy()
    if not helps.agent:
        wins = np.zeros(game.imdp.graph.n_choices, dtype=np.bool_) if winning_row is None else winning_row
        graph_kernels.escape_rows(game.rows, inside, reached, helps.nature, wins, states, policy)
    known = np.where(states, value, game.known)
    return replace(game, is_undecided=game.is_undecided & ~states, known=known, policy=policy)


def _keep(
    game: Game,
    target: BoolArray,
    inside: BoolArray,
    helps: Helpers,
    helper: IntArray,
    winning_row: BoolArray | None = None,
    won: BoolArray | None = None,
) -> BoolArray:
    """Return the greatest part of ``inside`` within which the target keeps a chance from everywhere."""
    while True:
        reached, _ = _attract(game, target, inside, helps, helper, winning_row, won)
        if (reached == inside).all():
            return inside
        inside = reached


def _attract(
    game: Game,
    target: BoolArray,
    inside: BoolArray,
    helps: Helpers,
    helper: IntArray | None = None,
    winning_row: BoolArray | None = None,
    won: BoolArray | None = None,
) -> tuple[BoolArray, FloatArray]:
    """Return the states from which the helpers give the target a chance without leaving ``inside``, and their ranks."""
    reached = (target & inside).copy()
    rank = np.where(reached, 0.0, np.inf)
    rows = np.zeros(len(target), dtype=np.int32) if helper is None else helper
    wins = np.zeros(game.imdp.graph.n_choices, dtype=np.bool_) if winning_row is None else winning_row
    nowhere, everywhere = np.zeros_like(reached), np.ones_like(reached)
    search = BackwardSearch(game.is_undecided, inside, reached, wins, nowhere if won is None else won, everywhere, rows)
    scan, queue = game.backward.scan, np.empty(len(target), dtype=np.int32)
    if scan is not None:
        graph_kernels.attract_in_order(game.rows, scan, helps, search, rank)
    else:
        graph_kernels.attract(game.rows, game.backward.predecessors, helps, search, rank, queue)
    return reached, rank

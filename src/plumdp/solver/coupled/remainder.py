"""The largest expected sum of residuals until a run is over, with nature at its worst, where the policy leads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from plumdp.base.rounding import UNDERFLOW, UNIT, UP
from plumdp.model.graph import BoolArray, FloatArray, Graph, IntArray, read_only
from plumdp.model.objectives import Reward
from plumdp.model.parametric import RewardStructure
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.by_sweeps import solve_discounted
from plumdp.solver.coupled.chain import PolicyChain
from plumdp.solver.game import Game, plain_game
from plumdp.solver.layout import SweepLayout, lay_out
from plumdp.solver.qualitative import make_game
from plumdp.solver.solve import solve_game

_LEAST = UNDERFLOW
_MAX_SWEEPS = 20_000


@dataclass(frozen=True, eq=False)
class ErrorModel:
    """The part that the policy reaches, as an interval MDP in which the residuals are rewards until the end.

    Its states are the open nodes of the chain, and one more for all closed ones.
    """

    imdp: IntervalMDP
    objective: Reward
    game: Game
    layout: SweepLayout
    initial: int
    ends_surely: bool  # whether runs end after finitely many steps, as no state can come back to itself

    def largest_sums(self, residuals: FloatArray, estimate: float, precision: float) -> FloatArray:
        """Return upper bounds on the expected sum of residuals (n_open) from each node (n_open + 1), perhaps infinite.

        It is infinite if nature can keep a run from ending, also where residuals are zero, as they are rewards until
        the end. They are divided by about the sum that is expected, as the solver's precision is absolute.
        """
        largest, unknown = float(residuals.max(initial=0)), np.full(len(residuals) + 1, np.inf)
        if not np.isfinite(largest):
            return unknown
        # a power of two, so that dividing by it rounds nothing
        about = estimate if 0 < estimate < np.inf else max(largest, _LEAST)
        size = float(2.0 ** np.clip(np.floor(np.log2(about)), -1000, 1000))
        rewards = np.append(residuals / size, 0.0)
        if not np.isfinite(rewards).all():
            return unknown
        game = replace(self.game, reward=rewards)
        if self.objective.discount is not None:
            solution = solve_discounted(game, precision, _MAX_SWEEPS, None)
            size *= 1 + 8 * UNIT / (1 - game.discount)  # the discount itself is rounded
        else:
            layout = replace(self.layout, rows=self.layout.rows._replace(reward=rewards[self.layout.choice]))
            if self.ends_surely:
                return _sums_in_one_pass(layout) * (size * UP)
            solution = solve_game(game, layout, self.objective, precision, _MAX_SWEEPS)
        return solution.upper * (size * UP)


def _sums_in_one_pass(layout: SweepLayout) -> FloatArray:
    """Return upper bounds by one pass, successors first, if no state can come back to itself."""
    high = layout.known.copy()
    high[: layout.n_undecided] = np.inf
    layout.sweep(0, layout.n_undecided, high, high, layout.first_row.copy(), side=1.0)
    return layout.by_state(high)


@dataclass(frozen=True, eq=False)
class StepErrors:
    """The part that the policy reaches, for sums of residuals that differ from step to step."""

    layout: SweepLayout  # of the open nodes and the end
    best_row: IntArray

    def step_back(self, sums: FloatArray, residuals: FloatArray, goes_on: BoolArray) -> FloatArray:
        """Return bounds on the sums (n_open + 1) from one step earlier on, nature's worst plus the residuals (n_open).

        Where the run does not go on at that step, there is nothing to sum up.
        """
        layout = self.layout
        moved = np.full(len(sums), np.inf)
        layout.sweep(0, layout.n_undecided, sums[layout.state], moved, self.best_row, side=1.0)
        result = np.zeros(len(sums))
        result[:-1] = np.where(goes_on, (layout.by_state(moved)[:-1] + residuals) * UP, 0.0)
        return result


def step_errors(chain: PolicyChain, uncertain: IntervalMDP, discount: Fraction | None) -> StepErrors:
    """Return the part of a relaxation that the policy of a chain reaches, for sums over a number of steps."""
    imdp = _part(chain, uncertain)
    n_states = imdp.graph.n_states
    objective = Reward(RewardStructure(np.zeros(n_states), None), "max", steps=1, discount=discount)
    game = replace(plain_game(imdp, objective, "optimistic"), is_undecided=np.ones(n_states, dtype=np.bool_))
    layout = lay_out(game)
    return StepErrors(layout, layout.first_row.copy())


def error_model(chain: PolicyChain, uncertain: IntervalMDP, discount: Fraction | None = None) -> ErrorModel:
    """Return the part of a relaxation that the policy of a chain reaches.

    Nature may drop all that its bounds let it drop, also if the support is known, as a larger sum is safe.
    """
    imdp = _part(chain, uncertain)
    n = chain.n_open
    is_end = np.arange(n + 1) == n
    reward = RewardStructure(np.append(np.ones(n), 0.0), None)
    objective = Reward(reward, "max", target=None if discount is not None else is_end, discount=discount)
    ends_surely = chain.is_ordered and not chain.has_loops()
    game = (plain_game if ends_surely else make_game)(imdp, objective, "optimistic")
    return ErrorModel(imdp, objective, game, lay_out(game), chain.initial, ends_surely)


def _part(chain: PolicyChain, uncertain: IntervalMDP) -> IntervalMDP:
    """Return the interval MDP of the open nodes and one end, which stays where it is."""
    n, end = chain.n_open, chain.n_open
    certain = len(uncertain.lower)  # the number of a new expression, which is one
    successor = np.append(np.minimum(chain.successor, end), end).astype(np.int32)
    graph = Graph(
        read_only(np.arange(n + 2, dtype=np.int32)),
        read_only(np.append(chain.first, len(successor)).astype(np.int32)),
        read_only(successor),
        chain.initial,
        {"node": np.arange(n + 1, dtype=np.int32)},
        read_only(np.zeros(n + 1, dtype=np.int32)),
        ("",),
    )
    expression = np.append(chain.expression, certain).astype(np.int32)
    lower, upper = (read_only(np.append(bounds, 1.0)) for bounds in (uncertain.lower, uncertain.upper))
    region = None if uncertain.region is None else uncertain.region.with_constants(np.ones(1))
    return IntervalMDP(graph, read_only(expression), lower, upper, region=region)

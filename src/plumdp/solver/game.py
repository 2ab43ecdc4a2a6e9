"""Game: an interval MDP and an objective as a game of agent and nature, with the states that are decided."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plumdp.model.graph import BoolArray, FloatArray, IntArray
from plumdp.model.objective import Nature, Objective
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver.graph_kernels import GameRows
from plumdp.solver.zero_sets import zero_sets


@dataclass(frozen=True, eq=False)
class Game:
    """A game in which the values of the decided states are known, and those of the others follow from their rows."""

    imdp: IntervalMDP
    reward: FloatArray  # (n_choices)
    discount: float
    agent: float  # +1 wants large values, -1 small ones
    nature: float
    is_undecided: BoolArray  # (n_states)
    known: FloatArray  # (n_states): value of the decided states
    policy: IntArray  # (n_states): attains the value of decided states; keeps the target reachable for a helping agent
    rank: FloatArray | None = None  # (n_states): for rewards, steps until a chance of the target

    def known_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return bounds on the values of the decided states.

        Infinite values that nature attains by the intervals, but perhaps not within the region, bound one side only.
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
    def rows(self) -> GameRows:
        """The rows of the model, as the kernels take them, with what can vanish at once."""
        imdp, graph = self.imdp, self.imdp.graph
        bounds = imdp.expression, imdp.lower, imdp.upper
        return GameRows(graph.first_choice, graph.first_transition, graph.successor, *bounds, *zero_sets(imdp))


def plain_game(imdp: IntervalMDP, objective: Objective, nature: Nature) -> Game:
    """Return the game with only those states decided that the objective names."""
    agent = 1.0 if objective.direction == "max" else -1.0
    opponent = -agent if nature == "robust" else agent
    reward, discount, is_end, value = objective.terms(imdp.graph)
    return Game(imdp, reward, discount, agent, opponent, ~is_end, value, imdp.graph.first_choice[:-1].copy())

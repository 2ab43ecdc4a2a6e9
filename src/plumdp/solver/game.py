"""Game: an interval MDP and an objective as a game of agent and nature, with the states that are decided."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from plumdp.model.graph import BoolArray, FloatArray, Graph, IntArray
from plumdp.model.objective import Nature, Objective
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.solver import graph_kernels
from plumdp.solver.graph_kernels import GameRows, Order, Predecessors
from plumdp.solver.zero_sets import zero_sets


@dataclass(frozen=True, eq=False)
class Backward:
    """The edges of a graph against their direction, whatever the bounds: found when first asked for, and then kept."""

    graph: Graph
    is_undecided: BoolArray  # (n_states): by the objective alone; a game on the graph decides these or more

    @cached_property
    def is_ordered(self) -> bool:
        """Whether every undecided successor of an undecided state is that state, or has a larger number."""
        return is_ordered(self.graph, self.is_undecided, may_loop=True)

    @cached_property
    def predecessors(self) -> Predecessors:
        """The predecessors of all states."""
        graph = self.graph
        offset, source = np.zeros(graph.n_states + 1, dtype=np.int64), np.empty(graph.n_transitions, dtype=np.int32)
        graph_kernels.predecessors(graph.first_choice, graph.first_transition, graph.successor, offset, source)
        return Predecessors(offset, source)

    @property
    def order(self) -> Order:
        """In which order attractions are found, as the kernels take it."""
        if self.is_ordered:
            return Order(True, Predecessors(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)))
        return Order(False, self.predecessors)


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
    backward: Backward = field(repr=False)
    rank: FloatArray | None = None  # (n_states): for rewards, steps until a chance of the target

    def with_all_undecided(self) -> Game:
        """Return the game with no state decided, as for a number of steps or a discount, where each is worth a step."""
        return replace(self, is_undecided=np.ones(self.imdp.graph.n_states, dtype=np.bool_))

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


def plain_game(imdp: IntervalMDP, objective: Objective, nature: Nature, backward: Backward | None = None) -> Game:
    """Return the game with only those states decided that the objective names."""
    agent = 1.0 if objective.direction == "max" else -1.0
    reward, discount, is_end, value = objective.terms(imdp.graph)
    backward = backward or Backward(imdp.graph, ~is_end)
    first = imdp.graph.first_choice[:-1].copy()
    return Game(imdp, reward, discount, agent, wanted_by(nature, agent), ~is_end, value, first, backward)


def wanted_by(nature: Nature, agent: float) -> float:
    """Return what nature wants, given what the agent wants: +1 large values, -1 small ones."""
    return -agent if nature == "robust" else agent


def is_ordered(graph: Graph, is_undecided: BoolArray, *, may_loop: bool) -> bool:
    """Return whether undecided successors have larger numbers than their undecided states; equal ones if they may."""
    found: bool = graph_kernels.is_ordered(
        graph.first_choice, graph.first_transition, graph.successor, is_undecided, may_loop
    )
    return found

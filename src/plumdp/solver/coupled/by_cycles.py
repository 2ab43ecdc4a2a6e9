"""Bounds on average rewards in the long run, with one point for all states, from cycles through one state.

Let a policy's runs come to a state again and again. Then the average reward g of a step is the expected reward of a
cycle, from that state until it comes back, divided by the expected length T of one. So the reward of a cycle less c
for each of its steps is D = (g - c) T, for any number c, and g = c + D / T. Both D and T are values of the model in
which a run ends when the state is reached for the second time. If c is about the average at the centre of the region, D
is about zero, so that T matters little.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, nextafter

import numpy as np

from plumdp.base.errors import WhyNot
from plumdp.base.rounding import UNIT
from plumdp.model.graph import BoolArray, FloatArray, Indices, IntArray
from plumdp.model.memory import among, remember
from plumdp.model.objectives import Objective, Reward
from plumdp.model.parametric import ParametricMDP, RewardStructure
from plumdp.relaxation.intervals import IntervalMDP

_STEPS = 400  # after which a chain is taken to have settled; any state will do, and one that is visited often is best


@dataclass(frozen=True, eq=False)
class Signed(Reward):
    """A reward until a target that may be negative, for one policy whose runs end almost surely."""

    def _check_rewards(self, total: FloatArray, graph: object) -> None:
        assert np.isfinite(total).all()


@dataclass(frozen=True, eq=False)
class Cycles:
    """A policy on the model in which a run ends when it is in a state for the second time."""

    model: ParametricMDP
    policy: IntArray  # (n_states)
    earned: RewardStructure  # of choices alone; before the first visit nothing counts
    steps: FloatArray  # (n_choices): 1 in the cycle, and 0 before it
    end: BoolArray  # (n_states)
    starts: BoolArray  # (n_states): where a cycle starts

    @property
    def reward(self) -> FloatArray:
        """The known reward of each choice (n_choices)."""
        assert self.earned.choice is not None
        return self.earned.choice

    def relaxed(self, uncertain: IntervalMDP) -> IntervalMDP:
        """Return a relaxation of the model as one of this model, by the intervals of its expressions."""
        return replace(uncertain, graph=self.model.graph, expression=self.model.expression, region=None)

    def total(self, less: float) -> Reward:
        """Return the reward of a cycle, less a number for each of its steps."""
        earned = replace(self.earned, choice=self.reward - less * self.steps)
        return Signed(earned, "max", target=self.end)

    def rounding(self, less: float) -> float:
        """Return the largest rounding error of the reward of a step in ``total``."""
        return 4 * UNIT * float(np.abs(self.reward).max(initial=0.0) + abs(less))

    def length(self) -> Reward:
        """Return the number of steps of a cycle."""
        return Reward(RewardStructure(None, self.steps), "max", target=self.end)


def cycles_of(model: ParametricMDP, policy: Indices, objective: Objective, point: FloatArray) -> Cycles | WhyNot:
    """Return the cycles of a policy through a state that it often visits at a point, or why there are none."""
    back, small = _often_visited(model, policy, point), model.graph
    keep = np.zeros((2, small.n_choices), dtype=np.bool_)
    keep[:, policy] = True  # of other choices nothing is asked

    def leave(memory: Indices, state: Indices, choice: Indices) -> Indices:
        return np.where(state == back, 1, memory)

    product = remember(model, leave, 2, "cycle", allow=among(keep))
    if isinstance(product, WhyNot):
        return product
    graph = product.graph
    assert graph.memory is not None
    state, choice = graph.memory.state, graph.memory.choice
    has_begun = (graph.states[graph.memory.names[0]] == 1) | (state == back)
    counts = has_begun[graph.state_of_choice()].astype(np.float64)
    earned = objective.terms(small).earned.at(choice).without(counts == 0)
    end = (graph.states[graph.memory.names[0]] == 1) & (state == back)
    only = graph.first_choice[:-1].astype(np.int32)
    starts = ~end & (state == back)
    return Cycles(product, only, earned, counts, end, starts)


def _often_visited(model: ParametricMDP, policy: Indices, point: FloatArray) -> int:
    """Return the state in which runs of a policy are most often after many steps, at a point."""
    from scipy.sparse import csr_array

    graph, n = model.graph, model.graph.n_states
    transitions = graph.transitions_of(policy)
    first = np.concatenate([[0], np.cumsum(np.diff(graph.first_transition)[policy])])
    probability = model.expressions.chances(point)[model.expression[transitions]]
    backward = csr_array((probability, graph.successor[transitions], first), shape=(n, n)).T.tocsr()
    share, total = np.zeros(n), np.zeros(n)
    share[graph.initial_state] = 1.0
    for step in range(_STEPS):
        share = backward @ share
        total += share if 2 * step >= _STEPS else 0.0
    return int(np.argmax(total))


def average_of(less: float, excess: tuple[float, float], length: tuple[float, float]) -> tuple[float, float]:
    """Return bounds on c + D / T, given bounds on D and on T >= 1, rounded outward."""
    shortest, longest = max(length[0], 1.0), max(length[1], 1.0)
    low = excess[0] / (shortest if excess[0] < 0 else longest)
    high = excess[1] / (shortest if excess[1] > 0 else longest)
    return nextafter(less + nextafter(low, -inf), -inf), nextafter(less + nextafter(high, inf), inf)

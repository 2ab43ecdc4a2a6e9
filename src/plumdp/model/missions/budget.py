"""Budgets that steps spend, and the reward at one step: questions that need a policy that counts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, lcm

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.graph import BoolArray, FloatArray, Graph, Indices
from plumdp.model.memory import Product, memory_name, needed, remember, with_values
from plumdp.model.missions.logic import Spending
from plumdp.model.objectives.mission import Mission, of_product
from plumdp.model.objectives.reward import Reward
from plumdp.model.parametric import ParametricMDP

_MOST = 10**7  # units of a budget
_WORDS = "knows what is left of the budget: its action may depend on it"


@dataclass(frozen=True, eq=False)
class Budget:
    """To come to a target, without passing a state to avoid before, and to spend at most so much on the way.

    The steps before the target spend, each the reward of its state and of its choice (as in PRISM and Storm).
    """

    name: str
    cost: Indices  # (n_choices), in units
    most: int  # units that may be spent
    unit: Fraction
    target: BoolArray  # (n_states)
    avoid: BoolArray  # (n_states)

    def asked_of(self, model: ParametricMDP, mission: Mission) -> Product:
        """Return the product of the model with what is left of the budget, and the question on it.

        The memory is one more than what is left. It is 0 if too much was spent, or the run is decided.
        """
        is_end = self.target | self.avoid

        def spend(memory: Indices, state: Indices, choice: Indices) -> Indices:
            return np.where(is_end[state], 0, np.maximum(memory - self.cost[choice], 0))

        unit = "" if self.unit == 1 else f", in units of {self.unit}"
        name, full = f"{self.name}_left", self.most + 1
        product = needed(remember(model, spend, full + 1, name, initial=full, words=f"{_WORDS}{unit}"), mission)
        graph = product.graph
        assert graph.memory is not None
        is_over, state = graph.states[memory_name(product)] == 0, graph.memory.state
        reach = mission.reaching(product, self.target[state] & ~is_over, self.avoid[state] | is_over)
        return with_values(product, np.arange(-1, self.most + 1, dtype=np.int32)), reach


def budget_of(spending: Spending, graph: Graph, target: BoolArray, avoid: BoolArray) -> Budget:
    """Return a budget in the largest unit that all costs and the budget itself are multiples of."""
    per_state, of_state = _exact(spending, spending.reward.state, graph.n_states)
    per_choice, of_choice = _exact(spending, spending.reward.choice, graph.n_choices)
    scale = lcm(*(value.denominator for value in (*per_state, *per_choice)))
    most = spending.most * scale
    units = ceil(most) - 1 if spending.is_below else floor(most)
    if units < 0:
        raise ModelError(f'{{"{spending.name}"}}: nothing is less than this budget; give a number above 0')
    if units > _MOST:
        raise ModelError(
            f'{{"{spending.name}"}}: this budget has {units:,} units of {Fraction(1, scale)}, more than {_MOST:,}; '
            "round what steps cost, or give less"
        )
    states, choices = (
        np.array([min(int(value * scale), units + 1) for value in values], dtype=np.int64)
        for values in (per_state, per_choice)
    )
    cost = states[of_state][graph.state_of_choice()] + choices[of_choice]
    return Budget(spending.name, cost, units, Fraction(1, scale), target, avoid)


def _exact(spending: Spending, values: FloatArray | None, size: int) -> tuple[list[Fraction], Indices]:
    """Return the distinct costs as the shortest decimals that they are written as, and the number of each."""
    if values is None:
        return [Fraction(0)], np.zeros(size, dtype=np.int64)
    distinct, number = np.unique(values, return_inverse=True)
    if distinct[0] < 0:
        raise ModelError(f'{{"{spending.name}"}}: a budget needs costs of at least 0, and one is {distinct[0]:g}')
    return [Fraction(repr(value)) for value in distinct.tolist()], number


_STEPS_LEFT = "counts steps: its action may depend on the number of steps left"


@dataclass(frozen=True, eq=False)
class Instant:
    """To be in a state after so many steps, whose reward counts, and no other."""

    step: int

    def asked_of(self, model: ParametricMDP, mission: Mission) -> Product:
        """Return the product of the model with a step counter, and the reward until the counter is one further."""
        over = self.step + 1

        def count(step: Indices, state: Indices, choice: Indices) -> Indices:
            return np.minimum(step + 1, over)

        product = needed(remember(model, count, over + 1, "step", words=_STEPS_LEFT), mission)
        assert mission.reward is not None
        step = product.graph.states[memory_name(product)]
        is_other = (step != self.step)[product.graph.state_of_choice()]
        earned = of_product(mission.reward, product.graph).without(is_other)
        return product, Reward(earned, mission.direction, step == over, nature=mission.nature, text=mission.text)

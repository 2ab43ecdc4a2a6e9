"""The reward of the state at one step, by a memory that counts steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumdp.model.graph import Indices
from plumdp.model.memory import Product, memory_name, remember
from plumdp.model.objectives.mission import Mission, of_product
from plumdp.model.objectives.reward import Reward
from plumdp.model.parametric import ParametricMDP

_WORDS = "counts steps: its action may depend on the number of steps left"


@dataclass(frozen=True, eq=False)
class Instant:
    """To be in a state after so many steps, whose reward counts, and no other."""

    step: int

    def asked_of(self, model: ParametricMDP, mission: Mission) -> Product | str:
        """Return the product of the model with a step counter, and the reward until the counter is one further."""
        over = self.step + 1

        def count(step: Indices, state: Indices, choice: Indices) -> Indices:
            return np.minimum(step + 1, over)

        product = remember(model, count, over + 1, "step", words=_WORDS)
        if isinstance(product, str):
            return product
        assert mission.reward is not None
        step = product.graph.states[memory_name(product)]
        is_other = (step != self.step)[product.graph.state_of_choice()]
        earned = of_product(mission.reward, product.graph).without(is_other)
        return product, Reward(earned, mission.direction, step == over, nature=mission.nature, text=mission.text)

"""The objective ``Mission``, the probability of runs that are told apart by what happened before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, Protocol

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.graph import BoolArray, Graph
from plumdp.model.objectives.protocol import Direction, Kind, Nature, Objective
from plumdp.model.objectives.reach import Reach
from plumdp.model.objectives.reward import Reward
from plumdp.model.parametric import RewardStructure
from plumdp.model.text import one_line
from plumdp.model.unmodelled_exits import ended

if TYPE_CHECKING:
    from plumdp.model.parametric import ParametricMDP


class Task(Protocol):
    """The memory of a mission, such as an automaton or a budget."""

    def asked_of(self, model: ParametricMDP, mission: Mission) -> tuple[ParametricMDP, Objective]:
        """Return the product of the model with the memory, and the question on it, or refuse one that is too large."""


def of_product(reward: RewardStructure, graph: Graph) -> RewardStructure:
    """Return the rewards of a model on a product with memory."""
    assert graph.memory is not None
    of_step = Reward(reward, "max", steps=1).terms(graph.memory.graph)  # of one step, where they may be negative
    return of_step.earned.at(graph.memory.choice)


@dataclass(frozen=True, eq=False)
class Mission:
    """The probability that a run does a task, or with ``complement`` that it does not, which takes memory.

    With ``reward`` it is the expected reward until the task is done, which is infinite if it may never be done. It has
    no value on the model itself: ``ask`` returns it as an objective on a product with memory.
    """

    task: Task
    complement: bool
    direction: Direction
    nature: Nature | None = None
    reward: RewardStructure | None = None
    text: str = ""
    unit: str = ""
    target: None = None

    def __repr__(self) -> str:
        return one_line(self, self.direction, self.text)

    @property
    def kind(self) -> Kind:
        """The worth of a run, which is decided where it ends."""
        return Kind.END if self.reward is None else Kind.UNTIL_END

    @property
    def n_steps(self) -> None:
        """No number of steps, as all may matter."""

    @property
    def cap(self) -> float:
        """The largest value there can be, which is 1 for a probability."""
        return 1.0 if self.reward is None else np.inf

    def reaching(self, product: ParametricMDP, target: BoolArray, avoid: BoolArray) -> Reach | Reward:
        """Return it as an objective on a product, given the states where the task is done and where it has failed."""
        direction, nature, text = self.direction, self.nature, self.text
        if self.reward is None:
            reach = Reach(target, avoid, direction, complement=self.complement, nature=nature, text=text)
            return ended(product, reach)
        reward = of_product(self.reward, product.graph)
        return ended(product, Reward(reward, direction, target, nature=nature, text=text, unit=self.unit))

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        """Refuse a model without memory, and whatever is asked there."""
        raise ModelError(
            f"{self.text or 'a mission'}: this needs memory, which is not supported here; certify, compare, decide, "
            "difference and improve take it, and ask(property, model) returns it as a question on a product"
        )

    terms = at_step = is_vacuous = flipped = restricted_to = stretched = check_size = _refuse

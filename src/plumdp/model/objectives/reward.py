"""The objective ``Reward``: expected rewards until a target, over a number of steps, discounted, or on average."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.graph import BoolArray, FloatArray, Graph, Indices
from plumdp.model.learned_rewards import LearnedRewards
from plumdp.model.objectives.protocol import (
    Direction,
    Kind,
    Nature,
    Payoff,
    check_states,
    check_words,
    discount_factor,
    set_fields,
    short,
    state_mask,
    whole_number,
)
from plumdp.model.parametric import RewardStructure
from plumdp.model.text import number_of, one_line


@dataclass(frozen=True, eq=False)
class Reward:
    """The expected reward until a target, over ``steps`` steps, or forever, discounted by ``discount`` per step.

    With a target, runs that may miss it have infinite value (PRISM's convention).

    Parameters
    ----------
    reward
        The reward structure.
    direction
        Which way the value is better, "max" or "min".
    target
        A mask of states at which a run ends; not together with a discount.
    steps
        How many steps count.
    discount
        What the reward of each step is multiplied by, against the step before.
    average
        Ask for the reward of a step in the long run; with none of the three above.
    nature, text
        As in ``Reach``.
    unit
        What rewards are counted in.

    Examples
    --------
    >>> Reward(RewardStructure([1.0, 0.0], None), "min", discount=0.9).discount
    Fraction(9, 10)
    """

    reward: RewardStructure
    direction: Direction
    target: BoolArray | None = None  # (n_states)
    steps: int | None = None
    discount: Fraction | None = None
    average: bool = False
    nature: Nature | None = None
    text: str = ""
    unit: str = ""  # what it is counted in, such as "€ per month": sentences say it

    def __post_init__(self) -> None:
        check_words(self.direction, self.nature)
        if not isinstance(self.reward, RewardStructure):
            raise ModelError(f"reward={short(self.reward)}: give a RewardStructure, such as model.rewards['name']")
        if self.target is not None and self.discount is not None:
            raise ModelError("a discounted reward has no target: leave out target or discount")
        if self.average and any(each is not None for each in (self.target, self.steps, self.discount)):
            raise ModelError("an average in the long run has no target, steps or discount: leave them out")
        target = None if self.target is None else state_mask("target", self.target)
        steps = None if self.steps is None else whole_number("steps", self.steps, "a whole number, at least 0")
        set_fields(self, target=target, steps=steps, discount=discount_factor(self.discount))

    def __repr__(self) -> str:
        until = "" if self.target is None else f"until {int(self.target.sum()):,} target states"
        window = "" if self.steps is None else number_of(self.steps, "step")
        discount = "" if self.discount is None else f"discount {self.discount}"
        average = "on average" if self.average else ""
        return one_line(self, self.direction, until, window, discount, average, self.text)

    @property
    def is_discounted(self) -> bool:
        """Whether later steps count less."""
        return self.discount is not None

    @property
    def kind(self) -> Kind:
        """The worth of a run, which is its rewards, until the target if there is one."""
        if self.average:
            return Kind.AVERAGE
        if self.discount is not None:
            return Kind.DISCOUNTED
        return Kind.FOREVER if self.target is None else Kind.UNTIL_END

    @property
    def n_steps(self) -> int | None:
        """The number of steps that matter, or None if all do."""
        return self.steps

    @property
    def cap(self) -> float:
        """The largest value there can be, which is infinity."""
        return np.inf

    def terms(self, graph: Graph) -> Payoff:
        """Return the rewards of all choices, those of their states included. Runs end in targets, at 0."""
        total = np.zeros(graph.n_choices)
        if self.reward.state is not None:
            total += np.repeat(self.reward.state, np.diff(graph.first_choice))
        if self.reward.choice is not None:
            total += self.reward.choice
        self._check_rewards(total, graph)
        nowhere = np.zeros(graph.n_states, dtype=np.bool_)
        is_end = nowhere if self.target is None else self.target
        return Payoff(total, float(self.discount or 1), is_end, np.zeros(graph.n_states), self.reward.learned)

    def at_step(self, values: FloatArray, step: int) -> FloatArray:
        """Return the values at a step, where nothing more is collected in a target."""
        return values if self.target is None else np.where(self.target, 0.0, values)

    def is_vacuous(self, bound: float) -> bool:
        """Return whether a bound on the value says nothing.

        A lower bound of zero says nothing of rewards over all steps, which are never negative.
        """
        if self.direction == "min":
            return bound >= np.inf
        if self.average:
            return bound <= -np.inf
        return bound <= 0 and self.steps is None and not self.is_discounted

    def flipped(self) -> None:
        """Return None, as an expected reward is never a complement."""

    def restricted_to(self, choices: Indices) -> Reward:
        """Return the objective on the model that has only these choices, one for each state."""
        if self.reward.choice is None:
            return self
        return replace(self, reward=self.reward.at(choices))

    def stretched(self, graph: Graph) -> Reward:
        """Return the objective on the model whose choices are states of their own, so that each step takes two."""
        of_state = np.zeros(graph.n_states) if self.reward.state is None else self.reward.state
        of_choice = np.zeros(graph.n_choices) if self.reward.choice is None else self.reward.choice
        off = np.zeros(graph.n_choices, dtype=np.bool_)
        scale = 2.0 if self.average else 1.0  # of twice as many steps, each earns half on average
        return replace(
            self,
            reward=RewardStructure(scale * np.concatenate([of_state, of_choice]), None, self._stretched_coins(graph)),
            target=None if self.target is None else np.concatenate([self.target, off]),
            steps=None if self.steps is None else 2 * self.steps,
        )

    def _stretched_coins(self, graph: Graph) -> LearnedRewards | None:
        learned = self.reward.learned
        if learned is None:
            return None
        coins = learned.of_choices(np.append(np.full(graph.n_states, -1), learned.coin))
        return replace(coins, span=tuple(2 * span for span in coins.span)) if self.average else coins

    def check_size(self, graph: Graph) -> None:
        """Refuse the graph of another model."""
        check_states("target", self.target, graph)
        parts = (("states", self.reward.state, graph.n_states), ("choices", self.reward.choice, graph.n_choices))
        for things, values, size in parts:
            if values is not None and len(values) != size:
                raise ModelError(f"rewards are given for {len(values):,} {things}, but the model has {size:,}")

    def _check_rewards(self, total: FloatArray, graph: Graph) -> None:
        if not np.isfinite(total).all():
            raise ModelError("rewards must be finite numbers")
        is_summed = self.steps is None and self.discount is None and not self.average
        if is_summed and (total < 0).any():
            choice = graph.describe_choice(int(np.argmax(total < 0)))
            where = f"{choice}: the reward {total[total < 0][0]:g} is negative"
            raise ModelError(f"{where}; without a bound on steps and without a discount rewards must be at least 0")

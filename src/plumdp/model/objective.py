"""What counts and which way is better: the objectives a policy is made for."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from plumdp.model.graph import BoolArray
from plumdp.model.parametric import RewardStructure

Direction: TypeAlias = Literal["max", "min"]
Nature: TypeAlias = Literal["robust", "optimistic"]


@dataclass(frozen=True, eq=False)
class Reach:
    """The probability to come to a target without passing a state to avoid before.

    A run may end in a state to avoid but not leave it: in a state that is both, the target counts if its step does,
    and otherwise the run has failed. So ``a U b`` has the target ``b`` and avoids ``!a``, with or without steps.

    ``steps = (first, last)`` asks for a target state at some step from ``first`` to ``last`` (both included). With
    ``complement`` the objective is one minus that probability, as in ``G safe`` = never reach an unsafe state;
    ``direction`` always says which way the value itself is better.
    """

    target: BoolArray  # (n_states)
    avoid: BoolArray  # (n_states): may end a run as its target, may not be passed
    direction: Direction
    steps: tuple[int, int] | None = None
    complement: bool = False
    nature: Nature | None = None  # as the property says; None leaves it to the caller
    text: str = ""


@dataclass(frozen=True, eq=False)
class Reward:
    """The expected reward until a target, over ``steps`` steps, or for ever; discounted by ``discount`` per step.

    With a target, runs that may miss it have infinite value (PRISM's convention).
    """

    reward: RewardStructure
    direction: Direction
    target: BoolArray | None = None  # (n_states)
    steps: int | None = None
    discount: Fraction | None = None
    nature: Nature | None = None
    text: str = ""


Objective: TypeAlias = Reach | Reward

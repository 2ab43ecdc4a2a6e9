"""Objectives: what a policy is made for, checked when they are made; each answers for its steps, range and sizes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.errors import ModelError
from plumdp.model.expressions.polynomial import Number, exact
from plumdp.model.graph import BoolArray, FloatArray, Graph, Indices, own_array
from plumdp.model.parametric import RewardStructure
from plumdp.model.text import cut, number_of, one_line

Direction: TypeAlias = Literal["max", "min"]
Nature: TypeAlias = Literal["robust", "optimistic"]

_MAX_STEPS = 10**9  # each takes a pass through the whole model


@dataclass(frozen=True, eq=False)
class Reach:
    """The probability to come to a target without passing a state to avoid before.

    A run may end in a state to avoid but not leave it: in a state that is both, the target counts if its step does,
    and otherwise the run has failed. So ``a U b`` has the target ``b`` and avoids ``!a``, with or without steps.

    ``steps = (first, last)`` asks for a target state at some step from ``first`` to ``last`` (both included). With
    ``complement`` the objective is one minus that probability, as in ``G safe`` = never reach an unsafe state;
    ``direction`` always says which way the value itself is better. Sets of states are copied, and may be lists.

    >>> Reach([False, True], [False, False], "max").target
    array([False,  True])
    """

    target: BoolArray  # (n_states)
    avoid: BoolArray  # (n_states): may end a run as its target, may not be passed
    direction: Direction
    steps: tuple[int, int] | None = None
    complement: bool = False
    nature: Nature | None = None  # as the property says; None leaves it to the caller
    text: str = ""

    def __post_init__(self) -> None:
        _check_words(self.direction, self.nature)
        target, avoid = _mask("target", self.target), _mask("avoid", self.avoid)
        if target.shape != avoid.shape:
            raise ModelError(f"target is given for {len(target):,} states, but avoid for {len(avoid):,}")
        _set(self, target=target, avoid=avoid, steps=_window(self.steps))

    def __repr__(self) -> str:
        window = "" if self.steps is None else f"in steps {self.steps[0]:,} to {self.steps[1]:,}"
        negated = "complement" if self.complement else ""
        return one_line(self, self.direction, f"{int(self.target.sum()):,} target states", window, negated, self.text)

    @property
    def is_discounted(self) -> bool:
        """Whether later steps count less: never for a probability."""
        return False

    @property
    def n_steps(self) -> int | None:
        """The last step that matters, or None if all do."""
        return None if self.steps is None else self.steps[1]

    @property
    def cap(self) -> float:
        """What no value exceeds: 1."""
        return 1.0

    def at_step(self, values: FloatArray, step: int) -> FloatArray:
        """Return the values at a step: a target counts within its window, a state to avoid ends the run."""
        assert self.steps is not None
        first, last = self.steps
        counts = self.target & (first <= step)
        if step == last:
            return counts.astype(np.float64)
        return np.where(counts, 1.0, np.where(self.avoid, 0.0, values))

    def is_vacuous(self, bound: float) -> bool:
        """Return whether a bound on the value says nothing: every probability keeps it."""
        return bound >= 1 if self.direction == "min" else bound <= 0

    def flipped(self) -> Reach | None:
        """Return the objective whose value is one minus this one's if this is a complement, and None otherwise.

        >>> never = Reach([False, True], [False, False], "max", complement=True)
        >>> never.flipped()
        Reach(min, 1 target states)
        """
        opposite: Direction = "min" if self.direction == "max" else "max"
        return replace(self, complement=False, direction=opposite) if self.complement else None

    def restricted_to(self, choices: Indices) -> Reach:
        """Return the objective on the model that has only these choices, one for each state: the same."""
        return self

    def stretched(self, graph: Graph) -> Reach:
        """Return the objective on the model whose choices are states of their own, so that each step takes two."""
        off = np.zeros(graph.n_choices, dtype=np.bool_)
        steps = None if self.steps is None else (2 * self.steps[0], 2 * self.steps[1])
        target, avoid = np.concatenate([self.target, off]), np.concatenate([self.avoid, off])
        return replace(self, target=target, avoid=avoid, steps=steps)

    def check_size(self, graph: Graph) -> None:
        """Refuse the graph of another model."""
        _check_states("target", self.target, graph)
        _check_states("avoid", self.avoid, graph)


@dataclass(frozen=True, eq=False)
class Reward:
    """The expected reward until a target, over ``steps`` steps, or forever; discounted by ``discount`` per step.

    With a target, runs that may miss it have infinite value (PRISM's convention). A target and a discount do not go
    together.

    >>> Reward(RewardStructure([1.0, 0.0], None), "min", discount=0.9).discount
    Fraction(9, 10)
    """

    reward: RewardStructure
    direction: Direction
    target: BoolArray | None = None  # (n_states)
    steps: int | None = None
    discount: Fraction | None = None
    nature: Nature | None = None
    text: str = ""

    def __post_init__(self) -> None:
        _check_words(self.direction, self.nature)
        if not isinstance(self.reward, RewardStructure):
            raise ModelError(f"reward={_short(self.reward)}: give a RewardStructure, such as model.rewards['name']")
        if self.target is not None and self.discount is not None:
            raise ModelError("a discounted reward has no target: leave out target or discount")
        target = None if self.target is None else _mask("target", self.target)
        steps = None if self.steps is None else _whole("steps", self.steps, "a whole number, at least 0")
        _set(self, target=target, steps=steps, discount=_discount(self.discount))

    def __repr__(self) -> str:
        until = "" if self.target is None else f"until {int(self.target.sum()):,} target states"
        window = "" if self.steps is None else number_of(self.steps, "step")
        discount = "" if self.discount is None else f"discount {self.discount}"
        return one_line(self, self.direction, until, window, discount, self.text)

    @property
    def is_discounted(self) -> bool:
        """Whether later steps count less."""
        return self.discount is not None

    @property
    def n_steps(self) -> int | None:
        """The number of steps that matter, or None if all do."""
        return self.steps

    @property
    def cap(self) -> float:
        """What no value exceeds: infinity."""
        return np.inf

    def at_step(self, values: FloatArray, step: int) -> FloatArray:
        """Return the values at a step: nothing more is collected in a target."""
        return values if self.target is None else np.where(self.target, 0.0, values)

    def is_vacuous(self, bound: float) -> bool:
        """Return whether a bound on the value says nothing; only rewards over all steps are never negative."""
        if self.direction == "min":
            return bound >= np.inf
        return bound <= 0 and self.steps is None and not self.is_discounted

    def flipped(self) -> None:
        """Return None: an expected reward is never a complement."""

    def restricted_to(self, choices: Indices) -> Reward:
        """Return the objective on the model that has only these choices, one for each state."""
        if self.reward.choice is None:
            return self
        return replace(self, reward=replace(self.reward, choice=self.reward.choice[choices]))

    def stretched(self, graph: Graph) -> Reward:
        """Return the objective on the model whose choices are states of their own, so that each step takes two."""
        of_state = np.zeros(graph.n_states) if self.reward.state is None else self.reward.state
        of_choice = np.zeros(graph.n_choices) if self.reward.choice is None else self.reward.choice
        off = np.zeros(graph.n_choices, dtype=np.bool_)
        return replace(
            self,
            reward=RewardStructure(np.concatenate([of_state, of_choice]), None),
            target=None if self.target is None else np.concatenate([self.target, off]),
            steps=None if self.steps is None else 2 * self.steps,
        )

    def check_size(self, graph: Graph) -> None:
        """Refuse the graph of another model."""
        _check_states("target", self.target, graph)
        parts = (("states", self.reward.state, graph.n_states), ("choices", self.reward.choice, graph.n_choices))
        for things, values, size in parts:
            if values is not None and len(values) != size:
                raise ModelError(f"rewards are given for {len(values):,} {things}, but the model has {size:,}")


Objective: TypeAlias = Reach | Reward


def digest(objective: Objective) -> str:
    """Return a hash of all that an objective asks for, whatever text it was written as."""
    state = blake2b(digest_size=16)
    for field in fields(objective):
        value = getattr(objective, field.name)
        parts = (value.state, value.choice) if isinstance(value, RewardStructure) else (value,)
        for part in () if field.name == "text" else parts:
            state.update(f"{field.name}:{part.shape if isinstance(part, np.ndarray) else part!r};".encode())
            state.update(part.tobytes() if isinstance(part, np.ndarray) else b"")
    return state.hexdigest()


def _check_states(name: str, mask: BoolArray | None, graph: Graph) -> None:
    if mask is not None and mask.shape != (graph.n_states,):
        raise ModelError(f"{name} has shape {mask.shape}, but the model has {graph.n_states} states")


def _set(objective: Objective, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(objective, name, value)


def _check_words(direction: str, nature: str | None) -> None:
    if direction not in ("max", "min"):
        raise ModelError(f"direction={_short(direction)}: choose 'max' or 'min'")
    if nature not in (None, "robust", "optimistic"):
        raise ModelError(
            f"nature={_short(nature)}: choose 'robust' (against the agent) or 'optimistic' (with the agent)"
        )


def _mask(name: str, values: npt.ArrayLike) -> BoolArray:
    """Return a set of states as a truth value for each state; 0 and 1 will do."""
    array = np.asarray(values)
    if array.dtype.kind in "iu" and ((array == 0) | (array == 1)).all():
        array = array.astype(np.bool_)
    if array.dtype != np.bool_ or array.ndim != 1:
        given = f"{array.dtype} of shape {array.shape}"
        raise ModelError(f"{name}: give one truth value for each state, such as model.labels['goal'], not {given}")
    return own_array(array)


def _window(steps: Any) -> tuple[int, int] | None:
    if steps is None:
        return None
    wanted = "two whole numbers (first, last) with 0 <= first <= last"
    if not isinstance(steps, tuple | list) or len(steps) != 2:
        raise ModelError(f"steps={_short(steps)}: give {wanted}")
    first, last = (_whole("steps", step, wanted, shown=steps) for step in steps)
    if first > last:
        raise ModelError(f"steps={_short(steps)}: give {wanted}")
    return first, last


def _whole(name: str, value: Any, wanted: str, shown: Any = None) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < 0:
        raise ModelError(f"{name}={_short(value if shown is None else shown)}: give {wanted}")
    if value > _MAX_STEPS:
        raise ModelError(f"{name}={_short(value)}: that is more than {_MAX_STEPS:,}; ask without a bound on the steps")
    return int(value)


def _discount(given: Number | None) -> Fraction | None:
    if given is None:
        return None
    is_possible = not isinstance(given, bool) and (not isinstance(given, float) or 0 < given < 1)
    value = exact(given) if is_possible else Fraction(0)
    if not 0 < value < 1:
        raise ModelError(f"discount={_short(given)}: give a number strictly between 0 and 1")
    return value


def _short(value: Any) -> str:
    return cut(repr(value))

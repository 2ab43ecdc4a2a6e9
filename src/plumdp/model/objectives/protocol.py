"""The protocol of all objectives, which the solver and the certificate use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, fields, is_dataclass
from enum import StrEnum
from fractions import Fraction
from hashlib import blake2b
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.base.vocabulary import Nature as Nature
from plumdp.model.expressions.polynomial import Number, exact
from plumdp.model.graph import BoolArray, FloatArray, Graph, Indices, own_array
from plumdp.model.learned_rewards import LearnedRewards
from plumdp.model.parametric import RewardStructure
from plumdp.model.text import cut

Direction: TypeAlias = Literal["max", "min"]


class Kind(StrEnum):
    """The worth of a run that no number of steps bounds. The solver decides qualitative states for each kind."""

    END = "the value of the state where the run ends, and 0 if it never ends"
    UNTIL_END = "the sum of rewards until the run ends, and infinity if it may never end"
    FOREVER = "the sum of the rewards of all steps"
    DISCOUNTED = "the discounted sum of the rewards of all steps"
    AVERAGE = "the average reward of a step in the long run"


class Payoff(NamedTuple):
    """The worth of the steps and of the states of a graph to an objective."""

    reward: FloatArray  # (n_choices): the reward of a step
    discount: float  # by which the rewards of later steps are multiplied, once for each step
    is_end: BoolArray  # (n_states): whether a run ends there
    value: FloatArray  # (n_states): what a run is worth that ends there, at least 0; 0 elsewhere
    learned: LearnedRewards | None = None  # rewards to be added that depend on parameters, none of which is below 0

    def at(self, probability: FloatArray, side: float) -> FloatArray:
        """Return the reward of a step (n_choices), given those of expressions, rounded to a side."""
        return self.reward if self.learned is None else self.learned.added_to(self.reward, probability, side)

    @property
    def earned(self) -> RewardStructure:
        """The reward of a step as that of choices alone."""
        return RewardStructure(None, self.reward, self.learned)


@runtime_checkable
class Objective(Protocol):
    """A frozen dataclass with these members, such as ``Reach`` and ``Reward``."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def direction(self) -> Direction:
        """The direction of better values, "max" for large ones and "min" for small ones."""

    @property
    def nature(self) -> Nature | None:
        """The side that nature is on, if the objective says so."""

    @property
    def text(self) -> str:
        """The property that the objective was read from, or nothing."""

    @property
    def target(self) -> BoolArray | None:
        """The states (n_states) that runs are to reach, or None if there are none."""

    @property
    def kind(self) -> Kind:
        """The worth of a run."""

    @property
    def n_steps(self) -> int | None:
        """The number of steps that matter, or None if all do."""

    @property
    def cap(self) -> float:
        """The largest value there can be."""

    def terms(self, graph: Graph) -> Payoff:
        """Return the worth of the steps and of the states of the graph."""

    def at_step(self, values: FloatArray, step: int) -> FloatArray:
        """Return the values at a step, given the values if the run goes on, which needs a number of steps."""

    def is_vacuous(self, bound: float) -> bool:
        """Return whether a bound on the value says nothing."""

    def flipped(self) -> Objective | None:
        """Return the objective whose value is one minus this one's if it is to be solved instead, else None."""

    def restricted_to(self, choices: Indices) -> Objective:
        """Return the objective on the model that has only these choices, one for each state."""

    def stretched(self, graph: Graph) -> Objective:
        """Return the objective on the model whose choices are states of their own, so that each step takes two."""

    def check_size(self, graph: Graph) -> None:
        """Refuse the graph of another model."""


def is_open_everywhere(objective: Objective) -> bool:
    """Return whether no state's value follows from the graph alone: with a number of steps, a discount, an average."""
    return objective.n_steps is not None or objective.kind in (Kind.DISCOUNTED, Kind.AVERAGE)


_MEMBERS = ("__dataclass_fields__", *(name for name in vars(Objective) if not name.startswith("_")))


def is_objective(given: object) -> TypeGuard[Objective]:
    """Return whether something has all members of an objective, as ``isinstance`` would for much more time."""
    return all(hasattr(given, name) for name in _MEMBERS)


def digest(objective: Objective) -> str:
    """Return a hash of all that an objective asks for, whatever text it was written as."""
    state = blake2b(digest_size=16)
    for field in fields(objective):
        value = getattr(objective, field.name)
        for part in () if field.name in ("text", "unit") else _parts(value):
            state.update(f"{field.name}:{part.shape if isinstance(part, np.ndarray) else part!r};".encode())
            state.update(part.tobytes() if isinstance(part, np.ndarray) else b"")
    return state.hexdigest()


def _parts(value: Any) -> Iterator[Any]:
    """Yield what a value is made of, such as the arrays of a reward structure or of an automaton."""
    if not is_dataclass(value):
        yield value
        return
    for field in fields(value):
        yield from _parts(getattr(value, field.name))


_MAX_STEPS = 10**9  # each takes a pass through the whole model


def check_states(name: str, mask: BoolArray | None, graph: Graph) -> None:
    """Refuse a set of states of another model."""
    if mask is not None and mask.shape != (graph.n_states,):
        raise ModelError(f"{name} has shape {mask.shape}, but the model has {graph.n_states} states")


def set_fields(objective: Objective, **values: Any) -> None:
    """Set fields of a frozen dataclass while it is made, to the given values in one form."""
    for name, value in values.items():
        object.__setattr__(objective, name, value)


def check_words(direction: str, nature: str | None) -> None:
    """Refuse words for the direction and for nature that do not exist."""
    if direction not in ("max", "min"):
        raise ModelError(f"direction={short(direction)}: choose 'max' or 'min'")
    if nature not in (None, "robust", "optimistic"):
        raise ModelError(
            f"nature={short(nature)}: choose 'robust' (against the agent) or 'optimistic' (with the agent)"
        )


def state_mask(name: str, values: npt.ArrayLike) -> BoolArray:
    """Return a set of states as a truth value for each state, for which 0 and 1 will do."""
    array = np.asarray(values)
    if array.dtype.kind in "iu" and ((array == 0) | (array == 1)).all():
        array = array.astype(np.bool_)
    if array.dtype != np.bool_ or array.ndim != 1:
        given = f"{array.dtype} of shape {array.shape}"
        raise ModelError(f"{name}: give one truth value for each state, such as model.labels['goal'], not {given}")
    return own_array(array)


def window(steps: Any) -> tuple[int, int] | None:
    """Return the first and the last step of a window, or None if it has no bounds."""
    if steps is None:
        return None
    wanted = "two whole numbers (first, last) with 0 <= first <= last"
    if not isinstance(steps, tuple | list) or len(steps) != 2:
        raise ModelError(f"steps={short(steps)}: give {wanted}")
    first, last = (whole_number("steps", step, wanted, shown=steps) for step in steps)
    if first > last:
        raise ModelError(f"steps={short(steps)}: give {wanted}")
    return first, last


def whole_number(name: str, value: Any, wanted: str, shown: Any = None) -> int:
    """Return a number of steps, or refuse anything but a whole number of at least 0."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < 0:
        raise ModelError(f"{name}={short(value if shown is None else shown)}: give {wanted}")
    if value > _MAX_STEPS:
        raise ModelError(f"{name}={short(value)}: that is more than {_MAX_STEPS:,}; ask without a bound on the steps")
    return int(value)


def discount_factor(given: Number | None) -> Fraction | None:
    """Return a discount as an exact number strictly between 0 and 1, or None if there is none."""
    if given is None:
        return None
    is_possible = not isinstance(given, bool) and (not isinstance(given, float) or 0 < given < 1)
    value = exact(given) if is_possible else Fraction(0)
    if not 0 < value < 1:
        raise ModelError(f"discount={short(given)}: give a number strictly between 0 and 1")
    return value


def short(value: Any) -> str:
    """Return a value as it is written, cut for a message."""
    return cut(repr(value))

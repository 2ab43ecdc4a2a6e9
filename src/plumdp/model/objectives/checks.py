"""Checks of the parts of objectives, which are sets of states, steps, discounts and words."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.model.expressions.polynomial import Number, exact
from plumdp.model.graph import BoolArray, Graph, own_array
from plumdp.model.objectives.protocol import Objective
from plumdp.model.text import cut

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

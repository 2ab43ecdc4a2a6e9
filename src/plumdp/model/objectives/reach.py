"""The objective ``Reach``, the probability to come to a target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.graph import BoolArray, FloatArray, Graph, Indices
from plumdp.model.objectives.protocol import (
    Direction,
    Kind,
    Nature,
    Payoff,
    check_states,
    check_words,
    set_fields,
    state_mask,
    window,
)
from plumdp.model.text import one_line


@dataclass(frozen=True, eq=False)
class Reach:
    """The probability of reaching a target without passing a state to avoid.

    A run may end in a state to avoid but not leave it: in a state that is both, the target counts if its step does. So
    ``a U b`` has the target ``b`` and avoids ``!a``, with or without steps.

    Parameters
    ----------
    target, avoid
        Masks of states, which are copied.
    direction
        Which way the value is better, "max" or "min".
    steps
        The first and the last step at which the target counts, both included.
    complement
        Ask for one minus that probability, as in ``G safe``.
    nature
        Whether nature is "robust" or "optimistic", if the text says so.
    text
        The property that it comes from.

    Examples
    --------
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
        check_words(self.direction, self.nature)
        target, avoid = state_mask("target", self.target), state_mask("avoid", self.avoid)
        if target.shape != avoid.shape:
            raise ModelError(f"target is given for {len(target):,} states, but avoid for {len(avoid):,}")
        set_fields(self, target=target, avoid=avoid, steps=window(self.steps))

    def __repr__(self) -> str:
        window = "" if self.steps is None else f"in steps {self.steps[0]:,} to {self.steps[1]:,}"
        negated = "complement" if self.complement else ""
        return one_line(self, self.direction, f"{int(self.target.sum()):,} target states", window, negated, self.text)

    @property
    def is_discounted(self) -> bool:
        """Whether later steps count less, which they never do for a probability."""
        return False

    @property
    def kind(self) -> Kind:
        """The worth of a run, which is 1 in a target, and 0 in a state to avoid and if it never ends."""
        return Kind.END

    @property
    def n_steps(self) -> int | None:
        """The last step that matters, or None if all do."""
        return None if self.steps is None else self.steps[1]

    @property
    def cap(self) -> float:
        """The largest value there can be, which is 1."""
        return 1.0

    def terms(self, graph: Graph) -> Payoff:
        """Return no rewards, and the targets and the states to avoid, where runs end."""
        return Payoff(np.zeros(graph.n_choices), 1.0, self.target | self.avoid, self.target.astype(np.float64))

    def at_step(self, values: FloatArray, step: int) -> FloatArray:
        """Return the values at a step, where a target counts within its window, and a state to avoid ends the run."""
        assert self.steps is not None
        first, last = self.steps
        counts = self.target & (first <= step)
        if step == last:
            return counts.astype(np.float64)
        return np.where(counts, 1.0, np.where(self.avoid, 0.0, values))

    def is_vacuous(self, bound: float) -> bool:
        """Return whether a bound on the value says nothing, as it holds for every probability."""
        return bound >= 1 if self.direction == "min" else bound <= 0

    def flipped(self) -> Reach | None:
        """Return the objective whose value is one minus this one's if this is a complement, and None otherwise.

        >>> never = Reach([False, True], [False, False], "max", complement=True)
        >>> never.flipped()
        Reach(min, 1 target states)
        """
        return self._flipped

    @cached_property
    def _flipped(self) -> Reach | None:  # the same object each time, so that what is prepared for it is found again
        opposite: Direction = "min" if self.direction == "max" else "max"
        return replace(self, complement=False, direction=opposite) if self.complement else None

    def restricted_to(self, choices: Indices) -> Reach:
        """Return the objective unchanged, also for the model that has only these choices, one for each state."""
        return self

    def stretched(self, graph: Graph) -> Reach:
        """Return the objective on the model whose choices are states of their own, so that each step takes two."""
        off = np.zeros(graph.n_choices, dtype=np.bool_)
        steps = None if self.steps is None else (2 * self.steps[0], 2 * self.steps[1])
        target, avoid = np.concatenate([self.target, off]), np.concatenate([self.avoid, off])
        return replace(self, target=target, avoid=avoid, steps=steps)

    def check_size(self, graph: Graph) -> None:
        """Refuse the graph of another model."""
        check_states("target", self.target, graph)
        check_states("avoid", self.avoid, graph)

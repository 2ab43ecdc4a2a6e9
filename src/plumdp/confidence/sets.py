"""What every confidence set says of itself, whatever its shape: its method, its guarantee, and intervals if it has any.

A new kind is a file in this folder with a frozen dataclass that has these fields, a function that makes a region of it
(stage 4), and one line in the table ``plumdp.learning.SETS``.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from plumdp.model.graph import FloatArray

Guarantee: TypeAlias = Literal["finite-sample, anytime", "finite-sample, fixed N", "asymptotic", "none"]
"""What "with probability at least 1 - error" rests on. Anytime: nothing but the model. Fixed N: that how much was
sampled was not decided by looking at outcomes. Asymptotic: many runs. None: such data void these intervals."""


class ConfidenceSet(Protocol):
    """What the data say about all probabilities at once."""

    @property
    def method(self) -> str:
        """How the set was made, in words."""

    @property
    def guarantee(self) -> Guarantee:
        """What its confidence rests on."""

    @property
    def intervals(self) -> tuple[FloatArray, FloatArray] | None:
        """The lower and the upper bound of each expression; None if the set has no intervals of its own."""

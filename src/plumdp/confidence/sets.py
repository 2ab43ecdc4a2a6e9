"""What every confidence set says of itself, whatever its shape: its method, its guarantee, and intervals if it has any.

A new kind is a file in this folder with a frozen dataclass that has these fields, a function that makes a region of it
(stage 4), and one line in the table ``plumdp.learning.methods.SETS``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from plumdp.model.graph import FloatArray


class Guarantee(StrEnum):
    """What "with probability at least 1 - error" rests on; each is equal to its text.

    >>> Guarantee.ANYTIME == "finite-sample, anytime", Guarantee("none")
    (True, 'none')
    """

    ANYTIME = "finite-sample, anytime"  # nothing but the model
    PLANNED = "finite-sample, planned"  # that how much data there would be was fixed first; more may be added at will
    FIXED = "finite-sample, fixed N"  # that how much was sampled was not decided by looking at outcomes
    ASYMPTOTIC = "asymptotic"  # many runs
    NONE = "none"  # such data void these intervals

    __repr__ = str.__repr__  # at the prompt as in JSON: the text


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

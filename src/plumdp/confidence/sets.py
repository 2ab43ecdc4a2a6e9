"""The protocol of confidence sets, which says of each of them what the stages behind it ask.

A new kind is a file in this folder with a frozen dataclass that has these fields, a function that makes a region of it
(stage 4), and one line in the table ``plumdp.learning.methods.SETS``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from plumdp.base.vocabulary import Sets
from plumdp.confidence.bets import Direction
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
    """The probabilities, or the parameters, that the data leave possible, all at once."""

    @property
    def kind(self) -> Sets:
        """The kind of set, by its name in ``SETS``."""

    @property
    def method(self) -> str:
        """How the set was made, in words."""

    @property
    def guarantee(self) -> Guarantee:
        """What its confidence rests on."""

    @property
    def intervals(self) -> tuple[FloatArray, FloatArray] | None:
        """The lower and the upper bound of each expression; None if the set has no intervals of its own."""

    @property
    def estimate(self) -> FloatArray | None:
        """The parameters at which the data are most likely, if they were found on the way: not a claim."""

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions of parameters in which the set was made narrow."""

    @property
    def rests_on(self) -> tuple[str, ...]:
        """The assumptions besides the model and the sampling, in words."""

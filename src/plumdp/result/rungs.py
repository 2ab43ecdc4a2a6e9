"""Rungs: each bounds a value under premises and with a share of the error of its own, the weakest premises first.

All shares were fixed before the data, and sum to at most one. So but for a probability of at most the error, everything
that a rung says is true whose premises are true, and which rung is read may be decided by looking at all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from plumdp.base.vocabulary import Guarantee, Status


class Ground(StrEnum):
    """What a rung rests on, from weak premises to strong ones; each is equal to its text."""

    WHOLE_RUNS = "whole runs"  # runs are alike, and followed the policy
    LIFE_TABLE = "life table"  # besides, they were censored independently of everything in them
    RIVAL_RUNS = "runs of one policy"  # of a difference: whole runs bound one value, and the model the other one
    ROWS = "rows"  # where a step leads depends on state and action alone, or on parameters, too

    def __repr__(self) -> str:  # not an assignment, which Sphinx cannot print as a default
        return str.__repr__(self)


@dataclass(frozen=True)
class Rung:
    """Bounds on a value, what they rest on, and which share of the error they spend."""

    ground: Ground
    lower: float
    upper: float
    status: Status
    guarantee: Guarantee
    share: Fraction
    premises: tuple[str, ...]
    reason: str = ""  # why it claims nothing, in words
    cap: float | None = None  # if it is about whole runs, of whose totals no more than this counts

    @property
    def is_claim(self) -> bool:
        """Whether it says something, and nothing contradicts it."""
        return self.status == Status.CERTIFIED

    def excludes(self, other: Rung) -> bool:
        """Return whether both claim bounds that have no number in common."""
        return self.is_claim and other.is_claim and (self.lower > other.upper or self.upper < other.lower)


def leading(rungs: Sequence[Rung]) -> Rung:
    """Return the rung that is read first: of those that claim something, the one with the weakest premises.

    If none claims anything, it is the one with the most premises, whose reasons say most.
    """
    return next((rung for rung in rungs if rung.is_claim), rungs[-1])

"""Objectives, each in its file: ``Reach``, ``Reward``, missions, and the protocol ``Objective`` of all of them."""

from __future__ import annotations

from plumdp.model.objectives.protocol import (
    Direction,
    Kind,
    Nature,
    Objective,
    Payoff,
    digest,
    is_objective,
    is_open_everywhere,
)
from plumdp.model.objectives.reach import Reach
from plumdp.model.objectives.reward import Reward

__all__ = [
    "Direction",
    "Kind",
    "Nature",
    "Objective",
    "Payoff",
    "Reach",
    "Reward",
    "digest",
    "is_objective",
    "is_open_everywhere",
]

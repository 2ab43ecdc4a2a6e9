"""Bounds on values by whole runs, beside the constraints of evidence: they cut no region, and are a rung alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.vocabulary import Guarantee
from plumdp.confidence.bets import HalfSpace
from plumdp.model.question import Question
from plumdp.result.rungs import Ground


@dataclass(frozen=True, eq=False)
class RunEnds:
    """Bounds on the value of a policy, or on that less the value of another one, by what whole runs earned."""

    question: Question
    policies: tuple[npt.NDArray[Any], ...]  # one; or two, the value of the second of which is subtracted
    of_practice: bool  # whether it is what was done, which the policy only resembles
    lower: float
    upper: float
    error: float
    stand_alone: bool  # as the model's rows mix what chances of arms depend on
    premises: tuple[str, ...]  # in words
    why_not: str = ""  # why runs say nothing, in words
    guarantee: Guarantee = Guarantee.ANYTIME
    cap: float | None = None  # the amount that what a run earned beyond it counts as
    ground: Ground = Ground.WHOLE_RUNS

    def is_about(self, question: Question, policies: Sequence[npt.NDArray[Any]], *, of_practice: bool = False) -> bool:
        """Return whether these are bounds on the value of a policy, or on its difference to a second one."""
        are_same = len(self.policies) == len(policies) and all(map(np.array_equal, self.policies, policies))
        return are_same and self.of_practice == of_practice and self.question.digest == question.digest

    @property
    def intervals(self) -> None:
        """None, as single expressions are not bounded."""

    def half_spaces(self, names: tuple[str, ...]) -> tuple[HalfSpace, ...]:
        """Return none, as nothing is said about parameters."""
        return ()

    def widened(self, by: float) -> RunEnds:
        """Return the same bounds, as they do not rest on the model's rows."""
        return self


def silent(question: Question, policies: tuple[npt.NDArray[Any], ...], why_not: str, *, of_practice: bool) -> RunEnds:
    """Return bounds that say nothing, and why; their share of the error is spent, whatever the log looks like."""
    return RunEnds(question, policies, of_practice, -inf, inf, 0.0, False, (), why_not)

"""Bounds on values by whole runs, as one of the constraints of evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.confidence.bets import HalfSpace
from plumdp.model.question import Question


@dataclass(frozen=True, eq=False)
class RunEnds:
    """Bounds on the value of a policy, or on that less the value of another one, by what whole runs earned."""

    question: Question
    policies: tuple[npt.NDArray[Any], ...]  # one; or two, the value of the second of which is subtracted
    lower: float
    upper: float
    error: float
    stand_alone: bool  # as the model's rows mix what chances of arms depend on

    def is_about(self, question: Question, policies: Sequence[npt.NDArray[Any]]) -> bool:
        """Return whether these are bounds on the value of a policy, or on its difference to a second one."""
        are_same = len(self.policies) == len(policies) and all(map(np.array_equal, self.policies, policies))
        return are_same and self.question.digest == question.digest

    @property
    def contradiction(self) -> str:
        """Why what is assumed of the runs is wrong, whatever the model is; nothing if some value is left."""
        if self.lower <= self.upper:
            return ""
        what = "value" if len(self.policies) == 1 else "difference"
        return (
            f"whole runs put a {what} above {self.lower:.6g} and below {self.upper:.6g}, so what is assumed of them is "
            "wrong: they are not alike, or their order, chances or range are not as stated"
        )

    @property
    def intervals(self) -> None:
        """None, as single expressions are not bounded."""

    def half_spaces(self, names: tuple[str, ...]) -> tuple[HalfSpace, ...]:
        """Return none, as nothing is said about parameters."""
        return ()

    def widened(self, misfit: float) -> RunEnds:
        """Return the same bounds, as they do not rest on the model's rows."""
        return self

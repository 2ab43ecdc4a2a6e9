"""How many runs of a log reach each step, and how many are censored in it: they stop there without being at an end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from plumdp.model.graph import BoolArray, Indices
from plumdp.model.text import number_of

LENGTH = "steps of the run"  # the column with the number of steps that a run made; no variable is called so
MOST = 1_000  # steps that are told apart; runs with more are counted together
_SHARE, _FEW = 0.05, 5  # of the runs that begin a step, from where on it is said; fewer runs than that are chance
_SEEN = 0.01  # of all runs: of a step that fewer are seen to end, little follows
WHAT_TO_DO = (
    "if what happened in such a step is in the log for some and not for others, its risk is wrong: take shorter steps, "
    "or the times of events; if a limit that was fixed before cut them off, nothing is wrong"
)


class CensoredStep(NamedTuple):
    """A step of runs, from 1 on, how many runs began it, and how many of these were censored in it."""

    step: int
    n_begun: int
    n_cut: int

    def __str__(self) -> str:
        were = "was" if self.n_cut == 1 else "were"
        return f"{self.n_cut:,} of {number_of(self.n_begun, 'run')} that began step {self.step} {were} censored in it"


@dataclass(frozen=True)
class CensoredRuns:
    """Runs by the number of steps they made: those that were censored then, and those that were over.

    A run is over in a state that is never left in the model, or from which no run of the log goes on.

    >>> print(*CensoredRuns((0, 40, 0, 60), (0, 30, 20)).steps(), sep="; ")
    0 of 150 runs that began step 1 were censored in it; 40 of 120 runs that began step 2 were censored in it; \
0 of 60 runs that began step 3 were censored in it; 60 of 60 runs that began step 4 were censored in it
    >>> [each.step for each in CensoredRuns((0, 40, 0, 60), (0, 30, 20)).notable()]
    [2]
    """

    cut: tuple[int, ...] = ()
    over: tuple[int, ...] = ()

    @staticmethod
    def of(lengths: Indices, is_cut: BoolArray, n: Indices) -> CensoredRuns:
        """Return the ends of n runs each with so many steps."""
        sums = (np.bincount(lengths[which], n[which]).astype(np.int64) for which in (is_cut, ~is_cut))
        return CensoredRuns(*(tuple(each.tolist()) for each in sums))

    def __add__(self, other: CensoredRuns) -> CensoredRuns:
        pairs = ((self.cut, other.cut), (self.over, other.over))
        return CensoredRuns(*(tuple(map(sum, zip_longest(*pair, fillvalue=0))) for pair in pairs))

    def to_dict(self) -> dict[str, list[int]]:
        """Return both ready for JSON; of a log without an order, nothing."""
        return {name: [*each] for name, each in (("cut", self.cut), ("over", self.over)) if each}

    def steps(self) -> list[CensoredStep]:
        """Return each step, with the runs that began it; none beyond those that are told apart."""
        both = np.array([*zip_longest(self.cut, self.over, fillvalue=0)], dtype=np.int64).reshape(-1, 2)
        begun = both.sum() - np.cumsum(both.sum(axis=1)) + both[:, 0]
        rows = zip(begun.tolist(), both[:, 0].tolist(), strict=True)
        return [CensoredStep(number, *row) for number, row in enumerate(rows, 1) if row[0] and number <= MOST]

    def notable(self) -> list[CensoredStep]:
        """Return the steps in which many are censored, so that it matters whether the others are like these.

        Where all are censored, as at the end of a study, no outcome is seen, and none can be missing because of what it
        was.
        """
        least = _SEEN * (sum(self.cut) + sum(self.over))
        return [
            each
            for each in self.steps()
            if each.n_cut > max(_SHARE * each.n_begun, _FEW - 1) and each.n_begun - each.n_cut > least
        ]


def told(steps: Sequence[CensoredStep]) -> str:
    """Return the step in which the most are censored, and how many others there are, in words."""
    worst = max(steps, key=lambda each: each.n_cut)
    return str(worst) + (f", and likewise in {number_of(len(steps) - 1, 'other step')}" if len(steps) > 1 else "")

"""``WholeRuns``: what ``read_whole_runs`` returns, the states and actions of runs; nothing here reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import Censoring
from plumdp.model.graph import FloatArray, Indices
from plumdp.model.text import listing, number_of, one_line
from plumdp.model.values import Codes, shown

_OF_ROWS = ("label", "state", "action")
ROUNDED = 1e-6  # of chances that are equal, or sum to one, as people write them


class NoRuns(DataError):
    """A log whose columns do not name run and step of each row, or that is no file or data frame in memory."""


@dataclass(frozen=True, eq=False)
class WholeRuns:
    """The states of runs and the actions taken there, by run and step; the last state of a run has no action."""

    names: npt.NDArray[Any]  # (n_runs)
    first: Indices  # (n_runs + 1): the first row of each run, and the number of rows
    label: npt.NDArray[Any]  # (n_rows): the step as the log has it
    state: Codes  # (n_rows)
    action: Codes  # (n_rows): -1 in the last row of each run
    only_ordered: bool  # whether steps only put rows in order, so that a missing one does not show
    expected: float | None = None  # runs that were pre-specified before there were any; then names put runs in order
    return_range: tuple[float, float] | None = None  # between which all returns lie, if somebody said so beforehand
    began_together: bool = False  # all in one period, so that no outcome decided how many there are
    cap: float | None = (
        None  # beyond which a return counts as this amount, above 0 or below, if somebody fixed it before
    )
    arm: npt.NDArray[Any] | None = None  # (n_runs): whose run it was, as was known before it began
    chance: FloatArray | None = None  # (n_runs): with which its arm was drawn
    task: npt.NDArray[Any] | None = None  # (n_runs): that was drawn before the arm
    censoring: Censoring | None = None  # why runs end early, if somebody said so
    rests_on: tuple[str, ...] = ()  # what is assumed of runs that were left out, in words
    missing: Indices | None = None  # (n_rows): rows of the run that are missing before each, if any is
    arms: tuple[str, ...] = ()  # that were chosen of these, in this order

    def __repr__(self) -> str:
        return one_line(self, number_of(len(self), "run"), number_of(len(self.state) - len(self), "step"))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def has_fixed_number(self) -> bool:
        """Whether no outcome decided how many there are; then they may be in any order that outcomes did not make."""
        return self.began_together and self.expected is None and self.arm is None

    @property
    def run(self) -> Indices:
        """The run of each row, by number."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    @property
    def time(self) -> Indices:
        """The number of steps before each row, with those whose rows are missing."""
        place = np.arange(len(self.state)) - self.first[self.run]
        return place if self.missing is None else self.missing + place

    def complete(self) -> WholeRuns:
        """Return the runs in which no row is missing, as if that had nothing to do with how they went."""
        if self.missing is None:
            return self
        is_kept = self.missing[self.first[1:] - 1] == 0
        n_left = int((~is_kept).sum())
        left = f"that a row is missing in {n_left:,} of {number_of(len(self), 'run')}, which are left out,"
        said = (*self.rests_on, f"{left} has nothing to do with how these runs went")
        return replace(self._with(np.flatnonzero(is_kept)), missing=None, rests_on=said)

    def _with(self, keep: Indices) -> WholeRuns:
        """Return some runs, which are about these arms as before."""
        chosen: dict[str, Any] = {name: getattr(self, name)[np.isin(self.run, keep)] for name in _OF_ROWS}
        of_runs = {name: getattr(self, name) for name in ("names", "arm", "chance", "task")}
        chosen |= {name: None if each is None else each[keep] for name, each in of_runs.items()}
        chosen["first"] = np.append(0, np.cumsum(np.diff(self.first)[keep]))
        return replace(self, **chosen)

    def of(self, *arms: str) -> WholeRuns:
        """Return the runs of some arms; where arms are compared, the first is compared to the second."""
        if self.arm is None:
            raise DataError("these runs have no arms; name their column with ", Option("columns", {"arm": ...}))
        there = [*np.unique(self.arm)]
        unknown = [each for each in arms if each not in there]
        if unknown or not arms:
            raise DataError(f"{', '.join(unknown) or 'no arm'}: choose arms of {listing(there)}")
        chosen, n_all = self._with(np.flatnonzero(np.isin(self.arm, arms))), len(there)
        if (n_all, len(arms)) != (2, 2):
            if self.chance is not None and any(np.ptp(self.chance[self.arm == each]) > ROUNDED for each in there):
                raise DataError(
                    "arms were drawn with a chance that differs from run to run, so that the runs of one arm are not "
                    "like all runs: ask about both arms of a log that has two, the other one as the policy against"
                )
            chosen = replace(chosen, chance=None)  # among these arms it would be another one, which nobody wrote down
        return replace(chosen, arms=arms)

    def place(self, row: int) -> str:
        """Return the name of the run and the step of a row, for messages."""
        return f"run {shown(self.names[self.run[row]])}, step {shown(self.label[row])}"

"""At which moments of a log bets are placed, given how the log came about and what is known of its order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np

from plumdp.data.columns import EPISODE, STEP, LogForm
from plumdp.data.counts import CountArray, Pilot, PilotEnd, Sampling
from plumdp.data.pilots import ROWS_PER_RUN, moments_of, open_pilot, planned_pilot
from plumdp.errors import DataError
from plumdp.model.text import number_of
from plumdp.vocabulary import Order as Order

_NAMED = 6  # files whose order is told one by one

_RESTS_ON = {
    None: "the runs of the log were numbered without looking at how they went",
    "runs": "the runs of the log are numbered in the order in which they were made, each ended before the next began",
    "time": "the rows of the log are in the order in which their steps happened",
}


@dataclass(frozen=True)
class SharedRun:
    """A run whose number is used in several files, and is not seen to go on from one to the next."""

    run: Any
    files: Sequence[str]
    n: int  # such runs in all
    has_steps: bool  # whether the log numbers the steps of its runs

    def refusal(self, column: str) -> DataError:
        """Return the error that says what to do."""
        first, second = (Path(file).name for file in self.files[:2])
        first, second = (first, second) if first != second else (self.files[0], self.files[1])
        others = f" (and {number_of(self.n - 1, 'other run')} in several files)" if self.n > 1 else ""
        why = (
            "whose steps are not consecutive numbers, as those of a run that goes on in the next file are"
            if self.has_steps
            else f"and no column {STEP} tells whether a run goes on in the next file"
        )
        return DataError(
            f"{column} {self.run} is in {first} and in {second}{others}, {why}; so it is not known which runs came "
            f'first. If each file numbers its runs anew, say partitions="files"; if runs go on, give a column {STEP} '
            "that numbers their steps 0, 1, 2, …; or say pilot=False, to do without bets"
        )


@dataclass(frozen=True)
class LogPilot:
    """At which moments of a log bets are placed: after so many of its runs or rows, which are in order."""

    unit: Literal["runs", "rows"]
    end: PilotEnd
    order: Order | None  # what was said of the log
    expected: float | None = None  # runs or rows, if somebody said so beforehand

    @property
    def per_run(self) -> int:
        """How many of its unit count as a run."""
        return 1 if self.unit == "runs" else ROWS_PER_RUN

    def moments(self, n: int) -> tuple[int, ...]:
        """Return after how many of n runs or rows bets are placed."""
        return moments_of(n, self.per_run)

    def pilot(self, moments: Sequence[CountArray], n: int, nothing: CountArray) -> Pilot | None:
        """Return the pilot of n runs or rows, given what had been seen at each moment; None if there is none."""
        rests_on = _RESTS_ON[self.order]
        if self.end == PilotEnd.PLANNED:
            return planned_pilot(moments, n, per_run=self.per_run, rests_on=rests_on)
        return open_pilot(moments, n, nothing, per_run=self.per_run, rests_on=rests_on, expected=self.expected)


def pilot_of_log(
    form: LogForm,
    sampling: Sampling,
    order: Order | None,
    *,
    has_runs: bool,
    wanted: bool = True,
    expected: float | None = None,
) -> LogPilot | None:
    """Return at which moments of a log bets are placed, or None if nothing that is known of it says what came first.

    Its length was fixed beforehand if it is the runs of "trajectories", which are alike, so that any order will do
    that does not look at how they went; or the rows of "independent" samples. Not the rows of runs, whose number
    depends on how the runs went. All else may have ended because of what it showed.
    """
    _check(form, order, has_runs)
    planned = _planned_of_log(form, sampling, order, has_runs)
    if expected is not None and (planned is None or planned.end == PilotEnd.PLANNED or not wanted):
        raise DataError(
            f"expected={expected:g}: this is for a log with an order whose length was not fixed beforehand; say "
            'order="runs" or order="time", or leave it out'
        )
    if expected is not None and not 0 < expected < inf:
        raise DataError(f"expected={expected:g}: give the number of runs, or of rows, that you expect, above 0")
    return None if planned is None or not wanted else replace(planned, expected=expected)


def _planned_of_log(form: LogForm, sampling: Sampling, order: Order | None, has_runs: bool) -> LogPilot | None:
    if form == "counts":
        return None
    if sampling == "trajectories" and has_runs:
        return LogPilot("runs", PilotEnd.PLANNED, "runs" if order == "runs" else None)
    if order is None:
        return None
    if sampling == "independent" and form == "transitions" and order == "time":
        return LogPilot("rows", PilotEnd.PLANNED, order)
    return LogPilot("rows" if order == "time" else "runs", PilotEnd.POWER_OF_FOUR, order)


def pilot_of_counts(
    moments: Sequence[CountArray], n_runs: Collection[Any], sampling: Sampling, expected: float | None
) -> Pilot | None:
    """Return the pilot of ready-made counts, of so many runs; there is no number if no row has a run.

    ``moments`` is what had been seen after 16, 64, … runs, also where there are fewer.
    """
    try:
        (n,) = (int(n) for n in n_runs or [0])
    except (ValueError, TypeError):
        raise DataError(
            "these counts are not those of one query: they do not agree on how many runs there are; read the result of "
            "each query by itself, or say pilot=False"
        ) from None
    is_planned = sampling == "trajectories"
    end, order = (PilotEnd.PLANNED, None) if is_planned else (PilotEnd.POWER_OF_FOUR, "runs")
    planned = LogPilot("runs", end, cast("Order | None", order), expected)
    return planned.pilot(moments[: len(planned.moments(n))], n, np.zeros_like(moments[0]))


def _check(form: LogForm, order: Order | None, has_runs: bool) -> None:
    if order is not None and order not in get_args(Order):
        raise DataError(f"order={order!r}: choose one of {', '.join(map(repr, get_args(Order)))}, or leave it out")
    if form == "counts" and order is not None:
        raise DataError(
            "ready-made counts have no order, so that it is not known what came first; ask for it where they are "
            'counted: counts_query(..., order="runs")'
        )
    if order == "runs" and not has_runs:
        raise DataError(
            f'order="runs": the log has no column {EPISODE}; say which it is with columns={{"{EPISODE}": …}}'
        )


def after_files(pilot: Pilot | None, order: Order | None, files: Sequence[str]) -> Pilot | None:
    """Return the pilot of a log whose order is also that of its files, which somebody has to vouch for as well."""
    if pilot is None or order is None or len(files) < 2:
        return pilot
    names = [Path(file).name for file in files]
    names = names if len({*names}) == len(names) else [*files]
    listed = names if len(names) <= _NAMED else [*names[:3], "…", f"{names[-1]} ({len(names):,} files)"]
    return replace(pilot, rests_on=f"{pilot.rests_on}, file after file: {', '.join(listed)}")


def not_numbered(column: str, kind: str) -> DataError:
    """Return the error for names of runs whose order is not known."""
    return DataError(
        f'order="runs": column {column} has the type {kind}, and its values are not all numbers, so that they do not '
        "tell which run was first; number the runs in their order"
    )

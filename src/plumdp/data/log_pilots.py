"""At which moments of a log bets are placed, given how the log came about and what is known of its order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Literal, get_args

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import EPISODE, LogForm, Order
from plumdp.data.columns import N_RUNS, STEP
from plumdp.data.counts import Pilot, PilotEnd, Sampling
from plumdp.data.pilots import RESTS_ON, ROWS_PER_RUN, is_wanted, moments_for, open_pilot, planned_pilot
from plumdp.data.same_files import ANEW
from plumdp.data.seen import Seen
from plumdp.model.text import number_of

_NAMED = 6  # files whose order is told one by one


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
            f"first; {ANEW}; if runs go on, give a column {STEP} that numbers their steps 0, 1, 2, …; or ",
            Option("pilot", False),
            ", to do without bets",
        )


@dataclass(frozen=True)
class Moments:
    """After how many runs or rows of a log bets are placed."""

    column: str  # that names the runs; nothing if rows are counted
    n: int  # all runs, or at least as many rows as there are
    sizes: Sequence[int]
    ends: Sequence[int] = ()  # of parts, by which it is tested whether rows changed

    @property
    def stages(self) -> Sequence[int]:
        """After how many runs another stage begins, of bets or of parts."""
        return sorted({*self.sizes, *self.ends})


@dataclass(frozen=True)
class LogPilot:
    """At which moments of a log bets are placed: after so many of its runs or rows, which are in order."""

    unit: Literal["runs", "rows"]
    end: PilotEnd
    order: Order | None  # what was said of the log
    expected: float | None = None  # runs or rows, if somebody said so beforehand
    is_table: bool = False  # rows are unknown: bets are placed later as well
    n_transitions: int | None = None  # of the model; None if only what all logs keep is known, as of ready-made counts

    @property
    def per_run(self) -> int:
        """How many of its unit count as a run."""
        return 1 if self.unit == "runs" else ROWS_PER_RUN

    def moments(self, n: int) -> tuple[int, ...]:
        """Return after how many of n runs or rows bets are placed."""
        is_planned = self.end == PilotEnd.PLANNED and (self.is_table or self.n_transitions is not None)
        return moments_for(
            n, self.per_run, is_table=self.is_table, is_planned=is_planned, n_transitions=self.n_transitions or 0
        )

    def pilot(self, moments: Sequence[Seen], n: int, nothing: Seen) -> Pilot | None:
        """Return the pilot of n runs or rows, given what had been seen at each moment; None if there is none."""
        rests_on = RESTS_ON[self.order]
        if self.end == PilotEnd.PLANNED:
            return planned_pilot(moments, n, per_run=self.per_run, rests_on=rests_on, sizes=self.moments(n))
        return open_pilot(
            moments,
            n,
            nothing,
            per_run=self.per_run,
            rests_on=rests_on,
            expected=self.expected,
            is_table=self.is_table,
        )


def pilot_of_log(
    form: LogForm,
    sampling: Sampling,
    order: Order | None,
    *,
    has_runs: bool,
    wanted: bool = True,
    expected: float | None = None,
    is_table: bool = False,
    n_transitions: int | None = None,
) -> LogPilot | None:
    """Return at which moments of a log bets are placed, or None if nothing that is known of it says what came first.

    Its length was fixed beforehand if it is the runs of "trajectories", which are alike, so that any order will do
    that does not look at how they went; or the rows of "independent" samples. Not the rows of runs, whose number
    depends on how the runs went. All else may have ended because of what it showed.
    """
    _check(order, has_runs)
    planned = _planned_of_log(form, sampling, order, has_runs)
    if expected is not None:
        _check_expected(expected, planned, sampling, order, wanted)
    if not is_wanted(wanted) or planned is None:
        return None
    size = n_transitions if planned.unit == "runs" else None  # first rows are read once more for each moment
    return replace(planned, expected=expected, is_table=is_table, n_transitions=size)


def _planned_of_log(form: LogForm, sampling: Sampling, order: Order | None, has_runs: bool) -> LogPilot | None:
    if sampling == "trajectories" and has_runs:
        return LogPilot("runs", PilotEnd.PLANNED, "runs" if order == "runs" else None)
    if order is None:
        return None
    if sampling == "independent" and form == "transitions" and order == "time":
        return LogPilot("rows", PilotEnd.PLANNED, order)
    return LogPilot("rows" if order == "time" else "runs", PilotEnd.POWER_OF_FOUR, order)


def _check_expected(
    expected: float, planned: LogPilot | None, sampling: Sampling, order: Order | None, wanted: bool
) -> None:
    """Refuse an expected length that is not one, or that nothing would be done with."""
    is_number = isinstance(expected, int | float) and not isinstance(expected, bool)
    said = Option("expected", expected)
    if not is_number or not 0 < expected < inf:
        raise DataError(said, ": give the number of runs, or of rows, that you expected, above 0")
    if not wanted:
        raise DataError(said, ": no bets are placed with pilot=False, so that no length is expected; leave it out")
    if planned is not None and planned.end == PilotEnd.PLANNED:
        raise DataError(
            said,
            ": ",
            Option("sampling", sampling),
            " says that the length of the log was fixed beforehand, so that it was known; leave it out",
        )
    if order is None:
        raise DataError(
            said,
            ": this is for a log whose order is known; say ",
            Option("order", "runs"),
            " or ",
            Option("order", "time"),
            ", or leave it out",
        )


def runs_of_counts(n_runs: Collection[Any]) -> int:
    """Return the number of runs that all rows of ready-made counts agree on; none if no row has a run."""
    try:
        (n,) = (int(n) for n in n_runs or [0])
    except (ValueError, TypeError):
        raise DataError(
            "these counts are not those of one query: they do not agree on how many runs there are; read the result of "
            "each query by itself"
        ) from None
    return n


def order_of_counts(order: Order | None, columns: Collection[str]) -> Order | None:
    """Return the order of ready-made counts with these columns: the one that their query was told."""
    if order in get_args(Order):
        raise DataError(
            "ready-made counts have the order in which they were counted, if any; say it there, with ",
            Option("order", "runs"),
        )
    return "runs" if N_RUNS in columns else order


def _check(order: Order | None, has_runs: bool) -> None:
    if order is not None and order not in get_args(Order):
        names = ", ".join(map(repr, get_args(Order)))
        raise DataError(Option("order", order), f": choose one of {names}, or leave it out")
    if order == "runs" and not has_runs:
        raise DataError(
            Option("order", "runs"),
            f": the log has no column {EPISODE}; say which it is with ",
            Option("columns", {EPISODE: ...}),
        )


def after_files(pilot: Pilot | None, files: Sequence[str]) -> Pilot | None:
    """Return the pilot of a log whose order is also that of its files, which somebody has to vouch for as well."""
    if pilot is None or len(files) < 2:
        return pilot
    names = [Path(file).name for file in files]
    names = names if len({*names}) == len(names) else [*files]
    listed = names if len(names) <= _NAMED else [*names[:3], "…", f"{names[-1]} ({len(names):,} files)"]
    return replace(pilot, rests_on=f"{pilot.rests_on}; its files follow one another in this order: {', '.join(listed)}")


def not_numbered(column: str, kind: str) -> DataError:
    """Return the error for names of runs whose order is not known."""
    return DataError(
        Option("order", "runs"),
        f": column {column} has the type {kind}, and its values are not all numbers, so that they do not tell which "
        "run was first; number the runs in their order",
    )


def no_order(engine: str) -> DataError:
    """Return the error for rows of a table that are in no order."""
    why = f": the rows of a table of {engine} have no order of their own; write them to Parquet files in their order, "
    return DataError(Option("order", "time"), why, "or number the runs and say ", Option("order", "runs"))

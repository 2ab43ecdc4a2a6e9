"""Which part of a log is its pilot: what may be taken, given how the log came about and what is known of its order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from plumdp.data.columns import EPISODE, STEP, LogForm
from plumdp.data.counts import CountArray, Pilot, PilotEnd, Sampling
from plumdp.data.pilots import POWERS_RATIO, pilot_share, planned_size, power_of_two_pilot
from plumdp.errors import DataError
from plumdp.model.text import number_of
from plumdp.vocabulary import Order as Order

_NAMED = 6  # files whose order is told one by one
_STEPS_PER_RUN = 10  # a guess, for the size of a pilot of rows; no width depends on it much, and no validity at all

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
            "that numbers their steps 0, 1, 2, …; or say pilot=0, to do without a pilot"
        )


@dataclass(frozen=True)
class LogPilot:
    """What the pilot of a log is made of, and how its size follows from the length of the log."""

    unit: Literal["runs", "rows"]
    end: PilotEnd
    share: float | None  # of a planned pilot; None: by the rule
    order: Order | None  # what was said of the log

    @property
    def rests_on(self) -> str:
        """What somebody has to vouch for."""
        return _RESTS_ON[self.order]

    def size(self, n: int, n_parameters: int) -> int:
        """Return how many of n runs or rows are the pilot; 0 if they are too few for one."""
        if self.end == PilotEnd.POWER_OF_TWO:
            return power_of_two_pilot(n)[0]
        n_runs = n if self.unit == "runs" else n // _STEPS_PER_RUN
        share = self.share if self.share is not None else pilot_share(n_runs, n_parameters)
        return planned_size(n, n_parameters, share)

    def pilot(self, counts: CountArray, n: int, size: int) -> Pilot | None:
        """Return the pilot of so many of n runs or rows, which was counted.

        None if it was planned and is empty; an empty one of data that may have ended at will has its own weight.
        """
        if self.end == PilotEnd.PLANNED:
            return Pilot(counts, self.end, 1.0, n / size - 1, self.rests_on) if size else None
        found = power_of_two_pilot(10 * size)
        if found[0] != size:
            raise DataError(
                f"a pilot of {size:,} {self.unit} is none of the sizes 16, 32, 64, … that a pilot has if "
                'the length of the log was not fixed beforehand; if it was, say sampling="trajectories"'
            )
        return Pilot(counts, self.end, found[1], POWERS_RATIO, self.rests_on)


def pilot_of_log(
    form: LogForm, sampling: Sampling, order: Order | None, share: float | None, *, has_runs: bool
) -> LogPilot | None:
    """Return what the pilot of a log is, or None if nothing that is known of it makes a part of it one.

    A share is a pilot only of an amount that was fixed beforehand: the runs of "trajectories", which are alike, so that
    any of them will do that were not chosen by how they went; and the rows of "independent" samples, of which the
    first lie first in time. Not the rows of runs, whose number depends on how the runs went. All else may have ended
    because of what it showed, and the pilot is a power of two of the runs or rows that came first.
    """
    _check(form, order, share, has_runs)
    if share == 0 or form == "counts":
        return None
    if sampling == "trajectories" and has_runs:
        return LogPilot("runs", PilotEnd.PLANNED, share, "runs" if order == "runs" else None)
    if order is None:
        if share is not None:
            raise DataError(
                f'pilot={share}: nothing is known of the order of this log; say order="time" if its rows are in the '
                'order in which they happened, or order="runs" if its runs are'
            )
        return None
    if sampling == "independent" and form == "transitions" and order == "time":
        return LogPilot("rows", PilotEnd.PLANNED, share, order)
    if share is not None:
        raise DataError(
            f"pilot={share}: a share is a pilot only if the length of the log was fixed beforehand, which "
            f"sampling={sampling!r} does not say of its {'rows' if order == 'time' else 'runs'}; leave it out, and the "
            "pilot will be a power of two"
        )
    return LogPilot("rows" if order == "time" else "runs", PilotEnd.POWER_OF_TWO, None, order)


def pilot_of_counts(counts: CountArray, sizes: Collection[tuple[Any, Any]], sampling: Sampling) -> Pilot | None:
    """Return the pilot of ready-made counts; ``sizes`` are the numbers of runs, and of those in the pilot.

    There are none if no row has a run; then the pilot is empty, as that of too few runs.
    """
    try:
        ((n, size),) = ((int(n), int(size)) for n, size in sizes or [(0, 0)])
    except (ValueError, TypeError):
        raise DataError(
            "these counts are not those of one query: they do not agree on how many runs there are, or are in the "
            "pilot; read the result of each query by itself, or say pilot=0"
        ) from None
    if not 0 <= size < max(n, 1):
        raise DataError(f"a pilot of {size:,} runs cannot be part of {n:,} runs; count the log again, or say pilot=0")
    planned = LogPilot("runs", PilotEnd.PLANNED, share=None, order=None)
    power = LogPilot("runs", PilotEnd.POWER_OF_TWO, share=None, order="runs")
    return (planned if sampling == "trajectories" else power).pilot(counts, n, size)


def _check(form: LogForm, order: Order | None, share: float | None, has_runs: bool) -> None:
    if order is not None and order not in get_args(Order):
        raise DataError(f"order={order!r}: choose one of {', '.join(map(repr, get_args(Order)))}, or leave it out")
    if share is not None and not 0 <= share < 1:
        raise DataError(f"pilot={share}: it is a share of the log, from 0 (no pilot) to less than 1")
    if form == "counts" and (order is not None or share):
        raise DataError(
            "ready-made counts have no order, so that no part of them can be taken as a pilot; ask for it where they "
            'are counted: counts_query(..., order="runs")'
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

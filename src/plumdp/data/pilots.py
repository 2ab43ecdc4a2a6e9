"""When bets are renewed and how large a pilot is, by rules that do not look at what came later."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from plumdp.data.counts import N_PILOTS, CountArray, Pilot, PilotEnd
from plumdp.errors import DataError
from plumdp.model.text import number_of

FEW_RUNS = 5_000
_FEW, _SOME = 4, 20  # parameters
SIZES = tuple(16 * 4**i for i in range(N_PILOTS))  # runs after which bets are renewed, whatever the data
ROWS_PER_RUN = 16  # rows that count as a run where it is rows that have an order
MAIN_PER_PILOT = 8  # at least, of data that may have ended at will
_OPEN_RATIO = 16.0  # of main to pilot data that bets are made for: 8 to 32 times as much, with all but the last size
WHY_EMPTY = f"fewer than {MAIN_PER_PILOT * SIZES[0]} runs, or it is not clear which came first"


def pilot_share(n_runs: int, n_parameters: int) -> float:
    """Return which share of a number of runs, fixed beforehand, is best spent as a pilot.

    Five in a hundred, ten if there are fewer than 5,000 runs; with five parameters or more a tenth, with more than
    twenty a fifth, since a pilot must find a direction among all of them. (Parameters are those of the space; on which
    combinations of them the outcomes depend is not known where data are counted.) The share only decides how wide a
    result is: any share is valid.

    >>> pilot_share(100_000, 3), pilot_share(1_000, 3), pilot_share(100_000, 20), pilot_share(100_000, 21)
    (0.05, 0.1, 0.1, 0.2)
    """
    if n_parameters > _SOME:
        return 0.2
    return 0.1 if n_parameters > _FEW or n_runs < FEW_RUNS else 0.05


def planned_size(n_runs: int, n_parameters: int, share: float | None = None) -> int:
    """Return how many of a number of runs, fixed beforehand, are the pilot; by default the share of ``pilot_share``.

    At least one run is left as main data. Zero means that there is no pilot.

    >>> planned_size(100_000, 3), planned_size(1_000, 3, 0.25), planned_size(3, 3), planned_size(10, 3, 0.99)
    (5000, 250, 0, 9)
    """
    if share is None:
        share = pilot_share(n_runs, n_parameters)
    if not 0 <= share < 1:
        raise DataError(f"pilot={share}: it is a share of the runs, from 0 (no pilot) to less than 1")
    return min(round(share * n_runs), max(0, n_runs - 1))


def planned_moments(size: int, per_run: int = 1) -> tuple[int, ...]:
    """Return after how many runs or rows bets are renewed if a pilot of so many was planned: its end is the last.

    >>> planned_moments(1000), planned_moments(0)
    ((16, 64, 256, 1000), ())
    """
    return (*(per_run * known for known in SIZES if per_run * known < size), size) if size else ()


def open_moments(n: int, per_run: int = 1) -> tuple[int, ...]:
    """Return after how many of n runs or rows bets are renewed if the data may have ended because of what they show.

    These are the same however long the data are; those that were not reached are left out.

    >>> open_moments(1000), open_moments(10), open_moments(10**9)
    ((16, 64, 256), (), (16, 64, 256, 1024, 4096, 16384))
    """
    return tuple(per_run * size for size in SIZES if per_run * size < n)


def open_size(n: int, per_run: int = 1) -> int:
    """Return how many of n runs or rows are the pilot of data that may have ended because of what they show.

    It is the largest moment that is at most an eighth of them, or 0. As there are but six of them, each has a sixth of
    the error, and the union bound covers every end.

    >>> open_size(127), open_size(128), open_size(511), open_size(10**6)
    (0, 16, 16, 16384)
    """
    return max((size for size in open_moments(n, per_run) if MAIN_PER_PILOT * size <= n), default=0)


def planned_pilot(parts: Sequence[CountArray], sizes: Sequence[int], n: int, rests_on: str = "") -> Pilot | None:
    """Return the pilot of n runs or rows, given what was seen between its moments; None if there is none."""
    if not sizes:
        return None
    moments = tuple(accumulate(parts[: len(sizes)]))
    return Pilot(moments[-1], PilotEnd.PLANNED, n / sizes[-1] - 1, rests_on, moments, tuple(sizes))


def open_pilot(
    moments: Sequence[CountArray],
    sizes: Sequence[int],
    size: int,
    nothing: CountArray,
    rests_on: str = "",
    expected: float | None = None,
) -> Pilot:
    """Return the pilot, of so many runs or rows, of data that may have ended at will, given what moments had seen."""
    kept = dict(zip(sizes, moments, strict=True))
    return Pilot(
        kept.get(size, nothing), PilotEnd.POWER_OF_FOUR, _OPEN_RATIO, rests_on, tuple(moments), tuple(sizes), expected
    )


def pilot_assumption(pilot: Pilot) -> str:
    """Return in plain words what a result rests on that was chosen by looking at the first data.

    >>> import numpy as np
    >>> print(pilot_assumption(Pilot(np.array([3, 0, 4]))))
    the pilot (7 steps) was set aside before the other data were looked at, and its size was fixed before any were; if
    it is a share of all runs, so was their number
    """
    if pilot.is_planned:
        text = (
            f"the pilot ({number_of(pilot.total, 'step')}) was set aside before the other data were looked at, and its "
            "size was fixed before any were; if it is a share of all runs, so was their number"
        )
    elif not pilot.moments:
        text = "no bets were placed, as there are too few data, or it is not clear which came first"
    else:
        text = "bets were placed by the data that came first, and renewed at moments that do not depend on the end"
    said = "" if pilot.expected is None else f"; you expected {pilot.expected:,.10g} before there were any data"
    return f"{text}; {pilot.rests_on}{said}" if pilot.rests_on else text + said
SMALLEST = 16  # TEMPORARY

"""When bets are renewed and how large a pilot is, by rules that do not look at what came later."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from plumdp.data.counts import N_PILOTS, CountArray, Pilot, PilotEnd, TransitionCounts
from plumdp.errors import DataError
from plumdp.model.graph import Graph
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


_MOST_VISITS = 10**9  # that NumPy draws from
_SPLITS = (4, 4, 16)  # a sixteenth of the visits of each choice is the pilot, a quarter of it comes first, and so on
_SPLIT = (
    "the number of samples of each choice was fixed before any were looked at, so that some drawn at random are a pilot"
)


def drawn_pilot(counts: TransitionCounts) -> Pilot | None:
    """Return a pilot of independent samples without an order: a part of the visits of each choice, drawn at random.

    If the numbers of visits were fixed, the visits of a choice are alike, and a hypergeometric draw and the rest are
    independent samples of fixed sizes. The draw depends on the model alone, so that nobody can try another one. More
    than 10^9 visits of one choice are not drawn from.

    >>> import numpy as np
    >>> from plumdp import case_study
    >>> graph = case_study("betting:25").model.graph
    >>> drawn_pilot(TransitionCounts(graph, np.full(graph.n_transitions, 800), "independent"))
    Pilot(1,385,150 steps, planned)
    """
    if counts.sampling != "independent" or counts.pilot is not None or counts.visits.max(initial=0) > _MOST_VISITS:
        return None
    rng = np.random.default_rng(int(counts.graph.fingerprint, 16))
    moments, left = [], counts.counts
    for part in reversed(_SPLITS):
        left = _draw(counts.graph, left, part, rng)
        moments.append(left)
    moments = [moment for moment in reversed(moments) if moment.any()]
    lengths = [float(moment.sum()) for moment in moments]
    if not moments or lengths[-1] == counts.total or len({*lengths}) < len(lengths):
        return None
    ratio = counts.total / lengths[-1] - 1
    return Pilot(moments[-1], PilotEnd.PLANNED, ratio, _SPLIT, tuple(moments), tuple(lengths))


def _draw(graph: Graph, counts: CountArray, part: int, rng: np.random.Generator) -> CountArray:
    """Return how often each transition is among about one in so many visits of its choice, drawn without replacement."""
    first = graph.first_transition[:-1]
    size = np.diff(graph.first_transition)
    left = np.add.reduceat(counts, first)  # visits of each choice that are not decided yet
    wanted = np.floor(left / part + rng.random(len(left))).astype(np.int64).clip(0, left)  # also where visits are few
    drawn = np.zeros_like(counts)
    for place in range(int(size.max(initial=0))):
        rows = np.flatnonzero(size > place)
        at = first[rows] + place
        taken = rng.hypergeometric(counts[at], left[rows] - counts[at], wanted[rows])
        drawn[at] = taken
        left[rows] -= counts[at]
        wanted[rows] -= taken
    return drawn


def pilot_assumption(pilot: Pilot) -> str:
    """Return in plain words what a result rests on that was chosen by looking at the first data.

    >>> import numpy as np
    >>> pilot_assumption(Pilot(np.array([3, 0, 4])))  # doctest: +ELLIPSIS
    'the pilot (7 steps) was set aside before the other data were looked at, and its size was fixed before any were; ...'
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

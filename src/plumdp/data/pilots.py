"""At which moments bets are placed, and which of them is the end of the pilot: by rules that do not look ahead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b

import numpy as np

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import Assumption, parts_in
from plumdp.data.counts import (
    ADDED,
    N_PILOTS,
    N_TABLE_PILOTS,
    OPEN_MAIN_PER_PILOT,
    PLANNED_SUM,
    CountArray,
    Pilot,
    PilotEnd,
    TransitionCounts,
)
from plumdp.data.seen import Seen
from plumdp.data.time_parts import FILED
from plumdp.model.graph import Graph
from plumdp.model.text import number_of

IN_ORDER_OF_RUNS = Assumption(
    "the runs of the log are numbered in the order in which they were made, each ended before the next began",
    brief="runs are numbered in the order in which they were made",
)
RESTS_ON = {  # by the order that is claimed
    None: Assumption(
        "the runs are independent, all under one policy, and were numbered without looking at how they went",
        brief="independent runs of one policy",
    ),
    "runs": IN_ORDER_OF_RUNS,
    "time": Assumption(
        "the rows of the log are in the order in which their steps happened", brief="rows are in the order of time"
    ),
}
_IN_BRIEF: dict[str, str] = {each: each.brief for each in (*RESTS_ON.values(), ADDED, PLANNED_SUM, FILED)}

SIZES = tuple(4 * 4**i for i in range(1 + N_PILOTS))  # runs after which bets are placed anew, whatever the data
_FIRST_PILOT = 16  # runs
ROWS_PER_RUN = 16  # rows that count as a run where it is rows that have an order
_LEFT = {True: (0.8, 32), False: (0.65, 8)}  # of a planned length at each moment, and how many: of small models, others
_SMALL = 50_000  # transitions
_OPEN_RATIO = 16.0  # of main to pilot data that drifts are looked for in, if the length of the data was not planned


def moments_of(n: int, per_run: int = 1) -> tuple[int, ...]:
    """Return after how many of n runs or rows bets are placed anew.

    These are the same however long the data are; those that were not reached are left out.

    >>> moments_of(1000), moments_of(4), moments_of(10**9)
    ((4, 16, 64, 256), (), (4, 16, 64, 256, 1024, 4096, 16384))
    """
    return tuple(per_run * size for size in SIZES if per_run * size < n)


def moments_for(
    n: int, per_run: int = 1, *, is_table: bool, is_planned: bool = True, n_transitions: int = 0
) -> tuple[int, ...]:
    """Return after how many of n runs or rows of a model bets are placed anew, of a table or of parameters."""
    if is_table:
        return table_moments(n, per_run, is_planned=is_planned)
    return planned_moments(n, per_run, n_transitions) if is_planned else moments_of(n, per_run)


def planned_moments(n: int, per_run: int = 1, n_transitions: int = 0) -> tuple[int, ...]:
    """Return after how many of n runs or rows bets are placed anew, if n was planned: then also ever closer to the end.

    A model with many transitions has fewer moments, as all of its counts are kept at each of them.

    >>> planned_moments(20), planned_moments(1000, n_transitions=10**6)
    ((4, 7, 9, 11, 13, 14, 15, 16, 17, 18, 19), (4, 16, 64, 256, 350, 577, 725, 821, 883, 924, 950, 968))
    """
    left, number = _LEFT[n_transitions <= _SMALL]
    first = moments_of(n, per_run)
    later = {int(n * (1 - left**k)) for k in range(1, number + 1)} if first else ()
    return tuple(sorted({*first, *(moment for moment in later if first[0] < moment < n)}))


def table_moments(n: int, per_run: int = 1, *, is_planned: bool) -> tuple[int, ...]:
    """Return after how many of n runs or rows of a table bets are placed anew.

    Tables have a number of unknowns that grows with their size, and need pilots that grow with the data. If the length
    was planned, later moments leave four to one eighths of the data to bets that make up for what earlier ones missed.

    >>> table_moments(1000, is_planned=True), table_moments(10**6, is_planned=False)[-2:]
    ((16, 64, 256, 500, 625, 750, 875), (65536, 262144))
    """
    sizes = [per_run * 16 * 4**i for i in range(N_TABLE_PILOTS) if per_run * 16 * 4**i < n]
    later = {n - n * k // 8 for k in range(1, 5)} if is_planned and sizes else set[int]()
    return (*sizes, *(size for size in sorted(later) if sizes[-1] < size < n))


def is_wanted(pilot: bool) -> bool:
    """Return whether bets are to be placed; a share of the data is refused.

    >>> is_wanted(True), is_wanted(False)
    (True, False)
    """
    if pilot not in (False, True):
        raise DataError(
            Option("pilot", pilot),
            ": choose True, or False to place no bets; it is not a share of the data, as bets are placed after 4, 16, "
            "… runs, however many there are",
        )
    return bool(pilot)


def pilot_size(n: int, per_run: int = 1) -> int:
    """Return the size of the pilot of n runs or rows: the largest moment that is at most an eighth of them, or 0.

    >>> pilot_size(127), pilot_size(128), pilot_size(511), pilot_size(10**6)
    (0, 16, 16, 16384)
    """
    return max(
        (size for size in _pilots(moments_of(n, per_run), per_run) if OPEN_MAIN_PER_PILOT * size <= n), default=0
    )


def _pilots(sizes: Sequence[int], per_run: int) -> list[int]:
    """Return the moments that may be the end of a pilot, six or those of a table: not the first one of bets."""
    return [size for size in sizes if size >= _FIRST_PILOT * per_run]


def planned_pilot(
    moments: Sequence[Seen], n: int, *, per_run: int = 1, rests_on: str = "", sizes: Sequence[int]
) -> Pilot | None:
    """Return the pilot of n runs or rows, a number that was fixed beforehand, given what had been seen at each moment.

    ``sizes`` are the moments. None if the data are too few for any bet.
    """
    size = pilot_size(n, per_run)
    if not sizes:
        return None
    seen = moments[sizes.index(size)] if size else moments[0] - moments[0]
    ratio = n / (size or sizes[-1]) - 1
    return Pilot.of(seen, PilotEnd.PLANNED, ratio, rests_on, moments, tuple(sizes), n)


def open_pilot(
    moments: Sequence[Seen],
    n: int,
    nothing: Seen,
    *,
    per_run: int = 1,
    rests_on: str = "",
    expected: float | None = None,
    is_table: bool = False,
) -> Pilot:
    """Return the pilot of n runs or rows that may have ended at will, given what had been seen at each moment.

    As there are but six moments, each of them has a sixth of the error, and the union bound covers every end. Those of
    a table are twice as many, and each has a twelfth.
    """
    sizes = moments_for(n, per_run, is_table=is_table, is_planned=False)
    size = max((each for each in _pilots(sizes, per_run) if OPEN_MAIN_PER_PILOT * each <= n), default=0)
    seen = moments[sizes.index(size)] if size else nothing
    n_pilots = N_TABLE_PILOTS if is_table else N_PILOTS
    return Pilot.of(seen, PilotEnd.POWER_OF_FOUR, _OPEN_RATIO, rests_on, moments, sizes, expected, n_pilots)


_MOST_VISITS = 10**9 - 1  # that NumPy draws from
_SPLITS = (4, 4, 16)  # a sixteenth of the visits of each choice is the pilot, a quarter of it comes first, and so on
_LAST = 8  # part of the visits of a table that comes last
_SPLIT = "which these are was drawn at random by a seed that the counts fix: the confidence is over data and draw"


def with_drawn_pilot(counts: TransitionCounts, *, is_table: bool = False) -> TransitionCounts:
    """Return counts with the pilot that is drawn from them, if one is: the draw divides no counts by the past."""
    pilot = drawn_pilot(counts, is_table=is_table)
    return counts if pilot is None else replace(counts, pilot=pilot, contexts=(), no_contexts="independent")


def drawn_pilot(counts: TransitionCounts, *, is_table: bool = False) -> Pilot | None:
    """Return a pilot of independent samples without an order: a part of the visits of each choice, drawn at random.

    If the numbers of visits were fixed, the visits of a choice are alike, and a hypergeometric draw and the rest are
    independent samples of fixed sizes. So what rests on it holds with its probability over the data and the draw. The
    counts are the seed: nobody can try another draw of the same counts, and other counts have another one, so that the
    probability over the data alone hardly differs (one seed for all counts would be one draw for all of them). From
    10^9 visits of one choice or more, nothing is drawn. Of a table, an eighth of the visits comes last (see
    ``table_moments``).

    >>> import numpy as np
    >>> from plumdp import case_study
    >>> graph = case_study("betting:25").model.graph
    >>> drawn_pilot(TransitionCounts(graph, np.full(graph.n_transitions, 800), "independent"))
    Pilot(1,385,150 steps, planned)
    """
    if counts.sampling != "independent" or counts.pilot is not None or counts.visits.max(initial=0) > _MOST_VISITS:
        return None
    if len(counts.rewards):  # sums cannot be divided
        return None
    rng = np.random.default_rng(int(blake2b(counts.counts.tobytes(), digest_size=16).hexdigest(), 16))
    whole, moments = counts.counts, []
    before_last = whole - _draw(counts.graph, whole, _LAST, rng) if is_table else whole
    left = before_last
    for part in reversed(_SPLITS):
        left = _draw(counts.graph, left, part, rng)
        moments.append(left)
    moments = [moment for moment in reversed(moments) if moment.any()]
    lengths = [float(moment.sum()) for moment in moments]
    if not moments or lengths[-1] == counts.total or len({*lengths}) < len(lengths):
        return None
    pilot, ratio = moments[-1], counts.total / lengths[-1] - 1
    if is_table and lengths[-1] < before_last.sum() < counts.total:
        moments, lengths = [*moments, before_last], [*lengths, float(before_last.sum())]
    return Pilot(pilot, PilotEnd.PLANNED, ratio, _SPLIT, tuple(moments), tuple(lengths), float(counts.total))


def _draw(graph: Graph, counts: CountArray, part: int, rng: np.random.Generator) -> CountArray:
    """Return the counts of a random sample of the visits of each choice, about one in so many."""
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


def pilot_assumption(pilot: Pilot, first_moment: int = 0) -> Assumption:
    """Return in plain words what a result rests on that was chosen by looking at the first data, if anything was.

    ``first_moment`` says which of the moments is that of the first bets.

    >>> pilot_assumption(Pilot(np.array([3, 0, 4])))
    'the first 7 steps of the data decided how the others are used, before these were looked at'
    """
    moments = pilot.moments[first_moment:]
    if not moments:
        return Assumption("")
    first = number_of(int(moments[0].sum()), "step")
    kind = "the data that came first decided how later ones are used"
    if not pilot.is_planned:
        text = kind = f"{kind}, at moments that do not depend on the end"
    elif len(moments) == 1:
        text = f"the first {first} of the data decided how the others are used, before these were looked at"
    else:
        last = int(moments[-1].sum())
        text = f"earlier data decided how later ones are used: the first {first} to begin with, {last:,} in the end"
    said = parts_in(pilot.rests_on)
    if pilot.expected is not None and not pilot.is_planned:
        said.append(f"you expected {pilot.expected:,.10g} runs, or rows, before there were any")
    kind = "; ".join([kind, *said])
    return Assumption("; ".join([text, *said]), brief=brief_of(said), kind=kind)  # the first part is a fact


def brief_of(reasons: Iterable[str]) -> str:
    """Return in brief what a pilot rests on: files keep the texts alone."""
    return "; ".join(_IN_BRIEF.get(each, each) for each in reasons)

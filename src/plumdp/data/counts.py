"""``TransitionCounts``: one count per transition, and how the data were sampled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, get_args

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, Option, require_kind
from plumdp.base.vocabulary import Assumption, NoContexts, parts_in
from plumdp.base.vocabulary import Sampling as Sampling
from plumdp.data.contexts import Context, added
from plumdp.data.report import IngestionReport
from plumdp.data.same_files import DataPart, LogFile, first_of, new_parts, refuse_same_parts
from plumdp.data.seen import CountArray as CountArray
from plumdp.data.seen import Seen, no_rewards
from plumdp.data.time_parts import TimeParts
from plumdp.model.graph import Graph, read_only
from plumdp.model.text import as_pandas, as_polars, html_table, number_of, one_line

LARGEST = 2**53  # steps: from here on, one more is the same number as a float, which bounds are computed from
USUAL_RATIO = 19.0  # of main to pilot data, where nobody said what was planned: 5 % are the pilot
# else the pilot may depend on main data
ADDED = Assumption(
    "counts were added in the order in which their data were collected, in parts not chosen by looking at them",
    brief="counts were added in the order of their data",
)
PLANNED_SUM = Assumption(
    "both parts were planned before looking at either, and neither depends on the other",
    brief="neither part of the data depends on the other",
)
N_TABLE_PILOTS = 12  # that data of a table may have: up to 67,108,864 runs
N_PILOTS = 6  # that data of any length may have: 16, 64, …, 16,384 runs
OPEN_MAIN_PER_PILOT = 8  # at least, all data to the pilot, if their length was not planned
_MAIN_PER_PILOT = 3  # at least, of a table if the length of the data was planned


class PilotEnd(StrEnum):
    """The rule by which the end of a pilot was decided, in each case without the data that came later.

    "planned": fixed before the data were looked at, or by a rule that looks at the pilot only. "power of four": data
    that may have stopped at will have one of six pilots, after 16, 64, … or 16,384 runs (or 16 times as many rows), the
    largest that is at most an eighth of them; if there is none, the pilot is empty.

    >>> list(PilotEnd)
    [PilotEnd('planned'), PilotEnd('power of four')]
    """

    PLANNED = "planned"
    POWER_OF_FOUR = "power of four"

    def __repr__(self) -> str:
        return f"PilotEnd({self.value!r})"


@dataclass(frozen=True, eq=False)
class Pilot:
    """Counts up to moments that were decided without the data that came later.

    What is chosen by looking at the pilot (a prior, bets on drifts) holds at its full error for the *main* data, those
    that came later, whatever policy they were collected under and however they ended. A share of the data is a pilot
    only if their amount was fixed without looking at them: otherwise each possible end comes with another pilot, and
    the luckiest of many bets is taken. Then the pilot is one of six, each with a sixth of the error (``weight``). Those
    of data that were read for a table are one of twelve: whoever makes a pilot says how many there might have been.

    ``moments`` are when bets are renewed, and what had been seen then; they do not depend on how long the data are, so
    that they need no weight. ``lengths`` says after how many runs or rows. By default there is one, the end of the
    pilot, and its length is counted in steps. ``ratio`` says how many steps of main data were planned for each step of
    the pilot, and ``expected`` how many runs or rows there would be, if somebody said so before there were any; these
    may be wrong, which costs width but no validity, but must not be computed from the main data. ``rests_on`` says in
    words why the pilot came first, if somebody has to vouch for it.

    >>> Pilot(np.array([3, 0, 4]), ratio=9.0)
    Pilot(7 steps, planned)
    >>> Pilot(np.zeros(3, dtype=np.int64), PilotEnd.POWER_OF_FOUR)
    Pilot(0 steps, power of four)
    """

    counts: CountArray  # (n_transitions)
    end: PilotEnd = PilotEnd.PLANNED
    ratio: float = USUAL_RATIO
    rests_on: str = ""
    moments: tuple[CountArray, ...] = ()  # (n_transitions) each
    lengths: tuple[float, ...] = ()
    expected: float | None = None
    rewards: tuple[CountArray, ...] = ()  # (n_learned, 3, n_transitions) each: sums of values in it and at moments
    n_pilots: int = 0  # that there might have been, this one among them; at least one, or six if it was not planned
    is_added: bool = False  # whether data were added after those that the pilot is of, which it then rests on, too
    is_planned_sum: bool = False  # whether it is that of all parts of a sum, which were planned before looking at any

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", _whole_numbers("pilot", np.asarray(self.counts)))
        if self.end not in list(PilotEnd):
            raise DataError(f"end={self.end!r}: choose one of {', '.join(repr(str(end)) for end in PilotEnd)}")
        object.__setattr__(self, "end", PilotEnd(self.end))
        object.__setattr__(self, "n_pilots", max(self.n_pilots, 1 if self.is_planned else N_PILOTS))
        if not 0 < self.ratio < math.inf:
            raise DataError(f"ratio={self.ratio}: it is the planned amount of main data per step of the pilot, above 0")
        if self.expected is not None and not 0 < self.expected < math.inf:
            raise DataError(f"expected={self.expected}: it is a number of runs or rows, above 0")
        moments = self.moments or ((self.counts,) if self.total else ())
        rewards = self.rewards if self.moments else (*self.rewards, *(self.rewards[:1] * len(moments)))
        lengths = self.lengths or tuple(float(moment.sum()) for moment in moments)
        if self.is_planned and self.expected is None and moments:
            object.__setattr__(self, "expected", (1 + self.ratio) * lengths[-1])
        object.__setattr__(self, "moments", tuple(_whole_numbers("pilot", np.asarray(m)) for m in moments))
        object.__setattr__(self, "lengths", tuple(map(float, lengths)))
        rewards = rewards or (no_rewards(len(self.counts)),) * (1 + len(moments))
        object.__setattr__(self, "rewards", tuple(Seen(self.counts, sums).rewards for sums in rewards))
        self._check_moments()

    @staticmethod
    def of(
        seen: Seen,
        end: PilotEnd = PilotEnd.PLANNED,
        ratio: float = USUAL_RATIO,
        rests_on: str = "",
        moments: Sequence[Seen] = (),
        lengths: tuple[float, ...] = (),
        expected: float | None = None,
        n_pilots: int = 0,
    ) -> Pilot:
        """Return a pilot, given what was seen in it and at its moments, with sums of learned rewards."""
        counts = tuple(read_only(each.counts) for each in moments)  # not copied, as nobody adds to them any more
        sums = tuple(each.rewards for each in (seen, *moments))
        return Pilot(seen.counts, end, ratio, rests_on, counts, lengths, expected, sums, n_pilots)

    def _check_moments(self) -> None:
        if len(self.moments) != len(self.lengths):
            raise DataError(
                f"{len(self.moments)} moments of a pilot have {len(self.lengths)} lengths: give one for each"
            )
        if any((later < earlier).any() for earlier, later in pairwise(self.moments)):
            raise DataError(
                "what was seen at a moment of a pilot is part of what was seen later: give moments in order"
            )
        if any(not 0 < earlier < later for earlier, later in pairwise([*self.lengths, math.inf])):
            raise DataError(
                f"lengths={self.lengths}: they are numbers of runs or rows, above 0, each larger than the last"
            )

    @property
    def total(self) -> int:
        """The number of steps in the pilot."""
        return int(self.counts.sum())

    @property
    def seen(self) -> Seen:
        """The counts of the pilot."""
        return Seen(self.counts, self.rewards[0])

    @property
    def seen_at_moments(self) -> list[Seen]:
        """The counts at each moment."""
        return [*map(Seen, self.moments, self.rewards[1:])]

    @property
    def is_planned(self) -> bool:
        """Whether its end was planned."""
        return self.end == PilotEnd.PLANNED

    @property
    def weight(self) -> float:
        """The share of the error for what is chosen by it: data that may have stopped at will have one of several."""
        return 1 / self.n_pilots

    @property
    def first_bets(self) -> int | None:
        """The moment at which the first bets of a table are placed, by its number, or None if it is too early for any.

        If the length was planned, it is the largest one that leaves three times as much. Otherwise it is the one that
        the data come with, whose error pays for all that there might have been.
        """
        lengths, n = self.lengths, len(self.lengths)
        if not self.is_planned:
            return next((i for i in range(n) if np.array_equal(self.moments[i], self.counts)), None)
        planned = self.expected or (1 + self.ratio) * lengths[-1]
        return max((i for i in range(n) if (1 + _MAIN_PER_PILOT) * lengths[i] <= planned), default=None)

    def __repr__(self) -> str:
        return one_line(self, number_of(self.total, "step"), str(self.end))


@dataclass(frozen=True, eq=False)
class TransitionCounts:
    """The count of each transition: all that later stages need of the data, whatever its size.

    The sum of two counts is "adaptive", as nobody says why the second were collected; ``planned_sum`` is for those who
    had planned to collect both. The data on the left came first, which the pilot of the sum says; all else is main
    data. Only the pilot of a table whose data may end at will is renewed at the ends of parts.

    Parameters
    ----------
    graph
        The graph of the model.
    counts
        How often each transition was taken.
    sampling
        How the data came about: "independent", "trajectories" or "adaptive".
    pilot
        What was seen first, if it was kept apart: what may be chosen by looking at data is chosen by looking at it
        only. An array is a pilot whose end was planned.
    report
        What became of the rows of the log.
    parts
        The data that were counted, so that none of them is added twice.
    rewards
        Sums of values of learned rewards.
    time
        What had been seen at many moments, so that it is tested whether rows changed.
    contexts, no_contexts
        Counts by the past of each run, so that it is tested whether rows remember; or why there are none.

    Examples
    --------
    >>> from plumdp import case_study
    >>> graph = case_study("betting:25").model.graph
    >>> nothing = TransitionCounts(graph, np.zeros(graph.n_transitions, dtype=np.int64), "independent")
    >>> both = nothing + nothing
    >>> both.total, both.sampling
    (0, 'adaptive')
    >>> nothing.planned_sum(nothing).sampling
    'independent'
    """

    graph: Graph
    counts: CountArray  # (n_transitions)
    sampling: Sampling
    pilot: Pilot | None = None  # an array (n_transitions) becomes a pilot whose end was planned
    report: IngestionReport | None = None
    parts: tuple[DataPart, ...] = ()  # by default one that no other counts have, if there are data
    rewards: CountArray = field(default_factory=no_rewards)  # (n_learned, 3, n_transitions), as those of ``Seen``
    time: TimeParts | None = None  # none without a pilot, as nothing is then known of the order
    contexts: tuple[Context, ...] = ()
    no_contexts: NoContexts | None = None  # "order" if there are none, unless another reason is given

    def __post_init__(self) -> None:
        if self.sampling not in get_args(Sampling):
            names = ", ".join(map(repr, get_args(Sampling)))
            raise DataError(Option("sampling", self.sampling), f": choose one of {names}")
        require_kind(self.graph, Graph, "TransitionCounts takes the graph of a model, such as model.graph")
        object.__setattr__(self, "counts", _checked("counts", self.counts, self.graph))
        object.__setattr__(self, "rewards", read_only(Seen(self.counts, self.rewards).rewards))
        if self.pilot is not None:
            pilot = self.pilot if isinstance(self.pilot, Pilot) else Pilot(self.pilot)
            object.__setattr__(self, "pilot", pilot)
            _require_shape("pilot", pilot.counts, self.graph)
            if any((moment > self.counts).any() for moment in (pilot.counts, *pilot.moments)):
                raise DataError("the pilot is a part of the counts, so none of its counts can be larger")
            is_alike = all(sums.shape == self.rewards.shape for sums in pilot.rewards)
            if not is_alike or len(pilot.rewards) != 1 + len(pilot.moments):
                raise DataError(
                    "learned rewards are summed up in all data, in the pilot and at each of its moments, or nowhere"
                )
        if self.pilot is None:
            object.__setattr__(self, "time", None)
        if self.time is not None and (self.time.total(len(self.counts)) > self.counts).any():
            raise DataError("the parts of data over time are parts of the counts, so none of theirs can be larger")
        if not self.parts:
            object.__setattr__(self, "parts", new_parts(self.total))
        self._check_contexts()

    def _check_contexts(self) -> None:
        """Refuse contexts of other data: each has all steps, and of these all that are in the pilot."""
        if self.pilot is None:
            object.__setattr__(self, "contexts", tuple(each.with_pilot(False) for each in self.contexts))
        object.__setattr__(self, "no_contexts", None if self.contexts else self.no_contexts or "order")
        first = np.zeros_like(self.counts) if self.pilot is None else self.pilot.counts
        for each in self.contexts:
            sums = each.sums(len(self.counts)) if each.transition.max(initial=-1) < len(self.counts) else ()
            if not sums or not all(map(np.array_equal, sums, (self.counts, first))):
                raise DataError(f"the context {each.kind} is not that of these counts and their pilot")

    def columns(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the transitions that were seen as columns: state, action, next state, and how often, ``n``."""
        graph, seen = self.graph, np.flatnonzero(self.counts)
        choice = graph.choice_of_transition()[seen]
        state, names = graph.state_of_choice()[choice], np.array(graph.action_names, dtype=object)
        before = {name: values[state] for name, values in graph.states.items()}
        after = {f"next_{name}": values[graph.successor[seen]] for name, values in graph.states.items()}
        return {**before, "action": names[graph.action[choice]], **after, "n": self.counts[seen]}

    to_pandas = as_pandas
    to_polars = as_polars

    @property
    def total(self) -> int:
        """The number of steps seen."""
        return int(self.counts.sum())

    @property
    def seen(self) -> Seen:
        """The counts of all steps."""
        return Seen(self.counts, self.rewards)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the counts, of the pilot in them, and of how they were sampled."""
        pilot = self.pilot
        about = (
            "" if pilot is None else f" {pilot.end} {pilot.ratio!r} {pilot.lengths} {pilot.expected} {pilot.rests_on}"
        )
        digest = blake2b(f"{self.sampling} {pilot is not None}{about}".encode(), digest_size=16)
        for seen in (self.seen,) if pilot is None else (self.seen, pilot.seen, *pilot.seen_at_moments):
            digest.update(np.ascontiguousarray(seen.counts).data)
            digest.update(np.ascontiguousarray(seen.rewards).tobytes())
        if self.time is not None:
            digest.update(f"{self.time.words}".encode() + self.time.entries.tobytes())
        for each in self.contexts:
            digest.update(f"{each.kind} {each.name} {each.values}".encode())
            for cells in each.cells:
                digest.update(cells.tobytes())
        return digest.hexdigest()

    @cached_property
    def visits(self) -> CountArray:
        """The count of each choice (n_choices)."""
        first = self.graph.first_transition
        if len(first) == 1:
            return read_only(np.zeros(0, dtype=np.int64))
        return read_only(np.add.reduceat(self.counts, first[:-1]) * (np.diff(first) > 0))  # of no transitions, none

    @cached_property
    def main(self) -> CountArray:
        """The count of each transition after the pilot (n_transitions); all counts if there is no pilot."""
        return self.counts if self.pilot is None else read_only(self.counts - self.pilot.counts)

    def before_bets(self) -> TransitionCounts:
        """Return the counts at the moment when the first bets on policies of a table are placed.

        A policy that these counts chose, or the runs or rows that they are counts of, may be pre-specified to
        ``certify`` with all counts. ``parts`` says how many of the first runs or rows that are.

        >>> from plumdp import case_study, simulate
        >>> study = case_study("betting:5")
        >>> simulate(study.model, study.true_point, 1_000, rng=1, max_steps=6).before_bets().parts[0].name
        'the first 199 runs or rows of 6,000 simulated steps'
        """
        first = None if self.pilot is None else self.pilot.first_bets
        if self.pilot is None or first is None:
            raise DataError(
                "no bets are placed on these data: their order is not known, or there are too few; state the order, "
                "collect more, or choose by other data"
            )
        seen, n = self.pilot.seen_at_moments[first], self.pilot.lengths[first]
        # the length of a pilot that is one array, such as that of a planned sum, is a number of steps
        is_alone = len(self.pilot.lengths) == 1 and n == seen.counts.sum()
        words = f"the pilot, {n:,.10g} steps," if is_alone else f"the first {n:,.10g} runs or rows"
        if first and self.pilot.is_added:  # the end of a part, of which the steps are known
            words = f"the first {number_of(int(seen.counts.sum()), 'step')}"
        parts = first_of(self.parts, words, n)
        return TransitionCounts(self.graph, seen.counts, self.sampling, parts=parts, rewards=seen.rewards)

    def __add__(self, other: TransitionCounts) -> TransitionCounts:
        """Return the counts of both as "adaptive" data: the second may be there because of what the first showed.

        For the same reason the pilot of the second is main data: it may depend on the main data of the first. Counts
        that have data in common, such as a file that both were read from, are refused.
        """
        if not isinstance(other, TransitionCounts):
            return NotImplemented
        # the test over time, and its share of the error, are there if the data on the left have them, whatever is added
        files = () if other.report is None else other.report.files
        name = Path(files[0].name).name if files else ""
        # boundaries inside of the other data rest on their order, which is said once
        order = "" if other.time is None or other.pilot is None else other.pilot.rests_on
        order = "" if self.pilot is not None and order in self.pilot.rests_on else order
        later = None if self.time is None else self.time.then(self.counts, other.time, name, order)
        return self._sum(other, "adaptive", _before(self, other), later if other.total else self.time)

    def __radd__(self, other: int) -> TransitionCounts:
        """Return these counts, if nothing is before them: so that ``sum`` adds up a list of counts."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def planned_sum(self, other: TransitionCounts) -> TransitionCounts:
        """Return the counts of both, with the weaker of the two ways of sampling.

        Valid only if it was decided before either was looked at that both would be collected, and how much of each.
        Then neither depends on the other: if neither is "adaptive", both pilots together are the pilot of the sum.
        """
        sampling = weaker(self.sampling, other.sampling)
        pilots = [counts.pilot for counts in (self, other) if counts.pilot is not None]
        is_planned = sampling != "adaptive" and all(pilot.end == PilotEnd.PLANNED for pilot in pilots)
        joined = _both(pilots[0], pilots[1]) if len(pilots) == 2 and is_planned else self.pilot
        return self._sum(other, sampling, joined)

    def _sum(
        self, other: TransitionCounts, sampling: Sampling, pilot: Pilot | None, time: TimeParts | None = None
    ) -> TransitionCounts:
        require_same_graph(self.graph, other.graph)
        refuse_same_parts(self.parts, other.parts)
        require_countable(self.total + other.total)
        if self.rewards.shape != other.rewards.shape:
            raise DataError("only some of these data have values of the learned rewards: add others to them, or none")
        reports = [report for report in (self.report, other.report) if report is not None]
        report = reports[0] + reports[1] if len(reports) == 2 else next(iter(reports), None)
        parts = (*self.parts, *other.parts)
        both = self.seen + other.seen
        contexts, reason = self._contexts_with(other, pilot)
        told = (sampling, pilot, report, parts, both.rewards, time, contexts, reason)
        return TransitionCounts(self.graph, both.counts, *told)

    def _contexts_with(
        self, other: TransitionCounts, pilot: Pilot | None
    ) -> tuple[tuple[Context, ...], NoContexts | None]:
        """Return the contexts of a sum with this pilot, or why there are none."""
        first = np.zeros_like(self.counts) if pilot is None else pilot.counts
        is_of_both = pilot is not None and pilot.is_planned_sum
        second = other._contexts_in_pilot()[0 if is_of_both else 1]
        wanted = first - second[1]
        mine = next((each for each, seen in self._contexts_in_pilot() if np.array_equal(seen, wanted)), None)
        lacking = {each.no_contexts for each in (self, other) if each.total and not each.contexts}
        if lacking or mine is None or not (self.total and other.total):
            is_same = len(lacking) == 1 and not (self.contexts or other.contexts)
            kept = second[0] if other.total else mine or ()
            reason = (lacking.pop() if is_same else "parts") if lacking else "pilot" if mine is None else None
            return () if reason else kept, reason
        contexts = added(mine, second[0])
        return contexts, None if contexts else "parts"

    def _contexts_in_pilot(self) -> list[tuple[tuple[Context, ...], CountArray]]:
        """Return the contexts if the pilot is that of these data, if none of them is in it, and if all are."""
        own = np.zeros_like(self.counts) if self.pilot is None else self.pilot.counts
        none, whole = (tuple(each.with_pilot(is_pilot) for each in self.contexts) for is_pilot in (False, True))
        return [(self.contexts, own), (none, np.zeros_like(self.counts)), (whole, self.counts)]

    def __repr__(self) -> str:
        visited = f"{np.count_nonzero(self.counts):,} of {number_of(len(self.counts), 'transition')} seen"
        pilot = "" if self.pilot is None else f"with a pilot of {number_of(self.pilot.total, 'step')}"
        pilot = "with an empty pilot" if self.pilot is not None and not self.pilot.total else pilot
        return one_line(self, number_of(self.total, "step"), visited, self.sampling, pilot)

    def _repr_html_(self) -> str:
        return html_table(
            [
                ("steps", f"{self.total:,}"),
                ("transitions seen", f"{np.count_nonzero(self.counts):,} of {len(self.counts):,}"),
                ("choices tried", f"{np.count_nonzero(self.visits):,} of {len(self.visits):,}"),
                ("sampling", self.sampling),
                (
                    "pilot",
                    "none" if self.pilot is None else f"{number_of(self.pilot.total, 'step')} ({self.pilot.end})",
                ),
            ]
        )


@dataclass(frozen=True, eq=False)
class EventCounts:
    """The trials and successes of each event of a model."""

    trials: CountArray  # (n_events)
    successes: CountArray  # (n_events)
    sampling: Sampling

    def __repr__(self) -> str:
        return one_line(self, number_of(len(self.trials), "event"), number_of(int(self.trials.sum()), "trial"))


class HasCounts(Protocol):
    """An object with counts of transitions, such as a ``Log``."""

    @property
    def counts(self) -> TransitionCounts:
        """The counts."""


def counts_of(given: Any) -> TransitionCounts:
    """Return counts, or those of a log; refuse numbers that do not say how the data came about."""
    counts = given if isinstance(given, TransitionCounts) else getattr(given, "counts", None)  # as ``Log`` has them
    if not isinstance(counts, TransitionCounts):
        raise DataError(
            f"counts of type {type(given).__name__}: write TransitionCounts(model.graph, counts, sampling), which "
            "says how the data came about: 'independent', 'trajectories' or 'adaptive'"
        )
    return counts


def require_same_graph(graph: Graph, other: Graph) -> None:
    """Refuse counts of another model."""
    if graph is not other and graph.fingerprint != other.fingerprint:
        raise DataError(other_model(graph, other.n_states, other.n_transitions, other.fingerprint))


def other_model(graph: Graph, n_states: int, n_transitions: int, fingerprint: str) -> str:
    """Return the difference between the model of the counts and the one at hand, in words."""
    return (
        f"the counts belong to another model: that one has {n_states:,} states, {n_transitions:,} "
        f"transitions and the fingerprint {fingerprint[:8]}, this one {graph.n_states:,}, "
        f"{graph.n_transitions:,} and {graph.fingerprint[:8]}"
    )


def weaker(one: Sampling, other: Sampling) -> Sampling:
    """Return which of two ways of sampling lets us assume less.

    >>> weaker("independent", "trajectories")
    'trajectories'
    """
    return max(one, other, key=get_args(Sampling).index)


def exact_sum(values: npt.NDArray[Any]) -> int:
    """Return the sum of whole numbers that are not negative, however large it is."""
    largest = int(values.max(initial=0))
    is_exact = largest * len(values) <= np.iinfo(np.int64).max
    return int(values.sum()) if is_exact else sum(values.tolist())


def require_countable(total: int, name: str = "counts") -> None:
    """Refuse more steps than can be counted."""
    if total > LARGEST:
        raise DataError(
            f"{name} sum to {total:,}, but no more than 2^53 = {LARGEST:,} steps can be counted exactly; check that "
            "these are numbers of steps, or give a part of the data that nobody chose by looking at it"
        )


def with_number(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of a pilot in a file, with the number of possible ones, which older files lack."""
    unsaid = 1 if about.get("end") == PilotEnd.PLANNED else N_TABLE_PILOTS  # a table may have made it: the safe side
    return {"n_pilots": unsaid, **about}


def sums_in(rests_on: str) -> dict[str, Any]:
    """Return which sums a pilot is of, which a file says only by what it rests on."""
    said = parts_in(rests_on)
    return {"is_added": ADDED in said, "is_planned_sum": PLANNED_SUM in said}


def _before(first: TransitionCounts, other: TransitionCounts) -> Pilot | None:
    """Return the pilot of a sum, which says, once, that it was seen before the data which are added.

    Data of a table that may end at will have a pilot that grows with them: a moment is the end of the first data that
    are at least as long as the next power of four. That is decided by what had come until then.
    """
    pilot = first.pilot
    if pilot is None or not pilot.moments or not other.total:
        return pilot
    if not pilot.is_added:
        pilot = replace(pilot, rests_on="; ".join(filter(None, [pilot.rests_on, ADDED])), is_added=True)
    if pilot.is_planned or pilot.n_pilots < N_TABLE_PILOTS:
        return pilot
    moments, lengths = pilot.seen_at_moments, [*pilot.lengths]
    per_step = lengths[-1] / moments[-1].counts.sum()  # in runs or rows, as far as one can tell
    sizes = [lengths[0] * 4**i for i in range(N_TABLE_PILOTS)]
    if any(lengths[-1] < size <= per_step * first.total for size in sizes):
        moments, lengths = [*moments, first.seen], [*lengths, float(round(per_step * first.total))]
    n = per_step * (first.total + other.total)
    seen = max(i for i in range(-1, len(lengths)) if i < 0 or OPEN_MAIN_PER_PILOT * lengths[i] <= n)
    nothing = moments[0] - moments[0]
    chosen = nothing if seen < 0 else moments[seen]
    grown = Pilot.of(chosen, moments=moments, lengths=tuple(lengths))
    return replace(pilot, counts=grown.counts, moments=grown.moments, lengths=grown.lengths, rewards=grown.rewards)


def _both(one: Pilot, other: Pilot) -> Pilot:
    """Return two planned pilots as one; its ratio is that of all planned main data to both pilots."""
    total = one.total + other.total
    ratio = (one.total * one.ratio + other.total * other.ratio) / total if total else one.ratio
    reasons = dict.fromkeys([*(pilot.rests_on for pilot in (one, other) if pilot.rests_on), PLANNED_SUM])
    joined = Pilot.of(one.seen + other.seen, PilotEnd.PLANNED, ratio, "; ".join(reasons))
    return replace(joined, is_added=one.is_added or other.is_added, is_planned_sum=True)


def _checked(name: str, values: npt.ArrayLike, graph: Graph) -> CountArray:
    array = np.asarray(values)
    _require_shape(name, array, graph)
    return _whole_numbers(name, array)


def _require_shape(name: str, array: npt.NDArray[Any], graph: Graph) -> None:
    if array.shape != (graph.n_transitions,):
        raise DataError(f"{name} has shape {array.shape}, but the model has {graph.n_transitions:,} transitions")


def _whole_numbers(name: str, array: npt.NDArray[Any]) -> CountArray:
    if array.dtype.kind not in "iu":
        raise DataError(f"{name} must be whole numbers, not {array.dtype}")
    if (array < 0).any():
        raise DataError(f"{name} has negative entries")
    require_countable(exact_sum(array), name)
    is_shared = array.flags.writeable or not array.flags.owndata  # by whoever may change it after this check
    return read_only(array.astype(np.int64, copy=is_shared))


def data_provenance(counts: TransitionCounts) -> dict[str, str]:
    """Return the sources of the data as entries of a certificate's provenance: files, and other parts of a sum."""
    report, parts = counts.report, contents(counts)
    if not (report and report.files) and len(parts) < 2:
        return {}
    read = {"data read": report.read} if report is not None and report.read else {}
    return {f"data {number}": str(part) for number, part in enumerate(parts, 1)} | read


def contents(counts: TransitionCounts) -> list[LogFile | str]:
    """Return all data that counts are made of: files, and names of other parts of a sum."""
    files = () if counts.report is None else counts.report.files
    return [*files, *(part.name for part in counts.parts if not part.is_file)]

"""What was seen: one count per transition, and how it was sampled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from plumdp.data.report import IngestionReport
from plumdp.errors import DataError
from plumdp.model.graph import Graph, read_only
from plumdp.model.text import html_table, number_of, one_line

Sampling: TypeAlias = Literal["independent", "trajectories", "adaptive"]
"""From what may be assumed most to what least: a number of samples per choice that was fixed beforehand; a fixed number
of runs under one policy; runs whose policy or number depends on what was seen."""

CountArray: TypeAlias = npt.NDArray[np.int64]


LARGEST = 2**63 - 1  # steps


@dataclass(frozen=True, eq=False)
class TransitionCounts:
    """How often each transition was seen. All that later stages need of the data, whatever its size.

    ``pilot`` is the part of ``counts`` that was seen first, if it was kept apart: what may be chosen by looking at data
    is chosen by looking at the pilot only. ``report`` says what became of the rows of the log that was counted.

    The sum of two counts is "adaptive", as nobody says why the second were collected; ``planned_sum`` is for those who
    had planned to collect both.

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
    pilot: CountArray | None = None  # (n_transitions)
    report: IngestionReport | None = None

    def __post_init__(self) -> None:
        if self.sampling not in get_args(Sampling):
            raise DataError(f"sampling={self.sampling!r}: choose one of {', '.join(map(repr, get_args(Sampling)))}")
        object.__setattr__(self, "counts", _checked("counts", self.counts, self.graph))
        if self.pilot is not None:
            object.__setattr__(self, "pilot", _checked("pilot", self.pilot, self.graph))
            if (self.pilot > self.counts).any():
                raise DataError("the pilot is a part of the counts, so none of its counts can be larger")

    @property
    def total(self) -> int:
        """The number of steps seen."""
        return int(self.counts.sum())

    @cached_property
    def visits(self) -> CountArray:
        """How often each choice was taken (n_choices)."""
        sums = np.concatenate([[0], np.cumsum(self.counts)])
        return read_only(np.diff(sums[self.graph.first_transition]))

    def __add__(self, other: TransitionCounts) -> TransitionCounts:
        """Return the counts of both as "adaptive" data: the second may be there because of what the first showed."""
        return self._sum(other, "adaptive")

    def planned_sum(self, other: TransitionCounts) -> TransitionCounts:
        """Return the counts of both, with the weaker of the two ways of sampling.

        Valid only if it was decided before either was looked at that both would be collected, and how much of each.
        """
        return self._sum(other, weaker(self.sampling, other.sampling))

    def _sum(self, other: TransitionCounts, sampling: Sampling) -> TransitionCounts:
        require_same_graph(self.graph, other.graph)
        if (self.pilot is None) != (other.pilot is None):
            raise DataError("only one of the two counts keeps a pilot apart; drop it, or split both")
        require_countable(self.total + other.total)
        pilot = None if self.pilot is None or other.pilot is None else self.pilot + other.pilot
        reports = [report for report in (self.report, other.report) if report is not None]
        report = reports[0] + reports[1] if len(reports) == 2 else next(iter(reports), None)
        return TransitionCounts(self.graph, self.counts + other.counts, sampling, pilot, report)

    def __repr__(self) -> str:
        seen = f"{np.count_nonzero(self.counts):,} of {number_of(len(self.counts), 'transition')} seen"
        pilot = "" if self.pilot is None else "with pilot"
        return one_line(self, number_of(self.total, "step"), seen, self.sampling, pilot)

    def _repr_html_(self) -> str:
        return html_table(
            [
                ("steps", f"{self.total:,}"),
                ("transitions seen", f"{np.count_nonzero(self.counts):,} of {len(self.counts):,}"),
                ("choices tried", f"{np.count_nonzero(self.visits):,} of {len(self.visits):,}"),
                ("sampling", self.sampling),
            ]
        )


@dataclass(frozen=True, eq=False)
class EventCounts:
    """How often each event of a model was tried, and how often it happened."""

    trials: CountArray  # (n_events)
    successes: CountArray  # (n_events)
    sampling: Sampling

    def __repr__(self) -> str:
        return one_line(self, number_of(len(self.trials), "event"), number_of(int(self.trials.sum()), "trial"))


def require_same_graph(graph: Graph, other: Graph) -> None:
    """Refuse counts of another model."""
    if graph is not other and graph.fingerprint != other.fingerprint:
        raise DataError(other_model(graph, other.n_states, other.n_transitions, other.fingerprint))


def other_model(graph: Graph, n_states: int, n_transitions: int, fingerprint: str) -> str:
    """Return how the model that counts belong to differs from the one at hand."""
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
    return int(values.sum()) if largest * len(values) <= LARGEST else sum(values.tolist())


def require_countable(total: int, name: str = "counts") -> None:
    """Refuse more steps than can be counted."""
    if total > LARGEST:
        raise DataError(f"{name} sum to {total:,}, but no more than 2^63 - 1 = {LARGEST:,} steps can be counted")


def _checked(name: str, values: npt.ArrayLike, graph: Graph) -> CountArray:
    array = np.asarray(values)
    if array.shape != (graph.n_transitions,):
        raise DataError(f"{name} has shape {array.shape}, but the model has {graph.n_transitions:,} transitions")
    if array.dtype.kind not in "iu":
        raise DataError(f"{name} must be whole numbers, not {array.dtype}")
    if (array < 0).any():
        raise DataError(f"{name} has negative entries")
    require_countable(exact_sum(array), name)
    is_shared = array.flags.writeable or not array.flags.owndata  # by whoever may change it after this check
    return read_only(array.astype(np.int64, copy=is_shared))

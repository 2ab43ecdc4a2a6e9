"""From counts of transitions to trials and successes of events, and which events a run can try only once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.data.counts import CountArray, EventCounts, TransitionCounts
from plumdp.model.events import Events
from plumdp.model.graph import BoolArray, Graph, Indices, owners, read_only


def pool(events: Events, counts: TransitionCounts) -> EventCounts:
    """Return how often each event was tried and happened: every visit of a choice tries each of its events once."""
    happens = events.success >= 0
    trials = sum_by(events.tried, counts.visits[events.choice_of_trial()], len(events))
    event = np.concatenate([events.success[happens], events.factors.event])
    seen = np.concatenate([counts.counts[happens], counts.counts[events.factors.transition]])
    return EventCounts(trials, sum_by(event, seen, len(events)), counts.sampling)


def is_tried_once(graph: Graph, events: Events) -> BoolArray:
    """Return events that no run can try twice; False says nothing."""
    return tried_once(graph, events.choice_of_trial(), events.tried, len(events))


def tried_once(graph: Graph, choice: Indices, event: Indices, n_events: int) -> BoolArray:
    """Return events (n_events) that no run can try twice, if ``choice[i]`` tries ``event[i]``; False says nothing.

    A clock is a state variable that no transition turns back. An event is tried at most once if by some clock all its
    trials start before any of them ends.
    """
    state = graph.state_of_choice()[choice]
    once = np.zeros(n_events, dtype=np.bool_)
    for clock in _clocks(graph):
        end = np.minimum.reduceat(clock[graph.successor], graph.first_transition[:-1])
        last_start = np.full(n_events, clock.min())
        first_end = np.full(n_events, clock.max())
        np.maximum.at(last_start, event, clock[state])
        np.minimum.at(first_end, event, end[choice])
        once |= last_start < first_end
    return once


def _clocks(graph: Graph) -> Iterator[npt.NDArray[Any]]:
    """Yield the state variables that never decrease along a transition, and reversed those that never increase."""
    source = owners(graph.first_transition[graph.first_choice])
    for values in graph.states.values():
        if values.dtype.kind in "bi":
            before, after = values[source], values[graph.successor]
            if (before <= after).all():
                yield values
            elif (before >= after).all():
                yield ~values  # unlike minus, this turns the order round without overflow, and for Booleans too


def sum_by(index: Indices, values: CountArray, size: int) -> CountArray:
    """Return the sums of values with the same index, in whole numbers."""
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, index, values)
    return read_only(total)

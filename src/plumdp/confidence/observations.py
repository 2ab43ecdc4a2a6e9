"""Trials and successes of events, and which events no run can try twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.data.counts import EventCounts, TransitionCounts
from plumdp.model.events import Events
from plumdp.model.graph import BoolArray, Graph, Indices, IntArray, owners, sum_by

Times: TypeAlias = npt.NDArray[Any]
"""Values of a state variable, as states or choices have them."""

_BLOCK = 2**18  # choices that are checked at a time, so that a variable that is not a clock costs little


def pool(events: Events, counts: TransitionCounts) -> EventCounts:
    """Return trials and successes of each event, where a visit of a choice tries each of its events once."""
    by_row, n = events.by_row, len(events)
    by_place = by_row.rows.sum_by_place(counts.counts)
    trials = sum_by(by_row.tried, by_row.rows.sum_by_row(by_place)[owners(by_row.first_trial)], n)
    happens = by_row.success >= 0
    event = np.concatenate([by_row.success[happens], by_row.factor_event])
    successes = np.concatenate([by_place[happens], by_place[by_row.factor_place]])
    return EventCounts(trials, sum_by(event, successes, n), counts.sampling)


def is_tried_once(graph: Graph, events: Events) -> BoolArray:
    """Return the events that surely no run can try twice."""
    by_row, once = events.by_row, np.zeros(len(events), dtype=np.bool_)
    row, state = owners(by_row.first_trial), graph.state_of_choice()
    for clock, end in _clocks(graph):
        start, end = _spans(clock, clock[state], end, by_row.rows.number, len(by_row.rows))
        once |= np.less(*_spans(clock, start[row], end[row], by_row.tried, len(events)))
    return once


def tried_once(graph: Graph, choice: Indices, event: Indices, n_events: int) -> BoolArray:
    """Return the events (n_events) that surely no run can try twice, if ``choice[i]`` tries ``event[i]``.

    A clock is a state variable that no transition turns back. An event is tried at most once if by some clock all its
    trials start before any of them ends.
    """
    once, state = np.zeros(n_events, dtype=np.bool_), graph.state_of_choice()[choice]
    for clock, end in _clocks(graph):
        once |= np.less(*_spans(clock, clock[state], end[choice], event, n_events))
    return once


def _spans(clock: Times, start: Times, end: Times, event: Indices, n_events: int) -> tuple[Times, Times]:
    """Return the last start and the first end of the trials of each event, given start, end and event of trials."""
    last_start, first_end = np.full(n_events, clock.min()), np.full(n_events, clock.max())
    np.maximum.at(last_start, event, start)
    np.minimum.at(first_end, event, end)
    return last_start, first_end


def _clocks(graph: Graph) -> Iterator[tuple[Times, Times]]:
    """Yield the state variables that never decrease along a transition, and reversed those that never increase.

    With each comes its least value after each choice.
    """
    state = graph.state_of_choice()
    for values in graph.states.values():
        if values.dtype.kind in "bi":
            for clock in (values, ~values):  # reverses the order of Booleans too, and unlike minus without overflow
                end = _least_after(graph, state, clock)
                if end is not None:
                    yield clock, end
                    break


def _least_after(graph: Graph, state: IntArray, clock: Times) -> Times | None:
    """Return the least value after each choice, given its state, or None if the clock can go back after one."""
    first, least = graph.first_transition, []
    for start in range(0, graph.n_choices, _BLOCK):
        end = min(start + _BLOCK, graph.n_choices)
        after = clock[graph.successor[first[start] : first[end]]]
        least.append(np.minimum.reduceat(after, first[start:end] - first[start]))
        if (least[-1] < clock[state[start:end]]).any():
            return None
    return np.concatenate(least)

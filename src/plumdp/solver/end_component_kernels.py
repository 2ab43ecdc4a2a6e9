"""Compiled loops on a graph whose edges nature cannot remove, for the edges that exist and for end components."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from plumdp.base.compiled import compiled
from plumdp.solver.graph_kernels import add

N_LOST, N_EVENTS, N_PARTS, N_SEARCHES = 0, 1, 2, 3  # places of the counters


class EdgeRows(NamedTuple):
    """The graph, and the rows that are still inner, which lead to states of one part only."""

    first_choice: Any
    first: Any
    successor: Any
    source: Any  # (n_choices): state of each row
    offset: Any  # (n_states + 1): state s is a successor of the rows incoming[offset[s]:offset[s + 1]]
    incoming: Any
    inner: Any  # (n_choices)
    n_inner: Any  # (n_states): inner rows of each state


class StatePartition(NamedTuple):
    """A partition of the states that is being refined, and the states that are still to be examined."""

    part: Any  # (n_states): number of the part, or -1 for states that were removed
    size: Any  # (n_parts): its number of states
    is_open: Any  # (n_parts): whether it may have to be split further
    lost: Any  # stack of states that have no inner row any more
    events: Any  # stack of states s that may not reach their whole part any more; as -1 - s, not be reached from it
    mark: Any  # (n_states): number of the last search that visited it
    queue: Any  # (n_states)
    counters: Any  # of lost, events, parts and searches


@compiled
def mark_possible(first: Any, expression: Any, lower: Any, upper: Any, possible: Any) -> None:
    """Mark the transitions that may have a positive probability.

    A row whose lower bounds sum to one has no others.
    """
    for c in range(len(first) - 1):
        least, less = 0.0, 0.0
        for t in range(first[c], first[c + 1]):
            least, less = add(least, less, lower[expression[t]])
        has_room = (least - 1.0) + less < 0.0
        for t in range(first[c], first[c + 1]):
            f = expression[t]
            possible[t] = lower[f] > 0.0 or (has_room and upper[f] > 0.0)


@compiled
def drop_row(c: int, rows: Any, parts: Any) -> None:
    """Drop an inner row, and record the states from which its part may have to be split."""
    s = rows.source[c]
    rows.inner[c] = False
    rows.n_inner[s] -= 1
    if rows.n_inner[s] == 0:
        parts.lost[parts.counters[N_LOST]] = s
        parts.counters[N_LOST] += 1
    parts.events[parts.counters[N_EVENTS]] = s
    parts.counters[N_EVENTS] += 1
    for t in range(rows.first[c], rows.first[c + 1]):
        if parts.part[rows.successor[t]] == parts.part[s]:
            parts.events[parts.counters[N_EVENTS]] = -1 - rows.successor[t]
            parts.counters[N_EVENTS] += 1


@compiled
def closed_set(start: int, forward: bool, budget: int, rows: Any, parts: Any) -> int:
    """Queue the states that inner rows lead to from the start, or else those from which they lead there.

    Returns how many there are, or -1 if that would take more steps than the budget.
    """
    parts.counters[N_SEARCHES] += 1
    stamp = parts.counters[N_SEARCHES]
    mark, queue = parts.mark, parts.queue
    mark[start] = stamp
    queue[0] = start
    n, head, n_steps = 1, 0, 0
    while head < n and n_steps <= budget:
        s = queue[head]
        head += 1
        if forward:
            for c in range(rows.first_choice[s], rows.first_choice[s + 1]):
                n_steps += 1
                for t in range(rows.first[c], rows.first[c + 1] if rows.inner[c] else rows.first[c]):
                    n_steps += 1
                    if mark[rows.successor[t]] != stamp:
                        mark[rows.successor[t]] = stamp
                        queue[n] = rows.successor[t]
                        n += 1
        else:
            for k in range(rows.offset[s], rows.offset[s + 1]):
                n_steps += 1
                if rows.inner[rows.incoming[k]] and mark[rows.source[rows.incoming[k]]] != stamp:
                    mark[rows.source[rows.incoming[k]]] = stamp
                    queue[n] = rows.source[rows.incoming[k]]
                    n += 1
    return n if n_steps <= budget else -1


@compiled
def split_off(n: int, forward: bool, rows: Any, parts: Any) -> None:
    """Make a new part of the first states of the queue, and drop the rows between it and the rest of the old part."""
    old, new = parts.part[parts.queue[0]], parts.counters[N_PARTS]
    parts.counters[N_PARTS] += 1
    parts.size[old] -= n
    parts.size[new] = n
    parts.is_open[new] = True
    for i in range(n):
        parts.part[parts.queue[i]] = new
    for i in range(n):
        s = parts.queue[i]
        if forward:  # no row leads out
            for k in range(rows.offset[s], rows.offset[s + 1]):
                if rows.inner[rows.incoming[k]] and parts.part[rows.source[rows.incoming[k]]] == old:
                    drop_row(rows.incoming[k], rows, parts)
            continue
        for c in range(rows.first_choice[s], rows.first_choice[s + 1]):  # no row leads in
            for t in range(rows.first[c], rows.first[c + 1]):
                if rows.inner[c] and parts.part[rows.successor[t]] == old:
                    drop_row(c, rows, parts)


@partial(compiled, small=100_000)
def refine(dropped: Any, budget: int, rows: Any, parts: Any) -> None:
    """Drop rows of strongly connected parts, and split off the states that small searches then find disconnected.

    States without inner rows are removed, and so are the rows that may lead there. If a part is disconnected, some
    state that has lost a row leads to a closed set of fewer states. That set is split off if the search for it ends
    within the budget. Otherwise the part stays open, like the sets split off, which need not be connected strongly.
    """
    for i in range(len(dropped)):
        drop_row(dropped[i], rows, parts)
    while parts.counters[N_LOST] + parts.counters[N_EVENTS] > 0:
        if parts.counters[N_LOST] > 0:
            parts.counters[N_LOST] -= 1
            s = parts.lost[parts.counters[N_LOST]]
            parts.size[parts.part[s]] -= 1
            for k in range(rows.offset[s], rows.offset[s + 1]):
                if rows.inner[rows.incoming[k]]:
                    drop_row(rows.incoming[k], rows, parts)
            parts.part[s] = -1
            continue
        parts.counters[N_EVENTS] -= 1
        event = parts.events[parts.counters[N_EVENTS]]
        forward = event >= 0
        s = event if forward else -1 - event
        if parts.part[s] < 0:
            continue
        n = closed_set(s, forward, budget, rows, parts)
        if n < 0:
            parts.is_open[parts.part[s]] = True
        elif n < parts.size[parts.part[s]]:
            split_off(n, forward, rows, parts)

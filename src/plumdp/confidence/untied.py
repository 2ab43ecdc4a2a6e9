"""Bounds the probability of each outcome of a row by its own trials, trusting where rows lead alone."""

from __future__ import annotations

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.confidence.binomial import beta_binomial
from plumdp.data.counts import TransitionCounts
from plumdp.model.graph import BoolArray, FloatArray, Indices, owners, read_only


def untied_bounds(counts: TransitionCounts, *, error: float) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the probability of each transition that hold with probability at least 1 - error all at once.

    They hold whether or not the expressions of the model are right, as long as its transitions are. As the intervals
    are beta-binomial, they hold however the data were sampled. The error is divided equally among all transitions of
    choices with at least two. In a choice with two, both are one event.

    >>> from plumdp import case_study
    >>> graph = case_study("betting:25").model.graph
    >>> counts = TransitionCounts(graph, np.full(graph.n_transitions, 10), "trajectories")
    >>> lower, upper = untied_bounds(counts, error=0.001)
    >>> bool((lower <= upper).all())
    True
    """
    graph = counts.graph
    lower, upper = bounds_of_rows(
        counts.counts, graph.first_transition, np.ones(graph.n_choices, dtype=np.bool_), error=error
    )
    return read_only(lower), read_only(upper)


def bounds_of_rows(
    counts: Indices, first: Indices, is_unknown: BoolArray, *, error: float
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the probability of each place, given its counts, and where the places of each row begin.

    The error is divided equally among all places of unknown rows with at least two. Elsewhere both bounds are one.
    """
    owner, is_event = owners(first), events_of_rows(first, is_unknown)
    visits = np.add.reduceat(counts, first[:-1])[owner]
    lower, upper = np.ones(len(owner)), np.ones(len(owner))
    share = equal_parts(error, int(is_event.sum()))  # union bound
    lower[is_event], upper[is_event] = beta_binomial(counts[is_event], visits[is_event], share)
    second = np.flatnonzero((is_unknown & (np.diff(first) > 1))[owner] & ~is_event)
    lower[second] = np.maximum(np.nextafter(1 - upper[second - 1], 0), 0)
    upper[second] = np.minimum(np.nextafter(1 - lower[second - 1], 1), 1)
    return lower, upper


def events_of_rows(first: Indices, is_unknown: BoolArray) -> BoolArray:
    """Return which places of unknown rows have bounds of their own: all of two or more, but the second of two."""
    size, owner = np.diff(first), owners(first)
    is_second = (size[owner] == 2) & (np.arange(len(owner)) == first[owner] + 1)
    return np.asarray((is_unknown & (size > 1))[owner] & ~is_second)

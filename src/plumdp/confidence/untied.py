"""Bounds the probability of each transition by its own trials, trusting the graph of the model alone."""

from __future__ import annotations

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.confidence.binomial import beta_binomial
from plumdp.data.counts import TransitionCounts
from plumdp.model.graph import FloatArray, read_only


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
    choice = graph.choice_of_transition()
    n_successors = np.diff(graph.first_transition)[choice]
    is_second = (n_successors == 2) & (np.arange(graph.n_transitions) == graph.first_transition[choice] + 1)
    is_event = (n_successors > 1) & ~is_second
    lower, upper = np.ones(graph.n_transitions), np.ones(graph.n_transitions)
    share = equal_parts(error, int(is_event.sum()))  # union bound
    lower[is_event], upper[is_event] = beta_binomial(counts.counts[is_event], counts.visits[choice[is_event]], share)
    second = np.flatnonzero(is_second)
    lower[second] = np.maximum(np.nextafter(1 - upper[second - 1], 0), 0)
    upper[second] = np.minimum(np.nextafter(1 - lower[second - 1], 1), 1)
    return read_only(lower), read_only(upper)

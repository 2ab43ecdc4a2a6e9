"""Bounds each expression of a model by confidence intervals of its events, each at an equal share of the error.

With probability at least 1 - error all intervals hold at once, whatever the true point is (Theorem 1 of the paper).
Without the expressions of a model, outcomes of rows are bounded by their own trials, trusting where rows lead alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Guarantee
from plumdp.confidence.bets import HalfSpace
from plumdp.confidence.binomial import beta_binomial, sampled_interval, widened
from plumdp.confidence.observations import is_tried_once, pool
from plumdp.confidence.sets import require_error
from plumdp.data.counts import CountArray, EventCounts, Sampling, TransitionCounts, require_same_graph
from plumdp.model.events import Events, find_events
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import BoolArray, FloatArray, Indices, owners, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import float_above, float_below
from plumdp.model.text import number_of, one_line


@dataclass(frozen=True, eq=False)
class ExpressionBounds:
    """Intervals that hold all at once with probability at least 1 - ``error``.

    The data bound events, ``event_lower <= polynomial <= event_upper`` for the polynomials of ``events``. The bounds
    ``lower`` and ``upper`` of single expressions follow from these. An expression whose events were never tried lies in
    [0, 1]. A lower bound above its upper bound says that data and model disagree.
    """

    expressions: ExpressionTable
    events: Events
    event_lower: FloatArray  # (n_events)
    event_upper: FloatArray  # (n_events)
    trials: CountArray  # (n_events)
    successes: CountArray  # (n_events)
    error: float
    method: str
    guarantee: Guarantee
    is_tolerant: bool = (
        False  # whether they hold if probabilities vary from trial to trial, once widened by a model tolerance
    )

    @cached_property
    def intervals(self) -> tuple[FloatArray, FloatArray]:
        """The lower and the upper bound of each expression."""
        lower, upper = _by_expression(self.expressions, self.events, self.event_lower, self.event_upper)
        return read_only(lower), read_only(upper)

    @property
    def lower(self) -> FloatArray:
        """The lower bound of each expression (n_expressions)."""
        return self.intervals[0]

    @property
    def upper(self) -> FloatArray:
        """The upper bound of each expression (n_expressions)."""
        return self.intervals[1]

    def half_spaces(self, names: tuple[str, ...]) -> list[HalfSpace]:
        """Return both sides of the interval of each event that is affine, in the parameters with these names."""
        sides = []
        ends = zip(self.events.polynomials, self.event_lower.tolist(), self.event_upper.tolist(), strict=True)
        for polynomial, low, high in ends:
            if polynomial.is_affine:
                constant, slopes = polynomial.affine_terms()
                row = np.array([float(slopes.get(name, 0)) for name in names])
                sides.append(HalfSpace(row, high - float(constant), "intervals of expressions"))
                sides.append(HalfSpace(-row, float(constant) - low, "intervals of expressions"))
        return sides

    def widened(self, by: float) -> ExpressionBounds | None:
        """Return the intervals moved outward by a model tolerance, or None if they are not made for rows that vary."""
        return self.moved_to(*widened(self.event_lower, self.event_upper, by)) if self.is_tolerant else None

    def moved_to(self, event_lower: FloatArray, event_upper: FloatArray) -> ExpressionBounds:
        """Return the bounds with other intervals of the same events."""
        return replace(self, event_lower=read_only(event_lower), event_upper=read_only(event_upper))

    def __repr__(self) -> str:
        sizes = number_of(len(self.expressions), "expression"), number_of(len(self.events), "event")
        return one_line(self, *sizes, f"error {self.error:g}", self.method, f"guarantee: {self.guarantee}")


def expression_bounds(
    model: ParametricMDP,
    counts: TransitionCounts | EventCounts,
    *,
    error: float = 0.001,
    events: Events | None = None,
) -> ExpressionBounds:
    """Return bounds on every expression of the model from counts of its transitions.

    Each event gets the narrowest interval that is valid for how the data were sampled: Clopper–Pearson for
    independent samples, and for events that a run can try only once if whole runs were sampled, beta-binomial
    otherwise. The error is divided equally among all events of the model, tried or not. Give ``events`` to save finding
    them again, or those of ``find_events(model, merge_complements=False)`` to spend the error as the paper does.

    >>> from plumdp import case_study
    >>> model = case_study("betting:25").model
    >>> counts = TransitionCounts(model.graph, np.full(model.graph.n_transitions, 10), "adaptive")
    >>> bounds = expression_bounds(model, counts)
    >>> bounds.method, bounds.guarantee
    ('beta-binomial', 'finite-sample, anytime')
    """
    require_error(error)
    if events is None:
        events = find_events(model, factors=isinstance(counts, TransitionCounts))
    pooled = _pooled(model, events, counts)
    is_fixed = _is_fixed(model, events, pooled.sampling)
    part = equal_parts(error, len(events))  # union bound
    event_lower, event_upper = sampled_interval(pooled.successes, pooled.trials, part, is_fixed)
    return ExpressionBounds(
        model.expressions,
        events,
        read_only(event_lower),
        read_only(event_upper),
        pooled.trials,
        pooled.successes,
        error,
        _method(is_fixed),
        Guarantee.FIXED if is_fixed.any() else Guarantee.ANYTIME,
    )


def _pooled(model: ParametricMDP, events: Events, counts: TransitionCounts | EventCounts) -> EventCounts:
    if isinstance(counts, TransitionCounts):
        require_same_graph(model.graph, counts.graph)
        return pool(events, counts)
    if len(counts.trials) != len(events):
        raise DataError(f"counts of {len(counts.trials):,} events, but the model has {len(events):,}")
    return counts


def _is_fixed(model: ParametricMDP, events: Events, sampling: Sampling) -> BoolArray:
    """Return which events have a number of trials that says nothing about their outcomes."""
    if sampling == "trajectories":
        return is_tried_once(model.graph, events)
    return np.full(len(events), sampling == "independent")


def _by_expression(
    table: ExpressionTable, events: Events, event_lower: FloatArray, event_upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the bounds on each expression that follow from intervals of events, rounded outward."""
    lower, upper = np.zeros(len(table)), np.ones(len(table))
    for f in np.flatnonzero(~table.is_unknown):
        lower[f], upper[f] = float_below(table.polynomials[f].constant), float_above(table.polynomials[f].constant)
    links = events.links
    low, high = event_lower[links.event], event_upper[links.event]
    low, high = _outward_where(links.is_complement, low, high, 1 - high, 1 - low)
    low, high = _outward_where(links.multiple > 1, low, high, low / links.multiple, high / links.multiple)
    np.maximum.at(lower, links.expression, low)
    np.minimum.at(upper, links.expression, high)
    return lower, upper


def _outward_where(
    where: BoolArray, low: FloatArray, high: FloatArray, new_low: FloatArray, new_high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the new ends, one float further out because they were rounded, where the condition holds."""
    return np.where(where, np.nextafter(new_low, 0), low), np.where(where, np.nextafter(new_high, 1), high)


def _method(is_fixed: BoolArray) -> str:
    if is_fixed.all() or not is_fixed.any():
        return "Clopper–Pearson" if is_fixed.any() else "beta-binomial"
    once = f"{is_fixed.sum():,} of {len(is_fixed):,} events"
    return f"Clopper–Pearson for {once}, which a run tries at most once; beta-binomial for the others"


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

"""Intervals of the probabilities of a table, narrowed by the parameters of the model that it is a view of."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.confidence.bounds import bounds_of_rows, events_of_rows, expression_bounds
from plumdp.data.counts import CountArray, Pilot, TransitionCounts
from plumdp.model.events import find_events
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import BoolArray, FloatArray, owners, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import float_above, float_below
from plumdp.model.unmodelled_exits import out_of_table_of
from plumdp.region.build import build_region, project
from plumdp.region.conflict import NOTHING_FITS, Conflict
from plumdp.region.shapes import Box, Region
from plumdp.tables.views import ties_rows


def with_expressions_alone(model: ParametricMDP) -> tuple[ParametricMDP, BoolArray]:
    """Return a model in which free rows are known, and which transitions (n_transitions) are not in free rows.

    Its free rows, of which nothing may be counted, lead to all successors alike, with numbers that mean nothing.
    """
    table = model.expressions
    is_kept = model.expression < len(table.polynomials)
    if is_kept.all():
        return model, is_kept
    size = np.diff(model.graph.first_transition)[model.graph.choice_of_transition()]
    polynomials = {each: number for number, each in enumerate(table.polynomials)}
    numbers = [polynomials.setdefault(Polynomial(Fraction(1, k)), len(polynomials)) for k in range(1, size.max() + 1)]
    expression = np.where(is_kept, model.expression, np.array(numbers)[size - 1]).astype(np.int32)
    more = ExpressionTable.build(tuple(polynomials), table.names)
    return replace(model, expressions=more, expression=read_only(expression)), is_kept


def visits_of(counts: TransitionCounts, is_kept: BoolArray) -> TransitionCounts:
    """Return the counts of some rows alone, also in the pilot: which row is visited next may depend on all."""
    pilot, time = counts.pilot, counts.time
    kept = None if pilot is None else _pilot_of(pilot, is_kept)
    of_time = None if time is None else time.of_rows(is_kept)
    contexts = tuple(each.of_rows(is_kept) for each in counts.contexts)
    return replace(counts, counts=counts.counts * is_kept, pilot=kept, time=of_time, contexts=contexts)


def _pilot_of(pilot: Pilot, is_kept: BoolArray) -> Pilot:
    moments = tuple(moment * is_kept for moment in pilot.moments)
    return replace(pilot, counts=pilot.counts * is_kept, moments=moments)


class TableIntervals(NamedTuple):
    """Bounds on each expression of a table, or a conflict if the data exclude the space of the parameters."""

    lower: FloatArray  # (n_expressions)
    upper: FloatArray  # (n_expressions)
    conflict: Conflict | None = None


def table_intervals(model: ParametricMDP, counts: TransitionCounts, *, error: float) -> TableIntervals:
    """Return bounds on each expression of a table that hold with probability at least 1 - error all at once.

    If the table is the view of a model whose parameters tie rows, these rows have intervals of all their events, and
    each expression has its range in the region of the parameters that these leave. The error is divided equally among
    events and the outcomes of other rows.
    """
    source = model.source
    if source is None:
        return TableIntervals(*row_intervals(model, counts.counts, error=error))
    space, polynomials = source.space, source.expressions.without_free()
    region: Region | Conflict = Box(space.names, space.lower, space.upper)
    if ties_rows(source):
        part, is_kept = with_expressions_alone(source)
        events = find_events(part, factors=True)
        is_other = source.is_free_row[source.rows.number[model.rows.representative]]
        n_others = int(events_of_rows(model.rows.first, counted_rows(model, is_other)).sum())
        of_each = equal_parts(error, n_others + len(events))
        lower, upper = row_intervals(model, counts.counts, error=of_each * n_others, is_asked=is_other)
        found = expression_bounds(
            part,
            replace(visits_of(counts, is_kept), sampling="adaptive"),  # to hold at any time, as those of rows do
            error=of_each * len(events),
            events=events,
        )
        region = build_region(space, events.polynomials, found.event_lower, found.event_upper)
    else:
        lower, upper = row_intervals(model, counts.counts, error=error)
    if isinstance(region, Conflict):
        return TableIntervals(lower, upper, region)
    return _within(model, lower, upper, *project(region, polynomials))


def _within(
    model: ParametricMDP, lower: FloatArray, upper: FloatArray, least: FloatArray, largest: FloatArray
) -> TableIntervals:
    """Return the bounds of a view, cut by the ranges of the polynomials of its source (n_polynomials)."""
    source = model.source
    assert source is not None
    has_one = source.expression < len(least)
    here, there = model.expression[has_one], source.expression[has_one]
    low, high = lower.copy(), upper.copy()
    np.maximum.at(low, here, least[there])
    np.minimum.at(high, here, largest[there])
    wrong = np.flatnonzero(low > high)
    if not len(wrong):
        return TableIntervals(read_only(low), read_only(high))
    f = int(wrong[0])
    number = int(source.expression[np.argmax(model.expression == f)])
    text, space = source.expressions.text(number), f"[{least[number]:.6g}, {largest[number]:.6g}]"
    words = f"{text} in [{lower[f]:.6g}, {upper[f]:.6g}] (these data)", f"{text} in {space} (the space)"
    return TableIntervals(lower, upper, replace(NOTHING_FITS, constraints=words))


def row_intervals(
    model: ParametricMDP, counts: CountArray, *, error: float, is_asked: BoolArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on each expression of a table that hold with probability at least 1 - error all at once.

    Of rows that are not asked for (n_rows), any probability may be. Tied rows are one row. The intervals are
    beta-binomial, so that they hold however the data were sampled. In a row with two places, both are one event. Known
    numbers are bounded by themselves.
    """
    numbers, rows, is_counted = (
        [f.constant for f in model.expressions.polynomials],
        model.rows,
        counted_rows(model, is_asked),
    )
    low, high = bounds_of_rows(rows.sum_by_place(counts), rows.first, is_counted, error=error)
    lower = np.array([*map(float_below, numbers), *np.zeros(model.expressions.n_free)])
    upper = np.array([*map(float_above, numbers), *np.ones(model.expressions.n_free)])
    expression, at = np.asarray(model.expression)[rows.transition], is_counted[owners(rows.first)]
    lower[expression[at]], upper[expression[at]] = low[at], high[at]
    return read_only(lower), read_only(upper)


def counted_rows(model: ParametricMDP, is_asked: BoolArray | None = None) -> BoolArray:
    """Return which rows are asked for, unknown, and counted (n_rows): of what happens elsewhere nothing ever is."""
    is_counted = model.is_free_row.copy() if is_asked is None else model.is_free_row & is_asked
    out_of_table = out_of_table_of(model)
    if out_of_table is not None:
        is_counted[model.rows.number[model.graph.first_choice[out_of_table]]] = False
    return is_counted

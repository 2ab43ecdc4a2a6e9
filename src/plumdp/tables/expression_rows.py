"""The rows of a model that have expressions, without its free rows, for what parameters say about these alone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from plumdp.data.counts import Pilot, TransitionCounts
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import BoolArray, read_only
from plumdp.model.parametric import ParametricMDP


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
    return replace(counts, counts=counts.counts * is_kept, pilot=kept, time=of_time)


def _pilot_of(pilot: Pilot, is_kept: BoolArray) -> Pilot:
    moments = tuple(moment * is_kept for moment in pilot.moments)
    return replace(pilot, counts=pilot.counts * is_kept, moments=moments)

"""The test of a model that is seen as a table: that of the table, and one of what its parameters tie beside it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from plumdp.base.rounding import UP
from plumdp.confidence.model_cache import ModelCache
from plumdp.data.counts import Pilot, TransitionCounts
from plumdp.fit.model_fit import FitTest, ModelFit, fit_model
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import BoolArray, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.views import ties_rows
from plumdp.tables.fit import table_fit

_LN_2 = float(np.log(2))


def view_fit(model: ParametricMDP, counts: TransitionCounts) -> ModelFit:
    """Return the p-value of a table, or of the model that it is a view of, and the tests that speak against it most.

    A model with parameters is tested twice: its rows as those of a table, and the rows that have expressions by these.
    Either has half of the error.
    """
    fit, source = table_fit(model, counts), model.source
    if source is None or not ties_rows(source):
        return fit
    part, is_kept = with_expressions_alone(source)
    cache = ModelCache(part)
    own = fit_model(part, visits_of(counts, is_kept), fixed=cache.fixed, cache=cache)
    of_expressions = (replace(test, kind="row", subject=_words(test)) for test in own.tests)
    halves = (replace(test, evidence=test.evidence - _LN_2) for test in (*fit.tests, *of_expressions))
    strongest = sorted(halves, key=lambda test: -test.evidence)
    return replace(fit, p_value=min(1.0, 2 * min(fit.p_value, own.p_value) * UP), tests=tuple(strongest))


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
    pilot = counts.pilot
    return replace(counts, counts=counts.counts * is_kept, pilot=None if pilot is None else _pilot_of(pilot, is_kept))


def _pilot_of(pilot: Pilot, is_kept: BoolArray) -> Pilot:
    moments = tuple(moment * is_kept for moment in pilot.moments)
    return replace(pilot, counts=pilot.counts * is_kept, moments=moments)


def _words(test: FitTest) -> str:
    return f"{test.parameter} differs with {test.subject}" if test.kind == "drift" else test.subject

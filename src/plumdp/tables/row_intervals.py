"""Intervals of the probabilities of all rows of a table, which hold for all policies."""

from __future__ import annotations

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.confidence.binomial import beta_binomial
from plumdp.data.counts import CountArray
from plumdp.model.graph import FloatArray, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import float_above, float_below
from plumdp.model.table_model import elsewhere_of


def row_intervals(model: ParametricMDP, counts: CountArray, *, error: float) -> tuple[FloatArray, FloatArray]:
    """Return bounds on each expression of a table that hold with probability at least 1 - error all at once.

    Tied rows are one row. The intervals are beta-binomial, so that they hold however the data were sampled. In a row
    with two places, both are one event. Known numbers are bounded by themselves.
    """
    polynomials = model.expressions.polynomials
    numbers = [f.constant for f in polynomials]
    rows = model.rows
    expression = np.asarray(model.expression)[rows.transition]
    size = np.diff(rows.first)
    is_free = expression[rows.first[:-1]] >= len(polynomials)
    owner = np.repeat(np.arange(len(size)), size)
    place = np.arange(len(expression)) - rows.first[:-1][owner]
    is_second = (size[owner] == 2) & (place == 1)
    elsewhere = elsewhere_of(model)
    of_choice = rows.number[model.graph.first_choice[elsewhere]] if elsewhere is not None else -1
    is_event = is_free[owner] & ~is_second & (owner != of_choice)  # of what happens elsewhere nothing is ever counted
    seen = rows.sum_by_place(counts)
    visits = rows.sum_by_row(seen)[owner]
    low, high = np.where(owner == of_choice, 0.0, 1.0), np.ones(len(expression))
    share = equal_parts(error, int(is_event.sum()))  # union bound
    low[is_event], high[is_event] = beta_binomial(seen[is_event], visits[is_event], share)
    second = np.flatnonzero(is_second & is_free[owner] & (owner != of_choice))
    low[second] = np.maximum(np.nextafter(1 - high[second - 1], 0), 0)
    high[second] = np.minimum(np.nextafter(1 - low[second - 1], 1), 1)
    lower = np.array([*map(float_below, numbers), *np.zeros(model.expressions.n_free)])
    upper = np.array([*map(float_above, numbers), *np.ones(model.expressions.n_free)])
    of_free = is_free[owner]
    lower[expression[of_free]], upper[expression[of_free]] = low[of_free], high[of_free]
    return read_only(lower), read_only(upper)

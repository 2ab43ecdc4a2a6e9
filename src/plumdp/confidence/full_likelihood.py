"""Searches for the maximum of the likelihood of all rows, also of those that a likelihood table leaves out.

ln likelihood(v) = Σ count[f] ln f(v) over the expressions f of a model. Where some are not affine it need not be
concave. Then a search ends at some maximum, and nothing proves that there is no larger one. So it serves estimates, and
never bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from warnings import catch_warnings

import numpy as np

from plumdp.confidence.estimates import Prior
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.confidence.space_moments import simplified
from plumdp.data.counts import TransitionCounts
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import BoolArray, FloatArray
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import ParameterSpace

_MOST_WORK = 200_000  # multiplications for one step, beyond which there is no search
_LEAST = 1e-9  # probability below which the logarithm is continued by its tangent, so that it is finite everywhere
_MAX_STEPS = 200


def left_out_choices(table: LikelihoodTable) -> BoolArray:
    """Return which choices (n_choices) have unknown outcomes and no part in the likelihood of a table."""
    n_ways = np.diff(table.first)[table.tied_place]
    starts = table.rows.first[:-1]
    is_unknown = np.logical_or.reduceat(table.tied_place > 0, starts)
    is_used = np.logical_or.reduceat(n_ways > 0, starts)
    return np.asarray((is_unknown & ~is_used)[table.rows.number])


def search_maximum(
    model: ParametricMDP, counts: TransitionCounts, near: Sequence[FloatArray], prior: Prior
) -> FloatArray:
    """Return the most likely point of the space (d) that searches near some points find, with a weak prior.

    Outcomes that were never seen of choices that were visited count once if the maximum makes one of them impossible,
    as in ``estimate_inside``. If the model is too large, the result is the first of the points.
    """
    space, table = simplified(model.space), model.expressions
    if space.dimension**2 * (len(table.monomials) + len(space.constraints)) > _MOST_WORK:
        return near[0]
    starts = [_in_space(space, point, prior[0]) for point in near]
    outcome_counts = np.bincount(model.expression, counts.counts, len(table)).astype(np.float64)
    visited = np.unique(model.expression[counts.visits[model.graph.choice_of_transition()] > 0])
    unknown = visited[table.is_unknown[visited]]
    best = starts[0]
    for pseudo in (0.0, 1.0):
        weights = np.zeros(len(table))
        weights[unknown] = np.where(outcome_counts[unknown] > 0, outcome_counts[unknown], pseudo)
        best = min((_climb(table, space, weights, start, prior) for start in starts), key=lambda maximum: maximum[0])[1]
        if (table.evaluate(best[None, :])[unknown, 0] > _LEAST).all():
            break
    return best


def _in_space(space: ParameterSpace, point: FloatArray, inner: FloatArray) -> FloatArray:
    """Return the last point of the space on the way from an inner point to another one."""
    rows, offsets = space.inequalities
    axes = np.eye(space.dimension)
    rows, offsets = np.vstack([rows, axes, -axes]), np.concatenate([offsets, space.upper, -space.lower])
    speed, room = rows @ (point - inner), np.maximum(offsets - rows @ inner, 0.0)
    share = np.min(room[speed > 0] / speed[speed > 0], initial=1.0)
    return np.asarray((inner + share * (point - inner)).clip(space.lower, space.upper))


def _climb(
    table: ExpressionTable, space: ParameterSpace, weights: FloatArray, start: FloatArray, prior: Prior
) -> tuple[float, FloatArray]:
    """Return the least negative log-likelihood per step that a search finds, and its point."""
    from scipy.optimize import minimize

    rows, offsets = space.inequalities
    used, total = np.flatnonzero(weights), max(float(weights.sum()), 1.0)

    def function(v: FloatArray) -> tuple[float, FloatArray]:
        values, slopes = table.value_and_gradient(v)
        positive = np.maximum(values[used], _LEAST)
        logs = np.log(positive) + (values[used] - positive) / _LEAST
        pull = prior[1] @ (v - prior[0])
        gradient = (weights[used] / positive) @ slopes[used] - pull
        return -float(weights[used] @ logs - (v - prior[0]) @ pull / 2) / total, -gradient / total

    half_spaces = {"type": "ineq", "fun": lambda v: offsets - rows @ v, "jac": lambda _: -rows}
    box = list(zip(space.lower.tolist(), space.upper.tolist(), strict=True))
    constraints = [half_spaces] if len(rows) else []
    options = {"method": "SLSQP", "options": {"maxiter": _MAX_STEPS, "ftol": 1e-14}}
    with catch_warnings(action="ignore"):  # of steps that rounding takes out of the box, where they are put back
        maximum = minimize(function, start, jac=True, bounds=box, constraints=constraints, **options)
    point = np.asarray(maximum.x, dtype=np.float64).clip(space.lower, space.upper)
    is_better = np.isfinite(point).all() and not function(point)[0] > function(start)[0]
    return (function(point)[0], point) if is_better else (function(start)[0], start)

"""The rows that were visited, with the probabilities, slopes and information that a model has for them at a point.

Everything here is in floats without care for rounding, and the point is an estimate from the same data. What is
computed from it orders explanations and draws pictures. No test and no bound rests on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plumdp.base.rounding import UNDERFLOW
from plumdp.data.counts import TransitionCounts
from plumdp.model.graph import FloatArray, Indices, IntArray, read_only
from plumdp.model.parametric import ParametricMDP

_LEAST = 1e-12  # smallest probability that is divided by
_RANK = 1e-9  # relative; directions with less information count as not seen


@dataclass(frozen=True, eq=False)
class FittedRows:
    """The transitions of choices that were visited and can come out in several ways, and what the model expects there.

    Slopes are derivatives of ln probability along ``k`` directions of the parameters in which the data have information
    one each, and no information in common: Σ visits · probability · slope slopeᵀ is the unit matrix. A direction that
    the data say nothing about is left out.
    """

    model: ParametricMDP
    counts: TransitionCounts
    point: FloatArray  # (d)
    transition: IntArray  # (n)
    choice: IntArray  # (n)
    observed: FloatArray  # (n)
    visits: FloatArray  # (n), of its choice
    probability: FloatArray  # (n), at the point
    slopes: FloatArray  # (n_expressions, k)
    axes: FloatArray  # (d, k): how each parameter moves along each direction per unit

    @property
    def rank(self) -> int:
        """The number of directions of the parameters that the data say something about."""
        return int(self.slopes.shape[1])

    @cached_property
    def expected(self) -> FloatArray:
        """The expected number of times that each transition (n) is taken."""
        return self.visits * self.probability

    @cached_property
    def expression(self) -> IntArray:
        """The expression of each transition (n)."""
        return self.model.expression[self.transition]

    @cached_property
    def row(self) -> Indices:
        """The row of each transition (n), numbered from zero."""
        numbers: Indices = np.cumsum(np.diff(self.choice, prepend=-1) != 0) - 1
        return numbers

    @cached_property
    def start(self) -> Indices:
        """The first transition of each row, and the end of the last."""
        starts: Indices = np.append(np.flatnonzero(np.diff(self.choice, prepend=-1) != 0), len(self.choice))
        return starts

    @cached_property
    def row_class(self) -> IntArray:
        """The class of the row of each transition (n), where rows with the same expressions are one class."""
        classes: IntArray = self.model.rows.number[self.choice]
        return classes

    @cached_property
    def row_slopes(self) -> FloatArray:
        """The slopes of each transition (n, k)."""
        slopes: FloatArray = self.slopes[self.expression]
        return slopes

    @cached_property
    def score(self) -> FloatArray:
        """The slope of the log-likelihood (k), which is zero at its maximum."""
        score: FloatArray = self.observed @ self.row_slopes
        return score


def fitted_rows(model: ParametricMDP, counts: TransitionCounts, point: FloatArray) -> FittedRows:
    """Return the rows that were visited, with the model's probabilities and slopes at a point.

    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 1000, rng=1, max_steps=26)
    >>> rows = fitted_rows(study.model, counts, np.array([0.55]))
    >>> float(rows.expected.sum()) == float(rows.observed.sum()), rows.rank
    (True, 1)
    """
    graph = model.graph
    is_shown = (counts.visits > 0) & (np.diff(graph.first_transition) > 1)
    choices = np.flatnonzero(is_shown)
    transition = graph.transitions_of(choices)
    choice = np.repeat(choices, np.diff(graph.first_transition)[choices])
    visits = counts.visits[choice].astype(np.float64)
    value, gradient = model.expressions.value_and_gradient(point)
    probability = np.clip(value, _LEAST, 1.0)
    relative = np.where(value[:, None] > _LEAST, gradient / probability[:, None], 0.0)
    expression = model.expression[transition]
    weight = sums(expression, visits * probability[expression], len(value))
    axes = unit_axes((relative * weight[:, None]).T @ relative)
    return FittedRows(
        model,
        counts,
        read_only(point),
        read_only(transition.astype(np.int32)),
        read_only(choice.astype(np.int32)),
        read_only(counts.counts[transition].astype(np.float64)),
        read_only(visits),
        read_only(probability[expression]),
        read_only(relative @ axes),
        read_only(axes),
    )


def sums(index: Indices, values: FloatArray, n: int) -> FloatArray:
    """Return the sums (n) of values by index."""
    totals: FloatArray = np.bincount(index, values, n).astype(np.float64, copy=False)
    return totals


def unit_axes(information: FloatArray) -> FloatArray:
    """Return directions (d, k) with ``axes.T @ information @ axes`` the unit matrix, where there is information."""
    size = np.sqrt(np.diagonal(information))
    scale = np.where(size > 0, size, 1.0)
    spread, axes = np.linalg.eigh(information / np.outer(scale, scale)) if len(size) else (size, information)
    kept = spread > _RANK * max(float(spread.max(initial=0)), UNDERFLOW)
    unit: FloatArray = (axes[:, kept] / np.sqrt(spread[kept])) / scale[:, None]
    return unit

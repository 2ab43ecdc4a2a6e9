"""Signed residuals of a model at a point, counts of what happened less the counts that the model expects.

They come for each transition of a row, for each outcome of a class of rows with the same expressions, and for each
cell of a contrast (values of a state variable, or an action). Standard deviations are those of the model, less what the
estimate of the parameters takes away by following the data. The evidence of a residual is half the square of its
standardised value, in nats. It says what to look at first. It is not a test, as the largest of many is large by chance.

The rows that were visited, with the probabilities, slopes and information that a model has for them at a point.

Everything here is in floats without care for rounding, and the point is an estimate from the same data. What is
computed from it orders explanations and draws pictures. No test and no bound rests on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from plumdp.base.rounding import UNDERFLOW
from plumdp.confidence.contrasts import NONE, Contrast, find_contrasts
from plumdp.data.counts import TransitionCounts
from plumdp.fit.residual_counts import Residuals, ratio
from plumdp.model.graph import BoolArray, FloatArray, Indices, IntArray, read_only
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


_MOST_CELLS = 16
_RARE = 0.01  # share of the visits, below which a cell is put together with the next
_MOST_WORDS = 8  # that a variable may become, beyond which they are not looked at
_LEAST_SHARE = 1e-3  # of a variance that the estimate leaves: below it, the estimate has followed the data


@dataclass(frozen=True, eq=False)
class Change:
    """Something that a step may do, in words, and the transitions that do it."""

    text: str  # such as "money goes up"
    is_done: BoolArray  # (n), by transition of the rows
    parameter: str = ""  # the one that it is about, if it is about one


def row_residuals(rows: FittedRows) -> Residuals:
    """Return the residual of each transition (n) of the rows."""
    covariance = rows.expected[:, None] * rows.row_slopes
    return _residuals(rows.observed, rows.expected, rows.visits, rows.expected * (1 - rows.probability), covariance)


@dataclass(frozen=True, eq=False)
class ClassOutcomes:
    """The outcomes of classes of rows with the same expressions, whose visits count together."""

    row_class: IntArray  # (m)
    expression: IntArray  # (m)
    example: IntArray  # (m): one choice of the class
    n_rows: IntArray  # (m): visited choices of the class
    outcome: IntArray  # (n): of each transition of the rows
    residuals: Residuals  # (m)


def class_residuals(rows: FittedRows) -> ClassOutcomes:
    """Return the residual of each expression of each class of rows with the same expressions."""
    keys = rows.row_class * np.int64(len(rows.model.expressions)) + rows.expression
    _, first, outcome = np.unique(keys, return_index=True, return_inverse=True)
    m = len(first)
    is_first = np.ones(len(keys), dtype=np.bool_)  # of its expression in its row
    order = np.lexsort((keys, rows.choice))
    is_first[order[1:]] = np.diff(keys[order]) != 0
    is_first[order[1:]] |= np.diff(rows.choice[order]) != 0
    n_rows = np.bincount(outcome[is_first], minlength=m).astype(np.int32)
    observations = sums(outcome[is_first], rows.visits[is_first], m)
    observed, expected = sums(outcome, rows.observed, m), sums(outcome, rows.expected, m)
    share = ratio(expected, observations)  # equal ones of a row are one outcome
    covariance = expected[:, None] * rows.row_slopes[first]
    residuals = _residuals(observed, expected, observations, expected * (1 - share), covariance)
    return ClassOutcomes(
        read_only(rows.row_class[first]),
        read_only(rows.expression[first]),
        read_only(rows.choice[first]),
        read_only(n_rows),
        read_only(outcome.astype(np.int32)),
        residuals,
    )


def cell_residuals(rows: FittedRows, change: Change, cell: Indices, n_cells: int) -> Residuals:
    """Return the residuals of a change in each cell (n_cells), given the cell of each transition (n) or NONE."""
    row, starts = rows.row, rows.start[:-1]
    done = np.bincount(row[change.is_done], rows.probability[change.is_done], len(starts))
    is_open = (done > 0) & (done < 1 - 1e-12)  # where the change may happen and may not
    used = change.is_done & is_open[row] & (cell >= 0)
    of_row, cell_of_done = starts[is_open & (cell[starts] >= 0)], cell[used]
    chance = done[is_open & (cell[starts] >= 0)]
    observations = sums(cell[of_row], rows.visits[of_row], n_cells)
    variance = sums(cell[of_row], rows.visits[of_row] * chance * (1 - chance), n_cells)
    slopes = rows.row_slopes[used] * rows.expected[used, None]
    covariance = _sums(cell_of_done, slopes, n_cells)
    observed, expected = (sums(cell_of_done, x[used], n_cells) for x in (rows.observed, rows.expected))
    return _residuals(observed, expected, observations, variance, covariance)


def find_changes(rows: FittedRows) -> list[Change]:
    """Return the changes that steps may make, of a variable up or down, or to outcomes that a parameter makes likely.

    Of two changes that are the opposite of each other in every row, or the same, only the first is there.
    """
    changes: list[Change] = []
    for change in _all_changes(rows):
        if _differs_in_a_row(rows, change) and not any(_tells_the_same(rows, change, other) for other in changes):
            changes.append(change)
    return changes


def _all_changes(rows: FittedRows) -> Iterator[Change]:
    for name, values in rows.model.graph.states.items():
        if values.dtype.kind in "biuf" or len(np.unique(values)) <= _MOST_WORDS:
            yield from _changes_of(rows, name)
    slope = rows.row_slopes @ np.linalg.pinv(rows.axes) if rows.rank else np.zeros((len(rows.choice), 0))
    for i, name in enumerate(rows.model.space.names if rows.rank else ()):
        is_done = slope[:, i] > 1e-9
        yield Change(_made_more_likely(rows, is_done, name), is_done, name)


def _changes_of(rows: FittedRows, name: str, among: BoolArray | None = None) -> Iterator[Change]:
    """Yield the changes that steps may make to a variable.

    A variable with words becomes any of its words, or the one after the given transitions.
    """
    graph = rows.model.graph
    values = graph.states[name]
    before, after = values[graph.state_of_choice()[rows.choice]], values[graph.successor[rows.transition]]
    if values.dtype.kind in "biuf":
        before, after = before.astype(np.float64), after.astype(np.float64)
        up, down = ("becomes true", "becomes false") if values.dtype.kind == "b" else ("goes up", "goes down")
        yield Change(f"{name} {up}", after > before)
        yield Change(f"{name} {down}", after < before)
        yield Change(f"{name} changes", after != before)
    else:
        words = np.unique(values) if among is None else np.unique(after[among])[:1]
        yield from (Change(f"{name} becomes {word}", (after == word) & (before != word)) for word in words)


def _made_more_likely(rows: FittedRows, is_done: BoolArray, parameter: str) -> str:
    """Return a description of the outcomes that a larger parameter makes more likely.

    It is a change of a variable, if that is the same in all rows.
    """
    is_about = np.logical_or.reduceat(is_done, rows.start[:-1])[rows.row]
    for name in rows.model.graph.states:
        for change in _changes_of(rows, name, is_done):
            if not (change.is_done != is_done)[is_about].any():
                return f"{change.text} ({parameter})"
    return f"an outcome happens that a larger {parameter} makes more likely"


def _differs_in_a_row(rows: FittedRows, change: Change) -> bool:
    """Return whether some row may come out with the change and without it."""
    done = np.add.reduceat(change.is_done.astype(np.int32), rows.start[:-1])
    return bool(((done > 0) & (done < np.diff(rows.start))).any())


def _tells_the_same(rows: FittedRows, change: Change, other: Change) -> bool:
    """Return whether in each row two changes happen together, or one whenever the other does not."""
    differ = np.add.reduceat((change.is_done != other.is_done).astype(np.int32), rows.start[:-1])
    return bool(((differ == 0) | (differ == np.diff(rows.start))).all())


def observed_contrasts(rows: FittedRows) -> list[Contrast]:
    """Return the contrasts of the model, with values of a variable joined such that cells have alike counts.

    A test has to fix its cells before the data, but a picture need not.
    """
    graph = rows.model.graph
    visits = rows.counts.visits
    contrasts = []
    for contrast in find_contrasts(rows.model):
        values = graph.states.get(contrast.name)
        is_number = contrast.kind == "variable" and values is not None and values.dtype.kind in "iuf"
        of_choice = values[graph.state_of_choice()] if is_number and values is not None else None
        contrasts.append(contrast if of_choice is None else _in_even_cells(contrast, of_choice, visits))
    return contrasts


def _in_even_cells(contrast: Contrast, values: Indices, visits: Indices) -> Contrast:
    """Return the contrast of a numeric variable (n_choices) in at most 16 cells, about alike and none rare."""
    is_open = contrast.choices.is_open
    distinct, place = np.unique(values[is_open], return_inverse=True)
    visited = sums(place, visits[is_open].astype(np.float64), len(distinct))
    if not visited.any():
        return contrast
    n_cells = min(len(distinct), _MOST_CELLS)
    middle = (np.cumsum(visited) - visited / 2) / visited.sum()
    bin_of = (middle * n_cells).astype(np.int64) if len(distinct) > n_cells else np.arange(n_cells)
    bin_of = _without_rare(np.minimum(bin_of, n_cells - 1), visited / visited.sum())
    ends = [(distinct[bin_of == i].min(), distinct[bin_of == i].max()) for i in range(bin_of.max() + 1)]
    weight = np.where(visited > 0, visited, 1e-9)
    levels = np.bincount(bin_of, weight * distinct) / np.bincount(bin_of, weight)
    labels = tuple(
        f"{contrast.name} = {low:g}" if low == high else f"{contrast.name} from {low:g} to {high:g}"
        for low, high in ends
    )
    cell_of = np.full(len(contrast.cell_of), NONE, dtype=np.int32)
    cell_of[contrast.choices.state[is_open]] = bin_of[place]
    return replace(contrast, cell_of=read_only(cell_of), levels=read_only(levels), cells=labels)


def _without_rare(bin_of: Indices, share: FloatArray) -> Indices:
    """Return bins (n, ascending) numbered from zero, with rare ones put together with those before or after them."""
    joined, number, held = np.zeros(len(bin_of), dtype=np.int64), 0, 0.0
    for i in range(len(bin_of)):
        if held >= _RARE and bin_of[i] != bin_of[i - 1]:
            number, held = number + 1, 0.0
        joined[i], held = number, held + share[i]
    return np.minimum(joined, max(number - 1, 0)) if held < _RARE else joined


def _residuals(
    observed: FloatArray, expected: FloatArray, observations: FloatArray, variance: FloatArray, covariance: FloatArray
) -> Residuals:
    """Return residuals, given variances at fixed parameters (n) and covariances with the score (n, k).

    The estimate moves with the score, which takes the square of the covariance from the variance.
    """
    left = variance - (covariance**2).sum(axis=1)
    deviation = np.sqrt(np.where(left > _LEAST_SHARE * variance, left, 0.0))
    return Residuals(*(read_only(column) for column in (observed, expected, observations, deviation)))


def _sums(cell: Indices, values: FloatArray, n_cells: int) -> FloatArray:
    """Return the sums of rows (n, k) by cell."""
    columns = [sums(cell, column, n_cells) for column in values.T]
    return np.stack(columns, axis=1) if columns else np.zeros((n_cells, 0))

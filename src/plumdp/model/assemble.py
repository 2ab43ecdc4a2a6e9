"""Builds a parametric MDP from raw transitions: merges successors, drops zero transitions, cuts the space, checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from plumdp.errors import ModelError
from plumdp.model.check import check
from plumdp.model.expressions.arrays import PolynomialArray, number_in
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import BoolArray, FloatArray, Graph, Indices, IntArray, read_only
from plumdp.model.kernels import repeated_successors
from plumdp.model.parametric import ParametricMDP, RewardStructure
from plumdp.model.space import ParameterSpace

_SLACK = 1e-12  # an expression that leaves [0, 1] by less does not cut the space


def assemble(
    graph: Graph,
    expression: PolynomialArray,
    space: ParameterSpace,
    *,
    labels: Mapping[str, BoolArray],
    rewards: Mapping[str, RewardStructure],
    constants: Mapping[str, bool | int | Fraction],
) -> ParametricMDP:
    """Return the checked model of a graph whose transitions carry the given polynomials; raise all errors at once."""
    if not isinstance(space, ParameterSpace):
        raise ModelError(f"space={space!r}: give a ParameterSpace, for example ParameterSpace.box({{'p': (0, 1)}})")
    graph, expression = _merge_equal_successors(graph, expression)
    graph, expression = _drop_zero_transitions(graph, expression)
    expression = _renumber(expression)
    table = ExpressionTable.build(expression.table, space.names)
    model = ParametricMDP(
        graph, space, cut_space(space, table), table, read_only(expression.index), labels, rewards, constants
    )
    errors = [issue for issue in check(model) if issue.severity == "error"]
    if errors:
        raise ModelError("\n".join(str(issue) for issue in errors))
    return model


def cut_space(space: ParameterSpace, table: ExpressionTable) -> ParameterSpace:
    """Return the points of the space at which every affine expression is a probability.

    The true point gives a Markov decision process, so nothing possible is lost.
    """
    affine = np.flatnonzero(table.is_affine & table.is_unknown)
    if not len(affine):
        return space
    low, high = _affine_range(space, table, affine)
    below = [table.polynomials[f] for f in affine[low < -_SLACK]]
    above = [1 - table.polynomials[f] for f in affine[high > 1 + _SLACK]]
    try:
        return space.cut([*below, *above])
    except ModelError as error:
        raise ModelError(f"no point of the parameter space makes every expression a probability: {error}") from None


def _affine_range(space: ParameterSpace, table: ExpressionTable, affine: Indices) -> tuple[FloatArray, FloatArray]:
    """Return the range of each affine expression over the corners of the space, or over its box if they are many."""
    corners = space.vertices if space.constraints else None
    if corners == ():
        raise ModelError(f"the parameter space is empty: no point satisfies {'; '.join(space.describe())}")
    if corners:
        points = np.array([[float(corner[name]) for name in space.names] for corner in corners])
        values = table.evaluate(points)[affine]
        return values.min(axis=1), values.max(axis=1)
    linear = table.monomials.sum(axis=1) == 1
    coefficients = table.coefficients[affine][:, linear] @ table.monomials[linear]
    offset = table.evaluate(np.zeros((1, space.dimension)))[affine, 0]
    ends = np.stack([coefficients * space.lower, coefficients * space.upper])
    return offset + ends.min(axis=0).sum(axis=1), offset + ends.max(axis=0).sum(axis=1)


def _merge_equal_successors(graph: Graph, expression: PolynomialArray) -> tuple[Graph, PolynomialArray]:
    """Add up the expressions of transitions that join the same choice and successor."""
    first_same = np.empty(graph.n_transitions, dtype=np.int32)
    if not repeated_successors(graph.first_transition, graph.successor, first_same):
        return graph, expression
    position = np.arange(graph.n_transitions, dtype=np.int32)
    repeated = np.flatnonzero(first_same != position)
    table, index = expression.table, expression.index.copy()
    while len(repeated):
        target, once = np.unique(first_same[repeated], return_index=True)  # each sum takes one more term per round
        total = PolynomialArray(table, index[target]) + PolynomialArray(table, index[repeated[once]])
        table, index[target] = _extend(table, total)
        repeated = np.delete(repeated, once)
    keep = first_same == position
    return graph.keep(keep), PolynomialArray(table, index[keep])


def _drop_zero_transitions(graph: Graph, expression: PolynomialArray) -> tuple[Graph, PolynomialArray]:
    is_zero = np.array([not polynomial for polynomial in expression.table], dtype=np.bool_)
    if not is_zero.any():
        return graph, expression
    keep = ~is_zero[expression.index]
    return graph.keep(keep), expression[keep]


def _extend(table: Sequence[Polynomial], array: PolynomialArray) -> tuple[tuple[Polynomial, ...], IntArray]:
    """Return the table with the array's polynomials added, and the array's index into it."""
    number = {polynomial: i for i, polynomial in enumerate(table)}
    index = number_in(number, array)
    return tuple(number), index


def _renumber(expression: PolynomialArray) -> PolynomialArray:
    """Return the same array with a table of just the polynomials in use, in order of first use."""
    if not len(expression):
        return PolynomialArray((), expression.index)
    first_use = np.full(len(expression.table), len(expression), dtype=np.int64)
    backwards = np.arange(len(expression) - 1, -1, -1)
    first_use[expression.index[backwards]] = backwards
    order = np.argsort(first_use, kind="stable")[: np.count_nonzero(first_use < len(expression))]
    number = np.full(len(expression.table), -1, dtype=np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    return PolynomialArray(tuple(expression.table[i] for i in order), number[expression.index])

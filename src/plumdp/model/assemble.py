"""The assembly of a checked parametric MDP from raw transitions, with equal successors merged and zeros dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from plumdp.base.errors import ModelError
from plumdp.model.check import check_with_terms
from plumdp.model.expressions.arrays import PolynomialArray, number_in
from plumdp.model.expressions.polynomial import Number, Polynomial
from plumdp.model.expressions.table import ExpressionTable, affine_range, terms_of
from plumdp.model.graph import BoolArray, FloatArray, Graph, Indices, IntArray, read_only
from plumdp.model.kernels import number_by_first_use, repeated_successors
from plumdp.model.learned_rewards import learned_rewards
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
    means: Mapping[str, Sequence[Polynomial | Number]] | None = None,
) -> ParametricMDP:
    """Return the checked model of a graph whose transitions carry the given polynomials, or raise all its errors.

    ``means`` are rewards of choices, some of which are expressions in unknown parameters.
    """
    if not isinstance(space, ParameterSpace):
        raise ModelError(f"space={space!r}: give a ParameterSpace, for example ParameterSpace.box({{'p': (0, 1)}})")
    graph, expression = merge_equal_successors(graph, expression)
    graph, expression = drop_zero_transitions(graph, expression)
    polynomials, index = _renumber(expression)
    numbers = {each: number for number, each in enumerate(polynomials)}
    unknown = {
        name: RewardStructure(None, *learned_rewards(name, each, space, numbers))
        for name, each in (means or {}).items()
    }
    polynomials, rewards = tuple(numbers), {**rewards, **unknown}
    terms = terms_of(polynomials)
    table = ExpressionTable.build(polynomials, space.names, terms)
    model = ParametricMDP(graph, space, cut_space(space, table), table, read_only(index), labels, rewards, constants)
    errors = [issue for issue in check_with_terms(model, terms) if issue.severity == "error"]
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
    return affine_range(table, affine, space.lower, space.upper)


def merge_equal_successors(graph: Graph, expression: PolynomialArray) -> tuple[Graph, PolynomialArray]:
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
        index[target] = number_in(table, total)
        repeated = np.delete(repeated, once)
    keep = first_same == position
    return graph.keep(keep), PolynomialArray(table, index[keep])


def drop_zero_transitions(graph: Graph, expression: PolynomialArray) -> tuple[Graph, PolynomialArray]:
    """Leave out the transitions whose expression is zero."""
    is_zero = np.array([not polynomial for polynomial in expression.table], dtype=np.bool_)
    if not is_zero.any():
        return graph, expression
    keep = ~is_zero[expression.index]
    return graph.keep(keep), expression[keep]


def _renumber(expression: PolynomialArray) -> tuple[tuple[Polynomial, ...], IntArray]:
    """Return the polynomials in use, in order of first use, and for each transition its number among them."""
    number = np.full(len(expression.table), -1, dtype=np.int32)
    order, index = np.empty_like(number), np.empty_like(expression.index)
    n = number_by_first_use(expression.index, number, order, index)
    return tuple(expression.table[i] for i in order[:n].tolist()), index

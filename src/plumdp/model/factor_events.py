"""Sums of successors that are simpler than their parts, which are the factors of products.

In a row g h, g (1 - h), (1 - g) h, (1 - g)(1 - h) the first two successors together have the probability g, and the
first and the third h. Counted by factors, every visit of the row says something about g and about h, and what it says
is linear.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from operator import add

import numpy as np
import numpy.typing as npt

from plumdp.model.expressions.arrays import PolynomialArray
from plumdp.model.expressions.interned import PolynomialTable
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import BoolArray, Indices, IntArray
from plumdp.model.parametric import ParametricMDP

MAX_SUCCESSORS = 6  # rows with more have too many subsets
_ZERO = 1e-12  # what is left of a sum that cancels, relative to its terms: selects the sums to calculate exactly
_MAX_ENTRIES = 2**22  # coefficients of sums that are held at once


@dataclass(frozen=True, eq=False)
class LowerSum:
    """A subset of the successors of some rows of one length, and its exact probability in each row."""

    row: Indices  # (n)
    is_member: BoolArray  # (n_successors)
    probability: PolynomialArray  # (n)


def lower_sums(model: ParametricMDP, representative: IntArray) -> Iterator[LowerSum]:
    """Yield the subsets of successors whose probability has a lower degree than that of any part of the subset.

    Given is one choice of each distinct row. Sums that say nothing, or nothing new, are left out: those that are
    constant, and complements of single successors and of subsets that were yielded.
    """
    table = PolynomialTable(model.expressions.polynomials)
    first, size = model.graph.first_transition[representative], np.diff(model.graph.first_transition)[representative]
    for n in range(4, MAX_SUCCESSORS + 1):
        rows = np.flatnonzero(size == n)
        expression = model.expression[first[rows][:, None] + np.arange(n)]
        worth = model.expressions.degree[expression].max(axis=1, initial=0) > 1
        rows, expression = rows[worth], expression[worth]
        subsets, is_lower = _find(model.expressions, expression)
        for subset, chosen in zip(subsets, is_lower.T, strict=True):
            if chosen.any():
                parts = [PolynomialArray(table, expression[chosen, i]) for i in subset]
                yield LowerSum(rows[chosen], np.isin(np.arange(n), subset), reduce(add, parts))


def _find(table: ExpressionTable, expression: IntArray) -> tuple[list[tuple[int, ...]], BoolArray]:
    """Return subsets of positions, and for each row (n_rows, n_subsets) whether their sum is to be yielded."""
    n = expression.shape[1]
    subsets = [subset for size in range(1, n - 1) for subset in combinations(range(n), size)]
    number = {subset: i for i, subset in enumerate(subsets)}
    degree = _degrees(table, expression, subsets)
    is_lower = np.zeros(degree.shape, dtype=np.bool_)
    for subset, i in number.items():
        if len(subset) > 1:
            parts = [number[part] for size in range(1, len(subset)) for part in combinations(subset, size)]
            complement = number[tuple(k for k in range(n) if k not in subset)]
            is_lower[:, i] = (degree[:, i] > 0) & (degree[:, i] < degree[:, parts].min(axis=1))
            is_lower[:, i] &= ~is_lower[:, complement]
    return subsets, is_lower


def _degrees(table: ExpressionTable, expression: IntArray, subsets: list[tuple[int, ...]]) -> npt.NDArray[np.int32]:
    """Return the degree of each sum (n_rows, n_subsets), calculated in floats."""
    degree_of = table.monomials.sum(axis=1)
    is_member = np.zeros((len(subsets), expression.shape[1]))
    for i, subset in enumerate(subsets):
        is_member[i, list(subset)] = 1
    degree = np.zeros((len(expression), len(subsets)), dtype=np.int32)
    step = max(1, _MAX_ENTRIES // (len(subsets) * max(len(degree_of), 1)))
    for start in range(0, len(expression), step):
        block = expression[start : start + step]
        terms = table.coefficients[block.ravel()].toarray().reshape(*block.shape, -1)
        sums, sizes = is_member @ terms, is_member @ np.abs(terms)
        degree[start : start + step] = (degree_of * (np.abs(sums) > _ZERO * sizes)).max(axis=2, initial=0)
    return degree

"""Models with few ties between rows, or none, seen as tables of unknown rows alone.

A row of expressions is an unknown row, tied to the rows with the same expressions, and to no others. So the model
claims less: what different expressions of one parameter have to do with each other is left out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plumdp.base.vocabulary import Trait
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.free_rows import free_rows
from plumdp.model.parametric import ParametricMDP

FEW = 20  # unknown numbers beside unknown rows, up to which likelihood sets are about as good as tables
MANY = 50  # parameters that tie no rows, beyond which likelihood sets are as wide as intervals
_MOST_DIMENSIONS = 100  # of a likelihood set that is taken by default beside unknown rows
_WORTHWHILE = 1.25  # times as many numbers are unknown in a table, beyond which parameters beside unknown rows pay


def n_unknown(model: ParametricMDP) -> int:
    """Return the number of unknown numbers of a model; a free row has one for each successor but the last.

    >>> from plumdp import case_study
    >>> model = case_study("betting:5").model
    >>> n_unknown(model), n_unknown(as_table(model))
    (1, 106)
    """
    return model.space.dimension + int((np.diff(model.rows.first)[model.is_free_row] - 1).sum())


def ties_rows(model: ParametricMDP) -> bool:
    """Return whether parameters tie rows with different expressions, or successors of one row.

    If not, every row of affine expressions may be any distribution, as far as the space lets it. Others are told by
    how many parameters they have: a tie that this misses is not made use of, and not tested, in the table of the model.

    >>> from plumdp import case_study
    >>> ties_rows(case_study("betting:5").model)
    True
    """
    rows, table, seen = model.rows, model.expressions, set[str]()
    for row in np.flatnonzero(~model.is_free_row).tolist():
        places = model.expression[rows.transition[rows.first[row] : rows.first[row + 1]]]
        row_of = [table.polynomials[f] for f in places.tolist()]
        names = {name for polynomial in row_of for name in polynomial.names}
        if names and (names & seen or _freedom(row_of, sorted(names)) < len(places) - 1):
            return True
        seen |= names
    return False


def _freedom(row: list[Polynomial], names: list[str]) -> int:
    """Return the dimension of what the expressions of a row can be, or the number of their parameters."""
    if len(names) < len(row) - 1 or not all(polynomial.is_affine for polynomial in row):
        return len(names)
    slopes = [polynomial.affine_terms()[1] for polynomial in row]
    matrix = [[float(slope.get(name, 0)) for name in names] for slope in slopes]
    return int(np.linalg.matrix_rank(np.array(matrix)))


def is_best_as_table(model: ParametricMDP) -> bool:
    """Return whether values are bounded best in the table of a model, which the model alone decides.

    Parameters say more than a table if they tie many rows. But sets in many dimensions say less than bets on values do,
    and cost more. Learned rewards, and models on disk, need parameters.
    """
    counted = model.counted
    if counted.is_table:
        return True
    if model.traits & {Trait.LEARNED_REWARDS, Trait.DISK}:
        return False
    if not counted.has_free_rows:
        return counted.space.dimension > MANY and not ties_rows(counted)
    n = n_unknown(counted)
    return n > FEW and (n > _MOST_DIMENSIONS or n_unknown(as_table(counted)) <= _WORTHWHILE * n)


def as_table(model: ParametricMDP) -> ParametricMDP:
    """Return the table of a model, in which rows with the same expressions are one unknown row.

    >>> from plumdp import case_study
    >>> as_table(case_study("betting:5").model)
    ParametricMDP(225 states, 1,023 transitions, 106 unknown rows)
    """
    if model.is_table:
        return model
    is_unknown = model.expressions.is_unknown[model.expression]
    has_unknown = np.zeros(model.graph.n_choices, dtype=np.bool_)
    has_unknown[model.graph.choice_of_transition()[is_unknown]] = True
    return replace(free_rows(model, np.where(has_unknown, model.rows.number, -1)), source=model)

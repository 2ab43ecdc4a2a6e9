"""Models with free rows, whose probabilities are simply unknown, with no expression in parameters.

Each place of a free row has a number of its own among the expressions of a model, and no polynomial. Choices that are
tied have the same numbers in the same order, so that the row classes of a model are its distinct unknown rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from plumdp.base.combinations import Trait, refuse
from plumdp.base.errors import ModelError
from plumdp.model.check import validate
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.graph import Graph, Indices, IntArray, ranges, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.space import ParameterSpace
from plumdp.model.text import one_line
from plumdp.model.unmodelled_exits import out_of_table_of

NO_PARAMETERS = ParameterSpace((), ())


@dataclass(frozen=True)
class FreeRow:
    """The successors of a row whose probabilities are unknown, see ``unknown``."""

    successors: tuple[Any, ...]
    row: str | None = None  # rows of one name are the same row

    def __repr__(self) -> str:
        return one_line(self, f"{len(self.successors)} successors", self.row or "")


def unknown(*successors: Any, row: str | None = None) -> FreeRow:
    """Return a row that leads to these states with probabilities that nobody knows, for the steps of ``explore``.

    Where two places of a named row lead to one state, as at a wall, only their sum can be seen: such rows are tied to
    those of the name that have the same places in common, and to no others.

    Parameters
    ----------
    *successors
        The states that the row may lead to.
    row
        A name: rows with the same name have the same probabilities, place by place.

    Returns
    -------
    FreeRow
        The row, for ``step`` of ``explore``.

    Examples
    --------
    >>> from plumdp import explore, unknown
    >>> def step(s):
    ...     if s.x in (0, 3):
    ...         return {"stay": [(1, s)]}
    ...     return {"go": unknown(s._replace(x=s.x + 1), s._replace(x=s.x - 1))}
    >>> explore(step, {"x": 1}, labels={"goal": lambda s: s.x == 3})
    ParametricMDP(4 states, 6 transitions, 2 unknown rows)
    """
    if not successors:
        raise ModelError("unknown() has no successors: give the states that the action may lead to")
    if row is not None and not isinstance(row, str):
        raise ModelError(f"unknown(…, row={row!r}): give the name of the row as text, or leave it out")
    return FreeRow(successors, row)


@dataclass(eq=False)
class RowNumbers:
    """The number of the free row of each choice so far, where rows with the same name and coincidences share one."""

    numbers: list[int] = field(default_factory=list)  # of each choice: -1 if its numbers are known
    _named: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)
    _sizes: dict[str, tuple[int, str]] = field(default_factory=dict)
    _n: int = 0

    def add_known(self) -> None:
        """Add a choice whose row is known numbers, or expressions in parameters."""
        self.numbers.append(-1)

    def add(self) -> None:
        """Add a choice with a free row of its own."""
        self.numbers.append(self._n)
        self._n += 1

    def add_named(self, row: str, places: Sequence[int], where: str) -> None:
        """Add a choice with a named row, whose places are numbered by successor: 0, 1, 1 if the last two coincide."""
        size, first = self._sizes.setdefault(row, (len(places), where))
        if size != len(places):
            raise ModelError(
                f"{where}: the row {row!r} has {len(places)} successors here and {size} in {first}; "
                "rows of one name are the same row, place by place"
            )
        number = self._named.setdefault((row, tuple(places)), self._n)
        self._n += number == self._n
        self.numbers.append(number)


def free_rows(model: ParametricMDP, row: Indices | None = None) -> ParametricMDP:
    """Return the model with unknown rows instead of its expressions, and with the same graph, labels and rewards.

    Parameters
    ----------
    model
        The parametric model.
    row
        A number for each choice: choices with the same number have the same unknown row, place by place, and those with
        -1 keep their expressions. By default no two are tied, and rows without parameters stay.

    Returns
    -------
    ParametricMDP
        The model with unknown rows.

    Examples
    --------
    >>> from plumdp import case_study
    >>> from plumdp.model import free_rows
    >>> free_rows(case_study("glider:5,5,4,4").model)
    ParametricMDP(25 states, 265 transitions, 80 unknown rows)
    """
    graph = model.graph
    refuse({Trait.FREE_ROWS, *model.traits})
    numbers = _own_rows(model) if row is None else _checked(graph, row)
    numbers = np.where(np.diff(graph.first_transition) > 1, numbers, -1)  # one successor: the known number 1
    out_of_table = out_of_table_of(model)
    if out_of_table is not None and (numbers == numbers[graph.first_choice[out_of_table]]).sum() > 1:
        raise ModelError(
            "what happens where the table knows nothing is nature's: tie no other row to that out of the table"
        )
    is_free = (numbers >= 0)[graph.choice_of_transition()]
    _refuse_unknown(model, is_free)
    polynomials, known = _used(model, ~is_free)
    has_parameters = any(not f.is_constant for f in polynomials)
    declared, space = (model.declared_space, model.space) if has_parameters else (NO_PARAMETERS, NO_PARAMETERS)
    number_of_class, first_place = _places(graph, numbers)
    expression = np.full(graph.n_transitions, -1, dtype=np.int32)
    expression[~is_free] = known
    free = np.flatnonzero(numbers >= 0)
    start = len(polynomials) + first_place[number_of_class]
    expression[is_free] = ranges(start, start + np.diff(graph.first_transition)[free])
    table = replace(ExpressionTable.build(polynomials, space.names), n_free=int(first_place[-1]))
    result = replace(
        model,
        declared_space=declared,
        space=space,
        expressions=table,
        expression=read_only(expression),
    )
    errors = [issue for issue in validate(result) if issue.severity == "error"]
    if errors:
        raise ModelError("\n".join(str(issue) for issue in errors))
    return result


def _own_rows(model: ParametricMDP) -> IntArray:
    """Return a number of its own for each choice that has an unknown expression, and -1 for others."""
    is_unknown = np.zeros(model.graph.n_choices, dtype=np.bool_)
    is_unknown[model.graph.choice_of_transition()[model.expressions.is_unknown[model.expression]]] = True
    return np.where(is_unknown, np.arange(len(is_unknown)), -1).astype(np.int32)


def _checked(graph: Graph, row: Indices) -> IntArray:
    """Return the given numbers of rows; rows with equal numbers have equally many successors."""
    numbers = np.asarray(row)
    if numbers.shape != (graph.n_choices,) or numbers.dtype.kind not in "iu":
        raise ModelError(
            f"row has shape {numbers.shape} and type {numbers.dtype}: give a whole number for each of the "
            f"{graph.n_choices:,} choices, -1 where the numbers of the row are known"
        )
    free = np.flatnonzero(numbers >= 0)
    _, first, group = np.unique(numbers[free], return_index=True, return_inverse=True)
    sizes = np.diff(graph.first_transition)[free]
    wrong = np.flatnonzero(sizes != sizes[first][group])
    if len(wrong):
        here, there = free[wrong[0]], free[first[group[wrong[0]]]]
        raise ModelError(
            f"{graph.describe_choice(int(here))} has {sizes[wrong[0]]} successors, and "
            f"{graph.describe_choice(int(there))} has {sizes[first[group[wrong[0]]]]}, so they cannot be the same row"
        )
    return numbers.astype(np.int64)


def _places(graph: Graph, numbers: Indices) -> tuple[Indices, Indices]:
    """Return the class of each free choice, in order of first use, and the first place of each class."""
    free = np.flatnonzero(numbers >= 0)
    _, first, group = np.unique(numbers[free], return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    sizes = np.diff(graph.first_transition)[free[np.sort(first)]]
    return rank[group], np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def _used(model: ParametricMDP, is_known: Any) -> tuple[list[Polynomial], Indices]:
    """Return the polynomials of transitions that stay, and the position of each; all of them if rewards have some."""
    if model.learned_rewards:
        return [*model.expressions.polynomials], model.expression[is_known]
    used, number = np.unique(model.expression[is_known], return_inverse=True)
    return [model.expressions.polynomials[f] for f in used.tolist()], number


def _refuse_unknown(model: ParametricMDP, is_free: Any) -> None:
    """Refuse a free row that is to keep its expressions, since it has none."""
    left = np.flatnonzero((model.expression >= len(model.expressions.polynomials)) & ~is_free)
    if len(left):
        choice = model.graph.describe_choice(model.graph.choice_of(int(left[0])))
        raise ModelError(f"{choice}: this row is unknown, and has no expressions to keep; give it a number")

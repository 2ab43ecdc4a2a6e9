"""The transitions of choices, calculated exactly from the guarded commands behind each choice.

A choice synchronises one or more commands. Each picks one of its branches, the probabilities multiply and the
assignments are made together. Formulas are calculated once per distinct valuation of the variables they mention.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from operator import mul
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.model.batches import StateStore
from plumdp.model.expressions.arrays import PolynomialArray, number_in, tabulate
from plumdp.model.expressions.interned import PolynomialTable
from plumdp.model.expressions.polynomial import Polynomial, polynomial
from plumdp.model.graph import BoolArray, Indices, IntArray
from plumdp.model.language.formula import DistinctEvaluator, Formula
from plumdp.model.readers.storm_messages import WIDEN

Columns = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Branch:
    """One outcome of a command, with its probability and the next values of some variables."""

    probability: Formula
    assignments: Mapping[str, Formula]


@dataclass(frozen=True, eq=False)
class ModuleCommand:
    """The branches of one module under an action, whose guard was decided when the states were built."""

    action: str
    branches: tuple[Branch, ...]
    place: str  # module, line and action, for messages


def transitions(
    states: Columns,
    state_of_choice: IntArray,
    groups: Sequence[tuple[tuple[ModuleCommand, ...], Indices]],
    parameters: Mapping[str, Polynomial],
) -> tuple[IntArray, IntArray, PolynomialArray]:
    """Return the first transition of each choice, and the successor and polynomial of each transition.

    ``groups`` has the choices of each set of synchronised commands. An empty set is a self-loop.
    """
    width = np.empty(len(state_of_choice), dtype=np.int32)
    for joint, choices in groups:
        width[choices] = prod(len(command.branches) for command in joint)
    first_transition = np.zeros(len(width) + 1, dtype=np.int32)
    np.cumsum(width, out=first_transition[1:])
    successor = np.empty(first_transition[-1], dtype=np.int32)
    expression = np.empty(first_transition[-1], dtype=np.int32)
    table = PolynomialTable()
    store, rows = _stored(states)
    for joint, choices in groups:
        source, first = state_of_choice[choices], first_transition[choices]
        calculate = DistinctEvaluator(states, parameters, source)
        for k, (probability, target) in enumerate(_outcomes(joint, calculate, list(states), rows[source])):
            expression[first + k] = number_in(table, probability)
            is_zero = _is_zero(probability, len(source))
            # a branch that is never taken may lead anywhere, also out of the ranges: it is dropped with the zeros
            target[is_zero] = rows[source[is_zero]]
            successor[first + k] = store.intern(target)
            if store.n != len(rows):
                _refuse_new_state(joint, states, store.rows[len(rows)])
    return first_transition, successor, PolynomialArray(table, expression)


def _outcomes(
    joint: tuple[ModuleCommand, ...], calculate: DistinctEvaluator, names: Sequence[str], rows: IntArray
) -> Iterator[tuple[Any, IntArray]]:
    """Yield probability and target rows for each way in which the synchronised commands may branch."""
    evaluated = [
        [(_probability(command, branch, calculate), _assigned(branch, calculate)) for branch in command.branches]
        for command in joint
    ]
    position = {name: j for j, name in enumerate(names)}
    for combination in product(*evaluated):
        target = rows.copy()
        for _, assigned in combination:
            for name, values in assigned.items():
                target[:, position[name]] = values
        yield reduce(mul, [probability for probability, _ in combination] or [Polynomial(1)]), target


def _probability(command: ModuleCommand, branch: Branch, calculate: DistinctEvaluator) -> Polynomial | PolynomialArray:
    try:
        value = calculate(branch.probability)
    except ModelError as error:
        raise ModelError(f"{command.place}: {error}") from None
    if isinstance(value, np.ndarray):  # integers: a probability of 0 or 1 that depends on the state
        value = tabulate(Polynomial, value)
    return value if isinstance(value, PolynomialArray) else polynomial(value)


def _is_zero(probability: Polynomial | PolynomialArray, n: int) -> BoolArray:
    """Return for which of n states a branch has the probability zero, whatever the parameters are."""
    if isinstance(probability, Polynomial):
        return np.full(n, not probability)
    return np.array([not each for each in probability.table], dtype=np.bool_)[probability.index]


def _refuse_new_state(joint: tuple[ModuleCommand, ...], states: Columns, row: IntArray) -> None:
    valuation = ", ".join(f"{name}={value}" for name, value in zip(states, row.tolist(), strict=True))
    place = joint[0].place if len(joint) == 1 else f"action {joint[0].action!r}"
    raise ModelError(f"{place} leads to ({valuation}), outside the declared range of a variable; {WIDEN}")


def _assigned(branch: Branch, calculate: DistinctEvaluator) -> dict[str, Any]:
    return {name: calculate(formula) for name, formula in branch.assignments.items()}


def _stored(states: Columns) -> tuple[StateStore, IntArray]:
    rows = np.stack([column.astype(np.int32) for column in states.values()], axis=1)
    store = StateStore(rows.shape[1])
    store.intern(rows)
    if store.n != len(rows):
        raise ModelError("two states have the same values of all variables")
    return store, rows


def choices_by_origin(origin: IntArray) -> list[Indices]:
    """Return for each number up to the largest one the choices that have it, in order."""
    number = origin.astype(np.uint16) if origin.max(initial=0) < 1 << 16 else origin  # short integers sort faster
    return np.split(np.argsort(number, kind="stable"), np.cumsum(np.bincount(origin))[:-1])

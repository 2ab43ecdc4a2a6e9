"""The choices, successors and expressions of one batch of states, from the arrays that a step yields."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.model import kernels
from plumdp.model.expressions.arrays import PolynomialArray, number_in
from plumdp.model.expressions.interned import PolynomialTable
from plumdp.model.expressions.polynomial import Number, Polynomial, polynomial
from plumdp.model.free_rows import FreeRow
from plumdp.model.graph import BoolArray, FloatArray, Graph, IntArray, own_array, read_only
from plumdp.model.parametric import RewardStructure, offsets_of

Ends = npt.NDArray[np.int64]  # (n_columns)

_CELLS = 8  # of a box for each state in it: as much memory as the slots of a hash table
_SMALL_BOX = 1 << 20  # cells that are always possible


class StateStore:
    """Rows of integers with a number each. Looking up and adding is compiled, and exact.

    As long as the states fill a good part of a box, their numbers are in a dense array over the box, in which states
    that are close to each other are close in memory. After that they are in a hash table.
    """

    def __init__(self, n_columns: int) -> None:
        self.rows: IntArray = np.empty((1024, n_columns), dtype=np.int32)
        self.n = 0
        self._low, self._width = np.zeros((2, n_columns), dtype=np.int64)
        self._box: IntArray | None = np.full(1, -1, dtype=np.int32)  # None once there is a hash table
        self._slots: IntArray = np.zeros(0, dtype=np.int32)

    def intern(self, rows: IntArray) -> IntArray:
        """Return the numbers of the given rows, adding those that are new."""
        needed = self.n + len(rows)
        if needed > len(self.rows):
            grown = np.empty((max(2 * len(self.rows), needed), self.rows.shape[1]), dtype=np.int32)
            grown[: self.n] = self.rows[: self.n]
            self.rows = grown
        index = np.empty(len(rows), dtype=np.int32)
        done = 0
        while self._box is not None and done < len(rows):
            where = (self._low, self._width, self._box)
            self.n, done = kernels.intern_in_box(rows, done, *where, self.rows, self.n, index)
            if done < len(rows):
                self._extend_box(rows[done:])
        if done < len(rows):
            self._extend_slots(needed)
            self.n = kernels.intern_rows(rows[done:], self._slots, self.rows, self.n, index[done:])
        return index

    def _extend_box(self, rows: IntArray) -> None:
        """Extend the box to the given rows, and further if there is room, or give it up if the states are few in it."""
        first, last = rows.min(axis=0).astype(np.int64), rows.max(axis=0).astype(np.int64)
        if not self.n:
            self._low, self._width = first, np.zeros_like(first)
        low, width = _extended(self._low, self._width, first, last, 4)
        if self._is_sparse(width, len(rows)) and self.n:
            least = self.rows[: self.n].min(axis=0).astype(np.int64)
            low, width = _extended(least, self.rows[: self.n].max(axis=0) + 1 - least, first, last, 8)
        if self._is_sparse(width, len(rows)):
            self._box = None
            return
        self._low, self._width = low, width
        self._box = np.full(int(np.prod(width)), -1, dtype=np.int32)
        stored, index = self.rows[: self.n], np.empty(self.n, dtype=np.int32)
        kernels.intern_in_box(stored, 0, low, width, self._box, stored, 0, index)  # each gets its number again

    def _is_sparse(self, width: Ends, n_more: int) -> bool:
        most = max(_SMALL_BOX, _CELLS * (self.n + n_more))
        return bool(np.prod(width.astype(np.float64)) > most)

    def _extend_slots(self, needed: int) -> None:
        if 2 * needed > len(self._slots):
            self._slots = np.full(1 << max(12, (4 * needed).bit_length()), -1, dtype=np.int32)
            kernels.rebuild_slots(self.rows, self.n, self._slots)


def kind_of(field: str, value: Any) -> Any:
    """Return the type of a state variable's column, given its first value, or refuse all but ints and Booleans."""
    if not isinstance(value, int | np.integer | np.bool_):
        raise ModelError(f"state variable {field} is {value!r}; explore_batch takes ints and Booleans")
    return np.bool_ if isinstance(value, bool) else np.int32


def _extended(low: Ends, width: Ends, first: Ends, last: Ends, part: int) -> tuple[Ends, Ends]:
    """Return the box with rows from ``first`` to ``last`` inside.

    Where it grows, it grows by a share of its size at least.
    """
    end, more = low + width, width // part
    start = np.where(first < low, np.minimum(first, low - more), low)
    return start, np.where(last >= end, np.maximum(last + 1, end + more), end) - start


Expression: TypeAlias = Polynomial | Number
State: TypeAlias = Any
"""A NamedTuple of state variables: numbers in ``explore``, arrays in ``explore_batch``."""

BatchStep: TypeAlias = Callable[
    [State], Iterable[tuple[str, BoolArray | bool, Iterable[tuple[Expression | PolynomialArray, State]]]]
]


BatchReward: TypeAlias = FloatArray | Expression | PolynomialArray
"""Rewards of a batch of states, as polynomials if their means are unknown."""


class Numbering(Protocol):
    """Gives numbers to states."""

    def number(self, rows: IntArray, chosen: Any, action: str) -> IntArray:
        """Return the numbers of next states, which an action leads to from the chosen states of the batch."""


class Layer(NamedTuple):
    """The choices and transitions of a batch of states."""

    choices: IntArray  # (n_states): how many
    lengths: IntArray  # (n_choices): how many transitions
    actions: IntArray  # (n_choices)
    successor: IntArray  # (n_transitions)
    expression: IntArray  # (n_transitions)


def take_layer(
    step: BatchStep, batch: State, numbering: Numbering, expressions: PolynomialTable, names: dict[str, int]
) -> Layer:
    """Return the choices and transitions of a batch of states, with next states numbered by the numbering."""
    n = len(batch[0])
    masks, actions, parts = [], [], []
    numbered: dict[tuple[int, int], tuple[Any, State, IntArray]] = {}
    for action, where, outcomes in step(batch):
        mask = np.broadcast_to(np.asarray(where, dtype=np.bool_), n)
        chosen = slice(None) if mask.all() else np.flatnonzero(mask)
        masks.append(mask)
        actions.append(names.setdefault(action, len(names)))
        parts.append(_ActionLayer(chosen, []))
        if isinstance(outcomes, FreeRow):
            raise ModelError(f"action {action!r}: unknown(…) is for explore; for arrays, see plumdp.model.table_model")
        for probability, target in list(outcomes):
            key = id(where), id(target)  # the same objects lead to the same states
            if key not in numbered:
                rows = _rows(target, type(batch)._fields, n, chosen, action)
                numbered[key] = where, target, numbering.number(rows, chosen, action)
            parts[-1].outcomes.append((numbered[key][-1], _expression_index(probability, n, expressions)))
    if not masks:
        raise ModelError(f"the step yields no action for a layer of {n} states, for example ({show(_pick(batch, 0))})")
    possible = np.stack(masks, axis=1)  # (n, n_actions)
    widths = np.array([len(part.outcomes) for part in parts], dtype=np.int32)
    return Layer(
        possible.sum(axis=1, dtype=np.int32),
        np.broadcast_to(widths, possible.shape)[possible],
        np.broadcast_to(np.array(actions, dtype=np.int32), possible.shape)[possible],
        *_by_state(parts, n),
    )


class _ActionLayer(NamedTuple):
    """One action in a layer, with the states where it is possible, and successors and expressions of its outcomes."""

    chosen: Any  # indices, or a slice of all
    outcomes: list[tuple[IntArray, IntArray | int]]  # expressions of all states of the layer, or one number


def _by_state(parts: list[_ActionLayer], n: int) -> tuple[IntArray, IntArray]:
    """Return successors and expressions in the order of the states, for each its actions with all their outcomes."""
    n_of_state = np.zeros(n, dtype=np.int64)
    for part in parts:
        n_of_state[part.chosen] += len(part.outcomes)
    end = np.cumsum(n_of_state)
    place = end - n_of_state  # of the next transition of each state
    successor, expression = np.empty((2, int(end[-1])), dtype=np.int32)
    for part in parts:
        at = place[part.chosen]
        for k, (successors, numbers) in enumerate(part.outcomes):
            successor[at + k] = successors
            expression[at + k] = numbers if isinstance(numbers, int) else numbers[part.chosen]
        place[part.chosen] += len(part.outcomes)
    return successor, expression


def _rows(target: State, fields: tuple[str, ...], n: int, chosen: Any, action: str) -> IntArray:
    if getattr(target, "_fields", None) != fields:
        raise ModelError(f"action {action!r}: the next state is {target!r}; give it as states._replace(…)")
    n_rows = n if isinstance(chosen, slice) else len(chosen)
    rows = np.empty((n_rows, len(target)), dtype=np.int32)
    for j, (field, values) in enumerate(zip(fields, target, strict=True)):
        column = np.broadcast_to(np.asarray(values), n)[chosen]
        if column.dtype.kind not in "biu":
            raise ModelError(f"action {action!r}: state variable {field} becomes {column.dtype}; use ints or Booleans")
        rows[:, j] = column
        if column.dtype.itemsize > 4 and (rows[:, j] != column).any():
            raise ModelError(f"action {action!r}: state variable {field} leaves the range of 32-bit integers")
    return rows


def _expression_index(probability: Any, n: int, expressions: PolynomialTable) -> IntArray | int:
    if not isinstance(probability, PolynomialArray):
        return expressions.number(probability)
    if len(probability) != n:
        raise ModelError(f"{len(probability)} probabilities for a layer of {n} states")
    index: IntArray = number_in(expressions, probability)
    return index


def make_graph(
    choices: Any, lengths: Any, successor: Any, states: Mapping[str, Any], actions: Any, names: tuple[str, ...]
) -> Graph:
    """Return the graph of these numbers of choices per state and transitions per choice, which starts in state 0."""
    return Graph(
        offsets_of(choices),
        offsets_of(lengths),
        read_only(np.asarray(successor, dtype=np.int32)),
        0,
        states,
        read_only(np.asarray(actions, dtype=np.int32)),
        names,
    )


def as_state(initial: State) -> State:
    """Return the initial state as a NamedTuple."""
    if isinstance(initial, Mapping):
        return namedtuple("State", initial)(**initial)  # the fields are the user's variables
    if not hasattr(initial, "_fields"):
        raise ModelError(f"initial state {initial!r}: give a NamedTuple or a dict of state variables")
    return initial


def labels_of(
    functions: Mapping[str, Callable[[State], BoolArray]], states: State, graph: Graph
) -> dict[str, BoolArray]:
    """Return the masks of states that functions of all states give."""
    return {
        name: own_array(np.broadcast_to(np.asarray(f(states), dtype=np.bool_), graph.n_states))
        for name, f in functions.items()
    }


def rewards_of(
    rewards: Mapping[str, Callable[[State], BatchReward]],
    choice_rewards: Mapping[str, Callable[[State, str], BatchReward]],
    states: State,
    graph: Graph,
) -> dict[str, RewardStructure]:
    """Return the rewards that functions of all states, and of states and action names, give."""
    return {
        name: RewardStructure(
            spread(rewards[name](states), graph.n_states) if name in rewards else None,
            choice_rewards_of(choice_rewards[name], states, graph) if name in choice_rewards else None,
        )
        for name in {**rewards, **choice_rewards}
    }


def means_of(
    rewards: Mapping[str, Callable[[State], BatchReward]],
    choice_rewards: Mapping[str, Callable[[State, str], BatchReward]],
    states: State,
    graph: Graph,
) -> dict[str, list[Polynomial]]:
    """Return the reward of each choice and its state, for reward structures that depend on parameters."""
    means, of_choice = {}, list(zip(graph.action.tolist(), graph.state_of_choice().tolist(), strict=True))
    for name in {**rewards, **choice_rewards}:
        of_state = rewards[name](states) if name in rewards else 0
        of_actions = [choice_rewards[name](states, a) if name in choice_rewards else 0 for a in graph.action_names]
        if any(isinstance(values, Polynomial | PolynomialArray) for values in (of_state, *of_actions)):
            shared, *own = (_polynomials(values, graph.n_states) for values in (of_state, *of_actions))
            means[name] = [shared[state] + own[action][state] for action, state in of_choice]
    return means


def _polynomials(values: Any, n: int) -> list[Polynomial]:
    if isinstance(values, PolynomialArray):
        return [values.table[i] for i in values.index.tolist()]
    if isinstance(values, Polynomial):
        return [values] * n
    return [polynomial(value) for value in np.broadcast_to(np.asarray(values), n).tolist()]


def choice_rewards_of(function: Callable[[State, str], BatchReward], states: State, graph: Graph) -> FloatArray:
    """Return the rewards of a function of states and action names, for each choice of the graph."""
    state, result = graph.state_of_choice(), np.zeros(graph.n_choices)
    for number, name in enumerate(graph.action_names):
        chosen = graph.action == number
        result[chosen] = spread(function(states, name), graph.n_states)[state[chosen]]
    return floats(result)


def spread(values: Any, n: int) -> FloatArray:
    """Return values as an array of our own, one for each state, also if only one is given."""
    if isinstance(values, Polynomial | PolynomialArray):
        raise ModelError(
            "a reward depends on parameters: tables of unknown rows and models that are stored on disk have rewards "
            "that are numbers; without store=, explore_batch learns it"
        )
    return floats(np.broadcast_to(np.asarray(values, dtype=np.float64), n))


def floats(values: Any) -> FloatArray:
    """Return values as an array of our own, protected against writing."""
    array: FloatArray = read_only(np.array(values, dtype=np.float64))
    return array


def _pick(batch: State, i: int) -> State:
    return type(batch)(*(column[i] for column in batch))


def show(state: State) -> str:
    """Return the values of a state's variables as text."""
    return ", ".join(f"{field}={value}" for field, value in zip(state._fields, state, strict=True))

"""Models stored on disk, built from step functions over arrays level by level, with two levels in memory.

A state variable, or a function of several, is the level of a state. It is one more in every next state, unless the
state never changes again. So no state can be met again once its level is done, and equal states are recognised
within a level only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.base.progress import Teller
from plumdp.model.assemble import drop_zero_transitions, merge_equal_successors
from plumdp.model.batches import (
    BatchReward,
    BatchStep,
    State,
    StateStore,
    as_state,
    choice_rewards_of,
    kind_of,
    make_graph,
    show,
    spread,
    take_layer,
)
from plumdp.model.expressions.arrays import PolynomialArray
from plumdp.model.expressions.interned import PolynomialTable
from plumdp.model.graph import BoolArray, Graph, IntArray, mapped, owners, read_only
from plumdp.model.parametric import ParametricMDP, find_row_classes
from plumdp.model.space import ParameterSpace
from plumdp.model.stored_files import Description, open_stored, write_description

OFFSETS: Sequence[Any] = (np.int32, np.int64)
NUMBERS: Sequence[Any] = (np.uint8, np.uint16, np.int32)

_COPIED = 1 << 24  # numbers that are copied at once into a wider type


class GrowingFile:
    """Numbers in a file, one after the other, which are all written again if one needs a wider type."""

    def __init__(self, path: Path, types: Sequence[Any]) -> None:
        self._path, self._types = path, list(types)
        self._file = path.open("wb")
        self.n = 0

    @property
    def dtype(self) -> Any:
        """The type of all numbers in the file."""
        return self._types[0]

    def append(self, values: npt.NDArray[Any]) -> None:
        """Write numbers behind those that are there."""
        if len(self._types) > 1 and len(values):
            largest = int(values.max())
            while largest > np.iinfo(self.dtype).max:
                self._widen()
        np.ascontiguousarray(values, dtype=self.dtype).tofile(self._file)
        self.n += len(values)

    def close(self) -> None:
        """Close the file, so that nothing can be appended any more."""
        self._file.close()

    def _widen(self) -> None:
        self.close()
        old = mapped(self._path, self.dtype, self.n)
        self._types.pop(0)
        wider = self._path.with_suffix(".wider")
        with wider.open("wb") as file:
            for start in range(0, len(old), _COPIED):
                old[start : start + _COPIED].astype(self.dtype).tofile(file)
        wider.replace(self._path)
        self._file = self._path.open("ab")


LevelOf: TypeAlias = Callable[[State], npt.NDArray[Any]]

_BATCH = 1 << 18  # states given to a batch step at once: bounds the memory of a step


def explore_levels(
    step: BatchStep,
    initial: State,
    level: LevelOf,
    folder: Path,
    space: ParameterSpace,
    labels: Mapping[str, Callable[[State], BoolArray]],
    rewards: Mapping[str, Callable[[State], BatchReward]],
    choice_rewards: Mapping[str, Callable[[State, str], BatchReward]],
) -> ParametricMDP:
    """Return the model of all states that ``step`` reaches, with its arrays in files of a folder that is made."""
    if not isinstance(space, ParameterSpace):
        raise ModelError(f"space={space!r}: give a ParameterSpace, for example ParameterSpace.box({{'p': (0, 1)}})")
    frontier = Frontier(as_state(initial), level)
    files = _ModelFiles(folder, type(frontier.initial), frontier.kinds, labels, rewards, choice_rewards)
    rows, names = _RowTable(frontier), dict[str, int]()
    try:
        for batch in frontier.batches():
            layer = take_layer(step, batch, frontier, rows.expressions, names)
            graph = make_graph(layer.choices, layer.lengths, layer.successor, {}, layer.actions, tuple(names))
            _require_choices(graph, batch)
            array = PolynomialArray(rows.expressions, layer.expression)
            graph, array = drop_zero_transitions(*merge_equal_successors(graph, array))
            _require_levels(graph, batch, frontier.first_of_batch)
            files.append(batch, graph, *rows.number(graph, array))
        files.first_state.append(frontier.first_states)
        return _finished(files, rows, space, tuple(names))
    finally:
        files.close()


class Frontier:
    """The states of one level, which are given out as batches, and those of the next, which get their numbers."""

    def __init__(self, initial: State, level: LevelOf) -> None:
        self.initial, self.kinds = initial, [kind_of(*item) for item in zip(initial._fields, initial, strict=True)]
        self._level = level
        self.first_states = np.array([0], dtype=np.int64)  # of all levels so far, the current one included
        self.rows = np.array([initial], dtype=np.int32)  # of the current level
        self._depth = int(np.asarray(level(self.state(self.rows))).reshape(-1)[0])
        self._next = StateStore(len(initial))
        self._batch = slice(0, 0)

    def state(self, rows: IntArray) -> State:
        """Return rows as a state of columns."""
        return type(self.initial)(*(rows[:, j].astype(kind) for j, kind in enumerate(self.kinds)))

    @property
    def first_of_batch(self) -> int:
        """The number of the first state of the batch."""
        return int(self.first_states[-1]) + self._batch.start

    @property
    def next_rows(self) -> IntArray:
        """The states of the next level that were found so far."""
        return self._next.rows[: self._next.n]

    @property
    def first_of_next(self) -> int:
        """The number of the first state of the next level."""
        return int(self.first_states[-1]) + len(self.rows)

    def batches(self) -> Iterator[State]:
        """Yield the states in order, a batch of one level at a time, until a level has no next one."""
        teller = Teller("exploring", "states")
        while len(self.rows):
            for start in range(0, len(self.rows), _BATCH):
                teller.tell(self.first_of_next)
                self._batch = slice(start, min(start + _BATCH, len(self.rows)))
                yield self.state(self.rows[self._batch])
            self.first_states = np.append(self.first_states, self.first_of_next)
            self.rows, self._next = self.next_rows, StateStore(len(self.kinds))
            self._depth += 1
            if self.first_of_next > np.iinfo(np.int32).max:
                raise ModelError(f"more than {np.iinfo(np.int32).max:,} states: their numbers are 32-bit integers")

    def number(self, rows: IntArray, chosen: Any, action: str) -> IntArray:
        """Return the numbers of next states, which must be of the next level, or the states themselves."""
        is_next = np.broadcast_to(np.asarray(self._level(self.state(rows))) == self._depth + 1, len(rows))
        if is_next.all():
            return self._number_next(rows)
        sources = np.arange(self._batch.start, self._batch.stop)[chosen]
        wrong = ~is_next & (rows != self.rows[sources]).any(axis=1)
        if wrong.any():
            self._refuse(self.rows[sources[wrong][:1]], rows[wrong][:1], action)
        numbers: IntArray = (sources + int(self.first_states[-1])).astype(np.int32)
        numbers[is_next] = self._number_next(rows[is_next])
        return numbers

    def _number_next(self, rows: IntArray) -> IntArray:
        index = self._next.intern(rows)
        index += np.int32(self.first_of_next)
        return index

    def _refuse(self, before: IntArray, after: IntArray, action: str) -> None:
        at, reached = (", ".join(f"{n}={v}" for n, v in self._pairs(rows)) for rows in (before, after))
        level = np.asarray(self._level(self.state(after))).reshape(-1)[0]
        raise ModelError(
            f"state ({at}), action {action!r}: the step leads from level {self._depth} to level {level}, the state "
            f"({reached}). A model is stored level by level: every step must lead to the next level, or back to the "
            "state itself. Leave out store if the model fits into memory, or count the steps in a state variable"
        )

    def _pairs(self, rows: IntArray) -> list[tuple[str, Any]]:
        columns = self.state(rows)
        return [(field, column[0]) for field, column in zip(columns._fields, columns, strict=True)]


def _require_choices(graph: Graph, batch: State) -> None:
    empty = np.flatnonzero(np.diff(graph.first_choice) == 0)
    if len(empty):
        at = show(type(batch)(*(column[empty[0]] for column in batch)))
        raise ModelError(f"state ({at}): no choice is possible; give it an action that stays with probability 1")


def _require_levels(graph: Graph, batch: State, first_of_batch: int) -> None:
    """Refuse states that may stay or move on, which would have to be solved as a cycle."""
    of_state = graph.first_transition[graph.first_choice]
    if graph.successor.min(initial=first_of_batch + graph.n_states) >= first_of_batch + graph.n_states:
        return
    stays = graph.successor == owners(of_state) + first_of_batch
    n_stays = np.add.reduceat(stays.astype(np.int32), of_state[:-1])
    mixed = np.flatnonzero((n_stays > 0) & (n_stays < np.diff(of_state)))
    if len(mixed):
        at = show(type(batch)(*(column[mixed[0]] for column in batch)))
        raise ModelError(
            f"state ({at}): some of its transitions lead back to it and others do not. A model is stored level by "
            "level: a state must stay as it is with every action, or with none. Count the steps in a state variable"
        )


class _RowTable:
    """The expressions and the distinct rows that were found so far."""

    def __init__(self, frontier: Frontier) -> None:
        self.expressions = PolynomialTable()
        self.order: list[int] = []  # the table's number of each expression, in order of first use
        self.rows: list[IntArray] = []  # the expressions of each distinct row
        self.states: list[IntArray] = []  # of each distinct row: where it was found first, and its successors
        self.actions: list[int] = []
        self._frontier = frontier
        self._number = np.zeros(0, dtype=np.int32)  # of each expression of the table, by first use; -1: not used
        self._row_number: dict[bytes, int] = {}

    def number(self, graph: Graph, array: PolynomialArray) -> tuple[IntArray, IntArray]:
        """Return the number of each transition's expression by first use, and of each choice's row."""
        expression = self._expressions_by_use(array.index)
        rows = find_row_classes(graph.first_transition, expression)
        number = np.empty(len(rows), dtype=np.int32)
        for i, choice in enumerate(rows.representative.tolist()):
            transitions = slice(graph.first_transition[choice], graph.first_transition[choice + 1])
            row = expression[transitions]
            key = row.tobytes()
            if key not in self._row_number:
                self._row_number[key] = len(self.rows)
                self.rows.append(row.copy())
                self.actions.append(int(graph.action[choice]))
                self.states.append(self._states(graph.state_of(choice), graph.successor[transitions]))
            number[i] = self._row_number[key]
        return expression, number[rows.number]

    def _expressions_by_use(self, index: IntArray) -> IntArray:
        missing = len(self.expressions) - len(self._number)
        self._number = np.concatenate([self._number, np.full(missing, -1, dtype=np.int32)])
        numbers = self._number[index]
        if len(numbers) and numbers.min() < 0:
            new = index[numbers < 0]
            used, first = np.unique(new, return_index=True)
            used = used[np.argsort(first)]
            self._number[used] = np.arange(len(self.order), len(self.order) + len(used), dtype=np.int32)
            self.order += used.tolist()
            numbers = self._number[index]
        return numbers

    def _states(self, state: int, successor: IntArray) -> IntArray:
        frontier = self._frontier
        source = frontier.rows[frontier.first_of_batch - int(frontier.first_states[-1]) + state][None, :]
        stays = successor[:1] < frontier.first_of_next  # then all of them do
        return np.concatenate([source, source if stays else frontier.next_rows[successor - frontier.first_of_next]])

    def graph(self, fields: Sequence[str], kinds: Sequence[Any], names: tuple[str, ...]) -> Graph:
        """Return a graph with one choice for each distinct row, whose successors are states without choices."""
        lengths = np.array([len(row) for row in self.rows])
        sources = np.array([states[0] for states in self.states])
        states = np.concatenate([sources, *(states[1:] for states in self.states)])
        columns = {field: read_only(states[:, j].astype(kinds[j])) for j, field in enumerate(fields)}
        n_choices = np.zeros(len(states), dtype=np.int32)
        n_choices[: len(sources)] = 1
        successor = np.arange(len(sources), len(states))
        return make_graph(n_choices, lengths, successor, columns, self.actions, names)


class _ModelFiles:
    """The files of a model that is being built."""

    def __init__(
        self,
        folder: Path,
        state_type: Any,
        kinds: Sequence[Any],
        labels: Mapping[str, Callable[[State], BoolArray]],
        rewards: Mapping[str, Callable[[State], BatchReward]],
        choice_rewards: Mapping[str, Callable[[State, str], BatchReward]],
    ) -> None:
        if folder.exists() and any(folder.iterdir()):
            raise ModelError(f"store={str(folder)!r}: the folder is not empty; give one that is, or is to be made")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.kinds, self.fields = folder, kinds, state_type._fields
        self._labels, self._rewards, self._choice_rewards = labels, rewards, choice_rewards
        self.all: dict[str, GrowingFile] = {}
        self.first_choice, self.first_transition = self._file("first_choice", OFFSETS), self._file("first", OFFSETS)
        self.successor, self.expression = self._file("successor", [np.int32]), self._file("expression", NUMBERS)
        self.action, self.row = self._file("action", NUMBERS), self._file("row", NUMBERS)
        self.first_state = self._file("first_state", [np.int64])
        self.states = {field: self._file(f"state.{i}", [kinds[i]]) for i, field in enumerate(self.fields)}
        self.labels = {name: self._file(f"label.{i}", [np.bool_]) for i, name in enumerate(labels)}
        self.rewards = {name: self._file(f"reward.{i}", [np.float64]) for i, name in enumerate(rewards)}
        self.choice_rewards = {n: self._file(f"choice_reward.{i}", [np.float64]) for i, n in enumerate(choice_rewards)}
        for offsets in (self.first_choice, self.first_transition):
            offsets.append(np.zeros(1, dtype=np.int32))

    def _file(self, name: str, types: Sequence[Any]) -> GrowingFile:
        self.all[name] = GrowingFile(self.folder / f"{name}.bin", types)
        return self.all[name]

    def append(self, batch: State, graph: Graph, expression: IntArray, row: IntArray) -> None:
        """Write a batch of states with its choices and transitions."""
        self.first_choice.append(graph.first_choice[1:].astype(np.int64) + self.action.n)
        self.first_transition.append(graph.first_transition[1:].astype(np.int64) + self.successor.n)
        for file, values in (
            (self.successor, graph.successor), (self.expression, expression), (self.action, graph.action),
            (self.row, row), *((self.states[field], getattr(batch, field)) for field in self.fields),
        ):  # fmt: skip
            file.append(values)
        n = graph.n_states
        for name, label in self._labels.items():
            self.labels[name].append(np.broadcast_to(np.asarray(label(batch), dtype=np.bool_), n))
        for name, reward in self._rewards.items():
            self.rewards[name].append(spread(reward(batch), n))
        for name, of_choice in self._choice_rewards.items():
            self.choice_rewards[name].append(choice_rewards_of(of_choice, batch, graph))

    def close(self) -> None:
        """Close all files."""
        for file in self.all.values():
            file.close()


def _finished(files: _ModelFiles, rows: _RowTable, space: ParameterSpace, names: tuple[str, ...]) -> ParametricMDP:
    """Return the model of the closed files, with a description by which they can be opened again."""
    about = Description(
        names,
        space,
        [rows.expressions[i] for i in rows.order],
        rows.graph(files.fields, files.kinds, names),
        read_only(np.concatenate(rows.rows).astype(np.int32)),
        *(tuple(group) for group in (files.fields, files.labels, files.rewards, files.choice_rewards)),
    )
    files.close()
    write_description(files.folder, about, {name: (file.dtype, file.n) for name, file in files.all.items()})
    return open_stored(files.folder)

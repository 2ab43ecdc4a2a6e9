"""Reads policies from files, one function for each format: the choice in every state, or probabilities of choices."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.edge import is_sheet, meant, read_whole
from plumdp.base.errors import DataError, fault_of
from plumdp.base.json_values import parsed
from plumdp.model.graph import BoolArray, Graph
from plumdp.model.named_policy import (
    action_column,
    choices_of_rows,
    names_of,
    policy_of_choices,
    policy_of_rows,
    share_column,
)
from plumdp.model.text import cut, number_of
from plumdp.model.values import Codes, StateIndex

_OF_PRODUCT = "read a policy with memory with ask(property, model).model instead of the model"
_LISTED = re.compile(r"(?:\d+:)?\((.*?)\)[:=](.*)")


def read_csv(path: str | Path, graph: Graph) -> npt.NDArray[Any]:
    """Return the policy of a CSV file with a column for each state variable, the action, and perhaps a probability."""
    *variables, action = needed = [*graph.states, action_column(graph)]
    table = read_table(path)
    missing = [name for name in needed if name not in table]
    if missing:
        raise DataError(f"{path} is not a policy of this model: it has no column {', '.join(missing)}")
    extra = [name for name in table if name not in (*needed, share_column(graph))]
    state, shares = _states(path, graph, [table[name] for name in variables]), table.get(share_column(graph))
    if extra and shares is None and len(np.unique(state)) < len(state):
        remembered = f"the column {', '.join(extra)}, which is not a variable of the model"
        raise DataError(f"{path} has several actions for a state, and {remembered}; {_OF_PRODUCT}")
    return policy_of_rows(str(path), graph, state, table[action], None if shares is None else shares.tolist())


def read_kept(path: str | Path, graph: Graph, keep: BoolArray) -> BoolArray:
    """Return the choices of a CSV file for each step, where the file has a column for the steps before the action."""
    table = read_table(path)
    *variables, step, action = table
    if variables != [*graph.states]:
        raise DataError(f"{path} is not a policy of this model: it needs the columns {', '.join(graph.states)}")
    state = _states(path, graph, [table[name] for name in variables])
    choice = choices_of_rows(str(path), graph, state, table[action])
    try:
        keep[table[step].astype(np.int64), choice] = True
    except (ValueError, IndexError):
        raise DataError(f"{path}: column {step} has values that are not numbers of steps") from None
    return keep


def read_list(path: str | Path, graph: Graph) -> npt.NDArray[Any]:
    """Return the policy of PRISM's list of actions: lines ``(0,1):north``; the state's number may come first."""
    rows = []
    for number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip():
            continue
        match = _LISTED.fullmatch(line.strip())
        values = [value.strip() for value in match[1].split(",")] if match else []
        if match is None or len(values) != len(graph.states):
            example = f"({','.join(graph.states)}):action"
            raise DataError(f"{path}, line {number}: {cut(line, 40)!r} is not of the form {example}")
        rows.append([*values, match[2].strip()])
    table = np.array(rows, dtype=object).reshape(len(rows), len(graph.states) + 1)
    state = _states(path, graph, [*table.T[:-1]])
    return policy_of_rows(str(path), graph, state, table[:, -1])


def read_scheduler(path: str | Path, graph: Graph) -> npt.NDArray[Any]:
    """Return the policy of Storm's scheduler in JSON: ``[{"s": 0, "c": [{"index": 1, "prob": 1.0}]}]``.

    A state is a number or its variables, a choice the number of the choice, or its label if it has one.
    Choices that are drawn have probabilities below 1. With memory, entries have its value "m", and are read for the
    product of the model with that memory.
    """
    try:
        entries = parsed(_text(path))
    except DataError as error:
        raise DataError(f"{path} is not a scheduler in Storm's JSON: {error}") from None
    try:
        entries = [entry for entry in entries if entry["c"] != "undefined"]
        state = _scheduled_states(path, graph, [_place(path, graph, entry["s"], entry.get("m")) for entry in entries])
        drawn = [_drawn(path, graph, int(s), entry) for s, entry in zip(state, entries, strict=True)]
        rows = [
            (s, _scheduled_choice(path, graph, s, one), one.get("prob", 1.0))
            for s, choices in zip(state.tolist(), drawn, strict=True)
            for one in choices
        ]
    except DataError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise DataError(f"{path} is not a scheduler in Storm's JSON: {fault_of(error)}") from None
    states, choices, shares = zip(*rows, strict=True) if rows else ((), (), ())
    shared = None if all(share == 1 for share in shares) else shares
    of_rows, taken = (np.array(numbers, dtype=np.int64) for numbers in (states, choices))
    return policy_of_choices(str(path), graph, of_rows, taken, shared)


POLICY_READERS: Mapping[str, Callable[[str | Path, Graph], npt.NDArray[Any]]] = {
    ".csv": read_csv,
    ".txt": read_list,
    ".json": read_scheduler,
}


def _text(path: str | Path) -> str:
    try:
        return read_whole(Path(path)).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as a policy: {error}") from None


def read_table(path: str | Path) -> dict[str, npt.NDArray[Any]]:
    """Return all columns of a CSV file as texts, in their order."""
    try:
        header, *rows = [*csv.reader(StringIO(_text(path), newline=""))] or [[]]
    except csv.Error as error:
        raise DataError(f"{path} cannot be read as a policy: {error}") from None
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise DataError(f"{path}: row {number} has {len(row)} values, but there are {len(header)} columns")
    read = meant if is_sheet(path) else str
    return {read(name): np.array([read(row[place]) for row in rows], dtype=object) for place, name in enumerate(header)}


def _states(path: str | Path, graph: Graph, columns: list[npt.NDArray[Any]]) -> Codes:
    """Return the states of the rows; none may occur twice."""
    state = StateIndex(graph).find(columns)
    if (state < 0).any():
        row = int(np.argmax(state < 0))
        text = ", ".join(f"{name}={column[row]}" for name, column in zip(graph.states, columns, strict=True))
        raise DataError(f"{path}: row {row + 1}, ({text}) is not a state of the model")
    return state


def _scheduled_states(path: str | Path, graph: Graph, found: list[Any]) -> Codes:
    """Return the states of a scheduler, which are all numbers or all variables with their values."""
    if all(isinstance(state, dict) for state in found):
        columns = [np.array([state[name] for state in found], dtype=object) for name in graph.states]
        return _states(path, graph, columns)
    for state in found:
        if not (isinstance(state, int) and 0 <= state < graph.n_states):
            raise DataError(f"{path}: there is no state {state}; the model has {number_of(graph.n_states, 'state')}")
    return np.array(found, dtype=np.int64)


def _drawn(path: str | Path, graph: Graph, state: int, entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the choices that a scheduler takes in a state."""
    taken = [choice for choice in entry["c"] if choice.get("prob", 1.0) != 0]
    if not taken:
        raise DataError(f"{path}: state ({graph.describe_state(state)}): the scheduler has no action there")
    return taken


def _place(path: str | Path, graph: Graph, state: Any, memory: Any) -> Any:
    """Return the state of an entry, of a product with its memory among its variables."""
    if memory is None and graph.memory is None:
        return state
    if graph.memory is None or memory is None:
        has, lacks = ("scheduler", "model") if graph.memory is None else ("model", "scheduler")
        raise DataError(f"{path}: the {has} has memory, which the {lacks} does not have; {_OF_PRODUCT}")
    if not isinstance(state, dict):
        raise DataError(f"{path}: states of a scheduler with memory are read by their variables, not by numbers")
    return {**state, graph.memory.names[0]: memory}


def _scheduled_choice(path: str | Path, graph: Graph, state: int, taken: Mapping[str, Any]) -> int:
    labels, names = taken.get("labels", []), names_of(graph, state)
    if len(labels) == 1 and names.count(labels[0]) == 1:
        return int(graph.first_choice[state]) + names.index(labels[0])
    choice, first, last = taken["index"], graph.first_choice[state], graph.first_choice[state + 1] - 1
    if graph.memory is not None:  # numbers are those of the model without memory
        own = np.flatnonzero(graph.memory.choice[first : last + 1] == choice)
        choice = first + own[0] if len(own) else -1
    if labels or not first <= choice <= last:
        shown, where = f"action {labels[0]!r}" if labels else f"choice {choice}", graph.describe_state(state)
        choices = f"{first} to {last}, {', '.join(map(repr, names))}"
        raise DataError(f"{path}: state ({where}): {shown} is not one of its own: {choices}")
    return int(choice)

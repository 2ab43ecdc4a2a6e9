"""Reads policies from files, one function for each format: each returns the number of the choice in every state."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError
from plumdp.data.values import Codes, RowIndex, domain
from plumdp.model.graph import Graph, Indices, IntArray
from plumdp.model.named_policy import action_column, choices_of_rows, complete, names_of
from plumdp.model.text import cut, number_of

_LISTED = re.compile(r"(?:\d+:)?\((.*?)\)[:=](.*)")


def read_csv(path: str | Path, graph: Graph) -> IntArray:
    """Return the policy of a CSV file with a column for each state variable and one for the action."""
    needed = [*graph.states, action_column(graph)]
    columns = _read_columns(path, needed)
    state = _states(path, graph, [columns[name] for name in graph.states])
    return complete(str(path), graph, state, choices_of_rows(str(path), graph, state, columns[needed[-1]]))


def rows_of_choices(path: str | Path, graph: Graph, others: list[str]) -> tuple[Indices, list[npt.NDArray[Any]]]:
    """Return the choice that each row of a CSV file names by state and action, and other columns as texts."""
    needed = [*graph.states, action_column(graph)]
    columns = _read_columns(path, [*needed, *others])
    state = _states(path, graph, [columns[name] for name in graph.states])
    return choices_of_rows(str(path), graph, state, columns[needed[-1]]), [columns[name] for name in others]


def read_list(path: str | Path, graph: Graph) -> IntArray:
    """Return the policy of PRISM's list of actions: lines ``(0,1):north``; the state's number may come first."""
    rows = []
    for number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip():
            continue
        found = _LISTED.fullmatch(line.strip())
        values = [value.strip() for value in found[1].split(",")] if found else []
        if found is None or len(values) != len(graph.states):
            example = f"({','.join(graph.states)}):action"
            raise DataError(f"{path}, line {number}: {cut(line, 40)!r} is not of the form {example}")
        rows.append([*values, found[2].strip()])
    table = np.array(rows, dtype=object).reshape(len(rows), len(graph.states) + 1)
    state = _states(path, graph, [*table.T[:-1]])
    return complete(str(path), graph, state, choices_of_rows(str(path), graph, state, table[:, -1]))


def read_scheduler(path: str | Path, graph: Graph) -> IntArray:
    """Return the policy of Storm's scheduler in JSON: ``[{"s": 0, "c": [{"index": 1, "prob": 1.0}]}]``.

    A state is a number or its variables, a choice the number of the choice, or its label if it has one.
    """
    try:
        entries = json.loads(_text(path))
        entries = [entry for entry in entries if entry["c"] != "undefined"]
        state = _scheduled_states(path, graph, [entry["s"] for entry in entries])
        chosen = [_scheduled_choice(path, graph, int(s), entry) for s, entry in zip(state, entries, strict=True)]
    except (json.JSONDecodeError, TypeError, LookupError, RecursionError) as error:
        raise DataError(f"{path} is not a scheduler in Storm's JSON ({type(error).__name__}: {error})") from None
    return complete(str(path), graph, state, np.array(chosen, dtype=np.int64))


POLICY_READERS: Mapping[str, Callable[[str | Path, Graph], IntArray]] = {
    ".csv": read_csv,
    ".txt": read_list,
    ".json": read_scheduler,
}


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as a policy: {error}") from None


def _read_columns(path: str | Path, needed: list[str]) -> dict[str, npt.NDArray[Any]]:
    """Return columns of a CSV file as texts."""
    table = read_table(path)
    missing = [name for name in needed if name not in table]
    if missing:
        raise DataError(f"{path} is not a policy of this model: it has no column {', '.join(missing)}")
    return {name: table[name] for name in needed}


def read_table(path: str | Path) -> dict[str, npt.NDArray[Any]]:
    """Return all columns of a CSV file as texts, in their order."""
    try:
        header, *rows = [*csv.reader(StringIO(_text(path), newline=""))] or [[]]
    except csv.Error as error:
        raise DataError(f"{path} cannot be read as a policy: {error}") from None
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise DataError(f"{path}: row {number} has {len(row)} values, but there are {len(header)} columns")
    return {name: np.array([row[place] for row in rows], dtype=object) for place, name in enumerate(header)}


def _states(path: str | Path, graph: Graph, columns: list[npt.NDArray[Any]]) -> Codes:
    """Return the states of the rows; none may occur twice."""
    variables = [domain(values) for values in graph.states.values()]
    codes = [variable.code(values) for variable, values in zip(variables, graph.states.values(), strict=True)]
    index = RowIndex([variable.size for variable in variables], codes)
    if len(index.repeated):
        where = graph.describe_state(int(index.repeated[0]))
        raise DataError(f"several states have the valuation ({where}), so that a table cannot tell them apart")
    state = index.find([variable.code(column) for variable, column in zip(variables, columns, strict=True)])
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


def _scheduled_choice(path: str | Path, graph: Graph, state: int, entry: Mapping[str, Any]) -> int:
    where = f"{path}: state ({graph.describe_state(state)})"
    drawn = [choice for choice in entry["c"] if choice.get("prob", 1.0) != 0]
    if len(drawn) != 1 or "m" in entry:
        what = "memory" if "m" in entry else "several actions, or none"
        raise DataError(f"{where}: the scheduler has {what} there; a policy is one action for each state")
    labels, names = drawn[0].get("labels", []), names_of(graph, state)
    if len(labels) == 1 and names.count(labels[0]) == 1:
        return int(graph.first_choice[state]) + names.index(labels[0])
    choice, first, last = drawn[0]["index"], graph.first_choice[state], graph.first_choice[state + 1] - 1
    if labels or not first <= choice <= last:
        shown = f"action {labels[0]!r}" if labels else f"choice {choice}"
        raise DataError(f"{where}: {shown} is not one of its own: {first} to {last}, {', '.join(map(repr, names))}")
    return int(choice)

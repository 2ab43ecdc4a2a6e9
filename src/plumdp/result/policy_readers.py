"""Reads policies from files, one function for each format: each returns the number of the choice in every state."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.data.values import Codes, RowIndex, Texts, domain
from plumdp.errors import DataError
from plumdp.model.graph import Graph, IntArray
from plumdp.model.text import cut, number_of

_LISTED = re.compile(r"(?:\d+:)?\((.*?)\)[:=](.*)")


def read_csv(path: str | Path, graph: Graph) -> IntArray:
    """Return the policy of a CSV file with a column for each state variable and one for the action."""
    needed = [*graph.states, action_column(graph)]
    columns = _read_columns(path, needed)
    state = _states(path, graph, [columns[name] for name in graph.states])
    return _complete(path, graph, state, _choices(path, graph, state, columns[needed[-1]]))


def rows_of_choices(path: str | Path, graph: Graph, others: list[str]) -> tuple[Codes, list[npt.NDArray[Any]]]:
    """Return the choice that each row of a CSV file names by state and action, and other columns as texts."""
    needed = [*graph.states, action_column(graph)]
    columns = _read_columns(path, [*needed, *others])
    state = _states(path, graph, [columns[name] for name in graph.states])
    return _choices(path, graph, state, columns[needed[-1]]), [columns[name] for name in others]


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
    return _complete(path, graph, state, _choices(path, graph, state, table[:, -1]))


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
    return _complete(path, graph, state, np.array(chosen, dtype=np.int64))


POLICY_READERS: Mapping[str, Callable[[str | Path, Graph], IntArray]] = {
    ".csv": read_csv,
    ".txt": read_list,
    ".json": read_scheduler,
}


def choices_by_name(graph: Graph, actions: npt.ArrayLike) -> IntArray:
    """Return the choice in every state by the name of its action; where there is one action only, it is taken."""
    names = np.asarray(actions, dtype=object)
    if names.ndim and names.shape != (graph.n_states,):
        raise DataError(f"there are {names.size} names of actions for {number_of(graph.n_states, 'state')}")
    names = np.broadcast_to(names, graph.n_states)
    first: IntArray = graph.first_choice[:-1]
    choice = np.where(np.diff(graph.first_choice) == 1, first, _find_choices(graph, np.arange(graph.n_states), names))
    if (choice < 0).any():
        state = int(np.argmax(choice < 0))
        raise _no_such_action(f"state ({graph.describe_state(state)})", graph, state, names[state])
    return choice.astype(first.dtype)


def action_column(graph: Graph) -> str:
    """Return the name of the column for the action in a table of states."""
    return "action" if "action" not in graph.states else "chosen_action"


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as a policy: {error}") from None


def _read_columns(path: str | Path, needed: list[str]) -> dict[str, npt.NDArray[Any]]:
    """Return columns of a CSV file as texts."""
    try:
        header, *rows = [*csv.reader(_text(path).splitlines(keepends=True))] or [[]]
    except csv.Error as error:
        raise DataError(f"{path} cannot be read as a policy: {error}") from None
    missing = [name for name in needed if name not in header]
    if missing:
        raise DataError(f"{path} is not a policy of this model: it has no column {', '.join(missing)}")
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise DataError(f"{path}: row {number} has {len(row)} values, but there are {len(header)} columns")
    return {name: np.array([row[header.index(name)] for row in rows], dtype=object) for name in needed}


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


def _choices(path: str | Path, graph: Graph, state: Codes, actions: npt.NDArray[Any]) -> Codes:
    """Return the choice of each row, by its state and the name of its action."""
    choice = _find_choices(graph, state, actions)
    if (choice < 0).any():
        row = int(np.argmax(choice < 0))
        where = f"{path}: row {row + 1}, state ({graph.describe_state(int(state[row]))})"
        raise _no_such_action(where, graph, int(state[row]), actions[row])
    return choice


def _find_choices(graph: Graph, state: Codes, actions: npt.NDArray[Any]) -> Codes:
    """Return the choice of each state by the name of its action; -1 if there is none, or several."""
    index = RowIndex([graph.n_states, len(graph.action_names)], [graph.state_of_choice(), graph.action])
    choice = index.find([state, Texts(graph.action_names).code(actions)])
    return np.where(np.isin(choice, index.repeated), -1, choice)


def _no_such_action(where: str, graph: Graph, state: int, action: Any) -> DataError:
    names = ", ".join(map(repr, _names(graph, state)))
    return DataError(f"{where}: {action!r} is not one of its actions, {names}, or stands for several")


def _names(graph: Graph, state: int) -> list[str]:
    """Return the names of the actions of a state, in the order of its choices."""
    return [
        graph.action_names[action] for action in graph.action[graph.first_choice[state] : graph.first_choice[state + 1]]
    ]


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
    labels, names = drawn[0].get("labels", []), _names(graph, state)
    if len(labels) == 1 and names.count(labels[0]) == 1:
        return int(graph.first_choice[state]) + names.index(labels[0])
    choice, first, last = drawn[0]["index"], graph.first_choice[state], graph.first_choice[state + 1] - 1
    if labels or not first <= choice <= last:
        shown = f"action {labels[0]!r}" if labels else f"choice {choice}"
        raise DataError(f"{where}: {shown} is not one of its own: {first} to {last}, {', '.join(map(repr, names))}")
    return int(choice)


def _complete(path: str | Path, graph: Graph, state: Codes, choice: Codes) -> IntArray:
    """Return the choice in every state; only states with one choice may be left out, and none may be given twice."""
    times = np.bincount(state, minlength=graph.n_states)
    if times.max(initial=0) > 1:
        raise DataError(f"{path} has several rows for the state ({graph.describe_state(int(np.argmax(times)))})")
    lacking = np.flatnonzero((times == 0) & (np.diff(graph.first_choice) > 1))
    if len(lacking):
        examples = ", ".join(f"({graph.describe_state(int(s))})" for s in lacking[:3])
        many = number_of(len(lacking), "state")
        raise DataError(f"{path} says nothing about {many} of the model with several actions, such as {examples}")
    chosen: IntArray = graph.first_choice[:-1].copy()
    chosen[state] = choice
    return chosen

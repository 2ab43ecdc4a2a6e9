"""Policies given by the names of actions, as a function, a dict or a table, turned into a choice in each state."""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError
from plumdp.model.graph import Graph, Indices, IntArray
from plumdp.model.text import cut, number_of

Columns: TypeAlias = Mapping[str, npt.NDArray[Any]]

FORMS = (
    "a function of the state, a dict from states to names of actions, or a table with a column for each state variable "
    "and one for the action"
)
_SHOWN = 3  # states in a message
_POLICY = "the policy"  # what messages begin with, if it is not a file
_namedtuple: Any = collections.namedtuple  # the fields are the user's variables, which type checkers cannot know


def choices_by_name(graph: Graph, actions: Any, states: Any = None) -> IntArray:
    """Return the choice in every state by the name of its action, as ``PolicyTable.from_actions`` does."""
    if states is not None:
        return _of_list(graph, actions, states)
    if isinstance(actions, str):
        return _of_function(graph, lambda state: actions)
    if callable(actions):
        return _of_function(graph, actions)
    if isinstance(actions, Mapping) and np.ndim(next(iter(actions.values()), "")) == 0:
        return _of_rows(graph, _columns_of_states(graph, [*actions]), [*actions.values()])
    columns = _columns_of_table(actions)
    if columns is not None:
        *variables, action = needed = [*graph.states, action_column(graph)]
        _require_columns(_POLICY, columns, needed)
        return _of_rows(graph, {name: columns[name] for name in variables}, columns[action])
    if np.ndim(actions) == 0:
        raise DataError(f"{cut(repr(actions))} is not a policy; give {FORMS}")
    raise DataError(
        "a list of names does not say which state each of them is for; give states=..., such as states=graph.states "
        f"if they are in the order of graph.states, or give {FORMS}"
    )


def is_named(policy: Any) -> bool:
    """Return whether a policy names its actions, as a function, a dict or a table does, and an array does not."""
    if isinstance(policy, np.ndarray | list | tuple | str):
        return False
    return callable(policy) or isinstance(policy, Mapping) or _is_frame(policy)


def action_column(graph: Graph) -> str:
    """Return the name of the column for the action in a table of states."""
    return "action" if "action" not in graph.states else "chosen_action"


def choices_of_rows(source: str, graph: Graph, state: Indices, names: npt.NDArray[Any]) -> Indices:
    """Return the choice of each row by its state and the name of its action.

    None is the only action of the state.
    """
    is_only = np.diff(graph.first_choice)[state] == 1
    is_none = np.fromiter((name is None for name in names.tolist()), np.bool_, len(names))
    choice = np.where(is_only & is_none, graph.first_choice[state], _find_choices(graph, state, names))
    if (choice < 0).any():
        row = int(np.argmax(choice < 0))
        number = "" if source == _POLICY else f"row {row + 1}, "
        where = f"{source}: {number}state ({graph.describe_state(int(state[row]))})"
        raise DataError(f"{where}: {_no_such_action(names_of(graph, int(state[row])), names[row])}")
    return choice


def complete(source: str, graph: Graph, state: Indices, choice: Indices) -> IntArray:
    """Return the choice in every state.

    Only states with one choice may be left out, and none may be given twice.
    """
    times = np.bincount(state, minlength=graph.n_states)
    if times.max(initial=0) > 1:
        repeated = np.flatnonzero(times > 1)
        word = "state" if len(repeated) == 1 else "states"
        raise DataError(f"{source} has several rows for the {word} {_few(repeated, graph.describe_state)}")
    lacking = np.flatnonzero((times == 0) & (np.diff(graph.first_choice) > 1))
    if len(lacking):
        many, shown = number_of(len(lacking), "state"), _few(lacking, graph.describe_state)
        raise DataError(f"{source} says nothing about {many} with several actions: {shown}")
    chosen: IntArray = graph.first_choice[:-1].copy()
    chosen[state] = choice
    return chosen


def names_of(graph: Graph, state: int) -> list[str]:
    """Return the names of the actions of a state, in the order of its choices."""
    actions = graph.action[graph.first_choice[state] : graph.first_choice[state + 1]]
    return [graph.action_names[action] for action in actions]


def _of_function(graph: Graph, function: Callable[[Any], Any]) -> IntArray:
    """Return the policy of a function, which is asked where there are several actions."""
    asked = np.flatnonzero(np.diff(graph.first_choice) > 1)
    make_state = _namedtuple("State", graph.states, rename=True)
    columns = [values[asked].tolist() for values in graph.states.values()]
    names = np.empty(len(asked), dtype=object)
    for row, state in enumerate(asked.tolist()):
        try:
            names[row] = function(make_state(*(column[row] for column in columns)))
        except Exception as error:
            where = f"{_POLICY} fails in the state ({graph.describe_state(state)})"
            raise DataError(f"{where}: {type(error).__name__}: {error}") from error
    return complete(_POLICY, graph, asked, choices_of_rows(_POLICY, graph, asked, names))


def _of_list(graph: Graph, actions: Any, states: Any) -> IntArray:
    """Return the policy of a list of names, one for each of the given states."""
    if callable(actions) or isinstance(actions, Mapping) or np.ndim(actions) != 1:
        raise DataError("states=... goes with a list of names of actions, one for each of the states")
    columns = _columns_of_table(states)
    if columns is None:
        columns = _columns_of_states(graph, [*states])
    _require_columns("states", columns, [*graph.states])
    return _of_rows(graph, {name: columns[name] for name in graph.states}, actions)


def _of_rows(graph: Graph, columns: Columns, names: Any) -> IntArray:
    """Return the policy of a table with columns of the state variables, and the names of actions."""
    named = np.array([*names], dtype=object)
    different = {len(values) for values in columns.values()} - {len(named)}
    if different or not columns:
        many = number_of(different.pop() if different else 0, "state")
        raise DataError(f"{_POLICY} has {number_of(len(named), 'action')} for {many}")
    state = _find_states(graph, columns)
    if (state < 0).any():
        rows = np.flatnonzero(state < 0)
        shown = _few(rows, lambda row: ", ".join(f"{name}={values[row]}" for name, values in columns.items()))
        raise DataError(f"{_POLICY} has {number_of(len(rows), 'state')} that the model does not have: {shown}")
    return complete(_POLICY, graph, state, choices_of_rows(_POLICY, graph, state, named))


def _columns_of_table(source: Any) -> Columns | None:
    """Return the columns of a mapping or a data frame, or None if it is neither."""
    if isinstance(source, Mapping):
        return {name: np.asarray(values) for name, values in source.items()}
    if not _is_frame(source):
        return None
    if hasattr(source, "fetchnumpy"):  # of DuckDB; None is masked
        found = source.fetchnumpy().items()
        return {name: np.array(v.tolist(), dtype=object) if np.ma.isMaskedArray(v) else v for name, v in found}
    if hasattr(source, "toPandas"):  # of Spark
        source = source.toPandas()
    frame = source.collect() if hasattr(source, "collect") else source  # a lazy one of Polars
    names = frame.column_names if hasattr(frame, "column_names") else frame.columns
    return {str(name): _values(frame[name]) for name in names}


def _is_frame(source: Any) -> bool:
    """Return whether this is a data frame of pandas, Polars, PyArrow, DuckDB or Spark, by what it can do."""
    kind = type(source)
    return hasattr(kind, "columns") and (hasattr(kind, "__getitem__") or hasattr(kind, "fetchnumpy"))


def _values(column: Any) -> npt.NDArray[Any]:
    """Return the values of a column of pandas, Polars or PyArrow, which have several words for null."""
    values: npt.NDArray[Any] = column.to_numpy()
    if values.dtype.kind != "O":
        return values
    is_null = column.isna() if hasattr(column, "isna") else column.is_null()
    present: npt.NDArray[Any] = values.copy()
    present[np.asarray(is_null.to_numpy(), dtype=np.bool_)] = None
    return present


def _columns_of_states(graph: Graph, states: list[Any]) -> Columns:
    """Return the columns of states that are given one by one, as tuples, or as the value of the only variable."""
    rows = [_valuation(graph, state) for state in states]
    columns = np.empty((len(graph.states), len(rows)), dtype=object)
    for row, values in enumerate(rows):
        columns[:, row] = values
    return dict(zip(graph.states, columns, strict=True))


def _valuation(graph: Graph, state: Any) -> tuple[Any, ...]:
    """Return the values of a state in the order of the model's variables."""
    names = tuple(graph.states)
    if hasattr(state, "_fields") and {*state._fields} == {*names}:
        return tuple(getattr(state, name) for name in names)
    if not isinstance(state, tuple) and len(names) == 1:
        return (state,)
    if not isinstance(state, tuple) or hasattr(state, "_fields") or len(state) != len(names):
        raise DataError(f"{_POLICY}: {cut(repr(state))} is not a state; give tuples ({', '.join(names)})")
    return state


def _require_columns(source: str, columns: Columns, needed: list[str]) -> None:
    missing = [name for name in needed if name not in columns]
    if missing:
        raise DataError(f"{source} has no column {', '.join(missing)}; it needs {', '.join(needed)}")


def _find_states(graph: Graph, columns: Columns) -> Indices:
    """Return the state that each row of the columns describes, or -1."""
    keys, wanted = np.zeros(graph.n_states, dtype=np.int64), np.zeros(len(next(iter(columns.values()))), dtype=np.int64)
    for name, column in columns.items():
        of_states, codes, size = _codes(name, graph.states[name], column)
        distinct, keys = np.unique(keys * size + of_states, return_inverse=True)  # so that keys stay small
        place = np.minimum(np.searchsorted(distinct, wanted * size + codes), len(distinct) - 1)
        wanted = np.where((wanted >= 0) & (codes >= 0) & (distinct[place] == wanted * size + codes), place, -1)
    if len(distinct) < graph.n_states:
        again = int(np.argmax(np.bincount(keys)[keys] > 1))
        where = graph.describe_state(again)
        raise DataError(f"several states have the valuation ({where}), so that a table cannot tell them apart")
    state = np.empty(graph.n_states, dtype=np.int64)
    state[keys] = np.arange(graph.n_states)
    return np.where(wanted >= 0, state[wanted], -1)


def _codes(name: str, values: npt.NDArray[Any], column: npt.NDArray[Any]) -> tuple[Indices, Indices, int]:
    """Return a variable's values, of the states and in a column, as numbers below the third result.

    Values in the column that no state has are -1.
    """
    distinct, of_states = np.unique(values, return_inverse=True)
    if column.dtype.kind in "biuf" and distinct.dtype.kind in "biu":
        place = np.minimum(np.searchsorted(distinct, column), len(distinct) - 1)
        return of_states, np.where(distinct[place] == column, place, -1), len(distinct)
    code_of = {value: code for code, value in enumerate(distinct.tolist())}
    try:
        codes = [code_of.get(value, -1) for value in column.tolist()]
    except TypeError:
        example = next(value for value in column.tolist() if value.__hash__ is None)
        raise DataError(f"{_POLICY}: {cut(repr(example))} is not a value of the state variable {name}") from None
    return of_states, np.array(codes, dtype=np.int64), len(distinct)


def _find_choices(graph: Graph, state: Indices, names: npt.NDArray[Any]) -> Indices:
    """Return the choice of each state by the name of its action, or -1 if there is none, or several."""
    number = {name: code for code, name in enumerate(graph.action_names)}

    def code_of(name: Any) -> int:
        is_number = isinstance(name, int | np.integer) and not isinstance(name, bool)
        word = name if isinstance(name, str) else f"{name}" if is_number else ""  # 3 is the action "3"
        return number.get(word, number.get(word.strip(), -1))

    action = np.fromiter(map(code_of, names.tolist()), np.int64, len(names))
    keys = graph.state_of_choice().astype(np.int64) * len(number) + graph.action  # names differ
    order = np.argsort(keys, kind="stable")
    first, last = (np.searchsorted(keys[order], state * len(number) + action, side) for side in ("left", "right"))
    is_found = (action >= 0) & (last - first == 1)
    return np.where(is_found, order[np.minimum(first, len(order) - 1)], -1)


def _no_such_action(actions: list[str], name: Any) -> str:
    """Return a description of the fault in the name of an action, in a state with the given ones."""
    names = ", ".join(map(repr, actions))
    if name is None:
        return f"None stands for the only action, but there are several: {names}"
    if len(actions) == 1:
        return f"{name!r} is not its only action, {names}; give that, or leave the state out"
    if isinstance(name, str) and name.strip() in actions:
        return f"{name!r} stands for several of its choices"
    return f"{name!r} is not one of its actions, {names}"


def _few(numbers: Indices, describe: Callable[[int], str]) -> str:
    """Return the first of some states as text, and how many more there are."""
    left = len(numbers) - _SHOWN
    shown = ", ".join(f"({describe(int(number))})" for number in numbers[:_SHOWN])
    return shown if left <= 0 else f"{shown} and {left:,} more"

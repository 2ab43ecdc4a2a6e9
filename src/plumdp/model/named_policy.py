"""Policies given by the names of actions, as a function, a dict or a table, turned into choices or probabilities."""

from __future__ import annotations

import collections
import inspect
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, ModelError
from plumdp.base.rounding import ULP
from plumdp.model.graph import OUT_OF_TABLE, BoolArray, FloatArray, Graph, Indices, IntArray
from plumdp.model.text import cut, number_of
from plumdp.model.values import StateIndex

POLICY = "the policy"  # what messages begin with, if it is not a file
_SHOWN = 3  # states in a message


def policy_of_rows(
    source: str | None, graph: Graph, state: Indices, names: npt.NDArray[Any], shares: Sequence[Any] | None = None
) -> npt.NDArray[Any]:
    """Return the choice in every state (n_states), or the probability of every choice (n_choices) if rows have shares.

    Only states with one choice may be left out, and none may be given twice. ``source`` is a file, if there is one.
    """
    return policy_of_choices(source, graph, state, choices_of_rows(source, graph, state, names), shares)


def policy_of_choices(
    source: str | None, graph: Graph, state: Indices, choice: Indices, shares: Sequence[Any] | None = None
) -> npt.NDArray[Any]:
    """Return the same policy from rows that have the numbers of their choices."""
    if shares is None:
        return _complete(source or POLICY, graph, state, choice)
    return _weights(source, graph, state, choice, shares)


def action_column(graph: Graph) -> str:
    """Return the name of the column for the action in a table of states."""
    return "action" if "action" not in graph.states else "chosen_action"


def share_column(graph: Graph) -> str:
    """Return the name of the column for the probability of an action in a table of states."""
    return "probability" if "probability" not in graph.states else "chosen_probability"


def choices_of_rows(source: str | None, graph: Graph, state: Indices, names: npt.NDArray[Any]) -> Indices:
    """Return the choice of each row by its state and the name of its action.

    None is the only action of the state.
    """
    is_only = np.diff(graph.first_choice)[state] == 1
    is_none = np.fromiter((name is None for name in names.tolist()), np.bool_, len(names))
    choice = np.where(is_only & is_none, graph.first_choice[state], _find_choices(graph, state, names))
    if (choice < 0).any():
        row = int(np.argmax(choice < 0))
        number = "" if source is None else f"row {row + 1}, "
        where = f"{source or POLICY}: {number}state ({graph.describe_state(int(state[row]))})"
        raise DataError(f"{where}: {_no_such_action(names_of(graph, int(state[row])), names[row])}")
    return choice


def _complete(source: str, graph: Graph, state: Indices, choice: Indices) -> IntArray:
    """Return the choice in every state.

    Only states with one choice may be left out, and none may be given twice.
    """
    times = np.bincount(state, minlength=graph.n_states)
    if times.max(initial=0) > 1:
        repeated = np.flatnonzero(times > 1)
        word = "state" if len(repeated) == 1 else "states"
        raise DataError(f"{source} has several rows for the {word} {few(repeated, graph.describe_state)}")
    _require_all(source, graph, times)
    chosen: IntArray = graph.first_choice[:-1].copy()
    chosen[state] = choice
    return chosen


def _weights(file: str | None, graph: Graph, state: Indices, choice: Indices, shares: Sequence[Any]) -> FloatArray:
    """Return the probability of every choice: 0 for an action without a row, and 1 for the only action of a state."""
    source, again = file or POLICY, np.flatnonzero(np.bincount(choice, minlength=graph.n_choices) > 1)
    if len(again):
        raise DataError(f"{source}: {graph.describe_choice(int(again[0]))}: it has several rows; give one")
    times = np.bincount(state, minlength=graph.n_states)
    weights = np.zeros(graph.n_choices)
    weights[choice] = [_share(file, number, share) for number, share in enumerate(shares, 1)]
    weights[graph.first_choice[:-1][times == 0]] = 1.0
    try:
        checked_weights(graph, weights)
    except ModelError as error:
        raise DataError(f"{source}: {error}") from None
    _require_all(source, graph, times)
    return weights


def _share(source: str | None, row: int, given: Any) -> float:
    try:
        share = float(given)
    except (TypeError, ValueError):
        share = -1.0
    if not 0 <= share <= 1:
        where = "" if source is None else f"row {row}: "
        raise DataError(f"{source or POLICY}: {where}{given!r} is not a probability")
    return share


def checked_weights(graph: Graph, weights: FloatArray) -> FloatArray:
    """Return the probabilities of choices (n_choices), or refuse those that are not such of a policy."""
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ModelError("the probabilities of a policy must be at least 0")
    sums = np.bincount(graph.state_of_choice(), weights, graph.n_states)
    wrong = np.abs(sums - 1) > 4 * ULP * np.diff(graph.first_choice)
    if wrong.any():
        state = int(np.argmax(wrong))
        raise ModelError(
            f"state ({graph.describe_state(state)}): the policy's probabilities sum to {sums[state]:.17g}, not 1"
        )
    return weights


def _require_all(source: str, graph: Graph, times: Indices) -> None:
    """Refuse rows that leave out a state with several actions, given how many rows each state has."""
    lacking = np.flatnonzero((times == 0) & (np.diff(graph.first_choice) > 1))
    if len(lacking):
        many, shown = number_of(len(lacking), "state"), few(lacking, graph.describe_state)
        raise DataError(f"{source} says nothing about {many} with several actions: {shown}")


def names_of(graph: Graph, state: int) -> list[str]:
    """Return the names of the actions of a state, in the order of its choices."""
    actions = graph.action[graph.first_choice[state] : graph.first_choice[state + 1]]
    return [graph.action_names[action] for action in actions]


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
    names, name = ", ".join(map(repr, actions)), str(name) if isinstance(name, str) else name  # NumPy's have a prefix
    if name is None:
        return f"None stands for the only action, but there are several: {names}"
    if len(actions) == 1:
        return f"{name!r} is not its only action, {names}; give that, or leave the state out"
    if isinstance(name, str) and name.strip() in actions:
        return f"{name!r} stands for several of its choices"
    return f"{name!r} is not one of its actions, {names}"


def few(numbers: Indices, describe: Callable[[int], str]) -> str:
    """Return the first of some states as text, and how many more there are."""
    left = len(numbers) - _SHOWN
    shown = ", ".join(f"({describe(int(number))})" for number in numbers[:_SHOWN])
    return shown if left <= 0 else f"{shown} and {left:,} more"


Columns: TypeAlias = Mapping[str, npt.NDArray[Any]]

FORMS = (
    "a function of the state, a dict from states to names of actions, or a table with a column for each state variable "
    "and one for the action"
)
_namedtuple: Any = collections.namedtuple  # the fields are the user's variables, which type checkers cannot know


def policy_by_name(graph: Graph, actions: Any, states: Any = None) -> npt.NDArray[Any]:
    """Return the choice in every state by the name of its action, as ``PolicyTable.from_actions`` does.

    If some state has probabilities of several actions, it is the probability of every choice.
    """
    if states is not None:
        return _of_list(graph, actions, states)
    if isinstance(actions, str):
        return _of_function(graph, lambda _: actions, np.diff(graph.first_choice) > 1)
    if callable(actions):
        return _of_function(graph, actions, _moves(graph))
    if isinstance(actions, Mapping) and np.ndim(next(iter(actions.values()), "")) == 0:
        return _of_rows(graph, _columns_of_states(graph, [*actions]), [*actions.values()])
    columns = _columns_of_table(actions)
    if columns is not None:
        *variables, action = needed = [*graph.states, action_column(graph)]
        _require_columns(POLICY, columns, needed)
        of_states = {name: columns[name] for name in variables}
        return _of_rows(graph, of_states, columns[action], columns.get(share_column(graph)))
    if np.ndim(actions) == 0:
        raise DataError(f"{cut(repr(actions))} is not a policy; give {FORMS}")
    raise DataError(
        "a list of names does not say which state each of them is for; give states=..., such as states=graph.states "
        f"if they are in the order of graph.states, or give {FORMS}"
    )


def python_names(graph: Graph) -> list[str]:
    """Return the names of the state variables as Python can have them as parameters."""
    names = [re.sub(r"\W|^(?=\d)", "_", name) for name in graph.states]
    return [f"{name}_" if keyword.iskeyword(name) else name for name in names]


def _of_function(graph: Graph, function: Callable[..., Any], is_asked: BoolArray) -> npt.NDArray[Any]:
    """Return the policy of a function of the state, or of its variables by name.

    One whose parameters are called like all the variables gets their values; any other gets the state. Where there is
    one action, it must not name another, and need not know the state.
    """
    is_open, asked = np.diff(graph.first_choice) > 1, np.flatnonzero(is_asked)
    make_state, variables = _namedtuple("State", graph.states, rename=True), python_names(graph)
    columns, takes_values = [values[asked].tolist() for values in graph.states.values()], _takes(function, variables)
    names = np.empty(len(asked), dtype=object)
    for row, state in enumerate(asked.tolist()):
        values = [column[row] for column in columns]
        try:
            if takes_values:
                names[row] = function(**dict(zip(variables, values, strict=True)))
            else:
                names[row] = function(make_state(*values))
        except Exception as error:
            if not is_open[state]:
                continue
            where = f"{POLICY} fails in the state ({graph.describe_state(state)})"
            raise DataError(f"{where}: {type(error).__name__}: {error}") from error
    return policy_of_rows(None, graph, *_spread(asked, names))


def _moves(graph: Graph) -> BoolArray:
    """Return the states with several actions, or one whose outcome matters; outside of a table there is no action."""
    first = graph.first_choice[:-1]
    is_outside = np.array([name == OUT_OF_TABLE for name in graph.action_names])[graph.action[first]]
    is_drawn = (np.diff(graph.first_transition)[first] > 1) & ~is_outside
    return np.asarray(is_drawn | (np.diff(graph.first_choice) > 1))


def _takes(function: Callable[..., Any], names: list[str]) -> bool:
    """Return whether the parameters of a function have these names."""
    try:
        return {*inspect.signature(function).parameters} == {*names}
    except (TypeError, ValueError):  # some compiled functions do not tell
        return False


def _spread(state: Indices, names: npt.NDArray[Any]) -> tuple[Indices, npt.NDArray[Any], list[Any] | None]:
    """Return rows with one action each, and their probabilities if a name is in fact a dict from names to these."""
    if not any(isinstance(name, Mapping) for name in names):
        return state, names, None
    given = [name if isinstance(name, Mapping) else {name: 1.0} for name in names]
    spread = np.repeat(state, [len(each) for each in given])
    every = np.array([None, *(name for each in given for name in each)], dtype=object)[1:]
    return spread, every, [share for each in given for share in each.values()]


def _of_list(graph: Graph, actions: Any, states: Any) -> npt.NDArray[Any]:
    """Return the policy of a list of names, one for each of the given states."""
    if callable(actions) or isinstance(actions, Mapping) or np.ndim(actions) != 1:
        raise DataError("states=... goes with a list of names of actions, one for each of the states")
    columns = _columns_of_table(states)
    if columns is None:
        columns = _columns_of_states(graph, [*states])
    _require_columns("states", columns, [*graph.states])
    return _of_rows(graph, {name: columns[name] for name in graph.states}, actions)


def _of_rows(graph: Graph, columns: Columns, names: Any, shares: Any = None) -> npt.NDArray[Any]:
    """Return the policy of a table with columns of the state variables, the names of actions, and perhaps shares."""
    named = np.empty(len(names), dtype=object)
    named[:] = [*names]
    different = {len(values) for values in columns.values()} - {len(named)}
    if different or not columns:
        many = number_of(different.pop() if different else 0, "state")
        raise DataError(f"{POLICY} has {number_of(len(named), 'action')} for {many}")
    odd = next(((name, v) for name, column in columns.items() for v in column.tolist() if v.__hash__ is None), None)
    if odd is not None:
        raise DataError(f"{POLICY}: {cut(repr(odd[1]))} is not a value of the state variable {odd[0]}")
    state = StateIndex(graph).find([*columns.values()])
    if (state < 0).any():
        rows = np.flatnonzero(state < 0)
        shown = few(rows, lambda row: ", ".join(f"{name}={values[row]}" for name, values in columns.items()))
        raise DataError(f"{POLICY} has {number_of(len(rows), 'state')} that the model does not have: {shown}")
    if shares is not None:
        return policy_of_rows(None, graph, state, named, np.asarray(shares).tolist())
    return policy_of_rows(None, graph, *_spread(state, named))


def _columns_of_table(source: Any) -> Columns | None:
    """Return the columns of a mapping or a data frame, or None if it is neither."""
    if isinstance(source, Mapping):
        return {name: np.asarray(values) for name, values in source.items()}
    if not is_frame(source):
        return None
    if hasattr(source, "fetchnumpy"):  # of DuckDB; None is masked
        found = source.fetchnumpy().items()
        return {name: np.array(v.tolist(), dtype=object) if np.ma.isMaskedArray(v) else v for name, v in found}
    if hasattr(source, "toPandas"):  # of Spark
        source = source.toPandas()
    frame = source.collect() if hasattr(source, "collect") else source  # a lazy one of Polars
    names = frame.column_names if hasattr(frame, "column_names") else frame.columns
    return {str(name): _values(frame[name]) for name in names}


def is_frame(source: Any) -> bool:
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
        raise DataError(f"{POLICY}: {cut(repr(state))} is not a state; give tuples ({', '.join(names)})")
    return state


def _require_columns(source: str, columns: Columns, needed: list[str]) -> None:
    missing = [name for name in needed if name not in columns]
    if missing:
        raise DataError(f"{source} has no column {', '.join(missing)}; it needs {', '.join(needed)}")

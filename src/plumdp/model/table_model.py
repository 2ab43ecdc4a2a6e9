"""Models of unknown rows from columns of states, actions and successors, without a call for each state."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.model.batches import State, labels_of, rewards_of
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.expressions.table import ExpressionTable
from plumdp.model.free_rows import NO_PARAMETERS, free_rows
from plumdp.model.graph import BoolArray, FloatArray, Graph, Indices, IntArray, own_array, read_only
from plumdp.model.parametric import ParametricMDP, RewardStructure, offsets_of
from plumdp.model.unmodelled_exits import refuse_reserved
from plumdp.model.values import whole

Columns: TypeAlias = npt.ArrayLike | Mapping[str, npt.ArrayLike]
"""The values of the variable "state", or of several variables by name."""

STAY = "stay"  # the action of states without a row
_LARGEST_CODE = 1 << 62


def table_model(
    state: Columns,
    action: npt.ArrayLike,
    successor: Columns,
    *,
    initial: Any,
    labels: Mapping[str, Callable[[State], BoolArray]] | None = None,
    rewards: Mapping[str, Callable[[State], FloatArray]] | None = None,
    choice_rewards: Mapping[str, Callable[[State, str], FloatArray]] | None = None,
) -> ParametricMDP:
    """Return the model with an unknown row for each state and action, from columns of their possible successors.

    A state without a row stays where it is, under the action "stay", and has the label "deadlock". No two rows are
    tied; ``free_rows`` ties them.

    Parameters
    ----------
    state, action, successor
        Columns with a line for each state, action and possible successor, in any order. States are whole numbers, truth
        values or texts, or a mapping of such columns by variable; actions are texts or whole numbers.
    initial
        The first state: a value, or a mapping.
    labels, rewards, choice_rewards
        Functions of all states at once, as in ``explore_batch``.

    Returns
    -------
    ParametricMDP
        The table.

    Examples
    --------
    >>> from plumdp.model import table_model
    >>> table_model([0, 0, 1, 1], ["go"] * 4, [1, 2, 0, 2], initial=0, labels={"end": lambda s: s.state == 2})
    ParametricMDP(3 states, 5 transitions, 2 unknown rows)
    """
    refuse_reserved(labels or ())
    sources, targets = _columns("state", state), _columns("successor", successor)
    names, actions = _action_names(action)
    if sources.keys() != targets.keys():
        raise ModelError(f"states have the variables {', '.join(sources)}, and successors have {', '.join(targets)}")
    lengths = {len(values) for values in (*sources.values(), *targets.values(), actions)}
    if len(lengths) > 1 or 0 in lengths:
        raise ModelError(f"state, action and successor are columns of one length, at least 1, not {sorted(lengths)}")
    columns, number = number_states(sources, targets)
    first, last = np.split(number, 2)
    edges = Edges(first, actions, last, names)
    is_end = np.ones(len(next(iter(columns.values()))), dtype=np.bool_)
    is_end[edges.source] = False
    ends = np.flatnonzero(is_end)
    graph = edges.add(ends, STAY, ends).graph(columns, find_state(columns, initial))
    states = state_type(columns)(**columns)
    marked = labels_of(labels or {}, states, graph)
    marked |= {"deadlock": read_only(is_end)} if is_end.any() else {}
    return all_free(graph, marked, rewards_of(rewards or {}, choice_rewards or {}, states, graph))


def all_free(graph: Graph, labels: Mapping[str, BoolArray], rewards: Mapping[str, RewardStructure]) -> ParametricMDP:
    """Return the model of a graph whose rows are all free."""
    table = ExpressionTable.build([Polynomial(1)], ())
    ones = read_only(np.zeros(graph.n_transitions, dtype=np.int32))
    known = ParametricMDP(graph, NO_PARAMETERS, NO_PARAMETERS, table, ones, labels, rewards, {})
    return free_rows(known, np.arange(graph.n_choices))


@dataclass(frozen=True, eq=False)
class Edges:
    """Numbers of states, actions and successors, in any order, and perhaps several times."""

    source: Indices
    action: Indices
    target: Indices
    names: tuple[str, ...]  # of the actions

    def add(self, source: Indices, name: str, target: Indices) -> Edges:
        """Return these and more, all under the action of one name."""
        if not len(source):
            return self
        names = self.names if name in self.names else (*self.names, name)
        return self.join(Edges(source, np.full(len(source), names.index(name)), target, names))

    def join(self, more: Edges) -> Edges:
        """Return these and more, whose actions have the same numbers."""
        join = np.concatenate
        action, target = join([self.action, more.action]), join([self.target, more.target])
        return Edges(join([self.source, more.source]), action, target, more.names)

    def graph(self, columns: Mapping[str, npt.NDArray[Any]], initial: int) -> Graph:
        """Return the graph of the distinct ones, in order of state, action and successor."""
        names, source, target = self.names, self.source, self.target
        n_states = len(next(iter(columns.values())))
        row = source.astype(np.int64) * len(names) + self.action
        order = np.lexsort([target, row])
        row, target = row[order], target[order]
        is_new = np.ones(len(row), dtype=np.bool_)
        is_new[1:] = (np.diff(row) != 0) | (np.diff(target) != 0)
        rows, sizes = np.unique(row[is_new], return_counts=True)
        n_choices = np.bincount(rows // len(names), minlength=n_states)
        return Graph(
            offsets_of(n_choices),
            offsets_of(sizes),
            read_only(target[is_new].astype(np.int32)),
            initial,
            columns,
            read_only((rows % len(names)).astype(np.int32)),
            names,
        )


def number_states(
    sources: Mapping[str, npt.NDArray[Any]], targets: Mapping[str, npt.NDArray[Any]]
) -> tuple[dict[str, npt.NDArray[Any]], IntArray]:
    """Return the columns of the distinct states, in order of their values, and the numbers of sources and targets."""
    columns, code, size = {}, np.zeros(1, dtype=np.int64), 1
    for name, values in sources.items():
        if (values.dtype.kind == "U") != (targets[name].dtype.kind == "U"):
            raise ModelError(f"variable {name}: states and successors have values of one kind, numbers or texts")
        columns[name] = np.concatenate([values, targets[name]])
        distinct, number = np.unique(columns[name], return_inverse=True)
        if size * len(distinct) > _LARGEST_CODE:
            code = np.unique(code, return_inverse=True)[1]
            size = int(code.max()) + 1
        code, size = code * len(distinct) + number, size * len(distinct)
    _, place, number = np.unique(code, return_index=True, return_inverse=True)
    return {name: read_only(values[place]) for name, values in columns.items()}, number.astype(np.int32)


def state_type(columns: Mapping[str, Any]) -> Any:
    """Return the type of states with these variables."""
    try:
        return namedtuple("State", columns)  # the fields are the user's variables
    except ValueError as error:
        raise ModelError(f"the variables {', '.join(columns)} cannot all be names in Python: {error}") from None


def find_state(columns: Mapping[str, npt.NDArray[Any]], initial: Any) -> int:
    """Return the number of the initial state."""
    values = initial if isinstance(initial, Mapping) else dict(zip(columns, [initial], strict=False))
    if values.keys() != columns.keys():
        raise ModelError(f"initial={initial!r}: give a value for each of the variables {', '.join(columns)}")
    is_here = np.all([columns[name] == as_in(columns[name], value) for name, value in values.items()], axis=0)
    if not np.any(is_here):
        raise ModelError(f"initial={initial!r}: no state or successor has these values")
    return int(np.argmax(is_here))


def as_in(column: npt.NDArray[Any], value: Any) -> Any:
    """Return a value as a column of a table has it: a text if it has texts, or a whole number."""
    return str(value).strip() if column.dtype.kind == "U" else whole(value)


def _columns(what: str, given: Columns) -> dict[str, npt.NDArray[Any]]:
    """Return columns of states by variable, whole numbers, truth values or texts."""
    by_name = given if isinstance(given, Mapping) else {"state": given}
    if not by_name:
        raise ModelError(f"{what}: give a column, or a mapping from variables to columns")
    return {str(name): _column(f"{what}, variable {name}", values) for name, values in by_name.items()}


def _column(what: str, values: npt.ArrayLike) -> npt.NDArray[Any]:
    column = np.asarray(values)
    if column.dtype == np.object_ and all(isinstance(value, str) for value in column.tolist()):
        column = column.astype(np.str_)
    if column.ndim != 1 or column.dtype.kind not in "biuU":
        raise ModelError(
            f"{what}: give a column of whole numbers, truth values or texts, not {column.dtype} of shape {column.shape}"
        )
    if column.dtype.kind in "iu" and len(column) and max(-int(column.min()), int(column.max())) >= 2**31:
        raise ModelError(f"{what} leaves the range of 32-bit integers")
    return own_array(column, np.int32 if column.dtype.kind in "iu" else None)


def _action_names(action: npt.ArrayLike) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of the actions in order of their values, and the number of each action in the column."""
    names, number = np.unique(_column("action", action), return_inverse=True)
    return tuple(str(name) for name in names.tolist()), number.astype(np.int32)

"""Logs whose states remember: a column with something of the past of a run, which tables take for one more variable.

It is known before the outcome of a step. Rows of trajectories have it for the state in which they are, so that its next
value is that of the next row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import Remembered
from plumdp.data.columns import ACTION, STEP, state_column
from plumdp.data.mapping_language import bins, parse_mapping
from plumdp.data.mapping_sql import columns_sql, mapped_sql
from plumdp.data.names import quoted
from plumdp.model.graph import Indices
from plumdp.model.parametric import ParametricMDP
from plumdp.model.table_model import Edges, number_states
from plumdp.model.unmodelled_exits import out_of_table_of

NONE = "none"  # the action before the first one
VARIABLES: Mapping[Remembered, str] = {"visits": "visits", "previous": "previous", "time": "since", "step": "step"}
"""The variable of each thing that is remembered."""

MEANS: Mapping[Remembered, str] = {
    "visits": "how often the run was in this state before: 0, 1, 2 (or 3), 4 (to 7), 8 and so on, up to 64",
    "previous": f"the action of the step before, {NONE} at first",
    "time": "the steps since this state was entered",
    "step": "the steps of the run before this one",
}
_LARGEST_BIN = 64
_STATES = 20_000  # of a table in which each state remembers


@dataclass(frozen=True)
class Remembering:
    """What a log remembers, and the columns that it follows from; numbers above ``most`` are not told apart."""

    what: Remembered
    run: str
    step: str
    states: Mapping[str, str | Sequence[float]] = field(default_factory=dict)  # as in ``read_log``
    action: str = ""  # an expression, or a column
    most: int | None = None

    def __post_init__(self) -> None:
        if self.what not in VARIABLES:
            raise DataError(Option("remember", self.what), f": choose one of {', '.join(map(repr, VARIABLES))}")
        if self.what in ("visits", "time") and not self.states:
            raise DataError(Option("remember", self.what), ": say what makes up a state with ", Option("states", ...))

    @property
    def variable(self) -> str:
        """The variable of tables."""
        return VARIABLES[self.what]

    @property
    def column(self) -> str:
        """The column that the log gets."""
        return state_column(self.variable)

    @property
    def first(self) -> int | str:
        """The value at the start of a run."""
        return NONE if self.what == "previous" else 0

    @property
    def type_name(self) -> str:
        """The type of the column."""
        return "VARCHAR" if self.what == "previous" else "BIGINT"

    @property
    def used(self) -> list[str]:
        """The columns of the log that it follows from."""
        return [*dict.fromkeys([self.run, self.step, *(name for node in self._nodes() for name in node.columns())])]

    def capped(self, model: ParametricMDP) -> Remembering:
        """Return the same for data of a table, which may go on for longer than the runs that made it."""
        values, beyond = model.graph.states.get(self.variable), out_of_table_of(model) is not None
        if values is None or self.what == "previous":
            return self
        return replace(self, most=int(values.max()) - 3 * beyond)  # in a table, three states are beyond all others

    def require(self, columns: Sequence[str]) -> None:
        """Refuse a log that lacks a column, or has one that is called so."""
        for name in self.used:
            if name not in columns:
                there = ", ".join(columns)
                raise DataError(Option("remember", self.what), f": the log has no column {name}, only {there}")
        if self.column.casefold() in [name.casefold() for name in columns]:
            taken = f": the log has a column {self.column}, which would be called as what is remembered; rename it"
            raise DataError(Option("remember", self.what), taken)

    def sql(self, table: str, types: Mapping[str, str], *, is_warehouse: bool) -> str:
        """Return the table with this column, in DuckDB's words; copies of a row have the same value."""
        step = columns_sql({STEP: self.step}, types, "trajectories", is_warehouse=is_warehouse)[STEP]
        run, *terms = quoted(self.run), *(mapped_sql(node, types, is_warehouse=is_warehouse) for node in self._nodes())
        window = f"PARTITION BY {run} ORDER BY {step}"
        rank = f"dense_rank() OVER ({window}) - 1"
        if self.what == "previous":
            before = f"lag(trim(CAST({terms[0]} AS VARCHAR))) OVER ({window})"
            return self._added(table, f"coalesce(nullif({before}, ''), '{NONE}')")
        if self.what == "step":
            return self._added(table, self._least(rank))
        if self.what == "visits":
            times = f"dense_rank() OVER (PARTITION BY {', '.join([run, *terms])} ORDER BY {step}) - 1"
            sizes = [2**i for i in range(_LARGEST_BIN.bit_length()) if 2**i <= _LARGEST_BIN]
            whens = " ".join(f"WHEN {times} >= {size} THEN {size}" for size in reversed(sizes))
            return self._added(table, self._least(f"CASE {whens} ELSE 0 END"))
        is_new = " OR ".join(f"{term} IS DISTINCT FROM lag({term}) OVER ({window})" for term in terms)
        ranked = f"(SELECT *, {rank} AS rank_in_run, {is_new} AS is_entry FROM {table})"
        entered = f"max(CASE WHEN is_entry THEN rank_in_run END) OVER ({window} ROWS UNBOUNDED PRECEDING)"
        return self._added(ranked, self._least(f"rank_in_run - {entered}"))

    def _nodes(self) -> list[Any]:
        if self.what == "previous":
            return [parse_mapping(self.action or ACTION)]
        terms = self.states.items() if self.what in ("visits", "time") else ()
        return [parse_mapping(term) if isinstance(term, str) else bins(name, term) for name, term in terms]

    def _least(self, number: str) -> str:
        return number if self.most is None else f"least({number}, {self.most})"

    def _added(self, table: str, value: str) -> str:
        return f"(SELECT *, {value} AS {quoted(self.column)} FROM {table})"

    def next(self, value: Any, last: Any, action: str, *, stays: bool) -> list[Any] | None:
        """Return the values that it may have after a step with some value; None if these are all."""
        if self.what == "previous":
            return [action]
        if self.what == "step" or (self.what == "time" and stays):
            return [min(value + 1, last)]
        return [0] if self.what == "time" else None


def spread(
    memory: Remembering, values: Mapping[str, npt.NDArray[Any]], edges: Edges, *, closed: bool
) -> tuple[dict[str, npt.NDArray[Any]], Edges]:
    """Return all states that a table may have whose states remember, and the steps between them.

    What follows on a state and an action in one step of a run may follow in any, and the memory of a next state is
    known. So the next runs find each state in the table, however late they are there. If the table is ``closed``, each
    state may follow on each other one, and each action be taken wherever there is one.
    """
    own = memory.variable
    base = {name: column for name, column in values.items() if name != own}
    columns, number = number_states(base, base)
    of_state, n_base = number[: len(values[own])], len(next(iter(columns.values())))
    triples = np.unique(np.stack([of_state[edges.source], edges.action, of_state[edges.target]]), axis=1)
    if closed:
        rows = np.unique(triples[0]), np.unique(triples[1]), np.arange(n_base)
        triples = np.stack([each.ravel() for each in np.meshgrid(*rows, indexing="ij")])
    known = {NONE, *edges.names} if memory.what == "previous" else {*values[own].tolist()}
    if memory.what in ("step", "time"):
        known = {*range(int(values[own].max()) + 1)}
    contexts = sorted(known)
    if len(contexts) * n_base > _STATES:
        said = f": there would be {len(contexts) * n_base:,} states; take fewer states, or runs with fewer steps"
        raise DataError(Option("remember", memory.what), said)
    place = {context: i for i, context in enumerate(contexts)}
    steps: list[tuple[int, int, int]] = []
    for source, action, target in triples.T.tolist():
        for context in contexts:
            after = memory.next(context, contexts[-1], edges.names[action], stays=source == target)
            begin = source * len(contexts) + place[context]
            ends = (target * len(contexts) + place[each] for each in (contexts if after is None else after))
            steps += ((begin, action, end) for end in ends)
    found = np.array(steps, dtype=np.int64).T
    all_states = {name: np.repeat(column, len(contexts)) for name, column in columns.items()}
    all_states |= {own: np.tile(np.array(contexts, dtype=values[own].dtype), n_base)}
    return all_states, Edges(_of(found[0]), _of(found[1]), _of(found[2]), edges.names)


def _of(column: npt.NDArray[Any]) -> Indices:
    return np.ascontiguousarray(column)

"""Reads runs as they were, each from its first state to its last one, without asking whether the model allows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from plumdp.base.combinations import Trait, refuse
from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import EPISODE, LogForm
from plumdp.data.columns import (
    STEP,
    Source,
    columns_of_runs,
    find_columns,
    next_columns,
    source_columns,
    state_columns,
    without_actions,
)
from plumdp.data.duckdb_engine import Block, columns_of
from plumdp.data.frames import SPARK
from plumdp.data.log_format import AS_NAMED, LogFormat
from plumdp.data.mapping_sql import columns_sql
from plumdp.data.mappings import read_mapping
from plumdp.data.matching import Matcher
from plumdp.data.names import quoted
from plumdp.data.open_logs import files_of, open_log, others_of
from plumdp.data.periods import in_periods, is_period
from plumdp.data.run_record import NoRuns, WholeRuns
from plumdp.data.sql import select_sql
from plumdp.data.steps import LogTable
from plumdp.model.graph import BoolArray, Graph, Indices
from plumdp.model.parametric import ParametricMDP
from plumdp.model.text import number_of
from plumdp.model.unmodelled_exits import out_of_table_of
from plumdp.model.values import Codes, shown

_RUN, _NUMBER, _CHANCE = "rank of the run", "number of the run", "chance of the run"  # no variable is called so
FEW_LATE = 0.1  # of all runs, up to which those that have no row in the first period are left out


def read_whole_runs(
    model: ParametricMDP,
    source: Any,
    format: LogFormat = AS_NAMED,
    *,
    expected: float | None = None,
    return_range: tuple[float, float] | None = None,
    on_unmatched: Literal["error", "report"] = "error",
) -> WholeRuns:
    """Return the whole runs in a log that names run and step of each row.

    States and actions must be the model's, transitions need not be. In a table that was made of other data, a state
    that it does not have is "out_of_table". Runs in which a step is missing are refused, or left out if
    ``on_unmatched`` is "report", as if that had nothing to do with how they went; the format shows that in dates, and
    then such runs are kept with a row for each step that is there.

    Parameters
    ----------
    model
        The model whose states and actions the log has.
    source
        As in ``read_log``.
    format
        As in ``read_log``, with three more columns. ``arm`` says whose run it is, of which ``runs.of("A")`` are those
        of one, and ``runs.of("A", "B")`` those of two that are compared; it must have been written before the run
        began. ``chance`` is the probability with which this arm was drawn for the run, if it was, and ``task`` what it
        had to do, if that is drawn anew for each run, before the arm. The probability to reach states within some steps
        is that of a life table if censoring is "independent" of all that happens in runs, and ``expected`` is given.
    expected
        How many runs you expected before there were any, of the arms that you will choose together. It says as well
        that runs are numbered in the order in which they were made, each ended before the next began.
    return_range
        Two numbers between which the returns of all runs lie, such as a cap on costs, that you fixed before.
    on_unmatched
        Whether runs in which a step is missing are refused, or kept or left out ("report").

    Returns
    -------
    WholeRuns
        The runs, for ``certify`` and ``Question``.

    Raises
    ------
    DataError
        If a run lacks a step and is not left out, or a column is missing.

    Examples
    --------
    >>> import pandas as pd
    >>> from plumdp import case_study
    >>> from plumdp.data import record
    >>> study = case_study("betting:5")
    >>> runs = record(study.model, study.true_point, 3, rng=1, max_steps=5)
    >>> read_whole_runs(study.model, pd.DataFrame(runs.columns()))
    WholeRuns(3 runs, 15 steps)
    """
    refuse({Trait.EVERY_STEP, *model.traits}, "read_whole_runs")
    if expected is not None and not 1 <= expected < inf:
        raise DataError(Option("expected", expected), ": give the number of runs that you expected, at least 1")
    with open_log(*files_of(source, model)) as log:
        given = read_mapping(model.graph, format)
        mapping = without_actions(model.graph, log.columns, format, given)
        form, found = find_columns(model.graph, log.columns, format, mapping)
        has_periods = is_period(format.steps) and form == "trajectories" and STEP in found
        if has_periods:
            found |= {STEP: in_periods(str(format.steps), str(found[STEP]))}
        of_runs = columns_of_runs(model.graph, format.columns)
        if of_runs and "arm" not in of_runs:
            raise DataError(Option("columns", of_runs), ": this is about arms; name their column, too: arm")
        if EPISODE not in found or STEP not in found or log.engine == SPARK:
            raise NoRuns(
                "this needs whole runs, in files or a data frame in memory: columns for the run and the step of each "
                f"row; this log has {', '.join(log.columns)}; say which they are with ",
                Option("columns", {"episode": ..., "step": ...}),
            )
        for name, column in of_runs.items():
            if column not in log.columns:
                there = ", ".join(log.columns)
                raise DataError(Option("columns", {name: column}), f": the log has no such column, only {there}")
        found |= {f"{name} of the run": column for name, column in of_runs.items()}
        left_out = others_of(log.part)
        block = _ordered(log.keep(source_columns(found.values()), is_read_again=False), model.graph, form, found)
    matcher = Matcher(model.graph, mapping.action_names)
    may_be_torn = has_periods and not of_runs and on_unmatched == "report"
    if on_unmatched == "report":
        block, said = _without_gaps(block, may_be_torn=may_be_torn)
        left_out = (*left_out, *said)
    rows = _OrderedRows(block, np.flatnonzero(np.diff(block[_RUN], prepend=-1)))
    if not len(rows.first):
        raise DataError("there are no runs in the log")
    has_order = block[EPISODE].dtype.kind == "M" or not np.isnan(block[_NUMBER]).any()
    if expected is not None and not has_order:
        raise DataError(Option("expected", expected), ": runs need an order; number them as they were made: 1, 2, 3, …")
    only_ordered = _require_all_steps(rows, may_be_torn=may_be_torn)
    state = _states(rows, matcher, model, state_columns(model.graph))
    action = matcher.find_actions(block)
    if mapping is not given:  # of a chain, whose log names no actions
        action = model.graph.action[model.graph.first_choice[:-1]][state].astype(action.dtype)
    if form == "transitions":
        after = _states(rows, matcher, model, next_columns(model.graph))
        _require_connected(rows, state, after, model.graph)
        made = _with_ends(rows, state, action, after, only_ordered)
    else:
        action[rows.last] = -1
        bounds, names = np.append(rows.first, len(state)), block[EPISODE][rows.first]
        made = WholeRuns(names, bounds, block[STEP], state, action, only_ordered)
    values: dict[str, Any] = {name: _once(rows, f"{name} of the run") for name in of_runs}
    if "arm" in values:
        values["arm"] = np.array([shown(each) for each in values["arm"]])  # numbers are names too
    values |= {"began_together": has_periods and not only_ordered}  # or it would have been refused
    values |= {"return_range": return_range, "censoring": format.censoring}
    if may_be_torn and not only_ordered:
        late = (made.label - made.label[made.first[made.run]]).astype(np.int64) - made.time
        values |= {"missing": late if late.any() else None}
    return replace(made, expected=expected, rests_on=left_out, **values)


def _once(rows: _OrderedRows, column: str) -> npt.NDArray[Any]:
    """Return the value of a column in each run; refuse a run that changes it."""
    values = rows.block[column]
    is_missing = np.array([value is None or value != value for value in values.tolist()])
    if is_missing.any():
        n_runs = len(np.unique(rows.block[_RUN][is_missing]))
        runs = f"as in {n_runs:,} of {number_of(len(rows.first), 'run')}"
        raise DataError(
            f"{rows.place(int(np.argmax(is_missing)))}: the {column} is missing, {runs}; it was fixed "
            "before the run began, so write it into all rows of the run, also if it never acts"
        )
    is_changed = rows.follows & (values[1:] != values[:-1])
    if is_changed.any():
        row = int(np.argmax(is_changed)) + 1
        raise DataError(f"{rows.place(row)}: the {column} changes here from {values[row - 1]!r} to {values[row]!r}")
    return np.asarray(values[rows.first])


class _OrderedRows(NamedTuple):
    """The rows of a log, ordered by run and step, and the first of each run."""

    block: Block
    first: Indices

    @property
    def last(self) -> Indices:
        return np.append(self.first[1:], len(self.block[_RUN])) - 1

    @property
    def follows(self) -> BoolArray:
        """Whether each row but the first is of the same run as the one before."""
        return np.asarray(np.diff(self.block[_RUN]) == 0)

    def place(self, row: int) -> str:
        return f"run {shown(self.block[EPISODE][row])}, step {shown(self.block[STEP][row])}"


def _ordered(log: LogTable, graph: Graph, form: LogForm, found: Mapping[str, Source]) -> Block:
    """Return all rows by run and step; steps are numbers, in whatever form."""
    table, types = log.table, log.types
    keys = dict(zip(state_columns(graph, form), state_columns(graph), strict=True))
    columns = {keys.get(name, name): text for name, text in columns_sql(found, types, "trajectories").items()}
    if _CHANCE in columns:
        columns[_CHANCE] = f"TRY_CAST({columns[_CHANCE]} AS DOUBLE)"  # of texts too
    rows = select_sql(columns, table)
    missing = f"SELECT count(*) FROM ({rows}) WHERE {quoted(EPISODE)} IS NULL OR {quoted(STEP)} IS NULL"
    ((n,),) = log.connection.execute(missing).fetchall()
    if n:
        raise DataError(
            f"{number_of(n, 'row')} without a run, or without a step that is a number or a time; name both in each row"
        )
    value = f"TRY_CAST({quoted(EPISODE)}::VARCHAR AS DOUBLE)"  # of texts such as "10" too; dates have none
    number = f"CASE WHEN bool_and({value} NOTNULL) OVER () THEN {value} ELSE 'nan' END AS {quoted(_NUMBER)}"
    order = f"{quoted(_NUMBER)}, {quoted(EPISODE)}"
    rank = f"dense_rank() OVER (ORDER BY {order}) AS {quoted(_RUN)}"
    numbered = f"SELECT *, {rank} FROM (SELECT *, {number} FROM ({rows}))"
    return columns_of(log.connection.execute(f"{numbered} ORDER BY {order}, {quoted(STEP)}"))


def _without_gaps(block: Block, *, may_be_torn: bool) -> tuple[Block, tuple[str, ...]]:
    """Return the rows of runs in which no row is missing, and what is assumed of the others, in words.

    If runs may be torn, those alone are left out whose first row is missing, if they are but a few.
    """
    run, step = block[_RUN], block[STEP]
    follows, apart = np.diff(run) == 0, np.diff(step)
    is_gap = follows & (apart > 1)
    if np.array_equal(is_gap, follows):  # steps only put the rows in order
        return block, ()
    first = np.flatnonzero(np.diff(run, prepend=-1))
    left, what = np.unique(run[1:][is_gap]), "a row"
    if may_be_torn:
        left, what = run[first][step[first] > step.min()], "the first row"
        left = left if len(left) <= FEW_LATE * len(first) else left[:0]
    kept = ~np.isin(run, left)
    n = f"that {what} is missing in {len(left):,} of {number_of(len(first), 'run')}"
    said = (f"{n}, which are left out, has nothing to do with how these runs went",) if len(left) else ()
    return {name: values[kept] for name, values in block.items()}, said


def _require_all_steps(rows: _OrderedRows, *, may_be_torn: bool) -> bool:
    """Refuse steps that come twice, or are missing; return whether steps only order the rows, so that none shows."""
    step = rows.block[STEP]
    apart = np.diff(step)[rows.follows]
    behind = np.flatnonzero(rows.follows) + 1
    if (apart == 0).any():
        raise DataError(f"{rows.place(int(behind[np.argmax(apart == 0)]))}: this step has several rows; keep one")
    is_gap = apart != 1
    if is_gap.all():
        return len(apart) > 0
    if is_gap.any() and not may_be_torn:
        raise DataError(f"{rows.place(int(behind[np.argmax(is_gap)]))}: the row of the step before is missing")
    begins = step[rows.first]
    if (begins != begins.min()).any():
        late = int(rows.first[np.argmax(begins != begins.min())])
        raise DataError(f"{rows.place(late)}: the run begins here, others begin with step {shown(begins.min())}")
    return False


def _states(rows: _OrderedRows, matcher: Matcher, model: ParametricMDP, columns: list[str]) -> Codes:
    state, is_unknown = matcher.find_states(rows.block, columns)
    out_of_table = out_of_table_of(model)
    if out_of_table is not None:
        state[is_unknown] = out_of_table
    if (state < 0).any():
        row = int(np.argmax(state < 0))
        values = zip(model.graph.states, (shown(rows.block[name][row]) for name in columns), strict=True)
        where = ", ".join(f"{name}={value}" for name, value in values)
        raise DataError(f"{rows.place(row)}: the model has no state ({where}), so that it is not known what it counts")
    return state


def _require_connected(rows: _OrderedRows, state: Codes, after: Codes, graph: Graph) -> None:
    """Refuse a step that leads to another state than the one in which the next step is taken."""
    is_torn = rows.follows & (after[:-1] != state[1:])
    if is_torn.any():
        row = int(np.argmax(is_torn))
        led_to, next_row = (graph.describe_state(int(each)) for each in (after[row], state[row + 1]))
        raise DataError(f"{rows.place(row)}: the step leads to ({led_to}), but the next one is taken in ({next_row})")


def _with_ends(rows: _OrderedRows, state: Codes, action: Codes, after: Codes, only_ordered: bool) -> WholeRuns:
    """Return transitions as runs, with the state behind the last step of each as a row of its own."""
    row = np.insert(np.arange(len(state)), rows.last + 1, rows.last)
    is_end = np.insert(np.zeros(len(state), dtype=np.bool_), rows.last + 1, True)
    bounds = np.append(rows.first, len(state)) + np.arange(len(rows.first) + 1)
    states, actions = np.where(is_end, after[row], state[row]), np.where(is_end, -1, action[row])
    return WholeRuns(
        rows.block[EPISODE][rows.first], bounds, rows.block[STEP][row] + is_end, states, actions, only_ordered
    )

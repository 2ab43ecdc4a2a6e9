"""Counts a log unit by unit: one query counts all of them, and each becomes a ``Log`` of its own.

Rows by unit, runs by unit and their steps are sorted by unit in tables of DuckDB, and read page by page. What is made
of the rows of a unit is made as of a log that has no others. A unit whose rows have to be looked at one by one, since
some are rejected or alike, is read by itself, and so are all units where what is stated needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Order
from plumdp.data.columns import STAGE
from plumdp.data.counts import Sampling
from plumdp.data.duckdb_engine import Block, pages
from plumdp.data.duckdb_tables import broken_lines
from plumdp.data.frames import SPARK
from plumdp.data.log import Log
from plumdp.data.log_format import AS_NAMED, LogFormat
from plumdp.data.log_pilots import Moments
from plumdp.data.logs import Begun, Reading
from plumdp.data.names import quoted
from plumdp.data.open_logs import files_of, no_units, open_log
from plumdp.data.periods import is_period
from plumdp.data.raw_logs import as_raw, unit_sql
from plumdp.data.sql import select_sql
from plumdp.data.steps import COUNTED, PLACED, UNIT, LogFacts, LogSteps, facts_of, stage_sql
from plumdp.model.parametric import ParametricMDP

UnitLog: TypeAlias = Log | DataError
"""The log of a unit, or why it cannot be read."""


@dataclass(frozen=True)
class UnitLogs:
    """The names of units, sorted, and what was counted of each, which can be gone through once."""

    names: Sequence[str]
    logs: Iterator[tuple[str, UnitLog]]

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[tuple[str, UnitLog]]:
        return self.logs


def read_units(
    model: ParametricMDP,
    source: Any,
    by: str,
    format: LogFormat = AS_NAMED,
    *,
    sampling: Sampling = "adaptive",
    order: Order | None = None,
    expected: float | None = None,
    pilot: bool = True,
    on_unmatched: Literal["error", "report"] = "error",
) -> UnitLogs:
    """Return the name of each unit of a log with what ``read_log`` returns for its rows alone, in the order of names.

    One query counts all units. Those with rows that do not fit the model are read again, each by itself, and so are
    all units with ``order="time"``, ``known``, dates as steps, or gaps.

    Parameters
    ----------
    model
        The model whose transitions are counted.
    source
        Files or a data frame, as in ``read_log``.
    by
        The column that names the unit of a row: a pump, a patient, a site.
    format, sampling, order, expected, pilot, on_unmatched
        As in ``read_log``, the same for all units.

    Returns
    -------
    UnitLogs
        Pairs of a unit and its log, or a ``DataError`` in place of a log whose rows cannot be counted. Each is made
        when it is asked for, and they can be gone through once.

    Examples
    --------
    >>> import pandas as pd
    >>> from plumdp import case_study
    >>> rows = {"money": [10, 10, 10], "state_step": [0, 0, 0], "next_money": [11, 9, 14], "next_step": [1, 1, 1]}
    >>> frame = pd.DataFrame({"player": ["Ann", "Ann", "Bob"], "action": "bet1", **rows})
    >>> for player, log in read_units(case_study("betting:5").model, frame, "player"):
    ...     print(player, "cannot be read" if isinstance(log, DataError) else log.report)
    Ann 2 log rows: 2 matched, 0 rejected
    Bob cannot be read
    """
    asked = Reading(**{name: each for name, each in locals().items() if name != "by"})
    asked = replace(asked, source=files_of(source, model)[0])  # a stream of rows is read once
    names = _names(asked, by)
    return UnitLogs(names, _each(asked, by, names))


def _each(asked: Reading, by: str, names: Sequence[str]) -> Iterator[tuple[str, UnitLog]]:
    together = _together(asked, by)
    for name in names:
        log = next(together, None)
        yield name, _alone(asked, by, name) if log is None else log


def _names(asked: Reading, by: str) -> list[str]:
    """Return the units of a log, sorted."""
    with open_log(*files_of(asked.source, asked.model)) as log:
        if log.engine == SPARK:
            raise DataError("a table of Spark is counted by unit inside Spark, with applyInPandas: see Many units")
        if by not in log.columns:
            raise no_units(by, log.columns)
        kept = log.keep([by], is_read_again=False)
        return sorted(name for (name,) in kept.rows(f"SELECT DISTINCT {unit_sql(by)} FROM {kept.table}"))


def _alone(asked: Reading, by: str, unit: str) -> UnitLog:
    """Return the log of one unit, whose rows are read by themselves."""
    if not unit:
        return DataError(f"these rows have no value in column {by}, so that it is not known of which unit they are")
    try:
        return replace(asked, source=as_raw(asked.source).only(by, unit)).read()
    except DataError as error:
        return error


_UNITS, _RUNS, _COUNTS, _STEPS, _ENDS = "units", "runs_of_units", "counts_of_units", "steps_of_units", "ends_of_units"
_CODE, _NUMBER, _NAMED = "number of the unit", "number of the run", "run of the unit"
_MOST_STAGES = 64  # that an expression tells apart


def _together(asked: Reading, by: str) -> Iterator[UnitLog | None]:
    """Yield the logs of all units, nothing for one that is to be read alone, and no more if all others are."""
    is_plain = asked.order != "time" and not is_period(asked.format.steps) and not asked.format.known
    if not is_plain or as_raw(asked.source).memory is not None or asked.model.counted.gaps is not None:
        return
    with asked.begun(by) as (begun, relation):
        log = relation.log
        if (
            log.engine == SPARK
            or relation.form == "counts"
            or (relation.run is not None and not _are_runs_named(relation, begun))
        ):
            return
        units = f"SELECT DISTINCT {relation.expressions[UNIT]} AS {quoted(UNIT)} FROM {log.table}"
        log.run(_UNITS, f"SELECT *, row_number() OVER (ORDER BY {quoted(UNIT)}) - 1 AS {quoted(_CODE)} FROM ({units})")
        names = [name for name, _ in log.rows(f"SELECT * FROM {_UNITS} ORDER BY 2")]
        n_runs = _number_runs(relation, len(names))
        whole = facts_of(relation)
        moments = {n: begun.moments(replace(whole, find_runs=_known(n))) for n in {*n_runs}}
        ends = _make_tables(relation, sorted({end for each in moments.values() if each for end in each.stages}))
        if log.files and broken_lines(log.connection):
            return
        tables = [_slices(log.connection, table, len(names)) for table in (_COUNTS, _STEPS, _ENDS)]
        for name, n, *blocks in zip(names, n_runs, *tables, strict=True):
            try:
                yield begun.finish(_facts(whole, name, n, ends, *blocks)) if name else None
            except DataError as error:
                yield error


def _are_runs_named(relation: LogSteps, begun: Begun) -> bool:
    """Return whether all rows name their runs, in order if that is stated, and none goes on in another file."""
    assert begun.planned is not None
    try:
        _, are_named = relation.find_runs(in_order=begun.planned.order == "runs")
    except DataError:
        return False
    return are_named and relation.shared_run() is None


def _known(n: int) -> Callable[[bool], tuple[int, bool]]:
    return lambda in_order: (n, True)


def _number_runs(relation: LogSteps, n_units: int) -> list[int]:
    """Make a table of the numbers of runs, and return how many runs each unit has; none if runs do not matter."""
    log = relation.log
    if relation.run is None:
        return [0] * n_units
    columns = f"run AS {quoted(_NAMED)}, number AS {quoted(_NUMBER)}"
    log.run(_RUNS, f"SELECT {columns}, run.unit AS {quoted(UNIT)} FROM ({relation.numbered_runs})")
    n = f"SELECT {quoted(_CODE)}, count(*) FROM {_RUNS} JOIN {_UNITS} USING ({quoted(UNIT)}) GROUP BY 1"
    found = dict(log.rows(n))
    return [found.get(code, 0) for code in range(n_units)]


def _make_tables(relation: LogSteps, ends: Sequence[float]) -> Sequence[float]:
    """Make tables of counts, steps and ends of runs, sorted by unit; return the last run of each stage that they have.

    There are no stages if runs are not numbered, and one for each run if units of other lengths have too many.
    """
    log, columns, table = relation.log, relation.expressions, relation.log.table
    code, unit, number = map(quoted, (_CODE, UNIT, _NUMBER))
    if ends:
        numbers = f"SELECT {quoted(_NAMED)}, {number} FROM {_RUNS}"
        table = f"(SELECT * FROM {table} LEFT JOIN ({numbers}) ON {relation.run_sql} = {quoted(_NAMED)})"
        few = len(ends) <= _MOST_STAGES
        columns = columns | {STAGE: stage_sql(number, f"{[*ends]}", len(ends)) if few else f"coalesce({number}, 0)"}
        relation = replace(relation, in_order=False)  # of the rows of a join
        ends = [*ends, inf] if few else range(1 + int(max(ends)))
    relation.make_counts(columns, table)
    keyed = select_sql({"*": "*"} | relation.hashes, COUNTED)
    log.run(_COUNTS, f"SELECT * FROM ({keyed}) JOIN {_UNITS} USING ({unit}) ORDER BY {code}")
    steps, lasts = "SELECT 0 AS none WHERE FALSE", "SELECT 0 AS none WHERE FALSE"
    if relation.is_followed:
        told = {_CODE: code, "run": "hash(run)", "step": "step::DOUBLE", "own": "own", _NUMBER: "0"}
        placed = f"(SELECT *, run.unit AS {unit} FROM {PLACED}) JOIN {_UNITS} USING ({unit})"
        if relation.run is not None:
            told[_NUMBER], numbers = number, f"SELECT {quoted(_NAMED)}, {number} FROM {_RUNS}"
            placed = f"{placed} JOIN ({numbers}) ON run = {quoted(_NAMED)}"
        steps = f"{select_sql(told, placed)} ORDER BY 1, 2, 3"
        lasts = f"SELECT * FROM ({relation.last_states_sql(once=False)}) JOIN {_UNITS} USING ({unit}) ORDER BY {code}"
    log.run(_STEPS, steps)
    log.run(_ENDS, lasts)
    return ends


def _slices(connection: Any, table: str, n_units: int) -> Iterator[Block | None]:
    """Yield the rows of each unit in a table that is sorted by unit, nothing for a unit without rows."""
    rest: Block = {}
    code = 0
    for page in pages(connection, table):
        block = {name: _joined(rest[name], values) for name, values in page.items()} if rest else page
        codes = block[_CODE]
        while code < codes[-1]:
            first, last = np.searchsorted(codes, [code, code + 1])
            yield {name: values[first:last] for name, values in block.items()} if last > first else None
            code += 1
        first = np.searchsorted(codes, code)
        rest = {name: values[first:] for name, values in block.items()}
    for each in range(code, n_units):
        yield rest if rest and each == code else None


def _joined(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[Any]:
    join: Any = np.ma.concatenate if np.ma.isMaskedArray(first) or np.ma.isMaskedArray(second) else np.concatenate
    joined: npt.NDArray[Any] = join([first, second])
    return joined


def _facts(
    whole: LogFacts,
    unit: str,
    n_runs: int,
    ends: Sequence[float],
    counts: Block | None,
    steps: Block | None,
    lasts: Block | None,
) -> LogFacts:
    """Return what the tables have of one unit, as queries would find it of its rows alone."""

    def count(moments: Moments | None) -> Iterator[Block]:
        if counts is not None:
            staged = dict(counts)
            stage = staged.pop(STAGE, None)
            if stage is not None and moments is not None and moments.sizes:
                last = np.asarray(ends)[np.asarray(stage, dtype=np.int64)]
                staged[STAGE] = np.searchsorted(moments.stages, last)
            yield staged

    def past_pages(moments: Moments | None, size: int) -> Iterator[Block]:
        if steps is not None:
            told = {name: steps[name] for name in ("run", "step", "own")}
            is_pilot = steps[_NUMBER] <= size if moments is not None and size else np.zeros(len(told["run"]), np.bool_)
            yield told | {"is_pilot": is_pilot}

    return replace(
        whole,
        unit=unit,
        find_runs=_known(n_runs),
        count=count,
        legend=lambda: count(None),
        past_pages=past_pages,
        last_states=lambda once: lasts,
    )

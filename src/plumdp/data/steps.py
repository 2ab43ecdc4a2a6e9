"""The steps of a log as one relation, and what is selected from it: counts, runs, and examples of what does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from plumdp.base.errors import DataError, Option
from plumdp.base.progress import tell
from plumdp.base.vocabulary import EPISODE, LogForm
from plumdp.base.vocabulary import Steps as StepsOption
from plumdp.data.columns import (
    N_RUNS,
    NEXT_AFTER,
    PARTIAL,
    PLACE,
    STAGE,
    STEP,
    Source,
    column_of,
    next_columns,
)
from plumdp.data.duckdb_tables import (
    FILE,
    MEMORY,
    Block,
    column_types,
    columns_of,
    keeps_order,
    numbered_scan,
    pages,
    scan,
    text_bytes,
    watched,
)
from plumdp.data.frames import FRAME, SPARK, register_frame
from plumdp.data.log_pilots import Moments, SharedRun, no_order, not_numbered
from plumdp.data.mapping_language import MappingTerm
from plumdp.data.mapping_sql import DATES, IN_ORDER, NUMBERS, columns_sql, is_time, mapped_sql
from plumdp.data.names import PLACE_OF_ROW, literal, quoted
from plumdp.data.periods import moment_of, not_dates, not_whole, period_of
from plumdp.data.raw_logs import FIRST_RUNS, PLAIN_TEXT, FirstRuns, TextFormat, first_runs_sql, part_sql
from plumdp.data.same_files import OF_FRAME
from plumdp.data.sql import Every, any_repeated_sql, count_sql, pieces_sql, rows_sql, select_sql
from plumdp.model.graph import Graph

_COUNTED, _PIECES, _LASTS = "counted", "pieces", "lasts"  # tables of counts, and of pieces of runs; last runs of stages
_ROWS, _NUMBER = "kept_rows", "number_of_row"  # the table of rows that were kept; the number of a row, from 1
_KEPT = 0.2 * MEMORY  # bytes of text whose rows are kept in memory, where they take two to three times as much
_FIRST = 10_000  # rows, by which most logs show that they are in no order
_NUMBERED = 20  # text files whose rows are numbered for examples


@dataclass(frozen=True, eq=False)
class LogTable:
    """A log as a table: files or a data frame, which DuckDB reads, or a data frame of Spark."""

    connection: Any
    table: str  # what to select from
    types: Mapping[str, str]  # of columns
    files: Sequence[str] = ()
    frame: Any = None  # if the log is one; ``keep`` makes it a table, and finds the types of its columns
    engine: str = ""  # where the rows come from, if they are in no order that stays; ``SPARK`` counts them itself
    text: TextFormat = PLAIN_TEXT
    part: FirstRuns | None = None  # those runs alone

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [*self.types]

    def keep(self, columns: Sequence[str], *, is_read_again: bool) -> LogTable:
        """Return the log with these columns; in memory, if its files take long to read again, and fit there well."""
        if self.frame is not None:
            part = [] if self.part is None else [*filter(None, [self.part.run, self.part.step])]
            register_frame(self.connection, self.frame, [*dict.fromkeys([*columns, *part])])
            types = column_types(self.connection, FRAME)
            self.find_first_runs(table := self.text.plain(FRAME, types))
            return replace(self, types=types, table=self.parted(table))
        is_small = 0 < text_bytes(self.files) <= _KEPT and keeps_order(self.table)
        return self.kept(columns) if is_read_again and is_small else self

    def kept(self, columns: Sequence[str]) -> LogTable:
        """Return the log with these columns, each row kept where it is quickly read again."""
        if not self.files or self.table == _ROWS or self.engine == SPARK:
            return self
        names, rows = ", ".join(map(quoted, columns)), self.table
        if len(self.files) > 1:
            words = ", ".join(map(literal, self.files))  # instead of as many texts as there are rows
            names += f", CAST({quoted(FILE)} AS ENUM ({words})) AS {quoted(FILE)}"
            rows = self.scan(with_file=True)
        self.run(_ROWS, f"SELECT {names} FROM {rows}")
        return replace(self, table=_ROWS, types={name: self.types[name] for name in columns})

    def scan(self, *, with_file: bool = False) -> str:
        """Return the SQL source of the files of the log."""
        return self.parted(scan(self.connection, self.files, text=self.text, with_file=with_file))

    def parted(self, table: str) -> str:
        """Return the rows of a table that are of the runs which are meant."""
        return table if self.part is None else part_sql(self.part, table)

    def find_first_runs(self, table: str) -> None:
        """Find the runs that come first, of a log that is read in part."""
        if self.part is not None and self.part.run:
            table = scan(self.connection, self.part.of, text=self.text) if self.part.of else table
            names = column_types(self.connection, table)
            for name in filter(None, (self.part.run, self.part.step)):
                if name not in names:
                    raise DataError(
                        f"the log has no column {name}, which says what its first runs are; it has {', '.join(names)}"
                    )
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {FIRST_RUNS} AS {first_runs_sql(self.part, table)}")

    def run(self, table: str, query: str) -> None:
        """Make a table of what a query gives, and say meanwhile how much of it is done."""

        def show(done: int, total: int) -> None:
            if done < total:
                tell(f"{100 * done // total} % of the log are read")

        with watched(self.connection, show, 0.0, 1.0):
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {query}")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows that a query gives."""
        found: list[tuple[Any, ...]] = self.connection.execute(query).fetchall()
        return found

    def content(self, columns: Sequence[str]) -> str:
        """Return a hash of some columns of a data frame that was kept, whatever the order of its rows."""
        names = ", ".join(map(quoted, sorted(columns)))
        n, total = self.rows(f"SELECT count(*), sum(hash({names})) FROM {FRAME}")[0]
        return f"{OF_FRAME}{n} {total}"

    @property
    def is_numbered(self) -> bool:
        """Whether rows can be numbered in a short time."""
        is_near = not any("://" in file for file in self.files)
        are_few = len(self.files) <= _NUMBERED or not text_bytes(self.files)
        return not self.engine and (self.table == _ROWS or (is_near and are_few))

    def numbered(self, *, as_they_are: bool = False) -> str:
        """Return the SQL source of the log with ``PLACE_OF_ROW``; ``as_they_are``: with all columns."""
        if self.files and (as_they_are or self.table != _ROWS or self.part is not None):
            return self.parted(numbered_scan(self.connection, self.files, self.text))
        file, first = "0", "0"
        if len(self.files) > 1:
            file, first = f"enum_code({quoted(FILE)})", f"min(rowid) OVER (PARTITION BY {quoted(FILE)})"
        row = f"rowid - {first} + 1" if self.files else "row_number() OVER ()"
        return f"(SELECT *, {{'file': {file}, 'row': {row}}} AS {PLACE_OF_ROW} FROM {self.table})"


@dataclass(frozen=True, eq=False)
class LogSteps:
    """The relation of steps: a log, read as runs of a graph of some form, and where its columns come from."""

    log: LogTable
    graph: Graph
    form: LogForm
    columns: Mapping[str, Source]
    run: str | None = None  # the column that names the run of a row, if it is asked for
    in_order: bool = False  # whether each run lies in one piece, its steps ascending

    @cached_property
    def expressions(self) -> dict[str, str]:
        """The columns as SQL."""
        return columns_sql(self.columns, self.log.types, self.form, is_warehouse=self.log.engine == SPARK)

    @property
    def _run(self) -> str:
        return self.expressions[EPISODE] if EPISODE in self.columns else quoted(str(self.run))

    @property
    def dates(self) -> tuple[str, str]:
        """The column of steps, and the type of its values."""
        column = column_of(self.columns[STEP])
        return column, self.log.types[column]

    def arranged(self, used: Sequence[str]) -> LogSteps:
        """Return the steps after a look at how runs lie; transitions in no order are kept, as they are read again."""
        if self.log.engine == SPARK or self.form == "counts" or (STEP not in self.columns and self.run is None):
            return self
        several = len(self.log.files) > 1 and self.run is not None
        file, table = quoted(FILE) if several else "", self.log.table
        if several and table != _ROWS:
            table = self.log.scan(with_file=True)
        first = f"(SELECT * FROM {self.log.table} LIMIT {_FIRST})"
        is_off = self.run is None and self._is_off(first, "")  # then runs need not be found
        if not (is_off or self._is_off(table, file)):
            return replace(self, in_order=True)
        is_kept = self.form == "transitions" and STEP in self.columns
        return replace(self, log=self.log.kept(used) if is_kept else self.log)

    def _is_off(self, table: str, file: str) -> bool:
        """Find the pieces that runs lie in, and return whether they are not in order."""
        step = self._step_number
        self.log.run(_PIECES, pieces_sql(self._run, step, file, table))
        pieces = f"SELECT sum(n) AS n, bool_or(is_off) AS is_off FROM {_PIECES} GROUP BY run"
        ((is_off,),) = self.log.rows(f"SELECT bool_or(is_off OR n > 1) FROM ({pieces})")
        return not step or bool(is_off) or bool(self.log.engine)

    @property
    def _step_number(self) -> str:
        """The step as a number; nothing if its column has another type, or there is none."""
        step = self.columns.get(STEP)
        if step is None:
            return ""
        kind = self.log.types[step].partition("(")[0] if isinstance(step, str) else "DATE"
        is_ordered = kind in (*NUMBERS, "VARCHAR") or is_time(kind)
        is_known = is_ordered or self.form == "trajectories"  # of which other types are refused
        return columns_sql({STEP: step}, self.log.types, "trajectories")[STEP] if is_known else ""

    def count(self, moments: Moments | None = None) -> Iterator[Block]:
        """Yield blocks of different rows and how often each occurs, with their place in the run where that matters.

        With ``moments``, each row has its stage, or how often it occurs in the first runs.
        """
        if self.log.engine == SPARK:
            yield self._count_on_spark(moments)
            return
        columns, table = self._staged(moments) if moments is not None and moments.sizes else (self.expressions, "")
        table = table or self.log.table
        if self.form == "counts":
            self.log.run(_COUNTED, select_sql(columns, table))
        elif self.form == "transitions":
            once = STEP in columns and not self.in_order and self._has_repeated(columns)
            self.log.run(_COUNTED, count_sql(self.graph, self.form, columns, table, once=once))
        else:
            self.log.run(_COUNTED, count_sql(self.graph, self.form, columns, table, in_order=self.in_order))
            repeated = f"SELECT 1 FROM {_COUNTED} WHERE {quoted(PLACE)} = 'duplicate' LIMIT 1"
            if not self.in_order and self.log.rows(repeated):  # which may be copies of a row
                self.log.run(_COUNTED, count_sql(self.graph, self.form, columns, table, once=True))
        yield from pages(self.log.connection, _COUNTED)

    def _has_repeated(self, columns: Mapping[str, str]) -> bool:
        return bool(self.log.rows(any_repeated_sql(columns, self.log.table)))

    def _count_on_spark(self, moments: Moments | None) -> Block:
        """Return the counts as the query for warehouses has them."""
        table, columns, form = self.log.table, dict(self.expressions), self.form
        if form == "counts":
            return columns_of(self.log.connection.execute(select_sql(columns, table)))
        n_runs = None
        if moments is not None and moments.sizes:
            n_runs, columns[EPISODE] = N_RUNS, quoted(moments.column)
        step = self.columns.get(STEP)
        is_ordered = form == "trajectories" and isinstance(step, str) and is_time(self.log.types[step])
        write = partial(count_sql, n_runs=n_runs, is_ordered=is_ordered, is_warehouse=True)

        def counted(once: bool) -> Block:
            query = write(self.graph, form, columns, table, once=once)
            return columns_of(self.log.connection.execute(query))

        if form == "transitions":
            return counted(step is not None and self._has_repeated(columns))
        block = counted(False)
        return counted(True) if "duplicate" in block[PLACE] else block  # which may be copies of a row

    def each_row(self, *, once: bool, every: Every) -> str:
        """Return the query for what is counted row by row, see ``rows_sql``."""
        return rows_sql(self.graph, self.form, self.expressions, self.log.numbered(), once=once, every=every)

    def find_runs(self, *, in_order: bool) -> tuple[int, bool]:
        """Return the number of runs, and whether each row names its run; ``in_order`` refuses unordered names."""
        run, is_spark = str(self.run), self.log.engine == SPARK
        kind = self.log.types[run].partition("(")[0].partition(" ")[0]
        rows = f"SELECT {quoted(run)} AS run FROM {self.log.table}" if is_spark else f"SELECT run FROM {_PIECES}"
        is_placed = "TRY_CAST(run AS DOUBLE) IS NOT NULL" if kind == "VARCHAR" else "run IS NOT NULL"
        numbers = f"count(run), count(*), count(CASE WHEN {is_placed} THEN 1 END)"
        ((named, all_runs, placed),) = self.log.rows(f"SELECT {numbers} FROM (SELECT DISTINCT * FROM ({rows}))")
        types_in_order = IN_ORDER if is_spark else (*IN_ORDER, "VARCHAR")
        if in_order and (placed < named or not kind.startswith(types_in_order)):
            raise not_numbered(run, self.log.types[run])
        return named, named == all_runs

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        ((n,),) = self.log.rows(f"SELECT count(*) FROM {self.log.table}")
        return int(n)

    def require_order(self) -> None:
        """Refuse rows that do not lie in one order."""
        if self.log.engine:
            raise no_order(self.log.engine)
        if not keeps_order(self.log.table):
            by_time = Option("order", "time")
            raise DataError(by_time, ": the files have their columns in different orders; read one at a time")

    def _staged(self, moments: Moments) -> tuple[dict[str, str], str]:
        """Return the columns with the stage of each row, by its run or by its number, and what to select them from."""
        ends, table = moments.stages, self.log.table
        if not moments.column:
            stage = _stage_sql(_NUMBER, f"{[*ends]}", len(ends))
            return self.expressions | {STAGE: stage}, f"(SELECT *, row_number() OVER () AS {_NUMBER} FROM {table})"
        kind = self.log.types[moments.column]
        runs = f"SELECT DISTINCT {_sorted_by('run', kind)} AS run FROM {_PIECES} WHERE run NOTNULL"
        numbered = f"SELECT run, row_number() OVER (ORDER BY run) AS number FROM ({runs})"
        chosen = f"SELECT list(run ORDER BY number) FROM ({numbered}) WHERE list_contains({[*ends]}::BIGINT[], number)"
        self.log.connection.execute(f"SET VARIABLE {_LASTS} = ({chosen})")  # which a query has as constants
        stage = _stage_sql(_sorted_by(self._run, kind), f"getvariable('{_LASTS}')", len(ends))
        return self.expressions | {STAGE: stage}, table

    def shared_run(self) -> SharedRun | None:
        """Return a run that is in several files and is not seen to go on there; None if there is no such run.

        A run goes on if its steps do: from one file to the next, or if the log is in no order, if none is missing.
        """
        if len(self.log.files) < 2:
            return None
        several = "list(file::VARCHAR ORDER BY file) AS files"
        shared = f"SELECT run, {several} FROM {_PIECES} WHERE run NOTNULL GROUP BY run HAVING count(*) > 1"
        if self.in_order:
            shared += " AND sum(goes_on::INTEGER) < count(*) - 1"
        elif self._step_number:
            steps = f"SELECT {self._run} AS run, {self._step_number} AS step FROM {self.log.table}"
            has_all = "count(step) = count(*) AND count(DISTINCT step) = max(step) - min(step) + 1"
            shared += f" AND run NOT IN (SELECT run FROM ({steps}) WHERE run NOTNULL GROUP BY run HAVING {has_all})"
        for name, places, n in self.log.rows(f"SELECT *, count(*) OVER () FROM ({shared}) ORDER BY run LIMIT 1"):
            return SharedRun(name, sorted(places, key=[*self.log.files].index), n, STEP in self.columns)
        return None

    @property
    def has_overlap(self) -> bool:
        """Whether runs of a small log overlap, by dates, or by numbers that do not begin anew in each run."""
        files = self.log.files
        is_small = self.log.engine != SPARK and (not files or 0 < text_bytes(files) <= _KEPT)  # or one scan more
        if not {EPISODE, STEP} <= {*self.columns} or not self._step_number or self.form == "counts" or not is_small:
            return False
        step = quoted(self.dates[0]) if is_time(self.dates[1]) else self._step_number  # dates as every engine has them
        rows = f"SELECT {self._run} AS run, {step} AS step FROM {self.log.table}"
        spans = (
            f"SELECT min(step) AS began, max(step) AS ended FROM ({rows}) AS steps WHERE run IS NOT NULL GROUP BY run"
        )
        before = "max(ended) OVER (ORDER BY began, ended ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
        found = f"SELECT began, CASE WHEN began < {before} THEN 1 ELSE 0 END AS is_over FROM ({spans}) AS spans"
        ((n_begun, n_over),) = self.log.rows(f"SELECT count(DISTINCT began), sum(is_over) FROM ({found}) AS found")
        return bool(n_over) and (n_begun > 1 or is_time(self.dates[1]))

    def require_looks(self, *, is_by_period: bool) -> None:
        """Refuse looks on Spark, and those whose order or gaps are not told."""
        if self.log.engine == SPARK:
            raise DataError("a log of Spark is not read with gaps; write it to a Parquet file first")
        if self.form == "trajectories" and not is_by_period and self.dates[1].startswith(DATES):
            self._require_numbers()
        self._require_open_ends()

    def _require_numbers(self) -> None:
        """Refuse steps that are dates, which say no number of steps."""
        column, kind = self.dates
        is_date = f"TRY_CAST({quoted(column)} AS DOUBLE) IS NULL" if kind == "VARCHAR" else "TRUE"
        first = f"SELECT {quoted(column)} FROM {self.log.table} WHERE {quoted(column)} NOTNULL AND {is_date} LIMIT 1"
        for (date,) in self.log.rows(first):
            say = f"column {column} has dates such as {date}, not numbers of steps: say which periods are steps, as in "
            raise DataError(say, Option("steps", "monthly"))

    def _require_open_ends(self) -> None:
        """Refuse words that say neither true nor false of partial looks, and rows of a unit after one that saw no end.

        Where such a unit was is not known, so that no later look of it has a row; runs show that themselves.
        """
        partial = self.columns.get(PARTIAL)
        if not isinstance(partial, MappingTerm) or not partial.columns():
            return
        column, table, is_partial = quoted(partial.columns()[0]), self.log.table, self.expressions[PARTIAL]
        unread = f"{is_partial} IS NULL AND trim(CAST({column} AS VARCHAR)) <> ''"
        for (word,) in self.log.rows(f"SELECT {column} FROM {table} WHERE {unread} LIMIT 1"):
            raise DataError(f"column {partial.columns()[0]}: {word!r} is neither true nor false")
        if self.form != "transitions":
            return
        if STEP not in self.columns:
            raise DataError("a log with partial looks needs run and step of each row: ", Option("columns", {STEP: ...}))
        names = [name for name in next_columns(self.graph) if name != NEXT_AFTER]
        blank = " AND ".join(f"coalesce(trim(CAST({self.expressions[name]} AS VARCHAR)), '') = ''" for name in names)
        is_open = f"CASE WHEN {is_partial} AND {blank} THEN {self._step_number} END"
        ends = f"min({is_open}) AS open, max({self._step_number}) AS last"
        last = f"SELECT {self._run} AS run, {ends} FROM {table} GROUP BY {self._run}"
        for (run,) in self.log.rows(f"SELECT run FROM ({last}) WHERE open < last LIMIT 1"):
            raise DataError(
                f"run {run} has a row after a partial look, which did not tell where the unit was: a later row needs a "
                "look that does"
            )

    def require_periods(self, steps: StepsOption) -> None:
        """Refuse steps that are not dates, or are not whole numbers of a period after the first of their run."""
        (column, kind), every = self.dates, period_of(steps)
        if not kind.startswith(DATES[:2] if self.log.engine == SPARK else DATES):
            raise not_dates(steps, column, kind)
        if not every:
            return
        rows = select_sql(self.moments | {"shown": f"CAST({quoted(column)} AS VARCHAR)"}, self.log.table)
        since = "CAST(moment - min(moment) OVER (PARTITION BY run) AS BIGINT)"
        is_off = f"{since} % {every} <> 0 AS is_off"
        query = f"SELECT run, shown, count(*) OVER () FROM (SELECT *, {is_off} FROM ({rows})) WHERE is_off LIMIT 1"
        for run, shown, n in self.log.rows(query):
            raise not_whole(steps, n, run, shown)

    @property
    def moments(self) -> dict[str, str]:
        """The run of a row and the moment of its step, in microseconds, as SQL."""
        moment = mapped_sql(moment_of(self.dates[0]), self.log.types, is_warehouse=self.log.engine == SPARK)
        return {"run": quoted(column_of(self.columns[EPISODE])), "moment": moment}


def _stage_sql(value: str, lasts: str, n: int, before: int = 0) -> str:
    """Return the stage of a row, as SQL: one more behind each of n last runs or rows, found by bisection."""
    if n == 0:
        return f"{before}"
    middle = (n + 1) // 2
    above = _stage_sql(value, lasts, n - middle, before + middle)
    below = _stage_sql(value, lasts, middle - 1, before)
    return f"CASE WHEN {value} > {lasts}[{before + middle}] THEN {above} ELSE {below} END"


def _sorted_by(run: str, kind: str) -> str:
    """Return the sort key of runs, as SQL: numbers in texts as numbers, before other texts."""
    return f"{{'place': TRY_CAST({run} AS DOUBLE), 'run': {run}}}" if kind == "VARCHAR" else run

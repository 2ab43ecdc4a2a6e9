"""Logs in files and data frames, which DuckDB reads as they are: counted there, within a limit of memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import Steps
from plumdp.data.columns import COUNT, EPISODE, PLACE, PLACE_OF_ROW, STAGE, STEP, LogForm, Source, column_of, quoted
from plumdp.data.duckdb_tables import (
    FILE,
    MEMORY,
    Block,
    Progress,
    column_types,
    has_rows,
    keeps_order,
    literal,
    numbered_scan,
    pages,
    scan,
    watched,
)
from plumdp.data.first_rows import (
    any_repeated_sql,
    are_numbered,
    broken_episodes_sql,
    first_places,
    repeated_rows_sql,
    repeated_steps,
    repeated_steps_sql,
    shared_names_sql,
)
from plumdp.data.frames import FRAME, register_frame
from plumdp.data.ingestion import Offender
from plumdp.data.log_pilots import Moments, SharedRun, no_order, not_numbered
from plumdp.data.mapping_sql import DATES, IN_ORDER, NUMBERS, columns_sql, is_time, mapped_sql
from plumdp.data.periods import moment_of, not_dates, not_whole, period_of, spacing_in_words
from plumdp.data.report import BrokenEpisode, RepeatedStep
from plumdp.data.same_files import OF_FRAME
from plumdp.data.spark_logs import SPARK, count_on_spark
from plumdp.data.sql import count_ordered_sql, count_sql, order_sql, rows_sql, select_sql
from plumdp.model.graph import Graph

_COUNTED = "counted"  # the table with the counts of one part
_SHARED = "shared"  # the table with the runs that are in several files
_REPEATED = "repeated"  # the tables with the rows of steps that contradict each other, their number behind
_RUNS = "runs"  # the tables with the runs of each table of the log, their number behind
_ROW_BYTES, _COLUMN_BYTES = 48, 8  # what DuckDB needs to put rows in order, measured and rounded up
_SHARE = 0.7  # of the memory that rows to be put in order may take
_KEPT = 0.2  # of the memory that text may have whose rows are kept there, in which they take two to three times as much
_SPACED = 10**6  # rows, of some runs, whose dates are looked at
_ROWS = "rows"  # the tables with these rows, their number behind


@dataclass(frozen=True, eq=False)
class FileLog:
    """A log that DuckDB reads: a data frame, all files as one table, or each as its own if no run goes on in others."""

    connection: Any
    tables: Mapping[str, Mapping[str, str]]  # what to select from → column → type
    memory_limit: float = MEMORY  # bytes
    partitions: int | None = None  # of the runs in a table; none if the rows are in order, else as few as need be
    progress: Progress | None = None
    text_bytes: float = 0.0  # of files that take long to read; 0: they do not
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)  # what to select from → files
    frame: Any = None  # if the log is one; ``keep`` makes it a table, and finds the types of its columns
    engine: str = ""  # where the rows come from, if they are in no order that stays; ``SPARK`` counts them itself

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [*next(iter(self.tables.values()))]

    def keep(self, columns: Sequence[str], *, is_read_again: bool) -> FileLog:
        """Return the log with these columns; in memory, if its files take long to read again, and fit there well."""
        if self.frame is not None:
            register_frame(self.connection, self.frame, columns)
            return replace(self, tables={FRAME: column_types(self.connection, FRAME)})
        is_small = 0 < self.text_bytes <= _KEPT * self.memory_limit
        if not is_read_again or not is_small or not all(map(keeps_order, self.tables)):
            return self
        kept, files = {}, {}
        for number, (table, types) in enumerate(self.tables.items()):
            names, rows = ", ".join(map(quoted, columns)), table
            if len(self.files[table]) > 1:
                words = ", ".join(map(literal, self.files[table]))  # in place of as many texts as there are rows
                names += f", CAST({quoted(FILE)} AS ENUM ({words})) AS {quoted(FILE)}"
                rows = scan(self.connection, self.files[table], with_file=True)
            with watched(self.connection, self.progress, 0.0, 0.0):
                self.connection.execute(f"CREATE TEMP TABLE {_ROWS}_{number} AS SELECT {names} FROM {rows}")
            kept[f"{_ROWS}_{number}"] = {name: types[name] for name in columns}
            files[f"{_ROWS}_{number}"] = self.files[table]
        return replace(self, tables=kept, files=files)

    def content(self, columns: Sequence[str]) -> str:
        """Return a hash of some columns of a data frame that was kept, whatever the order of its rows."""
        names = ", ".join(map(quoted, sorted(columns)))
        n, total = self.connection.execute(f"SELECT count(*), sum(hash({names})) FROM {FRAME}").fetchall()[0]
        return f"{OF_FRAME}{n} {total}"

    def count(
        self, graph: Graph, form: LogForm, columns: Mapping[str, Source], moments: Moments | None = None
    ) -> Iterator[Block]:
        """Yield blocks of different rows and how often each occurs, with their place in the run where that matters.

        With ``moments``, each row has its stage; ``find_runs`` was called before.
        """
        if self.engine == SPARK:
            yield count_on_spark(self.connection, self.tables, graph, form, columns, moments)
            return
        stages = self._stages(moments) if moments is not None and moments.sizes else [{}] * len(self.tables)
        for number, (table, types) in enumerate(self.tables.items()):
            expressions = columns_sql(columns, types, form) | stages[number]
            share = (number / len(self.tables), (number + 1) / len(self.tables))
            yield from self._count_table(graph, form, expressions, table, _number(columns.get(STEP), types), share)

    def _count_table(
        self,
        graph: Graph,
        form: LogForm,
        columns: Mapping[str, str],
        table: str,
        number: str,
        share: tuple[float, float],
    ) -> Iterator[Block]:
        """Yield what is counted in a table, or in its first rows; ``number`` is the step of transitions as a number."""
        if form == "trajectories":
            yield from self._count_trajectories(graph, columns, table, share)
        elif form == "transitions":
            yield from self._count_transitions(graph, columns, table, number, share)
        else:
            yield from self._counted(select_sql(columns, table), share)

    def first_rows(
        self, graph: Graph, form: LogForm, columns: Mapping[str, Source], offenders: Sequence[Offender], *, once: bool
    ) -> Sequence[str]:
        """Return the row, and of several files the file, in which each offender is first, where that can be told."""
        first = [""] * len(offenders)
        has_place = form == "trajectories" or once
        for table, files in self.files.items():
            if form == "counts":
                continue
            expressions, rows = columns_sql(columns, self.tables[table], form), self.numbered(table)
            query = rows_sql(graph, form, expressions, rows, once=once, every="first")
            has_runs = EPISODE in columns
            places = first_places(self.connection, files, query, offenders, has_runs=has_runs, has_place=has_place)
            first = [one or other for one, other in zip(first, places, strict=True)]
        return first

    def find_runs(self, column: str, *, in_order: bool) -> tuple[int, bool]:
        """Return how many runs there are, and whether each row names its run; ``in_order`` refuses unordered names."""
        n_runs, all_named = 0, True
        for number, (table, types) in enumerate(self.tables.items()):
            kind = types[column].partition("(")[0].partition(" ")[0]
            runs = self._runs(number, quoted(column), kind, table)
            is_placed = "TRY_CAST(run AS DOUBLE) IS NOT NULL" if kind == "VARCHAR" else "run IS NOT NULL"
            numbers = f"SELECT count(run), count(*), count(CASE WHEN {is_placed} THEN 1 END) FROM {runs}"
            ((named, all_runs, placed),) = self.connection.execute(numbers).fetchall()
            types_in_order = IN_ORDER if self.engine == SPARK else (*IN_ORDER, "VARCHAR")
            if in_order and (placed < named or not kind.startswith(types_in_order)):
                raise not_numbered(column, types[column])
            n_runs, all_named = n_runs + named, all_named and named == all_runs
        return n_runs, all_named

    def _runs(self, number: int, run: str, kind: str, table: str) -> str:
        """Return what to select the different runs of a table from."""
        if self.engine == SPARK:
            return f"(SELECT DISTINCT {run} AS run FROM {table})"
        runs = f"SELECT DISTINCT run FROM {_run_changes(run, kind, table)}"
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {_RUNS}_{number} AS {runs}")
        return f"{_RUNS}_{number}"

    def _stages(self, moments: Moments) -> list[dict[str, str]]:
        """Return the stage of a row in each table; runs of a table come after those of the tables before."""
        stages, before, ends = [], 0, moments.stages
        for number, types in enumerate(self.tables.values()):
            runs, run = f"{_RUNS}_{number}", _sorted_by("run", types[moments.column])
            ((n,),) = self.connection.execute(f"SELECT count(run) FROM {runs}").fetchall()
            last = [size - before for size in ends if before < size <= before + n]  # runs of their stages
            numbered = (
                f"SELECT {run} AS run, row_number() OVER (ORDER BY {run}) AS number FROM {runs} WHERE run NOTNULL"
            )
            chosen = f"SELECT list(run ORDER BY number) FROM ({numbered}) WHERE list_contains({last}::BIGINT[], number)"
            self.connection.execute(f"SET VARIABLE {runs} = ({chosen})")  # which a query has as constants
            first = sum(size <= before for size in ends)
            own = _sorted_by(quoted(moments.column), types[moments.column])
            stages.append({STAGE: _stage_sql(own, f"getvariable('{runs}')", first, len(last))})
            before += n
        return stages

    def shared_runs(self, column: str, step: Source | None) -> SharedRun | None:
        """Return a run that is in several files and is not seen to go on there; None if there is no such run.

        A run goes on if each of its steps is there, from the first to the last, whatever the file.
        """
        for table, files in self.files.items():
            if len(files) < 2:
                continue
            is_kept = table.startswith(f"{_ROWS}_")
            rows = table if is_kept else scan(self.connection, files, with_file=True)
            run, types = quoted(column), self.tables[table]
            pieces = f"SELECT DISTINCT {run} AS run, {quoted(FILE)} AS file FROM {rows} WHERE {run} IS NOT NULL"
            several = f"SELECT run, list(file::VARCHAR) AS files FROM ({pieces}) GROUP BY run HAVING count(*) > 1"
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {_SHARED} AS {several}")
            if number := _number(step, types):
                steps = f"SELECT {run} AS run, {number} AS step FROM {rows} WHERE {run} IN (SELECT run FROM {_SHARED})"
                has_all = "count(step) = count(*) AND count(DISTINCT step) = max(step) - min(step) + 1"
                whole = f"SELECT run FROM ({steps}) GROUP BY run HAVING {has_all}"
                self.connection.execute(f"DELETE FROM {_SHARED} WHERE run IN ({whole})")
            shared = self.connection.execute(f"SELECT run, files FROM {_SHARED} ORDER BY run LIMIT 1").fetchall()
            ((n,),) = self.connection.execute(f"SELECT count(*) FROM {_SHARED}").fetchall()
            for name, places in shared:
                return SharedRun(name, sorted(places, key=[*files].index), n, step is not None)
        return None

    def require_periods(self, columns: Mapping[str, Source], steps: Steps) -> None:
        """Refuse steps that are not dates, or are not whole numbers of a period after the first of their run."""
        column, every = column_of(columns[STEP]), period_of(steps)
        for table, types in self.tables.items():
            if not types[column].startswith(DATES[:2] if self.engine == SPARK else DATES):
                raise not_dates(steps, column, types[column])
            if not every:
                continue
            rows = select_sql(self._moments(columns, types) | {"shown": f"CAST({quoted(column)} AS VARCHAR)"}, table)
            since = "CAST(moment - min(moment) OVER (PARTITION BY run) AS BIGINT)"
            is_off = f"{since} % {every} <> 0 AS is_off"
            query = f"SELECT run, shown, count(*) OVER () FROM (SELECT *, {is_off} FROM ({rows})) WHERE is_off LIMIT 1"
            for run, shown, n in self.connection.execute(query).fetchall():
                raise not_whole(steps, n, run, shown)

    def spacing(self, columns: Mapping[str, Source], n_rows: int) -> str:
        """Return in words how many intervals between dates of runs are about twice as long as usual, if any are."""
        few, intervals = math.ceil(n_rows / _SPACED), []
        for table, types in self.tables.items():
            if types[column_of(columns[STEP])].startswith(DATES):
                rows = f"({select_sql(self._moments(columns, types), table)}) WHERE hash(run) % {few} = 0"
                before = "lag(moment) OVER (PARTITION BY run ORDER BY moment)"
                intervals.append(f"SELECT moment - {before} AS interval_length FROM {rows}")
        if not intervals:
            return ""
        lengths = f"SELECT * FROM ({' UNION ALL '.join(intervals)}) WHERE interval_length > 0"
        usual = (
            f"({lengths}) AS every_one CROSS JOIN (SELECT median(interval_length) AS usual FROM ({lengths})) AS all_of"
        )
        about = "interval_length BETWEEN {} * usual AND {} * usual"
        one, two = (
            f"CAST(avg(CASE WHEN {about.format(n - 0.25, n + 0.25)} THEN 1.0 ELSE 0.0 END) AS DOUBLE)" for n in (1, 2)
        )
        query = f"SELECT min(usual), {one}, {two} FROM {usual}"
        ((length, once, twice),) = self.connection.execute(query).fetchall()
        return spacing_in_words(length, twice) if twice and once > twice else ""  # otherwise nothing is usual

    def _moments(self, columns: Mapping[str, Source], types: Mapping[str, str]) -> dict[str, str]:
        moment = mapped_sql(moment_of(column_of(columns[STEP])), types, is_warehouse=self.engine == SPARK)
        return {"run": quoted(column_of(columns[EPISODE])), "moment": moment}

    def unread_step(self, columns: Mapping[str, Source]) -> str:
        """Return a step that is there and cannot be read, as the log has it; nothing if there is none."""
        for table, types in self.tables.items():
            own = columns_sql(columns, types, "trajectories", is_warehouse=self.engine == SPARK)
            text = f"CAST({quoted(column_of(columns[STEP]))} AS VARCHAR)"
            query = f"SELECT {text} AS text FROM {table} WHERE {text} IS NOT NULL AND {own[STEP]} IS NULL LIMIT 1"
            for (found,) in self.connection.execute(query).fetchall():
                return repr(found) if isinstance(columns[STEP], str) else f"{found!r} is not a date"
        return ""

    def has_rows(self, file: str) -> bool:
        """Return whether a file of the log has a row."""
        return has_rows(self.connection, file)

    def keep_repeated(self, form: LogForm, columns: Mapping[str, Source]) -> None:
        """Keep the rows of all steps of which there are several rows that differ, for ``count_first_rows``."""
        for number, (table, types) in enumerate(self.tables.items()):
            own = columns_sql(columns, types, form)
            steps = f"({own[EPISODE]}, {own[STEP]}) IN ({repeated_steps_sql(own, table)})"
            self.connection.execute(
                f"CREATE OR REPLACE TEMP TABLE {_REPEATED}_{number} AS SELECT * FROM {table} WHERE {steps}"
            )

    def count_first_rows(
        self, graph: Graph, form: LogForm, columns: Mapping[str, Source], n: int, *, has_repeated_steps: bool
    ) -> Iterator[Block]:
        """Yield what ``count`` would yield if the log had ended after n rows, of those that it matches in the end.

        Rows of a step that differ are there as well, wherever they lie: no row of it, nor the step that leads to it, is
        counted before the last of them, as none is afterwards.
        """
        if self.engine:
            raise no_order(self.engine)
        for number, (table, types) in enumerate(self.tables.items()):
            if not keeps_order(table):
                by_time = Option("order", "time")
                raise DataError(by_time, ": the files have their columns in different orders; read one at a time")
            rows = f"(SELECT * FROM {table} LIMIT {n})"
            ((found,),) = self.connection.execute(f"SELECT count(*) FROM {rows}").fetchall()
            expressions = columns_sql(columns, types, form)
            if has_repeated_steps:
                rows = f"(SELECT * FROM {rows} UNION ALL SELECT * FROM {_REPEATED}_{number})"
            yield from self._count_table(graph, form, expressions, rows, _number(columns.get(STEP), types), (1.0, 1.0))
            n -= found
            if n == 0:
                return

    def shares_names(self, form: LogForm, columns: Mapping[str, Source]) -> bool:
        """Return whether rows that contradict each other look like steps of several runs that have one name."""
        found = []
        for table, types in self.tables.items():
            own = columns_sql(columns, types, form, is_warehouse=self.engine == SPARK)
            found += self.connection.execute(shared_names_sql(own, table)).fetchall()
        return any(is_one for is_one, _ in found) or sum(surplus or 0 for _, surplus in found) > 0

    def repeated_steps(self, form: LogForm, columns: Mapping[str, Source], n: int) -> list[RepeatedStep]:
        """Return a few steps of which there are several rows that are not alike."""
        few: list[RepeatedStep] = []
        for table, types in self.tables.items():
            files, step = self.files.get(table, []), f"CAST({quoted(column_of(columns[STEP]))} AS VARCHAR)"
            rows, place = table, "NULL"
            if not self.engine and are_numbered(files):
                rows, place = self.numbered(table), PLACE_OF_ROW
            expressions = columns_sql(columns, types, form, is_warehouse=self.engine == SPARK)
            query = repeated_rows_sql(expressions, rows, n, step=step, place=place)
            few += repeated_steps(self.connection.execute(query).fetchall(), columns, files)
        return few[:n]

    def numbered(self, table: str) -> str:
        """Return what to select from to read a table with ``PLACE_OF_ROW``."""
        if files := self.files.get(table):
            return numbered_scan(self.connection, files)
        return f"(SELECT *, {{'file': 0, 'row': row_number() OVER ()}} AS {PLACE_OF_ROW} FROM {table})"

    def broken_episodes(self, columns: Mapping[str, Source], n: int) -> list[BrokenEpisode]:
        """Return a few episodes that lack steps, those that lack most."""
        few: list[BrokenEpisode] = []
        for table, types in self.tables.items():
            expressions = columns_sql(columns, types, "trajectories", is_warehouse=self.engine == SPARK)
            rows = self.connection.execute(broken_episodes_sql(expressions, table, n)).fetchall()
            few += [BrokenEpisode(*row) for row in rows]
        return few[:n]

    def _count_transitions(
        self, graph: Graph, columns: Mapping[str, str], table: str, number: str, share: tuple[float, float]
    ) -> Iterator[Block]:
        """Count rows as they come, unless they name run and step (its ``number``), and a step has several of them."""
        parts = self._parts_with_repeats(graph, columns, table, number, share) if STEP in columns else []
        if not parts:
            yield from self._counted(count_sql(graph, "transitions", columns, table), share)
        for rows, between in parts:
            yield from self._counted(count_sql(graph, "transitions", columns, rows, once=True), between)

    def _parts_with_repeats(
        self, graph: Graph, columns: Mapping[str, str], table: str, number: str, share: tuple[float, float]
    ) -> list[tuple[str, tuple[float, float]]]:
        """Return the rows, some runs at a time, if a step has several; if rows lie in order, as most do, none has."""
        start, _ = share
        places: Mapping[str, int] = {}
        if self._may_be_in_order and number:
            places = self._places(order_sql({**columns, STEP: number}, table), (start, start))
            if self._is_in_order(places, columns[EPISODE], table):
                return []
        parts = self._parts(graph, columns, table, sum(places.values()), share)
        for rows, _ in parts:
            self._run(any_repeated_sql(columns, rows), (start, start))
            if self.connection.execute(f"SELECT 1 FROM {_COUNTED}").fetchall():
                return parts
        return []

    def _count_trajectories(
        self, graph: Graph, columns: Mapping[str, str], table: str, share: tuple[float, float]
    ) -> Iterator[Block]:
        """Try the rows as they lie first, as most logs are in order; else put the runs in order, a part at a time."""
        start, _ = share
        places: Mapping[str, int] = {}
        if self._may_be_in_order:
            places = self._places(order_sql(columns, table), (start, start))
            if self._is_in_order(places, columns[EPISODE], table):
                yield from self._counted(count_ordered_sql(graph, columns, table), share)
                return
        for rows, between in self._parts(graph, columns, table, sum(places.values()), share):
            yield from self._count_runs(graph, columns, rows, between)

    def _count_runs(
        self, graph: Graph, columns: Mapping[str, str], rows: str, share: tuple[float, float]
    ) -> Iterator[Block]:
        """Count trajectories whose rows are in any order."""
        self._run(count_sql(graph, "trajectories", columns, rows), share)
        repeated = f"SELECT 1 FROM {_COUNTED} WHERE {quoted(PLACE)} = 'duplicate' LIMIT 1"
        if self.connection.execute(repeated).fetchall():  # which may be copies of a row
            self._run(count_sql(graph, "trajectories", columns, rows, once=True), share)
        yield from pages(self.connection, _COUNTED)

    def _parts(
        self, graph: Graph, columns: Mapping[str, str], table: str, n_rows: int, share: tuple[float, float]
    ) -> list[tuple[str, tuple[float, float]]]:
        """Return the rows of some runs at a time, and the share of the work that they are; no rows: not known yet."""
        start, end = share
        n_parts = self.partitions
        if n_parts is None:
            counted = f"SELECT count(*) FROM {table}"
            n_parts = self._n_partitions(graph, n_rows or self.connection.execute(counted).fetchall()[0][0])
        ends = [start + (end - start) * part / n_parts for part in range(n_parts + 1)]
        rows = [f"(SELECT * FROM {table} WHERE hash({columns[EPISODE]}) % {n_parts} = {p})" for p in range(n_parts)]
        return [*zip(rows if n_parts > 1 else [table], pairwise(ends), strict=True)]

    def _counted(self, query: str, share: tuple[float, float]) -> Iterator[Block]:
        self._run(query, share)
        yield from pages(self.connection, _COUNTED)

    def _run(self, query: str, share: tuple[float, float]) -> None:
        with watched(self.connection, self.progress, *share):
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {_COUNTED} AS {query}")

    def _places(self, query: str, share: tuple[float, float]) -> dict[str, int]:
        self._run(query, share)
        total = f"SELECT {quoted(PLACE)}, sum({quoted(COUNT)})::BIGINT FROM {_COUNTED} GROUP BY 1"
        return dict(self.connection.execute(total).fetchall())

    @property
    def _may_be_in_order(self) -> bool:
        """Whether rows can be counted as they lie, which takes two passes over rows in the same order."""
        return self.partitions is None and not self.engine

    def _is_in_order(self, places: Mapping[str, int], episode: str, table: str) -> bool:
        """Return whether each run lies in one piece, its steps ascending."""
        if "disorder" in places:
            return False
        if "jump" not in places:
            return True
        ((n_episodes,),) = self.connection.execute(f"SELECT count(DISTINCT {episode}) FROM {table}").fetchall()
        return bool(places["jump"] + places.get("last", 0) == n_episodes)

    def _n_partitions(self, graph: Graph, n_rows: int) -> int:
        """Return how many parts need not be put on disk; each reads all rows again, so that few are better."""
        row_bytes = _ROW_BYTES + _COLUMN_BYTES * (len(graph.states) + 1)
        return max(1, math.ceil(n_rows * row_bytes / (_SHARE * self.memory_limit)))


def _stage_sql(run: str, lasts: str, first: int, n: int, before: int = 0) -> str:
    """Return the stage of a run, as SQL: ``first``, and one more behind each of the n last runs, found by bisection."""
    if n == 0:
        return f"{first + before}"
    middle = (n + 1) // 2
    above = _stage_sql(run, lasts, first, n - middle, before + middle)
    below = _stage_sql(run, lasts, first, middle - 1, before)
    return f"CASE WHEN {run} > {lasts}[{before + middle}] THEN {above} ELSE {below} END"


def _sorted_by(run: str, kind: str) -> str:
    """Return what runs are sorted by, as SQL: numbers in texts as numbers, before other texts."""
    return f"{{'place': TRY_CAST({run} AS DOUBLE), 'run': {run}}}" if kind == "VARCHAR" else run


def _run_changes(run: str, kind: str, table: str) -> str:
    """Return the rows at which another run begins, or all rows of a text file, which several threads take apart."""
    if kind == "VARCHAR":
        return f"(SELECT {run} AS run FROM {table})"
    rows = f"SELECT {run} AS run, lag({run}) OVER () AS before, lag(true) OVER () AS has_before FROM {table}"
    return f"({rows}) WHERE has_before IS NULL OR run IS DISTINCT FROM before"


def _number(step: Source | None, types: Mapping[str, str]) -> str:
    """Return a step of a log of transitions as a number; nothing if its column has another type."""
    if step is None or not isinstance(step, str):
        return "" if step is None else columns_sql({STEP: step}, types, "trajectories")[STEP]
    kind = types[step].partition("(")[0]
    is_ordered = kind in (*NUMBERS, "VARCHAR") or is_time(kind)
    return columns_sql({STEP: step}, types, "trajectories")[STEP] if is_ordered else ""

"""The steps of a log as one relation, and what is selected from it: counts, runs, and examples of what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import EPISODE, LogForm
from plumdp.base.vocabulary import Steps as StepsOption
from plumdp.data.censoring import LENGTH, MOST
from plumdp.data.columns import (
    ACTION,
    GAP,
    KNOWN,
    MOMENT,
    N_RUNS,
    NEXT_AFTER,
    PARTIAL,
    PLACE,
    STAGE,
    STEP,
    Source,
    column_of,
    next_columns,
    state_columns,
)
from plumdp.data.context_counts import OpenRuns
from plumdp.data.duckdb_engine import MEMORY, Block, column_types, columns_of, pages
from plumdp.data.duckdb_tables import FILE, keeps_order, numbered_scan, scan, text_bytes, watched
from plumdp.data.frames import FRAME, SPARK, register_frame
from plumdp.data.log_pilots import Moments, SharedRun, no_order, not_numbered
from plumdp.data.mapping_language import MappingTerm
from plumdp.data.mapping_sql import DATES, IN_ORDER, NUMBERS, columns_sql, is_time, mapped_sql
from plumdp.data.names import PLACE_OF_ROW, literal, one_file, quoted
from plumdp.data.periods import moment_of, not_dates, not_whole, period_of
from plumdp.data.raw_logs import FIRST_RUNS, FirstRuns, first_runs_sql, part_sql, unit_sql
from plumdp.data.remembering import Remembering
from plumdp.data.same_files import OF_FRAME
from plumdp.data.sql import (
    PLACE_IN_ORDER,
    PLACE_IN_RUN,
    PLACE_OF_ORDERED,
    Every,
    any_repeated_sql,
    count_sql,
    keys,
    pieces_sql,
    rows_sql,
    select_sql,
)
from plumdp.data.text_formats import PLAIN_TEXT, TextFormat
from plumdp.model.graph import Graph

UNIT = f"{KNOWN}unit of the row"  # of counts by unit: its name
HASHES = ("hash of own", "hash of state", "hash of after")  # of what rows of counts are about, as short keys
COUNTED, _PIECES, _LASTS = "counted", "pieces", "lasts"  # tables of counts, and of pieces of runs; last runs of stages
KEYS, _PASTS = "short_keys", "pasts"  # tables with a short key of each row, as they lie, and by run and step
PLACED = f"(SELECT rowid, * FROM {KEYS} WHERE run IS NOT NULL AND isfinite(step))"
CARRIED = "carried_rows"  # the table with the ends of runs that go on from earlier files
CARRIED_RUN = "plumdp_carried_run"  # their column that names these runs
_ROWS, _NUMBER = "kept_rows", "number_of_row"  # the table of rows that were kept; the number of a row, from 1
_WHOLE = ("BIGINT", "INTEGER")
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
    memory: Remembering | None = None  # the column that is added
    unit: tuple[str, str] | None = None  # the column that names units, and the one whose rows are read

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [*self.types]

    def keep(self, columns: Sequence[str], *, is_read_again: bool) -> LogTable:
        """Return the log with these columns; in memory, if its files take long to read again, and fit there well."""
        if self.frame is not None:
            part = [] if self.part is None else [*filter(None, [self.part.run, self.part.step])]
            own, used = ([], []) if self.memory is None else ([self.memory.column], self.memory.used)
            part += [self.unit[0]] if self.unit else []
            needed = [name for name in dict.fromkeys([*columns, *part, *used]) if name not in own]
            register_frame(self.connection, self.frame, needed)
            types = column_types(self.connection, FRAME)
            self.find_first_runs(table := self.text.plain(FRAME, types))
            return replace(self, types=types).with_memory(table)
        if not (is_read_again and 0 < text_bytes(self.files) <= _KEPT and keeps_order(self.table)):
            return self
        names, rows = ", ".join(map(quoted, columns)), self.table
        if len(self.files) > 1:
            names, rows = f"{names}, {self.file_sql} AS {quoted(FILE)}", self.scan(with_file=True)
        self.run(_ROWS, f"SELECT {names} FROM {rows}")
        return replace(self, table=_ROWS, types={name: self.types[name] for name in columns})

    @property
    def file_sql(self) -> str:
        """The file of a row, which takes less than as many texts as there are rows."""
        return f"CAST({quoted(FILE)} AS ENUM ({', '.join(map(literal, self.files))}))"

    def scan(self, *, with_file: bool = False) -> str:
        """Return the SQL source of the files of the log."""
        return self.parted(scan(self.connection, self.files, text=self.text, with_file=with_file))

    def parted(self, table: str) -> str:
        """Return the rows of a table that are of the runs which are meant, with what they remember."""
        if self.unit is not None:
            table = f"(SELECT * FROM {table} WHERE {unit_sql(self.unit[0])} = {literal(self.unit[1])})"
        table = table if self.part is None else part_sql(self.part, table)
        is_warehouse = self.engine == SPARK
        return table if self.memory is None else self.memory.sql(table, self.types, is_warehouse=is_warehouse)

    def with_memory(self, table: str) -> LogTable:
        """Return the log with the rows of a table that are meant, and with the column of what they remember."""
        own = {} if self.memory is None else {self.memory.column: self.memory.type_name}
        return replace(self, table=self.parted(table), types={**self.types, **own})

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

    def after(self, state: str) -> LogTable:
        """Return the log after the ends of runs that went on at the end of earlier ones, which a file has."""
        rows = f"SELECT unnest(row), number AS {quoted(CARRIED_RUN)} FROM {one_file(state)}"
        typed = f"SELECT * FROM (SELECT * FROM {self.table} LIMIT 0) UNION ALL BY NAME {rows} WHERE kind = 'open'"
        self.run(CARRIED, typed)
        table = f"(SELECT * FROM {CARRIED} UNION ALL BY NAME SELECT * FROM {self.table})"
        return replace(self, table=table, types=column_types(self.connection, table))

    def run(self, table: str, query: str) -> None:
        """Make a table of what a query gives, and say meanwhile how much of it is done."""
        self.run_query(f"CREATE OR REPLACE TEMP TABLE {table} AS {query}")

    def run_query(self, query: str) -> None:
        """Run a query, and say meanwhile how much of it is done."""
        with watched(self.connection, "reading the log"):
            self.connection.execute(query)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows that a query gives."""
        found: list[tuple[Any, ...]] = self.connection.execute(query).fetchall()
        return found

    def content(self, columns: Sequence[str]) -> str:
        """Return a hash of some columns of a data frame that was kept, whatever the order of its rows."""
        own, used = ([], []) if self.memory is None else ([self.memory.column], self.memory.used)
        names = ", ".join(map(quoted, sorted({*columns, *used} - {*own})))
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
        memory = self.memory
        is_part = self.part is not None or self.unit is not None
        if self.files and (as_they_are or self.table != _ROWS or is_part or memory is not None):
            return self.parted(numbered_scan(self.connection, self.files, self.text))
        file, first = "0", "0"
        if len(self.files) > 1:
            file, first = f"enum_code({quoted(FILE)})", f"min(rowid) OVER (PARTITION BY {quoted(FILE)})"
        row = f"rowid - {first} + 1" if self.files else "row_number() OVER ()"
        place = f"{{'file': {file}, 'row': {row}}} AS {PLACE_OF_ROW}"
        if memory is None:
            return f"(SELECT *, {place} FROM {self.table})"
        types = {name: kind for name, kind in self.types.items() if name != memory.column}
        return self.parted(f"(SELECT *, {place} FROM {self.text.plain(FRAME, types)})")


@dataclass(frozen=True, eq=False)
class LogSteps:
    """The relation of steps: a log, read as runs of a graph of some form, and where its columns come from."""

    log: LogTable
    graph: Graph
    form: LogForm
    columns: Mapping[str, Source]
    run: str | None = None  # the column that names the run of a row, if it is asked for
    in_order: bool = False  # whether each run lies in one piece, its steps ascending
    is_followed: bool = False  # whether its keys are kept
    by: str = ""  # the column that names units, if they are counted each by itself; runs are then named with them

    @cached_property
    def expressions(self) -> dict[str, str]:
        """The columns as SQL."""
        found = columns_sql(self.columns, self.log.types, self.form, is_warehouse=self.log.engine == SPARK)
        if not self.by:
            return found
        runs = {EPISODE: self._of_unit(found[EPISODE])} if EPISODE in found else {}
        return found | runs | {UNIT: unit_sql(self.by)}

    def _of_unit(self, run: str) -> str:
        return f"CASE WHEN {run} IS NOT NULL THEN {{'unit': {unit_sql(self.by)}, 'run': {run}}} END"

    @property
    def run_sql(self) -> str:
        """The run of a row, as SQL."""
        if EPISODE in self.columns:
            return self.expressions[EPISODE]
        return self._of_unit(quoted(str(self.run))) if self.by else quoted(str(self.run))

    @property
    def dates(self) -> tuple[str, str]:
        """The column of steps, and the type of its values."""
        column = column_of(self.columns[STEP])
        return column, self.log.types[column]

    def arranged(self, *, is_followed: bool = True) -> LogSteps:
        """Return the steps after a look at how runs lie; ``is_followed`` says that the past of steps is asked for."""
        if self.log.engine == SPARK or self.form == "counts" or (STEP not in self.columns and self.run is None):
            return self
        keyed = replace(self, is_followed=is_followed and STEP in self.columns and GAP not in self.columns)
        if keyed.is_followed:
            self.log.run(KEYS, self._keys_sql)
        is_off = self.run is None and self._is_off(f"(SELECT * FROM {keyed._keys} LIMIT {_FIRST})")
        if is_off or self._is_off(keyed._keys) or self.log.memory is not None:  # which leaves rows in no order
            return keyed
        return replace(keyed, in_order=True)

    @property
    def own(self) -> list[str]:
        """The columns of counts that tell rows of the log from one another."""
        return [*state_columns(self.graph), ACTION] if self.form == "trajectories" else keys(self.graph)

    @property
    def _has_files(self) -> bool:
        return len(self.log.files) > 1 and self.run is not None

    @property
    def _keys(self) -> str:
        return KEYS if self.is_followed else f"({self._keys_sql})"

    @property
    def _keys_sql(self) -> str:
        """The query for the run, step and file of each row, and a hash of its other columns, in the log's order."""
        columns, table = {"run": self.run_sql}, self.log.table
        if STEP in self.columns:
            columns["step"] = self.step_number or "NULL"
            if self.form == "transitions":  # of which rows with other steps count as well
                unread = f"CASE WHEN {self.expressions[STEP]} IS NOT NULL THEN 'NaN'::DOUBLE END"
                columns["step"] = f"coalesce({columns['step']}, {unread})"
            names = [*state_columns(self.graph, self.form), ACTION, *next_columns(self.graph)]
            columns["own"] = f"hash({', '.join(self.expressions[name] for name in names if name in self.expressions)})"
        if self._has_files:
            columns["file"] = self.log.file_sql
            table = table if table == _ROWS else self.log.scan(with_file=True)
        return select_sql(columns, table)

    def _is_off(self, table: str) -> bool:
        """Find the pieces that runs lie in, and return whether they are not in order."""
        self.log.run(_PIECES, pieces_sql(table, has_steps=STEP in self.columns, has_files=self._has_files))
        pieces = f"SELECT sum(n) AS n, bool_or(is_off) AS is_off FROM {_PIECES} GROUP BY run"
        ((is_off,),) = self.log.rows(f"SELECT bool_or(is_off OR n > 1) FROM ({pieces})")
        return not self.step_number or bool(is_off) or bool(self.log.engine)

    @property
    def step_number(self) -> str:
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
        self.make_counts(columns, table or self.log.table)
        yield from pages(self.log.connection, COUNTED)

    def make_counts(self, columns: Mapping[str, str], table: str) -> None:
        """Make the table of different rows and how often each occurs."""
        if self.form == "counts":
            self.log.run(COUNTED, select_sql(columns, table))
        elif self.form == "transitions":
            once = STEP in columns and not self.in_order and bool(self.log.rows(any_repeated_sql(self._keys)))
            self.log.run(COUNTED, count_sql(self.graph, self.form, columns, table, once=once))
        else:
            place = PLACE_IN_ORDER if self.in_order else PLACE_IN_RUN
            self.log.run(COUNTED, count_sql(self.graph, self.form, columns, table, place=place))
            repeated = f"SELECT 1 FROM {COUNTED} WHERE {quoted(PLACE)} = 'duplicate' LIMIT 1"
            if not self.in_order and self.log.rows(repeated):  # which may be copies of a row
                self.log.run(COUNTED, count_sql(self.graph, self.form, columns, table, once=True))

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
        has_pasts, sizes = self._sorts, () if moments is None else moments.sizes
        place = PLACE_OF_ORDERED if is_ordered else PLACE_IN_RUN
        write = partial(count_sql, first=(n_runs, sizes), place=place, is_warehouse=True, pasts=has_pasts)

        def counted(once: bool) -> Block:
            query = write(self.graph, form, columns, table, once=once)
            return columns_of(self.log.connection.execute(query))

        if form == "transitions":
            return counted({EPISODE, STEP} <= {*columns})
        block = counted(False)
        return counted(True) if "duplicate" in block[PLACE] else block  # which may be copies of a row

    @property
    def _sorts(self) -> bool:
        """Whether an engine puts the rows of runs in order: by numbers or times, and not by texts."""
        step = self.columns.get(STEP)
        is_placed = not isinstance(step, str) or self.log.types[step].startswith(IN_ORDER)
        return EPISODE in self.columns and step is not None and is_placed

    def last_states(self, *, once: bool) -> Block | None:
        """Return the last states of runs with their numbers of steps; nothing if no order of steps is known."""
        query = self.last_states_sql(once=once)
        return columns_of(self.log.connection.execute(query)) if query else None

    def last_states_sql(self, *, once: bool) -> str:
        """Return the query for the last states of runs, perhaps by unit; nothing if no order of steps is known."""
        columns, is_runs = self.expressions, self.form == "trajectories"
        write = partial(_ends_sql, n_last=int(is_runs), once=once, by_period=self.columns.get(MOMENT) is not None)
        if self.is_followed:
            shown = state_columns(self.graph) if is_runs else next_columns(self.graph)
            named = {"own": self.own_sql} | dict(zip(state_columns(self.graph), map(quoted, shown), strict=True))
            rows = f"SELECT DISTINCT * FROM ({select_sql(named, COUNTED)})"
            ends = write({"own": "own"} | ({UNIT: "run.unit"} if self.by else {}), "run", "step", PLACED)
            return f"SELECT * EXCLUDE own FROM ({ends}) JOIN ({rows}) USING (own)"
        if self.log.engine == SPARK and self.form != "counts" and self._sorts:
            names = state_columns(self.graph, self.form) if is_runs else next_columns(self.graph)
            state = {key: columns[name] for key, name in zip(state_columns(self.graph), names, strict=True)}
            return write(state, columns[EPISODE], columns[STEP], self.log.table)
        return ""

    @property
    def hashes(self) -> dict[str, str]:
        """The columns of short keys that rows of counts have, as SQL."""
        names = self.own, state_columns(self.graph), next_columns(self.graph)
        return {name: f"hash({', '.join(map(quoted, each))})" for name, each in zip(HASHES, names, strict=True)}

    def legend(self) -> Iterator[Block]:
        """Yield the rows of counts with their short keys."""
        yield from pages(self.log.connection, COUNTED, {"*": "*"} | self.hashes)

    @property
    def own_sql(self) -> str:
        """The hash of ``own``, by which rows of counts are found."""
        return f"hash({', '.join(map(quoted, self.own))})"

    def each_row(self, *, once: bool, every: Every) -> str:
        """Return the query for what is counted row by row, see ``rows_sql``."""
        return rows_sql(self.graph, self.form, self.expressions, self.log.numbered(), once=once, every=every)

    def find_runs(self, *, in_order: bool) -> tuple[int, bool]:
        """Return the number of runs, and whether each row names its run; ``in_order`` refuses unordered names."""
        run, is_spark = str(self.run), self.log.engine == SPARK
        kind = self.log.types[run].partition("(")[0].partition(" ")[0]
        rows = (
            f"SELECT {quoted(run)} AS run FROM {self.log.table}"
            if is_spark
            else f"SELECT {'run.run AS run' if self.by else 'run'} FROM {_PIECES}"
        )
        is_placed = "TRY_CAST(run AS DOUBLE) IS NOT NULL" if kind == "VARCHAR" else "run IS NOT NULL"
        numbers = f"count(run), count(*), count(CASE WHEN {is_placed} THEN 1 END)"
        ((named, all_runs, placed),) = self.log.rows(f"SELECT {numbers} FROM (SELECT DISTINCT * FROM ({rows}))")
        types_in_order = IN_ORDER if is_spark else (*IN_ORDER, "VARCHAR")
        if in_order and (placed < named or not kind.startswith(types_in_order)):
            raise not_numbered(run, self.log.types[run])
        return named, named == all_runs

    @property
    def numbered_runs(self) -> str:
        """The query for the runs of all units, with the number that each has among those of its unit."""
        place = _sorted_by("run.run", self.log.types[str(self.run)])
        number = f"row_number() OVER (PARTITION BY run.unit ORDER BY {place}) AS number"
        return f"SELECT run, {number} FROM (SELECT DISTINCT run FROM {_PIECES} WHERE run NOTNULL)"

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        ((n,),) = self.log.rows(f"SELECT count(*) FROM {self.log.table}")
        return int(n)

    def require_order(self) -> None:
        """Refuse rows that do not lie in one order."""
        if self.log.engine:
            raise no_order(self.log.engine)
        if self.log.memory is not None:
            raise DataError(Option("order", "time"), ": of states that remember, only the order of runs is known: runs")
        if not keeps_order(self.log.table):
            by_time = Option("order", "time")
            raise DataError(by_time, ": the files have their columns in different orders; read one at a time")

    def past_pages(self, moments: Moments | None, size: int) -> Iterator[Block]:
        """Yield the rows of runs in order: run, step and row as short keys, and if the pilot has them.

        The pilot is the first so many runs or rows, as ``moments`` count them.
        """
        is_pilot = "FALSE"
        if moments is not None and size:
            last = f"getvariable('{_LASTS}')[{1 + [*moments.stages].index(size)}]"
            kind = self.log.types.get(moments.column, "")
            is_pilot = f"{_sorted_by('run', kind)} <= {last}" if moments.column else f"rowid < {size}"
        step = "step" if column_types(self.log.connection, KEYS)["step"] in _WHOLE else "step::DOUBLE"
        columns = {"run": self.short_run, "step": step, "own": "own", "is_pilot": is_pilot}
        if self.in_order:
            yield from pages(self.log.connection, KEYS, columns)
            return
        first = ", 4 DESC" if "rowid" in is_pilot else ""  # of copies of a row, one in the pilot
        self.log.run(_PASTS, f"{select_sql(columns, PLACED)} ORDER BY 1, 2{first}")
        yield from pages(self.log.connection, _PASTS)

    @property
    def short_run(self) -> str:
        """The key of a run in ``past_pages``, as SQL: what was hashed takes twice as long to sort."""
        return "run::BIGINT" if column_types(self.log.connection, KEYS)["run"] in _WHOLE else "hash(run)"

    def _staged(self, moments: Moments) -> tuple[dict[str, str], str]:
        """Return the columns with the stage of each row, by its run or by its number, and what to select them from."""
        ends, table = moments.stages, self.log.table
        if not moments.column:
            stage = stage_sql(_NUMBER, f"{[*ends]}", len(ends))
            return self.expressions | {STAGE: stage}, f"(SELECT *, row_number() OVER () AS {_NUMBER} FROM {table})"
        kind = self.log.types[moments.column]
        runs = f"SELECT DISTINCT {_sorted_by('run', kind)} AS run FROM {_PIECES} WHERE run NOTNULL"
        numbered = f"SELECT run, row_number() OVER (ORDER BY run) AS number FROM ({runs})"
        chosen = f"SELECT list(run ORDER BY number) FROM ({numbered}) WHERE list_contains({[*ends]}::BIGINT[], number)"
        self.log.connection.execute(f"SET VARIABLE {_LASTS} = ({chosen})")  # which a query has as constants
        stage = stage_sql(_sorted_by(self.run_sql, kind), f"getvariable('{_LASTS}')", len(ends))
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
        elif self.step_number:
            has_all = "count(step) = count(*) AND count(DISTINCT step) = max(step) - min(step) + 1"
            shared += f" AND run NOT IN (SELECT run FROM {self._keys} WHERE run NOTNULL GROUP BY run HAVING {has_all})"
        for name, places, n in self.log.rows(f"SELECT *, count(*) OVER () FROM ({shared}) ORDER BY run LIMIT 1"):
            return SharedRun(name, sorted(places, key=[*self.log.files].index), n, STEP in self.columns)
        return None

    @property
    def has_overlap(self) -> bool:
        """Whether runs of a small log overlap, by dates, or by numbers that do not begin anew in each run."""
        files = self.log.files
        is_small = self.log.engine != SPARK and (not files or 0 < text_bytes(files) <= _KEPT)  # or one scan more
        if not {EPISODE, STEP} <= {*self.columns} or not self.step_number or self.form == "counts" or not is_small:
            return False
        step = quoted(self.dates[0]) if is_time(self.dates[1]) else self.step_number  # dates as every engine has them
        rows = f"SELECT {self.run_sql} AS run, {step} AS step FROM {self.log.table}"
        spans = (
            f"SELECT min(step) AS began, max(step) AS ended FROM ({rows}) AS steps WHERE run IS NOT NULL GROUP BY run"
        )
        before = "max(ended) OVER (ORDER BY began, ended ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
        found = f"SELECT began, CASE WHEN began < {before} THEN 1 ELSE 0 END AS is_over FROM ({spans}) AS spans"
        ((n_begun, n_over),) = self.log.rows(f"SELECT count(DISTINCT began), sum(is_over) FROM ({found}) AS found")
        return bool(n_over) and (n_begun > 1 or is_time(self.dates[1]))

    def require_observations(self, *, is_by_period: bool) -> None:
        """Refuse observations on Spark, and those whose order or gaps are not told."""
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
        """Refuse words that say neither true nor false of partial observations, and rows of a unit after one that saw
        no end.

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
            raise DataError(
                "a log with partial observations needs run and step of each row: ", Option("columns", {STEP: ...})
            )
        names = [name for name in next_columns(self.graph) if name != NEXT_AFTER]
        blank = " AND ".join(f"coalesce(trim(CAST({self.expressions[name]} AS VARCHAR)), '') = ''" for name in names)
        is_open = f"CASE WHEN {is_partial} AND {blank} THEN {self.step_number} END"
        ends = f"min({is_open}) AS open, max({self.step_number}) AS last"
        last = f"SELECT {self.run_sql} AS run, {ends} FROM {table} GROUP BY {self.run_sql}"
        for (run,) in self.log.rows(f"SELECT run FROM ({last}) WHERE open < last LIMIT 1"):
            raise DataError(
                f"run {run} has a row after a partial observation, which did not tell where the unit was: a later row "
                "needs an observation that does"
            )

    def require_known(self, known: Sequence[str]) -> None:
        """Refuse columns that change within a run, so that not all of them is known when it begins."""
        if self.form == "counts" or EPISODE not in self.columns:
            return
        for name in known:
            value = self.expressions[f"{KNOWN}{name}"]
            n = f"count(DISTINCT {value}) + max(CASE WHEN {value} IS NULL THEN 1 ELSE 0 END)"
            runs = f"SELECT {self.run_sql} AS run FROM {self.log.table} GROUP BY 1 HAVING {n} > 1"
            for (run,) in self.log.rows(f"SELECT run FROM ({runs}) AS runs WHERE run IS NOT NULL LIMIT 1"):
                changes = f": {name} changes in run {run}, so that it is not known before the run begins"
                raise DataError(Option("known", [*known]), changes)

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


def stage_sql(value: str, lasts: str, n: int, before: int = 0) -> str:
    """Return the stage of a row, as SQL: one more behind each of n last runs or rows, found by bisection."""
    if n == 0:
        return f"{before}"
    middle = (n + 1) // 2
    above = stage_sql(value, lasts, n - middle, before + middle)
    below = stage_sql(value, lasts, middle - 1, before)
    return f"CASE WHEN {value} > {lasts}[{before + middle}] THEN {above} ELSE {below} END"


def _sorted_by(run: str, kind: str) -> str:
    """Return the sort key of runs, as SQL: numbers in texts as numbers, before other texts."""
    return f"{{'place': TRY_CAST({run} AS DOUBLE), 'run': {run}}}" if kind == "VARCHAR" else run


def _ends_sql(
    state: Mapping[str, str], run: str, step: str, table: str, *, n_last: int, once: bool, by_period: bool
) -> str:
    """Return the query for the last states of runs and their numbers of steps, in DuckDB's words.

    ``n_last`` is 1 if the last row of a run is no step, and ``once`` says that several rows may be of one step. Steps
    that are periods count if their row is missing, too.
    """
    n = f"count(DISTINCT {step})" if once else "count(*)"
    n = f"CAST(max({step}) - min({step}) + 1 AS BIGINT)" if by_period else n
    last = ", ".join(f"max_by({value}, {step}) AS {quoted(name)}" for name, value in state.items())
    where = f"WHERE {run} IS NOT NULL AND {step} IS NOT NULL GROUP BY {run}"
    runs = f"SELECT least({n} - {n_last}, {MOST}) AS {quoted(LENGTH)}, {last} FROM {table} {where}"
    keys = ", ".join(map(quoted, [LENGTH, *state]))
    return f"SELECT {keys}, count(*) AS n FROM ({runs}) AS ended GROUP BY {keys}"


@dataclass(frozen=True)
class LogFacts:
    """What queries find of a log, or of one unit of it."""

    relation: LogSteps
    find_runs: Callable[[bool], tuple[int, bool]]  # their number, and whether each row names its run
    count: Callable[[Moments | None], Iterator[Block]]
    legend: Callable[[], Iterator[Block]]
    past_pages: Callable[[Moments | None, int], Iterator[Block]]
    last_states: Callable[[bool], Block | None]
    unit: str = ""  # its name
    open_runs: OpenRuns | None = None  # where pasts of runs are kept, if they go on from earlier files


def facts_of(relation: LogSteps) -> LogFacts:
    """Return what queries find of a whole log, each when it is asked."""
    return LogFacts(
        relation,
        lambda in_order: relation.find_runs(in_order=in_order),
        relation.count,
        relation.legend,
        relation.past_pages,
        lambda once: relation.last_states(once=once),
    )

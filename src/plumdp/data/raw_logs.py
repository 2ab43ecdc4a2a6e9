"""Logs as they were exported: how texts in them are written, and which of their runs are meant.

Files that DuckDB does not read as they are get a copy: texts in UTF-8, and event logs in XES (IEEE 1849) as rows, an
event each, with the attributes of its trace.
"""

from __future__ import annotations

import codecs
import gzip
import json
import shutil
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from xml.etree.ElementTree import Element, ParseError, iterparse

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import Decimal
from plumdp.data.names import quoted

PLAIN = "utf-8"
FIRST_RUNS, _PLACE = "first_runs", "place_among_rows"
_WHOLE = r"[+-]?(?:\d{1,3}(?:[. \x{A0}\x{202F}'']\d{3})+|\d+)"  # with or without marks of thousands
_MARKS = r"[. \x{A0}\x{202F}'']"


@dataclass(frozen=True)
class TextFormat:
    """How a text file writes its letters, numbers and dates; whether lines that cannot be split are left out."""

    encoding: str = PLAIN
    decimal: Decimal = "."
    date_format: str = ""  # as in strptime; nothing for dates such as 2024-01-31
    skips: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether numbers and dates are written as everywhere else."""
        return self.decimal == "." and not self.date_format

    def plain(self, table: str, types: Mapping[str, str]) -> str:
        """Return a table with numbers and dates in texts as they are written elsewhere."""
        if self.is_plain:
            return table
        columns = (
            f"{self._plain(quoted(name))} AS {quoted(name)}" if kind == "VARCHAR" else quoted(name)
            for name, kind in types.items()
        )
        return f"(SELECT {', '.join(columns)} FROM {table})"

    def _plain(self, column: str) -> str:
        text, number = f"trim({column})", column
        if self.decimal == ",":
            whole = f"replace(regexp_replace({text}, '{_MARKS}', '', 'g'), ',', '.')"
            number = f"CASE WHEN regexp_full_match({text}, '{_WHOLE}(?:,\\d+)?') THEN {whole} ELSE {column} END"
        if not self.date_format:
            return number
        form = self.date_format.replace("'", "''")
        return f"coalesce(CAST(try_strptime({text}, '{form}') AS VARCHAR), {number})"


PLAIN_TEXT = TextFormat()


@dataclass(frozen=True)
class FirstRuns:
    """The runs of a log that come first, or all others: by their first steps, by their numbers, or in its order."""

    n: int
    run: str  # the column that names the run of a row; without one, rows are meant
    step: str = ""  # the column whose least value in a run says when it began, if it has dates
    others: bool = False  # whether the other runs are meant
    means: str = ""  # the column whose means in the first runs are taken for known
    of: tuple[str, ...] = ()  # the files whose first runs are meant, if these are others than those that are read


def first_runs_sql(part: FirstRuns, table: str) -> str:
    """Return the query for the names of the runs that come first, in a column ``run``."""
    text = f"CAST({quoted(part.step)} AS VARCHAR)"
    date = f"TRY_CAST({text} AS TIMESTAMPTZ)"
    began = f"CASE WHEN {text} LIKE '%-%-%' THEN {date} END" if part.step else "NULL"  # a number is not a date
    rows = f"SELECT {quoted(part.run)} AS run, {began} AS began, row_number() OVER () AS place FROM {table}"
    number = "TRY_CAST(run::VARCHAR AS DOUBLE)"
    runs = f"SELECT run, min(began) AS began, min(place) AS place, {number} AS number FROM ({rows}) GROUP BY run"
    numbers = "CASE WHEN bool_and(number NOTNULL) OVER () THEN number END"
    named = f"SELECT *, {numbers} AS in_order FROM ({runs}) WHERE run NOTNULL"
    return f"SELECT run FROM ({named}) ORDER BY began NULLS LAST, in_order, place LIMIT {part.n}"


def part_sql(part: FirstRuns, table: str) -> str:
    """Return the rows of the runs that are meant, once the table of first runs is made."""
    if not part.run:
        rows = f"(SELECT *, row_number() OVER () AS {_PLACE} FROM {table})"
        return f"(SELECT * EXCLUDE ({_PLACE}) FROM {rows} WHERE {_PLACE} {'>' if part.others else '<='} {part.n})"
    run, first = quoted(part.run), f"SELECT run FROM {FIRST_RUNS}"
    if part.of:  # which may write numbers otherwise; to take two names for one leaves out more, whatever happened
        run, first = (f"coalesce(TRY_CAST({name} AS DOUBLE)::VARCHAR, trim({name}::VARCHAR))" for name in (run, "run"))
        first = f"SELECT {first} FROM {FIRST_RUNS}"
    is_first = f"coalesce({run} IN ({first}), FALSE)"
    return f"(SELECT * FROM {table} WHERE {'NOT ' if part.others else ''}{is_first})"


@dataclass(frozen=True, eq=False)
class RawLog:
    """A log that is read otherwise than UTF-8 text with decimal points, or in part; made by ``raw_log``."""

    source: Any
    text: TextFormat = PLAIN_TEXT
    part: FirstRuns | None = None

    def first(self, n: int, *, run: str, step: str = "") -> RawLog:
        """Return the first n runs: those that began first, if the column ``step`` has dates.

        Otherwise runs with numbers come in the order of their numbers, and others as they appear in the log. Without
        the name of a column, the first n rows are meant.
        """
        if not n > 0:
            raise DataError(f"first={n!r}: give a number of runs, at least 1")
        return replace(self, part=FirstRuns(n, run, step))

    def others(self, n: int, *, run: str, step: str = "", means: str = "", of: Sequence[str] = ()) -> RawLog:
        """Return the runs that ``first`` leaves out, and rows without a run.

        ``means`` is a column whose means in the first runs the table has as costs or rewards, which results repeat.
        ``of`` are the files whose first runs are left out, by their names, if the log is another one, or more.
        """
        part = FirstRuns(n, run, step, others=True, means=means, of=tuple(of))
        return replace(self.first(n, run=run, step=step), part=part)


def raw_log(source: Any, *, encoding: str = PLAIN, decimal: Decimal = ".", date_format: str = "") -> RawLog:
    """Return a log for ``read_log`` and others whose texts have another encoding, decimal sign or format of dates.

    Parameters
    ----------
    source: files or a data frame, as in ``read_log``.
    encoding: that of text files, such as "cp1252", by the names that Python has for them.
    decimal: "," reads the texts 4.180,50 and 4180,5 as numbers.
    date_format: how texts write dates, as in ``strptime``: "%d.%m.%Y" reads 17.05.2021.

    >>> import pandas as pd
    >>> from plumdp.data import model_from_log, raw_log
    >>> frame = pd.DataFrame({"episode": [1, 1], "step": ["30.09.2024", "01.10.2024"], "x": ["0", "1.000"]})
    >>> log = raw_log(frame.assign(action="go"), decimal=",", date_format="%d.%m.%Y")
    >>> model_from_log(log, states="x", initial=0).graph.states["x"][:2]
    array([   0, 1000], dtype=int32)
    """
    try:
        codecs.lookup(encoding)
    except (LookupError, TypeError):
        unknown = ": Python knows no encoding of this name; take for example 'cp1252' or 'utf-16'"
        raise DataError(Option("encoding", encoding), unknown) from None
    if decimal not in (".", ","):
        raise DataError(Option("decimal", decimal), ": choose '.' or ','")
    if date_format and "%" not in date_format:
        raise DataError(Option("date_format", date_format), ": write it as in '%d.%m.%Y', which reads 17.05.2021")
    inner = source if isinstance(source, RawLog) else RawLog(source)
    return replace(inner, text=TextFormat(encoding, decimal, date_format))


def as_raw(source: Any) -> RawLog:
    """Return a log with what is said about how it is read."""
    return source if isinstance(source, RawLog) else RawLog(source)


def is_utf_8(encoding: str) -> bool:
    """Return whether text of an encoding need not be converted."""
    return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii")


def write_utf_8(file: str, copy: str, encoding: str) -> None:
    """Write the text of a file, which may be packed, as UTF-8."""
    unpacked = gzip.open if file.lower().endswith(".gz") else open
    try:
        with (
            unpacked(file, "rt", encoding=encoding, newline="") as text,
            open(copy, "w", encoding=PLAIN, newline="") as out,
        ):
            shutil.copyfileobj(text, out, 1 << 20)
    except _BROKEN as error:
        raise DataError(f"{file}: this is not packed by gzip, or was not written to its end ({error})") from None
    except UnicodeError as error:
        raise DataError(
            f"{file}: this is not text in {encoding} ({error}); name another with ", Option("encoding", ...)
        ) from None


_CASE = "case:"  # before the attributes of a trace, as in other tools
_DEEPEST = 64  # levels of elements inside each other
_BROKEN = (EOFError, zlib.error, gzip.BadGzipFile)
_VALUES = ("string", "date", "int", "float", "boolean", "id")


def write_events(file: str, rows: str) -> list[str]:
    """Write the events of a log to a file of JSON lines, trace by trace, and return the names of its columns."""
    names: dict[str, None] = {}
    unpacked = gzip.open if file.lower().endswith(".gz") else open
    try:
        with unpacked(file, "rb") as stream, open(rows, "w", encoding="utf-8") as out:
            level, root = 0, None
            for what, trace in iterparse(stream, ("start", "end")):
                level += 1 if what == "start" else -1
                root = trace if root is None else root
                if level > _DEEPEST:
                    raise DataError(f"{file}: its elements are inside each other at more than {_DEEPEST} levels")
                if what == "end" and level == 1 and _kind(trace) == "trace":
                    case = {f"{_CASE}{key}": value for key, value in _attributes(trace).items()}
                    for event in trace.iterfind("{*}event"):
                        row = case | _attributes(event)
                        names |= dict.fromkeys(row)
                        out.write(f"{json.dumps(row)}\n")
                if what == "end" and level == 1:
                    root.clear()  # else it keeps all that was read
    except (ParseError, *_BROKEN) as error:
        raise DataError(f"{file}: this is not XES, or was not written to its end ({error})") from None
    if not names:
        raise DataError(f"{file}: there is no event in a trace; XES logs have traces of events")
    return [*names]


def _kind(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _attributes(element: Element) -> dict[str, str | None]:
    """Return the values of attributes by key; lists and containers are left out."""
    return {str(each.get("key")): each.get("value") for each in element if _kind(each) in _VALUES}

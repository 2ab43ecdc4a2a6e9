"""Texts of files: how letters, numbers and dates are written, and copies for what DuckDB does not read as it is.

These are texts in UTF-8, and event logs in XES (IEEE 1849) as rows, an event each, with the attributes of its trace.
"""

from __future__ import annotations

import codecs
import gzip
import json
import shutil
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element, ParseError, iterparse

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import Decimal
from plumdp.data.names import quoted

PLAIN = "utf-8"
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

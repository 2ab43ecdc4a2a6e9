"""Event logs in XES (IEEE 1849) as rows: an event each, with the attributes of its trace."""

from __future__ import annotations

import gzip
import json
from xml.etree.ElementTree import Element, ParseError, iterparse

from plumdp.base.errors import DataError

_CASE = "case:"  # before the attributes of a trace, as in other tools
_VALUES = ("string", "date", "int", "float", "boolean", "id")


def write_events(file: str, rows: str) -> list[str]:
    """Write the events of a log to a file of JSON lines, trace by trace, and return the names of its columns."""
    names: dict[str, None] = {}
    unpacked = gzip.open if file.lower().endswith(".gz") else open
    try:
        with unpacked(file, "rb") as stream, open(rows, "w", encoding="utf-8") as out:
            for _, trace in iterparse(stream):
                if _kind(trace) == "trace":
                    case = {f"{_CASE}{key}": value for key, value in _attributes(trace).items()}
                    for event in trace.iterfind("{*}event"):
                        row = case | _attributes(event)
                        names |= dict.fromkeys(row)
                        out.write(f"{json.dumps(row)}\n")
                    trace.clear()
    except (ParseError, EOFError, gzip.BadGzipFile) as error:
        raise DataError(f"{file}: this is not XES, or was not written to its end ({error})") from None
    if not names:
        raise DataError(f"{file}: there is no event in a trace; XES logs have traces of events")
    return [*names]


def _kind(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _attributes(element: Element) -> dict[str, str | None]:
    """Return the values of attributes by key; lists and containers are left out."""
    return {str(each.get("key")): each.get("value") for each in element if _kind(each) in _VALUES}

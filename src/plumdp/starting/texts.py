"""How a file writes letters, numbers and dates, judged by its first rows."""

from __future__ import annotations

import codecs
import gzip
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from plumdp.base.vocabulary import Decimal
from plumdp.data.mapping_language import parse_mapping

DATE_FORMATS = tuple(
    f"{date}{time}"
    for date in ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d.%m.%y", "%d %b %Y", "%b %d, %Y")
    for time in ("", " %H:%M", " %H:%M:%S")
)
_COMMA = re.compile(r"[+-]?(\d{1,3}([. \u00a0\u202f']\d{3})+|\d+),\d+|[+-]?\d{1,3}(\.\d{3}){2,}")
_MOST = 300  # values of a column that are tried


def encoding_of(files: Sequence[str]) -> str:
    """Return how text files are encoded, if it is UTF-8, UTF-16, or else that of Western Windows."""
    for file in files:
        if not _is_text(file):
            continue
        with _opened(file) as stream:
            first = stream.read(1 << 20)
            if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                return "utf-16"
            decoder, chunk = codecs.getincrementaldecoder("utf-8")(), first
            try:
                while chunk:
                    decoder.decode(chunk)
                    chunk = stream.read(1 << 20)
            except UnicodeDecodeError:
                return "cp1252" if not re.search(rb"[\x81\x8d\x8f\x90\x9d]", first) else "latin-1"
    return "utf-8"


def repeated_names(files: Sequence[str]) -> int:
    """Return how many lines of text files are their first line again, as in files that were put together."""
    n = 0
    for file in filter(_is_text, files):
        with _opened(file) as stream:
            first = stream.readline().strip()
            n += sum(line.strip() == first for line in stream)
    return n


def _is_text(file: str) -> bool:
    return "://" not in file and bool(re.search(r"\.(csv|tsv|txt)(\.gz)?$", file.lower()))


def _opened(file: str) -> Any:
    return (gzip.open if file.lower().endswith(".gz") else open)(file, "rb")


def decimal_of(columns: Mapping[str, Sequence[str]]) -> Decimal:
    """Return the decimal sign of a file, given some values of its columns.

    >>> decimal_of({"cost": ["35,00", "4.180,50"], "date": ["17.05.2021"]}), decimal_of({"cost": ["35.00", "4,180.50"]})
    (',', '.')
    """
    for values in columns.values():
        present = _some(values)
        with_comma = sum(bool(_COMMA.fullmatch(value)) for value in present)
        is_number = all(_COMMA.fullmatch(value) or re.fullmatch(r"[+-]?[\d.]+", value) for value in present)
        if with_comma and is_number:
            return ","
    return "."


def date_format_of(columns: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """Return how dates are written, nothing if there are none or DuckDB reads them, and another way to read them.

    >>> date_format_of({"day": ["17.05.2021", "01.02.2021"], "at": ["b", "a"]})
    ('%d.%m.%Y', '')
    >>> date_format_of({"day": ["03/04/2021", "01/02/2021"]})
    ('%d/%m/%Y', '%m/%d/%Y')
    """
    for values in columns.values():
        present = _some(values)
        fitting = [form for form in DATE_FORMATS if present and all(_is_date(value, form) for value in present)]
        if fitting:
            return fitting[0], fitting[1] if len(fitting) > 1 else ""
    return "", ""


def _some(values: Sequence[str]) -> list[str]:
    """Return values that are spread over all, which may be sorted."""
    present = [value.strip() for value in values if value.strip()]
    return present[:: max(1, len(present) // _MOST)]


def _is_date(value: str, form: str) -> bool:
    try:
        return datetime.strptime(value, form).year > 0
    except ValueError:
        return False


def words_of(name: str) -> list[str]:
    """Return the words in the name of a column.

    >>> words_of("PatientID"), words_of("case:concept:name"), words_of("Maßnahme")
    (['patient', 'id'], ['case', 'concept', 'name'], ['massnahme'])
    """
    plain = name.replace("ß", "ss").replace("ä", "ae").replace("ö", "oe").replace("ü", "ue")
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])[A-Z0-9]*|[A-Z]?[a-z]+|\d+", plain)]


def variable_of(name: str) -> str:
    """Return a name for a state variable that properties can use.

    >>> variable_of("Complete Timestamp"), variable_of("concept:name"), variable_of("2nd")
    ('Complete_Timestamp', 'concept_name', 'v2nd')
    """
    word = re.sub(r"\W+", "_", name).strip("_") or "value"
    return word if word.isidentifier() else f"v{word}"


def columns_of(term: str, columns: Collection[str]) -> list[str]:
    """Return the columns that a term names: itself if it is one, or those of an expression."""
    return [term] if term in columns else [*parse_mapping(term).columns()]


def column_term(name: str) -> str:
    """Return a column as the language of mappings writes it."""
    is_word = re.fullmatch(r"[^\W\d]\w*", name) and name.lower() not in ("if", "then", "else", "case", "when", "end")
    return name if is_word and name.lower() not in ("and", "or", "not", "true", "false") else f'"{name}"'

"""Columns of logs and terms over them as SQL, in DuckDB's words: for columns of known types, or for a warehouse."""

from __future__ import annotations

from collections.abc import Mapping

from plumdp.base.errors import DataError
from plumdp.base.vocabulary import LogForm
from plumdp.data.columns import LARGEST_STEP, STEP, Source, not_steps
from plumdp.data.mapping_language import Kind, MappingTerm, finite
from plumdp.data.names import quoted

_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
NUMBERS = (*_WHOLE, "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL")
_TIMES = ("DATE", "TIME")
_ZONED = ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")
DATES = ("DATE", "TIMESTAMP", "VARCHAR")  # how types begin that may have dates
IN_ORDER = (*NUMBERS, *_TIMES)  # how types begin that tell what is first
_TEXTS = ("VARCHAR", "ENUM")
_TRUE, _FALSE = "'true', 'yes', '1', '1.0'", "'false', 'no', '0', '0.0'"


def columns_sql(
    columns: Mapping[str, Source], types: Mapping[str, str], form: LogForm, *, is_warehouse: bool = False
) -> dict[str, str]:
    """Return the sources of columns as SQL. A step of trajectories is a number, or null if it orders nothing.

    A warehouse keeps dates and times of steps as they are.
    """
    return {
        name: mapped_sql(source, types, is_warehouse=is_warehouse)
        if not isinstance(source, str)
        else _step(source, types[source], is_warehouse)
        if name == STEP and form == "trajectories"
        else _plain(source, types[source])
        for name, source in columns.items()
    }


def _plain(column: str, type_name: str) -> str:
    """Return a column as it is; moments of a time zone in UTC, since Python has no type for them."""
    return f"CAST({quoted(column)} AS TIMESTAMP)" if type_name in _ZONED else quoted(column)


def _step(column: str, type_name: str, is_warehouse: bool) -> str:
    kind = type_name.partition("(")[0]
    if kind in _WHOLE:
        return f"TRY_CAST({quoted(column)} AS BIGINT)"
    if kind in NUMBERS or (kind == "VARCHAR" and not is_warehouse):
        number = f"TRY_CAST({quoted(column)} AS DOUBLE)"
        number = f"coalesce({number}, {_moments(column)})" if kind == "VARCHAR" else number
        return f"CASE WHEN abs({number}) < {LARGEST_STEP} THEN {number} END"  # NaN is above all numbers
    if not is_time(kind):
        raise not_steps(column, type_name)
    if is_warehouse:
        return quoted(column)
    unit = "epoch_ns" if kind == "TIMESTAMP_NS" else "epoch_us"
    zoned = "::TIMESTAMPTZ" if kind == "TIMESTAMPTZ_NS" else ""  # whose nanoseconds DuckDB does not give
    return f"2 * {unit}({quoted(column)}{zoned})"  # twice, so that none is the next number


def _moments(column: str) -> str:
    """Return dates and times that are texts as half microseconds; a time without an offset is one of UTC."""
    return ", ".join(f"2 * epoch_us(TRY_CAST({quoted(column)} AS {kind}))" for kind in ("TIMESTAMPTZ", "TIME"))


def is_time(type_name: str) -> bool:
    """Return whether values of a type are dates or times."""
    return type_name.startswith(_TIMES)


def mapped_sql(term: MappingTerm, types: Mapping[str, str], *, is_warehouse: bool = False) -> str:
    """Return a mapping as SQL; in a warehouse, types of columns may not be known."""

    def column(name: str, kind: Kind) -> str:
        if name not in types:
            return _warehouse_column(name, kind)
        return _local_column(name, types[name], kind, is_warehouse)

    return term.written(column)


def _warehouse_column(name: str, kind: Kind) -> str:
    column = quoted(name)
    if kind == "any":
        return column
    if kind == "text":
        return f"trim(CAST({column} AS VARCHAR))"
    types = {"number": "DOUBLE", "truth": "BOOLEAN", "time": "TIMESTAMP"}
    value = f"CAST({column} AS {types[kind]})"
    return finite(value) if kind == "number" else value


def _local_column(name: str, type_name: str, kind: Kind, is_warehouse: bool) -> str:
    column, base = quoted(name), type_name.partition("(")[0]
    if kind == "any" or base == '"NULL"':  # a column without values
        return _warehouse_column(name, kind)
    if kind == "number" and base in NUMBERS:
        value = column if base == "DOUBLE" else f"CAST({column} AS DOUBLE)"
        return finite(value) if base in ("DOUBLE", "FLOAT") else value
    if kind == "time" and base.startswith(("DATE", "TIMESTAMP")):
        return column
    if kind == "time" and base in _TEXTS and not is_warehouse:
        return f"TRY_CAST(trim({column}) AS TIMESTAMPTZ)"  # a bare column would be cast by the reader, which refuses
    if base in _TEXTS and kind != "time":
        text = f"CAST({column} AS VARCHAR)" if base == "ENUM" else column
        if kind == "number":  # only some engines read 1_000, or 3f and 0x1p3
            plain = f"translate({text}, '_dDfFxX', '???????')" if is_warehouse else f"replace({text}, '_', 'x')"
            return finite(f"TRY_CAST({plain} AS DOUBLE)")
        if kind == "text":
            return f"trim({text})"
        word = f"lower(trim({text}))"
        return f"CASE WHEN {word} IN ({_TRUE}) THEN TRUE WHEN {word} IN ({_FALSE}) THEN FALSE END"
    if kind == "truth" and base == "BOOLEAN":
        return column
    if kind == "truth" and base in NUMBERS:
        return f"CASE WHEN {column} = 1 THEN TRUE WHEN {column} = 0 THEN FALSE END"
    raise other_kind(name, type_name, kind)


def other_kind(name: str, type_name: str, kind: Kind) -> DataError:
    """Return the error that a column of some type is not what a mapping takes it for."""
    expected = {"number": "a number", "text": "a text", "truth": "true or false", "time": "a date"}.get(
        kind, "anything"
    )
    return DataError(
        f"the mapping of states or actions reads column {name} as {expected}, but it has the type {type_name}; "
        "change the expression, or the type of the column"
    )

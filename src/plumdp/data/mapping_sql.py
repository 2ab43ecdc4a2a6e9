"""Mappings as expressions of SQL, in DuckDB's words: for columns of known types, or for a warehouse.

A number that is not finite is unknown. Sums, products and roundings of such numbers are not finite either, so that most
need no check: what reads the result takes NaN and infinity for unknown. Checks are where something could hide them:
comparisons, denominators, minima and maxima.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from plumdp.base.errors import DataError
from plumdp.base.vocabulary import LogForm
from plumdp.data.columns import LARGEST_STEP, STEP, Source, not_steps
from plumdp.data.mapping_language import COMPARISONS, OF_TEXTS, Kind, MappingNode
from plumdp.data.mappings import OUTSIDE
from plumdp.data.names import quoted

_LARGEST = "1.7976931348623157e308"  # of all finite numbers
_LONGEST = 100_000  # characters
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
NUMBERS = (*_WHOLE, "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL")
_TIMES = ("DATE", "TIME")
_ZONED = ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")
DATES = ("DATE", "TIMESTAMP", "VARCHAR")  # how types begin that may have dates
IN_ORDER = (*NUMBERS, *_TIMES)  # how types begin that tell what is first
_TEXTS = ("VARCHAR", "ENUM")
_TRUE, _FALSE = "'true', 'yes', '1', '1.0'", "'false', 'no', '0', '0.0'"

Column = Callable[[str, Kind], str]
"""Returns a column as SQL, for its name and for what it is read as."""


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


def mapped_sql(term: MappingNode, types: Mapping[str, str], *, is_warehouse: bool = False) -> str:
    """Return a mapping as SQL; in a warehouse, types of columns may not be known, and engines differ on NaN."""

    def column(name: str, kind: Kind) -> str:
        if name not in types:
            return _warehouse_column(name, kind)
        return _local_column(name, types[name], kind, is_warehouse)

    return _Writer(column, is_strange=is_warehouse).write(term)


def finite(number: str) -> str:
    """Return a number as SQL that is null if it is not finite, in all dialects."""
    return f"CASE WHEN {number} BETWEEN -{_LARGEST} AND {_LARGEST} THEN {number} END"


class _Writer:
    """Writes terms as SQL; strange engines differ on NaN and infinity."""

    def __init__(self, column: Column, *, is_strange: bool) -> None:
        self._column, self._is_strange = column, is_strange

    def write(self, term: MappingNode, *, is_checked: bool = False) -> str:
        """Return a term as SQL; ``is_checked``: null where it is not finite."""
        text = self._write(term, is_checked)
        if len(text) > _LONGEST:
            raise DataError("an expression of the mapping is too large: minima and conditions are nested too deeply")
        return text

    def _write(self, term: MappingNode, is_checked: bool) -> str:
        if term.operator == "number":
            return _literal(term.value)
        if term.operator == "text":
            return "'" + str(term.value).replace("'", "''") + "'"
        if term.operator == "truth":
            return "TRUE" if term.value else "FALSE"
        if term.operator == "bins":
            return self._bins(term)
        if term.operator in OF_TEXTS:
            return f"{term.operator}({self.write(term.operands[0])})"
        if term.operator == "contains":
            text, part = (self.write(operand) for operand in term.operands)
            return f"(strpos({text}, {part}) > 0)"
        if term.operator in COMPARISONS or term.operator in ("and", "or", "not"):
            return self._truth(term)
        if term.operator == "column":
            text = self._column(str(term.value), term.kind)
            is_checked |= self._is_strange
        elif term.operator == "if":
            condition, then, otherwise = (self.write(operand) for operand in term.operands)
            text = f"CASE WHEN {condition} THEN {then} WHEN NOT {condition} THEN {otherwise} END"
        else:
            text = self._date_part(term) if term.operator == "date_part" else self._arithmetic(term)
        return finite(text) if is_checked and term.kind == "number" else text

    def _truth(self, term: MappingNode) -> str:
        """Comparisons and connectives; null where it is not known what holds."""
        parts = [self.write(operand, is_checked=True) for operand in term.operands]
        if term.operator == "not":
            return f"(NOT {parts[0]})"
        return f"({parts[0]} {'<>' if term.operator == '!=' else term.operator.upper()} {parts[1]})"

    def _date_part(self, term: MappingNode) -> str:
        """A part of a date or time as a number; weekdays are 1 to 7 from Monday on, as 5 January 1970 was one."""
        time, part = self.write(term.operands[0]), str(term.value)
        if part == "microseconds":
            since = f"date_diff('microsecond', TIMESTAMP '1970-01-01', CAST({time} AS TIMESTAMP))"
            return f"CAST({since} AS DOUBLE)"  # exact to the year 2255
        if part not in ("weekday", "days"):
            return f"CAST(floor(EXTRACT({part} FROM {time})) AS DOUBLE)"
        days = f"CAST(date_diff('day', DATE '1970-01-05', CAST({time} AS DATE)) AS DOUBLE)"
        return days if part == "days" else f"({days} - 7e0 * floor({days} / 7e0) + 1e0)"

    def _arithmetic(self, term: MappingNode) -> str:
        if term.operator in ("min", "max"):
            parts = [self.write(operand, is_checked=True) for operand in term.operands]
            chosen = "least" if term.operator == "min" else "greatest"
            all_known = " AND ".join(f"{part} IS NOT NULL" for part in parts)
            return f"CASE WHEN {all_known} THEN {chosen}({', '.join(parts)}) END"
        if term.operator == "/":
            return f"({self.write(term.operands[0])} / {self._denominator(term.operands[1])})"
        if term.operator == "mod":
            dividend, divisor = self.write(term.operands[0]), self._denominator(term.operands[1])
            return f"({dividend} - {divisor} * {self._rounded('floor', f'({dividend} / {divisor})')})"
        parts = [self.write(operand) for operand in term.operands]
        if term.operator == "round":
            return self._rounded("floor", f"({parts[0]} + 0.5e0)")
        if term.operator in ("floor", "ceil"):
            return self._rounded(term.operator, parts[0])
        if term.operator == "abs":
            return f"abs({parts[0]})"
        return f"({f' {term.operator} '.join(parts)})" if len(parts) == 2 else f"(- {parts[0]})"

    def _rounded(self, function: str, number: str) -> str:
        """A floor or ceiling, which may be an integer, or 0 for NaN; numbers from 2^53 on are whole as they are."""
        rounded = f"{function}({number})"
        return f"CASE WHEN abs({number}) < {OUTSIDE} THEN {rounded} ELSE {number} END" if self._is_strange else rounded

    def _denominator(self, term: MappingNode) -> str:
        if term.operator == "number" and term.value:
            return self.write(term)
        return f"NULLIF({self.write(term, is_checked=True)}, 0e0)"

    def _bins(self, term: MappingNode) -> str:
        """The number of the bin; null for what is not finite: NaN compares as the largest number, or not at all."""
        value, edges = self._column(str(term.operands[0].value), "number"), term.value
        assert isinstance(edges, tuple)
        cases = [f"WHEN {value} < -{_LARGEST} THEN NULL", f"WHEN {value} < {_literal(edges[0])} THEN -{OUTSIDE}"]
        cases += [f"WHEN {value} < {_literal(edge)} THEN {number}" for number, edge in enumerate(edges[1:-1])]
        cases += [f"WHEN {value} <= {_literal(edges[-1])} THEN {len(edges) - 2}"]
        return f"CASE {' '.join(cases)} WHEN {value} <= {_LARGEST} THEN {OUTSIDE} END"


def _literal(value: object) -> str:
    """Return a number that is read as a float of 64 bits, exactly."""
    text = repr(value).removesuffix(".0")
    text = text if "e" in text else f"{text}e0"
    return f"({text})" if text.startswith("-") else text


def _warehouse_column(name: str, kind: Kind) -> str:
    column = quoted(name)
    if kind == "any":
        return column
    if kind == "text":
        return f"trim(CAST({column} AS VARCHAR))"
    types = {"number": "DOUBLE", "truth": "BOOLEAN", "time": "TIMESTAMP"}
    return f"CAST({column} AS {types[kind]})"


def _local_column(name: str, type_name: str, kind: Kind, is_warehouse: bool) -> str:
    column, base = quoted(name), type_name.partition("(")[0]
    if kind == "any" or base == '"NULL"':  # a column without values
        return _warehouse_column(name, kind)
    if kind == "number" and base in NUMBERS:
        return column if base == "DOUBLE" else f"CAST({column} AS DOUBLE)"
    if kind == "time" and base.startswith(("DATE", "TIMESTAMP")):
        return column
    if kind == "time" and base in _TEXTS and not is_warehouse:
        return f"TRY_CAST(trim({column}) AS TIMESTAMPTZ)"  # a bare column would be cast by the reader, which refuses
    if base in _TEXTS and kind != "time":
        text = f"CAST({column} AS VARCHAR)" if base == "ENUM" else column
        if kind == "number":  # only some engines read 1_000, or 3f and 0x1p3
            plain = f"translate({text}, '_dDfFxX', '???????')" if is_warehouse else f"replace({text}, '_', 'x')"
            return f"TRY_CAST({plain} AS DOUBLE)"
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

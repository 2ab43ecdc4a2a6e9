"""The language of mappings: SQL over the columns of a log, as DuckDB reads it, with few operators and functions.

sqlglot reads a text into a tree, and only what is listed here is written from it: nothing of the text itself ever
becomes part of a query. Numbers are floats of 64 bits. A value that is missing, not finite or not a number is unknown,
and so is what depends on it, here also the least of numbers and a case. Sums, products and roundings of numbers that
are not finite are not finite either, and what reads the result takes NaN and infinity for unknown: so checks are only
where something could hide them, in comparisons, denominators, and the least or greatest of numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from typing import Any, Literal, NoReturn, TypeAlias

from plumdp.base.errors import DataError

Kind: TypeAlias = Literal["number", "text", "truth", "time", "any"]
"""What a term gives; a column can be any of the four until something is asked of it."""

OUTSIDE = 2**53  # numbers from here on are whole; bins give them to values outside, and no state has them
_LARGEST = "1.7976931348623157e308"  # of all finite numbers
_LONGEST, _LONGEST_SQL = 1000, 100_000  # characters
_MOST, _DEEPEST = 300, 160  # parts, and parts in each other
_SHOWN = {"number": "a number", "text": "a text", "truth": "true or false", "time": "a date", "any": "a column"}
_DATE_PARTS = ("year", "month", "day", "isodow", "hour", "minute", "second")
_COLUMN = re.compile("\0([a-z]+):([^\0]*)\0")
_ALONE = re.compile(r'\s*(?:(?!(?:true|false|null)\s*$)([^\W\d]\w*)|"([^"\0]+)")\s*', re.IGNORECASE)
_FINITE = re.compile(rf"{_COLUMN.pattern}|\(?-? ?[0-9.]+(?:e[-+]?[0-9]+)?\)?")  # a column or a number
_CLOSES = {"L_PAREN": ")", "CASE": "end"}
_ARITHMETIC, _EQUAL = {"add": "+", "sub": "-", "mul": "*"}, {"eq": "=", "neq": "<>"}
_ORDERS = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_FLAGS = {"typed", "safe", "ignore_nulls"}  # of nodes, which say how others read them
_OPERANDS = {"this", "expression", "expressions", "low", "high"}


@dataclass(frozen=True)
class MappingTerm:
    """An expression as SQL of DuckDB, in which columns are marked, each with what it is read as."""

    sql: str
    kind: Kind = "number"
    edges: tuple[float, ...] = ()  # of bins

    def columns(self) -> list[str]:
        """Return the names of the columns in it, each once."""
        return [*dict.fromkeys(name for _, name in _COLUMN.findall(self.sql))]

    def renamed(self, names: Mapping[str, str]) -> MappingTerm:
        """Return the term with other names of columns."""
        return replace(self, sql=self.written(lambda name, kind: column(names[name], kind)))

    def written(self, write: Callable[[str, Kind], str]) -> str:
        """Return it as SQL, with columns as something writes them, given the name of each and what it is read as."""
        return _COLUMN.sub(lambda found: write(found[2], found[1]), self.sql)  # type: ignore[arg-type]


def column(name: str, kind: Kind) -> str:
    """Return a column as SQL of terms."""
    if "\0" in name:
        raise DataError(f"the name {name!r} of a column has a zero byte; give it another name")
    return f"\0{kind}:{name}\0"


def text(value: str) -> str:
    """Return a text as SQL of terms."""
    return "'" + value.replace("'", "''") + "'"


def number(value: float) -> str:
    """Return a number as SQL that is read as a float of 64 bits, exactly."""
    shown = repr(float(value)).removesuffix(".0")
    shown = shown if "e" in shown else f"{shown}e0"
    return f"({shown})" if shown.startswith("-") else shown


def finite(sql: str) -> str:
    """Return a number as SQL that is null if it is not finite, in all dialects."""
    return f"CASE WHEN {sql} BETWEEN -{_LARGEST} AND {_LARGEST} THEN {sql} END"


def rounded(function: str, sql: str) -> str:
    """Return a floor or ceiling as SQL; engines may give an integer, or 0 for NaN, which large numbers need not be."""
    return f"CASE WHEN abs({sql}) < {OUTSIDE} THEN {function}({sql}) ELSE {sql} END"


def date_part(part: str, time: str) -> str:
    """Return a part of a date or time as SQL of a number; days are counted from a Monday on, 5 January 1970."""
    if part == "microseconds":
        since = f"date_diff('microsecond', TIMESTAMP '1970-01-01', CAST({time} AS TIMESTAMP))"
        return f"CAST({since} AS DOUBLE)"  # exact to the year 2255
    if part not in ("isodow", "days"):
        return f"CAST(floor(EXTRACT({part} FROM {time})) AS DOUBLE)"
    days = f"CAST(date_diff('day', DATE '1970-01-05', CAST({time} AS DATE)) AS DOUBLE)"
    return days if part == "days" else f"({days} - 7e0 * floor({days} / 7e0) + 1e0)"


def bins(name: str, edges: Sequence[float]) -> MappingTerm:
    """Return the number of the bin of a column; null for what is not finite."""
    value = column(name, "number")
    cases = [f"WHEN {value} < {number(edges[0])} THEN -{OUTSIDE}"]
    cases += [f"WHEN {value} < {number(edge)} THEN {i}" for i, edge in enumerate(edges[1:-1])]
    cases += [f"WHEN {value} <= {number(edges[-1])} THEN {len(edges) - 2}"]
    return MappingTerm(f"CASE {' '.join(cases)} WHEN {value} IS NOT NULL THEN {OUTSIDE} END", "number", tuple(edges))


def parse_mapping(written: str) -> MappingTerm:
    """Return the expression that a text writes; one that is a column alone needs no sqlglot.

    >>> parse_mapping("floor(lon / 0.5)").columns()
    ['lon']
    >>> parse_mapping("case when speed > 3 and weather <> 'rain' then 1 else 0 end").kind
    'number'
    """
    if len(written) > _LONGEST:
        raise DataError(f"the expression has {len(written):,} characters; at most {_LONGEST:,} are read")
    alone = _ALONE.fullmatch(written)
    if alone:
        return MappingTerm(column(alone[1] or alone[2], "any"), "any")
    if not written.strip():
        raise DataError("the expression is empty; write for example floor(lon / 0.5)")
    return _MappingReader(re.sub(r"\s", " ", written)).term


def _checked(sql: str) -> str:
    return sql if _FINITE.fullmatch(sql) else finite(sql)


def _divisor(sql: str) -> str:
    return sql if sql[0].isdigit() and float(sql) else f"NULLIF({sql}, 0e0)"


def _towards_zero(sql: str, shift: str = "") -> str:
    """Return a number without its fraction as SQL; engines know trunc for dates, and round in several ways."""
    below, above = (f"({sql} {sign} {shift})" if shift else sql for sign in "-+")
    return f"CASE WHEN {sql} < 0e0 THEN {rounded('ceil', below)} ELSE {rounded('floor', above)} END"


def _modulo(dividend: str, divisor: str) -> str:
    by = _divisor(divisor)
    return f"({dividend} - {by} * {_towards_zero(f'({dividend} / {by})')})"


def _extreme(function: str, *parts: str) -> str:
    all_known = " AND ".join(f"{part} IS NOT NULL" for part in parts)
    return f"CASE WHEN {all_known} THEN {function}({', '.join(parts)}) END"


def _in(value: str, *others: str) -> str:
    return "(" + " OR ".join(f"{value} = {other}" for other in others) + ")"


@dataclass(frozen=True)
class _Rule:
    """What a node takes and gives, how many of them (none: two or more), and how it is written."""

    takes: Kind
    gives: Kind
    n: int | None
    write: Callable[..., str]
    is_checked: bool = False  # whether what is not finite must be null before


_INFIX = "({{}} {} {{}})"
_RULES = {
    **{key: _Rule("number", "number", 2, _INFIX.format(sign).format) for key, sign in _ARITHMETIC.items()},
    **{key: _Rule("number", "truth", 2, _INFIX.format(sign).format, is_checked=True) for key, sign in _ORDERS.items()},
    **{key: _Rule("any", "truth", 2, _INFIX.format(sign).format, is_checked=True) for key, sign in _EQUAL.items()},
    **{key: _Rule("truth", "truth", 2, _INFIX.format(key.upper()).format) for key in ("and", "or")},
    **{key: _Rule("text", "text", 1, f"{key}({{}})".format) for key in ("lower", "upper", "trim")},
    **{key: _Rule("number", "number", None, partial(_extreme, key), is_checked=True) for key in ("least", "greatest")},
    **{key: _Rule("number", "number", 1, partial(rounded, key)) for key in ("floor", "ceil")},
    "not": _Rule("truth", "truth", 1, "(NOT {})".format),
    "neg": _Rule("number", "number", 1, "(- {})".format),
    "abs": _Rule("number", "number", 1, "abs({})".format),
    "round": _Rule("number", "number", 1, partial(_towards_zero, shift="0.5e0")),  # away from zero in the middle
    "div": _Rule("number", "number", 2, lambda a, b: f"({a} / {_divisor(b)})", is_checked=True),
    "mod": _Rule("number", "number", 2, _modulo, is_checked=True),
    "contains": _Rule("text", "truth", 2, "(strpos({}, {}) > 0)".format),
    "in": _Rule("any", "truth", None, _in, is_checked=True),
    "between": _Rule("number", "truth", 3, "({0} >= {1} AND {0} <= {2})".format, is_checked=True),
}
_THERE_ARE = (
    "+ - * / %, = <> < <= > >=, and or not in between, case when … then … else … end, and the functions "
    "floor ceil round abs mod least greatest date_part contains lower upper trim if"
)


class _MappingReader:
    """A walk through the tree of an expression."""

    def __init__(self, written: str) -> None:
        self._text = written
        tree = self._tree()
        if sum(node.key not in ("paren", "identifier") for node in tree.walk()) > _MOST:
            raise DataError(f"the expression has more than {_MOST} parts")
        self.term = self._term(tree)

    def _tree(self) -> Any:
        import sqlglot
        from sqlglot import exp

        dialect = sqlglot.Dialect.get_or_raise("duckdb")
        try:
            tokens = dialect.tokenize(self._text)
        except sqlglot.errors.TokenError:
            self._refuse("a text or the name of a column is not closed", len(self._text))
        self._check_tokens(tokens)
        try:
            trees = dialect.parser().parse_into(exp.Condition, tokens, self._text)
        except RecursionError:
            raise DataError("the expression is nested too deeply") from None
        except sqlglot.errors.ParseError as error:
            found = error.errors[0]
            self._refuse(f"SQL cannot be read at {found['highlight']}", found["col"] - len(found["highlight"]))
        if len(trees) != 1 or trees[0] is None:  # of a sign alone, or a word that belongs elsewhere
            self._refuse("this is no expression", 0)
        return trees[0]

    def _check_tokens(self, tokens: Sequence[Any]) -> None:
        """Refuse what is not closed, comments and several statements; sqlglot is lenient with some of these."""
        open_ones: list[str] = []
        for token, after in zip(tokens, [*tokens[1:], None], strict=True):
            kind, written = token.token_type.name, self._text[token.start : token.end + 1].lower()
            if token.comments:
                self._refuse("an expression has no comments; write - (-1) for two signs", token.end + 1)
            if kind == "SEMICOLON":
                self._refuse("; is not part of an expression", token.start)
            if kind in ("R_PAREN", "END") and token.text.lower() != (open_ones.pop() if open_ones else ""):
                self._refuse(f"found {token.text} where nothing has begun that it could end", token.start)
            if kind in _CLOSES:
                open_ones.append(_CLOSES[kind])
            if written == "if" and (after is None or after.text != "("):
                self._refuse("a choice is written case when … then … else … end in SQL", token.start)
        if open_ones:
            self._refuse(f"the text ends where {open_ones[-1]} is expected", len(self._text.rstrip()))

    def _refuse(self, sentence: str, where: Any) -> NoReturn:
        """Raise an error that shows the text with a caret under the position, or the first one of a node."""
        if not isinstance(where, int):
            starts = (node.meta["start"] for node in where.walk() if "start" in node.meta)
            where = min(starts, default=0)
        raise DataError(f"{sentence}\n  {self._text}\n  {' ' * where}^")

    def _term(self, node: Any, depth: int = 0) -> MappingTerm:
        if depth > _DEEPEST:
            raise DataError("the expression is nested too deeply")
        if node.key == "paren":
            return self._term(node.this, depth + 1)
        if node.key in ("column", "literal", "boolean"):
            return self._leaf(node)
        if node.key in ("case", "if"):
            return self._case(node, depth)
        parts = [*node.iter_expressions()]
        if node.key == "extract" or (node.key == "anonymous" and node.name.lower() == "date_part"):
            return self._date_part(node, parts, depth)
        rule, said = _RULES.get(node.key), {name for name, value in node.args.items() if value} - _FLAGS
        if rule is None:
            self._refuse_node(node)
        if len(parts) != (rule.n or max(len(parts), 2)):
            values = f"{rule.n or 'two or more'} {'value' if rule.n == 1 else 'values'}"
            self._refuse(f"{node.key} takes {values}, not {len(parts)}", node)
        if not said <= _OPERANDS:
            self._refuse_node(node)
        terms = [self._term(part, depth + 1) for part in parts]
        takes = _common(terms) if rule.takes == "any" else rule.takes
        written = [self._as(takes, term, part) for term, part in zip(terms, parts, strict=True)]
        if rule.is_checked and takes == "number":
            written = [_checked(each) for each in written]
        return self._made(rule.write(*written), rule.gives)

    def _leaf(self, node: Any) -> MappingTerm:
        if node.key == "boolean":
            return MappingTerm("TRUE" if node.this else "FALSE", "truth")
        if node.key == "column":
            if set(filter(node.args.get, node.args)) != {"this"} or node.this.key != "identifier":
                self._refuse_node(node)
            return MappingTerm(column(node.name, "any"), "any")
        if not node.is_string:
            if not isfinite(float(node.name)):
                self._refuse(f"{node.name} is too large", node)
            return MappingTerm(number(float(node.name)))
        if re.search(r"[\\\x00-\x1f]", node.name):  # which dialects read in different ways
            self._refuse("a text has no backslash and no sign that cannot be seen", node)
        return MappingTerm(text(node.name), "text")

    def _case(self, node: Any, depth: int) -> MappingTerm:
        """Return a case that is unknown where it is unknown which one it is."""
        whens, otherwise = (
            (node.args["ifs"], node.args.get("default")) if node.key == "case" else ([node], node.args.get("false"))
        )
        if node.key == "case" and node.this:
            self._refuse("a case begins with when: write case when a = 1 then …", node)
        if otherwise is None:
            self._refuse("a case needs an else", node)
        conditions = [self._as("truth", self._term(each.this, depth + 1), each.this) for each in whens]
        nodes = [*(each.args["true"] for each in whens), otherwise]
        terms = [self._term(each, depth + 1) for each in nodes]
        kind = _common(terms)
        *values, last = (self._as(kind, term, each) for term, each in zip(terms, nodes, strict=True))
        cases = (
            f"WHEN {c} IS NULL THEN NULL WHEN {c} THEN {value}" for c, value in zip(conditions, values, strict=True)
        )
        return self._made(f"CASE {' '.join(cases)} ELSE {last} END", kind)

    def _date_part(self, node: Any, parts: Sequence[Any], depth: int) -> MappingTerm:
        if len(parts) != 2:
            self._refuse(f"date_part takes 2 values, not {len(parts)}", node)
        part, time = parts
        if part.key not in ("literal", "var") or part.name.lower() not in _DATE_PARTS:
            self._refuse(f"the first value of date_part is one of {', '.join(map(repr, _DATE_PARTS))}", part)
        return self._made(date_part(part.name.lower(), self._as("time", self._term(time, depth + 1), time)), "number")

    def _as(self, kind: Kind, term: MappingTerm, node: Any) -> str:
        """Return a term as what is asked of it; a column is read as that."""
        if term.kind == "any":
            return term.written(lambda name, _: column(name, kind))
        if term.kind != kind:
            self._refuse(f"found {_SHOWN[term.kind]} where {_SHOWN[kind]} is expected", node)
        return term.sql

    def _made(self, sql: str, kind: Kind) -> MappingTerm:
        if len(sql) > _LONGEST_SQL:
            raise DataError("the expression is too large: conditions or the least of numbers are nested too deeply")
        return MappingTerm(sql, kind)

    def _refuse_node(self, node: Any) -> NoReturn:
        self._refuse(f"{node.sql('duckdb')} cannot be used in an expression; there are {_THERE_ARE}", node)


def _common(terms: Sequence[MappingTerm]) -> Kind:
    """Return the common type of terms that must be alike; columns alone are numbers."""
    return next((term.kind for term in terms if term.kind != "any"), "number")

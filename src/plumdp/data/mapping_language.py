"""The language of mappings: an expression over the columns of a log, read into a tree that engines evaluate.

Numbers are floats of 64 bits, and a value that is missing, not finite or not a number is unknown; what depends on an
unknown value is unknown. Nothing of the text itself ever becomes part of a query.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Literal, TypeAlias

from plumdp.base.errors import DataError

Kind: TypeAlias = Literal["number", "text", "truth", "time", "any"]
"""What a term gives; a column can be any of the four until something is asked of it."""

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_LEVELS = (("or",), ("and",), COMPARISONS, ("+", "-"), ("*", "/", "%"))
_LEVEL = {word: level for level, words in enumerate(_LEVELS) for word in words}  # the higher, the tighter
_TIGHTEST = len(_LEVELS)
_CONNECTIVES = ("and", "or", "not")
OF_TEXTS = ("lower", "upper", "trim")
DATE_PARTS = ("year", "month", "day", "weekday", "hour", "minute", "second")
_FUNCTIONS: dict[str, int | None] = {"floor": 1, "ceil": 1, "round": 1, "abs": 1, "mod": 2, "date_part": 2}
_FUNCTIONS |= {"min": None, "max": None, "contains": 2} | dict.fromkeys(OF_TEXTS, 1)  # None: two or more
_SAME = {"==": "=", "<>": "!=", "&": "and", "&&": "and", "|": "or", "||": "or", "!": "not"}
_WORDS = (*_CONNECTIVES, "if", "then", "else", "case", "when", "end")
_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<word>[^\W\d]\w*)"
    r'|(?P<quoted>"[^"\n]+"|`[^`\n]+`)'
    r"|(?P<text>'(?:[^'\n\\]|'')*')"
    r"|(?P<symbol><=|>=|<>|!=|==|&&|\|\||[-+*/%<>=!&|?:(),])"
)
_LONGEST = 1000  # characters
_LARGEST = 300  # terms
_DEEPEST = 80  # of them in each other
_SHOWN = {"number": "a number", "text": "a text", "truth": "true or false", "time": "a date", "any": "a column"}


_Value: TypeAlias = float | str | bool | tuple[float, ...] | None


@dataclass(frozen=True)
class MappingNode:
    """A node: an operator with operands, a literal, a column by name, or the bins of a column."""

    operator: str
    operands: tuple[MappingNode, ...] = ()
    value: _Value = None
    kind: Kind = "number"
    position: int = field(default=0, compare=False)  # where it starts in the text

    def columns(self) -> list[str]:
        """Return the names of the columns in it, each once."""
        name_of_column = [str(self.value)] if self.operator == "column" else []
        return [*dict.fromkeys([*name_of_column, *(name for operand in self.operands for name in operand.columns())])]

    def renamed(self, names: dict[str, str]) -> MappingNode:
        """Return the term with other names of columns."""
        if self.operator == "column":
            return replace(self, value=names[str(self.value)])
        return replace(self, operands=tuple(operand.renamed(names) for operand in self.operands))


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    position: int

    @property
    def word(self) -> str:
        """What a word or symbol stands for, however it is spelled; nothing for others."""
        return _SAME.get(self.text, self.text.lower()) if self.kind in ("word", "symbol") else ""


def parse_mapping(text: str) -> MappingNode:
    """Return the expression that a text writes.

    >>> parse_mapping("floor(lon / 0.5)").columns()
    ['lon']
    >>> parse_mapping("if speed > 3 and weather != 'rain' then 1 else 0").kind
    'number'
    """
    if len(text) > _LONGEST:
        raise DataError(f"the expression has {len(text):,} characters; at most {_LONGEST:,} are read")
    return _MappingReader(text).whole()


class _MappingReader:
    """A walk through the tokens of an expression; only ``_index``, ``_size`` and ``_depth`` change."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokenize(text)
        self._index = self._size = self._depth = 0

    def whole(self) -> MappingNode:
        """Return the only expression in the text."""
        if self._next.kind == "end":
            raise DataError("the expression is empty; write for example floor(lon / 0.5)")
        term = self._conditional()
        if self._next.kind != "end":
            raise self._unexpected("after the end of the expression")
        return term

    @property
    def _next(self) -> _Token:
        return self._tokens[self._index]

    def _accept(self, *words: str) -> str:
        """Step over one of some words if it is next; return it, or nothing."""
        word = self._next.word if self._next.word in words else ""
        self._index += bool(word)
        return word

    def _expect(self, *words: str) -> str:
        word = self._accept(*words)
        if not word:
            raise self._unexpected(f"where {' or '.join(words)} is expected")
        return word

    def _unexpected(self, where: str) -> DataError:
        problem = "the text ends" if self._next.kind == "end" else f"found {self._next.text}"
        return _error(f"{problem} {where}", self._text, self._next.position)

    def _conditional(self) -> MappingNode:
        """Read ``if … then … else …``, ``case when … end``, ``… ? … : …``, or what has none of them around it."""
        start = self._next
        self._depth += 1
        if self._depth > _DEEPEST:
            raise DataError("the expression is nested too deeply")
        if self._accept("if"):
            term = self._choice(start, self._conditional(), "then", "else")
        elif self._accept("case"):
            self._expect("when")
            term = self._choice(start, self._conditional(), "then", "when", "else")
            self._expect("end")
        else:
            term = self._operation(0)
            term = self._choice(start, term, "?", ":") if self._next.word == "?" else term
        self._depth -= 1
        return term

    def _choice(self, start: _Token, condition: MappingNode, then: str, *otherwise: str) -> MappingNode:
        condition = self._as("truth", condition)
        self._expect(then)
        one = self._conditional()
        has_more = self._expect(*otherwise) == "when"
        second, other = self._next, self._conditional()
        other = self._choice(second, other, then, *otherwise) if has_more else other
        kind = _common(one, other)
        return self._make("if", start, condition, self._as(kind, one), self._as(kind, other), kind=kind)

    def _operation(self, loosest: int) -> MappingNode:
        """Read operators that bind at least as tightly as a level, from left to right; comparisons do not follow on."""
        start, limit = self._next, _TIGHTEST
        left = self._prefixed(loosest)
        while loosest <= (level := _LEVEL.get(self._next.word, _TIGHTEST)) < limit:
            operator = self._accept(*_LEVELS[level])
            left = self._apply(operator, start, left, self._operation(level + 1))
            limit = level if operator in COMPARISONS else limit
        return left

    def _prefixed(self, loosest: int) -> MappingNode:
        start = self._next
        if loosest <= _LEVEL["="] and self._accept("not"):
            return self._apply("not", start, self._operation(_LEVEL["="]))
        if self._accept("+"):
            return self._prefixed(_TIGHTEST)
        if not self._accept("-"):
            return self._primary()
        term = self._prefixed(_TIGHTEST)
        if term.operator == "number" and isinstance(term.value, float):
            return replace(term, value=-term.value, position=start.position)
        return self._apply("-", start, term)

    def _primary(self) -> MappingNode:
        token = self._next
        if self._accept("("):
            term = self._conditional()
            self._expect(")")
            return replace(term, position=token.position)
        if token.kind in ("symbol", "end") or token.word in _WORDS:
            raise self._unexpected("where a number, a column or a function is expected")
        self._index += 1
        if token.kind == "number":
            if not isfinite(float(token.text)):
                raise _error(f"{token.text} is too large", self._text, token.position)
            return self._make("number", token, value=float(token.text), kind="number")
        if token.kind == "text":
            return self._make("text", token, value=token.text[1:-1].replace("''", "'"), kind="text")
        if token.kind == "quoted":
            return self._make("column", token, value=token.text[1:-1], kind="any")
        if self._accept("("):
            return self._function(token)
        if token.word in ("true", "false"):
            return self._make("truth", token, value=token.word == "true", kind="truth")
        return self._make("column", token, value=token.text, kind="any")

    def _function(self, token: _Token) -> MappingNode:
        name = token.word
        if name not in _FUNCTIONS:
            sentence = f"{token.text} is not a function that can be used here; there are {', '.join(_FUNCTIONS)}"
            raise _error(sentence, self._text, token.position)
        operands = [self._conditional()]
        while self._accept(","):
            operands.append(self._conditional())
        self._expect(")")
        arity, n_operands = _FUNCTIONS[name], len(operands)
        if n_operands != (arity or max(n_operands, 2)):
            values = f"{arity or 'two or more'} {'value' if arity == 1 else 'values'}"
            raise _error(f"{name} takes {values}, not {n_operands}", self._text, token.position)
        return self._date_part(token, *operands) if name == "date_part" else self._apply(name, token, *operands)

    def _date_part(self, token: _Token, part: MappingNode, time: MappingNode) -> MappingNode:
        if part.operator != "text" or part.value not in DATE_PARTS:
            parts = ", ".join(map(repr, DATE_PARTS))
            raise _error(f"the first value of date_part is one of {parts}", self._text, part.position)
        return self._make("date_part", token, self._as("time", time), value=part.value, kind="number")

    def _apply(self, operator: str, start: _Token, *operands: MappingNode) -> MappingNode:
        of_texts = (*OF_TEXTS, "contains")
        takes: Kind = "truth" if operator in _CONNECTIVES else "text" if operator in of_texts else "number"
        takes = _common(*operands) if operator in ("=", "!=") else takes
        gives: Kind = "truth" if operator in (*_CONNECTIVES, *COMPARISONS, "contains") else takes
        terms = [self._as(takes, operand) for operand in operands]
        return self._make("mod" if operator == "%" else operator, start, *terms, kind=gives)

    def _as(self, kind: Kind, term: MappingNode) -> MappingNode:
        """Return a term as what is asked of it; a column is read as that."""
        if term.kind == "any":
            return replace(term, kind=kind)
        if term.kind != kind:
            raise _error(f"found {_SHOWN[term.kind]} where {_SHOWN[kind]} is expected", self._text, term.position)
        return term

    def _make(
        self, operator: str, start: _Token, *operands: MappingNode, value: _Value = None, kind: Kind
    ) -> MappingNode:
        self._size += 1
        if self._size > _LARGEST:
            raise DataError(f"the expression has more than {_LARGEST} parts")
        return MappingNode(operator, operands, value, kind, start.position)


def _common(*terms: MappingNode) -> Kind:
    """Return the common type of terms that must be alike; columns alone are numbers."""
    return next((term.kind for term in terms if term.kind != "any"), "number")


def _tokenize(text: str) -> list[_Token]:
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _error(_strange(text[position]), text, position)
        if match.lastgroup != "space":
            tokens.append(_Token(str(match.lastgroup), match[0], position))
        position = match.end()
    return [*tokens, _Token("end", "", len(text.rstrip()))]


def _strange(letter: str) -> str:
    """Return the message for a letter that begins no token."""
    if letter in "'\"`":
        token = "a text" if letter == "'" else "the name of a column"
        return f"{letter} opens {token} that is not closed, or holds a backslash or the end of a line"
    return f"{letter} is not part of an expression"


def _error(sentence: str, text: str, position: int) -> DataError:
    """Return an error that shows the text with a caret under the position."""
    line = " ".join(text.splitlines()) if "\n" in text else text
    return DataError(f"{sentence}\n  {line}\n  {' ' * position}^")

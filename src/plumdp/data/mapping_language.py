"""The language of mappings: an expression over the columns of a log, read into a tree that engines evaluate.

Numbers are floats of 64 bits, and a value that is missing, not finite or not a number is unknown; what depends on an
unknown value is unknown. Nothing of the text itself ever becomes part of a query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal, NamedTuple, TypeAlias

from plumdp.base.errors import DataError

Kind: TypeAlias = Literal["number", "text", "truth", "any"]
"""What a term gives; a column can be any of the three until something is asked of it."""

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_LEVELS = (("or",), ("and",), COMPARISONS, ("+", "-"), ("*", "/", "%"))
_LEVEL = {word: level for level, words in enumerate(_LEVELS) for word in words}  # the higher, the tighter
_TIGHTEST = len(_LEVELS)
_CONNECTIVES = ("and", "or", "not")
_FUNCTIONS = {"floor": 1, "ceil": 1, "round": 1, "abs": 1, "mod": 2, "min": None, "max": None}  # None: two or more
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
_SHOWN = {"number": "a number", "text": "a text", "truth": "true or false", "any": "a column"}


@dataclass(frozen=True)
class Term:
    """A node: an operator with operands, a literal, a column by name, or the bins of a column."""

    operator: str
    operands: tuple[Term, ...] = ()
    value: float | str | bool | tuple[float, ...] | None = None
    kind: Kind = "number"

    def leaves(self) -> Iterator[Term]:
        """Yield the columns in it."""
        if self.operator == "column":
            yield self
        for operand in self.operands:
            yield from operand.leaves()

    def columns(self) -> list[str]:
        """Return the names of the columns in it, each once."""
        return [*dict.fromkeys(str(leaf.value) for leaf in self.leaves())]

    def renamed(self, names: dict[str, str]) -> Term:
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


class _Operand(NamedTuple):
    """A term, and the token it starts with."""

    term: Term
    start: _Token


def parse_mapping(text: str) -> Term:
    """Return the expression that a text writes.

    >>> parse_mapping("floor(lon / 0.5)").columns()
    ['lon']
    >>> parse_mapping("if speed > 3 and weather != 'rain' then 1 else 0").kind
    'number'
    """
    if len(text) > _LONGEST:
        raise DataError(f"the expression has {len(text):,} characters; at most {_LONGEST:,} are read")
    return _Reader(text).whole()


class _Reader:
    """A walk through the tokens of an expression; only ``_index``, ``_size`` and ``_depth`` change."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokenize(text)
        self._index = self._size = self._depth = 0

    def whole(self) -> Term:
        """Return the only expression in the text."""
        if self._next.kind == "end":
            raise DataError("the expression is empty; write for example floor(lon / 0.5)")
        operand = self._conditional()
        if self._next.kind != "end":
            raise self._unexpected("after the end of the expression")
        return operand.term

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
        what = "the text ends" if self._next.kind == "end" else f"found {self._next.text}"
        return _error(f"{what} {where}", self._text, self._next.position)

    def _conditional(self) -> _Operand:
        """Read ``if … then … else …``, ``case when … end``, ``… ? … : …``, or what has none of them around it."""
        start = self._next
        self._depth += 1
        if self._depth > _DEEPEST:
            raise DataError("the expression is nested too deeply")
        if self._accept("if"):
            operand = self._choice(start, self._conditional(), "then", "else")
        elif self._accept("case"):
            self._expect("when")
            operand = self._choice(start, self._conditional(), "then", "when", "else")
            self._expect("end")
        else:
            operand = self._operation(0)
            operand = self._choice(start, operand, "?", ":") if self._next.word == "?" else operand
        self._depth -= 1
        return operand

    def _choice(self, start: _Token, condition: _Operand, then: str, *otherwise: str) -> _Operand:
        holds = self._as("truth", condition)
        self._expect(then)
        one = self._conditional()
        has_more = self._expect(*otherwise) == "when"
        other = self._conditional()
        other = self._choice(other.start, other, then, *otherwise) if has_more else other
        kind = _common(one, other)
        return _Operand(self._make("if", holds, self._as(kind, one), self._as(kind, other), kind=kind), start)

    def _operation(self, loosest: int) -> _Operand:
        """Read operators that bind at least as tightly as a level, from left to right; comparisons do not follow on."""
        left, limit = self._prefixed(loosest), _TIGHTEST
        while loosest <= (level := _LEVEL.get(self._next.word, _TIGHTEST)) < limit:
            operator = self._accept(*_LEVELS[level])
            left = self._apply(operator, left.start, left, self._operation(level + 1))
            limit = level if operator in COMPARISONS else limit
        return left

    def _prefixed(self, loosest: int) -> _Operand:
        start = self._next
        if loosest <= _LEVEL["="] and self._accept("not"):
            return self._apply("not", start, self._operation(_LEVEL["="]))
        if not self._accept("+", "-"):
            return self._primary()
        operand = self._prefixed(_TIGHTEST)
        if start.text == "+":
            return operand
        if isinstance(operand.term.value, float):
            return _Operand(replace(operand.term, value=-operand.term.value), start)
        return self._apply("-", start, operand)

    def _primary(self) -> _Operand:
        token = self._next
        if self._accept("("):
            operand = self._conditional()
            self._expect(")")
            return _Operand(operand.term, token)
        if token.kind in ("symbol", "end") or token.word in _WORDS:
            raise self._unexpected("where a number, a column or a function is expected")
        self._index += 1
        if token.kind == "word" and self._accept("("):
            return self._function(token)
        return _Operand(self._literal(token), token)

    def _literal(self, token: _Token) -> Term:
        """Return a number, a text, a truth value or a column."""
        if token.kind == "number":
            if not isfinite(float(token.text)):
                raise _error(f"{token.text} is too large", self._text, token.position)
            return self._make("number", value=float(token.text), kind="number")
        if token.kind == "text":
            return self._make("text", value=token.text[1:-1].replace("''", "'"), kind="text")
        if token.word in ("true", "false"):
            return self._make("truth", value=token.word == "true", kind="truth")
        return self._make("column", value=token.text[1:-1] if token.kind == "quoted" else token.text, kind="any")

    def _function(self, token: _Token) -> _Operand:
        name = token.word
        if name not in _FUNCTIONS:
            sentence = f"{token.text} is not a function that can be used here; there are {', '.join(_FUNCTIONS)}"
            raise _error(sentence, self._text, token.position)
        operands = [self._conditional()]
        while self._accept(","):
            operands.append(self._conditional())
        self._expect(")")
        wanted, given = _FUNCTIONS[name], len(operands)
        if given != (wanted or max(given, 2)):
            values = f"{wanted or 'two or more'} {'value' if wanted == 1 else 'values'}"
            raise _error(f"{name} takes {values}, not {given}", self._text, token.position)
        return self._apply(name, token, *operands)

    def _apply(self, operator: str, start: _Token, *operands: _Operand) -> _Operand:
        takes: Kind = "truth" if operator in _CONNECTIVES else "number"
        takes = _common(*operands) if operator in ("=", "!=") else takes
        gives: Kind = "truth" if operator in (*_CONNECTIVES, *COMPARISONS) else "number"
        terms = [self._as(takes, operand) for operand in operands]
        return _Operand(self._make("mod" if operator == "%" else operator, *terms, kind=gives), start)

    def _as(self, kind: Kind, operand: _Operand) -> Term:
        """Return a term as what is asked of it; a column is read as that."""
        term, start = operand
        if term.kind == "any":
            return replace(term, kind=kind)
        if term.kind != kind:
            raise _error(f"found {_SHOWN[term.kind]} where {_SHOWN[kind]} is expected", self._text, start.position)
        return term

    def _make(self, operator: str, *operands: Term, value: float | str | bool | None = None, kind: Kind) -> Term:
        self._size += 1
        if self._size > _LARGEST:
            raise DataError(f"the expression has more than {_LARGEST} parts")
        return Term(operator, operands, value, kind)


def _common(*operands: _Operand) -> Kind:
    """Return what terms are read as if they must be alike; columns alone as numbers."""
    return next((each.term.kind for each in operands if each.term.kind != "any"), "number")


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
    """Return what is wrong with a letter that begins nothing."""
    if letter in "'\"`":
        what = "a text" if letter == "'" else "the name of a column"
        return f"{letter} opens {what} that is not closed, or holds a backslash or the end of a line"
    return f"{letter} is not part of an expression"


def _error(sentence: str, text: str, position: int) -> DataError:
    """Return an error that shows the text with a caret under the position."""
    line = " ".join(text.splitlines()) if "\n" in text else text
    return DataError(f"{sentence}\n  {line}\n  {' ' * position}^")

"""The language of mappings: an expression over the columns of a log, read into a tree that engines evaluate.

Numbers are floats of 64 bits, and a value that is missing, not finite or not a number is unknown; what depends on an
unknown value is unknown. Nothing of the text itself ever becomes part of a query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal, TypeAlias

from plumdp.base.errors import DataError

Kind: TypeAlias = Literal["number", "text", "truth", "any"]
"""What a term gives; a column can be any of the three until something is asked of it."""

FUNCTIONS: dict[str, int | None] = {
    "floor": 1, "ceil": 1, "round": 1, "abs": 1, "mod": 2, "min": None, "max": None,
}  # fmt: skip
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_SAME = {"==": "=", "<>": "!=", "&": "and", "&&": "and", "|": "or", "||": "or", "!": "not", "%": "mod"}
_WORDS = ("and", "or", "not", "if", "then", "else", "case", "when", "end", "true", "false")
_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<word>[^\W\d]\w*)"
    r'|(?P<quoted>"[^"\n]+"|`[^`\n]+`)'
    r"|(?P<text>'(?:[^'\n\\]|'')*')"
    r"|(?P<symbol><=|>=|<>|!=|==|&&|\|\||[-+*/%<>=!&|?:(),])"
)
_SPACE = re.compile(r"\s*")
_LONGEST = 1000  # characters
_LARGEST = 300  # terms
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


def parse_mapping(text: str) -> Term:
    """Return the expression that a text writes.

    >>> parse_mapping("floor(lon / 0.5)").columns()
    ['lon']
    >>> parse_mapping("if speed > 3 and weather != 'rain' then 1 else 0").kind
    'number'
    """
    if len(text) > _LONGEST:
        raise DataError(f"the expression has {len(text):,} characters; at most {_LONGEST:,} are read")
    reader = _Reader(text)
    try:
        return reader.whole()
    except RecursionError:
        raise DataError("the expression is nested too deeply") from None


class _Reader:
    """A walk through the tokens of an expression; only ``_index`` and ``_size`` change."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokenize(text)
        self._index = self._size = 0

    def whole(self) -> Term:
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

    def _is_next(self, *words: str) -> bool:
        token = self._next
        return token.kind in ("word", "symbol") and _SAME.get(token.text, token.text.lower()) in words

    def _take(self) -> _Token:
        token = self._next
        self._index += token.kind != "end"
        return token

    def _accept(self, *words: str) -> bool:
        found = self._is_next(*words)
        self._index += found
        return found

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            raise self._unexpected(f"where {word} is expected")

    def _unexpected(self, where: str) -> DataError:
        token = self._next
        found = "the text ends" if token.kind == "end" else f"found {token.text}"
        return _error(f"{found} {where}", self._text, token.position)

    def _make(self, operator: str, *operands: Term, value: float | str | bool | None = None, kind: Kind) -> Term:
        self._size += 1
        if self._size > _LARGEST:
            raise DataError(f"the expression has more than {_LARGEST} parts")
        return Term(operator, operands, value, kind)

    def _as(self, kind: Kind, term: Term, start: _Token) -> Term:
        """Return a term as what is asked of it; a column is read as that."""
        if term.kind == "any":
            return replace(term, kind=kind)
        if term.kind != kind:
            raise _error(f"found {_SHOWN[term.kind]} where {_SHOWN[kind]} is expected", self._text, start.position)
        return term

    def _conditional(self) -> Term:
        """Read ``if … then … else …``, ``case when … end``, ``… ? … : …``, or what has none of them around it."""
        start = self._next
        if self._accept("if"):
            condition = self._condition()
            self._expect("then")
            return self._choice(condition, "else")
        if self._accept("case"):
            self._expect("when")
            term = self._cases()
            self._expect("end")
            return term
        term = self._either()
        if not self._accept("?"):
            return term
        return self._choice(self._as("truth", term, start), ":")

    def _condition(self) -> Term:
        start = self._next
        return self._as("truth", self._conditional(), start)

    def _choice(self, condition: Term, otherwise: str) -> Term:
        first = self._next
        then = self._conditional()
        self._expect(otherwise)
        return self._branches(condition, then, first, self._next, self._conditional())

    def _cases(self) -> Term:
        condition = self._condition()
        self._expect("then")
        first = self._next
        then = self._conditional()
        if not self._is_next("when", "else"):
            raise self._unexpected("where when or else is expected")
        is_last = self._accept("else")
        self._index += not is_last
        second = self._next
        return self._branches(condition, then, first, second, self._conditional() if is_last else self._cases())

    def _branches(self, condition: Term, then: Term, first: _Token, second: _Token, otherwise: Term) -> Term:
        kind = _common(then, otherwise)
        both = (self._as(kind, then, first), self._as(kind, otherwise, second))
        return self._make("if", condition, *both, kind=kind)

    def _either(self) -> Term:
        return self._logical("or", lambda: self._logical("and", self._negation))

    def _logical(self, word: str, part: Callable[[], Term]) -> Term:
        start = self._next
        term = part()
        while self._accept(word):
            second = self._next
            term = self._as("truth", term, start)
            term = self._make(word, term, self._as("truth", part(), second), kind="truth")
        return term

    def _negation(self) -> Term:
        if not self._accept("not"):
            return self._comparison()
        start = self._next
        return self._make("not", self._as("truth", self._negation(), start), kind="truth")

    def _comparison(self) -> Term:
        start = self._next
        left = self._sum()
        if not self._is_next(*COMPARISONS):
            return left
        operator = self._take().text
        operator = _SAME.get(operator, operator)
        second = self._next
        right = self._sum()
        kind: Kind = _common(left, right) if operator in ("=", "!=") else "number"
        return self._make(operator, self._as(kind, left, start), self._as(kind, right, second), kind="truth")

    def _sum(self) -> Term:
        return self._arithmetic(("+", "-"), lambda: self._arithmetic(("*", "/", "mod"), self._signed))

    def _arithmetic(self, operators: tuple[str, ...], part: Callable[[], Term]) -> Term:
        start = self._next
        term = part()
        while self._next.kind == "symbol" and self._is_next(*operators):
            operator = self._take().text
            second = self._next
            term = self._as("number", term, start)
            right = self._as("number", part(), second)
            term = self._make(_SAME.get(operator, operator), term, right, kind="number")
        return term

    def _signed(self) -> Term:
        if self._accept("+"):
            return self._signed()
        if not self._accept("-"):
            return self._primary()
        start = self._next
        inner = self._as("number", self._signed(), start)
        if inner.operator == "number" and isinstance(inner.value, float):
            return replace(inner, value=-inner.value)
        return self._make("-", inner, kind="number")

    def _primary(self) -> Term:
        token = self._take()
        if token.kind == "number":
            if not isfinite(float(token.text)):
                raise _error(f"{token.text} is too large", self._text, token.position)
            return self._make("number", value=float(token.text), kind="number")
        if token.kind == "text":
            return self._make("text", value=token.text[1:-1].replace("''", "'"), kind="text")
        if token.kind == "quoted":
            return self._make("column", value=token.text[1:-1], kind="any")
        if token.text == "(":
            term = self._conditional()
            self._expect(")")
            return term
        if token.kind != "word" or token.text.lower() in _WORDS[:-2]:
            self._index -= token.kind != "end"
            raise self._unexpected("where a number, a column or a function is expected")
        if self._is_next("("):
            return self._function(token)
        if token.text.lower() in ("true", "false"):
            return self._make("truth", value=token.text.lower() == "true", kind="truth")
        return self._make("column", value=token.text, kind="any")

    def _function(self, token: _Token) -> Term:
        name = token.text.lower()
        if name not in FUNCTIONS:
            sentence = f"{token.text} is not a function that can be used here; there are {', '.join(FUNCTIONS)}"
            raise _error(sentence, self._text, token.position)
        self._expect("(")
        operands = [self._operand()]
        while self._accept(","):
            operands.append(self._operand())
        self._expect(")")
        wanted = FUNCTIONS[name]
        if len(operands) != wanted if wanted else len(operands) < 2:
            values = f"{wanted or 'two or more'} {'value' if wanted == 1 else 'values'}"
            raise _error(f"{name} takes {values}, not {len(operands)}", self._text, token.position)
        return self._make(name, *operands, kind="number")

    def _operand(self) -> Term:
        start = self._next
        return self._as("number", self._conditional(), start)


def _common(one: Term, other: Term) -> Kind:
    """Return what both of two terms are read as; two columns as numbers."""
    kinds: list[Kind] = [each.kind for each in (one, other) if each.kind != "any"]
    return kinds[0] if kinds else "number"


def _tokenize(text: str) -> list[_Token]:
    tokens, position = [], _skip_space(text, 0)
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _error(_strange(text[position]), text, position)
        tokens.append(_Token(str(match.lastgroup), match[0], position))
        position = _skip_space(text, match.end())
    return [*tokens, _Token("end", "", len(text.rstrip()))]


def _strange(letter: str) -> str:
    """Return what is wrong with a letter that begins nothing."""
    if letter in "'\"`":
        what = "a text" if letter == "'" else "the name of a column"
        return f"{letter} opens {what} that is not closed, or holds a backslash or the end of a line"
    return f"{letter} is not part of an expression"


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _error(sentence: str, text: str, position: int) -> DataError:
    """Return an error that shows the text with a caret under the position."""
    line = " ".join(text.splitlines()) if "\n" in text else text
    return DataError(f"{sentence}\n  {line}\n  {' ' * position}^")

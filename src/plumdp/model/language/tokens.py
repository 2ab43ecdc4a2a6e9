"""The tokens of a property, read from left to right, with errors that point at a place in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from plumdp.base.errors import ModelError

_SPACE = re.compile(r"(?:\s|//[^\n]*)*")
_COMMENT = re.compile(r'("[^"\n]*")|//[^\n]*')  # which no quoted name is, whatever is in it
_TOKEN = re.compile(
    r"(?P<number>(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<word>[^\W\d]\w*)"
    r'|(?P<quoted>"[^"\n]*")'
    r"|(?P<symbol><=>|=>|<=|>=|!=|\|\||[-+*/<>=!&|?:()\[\]{},;])"
)

_SHOWN = 200  # characters of a text that errors show, on either side of the place

OPERATOR = re.compile(r"(P|R|S|T|LRA)((?:max|min)*)")
_LTL = "a formula about one state is expected here; temporal operators are for Pmax=? [ F … ] or Pmin=? [ … U … ]"
_CTL = "the CTL operators E and A are not supported; ask for a probability with Pmax=? or Pmin=?"
REFUSED = {
    **dict.fromkeys(("F", "G", "X", "U", "W", "R"), _LTL),
    **dict.fromkeys(("E", "A"), _CTL),
    "T": "expected time is not supported; give every state the reward 1 and ask for that reward",
    "I": 'the reward of the state after k steps is asked by R{"name"}max=? [ I=k ]',
    "||": "conditional probabilities are not supported; for a logical or write a single |",
    "multi": "several objectives at once are not supported; ask for one value per property",
    "filter": "filters are not supported; the value is that of the initial state, so write the inner property alone",
    "{": "filters are not supported; the value is that of the initial state, so close the bracket here",
}
_JOINING = ("U", "W", "R", "||")  # what may be between two formulas


@dataclass(frozen=True)
class Token:
    """A word, number, quoted text or symbol, and where it starts."""

    kind: str
    text: str
    position: int


class Tokens:
    """A walk through the tokens of a text, in which only ``index`` changes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.all = _tokenize(text)
        self.index = 0

    @property
    def next(self) -> Token:
        """The token to be read next, or one of kind ``end`` at the end."""
        return self.all[self.index]

    def take(self) -> Token:
        """Return the next token and step over it."""
        token = self.next
        self.index += token.kind != "end"
        return token

    def accept(self, text: str) -> bool:
        """Step over the next token if it is the given one, and return whether it was."""
        is_next = self.next.text == text
        self.index += is_next
        return is_next

    def expect(self, text: str) -> None:
        """Step over the given token, or raise if the next one is another."""
        if text in (")", "]", "U") and self.next.text in _JOINING and self.next.text != text:
            raise self.refused(self.next)
        if not self.accept(text):
            raise self.unexpected(f"where {text} is expected")

    def expect_end(self, what: str) -> None:
        """Raise if anything is left."""
        if self.next.text in _JOINING:
            raise self.refused(self.next)
        if self.next.kind != "end":
            raise self.unexpected(f"after the end of the {what}; give one {what} at a time")

    def unexpected(self, where: str) -> ModelError:
        """Return the error that the next token is in the wrong place."""
        instead = "the text ends" if self.next.kind == "end" else f"found {self.next.text}"
        return self.error(f"{instead} {where}")

    def refused(self, token: Token, name: str | None = None) -> ModelError:
        """Return the error that a known construct is not supported."""
        name = name or token.text
        return self.error(f"{name}: {REFUSED[name]}", token)

    def error(self, sentence: str, token: Token | None = None) -> ModelError:
        """Return an error that points at a token, or else at the next one."""
        return _error(sentence, self.text, (token or self.next).position)

    def since(self, token: Token, stop: int | None = None) -> str:
        """Return the text from a token up to that number ``stop``, or to the last one read, cut if it is long."""
        last = self.all[(stop or self.index) - 1]
        read = self.text[token.position : last.position + len(last.text)]
        return read if len(read) <= _SHOWN else f"{read[:_SHOWN]}…"


def without_comments(text: str) -> str:
    """Return what a text says, and what may be printed of it."""
    return _COMMENT.sub(lambda match: match[1] or "", text).strip()


def unwrapped(tokens: list[Token]) -> list[Token]:
    """Return tokens without parentheses around all of them."""
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            return unwrapped(tokens[1:-1]) if i and i == len(tokens) - 1 else tokens
    return tokens


def _tokenize(text: str) -> list[Token]:
    tokens, position = [], _skip_space(text, 0)
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            is_quote = text[position] == '"'
            problem = "opens a name that is never closed" if is_quote else "is not part of the property language"
            raise _error(f"{text[position]} {problem}", text, position)
        tokens.append(Token(str(match.lastgroup), match[0], position))
        position = _skip_space(text, match.end())
    end = tokens[-1].position + len(tokens[-1].text) if tokens else 0
    return [*tokens, Token("end", "", end)]


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _error(sentence: str, text: str, position: int) -> ModelError:
    """Return an error that shows the line of the text with a caret under the position."""
    first = max(text.rfind("\n", 0, position) + 1, position - _SHOWN)
    line = text[first : position + _SHOWN].split("\n", 1)[0].rstrip()
    indent = "".join(letter if letter == "\t" else " " for letter in text[first:position])
    return ModelError(f"{sentence}\n  {line}\n  {indent}^")

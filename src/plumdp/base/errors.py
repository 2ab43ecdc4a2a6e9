"""What plumdp says in place of an answer: errors on misuse, with what is wrong, where and how to fix it, or ``WhyNot``.

A message is made of parts: plain text, and the options that it speaks of, which each front end spells in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from json import JSONDecodeError
from os import PathLike
from typing import Concatenate, ParamSpec, TypeVar
from unicodedata import category

_First = TypeVar("_First")
_Rest = ParamSpec("_Rest")
_Result = TypeVar("_Result")

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # categories of Unicode: control, format, surrogates, lines, paragraphs


@dataclass(frozen=True)
class WhyNot:
    """What a function returns in place of a proof, a product or an expansion, where there is none: in words, why."""

    reason: str
    code: str = ""  # of a reason that something is decided by


UNSAID = WhyNot("")  # the reason goes without saying


class Untold:
    """Stands for the value of an option that a message names without one."""


@dataclass(frozen=True)
class Option:
    """A keyword that a message speaks of, with its value: as text it is what one would write in Python.

    The value ``...`` is left to the reader, and so are the entries of an empty mapping. A function that is called
    otherwise on the command line is an option without a value.

    >>> print(Option("order", "runs"), Option("columns", {"step": ...}), Option("columns", {}), Option("space"))
    order='runs' columns={'step': …} columns={…} space
    """

    name: str
    value: object = Untold

    def __str__(self) -> str:
        return self.name if self.value is Untold else f"{self.name}={_in_python(self.value)}"


def _in_python(value: object) -> str:
    if value is ...:
        return "…"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_in_python(entry)}' for key, entry in value.items()) or '…'}}}"
    return repr(float(value) if isinstance(value, float) else value)  # a float of NumPy is one too


class Misuse(Exception):
    """The base of what plumdp raises on misuse; its arguments are the parts of the message.

    >>> str(Misuse(Option("confidence", 1.5), ": give a number between 0 and 1"))
    'confidence=1.5: give a number between 0 and 1'
    """

    def __init__(self, *parts: str | Option) -> None:
        super().__init__(*parts)

    def __str__(self) -> str:
        return "".join(map(str, self.args))


class ModelError(Misuse, ValueError):
    """A model, an expression or a property that cannot be used as given.

    Parameters
    ----------
    *parts
        Texts and ``Option`` values that make up the message.
    """


class EmptySpace(ModelError):
    """A parameter space in which there is no point."""


class DataError(Misuse, ValueError):
    """Data that do not fit the model they are meant for.

    Parameters
    ----------
    *parts
        Texts and ``Option`` values that make up the message.
    """


class MissingExtra(Misuse, ImportError):
    """An optional part of plumdp is needed but not installed."""


def visible(text: str) -> str:
    r"""Return a text with control characters as escapes, which JSON knows as well where it has none of its own.

    Line breaks and tabs stay.

    >>> print(visible("\x1b[2Jverified\x9b\u202e"))
    \x1b[2Jverified\u009b\u202e
    """
    if text.isprintable():
        return text
    hidden = (each for each in {*text} - {"\n", "\t"} if category(each) in _HIDDEN)
    return text.translate({ord(each): _escape(each) for each in hidden})


def in_line(text: str) -> str:
    r"""Return a text in which line breaks are escapes, too, so that a name makes no line of its own in a message.

    >>> print(in_line("won\nverified"))
    won\nverified
    """
    return text if text.isprintable() else visible(text).replace("\n", "\\n")


def _escape(character: str) -> str:
    if character < " ":
        return f"\\x{ord(character):02x}"
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def fault_of(error: BaseException) -> str:
    """Return what is wrong with a file, in words of the file: what Python's own code lacks in it tells people nothing.

    >>> fault_of(DataError("it has no rows")), fault_of(KeyError("schema"))
    ('it has no rows', 'a part of it is missing, or is not what it should be')
    """
    if isinstance(error, Misuse | JSONDecodeError):
        return str(error)
    words = "not enough memory" if isinstance(error, MemoryError) else getattr(error, "strerror", None)
    return words or "a part of it is missing, or is not what it should be"


@contextmanager
def needs(message: str) -> Iterator[None]:
    """Raise a MissingExtra if the import of an optional library fails, unless it was interrupted by Ctrl-C.

    An extension that is interrupted while it is loaded fails with an ImportError.
    """
    try:
        yield
    except ImportError as error:
        if any(isinstance(each, KeyboardInterrupt) for each in chain_of(error)):
            raise KeyboardInterrupt from None
        raise MissingExtra(message) from None


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def require_kind(given: object, kind: type | tuple[type, ...], wanted: str) -> None:
    """Refuse a value of another type; ``wanted`` names the function and what it takes.

    >>> require_kind(3, str, "read_model takes a path")
    Traceback (most recent call last):
    plumdp.base.errors.DataError: read_model takes a path, not int
    """
    if not isinstance(given, kind):
        raise DataError(f"{wanted}, not {type(given).__name__}")


def takes_first(
    kind: type[_First], made_by: str
) -> Callable[[Callable[Concatenate[_First, _Rest], _Result]], Callable[Concatenate[_First, _Rest], _Result]]:
    """Return a decorator by which a verb refuses a first argument of another type, with the line to write."""

    def decorate(
        verb: Callable[Concatenate[_First, _Rest], _Result],
    ) -> Callable[Concatenate[_First, _Rest], _Result]:
        named = [each.name for each in signature(verb).parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
        line = f"{verb.__name__}({', '.join(named)})"

        @wraps(verb)
        def checked(first: _First, /, *rest: _Rest.args, **options: _Rest.kwargs) -> _Result:
            if not isinstance(first, kind):
                given = f"{verb.__name__} takes what {made_by} returns, not {type(first).__name__}"
                raise DataError(f"{given}: write {line}")
            return verb(first, *rest, **options)

        return checked

    return decorate


def require_path(function: str, given: object) -> None:
    """Refuse what is not the path of a file or folder."""
    require_kind(given, (str, PathLike), f"{function} takes a path")

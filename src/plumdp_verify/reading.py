"""Reads JSON with suspicion: every part is asked for by its kind, and refused with its place if it is another one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from flint import arb, fmpq

MAX_BYTES = 300_000_000  # of a file
_MAX_JSON = 100_000_000  # bytes, which are some gigabytes once they are lists
_MAX_DIGITS = 400  # of a whole number in a fraction
_MAX_WORK = 30_000_000  # operations, which take about a minute
_MAX_MESSAGE = 300  # characters

Exact: TypeAlias = Any  # fmpq; the library has no types
Ball: TypeAlias = Any  # arb: a middle and a radius that hold the number


class Rejected(Exception):
    """A step of the proof does not hold; ``layer`` names it once it is known."""

    is_broken = True  # and not just unknown

    def __init__(self, message: str, layer: str = "") -> None:
        shown = message[:_MAX_MESSAGE] + ("…" if len(message) > _MAX_MESSAGE else "")
        super().__init__(shown if shown.isprintable() else repr(shown)[1:-1])  # texts may hold what moves a cursor
        self.layer = layer


def require(holds: bool, message: str) -> None:
    """Reject with a message unless a condition holds."""
    if not holds:
        raise Rejected(message)


class _Work:
    left: int | None = None  # operations, or no limit


def work(n: int) -> None:
    """Say how many operations come next, and reject what takes too many."""
    if _Work.left is not None:
        _Work.left -= n
        require(_Work.left >= 0, f"to check this takes more than {_MAX_WORK:,} operations, which verify refuses")


@contextmanager
def limited_work() -> Iterator[None]:
    """Limit the work, so that no input takes much more than a minute."""
    before, _Work.left = _Work.left, _MAX_WORK
    try:
        yield
    finally:
        _Work.left = before


def read_bytes(path: Path) -> bytes:
    """Return the content of a plain file of a reasonable size: pipes and devices may have no end."""
    is_plain = path.is_file() and not path.is_symlink()
    require(is_plain or not path.exists(), f"{path.name} is not a file")
    try:
        size = path.stat().st_size
        require(size <= MAX_BYTES, f"{path.name} has {size:,} bytes; at most {MAX_BYTES:,} are read")
        return path.read_bytes()
    except OSError as error:
        raise Rejected(f"{path.name} cannot be read: {error.strerror}") from None


def read_json(content: bytes, name: str) -> Part:
    """Return a JSON object; numbers that are not finite, repeated names and deep nesting are refused."""
    require(len(content) <= _MAX_JSON, f"{name} has more than {_MAX_JSON:,} bytes")
    try:
        value = json.loads(content.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_no_repetition)
    except RecursionError:
        raise Rejected(f"{name} is nested too deeply") from None
    except UnicodeDecodeError:
        raise Rejected(f"{name} is not text in UTF-8") from None
    except json.JSONDecodeError as error:
        raise Rejected(f"{name} is not JSON: {error.msg}, in line {error.lineno}") from None
    except ValueError as error:  # such as a whole number of too many digits
        raise Rejected(f"{name} is not JSON that can be read: {error}") from None
    part = Part(value, name)
    require(isinstance(value, dict), f"{name} is not a JSON object")
    return part


def _no_constant(text: str) -> NoReturn:
    raise Rejected(f"{text} is not a number")


def _no_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = sorted(name for name, _ in pairs)
        raise Rejected(f"the name {next(a for a, b in pairwise(names) if a == b)!r} is given twice")
    return content


class Part:
    """A part of a JSON file, and the place where it was found."""

    def __init__(self, value: Any, place: str) -> None:
        self.value, self.place = value, place

    def __getitem__(self, name: str | int) -> Part:
        if isinstance(name, int):
            items = self._of(list, "a list")
            require(0 <= name < len(items), f"{self.place}: there is no item {name}")
            return Part(items[name], f"{self.place}[{name}]")
        content = self._of(dict, "an object")
        require(name in content, f"{self.place}: {name!r} is missing")
        return Part(content[name], f"{self.place}: {name}")

    def __contains__(self, name: str) -> bool:
        return name in self._of(dict, "an object")

    def __iter__(self) -> Iterator[Part]:
        return (Part(item, f"{self.place}[{i}]") for i, item in enumerate(self._of(list, "a list")))

    def __len__(self) -> int:
        return len(self._of(list, "a list"))

    def names(self) -> list[str]:
        """Return the names of an object."""
        return list(self._of(dict, "an object"))

    def _of(self, kind: type, words: str) -> Any:
        if type(self.value) is not kind:
            self.refuse(f"expected {words}")
        return self.value

    def refuse(self, expected: str) -> NoReturn:
        """Reject this part, and show the beginning of it."""
        shown = repr(self.value)
        raise Rejected(f"{self.place}: {expected}, found {shown[:40]}{'…' if len(shown) > 40 else ''}")

    def text(self) -> str:
        """Return a text."""
        return str(self._of(str, "a text"))

    def truth(self) -> bool:
        """Return true or false."""
        return bool(self._of(bool, "true or false"))

    def whole(self, below: int | None = None) -> int:
        """Return a whole number from zero on, perhaps with a limit."""
        if type(self.value) is not int or self.value < 0 or (below is not None and self.value >= below):
            self.refuse("expected a whole number" + ("" if below is None else f" below {below}"))
        return int(self.value)

    def number(self) -> Exact:
        """Return a finite number, exactly as it is stored."""
        if not _is_number(self.value):
            self.refuse("expected a number")
        return exact(self.value)

    def fraction(self) -> Exact:
        """Return a fraction that is written as a text, such as 4/5."""
        above, line, below = self.text().partition("/")
        if not is_whole(above) or (line and not (is_whole(below) and int(below))):
            self.refuse("expected a fraction such as 4/5")
        return fmpq(int(above), int(below) if line else 1)

    def wholes(self, n: int) -> list[int]:
        """Return n whole numbers from zero on."""
        items = self._items(n)
        for i, item in enumerate(items):
            if type(item) is not int or item < 0:
                self[i].refuse("expected a whole number")
        return items

    def floats(self, n: int) -> list[float | int]:
        """Return n finite numbers as they are stored."""
        items = self._items(n)
        for i, item in enumerate(items):
            if not _is_number(item):
                self[i].refuse("expected a number")
        return items

    def numbers(self, n: int) -> list[Exact]:
        """Return n finite numbers, exactly as they are stored."""
        return [exact(item) for item in self.floats(n)]

    def balls(self, n: int) -> list[Ball]:
        """Return n finite numbers as balls without a radius."""
        return [arb(item) for item in self.floats(n)]

    def matrix(self, n: int, m: int) -> list[list[Exact]]:
        """Return n rows of m finite numbers, exactly as they are stored."""
        self._items(n)
        return [row.numbers(m) for row in self]

    def _items(self, n: int) -> list[Any]:
        items: list[Any] = self._of(list, "a list")
        require(len(items) == n, f"{self.place}: expected {n} items, found {len(items)}")
        return items


def _is_number(value: Any) -> bool:
    """Return whether a value is a number within the range of floats."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def exact(number: float | int) -> Exact:
    """Return a finite number as a fraction, without rounding."""
    return fmpq(*number.as_integer_ratio())


def is_whole(text: str) -> bool:
    """Return whether a text is a whole number of a reasonable length."""
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS


def dot(left: Sequence[Any], right: Sequence[Any]) -> Any:
    """Return the sum of products."""
    return sum((a * b for a, b in zip(left, right, strict=True)), start=fmpq(0))

"""Shows what a long calculation does: in one line of a terminal, or below the cell of a notebook.

Nothing is shown elsewhere, such as in a pipe, nor with PLUMDP_PROGRESS=0, nor of what takes less than half a second.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from html import escape
from importlib import import_module
from threading import Event, Thread
from time import monotonic
from typing import Any, Protocol, TextIO

from plumdp.base.edge import controlled
from plumdp.base.errors import visible

SWITCH = "PLUMDP_PROGRESS"
_LOGGER = logging.getLogger("plumdp")
_CLEAR = "\r\x1b[2K"
_PATIENCE = 0.5  # seconds before something is shown, and between updates
_SECONDS = 0.3  # between two lines of a ``Teller``, or two shares


class Place(Protocol):
    """A place that shows a line of text."""

    def show(self, text: str) -> None:
        """Show a text instead of the one before."""

    def clear(self) -> None:
        """Take the text away."""


class StatusLine:
    """The last line of a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.is_shown = controlled(stream), False

    def show(self, text: str) -> None:
        """Write a text instead of the one before, cut to the width of the terminal."""
        widest = shutil.get_terminal_size().columns - 1
        text = visible(text).replace("\n", " ")
        self._write(f"{_CLEAR}{text if len(text) <= widest else text[: widest - 1] + '…'}")
        self.is_shown = True

    def clear(self) -> None:
        """Take the text away."""
        if self.is_shown:
            self._write(_CLEAR)
            self.is_shown = False

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


class Output:
    """A line below the cell of a notebook."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str) -> None:
        """Show a text instead of the one before."""
        self._display(f"<small>{escape(text)}</small>")

    def clear(self) -> None:
        """Leave nothing but an empty place."""
        if self._handle is not None:
            self._display("")

    def _display(self, text: str) -> None:
        notebook: Any = import_module("IPython.display")
        if self._handle is None:
            self._handle = notebook.display(notebook.HTML(text), display_id=True)
        else:
            self._handle.update(notebook.HTML(text))


class _ShownWork:
    """The progress of a calculation: what it does, which part, and for how long."""

    def __init__(self, doing: str) -> None:
        self.doing, self.part, self.start, self.last, self.ended = doing, "", monotonic(), 0.0, Event()

    def tell(self, part: str) -> None:
        """Note which part is done now."""
        self.part = part

    def show(self, place: Place) -> None:
        """Show the text, and renew it until the work has ended."""
        while not self.ended.wait(_PATIENCE):
            part = f": {self.part}" if self.part else ""
            place.show(f"{self.doing}{part} … {monotonic() - self.start:.0f} s")
        place.clear()


@dataclass
class _ToldWork:
    """Progress that the caller shows, such as the command line, which has a line of its own."""

    tell: Callable[[str], None]
    last: float = 0.0


_current: ContextVar[_ShownWork | _ToldWork | None] = ContextVar("plumdp.progress", default=None)


@contextmanager
def working(doing: str) -> Iterator[None]:
    """Show what is being done until it has ended; inside other work it is a part of that. Also a decorator."""
    outer = _current.get()
    place = _place() if outer is None else None
    if place is None:
        if outer is not None:
            outer.tell(doing)
        yield
        return
    work = _ShownWork(doing)
    token, thread = _current.set(work), Thread(target=work.show, args=(place,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        _current.reset(token)
        work.ended.set()
        thread.join()


@contextmanager
def shown_by_others(show: Callable[[str], None]) -> Iterator[None]:
    """Hand what is done meanwhile to the caller, who has a line of its own, such as the command line."""
    token = _current.set(_ToldWork(show))
    try:
        yield
    finally:
        _current.reset(token)


def tell(text: str) -> None:
    """Say what is done now: in the line, if one is shown, and to the logger ``plumdp``."""
    _LOGGER.info("%s", text)
    tell_part(text)


def tell_part(text: str) -> None:
    """Say what is done now in the line alone."""
    work = _current.get()
    if work is not None:
        work.tell(text)


def tell_share(doing: str, done: float, total: float) -> None:
    """Say in the line which share of something is done, a few times per second at most."""
    work = _current.get()
    if work is not None and monotonic() - work.last >= _SECONDS:
        work.last = monotonic()
        work.tell(f"{doing}: {100 * done / total:.0f} %")


class Teller:
    """Logs how many things were found, at INFO, but no more than a few times per second and not at once."""

    def __init__(self, doing: str, things: str) -> None:
        self._doing, self._things, self._last = doing, things, monotonic()

    def tell(self, n: int) -> None:
        """Log that so many were found, if the last line is long enough ago."""
        now = monotonic()
        if now - self._last >= _SECONDS:
            self._last = now
            tell(f"{self._doing}: {n:,} {self._things}")


def is_shown() -> bool:
    """Return whether someone shows what is done."""
    return _current.get() is not None


def _place() -> Place | None:
    """Return the place that can show a line, or None."""
    if os.environ.get(SWITCH) == "0":
        return None
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is not None:  # a notebook, rather than IPython on a terminal
        return Output()
    is_terminal = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return StatusLine(sys.stderr) if is_terminal else None

"""What is shown on standard error of a terminal while a command works: one line, which results push aside.

Nothing is shown if standard error is not a terminal. Whatever is written meanwhile clears the line first, so that
commands need not know of it. The log of the library (the logger ``plumdp``, from INFO on) is shown in the line, and
with ``-v`` as lines of its own.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, TextIO, cast

from plumdp.base.edge import Visible
from plumdp.base.progress import StatusLine, shown_by_others

LOGGER = logging.getLogger("plumdp")
_SECONDS = 0.1  # between two updates of the line
_BAR = 20  # columns


class _ClearsFirst:
    """A stream that takes the line away before it writes."""

    def __init__(self, stream: TextIO, line: StatusLine) -> None:
        self._stream, self._line = stream, line

    def write(self, text: str) -> int:
        self._line.clear()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _InLine(logging.Handler):
    """Shows what is logged in the line."""

    def emit(self, record: logging.LogRecord) -> None:
        if _current is not None:
            _current.show(record.getMessage())


class _InLines(logging.Handler):
    """Writes what is logged to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        print(record.getMessage(), file=sys.stderr)


_current: StatusLine | None = None  # the line that is shown, if one is


@contextmanager
def shown_progress(text: str) -> Iterator[None]:
    """Show a text at once, and then what the library says that it does, until the end; only on a terminal."""
    global _current
    line, before = StatusLine(sys.stderr), (_current, sys.stdout, sys.stderr, LOGGER.level)
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    _current = line
    sys.stdout, sys.stderr = _ClearsFirst(sys.stdout, line), _ClearsFirst(sys.stderr, line)
    handler = _InLine(logging.INFO)
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    line.show(text)
    try:
        with shown_by_others():
            yield
    finally:
        line.clear()
        LOGGER.removeHandler(handler)
        _current, sys.stdout, sys.stderr = before[:3]
        LOGGER.setLevel(before[3])


@contextmanager
def without_control() -> Iterator[None]:
    """Show control characters in all that is printed, as they may be of a file: on a terminal they would act."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = cast("TextIO", Visible(sys.stdout)), cast("TextIO", Visible(sys.stderr))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


@contextmanager
def logged(verbosity: int) -> Iterator[None]:
    """Write the log of the library to standard error: what it does (1), or also how long stages take (2)."""
    handler, level = _InLines(), LOGGER.level
    if verbosity:
        LOGGER.setLevel(logging.INFO if verbosity == 1 else logging.DEBUG)
        LOGGER.addHandler(handler)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float, float], None]]:
    """Yield a function that is told how much is done, and of how much; it shows a bar, on a terminal."""

    def show(done: float, total: float) -> None:
        if _current is None or (monotonic() - _current.last < _SECONDS and done < total):
            return
        share = min(done / total, 1.0) if total else 1.0
        full = int(_BAR * share)
        _current.show(f"{what} {'━' * full}{'─' * (_BAR - full)} {100 * share:.0f} %")

    yield show
    if _current is not None:
        _current.clear()

"""What is shown on standard error of a terminal while a command works: one line, which results push aside.

Nothing is shown if standard error is not a terminal. Whatever is written meanwhile clears the line first, so that
commands need not know of it. What the library tells is shown in the line, and with ``-v`` its log (the logger
``plumdp``) as lines of its own.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from plumdp.base.edge import Visible
from plumdp.base.progress import StatusLine, shown_by_others

_LOGGER = logging.getLogger("plumdp")


class _ClearsFirst:
    """A stream that takes the line away before it writes."""

    def __init__(self, stream: TextIO, line: StatusLine) -> None:
        self._stream, self._line = stream, line

    def write(self, text: str) -> int:
        self._line.clear()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _InLines(logging.Handler):
    """Writes what is logged to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        print(record.getMessage(), file=sys.stderr)


@contextmanager
def shown_progress(text: str) -> Iterator[None]:
    """Show a text at once, and then what the library says that it does, until the end; only on a terminal."""
    line, before = StatusLine(sys.stderr), (sys.stdout, sys.stderr)
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    sys.stdout, sys.stderr = _ClearsFirst(sys.stdout, line), _ClearsFirst(sys.stderr, line)
    line.show(text)
    try:
        with shown_by_others(line.show):
            yield
    finally:
        line.clear()
        sys.stdout, sys.stderr = before


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
    handler, level = _InLines(), _LOGGER.level
    if verbosity:
        _LOGGER.setLevel(logging.INFO if verbosity == 1 else logging.DEBUG)
        _LOGGER.addHandler(handler)
    try:
        yield
    finally:
        _LOGGER.removeHandler(handler)
        _LOGGER.setLevel(level)

"""The command as it was typed, which results keep as part of where they come from."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextvars import ContextVar

_GIVEN: ContextVar[tuple[str, ...]] = ContextVar("given", default=())


def remember(given: Sequence[str]) -> None:
    """Keep the arguments of the command that runs."""
    _GIVEN.set(tuple(given))


def command_line() -> str:
    """Return the command that runs, as one would type it again; nothing if it was not typed."""
    return shlex.join(["plumdp", *_GIVEN.get()]) if _GIVEN.get() else ""

"""How kernels are compiled: cached on disk where that is possible, and without the interpreter lock.

Compiling takes a while the first time, and a person at a terminal is told so at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

from numba import njit
from numba.core import event

COMPILING = "compiling kernels, once: the first result takes half a minute or so longer than later ones"


def compiled_leaf(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a helper of kernels that allocates nothing, compiled without counting references to its arrays.

    Counting costs several times as much as the work of a row. The option is private to numba: without it, helpers are
    compiled as all other functions are, with the same results.
    """
    try:
        return compiled(function, _nrt=False)
    except (KeyError, TypeError):
        return compiled(function)


def compiled(function: Callable[..., Any], **more: Any) -> Callable[..., Any]:
    """Return the function compiled by numba when it is first called."""
    options: Any = {"nogil": True, "error_model": "numpy", **more}
    try:
        return cast(Callable[..., Any], njit(cache=True, **options)(function))
    except RuntimeError:  # no folder that can be written to, not even a user's: compile anew in each process
        return cast(Callable[..., Any], njit(**options)(function))


class Announcement(event.Listener):
    """Says on a terminal, once in a process, that kernels are compiled: they were not in the cache."""

    def __init__(self) -> None:
        self._is_said = False

    def on_start(self, event: Any) -> None:
        """Say it when the first kernel is compiled."""
        if not self._is_said:
            self._is_said = True
            if sys.stderr is not None and sys.stderr.isatty():
                print(COMPILING, file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        """Say nothing more."""


cast(Any, event).register("numba:compile", Announcement())

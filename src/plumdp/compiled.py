"""How kernels are compiled: cached on disk where that is possible, and without the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from numba import njit


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function compiled by numba when it is first called."""
    options: Any = {"nogil": True, "error_model": "numpy"}
    try:
        return cast(Callable[..., Any], njit(cache=True, **options)(function))
    except RuntimeError:  # no folder that can be written to, not even a user's: compile anew in each process
        return cast(Callable[..., Any], njit(**options)(function))

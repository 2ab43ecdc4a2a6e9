"""How kernels are compiled: cached on disk where that is possible, and without the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from numba import njit


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

"""Old names of keywords: accepted under their new names, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Options = ParamSpec("Options")
Result = TypeVar("Result")


def renamed_keywords(**new_names: str) -> Callable[[Callable[Options, Result]], Callable[Options, Result]]:
    """Return a decorator that accepts old keywords as the new ones, with a DeprecationWarning, until version 0.2.

    >>> @renamed_keywords(sets="confidence_set")
    ... def learn(*, confidence_set):
    ...     return confidence_set
    >>> with warnings.catch_warnings(action="ignore"):
    ...     learn(sets="l1")
    'l1'
    """

    def decorate(function: Callable[Options, Result]) -> Callable[Options, Result]:
        @wraps(function)
        def accepting(*args: Options.args, **options: Options.kwargs) -> Result:
            for old, new in new_names.items():
                if old in options:
                    options[new] = _renamed(function.__name__, old, new, options)
            return function(*args, **options)

        return accepting

    return decorate


def _renamed(function: str, old: str, new: str, options: dict[str, object]) -> object:
    """Return the value of an old keyword and take it away; refuse both names at once."""
    if new in options:
        raise TypeError(f"{function}() got both {new}= and its old name {old}=: leave out {old}=")
    warn_renamed(f"{function}({old}=...)", f"{new}=...", stacklevel=4)
    return options.pop(old)


def warn_renamed(old: str, new: str, *, stacklevel: int) -> None:
    """Warn that something has another name, which is the only one from version 0.2 on."""
    warnings.warn(f"{old} is deprecated and will be removed in plumdp 0.2: write {new}", DeprecationWarning, stacklevel)

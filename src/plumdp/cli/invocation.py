"""The command as it was typed, which results keep as part of where they come from, and where its options are given."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

FILE = "plumdp.toml"  # defaults of options
FOR_ALL = ""  # the place of an option above all tables of a file of defaults


class Defaults(NamedTuple):
    """The context of a command, and where a file gives its defaults: ``FOR_ALL``, or the file and the table."""

    context: Any
    places: Mapping[str, str]  # by parameter


_GIVEN: ContextVar[tuple[str, ...]] = ContextVar("given", default=())
_DEFAULTS: ContextVar[Defaults | None] = ContextVar("defaults", default=None)


def remember(given: Sequence[str]) -> None:
    """Keep the arguments of the command that runs."""
    _GIVEN.set(tuple(given))
    _DEFAULTS.set(None)


def remember_defaults(context: Any, places: Mapping[str, str]) -> None:
    """Keep where the defaults of the command that runs are written."""
    _DEFAULTS.set(Defaults(context, places))


def command_line() -> str:
    """Return the command that runs, as one would type it again; nothing if it was not typed."""
    return shlex.join(["plumdp", *_GIVEN.get()]) if _GIVEN.get() else ""


def is_typed(parameter: str) -> bool:
    """Return whether an option is on the command line."""
    return _source(parameter) == "COMMANDLINE"


def is_shared(parameter: str) -> bool:
    """Return whether an option is given for all commands alike, so that it does not matter if it does not apply."""
    return _place(parameter) == FOR_ALL


def where_given(parameter: str) -> str:
    """Return an option with the place where it is given: as on the command line, or in a table of a file."""
    place = _place(parameter)
    name = parameter.replace("_", "-")
    return f"{place} {name}" if place else f"--{name}"


def _place(parameter: str) -> str | None:
    """Return the place in a file of defaults that gives an option, or None if the command line does."""
    defaults = _DEFAULTS.get()
    return None if defaults is None or _source(parameter) != "DEFAULT_MAP" else defaults.places[parameter]


def _source(parameter: str) -> str | None:
    """Return the origin of an option, in a word of Typer."""
    defaults = _DEFAULTS.get()
    source = None if defaults is None else defaults.context.get_parameter_source(parameter)
    return None if source is None else str(source.name)

"""``plumdp.toml``: defaults of options, in a table for each command; shared ones also above all tables."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from plumdp.base.errors import ModelError
from plumdp.cli.invocation import FOR_ALL

FILE = "plumdp.toml"
_WITHOUT = "verify"  # it is run beside a result of others, who may have put a file there that names code to run
SHARED = (  # options about model, data and confidence, which mean the same wherever they are taken
    "constant", "space", "column", "state", "action", "form", "keep-going", "sampling", "order", "expected", "cut-off",
    "steps", "confidence", "confidence-set", "misfit", "evidence",
    "threads",
)  # fmt: skip


def read_defaults(
    path: Path | None, command: str, commands: list[str], options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the defaults that a file has for a command and the places of them, by the names of its parameters.

    Shared options above all tables are for every command that has them; a command's own table goes before them.
    ``options`` has the parameter of each option by its long name. Without a path, ``plumdp.toml`` in the working
    directory is read if there is one, but not for ``verify``.
    """
    file = Path(FILE) if path is None else path
    if command == _WITHOUT and path is None:
        return {}, {}
    if not file.is_file():
        if path is not None:
            raise ModelError(f"--config {path}: there is no such file")
        return {}, {}
    content = _parse(file)
    tables = {name: table for name, table in content.items() if isinstance(table, dict)}
    if _WITHOUT in tables:
        raise ModelError(
            f"{file}: [{_WITHOUT}]: this command has no defaults of its own; write them on the command line"
        )
    for name in tables:
        if name not in commands:
            raise ModelError(f"{file}: there is no command {name}{_near(name, commands)}")
    shared = {key: value for key, value in _shared(file, content).items() if key in options}
    defaults, places = {}, {}
    for table, place in ((shared, FOR_ALL), (tables.get(command, {}), f"{file}, [{command}]")):
        for key, value in table.items():
            name = _parameter(file, command, key, options)
            defaults[name], places[name] = _value(value), place
    return defaults, places


def _shared(file: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Return what is written above all tables: only options that mean the same for all commands."""
    shared = {name.replace("_", "-"): value for name, value in content.items() if not isinstance(value, dict)}
    for name in shared:
        if name not in SHARED:
            near = _near(name, list(SHARED))
            raise ModelError(f"{file}: {name} = … is not shared by all commands{near}; write [COMMAND] above it")
    return shared


def _parse(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"{file}: this is not TOML: {error}") from None


def _parameter(file: Path, command: str, key: str, options: dict[str, Any]) -> str:
    long = key.replace("_", "-")
    if long not in options:
        names = sorted(options)
        raise ModelError(
            f"{file}: [{command}] has no option {key}{_near(long, names)}; its options are {', '.join(names)}"
        )
    return str(options[long].name)


def _value(value: Any) -> Any:
    """Return a value as it would be written on the command line; a switch stays one."""
    if isinstance(value, list):
        return [str(each) for each in value]
    return value if isinstance(value, bool) else str(value)


def _near(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]}?)" if near else ""

"""``plumdp.toml``: defaults of options, in a table for each command; shared ones also above all tables."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

from plumdp.base.errors import ModelError
from plumdp.cli.commands import COMMANDS
from plumdp.cli.invocation import FILE, FOR_ALL, remember_defaults

_WITHOUT = ("verify", "start")  # beside a result of others, a file may name code to run; start writes such a file


def take_defaults(ctx: typer.Context, path: Path | None) -> Path | None:
    """Take the defaults of a command from a file, before its other options are read."""
    if not ctx.resilient_parsing:
        known = [param for param in ctx.command.params if param.param_type_name == "option" and param.name != "config"]
        options = {text[2:]: param for param in known for text in param.opts if text.startswith("--")}
        ctx.default_map, places = read_defaults(path, str(ctx.info_name), list(COMMANDS), options)
        remember_defaults(ctx, places)
    return path


def read_defaults(
    path: Path | None, command: str, commands: list[str], options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the defaults that a file has for a command and the places of them, by the names of its parameters.

    Shared options above all tables are for every command that has them; a command's own table goes before them.
    ``options`` has the parameter of each option by its long name. Without a path, ``plumdp.toml`` in the working
    directory is read if there is one, but not for ``verify`` and ``start``.
    """
    file = Path(FILE) if path is None else path
    if command in _WITHOUT and path is None:
        return {}, {}
    if not file.is_file():
        if path is not None:
            raise ModelError(f"--config {path}: there is no such file")
        return {}, {}
    content = _parse(file)
    tables = {name: table for name, table in content.items() if isinstance(table, dict)}
    for name in tables.keys() & {*_WITHOUT}:
        raise ModelError(f"{file}: [{name}]: this command has no defaults of its own; write them on the command line")
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
    """Return the options above all tables: only those that mean the same for all commands."""
    from plumdp.cli.options import OPTIONS

    known = [each.flags[0].removeprefix("--") for each in OPTIONS.values() if each.is_shared]
    shared = {name.replace("_", "-"): value for name, value in content.items() if not isinstance(value, dict)}
    for name in shared:
        if name not in known:
            near = _near(name, known)
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

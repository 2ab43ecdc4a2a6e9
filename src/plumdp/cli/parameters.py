"""Makes the parameters of a sub-command from the table of options, and runs it with what they say.

``plumdp.toml`` has defaults of options, in a table for each command; shared ones also above all tables.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from plumdp.base.errors import ModelError
from plumdp.cli.commands import COMMANDS, REMOVED_OPTIONS, Command
from plumdp.cli.errors import FILE, FOR_ALL, in_file, remember_defaults
from plumdp.cli.help import HelpfulCommand, help_of
from plumdp.cli.options import OPTIONS, Options
from plumdp.cli.progress import logged
from plumdp.cli.sources import complete_model

_HELP = {"help_option_names": ["-h", "--help"]}


def make_command(name: str, about: Command, function: Callable[[Options], int | None]) -> Any:
    """Return a sub-command of Typer that runs a function with its options; ``about`` is its entry in ``COMMANDS``."""

    def run(**typed: Any) -> None:
        values = {key: value for key, value in typed.items() if key in OPTIONS and value is not None}
        given = Options(**{key: _value_of(key, value) for key, value in values.items()})
        with logged(given.verbose):
            code = function(given)
        raise typer.Exit(code or 0)

    run.__signature__ = Signature([*_arguments(about), *_options(about)])  # type: ignore[attr-defined]
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    text = "\n\n".join(filter(None, [about.summary, about.more]))
    alone.command(name, cls=HelpfulCommand, context_settings=_HELP, help=text)(run)
    command = typer.main.get_command(alone)
    command.example = about.example  # type: ignore[attr-defined]
    return command


def _value_of(name: str, typed: Any) -> Any:
    """Return the value of an option; of options NAME=VALUE, names that are not typed have the values of the file."""
    option = OPTIONS[name]
    others = in_file(name) if option.default == {} else None
    return {**option.value(others), **option.value(typed)} if others else option.value(typed)


def _arguments(about: Command) -> Iterator[Parameter]:
    for name, metavar in about.arguments.items():
        words = about.words.get(name, OPTIONS[name].words)
        completion = complete_model if name == "model" else None
        how = typer.Argument(metavar=metavar, help=words, autocompletion=completion, show_default=False)
        yield _parameter(name, OPTIONS[name].kind, how, None if metavar.startswith("[") else ...)


def _options(about: Command) -> Iterator[Parameter]:
    taken = about.takes.split()
    for name, option in OPTIONS.items():
        if not option.flags or not {name, f"{name}!", option.group} & {*taken, "frame"}:
            continue
        default = None if option.default in ((), {}) else option.default
        how = typer.Option(
            *option.flags,
            metavar=option.metavar,
            help=about.words.get(name, option.words),
            count=name == "verbose",
            show_default=isinstance(default, float | str) and bool(default),
        )
        yield _parameter(name, option.kind, how, ... if f"{name}!" in taken else default)
    everything = typer.Option(
        "--help-all", help="Show all options and exit.", is_eager=True, expose_value=False, callback=_begin
    )
    yield _parameter("help_all", bool, everything, False)


def _parameter(name: str, kind: Any, how: Any, default: Any) -> Parameter:
    default = Parameter.empty if default is ... else default
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=Annotated[kind, how], default=default)


def _begin(ctx: typer.Context, shows_all: bool) -> None:
    """Show all options if that is asked for; otherwise take the defaults of the file, before others are read."""
    if ctx.resilient_parsing:
        return
    if shows_all:
        typer.echo(help_of(ctx.command, ctx, everything=True), nl=False)
        raise typer.Exit
    known = [param for param in ctx.command.params if param.param_type_name == "option"]
    options = {text[2:]: param for param in known for text in param.opts if text.startswith("--")}
    ctx.default_map, places = read_defaults(str(ctx.info_name), list(COMMANDS), options)
    remember_defaults(ctx, places)


_WITHOUT = ("verify", "start")  # beside a result of others, a file may name code to run; start writes such a file


def read_defaults(command: str, commands: list[str], options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the defaults that a file has for a command and the places of them, by the names of its parameters.

    Shared options above all tables are for every command that has them; a command's own table goes before them.
    ``options`` has the parameter of each option by its long name. The file is ``plumdp.toml`` in the working directory,
    if there is one; ``verify`` and ``start`` do not read it.
    """
    file = Path(FILE)
    if command in _WITHOUT or not file.is_file():
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
            name = _option_named(file, command, key, options)
            _require_harmless(file, name, value)
            defaults[name], places[name] = _value(value), place
    return defaults, places


def _shared(file: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Return the options above all tables: only those that mean the same for all commands."""

    known = [each.flags[0].removeprefix("--") for each in OPTIONS.values() if each.is_shared]
    shared = {name.replace("_", "-"): value for name, value in content.items() if not isinstance(value, dict)}
    for name in shared:
        if name not in known:
            if now := REMOVED_OPTIONS.get(f"--{name}"):
                raise ModelError(f"{file}: {name} is no option any more; use {now}")
            near = _near(name, known)
            raise ModelError(f"{file}: {name} = … is not shared by all commands{near}; write [COMMAND] above it")
    return shared


_LARGEST, _MOST_DOTS = 1 << 18, 5_000  # bytes; what a name with very many dots needs grows with their square


def _parse(file: Path) -> dict[str, Any]:
    if file.stat().st_size > _LARGEST or (text := file.read_bytes()).count(b".") > _MOST_DOTS:
        raise ModelError(f"{file}: it is larger than a file of options is")
    try:
        return tomllib.loads(text.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"{file}: this is not TOML: {error}") from None
    except (RecursionError, ValueError):
        raise ModelError(f"{file}: it is nested too deeply, or has a number of thousands of digits") from None


def _require_harmless(file: Path, name: str, value: Any) -> None:
    """Refuse what a file that others wrote must not do: replace files, or write them elsewhere."""
    if name == "force":
        raise ModelError(f"{file}: force replaces files, so that it is only for the command line; type --force there")
    if isinstance(value, dict) or "\0" in str(value):
        raise ModelError(f"{file}: {name}: write a text, a number, true, or a list of texts")
    is_path = name in OPTIONS and "Path" in str(OPTIONS[name].kind)
    if is_path and not Path(str(value)).resolve().is_relative_to(Path.cwd()):
        raise ModelError(f"{file}: {name} = {value} is outside of this folder; type --{name} {value} if you mean it")


def _option_named(file: Path, command: str, key: str, options: dict[str, Any]) -> str:
    long = key.replace("_", "-")
    if long not in options:
        names = sorted(options)
        if now := REMOVED_OPTIONS.get(f"--{long}"):
            raise ModelError(f"{file}: {key} is no option any more; use {now}")
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

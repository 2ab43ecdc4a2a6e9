"""Makes the parameters of a sub-command from the table of options, and runs it with what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

from plumdp.base.threads import thread_limit
from plumdp.cli.commands import Command
from plumdp.cli.config import take_defaults
from plumdp.cli.help import HelpfulCommand, help_of
from plumdp.cli.options import OPTIONS, Options
from plumdp.cli.progress import logged
from plumdp.cli.sources import complete_model

_HELP = {"help_option_names": ["-h", "--help"]}


def make_command(name: str, about: Command, function: Callable[[Options], int | None]) -> Any:
    """Return a sub-command of Typer that runs a function with its options; ``about`` is its entry in ``COMMANDS``."""

    def run(**typed: Any) -> None:
        values = {
            key: OPTIONS[key].value(value) for key, value in typed.items() if key in OPTIONS and value is not None
        }
        given = Options(**values)
        with thread_limit(given.threads), logged(given.verbose):
            code = function(given)
        raise typer.Exit(code or 0)

    run.__signature__ = Signature([*_arguments(about), *_options(about)])  # type: ignore[attr-defined]
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    text = "\n\n".join(filter(None, [about.summary, about.more]))
    alone.command(name, cls=HelpfulCommand, context_settings=_HELP, help=text)(run)
    command = typer.main.get_command(alone)
    command.example = about.example  # type: ignore[attr-defined]
    return command


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
        more: dict[str, Any] = {"callback": take_defaults, "is_eager": True} if name == "config" else {}
        how = typer.Option(
            *option.flags,
            metavar=option.metavar,
            help=about.words.get(name, option.words),
            count=name == "verbose",
            show_default=isinstance(default, float | str) and bool(default),
            **more,
        )
        yield _parameter(name, option.kind, how, ... if f"{name}!" in taken else default)
    everything = typer.Option(
        "--help-all", help="Show all options and exit.", is_eager=True, expose_value=False, callback=_show_all
    )
    yield _parameter("help_all", bool, everything, False)


def _parameter(name: str, kind: Any, how: Any, default: Any) -> Parameter:
    default = Parameter.empty if default is ... else default
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=Annotated[kind, how], default=default)


def _show_all(ctx: typer.Context, is_asked: bool) -> None:
    if is_asked and not ctx.resilient_parsing:
        typer.echo(help_of(ctx.command, ctx, everything=True), nl=False)
        raise typer.Exit

"""The command line ``plumdp``: its sub-commands, and how misuse ends.

A sub-command's module is imported when it is run: ``plumdp --help`` needs none of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from difflib import get_close_matches
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

from plumdp import __version__
from plumdp.base.errors import DataError, MissingExtra, ModelError
from plumdp.cli import help as helping
from plumdp.cli.commands import COMMANDS, REMOVED, REMOVED_OPTIONS
from plumdp.cli.errors import (
    EXIT_CODES,
    FILE,
    INTERRUPTED,
    IO_FAILED,
    MISUSE,
    UNEXPECTED,
    flushed,
    in_command_line_words,
    is_disk_failure,
    remember,
    report_failure,
)
from plumdp.cli.errors import report as report_error
from plumdp.cli.progress import shown_progress, without_control
from plumdp.cli.warmup import warm_up_later

_HELP = {"help_option_names": ["-h", "--help"]}
_CLICK_ERROR: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


class _Group(TyperGroup):
    """Sub-commands that are imported when they are run."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        about = COMMANDS.get(cmd_name)
        return None if about is None else helping.HelpfulCommand(cmd_name, help=about.summary)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load(name), rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        parts = [
            f"Usage: {ctx.command_path} COMMAND [OPTIONS] …",
            helping.filled(self.help or ""),
            helping.section("Commands", ((name, about.summary) for name, about in COMMANDS.items())),
            helping.section("Options", (param.get_help_record(ctx) or ("", "") for param in self.get_params(ctx))),
            helping.section("Exit codes", ((f"{code}", words) for code, words in EXIT_CODES)),
            helping.filled(f"plumdp COMMAND -h shows the options of a command; defaults for them may be in {FILE}."),
        ]
        formatter.write("\n\n".join(parts) + "\n")


def load(name: str) -> Any:
    """Return a sub-command with its parameters, whose module is imported when it is run."""
    from plumdp.cli.parameters import make_command

    about = COMMANDS[name]

    def run(given: Any) -> Any:
        return getattr(import_module(f"plumdp.cli.{about.module}"), name.replace("-", "_"))(given)

    return make_command(name, about, run)


app = typer.Typer(
    name="plumdp",
    cls=_Group,
    help="Parameter learning for uncertain MDPs: from a parametric model and data to a policy with a guarantee.",
    context_settings=_HELP,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, and end with an exit code of ``EXIT_CODES``, whatever happens."""
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if sys.stderr is None:  # it was closed: nothing can be said there
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        report_error("input/output", "standard output is closed: no result can be printed", as_json=False)
        sys.exit(IO_FAILED)
    for stream in (sys.stdout, sys.stderr):
        _write_utf_8(stream)
    try:
        code = run_command(words)
    except OSError as error:  # even the message could not be printed
        code = report_failure(error, as_json=False)
    if code < UNEXPECTED and code != MISUSE:
        warm_up_later()
    sys.exit(flushed(code))


def _write_utf_8(stream: TextIO) -> None:
    """Make a file or a pipe take every character, as UTF-8: on Windows it may have a code page without an arrow."""
    if isinstance(stream, TextIOWrapper) and not stream.isatty():
        stream.reconfigure(encoding="utf-8")


def run_command(given: list[str]) -> int:
    """Run the command and return its exit code."""
    command = next((text for text in given if not text.startswith("-")), "")
    is_work = command in COMMANDS and not {"-h", "--help", "--help-all"} & {*given}
    as_json = "--json" in given
    remember(given)
    try:
        with shown_progress(f"plumdp {command}: loading …") if is_work else nullcontext(), without_control():
            return int(app(given, prog_name="plumdp", standalone_mode=False) or 0)
    except (ModelError, DataError, MissingExtra) as error:
        if is_disk_failure(error):
            return report_failure(error, as_json=as_json)
        kind = "model" if isinstance(error, ModelError) else "data" if isinstance(error, DataError) else "missing extra"
        report_error(kind, in_command_line_words(*error.args), as_json=as_json)
    except _CLICK_ERROR as error:
        near = get_close_matches(command, COMMANDS, n=1)
        shown = f"plumdp {command} -h" if command in COMMANDS else "plumdp -h"
        hint = f"; did you mean {near[0]}?" if near and command not in COMMANDS else f"; {shown} shows what there is"
        hint = f"; type {REMOVED[command]}" if command in REMOVED else hint
        if hasattr(error, "possibilities"):  # there is no such option
            hint = f"; use {now}" if (now := REMOVED_OPTIONS.get(error.option_name)) else hint
        message = in_command_line_words(error.format_message().rstrip("."))
        report_error("usage", f"{message}{hint}", as_json=as_json)
    except typer.Abort:
        return INTERRUPTED
    except BaseException as error:
        if isinstance(error, SystemExit) and _is_completion(given):
            raise
        return report_failure(error, as_json=as_json)
    return MISUSE


def _is_completion(given: list[str]) -> bool:
    """Return whether a shell asks for completion, or it is installed: Typer ends the program then."""
    return "_PLUMDP_COMPLETE" in os.environ or bool({"--install-completion", "--show-completion"} & {*given})

"""The command line ``plumdp``: its sub-commands, and how misuse ends.

A sub-command's module is imported when it is run: ``plumdp --help`` needs none of them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from plumdp import __version__
from plumdp.errors import DataError, MissingExtra, ModelError

MISUSE = 2  # exit code

_OLD_OPTIONS = {"sets": "confidence-set", "intervals": "interval-method", "paper": "as-published"}  # until version 0.2
_ACCEPT_OLD = {"token_normalize_func": lambda name: _OLD_OPTIONS.get(name, name)}


class Command(NamedTuple):
    """Where a sub-command is defined, and the first paragraph of its docstring."""

    module: str
    function: str
    summary: str
    context: dict[str, Any] | None = None


COMMANDS = {
    "info": Command(
        "info",
        "info",
        "Show a model's sizes, parameters and their space, expressions, structure, properties and issues.",
    ),
    "simulate": Command(
        "data", "simulate", "Run a model at a point under uniform choices, and write the runs or their counts."
    ),
    "count": Command(
        "data", "count", "Count the transitions of logs of any size, and report what became of every row."
    ),
    "counts-sql": Command(
        "data", "counts_sql", "Print the query that counts a log in a warehouse; ``plumdp count`` reads its result."
    ),
    "certify": Command(
        "certify", "certify", "Find a policy and bounds on its value that hold with the given confidence.", _ACCEPT_OLD
    ),
    "compare": Command(
        "certify",
        "compare",
        "Show what each relaxation certifies from the same data; ends with 3 if the data contradict the model.",
        _ACCEPT_OLD,
    ),
    "check-model": Command(
        "check",
        "check_model",
        "Test whether data contradict a model, and say what is wrong and what to try if they do.",
    ),
    "advise": Command(
        "advise",
        "advise",
        "Say where the next data narrow the bounds most, how wide these will be, and how to sample.",
    ),
    "bench": Command(
        "bench", "bench", "Run the published experiments; what is in the folder already is not run again."
    ),
}


class _Group(TyperGroup):
    """Sub-commands that are imported when they are run."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        about = COMMANDS.get(cmd_name)
        return None if about is None else TyperCommand(cmd_name, help=about.summary)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load(name), rest


def load(name: str) -> Any:
    """Return a sub-command, imported."""
    about = COMMANDS[name]
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    function = getattr(import_module(f"plumdp.cli.{about.module}"), about.function)
    alone.command(name, context_settings=about.context)(function)
    return typer.main.get_command(alone)


app = typer.Typer(
    name="plumdp",
    cls=_Group,
    help="Parameter learning for uncertain MDPs: from a parametric model and data to a policy with a guarantee.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line; misuse ends with a sentence on standard error and exit code 2."""
    try:
        app()
    except (ModelError, DataError, MissingExtra) as error:
        from rich.console import Console
        from rich.text import Text

        Console(stderr=True, highlight=False).print(
            Text("error: ", style="bold red").append(str(error), style="default")
        )
        sys.exit(MISUSE)

"""The command line ``plumdp``: its sub-commands, and how misuse ends."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from plumdp import __version__
from plumdp.cli.advise import advise
from plumdp.cli.bench import bench
from plumdp.cli.certify import certify, compare
from plumdp.cli.check import check_model
from plumdp.cli.data import count, counts_sql, simulate
from plumdp.cli.info import info
from plumdp.errors import DataError, MissingExtra, ModelError

MISUSE = 2  # exit code

app = typer.Typer(
    name="plumdp",
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


_OLD_OPTIONS = {"sets": "confidence-set", "intervals": "interval-method", "paper": "as-published"}  # until version 0.2
_ACCEPT_OLD = {"token_normalize_func": lambda name: _OLD_OPTIONS.get(name, name)}

for command in (info, simulate, count, counts_sql, certify, compare, check_model, advise, bench):
    app.command(context_settings=_ACCEPT_OLD if command in (certify, compare) else None)(command)


def main() -> None:
    """Run the command line; misuse ends with a sentence on standard error and exit code 2."""
    try:
        app()
    except (ModelError, DataError, MissingExtra) as error:
        Console(stderr=True, highlight=False).print(
            Text("error: ", style="bold red").append(str(error), style="default")
        )
        sys.exit(MISUSE)

"""The command line ``plumdp``: its sub-commands, and how misuse ends.

A sub-command's module is imported when it is run: ``plumdp --help`` needs none of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from difflib import get_close_matches
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TextIO

import typer
from typer.core import TyperGroup

from plumdp import __version__
from plumdp.base.errors import DataError, MissingExtra, ModelError
from plumdp.base.threads import VARIABLE, thread_limit
from plumdp.cli import help as helping
from plumdp.cli.config import FILE, read_defaults
from plumdp.cli.errors import (
    EXIT_CODES,
    INTERRUPTED,
    IO_FAILED,
    MISUSE,
    UNEXPECTED,
    flushed,
    in_command_line_words,
    is_disk_failure,
    report_failure,
)
from plumdp.cli.errors import report as report_error
from plumdp.cli.invocation import remember, remember_defaults
from plumdp.cli.progress import log_to_standard_error, shown_progress
from plumdp.cli.warmup import warm_up_later

_HELP = {"help_option_names": ["-h", "--help"]}
_CLICK_ERROR: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


class Command(NamedTuple):
    """Where a sub-command is defined, the first paragraph of its docstring, and how it is used."""

    module: str
    function: str
    summary: str
    example: str  # lines, shown at the end of its help


COMMANDS = {
    "info": Command(
        "info",
        "info",
        "Show a model's sizes, parameters and their space, expressions, structure, properties and issues.",
        "plumdp info betting:25",
    ),
    "simulate": Command(
        "data",
        "simulate",
        "Run a model at a point under uniform choices or a policy, and write the runs or their counts.",
        "plumdp simulate betting:25 -n 10000 -o runs.parquet",
    ),
    "count": Command(
        "data",
        "count",
        "Count the transitions of logs of any size, and report what became of every row.",
        "plumdp count betting:25 runs.parquet -o counts.parquet\n"
        "plumdp count betting:25 counts.parquet tuesday.parquet -o counts.parquet --force",
    ),
    "counts-sql": Command(
        "data",
        "counts_sql",
        "Print the query that counts a log in a warehouse; plumdp count reads its result.",
        "plumdp counts-sql betting:25 --dialect snowflake --table runs",
    ),
    "certify": Command(
        "certify",
        "certify",
        "Find a policy and bounds on its value that hold with the given confidence.",
        "plumdp certify betting:25 runs.parquet -o result\n"
        "plumdp certify model.prism log.csv -p 'P>=0.9 [ F \"goal\" ]'",
    ),
    "certify-many": Command(
        "certify_many",
        "certify_many",
        "Certify many models and logs, listed in a file, in several processes.",
        "plumdp certify-many jobs.toml -j 2 -o results.parquet",
    ),
    "compare": Command(
        "certify",
        "compare",
        "Show what each relaxation certifies from the same data; ends with 3 if the data contradict the model.",
        "plumdp compare betting:25 runs.parquet",
    ),
    "compare-models": Command(
        "compare_models",
        "compare_models",
        "Test and certify several candidate models from one log, with the error divided among them.",
        "plumdp compare-models tied.prism free.prism runs.parquet\n"
        "plumdp compare-models model.py:build runs.parquet -c k=0:2",
    ),
    "check-model": Command(
        "check",
        "check_model",
        "Test whether data contradict a model, and say what is wrong and what to try if they do.",
        "plumdp check-model betting:25 runs.parquet --plot residuals.svg",
    ),
    "advise": Command(
        "advise",
        "advise",
        "Say where more data would help most, how wide the bounds will be, and how to sample.",
        "plumdp advise betting:25 runs.parquet --runs 5000 -o policy.csv",
    ),
    "report": Command(
        "report",
        "report",
        "Write a self-contained HTML report about a result, or about a model and data.",
        "plumdp report result --title 'Flight plan 7'\nplumdp report betting:25 runs.parquet -o report.html",
    ),
    "solve": Command(
        "solve",
        "solve",
        "Solve an interval model: bounds on the value that are proved, and the best policy.",
        "plumdp solve robot.drn -p 'Pmaxmin=? [ F \"goal\" ]' -o policy.csv",
    ),
    "policy": Command(
        "policy",
        "policy",
        "Certify a policy of your own: bounds on its value that hold with the given confidence.",
        "plumdp policy betting:25 runs.parquet --policy mine.csv",
    ),
    "improve": Command(
        "improve",
        "improve",
        "Find a policy that is better than what is done today, with a certified gain, or keep that.",
        "plumdp improve betting:25 runs.parquet --over practice -o result\n"
        "plumdp improve betting:25 runs.parquet --over today.csv",
    ),
    "audit": Command(
        "audit",
        "audit",
        "Value a certified policy by new runs under it alone, and say whether they contradict the certificate.",
        "plumdp audit result fresh.parquet --range 0 50\nplumdp audit result --plan 0.05",
    ),
    "verify": Command(
        "verify",
        "verify",
        "Check a result from its counts to its sentence, without the code that made it.",
        "plumdp certify betting:25 runs.parquet -o result --witness\nplumdp verify result\n"
        "plumdp verify --write-checker verify.pyz",
    ),
    "export": Command(
        "export",
        "export",
        "Write what was learned as an interval model for Storm or PRISM, and policy and values as files.",
        "plumdp export betting:25 runs.parquet --model learned.umb --policy policy.json",
    ),
    "online": Command(
        "online",
        "online",
        "Learn while acting: run a model at a point, and certify a policy after each update.",
        "plumdp online betting:25 --runs 20000 --until-gap 5 -o record.json",
    ),
    "plot": Command(
        "plot",
        "plot",
        "Draw bounds of relaxations, the region, expressions, the policy, advice, the model, residuals, or learning.",
        "plumdp plot ladder betting:25 runs.parquet -o ladder.png\n"
        "plumdp plot policy result --x money --y step -o policy.svg",
    ),
    "warmup": Command(
        "warmup",
        "warmup",
        "Compile the kernels now, so that no later run has to: for images and CI.",
        "plumdp warmup --all",
    ),
}


class _Group(TyperGroup):
    """Sub-commands that are imported when they are run."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        about = COMMANDS.get(cmd_name)
        return None if about is None else helping.Command(cmd_name, help=about.summary)

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
    """Return a sub-command, imported, with the options that all commands have behind its own."""
    about = COMMANDS[name]
    command = _command(name, getattr(import_module(f"plumdp.cli.{about.module}"), about.function))
    command.params += _command("common", _common).params
    command.example = about.example
    return command


def _command(name: str, function: Callable[..., None]) -> Any:
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name, cls=helping.Command, context_settings=_HELP)(function)
    return typer.main.get_command(alone)


def _take_defaults(ctx: typer.Context, path: Path | None) -> Path | None:
    """Take the defaults of a command from a file, before its other options are read."""
    if not ctx.resilient_parsing:
        known = [param for param in ctx.command.params if param.param_type_name == "option" and param.name != "config"]
        options = {text[2:]: param for param in known for text in param.opts if text.startswith("--")}
        ctx.default_map, places = read_defaults(path, str(ctx.info_name), list(COMMANDS), options)
        remember_defaults(ctx, places)
    return path


def _listen(ctx: typer.Context, verbosity: int) -> int:
    if verbosity and not ctx.resilient_parsing:
        ctx.call_on_close(log_to_standard_error(verbosity))
    return verbosity


def _limit(ctx: typer.Context, threads: int | None) -> int | None:
    if threads is not None and not ctx.resilient_parsing:
        ctx.with_resource(thread_limit(threads))
    return threads


def _common(
    verbose: Annotated[
        int,
        typer.Option(
            *("--verbose", "-v"),
            count=True,
            callback=_listen,
            expose_value=False,
            show_default=False,
            help="Say on standard error what is done; -vv also for how long.",
        ),
    ] = 0,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            is_eager=True,
            callback=_take_defaults,
            expose_value=False,
            help=f"Defaults of options; otherwise {FILE} in this folder, if there is one.",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            metavar="N",
            callback=_limit,
            expose_value=False,
            help=f"How many threads are used; otherwise {VARIABLE}, or all cores. No result depends on it.",
        ),
    ] = None,
) -> None:
    """The options that all commands have: their callbacks do what they ask for."""


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
    is_work = command in COMMANDS and not {"-h", "--help"} & {*given}
    as_json = "--json" in given
    remember(given)
    try:
        with shown_progress(f"plumdp {command}: loading …") if is_work else nullcontext():
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

"""``plumdp report``: a report for people about a saved result, or about a model and data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from plumdp import library
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Relaxation
from plumdp.cli import arguments
from plumdp.cli.certify import certified
from plumdp.cli.groups import with_options
from plumdp.cli.options import ModelOptions, OptionalLogOptions, PropertyOptions, SetOptions, require_new
from plumdp.cli.progress import LOGGER
from plumdp.cli.results import exit_code, print_results

_SCHEMA = "plumdp/report/1"


@dataclass(frozen=True)
class SubjectOptions:
    """What the report is about: a result, or a model."""

    subject: Annotated[
        str, typer.Argument(metavar="RESULT", help="The folder of a result; or a model, if data come after it.")
    ]
    constant: arguments.Constants = None
    space: arguments.Spaces = None

    def model(self) -> ModelOptions:
        """Return which model is meant."""
        return ModelOptions(self.subject, self.constant, self.space)


_OF_PAGES = ("subject", "data", "output", "force", "show", "as_json", "verbose", "config", "threads", "help")


@dataclass(frozen=True)
class PageOptions:
    """Where the report is written."""

    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Default: report.html, in the folder of the result or in this one."
        ),
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier report.")] = False
    show: Annotated[bool, typer.Option("--open", help="Show the report in a browser.")] = False


@with_options
def report(
    ctx: typer.Context,
    about: SubjectOptions,
    log: OptionalLogOptions,
    asked: PropertyOptions,
    sets: SetOptions,
    page: PageOptions,
    relaxation: Annotated[Relaxation | None, typer.Option("--relaxation", "-r", help="As of plumdp certify.")] = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Write a report for people about a result, or about a model and data: one HTML file that needs no network.

    A result is what plumdp certify -o writes; each of several results gets its own report. For a model and data, the
    claim is printed as well, and the exit code is that of plumdp certify.
    """
    if log.data:
        _certify(about, log, asked, sets, page, relaxation, as_json=as_json)
    _require_nothing_else(ctx)
    folders = _folders(Path(about.subject))
    files = _places(folders, page)
    for folder, file in zip(folders, files, strict=True):
        LOGGER.info("writing %s", file)
        library.read_result(folder).report(file)
    _say(files, page, as_json=as_json)


def _certify(
    about: SubjectOptions,
    log: OptionalLogOptions,
    asked: PropertyOptions,
    sets: SetOptions,
    page: PageOptions,
    relaxation: Relaxation | None,
    *,
    as_json: bool,
) -> None:
    """Certify, print the claim, write the report, and end with the exit code of the claim."""
    if (Path(about.subject) / library.CERTIFICATE).exists():
        raise DataError(f"{about.subject} is a result already; leave out the data, or give a model")
    target = page.output or Path(library.REPORT)
    require_new(target, force=page.force)
    results = certified(about.model(), log.given(about.subject), asked, sets, relaxation)
    if not as_json:
        print_results(results)
    files = [target]
    if len(results) > 1:
        files = [target.with_stem(f"{target.stem}-{number}") for number in range(1, len(results) + 1)]
        for file in files:
            require_new(file, force=page.force)
    for result, file in zip(results, files, strict=True):
        _write(result.saved, file)
    _say(files, page, as_json=as_json)
    raise typer.Exit(exit_code(results))


def _write(certificate: library.Certificate, file: Path) -> None:
    LOGGER.info("writing %s", file)
    certificate.report(file)


def _folders(subject: Path) -> list[Path]:
    """Return the folders of the results that are meant."""
    if not subject.is_dir():
        raise DataError(
            f"{subject} is not the folder of a result; for a model, give data as well: plumdp report MODEL DATA"
        )
    return library.numbered_results(subject) or [subject]


def _places(folders: list[Path], page: PageOptions) -> list[Path]:
    """Return where the reports are written; refuse places that are taken."""
    if page.output is not None and len(folders) > 1:
        raise DataError(
            f"--output: {folders[0].parent} holds {len(folders)} results, and a file holds one report; name one of "
            f"them, such as {folders[0]}, or leave out --output"
        )
    files = [folder / library.REPORT for folder in folders] if page.output is None else [page.output]
    for file in files:
        require_new(file, force=page.force)
    return files


def _require_nothing_else(ctx: typer.Context) -> None:
    """Refuse options about certifying, which a result has behind it."""
    for param in ctx.command.params:
        source = ctx.get_parameter_source(str(param.name))
        if param.name not in _OF_PAGES and source is not None and source.name == "COMMANDLINE":
            option = param.opts[0]
            raise DataError(
                f"{option}: a result is shown as it was certified; leave out {option}, or give a model and data"
            )


def _say(files: list[Path], page: PageOptions, *, as_json: bool) -> None:
    """Print where the reports are, and show them if that is asked for."""
    if as_json:
        print(json.dumps({"schema": _SCHEMA, "files": [str(file) for file in files]}, indent=2, ensure_ascii=False))
    else:
        for file in files:
            Console(highlight=False, soft_wrap=True).print(f"report: {file}", markup=False)
    if page.show:
        for file in files:
            typer.launch(str(file))

"""``plumdp report``: a report for people about a saved result, or about a model and data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.console import Console

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Relaxation
from plumdp.cli import arguments as args
from plumdp.cli.certify import certified
from plumdp.cli.options import LogOptions, ModelOptions, PropertyOptions, SetOptions, require_new
from plumdp.cli.progress import LOGGER
from plumdp.cli.results import exit_code, print_results

if TYPE_CHECKING:
    from plumdp.result.findings import Findings


_SCHEMA = "plumdp/report/1"


_OF_PAGES = (
    *("subject", "data", "output", "title", "system", "author", "force", "show", "as_json"),
    *("verbose", "config", "threads", "help"),
)


_Subject = Annotated[
    str, typer.Argument(metavar="RESULT", help="The folder of a result; or a model, if data come after it.")
]
_Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Default: report.html, in the folder of the result or in this one."
    ),
]
_Title = Annotated[str, typer.Option("--title", metavar="TEXT", help="The heading. Default: what is asked, in words.")]
_System = Annotated[
    str, typer.Option("--system", metavar="TEXT", help='What the model is of, as sentences call it: "the pump".')
]
_Author = Annotated[str, typer.Option("--author", metavar="TEXT", help="Who answers for the report.")]
_Force = Annotated[bool, typer.Option("--force", help="Replace an earlier report.")]
_Show = Annotated[bool, typer.Option("--open", help="Show the report in a browser.")]
_Relaxation = Annotated[Relaxation | None, typer.Option("--relaxation", "-r", help="As of plumdp certify.")]


class About(NamedTuple):
    """What readers are told that no file says."""

    title: str
    system: str
    author: str


def report(
    *,
    ctx: typer.Context,
    subject: _Subject, constant: args.Constant = None, space: args.Space = None,
    data: args.OptionalData = None, column: args.Column = None, state: args.State = None, action: args.Action = None,
    form: args.Form = None, keep_going: args.KeepGoing = False, sampling: args.Sampling = None,
    order: args.Order = None, expected: args.Expected = None, cut_off: args.CutOff = None,
    steps: args.Steps = None, rejected: args.Rejected = None,
    property: args.Properties = None, all_properties: args.AllProperties = False,
    confidence: args.Confidence = 0.999, confidence_set: args.ConfidenceSet = None,
    misfit: args.Misfit = 0.0, evidence: args.Evidence = None,
    output: _Output = None, title: _Title = "", system: _System = "", author: _Author = "", force: _Force = False,
    show: _Show = False,
    relaxation: _Relaxation = None, as_json: args.AsJson = False,
) -> None:  # fmt: skip
    """Write a self-contained HTML report about a result, or about a model and data.

    A result is what plumdp certify -o writes; each of several results gets its own report. What was not found with
    --explain is found now, from the data in the folder. For a model and data, the claim is printed as well, and the
    exit code is that of plumdp certify.
    """
    from plumdp.result.folder import CERTIFICATE, REPORT

    log = LogOptions(
        data, column, state, action, form, keep_going, sampling, order, expected, cut_off, steps,
        rejected,
    )  # fmt: skip
    asked = PropertyOptions(property, all_properties)
    sets = SetOptions(confidence, confidence_set, misfit, evidence)
    about = About(title, system, author)
    if not data:
        _require_nothing_else(ctx)
        folders = _folders(Path(subject))
        files = [folder / REPORT for folder in folders] if output is None else [output]
        _require_places(folders, files, force=force)
        for folder, file in zip(folders, files, strict=True):
            _write(*plumdp.explain_result(folder), file, about)
        _say(files, as_json=as_json, show=show)
        return
    if (Path(subject) / CERTIFICATE).exists():
        raise DataError(f"{subject} is a result already; leave out the data, or give a model")
    target = output or Path(REPORT)
    require_new(target, force=force)
    learned, results = certified(ModelOptions(subject, constant, space), log, asked, sets, relaxation)
    if not as_json:
        print_results(results)
    files = _numbered(target, len(results), force=force)
    for result, file in zip(results, files, strict=True):
        _write(result.saved, plumdp.explain(learned, result.saved), file, about)
    _say(files, as_json=as_json, show=show)
    raise typer.Exit(exit_code(results))


def _numbered(target: Path, n: int, *, force: bool) -> list[Path]:
    """Return a place for each of several reports, beside the given one; refuse places that are taken."""
    files = [target] if n == 1 else [target.with_stem(f"{target.stem}-{number}") for number in range(1, n + 1)]
    for file in files:
        require_new(file, force=force)
    return files


def _write(certificate: plumdp.Certificate, findings: Findings, file: Path, about: About) -> None:
    LOGGER.info("writing %s", file)
    plumdp.write_report(certificate, findings, file, title=about.title, system=about.system, author=about.author)


def _folders(subject: Path) -> list[Path]:
    """Return the folders of the results that are meant."""
    from plumdp.reporting.read import numbered_results

    if not subject.is_dir():
        raise DataError(
            f"{subject} is not the folder of a result; for a model, give data as well: plumdp report MODEL DATA"
        )
    return numbered_results(subject) or [subject]


def _require_places(folders: list[Path], files: list[Path], *, force: bool) -> None:
    """Refuse one place for several reports, and places that are taken."""
    if len(files) != len(folders):
        raise DataError(
            f"--output: {folders[0].parent} holds {len(folders)} results, and a file holds one report; name one of "
            f"them, such as {folders[0]}, or leave out --output"
        )
    for file in files:
        require_new(file, force=force)


def _require_nothing_else(ctx: typer.Context) -> None:
    """Refuse options about certifying, which a result has behind it."""
    for param in ctx.command.params:
        source = ctx.get_parameter_source(str(param.name))
        if param.name not in _OF_PAGES and source is not None and source.name == "COMMANDLINE":
            option = param.opts[0]
            raise DataError(
                f"{option}: a result is shown as it was certified; leave out {option}, or give a model and data"
            )


def _say(files: list[Path], *, as_json: bool, show: bool) -> None:
    """Print where the reports are, and show them if that is asked for."""
    if as_json:
        print(json.dumps({"schema": _SCHEMA, "files": [str(file) for file in files]}, indent=2, ensure_ascii=False))
    else:
        for file in files:
            Console(highlight=False, soft_wrap=True).print(f"report: {file}", markup=False)
    if show:
        for file in files:
            typer.launch(str(file))

"""``plumdp certify`` and ``plumdp compare``: from a model and data to a policy with a guarantee."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from plumdp.cli.arguments import AsJson
from plumdp.cli.options import FolderOptions, LogOptions, ModelOptions, PropertyOptions, SetOptions, with_options
from plumdp.pipeline import compare_learned, conclude
from plumdp.relaxation.relax import Relaxation
from plumdp.result.certificate import Certificate, Status
from plumdp.result.folder import write_results

EXIT_CODES = {Status.CERTIFIED: 0, Status.CONTRADICTED: 3, Status.VACUOUS: 4, Status.NO_GUARANTEE: 4}


@with_options
def certify(
    model: ModelOptions,
    log: LogOptions,
    asked: PropertyOptions,
    sets: SetOptions,
    folder: FolderOptions,
    relaxation: Annotated[
        Relaxation | None,
        typer.Option(
            "--relaxation", "-r", help="What nature may do. Default: coupled; rectangular, if --as-published is given."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find a policy and bounds on its value that hold with the given confidence.

    Ends with 0 if certified, 3 if the data contradict the model, 4 if nothing is certified or guaranteed.
    """
    read, objectives = asked.load(model)
    learned = sets.learn(read, log.read(read), objectives)
    certificates = [conclude(learned, objective, relaxation=relaxation) for objective in objectives]
    if as_json:
        _print_json(certificates if len(certificates) > 1 else certificates[0])
    else:
        _print_all(certificates)
    if folder.output is not None:
        write_results(certificates, folder.output, force=folder.force)
    raise typer.Exit(_exit_code(certificates))


@with_options
def compare(
    model: ModelOptions, log: LogOptions, asked: PropertyOptions, sets: SetOptions, as_json: AsJson = False
) -> None:
    """Show what each relaxation certifies from the same data; ends with 3 if the data contradict the model."""
    read, objectives = asked.load(model)
    learned = sets.learn(read, log.read(read), objectives)
    comparisons = [compare_learned(learned, objective) for objective in objectives]
    certificates = [certificate for each in comparisons for certificate in each]
    if as_json:
        _print_json(certificates)
    else:
        for each in comparisons:
            _print_comparison(each)
    if any(certificate.status == Status.CONTRADICTED for certificate in certificates):
        raise typer.Exit(EXIT_CODES[Status.CONTRADICTED])


def _exit_code(certificates: list[Certificate]) -> int:
    """Return the exit code of several results: 3 if the data contradict the model, else that of the weakest claim."""
    codes = {EXIT_CODES[certificate.status] for certificate in certificates}
    contradicted = EXIT_CODES[Status.CONTRADICTED]
    return contradicted if contradicted in codes else max(codes)


def _print_json(found: Certificate | list[Certificate]) -> None:
    content = found.to_dict() if isinstance(found, Certificate) else [each.to_dict() for each in found]
    print(json.dumps(content, indent=2, ensure_ascii=False))


def _print_comparison(certificates: list[Certificate]) -> None:
    table = Table(title=certificates[0].objective, title_style="bold", title_justify="left")
    for name in ("relaxation", "lower", "upper", "seconds", "status"):
        table.add_column(name, justify="left" if name in ("relaxation", "status") else "right")
    for certificate in certificates:
        seconds = f"{certificate.stage_seconds:.2f}"
        table.add_row(certificate.relaxation, *certificate.printed_bounds, seconds, certificate.status)
    console = Console(highlight=False)
    console.print(table)
    shared = [
        fact for fact in certificates[0].facts() if fact[0] not in ("objective", "relaxation", "estimate", "width")
    ]
    console.print(grid(shared))


def _print_all(certificates: list[Certificate]) -> None:
    console = Console(highlight=False)
    for number, certificate in enumerate(certificates):
        if number:
            console.print()
        style = {Status.CERTIFIED: "bold", Status.CONTRADICTED: "bold red"}.get(certificate.status, "yellow")
        console.print(Text(certificate.headline, style=style))
        console.print(grid(certificate.facts()))


def grid(facts: list[tuple[str, str]]) -> Table:
    """Return labels and texts as two columns."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for label, text in facts:
        table.add_row(Text(label, style="bold"), Text(text))
    return table

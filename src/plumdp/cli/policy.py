"""``plumdp policy``: certified bounds on the value of a policy of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plumdp import library
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Relaxation
from plumdp.cli.arguments import AsJson
from plumdp.cli.groups import with_options
from plumdp.cli.options import FolderOptions, LogOptions, ModelOptions, PropertyOptions, SetOptions
from plumdp.cli.progress import LOGGER
from plumdp.cli.results import Result, exit_code, print_json, print_results


@with_options
def policy(
    model: ModelOptions,
    log: LogOptions,
    asked: PropertyOptions,
    sets: SetOptions,
    folder: FolderOptions,
    policy: Annotated[
        Path,
        typer.Option(
            "--policy",
            help="A file: .csv with a column for each state variable and one called action, .txt (PRISM) or .json "
            "(Storm). States with one action may be left out.",
        ),
    ],
    relaxation: Annotated[
        Relaxation | None,
        typer.Option("--relaxation", "-r", help="What nature may do. Default: coupled."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Certify a policy of your own: bounds on its value that hold with the given confidence.

    Ends with 0 if certified, 3 if the data contradict the model, 4 if nothing is certified or guaranteed.
    """
    if not policy.is_file():
        raise DataError(f"--policy {policy}: there is no such file")
    read, objectives = asked.load(model)
    chosen = library.read_policy(policy, read)
    learned = sets.learn(read, log.read(read), objectives)
    LOGGER.info("certifying the policy of %s", policy)
    certificates = [library.conclude(learned, each, relaxation=relaxation, policy=chosen) for each in objectives]
    results = [Result(certificate) for certificate in certificates]
    if as_json:
        print_json([result.to_dict() for result in results], one=len(results) == 1)
    else:
        print_results(results)
    if folder.output is not None:
        library.write_results(certificates, folder.output, force=folder.force)
    raise typer.Exit(exit_code(results))

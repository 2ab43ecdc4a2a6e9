"""``plumdp certify`` and ``plumdp compare``: from a model and data to a policy with a guarantee."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from plumdp import library
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Relaxation
from plumdp.cli.arguments import AsJson
from plumdp.cli.groups import with_options
from plumdp.cli.invocation import command_line
from plumdp.cli.options import FolderOptions, LogOptions, ModelOptions, PropertyOptions, SetOptions
from plumdp.cli.progress import LOGGER
from plumdp.cli.results import Result, exit_code, print_comparison, print_json, print_results


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

    A property with a threshold, such as P>=0.9 [ F "goal" ], is answered with yes, no or not yet known. Ends with 0 if
    certified or yes, 1 if no, 3 if the data contradict the model, 4 if nothing is certified or not yet known.
    """
    models = model.each()
    if len(models) > 1 and folder.output is not None:
        raise DataError("--output: a range has several results; write one at a time, with one value for each constant")
    results = [each for one in models for each in certified(one, log, asked, sets, relaxation)]
    if as_json:
        print_json([result.to_dict() for result in results], one=len(results) == 1)
    else:
        print_results(results)
    if folder.output is not None:
        certificates = [result.saved for result in results]
        library.write_results(certificates, folder.output, force=folder.force, ladder=not folder.no_ladder)
    raise typer.Exit(exit_code(results))


def certified(
    model: ModelOptions, log: LogOptions, asked: PropertyOptions, sets: SetOptions, relaxation: Relaxation | None
) -> list[Result]:
    """Return the certificates of one model, with the answers to thresholds; they know the command that made them."""
    learned, questions = _learn(model, log, asked, sets)
    return [_answer(learned, question, relaxation, model) for question in questions]


def _learn(
    model: ModelOptions, log: LogOptions, asked: PropertyOptions, sets: SetOptions
) -> tuple[library.Learned, tuple[library.Objective | library.Threshold, ...]]:
    """Return what the data say, and what is asked; the same value may be compared with several thresholds."""
    read, questions = asked.questions(model)
    objectives = [question.objective if isinstance(question, library.Threshold) else question for question in questions]
    distinct = {library.digest(objective): objective for objective in objectives}
    return sets.learn(read, log.read_for(model, read), list(distinct.values())), questions


def _answer(
    learned: library.Learned,
    question: library.Objective | library.Threshold,
    relaxation: Relaxation | None,
    model: ModelOptions,
) -> Result:
    LOGGER.info("certifying %s", question.text)
    objective = question.objective if isinstance(question, library.Threshold) else question
    certificate = _with_command(library.conclude(learned, objective, relaxation=relaxation))
    if not isinstance(question, library.Threshold):
        return Result(certificate, constants=model.constants)
    answer = library.decide(learned, question, relaxation=relaxation, certificate=certificate)
    return Result(answer.certificate, answer, model.constants)


def _with_command(certificate: library.Certificate) -> library.Certificate:
    """Return a certificate that says by which command it was made."""
    typed = command_line()
    return replace(certificate, provenance={**certificate.provenance, "command": typed}) if typed else certificate


@with_options
def compare(
    model: ModelOptions, log: LogOptions, asked: PropertyOptions, sets: SetOptions, as_json: AsJson = False
) -> None:
    """Show what each relaxation certifies from the same data; ends with 3 if the data contradict the model."""
    found: list[tuple[ModelOptions, list[library.Certificate]]] = []
    for one in model.each():
        read, objectives = asked.load(one)
        learned = sets.learn(read, log.read_for(one, read), objectives)
        for objective in objectives:
            LOGGER.info("comparing what relaxations certify: %s", objective.text)
            found.append((one, library.compare_learned(learned, objective)))
    results = [Result(each, constants=one.constants) for one, certificates in found for each in certificates]
    if as_json:
        print_json([result.to_dict() for result in results])
    else:
        for one, certificates in found:
            print_comparison(certificates, one.constants)
    if exit_code(results) == 3:
        raise typer.Exit(3)

"""``plumdp policy``: certified bounds on the value of a policy of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Relaxation
from plumdp.cli import arguments as args
from plumdp.cli.options import FolderOptions, LogOptions, ModelOptions, PropertyOptions, SetOptions
from plumdp.cli.progress import LOGGER
from plumdp.cli.results import Result, exit_code, print_json, print_results

_Policy = Annotated[
    Path,
    typer.Option(
        "--policy",
        help="A file: .csv with a column for each state variable and one called action, .txt (PRISM) or .json "
        "(Storm). States with one action may be left out.",
    ),
]
_Relaxation = Annotated[
    Relaxation | None, typer.Option("--relaxation", "-r", help="What nature may do. Default: coupled.")
]


def policy(
    *,
    model: args.Model, constant: args.Constant = None, space: args.Space = None,
    data: args.Data, column: args.Column = None, state: args.State = None, action: args.Action = None,
    form: args.Form = None, keep_going: args.KeepGoing = False, sampling: args.Sampling = None,
    order: args.Order = None, expected: args.Expected = None, cut_off: args.CutOff = None,
    steps: args.Steps = None, allow_impossible: args.AllowImpossible = 0, rejected: args.Rejected = None,
    partitions: args.Partitions = None,
    property: args.Properties = None, all_properties: args.AllProperties = False,
    confidence: args.Confidence = 0.999, confidence_set: args.ConfidenceSet = None,
    interval_method: args.IntervalMethod = None, misfit: args.Misfit = 0.0,
    output: args.ResultFolder = None, explain: args.Explain = False, force: args.ReplaceResult = False,
    policy: _Policy, relaxation: _Relaxation = None, as_json: args.AsJson = False,
) -> None:  # fmt: skip
    """Certify a policy of your own: bounds on its value that hold with the given confidence.

    Ends with 0 if certified, 3 if the data contradict the model, 4 if nothing is certified or guaranteed.
    """
    log = LogOptions(
        data, column, state, action, form, keep_going, sampling, order, expected, cut_off, steps, allow_impossible,
        rejected, partitions,
    )  # fmt: skip
    asked = PropertyOptions(property, all_properties)
    sets = SetOptions(confidence, confidence_set, interval_method, misfit)
    folder = FolderOptions(output, explain, force)
    if not policy.is_file():
        raise DataError(f"--policy {policy}: there is no such file")
    read, objectives = asked.load(ModelOptions(model, constant, space))
    chosen = plumdp.read_policy(policy, read)
    learned = sets.learn(read, log.read(read), objectives)
    LOGGER.info("certifying the policy of %s", policy)
    certificates = [plumdp.conclude(learned, each, relaxation=relaxation, policy=chosen) for each in objectives]
    results = [Result(certificate) for certificate in certificates]
    if as_json:
        print_json([result.to_dict() for result in results], one=len(results) == 1)
    else:
        print_results(results)
    folder.write(learned, certificates)
    raise typer.Exit(exit_code(results))

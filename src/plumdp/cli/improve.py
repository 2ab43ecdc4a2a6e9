"""``plumdp improve``: the policy with the largest certified gain over what is done today."""

from __future__ import annotations

from typing import Annotated

import typer

import plumdp
from plumdp.base.vocabulary import Status
from plumdp.cli import arguments as args
from plumdp.cli.options import FolderOptions, LogOptions, ModelOptions, PropertyOptions, SetOptions
from plumdp.cli.results import EXIT_CODES, Result, exit_code, print_decisions, with_command
from plumdp.cli.sources import load_policy

_PRACTICE = "practice"  # as in Python
_Over = Annotated[
    str,
    typer.Option(
        "--over",
        metavar="FILE",
        help="What is done today: a policy as plumdp policy takes it; or practice, which takes each action as often as "
        "the data do in the same state.",
    ),
]


def improve(
    *,
    model: args.Model, constant: args.Constant = None, space: args.Space = None,
    data: args.Data, column: args.Column = None, state: args.State = None, action: args.Action = None,
    form: args.Form = None, keep_going: args.KeepGoing = False, sampling: args.Sampling = None,
    order: args.Order = None, expected: args.Expected = None, cut_off: args.CutOff = None,
    steps: args.Steps = None, rejected: args.Rejected = None,
    property: args.Properties = None, all_properties: args.AllProperties = False,
    confidence: args.Confidence = 0.999, confidence_set: args.ConfidenceSet = None,
    misfit: args.Misfit = 0.0, evidence: args.Evidence = None,
    output: args.ResultFolder = None, explain: args.Explain = False, witness: args.Witness = False,
    force: args.ReplaceResult = False,
    over: _Over = _PRACTICE, margin: args.Margin = 0.0, announced: args.Announced = False,
    as_json: args.AsJson = False,
) -> None:  # fmt: skip
    """Find a policy that is better than what is done today, with a certified gain, or keep that.

    Ends with 0 if a policy is certified to be better, 3 if the data contradict the model, and 4 if none is known to be
    better: then what is done today is the result.
    """
    from plumdp.certifying.improvement import with_baseline

    log = LogOptions(
        data, column, state, action, form, keep_going, sampling, order, expected, cut_off, steps,
        rejected,
    )  # fmt: skip
    asked = PropertyOptions(property, all_properties)
    sets = SetOptions(confidence, confidence_set, misfit, evidence)
    folder, of_model = FolderOptions(output, explain, force, witness), ModelOptions(model, constant, space)
    read, objectives = asked.load(of_model)
    is_practice = over == _PRACTICE
    baseline = over if is_practice else load_policy(over, read, option="--over")
    counts = log.read_for(of_model, read)
    questions = with_baseline(objectives, read, counts, baseline, announced=announced)
    learned = sets.learn(read, counts, questions, witness=folder.witness)
    name = "" if is_practice else over
    answers = [
        plumdp.decisions.improve_learned(learned, each, over=baseline, margin=margin, name=name) for each in objectives
    ]
    more = [
        plumdp.decisions.runs_to_tell(learned, asked, each.difference)
        for asked, each in zip(objectives, answers, strict=True)
    ]
    print_decisions(answers, more, as_json=as_json)
    folder.write(learned, [with_command(each.compared) for each in answers])
    if exit_code([Result(each.certificate) for each in answers]) == EXIT_CODES[Status.CONTRADICTED]:
        raise typer.Exit(EXIT_CODES[Status.CONTRADICTED])
    raise typer.Exit(0 if all(each.is_better for each in answers) else EXIT_CODES[Status.VACUOUS])

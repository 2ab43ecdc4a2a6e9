"""``plumdp policy``: certified bounds on the value of a policy of one's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, NoReturn

import typer

import plumdp
from plumdp.base.errors import Option
from plumdp.cli import arguments as args
from plumdp.cli.certify import Given, Relaxing, certify_each
from plumdp.cli.options import FolderOptions, LogOptions, ModelOptions, PropertyOptions, SetOptions
from plumdp.cli.results import code_of_difference, print_decisions, with_command, worst_code
from plumdp.cli.sources import load_policy

_Policy = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="A file: .csv with a column for each state variable, one called action, and perhaps one called "
        "probability; .json (Storm), .txt (PRISM); or .py with a function policy. Or one action, or uniform. States "
        "with one action may be left out.",
    ),
]
_Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="FILE",
        help="Another policy, given in the same way: bounds on the difference of both values say which is better.",
    ),
]


def policy(
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
    policy: _Policy, against: _Against = None, margin: args.Margin = 0.0, announced: args.Announced = False,
    relaxation: Relaxing = None, as_json: args.AsJson = False,
) -> None:  # fmt: skip
    """Certify a policy of your own: bounds on its value that hold with the given confidence.

    A property with a threshold, such as P>=0.9 [ F "goal" ], is answered for this policy: yes, no or not known. Ends
    with 0 if certified or yes, 1 if no, 3 if the data contradict the model, 4 if nothing is certified or not yet known.
    With --against, yes means that this policy is better than the other, or not worse by more than --margin, and no that
    it is worse.
    """
    log = LogOptions(
        data, column, state, action, form, keep_going, sampling, order, expected, cut_off, steps,
        rejected,
    )  # fmt: skip
    asked = PropertyOptions(property, all_properties)
    sets = SetOptions(confidence, confidence_set, misfit, evidence)
    folder = FolderOptions(output, explain, force, witness)
    if against is not None:
        both = Given(policy, announced), Given(against, announced)
        _compare_two(ModelOptions(model, constant, space), log, asked, sets, both, folder, margin, as_json=as_json)
    if margin:
        raise plumdp.DataError(
            Option("margin", margin), ": there is no other policy; give one with ", Option("against")
        )
    given = Given(policy, announced)
    certify_each(ModelOptions(model, constant, space), log, asked, sets, relaxation, folder, given, as_json=as_json)


def _compare_two(
    model: ModelOptions,
    log: LogOptions,
    asked: PropertyOptions,
    sets: SetOptions,
    given: tuple[Given, Given],
    folder: FolderOptions,
    margin: float,
    *,
    as_json: bool,
) -> NoReturn:
    """Print bounds on the difference of two policies for each objective, and end with the code of the answer."""
    from plumdp.certifying.pipeline import comparing
    from plumdp.model.policy import memory_of

    read, objectives = asked.load(model)
    names = given[0].policy, given[1].policy
    first, second = load_policy(names[0], read), load_policy(names[1], read, option="--against")
    questions = (plumdp.model.ask(each, read, memory=memory_of(first, second)) for each in objectives)
    both = [one for each in questions for one in comparing(each, first, second)] if given[0].announced else objectives
    learned = sets.learn(read, log.read_for(model, read), both, witness=folder.witness)
    found = [plumdp.difference(learned, each, first, second, margin=margin, names=names) for each in objectives]
    differences = [replace(each, first=with_command(each.first)) for each in found]
    print_decisions(
        differences,
        [plumdp.decisions.runs_to_tell(learned, *pair) for pair in zip(objectives, differences, strict=True)],
        as_json=as_json,
    )
    folder.write(learned, [each.with_comparison() for each in differences])
    raise typer.Exit(worst_code({code_of_difference(each) for each in differences}))

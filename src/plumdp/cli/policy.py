"""``plumdp policy``: certified bounds on the value of a policy of one's own."""

from __future__ import annotations

from typing import Annotated

import typer

from plumdp.cli import arguments as args
from plumdp.cli.certify import Relaxing, certify_each
from plumdp.cli.options import FolderOptions, LogOptions, ModelOptions, PropertyOptions, SetOptions

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
    policy: _Policy, relaxation: Relaxing = None, as_json: args.AsJson = False,
) -> None:  # fmt: skip
    """Certify a policy of your own: bounds on its value that hold with the given confidence.

    A property with a threshold, such as P>=0.9 [ F "goal" ], is answered for this policy: yes, no or not known. Ends
    with 0 if certified or yes, 1 if no, 3 if the data contradict the model, 4 if nothing is certified or not yet known.
    """
    log = LogOptions(
        data, column, state, action, form, keep_going, sampling, order, expected, cut_off, steps, allow_impossible,
        rejected, partitions,
    )  # fmt: skip
    asked = PropertyOptions(property, all_properties)
    sets = SetOptions(confidence, confidence_set, interval_method, misfit)
    folder = FolderOptions(output, explain, force)
    certify_each(ModelOptions(model, constant, space), log, asked, sets, relaxation, folder, policy, as_json=as_json)

"""``plumdp advise``: where the next data narrow a certificate most, and a policy to sample them by."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Status
from plumdp.cli import arguments as args
from plumdp.cli.options import LogOptions, ModelOptions, SetOptions, load_with_one_property, require_new
from plumdp.cli.results import EXIT_CODES, print_json, prose, standard_output

if TYPE_CHECKING:
    from plumdp.result.advice import Advice


_MOST_ROWS = 10


_Runs = Annotated[
    int | None, typer.Option("--runs", "-n", help="How many more runs are planned; by default as many as there are.")
]
_Width = Annotated[
    float | None, typer.Option("--width", help="The distance of the bounds that is wanted; by default half of now.")
]
_MaxSteps = Annotated[
    int | None, typer.Option("--max-steps", help="Where new runs are cut off; by default where those of the data are.")
]
_Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="A CSV file for the sampling policy: a probability for each action."),
]


def advise(
    *,
    model: args.Model, constant: args.Constant = None, space: args.Space = None,
    data: args.Data, column: args.Column = None, state: args.State = None, action: args.Action = None,
    form: args.Form = None, keep_going: args.KeepGoing = False, sampling: args.Sampling = None,
    order: args.Order = None, expected: args.Expected = None, cut_off: args.CutOff = None,
    steps: args.Steps = None, rejected: args.Rejected = None,
    property: args.Property = None, confidence: args.Confidence = 0.999, confidence_set: args.ConfidenceSet = None,
    runs: _Runs = None, width: _Width = None, max_steps: _MaxSteps = None, output: _Output = None,
    force: args.ReplaceFile = False, as_json: args.AsJson = False,
) -> None:  # fmt: skip
    """Say where more data would help most, how wide the bounds will be, and how to sample.

    Ends with 0, or with 3 if the data contradict the model. Example: plumdp advise betting:25 counts.parquet -o
    policy.csv
    """
    sets = SetOptions(confidence, confidence_set)
    for option, number in (("--runs", runs), ("--max-steps", max_steps)):
        if number is not None and number < 1:
            raise DataError(f"{option} {number}: give a whole number, at least 1")
    if output is not None:
        require_new(output, force=force)
    log = LogOptions(
        data, column, state, action, form, keep_going, sampling, order, expected, cut_off, steps,
        rejected,
    )  # fmt: skip
    read, objective = load_with_one_property(ModelOptions(model, constant, space), property)
    learned = sets.learn(read, log.read(read), [objective])
    if learned.conflict is not None:
        Console(stderr=True, highlight=False).print(f"the data contradict the model: {learned.conflict}", markup=False)
        raise typer.Exit(EXIT_CODES[Status.CONTRADICTED])
    advice = plumdp.advise(learned, objective, runs=runs, width=width, max_steps=max_steps)
    if output is not None:
        advice.to_csv(output)
    if as_json:
        print_json([{"schema": "plumdp/advice/2", **advice.to_dict(_MOST_ROWS)}], one=True)
    else:
        _print(advice, "" if output is None else str(output))


def _print(advice: Advice, file: str) -> None:
    console = standard_output()
    for sentence in advice.sentences(file=file):
        console.print(prose(sentence))
    table = Table(title="Where new runs help most", title_style="bold", title_justify="left")
    table.add_column("state and action", overflow="fold")
    for name in ("visits so far", "per run", "share of the gain"):
        table.add_column(name, justify="right")
    gain = float(advice.rate @ advice.visits_per_run)
    for choice in advice.best_choices(_MOST_ROWS).tolist():
        state, action = advice.graph.state_of(choice), advice.graph.action_names[advice.graph.action[choice]]
        per_run = float(advice.visits_per_run[choice])
        share = 100 * float(advice.rate[choice]) * per_run / gain
        where = f"{advice.graph.describe_state(state)}: {action}"
        table.add_row(where, f"{advice.visits[choice]:,.0f}", f"{per_run:.2g}", f"{share:.1f} %")
    console.print(table)

"""``plumdp advise``: where the next data narrow a certificate most, and a policy to sample them by."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from plumdp import library
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Status
from plumdp.cli.arguments import AsJson
from plumdp.cli.groups import with_options
from plumdp.cli.options import LikelihoodOptions, LogOptions, ModelOptions, OnePropertyOptions, require_new
from plumdp.cli.results import EXIT_CODES, print_json

_MOST_ROWS = 10


@with_options
def advise(
    model: ModelOptions,
    log: LogOptions,
    asked: OnePropertyOptions,
    sets: LikelihoodOptions,
    runs: Annotated[
        int | None,
        typer.Option("--runs", "-n", help="How many more runs are planned; by default as many as there are."),
    ] = None,
    max_steps: Annotated[
        int | None,
        typer.Option("--max-steps", help="Where new runs are cut off; by default where those of the data are."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A CSV file for the sampling policy: a probability for each action."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file of an earlier run.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say where the next data narrow the bounds most, how wide these will be, and how to sample.

    Ends with 0, or with 3 if the data contradict the model. Example: plumdp advise betting:25 counts.parquet -o
    policy.csv
    """
    for option, number in (("--runs", runs), ("--max-steps", max_steps)):
        if number is not None and number < 1:
            raise DataError(f"{option} {number}: give a whole number, at least 1")
    if output is not None:
        require_new(output, force=force)
    read, objective = asked.load(model)
    learned = sets.learn(read, log.read(read), [objective])
    if learned.conflict is not None:
        Console(stderr=True, highlight=False).print(f"the data contradict the model: {learned.conflict}", markup=False)
        raise typer.Exit(EXIT_CODES[Status.CONTRADICTED])
    advice = library.advise(learned, objective, runs=runs, max_steps=max_steps)
    if output is not None:
        advice.to_csv(output)
    if as_json:
        print_json([{"schema": "plumdp/advice/1", **advice.to_dict(_MOST_ROWS)}], one=True)
    else:
        _print(advice, "" if output is None else str(output))


def _print(advice: library.Advice, file: str) -> None:
    console = Console(highlight=False)
    for sentence in advice.sentences(file=file):
        console.print(Text(sentence))
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

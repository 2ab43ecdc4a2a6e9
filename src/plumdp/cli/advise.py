"""``plumdp advise``: where the next data narrow a certificate most, and a policy to sample them by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

import plumdp
from plumdp.base.vocabulary import Status
from plumdp.cli.inputs import learn, load_objective
from plumdp.cli.options import Options
from plumdp.cli.outputs import require_new
from plumdp.cli.results import EXIT_CODES, print_json, prose, standard_output

if TYPE_CHECKING:
    from plumdp.result.advice import Advice


_MOST_ROWS = 10


def advise(given: Options) -> int:
    """Print where more data would help, and write a policy to sample them by."""
    if given.output is not None:
        require_new(given.output, force=given.force)
    read, objective = load_objective(given)
    learned = learn(given, read, [objective])
    if learned.conflict is not None:
        Console(stderr=True, highlight=False).print(f"the data contradict the model: {learned.conflict}", markup=False)
        return EXIT_CODES[Status.CONTRADICTED]
    advice = plumdp.advise(learned, objective, runs=given.runs, width=given.width, max_steps=given.max_steps)
    if given.output is not None:
        advice.to_csv(given.output)
    if given.json:
        print_json([{"schema": "plumdp/advice/2", **advice.to_dict(_MOST_ROWS)}], one=True)
    else:
        _print(advice, "" if given.output is None else str(given.output))
    return 0


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

"""``plumdp info`` tells what a model is.

``plumdp check-model`` tests whether data reject a model.

``plumdp advise`` says where the next data narrow a certificate most, and writes a policy to sample them by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

import plumdp
from plumdp.base.errors import in_line
from plumdp.base.vocabulary import EXIT_CODES, Status
from plumdp.cli.inputs import (
    each_model,
    learn,
    load_model,
    load_objective,
    read_data,
)
from plumdp.cli.options import Options
from plumdp.cli.outputs import require_new
from plumdp.cli.results import grid, print_json, print_table, prose, standard_output
from plumdp.cli.sources import chosen_properties
from plumdp.model.check import summarise
from plumdp.model.text import cut, listing, number_of
from plumdp.result.show import Page, shown


def info(given: Options) -> None:
    """Print what is known of a model before there are data, or the sizes of a range of models."""
    facts = [_facts(one) for one in each_model(given)]
    if given.json:
        print_json(facts, one=len(facts) == 1)
    elif len(facts) == 1:
        _print_facts(facts[0])
    else:
        names, sizes = list(facts[0]["constants"]), ("states", "choices", "transitions")
        rows = [(*each["constants"].values(), *(f"{each[size]:,}" for size in sizes)) for each in facts]
        print_table(standard_output(), given.model, (*names, *sizes), rows)


def _facts(given: Options) -> dict[str, Any]:
    read, properties = load_model(given)
    facts = {"schema": "plumdp/info/1", "model": given.model, **summarise(read), "properties": properties}
    return facts | ({"constants": given.constant} if given.constant else {})


def _print_facts(facts: dict[str, Any]) -> None:
    console = standard_output()
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in _rows(facts):
        table.add_row(name, prose(text))
    console.print(prose(str(facts["model"]), style="bold"))
    console.print(table)
    for issue in facts["issues"]:
        style = {"error": "bold red", "warning": "yellow", "note": "cyan"}[issue["severity"]]
        console.print(prose(f"{issue['severity']}: ", style=style).append(prose(issue["message"], style="default")))


def _rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    expressions, structure = facts["expressions"], facts["structure"]
    shape = (
        "acyclic apart from self-loops"
        if structure["acyclic"]
        else f"cyclic, {number_of(structure['components'], 'component')}, "
        f"the largest of {number_of(structure['largest_component'], 'state')}"
    )
    per_transition = facts["bytes"] / max(facts["transitions"], 1)
    rows = [
        ("states", f"{facts['states']:,}"),
        ("choices", f"{facts['choices']:,}"),
        ("transitions", f"{facts['transitions']:,}"),
        ("memory", f"{facts['bytes'] / 1e6:,.1f} MB ({per_transition:.0f} bytes per transition)"),
        ("variables", ", ".join(f"{name} {_span(span)}" for name, span in facts["variables"].items())),
        ("initial state", facts["initial_state"]),
        ("actions", in_line(", ".join(facts["actions"]))),
        (
            "parameters",
            listing([f"{name} in [{a:g}, {b:g}]" for name, (a, b) in facts["parameters"].items()]) or "none",
        ),
        ("constraints", "\n".join(facts["constraints"])),
        ("expressions", f"{expressions['total']:,} distinct, {_unknown(expressions)}"),
        ("structure", shape),
        ("labels", ", ".join(f'"{name}" ({number_of(count, "state")})' for name, count in facts["labels"].items())),
        ("rewards", ", ".join(f'"{name}"' for name in facts["rewards"])),
        ("properties", "\n".join(facts["properties"])),
    ]
    return [(name, text) for name, text in rows if text]


def _unknown(expressions: dict[str, int]) -> str:
    """Return the number of expressions that are not constants, and their kinds."""
    kinds, n_free = [], expressions.get("free", 0)
    if "affine" in expressions:
        n, affine = expressions["unknown"] - n_free, expressions["affine"]
        kind = "all affine" if affine == n else f"{affine:,} affine"
        kinds.append(f"{n:,} depend on parameters ({kind}, degree up to {expressions['degree']})")
    if n_free:
        rows, tied = number_of(expressions["free_rows"], "row"), f"{expressions['tied_choices']:,}"
        kinds.append(f"{n_free:,} are the unknown probabilities of {rows} ({tied} choices are tied to others)")
    return ", ".join(kinds)


def _span(values: list[Any]) -> str:
    if len(values) == 2 and not isinstance(values[0], bool | str):
        return f"{values[0]}…{values[1]}"
    return in_line("/".join(str(value).lower() for value in values))


if TYPE_CHECKING:
    from plumdp.explaining.check import ModelCheck
    from plumdp.result.advice import Advice

_SHOWN = 10  # residuals in the table
_NARROW = 80  # columns: on a narrower screen there are sentences instead of the table
_LONGEST = 60  # text of a cell


def check_model(given: Options) -> int:
    """Print what data say against a model; 3 if they contradict it."""
    from plumdp.model.language.property import as_objectives

    read, properties = load_model(given)
    objectives = as_objectives(chosen_properties(given.model, given.property, properties), read)
    counts = read_data(given, read)
    learned = plumdp.learn(read, counts, confidence=given.confidence, objectives=objectives)
    check = plumdp.check_model(learned)
    if given.json:
        print_json([check.to_dict()], one=True)
    else:
        _print(check, in_full=given.verbose > 0)
    return EXIT_CODES[Status.REJECTED] if check.is_contradicted else 0


def _print(check: ModelCheck, *, in_full: bool) -> None:
    console = standard_output()
    console.print(prose(check.headline, style="bold red" if check.is_contradicted else "bold"))
    is_narrow = console.width < _NARROW
    told = Page("", facts=[fact for fact in check.facts() if fact[0] != "residual" or is_narrow])
    console.print(grid(shown(told, in_full=in_full)))
    if check.is_contradicted and check.residuals and not is_narrow:
        console.print(_residuals(check))


def _residuals(check: ModelCheck) -> Table:
    """Return the most telling residuals as a table."""
    table = Table(title="observed minus expected, as probabilities", title_style="bold", title_justify="left")
    table.add_column("where", overflow="fold")
    table.add_column("what", overflow="fold")
    for name in ("observations", "difference", "deviations"):
        table.add_column(name, justify="right", overflow="fold")
    for record in check.residuals[:_SHOWN]:
        numbers = f"{record['observations']:,}", f"{record['difference']:+.3g}", f"{record['standardised']:+.1f}"
        table.add_row(*(prose(cut(str(cell), _LONGEST)) for cell in (record["where"], record["what"], *numbers)))
    return table


_MOST_ROWS = 10


def advise(given: Options) -> int:
    """Print where more data would help, and write a policy to sample them by."""
    if given.output is not None:
        require_new(given.output, force=given.force)
    read, objective = load_objective(given)
    learned = learn(given, read, [objective])
    if learned.conflict is not None:
        Console(stderr=True, highlight=False).print(f"the data reject the model: {learned.conflict}", markup=False)
        return EXIT_CODES[Status.REJECTED]
    advice = plumdp.advise(learned, objective, runs=given.runs, width=given.width, max_steps=given.max_steps)
    if given.output is not None:
        advice.to_csv(given.output)
    if given.json:
        print_json([{"schema": "plumdp/advice/2", **advice.to_dict(_MOST_ROWS)}], one=True)
    else:
        _print_advice(advice, "" if given.output is None else str(given.output))
    return 0


def _print_advice(advice: Advice, file: str) -> None:
    console = standard_output()
    for sentence in advice.sentences(file=file):
        console.print(prose(sentence))
    table = Table(title="Where new runs help most", title_style="bold", title_justify="left")
    table.add_column("state and action", overflow="fold")
    for name in ("visits so far", "visits per run", "share of the gain"):
        table.add_column(name, justify="right")
    gain = float(advice.rate @ advice.visits_per_run)
    for choice in advice.best_choices(_MOST_ROWS).tolist():
        state, action = advice.graph.state_of(choice), advice.graph.action_names[advice.graph.action[choice]]
        per_run = float(advice.visits_per_run[choice])
        share = 100 * float(advice.rate[choice]) * per_run / gain
        where = f"{advice.graph.describe_state(state)}: {action}"
        table.add_row(prose(where), f"{advice.visits[choice]:,.0f}", f"{per_run:.2g}", f"{share:.1f} %")
    console.print(table)

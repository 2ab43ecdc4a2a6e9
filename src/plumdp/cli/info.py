"""``plumdp info``: prints the sizes, parameters, structure and issues of a model."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from plumdp.cli.inputs import each_model, load_model
from plumdp.cli.options import Options
from plumdp.cli.results import print_json, print_table, standard_output
from plumdp.model.check import summarise
from plumdp.model.text import listing, number_of


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
        table.add_row(name, Text(text))
    console.print(Text(str(facts["model"]), style="bold"))
    console.print(table)
    for issue in facts["issues"]:
        style = {"error": "bold red", "warning": "yellow", "note": "cyan"}[issue["severity"]]
        console.print(Text(f"{issue['severity']}: ", style=style).append(issue["message"], style="default"))


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
        ("actions", ", ".join(facts["actions"])),
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
    return "/".join(str(value).lower() for value in values)

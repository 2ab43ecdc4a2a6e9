"""The command line: each sub-command is a few lines over the public interface."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from plumdp import __version__
from plumdp.benchmarks import benchmark, is_benchmark
from plumdp.errors import DataError, MissingExtra, ModelError
from plumdp.model.parametric import ParametricMDP
from plumdp.summary import summarise

MISUSE = 2  # exit code

app = typer.Typer(
    name="plumdp",
    help="Parameter learning for uncertain MDPs: from a parametric model and data to a policy with a guarantee.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="A PRISM or JANI file, or a case study such as betting:50.")
]
Constants = Annotated[
    list[str] | None,
    typer.Option(
        "--constant", "-c", metavar="NAME=VALUE", help="Value of an undefined constant; commas or repeats for more."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@app.command()
def info(model: Model, constant: Constants = None, as_json: AsJson = False) -> None:
    """Show a model's sizes, parameters and their space, expressions, structure, properties and issues."""
    read, properties = _load(model, constant or [])
    facts = {"model": model, **summarise(read), "properties": properties}
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        _print_facts(facts)


def main() -> None:
    """Run the command line; misuse ends with a sentence on standard error and exit code 2."""
    try:
        app()
    except (ModelError, DataError, MissingExtra) as error:
        Console(stderr=True, highlight=False).print(
            Text("error: ", style="bold red").append(str(error), style="default")
        )
        sys.exit(MISUSE)


def _load(model: str, constants: list[str]) -> tuple[ParametricMDP, list[str]]:
    """Return the model and the properties that come with it."""
    values = _constants(constants)
    if is_benchmark(model):
        if values:
            raise ModelError(f"{model}: a case study takes its sizes in its name, not as constants")
        study = benchmark(model)
        return study.model, [study.objective.text]
    from plumdp.model.storm import read_prism

    path = Path(model)
    if not path.is_file() and not path.suffix:
        raise ModelError(f"{model}: there is no such file, and no case study of this name (try betting:50)")
    return read_prism(path, constants=values), _properties(path)


def _constants(texts: list[str]) -> dict[str, str]:
    values = {}
    for text in ",".join(texts).split(",") if texts else []:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise ModelError(f"--constant {text}: write NAME=VALUE")
        values[name.strip()] = {"true": "1", "false": "0"}.get(value.strip(), value.strip())
    return values


def _properties(path: Path) -> list[str]:
    """Return the lines of the property file beside a model file."""
    for suffix in (".props", ".pctl", ".prctl"):
        file = path.with_suffix(suffix)
        if file.is_file():
            lines = (line.partition("//")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
            return [line for line in lines if line]
    return []


def _print_facts(facts: dict[str, Any]) -> None:
    console = Console(highlight=False)
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
    kind = "all affine" if expressions["affine"] == expressions["unknown"] else f"{expressions['affine']:,} affine"
    shape = (
        "acyclic apart from self-loops"
        if structure["acyclic"]
        else f"cyclic, {structure['components']:,} components, the largest of {structure['largest_component']:,} states"
    )
    unknown = f"{expressions['unknown']:,} depend on parameters ({kind}, degree up to {expressions['degree']})"
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
            ", ".join(f"{name} in [{a:g}, {b:g}]" for name, (a, b) in facts["parameters"].items()) or "none",
        ),
        ("constraints", "\n".join(facts["constraints"])),
        ("expressions", f"{expressions['total']:,} distinct, {unknown}"),
        ("structure", shape),
        ("labels", ", ".join(f'"{name}" ({count:,} states)' for name, count in facts["labels"].items())),
        ("rewards", ", ".join(f'"{name}"' for name in facts["rewards"])),
        ("properties", "\n".join(facts["properties"])),
    ]
    return [(name, text) for name, text in rows if text]


def _span(values: list[Any]) -> str:
    if len(values) == 2 and not isinstance(values[0], bool | str):
        return f"{values[0]}…{values[1]}"
    return "/".join(str(value).lower() for value in values)

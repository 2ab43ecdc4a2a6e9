"""``plumdp check-model``: tests whether data contradict a model, and says what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Status
from plumdp.cli import arguments as args
from plumdp.cli.options import LogOptions, ModelOptions, require_confidence
from plumdp.cli.results import EXIT_CODES, grid, print_json, prose, standard_output
from plumdp.cli.sources import chosen_properties
from plumdp.model.text import cut

if TYPE_CHECKING:
    from plumdp.explaining.check import ModelCheck


_SUFFIXES = (".png", ".svg")
_SHOWN = 10  # residuals in the table
_NARROW = 80  # columns: on a narrower screen there are sentences instead of the table
_LONGEST = 60  # text of a cell


_Property = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        "--prop",
        "-p",
        metavar="TEXT",
        help="What the model is for: tests are sharp there. Repeat for more.",
    ),
]
_Confidence = Annotated[
    float, typer.Option("--confidence", help="How sure it must be that the model is wrong, below 1.")
]
_Tie = Annotated[
    list[str] | None,
    typer.Option(
        "--tie",
        metavar="TEXT",
        help="A tie to test that the model does not have: a state variable that rows might not depend on, or two "
        "actions whose rows might be the same, as in 'walk = run'. Repeat for more.",
    ),
]
_Memory = Annotated[
    bool,
    typer.Option("--memory", help="Test from whole runs whether the next state depends on the step before as well."),
]
_Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="A picture of the residuals: .png or .svg.")]


def check_model(
    *,
    model: args.Model, constant: args.Constant = None, space: args.Space = None,
    data: args.Data, column: args.Column = None, state: args.State = None, action: args.Action = None,
    form: args.Form = None, keep_going: args.KeepGoing = False, sampling: args.Sampling = None,
    order: args.Order = None, expected: args.Expected = None, cut_off: args.CutOff = None,
    steps: args.Steps = None, rejected: args.Rejected = None,
    property: _Property = None, tie: _Tie = None, memory: _Memory = False, confidence: _Confidence = 0.999,
    plot: _Plot = None, as_json: args.AsJson = False,
) -> None:  # fmt: skip
    """Test whether data contradict a model, and say what is wrong and what to try if they do.

    Ends with 0 if they do not, and with 3 if the data contradict the model.
    """
    from plumdp.model.language.property import as_objectives

    require_confidence(confidence)
    if plot is not None:
        _require_picture(plot)
    log = LogOptions(
        data, column, state, action, form, keep_going, sampling, order, expected, cut_off, steps,
        rejected,
    )  # fmt: skip
    read, properties = ModelOptions(model, constant, space).load()
    objectives = as_objectives(chosen_properties(model, property or [], properties), read)
    counts, runs = log.read(read), log.runs(read) if memory else None
    check = plumdp.check_model(read, counts, confidence=confidence, objectives=objectives, ties=tie or (), runs=runs)
    if as_json:
        print_json([{"schema": "plumdp/check/1", **check.to_dict()}], one=True)
    else:
        _print(check)
    if plot is not None:
        plumdp.draw("residuals", check).save(plot)
        if not as_json:
            print(f"residuals: {plot}")
    raise typer.Exit(EXIT_CODES[Status.CONTRADICTED] if check.is_contradicted else 0)


def _require_picture(path: Path) -> None:
    """Refuse a file that no picture can be written to, before the work is done."""
    from plumdp.result.folder import require_file

    if path.suffix.lower() not in _SUFFIXES:
        raise DataError(f"--plot {path}: pictures are written as {' or '.join(_SUFFIXES)}; choose one of these endings")
    require_file(path)


def _print(check: ModelCheck) -> None:
    console = standard_output()
    console.print(prose(check.headline, style="bold red" if check.is_contradicted else "bold"))
    is_narrow = console.width < _NARROW
    console.print(grid([fact for fact in check.facts() if fact[0] != "residual" or is_narrow]))
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
        table.add_row(*(Text(cut(str(cell), _LONGEST)) for cell in (record["where"], record["what"], *numbers)))
    return table

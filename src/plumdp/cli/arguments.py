"""The arguments and options of the sub-commands, each defined once, and how models and properties are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plumdp.case_studies import case_study, is_case_study
from plumdp.confidence.bounds import Intervals
from plumdp.data.columns import LogForm
from plumdp.data.counts import Sampling
from plumdp.data.log_pilots import Order
from plumdp.errors import ModelError
from plumdp.learning import Sets
from plumdp.model.parametric import ParametricMDP

Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="A PRISM or JANI file, or a case study such as betting:50.")
]
Constants = Annotated[
    list[str] | None,
    typer.Option(
        "--constant", "-c", metavar="NAME=VALUE", help="Value of an undefined constant; commas or repeats for more."
    ),
]
Properties = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        "-p",
        metavar="TEXT",
        help="What is asked, as in PRISM; the model's own property if it has one. Repeat for more: the results of all "
        "hold jointly.",
    ),
]
Property = Annotated[
    str | None,
    typer.Option("--property", "-p", metavar="TEXT", help="What is asked, as in PRISM; the model's own if it has one."),
]
AllProperties = Annotated[
    bool, typer.Option("--all-properties", help="Ask all properties that come with the model; they hold jointly.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Data = Annotated[
    list[str], typer.Argument(metavar="DATA...", help="A file of counts, or logs: Parquet, CSV or JSON, patterns too.")
]
ColumnNames = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="NAME=COLUMN", help="What the log calls a column; commas or repeats for more."),
]
States = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        metavar="NAME=EXPRESSION",
        help="How a state variable follows from columns of the log: an expression, such as 'x=floor(lon/0.5)', or the "
        "edges of bins, such as 'battery=[0,20,60,100]'; repeat for more.",
    ),
]
ActionMap = Annotated[
    str | None,
    typer.Option(
        "--action",
        metavar="EXPRESSION",
        help="How the action follows from columns of the log, such as \"if thrust > 0 then 'up' else 'down'\".",
    ),
]
FormOption = Annotated[
    LogForm | None,
    typer.Option(
        "--form",
        help="Rows with the next state (transitions), one row per state (trajectories), or ready-made counts. Default: "
        "what the columns show.",
    ),
]
KeepGoing = Annotated[bool, typer.Option("--keep-going", help="Count what fits the model even if some rows do not.")]
SamplingOption = Annotated[
    Sampling | None,
    typer.Option(
        "--sampling",
        help="How the log was sampled. adaptive (default): in any way; trajectories: a number of runs that was fixed "
        "beforehand, under one policy; independent: a number of samples per choice that was fixed beforehand. "
        "A file of counts keeps what was said when it was counted; less may be said of it, but not more.",
    ),
]
OrderOption = Annotated[
    Order | None,
    typer.Option(
        "--order",
        help="What is known of the order of the log. time: its rows are in the order in which they happened; runs: its "
        "episodes are numbered in the order in which they were made, each after the one before had ended. Then its "
        "first part is kept apart as a pilot, which makes most results narrower.",
    ),
]
PilotOption = Annotated[
    float | None,
    typer.Option(
        "--pilot",
        metavar="SHARE",
        help="The share of the runs that is the pilot, if their number was fixed beforehand; 0: none. Default: 5 to "
        "20 %.",
    ),
]
Confidence = Annotated[float, typer.Option("--confidence", help="How sure the bounds must be, below 1.")]
SetKind = Annotated[
    Sets | None,
    typer.Option(
        "--confidence-set",
        help="The kind of confidence set made from the data. Default: likelihood; interval, if --interval-method or "
        "--as-published is given.",
    ),
]
IntervalKind = Annotated[
    Intervals | None,
    typer.Option("--interval-method", help="Instead of the narrowest that are valid for the data; the result says so."),
]
AsPublished = Annotated[
    bool,
    typer.Option(
        "--as-published", help="Make the sets as the paper publishes them, for comparison: without a guarantee."
    ),
]
Misfit = Annotated[
    float,
    typer.Option(
        "--misfit", help="How far every row of the model may be off, in total variation, such as 0.01; default: 0."
    ),
]


def load(model: str, constants: list[str]) -> tuple[ParametricMDP, list[str]]:
    """Return the model and the properties that come with it."""
    values = pairs("--constant", constants)
    if is_case_study(model):
        if values:
            raise ModelError(f"{model}: a case study takes its sizes in its name, not as constants")
        study = case_study(model)
        return study.model, [study.objective.text]
    from plumdp.model.readers.read import read_model

    path = Path(model)
    if not path.is_file() and not path.suffix:
        raise ModelError(f"{model}: there is no such file, and no case study of this name (try betting:50)")
    return read_model(path, constants=values), _properties(path)


def pairs(option: str, texts: list[str]) -> dict[str, str]:
    """Return the values by name that texts NAME=VALUE give."""
    values = {}
    for text in ",".join(texts).split(",") if texts else []:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise ModelError(f"{option} {text}: write NAME=VALUE")
        values[name.strip()] = {"true": "1", "false": "0"}.get(value.strip(), value.strip())
    return values


def _properties(path: Path) -> list[str]:
    """Return the lines of the property file beside a model file."""
    for suffix in (".props", ".pctl", ".prctl"):
        file = path.with_suffix(suffix)
        if file.is_file():
            try:
                text = file.read_text(encoding="utf-8-sig")
            except UnicodeDecodeError:
                raise ModelError(f"{file}: this is not a text in UTF-8; save it as UTF-8") from None
            lines = (line.partition("//")[0].strip() for line in text.splitlines())
            return [line for line in lines if line]
    return []

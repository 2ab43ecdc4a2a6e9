"""The arguments and options of the sub-commands, each declared once, and how models are read.

A command lists those that it takes as its parameters, under the same names in the same order everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from glob import glob
from itertools import product
from pathlib import Path
from typing import Annotated, get_args

import typer

import plumdp
from plumdp.base import vocabulary
from plumdp.base.errors import ModelError
from plumdp.cli.sources import load_source

_MOST_VALUES = 1000  # of a range


def complete_model(incomplete: str) -> list[str]:
    """Return case studies and model files that begin with a text, for the completion of the shell."""
    from plumdp.case_studies import case_study_names
    from plumdp.model.readers.read import READERS

    names = [name for name in case_study_names() if name.startswith(incomplete)]
    files = [file for file in glob(f"{incomplete}*") if Path(file).suffix in (*READERS, ".py") or Path(file).is_dir()]
    return names + sorted(files)


Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A PRISM or JANI file, a case study such as betting:50, or model.py:NAME for a model (or a function that "
        "returns one) in a Python file; without :NAME if the file has one model.",
        autocompletion=complete_model,
    ),
]
Constant = Annotated[
    list[str] | None,
    typer.Option(
        "--constant",
        "--const",
        "-c",
        metavar="NAME=VALUE",
        help="Value of an undefined constant, or of an argument of a function in Python; commas or repeats for more. "
        "certify, compare, compare-models and info also take ranges: N=4:6, or N=4:2:10 in steps of 2.",
    ),
]
Space = Annotated[
    list[str] | None,
    typer.Option(
        "--space",
        metavar="CONSTRAINT",
        help="What is known of the parameters: linear, such as 'crash<=0.2' or '0.1<=p<=0.9'. Repeat for more.",
    ),
]
Properties = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        "--prop",
        "-p",
        metavar="TEXT",
        help="What is asked, as in PRISM, or the name of a property that comes with the model; its only one, if none "
        "is given. Repeat for more: the results of all hold jointly.",
    ),
]
Property = Annotated[
    str | None,
    typer.Option(
        "--property",
        "--prop",
        "-p",
        metavar="TEXT",
        help="What is asked, as in PRISM (until, rewards, steps, budgets, missions in LTL), or the name of a property "
        "that comes with the model; its only one, if none is given.",
    ),
]
AllProperties = Annotated[
    bool, typer.Option("--all-properties", help="Ask all properties that come with the model; they hold jointly.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="Files of counts, which are added, or logs: Parquet, CSV or JSON, patterns and folders too.",
    ),
]
OptionalData = Annotated[
    list[str] | None,
    typer.Argument(metavar="[DATA...]", help="Counts or logs, as plumdp certify takes them, if they are needed."),
]
Column = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="NAME=COLUMN", help="What the log calls a column; commas or repeats for more."),
]
State = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        metavar="NAME=EXPRESSION",
        help="How a state variable follows from columns of the log: an expression, such as 'x=floor(lon/0.5)', or the "
        "edges of bins, such as 'battery=[0,20,60,100]'; repeat for more.",
    ),
]
Action = Annotated[
    str | None,
    typer.Option(
        "--action",
        metavar="EXPRESSION",
        help="How the action follows from columns of the log, such as \"if thrust > 0 then 'up' else 'down'\"; what "
        "the log calls actions, '{FULL=full,HALF=half}'; or the actions 0, 1, 2, '[left,stay,right]'.",
    ),
]
Form = Annotated[
    vocabulary.LogForm | None,
    typer.Option(
        "--form",
        help="Rows with the next state (transitions), one row per state (trajectories), or ready-made counts. Default: "
        "what the columns show.",
    ),
]
KeepGoing = Annotated[bool, typer.Option("--keep-going", help="Count what fits the model even if some rows do not.")]
Sampling = Annotated[
    vocabulary.Sampling | None,
    typer.Option(
        "--sampling",
        help="How the log was sampled. adaptive (default): whoever chose the actions and the end; trajectories: a "
        "number of runs that was fixed beforehand, under one policy; independent: a number of samples per choice that "
        "was fixed beforehand. A file of counts keeps what was said when it was counted; less may be said of it, but "
        "not more.",
    ),
]
Order = Annotated[
    vocabulary.Order | None,
    typer.Option(
        "--order",
        help="What is known of the order of the log. time: its rows are in the order in which they happened; runs: its "
        "episodes are numbered in the order in which they were made, each after the one before had ended. Then bets "
        "are placed by what came first, which makes most results narrower. Files come in the order given; those "
        "of a folder or a quoted pattern by name, part-2 before part-10.",
    ),
]
Expected = Annotated[
    float | None,
    typer.Option(
        "--expected",
        metavar="N",
        help="How many runs (or rows, with --order time) you expected before there were any; with --order. It need not "
        "come true, and makes results narrower.",
    ),
]
CutOff = Annotated[
    vocabulary.CutOff | None,
    typer.Option(
        "--cut-off",
        help="Needed if most runs of the log end before the outcome of their last action. unrelated: they were cut off "
        "for reasons that have nothing to do with that outcome; every result repeats it.",
    ),
]
Steps = Annotated[
    vocabulary.Steps | None,
    typer.Option(
        "--steps",
        metavar="WORD",
        help="What the steps of trajectories show. consecutive: numbers that grow by one in each row, so that a "
        "missing row is a gap; monthly, weekly, daily or every=30d: dates, one in each such period, so that a period "
        "without one is a gap; ordered: only the order of the rows of a run, of which none is missing; every result "
        "repeats it. Default: ordered, unless some numbers grow by one.",
    ),
]
Rejected = Annotated[
    Path | None,
    typer.Option(
        "--rejected", metavar="FILE", help="Write all rows that do not fit, with the reason, as .csv or .parquet."
    ),
]
Confidence = Annotated[float, typer.Option("--confidence", help="How sure the bounds must be, below 1.")]
ConfidenceSet = Annotated[
    str | None,  # one of ``SETS``, to which others may have been added
    typer.Option(
        "--confidence-set",
        metavar=f"[{'|'.join(get_args(vocabulary.Sets))}]",
        help="The kind of confidence set made from the data. Default: likelihood; table, if rows are unknown.",
    ),
]
Announced = Annotated[
    bool,
    typer.Option(
        "--announced",
        help="Say that you chose the policy before you looked at these data: then bets are placed on its value, and "
        "bounds are narrower, those of a table by much.",
    ),
]
Margin = Annotated[
    float,
    typer.Option(
        "--margin",
        help="A difference of two values that does not matter, such as 0.01: then it is said as well whether the "
        "policies are the same within it, or the first is not worse by more than it; default: 0.",
    ),
]
Misfit = Annotated[
    float,
    typer.Option(
        "--misfit", help="How far every row of the model may be off, in total variation, such as 0.01; default: 0."
    ),
]
Evidence = Annotated[
    list[str] | None,
    typer.Option(
        "--evidence",
        metavar="EXPRESSION=SUCCESSES/TRIALS",
        help="Counts from another study, of a parameter or a sum of parameters, such as 'p=34/210' or '1-p=176/210'; "
        "repeat for more.",
    ),
]
Memory = Annotated[
    bool,
    typer.Option(
        "--memory/--no-memory",
        help="Whether the policy may count steps if the property bounds them; default: it may.",
    ),
]
At = Annotated[
    list[str] | None,
    typer.Option("--at", metavar="NAME=VALUE", help="Take a parametric model at this point of its parameters."),
]
ResultFolder = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="A folder for certificate, policy and data, which plumdp report and read_result open; of several "
        "properties, folders 1, 2, … in it.",
    ),
]
Explain = Annotated[
    bool,
    typer.Option("--explain", help="Add to the folder what plumdp report shows besides, and would find by itself."),
]
Witness = Annotated[
    bool,
    typer.Option(
        "--witness",
        help="Add to the folder what others need to check the result with plumdp verify.",
    ),
]
ReplaceResult = Annotated[bool, typer.Option("--force", help="Replace the result of an earlier run.")]
ReplaceFile = Annotated[bool, typer.Option("--force", help="Replace the file of an earlier run.")]
ReplaceFiles = Annotated[bool, typer.Option("--force", help="Replace files of an earlier run.")]


def load(
    model: str, constants: Sequence[str], spaces: Sequence[str] = ()
) -> tuple[plumdp.model.ParametricMDP, list[str]]:
    """Return the model and the properties that come with it."""
    from plumdp.model.language.constraint import cut_model

    first, *others = value_ranges(constants)
    if others:
        raise ModelError(
            "--constant: this command takes one value for each constant; certify, compare, compare-models and info "
            "take ranges"
        )
    read, properties = load_source(model, first)
    try:
        return cut_model(read, spaces), properties
    except ModelError as error:
        raise ModelError("--space: ", *error.args) from None


def value_ranges(constants: Sequence[str]) -> list[dict[str, str]]:
    """Return the values of constants by name, for each combination of values that ranges such as 4:6 have.

    >>> value_ranges(["N=4:6", "K=1"])
    [{'N': '4', 'K': '1'}, {'N': '5', 'K': '1'}, {'N': '6', 'K': '1'}]
    """
    values = pairs("--constant", constants)
    lists = [_values(f"--constant {name}={value}", value) for name, value in values.items()]
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*lists)]


def _values(option: str, text: str) -> list[str]:
    """Return the values of LOW:HIGH or LOW:STEP:HIGH, both ends included; or the value itself."""
    parts = text.split(":")
    if len(parts) == 1:
        return parts
    try:
        low, step, high = (Fraction(part) for part in (parts if len(parts) == 3 else (parts[0], "1", parts[-1])))
    except (ValueError, ZeroDivisionError):
        raise ModelError(f"{option}: a range is LOW:HIGH or LOW:STEP:HIGH, such as 4:6 or 4:2:10") from None
    if len(parts) > 3 or step <= 0 or low > high:
        raise ModelError(f"{option}: a range goes up from LOW to HIGH in steps above 0, such as 4:6 or 4:2:10")
    n_values = int((high - low) / step) + 1
    if n_values > _MOST_VALUES:
        raise ModelError(f"{option}: this range has {n_values:,} values; take at most {_MOST_VALUES:,}")
    return [str(low + number * step) for number in range(n_values)]


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Return the values by name that texts NAME=VALUE give."""
    values = {}
    for text in ",".join(texts).split(",") if texts else []:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise ModelError(f"{option} {text}: write NAME=VALUE")
        values[name.strip()] = {"true": "1", "false": "0"}.get(value.strip(), value.strip())
    return values

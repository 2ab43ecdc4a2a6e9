"""``plumdp compare-models``: several candidate models and one log, with the error divided among the models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

import plumdp
from plumdp.base.errors import ModelError
from plumdp.base.vocabulary import Sets, Status
from plumdp.cli import arguments as args
from plumdp.cli.options import LogOptions, ModelOptions, PropertyOptions, require_confidence
from plumdp.cli.progress import LOGGER
from plumdp.cli.results import EXIT_CODES, grid, print_json, print_table, prose, standard_output

_ModelsAndData = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL... DATA...",
        help="The candidate models, then counts or logs, as plumdp certify takes them. One model with a range of a "
        "constant, such as -c k=0:2, is several candidates.",
    ),
]


def compare_models(
    *,
    models: _ModelsAndData, constant: args.Constant = None, space: args.Space = None,
    column: args.Column = None, state: args.State = None, action: args.Action = None,
    form: args.Form = None, keep_going: args.KeepGoing = False, sampling: args.Sampling = None,
    order: args.Order = None, expected: args.Expected = None, cut_off: args.CutOff = None,
    steps: args.Steps = None, rejected: args.Rejected = None,
    property: args.Property = None, confidence: args.Confidence = 0.999, confidence_set: args.ConfidenceSet = None,
    misfit: args.Misfit = 0.0, as_json: args.AsJson = False,
) -> None:  # fmt: skip
    """Test and certify several candidate models from one log, with the error divided among them.

    All bounds hold jointly, each if its model is correct, so that you may choose a model after looking. Ends with 0, or
    with 3 if the data contradict all models.
    """
    require_confidence(confidence)
    names, data = split(models)
    log = LogOptions(
        data, column, state, action, form, keep_going, sampling, order, expected, cut_off, steps,
        rejected,
    )  # fmt: skip
    candidates = {one.name: one for model in names for one in ModelOptions(model, constant, space).each()}
    read, counts, texts = {}, {}, dict[str, str]()
    for name, candidate in candidates.items():
        read[name], asked = PropertyOptions(None if property is None else [property]).texts(candidate)
        texts[name], counts[name] = asked[0], log.read_for(candidate, read[name])
    LOGGER.info("certifying %d models", len(candidates))
    comparison = plumdp.compare_models(
        read,
        counts,
        _one_text(texts),
        confidence=confidence,
        confidence_set=cast("Sets | None", confidence_set),  # learn refuses what is not in its table
        misfit=misfit,
    )
    if as_json:
        print_json([comparison.to_dict()], one=True)
    else:
        console = standard_output()
        console.print(prose(comparison.sentence, style="bold" if comparison.possible else "bold red"))
        print_table(console, _one_text(texts), ("model", "lower", "upper", "p", "status"), comparison.rows())
        console.print(grid(comparison.premises()))
    raise typer.Exit(0 if comparison.possible else EXIT_CODES[Status.CONTRADICTED])


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the models, which come first, and the data, which begin with the first file of counts or logs.

    >>> split(["tied.prism", "free.py:model", "betting:5", "runs.parquet", "more.csv"])
    (['tied.prism', 'free.py:model', 'betting:5'], ['runs.parquet', 'more.csv'])
    """
    n_models = next((place for place, text in enumerate(arguments) if not _is_model(text)), len(arguments))
    if n_models == 0:
        raise ModelError(f"{arguments[0]}: this is not a model; give the candidate models first, then the data")
    if n_models == len(arguments):
        raise ModelError(f"{arguments[-1]}: give data after the models: a file of counts, or logs")
    return arguments[:n_models], arguments[n_models:]


def _is_model(text: str) -> bool:
    """Return whether an argument names a model: a file that is read as one, a Python file, or a case study."""
    from plumdp.case_studies import is_case_study
    from plumdp.model.readers.read import READERS

    return ".py:" in text or Path(text).suffix in (*READERS, ".py") or is_case_study(text)


def _one_text(texts: dict[str, str]) -> str:
    """Return what is asked of all models, if it is the same."""
    distinct = dict.fromkeys(texts.values())
    if len(distinct) > 1:
        raise ModelError(
            f"the models come with different properties; say with --property what is asked: {'; '.join(distinct)}"
        )
    return next(iter(distinct))

"""``plumdp verify``: a result checked from its counts to its sentence, by code of its own."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plumdp.base.errors import DataError
from plumdp.cli import arguments as args
from plumdp.cli.config import FILE
from plumdp.cli.options import LogOptions, ModelOptions, require_new
from plumdp.cli.results import print_json

if TYPE_CHECKING:
    from plumdp.data.counts import TransitionCounts
    from plumdp.model import ParametricMDP
    from plumdp.verifying.look import Own

_Result = Annotated[
    Path | None, typer.Argument(metavar="[RESULT]", help="The folder of a result that certify -o --witness wrote.")
]
_Checker = Annotated[
    Path | None,
    typer.Option("--write-checker", metavar="FILE", help="Write the checker as one file that runs without plumdp."),
]


_Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Your model, as certify takes it: space, rows, chain and policy must be its own.",
    ),
]
_Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data", metavar="LOG", help="Your data, as certify takes them, with the options about them; repeat for more."
    ),
]


def verify(
    *,
    result: _Result = None, model: _Model = None, constant: args.Constant = None, space: args.Space = None,
    data: _Data = None, column: args.Column = None, state: args.State = None, action: args.Action = None,
    form: args.Form = None, keep_going: args.KeepGoing = False, sampling: args.Sampling = None,
    order: args.Order = None, expected: args.Expected = None, cut_off: args.CutOff = None,
    steps: args.Steps = None, rejected: args.Rejected = None,
    write_checker: _Checker = None, force: args.ReplaceFile = False, as_json: args.AsJson = False,
) -> None:  # fmt: skip
    """Check a result from its counts to its sentence, without the code that made it.

    If the folder has the data, bets are compared with what the data before them lead to. With --model, the result is
    compared with your model, and with --data also with your data, which are counted again; these use plumdp. Prints a
    line for each layer, and what is trusted. Ends with 0 if all layers hold, with 1 at the first that does not, and
    with 4 if something could not be compared.
    """
    from plumdp.verifying import verify as verifying

    log = LogOptions(
        data, column, state, action, form, keep_going, sampling, order, expected, cut_off, steps,
        rejected,
    )  # fmt: skip
    if write_checker is not None:
        require_new(write_checker, force=force)
        verifying.write_checker(write_checker)
    elif result is None:
        raise DataError("RESULT: name the folder of a result")
    if data and model is None:
        raise DataError("--data: a log is counted by a model; say with --model which")
    if result is None:
        return
    if not result.is_dir():  # a slip of the pen breaks nothing
        raise DataError(f"{result} is not a folder; name that of a result, which certify -o --witness wrote")
    report = verifying.verify(result)
    if report.broken is None:
        verifying.look_again(result, report, None if model is None else _own(ModelOptions(model, constant, space), log))
    if as_json:
        print_json([report.to_dict()], one=True)
    else:
        print(report)
    raise typer.Exit(0 if report.broken is None else 1 if report.broken.is_broken else 4)


def _own(options: ModelOptions, log: LogOptions) -> Own:
    """Return the model, the counts of the data if there are any, and a reader of the file if Storm reads it."""
    from plumdp.model.readers.read import READERS
    from plumdp.verifying.look import Own

    model, _ = options.load()

    def read(point: Mapping[str, Fraction]) -> ParametricMDP:
        values = [f"{parameter}={value}" for parameter, value in point.items()]
        return args.load(options.model, [*(options.constant or []), *values])[0]

    is_read_by_storm = Path(options.model).suffix.lower() in READERS
    return Own(model, _counts(log, model) if log.data else None, read if is_read_by_storm else None)


def _counts(log: LogOptions, model: ParametricMDP) -> TransitionCounts:
    try:
        return log.read(model)
    except DataError as error:
        if not Path(FILE).exists():
            raise
        raise DataError(*error.args, f"; verify reads {FILE} only if --config names it") from None

"""``plumdp verify``: a result checked from its counts to its sentence, by code of its own."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plumdp.base.errors import DataError
from plumdp.cli import arguments as args
from plumdp.cli.options import require_new
from plumdp.cli.results import print_json

if TYPE_CHECKING:
    from plumdp.model import ParametricMDP
    from plumdp.verifying.second_look import ModelAt

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
        "--model", metavar="MODEL", help="The model, as certify takes it: the policy's chain is compared with it."
    ),
]


def verify(
    *, result: _Result = None, model: _Model = None, constant: args.Constant = None,
    write_checker: _Checker = None, force: args.ReplaceFile = False, as_json: args.AsJson = False,
) -> None:  # fmt: skip
    """Check a result from its counts to its sentence, without the code that made it.

    If the folder has the data, bets are compared with what the data before them lead to, and with --model the chain of
    the policy with the model, which is read again with numbers in place of its parameters; both use plumdp. Prints a
    line for each layer, and what is trusted. Ends with 0 if all layers hold, and with 1 at the first that does not.
    """
    from plumdp.verifying import verify as verifying

    if write_checker is not None:
        require_new(write_checker, force=force)
        verifying.write_checker(write_checker)
    elif result is None:
        raise DataError("RESULT: name the folder of a result")
    if result is None:
        return
    report = verifying.verify(result)
    verifying.look_again(result, report, None if model is None else _model_at(model, constant))
    if as_json:
        print_json([report.to_dict()], one=True)
    else:
        print(report)
    raise typer.Exit(0 if report.broken is None else 1)


def _model_at(name: str, constant: list[str] | None) -> ModelAt:
    """Return a function that reads a model with values of its parameters; files in Python keep their parameters."""
    from plumdp.model.readers.read import READERS

    def read(point: Mapping[str, Fraction]) -> ParametricMDP:
        is_read_by_storm = Path(name).suffix.lower() in READERS
        values = [f"{parameter}={value}" for parameter, value in point.items()] if is_read_by_storm else []
        return args.load(name, [*(constant or []), *values])[0]

    return read

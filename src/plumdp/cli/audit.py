"""``plumdp audit``: a certified policy valued by new runs alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Status
from plumdp.cli import arguments as args
from plumdp.cli.mappings import action_map, state_maps
from plumdp.cli.results import EXIT_CODES, print_json

if TYPE_CHECKING:
    from plumdp.model import ParametricMDP

_Result = Annotated[Path, typer.Argument(metavar="RESULT", help="The folder of a result that certify -o wrote.")]
_Runs = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RUNS...]", help="New runs under the policy: logs that name run and step of each row."),
]
_Range = Annotated[
    tuple[float, float] | None,
    typer.Option(
        "--range",
        metavar="LO HI",
        help="Between which numbers the returns of all runs lie, decided on before looking. Default: what the model "
        "allows; sums of rewards without steps or discount need it.",
    ),
]
_Plan = Annotated[
    float | None,
    typer.Option(
        "--plan",
        metavar="DEVIATION",
        help="Say about how many runs tell that the value is so far outside of the certified bounds. No runs are "
        "needed for that, but they show how much returns vary.",
    ),
]

_Expected = Annotated[
    float | None,
    typer.Option(
        "--expected",
        metavar="N",
        help="How many runs you announced before there were any, if they are numbered in the order in which they were "
        "made and each had ended before the next began. It need not come true, and makes bounds narrower.",
    ),
]


def audit(
    *,
    result: _Result, runs: _Runs = None,
    column: args.Column = None, state: args.State = None, action: args.Action = None, form: args.Form = None,
    confidence: args.Confidence = 0.999, range: _Range = None, expected: _Expected = None,
    plan: _Plan = None, as_json: args.AsJson = False,
) -> None:  # fmt: skip
    """Value a certified policy by new runs under it alone, and say whether they contradict the certificate.

    No probability of the model is used. You may look as often as you like, and stop when you like. Ends with 0 if the
    runs do not, or if there are none and --plan says how many are needed, and with 3 if they do.
    """
    if not runs and plan is None:
        raise DataError("give new runs after the result, or --plan DEVIATION to know how many are needed")
    certificate, model = _opened(result)
    found, needed = None, None
    if runs:
        found = plumdp.decisions.audit(
            certificate,
            model,
            runs,
            confidence=confidence,
            return_range=range,
            columns=args.pairs("--column", column or []),
            states=state_maps(state or []),
            actions=action_map(action),
            form=form,
            expected=expected,
        )
    if plan is not None:
        spread = None if found is None else found.spread
        needed = plumdp.decisions.runs_to_audit(
            certificate, model, plan, confidence=confidence, return_range=range, spread=spread
        )
    if as_json:
        content = {"schema": "plumdp/audit/1"} if found is None else found.to_dict()
        print_json([content | ({} if needed is None else {"deviation": plan, "runs_needed": needed})], one=True)
    else:
        print(
            "\n".join(
                [
                    *([] if found is None else [str(found)]),
                    *([] if needed is None else [_said(needed, plan, found is None)]),
                ]
            )
        )
    if found is not None and found.verdict == "contradicted":
        raise typer.Exit(EXIT_CODES[Status.CONTRADICTED])


def _said(needed: int, deviation: float | None, is_guessed: bool) -> str:
    unless = "; fewer, if returns vary less than they can" if is_guessed else ", if returns vary as these do"
    deviates = f"the value is {deviation:g} outside of the certified bounds"
    return f"About {needed:,} runs in all would tell that {deviates}{unless}."


def _opened(folder: Path) -> tuple[plumdp.Certificate, ParametricMDP]:
    """Return the certificate in a folder, and the model that it was made with."""
    from plumdp.result.data_file import read_data
    from plumdp.result.folder import DATA

    plumdp.read_result(folder)  # refuses what was changed, before the model is read
    if not (folder / DATA).is_file():
        raise DataError(
            f"{folder} has no model, whose states the runs show: certify again with plumdp certify -o, or give the "
            "model in Python, audit(read_result(folder, model), model, runs)"
        )
    model, _ = read_data(folder / DATA)
    return plumdp.read_result(folder, model), model

"""``plumdp audit``: a certified policy valued by new runs alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Status
from plumdp.cli.inputs import how_read
from plumdp.cli.options import Options
from plumdp.cli.results import EXIT_CODES, print_json
from plumdp.model.text import number_of

if TYPE_CHECKING:
    from plumdp.model.parametric import ParametricMDP


def audit(given: Options) -> int:
    """Print what new runs say of a certificate, or how many are needed; 3 if they contradict it."""
    if not given.data and given.plan is None:
        raise DataError("give new runs after the result, or --plan DEVIATION to know how many are needed")
    assert given.result is not None
    certificate, model = _opened(given.result)
    found, needed = None, None
    how: dict[str, Any] = {"confidence": given.confidence, "return_range": given.range}
    if given.data:
        read = how_read(given)
        found = plumdp.decisions.audit(certificate, model, given.data, expected=given.expected, **how, **read)
    if given.plan is not None:
        spread = None if found is None else found.spread
        needed = plumdp.decisions.runs_to_audit(certificate, model, given.plan, spread=spread, **how)
    if given.json:
        content = {"schema": "plumdp/audit/1"} if found is None else found.to_dict()
        print_json([content | ({} if needed is None else {"deviation": given.plan, "runs_needed": needed})], one=True)
    else:
        planned = None if needed is None else _said(needed, given.plan, found is None)
        print("\n".join(str(each) for each in (found, planned) if each is not None))
    return EXIT_CODES[Status.CONTRADICTED] if found is not None and found.verdict == "contradicted" else 0


def _said(needed: int, deviation: float | None, is_guessed: bool) -> str:
    unless = "; fewer, if returns vary less than they can" if is_guessed else ", if returns vary as these do"
    deviates = f"the value is {deviation:g} outside of the certified bounds"
    return f"About {number_of(needed, 'run')} in all would tell that {deviates}{unless}."


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

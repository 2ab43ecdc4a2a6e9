"""Commands about a saved result: ``verify`` checks it, ``audit`` tests it by new runs, ``export`` writes its policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plumdp
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Status
from plumdp.cli.errors import FILE
from plumdp.cli.inputs import how_read, load_model, raw_of, read_data
from plumdp.cli.options import Options
from plumdp.cli.outputs import is_model_file, require_new, write_policy
from plumdp.cli.results import EXIT_CODES, print_json
from plumdp.model.text import number_of

if TYPE_CHECKING:
    from plumdp.data.counts import TransitionCounts
    from plumdp.model.parametric import ParametricMDP
    from plumdp.verifying.look import Own


def verify(given: Options) -> int:
    """Print which layers of a result hold: 1 at the first that does not, 4 if something could not be compared."""
    from plumdp.verifying import verify as verifying

    if given.output is not None:
        require_new(given.output, force=given.force)
        verifying.write_checker(given.output)
    elif given.result is None:
        raise DataError("RESULT: name the folder of a result")
    if given.result is None:
        return 0
    if not given.result.is_dir():  # a slip of the pen breaks nothing
        raise DataError(f"{given.result} is not a folder; name that of a result, which certify -o --witness wrote")
    report = verifying.verify(given.result)
    if report.broken is None:
        verifying.look_again(given.result, report, _own(given) if given.model else None)
    if given.json:
        print_json([report.to_dict()], one=True)
    else:
        print(report)
    return 0 if report.broken is None else 1 if report.broken.is_broken else 4


def _own(given: Options) -> Own:
    """Return the model, the counts of the data if there are any, and a reader of the file if Storm reads it."""
    from plumdp.model.readers.read import READERS
    from plumdp.verifying.look import Own

    model, _ = load_model(given)

    def read(point: Mapping[str, Fraction]) -> ParametricMDP:
        values = {parameter: str(value) for parameter, value in point.items()}
        return load_model(replace(given, constant={**given.constant, **values}, space=()))[0]

    is_read_by_storm = Path(given.model).suffix.lower() in READERS
    return Own(model, _counts(given, model) if given.data else None, read if is_read_by_storm else None)


def _counts(given: Options, model: ParametricMDP) -> TransitionCounts:
    try:
        return read_data(given, model)
    except DataError as error:
        if not Path(FILE).exists():
            raise
        raise DataError(*error.args, f"; verify does not read {FILE}: give the options about the data") from None


def audit(given: Options) -> int:
    """Print what new runs say of a certificate, or how many are needed; 3 if they contradict it."""
    if not given.data and not given.margin:
        raise DataError("give new runs after the result, or --margin DEVIATION to know how many are needed")
    assert given.result is not None
    certificate, model = _opened(given.result)
    found, needed = None, None
    how: dict[str, Any] = {"confidence": given.confidence, "return_range": given.range}
    if given.data:
        from plumdp.data.duckdb_tables import find_files

        runs = raw_of(given, find_files(given.data))
        read = how_read(given)
        found = plumdp.decisions.audit(certificate, model, runs, expected=given.expected, **how, **read)
    if given.margin:
        spread = None if found is None else found.spread
        needed = plumdp.decisions.runs_to_audit(certificate, model, given.margin, spread=spread, **how)
    if given.json:
        content = {"schema": "plumdp/audit/1"} if found is None else found.to_dict()
        print_json([content | ({} if needed is None else {"deviation": given.margin, "runs_needed": needed})], one=True)
    else:
        planned = None if needed is None else _said(needed, given.margin, found is None)
        print("\n".join(str(each) for each in (found, planned) if each is not None))
    return EXIT_CODES[Status.CONTRADICTED] if found is not None and found.verdict == "contradicted" else 0


def _said(needed: int, deviation: float, is_guessed: bool) -> str:
    unless = "; fewer, if returns vary less than they can" if is_guessed else ", if returns vary as these do"
    deviates = f"the value is {deviation:g} outside of the certified bounds"
    return f"About {number_of(needed, 'run')} in all would show that {deviates}{unless}."


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


def export(given: Options) -> None:
    """Write the policy of a result to a file."""
    from plumdp.exchange.policy_files import policy_writer

    assert given.result is not None
    assert given.output is not None
    if is_model_file(given.output) or given.output.suffix.lower() == ".json":  # Storm numbers the model's choices
        raise DataError(
            f"--output {given.output}: this takes the model; write it with plumdp certify MODEL DATA... "
            f"--policy {given.result} -o {given.output}"
        )
    policy_writer(given.output)  # refuses other endings, before anything is read
    require_new(given.output, force=given.force)
    print(write_policy(plumdp.read_result(given.result).policy, given.output))

"""Commands about a saved result: ``verify`` checks it, ``export`` writes its policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import plumdp
from plumdp.base.errors import DataError
from plumdp.cli.errors import FILE
from plumdp.cli.inputs import load_model, read_data
from plumdp.cli.options import Options
from plumdp.cli.outputs import is_model_file, require_new, write_policy
from plumdp.cli.results import hanging, print_json, standard_output

if TYPE_CHECKING:
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
        for line in str(report).split("\n"):
            standard_output().print(hanging(line))
    return 0 if report.broken is None else 1 if report.broken.is_broken else 4


def _own(given: Options) -> Own:
    """Return the model, the counts of the data if there are any, and a reader of the file if Storm reads it."""
    from plumdp.model.readers.read import READERS
    from plumdp.verifying.look import Own

    try:
        model, _ = load_model(given)
        counts = read_data(given, model) if given.data else None
    except DataError as error:
        unread = f"; verify does not read {FILE}: give its options on the command line" if Path(FILE).exists() else ""
        raise DataError(*error.args, unread) from None

    def read(point: Mapping[str, Fraction]) -> ParametricMDP:
        values = {parameter: str(value) for parameter, value in point.items()}
        return load_model(replace(given, constant={**given.constant, **values}, space=()))[0]

    is_read_by_storm = Path(given.model).suffix.lower() in READERS
    return Own(model, counts, read if is_read_by_storm else None)


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

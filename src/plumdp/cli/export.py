"""``plumdp export``: the policy of a saved result as a file for other tools."""

from __future__ import annotations

import plumdp
from plumdp.base.errors import DataError
from plumdp.cli.options import Options
from plumdp.cli.outputs import is_model_file, require_new, write_policy


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

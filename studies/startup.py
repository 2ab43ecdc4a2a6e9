"""What a command on a small log costs beside ``plumdp --version``: start-up, for the most part.

    python -m studies.startup [rounds] [pumps] [source …]

Commands take turns, each in a process of its own whose bytecode is kept, as after an installation. With folders of
sources, such as the ``src`` of another checkout, the same commands are run with each of them in turn.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from plumdp.base.vocabulary import EXIT_CODES, Status
from studies import pumps
from studies.timing import Ratio, take_turns, timed, used_seconds

VERSION = "--version"
COMMANDS = {
    VERSION: [],
    "start": ["pumps.csv", "--cost", "cost", "--against", "practice", "--force"],
    "certify": ["pumps.csv", "-o", "result", "--force"],
    "report": ["result", "--force"],
}


def seconds(source: str, name: str, given: list[str]) -> float:
    """Return the processor time of a command with the package from a source."""
    command, environment = [sys.executable, "-m", "plumdp", name, *given], {**os.environ, "PYTHONPATH": source}
    took, done = timed(lambda: subprocess.run(command, capture_output=True, env=environment), clock=used_seconds)
    if done.returncode not in (0, EXIT_CODES[Status.INCONCLUSIVE]):
        raise RuntimeError(done.stderr.decode())
    return took


def main(rounds: str = "5", n_pumps: str = "60", *sources: str) -> None:
    """Print the ratio of each command to ``--version``."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PLUMDP_WARMUP"] = "0"
    trees = sources or (str(Path(pumps.__file__).parents[1] / "src"),)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pumps.log_of(1, int(n_pumps)).to_csv("pumps.csv", index=False)
        ways = {(tree, name): partial(seconds, tree, name, given) for tree in trees for name, given in COMMANDS.items()}
        take_turns(ways, 1)  # writes bytecode and the result that is reported
        took = take_turns(ways, int(rounds))
    for tree in trees:
        for name in list(COMMANDS)[1:]:
            ratio = Ratio(tuple(took[tree, name]), tuple(took[tree, VERSION]))
            print(f"{tree}: {name} {min(ratio.ours):.2f} s, {ratio}")


if __name__ == "__main__":
    main(*sys.argv[1:])

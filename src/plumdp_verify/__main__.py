"""``python -m plumdp_verify RESULT``: prints each layer of the proof, and ends with 0 if all hold, else with 1."""

import sys
from io import TextIOWrapper

from .check import verify


def main(arguments: list[str]) -> int:
    """Verify the folder of a result, and return the exit code."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(
            "usage: python -m plumdp_verify RESULT, a folder that was saved with --witness",
            file=sys.stderr,
        )
        return 2
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names may have characters that a terminal does not
    report = verify(arguments[0])
    print(report)
    return 0 if report.broken is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

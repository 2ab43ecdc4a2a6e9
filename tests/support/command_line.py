"""Runs the command line in this process, as ``plumdp`` does: with what is printed, and the exit code."""

import io
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

from plumdp.cli import main


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def plumdp(*arguments: str) -> Ended:
    """Return how a command ends."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main(arguments)
    except SystemExit as ended:
        return Ended(int(ended.code or 0), out.getvalue(), err.getvalue())
    raise AssertionError("main ends with an exit code")

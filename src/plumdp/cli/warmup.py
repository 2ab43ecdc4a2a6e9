"""``plumdp warmup``: compiles kernels ahead of time."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plumdp.cli.options import Options

VARIABLE = "PLUMDP_WARMUP"  # of the environment: 0 if no command may start a process
STARTED = f"loops are compiled in the background, once, so that later runs are faster ({VARIABLE}=0: never)"


def warmup(given: Options) -> None:
    """Compile all kernels."""
    from plumdp.cli.warming import warm_up

    compiled = warm_up(everything=True)
    kept = f"kept in {compiled.folder}" if compiled.folder else "but no folder can be written to, so that none is kept"
    print(f"{compiled.kernels} kernels are compiled, {kept} ({compiled.seconds:.1f} s)")


def warm_up_later() -> None:
    """Start a process that compiles the kernels which this command lacked, and say so, unless it must not."""
    may_start = os.environ.get(VARIABLE) != "0" and not os.environ.get("CI")
    if not may_start or "numba" not in sys.modules:  # without numba, none was missed
        return
    from plumdp.cli.warming import start_process

    with suppress(OSError):  # nothing but a little time depends on it
        if start_process():
            print(STARTED, file=sys.stderr)

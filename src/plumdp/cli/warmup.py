"""``plumdp warmup``: compiles kernels ahead of time."""

from __future__ import annotations

from typing import Annotated

import typer


def warmup(
    everything: Annotated[
        bool, typer.Option("--all", help="Also what other confidence sets and relaxations need: about a minute.")
    ] = False,
) -> None:
    """Compile the kernels now, so that no later run has to: for images and CI."""
    from plumdp.cli.warming import warm_up

    found = warm_up(everything=everything)
    kept = f"kept in {found.folder}" if found.folder else "but no folder can be written to, so that none is kept"
    print(f"{found.kernels} kernels are compiled, {kept} ({found.seconds:.1f} s)")

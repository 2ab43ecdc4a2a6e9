"""``plumdp bench``: runs the published experiments, and writes their report."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from plumdp.base.errors import DataError
from plumdp.experiments.runner import is_done, run
from plumdp.experiments.studies import STUDIES, find_study
from plumdp.experiments.study import Cell, Size

_NAMES = "|".join(study.name for study in STUDIES)
_HELP = "; ".join(f"{study.name}: {study.summary}" for study in STUDIES) + "."


def bench(
    study: Annotated[str, typer.Argument(metavar=_NAMES, help=_HELP)],
    full: Annotated[
        bool, typer.Option("--full/--quick", help="Everything, or what takes less than five minutes.")
    ] = False,
    instance: Annotated[
        list[str] | None, typer.Option("--instance", "-i", metavar="NAME", help="Only this one; repeat for more.")
    ] = None,
    seed: Annotated[list[int] | None, typer.Option("--seed", help="Only this one; repeat for more.")] = None,
    runs: Annotated[int | None, typer.Option("--runs", "-n", help="Another number of runs or episodes.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes; -1 is one for each processor.")] = -1,
    output: Annotated[Path, typer.Option("--output", "-o", help="A folder for the results.")] = Path("bench"),
) -> None:
    """Run the published experiments; what is in the folder already is not run again.

    With --instance and --seed one cell can be run alone, as in job arrays; the report is made from all cells in the
    folder. Seconds are best measured with --jobs 1.
    """
    size: Size = "full" if full else "quick"
    plan = find_study(study).plans[size]
    if (runs is not None and runs < 1) or (jobs < 1 and jobs != -1):
        raise DataError("--runs must be at least 1, and so must --jobs, unless it is -1")
    cells = [
        Cell(study, name, number, runs or plan.runs)
        for name in instance or plan.instances
        for number in seed or plan.seeds
    ]
    for cell in cells:
        find_study(study).check(cell.instance)
    folder = output / f"{study}-{size}"
    _run(cells, folder / "cells", jobs)
    from plumdp.experiments.report import write_report

    command = shlex.join(["plumdp", *sys.argv[1:]])
    print(write_report(study, size, folder / "cells", folder, command=command))


def _run(cells: list[Cell], folder: Path, jobs: int) -> None:
    """Run the cells and show how far they are: a bar on a terminal, and a line for each."""
    console = Console(stderr=True, highlight=False)
    n_done = sum(is_done(cell, folder) for cell in cells)
    if n_done:
        console.print(f"{n_done} of {len(cells)} cells are in {folder} already")
    columns = (TextColumn("cells"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("cells", total=len(cells), completed=n_done)

        def finished(cell: Cell, seconds: float) -> None:
            bar.advance(task)
            console.print(f"{cell.study} {cell.instance} seed {cell.seed}: {seconds:.1f} s")

        run(cells, folder, jobs=jobs, finished=finished)

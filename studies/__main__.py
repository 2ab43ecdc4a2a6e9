"""Runs studies, and writes a report with tables and figures for each.

    python -m studies paper              the paper's table and figures, at sizes that take minutes
    python -m studies paper --full       at the paper's sizes

A cell that the folder holds already is not run again. With --instance and --seed one cell can be run alone, as in job
arrays; the report is made from all cells in the folder. Seconds are best measured with --jobs 1.
"""

from __future__ import annotations

import argparse
import ast
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from plumdp.base.errors import DataError, ModelError
from studies.registry import STUDIES, find_study
from studies.report import write_report
from studies.runner import is_done, run
from studies.study import Cell, Size

PAPER = ("table", "online", "ellipsoid")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the studies that are asked for, and print where their reports are."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    given = _parser().parse_args(words)
    try:
        for name in PAPER if given.study == "paper" else (given.study,):
            print(_report(name, given, shlex.join(["python", "-m", "studies", *words])))
    except (ModelError, DataError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m studies",
        description=__doc__,
        epilog="\n".join(_listed()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("study", metavar="STUDY", help="paper, or one of the studies below")
    parser.add_argument("--full", action="store_true", help="all instances and seeds")
    parser.add_argument("-i", "--instance", action="append", metavar="NAME", help="only this one; repeat for more")
    parser.add_argument("--seed", type=int, action="append", help="only this one; repeat for more")
    parser.add_argument("-n", "--runs", type=int, help="another number of runs or episodes")
    parser.add_argument("-j", "--jobs", type=int, default=-1, help="processes; -1, the default: one for each processor")
    parser.add_argument("-o", "--output", type=Path, default=Path("results"), help="folder for the results")
    return parser


def _listed() -> Iterator[str]:
    """Yield a line for each study, and for each script beside them that is run by itself."""
    yield "studies:"
    yield f"  {'paper':<16} {', '.join(PAPER[:-1])} and {PAPER[-1]}"
    for study in STUDIES:
        yield f"  {study.name:<16} {study.summary}"
    yield "\nmeasurements, each run by python -m studies.NAME, as the head of its file says:"
    for file in sorted(Path(__file__).parent.glob("*.py")):
        source = file.read_text(encoding="utf-8")
        if file.stem != "__main__" and "__main__" in source:
            about = ast.get_docstring(ast.parse(source)) or ""
            yield f"  {file.stem:<16} {about.splitlines()[0]}"


def _report(name: str, given: argparse.Namespace, command: str) -> Path:
    """Run the cells of a study that are not done yet, and write its report."""
    size: Size = "full" if given.full else "quick"
    study = find_study(name)
    plan = study.plans[size]
    if (given.runs is not None and given.runs < 1) or (given.jobs < 1 and given.jobs != -1):
        raise DataError("--runs must be at least 1, and so must --jobs, unless it is -1")
    instances, seeds = given.instance or plan.instances, given.seed or plan.seeds
    cells = [Cell(name, instance, seed, given.runs or plan.runs) for instance in instances for seed in seeds]
    for instance in instances:
        study.check(instance)
    folder = given.output / f"{name}-{size}"
    n_done = sum(is_done(cell, folder / "cells") for cell in cells)
    if n_done:
        print(f"{n_done} of {len(cells)} cells are in {folder / 'cells'} already", file=sys.stderr)
    run(cells, folder / "cells", jobs=given.jobs, finished=_say)
    return write_report(name, size, folder / "cells", folder, command=command)


def _say(cell: Cell, seconds: float) -> None:
    print(f"{cell.study} {cell.instance} seed {cell.seed}: {seconds:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()

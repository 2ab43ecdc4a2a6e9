"""Writing simulated runs against simulating them: CPU seconds of ``plumdp simulate`` with files of runs and of counts.

    python benchmarks/run_files.py                         100,000 runs of aircraft:50,10 (about a minute)
    python benchmarks/run_files.py --runs 10000 --repeats 3

Both commands take turns, each in a process of its own; the CPU seconds are those of the whole process. The last line is
the same without the start of Python and the making of the model.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from timing import Ratio, compare, process_seconds, take_turns

import plumdp as pl

STUDY = "aircraft:50,10"
WAYS = {"counts": ("counts.parquet", "--counts"), "Parquet": ("runs.parquet",), "CSV": ("runs.csv",)}


def command(folder: str, runs: int, name: str, *extra: str) -> Callable[[], float]:
    """Return the CPU seconds of ``plumdp simulate`` with one kind of file, when called."""
    words = ["-m", "plumdp", "simulate", STUDY, "-n", str(runs), "--force", "-o", f"{folder}/{name}", *extra]
    return partial(process_seconds, [sys.executable, *words])


def in_process(folder: Path, runs: int, repeats: int) -> Ratio:
    """Return simulating and writing against simulating alone, with everything loaded."""
    study = pl.case_study(STUDY)
    options = {"rng": 0, "max_steps": study.max_steps + 1}
    pl.simulate(study.model, study.true_point, 10, **options)
    pl.write_runs(folder / "warm.parquet", study.model, study.true_point, 10, **options)
    given = study.model, study.true_point, runs
    return compare(
        lambda: pl.write_runs(folder / "runs.parquet", *given, **options),
        lambda: pl.simulate(*given, **options),
        repeats=repeats,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = take_turns({way: command(folder, options.runs, *name) for way, name in WAYS.items()}, options.repeats)
        own = in_process(Path(folder), options.runs, options.repeats)
    print("| what is written | CPU seconds (least) | ratio, min/min | median of pairs |\n|---|---|---|---|")
    for way, seconds in found.items():
        ratio = Ratio(tuple(seconds), tuple(found["counts"]))
        print(f"| {way} | {min(seconds):.2f} | {ratio.least:.2f} | {ratio.median:.2f} |")
    print(f"in one process, simulating and writing Parquet against simulating: {own}")


if __name__ == "__main__":
    main()

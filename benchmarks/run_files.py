"""Writing simulated runs against simulating them: CPU seconds of ``plumdp simulate`` with files of runs and of counts.

    python benchmarks/run_files.py                         100,000 runs of aircraft:50,10 (about a minute)
    python benchmarks/run_files.py --runs 10000 --repeats 3

Both commands take turns, each in a process of its own; the CPU seconds are those of the whole process. The last line is
the same without the start of Python and the making of the model.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import plumdp as pl

STUDY = "aircraft:50,10"
WAYS = {"counts": ("counts.parquet", "--counts"), "Parquet": ("runs.parquet",), "CSV": ("runs.csv",)}


def cpu_of(command: list[str]) -> float:
    """Return the CPU seconds of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def in_process(folder: Path, runs: int) -> tuple[float, float]:
    """Return the CPU seconds of simulating and of simulating and writing, with everything loaded."""
    study = pl.case_study(STUDY)
    options = {"rng": 0, "max_steps": study.max_steps + 1}
    pl.simulate(study.model, study.true_point, 10, **options)
    pl.write_runs(folder / "warm.parquet", study.model, study.true_point, 10, **options)
    start = time.process_time()
    pl.simulate(study.model, study.true_point, runs, **options)
    middle = time.process_time()
    pl.write_runs(folder / "runs.parquet", study.model, study.true_point, runs, **options)
    return middle - start, time.process_time() - middle


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.repeats):
            for way, (name, *extra) in WAYS.items():
                command = [sys.executable, "-m", "plumdp", "simulate", STUDY, "-n", str(options.runs), "--force"]
                found[way].append(cpu_of([*command, "-o", f"{folder}/{name}", *extra]))
        simulated, written = in_process(Path(folder), options.runs)
    print("| what is written | CPU seconds (least) | ratio (median of pairs) |\n|---|---|---|")
    for way, seconds in found.items():
        pairs = [ours / theirs for ours, theirs in zip(seconds, found["counts"], strict=True)]
        print(f"| {way} | {min(seconds):.2f} | {statistics.median(pairs):.2f} |")
    print(f"in one process: simulating {simulated:.2f} s, simulating and writing Parquet {written:.2f} s")


if __name__ == "__main__":
    main()

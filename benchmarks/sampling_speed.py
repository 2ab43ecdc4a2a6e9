"""How fast runs are sampled and counted: steps per second and thread, and the time for 100,000 runs of each instance.

    python benchmarks/sampling_speed.py            all published instances (a few minutes)
    python benchmarks/sampling_speed.py --quick    Aircraft (50,10) only

Runs have one step more than the longest trajectory of the published protocol, and no stop states. Rates are steps by
the processor time of all threads, so that other work on the machine disturbs them little; tables are made before the
clock starts. Seconds are the processor time of ``simulate`` on all usable cores; the part for tables is the exact
evaluation of all expressions at the true point, and the running sums made of it.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from timing import timed

import plumdp as pl
from plumdp.case_studies import CaseStudy
from plumdp.data import kernels
from plumdp.data.runs import Plan, make_plan, split
from plumdp.data.simulate import simulate

SIZES = {
    "aircraft": ("20,10", "50,10", "100,20", "200,40"),
    "betting": ("25", "50", "100", "135", "150"),
    "engagement": ("50", "100", "300", "1000"),
    "rover": ("10,10", "50,50", "75,75", "125,125"),
    "glider": ("11,9", "21,17", "51,47", "71,67"),
    "parallel": ("5", "6", "10", "20"),
}
RUNS = 100_000


def plan_of(study: CaseStudy, runs: int = RUNS) -> Plan:
    """Return the plan of the runs, which makes the tables."""
    return make_plan(study.model, study.true_point, runs, 1, study.max_steps + 1, "uniform", None)


def sample(plan: Plan, runs: range) -> None:
    """Walk and count some of the runs in this thread."""
    counts = np.zeros(plan.graph.n_transitions, dtype=np.int64)
    for block in split(runs.start, runs.stop, plan.block_size):
        for _, steps in plan.walk(block):
            kernels.count(steps, counts)


def rate(plan: Plan, threads: int, repeats: int) -> tuple[float, float]:
    """Return steps per second of processor time, and per second of wall time; the best of several times."""
    parts = split(0, plan.trajectories, -(-plan.trajectories // threads))
    processor, wall = [], []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(repeats):
            start = time.perf_counter()
            processor.append(timed(lambda: list(pool.map(sample, [plan] * threads, parts)))[0])
            wall.append(time.perf_counter() - start)
    steps = plan.trajectories * plan.max_steps
    return steps / min(processor), steps / min(wall)


def threads_on_aircraft(repeats: int) -> None:
    """Print steps per second on Aircraft (50,10), on one thread and on two."""
    plan = plan_of(pl.case_study("aircraft:50,10"), 10 * RUNS)
    sample(plan, range(10))
    print("| aircraft:50,10 | million steps per second of processor time | per second of wall time |\n|---|---|---|")
    for threads in (1, 2):
        processor, wall = rate(plan, threads, repeats)
        print(f"| {threads} thread{'s' * (threads > 1)} | {processor / 1e6:.1f} | {wall / 1e6:.1f} |", flush=True)


def all_instances(repeats: int) -> None:
    """Print rate and time of all runs of each instance."""
    columns = "million steps per second of processor time | CPU seconds of simulate | of these tables"
    print(f"\n| instance | steps | {columns} |")
    print("|---|---|---|---|---|")
    for name in (f"{family}:{size}" for family, sizes in SIZES.items() for size in sizes):
        study = pl.case_study(name)
        tables, plan = timed(partial(plan_of, study))
        processor, _ = rate(plan, 1, repeats)
        options = {"rng": 1, "max_steps": study.max_steps + 1}
        seconds, counts = timed(partial(simulate, study.model, study.true_point, RUNS, **options))
        total = counts.total
        print(f"| {name} | {total:,} | {processor / 1e6:.1f} | {seconds:.2f} | {tables:.2f} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="Aircraft (50,10) only")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    threads_on_aircraft(options.repeats)
    if not options.quick:
        all_instances(options.repeats)


if __name__ == "__main__":
    main()

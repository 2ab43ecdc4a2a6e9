"""The published experiment: bounds on the value of the true-optimal policy from 10^5 runs, for all four relaxations.

    python benchmarks/paper_table.py                     every instance
    python benchmarks/paper_table.py aircraft:50,10      some of them
    python benchmarks/paper_table.py --ours parallel:5   with our intervals: valid for runs, complements and factors

As published: runs from the initial state under uniform choices, ended after the length of BENCHMARKS plus one or in a
state whose true optimal value is 0 or 1 (for rewards 0 or infinite); error 0.001; a Clopper–Pearson interval for each
unknown expression; robust and optimistic value of the policy that is optimal at the true point. Gaps are relative to
the true value; published gaps and seconds (construction and solution) stand beside ours. The truth must lie in each
bracket, or the script fails.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import plumdp as pl
from plumdp.model.events import find_events

RELAXATIONS = ("interval", "parameter", "expression", "rectangular")
PUBLISHED = {  # instance: (relative gap, seconds) for the four relaxations; None is a time-out at two hours
    "aircraft:50,10": ((0.19, 4.0), (0.28, 4.6), (0.06, 5.7), (0.05, 47)),
    "aircraft:100,20": ((0.19, 30), (0.29, 35), (0.07, 40), (0.05, 353)),
    "aircraft:200,40": ((0.36, 688), (0.47, 878), (0.12, 883), (0.09, 4464)),
    "betting:50": ((1.88, 2.7), (0.10, 6.5), (0.10, 7.5), (0.10, 2.3)),
    "betting:100": ((3.24, 13), (0.13, 13), (0.13, 26), (0.13, 17)),
    "betting:135": (),
    "betting:150": (),
    "engagement:100": ((0.26, 5.5), (127, 4.4), (0.12, 1.0), (0.12, 1.8)),
    "engagement:300": ((0.19, 17), (85, 21), (0.11, 8.0), (0.11, 7.3)),
    "engagement:1000": ((0.15, 70), (15.6, 58), (0.06, 66), (0.06, 95)),
    "rover:50,50": ((1.59, 92), (1.31, 137), (0.05, 115), None),
    "rover:75,75": ((1.42, 522), (1.28, 577), (0.04, 580), None),
    "rover:125,125": ((1.42, 2169), (1.42, 2554), (0.06, 2306), None),
    "glider:21,17": ((0.08, 0.25), (0.01, 0.2), (0.01, 0.7), (0.01, 37)),
    "glider:51,47": ((221, 11), (0.01, 1.1), (0.004, 6.2), (0.004, 5783)),
    "glider:71,67": (),
    "parallel:5": ((0.20, 0.3), (0.12, 0.4), (0.04, 0.8), (0.04, 10)),
    "parallel:10": ((0.44, 2.9), (0.15, 3.2), (0.06, 6.4), (0.05, 117)),
    "parallel:20": ((3.39, 21), (0.22, 666), None, None),
}


def measure(name: str, *, ours: bool = False) -> None:
    """Print the rows of one instance, from the published intervals or from ours."""
    study = pl.benchmark(name)
    model, objective = study.model, study.objective
    truth = pl.solve(pl.instantiate(model, study.true_point), objective, precision=1e-9)
    start = model.graph.initial_state
    value = (truth.lower[start] + truth.upper[start]) / 2
    decided = (0.0, 1.0) if isinstance(objective, pl.Reach) else (0.0, np.inf)
    stop = np.isin(truth.lower, decided) & (truth.lower == truth.upper)
    counts = pl.simulate(model, study.true_point, 100_000, rng=1, max_steps=study.max_steps + 1, stop=stop)
    events = None if ours else find_events(model, merge_complements=False)
    intervals = None if ours else "clopper-pearson"
    certificates = pl.compare(model, counts, objective, policy=truth.policy, intervals=intervals, events=events)
    for k, (relaxation, certificate) in enumerate(zip(RELAXATIONS, certificates, strict=True)):
        assert certificate.lower <= truth.upper[start], (name, relaxation)
        assert certificate.upper >= truth.lower[start], (name, relaxation)
        gap = (certificate.upper - certificate.lower) / value
        published = PUBLISHED[name][k] if PUBLISHED[name] else (float("nan"), float("nan"))
        theirs = "time-out | > 7200" if published is None else f"{published[0]:.2f} | {published[1]:g}"
        seconds = sum(certificate.seconds.values())
        print(
            f"| {name} | {relaxation} | {certificate.lower:.4f} | {value:.4f} | {certificate.upper:.4f} | {gap:.3f} "
            f"| {seconds:.2f} | {theirs} |",
            flush=True,
        )


def main() -> None:
    """Print the table."""
    ours = "--ours" in sys.argv
    names = [name for name in sys.argv[1:] if name != "--ours"] or list(PUBLISHED)
    began = time.perf_counter()
    print("| instance | relaxation | lower | true value | upper | gap | seconds | published gap | published seconds |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in names:
        measure(name, ours=ours)
    print(f"\nAll of it, models and runs included: {time.perf_counter() - began:.0f} s.")


if __name__ == "__main__":
    main()

"""What each relaxation certifies from the same 10^5 runs, and what it costs: the table of the README.

    python benchmarks/ladder.py                            four case studies
    python benchmarks/ladder.py rover:50,50 --runs 1000    others

A gap is the width of the bounds over the true value of the policy that they are about. Seconds are those of the
process, after learning, which is the same for all; the shorter of two runs.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import plumdp as pl

STUDIES = ("aircraft:200,40", "betting:100", "rover:125,125", "glider:51,47")
RELAXATIONS = ("interval", "parameter", "expression", "rectangular", "coupled")


def climb(name: str, n_runs: int) -> dict[str, tuple[float, float]]:
    """Return gap and seconds of each relaxation on one case study, and the seconds of learning."""
    study = pl.case_study(name)
    counts = pl.simulate(study.model, study.true_point, n_runs, rng=1, max_steps=study.max_steps + 1)
    started = time.process_time()
    learned = pl.learn(study.model, counts, objectives=[study.objective])
    found = {"learning": (np.nan, time.process_time() - started)}
    truth = pl.instantiate(study.model, study.true_point)
    for relaxation in RELAXATIONS:
        seconds = []
        for _ in range(2):
            started = time.process_time()
            certificate = pl.conclude(learned, study.objective, relaxation=relaxation)
            seconds.append(time.process_time() - started)
        value = pl.evaluate(truth, certificate.policy, study.objective).lower[study.model.graph.initial_state]
        width = certificate.upper - certificate.lower
        found[relaxation] = (width / value if width < np.inf else np.inf, min(seconds))
    return found


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", default=STUDIES)
    parser.add_argument("--runs", type=int, default=100_000)
    given = parser.parse_args()
    ladders = {name: climb(name, given.runs) for name in given.studies}
    print("| relaxation |", " | ".join(f"{name}, gap | CPU s" for name in ladders), "|")
    print("|---" * (1 + 2 * len(ladders)) + "|")
    for relaxation in ("learning", *RELAXATIONS):
        cells = (ladder[relaxation] for ladder in ladders.values())
        print(f"| {relaxation} |", " | ".join(f"{gap:.3g} | {seconds:.2f}" for gap, seconds in cells), "|")


if __name__ == "__main__":
    main()

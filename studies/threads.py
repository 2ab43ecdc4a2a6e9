"""One thread against two on large models: seconds on the clock, and of all threads together, in turns.

    python -m studies.threads                 acyclic models of 10^7 transitions, and one with a number of steps
    python -m studies.threads --size 3e7

On one model: ``solve`` with what is prepared, and the values of its policy from both sides, as for a certificate.
Seconds on the clock mean something only while the machine has a free core for each thread: the load is printed. The
answers are compared to the last bit.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import plumdp as pl
from plumdp.base.threads import thread_limit
from plumdp.solver.evaluate import evaluate_all
from plumdp.solver.prepared import prepare
from plumdp.solver.problem import Solution
from studies import timing
from studies.peers import Problem, forward, layered


def within_steps(n_transitions: int) -> Problem:
    """Return the acyclic model with the question for the goal within ten steps: ten sweeps for each bound."""
    problem = forward(n_transitions)
    assert isinstance(problem.objective, pl.model.Reach)
    return replace(problem, objective=replace(problem.objective, steps=(0, 10)))


MODELS = {"forward": forward, "layered": layered, "within steps": within_steps}


def questions(problem: Problem) -> dict[str, Callable[[], list[Solution]]]:
    """Return what is timed."""
    imdp, objective = problem.imdp, problem.objective
    prepared = prepare(imdp, objective)
    policy = pl.stages.solve(imdp, objective, prepared=prepared).policy
    return {
        "solve": lambda: [pl.stages.solve(imdp, objective, prepared=prepared)],
        "both sides of a policy": lambda: evaluate_all([imdp], policy, objective, ("robust", "optimistic")),
    }


def measured(work: Callable[[], list[Solution]], threads: int) -> dict[str, Any]:
    """Return seconds on the clock, those of all threads, and the bits of the answer."""
    with thread_limit(threads):
        start = time.process_time()
        wall, found = timing.timed(work, clock=time.perf_counter)
        total = time.process_time() - start
    return {"wall": wall, "total": total, "bits": [(one.lower.tobytes(), one.upper.tobytes()) for one in found]}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=float, default=1e7)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print("| model | question | 1 thread, s | 2 threads, s | times faster | all threads, s | load |")
    print("|---|---|---|---|---|---|---|")
    for name, make in MODELS.items():
        for question, work in questions(make(int(options.size))).items():
            ways = {n: partial(measured, work, n) for n in (1, 2)}
            runs = timing.take_turns(ways, options.repeats)
            assert len({tuple(run["bits"]) for side in runs.values() for run in side}) == 1
            ratio = timing.ratio_of(runs[1], runs[2], "wall")
            both = " → ".join(f"{min(run['total'] for run in runs[n]):.2f}" for n in (1, 2))
            figures = f"{min(ratio.ours):.2f} | {min(ratio.theirs):.2f} | {ratio} | {both}"
            print(f"| {name} | {question} | {figures} | {os.getloadavg()[0]:.1f} |", flush=True)


if __name__ == "__main__":
    main()

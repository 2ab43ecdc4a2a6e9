"""Width over the limit, size and CPU seconds of certificates with memory and in the long run, at 100,000 runs.

    python -m studies.missions                  widths of a mission on Rover and on Glider, a budget, an availability
    python -m studies.missions --large          sizes: five goals, and 200 steps, on Rover (50,50)
    python -m studies.missions --runs 1000      fewer runs

The limit is the width of the two-sided normal interval of the policy's value at the same confidence, by the delta
method: what an estimate from all data would claim, without a proof. Widths are those of every relaxation, divided by
the limit. Each question is asked in a process of its own, whose peak memory is shown; seconds are processor time of
``certify``, and the policy is measured as a CSV file.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plumdp
from plumdp.certifying.pipeline import compare
from plumdp.explaining.explain import question_of
from plumdp.model.parametric import ParametricMDP
from plumdp.solver.coupled.gradient import policy_gradient
from studies.limit import normal_half_width
from studies.timing import own_command

MEASURE = "--measure"
FIVE_GOALS = " & ".join([f'(!"crash" U (x={at} & y={at}))' for at in (10, 20, 30, 40)] + ['(!"crash" U "target")'])


@dataclass(frozen=True)
class Case:
    """A property of a case study, or of the machine that is repaired."""

    model: str
    property: str
    max_steps: int
    runs: int = 0  # if not those that are asked for


CASES = {
    "mission on Rover": Case("rover:10,10", 'Pmax=? [ !"crash" U ((x=3 & y=8) & (!"crash" U "target")) ]', 60),
    "mission on Glider": Case("glider:21,17", 'Pmax=? [ F<=40 ((x=20 & y=0) & F<=40 "goal") ]', 81),
    "budget on Engagement": Case("engagement:20", 'Pmax=? [ F{"cost"}<=30 "target" ]', 60),
    "availability of a machine": Case("machine", 'LRAmax=? [ "up" ]', 100, runs=1_000),
}
LARGE = {
    "five goals": Case("rover:50,50", f"Pmax=? [ {FIVE_GOALS} ]", 300, runs=20_000),
    "200 steps": Case("rover:50,50", 'Pmax=? [ !"crash" U<=200 "target" ]', 300, runs=20_000),
}


def machine() -> tuple[ParametricMDP, Mapping[str, Any]]:
    """Return a machine that wears out, is serviced while it is down, and takes longer to repair; and the truth."""
    p, q = plumdp.parameters("p", "q")

    def step(machine: Any) -> dict[str, Any]:
        new, worse, served = (machine._replace(health=health) for health in (2, machine.health - 1, 3))
        if machine.health == 0:
            return {"repair": [(q / 4, new), (1 - q / 4, machine)]}
        if machine.health == 3:
            return {"serve": [(q, new), (1 - q, machine)]}
        chance = p if machine.health == 2 else 3 * p
        run = {"run": [(chance, worse), (1 - chance, machine)]}
        return run if machine.health == 2 else run | {"service": [(1, served)]}

    space = plumdp.ParameterSpace.box({"p": (0.01, 0.3), "q": (0.05, 0.95)})
    up = {"up": lambda state: state.health in (1, 2)}
    model = plumdp.explore(step, {"health": 2}, space=space, labels=up)
    return model, {"p": 0.1, "q": 0.4}


def measure(case: Case, runs: int, is_large: bool) -> dict[str, Any]:
    """Return the figures of a case."""
    if case.model == "machine":
        model, truth = machine()
    else:
        study = plumdp.case_study(case.model)
        model, truth = study.model, study.true_point
    counts = plumdp.simulate(model, truth, case.runs or runs, rng=1, max_steps=case.max_steps)
    start = time.process_time()
    learned = plumdp.learn(model, counts, objectives=[case.property])
    certificate = plumdp.conclude(learned, case.property)
    seconds = time.process_time() - start
    question = question_of(learned, certificate)
    _, gradient = policy_gradient(question.model, certificate.policy, question.objective, learned.estimate)
    limit = 2 * normal_half_width(learned, gradient)
    found = [certificate] if is_large else compare(learned, case.property)
    with tempfile.TemporaryDirectory() as folder:
        certificate.policy.to_csv(Path(folder) / "policy.csv")
        size = (Path(folder) / "policy.csv").stat().st_size
    return {
        "states": question.model.graph.n_states,
        "transitions": question.model.graph.n_transitions,
        "seconds": seconds,
        "bounds": (certificate.lower, certificate.upper),
        "limit": limit,
        "widths": {each.how.relaxation: (each.upper - each.lower) / limit for each in found},
        "policy": size / 1e6,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--large", action="store_true")
    parser.add_argument(MEASURE)
    options = parser.parse_args()
    cases = LARGE if options.large else CASES
    if options.measure:
        print(json.dumps(measure(cases[options.measure], options.runs, options.large)))
        return
    print("| case | states | transitions | seconds | memory (GB) | policy (MB) | bounds | width over the limit |")
    print("|---|---|---|---|---|---|---|---|")
    for name in cases:
        arguments = [*own_command(__file__), *sys.argv[1:], MEASURE, name]
        row = json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)
        low, high = row["bounds"]
        widths = ", ".join(f"{relaxation} {width:.2f}" for relaxation, width in row["widths"].items())
        print(
            f"| {name} | {row['states']:,} | {row['transitions']:,} | {row['seconds']:.1f} | {row['memory']:.2f} "
            f"| {row['policy']:.2f} | {low:.4f} to {high:.4f} | {widths} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

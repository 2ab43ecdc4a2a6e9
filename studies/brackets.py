"""Are the bounds of this checkout those of another one? Every case study, relaxation and direction is asked in both.

    python -m studies.brackets --against ../before/src                     the small sizes
    python -m studies.brackets --against ../before/src rover:50,50 ...     others

A line is printed if the bound that matters is worse than before by more than 1e-9 relative; if a bracket of the policy
that was found before is wider than it was; and if the two checkouts exclude each other's brackets of one policy, so
that one of them is wrong. The exit code is 1 if there is such a line. Counts are simulated from fixed seeds; each
checkout answers in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from studies.timing import own_command

HERE = str(Path(__file__).parents[1] / "src")
STUDIES = (
    *("aircraft:20,10", "aircraft:50,10", "betting:25", "betting:50", "engagement:50", "engagement:100"),
    *("engagement:300", "rover:10,10", "glider:11,9", "glider:21,17", "glider:51,47", "parallel:5", "parallel:6"),
)
RUNS = (100, 10_000)
WIDER = 1e-9
ANSWER = "--answer"

Question = dict[str, Any]


def questions(name: str) -> Iterator[Question]:
    """Yield what is asked about a case study: relaxation, direction and number of runs."""
    for runs in RUNS:
        for relaxation in ("interval", "parameter", "expression", "rectangular", "coupled"):
            for direction in ("max", "min"):
                yield {"name": name, "runs": runs, "relaxation": relaxation, "direction": direction}


def answer(asked: list[Question]) -> Iterator[Question]:
    """Yield the bounds and the policy for each question; a policy that is given is valued."""
    import plumdp as pl

    studies: dict[str, Any] = {}
    counts: dict[tuple[str, int], Any] = {}
    for question in asked:
        name, runs = question["name"], question["runs"]
        if name not in studies:
            studies[name] = pl.case_study(name)
        study = studies[name]
        if (name, runs) not in counts:
            counts[name, runs] = pl.simulate(study.model, study.true_point, runs, rng=runs, max_steps=study.max_steps)
        objective = replace(study.objective, direction=question["direction"], text="")
        options = {"relaxation": question["relaxation"], "policy": question.get("policy")}
        start = time.process_time()
        found = pl.certify(study.model, counts[name, runs], objective, **options)
        seconds = time.process_time() - start
        policy = found.policy.choice.tolist()
        yield question | {"lower": found.lower, "upper": found.upper, "policy": policy, "seconds": seconds}


def answers_of(source: str, asked: list[Question]) -> list[Question]:
    """Return the answers of the package in the given folder, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": source}
    command = [*own_command(__file__), ANSWER]
    ran = subprocess.run(
        command, input=json.dumps(asked), stdout=subprocess.PIPE, text=True, check=True, env=environment
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


def faults(before: Question, now: Question, same: Question, other: Question) -> Iterator[str]:
    """Yield what is worse than before; ``same`` values the policy of before here, ``other`` that of now there."""
    side = "lower" if now["direction"] == "max" else "upper"
    if is_worse(side, before, now):
        yield f"{side} bound {before[side]!r} → {now[side]!r}"
    for end in ("lower", "upper"):
        if is_worse(end, before, same):
            yield f"{end} bound of one policy {before[end]!r} → {same[end]!r}"
    for here, there in ((same, before), (now, other)):
        if here["lower"] > there["upper"] or here["upper"] < there["lower"]:
            yield f"one policy has [{here['lower']!r}, {here['upper']!r}] and [{there['lower']!r}, {there['upper']!r}]"


def is_worse(side: str, old: Question, new: Question) -> bool:
    """Return whether a bound says less than it did, by more than is allowed."""
    sign = 1 if side == "lower" else -1
    was, now = sign * old[side], sign * new[side]
    return bool(was > -math.inf and now < was - WIDER * abs(was))


def compared(name: str, against: str) -> tuple[int, list[str], float]:
    """Return the number of questions, the faults and the ratio of processor times, for one case study."""
    asked = list(questions(name))
    before, now = answers_of(against, asked), answers_of(HERE, asked)
    same = answers_of(HERE, with_policies(asked, before))
    other = answers_of(against, with_policies(asked, now))
    lines = [
        f"{name} {question['runs']} runs {question['relaxation']} {question['direction']}: {fault}"
        for question, *found in zip(asked, before, now, same, other, strict=True)
        for fault in faults(*found)
    ]
    return len(asked), lines, sum(each["seconds"] for each in now) / sum(each["seconds"] for each in before)


def with_policies(asked: list[Question], found: list[Question]) -> list[Question]:
    """Return the questions about the policies that were found."""
    return [question | {"policy": each["policy"]} for question, each in zip(asked, found, strict=True)]


def main() -> int:
    """Print what is worse than before, and a line for each case study."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("studies", nargs="*", default=STUDIES)
    parser.add_argument("--against", required=True, help="the source folder of another checkout")
    options = parser.parse_args()
    worse = 0
    for name in options.studies:
        number, lines, ratio = compared(name, options.against)
        worse += len(lines)
        print(
            "\n".join([*lines, f"{name}: {number} questions, {len(lines)} worse, CPU {ratio:.2f} of before"]),
            flush=True,
        )
    return int(worse > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == [ANSWER]:
        for found in answer(json.load(sys.stdin)):
            print(json.dumps(found))
    else:
        sys.exit(main())

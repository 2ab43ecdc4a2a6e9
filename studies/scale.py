"""Layered models from 10^6 transitions up, on disk: seconds of build, sampling and certificate, bytes and peak memory.

    python -m studies.scale                   # 10^6, 10^7 and 10^8 transitions, a few minutes
    python -m studies.scale --largest 1e9     # and 10^9: some 7 GB of disk beside the values, which vanish
    python -m studies.scale --largest 1e7 --memory   # the same models in memory beside them: same bounds, as ratios

Each size runs in a process of its own. Memory is what the process holds itself (anonymous) and, apart, with the pages
of files that are mapped, which the system takes back when others need them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import plumdp as pl
from plumdp.model.expressions.polynomial import Polynomial
from plumdp.model.parametric import ParametricMDP
from plumdp.result.certificate import Certificate
from studies.timing import own_command

LEVELS, ACTIONS, OUTCOMES, KINDS = 200, 4, 5, 8
TRUE_POINT = {"t1": "0.4", "t2": "0.3", "t3": "0.2"}
RUNS = 10_000


class Place(NamedTuple):
    """How far a run is, and where."""

    level: Any
    place: Any


def build(n_transitions: int, store: Path | None) -> ParametricMDP:
    """Return a layered model with about so many transitions, on disk if there is a folder for it."""
    width = max(ACTIONS * OUTCOMES, n_transitions // ((LEVELS - 5) * ACTIONS * OUTCOMES))  # the first levels are narrow
    width += width % 31 == 0  # so that 31 times a place meets every place
    weights = pl.parameters(*TRUE_POINT)
    modes = (*weights, 1 - sum(weights, Polynomial(0)))
    shares = np.random.default_rng(1).multinomial(80, [1 / OUTCOMES] * OUTCOMES, (ACTIONS, KINDS, len(modes))) + 4

    @cache
    def probability(action: int, outcome: int, kind: int) -> Polynomial:
        rates = [Fraction(int(share), 100) for share in shares[action, kind, :, outcome]]
        return sum((mode * rate for mode, rate in zip(modes, rates, strict=True)), Polynomial(0))

    def step(s: Place) -> Iterator[Any]:
        is_inside, kind, ahead = s.level < LEVELS, (s.place + 3 * s.level) % KINDS, s.level + 1
        for action in range(ACTIONS):
            outcomes = []
            for j in range(OUTCOMES):
                to = (31 * s.place.astype(np.int64) + OUTCOMES * action + j) % width
                outcomes.append((pl.model.tabulate(partial(probability, action, j), kind), Place(ahead, to)))
            yield f"way {action}", is_inside, outcomes
        yield "stay", ~is_inside, [(1, s)]

    def is_goal(s: Place) -> Any:
        return (s.level == LEVELS) & (s.place % 10 < 4)

    options: dict[str, Any] = {} if store is None else {"store": store, "level": lambda s: s.level}
    space = pl.ParameterSpace.simplex(*TRUE_POINT)
    return pl.model.explore_batch(step, Place(0, 0), space=space, labels={"goal": is_goal}, **options)


def sample(model: ParametricMDP) -> pl.TransitionCounts:
    """Return the counts of some runs."""
    return pl.simulate(model, TRUE_POINT, RUNS, rng=1, max_steps=LEVELS)


def certify(model: ParametricMDP, counts: pl.TransitionCounts) -> Certificate:
    """Return the certificate of the expression-wise relaxation."""
    adaptive = pl.TransitionCounts(counts.graph, counts.counts, "adaptive", counts.pilot)
    return pl.certify(model, adaptive, 'Pmax=? [ F "goal" ]', relaxation="expression", confidence_set="interval")


class Memory:
    """The most memory that this process held so far, in GB, looked at twenty times a second."""

    def __init__(self) -> None:
        self.own = 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.own = max(self.own, status("RssAnon"))
            time.sleep(0.05)


def status(name: str) -> float:
    """Return an entry of the process status in GB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 2**20 for line in lines if line.startswith(f"{name}:"))


def timed(stage: str, report: dict[str, Any], function: Callable[[], Any]) -> Any:
    """Return what a function returns; its wall and CPU seconds are entered."""
    wall, own = time.perf_counter(), time.process_time()
    result = function()
    report[stage] = round(time.perf_counter() - wall, 2), round(time.process_time() - own, 2)
    print(f"{stage}: {report[stage]} s, {status('VmHWM'):.2f} GB with files", file=sys.stderr, flush=True)
    return result


def measure(n_transitions: int, folder: Path, *, in_memory: bool) -> dict[str, Any]:
    """Return what it takes to build, sample and certify a model of about so many transitions."""
    warm_up(folder / "small", in_memory=in_memory)
    memory, report, store = Memory(), dict[str, Any](), None if in_memory else folder / "model"
    model = timed("build", report, lambda: build(n_transitions, store))
    counts = timed("sample", report, lambda: sample(model))
    found = timed("certify", report, lambda: certify(model, counts))
    graph = model.graph
    used = model.nbytes if store is None else sum(file.stat().st_size for file in store.iterdir())
    return {
        **report, "transitions": graph.n_transitions, "states": graph.n_states, "bytes": used / graph.n_transitions,
        "own": memory.own, "with files": status("VmHWM"), "lower": found.lower, "upper": found.upper,
        "status": str(found.status), "solver": found.solver, "stages": dict(found.seconds),
    }  # fmt: skip


def warm_up(folder: Path, *, in_memory: bool) -> None:
    """Compile all kernels on a model of the same kind."""
    model = build(200_000, None if in_memory else folder)
    certify(model, sample(model))
    shutil.rmtree(folder, ignore_errors=True)


def run(n_transitions: int, folder: str | None, *, in_memory: bool) -> dict[str, Any]:
    """Return what another process measures."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        command = [*own_command(__file__), "--one", str(n_transitions), "--folder", place]
        command += ["--memory"] if in_memory else []
        answer = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    found: dict[str, Any] = json.loads(answer.splitlines()[-1])
    return found


def line(name: str, found: Mapping[str, Any]) -> str:
    """Return a line of the table; seconds are those of the clock, and in brackets of the processor."""
    seconds = " | ".join(f"{found[s][0]:.1f} ({found[s][1]:.1f})" for s in ("build", "sample", "certify"))
    return (
        f"| {name} | {found['transitions']:,} | {found['states']:,} | {seconds} | {found['bytes']:.2f} | "
        f"{found['own']:.2f} | {found['with files']:.2f} | {found['lower']:.6f} {found['upper']:.6f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=float, default=1e8, help="transitions of the largest model (default 1e8)")
    parser.add_argument("--smallest", type=float, default=1e6, help="transitions of the smallest model (default 1e6)")
    parser.add_argument("--memory", action="store_true", help="measure models in memory as well")
    parser.add_argument("--folder", help="where models are stored (default: where temporary files are)")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one, Path(given.folder), in_memory=given.memory)))
        return
    print(
        "| model | transitions | states | build s (CPU) | sample | certify | bytes per transition | GB | with files | |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    size = given.smallest
    while size <= given.largest * 1.001:
        found = run(int(size), given.folder, in_memory=False)
        print(line("on disk", found), flush=True)
        print(found["status"], found["solver"], found["stages"], file=sys.stderr)
        if given.memory:
            other = run(int(size), given.folder, in_memory=True)
            print(line("in memory", other), flush=True)
            assert (other["lower"], other["upper"]) == (found["lower"], found["upper"])
        size *= 10


if __name__ == "__main__":
    main()

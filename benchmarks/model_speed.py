"""Building models against Storm's bare float build, as ratios in one run; with peak memory.

    python benchmarks/model_speed.py            the figures of the README (about two minutes)
    python benchmarks/model_speed.py --quick    Rover (50,50) only

Each measurement runs in a process of its own; the best of three builds and of several processes is taken. Storm's
bare build makes the transition matrix only: no labels, no valuations, no action names, and floats instead of
polynomials.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import plumdp as pl
from plumdp.case_studies import prism_constants, prism_file

MEASURE = "--measure"
BUILDS = 3  # in each process


def storm_bare(name: str) -> Callable[[], Any]:
    """Return the bare float build of the PRISM file, parsed and instantiated before the clock starts."""
    import stormpy
    import stormpy.developer

    stormpy.developer.set_log_level(stormpy.developer.LogLevel.OFF)
    program = stormpy.parse_prism_program(str(prism_file(name.split(":")[0])))
    study_point = {"t1": "0.4", "t2": "0.2", "t3": "0.15", "t4": "0.14"}
    values = prism_constants(name) | {key: stormpy.Rational(value) for key, value in study_point.items()}
    program, _ = stormpy.instantiate_constants(program, values)
    options = stormpy.BuilderOptions(build_full=False)
    return lambda: stormpy.build_model[float](program, options=options)


def constructor(name: str) -> Callable[[], Any]:
    """Return the Python model; compiled code is loaded before the clock starts."""
    pl.case_study("rover:10,10")
    return lambda: pl.case_study(name).model


def reader(name: str) -> Callable[[], Any]:
    """Return reading the PRISM file, parsing included, with exact polynomials, labels, valuations and checks."""
    pl.read_prism(prism_file("rover"), constants=prism_constants("rover:10,10"))
    space = pl.ParameterSpace.simplex("t1", "t2", "t3", "t4")
    return lambda: pl.read_prism(prism_file("rover"), constants=prism_constants(name), space=space)


WAYS = {"Storm, bare float build": storm_bare, "explore_batch": constructor, "read_prism": reader}


def measure(way: str, name: str) -> dict[str, float]:
    """Return seconds, peak memory and bytes per transition of one build in this process."""
    build = WAYS[way](name)
    seconds = float("inf")
    for _ in range(BUILDS):
        model = None  # frees the one before
        start = time.perf_counter()
        model = build()
        seconds = min(seconds, time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    per_transition = model.nbytes / model.graph.n_transitions if hasattr(model, "nbytes") else float("nan")
    return {"seconds": seconds, "peak": peak / 1e9, "bytes": per_transition}


def best(way: str, name: str, repeats: int) -> dict[str, float]:
    """Return the fastest of several measurements, each in its own process."""
    runs = []
    for _ in range(repeats):
        command = [sys.executable, __file__, MEASURE, way, name]
        runs.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    return min(runs, key=lambda run: run["seconds"])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="Rover (50,50) only")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print("| model | way | seconds | ratio to Storm | peak GB | bytes per transition |\n|---|---|---|---|---|---|")
    for name in ("rover:50,50",) if options.quick else ("rover:50,50", "rover:125,125"):
        reference = best("Storm, bare float build", name, options.repeats)
        for way in WAYS:
            run = reference if way == "Storm, bare float build" else best(way, name, options.repeats)
            size = "" if run["bytes"] != run["bytes"] else f"{run['bytes']:.1f}"
            ratio = run["seconds"] / reference["seconds"]
            print(f"| {name} | {way} | {run['seconds']:.2f} | {ratio:.2f} | {run['peak']:.2f} | {size} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == [MEASURE]:
        print(json.dumps(measure(*sys.argv[2:])))
    else:
        main()

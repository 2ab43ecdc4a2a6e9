"""Building models against Storm's bare float build, as ratios in one run; with peak memory.

    python benchmarks/model_speed.py            the figures of the README (about two minutes)
    python benchmarks/model_speed.py --quick    Rover (50,50) only

Each measurement runs in a process of its own, in seconds of its processor time; Storm and we take turns, and the best
of three builds and of several processes is taken. Storm's bare build makes the transition matrix only: no labels, no
valuations, no action names, and floats instead of polynomials.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import timing

import plumdp as pl
from plumdp.case_studies import prism_constants, prism_file

STORM = "Storm, bare float build"
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


WAYS = {STORM: storm_bare, "explore_batch": constructor, "read_prism": reader}


def measure(way: str, name: str) -> dict[str, float]:
    """Return CPU seconds, peak memory and bytes per transition of one build in this process."""
    build = WAYS[way](name)
    seconds = float("inf")
    for _ in range(BUILDS):
        model = None  # frees the one before
        taken, model = timing.timed(build)
        seconds = min(seconds, taken)
    per_transition = model.nbytes / model.graph.n_transitions if hasattr(model, "nbytes") else float("nan")
    return {"seconds": seconds, "peak": timing.peak_gigabytes(), "bytes": per_transition}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="Rover (50,50) only")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print("| model | way | CPU s | ratio to Storm, min/min | median of pairs | peak GB | bytes per transition |")
    print("|---|---|---|---|---|---|---|")
    for name in ("rover:50,50",) if options.quick else ("rover:50,50", "rover:125,125"):
        ways = {way: partial(timing.in_own_process, __file__, way, name) for way in WAYS}
        runs = timing.take_turns(ways, options.repeats)
        for way, found in runs.items():
            run, ratio = timing.fastest(found), timing.ratio_of(found, runs[STORM])
            size = "" if run["bytes"] != run["bytes"] else f"{run['bytes']:.1f}"
            figures = f"{run['seconds']:.2f} | {ratio.least:.2f} | {ratio.median:.2f} | {run['peak']:.2f} | {size}"
            print(f"| {name} | {way} | {figures} |", flush=True)


if __name__ == "__main__":
    if not timing.is_measured(measure):
        main()

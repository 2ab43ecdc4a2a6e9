"""CPU seconds of building models, interleaved with Storm's bare float build and with another checkout.

    python benchmarks/building.py                            the instances of the README
    python benchmarks/building.py betting:25 rover:10,10     others
    python benchmarks/building.py --against ../before/src    before and after in one run

Each figure is the least process time of a build, over rounds in which all ways take turns, each in a process of its
own; kernels are loaded before the clock starts. Storm's bare build makes the transition matrix only: no labels, no
valuations, no action names, and floats in place of polynomials. Memory is that of the model's arrays.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plumdp import case_study, read_prism
from plumdp.case_studies import prism_constants, prism_file

HERE = str(Path(__file__).parents[1] / "src")
INSTANCES = ("betting:100", "parallel:20", "rover:50,50", "rover:125,125", "aircraft:200,40")
MEASURE = "--measure"


def storm(name: str) -> Callable[[], Any]:
    """Return Storm's bare float build, at the true point of the study; parsed before the clock starts."""
    import stormpy
    import stormpy.developer

    stormpy.developer.set_log_level(stormpy.developer.LogLevel.OFF)
    program = stormpy.parse_prism_program(str(prism_file(name.split(":")[0])))
    point = {key: stormpy.Rational(str(value)) for key, value in case_study(name).true_point.items()}
    program, _ = stormpy.instantiate_constants(program, prism_constants(name) | point)
    options = stormpy.BuilderOptions(build_full=False)
    return lambda: stormpy.build_model[float](program, options=options)


def python(name: str) -> Callable[[], Any]:
    """Return the case study's model, written in Python."""
    case_study("rover:10,10")  # loads the kernels
    return lambda: case_study(name).model


def prism(name: str) -> Callable[[], Any]:
    """Return reading the PRISM file: parsing, exact polynomials, labels, valuations and checks."""
    file, space = prism_file(name.split(":")[0]), case_study(name).model.declared_space
    read_prism(prism_file("rover"), constants=prism_constants("rover:10,10"))
    return lambda: read_prism(file, constants=prism_constants(name), space=space)


WAYS = {"Storm, bare float build": storm, "case_study": python, "read_prism": prism}


def measure(way: str, name: str, builds: int = 2) -> dict[str, float]:
    """Return the least CPU seconds of a few builds in this process, and the bytes per transition of the model."""
    build, seconds = WAYS[way](name), []
    for _ in range(builds):
        model = None  # frees the one before
        start = time.process_time()
        model = build()
        seconds.append(time.process_time() - start)
    size = model.nbytes / model.graph.n_transitions if hasattr(model, "graph") else float("nan")
    return {"seconds": min(seconds), "bytes": size}


def in_process(source: str, way: str, name: str) -> dict[str, float]:
    """Return a measurement with the package from the given folder."""
    command = [sys.executable, __file__, MEASURE, way, name]
    environment = {**os.environ, "PYTHONPATH": source}
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    result: dict[str, float] = json.loads(ran.stdout)
    return result


def rows(name: str, sources: dict[str, str], ways: list[str], rounds: int) -> list[str]:
    """Return the lines of the table for one instance."""
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for _ in range(rounds):
        for way in ways:
            for label, source in sources.items() if way != "Storm, bare float build" else [("", HERE)]:
                found.setdefault((way, label), []).append(in_process(source, way, name))
    least = {key: min(run["seconds"] for run in runs) for key, runs in found.items()}
    reference = least.get(("Storm, bare float build", ""), float("nan"))
    lines = []
    for (way, label), seconds in least.items():
        before = least.get((way, "before"), float("nan"))
        figures = f"{seconds:.2f} | {seconds / reference:.2f} | {seconds / before:.2f}"
        lines.append(f"| {name} | {way} {label} | {figures} | {found[way, label][0]['bytes']:.1f} |")
    return lines


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("instances", nargs="*", default=INSTANCES)
    parser.add_argument("--against", help="the source folder of another checkout")
    parser.add_argument("--ways", nargs="*", default=list(WAYS))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sources = {"before": options.against, "now": HERE} if options.against else {"now": HERE}
    print("| instance | way | CPU s | ratio to Storm | ratio to before | bytes per transition |")
    print("|---|---|---|---|---|---|")
    for name in options.instances:
        print("\n".join(rows(name, sources, options.ways, options.rounds)).replace("nan", "–"), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == [MEASURE]:
        print(json.dumps(measure(*sys.argv[2:])))
    else:
        main()

"""CPU seconds of building models, interleaved with Storm's bare float build and with another checkout.

    python -m studies.building                            the instances of the README
    python -m studies.building betting:25 rover:10,10     others
    python -m studies.building --against ../before/src    before and after in one run

Each figure is the least process time of a build, over rounds in which all ways take turns, each in a process of its
own; ratios are those of the least times, and the median of the rounds. Kernels are loaded before the clock starts.
Storm's bare build makes the transition matrix only: no labels, no valuations, no action names, and floats in place of
polynomials. Memory is that of the model's arrays.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from plumdp import case_study
from plumdp.case_studies import prism_constants, prism_file
from plumdp.model.readers.storm import read_prism
from studies import timing

HERE = str(Path(__file__).parents[1] / "src")
STORM = "Storm, bare float build"
INSTANCES = ("betting:100", "parallel:20", "rover:50,50", "rover:125,125", "aircraft:200,40")


def storm(name: str) -> Callable[[], Any]:
    """Return Storm's bare float build, at the true point of the study; parsed before the clock starts."""
    import stormpy
    import stormpy.developer

    stormpy.developer.set_log_level(stormpy.developer.LogLevel.OFF)
    program = stormpy.parse_prism_program(str(prism_file(name.split(":")[0])))
    point = {key: stormpy.Rational(str(value)) for key, value in case_study(name).true_point.items()}
    is_boolean = {constant.name for constant in program.constants if constant.type.is_boolean}
    sizes = {key: bool(value) if key in is_boolean else value for key, value in prism_constants(name).items()}
    program, _ = stormpy.instantiate_constants(program, sizes | point)
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


WAYS = {STORM: storm, "case_study": python, "read_prism": prism}


def measure(way: str, name: str, builds: int = 2) -> dict[str, float]:
    """Return the least CPU seconds of a few builds in this process, and the bytes per transition of the model."""
    build, seconds = WAYS[way](name), []
    for _ in range(builds):
        model: Any = None  # frees the one before
        taken, model = timing.timed(build)
        seconds.append(taken)
    size = model.nbytes / model.graph.n_transitions if hasattr(model, "graph") else float("nan")
    return {"seconds": min(seconds), "bytes": size}


def runs(name: str, sources: dict[str, str], ways: list[str], rounds: int) -> dict[tuple[str, str], list[Any]]:
    """Return the measurements of each way with each source folder; they take turns."""
    taken = {
        (way, label): partial(timing.in_own_process, __file__, way, name, source=source)
        for way in ways
        for label, source in (sources.items() if way != STORM else [("", HERE)])
    }
    return timing.take_turns(taken, rounds)


def rows(name: str, sources: dict[str, str], ways: list[str], rounds: int) -> list[str]:
    """Return the lines of the table for one instance."""
    found = runs(name, sources, ways, rounds)
    lines = []
    for (way, label), ours in found.items():
        against = [_ratio(ours, found.get(key)) for key in ((STORM, ""), (way, "before"))]
        figures = f"{timing.fastest(ours)['seconds']:.2f} | {' | '.join(against)}"
        lines.append(f"| {name} | {way} {label} | {figures} | {ours[0]['bytes']:.1f} |")
    return lines


def _ratio(ours: list[Any], theirs: list[Any] | None) -> str:
    if theirs is None:
        return "nan | nan"
    ratio = timing.ratio_of(ours, theirs)
    return f"{ratio.least:.2f} | {ratio.median:.2f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("instances", nargs="*", default=INSTANCES)
    parser.add_argument("--against", help="the source folder of another checkout")
    parser.add_argument("--ways", nargs="*", default=list(WAYS))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sources = {"before": options.against, "now": HERE} if options.against else {"now": HERE}
    print(
        "| instance | way | CPU s | to Storm, min/min | median | to before, min/min | median | bytes per transition |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in options.instances:
        print("\n".join(rows(name, sources, options.ways, options.rounds)).replace("nan", "–"), flush=True)


if __name__ == "__main__":
    if not timing.is_measured(measure):
        main()

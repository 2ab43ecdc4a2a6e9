"""Bounds and processor time of P_Λ and P_R as the number of parameters grows, from intervals of 10^4 runs.

    python benchmarks/many_parameters.py                             all kinds and sizes
    python benchmarks/many_parameters.py mixture:12 blocks:200       some
    python benchmarks/many_parameters.py --against ../before/src     the same with another checkout, in turns

Models are those of ``plumdp.experiments.layered``, of about 9,400 states. In ``blocks`` the parameters are weights of
mixtures, four for each block; most rows are about one block, every tenth about two. Seconds are those of learning and
concluding, after the model and the counts are there, in a process of its own that has concluded once before, so that
no kernel is compiled. P_R that is wider than P_Λ is marked. Learning includes the test of the model as a whole, whose
p-value is in the last column.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from fractions import Fraction
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from timing import MEASURE, is_measured

HERE = str(Path(__file__).parents[1] / "src")
INSTANCES = (
    *("mixture:6", "mixture:12", "mixture:20", "mixture:50", "sparse:12", "sparse:20", "sparse:50"),
    *("bilinear:6", "bilinear:12", "bilinear:20", "bilinear:50", "blocks:40", "blocks:200"),
)
PER_BLOCK = 4
RUNS = 10_000


def blocks_model(n_parameters: int, *, n_layers: int = 40, width: int = 250) -> Any:
    """Return a layered model whose parameters are in blocks, what to ask, the true point and the longest run."""
    import numpy as np

    import plumdp as pl

    rng = np.random.default_rng(1)
    names = [f"t{i}" for i in range(n_parameters)]
    unknown = pl.parameters(*names)
    blocks = [unknown[i : i + PER_BLOCK] for i in range(0, n_parameters, PER_BLOCK)]
    rests = [1 - reduce(add, block) for block in blocks]
    space = pl.ParameterSpace.box(dict.fromkeys(names, (0, 1)), constraints=rests)

    def of_block(b: int) -> list[Any]:
        weights = [*blocks[b], rests[b]]
        shares = rng.integers(1, 100, (len(weights), 3)).tolist()
        row = [reduce(add, (w * Fraction(s[j], 300) for w, s in zip(weights, shares, strict=True))) for j in range(3)]
        return [*row, 1 - reduce(add, row)]

    rows = [of_block(i % len(blocks)) for i in range(2 * len(blocks))]
    for i in range(0, len(rows), 10):
        rows[i] = [f / 2 + g / 2 for f, g in zip(rows[i], rows[i + 1], strict=True)]
    place, kind = rng.integers(0, width, (n_layers, width, 2)), rng.integers(0, len(rows), (n_layers, width, 2))

    def step(state: Any) -> dict[str, Any]:
        if state.layer == n_layers:
            return {"stop": [(1, state)]}
        here = state.layer, state.place
        return {
            name: [
                (f, state._replace(layer=state.layer + 1, place=int(place[(*here, a)] + 7 * j) % width))
                for j, f in enumerate(rows[kind[(*here, a)]])
            ]
            for a, name in enumerate("ab")
        }

    goal = {"goal": lambda state: state.layer == n_layers and state.place % 2 == 0}
    model = pl.explore(step, {"layer": 0, "place": 0}, space=space, labels=goal)
    true = dict.fromkeys(names, Fraction(1, PER_BLOCK + 1))
    return model, pl.parse_property('Pmax=? [ F "goal" ]', model), true, n_layers + 1


def made(instance: str) -> Any:
    """Return model, objective, true point and longest run of an instance such as ``mixture:12``."""
    from plumdp.experiments.layered import layered_model

    kind, _, number = instance.partition(":")
    if kind == "blocks":
        return blocks_model(int(number))
    layered = layered_model(kind, int(number))
    return layered.model, layered.objective, layered.true_point, layered.max_steps


def measure(instance: str) -> dict[str, Any]:
    """Return bounds and seconds of both relaxations, and what was left out."""
    import plumdp as pl

    model, objective, true, longest = made(instance)
    counts = pl.simulate(model, true, RUNS, rng=1, max_steps=longest)
    found: dict[str, Any] = {}
    for _ in range(2):  # the first time compiles kernels, or reads what was compiled
        start = time.process_time()
        learned = pl.learn(model, counts, confidence_set="interval")
        found["learn"] = time.process_time() - start
        for relaxation in ("expression", "rectangular"):
            start = time.process_time()
            certificate = pl.conclude(learned, objective, relaxation=relaxation)
            found[relaxation] = (certificate.lower, certificate.upper, time.process_time() - start)
        found["left out"], found["p"] = getattr(certificate, "left_out", ""), certificate.p_value
    return found


def answer(instance: str, source: str, seconds: float) -> dict[str, Any] | None:
    """Return the measurement of the package in a folder, in a process of its own; None if it takes too long."""
    command = [sys.executable, __file__, MEASURE, instance]
    environment = {**os.environ, "PYTHONPATH": source}
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def line(instance: str, who: str, found: dict[str, Any] | None) -> str:
    """Return a row of the table."""
    if found is None:
        return f"| {instance} | {who} | no answer | | | | | |"
    (low, high, first), (lower, upper, second) = found["expression"], found["rectangular"]
    wider = " **wider**" if lower < low - 1e-9 or upper > high + 1e-9 else ""
    seconds = f"{found['learn'] + first:.2f} | {found['learn'] + second:.2f}"
    bounds = f"{low:.4f} {high:.4f} | {lower:.4f} {upper:.4f}{wider}"
    return f"| {instance} | {who} | {bounds} | {seconds} | {found['left out']} | {found['p']:.3g} |"


def main() -> None:
    """Print a table of bounds and seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("instances", nargs="*", default=INSTANCES)
    parser.add_argument("--against", help="the source folder of another checkout")
    parser.add_argument("--seconds", type=float, default=300, help="after which a process is ended")
    options = parser.parse_args()
    print("| instance | | P_Λ | P_R | P_Λ, s | P_R, s | left out | p |\n|---|---|---|---|---|---|---|---|")
    for instance in options.instances:
        sources = {"now": HERE} | ({"before": options.against} if options.against else {})
        for who, source in sources.items():
            print(line(instance, who, answer(instance, source, options.seconds)), flush=True)


if __name__ == "__main__" and not is_measured(measure):
    main()

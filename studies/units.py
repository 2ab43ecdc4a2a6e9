"""What a unit costs, from a Parquet file of many pumps to a table with a row for each, and where the time goes.

    python -m studies.units [units] [order] [certified]

The order is "runs", or "none". Pumps have 10 runs of 20 steps each; the file is in a folder for temporary files. All
units are counted; if fewer are to be certified, the others have rows of these, so that the table is as large.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import plumdp
from plumdp.data.duckdb_engine import Block, write_parquet
from plumdp.data.units import UnitLogs, read_units
from plumdp.watching import units

QUESTION = 'R{"cost"}<=6 [ C<=20 ]'
RUNS, STEPS = 10, 20
_BLOCK = 1000  # units that are written at once
COSTS = {"repair": 10, "service": 2, "run": 0}


def pump(state: Any) -> Any:
    """Return what a pump may do: it wears and fails, with unknown probabilities."""
    wear, fail = plumdp.parameters("wear", "fail")
    good, worn, down = (state._replace(at=at) for at in ("good", "worn", "down"))
    if state.at == "down":
        return {"repair": [(1, good)]}
    if state.at == "good":
        return {"run": [(1 - wear, good), (wear, worn)]}
    return {"run": [(1 - fail, worn), (fail, down)], "service": [(1, good)]}


MODEL = plumdp.explore(
    pump,
    {"at": "good"},
    space=plumdp.ParameterSpace.unit("wear", "fail"),
    choice_rewards={"cost": lambda state, action: COSTS[action]},
)


def write_log(file: Path, n_units: int) -> None:
    """Write the runs of pumps with probabilities of their own, unit after unit."""
    rng = np.random.default_rng(1)
    write_parquet(file, (runs_of(rng, first, min(_BLOCK, n_units - first)) for first in range(0, n_units, _BLOCK)))


def runs_of(rng: np.random.Generator, first: int, n_units: int) -> Block:
    """Return the runs of some pumps, whose numbers begin with the first."""
    n = n_units * RUNS
    wear, fail = (np.repeat(rng.uniform(*ends, n_units), RUNS) for ends in ((0.05, 0.2), (0.1, 0.4)))
    at, told = np.zeros(n, dtype=np.int64), []
    for _ in range(STEPS):
        action = np.where(at == 2, 2, np.where((at == 1) & (rng.random(n) < 0.4), 1, 0))
        moves = rng.random(n) < np.where(at == 0, wear, fail)
        told.append((at, action))
        at = np.where(action > 0, 0, at + moves)
    told.append((at, np.full(n, 3)))
    states, actions = (np.stack(each, axis=1).ravel() for each in zip(*told, strict=True))
    place = np.arange(n * (STEPS + 1))
    names = np.array(["run", "service", "repair", None], dtype=np.object_)
    run = place // (STEPS + 1)
    return {
        "unit": first + run // RUNS,
        "episode": run % RUNS,
        "step": place % (STEPS + 1),
        "at": np.array(["good", "worn", "down"], dtype=np.object_)[states],
        "action": names[actions],
    }


def timed(took: dict[str, float], name: str, function: Any) -> Any:
    """Return a function that adds up the processor time that it takes."""

    def run(*given: Any, **options: Any) -> Any:
        start = process_time()
        found = function(*given, **options)
        took[name] = took.get(name, 0.0) + process_time() - start
        return found

    return run


def megabytes() -> float:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def main(n_units: str = "1000", order: str = "runs", certified: str = "") -> None:
    """Print the processor seconds of a unit, and of its parts."""
    took: dict[str, float] = {}
    n, options = int(n_units), dict[str, Any](order=None if order == "none" else order)
    every = n // int(certified or n)
    with tempfile.TemporaryDirectory() as folder:
        log, output = Path(folder) / "pumps.parquet", Path(folder) / "table.parquet"
        write_log(log, 3)
        units.certify_each(MODEL, read_units(MODEL, log, "unit", **options), QUESTION)  # compiles what is compiled
        writes = multiprocessing.get_context("spawn").Process(target=write_log, args=(log, n))  # its memory is not ours
        writes.start()
        writes.join()
        for name in ("learn", "conclude", "decide"):
            setattr(units, name, timed(took, name, getattr(units, name)))
        vars(units)["write_parquet"] = timed(took, "write", write_parquet)
        before, start = megabytes(), process_time()
        logs = read_units(MODEL, log, "unit", **options)
        read = timed(took, "count", lambda: next(logs.logs, None))

        def each() -> Iterator[Any]:
            place = 0
            while (found := read()) is not None:
                if place % every == 0:
                    yield found
                place += 1

        table = units.certify_each(MODEL, UnitLogs(logs.names, each()), QUESTION, output=output)
        whole, rows = process_time() - start, table.rows
        if every > 1:
            filled = tuple(rows[i % len(rows)]._replace(unit=name) for i, name in enumerate(logs.names))
            replace(table, rows=filled).write(output)
    parts = {name: seconds / (n if name in ("count", "write") else len(rows)) for name, seconds in took.items()}
    told = ", ".join(f"{name} {seconds:.5f}" for name, seconds in parts.items())
    print(f"{n:,} units counted, {len(rows):,} certified. {table.sentence}")
    print(f"processor seconds a unit: {sum(parts.values()):.4f}; {told}; all {whole:.1f}")
    print(f"memory: {before:.0f} MB before, {megabytes():.0f} MB at most")


if __name__ == "__main__":
    main(*sys.argv[1:])

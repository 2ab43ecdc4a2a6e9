"""What a unit costs, from a Parquet file of many pumps to a table with a row for each, and where the time goes.

    python -m studies.units [units] [order]

The order is "runs", or "none". Pumps have 10 runs of 20 steps each; the file is in a folder for temporary files.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import plumdp
from plumdp.data.duckdb_engine import write_parquet
from plumdp.data.units import UnitLogs, read_units
from plumdp.watching import units

QUESTION = 'R{"cost"}<=6 [ C<=20 ]'
RUNS, STEPS = 10, 20
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
    rng, n = np.random.default_rng(1), n_units * RUNS
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
    block = {
        "unit": run // RUNS,
        "episode": run % RUNS,
        "step": place % (STEPS + 1),
        "at": np.array(["good", "worn", "down"], dtype=np.object_)[states],
        "action": names[actions],
    }
    write_parquet(file, [block])


def timed(took: dict[str, float], name: str, function: Any) -> Any:
    """Return a function that adds up the processor time that it takes."""

    def run(*given: Any, **options: Any) -> Any:
        start = process_time()
        found = function(*given, **options)
        took[name] = took.get(name, 0.0) + process_time() - start
        return found

    return run


def main(n_units: str = "1000", order: str = "runs") -> None:
    """Print the processor seconds of a unit, and of its parts."""
    took: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "pumps.parquet"
        options: Any = {"order": None if order == "none" else order}
        write_log(log, 3)
        units.certify_each(MODEL, read_units(MODEL, log, "unit", **options), QUESTION)  # compiles what is compiled
        write_log(log, int(n_units))
        for name in ("learn", "conclude", "decide"):
            setattr(units, name, timed(took, name, getattr(units, name)))
        vars(units)["write_parquet"] = timed(took, "write", write_parquet)
        start = process_time()
        logs = read_units(MODEL, log, "unit", **options)
        read = timed(took, "count", lambda: next(logs.logs, None))

        def each() -> Iterator[Any]:
            while (found := read()) is not None:
                yield found

        table = units.certify_each(MODEL, UnitLogs(logs.names, each()), QUESTION, output=Path(folder) / "table.parquet")
        whole = process_time() - start
    parts = ", ".join(f"{name} {seconds / len(table.rows):.5f}" for name, seconds in took.items())
    print(f"{table.sentence} {whole / len(table.rows):.4f} processor seconds a unit: {parts}")


if __name__ == "__main__":
    main(*sys.argv[1:])

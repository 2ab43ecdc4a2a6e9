"""Reading a log with a column of values against counting the same log alone, in processor time, in turns.

    python -m studies.reward_speed                     10^7 rows (three minutes on a quiet core)
    python -m studies.reward_speed --rows 1e8 --repeats 3

The narrow log has one state variable, which is the worst case, as counting alone takes least; the wide one has four.
Sums of values and of their squares, their range and missing values are what is read besides.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import plumdp as pl
from plumdp.data.logs import read_log
from plumdp.model.parametric import ParametricMDP
from studies import timing

LAST = 31
PRICE = "5 + 16 * (hash(i) % 1000003) / 1000002.0 AS cost"
BOX: dict[str, Any] = {"p": (Fraction(1, 10), Fraction(9, 10)), "repair": (5, 21)}


def model(names: tuple[str, ...], *, is_learned: bool) -> ParametricMDP:
    """Return a line of states with as many variables as there are names, all of which are equal."""
    p, repair = pl.parameters("p", "repair")

    def step(s: Any) -> dict[str, list[tuple[object, object]]]:
        state, x = type(s), s[0]
        after = state(*[x + 1] * len(names)) if x < LAST else s
        return {name: [(p, after), (1 - p, s)] if x < LAST else [(1, s)] for name in ("slow", "fast")}

    box = BOX if is_learned else {"p": BOX["p"]}
    rewards = {"cost": lambda _: repair} if is_learned else {}
    return pl.explore(step, dict.fromkeys(names, 0), space=pl.ParameterSpace.box(box), rewards=rewards)


def write(path: Path, names: tuple[str, ...], rows: int, form: str) -> None:
    """Write runs of 45 steps, as trajectories, or as transitions in no order."""
    step, x = "i % 45", "i % 45 - i % 45 // 3"
    last = "WHEN i % 45 = 44 THEN NULL" if form == "trajectories" else ""  # the end of a run
    action = f"CASE {last} WHEN hash(i + 7) % 5 < 2 THEN 'slow' ELSE 'fast' END AS action"
    state = ", ".join(f"({x})::INTEGER AS {name}" for name in names)
    after = ", ".join(f"({x} + (hash(i) % 3 > 0)::INTEGER)::INTEGER AS next_{name}" for name in names)
    where = f"i // 45 AS episode, {step} AS step, {state}" if form == "trajectories" else f"{state}, {after}"
    source = "i" if form == "trajectories" else "(hash(j) >> 4)::BIGINT AS i"
    numbers = f"SELECT {source} FROM range({rows}) t({'i' if form == 'trajectories' else 'j'})"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {where}, {action}, {PRICE} FROM ({numbers})) TO '{path}'")


def reader(path: Path, names: tuple[str, ...], *, is_learned: bool) -> Callable[[], int]:
    """Return reading the log, with or without values."""
    found = model(names, is_learned=is_learned)
    return lambda: int(np.sum(read_log(found, str(path)).counts.rewards))


def main() -> None:
    """Print the ratios."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=lambda text: int(float(text)), default=10**7)
    arguments.add_argument("--repeats", type=int, default=5)
    given = arguments.parse_args()
    rows = -(-given.rows // 45) * 45  # whole runs
    with tempfile.TemporaryDirectory() as folder:
        for width, names in (("narrow", ("x",)), ("wide", ("x", "y", "z", "w"))):
            for form in ("transitions", "trajectories"):
                path = Path(folder) / "log.parquet"
                write(path, names, rows, form)
                ours, theirs = (reader(path, names, is_learned=learned) for learned in (True, False))
                print(f"{width} {form}: {timing.compare(ours, theirs, repeats=given.repeats)}", flush=True)


if __name__ == "__main__":
    main()

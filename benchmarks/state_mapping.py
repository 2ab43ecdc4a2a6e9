"""Reading a log with two mapped variables against the bare DuckDB query on the same file, as ratios in one run.

    python benchmarks/state_mapping.py                     10^7 rows of Parquet (about two minutes)
    python benchmarks/state_mapping.py --rows 1e6

The bare query groups by the two mapped variables, their next values and the action, and hands over the result: nothing
is checked, and no names are looked up. Both take turns in processes of their own; the CPU seconds of each process are
taken from when the modules are loaded and the model is built.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import timing

import plumdp as pl
from plumdp.data.logs import read_log

STUDY = "glider:11,9"  # x from 0 to 10, y from 0 to 8
WIDTH, EDGES = 0.5, [0, 10, 20, 35, 50, 60, 70, 80, 90, 100]
STATES = {"x": f"floor(lon / {WIDTH})", "y": EDGES}
COLUMNS = {"y": "battery", "next_y": "next_battery"}


def write(file: Path, rows: int) -> None:
    """Write rows whose mapped states are drawn from all transitions of the model, at random places in their cells."""
    graph = pl.case_study(STUDY).model.graph
    choice = graph.choice_of_transition()
    state = graph.state_of_choice()[choice]
    edges = {"id": np.arange(graph.n_transitions), "x": graph.states["x"][state], "y": graph.states["y"][state]}
    edges |= {"action": np.array(graph.action_names, dtype=object)[graph.action[choice]]}
    edges |= {f"next_{name}": values[graph.successor] for name, values in graph.states.items()}
    with duckdb.connect() as connection:
        connection.register("edges", edges)
        connection.execute("SELECT setseed(0.5)")
        drawn = f"SELECT (hash(i) % {graph.n_transitions})::BIGINT AS id FROM range({rows}) t(i)"
        place = ", ".join(
            f"({name} + random() * 0.999) * {WIDTH} AS {out}" for name, out in (("x", "lon"), ("next_x", "next_lon"))
        )
        level = ", ".join(
            f"list_extract({EDGES}, ({name} + 1)::BIGINT) + random() * 9.99 AS {out}"
            for name, out in (("y", "battery"), ("next_y", "next_battery"))
        )
        query = f"SELECT {place}, {level}, action FROM ({drawn}) JOIN edges USING (id)"
        connection.execute(f"COPY ({query}) TO '{file}'")


def bare(file: str) -> Callable[[], int]:
    """Return the grouping of mapped rows without anything around it."""

    def bins(name: str) -> str:
        cases = " ".join(f"WHEN {name} < {edge} THEN {number}" for number, edge in enumerate(EDGES[1:]))
        return f"CASE {cases} END"

    keys = f"floor(lon / {WIDTH}) AS x, {bins('battery')} AS y, action"
    keys += f", floor(next_lon / {WIDTH}) AS next_x, {bins('next_battery')} AS next_y"

    def count() -> int:
        with duckdb.connect() as connection:
            result = connection.execute(f"SELECT {keys}, count(*) AS n FROM '{file}' GROUP BY ALL").fetchnumpy()
        return int(result["n"].sum())

    return count


def reader(file: str) -> Callable[[], int]:
    """Return reading the log with plumdp."""
    model = pl.case_study(STUDY).model
    return lambda: read_log(file, model, states=STATES, columns=COLUMNS).report.matched


WAYS = {"bare query": bare, "read_log": reader}


def measure(way: str, file: str) -> dict[str, float]:
    """Return rows and CPU seconds of one way in this process."""
    seconds, rows = timing.timed(WAYS[way](file))
    return {"rows": rows, "seconds": seconds}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log.parquet"
        write(file, int(options.rows))
        ways = {way: partial(timing.in_own_process, __file__, way, str(file)) for way in WAYS}
        runs = timing.take_turns(ways, options.repeats)
    print("| way | rows | CPU seconds (least) |\n|---|---|---|")
    for way, found in runs.items():
        print(f"| {way} | {found[0]['rows']:,} | {timing.fastest(found)['seconds']:.2f} |")
    print(f"ratio of CPU seconds: {timing.ratio_of(runs['read_log'], runs['bare query'])}")


if __name__ == "__main__":
    if not timing.is_measured(measure):
        main()

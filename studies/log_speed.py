"""Counting logs against the bare DuckDB query on the same files, as ratios in one run; with peak memory.

    python -m studies.log_speed                                       10^8 rows in both forms (half an hour)
    python -m studies.log_speed --rows 1e7                            a few minutes
    python -m studies.log_speed --rows 1e7 --form contexts            with and without contexts and cut-offs of runs
    python -m studies.log_speed --rows 1e9 --form transitions --repeats 1

The bare query groups the rows by their columns and hands over the result: no names are looked up, nothing is checked.
Each measurement runs in a process of its own, and the fastest of several is taken; the model is built, and all
modules are loaded, before the clock starts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial, partialmethod
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np

import plumdp as pl
from plumdp.data.logs import read_log
from plumdp.data.steps import LogSteps
from studies import timing

WRITE = "--write"
STUDY = "aircraft:50,10"
SMALL = "aircraft:20,10"  # of few enough transitions that contexts are counted
N_FILES = 8  # of the trajectories
EPISODES = 40_000  # that are sampled; more rows are copies under other numbers


def write_transitions(folder: Path, rows: int) -> None:
    """Write rows that are drawn from all transitions of the model with equal probability."""
    graph = pl.case_study(STUDY).model.graph
    choice = graph.choice_of_transition()
    edges: dict[str, Any] = {"id": np.arange(graph.n_transitions)}
    edges |= {name: values[graph.state_of_choice()[choice]] for name, values in graph.states.items()}
    edges |= {"action": np.array(graph.action_names, dtype=object)[graph.action[choice]]}
    edges |= {f"next_{name}": values[graph.successor] for name, values in graph.states.items()}
    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '3GB'")
        connection.register("edges", edges)
        drawn = f"SELECT (hash(i) % {graph.n_transitions})::BIGINT AS id FROM range({rows}) t(i)"
        query = f"SELECT edges.* EXCLUDE id FROM ({drawn}) JOIN edges USING (id)"
        connection.execute(f"COPY ({query}) TO '{folder}/transitions.parquet'")


def write_trajectories(folder: Path, rows: int, name: str = STUDY) -> None:
    """Write sampled runs: in order, in order but in several files, and with the rows in no order."""
    study = pl.case_study(name)
    path = folder / "sample.parquet"
    pl.data.write_runs(study.model, study.true_point, EPISODES, path, rng=1, max_steps=50, form="trajectories")
    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '3GB'")
        connection.execute(f"CREATE TABLE sample AS SELECT * FROM '{folder}/sample.parquet'")
        ((n,),) = connection.execute("SELECT count(*) FROM sample").fetchall()
        copies = max(1, round(rows / n))
        for part in range(N_FILES):
            numbers = f"range({part * copies // N_FILES}, {(part + 1) * copies // N_FILES}) c(copy)"
            query = f"SELECT s.* REPLACE (copy * {EPISODES} + episode AS episode) FROM {numbers}, sample s"
            ordered = f"{query} ORDER BY copy, s.episode, s.step"
            (folder / "ordered").mkdir(exist_ok=True)
            connection.execute(f"COPY ({ordered}) TO '{folder}/ordered/{part}.parquet'")
        (folder / "shuffled").mkdir(exist_ok=True)
        for part in range(N_FILES):
            query = f"SELECT * FROM '{folder}/ordered/{part}.parquet' ORDER BY hash(episode * 64 + step)"
            connection.execute(f"COPY ({query}) TO '{folder}/shuffled/{part}.parquet'")


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "transitions": write_transitions,
    "trajectories": write_trajectories,
    "contexts": partial(write_trajectories, name=SMALL),
}


def bare(files: str) -> Callable[[], int]:
    """Return the grouping of transitions without anything around it."""
    names = ", ".join([*_state(), "action", *(f"next_{name}" for name in _state())])

    def count() -> int:
        with duckdb.connect() as connection:
            result = connection.execute(f"SELECT {names}, count(*) AS n FROM '{files}' GROUP BY ALL").fetchnumpy()
        return int(result["n"].sum())

    return count


def bare_lead(files: str) -> Callable[[], int]:
    """Return the query with LEAD over runs, within the memory that ``read_log`` keeps to."""
    ahead = ", ".join(f"lead({name}) OVER runs AS next_{name}" for name in _state())
    rows = f"SELECT {', '.join(_state())}, action, {ahead} FROM '{files}'"
    window = "WINDOW runs AS (PARTITION BY episode ORDER BY step)"

    def count() -> int:
        with duckdb.connect() as connection, tempfile.TemporaryDirectory() as folder:
            connection.execute(f"SET memory_limit = '1GB'; SET temp_directory = '{folder}'")
            result = connection.execute(f"SELECT *, count(*) AS n FROM ({rows} {window}) GROUP BY ALL").fetchnumpy()
        return int(result["n"].sum())

    return count


def reader(files: str, name: str = STUDY) -> Callable[[], int]:
    """Return reading the log with plumdp."""
    model = pl.case_study(name).model
    return lambda: read_log(model, files).report.total


def streamed(folder: str) -> Callable[[], int]:
    """Return reading the files of a folder as batches of Arrow, which are handed over once."""
    from pyarrow.dataset import dataset

    model, scanner = pl.case_study(SMALL).model, dataset(folder).scanner(batch_readahead=1, fragment_readahead=1)
    return lambda: read_log(model, scanner).report.total


def without_pasts(files: str) -> Callable[[], int]:
    """Return reading the log without a look at the past of its steps: neither contexts nor cut-offs are counted."""
    read = reader(files, SMALL)

    def count() -> int:
        with patch.object(LogSteps, "arranged", partialmethod(LogSteps.arranged, is_followed=False)):
            return read()

    return count


def _state() -> list[str]:
    return [*pl.case_study(STUDY).model.graph.states]


WAYS: dict[str, Callable[[Path], Callable[[], int]]] = {
    "transitions, bare query": lambda folder: bare(f"{folder}/transitions.parquet"),
    "transitions, read_log": lambda folder: reader(f"{folder}/transitions.parquet"),
    "trajectories in order, read_log": lambda folder: reader(f"{folder}/ordered/*.parquet"),
    "trajectories shuffled, read_log": lambda folder: reader(f"{folder}/shuffled/*.parquet"),
    "trajectories shuffled, bare query with LEAD": lambda folder: bare_lead(f"{folder}/shuffled/*.parquet"),
    "contexts: bare, in order": lambda folder: without_pasts(f"{folder}/ordered/*.parquet"),
    "contexts: in order": lambda folder: reader(f"{folder}/ordered/*.parquet", SMALL),
    "contexts: in order, as a stream of Arrow": lambda folder: streamed(f"{folder}/ordered"),
    "contexts: bare, shuffled": lambda folder: without_pasts(f"{folder}/shuffled/*.parquet"),
    "contexts: shuffled": lambda folder: reader(f"{folder}/shuffled/*.parquet", SMALL),
}


def measure(way: str, folder: str) -> dict[str, float]:
    """Return rows, seconds and peak memory of one way in this process."""
    count = WAYS[way](Path(folder))
    start = time.perf_counter()
    seconds, rows = timing.timed(count)
    return {"rows": rows, "seconds": seconds, "wall": time.perf_counter() - start, "peak": timing.peak_gigabytes()}


def take_turns(ways: list[str], folder: Path, repeats: int) -> dict[str, list[dict[str, float]]]:
    """Return measurements of each way, in processes of their own."""
    own = {way: partial(timing.in_own_process, __file__, way, str(folder)) for way in ways}
    return timing.take_turns(own, repeats)


def write(form: str, folder: Path, rows: float) -> None:
    """Write a log in a process of its own, since a process inherits the peak memory of its parent."""
    subprocess.run([*timing.own_command(__file__), WRITE, form, str(folder), str(int(rows))], check=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e8)
    parser.add_argument("--form", choices=[*WRITERS], help="one form only")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the logs go, about 10 bytes for each row; a temporary one")
    options = parser.parse_args()
    print("| log | rows | seconds | CPU seconds | ratio, min/min | median of pairs | peak GB |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        for form in WRITERS:
            if options.form in (None, form):
                write(form, folder, options.rows)
                for part in ("in order", "shuffled") if form == "contexts" else ("",):
                    ways = [way for way in WAYS if way.startswith(form) and part in way]
                    bare_way = next(way for way in ways if "bare" in way)
                    print_table(take_turns(ways, folder, options.repeats), bare_way)


def print_table(runs: dict[str, list[dict[str, float]]], reference: str) -> None:
    """Print a line for each way."""
    for way, found in runs.items():
        best, ratio = timing.fastest(found), timing.ratio_of(found, runs[reference])
        figures = f"{best['wall']:.1f} | {best['seconds']:.1f} | {ratio.least:.2f} | {ratio.median:.2f}"
        print(f"| {way} | {best['rows']:,} | {figures} | {best['peak']:.2f} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == [WRITE]:
        WRITERS[sys.argv[2]](Path(sys.argv[3]), int(sys.argv[4]))
    elif not timing.is_measured(measure):
        main()

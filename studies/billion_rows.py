"""A billion rows of a log, counted by DuckDB and by Spark on the same files, with a known answer.

    python -m studies.billion_rows                                 10^9 rows, 6 GB on disk, deleted at the end
    python -m studies.billion_rows --rows 1e8 --engine duckdb polars
    python -m studies.billion_rows --study betting:3 --rows 1e6      seconds, for a try

Each file of the log has every choice of the case study as often as the least common denominator of its probabilities
at the true point, with each successor exactly as often as its probability says, in a random order. So the counts are
known without counting anything, and they are checked; the certificate that is made of them has the truth as estimate.
Whole files are written until there are as many rows as asked for.

Every engine counts with ``read_log`` in a process of its own: a path is read by DuckDB, a data frame by its own engine.
"bare query" is DuckDB's aggregate without plumdp. Peak memory is that of the process, of Spark with its Java machine;
CPU seconds count all threads and, for Spark, the start of Java. Spark needs Java, and takes ``--memory`` GB.
"""

from __future__ import annotations

import argparse
import math
import resource
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

import plumdp as pl
from plumdp.case_studies import CaseStudy
from plumdp.data.columns import needed_columns
from studies import timing

STUDY = "parallel:5"


def repetitions(study: CaseStudy) -> npt.NDArray[np.int64]:
    """Return how often each transition is in a file: its probability times a common denominator of its choice."""
    model = study.model
    values = model.expressions.evaluate_exact(model.space, study.true_point)
    found = [values[expression] for expression in model.expression]
    first = model.graph.first_transition
    shares = []
    for start, end in pairwise(first):
        denominator = math.lcm(*(probability.denominator for probability in found[start:end]))
        shares += [int(probability * denominator) for probability in found[start:end]]
    return np.array(shares, dtype=np.int64)


def transitions_of(study: CaseStudy) -> dict[str, npt.NDArray[Any]]:
    """Return all transitions as columns of a log, with their numbers."""
    graph = study.model.graph
    choice = graph.choice_of_transition()
    state = graph.state_of_choice()[choice]
    now = [values[state] for values in graph.states.values()]
    action = np.array(graph.action_names, dtype=object)[graph.action[choice]]
    after = [values[graph.successor] for values in graph.states.values()]
    names = ["id", *needed_columns(graph, "transitions")]
    return dict(zip(names, [np.arange(graph.n_transitions, dtype=np.int32), *now, action, *after], strict=True))


def write(folder: str, name: str, rows: str) -> dict[str, Any]:
    """Write the log; returns the number of its files, rows and bytes, and seconds."""
    start, cpu = time.perf_counter(), time.process_time()
    study = pl.case_study(name)
    rng = np.random.default_rng(17)
    ids = np.repeat(np.arange(study.model.graph.n_transitions, dtype=np.int32), repetitions(study))
    n_files = math.ceil(float(rows) / len(ids))
    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '4GB'")
        connection.register("transitions", transitions_of(study))
        for file in range(n_files):
            rng.shuffle(ids)
            connection.register("drawn", {"id": ids})
            query = "SELECT transitions.* EXCLUDE id FROM drawn JOIN transitions USING (id)"
            connection.execute(f"COPY ({query}) TO '{folder}/{file:04}.parquet'")
    size = sum(file.stat().st_size for file in Path(folder).iterdir())
    seconds = {"wall": time.perf_counter() - start, "seconds": time.process_time() - cpu}
    return {"files": n_files, "rows": n_files * len(ids), "bytes": size, "peak": timing.peak_gigabytes()} | seconds


def certified(study: CaseStudy, counts: pl.TransitionCounts) -> dict[str, Any]:
    """Return the certificate's bracket, the value at its estimate, which is the truth here, and seconds."""
    seconds, certificate = timing.timed(lambda: pl.certify(study.model, counts, study.objective))
    off = max(abs(certificate.beside.estimate[name] - float(value)) for name, value in study.true_point.items())
    bracket = f"[{certificate.lower:.6g}, {certificate.upper:.6g}]"
    return {"certify": seconds, "bracket": bracket, "value": certificate.beside.estimated_value, "off": off}


def spark_frame(folder: str, memory: float) -> Any:
    """Return the files as a data frame of Spark on this machine."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]").appName("plumdp")
    options = {"spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.driver.memory": f"{memory:g}g"}
    for key, value in options.items():
        builder = builder.config(key, value)
    return builder.getOrCreate().read.parquet(folder)


def polars_frame(folder: str, memory: float) -> Any:
    """Return the files as a lazy frame of Polars."""
    import polars

    return polars.scan_parquet(f"{folder}/*.parquet")


def pandas_frame(folder: str, memory: float) -> Any:
    """Return the files as a data frame of pandas, which is in memory before the clock starts."""
    import pandas

    return pandas.read_parquet(folder)


def file_pattern(folder: str, memory: float) -> Any:
    """Return the pattern of the files, which DuckDB reads."""
    return f"{folder}/*.parquet"


ENGINES: dict[str, Callable[[str, float], Any]] = {
    "duckdb": file_pattern,
    "spark": spark_frame,
    "polars": polars_frame,
    "pandas": pandas_frame,
}


def count(engine: str, folder: str, name: str, files: str, memory: str) -> dict[str, Any]:
    """Return rows and seconds of counting a log, after the counts were checked, and what follows from them."""
    study = pl.case_study(name)
    expected = repetitions(study) * int(files)
    certified(study, pl.TransitionCounts(study.model.graph, expected, "adaptive"))  # loads all modules and kernels
    log = ENGINES[engine](folder, float(memory))
    start, cpu = time.perf_counter(), time.process_time()
    counts = pl.read_log(study.model, log).counts
    found = {"wall": time.perf_counter() - start, "seconds": time.process_time() - cpu}
    found["peak"] = timing.peak_gigabytes()
    if engine == "spark":
        used = end_java(log.sparkSession)
        found |= {"seconds": found["seconds"] + used.ru_utime + used.ru_stime, "peak": used.ru_maxrss * 1024 / 1e9}
    if not np.array_equal(counts.counts, expected):
        raise SystemExit(f"{engine} counts wrongly, for example transition {np.argmax(counts.counts != expected)}")
    return found | {"rows": counts.total} | certified(study, counts)


def end_java(session: Any) -> resource.struct_rusage:
    """Stop Spark and wait for its process; returns what it has used."""
    process = session.sparkContext._gateway.proc
    session.stop()
    process.stdin.close()
    process.wait()
    return resource.getrusage(resource.RUSAGE_CHILDREN)


def bare(folder: str) -> dict[str, Any]:
    """Return rows and seconds of DuckDB's aggregate alone."""
    start, cpu = time.perf_counter(), time.process_time()
    with duckdb.connect() as connection:
        query = f"SELECT *, count(*) AS n FROM '{folder}/*.parquet' GROUP BY ALL"
        rows = int(connection.execute(query).fetchnumpy()["n"].sum())
    seconds = {"wall": time.perf_counter() - start, "seconds": time.process_time() - cpu}
    return {"rows": rows, "peak": timing.peak_gigabytes()} | seconds


def measure(what: str, *arguments: str) -> dict[str, Any]:
    """Return one measurement of this process."""
    ways: dict[str, Callable[..., dict[str, Any]]] = {"write": write, "count": count, "bare": bare}
    return ways[what](*arguments)


def row(name: str, run: dict[str, Any]) -> str:
    """Return one line of the table."""
    figures = f"{run['rows']:,} | {run['wall']:.0f} | {run['seconds']:.0f} | {1e9 * run['seconds'] / run['rows']:.0f}"
    certificate = f"{run['certify']:.2f} | {run['bracket']} | {run['off']:.1e}" if "bracket" in run else "| | "
    return f"| {name} | {figures} | {run['peak']:.2f} | {certificate} |"


def main() -> None:
    """Write the log, count it with each engine, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--engine", nargs="+", choices=["bare", *ENGINES], default=["bare", "duckdb", "spark"])
    parser.add_argument("--study", default=STUDY)
    parser.add_argument("--memory", type=float, default=4, help="GB for Spark's Java machine")
    parser.add_argument("--folder", type=Path, help="where the log goes, about 6 bytes for each row; a temporary one")
    options = parser.parse_args()
    columns = "wall, s | CPU, s | CPU, ns per row | peak GB | certify, CPU s | bracket | estimate off by"
    print(f"| what | rows | {columns} |\n|---|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        written = timing.in_own_process(__file__, "write", folder, options.study, str(options.rows))
        print(row(f"write {written['files']} files, {written['bytes'] / 1e9:.2f} GB", written), flush=True)
        for engine in options.engine:
            given = [options.study, str(written["files"]), str(options.memory)]
            arguments = ["bare", folder] if engine == "bare" else ["count", engine, folder, *given]
            print(row(engine, timing.in_own_process(__file__, *arguments)), flush=True)


if __name__ == "__main__":
    if not timing.is_measured(measure):
        main()

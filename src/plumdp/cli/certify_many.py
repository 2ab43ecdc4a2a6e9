"""``plumdp certify-many``: certificates of many models and logs, listed in a file, in several processes.

Each job is one ``plumdp certify``, with the same options, messages and exit codes. A job that fails is a row of the
table like any other, and stops no other job, even if it takes its process with it.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple, TypeAlias

from rich.text import Text

from plumdp.base.errors import DataError
from plumdp.base.threads import usable_cores
from plumdp.cli.errors import UNEXPECTED
from plumdp.cli.options import Options
from plumdp.cli.outputs import require_new
from plumdp.cli.progress import LOGGER, progress_bar
from plumdp.cli.results import standard_output
from plumdp.model.text import number_of

Row: TypeAlias = dict[str, Any]

_PER_PROCESS = 200  # jobs after which processes are replaced, so that whatever they keep is given back
_WORST_FIRST = (UNEXPECTED, 74, 2, 3, 1, 4, 0)  # exit codes
_COLUMNS: dict[str, type] = {
    "job": str, "exit_code": int, "status": str, "objective": str, "lower": float, "upper": float, "confidence": float,
    "p_value": float, "verdict": str, "message": str, "assumptions": str, "cpu_seconds": float,
}  # fmt: skip


class Job(NamedTuple):
    """The name of a job, and what one would type after ``plumdp``."""

    name: str
    arguments: tuple[str, ...]


def certify_many(given: Options) -> int:
    """Run the jobs of a file, and return the worst of their exit codes."""
    output = given.output
    if output is not None:
        if output.suffix.lower() != ".parquet":
            raise DataError(f"--output {output}: the table is written as .parquet")
        require_new(output, force=given.force)
    listed = read_jobs(given.jobs)
    rows: list[Row] = []
    with progress_bar(f"certifying {len(listed):,} jobs") as show:
        for n_done, of_job in enumerate(run(listed, given.threads or usable_cores()), 1):
            rows += of_job
            show(n_done / len(listed), 1.0)
            LOGGER.info("%s: %s", of_job[0]["job"], of_job[0]["status"])
    place = {job.name: number for number, job in enumerate(listed)}
    rows.sort(key=lambda row: place[row["job"]])
    if output is not None:
        _write(rows, output)
    _print(rows, len(listed), output, as_json=given.json)
    codes = {row["exit_code"] for row in rows}
    return next((code for code in _WORST_FIRST if code in codes), UNEXPECTED)


def read_jobs(file: Path) -> list[Job]:
    """Return the jobs of a file, each with the options that are for all."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise DataError(f"{file}: there is no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: this is not TOML: {error}") from None
    tables = content.pop("job", [])
    if not (isinstance(tables, list) and tables and all(isinstance(table, dict) for table in tables)):
        raise DataError(f"{file}: there are no jobs; write a table [[job]] with name, model and data for each")
    jobs = [_job(file, number, content | table) for number, table in enumerate(tables, 1)]
    repeated = [name for name, times in Counter(job.name for job in jobs).items() if times > 1]
    if repeated:
        raise DataError(f"{file}: two jobs are called {repeated[0]}; give each a name of its own")
    return jobs


def _job(file: Path, number: int, table: dict[str, Any]) -> Job:
    """Return a job as the command that it stands for."""
    options = dict(table)
    name = str(options.pop("name", number))
    model, data = options.pop("model", None), options.pop("data", None)
    if not isinstance(model, str) or not data:
        raise DataError(f"{file}: job {name} needs a model and data, such as model = 'pump.prism', data = 'day-1.csv'")
    arguments = ["certify", model, *(data if isinstance(data, list) else [data]), "--json"]
    for key, value in options.items():
        flag = f"--{key.replace('_', '-')}"
        if isinstance(value, bool):
            arguments += [flag] * value
        else:
            arguments += [
                part for each in (value if isinstance(value, list) else [value]) for part in (flag, str(each))
            ]
    return Job(name, tuple(map(str, arguments)))


def run(jobs: Sequence[Job], n_processes: int) -> Iterator[list[Row]]:
    """Yield the rows of each job as soon as it is done."""
    together = _PER_PROCESS * n_processes
    for start in range(0, len(jobs), together):
        unfinished = list(jobs[start : start + together])
        try:
            for job, rows in _in_pool(unfinished, n_processes):
                unfinished.remove(job)
                yield rows
        except BrokenProcessPool:  # one of those that were running killed its process: which one, they show alone
            yield from map(_alone, unfinished)


def _in_pool(jobs: Sequence[Job], n_processes: int) -> Iterator[tuple[Job, list[Row]]]:
    pool = ProcessPoolExecutor(min(n_processes, len(jobs)), mp_context=get_context("spawn"))
    try:
        futures = {pool.submit(rows_of, job): job for job in jobs}
        for done in as_completed(futures):
            yield futures[done], done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _alone(job: Job) -> list[Row]:
    try:
        return next(rows for _, rows in _in_pool([job], 1))
    except BrokenProcessPool:
        return [_failed(job, UNEXPECTED, "the process of this job died, perhaps for want of memory", 0.0)]


def rows_of(job: Job) -> list[Row]:
    """Return a row for each certificate of a job, or one that says why there is none."""
    from plumdp.cli import run_command

    began, out, err = process_time(), StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_command(list(job.arguments))
    seconds = process_time() - began
    try:
        told = json.loads(out.getvalue())
    except ValueError:
        return [_failed(job, code, (out.getvalue() + err.getvalue()).strip(), seconds)]
    if "error" in told:
        return [_failed(job, code, told["error"]["message"], seconds)]
    return [_row(job, code, result, seconds) for result in (told if isinstance(told, list) else [told])]


def _row(job: Job, code: int, result: dict[str, Any], seconds: float) -> Row:
    names = ("status", "objective", "lower", "upper", "confidence", "p_value", "verdict")
    return {
        "job": job.name,
        "exit_code": code,
        **{name: result.get(name) for name in names},
        "message": result.get("sentence") or result.get("reason") or "",
        "assumptions": "; ".join(result.get("assumptions", ())),
        "cpu_seconds": seconds,
    }


def _failed(job: Job, code: int, message: str, seconds: float) -> Row:
    return {"job": job.name, "exit_code": code, "status": "failed", "message": message, "cpu_seconds": seconds}


def _write(rows: Sequence[Row], path: Path) -> None:
    """Write the table at once, so that whoever reads it never sees half of it."""
    import numpy as np

    from plumdp.data.duckdb_tables import write_parquet

    columns = {}
    for name, kind in _COLUMNS.items():
        values = [row.get(name) for row in rows]
        if kind is str:
            columns[name] = np.array([None if value is None else str(value) for value in values], dtype=np.object_)
        else:
            numbers = np.array([0 if value is None else float(value) for value in values])
            columns[name] = np.ma.masked_array(numbers.astype(kind), mask=[value is None for value in values])
    temporary = path.with_name(f".{path.name}.tmp")
    write_parquet(temporary, [columns])
    temporary.replace(path)


def _print(rows: Sequence[Row], n_jobs: int, output: Path | None, *, as_json: bool) -> None:
    """Print how many jobs ended how, and what is wrong with those that failed; as JSON in one line."""
    statuses = Counter(row["status"] for row in rows)
    failed = [row for row in rows if row["status"] == "failed"]
    if as_json:
        told = {"schema": "plumdp/jobs/1", "jobs": n_jobs, "results": dict(statuses)}
        told |= {"failed": {row["job"]: row["message"] for row in failed}, "output": output and str(output)}
        print(json.dumps(told, ensure_ascii=False))
        return
    console = standard_output()
    counted = ", ".join(f"{n:,} {status}" for status, n in statuses.items())
    console.print(Text(f"{n_jobs:,} jobs: {counted}", style="bold"))
    for row in rows:
        if row["status"] != "certified":
            console.print(Text(f"{row['job']}: {row['status']}" + (f": {row['message']}" if row["message"] else "")))
    if output is not None:
        console.print(Text(f"{output}: {number_of(len(rows), 'row')}"))

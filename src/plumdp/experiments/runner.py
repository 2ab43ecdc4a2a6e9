"""Runs cells in parallel and keeps each as a file, so that a study continues where it stopped; imports joblib."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, TypeAlias

import numpy as np

from plumdp import __version__
from plumdp.base.errors import DataError, MissingExtra, ModelError
from plumdp.data.duckdb_tables import Block, metadata_of, read_parquet, write_parquet
from plumdp.experiments.studies import run_cell
from plumdp.experiments.study import Cell, Row

Backend: TypeAlias = Literal["loky", "dask", "ray"]
"""Who runs the cells: processes of this machine, or a cluster of Dask or Ray."""

Finished: TypeAlias = Callable[[Cell, float], None]
"""Called with each cell when it is done, and its seconds."""


def run(cells: Sequence[Cell], folder: Path, *, jobs: int = -1, finished: Finished | None = None) -> None:
    """Run the cells that the folder does not hold yet, with joblib's current backend.

    The workers send their rows back and only this process writes, so they need no common disk.
    """
    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend

    folder.mkdir(parents=True, exist_ok=True)
    todo = [cell for cell in cells if not is_done(cell, folder)]
    streams = get_active_backend()[0].supports_return_generator
    parallel = Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered" if streams else "list")
    for cell, rows, seconds in parallel(delayed(_timed)(cell) for cell in todo):
        _keep(cell, rows, folder)
        if finished is not None:
            finished(cell, seconds)


def is_done(cell: Cell, folder: Path) -> bool:
    """Return whether this version of plumdp has run the cell."""
    file = _file(cell, folder)
    return file.is_file() and metadata_of(file).get("plumdp") == __version__


def read_cells(folder: Path) -> Block:
    """Return the rows of all cells in a folder, whoever ran them."""
    return read_parquet(sorted(folder.glob("*.parquet")))


@contextmanager
def workers(backend: Backend, jobs: int) -> Iterator[None]:
    """Make joblib use a backend: for Dask and Ray a cluster that the environment names, or a local one."""
    from joblib import parallel_config

    if backend == "loky":
        yield
    elif backend == "dask":
        with _dask_client(jobs), parallel_config("dask"):
            yield
    else:
        with _ray(jobs), parallel_config("ray"):
            yield


@contextmanager
def _dask_client(jobs: int) -> Iterator[Any]:
    """Connect to DASK_SCHEDULER_ADDRESS, or start processes with one thread each."""
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtra("--backend dask needs Dask: pip install 'dask[distributed]'") from None
    local: dict[str, Any] = {"n_workers": _number(jobs), "threads_per_worker": 1, "dashboard_address": None}
    with Client(**({} if "DASK_SCHEDULER_ADDRESS" in os.environ else local)) as client:
        yield client


@contextmanager
def _ray(jobs: int) -> Iterator[None]:
    """Connect to RAY_ADDRESS, or start a local Ray."""
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError:
        raise MissingExtra("--backend ray needs Ray: pip install ray") from None
    local: dict[str, Any] = {
        "num_cpus": _number(jobs),
        "include_dashboard": False,
        "log_to_driver": False,
        "logging_level": "ERROR",
    }
    ray.init(**({} if "RAY_ADDRESS" in os.environ else local))
    register_ray()
    try:
        yield
    finally:
        ray.shutdown()


def _number(jobs: int) -> int:
    """Return the number of workers that joblib takes a number for: -1 is one for each processor."""
    from joblib import effective_n_jobs

    return int(effective_n_jobs(jobs))


def _timed(cell: Cell) -> tuple[Cell, list[Row], float]:
    began = perf_counter()
    try:
        rows = run_cell(cell)
    except (ModelError, DataError) as error:
        raise type(error)(f"{cell.study} {cell.instance}, seed {cell.seed}: {error}") from None
    return cell, rows, perf_counter() - began


def _file(cell: Cell, folder: Path) -> Path:
    return folder / f"{cell.name}.parquet"


def _keep(cell: Cell, rows: list[Row], folder: Path) -> None:
    """Write the file of a cell at once, so that a crash leaves no incomplete file."""
    file = _file(cell, folder)
    temporary = file.with_suffix(".tmp")
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    write_parquet(temporary, [columns], metadata={"plumdp": __version__})
    temporary.replace(file)

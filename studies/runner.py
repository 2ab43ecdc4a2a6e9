"""Runs cells in parallel and keeps each as a file, so that a study continues where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

import numpy as np

from plumdp import __version__
from plumdp.base.errors import DataError, ModelError
from plumdp.base.threads import usable_cores
from plumdp.data.duckdb_engine import Block, metadata_of, write_parquet
from plumdp.data.duckdb_tables import read_parquet
from studies.registry import run_cell
from studies.study import Cell, Row

Finished: TypeAlias = Callable[[Cell, float], None]
"""Called with each cell when it is done, and its seconds."""


def run(cells: Sequence[Cell], folder: Path, *, jobs: int = -1, finished: Finished | None = None) -> None:
    """Run the cells that the folder does not hold yet, in so many processes; -1 is one for each processor.

    Workers send their rows back, and only this process writes. With one job, it runs the cells itself.
    """
    folder.mkdir(parents=True, exist_ok=True)
    todo = [cell for cell in cells if not is_done(cell, folder)]
    for cell, rows, seconds in _results(todo, jobs):
        _keep(cell, rows, folder)
        if finished is not None:
            finished(cell, seconds)


def is_done(cell: Cell, folder: Path) -> bool:
    """Return whether this version of plumdp has run the cell."""
    file = _file(cell, folder)
    try:
        return file.is_file() and metadata_of(file).get("plumdp") == __version__
    except DataError:  # it is damaged
        return False


def read_cells(folder: Path) -> Block:
    """Return the rows of all cells in a folder, whoever ran them."""
    return read_parquet(sorted(folder.glob("*.parquet")))


def _results(cells: Sequence[Cell], jobs: int) -> Iterator[tuple[Cell, list[Row], float]]:
    """Yield each cell, its rows and its seconds as soon as it is done."""
    n_workers = min(usable_cores() if jobs == -1 else jobs, len(cells))
    if n_workers <= 1:
        yield from map(_timed, cells)
        return
    pool = ProcessPoolExecutor(n_workers, mp_context=get_context("spawn"))
    try:
        for done in as_completed([pool.submit(_timed, cell) for cell in cells]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)  # after an error or an interruption, cells that have not begun are left


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

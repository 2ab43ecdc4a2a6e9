"""Writes the report of a study into a folder: its rows as Parquet, tables as Markdown, and figures."""

from __future__ import annotations

import os
import platform
from datetime import date
from pathlib import Path

import numpy as np

from plumdp import __version__
from plumdp.data.duckdb_engine import Block, write_parquet
from plumdp.data.duckdb_tables import read_parquet
from studies.registry import find_study
from studies.runner import read_cells
from studies.study import Row, Size


def write_report(name: str, size: Size, cells: Path, folder: Path, *, command: str) -> Path:
    """Write ``results.parquet``, figures, and ``results.md``, whose path is returned, from all cells that are there."""
    study = find_study(name)
    columns = read_cells(cells)
    write_parquet(folder / "results.parquet", [columns], metadata={"plumdp": __version__, "command": command})
    rows = _rows(columns)
    figures = study.draw(rows, folder)
    parts = [f"# Study {name} ({size})", provenance(command), *study.describe(rows)]
    parts += [f"![{figure.stem}]({figure.name})" for figure in figures]
    path = folder / "results.md"
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def draw_again(name: str, folder: Path) -> list[Path]:
    """Draw the figures of a study from the rows in its folder, and return those of the report."""
    return find_study(name).draw(_rows(read_parquet([folder / "results.parquet"])), folder)


def _rows(columns: Block) -> list[Row]:
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*(c.tolist() for c in columns.values()), strict=True)
    ]
    return sorted(rows, key=_place)


def _place(row: Row) -> tuple[str, list[int], int]:
    """Return a key that sorts ``rover:75,75`` before ``rover:125,125``, and keeps what belongs to one run in order."""
    family, _, sizes = row["instance"].partition(":")
    return family, [int(size) for size in sizes.split(",")], row["seed"]


def provenance(command: str) -> str:
    """Return how results were made: the command, the date, versions and the machine."""
    versions = f"plumdp {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    return f"`{command}` on {date.today()}; {versions}; {machine}."

"""The table of studies, and how one cell of any of them is run."""

from __future__ import annotations

from plumdp.base.errors import DataError
from studies.differences import DIFFERENCES
from studies.ellipsoid import ELLIPSOID
from studies.experiment import forget_peak_memory, peak_memory, warm_up
from studies.free_rows import TABLES
from studies.limit import LIMIT
from studies.many_parameters import PARAMETERS
from studies.online import ONLINE
from studies.scaling import SCALING
from studies.study import Cell, Row, Study
from studies.table import TABLE

STUDIES: tuple[Study, ...] = (
    TABLE,
    ONLINE,
    ELLIPSOID,
    SCALING,
    LIMIT,
    PARAMETERS,
    TABLES,
    DIFFERENCES,
)


def find_study(name: str) -> Study:
    """Return the study of this name.

    >>> find_study("scaling").plans["quick"].runs
    10000
    """
    for study in STUDIES:
        if study.name == name:
            return study
    raise DataError(f"there is no study {name!r}; choose one of paper, {', '.join(study.name for study in STUDIES)}")


def run_cell(cell: Cell) -> list[Row]:
    """Return the rows of a cell, which depend on nothing else, except for seconds and memory."""
    study = find_study(cell.study)
    warm_up()
    forget_peak_memory()
    rows = study.run(cell)
    common: Row = {"instance": cell.instance, "seed": cell.seed, "runs": cell.runs}
    memory = peak_memory()
    return [common | row | {"memory": memory} for row in rows]

"""Study: plans, the function that runs one cell, and the functions that make tables and figures of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from plumdp.case_studies import prism_constants

Size: TypeAlias = Literal["quick", "full"]
Row: TypeAlias = dict[str, Any]  # of text and numbers


@dataclass(frozen=True)
class Plan:
    """The instances, runs and seeds of a study, unless others are asked for."""

    instances: tuple[str, ...]
    seeds: tuple[int, ...]
    runs: int  # trajectories, or episodes


@dataclass(frozen=True)
class Cell:
    """The smallest part of a study that is run, and kept, on its own."""

    study: str  # its name: a cell is sent to workers, which look the study up
    instance: str
    seed: int
    runs: int

    @property
    def name(self) -> str:
        """A name for its file."""
        return f"{self.instance.replace(':', '-').replace(',', '-')}_seed-{self.seed}_runs-{self.runs}"


@dataclass(frozen=True)
class Study:
    """One study of ``python -m studies``: a file of its own, and one line in ``registry.STUDIES``."""

    name: str  # on the command line
    summary: str  # for the help of the command line
    plans: Mapping[Size, Plan]
    run: Callable[[Cell], list[Row]]  # depends on the cell alone, except for seconds and memory
    describe: Callable[[Sequence[Row]], list[str]]  # the parts of a report, in Markdown
    draw: Callable[[Sequence[Row], Path], list[Path]]  # writes figures into a folder, and returns those of the report
    check: Callable[[str], object] = prism_constants  # refuses an instance that there is not

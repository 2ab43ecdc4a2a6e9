"""Runs of a model as files: columns are looked up by transition, and DuckDB writes them in large pieces."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError
from plumdp.data.columns import ACTION, EPISODE, STEP, needed_columns, next_columns, quoted, state_columns
from plumdp.data.duckdb_tables import Block, Progress, connect, literal, watched
from plumdp.data.runs import Rng, make_plan
from plumdp.data.trajectories import Form, Trajectories, joined, recorded_blocks
from plumdp.model.graph import Graph
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy
from plumdp.model.space import Point

_WRITERS = {
    "parquet": "FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd",
    "csv": "FORMAT csv, HEADER",
    "json": "FORMAT json",
    "jsonl": "FORMAT json",
}
_MEMORY = 5e8  # bytes for DuckDB
_PIECE = 1 << 23  # rows that are handed over at once; if there are no more, they are written from where they are
_SIMULATED = 0.5  # share of the work that is done when the last piece is there


def require_run_format(path: str | Path) -> str:
    """Return the format of a file, by its name; names without a known ending are refused."""
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in _WRITERS:
        formats = ", ".join(f".{name}" for name in _WRITERS)
        raise DataError(f"{path}: the name of a file of runs must end in one of {formats}")
    return ending


def write_runs(
    model: ParametricMDP,
    point: Point,
    trajectories: int,
    path: str | Path,
    *,
    rng: Rng,
    max_steps: int,
    policy: Policy = "uniform",
    stop: npt.ArrayLike | None = None,
    form: Form = "transitions",
    progress: Progress | None = None,
) -> int:
    """Write the runs of ``record`` to a Parquet, CSV or JSON file, and return how many steps they have.

    The name says the format: ``.parquet``, ``.csv``, or ``.json`` and ``.jsonl`` for one object per line. The file gets
    its name when it is complete.

    >>> from tempfile import TemporaryDirectory
    >>> from plumdp import case_study, read_log
    >>> study = case_study("betting:25")
    >>> with TemporaryDirectory() as folder:
    ...     write_runs(study.model, study.true_point, 100, f"{folder}/runs.csv", rng=1, max_steps=25)
    ...     print(read_log(study.model, f"{folder}/runs.csv"))
    2500
    2,500 rows of transitions: 2,500 matched, 0 rejected
    """
    ending = require_run_format(path)
    blocks = recorded_blocks(make_plan(model, point, trajectories, rng, max_steps, policy, stop))
    table, n_steps = _Table.of(model.graph, form), 0

    def pieces() -> Iterator[Block]:
        nonlocal n_steps
        for piece in _in_pieces(blocks):
            n_steps += len(piece)
            if progress is not None and len(piece):
                progress(round(_SIMULATED * int(piece.episode[-1] + 1)), trajectories)
            yield table.columns(piece)

    target = Path(path).absolute()
    with TemporaryDirectory(prefix=".plumdp-", dir=target.parent) as folder:
        prepared = Path(folder) / target.name
        _write(prepared, pieces(), table, _WRITERS[ending], progress)
        os.replace(prepared, target)
    return n_steps


@dataclass(frozen=True, eq=False)
class _Table:
    """What the columns of each transition are; the name of its action as a position in a list."""

    form: Form
    state: dict[str, npt.NDArray[Any]]  # each (n_transitions)
    after: dict[str, npt.NDArray[Any]]  # each (n_transitions)
    action: npt.NDArray[Any]  # (n_transitions)
    words: tuple[str, ...]

    @staticmethod
    def of(graph: Graph, form: Form) -> _Table:
        needed_columns(graph, form)  # raises an error if two of them have one name
        choice = graph.choice_of_transition()
        before, names = graph.state_of_choice()[choice], state_columns(graph, form)
        values = graph.states.values()
        state = {name: _plain(column[before]) for name, column in zip(names, values, strict=True)}
        names = next_columns(graph) if form == "transitions" else names
        after = {name: _plain(column[graph.successor]) for name, column in zip(names, values, strict=True)}
        return _Table(form, state, after, _plain(graph.action[choice]), graph.action_names)

    def columns(self, runs: Trajectories) -> Block:
        """Return the columns of some runs, as ``Trajectories.columns`` does, but for the names of actions."""
        taken = runs.transition
        if self.form == "transitions":
            state, after = ({name: column[taken] for name, column in part.items()} for part in (self.state, self.after))
            return {EPISODE: runs.episode, STEP: runs.step, **state, ACTION: self.action[taken], **after}
        row, is_end = runs.rows_with_ends()
        taken = taken[row]
        state = {name: np.where(is_end, self.after[name][taken], self.state[name][taken]) for name in self.state}
        action = np.where(is_end, self.action.dtype.type(-1), self.action[taken])
        return {EPISODE: runs.episode[row], STEP: runs.step[row] + is_end.astype(np.int32), **state, ACTION: action}

    def selected(self, block: Block) -> str:
        """Return the columns in SQL; actions by their names, and none behind the end of a run."""
        words = ", ".join(map(literal, self.words))
        name = f"list_extract([{words}], {quoted(ACTION)}::BIGINT + 1)"
        if self.form == "trajectories":
            name = f"CASE WHEN {quoted(ACTION)} >= 0 THEN {name} END"
        return ", ".join(f"{name} AS {quoted(each)}" if each == ACTION else _selected(each, block) for each in block)


def _selected(name: str, block: Block) -> str:
    """Return a column as the type that it has in files."""
    kinds = {"O": "VARCHAR", "i": "BIGINT" if block[name].itemsize == 8 else "INTEGER", "b": "BOOLEAN"}
    return f"{quoted(name)}::{kinds[block[name].dtype.kind]} AS {quoted(name)}"


def _plain(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return values as DuckDB takes them: words as objects, whole numbers in as few bytes as they need."""
    if values.dtype.kind != "i":
        return values.astype(np.object_) if values.dtype.kind == "U" else values
    largest = int(np.abs(values.astype(np.int64)).max(initial=0))
    return values.astype(np.int8 if largest < 128 else np.int16 if largest < 1 << 15 else values.dtype)


def _in_pieces(blocks: Iterator[Trajectories]) -> Iterator[Trajectories]:
    """Yield runs in larger blocks."""
    waiting: list[Trajectories] = []
    for block in blocks:
        waiting.append(block)
        if sum(map(len, waiting)) >= _PIECE:
            yield joined(waiting)
            waiting = []
    if waiting:
        yield joined(waiting)


def _write(path: Path, pieces: Iterator[Block], table: _Table, options: str, progress: Progress | None) -> None:
    """Write pieces to a file: a single one directly, several through a table, which is on disk if they are large."""
    with connect(_MEMORY) as connection:
        piece, source = next(pieces), "piece"
        connection.register("piece", piece)
        for following in pieces:
            if source == "piece":
                connection.execute("CREATE TEMP TABLE pieces AS SELECT * FROM piece")
            source = "pieces"
            connection.register("piece", following)
            connection.execute("INSERT INTO pieces SELECT * FROM piece")
        with watched(connection, progress, _SIMULATED, 1.0):
            query = f"SELECT {table.selected(piece)} FROM {source}"
            connection.execute(f"COPY ({query}) TO {literal(str(path))} ({options})")

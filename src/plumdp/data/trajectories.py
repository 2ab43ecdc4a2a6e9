"""The runs themselves, step by step, as the columns of a log in either of its two forms, and as files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from plumdp.base.edge import is_sheet, replacing
from plumdp.base.errors import DataError, Option
from plumdp.base.progress import tell_share
from plumdp.base.vocabulary import EPISODE
from plumdp.base.vocabulary import Form as Form
from plumdp.data.columns import ACTION, STEP, needed_columns, next_columns, state_columns
from plumdp.data.context_counts import contexts_of
from plumdp.data.counts import CountArray, TransitionCounts
from plumdp.data.duckdb_engine import Block, connect
from plumdp.data.duckdb_tables import watched
from plumdp.data.names import literal, quoted
from plumdp.data.pilots import is_wanted, pilot_size, planned_moments, planned_pilot
from plumdp.data.runs import Rng, RunPlan, make_plan, split
from plumdp.data.same_files import DataPart, new_parts
from plumdp.data.seen import Seen
from plumdp.data.time_parts import Recorder, runs_of_parts
from plumdp.model.graph import BoolArray, Graph, Indices, IntArray, owners_of, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.policy import Policy
from plumdp.model.space import Point
from plumdp.model.text import number_of, one_line

Columns: TypeAlias = dict[str, npt.NDArray[Any]]
Written: TypeAlias = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]

_MAX_BLOCK = 1 << 20  # steps in a block of runs, unless one run has more


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Runs of a model, one entry per step, ordered by run and step. A run without a step leaves no entry."""

    graph: Graph
    episode: CountArray  # (n_steps): number of the run
    step: IntArray  # (n_steps): 0, 1, … within each run
    transition: IntArray  # (n_steps)
    seed: str = ""  # of the plan of the runs, if plumdp made them

    def __repr__(self) -> str:
        return one_line(self, number_of(len(np.unique(self.episode)), "run"), number_of(len(self), "step"))

    def __len__(self) -> int:
        return len(self.transition)

    @property
    def choice(self) -> IntArray:
        """The choice of each step."""
        return owners_of(self.graph.first_transition, self.transition)

    def counts(self, *, pilot: bool = True) -> TransitionCounts:
        """Return the counts of transitions, and those after 4, 16, … runs that have a step, unless not wanted."""
        runs, n = np.unique(self.episode), self.graph.n_transitions
        sizes = planned_moments(len(runs), n_transitions=n) if is_wanted(pilot) else ()
        stage = np.searchsorted(runs[np.array(sizes, dtype=np.int64) - 1], self.episode)  # how many moments came before
        parts = np.bincount(stage * n + self.transition, minlength=(len(sizes) + 1) * n).reshape(-1, n)
        *moments, counts = parts.cumsum(axis=0)
        kept = planned_pilot([*map(Seen, moments)], len(runs), sizes=sizes) if moments else None
        recorder = Recorder(runs_of_parts(len(runs), sizes, n))
        last = runs[np.array(recorder.ends, dtype=np.int64) - 1]
        recorder.add(np.searchsorted(last, self.episode), self.transition)
        time = recorder.parts(len(runs)) if sizes else None
        n_pilot = 0 if kept is None else pilot_size(len(runs))
        contexts = contexts_of(self.graph, self.episode, self.transition, n_pilot)
        told: dict[str, Any] = {"parts": self._parts, "time": time}
        told |= {"contexts": contexts} if contexts else {"no_contexts": "size"}
        return TransitionCounts(self.graph, counts, "trajectories", kept, **told)

    @cached_property
    def _parts(self) -> tuple[DataPart, ...]:
        """What counts of these runs are made of, however often they are counted."""
        return new_parts(len(self), key=self.seed, is_simulated=True)

    def rows_with_ends(self) -> tuple[Indices, BoolArray]:
        """Return the steps with the last of each run twice, and which rows are these second ones: the ends of runs."""
        last = np.flatnonzero(np.append(self.episode[1:] != self.episode[:-1], True)[: len(self)])
        row = np.insert(np.arange(len(self)), last + 1, last)
        return row, np.insert(np.zeros(len(self), dtype=np.bool_), last + 1, True)

    def columns(self, form: Form = "transitions") -> Columns:
        """Return the runs as the columns of a log: ``episode``, ``step``, one per state variable, and ``action``.

        As "transitions", each row also has the next state, its variables with ``next_`` before their names. As
        "trajectories", each run has one more row behind its last step: the state it ended in, and None as action.
        A state variable that is itself called episode, step or action is named ``state_episode`` and so on.
        """
        if form not in get_args(Form):
            raise DataError(Option("form", form), f": choose one of {', '.join(map(repr, get_args(Form)))}")
        columns = StepColumns.of(self.graph, form).of_runs(self)
        names = np.array([*self.graph.action_names, None], dtype=object)  # None for the action -1
        return {**columns, ACTION: names[columns[ACTION]]}


def record(
    model: ParametricMDP,
    point: Point,
    trajectories: int,
    *,
    rng: Rng,
    max_steps: int,
    policy: Policy = "uniform",
    stop: npt.ArrayLike | None = None,
) -> Trajectories:
    """Return the runs that ``simulate`` counts with the same arguments.

    Parameters
    ----------
    model, point, trajectories, rng, max_steps, policy, stop
        As in ``simulate``.

    Returns
    -------
    Trajectories
        The runs, step by step.

    Examples
    --------
    >>> from plumdp import case_study
    >>> study = case_study("betting:25")
    >>> runs = record(study.model, study.true_point, 2, rng=1, max_steps=25)
    >>> len(runs), sorted(runs.columns())
    (50, ['action', 'episode', 'money', 'next_money', 'next_step', 'state_step', 'step'])
    """
    return joined([*recorded_blocks(make_plan(model, point, trajectories, rng, max_steps, policy, stop))])


def joined(blocks: Sequence[Trajectories]) -> Trajectories:
    """Return the runs of several blocks, at least one, as one."""
    fields = ("episode", "step", "transition")
    episode, step, transition = (
        read_only(np.concatenate([getattr(block, field) for block in blocks])) for field in fields
    )
    return Trajectories(blocks[0].graph, episode, step, transition, blocks[0].seed)


def recorded_blocks(plan: RunPlan) -> Iterator[Trajectories]:
    """Yield the runs of a plan block by block: whole runs, about a million steps at most."""
    for block in split(0, plan.trajectories, max(1, min(plan.block_size, _MAX_BLOCK // plan.max_steps))):
        parts = []
        for runs, steps in plan.walk(block):
            part = np.full((len(block), len(steps)), -1, dtype=np.int32)
            part[runs - np.uint64(block.start)] = steps.T
            parts.append(part)
        taken = np.hstack(parts) if parts else np.empty((0, 0), dtype=np.int32)
        episode, step = np.nonzero(taken >= 0)
        yield Trajectories(
            plan.graph,
            read_only(episode.astype(np.int64) + block.start),
            read_only(step.astype(np.int32)),
            read_only(taken[episode, step]),
            plan.seed,
        )


_WRITERS = {
    "parquet": "FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd",
    "csv": "FORMAT csv, HEADER",
    "json": "FORMAT json",
    "jsonl": "FORMAT json",
}
_MEMORY = 5e8  # bytes for DuckDB
_PIECE = 1 << 23  # rows that are handed over at once; if there are no more, they are written from where they are


def require_run_format(path: str | Path) -> str:
    """Return the format of a file, by its name; names without a known ending are refused."""
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in _WRITERS:
        formats = ", ".join(f".{name}" for name in _WRITERS)
        raise DataError(f"{path}: the name of a file of runs must end in one of {formats}")
    if is_sheet(path):
        raise DataError(f"{path}: runs are read by plumdp and not for spreadsheets; write a file without .sheet")
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
) -> int:
    """Write the runs of ``record`` to a Parquet, CSV or JSON file, and return how many steps they have.

    The name says the format: ``.parquet``, ``.csv``, or ``.json`` and ``.jsonl`` for one object per line. The file gets
    its name when it is complete.

    Parameters
    ----------
    model, point, trajectories
        As in ``simulate``.
    path
        The file.
    rng, max_steps, policy, stop
        As in ``simulate``.
    form
        "transitions" or "trajectories", as in ``read_log``.

    Returns
    -------
    int
        How many steps the runs have.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from plumdp import case_study, read_log
    >>> study = case_study("betting:25")
    >>> with TemporaryDirectory() as folder:
    ...     write_runs(study.model, study.true_point, 100, f"{folder}/runs.csv", rng=1, max_steps=25)
    ...     print(read_log(study.model, f"{folder}/runs.csv"))
    2500
    2,500 log rows: 2,500 matched, 0 rejected
    """
    ending = require_run_format(path)
    blocks = recorded_blocks(make_plan(model, point, trajectories, rng, max_steps, policy, stop))
    table, n_steps = StepColumns.of(model.graph, form, _plain), 0

    def pieces() -> Iterator[Block]:
        nonlocal n_steps
        for piece in _in_pieces(blocks):
            n_steps += len(piece)
            if len(piece):
                tell_share("simulating", int(piece.episode[-1] + 1), trajectories)
            yield table.of_runs(piece)

    with replacing(path) as fresh:
        _write(fresh, pieces(), table, _WRITERS[ending])
    return n_steps


@dataclass(frozen=True, eq=False)
class StepColumns:
    """What the columns of each transition are; the name of its action as a position in a list."""

    form: Form
    state: dict[str, npt.NDArray[Any]]  # each (n_transitions)
    after: dict[str, npt.NDArray[Any]]  # each (n_transitions)
    action: npt.NDArray[Any]  # (n_transitions)
    words: tuple[str, ...]

    @staticmethod
    def of(graph: Graph, form: Form, written: Written = np.asarray) -> StepColumns:
        """Return the columns of a log of this form, each as ``written`` makes it."""
        needed_columns(graph, form)  # raises an error if two of them have one name
        choice = graph.choice_of_transition()
        before, names = graph.state_of_choice()[choice], state_columns(graph, form)
        values = graph.states.values()
        state = {name: written(column[before]) for name, column in zip(names, values, strict=True)}
        names = next_columns(graph) if form == "transitions" else names
        after = {name: written(column[graph.successor]) for name, column in zip(names, values, strict=True)}
        return StepColumns(form, state, after, written(graph.action[choice]), graph.action_names)

    def of_runs(self, runs: Trajectories) -> Columns:
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


def _write(path: Path, pieces: Iterator[Block], table: StepColumns, options: str) -> None:
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
        with watched(connection, "writing"):
            query = f"SELECT {table.selected(piece)} FROM {source}"
            connection.execute(f"COPY ({query}) TO {literal(str(path))} ({options})")

"""Logs in data frames, each counted by its own engine, through Narwhals."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, Option
from plumdp.data.columns import (
    ACTION,
    COUNT,
    EPISODE,
    LARGEST_STEP,
    N_ALIKE,
    N_COPIES,
    NEXT_STEP,
    PLACE,
    SECOND_STEP,
    STAGE,
    STEP,
    STEP_BEFORE,
    LogForm,
    Source,
    needed_columns,
    next_columns,
    not_steps,
    state_columns,
)
from plumdp.data.duckdb_tables import Block, columns_of
from plumdp.data.frame_mappings import mapped_expression
from plumdp.data.log_pilots import Moments, SharedRun, not_numbered
from plumdp.data.report import BrokenEpisode, RepeatedStep
from plumdp.data.sql import keys
from plumdp.model.graph import Graph


@dataclass(frozen=True, eq=False)
class FrameLog:
    """A log in a data frame of pandas, Polars, PySpark, DuckDB or another library that Narwhals knows."""

    frame: Any  # a lazy frame of Narwhals

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [str(name) for name in self.frame.collect_schema().names()]

    def read_once(self, columns: Collection[str]) -> FrameLog:
        """Return the log as it is: data frames are read quickly."""
        return self

    def count(
        self, graph: Graph, form: LogForm, columns: Mapping[str, Source], moments: Moments | None = None
    ) -> Iterator[Block]:
        """Yield the different rows and how often each occurs, with their place in the run where that matters.

        With ``moments``, each row has its stage.
        """
        frame = self.frame if moments is None or not moments.sizes else self._with_stage(moments)
        yield from self._count(frame, graph, form, columns)

    def first_rows(self, form: LogForm, columns: Mapping[str, Source], offenders: Sequence[Any]) -> Sequence[str]:
        """Return nothing for each: the rows of a data frame are easily searched where it is."""
        return [""] * len(offenders)

    def find_runs(self, column: str, *, in_order: bool) -> tuple[int, bool]:
        """Return how many runs there are, and whether each row names its run; ``in_order`` refuses unordered names."""
        import narwhals as nw

        kind = self.frame.collect_schema()[column]
        if in_order and not (kind.is_numeric() or kind.is_temporal()):
            raise not_numbered(column, str(kind))
        found = _collect(self._runs(column).select(named=nw.col("run").count(), n=nw.len()))
        return int(found["named"][0]), int(found["named"][0]) == int(found["n"][0])

    def shared_runs(self, column: str, step: Source | None) -> SharedRun | None:
        """Return nothing: a data frame has no files."""
        return None

    def has_rows(self, file: str) -> bool:
        """Return that a file has no rows: a data frame has no files."""
        return False

    def count_first_rows(self, graph: Graph, form: LogForm, columns: Mapping[str, Source], n: int) -> Iterator[Block]:
        """Yield what ``count`` would yield if the log had ended after n rows."""
        engine = self.frame.implementation
        if not (engine.is_pandas_like() or engine.is_polars()):
            raise DataError(
                Option("order", "time"),
                f": the rows of a table of {engine.name.title()} have no order of their own; write them to Parquet "
                "files in their order, or number the runs and say ",
                Option("order", "runs"),
            )
        yield from self._count(self.frame.head(n), graph, form, columns)

    def _with_stage(self, moments: Moments) -> Any:
        """Return the frame with the stage of each row; rows without a run are of the last."""
        import narwhals as nw

        runs, stage = self._runs(moments.column).drop_nulls().with_row_index(STAGE, order_by="run"), nw.col(STAGE)
        last, number = len(moments.sizes), nw.lit(0)
        for i, size in enumerate(moments.sizes[:-1], start=1):
            number = nw.when(stage >= size).then(nw.lit(i)).otherwise(number)
        first = runs.filter(stage < moments.sizes[-1]).with_columns(number.alias(STAGE))
        joined = self.frame.join(first, how="left", left_on=moments.column, right_on="run")
        return joined.with_columns(stage.fill_null(last).cast(nw.Int64))

    def _runs(self, column: str) -> Any:
        import narwhals as nw

        return self.frame.select(run=nw.col(column)).unique()

    def _count(self, frame: Any, graph: Graph, form: LogForm, columns: Mapping[str, Source]) -> Iterator[Block]:
        if form == "counts":
            yield _collect(frame.select(**_expressions(frame, columns)))
            return
        staged = [STAGE] if STAGE in frame.collect_schema().names() else []
        rows, group = self._rows(frame, graph, form, columns, staged), [*keys(graph), *staged]
        try:
            if form == "transitions":
                once = STEP in columns and bool(len(_collect(_repeats(rows))[STEP]))
                counted = _count_once(_with_place_of_move(_alike(rows)), group) if once else _count(rows, group)
                yield _collect(counted)
                return
            block = _collect(_count(_with_place(graph, rows), [*group, PLACE]))
            if "duplicate" in block[PLACE]:  # which may be copies of a row
                block = _collect(_count_once(_with_place(graph, _alike(rows)), group))
            yield block
        except TypeError as error:  # as pandas says of values like [1]
            raise DataError(f"the rows of the log cannot be compared: {error}") from None

    def _rows(
        self, frame: Any, graph: Graph, form: LogForm, columns: Mapping[str, Source], others: Sequence[str]
    ) -> Any:
        """Return the rows under the names that columns have in counts, steps of trajectories as numbers."""
        shared = dict(zip(needed_columns(graph, form), _names_in_counts(graph, form), strict=True))
        found = {shared.get(name, name): each for name, each in _expressions(frame, columns).items()}
        rows = frame.select(*others, **found)
        return _with_numbers(rows, str(columns[STEP])) if form == "trajectories" else rows

    def repeated_steps(self, form: LogForm, columns: Mapping[str, Source], n: int) -> list[RepeatedStep]:
        """Return a few steps of which there are several rows that are not alike."""
        import narwhals as nw

        rows = self.frame.select(**_expressions(self.frame, columns))
        rows = _with_numbers(rows, str(columns[STEP])) if form == "trajectories" else rows
        n_alike, n_rows = nw.col(N_ALIKE), "n_rows_of_step"
        steps = _alike(rows).drop_nulls([EPISODE, STEP]).group_by(EPISODE, STEP)
        steps = steps.agg(n_alike.len().alias(N_COPIES), n_alike.sum().alias(n_rows))
        found = _collect(steps.filter(nw.col(N_COPIES) > 1).sort(EPISODE, STEP).head(n))
        lists = (found[name].tolist() for name in (EPISODE, STEP, n_rows))
        return [RepeatedStep(*row) for row in zip(*lists, strict=True)]

    def broken_episodes(self, columns: Mapping[str, Source], n: int) -> list[BrokenEpisode]:
        """Return a few episodes that lack steps, those that lack most."""
        import narwhals as nw

        rows = self.frame.select(**{name: nw.col(str(columns[name])) for name in (EPISODE, STEP)})
        rows = _with_numbers(rows, str(columns[STEP])).drop_nulls()
        step = nw.col(STEP)
        spans = rows.group_by(EPISODE).agg(
            nw.len().alias("n_rows"), n_steps=step.n_unique(), first=step.min(), last=step.max()
        )
        missing = (nw.col("last") - nw.col("first") + 1 - nw.col("n_steps")).abs()
        worst = spans.with_columns(missing=missing).filter(nw.col("missing") > 0)
        found = _collect(worst.sort("missing", EPISODE, descending=[True, False]).head(n))
        return [BrokenEpisode(*row[:5]) for row in zip(*(found[name].tolist() for name in found), strict=True)]


def open_frame(source: Any) -> FrameLog:
    """Return the log in a data frame."""
    import narwhals as nw

    try:
        return FrameLog(nw.from_native(source).lazy())
    except TypeError:
        raise DataError(
            f"a log of type {type(source).__name__} cannot be read; give a path, a pattern, a list of paths, "
            "or a data frame of pandas, Polars, PyArrow, PySpark or DuckDB"
        ) from None


def is_arrow(source: Any) -> bool:
    """Return whether this is a table of PyArrow, which cannot look at the next row itself."""
    import narwhals as nw

    return nw.dependencies.is_pyarrow_table(source)


def _expressions(frame: Any, columns: Mapping[str, Source]) -> dict[str, Any]:
    """Return the columns as expressions, those that are mapped too."""
    import narwhals as nw

    schema = frame.collect_schema()
    return {
        name: nw.col(source) if isinstance(source, str) else mapped_expression(source, schema)
        for name, source in columns.items()
    }


def _names_in_counts(graph: Graph, form: LogForm) -> list[str]:
    return keys(graph) if form == "transitions" else [EPISODE, STEP, *state_columns(graph), ACTION]


def _with_numbers(rows: Any, column: str) -> Any:
    """Return the rows with steps as numbers, null where they are none."""
    import narwhals as nw

    kind = rows.collect_schema()[STEP]
    if not kind.is_numeric():
        raise not_steps(column, str(kind))
    if kind.is_integer():
        return rows.with_columns(nw.col(STEP).cast(nw.Int64))
    step = nw.col(STEP).cast(nw.Float64)
    return rows.with_columns(nw.when(step.is_finite() & (step.abs() < LARGEST_STEP)).then(step))


def _with_place(graph: Graph, rows: Any) -> Any:
    """Return the rows with the next state, and their place in the run: see the query in ``plumdp.data.sql``."""
    import narwhals as nw

    def shifted(name: str, by: int) -> Any:
        return nw.col(name).shift(-by).over(EPISODE, order_by=STEP)

    state = zip(state_columns(graph), next_columns(graph), strict=True)
    rows = rows.with_columns(
        **{after: shifted(name, 1) for name, after in state},
        **{STEP_BEFORE: shifted(STEP, -1), NEXT_STEP: shifted(STEP, 1), SECOND_STEP: shifted(STEP, 2)},
    )
    step, before, after, second = map(nw.col, (STEP, STEP_BEFORE, NEXT_STEP, SECOND_STEP))
    place = nw.lit("step")
    for applies, word in (  # the last that applies is the one that is told
        ((after != step + 1) | (second == after), "gap"),
        (after.is_null(), "last"),
        ((step == before) | (step == after), "duplicate"),
        (nw.col(EPISODE).is_null() | step.is_null(), "unplaced"),
    ):
        place = nw.when(applies).then(nw.lit(word)).otherwise(place)
    return rows.with_columns(place.alias(PLACE))


def _with_place_of_move(rows: Any) -> Any:
    """Return different transitions with their place: one of several with the same run and step is a duplicate."""
    import narwhals as nw

    rows = rows.with_columns(nw.len().over(EPISODE, STEP).alias(N_COPIES))  # for now, all different rows of a step
    is_repeated = (nw.col(N_COPIES) > 1) & ~nw.col(EPISODE).is_null() & ~nw.col(STEP).is_null()
    return rows.with_columns(nw.when(is_repeated).then(nw.lit("duplicate")).otherwise(nw.lit("step")).alias(PLACE))


def _repeats(rows: Any) -> Any:
    """Return a step of a run that has several rows, if there is one."""
    import narwhals as nw

    steps = rows.select(EPISODE, STEP).drop_nulls().group_by(EPISODE, STEP).agg(nw.len().alias(COUNT))
    return steps.filter(nw.col(COUNT) > 1).head(1)


def _alike(rows: Any) -> Any:
    """Return the different rows, and how often each of them is there."""
    import narwhals as nw

    return rows.group_by(*rows.collect_schema().names()).agg(nw.len().alias(N_ALIKE))


def _count(rows: Any, group: Sequence[str]) -> Any:
    import narwhals as nw

    return rows.group_by(*group).agg(nw.len().alias(COUNT))


def _count_once(rows: Any, group: Sequence[str]) -> Any:
    """Return how often different rows with their place and number of copies occur."""
    import narwhals as nw

    counts_each = (nw.col(PLACE) == "duplicate") | nw.col(EPISODE).is_null() | nw.col(STEP).is_null()
    copies = nw.when(counts_each).then(nw.lit(0)).otherwise(nw.col(N_ALIKE) - 1)
    rows = rows.with_columns(copies.alias(N_COPIES))
    rows = rows.with_columns((nw.col(N_ALIKE) - nw.col(N_COPIES)).alias(COUNT))
    return rows.group_by(*group, PLACE, N_COPIES).agg(nw.col(COUNT).sum())


def _collect(frame: Any) -> Block:
    """Return the columns of a small result."""
    if frame.implementation.is_duckdb():
        return columns_of(frame.to_native())
    collected = frame.collect()
    return {name: _column(collected[name]) for name in collected.columns}


def _column(series: Any) -> npt.NDArray[Any]:
    is_null = series.is_null().to_numpy()
    if series.dtype.is_integer() or series.dtype.is_float():
        return np.ma.masked_array(series.fill_null(0).to_numpy(), is_null) if is_null.any() else series.to_numpy()
    values = np.empty(len(series), dtype=np.object_)
    values[:] = series.to_list()
    values[is_null] = None
    return values

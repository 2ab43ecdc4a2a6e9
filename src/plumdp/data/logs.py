"""Logs of any size, counted where they are: files and data frames by DuckDB, those of Spark by Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from plumdp.base.errors import DataError, Option
from plumdp.base.progress import tell, working
from plumdp.base.vocabulary import CutOff, NoBets, Steps
from plumdp.data.columns import (
    FIRST_COUNTS,
    MOMENT,
    STEP,
    LogForm,
    Source,
    find_columns,
    find_runs,
    source_columns,
    without_actions,
)
from plumdp.data.counts import Pilot, Sampling, TransitionCounts
from plumdp.data.duckdb_tables import (
    MEMORY,
    Progress,
    column_types,
    connect,
    find_files,
    has_rows,
    scan,
    text_bytes,
)
from plumdp.data.file_logs import FileLog
from plumdp.data.files import is_counts_file
from plumdp.data.frames import FRAME, frame_columns, has_order
from plumdp.data.ingestion import TransitionCounter
from plumdp.data.log_files import WHOLE, LogFile, describe_files, now
from plumdp.data.log_pilots import (
    LogPilot,
    Moments,
    Order,
    after_files,
    order_of_counts,
    pilot_of_log,
    runs_of_counts,
)
from plumdp.data.mappings import Actions, StateMaps, read_mapping
from plumdp.data.periods import in_periods, is_period, steps_of
from plumdp.data.rejected_rows import require_rejected, write_rejected
from plumdp.data.report import NAMED, IngestionReport, refusal, require_outcomes
from plumdp.data.reward_values import Rewards, value_columns
from plumdp.data.same_files import new_parts, part_of_file, refuse_copies, refuse_same_files
from plumdp.data.spark_logs import SPARK, is_spark, open_spark
from plumdp.data.time_parts import RUNS_PER_PART, TimeParts, parts_at, runs_of_parts
from plumdp.model.graph import Graph, read_only
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.text import html_table, number_of, one_line
from plumdp.model.unmodelled_exits import elsewhere_of

_MAYBE_EMPTY = 1 << 16  # bytes: a file with the names of its columns alone has fewer

Partitions: TypeAlias = int | Literal["files"] | None


@dataclass(frozen=True, eq=False)
class Log:
    """What was read from a log: the counts of what was matched, and what became of every row."""

    counts: TransitionCounts

    @property
    def report(self) -> IngestionReport:
        """What became of every row."""
        report = self.counts.report
        if report is None:
            raise DataError("these counts do not come from a log: nothing is known about rows")
        return report

    def __repr__(self) -> str:
        return one_line(self, self.report.summary, number_of(self.counts.total, "step"))

    def __str__(self) -> str:
        return str(self.report)

    def _repr_html_(self) -> str:
        report = self.report
        rows = [(kind, f"{n:,}", ", ".join(report.worst.get(kind, ()))) for kind, n in report.rows.items() if n]
        return f"<p><b>{escape(report.summary)}</b></p>{html_table(rows, ('rows', 'number', 'examples'))}"


@working("reading the log")
def read_log(
    model: ParametricMDP,
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    states: StateMaps | None = None,
    actions: Actions | None = None,
    form: LogForm | None = None,
    sampling: Sampling = "adaptive",
    order: Order | None = None,
    expected: float | None = None,
    pilot: bool = True,
    on_unmatched: Literal["error", "report"] = "error",
    cut_off: CutOff | None = None,
    steps: Steps | None = None,
    allow_impossible: int = 0,
    rejected: str | Path | None = None,
    partitions: Partitions = None,
    memory_limit: float = MEMORY,
    progress: Progress | None = None,
) -> Log:
    """Return how often each transition of the model is in a log, and a report of what became of each row.

    ``source`` is a Parquet, CSV or JSON file, a folder or a pattern of such files, a list of them, or a data frame of
    pandas, Polars, PyArrow, PySpark or DuckDB. A log of "transitions" has a column for each state variable, ``action``,
    and a column for each variable of the next state, ``next_`` before its name. One of "trajectories" has ``episode``
    and ``step`` instead of the next state; the last row of an episode is the state in which it ends, without an action.
    Steps are numbers, dates, times or timestamps.
    "counts" are transitions with their number ``n``. Which it is shows in the columns unless ``form`` says it;
    ``columns`` maps these names to those of the log. A learned reward has its values in a column of its name, with
    ``reward_`` before it if that is another column; a value out of its range is an error. (A variable called
    episode, step or action has ``state_`` before its name.)

    ``states`` makes state variables of other columns: ``{"x": "floor(lon / 0.5)", "battery": [0, 20, 60, 100]}`` is an
    expression for x, and bins for battery: 0 from 0 to below 20, 1 to below 60, 2 to 100. The same rule makes the next
    state of ``next_lon`` and ``next_battery``. ``actions`` is an expression that gives the names of actions, a table
    from what the log calls them (``{"FULL": "full"}``), or the list of the actions 0, 1, 2 and so on. Without it, a log
    may have numbers where the order of the model's actions is clear: some state has all of them, and no state has its
    own in another order; where no state has two, the log needs none. See the page on data for what can be written; a
    row whose value is missing, is outside of the bins or is not a value in the model is rejected as others are.

    ``steps="consecutive"`` says that the steps of trajectories grow by one in each row, so that a row which is missing
    shows as a gap; ``steps="ordered"``, that they only order the rows of a run, and that none in between is missing,
    which the certificate repeats. Unless you say so, numbers only order the rows if none is one more than the one
    before, as in 10, 20, 30 or in times; if some are, others have a gap. ``steps="monthly"``, "weekly" or "daily" says
    that steps are dates, one in each period of the calendar, so that a period without one is a gap; "every=30d" (or s,
    min, h, w), that each is a whole number of 30 days after the first of its run.

    Nothing is dropped silently: rows that do not fit the model are an error. With ``on_unmatched="report"`` the others
    are counted, and the report goes with the counts into the certificate. Rows that show what the model says cannot
    happen contradict it, so that nothing is certified; rows that cannot be read are left out, and the certificate says
    what that assumes. The same file twice, or two files with the same content, is an error, unless
    ``partitions="files"`` says that files with the same content are runs of their own. Where rows name their run and
    step, those that are alike in all that is read are counted once, and those that differ are rejected.
    ``rejected`` is a file (.csv or .parquet) that all rejected rows are written to, with the reason, the file and the
    row; also if they are an error. ``allow_impossible`` is how many rows with states or transitions that cannot be are
    faults of the recorder, and left out; the certificate repeats it, and more of them are an error.

    Which steps are in the log must not depend on where they led: bounds are wrong if a recorder leaves out the last
    state of runs, or if runs that went on for too long are missing. If most runs end before the outcome of their last
    action, the log is refused. ``cut_off="unrelated"`` says that they were cut off for reasons that have nothing to do
    with this outcome; the certificate repeats it.

    ``sampling`` says how the log came about, which no log shows. "adaptive", the default, is valid whoever chose the
    actions and the end, also if they depended on what was seen, as long as no step is missing because of its outcome.
    Two stronger claims give narrower intervals: "trajectories" if the log is a number of runs that was fixed
    beforehand, under one policy; "independent" if the number of samples of each choice was fixed beforehand.

    If it is known what came first, bets are placed by it (see ``Pilot``), and results are narrower. ``order`` says what
    no log shows. "time": the rows lie in the order in which their steps happened, file after file in the order given,
    or by name within a folder or pattern, where numbers in names count as numbers: part-2 is before part-10. "runs":
    the column ``episode`` numbers the runs in the order in which they were made, and each had ended before the next
    began; runs that were made side by side by something that learned meanwhile are in no such order. Do not say either
    of a table that was sorted by anything else. Logs of "trajectories" need no order: the runs are alike, and any order
    will do in which nobody put them by how they went.

    A log with an order may have ended because of what it showed, and may be read again when it has grown. ``expected``
    is how many runs (or rows, if these have the order) it would have, if you can say so before you look at it: it need
    not come true, and makes results narrower. That a log is "trajectories" claims that the number of its runs was
    fixed beforehand, which a log that grows is not. ``pilot=False`` places no bets. Decide on all of it before you look
    at results. Ready-made counts have the order that the query of ``counts_query`` gave them, if any.

    How states are made of columns (``states``) is part of the model: decide on it before you look at the data. In a
    table of ``model_from_log``, a successor that it does not have counts as its state "elsewhere", and rows of a state
    and action that it does not have are left out; the data it was made of must not be read again.

    Files take up to ``memory_limit`` bytes, whatever their size. Trajectories whose rows are not in order take longer:
    they are counted in ``partitions`` by episode, as many as need be. ``partitions="files"`` counts each file by
    itself; say so if each file numbers its runs anew. ``progress`` is told how much of the files is read.

    >>> import pandas as pd
    >>> from plumdp import case_study
    >>> frame = pd.DataFrame({"x": [0, 0], "y": [0, 0], "action": ["east"] * 2, "next_x": [1, 7], "next_y": [0, 0]})
    >>> print(read_log(case_study("glider:11,9").model, frame, on_unmatched="report"))
    2 rows of transitions: 1 matched, 1 rejected
      impossible transition: 1 row; (x=0, y=0) 'east' → (x=7, y=0) (1×); the model has no such edge, so it may be wrong
    """
    require_model("read_log", model)
    _check_words(on_unmatched, cut_off, allow_impossible)
    tell("reading the log")
    files = find_files(source) if is_paths(source) else []
    require_rejected(rejected, files)
    with open_log(source, files, partitions, memory_limit, progress) as log:
        mapping = without_actions(model.graph, log.columns, columns, read_mapping(model.graph, states, actions))
        form, found = find_columns(model.graph, log.columns, columns, form, mapping, Rewards.of(model))
        is_by_period = is_period(steps_of(steps))
        if form == "trajectories" and is_by_period:
            # two looks in one period are never copies: whether they agree depends on where the step led
            found |= {STEP: in_periods(str(steps), str(found[STEP])), MOMENT: found[STEP]}
        runs = find_runs(log.columns, columns)
        known_order = order_of_counts(order, found) if form == "counts" else order
        has_runs = FIRST_COUNTS[0] in found if form == "counts" else runs is not None
        is_table = model.is_table and form != "counts"  # ready-made counts have the moments of other models
        options: dict[str, Any] = {"wanted": pilot, "expected": expected, "is_table": is_table}
        planned = pilot_of_log(form, sampling, known_order, has_runs=has_runs, **options)
        is_by_runs = planned is not None and planned.unit == "runs"
        is_read_again = (is_by_runs and form != "counts") or (form == "transitions" and STEP in found)
        used = source_columns([*filter(None, [runs]), *found.values()])
        log = log.keep(used, is_read_again=is_read_again)
        if form == "trajectories" and is_by_period:
            log.require_periods(found, str(steps))
        moments = _moments(log, form, runs, planned, model.graph.n_transitions)
        n_moments = len(FIRST_COUNTS if moments is None else moments.sizes) if is_by_runs else 0
        valued = value_columns(found).values()
        tally = TransitionCounter(
            model.graph,
            mapping,
            n_moments=n_moments,
            stages=moments,
            steps="consecutive" if is_by_period else steps,
            elsewhere=elsewhere_of(model),
            rewards={name: each for name, each in model.learned_rewards.items() if name in valued},
        )
        for block in log.count(model.graph, form, found, moments):
            tally.add(block)
        tally.is_shared = tally.has_repeated_steps and form != "counts" and log.shares_names(form, found)
        tally.settle()
        if tally.fault is not None:
            fault, offender = tally.fault
            (row,) = log.first_rows(model.graph, form, found, [offender], once=tally.has_alike)
            raise fault.refusal(f"{offender.name}{f', {row}' if row else ''}")
        report = _allowing(_report(log, tally, model.graph, form, found, cut_off), allow_impossible)
        if rejected is not None:
            write_rejected(rejected, log, tally, model.graph, form, found, n=report.rejected)
        too_many = allow_impossible and not report.allowed and report.contradicting
        if too_many or (report.rejected > report.allowed and on_unmatched == "error"):
            raise DataError(*refusal(report, 1 if partitions == "files" else len(files), rejected))
        require_outcomes(report)
        first, time = (
            (None, None) if planned is None else _pilot(log, tally, model.graph, form, found, planned, moments)
        )
        described, n_steps = describe_files(files), int(tally.seen.counts.sum())
        parts = (
            new_parts(n_steps, key=log.content(used))
            if log.frame is not None
            else tuple(part_of_file(file) for file in described if not _is_small(file) or log.has_rows(file.name))
        )
    if order == "time" or partitions == "files":
        first = after_files(first, order, files)
    no_bets = None if not pilot or (first is not None and first.moments) else _no_bets(form, sampling, planned, tally)
    report = replace(report, files=described, read=now(), no_bets=no_bets)
    seen = tally.seen
    return Log(
        TransitionCounts(model.graph, read_only(seen.counts), sampling, first, report, parts, seen.rewards, time)
    )


def _check_words(on_unmatched: str, cut_off: str | None, allow_impossible: int) -> None:
    if on_unmatched not in ("error", "report"):
        raise DataError(Option("on_unmatched", on_unmatched), ": choose 'error' or 'report'")
    if cut_off not in (None, *get_args(CutOff)):
        raise DataError(Option("cut_off", cut_off), ": choose 'unrelated', or leave it out")
    if not isinstance(allow_impossible, int) or isinstance(allow_impossible, bool) or allow_impossible < 0:
        raise DataError(Option("allow_impossible", allow_impossible), ": give a whole number of rows")


def _allowing(report: IngestionReport, most: int) -> IngestionReport:
    """Return the report with rows that cannot be as faults of the recorder, if there are not too many."""
    n = report.contradicting
    if not 0 < n <= most:
        return report
    faults = "is a fault" if n == 1 else "are faults"
    why = (
        f"{number_of(n, 'row')} with states or transitions that the model says cannot be {faults} of the recorder, "
        f"which made no others, whatever steps led to (you allowed {most:,})"
    )
    return replace(report, allowed=n, assuming=(*report.assuming, why))


def _report(
    log: FileLog,
    tally: TransitionCounter,
    graph: Graph,
    form: LogForm,
    columns: Mapping[str, Source],
    cut_off: CutOff | None,
) -> IngestionReport:
    """Return what became of the rows, with examples of those that were rejected."""
    lacks_steps = tally.has_gaps and not tally.is_ordered and form == "trajectories"
    broken = log.broken_episodes(columns, NAMED) if lacks_steps else []
    repeated = log.repeated_steps(form, columns, NAMED) if tally.has_repeated_steps and form != "counts" else []
    find = partial(log.first_rows, graph, form, columns, once=tally.has_alike)
    unread = log.unread_step(columns) if tally.has_unplaced and form == "trajectories" else ""
    report = tally.report(form, broken, repeated, unread, find)
    tell(report.summary)
    spacing = log.spacing(columns, tally.n_rows) if tally.is_ordered and form == "trajectories" else ""
    hints = dict(report.hints)
    if spacing and report.rows["impossible transition"]:
        hints["impossible transition"] = f"or rows between two steps are missing, as {spacing}"
    return replace(
        report,
        hints=hints,
        cut_off=cut_off if report.rows["cut off"] else None,
        assuming=tuple(tally.assumptions(columns, spacing)),
        no_bets="shared names" if tally.shares_names else None,
    )


def _moments(
    log: FileLog, form: LogForm, runs: str | None, planned: LogPilot | None, n_transitions: int
) -> Moments | None:
    """Return after how many of the runs of a log bets are placed, if runs are what is counted."""
    if planned is None or planned.unit == "rows" or form == "counts" or runs is None:
        return None
    n, all_named = log.find_runs(runs, in_order=planned.order == "runs")
    if form == "trajectories" or all_named:
        sizes = planned.moments(n)
        return Moments(runs, n, sizes, () if log.engine == SPARK else runs_of_parts(n, sizes, n_transitions))
    if planned.order == "runs":
        missing = f": some rows have no {runs}, so that it is not known when they happened"
        raise DataError(Option("order", "runs"), missing)
    return Moments(runs, 0, ())


def _pilot(
    log: FileLog,
    tally: TransitionCounter,
    graph: Graph,
    form: LogForm,
    columns: Mapping[str, Source],
    planned: LogPilot,
    moments: Moments | None,
) -> tuple[Pilot | None, TimeParts | None]:
    """Return what had been seen when bets were placed, and at boundaries; first rows of a log are read once more."""
    nothing, unit, per_part = tally.nothing(), planned.unit[:-1], RUNS_PER_PART * planned.per_run
    if tally.shares_names:  # which run a row is of is not known
        return planned.pilot((), 0, nothing), parts_at((), (), tally.n_rows, unit=unit, per_part=per_part)
    if planned.unit == "rows":
        n, sizes = tally.n_rows, planned.moments(tally.n_rows)
        is_repeated = tally.has_repeated_steps
        if is_repeated:
            log.keep_repeated(form, columns)
        first = partial(log.count_first_rows, graph, form, columns, has_repeated_steps=is_repeated)
        seen = [tally.matched(first(size)) for size in sizes]
    else:
        n = runs_of_counts(tally.n_runs) if moments is None else moments.n
        if moments is not None and (shared := log.shared_runs(moments.column, columns.get(STEP))) is not None:
            raise shared.refusal(moments.column)
        sizes = planned.moments(n)
        seen = tally.moments[: len(sizes)]
    pilot, recorder = planned.pilot(seen, n, nothing), tally.recorder
    if recorder is not None:
        return pilot, recorder.parts(n)
    return pilot, parts_at(sizes, [each.counts for each in seen], n, unit=unit, per_part=per_part)


def _no_bets(form: LogForm, sampling: Sampling, planned: LogPilot | None, tally: TransitionCounter) -> NoBets:
    """Return why no bets were placed although they are wanted."""
    if tally.shares_names:
        return "shared names"
    if planned is None:
        return "unnamed runs" if sampling == "trajectories" and form != "counts" else "order"
    return "few"


@contextmanager
def open_log(
    source: Any, files: list[str], partitions: Partitions, memory_limit: float, progress: Progress | None
) -> Iterator[FileLog]:
    """Give a log whose columns are known; ``files`` are those of the source, none if it is a data frame."""
    if not (partitions is None or partitions == "files" or (isinstance(partitions, int) and partitions > 0)):
        raise DataError(Option("partitions", partitions), ": give a whole number above 0, 'files', or leave it out")
    if not files and is_spark(source):
        if partitions is not None:
            raise DataError(Option("partitions", partitions), ": Spark divides the rows itself; leave it out")
        with open_spark(source) as (session, views):
            yield FileLog(session, views, engine=SPARK)
        return
    n_parts = None if partitions == "files" else partitions
    refuse_same_files(files)
    with connect(memory_limit) as connection:
        if not files:
            if partitions == "files":
                raise DataError(
                    Option("partitions", "files"), ": a data frame has no files; give a number, or leave it out"
                )
            columns = {FRAME: dict.fromkeys(frame_columns(source), "")}
            engine = "" if has_order(source) else "DuckDB"
            yield FileLog(connection, columns, memory_limit, n_parts, progress, frame=source, engine=engine)
            return
        groups = [[file] for file in files] if partitions == "files" else [files]
        tables = {scan(connection, group): group for group in groups}
        if partitions != "files":
            refuse_copies(files, partial(has_rows, connection))
        types = {table: column_types(connection, table) for table in tables}
        if any({"transition", "n"} <= names.keys() for names in types.values()):
            _refuse_counts(files)
        _require_same_columns(tables, types)
        yield FileLog(connection, types, memory_limit, n_parts, progress, text_bytes(files), tables)


def _refuse_counts(files: Sequence[str]) -> None:
    """Refuse a file of counts that plumdp wrote, which has other columns than a log."""
    for file in files:
        if is_counts_file(file):
            raise DataError(
                f"{file} is a file of counts that plumdp wrote, not a log; give the log that it was counted from, or "
                "count the other files by themselves and add their counts to it, with ",
                Option("read_counts"),
            )


def _is_small(file: LogFile) -> bool:
    """Return whether a file is so small that it may have no rows; then it has no data that can be counted twice."""
    return file.hashed == WHOLE and file.size is not None and file.size < _MAYBE_EMPTY


def is_paths(source: Any) -> bool:
    """Return whether a source names files, and is not a data frame."""
    return isinstance(source, str | Path) or (
        isinstance(source, list | tuple) and all(isinstance(path, str | Path) for path in source)
    )


def _require_same_columns(tables: Mapping[str, list[str]], types: Mapping[str, Mapping[str, str]]) -> None:
    first = next(iter(tables))
    for table, files in tables.items():
        if types[table].keys() != types[first].keys():
            expected, actual = ", ".join(types[first]), ", ".join(types[table])
            raise DataError(f"{tables[first][0]} has the columns {expected}, but {files[0]} has {actual}")

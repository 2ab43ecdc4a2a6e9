"""Logs of any size, counted where they are: files and data frames by DuckDB, those of Spark by Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from plumdp.base.errors import DataError, Option
from plumdp.base.progress import tell, working
from plumdp.base.vocabulary import Censoring, NoBets, Order
from plumdp.data.columns import (
    FIRST_COUNTS,
    KNOWN,
    MOMENT,
    STEP,
    find_columns,
    find_runs,
    known_sources,
    source_columns,
    without_actions,
)
from plumdp.data.counts import Pilot, PilotEnd, Sampling, TransitionCounts
from plumdp.data.duckdb_tables import broken_lines, example_file, has_rows
from plumdp.data.examples import (
    broken_episodes,
    first_rows,
    repeated_steps,
    require_rejected,
    shares_names,
    spacing,
    unread_step,
    write_rejected,
)
from plumdp.data.frames import SPARK
from plumdp.data.ingestion import TransitionCounter
from plumdp.data.log import Log
from plumdp.data.log_contexts import contexts_of_log
from plumdp.data.log_format import AS_NAMED, LogFormat
from plumdp.data.log_pilots import (
    LogPilot,
    Moments,
    after_files,
    order_of_counts,
    pilot_of_log,
    runs_of_counts,
)
from plumdp.data.mappings import StateMapping, read_mapping
from plumdp.data.observations import HINTS, PartialObservations, observations_in, require_differences
from plumdp.data.open_logs import files_of, no_units, open_log, others_of
from plumdp.data.periods import in_periods, is_period
from plumdp.data.raw_logs import RawLog
from plumdp.data.report import NAMED, IngestionReport, Kind, refusal, require_outcomes
from plumdp.data.reward_values import Rewards, value_columns
from plumdp.data.same_files import (
    WHOLE,
    DataPart,
    LogFile,
    describe_files,
    new_parts,
    now,
    part_of_file,
)
from plumdp.data.sql import keys
from plumdp.data.steps import LogFacts, LogSteps, LogTable, facts_of
from plumdp.data.time_parts import RUNS_PER_PART, TimeParts, parts_at, runs_of_parts
from plumdp.data.whole_runs import read_whole_runs
from plumdp.model.graph import read_only
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.text import number_of
from plumdp.model.unmodelled_exits import out_of_table_of

_MAYBE_EMPTY = 1 << 16  # bytes: a file with the names of its columns alone has fewer
_ENDLESS = 1 << 62  # rows, where it need not be known how many there are


@working("reading the log")
def read_log(
    model: ParametricMDP,
    source: Any,
    format: LogFormat = AS_NAMED,
    *,
    sampling: Sampling = "adaptive",
    order: Order | None = None,
    expected: float | None = None,
    pilot: bool = True,
    on_unmatched: Literal["error", "report"] = "error",
    rejected: str | Path | None = None,
) -> Log:
    """Return the counts of the model's transitions in a log, and a report of what became of each row.

    Nothing is dropped silently, and no log shows how it came about: the page on data says what each claim means.

    Parameters
    ----------
    model
        The model whose transitions are counted.
    source
        Parquet, CSV or JSON files (a path, folder, pattern or list of them), or a data frame of pandas, Polars,
        PyArrow, PySpark or DuckDB, or what hands rows over as Arrow in batches (readers, datasets, scans). Files take
        up to 1 GB of memory, whatever their size; more is put on disk.
    format
        How rows are read: which columns are which, what states and actions are made of, what steps show.
    sampling
        "adaptive" is valid whoever chose the actions and the end. "trajectories" claims that the number of runs was
        fixed beforehand, under one policy; "independent", that the number of samples of each choice was.
    order
        What came first, so that bets are placed by it and results are narrower. "time": rows lie in the order in which
        steps happened, file after file, by name in a folder or pattern. "runs": ``episode`` numbers the runs as they
        were made, each ended before the next began. Leave it out if the table was sorted by anything else.
    expected
        The runs (or rows) you expected before you looked; a wrong guess costs width, never validity.
    pilot
        False places no bets.
    on_unmatched
        "error" refuses rows that do not fit the model, "report" counts the others. Rows that are impossible in the
        model contradict it, so that nothing is certified; others are left out, and the certificate says so.
    rejected
        A .csv or .parquet file to which rejected rows are written, with the reason, the file and the row.

    Returns
    -------
    Log
        The counts (``counts``) and the report (``report``).

    Raises
    ------
    DataError
        If columns are missing, or rows do not fit the model.

    Examples
    --------
    >>> import pandas as pd
    >>> from plumdp import case_study
    >>> frame = pd.DataFrame({"x": [0, 0], "y": [0, 0], "action": ["east"] * 2, "next_x": [1, 7], "next_y": [0, 0]})
    >>> print(read_log(case_study("glider:11,9").model, frame, on_unmatched="report"))
    2 log rows: 1 matched, 1 rejected
      impossible transition: 1 row; (x=0, y=0) 'east' → (x=7, y=0) (1×); the model lacks it: add it, or correct the log
    """
    return Reading(**locals()).read()


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What is asked of a log, in the words of ``read_log``."""

    model: ParametricMDP
    source: Any
    format: LogFormat = AS_NAMED
    sampling: Sampling = "adaptive"
    order: Order | None = None
    expected: float | None = None
    pilot: bool = True
    on_unmatched: Literal["error", "report"] = "error"
    rejected: str | Path | None = None

    def read(self) -> Log:
        """Return the counts of all rows, and the report."""
        with self.begun() as (begun, relation):
            log = begun.finish(facts_of(relation))
        assert log is not None
        return log

    @contextmanager
    def begun(self, by: str = "", after: str = "") -> Iterator[tuple[Begun, LogSteps]]:
        """Give what is decided before rows are counted, and the steps of the log, perhaps by unit.

        ``after`` is a file of runs that were open at the end of earlier files.
        """
        model, format, order, steps, known = self.model, self.format, self.order, self.format.steps, self.format.known
        require_model("read_log", model)
        if self.on_unmatched not in ("error", "report"):
            raise DataError(Option("on_unmatched", self.on_unmatched), ": choose 'error' or 'report'")
        are_observations = model.counted.gaps is not None
        if are_observations:
            require_differences(steps)
        tell("reading the log")
        raw, files = files_of(self.source, model)
        require_rejected(self.rejected, files)
        raw = replace(raw, text=replace(raw.text, skips=self.on_unmatched == "report"))
        with open_log(raw, files) as log:
            if by and by not in log.columns:
                raise no_units(by, log.columns)
            given = read_mapping(model.graph, format)
            mapping = without_actions(model.graph, log.columns, format, given)
            if are_observations:
                mapping, model = observations_in(mapping, model), model.counted
            known_rewards = Rewards.of(model)
            about = {"are_observations": are_observations, "have_ends": bool(model.ends)}
            form, found = find_columns(model.graph, log.columns, format, mapping, known_rewards, **about)
            is_by_period = is_period(steps) and form == "trajectories"
            if is_by_period:
                # two observations in one period are never copies: whether they agree depends on where the step led
                found |= {STEP: in_periods(str(steps), str(found[STEP])), MOMENT: found[STEP]}
            labels = [f"{KNOWN}{name}" for name in known] if form == "counts" else [*known]
            sources = known_sources(labels, log.columns, keys(model.graph))
            found |= {f"{KNOWN}{name}": source for name, source in zip(known, sources.values(), strict=True)}
            runs = find_runs(model.graph, log.columns, format)
            known_order = order_of_counts(order, found) if form == "counts" else order
            has_runs = FIRST_COUNTS[0] in found if form == "counts" else runs is not None
            is_table = model.is_table and form != "counts"  # ready-made counts have the moments of other models
            size = None if form == "counts" else model.graph.n_transitions
            options: dict[str, Any] = {"wanted": self.pilot, "expected": self.expected}
            options |= {"is_table": is_table, "n_transitions": size}
            planned = pilot_of_log(form, self.sampling, known_order, has_runs=has_runs, **options)
            is_by_runs = planned is not None and planned.unit == "runs"
            run = runs if is_by_runs and form != "counts" else None
            used = source_columns([*filter(None, [runs, by]), *found.values()])
            relation = LogSteps(log, model.graph, form, found, run, by=by)
            if planned is not None and planned.unit == "rows":
                relation.require_order()
            is_read_again = form != "counts" and (run is not None or STEP in found)
            kept = log.keep(used, is_read_again=is_read_again)
            relation = replace(relation, log=kept.after(after) if after else kept)
            if is_by_period:
                relation.require_periods(str(steps))
            relation.require_known(known)
            if are_observations:
                relation.require_observations(is_by_period=is_by_period)
            asked = replace(self, model=model)
            begun = Begun(asked, raw, files, mapping, planned, used, is_by_period, are_observations)
            yield begun, relation.arranged()


@dataclass(frozen=True)
class Begun:
    """A log whose columns are known, before its rows are counted; ``asked`` has the model without gaps."""

    asked: Reading
    raw: RawLog
    files: list[str]
    mapping: StateMapping
    planned: LogPilot | None
    used: Sequence[str]
    is_by_period: bool
    are_observations: bool

    @cached_property
    def described(self) -> tuple[LogFile, ...]:
        """The files."""
        return describe_files(self.files)

    def parts(self, log: LogTable, n_steps: int, unit: str) -> tuple[DataPart, ...]:
        """Return what the counts are of, so that none of it is added twice."""
        if log.frame is not None:
            own = new_parts(n_steps, key=log.content(self.used))
        else:
            own = tuple(
                part_of_file(file)
                for file in self.described
                if not _is_small(file) or has_rows(log.connection, log.text, example_file(file.name))
            )
        return tuple(each.of_unit(unit) for each in own) if unit else own

    def moments(self, facts: LogFacts) -> Moments | None:
        """Return after how many runs or rows bets are placed; nothing of ready-made counts, which say it."""
        return _moments(facts, self.planned)

    def tally(self, facts: LogFacts, moments: Moments | None) -> TransitionCounter:
        """Return the counts of all rows."""
        asked, relation, planned = self.asked, facts.relation, self.planned
        model = asked.model
        is_by_runs = planned is not None and planned.unit == "runs"
        n_moments = len(moments.sizes) if moments is not None else len(FIRST_COUNTS) if is_by_runs else 0
        valued = value_columns(relation.columns).values()
        tally = TransitionCounter(
            model.graph,
            self.mapping,
            n_moments=n_moments,
            stages=moments,
            steps="consecutive" if self.is_by_period else asked.format.steps,
            out_of_table=out_of_table_of(model),
            rewards={name: each for name, each in model.learned_rewards.items() if name in valued},
            partial=PartialObservations.of(model) if self.are_observations else None,
            known=asked.format.known,
        )
        for block in facts.count(moments):
            tally.add(tally.without_pasts(block))
        if not facts.unit:
            tally.is_shared = tally.has_repeated_steps and relation.form != "counts" and shares_names(relation)
        tally.settle()
        return tally

    def finish(self, facts: LogFacts) -> Log | None:
        """Return the counts and the report; nothing of a unit whose rows have to be looked at one by one."""
        moments = self.moments(facts)
        return self.finished(facts, moments, self.tally(facts, moments))

    def finished(self, facts: LogFacts, moments: Moments | None, tally: TransitionCounter) -> Log | None:
        """Return the same, given the counts of all rows."""
        asked, relation, planned = self.asked, facts.relation, self.planned
        model, are_observations = asked.model, self.are_observations
        if facts.unit and tally.is_irregular:
            return None
        if tally.fault is not None:
            fault, offender = tally.fault
            (row,) = first_rows(relation, [offender], once=tally.has_alike)
            raise fault.refusal(f"{offender.name}{f', {row}' if row else ''}")
        report = _report(facts, tally, asked.format.censoring, HINTS if are_observations else {})
        if asked.rejected is not None:
            write_rejected(asked.rejected, relation, tally, n=report.rejected)
        if report.rejected and asked.on_unmatched == "error":
            raise DataError(*refusal(report, len(self.files), asked.rejected, are_observations=are_observations))
        if facts.open_runs is None:
            require_outcomes(report, any_observation=bool(model.ends))
        first, time = (None, None) if planned is None else _pilot(facts, tally, planned, moments)
        is_drawn = asked.sampling == "independent"
        remembered = contexts_of_log(facts, tally, moments, first, is_drawn=is_drawn, are_observations=are_observations)
        parts = self.parts(relation.log, int(tally.seen.counts.sum()), facts.unit or _unit_of(self.raw))
        is_without = asked.pilot and not (first and first.moments)
        no_bets = _no_bets(facts, asked.sampling, planned, tally) if is_without else None
        first = after_files(first, self.files) if asked.order == "time" else first
        report = replace(report, files=self.described, read=now(), no_bets=no_bets)
        seen = tally.seen
        counted = (first, report, parts, seen.rewards, time, *remembered)
        counts = TransitionCounts(model.graph, read_only(seen.counts), asked.sampling, *counted)
        prespecified = asked.expected if asked.order == "runs" else None  # of other orders it may be rows
        how: Any = {"format": asked.format, "on_unmatched": asked.on_unmatched, "expected": prespecified}
        raw = self.raw.only(relation.by, facts.unit) if facts.unit else self.raw
        return Log(counts, partial(read_whole_runs, source=raw, **how))


def _unit_of(raw: RawLog) -> str:
    return "" if raw.unit is None else raw.unit[1]


def _report(
    facts: LogFacts, tally: TransitionCounter, censoring: Censoring | None, more: Mapping[Kind, str]
) -> IngestionReport:
    """Return the report on rows, with examples of those that were rejected."""
    relation = facts.relation
    form, is_runs = relation.form, relation.form == "trajectories"
    report = tally.report(
        form,
        broken_episodes(relation, NAMED) if tally.has_gaps and not tally.is_ordered and is_runs else [],
        repeated_steps(relation, NAMED) if tally.has_repeated_steps and form != "counts" else [],
        unread_step(relation) if tally.has_unplaced and is_runs else "",
        partial(first_rows, relation, once=tally.has_alike),
    )
    tell(report.summary)
    spaced = spacing(relation, tally.n_rows) if tally.is_ordered and is_runs else ""
    broken = broken_lines(relation.log.connection) if relation.log.files and not facts.unit else []
    if broken:
        spaced = " and ".join(filter(None, [spaced, f"{number_of(len(broken), 'line')} could not be read"]))
    remark = spaced if facts.open_runs is None else ""  # of files that are added, each would have its own
    hints = {kind: text for kind, text in more.items() if report.rows[kind]} | {**report.hints}
    if spaced and report.rows["impossible transition"]:
        hints["impossible transition"] = f"or rows between two steps are missing, as {spaced}"
    shown = tuple(f"{file}, line {line:,}: {reason}" for file, line, reason in broken[:NAMED])
    return replace(
        report,
        rows={**report.rows, "broken line": len(broken)},
        worst={**report.worst, "broken line": shown},
        hints=hints,
        censoring=censoring if report.rows["censored"] else None,
        assuming=(*tally.assumptions(relation.columns, remark), *others_of(relation.log.part)),
        no_bets="shared names" if tally.shares_names else None,
        censored_runs=tally.censored_runs(facts.last_states(tally.has_alike)),
    )


def _moments(facts: LogFacts, planned: LogPilot | None) -> Moments | None:
    """Return after how many runs or rows of a log bets are placed; nothing of ready-made counts, which say it."""
    relation = facts.relation
    if planned is None or relation.form == "counts":
        return None
    if planned.unit == "rows":
        n = relation.n_rows if planned.is_table and planned.end == PilotEnd.PLANNED else _ENDLESS
        return Moments("", n, planned.moments(n))
    runs = str(relation.run)
    n, all_named = facts.find_runs(planned.order == "runs")
    if relation.form == "trajectories" or all_named:
        sizes, n_transitions = planned.moments(n), relation.graph.n_transitions
        return Moments(runs, n, sizes, () if relation.log.engine == SPARK else runs_of_parts(n, sizes, n_transitions))
    if planned.order == "runs":
        missing = f": some rows have no {runs}, so that it is not known when they happened"
        raise DataError(Option("order", "runs"), missing)
    return Moments(runs, 0, ())


def _pilot(
    facts: LogFacts, tally: TransitionCounter, planned: LogPilot, moments: Moments | None
) -> tuple[Pilot | None, TimeParts | None]:
    """Return the counts when bets were placed, and at boundaries."""
    nothing, unit, per_part = tally.nothing(), planned.unit[:-1], RUNS_PER_PART * planned.per_run
    if tally.shares_names:  # which run a row is of is not known
        return planned.pilot((), 0, nothing), parts_at((), (), tally.n_rows, unit=unit, per_part=per_part)
    n = runs_of_counts(tally.n_runs) if moments is None else moments.n if moments.column else tally.n_rows
    if moments is not None and moments.column and not facts.unit and (shared := facts.relation.shared_run()):
        raise shared.refusal(moments.column)
    sizes = planned.moments(n)
    seen = tally.moments[: len(sizes)]
    pilot, recorder = planned.pilot(seen, n, nothing), tally.recorder
    if recorder is not None:
        return pilot, recorder.parts(n)
    return pilot, parts_at(sizes, [each.counts for each in seen], n, unit=unit, per_part=per_part)


def _no_bets(facts: LogFacts, sampling: Sampling, planned: LogPilot | None, tally: TransitionCounter) -> NoBets:
    """Return the reason why no bets were placed although they are wanted."""
    if tally.shares_names:
        return "shared names"
    if planned is None:
        is_unnamed = sampling == "trajectories" and facts.relation.form != "counts"
        return "unnamed runs" if is_unnamed else "overlap" if not facts.unit and facts.relation.has_overlap else "order"
    return "few"


def _is_small(file: LogFile) -> bool:
    """Return whether a file is so small that it may have no rows; then it has no data that can be counted twice."""
    return file.hashed == WHOLE and file.size is not None and file.size < _MAYBE_EMPTY

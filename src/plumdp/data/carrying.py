"""Counts a log that arrives in files, one after another, exactly as if it were read as a whole.

What later files need is kept in one Parquet file: the counts so far; of each run that may go on, its last row, which
the next file completes to a step, and what of its past contexts depend on; and a short key of each run that has ended,
and of each run of transitions with its last step, so that a late row of it is recognised.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np

from plumdp.base.edge import replacing
from plumdp.base.errors import DataError, Option
from plumdp.base.json_values import json_value
from plumdp.base.vocabulary import EPISODE, Order
from plumdp.data.censoring import MOST
from plumdp.data.columns import ACTION, column_of, state_columns
from plumdp.data.context_counts import OpenRuns, Pasts
from plumdp.data.counts import TransitionCounts
from plumdp.data.duckdb_engine import Block, columns_of, connect
from plumdp.data.duckdb_tables import write_table
from plumdp.data.files import SO_FAR, about_of, is_counts_file, read_counts, write_counts
from plumdp.data.frames import SPARK
from plumdp.data.ingestion import TransitionCounter, ends_of_runs
from plumdp.data.log_format import AS_NAMED, LogFormat
from plumdp.data.logs import Begun, Reading
from plumdp.data.matching import row_counts
from plumdp.data.names import literal, one_file, quoted
from plumdp.data.open_logs import files_of
from plumdp.data.report import KINDS, require_outcomes
from plumdp.data.same_files import TABLES, DataPart, describe_files, part_of_file
from plumdp.data.snapshots import Rewritten, rows_added
from plumdp.data.steps import CARRIED, CARRIED_RUN, KEYS, PLACED, LogSteps, LogTable, facts_of
from plumdp.model.graph import BoolArray, Indices
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.text import listing, number_of

_ENDS, _LASTS = "ends_of_runs", "carried_runs"  # tables: of runs here, and of those that were open before
_SAME = ("columns", "states", "actions", "form", "steps", "known")  # what is said of the log, of all of its files
_ANEW = "or delete it and count all files together"
_BEGUN = np.array([[0], [0], [-1]])  # the past of a run that begins


@dataclass(frozen=True, eq=False)
class Carried:
    """The counts of all files so far, and how many of their runs are open, so that they may go on in the next ones."""

    counts: TransitionCounts
    n_open: int
    repeated: tuple[str, ...] = ()  # of the files that were given, those that had been counted before
    anew: str = ""  # why a table was counted anew, from its beginning, if it was

    def __str__(self) -> str:
        again = f"; counted before and left out: {listing(self.repeated, most=3)}" if self.repeated else ""
        anew = f"; all was counted anew: {self.anew}" if self.anew else ""
        return f"{number_of(self.n_open, 'run') if self.n_open else 'no run'} may go on{again}{anew}"

    def to_dict(self) -> dict[str, Any]:
        """Return what is said beside the counts, ready for JSON."""
        return {"open_runs": self.n_open, "left_out": [*self.repeated], "anew": self.anew}


@dataclass(frozen=True, eq=False)
class _State:
    """What an earlier call kept."""

    file: str
    counts: TransitionCounts
    about: Mapping[str, Any]

    @cached_property
    def origins(self) -> set[str]:
        """Where the counts come from."""
        return {part.origin for part in self.counts.parts}

    def has(self, part: DataPart) -> bool:
        """Return whether data were counted: of a table, until the same version."""
        if part.versions is None:
            return part.origin in self.origins
        table, _, until = part.versions
        return any(
            each.versions and (each.versions[0], each.versions[2]) == (table, until) for each in self.counts.parts
        )

    def columns(self, query: str) -> Block:
        """Return the columns that a query has, in which the rows are called ``state``."""
        with connect() as connection:
            return columns_of(connection.execute(query.replace("state_file", one_file(self.file))))


def count_on(
    model: ParametricMDP,
    source: Any,
    carry: str | Path,
    format: LogFormat = AS_NAMED,
    *,
    order: Order | None = None,
    expected: float | None = None,
    pilot: bool = True,
    on_unmatched: Literal["error", "report"] = "error",
    rejected: str | Path | None = None,
) -> Carried:
    """Return the counts of a log whose files arrive one after another: of those so far, and of new ones.

    They have the counts, contexts and report of all files read at once, if the rows of each run arrive in the order of
    its steps, whatever run goes on in which file; rows that come late are refused. Files that were counted before are
    left out, so that a job which was killed may run again. Of a table of Delta Lake or Iceberg, what was added since is
    counted, or all of it anew, if rows were deleted or replaced.

    Parameters
    ----------
    model, source, format
        As in ``read_log``; the format is that of all files.
    carry
        The Parquet file that keeps the counts so far, which ``read_counts`` reads, and what open runs need. It is made
        if it is not there, and replaced at the end, or nothing changes. It has a row for each run that may go on, and a
        key and two numbers for each that has ended.
    order, expected, pilot
        As in ``read_log``, of the first files: as of all counts that are added, bets are placed by those that came
        first.
    on_unmatched, rejected
        As in ``read_log``.

    Returns
    -------
    Carried
        The counts of all files so far (``counts``), and the number of runs that may go on.

    Raises
    ------
    DataError
        If rows come late, or files are read otherwise than those before.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from plumdp import LogFormat, case_study
    >>> rows = {"episode": 1, "step": [0, 1, 2], "money": [10, 9, 8], "state_step": [0, 1, 2], "action": "bet1"}
    >>> log, how = pd.DataFrame(rows), LogFormat(form="trajectories", censoring="unrelated")
    >>> with TemporaryDirectory() as folder:
    ...     for day in (log[:2], log[2:]):
    ...         print(count_on(case_study("betting:5").model, day, Path(folder) / "state.parquet", how).counts.total)
    1
    2
    """
    asked = Reading(**{name: each for name, each in locals().items() if name != "carry"})
    require_model("count_on", model)
    raw, files = files_of(source, model)
    if model.counted.gaps is not None or raw.memory is not None:
        what = "states that remember their run" if raw.memory is not None else "observations with gaps"
        raise DataError(f"{what} need the whole run: count all files at once, without ", Option("carry", str(carry)))
    before, said, anew = _identity(carry), _said(format), ""
    old = _read(carry, asked) if before else None
    repeated: list[str] = []
    if old is not None and files:
        files, repeated, anew = _new_files(old, files)
        if not files:
            return Carried(old.counts, old.about["open"], tuple(repeated))
        old = None if anew else old
    asked = replace(asked, source=replace(raw, source=files) if files else raw)
    if old is not None:
        is_one = old.about["found"]["steps"] == "consecutive" and format.steps is None
        format = replace(format, steps="consecutive") if is_one else format
        asked = replace(asked, pilot=False, order=None, expected=None, format=format)
    with asked.begun(after=old.file if old is not None and old.about["open"] else "") as (begun, relation):
        if relation.log.engine == SPARK or relation.form == "counts":
            raise DataError(Option("carry", str(carry)), ": this is for logs in files; count them without it")
        _require_same_kind(old, relation, carry)
        own = () if files else begun.parts(relation.log, 1, "")
        if old is not None and own and all(map(old.has, own)):
            return Carried(old.counts, old.about["open"], ("these rows",))
        counts, runs, found = _counted(old, begun, relation, carry)
        about = {
            "content": SO_FAR,
            "fingerprint": counts.graph.fingerprint,
            "said": said,
            "found": found,
            "open": (n_open := 0 if runs is None else int((~runs.is_ended).sum())),
        }
        with TemporaryDirectory() as folder, replacing(carry) as fresh:
            write_counts(counts, kept := Path(folder) / "counts.parquet")
            tables = [f"SELECT 'counts' AS kind, content AS counts FROM read_blob({literal(str(kept))})"]
            tables += [_last_steps(old, relation, carry)] if runs is None else runs.tables(relation.log.connection, old)
            extra = f"KV_METADATA {{plumdp: {literal(json.dumps(about))}}}"
            query = " UNION ALL BY NAME ".join(tables)
            relation.log.run_query(f"COPY ({query}) TO {literal(str(fresh))} (FORMAT parquet, {extra})")
            if _identity(carry) != before:
                raise DataError(f"{carry} was changed while these files were counted: count them again")
    return Carried(counts, n_open, tuple(repeated), anew)


def _new_files(old: _State, files: Sequence[str]) -> tuple[list[str], list[str], str]:
    """Return the files that were not counted before, those that were, and why a table has to be counted anew."""
    parts = [part_of_file(each) for file in files for each in describe_files([file])]  # many would be told together
    new, repeated = [], []
    for file, part in zip(files, parts, strict=True):
        if old.has(part):
            repeated.append(TABLES[file].file.name if file in TABLES else file)
            continue
        since = [each.versions for each in old.counts.parts if each.versions]
        until = max((last for table, _, last in since if file in TABLES and table == TABLES[file].table), default=None)
        added = file if until is None else rows_added(file, until, write_table)
        if isinstance(added, Rewritten):
            if len(files) == 1 and len(since) == len(old.counts.parts) and len({table for table, *_ in since}) == 1:
                return [file], [], added.reason
            why = f"{TABLES[file].place}: {added.reason}, so that what was added is not known; "
            raise DataError(f"{why}delete {old.file} and count all data together")
        new.append(str(added))
    return new, repeated, ""


def _identity(file: str | Path) -> tuple[int, ...]:
    """Return what tells a file from one that took its place; nothing if there is none."""
    try:
        state = Path(file).stat()
    except OSError:
        return ()
    return state.st_ino, state.st_size, state.st_mtime_ns


def _said(format: LogFormat) -> dict[str, Any]:
    """Return what is said of the log, as JSON has it."""
    said = {name: json_value(getattr(format, name)) for name in _SAME}
    return {name: each for name, each in said.items() if each}


def _read(carry: str | Path, asked: Reading) -> _State:
    """Return what an earlier call kept; refuse a file of anything else, of another model or of other columns."""
    about = about_of(carry) if is_counts_file(carry) else {}
    if about.get("content") != SO_FAR:
        raise DataError(Option("carry", str(carry)), ": this file was written by something else; name another")
    model: ParametricMDP = asked.model
    if about["fingerprint"] != model.counted_graph.fingerprint:
        raise DataError(f"{carry} is of another model; name another file, {_ANEW}")
    said = _said(asked.format)
    for name in sorted({*said, *about["said"]}):
        if said.get(name) != about["said"].get(name):
            raise DataError(
                f"{carry} is of files that were read with other words: ",
                Option(name, about["said"].get(name)),
                f"; say the same, {_ANEW}",
            )
    return _State(str(carry), read_counts(model, carry), about)


def _require_same_kind(old: _State | None, relation: LogSteps, carry: str | Path) -> None:
    """Refuse text after typed columns, whose runs would have other names, and the other way round."""
    if old is not None and old.about["found"]["kind"] != (kind := _kind(relation)):
        raise DataError(f"{carry} is of {old.about['found']['kind']}, and this is {kind}; write both alike, {_ANEW}")


def _kind(relation: LogSteps) -> str:
    is_text = all(kind == "VARCHAR" for name, kind in relation.log.types.items() if name != CARRIED_RUN)
    run = relation.log.types[column_of(relation.columns[EPISODE])] if EPISODE in relation.columns else ""
    is_number = run in ("DOUBLE", "FLOAT", "INTEGER") or run.endswith("INT")
    told = "numbers" if is_number else "texts" if run.startswith(("VARCHAR", "ENUM")) else run
    runs = f", with {told} for runs," if run and not is_text else ""
    return f"{'text' if is_text else 'columns with types'}{runs} in the form of {relation.form}"


def _counted(
    old: _State | None, begun: Begun, relation: LogSteps, carry: str | Path
) -> tuple[TransitionCounts, _Runs | None, dict[str, Any]]:
    """Return the counts so far and the runs that may go on, none of transitions, and what was found of the log."""
    graph, kind = relation.graph, _kind(relation)
    facts, runs, carried = facts_of(relation), None, []
    if relation.form == "trajectories":
        runs = _Runs.of(old, begun, relation, carry)
        if runs.pasts.run.size:
            carried = [*replace(relation, log=replace(relation.log, table=CARRIED), in_order=False).count()]
        open_runs = OpenRuns(graph, runs.pasts, np.sort(runs.short[~runs.is_ended]))
        facts = replace(facts, open_runs=open_runs)
    moments = begun.moments(facts)
    tally = begun.tally(facts, moments)
    if tally.has_repeated_steps and runs is not None:
        raise DataError(
            "several rows of one step differ, and which of them count depends on the whole log: correct them, or "
            "count all files together, without ",
            Option("carry", str(carry)),
        )
    steps = None if begun.asked.format.steps else tally.found_steps  # of what was said, no rows decide
    found = {"kind": kind, "steps": steps, "has_action_names": tally.has_action_names}
    if old is not None:
        found = _agreed(old.about["found"], found)
    log = begun.finished(facts, moments, tally)
    assert log is not None
    parts = [replace(begun, files=[file]).parts(relation.log, 0, "") for file in begun.files]  # each by itself
    new = replace(log.counts, parts=tuple(chain(*parts))) if parts else log.counts
    counts = new if old is None else old.counts + new
    if runs is None:
        return counts, None, found
    assert counts.report is not None
    rows = dict(counts.report.rows)
    for block in carried:  # they were counted as the last rows of their runs when they were new
        n = np.bincount(tally.kinds(block), row_counts(block), len(KINDS)).astype(int).tolist()
        rows |= {kind: rows[kind] - times for kind, times in zip(KINDS, n, strict=True)}
    runs = runs.with_states(tally, open_runs.found())
    censoring = begun.asked.format.censoring if rows["censored"] else None
    report = replace(counts.report, rows=rows, censoring=censoring, censored_runs=runs.ends(old, counts))
    require_outcomes(report, may_go_on=True)
    return replace(counts, report=report), runs, found


def _agreed(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was found of all files; refuse what would be read otherwise if they were read at once."""
    says: dict[str, str | Option] = {"steps": Option("steps", "consecutive"), "has_action_names": Option("actions")}
    for name, said in says.items():
        if None not in (old[name], new[name]) and old[name] != new[name]:
            what = "numbers of steps grow by one" if name == "steps" else "actions are named, and not numbered,"
            raise DataError(
                f"{what} in some files and not in others, so that it is not clear what is meant: say ", said
            )
    return {name: old[name] if new[name] is None else new[name] for name in new}


@dataclass(frozen=True, eq=False)
class _Runs:
    """The runs of some files, with those that were open before."""

    short: Any  # (n_runs): keys within these files
    is_ended: BoolArray  # (n_runs)
    key: Any  # (n_runs): keys that stay
    length: Indices  # (n_runs): steps in all
    block: Block  # of last states
    pasts: Pasts  # of runs that were open before
    state: Indices | None = None  # (n_runs)
    later: Pasts | None = None  # of runs that are open now

    @staticmethod
    def of(old: _State | None, begun: Begun, relation: LogSteps, carry: str | Path) -> _Runs:
        """Return the runs of files; rows that come late are refused."""
        log, columns, graph = relation.log, relation.expressions, relation.graph
        names = zip(state_columns(graph), state_columns(graph, relation.form), strict=True)
        last = {"row": _struct({name: quoted(name) for name in begun.used})}
        last |= {"is_ended": f"coalesce(trim(CAST({columns[ACTION]} AS VARCHAR)), '') = ''"}
        state = {name: columns[source] for name, source in names}
        rows = (
            f"SELECT {relation.run_sql} AS run, {relation.step_number} AS step, {_struct(last)} AS last, "
            f"{_struct(state)} AS state FROM {log.table}"
        )
        n_steps = "max(step) - min(step)" if begun.is_by_period else "count(DISTINCT step) - 1"
        told = f"run, {n_steps} AS n_steps, unnest(arg_max(last, step)), arg_max(state, step) AS state"
        log.run(_ENDS, f"SELECT {told} FROM ({rows}) WHERE run IS NOT NULL AND isfinite(step) GROUP BY run")
        key = _key_sql(log)
        own = {"short key": relation.short_run, "key": key, "is ended": "is_ended", "n steps": "n_steps::BIGINT"}
        told = ", ".join(f"{each} AS {quoted(f'{name} of run')}" for name, each in own.items())  # as no variable is
        block = columns_of(log.connection.execute(f"SELECT {told}, unnest(state) FROM {_ENDS} ORDER BY rowid"))
        short, keys, is_ended, n = (np.asarray(block.pop(f"{name} of run")) for name in own)
        found = _Runs(short.view(np.uint64), is_ended.astype(np.bool_), keys, n.astype(np.int64), block, Pasts.none())
        return found if old is None else found._after(old, relation, key, carry)

    def _after(self, old: _State, relation: LogSteps, key: str, carry: str | Path) -> _Runs:
        """Return the runs with the pasts of those that were open."""
        log, of_ended = relation.log, f"SELECT key FROM {one_file(old.file)} WHERE kind = 'ended'"
        late = log.rows(f"SELECT run, count(*) OVER () FROM {_ENDS} WHERE {key} IN ({of_ended}) ORDER BY run LIMIT 1")
        why, found = "ended in earlier files: its last row has no action", self
        if old.about["open"]:
            steps = f"{relation.run_sql} AS run, {relation.step_number} AS step FROM {CARRIED}"
            log.run(_LASTS, f"SELECT {quoted(CARRIED_RUN)} AS number, {steps}")
            here = columns_of(log.connection.execute(f"SELECT number, {relation.short_run} AS short FROM {_LASTS}"))
            found = replace(self, **_pasts(old, here["number"], np.asarray(here["short"]).view(np.uint64), self))
            if not late:
                both = f"{KEYS} AS each_row JOIN {_LASTS} AS before ON each_row.run = before.run"
                early = f"SELECT DISTINCT before.run AS run FROM {both} WHERE each_row.step < before.step"
                late = log.rows(f"SELECT run, count(*) OVER () FROM ({early}) ORDER BY run LIMIT 1")
                why = "has rows of steps before the last one that was counted"
        _refuse_late(late, why, carry)
        return found

    def with_states(self, tally: TransitionCounter, later: Pasts) -> _Runs:
        """Return the runs with the numbers of their last states, and the pasts of those that are open now."""
        return replace(self, state=tally.states(self.block), later=later)

    def ends(self, old: _State | None, counts: TransitionCounts) -> Any:
        """Return the ends of all runs so far, by what was counted so far."""
        assert self.state is not None
        state, length, n = self.state, self.length, np.ones_like(self.length)
        if old is not None:
            query = "SELECT state, length, count(*) AS n FROM state_file WHERE kind = 'ended' GROUP BY ALL"
            before = old.columns(query)
            state, length, n = (np.append(*each) for each in zip((state, length, n), before.values(), strict=True))
        return ends_of_runs(
            counts.graph,
            counts.counts,
            *(np.asarray(each, dtype=np.int64) for each in (state, np.minimum(length, MOST), n)),
        )

    def tables(self, connection: Any, old: _State | None) -> list[str]:
        """Return the queries for the runs that are open, and for those that have ended."""
        assert self.state is not None
        assert self.later is not None
        number, ended = np.flatnonzero(~self.is_ended), np.flatnonzero(self.is_ended)
        past = self.later.find(self.short[number])
        n_steps, since, taken = np.append(self.later.before, _BEGUN, axis=1)[:, past]
        of_open = {"number": number, "n_steps": n_steps, "since": since, "taken": taken, "length": self.length[number]}
        place = np.full(len(self.later.run), -1)
        place[past[past >= 0]] = number[past >= 0]
        visited = dict(zip(("choice", "visits", "outcome"), self.later.visited, strict=True))
        visited["number"] = np.repeat(place, np.diff(self.later.first))
        of_ended = {"key": self.key[ended], "length": np.minimum(self.length[ended], MOST), "state": self.state[ended]}
        for name, block in (("open_runs", of_open), ("visited_rows", visited), ("ended_runs", of_ended)):
            connection.register(name, block)
        listed = "SELECT number, list({'choice': choice, 'visits': visits, 'outcome': outcome}) AS visited"
        rows = f"(SELECT rowid AS number, row FROM {_ENDS})"
        tables = [
            f"SELECT 'open' AS kind, * FROM open_runs JOIN {rows} USING (number) "
            f"LEFT JOIN ({listed} FROM visited_rows GROUP BY number) USING (number)",
            "SELECT 'ended' AS kind, key, length, state FROM ended_runs",
        ]
        if old is None:
            return tables
        return [*tables, f"SELECT kind, key, length, state FROM {one_file(old.file)} WHERE kind = 'ended'"]


def _key_sql(log: LogTable) -> str:
    """Return the key of a run that stays, as SQL of the table of runs: whole numbers of any type have the same."""
    ((kind,),) = log.rows(f"SELECT typeof(run) FROM {_ENDS} LIMIT 1") or [("VARCHAR",)]
    whole = "CASE WHEN run = floor(run) THEN CAST(run AS HUGEINT)::VARCHAR ELSE run::VARCHAR END"
    return f"md5_number_lower({whole if kind in ('DOUBLE', 'FLOAT') else 'run::VARCHAR'})"


def _refuse_late(late: Sequence[tuple[Any, ...]], why: str, carry: str | Path) -> None:
    """Refuse rows that come late, given one run that has some, and how many have."""
    for run, n in late:
        others = f" (and so for {number_of(n - 1, 'other run')})" if n > 1 else ""
        raise DataError(
            f"rows come late: run {run} {why}{others}. Nothing was counted. Leave these rows out, or delete "
            f"{carry} and count all files together"
        )


def _last_steps(old: _State | None, relation: LogSteps, carry: str | Path) -> str:
    """Return the query for the last steps of runs of transitions, by which later files that have these are refused.

    Rows that do not name run and step are not told from others.
    """
    log, rows = relation.log, "SELECT NULL AS run, 0 AS step WHERE FALSE"
    if EPISODE in relation.columns and relation.is_followed:
        rows = f"SELECT run, step::DOUBLE AS step FROM {PLACED}"
    log.run(_ENDS, f"SELECT run, min(step) AS first_step, max(step) AS last_step FROM ({rows}) GROUP BY run")
    log.run(_LASTS, f"SELECT {_key_sql(log)} AS key, * FROM {_ENDS}")
    last = f"SELECT key, last_step FROM {_LASTS}"
    if old is not None:
        before = f"SELECT key, last_step FROM {one_file(old.file)} WHERE kind = 'last'"
        early = f"{_LASTS} AS here JOIN ({before}) AS before USING (key) WHERE first_step <= before.last_step"
        late = log.rows(f"SELECT run, count(*) OVER () FROM {early} ORDER BY run LIMIT 1")
        _refuse_late(late, "has rows of steps that were counted, or of steps before them", carry)
        last = f"{last} UNION ALL {before}"
    return f"SELECT 'last' AS kind, key, max(last_step) AS last_step FROM ({last}) GROUP BY key"


def _struct(columns: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{literal(name)}: {each}' for name, each in columns.items())}}}"


def _pasts(old: _State, number: Indices, short: Any, runs: _Runs) -> dict[str, Any]:
    """Return the pasts of runs that were open, in the order of their keys here, and the lengths of all with them."""
    one = old.columns(
        "SELECT number, n_steps, since, taken, length FROM state_file WHERE kind = 'open' ORDER BY number"
    )
    all_rows = "SELECT number, unnest(visited) AS each FROM state_file WHERE kind = 'open'"
    rows = old.columns(f"SELECT number, each.choice, each.visits, each.outcome FROM ({all_rows}) ORDER BY number")
    order = np.argsort(short)
    place = np.searchsorted(one["number"], number[order])
    begin, end = (np.searchsorted(rows["number"], number[order], side=side) for side in ("left", "right"))
    taken = np.concatenate([np.zeros(0, dtype=np.int64), *map(np.arange, begin, end)])
    before = np.stack([one[name][place] for name in ("n_steps", "since", "taken")])
    visited = np.stack([np.asarray(rows[name], dtype=np.int64)[taken] for name in ("choice", "visits", "outcome")])
    pasts = Pasts(short[order], before, np.append(0, np.cumsum(end - begin)), visited)
    return {"pasts": pasts, "length": runs.length + np.append(one["length"][place], 0)[pasts.find(runs.short)]}

"""Looks at the rows of a log, and proposes what its columns are and the table that its first runs make."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from plumdp.base.errors import DataError, Option
from plumdp.base.progress import working
from plumdp.base.vocabulary import Order
from plumdp.data.columns import named
from plumdp.data.duckdb_tables import broken_lines
from plumdp.data.log_format import AS_NAMED, LogFormat
from plumdp.data.names import quoted
from plumdp.data.open_logs import files_of
from plumdp.data.raw_logs import RawLog, as_raw, raw_log
from plumdp.data.remembering import MEANS, VARIABLES
from plumdp.data.text_formats import TextFormat
from plumdp.data.whole_runs import FEW_LATE
from plumdp.model.text import listing, number_of
from plumdp.starting.first_runs import EXAMPLE, FirstRunsLook, period_of
from plumdp.starting.proposal import Start
from plumdp.starting.roles import (
    FEW_RUNS,
    ColumnProfile,
    LoadedRows,
    columns_of,
    date_format_of,
    decimal_of,
    encoding_of,
    look_at,
    order_candidates,
    repeated_names,
    run_candidates,
    sample,
)

_SHARE = 4  # one part in so many of the runs makes the table


@working("looking at the rows")
def start(
    source: Any,
    format: LogFormat = AS_NAMED,
    *,
    reward: str = "",
    cost: str = "",
    goal: str = "",
    end: str = "",
    initial: Mapping[str, Any] | None = None,
    first: int | None = None,
    order: Order | None = None,
    remember: str = "",
) -> Start:
    """Return a proposal for the columns of a log, with the table of its first runs, and the other runs as evidence.

    Run and order are judged by all rows; states, actions, costs, cut points and ends by the first runs alone, a quarter
    of all, which are no evidence afterwards. Whatever is given is not guessed.

    Parameters
    ----------
    source
        Files (CSV, Parquet, JSON, XES) or a data frame, as in ``read_log``; ``raw_log`` says how texts are written,
        if that is not to be guessed.
    format
        What you know of how rows are read, as in ``read_log``: perhaps the columns ``episode``, which names the run of
        a row, and ``step``, which puts the rows of a run in order; states; and actions, a column or an expression.
    reward, cost
        The column, or an expression, with what a step earns, or costs; means of the first runs are taken.
    goal, end
        Formulas over the state variables, such as ``'status="closed"'``: what is to be reached, and where nothing
        happens any more.
    initial
        The state in which runs begin, by variable, if the first runs begin in different ones: the value is that of runs
        that begin there.
    first
        How many runs make the table, if you decided that before you looked.
    order
        What came first, as in ``read_log``.
    remember
        What each state remembers of its run, in one more variable: "visits", "previous", "time" or "step", as in
        ``RawLog.remember``; or a column that is known when a run begins.

    Returns
    -------
    Start
        The columns, the model, and the other runs as a log.

    Raises
    ------
    DataError
        If the log does not show which column is which.

    Examples
    --------
    >>> import pandas as pd
    >>> import plumdp
    >>> rows = [(case, t, *(("open", "wait") if t < 2 else ("closed", ""))) for case in range(40) for t in range(3)]
    >>> found = plumdp.start(pd.DataFrame(rows, columns=["case", "t", "status", "action"]))
    >>> found.format.columns, found.first, found.end
    ({'episode': 'case', 'step': 't'}, 10, 'status="closed"')
    >>> certificate = plumdp.certify(found.model, found.log, 'P=? [ F<=2 status="closed" ]', confidence=0.95)
    >>> said, _, numbers = certificate.headline.partition(" within 2 steps is ")
    >>> print(said)
    Certified: the probability that the system reaches a state with status = “closed”
    >>> print(numbers)
    76.5 % to 100 % (confidence 95 %).
    """
    text_facts, raw = _readable(source)
    earnings = ("reward", reward), ("cost", cost)
    roles, action = named(format.columns, format.variables), format.actions or ""
    if not isinstance(action, str):
        raise DataError(Option("actions", ...), ": name a column, or give an expression")
    run, step = (roles.get(name, "") for name in ("episode", "step"))
    with look_at(raw) as look:
        columns = [*look.types]
        said = [(Option("columns", {role: name}), [name]) for role, name in roles.items()]
        said += [(Option(role, term), columns_of(term, columns)) for role, term in earnings if term]
        for option, used in said:
            if not {*used} <= {*columns}:
                raise DataError(option, f": the log has no such column, only {', '.join(columns)}")
        profiles = look.profiles(columns)
        n_rows = profiles[0].n_rows if profiles else 0
        if not n_rows:
            raise DataError(f"the log has no rows, only names of columns: {', '.join(columns)}")
        after = {name: f"next_{name}" for name in columns if f"next_{name}" in columns}
        run, step = _run_and_step(look, profiles, run, step, is_needed=not after)
        n_runs = int(look.number(f"count(DISTINCT {quoted(run)})")) if run else n_rows
        broken = broken_lines(look.connection)
    if broken:
        shown = listing([f"line {line:,}" for _, line, _ in broken], most=3)
        text_facts.append(
            ("odd", f"{number_of(len(broken), 'line')} with too many or too few values, left out: {shown}")
        )
    has_dates = any(each.is_time for each in profiles if each.name == step)
    first = ceil(n_runs / _SHARE) if first is None else first
    if not 0 < first < n_runs:
        what = f"there are {number_of(n_runs, 'run' if run else 'row')}, and {first:,} would make the table"
        raise DataError(
            f"{what}, so that none is left as evidence; give more runs, or fewer with ", Option("first", ...)
        )
    with look_at(raw.first(first, run=run, step=step), keep=True, once=bool(run and step)) as look:
        others = look.profiles([name for name in columns if name not in (run, step)])
        seen = FirstRunsLook(look, run, step, after, others, has_dates=has_dates)
        earned = (reward or cost, "reward" if reward else "cost")
        made = seen.propose(format, earned, end, initial or {}, "" if remember in VARIABLES else remember)
    roles |= {key: name for key, name in (("episode", run), ("step", step)) if name}
    made["format"] = replace(made["format"], columns=roles)
    memory = next((each for each in VARIABLES if each == remember), None)
    found = Start(raw, first=first, goal=goal, order=order, remember=memory, **made)
    if memory is not None:
        if after or not (run and step):
            raise DataError(
                Option("remember", remember), ": this needs runs, with the state of each row in the next one"
            )
        made["facts"] = (*made["facts"], ("remembers", f"{VARIABLES[memory]}: {MEANS[memory]}"))
    how = "rows" if not run else "runs by date" if has_dates else "runs"
    split = (
        f"the counts here are of the first {first:,} of {n_runs:,} {how}, which make the table; the others are evidence"
    )
    left = "rows that do not fit are left out, and counted (to be told of an error: remove keep-going)"
    facts = [
        *text_facts,
        *_roles_facts(run, step, n_runs, n_rows),
        *made["facts"],
        ("split", split),
        ("left out", left),
    ]
    if (pace := made["format"].steps) and order is None and _began_together(raw, run, step, pace):
        found = replace(found, sampling="trajectories")
    own = (*_facts_at_ends(found), *_facts_of_runs(found), *_facts_of_prices(found), *_facts_of_number(found))
    found = _with_states(replace(found, facts=(*facts, *own)))
    differs = found.memory if run and step else ""
    return replace(found, facts=(*found.facts, ("memory", differs))) if differs else found


def _facts_at_ends(found: Start) -> list[tuple[str, str]]:
    """Return that costs are left out, if rows without an action have some."""
    if not (found.reward[1] and found.at_ends[0]):
        return []
    n, total = found.at_ends
    has = f"{number_of(n, 'row')} of the first runs without an action {'has' if n == 1 else 'have'} a {found.reward[0]}"
    return [("odd", f"{has}, too, {total:,.6g} in all, that is in no result")]


def _facts_of_runs(found: Start) -> list[tuple[str, str]]:
    """Return how much of a run counts where whole runs are asked."""
    cap = f"{found.run_cap:,.10g}"
    said = f"where whole runs are asked, a {found.reward[0]} of a run above {cap} counts as {cap}, no less than any "
    return [("cap", f"{said}of the first {found.first:,} has (or another run-cap)")] if found.run_cap else []


def _began_together(raw: RawLog, run: str, step: str, pace: str) -> bool:
    """Return whether all runs, but for a few whose first row is missing, have a row in the period of the first one."""
    with look_at(raw) as look:
        began = f"SELECT min({period_of(pace, step)}) AS began FROM {{rows}} GROUP BY {quoted(run)}"
        first = f"SELECT began, min(began) OVER () AS first FROM ({began}) WHERE began NOTNULL"
        ((share,),) = look.rows(f"SELECT avg((began = first)::INTEGER) FROM ({first})")
    return bool(share is not None and share >= 1 - FEW_LATE)


def _facts_of_number(found: Start) -> list[tuple[str, str]]:
    """Return what is assumed where the number of runs is that of those that began together."""
    if not found.is_prespecified:
        return []
    together = (
        "all runs began in one period, so that no outcome decided how many there are; that runs are independent and "
        "under one policy; and that no outcome decided how they are named or when the log ends (or remove sampling)"
    )
    chosen = "a rule of your own was not chosen by looking at the runs that are evidence (if not: remove prespecified)"
    return [("assumed", together), ("assumed", chosen)]


def _facts_of_prices(found: Start) -> list[tuple[str, str]]:
    """Return how to state a list of prices, if the first runs show one."""
    if not (prices := found.prices):
        return []
    said = f"each action always had one {found.reward[0]} in each state; if these are prices, nothing is to be learned"
    typed = shlex.quote(prices) if {*'$`"\\!'} & {*prices} else f'"{prices}"'
    return [("prices", f"{said}: --{found.reward[0]} {typed}")]


def _with_states(found: Start) -> Start:
    """Return the proposal with what is assumed of states: that there are no others, if these are known well."""
    if not found.closed:
        return found
    try:
        n = found.model.graph.n_states
    except DataError:  # a state without an action is the last of some runs
        return replace(found, closed=False)
    words = (
        f"there are no other states than these {n}; a log that shows one rejects the table (if so: remove closed=true)"
    )
    return replace(found, facts=(*found.facts, ("assumed", words)))


def _readable(source: Any) -> tuple[list[Any], RawLog]:
    """Return sentences about how texts are written, and the log that is read so."""
    raw, files = files_of(as_raw(source))
    text, is_said = raw.text, raw.said.__contains__
    encoding = text.encoding if is_said("encoding") else encoding_of(files)
    values = sample(replace(raw, text=TextFormat(encoding, skips=True)))
    decimal = text.decimal if is_said("decimal") else decimal_of(values)
    form, other = (text.date_format, "") if is_said("date_format") else date_format_of(values)
    said = (
        [encoding] * (encoding != "utf-8") + ["a decimal comma"] * (decimal == ",") + [f"dates as {form}"] * bool(form)
    )
    facts = [("text", ", ".join(said))] if said else []
    if again := repeated_names(files):
        verb = "repeats" if again == 1 else "repeat"
        facts.append(("odd", f"{number_of(again, 'line')} {verb} the names of the columns, left out"))
    if other:
        facts.append(("odd", f"dates may also be {other}: both fit the first rows; say which with date_format"))
    found = raw_log(raw, encoding=encoding, decimal=decimal, date_format=form)
    return facts, replace(found, text=replace(found.text, skips=True))


def _run_and_step(
    look: LoadedRows, profiles: Sequence[ColumnProfile], run: str, step: str, *, is_needed: bool
) -> tuple[str, str]:
    """Return the columns that name runs and put their rows in order, those whose pairs are nearly all different."""
    best, tried = (0.0, "", ""), []
    for one in [run] if run else run_candidates(profiles)[:3]:
        for other in [step] if step else order_candidates(profiles, one)[:4]:
            share = look.number(f"count(DISTINCT ({quoted(one)}, {quoted(other)}))::DOUBLE / count(*)")
            tried.append(f"{one} with {other}")
            if share > best[0] + 0.02:  # the likelier comes first
                best = (share, one, other)
    if best[0] >= 0.8 or (run and step):
        return best[1:]
    columns = ", ".join(quoted(each.name) for each in profiles)
    if best[0] and best[0] >= 0.8 * look.number(f"count(DISTINCT ({columns}))::DOUBLE / count(*)"):
        return best[1:]  # all rows may be there several times
    if not is_needed:
        return run or next(iter(run_candidates(profiles)), ""), ""
    few = [each for each in profiles if each.hint("run") and 0 < each.n_distinct < FEW_RUNS]
    if not (run or run_candidates(profiles)):
        why = "no column names the run of a row (a case, patient or machine, with several rows each)" + _wide(profiles)
        if few:
            n = number_of(few[0].n_distinct, "run")
            raise DataError(
                f"{few[0].name} names {n}; a table and its evidence need {FEW_RUNS} or more: give more rows"
            )
    elif not tried:
        why = "no column puts the rows of a run in order (a number that grows, a date or a time)"
    else:
        why = f"no two columns name run and step of a row ({listing(tried)}: several rows each)"
    names = ", ".join(each.name for each in profiles)
    say = "If there are such columns, say which with "
    raise DataError(
        f"{why}; the columns are {names}. {say}", Option("columns", {"episode": ..., "step": ...}), f". {EXAMPLE}"
    )


def _wide(profiles: Sequence[ColumnProfile]) -> str:
    """Say of names such as month1 and month2 that each may be a step, which has to be a row."""
    stems = [re.sub(r"[\W_]*\d+$", "", each.name) for each in profiles]
    for stem in dict.fromkeys(stems):
        alike = [each.name for each, other in zip(profiles, stems, strict=True) if other == stem != each.name]
        if len(alike) > 2:
            turn = f"make a row of each of them, for instance by pandas.wide_to_long(table, {stem!r}, …)"
            return f"; {alike[0]} to {alike[-1]} look like one step each: {turn}"
    return ", and one run alone is not enough"


def _roles_facts(run: str, step: str, n_runs: int, n_rows: int) -> list[tuple[str, str]]:
    facts = [("run", f"{run}: {number_of(n_runs, 'run')}, {n_rows / n_runs:.3g} rows each")] if run else []
    return facts + ([("step", step)] if step else [])

"""The one query that turns a log into counts: written for DuckDB, and put into the words of others by sqlglot."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import EPISODE, Form, LogForm, Order
from plumdp.base.vocabulary import Dialect as Dialect
from plumdp.data.columns import (
    ACTION,
    COUNT,
    FIRST_COUNT,
    GAP,
    KNOWN,
    MOMENT,
    N_ALIKE,
    N_COPIES,
    N_RUNS,
    N_UNORDERED,
    NEXT_AFTER,
    NEXT_EPISODE,
    NEXT_STEP,
    ONLY_ACTION,
    PARTIAL,
    PLACE,
    PLACES_OF_ROWS,
    RUN,
    RUN_NUMBER,
    SECOND_STEP,
    STAGE,
    STEP,
    STEP_BEFORE,
    UNKNOWN,
    Source,
    found_in,
    known_sources,
    named,
    needed_columns,
    needed_sources,
    next_columns,
    partial_source,
    source_columns,
    state_columns,
    with_observations,
)
from plumdp.data.counts import Sampling
from plumdp.data.log_format import LogFormat
from plumdp.data.log_pilots import LogPilot, pilot_of_log
from plumdp.data.mapping_sql import mapped_sql
from plumdp.data.mappings import read_mapping
from plumdp.data.names import PLACE_OF_ROW, quoted
from plumdp.data.observations import observations_in, require_differences
from plumdp.data.past_sql import grouped_sql, has_pasts, pasts_sql
from plumdp.data.periods import in_periods, is_period, not_there, period_of
from plumdp.data.pilots import SIZES
from plumdp.data.reward_values import Rewards, range_sql, sums_sql, value_columns, with_values
from plumdp.model.gaps import PARTLY, WAIT
from plumdp.model.graph import Graph
from plumdp.model.parametric import ParametricMDP

_TABLE = "table_of_the_log"

_IN_RUNS = f'PARTITION BY "{EPISODE}" ORDER BY "{STEP}"'
_STEPS_AROUND = {STEP_BEFORE: f'lag("{STEP}")', NEXT_STEP: f'lead("{STEP}")', SECOND_STEP: f'lead("{STEP}", 2)'}
_IS_NEXT = f'"{NEXT_STEP}" = "{STEP}" + 1'
PLACE_IN_RUN = f"""CASE
    WHEN "{EPISODE}" IS NULL OR "{STEP}" IS NULL THEN 'unplaced'
    WHEN "{STEP}" = "{STEP_BEFORE}" OR "{STEP}" = "{NEXT_STEP}" THEN 'duplicate'
    WHEN "{NEXT_STEP}" IS NULL THEN 'last'
    WHEN "{SECOND_STEP}" = "{NEXT_STEP}" THEN 'gap'
    WHEN {_IS_NEXT} THEN 'step'
    ELSE 'apart' END"""  # which are steps if numbers only order the rows
PLACE_OF_ORDERED = PLACE_IN_RUN.replace(f"WHEN {_IS_NEXT} THEN 'step'", "")
_IS_UNPLACED = f'"{EPISODE}" IS NULL OR "{STEP}" IS NULL'  # such rows may be copies or not, which nobody can tell
_PLACE_OF_MOVE = f"""CASE
    WHEN {_IS_UNPLACED} THEN 'step'
    WHEN count(*) OVER (PARTITION BY "{EPISODE}", "{STEP}") > 1 THEN 'duplicate'
    ELSE 'step' END"""
_NOT_COUNTED = f"""CASE WHEN "{PLACE}" = 'duplicate' OR {_IS_UNPLACED} THEN 0 ELSE "{N_ALIKE}" - 1 END"""

Every: TypeAlias = Literal["first", "row", "row or copy"]
_WHERE = {STAGE: "min", PLACE_OF_ROW: "min", PLACES_OF_ROWS: "list"}  # what becomes of them if rows are alike

_NEXT_PLACE = {NEXT_STEP: f'lead("{STEP}")', NEXT_EPISODE: f'lead("{EPISODE}")'}
PLACE_IN_ORDER = f"""CASE
    WHEN "{NEXT_EPISODE}" IS DISTINCT FROM "{EPISODE}" THEN 'last'
    WHEN {_IS_NEXT} THEN 'step'
    ELSE 'apart' END"""


def counts_query(
    model: ParametricMDP,
    format: LogFormat,
    *,
    table: str,
    dialect: Dialect,
    sampling: Sampling = "adaptive",
    order: Order | None = None,
    pilot: bool = True,
) -> str:
    """Return the query that counts the log in a table of a warehouse or cluster.

    ``read_log`` reads its result, one row for all rows that are alike, as ``form="counts"``, with the same
    ``sampling``. Names are quoted, so that their case matters where the engine says so. Snowflake keeps a name in
    capitals unless it was quoted when the table was made: it is asked for capitals, unless a name in ``columns`` has
    double quotes around it (``{"x": '"lon"'}``).

    Rows that are copies of another row are counted once, and rows that differ in one step of a run are rejected when
    the result is read. Steps are also counted by what came before them in their run, in rows of their own: ``context``
    says which, and is "all" in the other rows. For a table of transitions all this needs the columns ``episode`` and
    ``step``: say so with ``columns={"episode": "episode", "step": "step"}``.

    Parameters
    ----------
    model
        The model whose transitions are counted.
    format
        As in ``read_log``; its form must be said, "transitions" or "trajectories". The table must have numbers where an
        expression calculates.
    table
        The name of the table.
    dialect
        The engine, by the names of sqlglot, such as "bigquery" or "snowflake".
    sampling, order
        As in ``read_log``. The column ``episode`` must sort in the order of the runs, and ``step`` in that of steps:
        numbers do, texts such as "run 10" do not; rows have no order, so that ``order="time"`` is refused.
    pilot
        Whether what is in the first 4, 16, … runs is counted as well, if ``sampling`` or ``order`` say enough.

    Returns
    -------
    str
        The query.

    Examples
    --------
    >>> from plumdp import case_study
    >>> model, form = case_study("betting:25").model, LogFormat(form="transitions", columns={"money": "purse"})
    >>> print(counts_query(model, form, table="lake.bets", dialect="bigquery"))
    WITH log_rows AS (
      SELECT
        `purse` AS `money`,
        `state_step` AS `state_step`,
        `action` AS `action`,
        `next_money` AS `next_money`,
        `next_step` AS `next_step`
      FROM lake.bets
    )
    SELECT
      `money`,
      `state_step`,
      `action`,
      `next_money`,
      `next_step`,
      COUNT(*) AS `n`
    FROM log_rows
    GROUP BY
      `money`,
      `state_step`,
      `action`,
      `next_money`,
      `next_step`
    """
    import sqlglot
    from sqlglot import exp

    columns, actions, steps, known = format.columns, format.actions, format.steps, format.known
    for name, value, kinds in (("dialect", dialect, Dialect), ("form", format.form, Form)):
        if value not in get_args(kinds):
            raise DataError(Option(name, value), f": choose one of {', '.join(map(repr, get_args(kinds)))}")
    form: Form = "trajectories" if format.form == "trajectories" else "transitions"
    first = _pilot_of(form, sampling, order, pilot, columns)
    has_steps = form == "trajectories" or STEP in columns
    if actions is not None and not isinstance(actions, str):
        raise DataError(Option("actions", actions), ": name actions when the result of the query is read, not in it")
    mapping, are_observations = read_mapping(model.graph, format), model.counted.gaps is not None
    if are_observations:
        require_differences(steps)
        mapping, model = observations_in(mapping, model), model.counted
    sources = needed_sources(model.graph, form, mapping)
    if are_observations:
        sources = with_observations(sources, form, have_ends=bool(model.ends))
    if model.ends:
        sources[PARTIAL] = partial_source(PARTIAL if PARTIAL in columns else None)
    sources |= {EPISODE: EPISODE} if first is not None or has_steps else {}
    sources |= {STEP: STEP} if has_steps else {}
    if form == "trajectories" and is_period(steps):
        if period_of(steps):
            raise not_there(str(steps))
        sources |= {STEP: in_periods(str(steps), STEP), MOMENT: STEP}
    sources |= known_sources(known, known, keys(model.graph)) if has_steps else {}
    rewards = Rewards.of(model)
    sources |= rewards.sources(rewards.columns(needed_columns(model.graph, "transitions")))
    table_columns = _names_there(source_columns(sources.values()), named(columns, model.graph.states), form, dialect)
    expressions = {name: _as_sql(found_in(source, table_columns)) for name, source in sources.items()}
    n_runs = None if first is None else N_RUNS if first.order == "runs" else N_UNORDERED
    place = PLACE_OF_ORDERED if steps == "ordered" else PLACE_IN_RUN
    write = partial(count_sql, place=place, is_warehouse=True, once=has_steps, pasts=has_steps)
    query = sqlglot.parse_one(write(model.graph, form, expressions, _TABLE, first=(n_runs, SIZES)), dialect="duckdb")
    kept = rewards.kept_columns(SIZES)
    for column in query.expressions:
        if column.alias in kept:
            column.set("alias", exp.to_identifier(kept[column.alias], quoted=True))
    for term in list(query.find_all(exp.Ordered)):
        term.replace(term.this)  # where missing steps are put makes no difference, so no engine need be told
    log = next(node for node in query.find_all(exp.Table) if node.name == _TABLE)
    log.replace(_table_name(table, dialect))
    text: str = query.sql(dialect=dialect, pretty=True)
    return text


def translated(query: str, dialect: Dialect) -> str:
    """Return a query of DuckDB in the words of another engine."""
    import sqlglot

    text: str = sqlglot.transpile(query, read="duckdb", write=dialect)[0]
    return text


def _names_there(names: Sequence[str], columns: Mapping[str, str], form: Form, dialect: Dialect) -> dict[str, str]:
    """Return the names of the columns in the table; Snowflake has unquoted names in capitals."""
    allowed = [*dict.fromkeys([*names, EPISODE, STEP])]
    for name in columns:
        if name not in allowed:
            there_are = ", ".join(allowed)
            raise DataError(Option("columns", {name: ...}), f": a log of {form} has no such column, only {there_are}")
    table_columns = {name: columns.get(name, name) for name in names}
    return (
        {name: _as_kept(column) for name, column in table_columns.items()} if dialect == "snowflake" else table_columns
    )


def _as_kept(column: str) -> str:
    """Return a name as Snowflake keeps it.

    >>> _as_kept("lon"), _as_kept('"lon"'), _as_kept("the lon")
    ('LON', 'lon', 'the lon')
    """
    if len(column) > 2 and column[0] == column[-1] == '"':
        return column[1:-1].replace('""', '"')
    return column.upper() if column.isidentifier() and column.isascii() else column


def _as_sql(source: Source) -> str:
    return quoted(source) if isinstance(source, str) else mapped_sql(source, {}, is_warehouse=True)


def _pilot_of(
    form: Form, sampling: Sampling, order: Order | None, wanted: bool, columns: Mapping[str, str]
) -> LogPilot | None:
    """Return at which moments bets are placed, if the query is to count them."""
    if order == "time":
        raise DataError(
            Option("order", "time"),
            ": the rows of a table in a warehouse have no order of their own; number the runs in their order, and say ",
            Option("order", "runs"),
        )
    has_runs = form == "trajectories" or EPISODE in columns or order == "runs"
    return pilot_of_log(form, sampling, order, has_runs=has_runs, wanted=wanted)


def _table_name(table: str, dialect: Dialect) -> Any:
    """Return the name of a table; anything else that could stand there is refused."""
    import sqlglot
    from sqlglot import exp

    try:
        named = sqlglot.parse_one(table, into=exp.Table, dialect=dialect)
        parts = [part for part in named.parts if isinstance(part, exp.Identifier) and part.name]
        said = {key for key, value in named.args.items() if value} | {
            "comment" for node in named.walk() if node.comments
        }
    except (sqlglot.errors.SqlglotError, AttributeError, ValueError, TypeError):
        parts, said = [], set()
    if not parts or not said <= {"this", "db", "catalog"} or len(parts) != len(said):
        raise DataError(
            Option("table", table),
            ": this is not the name of a table; write it as lake.log, with quotes if need be",
        )
    return named


def count_sql(
    graph: Graph,
    form: Form,
    columns: Mapping[str, str],
    table: str,
    *,
    first: tuple[str | None, Sequence[int]] = (None, SIZES),
    once: bool = False,
    place: str = PLACE_IN_RUN,
    is_warehouse: bool = False,
    pasts: bool = False,
) -> str:
    """Return the query in DuckDB's words; ``columns`` has an expression for each column that the form needs.

    ``first`` has the name of a column with the number of all runs, if they are counted, and of how many first ones rows
    are counted: 4, 16, … if nothing is said. ``once`` counts rows of one step of a run that are alike as one, and says
    how many copies of it there are. It needs run and step. Where ``columns`` has the stage of a row, rows of each stage
    are counted by themselves. ``place`` says where in its run a row is: ``PLACE_IN_ORDER`` if each run lies in one
    piece, its steps ascending, so that one pass over the rows will do, and ``PLACE_OF_ORDERED`` if all steps only order
    the rows, as dates and times do. ``is_warehouse`` says that the query is for another engine. ``pasts`` counts rows
    by the past of their runs as well, in rows of their own; it needs run and step, and each step ``once`` if these are
    transitions.
    """
    n_runs, sizes = first
    firsts = {f"{FIRST_COUNT}{size}": size for size in sizes}
    twice = {name.casefold() for name in keys(graph)} & {N_RUNS, N_UNORDERED, *firsts, RUN, RUN_NUMBER}
    columns = with_values(columns, is_warehouse=is_warehouse)
    if n_runs and twice:
        why = f"the query would have two columns {', '.join(sorted(twice))}"
        raise DataError(why, "; rename a state variable, or ", Option("pilot", False), ", to do without bets")
    pasts = pasts and has_pasts(graph) and GAP not in columns and STAGE not in columns
    parts, steps = _steps(graph, form, columns, table, place, n_runs, once, pasts)
    observations = [name for name in (GAP, PARTIAL) if name in columns]
    grouped = [
        *keys(graph),
        *observations,
        *_known(graph, columns),
        *([STAGE] if STAGE in columns else []),
        *([PLACE] if steps == "moves" else []),
    ]
    values, named = value_columns(columns), _of_observations(columns, form)
    about: dict[str, Any] = {
        "values": values,
        "n_runs": n_runs,
        "firsts": firsts,
        "once": once,
        "is_warehouse": is_warehouse,
    }
    if pasts:
        parts, steps, about = [*parts, *pasts_sql(graph, steps)], "pasts", {**about, "pasts": graph}
    counted = _count(grouped, steps, named, **about)
    return f"WITH {_joined(parts)}\n{counted}"


def rows_sql(graph: Graph, form: LogForm, columns: Mapping[str, str], table: str, *, once: bool, every: Every) -> str:
    """Return the query for what ``count_sql`` would count, row by row, with the run, and where the row is.

    The table has a column ``PLACE_OF_ROW``. Of rows that are alike, if they count ``once``, there is the first, or
    ``every`` one of them, with or without those that are copies.
    """
    is_unnested = once and every != "first"
    columns = {**with_values(columns), PLACES_OF_ROWS if is_unnested else PLACE_OF_ROW: PLACE_OF_ROW}
    if form == "counts":
        return select_sql(columns, table)
    parts, steps = _steps(graph, form, columns, table, PLACE_IN_RUN, None, once)
    counted = f"CASE WHEN {N_COPIES} > 0 THEN [list_min({PLACES_OF_ROWS})] ELSE {PLACES_OF_ROWS} END"
    where = PLACES_OF_ROWS if every == "row or copy" else counted
    own = ", ".join(f"{expression} AS {quoted(name)}" for name, expression in _of_observations(columns, form).items())
    every_column = f"* REPLACE ({own})" if own else "*"
    each = f"SELECT {every_column}" + (f", unnest({where}) AS {PLACE_OF_ROW}" if is_unnested else "")
    return f"WITH {_joined(parts)}\n{each} FROM {steps}"


def pieces_sql(table: str, *, has_steps: bool, has_files: bool) -> str:
    """Return a query for the pieces that the runs of a log lie in, by file, given the run, step and file of each row.

    Of each run and file, it has how many pieces begin there, whether something is not in order (a run or step is
    missing, or a step is not above the one before), and whether the run goes on there from the file before.
    """
    names = ["run", *(["step"] if has_steps else []), *(["file"] if has_files else [])]
    before = ", ".join(f"lag({name}) OVER () AS {name}_before" for name in names)
    rows = f"SELECT *, {before} FROM {table}"
    is_new, is_lost, is_not_above = "run IS DISTINCT FROM run_before", "run IS NULL", "run IS NULL"
    if has_steps:
        is_lost += " OR isfinite(step) IS NOT TRUE"
        is_not_above = "(step > step_before AND isfinite(step)) IS NOT TRUE"
    is_off = f"{is_lost} OR (NOT ({is_new}) AND {is_not_above})"
    told = {
        "run": "run",
        "file": "file" if has_files else "0",
        "n": f"count(*) FILTER (WHERE {is_new})",
        "is_off": f"bool_or({is_off})",
        "goes_on": f"bool_and(NOT ({is_new}) AND step = step_before + 1)" if has_steps else "false",
    }
    kept = f"{is_new} OR {is_not_above}" + (" OR file IS DISTINCT FROM file_before" if has_files else "")
    grouped = "run, file" if has_files else "run"
    return f"{select_sql(told, f'({rows})')} WHERE {kept} GROUP BY {grouped}"


def any_repeated_sql(table: str) -> str:
    """Return a query that has a row if a step of a run has several, or a step cannot be read."""
    where = "run IS NOT NULL AND step IS NOT NULL"
    return f"SELECT 1 AS found FROM {table} WHERE {where} GROUP BY run, step HAVING count(*) > 1 OR isnan(step) LIMIT 1"


def keys(graph: Graph) -> list[str]:
    """Return the columns that tell one transition from another."""
    return [*state_columns(graph), ACTION, *next_columns(graph)]


def _known(graph: Graph, columns: Collection[str]) -> list[str]:
    """Return the columns with what was known of a run before it began."""
    return [name for name in columns if name.startswith(KNOWN) and name not in keys(graph)]


def _steps(
    graph: Graph,
    form: LogForm,
    columns: Mapping[str, str],
    table: str,
    place: str,
    n_runs: str | None,
    once: bool,
    pasts: bool = False,
) -> tuple[list[str], str]:
    """Return the tables that lead to the steps of a log, and the name of the last one.

    It has a row for each step: state, action, next state, the ``place`` of the row in its run unless rows of
    transitions are counted as they come, and what ``columns`` has besides.
    """
    state, is_runs, in_order = state_columns(graph), form == "trajectories", place == PLACE_IN_ORDER
    after = dict(zip(next_columns(graph), state, strict=True))
    shown = [*state_columns(graph, form), ACTION, *(() if is_runs else after)]
    beside = (*_WHERE, *value_columns(columns), *_known(graph, columns))
    others = {name: columns[name] for name in beside if name in columns}
    has_run = n_runs or once or pasts or (PLACE_OF_ROW in columns and EPISODE in columns)
    named = {name: columns[name] for name in (EPISODE, STEP) if is_runs or once or (has_run and name == EPISODE)}
    rows = {key: columns[name] for key, name in zip(keys(graph), shown, strict=False)}
    observations = {name: columns[name] for name in (GAP, PARTIAL) if name in columns}
    have_ends = PARTIAL in observations
    if not is_runs or have_ends:
        rows |= observations
    rows = (named | rows if is_runs else rows | named) | others
    rows |= {MOMENT: columns[MOMENT]} if MOMENT in columns else {}
    ends = [*([STEP] if once or pasts else []), *([N_ALIKE] if once else [])]
    kept = [*keys(graph), *observations, *others, *([EPISODE] if has_run else []), *ends]
    source = "different_rows" if once else "log_rows"
    parts = [
        f"log_rows AS ({select_sql(rows, table)})",
        *([_runs(n_runs, may_lack_names=not is_runs)] if n_runs else []),
        *([f"{source} AS ({_alike([*rows], 'log_rows')})"] if once else []),
    ]
    if not is_runs and not once:
        return parts, source
    moves = {name: quoted(name) for name in (*kept, PLACE)} | ({N_COPIES: _NOT_COUNTED} if once else {})
    if is_runs:
        window = "" if in_order else _IN_RUNS
        ahead = {name: f"lead({quoted(key)})" for name, key in after.items()}
        ahead |= _NEXT_PLACE if in_order else _STEPS_AROUND
        over = {name: f"{function} OVER ({window})" for name, function in ahead.items()}
        if STAGE in columns:  # a step is seen when the later of its two rows is
            over["stage_after"] = f"lead({quoted(STAGE)}) OVER ({window})"
        parts += [f"rows_with_next AS ({select_sql({'*': '*'} | over, source)})"]
        source = "rows_with_next"
        of_next = [*after, *([GAP] if observations and not have_ends else [])]
        moves |= {name: f"CASE WHEN {quoted(PLACE)} IN ('step', 'apart') THEN {quoted(name)} END" for name in of_next}
    placed = {name: quoted(name) for name in kept} | {PLACE: place if is_runs else _PLACE_OF_MOVE}
    if observations and is_runs:  # whatever the gap, the next observation is the next step
        placed[PLACE] = place.replace(_IS_NEXT, f"{quoted(NEXT_STEP)} > {quoted(STEP)}")
        placed[NEXT_AFTER if have_ends else GAP] = f"{quoted(NEXT_STEP)} - {quoted(STEP)}"
    placed |= {STAGE: f"greatest({quoted(STAGE)}, stage_after)"} if is_runs and STAGE in columns else {}
    return [
        *parts,
        f"rows_with_place AS ({select_sql(placed, source)})",
        f"moves AS ({select_sql(moves, 'rows_with_place')})",
    ], "moves"


def _of_observations(columns: Collection[str], form: LogForm) -> dict[str, str]:
    """Return, as SQL, the columns in which observations are told by the names that ``with_gaps`` has for them."""
    if GAP not in columns:
        return {}
    until, gap = _action_until(quoted(ACTION), quoted(GAP)), f"TRY_CAST({quoted(GAP)} AS DOUBLE)"
    if PARTIAL not in columns:
        last = f"CASE WHEN {quoted(GAP)} IS NULL THEN CAST({quoted(ACTION)} AS VARCHAR) ELSE {until} END"
        return {ACTION: last if form == "trajectories" else until}
    after = f"TRY_CAST({quoted(NEXT_AFTER)} AS DOUBLE)"
    before = f"{after} > 0 AND {after} < {gap}"  # of other numbers there is no state, of none it cannot be read
    entered = f"CASE WHEN {after} = {gap} THEN 0 WHEN {before} THEN {after} WHEN {after} IS NOT NULL THEN -2 END"
    partly = f"CASE WHEN {quoted(PARTIAL)} THEN concat({until}, ', {PARTLY}') ELSE {until} END"
    return {ACTION: partly, NEXT_AFTER: entered}


def _action_until(action: str, gap: str) -> str:
    """Return the action of an observation as SQL, as ``with_gaps`` calls it; none if the gap is not whole."""
    name = f"CASE WHEN CAST({action} AS VARCHAR) = '{ONLY_ACTION}' THEN '{WAIT}' ELSE CAST({action} AS VARCHAR) END"
    number = f"TRY_CAST({gap} AS DOUBLE)"
    whole = f"CASE WHEN {number} = floor({number}) THEN TRY_CAST({number} AS BIGINT) END"
    steps = f"coalesce(CAST({whole} AS VARCHAR), CAST({gap} AS VARCHAR), '{UNKNOWN}')"
    return f"CASE WHEN {number} = 1 THEN {name} ELSE concat({name}, ', ', {steps}, ' steps') END"


def _joined(parts: Sequence[str]) -> str:
    return ",\n".join(parts)


def _alike(columns: Sequence[str], table: str) -> str:
    """Return the different rows of a table, and how often each of them is there."""
    names = ", ".join(quoted(name) for name in columns if name not in _WHERE)
    kept = {quoted(name): function for name, function in _WHERE.items() if name in columns}
    where = "".join(f", {function}({name}) AS {name}" for name, function in kept.items())
    # rows without run or step are no copies of each other, so that each is seen when it is
    apart = f", CASE WHEN {_IS_UNPLACED} THEN {quoted(STAGE)} END" if STAGE in columns else ""
    return f"SELECT {names}, count(*) AS {quoted(N_ALIKE)}{where} FROM {table} GROUP BY {names}{apart}"


def _runs(n_runs: str, *, may_lack_names: bool) -> str:
    """Return the table of all runs, with their numbers in order, and how many there are; none if a row has no name."""
    n = "count(*) OVER ()"
    unnamed = f"(SELECT count(*) FROM run_names WHERE {quoted(RUN)} IS NULL)"
    numbers = {
        RUN: quoted(RUN),
        RUN_NUMBER: f"row_number() OVER (ORDER BY {quoted(RUN)})",
        n_runs: f"CASE WHEN {unnamed} > 0 THEN 0 ELSE {n} END" if may_lack_names else n,
    }
    return (
        f"run_names AS (SELECT DISTINCT {quoted(EPISODE)} AS {quoted(RUN)} FROM log_rows),\n"
        f"runs AS ({select_sql(numbers, 'run_names')} WHERE {quoted(RUN)} IS NOT NULL)"
    )


def select_sql(columns: Mapping[str, str], table: str) -> str:
    """Return a query for expressions by the names of their columns."""
    parts = ("*" if name == "*" else f"{expression} AS {quoted(name)}" for name, expression in columns.items())
    return f"SELECT {', '.join(parts)} FROM {table}"


def _count(
    columns: Sequence[str],
    table: str,
    of_observations: Mapping[str, str],
    *,
    values: Collection[str] = (),
    firsts: Mapping[str, int],
    n_runs: str | None = None,
    once: bool = False,
    is_warehouse: bool = False,
    pasts: Graph | None = None,
) -> str:
    names = ", ".join(map(quoted, [*columns, N_COPIES] if once else columns))
    n = f"{quoted(N_ALIKE)} - {quoted(N_COPIES)}" if once else "1"
    counted = {COUNT: _sum(n) if once else "count(*)"}
    for name in values:
        counted |= sums_sql(name, quoted(name), n, is_warehouse=is_warehouse) | range_sql(name, quoted(name))
    if n_runs:
        for name, size in firsts.items():
            times = f"CASE WHEN {quoted(RUN_NUMBER)} <= {size} THEN {n} ELSE 0 END"
            counted[name] = _sum(times)
            for value in values:
                counted |= sums_sql(value, quoted(value), times, is_warehouse=is_warehouse, first=size)
        counted[n_runs] = f"max({quoted(n_runs)})"
        table = f"{table} LEFT JOIN runs ON {quoted(EPISODE)} = {quoted(RUN)}"
    sums = ", ".join(f"{function} AS {quoted(name)}" for name, function in counted.items())
    told, grouped = ("", names) if pasts is None else grouped_sql(pasts, names)
    query = f"SELECT {', '.join(filter(None, [names, told, sums]))} FROM {table} GROUP BY {grouped}"
    if not of_observations:
        return query
    kept = [name for name in (*columns, *([N_COPIES] if once else []), *counted) if name not in (GAP, PARTIAL)]
    named = {name: quoted(name) for name in kept} | {**of_observations}  # of few rows, as texts take long
    return select_sql(named, f"({query}) AS counted_observations")


def _sum(expression: str) -> str:
    return f"CAST(sum({expression}) AS BIGINT)"

"""Contexts as SQL, for engines that count by themselves: windows over the steps of runs, and sets that are grouped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plumdp.base.vocabulary import EPISODE
from plumdp.data.columns import (
    ACTION,
    CONTEXT,
    PAST,
    PAST_ACTION,
    PAST_PLACE,
    PLACE,
    STEP,
    next_columns,
    past_columns,
    state_columns,
)
from plumdp.data.contexts import MOST_TRANSITIONS
from plumdp.data.names import quoted
from plumdp.model.graph import Graph

_BINS, _STEPS = (1, 2, 4, 8, 16, 32, 64), (1, 2, 3, 4, 8, 16, 32)  # where the second and later values begin
_IS_OFF = f"""{quoted(EPISODE)} IS NULL OR {quoted(STEP)} IS NULL OR {quoted(PLACE)} IN ('duplicate', 'unplaced')"""
_RUN = f"PARTITION BY {quoted(EPISODE)}, CASE WHEN {_IS_OFF} THEN 1 ELSE 0 END"  # others have no order


def has_pasts(graph: Graph) -> bool:
    """Return whether contexts are counted: of small models, whose variables have other names than the columns."""
    names = [*state_columns(graph), *next_columns(graph)]
    own = {CONTEXT, PAST, PAST_ACTION, PAST_PLACE, *past_columns(graph)}
    return graph.n_transitions <= MOST_TRANSITIONS and not own & {name.casefold() for name in names}


def pasts_sql(graph: Graph, steps: str) -> list[str]:
    """Return tables that lead from steps to ``pasts``, which has what came before each step in its run."""
    state, after = ([*map(quoted, names)] for names in (state_columns(graph), next_columns(graph)))
    in_run = f'OVER ({_RUN} ORDER BY "{STEP}")'
    in_row = f'OVER ({", ".join([_RUN, *state, quoted(ACTION)])} ORDER BY "{STEP}")'
    stays = " AND ".join(f"lag({name}) {in_run} = {name}" for name in state)
    leads = " AND ".join(f"lag({later}) {in_run} = {name}" for name, later in zip(state, after, strict=True))
    seen = {
        "n_steps": f"row_number() {in_run} - 1",
        "n_visits": f"row_number() {in_row} - 1",
        "has_entered": f"CASE WHEN {stays} THEN 0 ELSE 1 END",
        "last_place": f"lag({quoted(PLACE)}) {in_row}",
        "before_place": f"CASE WHEN {leads} THEN lag({quoted(PLACE)}) {in_run} ELSE 'gap' END",
        "before_action": f"lag({quoted(ACTION)}) {in_run}",
    }
    for i, (name, later) in enumerate(zip(state, after, strict=True)):
        seen |= {f"last_{i}": f"lag({later}) {in_row}", f"before_{i}": f"lag({name}) {in_run}"}
    seen = {name: f"CASE WHEN {_IS_OFF} THEN NULL ELSE {each} END" for name, each in seen.items()}
    in_stay = f'OVER ({_RUN}, stay ORDER BY "{STEP}")'
    values = {
        "past_visits": _bin("n_visits", _BINS),
        "past_step": _bin("n_steps", _STEPS),
        "past_since": _bin(f"row_number() {in_stay} - 1", _BINS),
        "past_last": "CASE WHEN n_visits > 0 THEN 1 ELSE 0 END",
        "past_previous": "CASE WHEN n_steps > 0 THEN 1 ELSE 0 END",
    }
    # of rows without an order there is no past, and so nothing is said of the others
    values = {name: f"CASE WHEN {_IS_OFF} THEN -1 ELSE {each} END" for name, each in values.items()}
    return [
        f"steps_seen AS ({_more(seen, steps)})",
        f"stays AS ({_more({'stay': f'sum(has_entered) {in_run}'}, 'steps_seen')})",
        f"pasts AS ({_more(values, 'stays')})",
    ]


def grouped_sql(graph: Graph, names: str) -> tuple[str, str]:
    """Return the columns that say which past a row of counts has, and the sets by which steps are grouped."""
    n = range(len(state_columns(graph)))
    sets = {
        "visits": ["past_visits"],
        "step": ["past_step"],
        "since": ["past_since"],
        "last": ["past_last", "last_place", *(f"last_{i}" for i in n)],
        "previous": ["past_previous", "before_place", "before_action", *(f"before_{i}" for i in n)],
    }
    kinds = " ".join(f"WHEN past_{kind} IS NOT NULL THEN '{kind}'" for kind in sets)  # only of the set it is in
    columns = {
        CONTEXT: f"CASE {kinds} ELSE 'all' END",
        PAST: f"coalesce({', '.join(f'past_{kind}' for kind in sets)})",
        PAST_PLACE: "coalesce(last_place, before_place)",
        PAST_ACTION: "before_action",
        **{name: f"coalesce(last_{i}, before_{i})" for i, name in enumerate(past_columns(graph))},
    }
    told = ", ".join(f"{expression} AS {quoted(name)}" for name, expression in columns.items())
    grouped = ", ".join(f"({', '.join([names, *more])})" for more in ([], *sets.values()))
    return told, f"GROUPING SETS ({grouped})"


def _bin(n: str, firsts: Sequence[int]) -> str:
    cases = " ".join(f"WHEN {n} < {first} THEN {value}" for value, first in enumerate(firsts))
    return f"CASE {cases} ELSE {len(firsts)} END"


def _more(columns: Mapping[str, str], table: str) -> str:
    return f"SELECT *, {', '.join(f'{expression} AS {name}' for name, expression in columns.items())} FROM {table}"

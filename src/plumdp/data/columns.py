"""The columns of a log: what plumdp calls them, and which columns of a log at hand they are, or are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, get_args

from plumdp.base.errors import DataError, Option
from plumdp.base.vocabulary import AFTER, EPISODE, LogForm
from plumdp.data.log_format import LogFormat
from plumdp.data.mapping_language import MappingTerm, column, text
from plumdp.data.mappings import StateMapping
from plumdp.data.reward_values import Rewards
from plumdp.model.graph import Graph

Source: TypeAlias = str | MappingTerm
"""Where a column that plumdp needs comes from: a column of the log, or a mapping of some of them."""


ACTION, STEP, COUNT, PLACE = "action", "step", "n", "place"
ONLY_ACTION = "the only action"  # of a state, in logs of Markov chains
GAP = "gap"  # of observations: the steps to the next state; runs have it as the difference of steps
UNKNOWN = "unknown"  # gaps that are missing, where actions are named by them
PARTIAL = "partial"  # of observations that may end before: whether the next one sees no more than that
NEXT_AFTER = f"next_{AFTER}"
STEP_BEFORE, NEXT_STEP, SECOND_STEP, NEXT_EPISODE = "step_before", "step_after", "second_step_after", "episode_after"

RUN, RUN_NUMBER = "run_name", "run_number"
N_RUNS, N_UNORDERED = "n_runs", "n_unordered_runs"  # of counts: runs numbered as they were made, or otherwise
FIRST_COUNT = "n_first_"  # of counts, with a number: those of so many runs
FIRST_COUNTS = tuple(f"{FIRST_COUNT}{4 * 4**i}" for i in range(7))  # that ready-made counts have
MOMENT = "moment of the step"  # within the period that the step is; no variable is called so
STAGE = "stage of the run"  # how many moments at which bets are placed came before it; no variable is called so
KNOWN = "known_"  # of counts, with the name of a column: what was known of the run before it began
CONTEXT, PAST = "context", "past"  # of counts: the kind of past that rows are counted by, and which one it was
PAST_ACTION, PAST_PLACE = "past_action", "past_place"  # of the earlier step that a past is
PLACES_OF_ROWS = "places_of_rows"
N_ALIKE, N_COPIES = "n_alike", "n_copies"  # rows of one step that are alike, and those of them that need not count

LARGEST_STEP = 2**53  # of steps as floats: from here on, one more is the same number


def named(columns: Mapping[str, str], variables: Container[str] = ()) -> dict[str, str]:
    """Return columns by their names here: the run of a row is its episode, unless that is a state variable.

    >>> named({"run": "case", "arm": "drug"})
    {'episode': 'case', 'arm': 'drug'}
    """
    is_run = "run" not in variables
    return {EPISODE if name == "run" and is_run else name: there for name, there in columns.items()}


def state_column(variable: str) -> str:
    """Return the name of the column with a state variable.

    >>> state_column("x"), state_column("Step")
    ('x', 'state_Step')
    """
    return f"state_{variable}" if variable.casefold() in (EPISODE, STEP, ACTION) else variable


def state_columns(graph: Graph, form: LogForm = "counts") -> list[str]:
    """Return the columns of the state variables; in counts, ``n`` and ``place`` are columns of the log itself."""
    taken = (COUNT, PLACE) if form == "counts" else ()
    return [f"state_{name}" if name.casefold() in taken else state_column(name) for name in graph.states]


def next_columns(graph: Graph) -> list[str]:
    """Return the columns of the next state's variables."""
    return [f"next_{name}" for name in graph.states]


def past_columns(graph: Graph) -> list[str]:
    """Return the columns of counts with the state of the step before, or that after the last visit of the row."""
    return [f"past_state_{i}" for i in range(len(graph.states))]


def needed_columns(graph: Graph, form: LogForm) -> list[str]:
    """Return the columns that a log of this form must have."""
    state, after = state_columns(graph, form), next_columns(graph)
    columns = {
        "transitions": [*state, ACTION, *after],
        "trajectories": [EPISODE, STEP, *state, ACTION],
        "counts": [*state, ACTION, *after, COUNT],
    }[form]
    _require_distinct(
        [*state, *after, ACTION, EPISODE, STEP, STEP_BEFORE, NEXT_STEP, SECOND_STEP, NEXT_EPISODE, N_ALIKE, N_COPIES]
    )
    return columns


def needed_sources(graph: Graph, form: LogForm, mapping: StateMapping) -> dict[str, Source]:
    """Return for each needed column its own name, or the mapping that makes it of others.

    What makes the state of the columns ``lon`` makes the next state of ``next_lon``.
    """
    state = dict(zip(state_columns(graph, form), graph.states, strict=True))
    after = dict(zip(next_columns(graph), graph.states, strict=True))
    sources: dict[str, Source] = {}
    for name in needed_columns(graph, form):
        term = mapping.variables.get(state.get(name, after.get(name, "")))
        term = mapping.action if name == ACTION else term
        if term is not None and name in after:
            term = term.renamed({column: f"next_{column}" for column in term.columns()})
        sources[name] = name if term is None else term
    return sources


def source_columns(sources: Iterable[Source]) -> list[str]:
    """Return the columns that sources are made of, each once."""
    return [
        *dict.fromkeys(
            name for source in sources for name in ([source] if isinstance(source, str) else source.columns())
        )
    ]


def found_in(source: Source, names: Mapping[str, str]) -> Source:
    """Return a source with the names that its columns have in the log."""
    return names[source] if isinstance(source, str) else source.renamed({n: names[n] for n in source.columns()})


def find_columns(
    graph: Graph,
    available: Sequence[str],
    format: LogFormat,
    mapping: StateMapping,
    rewards: Rewards | None = None,
    *,
    are_observations: bool = False,
    have_ends: bool = False,
) -> tuple[LogForm, dict[str, Source]]:
    """Return the form of a log, guessed if it is not given, and for each column it needs where that comes from.

    So it is for columns that a log may have: run and step of transitions, what counts say of rows and of a pilot, and
    values of learned rewards.
    """
    if not graph.states:
        raise DataError("the states of this model have no variables, so that a log cannot name them")
    columns, form = named(format.columns, graph.states), format.form
    columns = {name: column for name, column in columns.items() if name not in columns_of_runs(graph, columns)}
    sources = {f: needed_sources(graph, f, mapping) for f in get_args(LogForm)}
    rewards = rewards or Rewards({}, is_needed=False)
    own = rewards.columns(sources["transitions"])
    if are_observations:
        sources = {f: with_observations(each, f, have_ends=have_ends) for f, each in sources.items()}
    _check_columns(sources, available, columns, [*own.values(), *([PARTIAL] if have_ends else [])])
    forms = {f: _located(source_columns(needed.values()), available, columns) for f, needed in sources.items()}
    chosen = form or _guess(forms)
    is_by_step = are_observations and not have_ends and chosen == "trajectories"
    if is_by_step and None not in _located([GAP], available, columns).values():
        of_times = (
            ": in runs gaps are differences of the column step, which counts steps of the model, not observations"
        )
        raise DataError(Option("columns", {GAP: ...}), of_times, "; give that column, or the state after each gap")
    if are_observations and not form:
        for f in ("transitions", chosen):
            _require_gaps({n for n, there in forms[f].items() if there is None})
    missing = [name for name, there in forms[chosen].items() if there is None]
    if missing:
        raise DataError(
            *_missing_text(chosen, missing, available, was_given=form is not None), *_hint(missing, mapping)
        )
    names = {name: there for name, there in forms[chosen].items() if there is not None}
    located = {name: found_in(source, names) for name, source in sources[chosen].items()}
    if have_ends and chosen != "counts":
        (partial,) = _located([PARTIAL], available, columns).values()
        located[PARTIAL] = partial_source(partial)
    if chosen == "counts":
        there = _located([PLACE, N_COPIES], available, columns)
        located |= {name: column for name, column in there.items() if column is not None}
        located |= _pilot_columns(graph, available, columns)
        pasts = _located([CONTEXT, PAST, PAST_ACTION, PAST_PLACE, *past_columns(graph)], available, columns)
        is_own = not {*pasts} & {*located}
        located |= {name: str(there) for name, there in pasts.items()} if is_own and all(pasts.values()) else {}
    if chosen == "transitions":
        located |= _run_and_step(located, available, columns)
    sizes = [int(name.rpartition("_")[2]) for name in FIRST_COUNTS if name in located]
    kept = rewards.kept_columns(sizes) if chosen == "counts" else own
    there = _located([*kept.values()], available, columns)
    if rewards.is_needed or any(there.values()):
        absent = [name for name in kept.values() if there[name] is None]
        if absent:
            raise DataError(*_missing_text(chosen, absent, available, was_given=form is not None))
        placed = {name: str(there[column]) for name, column in kept.items()}
        located |= placed if chosen == "counts" else rewards.sources(placed)
    return chosen, located


def with_observations(sources: Mapping[str, Source], form: LogForm, *, have_ends: bool) -> dict[str, Source]:
    """Return the sources of columns with those of observations: their gaps, and when ends were entered."""
    if form == "counts":  # in which actions have the gaps in their names
        return {**sources, ACTION: ACTION} | ({AFTER: AFTER, NEXT_AFTER: NEXT_AFTER} if have_ends else {})
    if not have_ends:
        return {**sources, GAP: GAP if form == "transitions" else STEP}
    entered = {NEXT_AFTER: AFTER} if form == "transitions" else {}
    return {**sources, AFTER: MappingTerm("0e0"), GAP: GAP, **entered}


def known_sources(known: Sequence[str], available: Sequence[str], needed: Sequence[str]) -> dict[str, Source]:
    """Return where columns that are known before a run begins come from, by what counts with ``needed`` call them."""
    for name in known:
        if name not in available:
            raise DataError(Option("known", [*known]), f": the log has no column {name}, only {', '.join(available)}")
        if f"{KNOWN}{name}" in needed:
            raise DataError(Option("known", [*known]), f": {KNOWN}{name} is a column of the model; rename one of them")
    return {f"{KNOWN}{name}": name for name in known}


def partial_source(name: str | None) -> MappingTerm:
    """Return where it is said which observations are partial; without a column, none is."""
    if name is None:
        return MappingTerm("FALSE", "truth")
    return MappingTerm(column(name, "truth"), "truth")


def _require_gaps(missing: set[str]) -> None:
    """Refuse a log that lacks nothing but when observations were planned, or when ends were entered."""
    if not missing or not missing <= {GAP, AFTER}:
        return
    months = {GAP: "months"} if AFTER not in missing else {GAP: "planned", AFTER: "months"}
    after = "" if AFTER not in missing else ", as it was planned, and which the steps after which that state was seen"
    said = "the log says no gaps: say which column has the steps to the next state"
    raise DataError(f"{said}{after}, as in ", Option("columns", {k: months[k] for k in months if k in missing}))


def columns_of_runs(graph: Graph, columns: Mapping[str, str]) -> dict[str, str]:
    """Return the given columns that say something of a whole run: its arm, with which chance, and its task.

    Counting needs none of them. A state variable may have one of these names, and then it is the variable.
    """
    return {name: columns[name] for name in ("arm", "chance", "task") if name in columns and name not in graph.states}


def _run_and_step(found: Mapping[str, Source], available: Sequence[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that say of a transition which step of which run it is; none if one of them is missing.

    A column that a state variable is read from is none of these, unless somebody says so.
    """
    used = source_columns(found.values())
    located = {
        name: column
        for name, column in _located([EPISODE, STEP], available, columns).items()
        if column is not None and (name in columns or column not in used)
    }
    return located if len(located) == 2 else {}


def _pilot_columns(graph: Graph, available: Sequence[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of counts that tell of their first runs; none if some are missing, or are of the model."""
    names = (N_RUNS, N_UNORDERED, *FIRST_COUNTS)
    located = {name: column for name, column in _located(names, available, columns).items() if column is not None}
    is_own = not {*names} & {*needed_columns(graph, "counts")}
    return located if is_own and len(located) == 1 + len(FIRST_COUNTS) else {}


def without_actions(graph: Graph, available: Sequence[str], format: LogFormat, mapping: StateMapping) -> StateMapping:
    """Return the mapping for a log that need not name actions, as no state of the model has two, and does not."""
    is_chain = graph.is_chain and mapping.names_no_action
    if not is_chain or _located([ACTION], available, format.columns)[ACTION] is not None:
        return mapping
    return replace(mapping, action=MappingTerm(text(ONLY_ACTION), "text"))


def find_runs(graph: Graph, available: Sequence[str], format: LogFormat) -> str | None:
    """Return which column of a log names the run of a row, if there is one; logs of transitions may have it too."""
    return _located([EPISODE], available, named(format.columns, graph.states))[EPISODE]


def _guess(forms: Mapping[LogForm, Mapping[str, str | None]]) -> LogForm:
    """Return counts only if nothing speaks of runs: a log of transitions may have a column n of another meaning."""
    complete = [form for form, found in forms.items() if None not in found.values()]
    is_run = forms["trajectories"][EPISODE] is not None  # needed, whatever is mapped
    if "counts" in complete and not is_run:
        return "counts"
    return next(iter(complete), "trajectories" if is_run else "transitions")


def _located(names: Sequence[str], available: Sequence[str], columns: Mapping[str, str]) -> dict[str, str | None]:
    """Return the source of each column: the one it is mapped to, or the one of its name in any case of letters."""
    folded: dict[str, list[str]] = {}
    for name in available:
        folded.setdefault(name.casefold(), []).append(name)
    places = {}
    for name in names:
        name_in_log = columns.get(name, name)
        same = folded.get(name_in_log.casefold(), [])
        places[name] = name_in_log if name_in_log in same else same[0] if len(same) == 1 else None
    return places


def _check_columns(
    sources: Mapping[LogForm, Mapping[str, Source]],
    available: Sequence[str],
    columns: Mapping[str, str],
    rewards: Sequence[str],
) -> None:
    needed = [name for each in sources.values() for name in [*source_columns(each.values()), PLACE]]
    allowed = dict.fromkeys([*needed, *rewards])
    for name, there in columns.items():
        if name not in allowed:
            plumdps = ", ".join(allowed)
            raise DataError(Option("columns", {name: ...}), f": plumdp has no column of this name, only {plumdps}")
        if _located([name], available, columns)[name] is None:
            of_log = ", ".join(available)
            raise DataError(Option("columns", {name: there}), f": the log has no such column, only {of_log}")


def _missing_text(
    form: LogForm, missing: Sequence[str], available: Sequence[str], *, was_given: bool
) -> tuple[str | Option, ...]:
    log = f"as a log of {form}, it" if was_given else f"the log looks like {form}, but it"
    lacks = f"{log} lacks {', '.join(missing)}; its columns are {', '.join(available)}: say which they are with "
    return lacks, Option("columns", {}), *(() if was_given else (", or give ", Option("form", ...)))


def _hint(missing: Sequence[str], mapping: StateMapping) -> tuple[str | Option, ...]:
    """Return the hint that a column of a mapping may be the same before and after a step."""
    used = [name for term in mapping.variables.values() for name in term.columns()]
    lacking = next((name for name in used if f"next_{name}" in missing and name not in missing), None)
    if lacking is None:
        return ()
    after = f"next_{lacking}"
    unchanged = f"; the next state is made of {after} (if a step never changes {lacking}, say "
    return unchanged, Option("columns", {after: lacking}), ")"


def column_of(source: Source) -> str:
    """Return the column that a source is, or is made of alone."""
    return source if isinstance(source, str) else source.columns()[0]


def _require_distinct(names: Sequence[str]) -> None:
    times = Counter(name.casefold() for name in names)  # SQL does not tell capitals apart
    repeated = sorted({name for name in names if times[name.casefold()] > 1})
    if repeated:
        but = ", which differ in capitals only" if len(repeated) > len({name.casefold() for name in repeated}) else ""
        raise DataError(f"two columns of the log would be called {', '.join(repeated)}{but}; rename a state variable")


def not_steps(column: str, kind: str) -> DataError:
    """Return the error for a column of steps that put nothing in order."""
    return DataError(
        f"column {column} has the type {kind}, but steps are numbers, dates or times, which order the rows of an "
        "episode; number the rows of each episode in their order"
    )

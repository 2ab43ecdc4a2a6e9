"""Tables made from logs: the graph of all states, actions and successors that some data show, with unknown rows.

Tables made from tabular environments of Gymnasium: which states an action may lead to, and not how likely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError, ModelError, Option
from plumdp.base.progress import working
from plumdp.data.columns import (
    ACTION,
    PLACE,
    STEP,
    find_columns,
    next_columns,
    source_columns,
    state_columns,
)
from plumdp.data.duckdb_engine import Block
from plumdp.data.log_format import LogFormat
from plumdp.data.mapping_language import OUTSIDE, parse_mapping
from plumdp.data.mappings import StateMapping, read_mapping
from plumdp.data.open_logs import files_of, open_log
from plumdp.data.remembering import Remembering, spread
from plumdp.data.steps import LogSteps
from plumdp.model.batches import State, labels_of, rewards_of
from plumdp.model.graph import BoolArray, FloatArray, Graph, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.model.table_model import STAY, Edges, all_free, find_state, number_states, state_type, table_model
from plumdp.model.unmodelled_exits import OUT_OF_TABLE, refuse_reserved
from plumdp.model.values import Texts, whole

_STEPS = ("step", "apart")  # places of rows whose next state is that of the next row


@working("reading the log")
def model_from_log(
    source: Any,
    format: LogFormat,
    *,
    initial: Any,
    ends: Callable[[State], BoolArray] | None = None,
    labels: Mapping[str, Callable[[State], BoolArray]] | None = None,
    rewards: Mapping[str, Callable[[State], FloatArray]] | None = None,
    choice_rewards: Mapping[str, Callable[[State, str], FloatArray]] | None = None,
    out_of_table: Mapping[str, tuple[float, float]] | None = None,
    closed: bool = False,
) -> ParametricMDP:
    """Return a table with an unknown row for each state and action in a log, and the successors that it shows.

    The log gives the structure alone. It must not be read again as evidence: take an earlier file, or the first runs,
    and give the rest to ``read_log``. Each row has one more successor, a state with the label "out_of_table", which
    stands for whatever the log did not show, and bounds take the worst and the best for it: any state, and any labels
    there.

    Parameters
    ----------
    source
        Files or a data frame, as in ``read_log``; after ``RawLog.remember``, states have one more variable.
    format
        How rows are read, as in ``read_log``: its states name the columns that make up a state, or have expressions and
        bins by variable. Without actions, these are called what they are in the log.
    initial
        The state in which runs start: a value, or a mapping of them by variable.
    ends
        A function of all states at once: where nothing happens any more. Other states in which the log has no action
        lead elsewhere.
    labels, rewards, choice_rewards
        Functions of all states at once, as in ``explore_batch``. They are not asked about states that the log does not
        show. A ``choice_rewards`` may be nan where it is unknown: that is refused if the log has the action, and a
        state in which the log has none is then elsewhere itself.
    out_of_table
        For rewards by name, what a step in such a state earns, at least and at most, as in ``{"cost": (0, 1000)}``.
        Questions about this reward need it; sums without a last step may have no most, inf.
    closed
        Whether there are no other states than those of the log, so that each row may lead to all of them, and nowhere
        else. Certificates assume it, and data that show another state contradict it. It is for few states, where a rare
        successor would else be taken for the worst that can happen elsewhere.

    Returns
    -------
    ParametricMDP
        The table.

    Examples
    --------
    >>> import pandas as pd
    >>> from plumdp import LogFormat
    >>> from plumdp.data import model_from_log
    >>> log = pd.DataFrame({"x": [0, 0, 1], "action": ["go", "go", "go"], "next_x": [1, 2, 2]})
    >>> model = model_from_log(log, LogFormat(states="x"), initial=0, ends=lambda s: s.x == 2)
    >>> model, model.labels["out_of_table"].sum()
    (ParametricMDP(6 states, 10 transitions, 3 unknown rows), np.int64(1))
    """
    refuse_reserved(labels or ())
    between = _between(out_of_table or {}, {*(rewards or {}), *(choice_rewards or {})})
    raw, files = files_of(source)
    skeleton = _skeleton(format, raw.memory)
    mapping = read_mapping(skeleton, format)
    with open_log(raw, files) as log:
        form, found = find_columns(skeleton, log.columns, format, mapping)
        used = source_columns(found.values())
        steps = LogSteps(log.keep(used, is_read_again=STEP in found), skeleton, form, found).arranged(is_followed=False)
        rows = _joined(steps.count(), [*state_columns(skeleton), ACTION, *next_columns(skeleton)])
    before, action, after = _typed(rows, skeleton, mapping)
    values, number = number_states(before, after)
    names, action_number = np.unique(action, return_inverse=True)
    first, last = np.split(number, 2)
    edges = Edges(first, action_number, last, tuple(names.tolist()))
    if raw.memory is not None:
        values, edges = spread(raw.memory, values, edges, closed=closed)
        known = initial if isinstance(initial, Mapping) else {next(iter(values)): initial}
        initial = {raw.memory.variable: raw.memory.first, **known}
    at_end = False if ends is None else ends(state_type(values)(**values))
    is_end = np.broadcast_to(np.asarray(at_end, dtype=np.bool_), len(next(iter(values.values()))))
    shown = _Shown(edges, values, initial, is_end, labels or {}, rewards or {}, choice_rewards or {})
    _refuse_unknown(shown)
    model = _closed(shown, is_spread=raw.memory is not None) if closed else _with_elsewhere(_without_unknown(shown))
    return replace(model, rewards={k: replace(v, out_of_table=between.get(k)) for k, v in model.rewards.items()})


def _between(given: Mapping[str, tuple[float, float]], names: set[str]) -> dict[str, tuple[float, float]]:
    """Return the least and the most of each reward where the table knows nothing."""
    found = {}
    for name, pair in given.items():
        if name not in names:
            raise ModelError(Option("out_of_table", given), f": {name!r} is not a reward of the model")
        ends = np.array(pair, dtype=np.float64) if isinstance(pair, tuple | list) else np.zeros(0)
        if ends.shape != (2,) or not (-np.inf < ends[0] <= ends[1]):
            raise ModelError(Option("out_of_table", given), f": give two numbers for {name!r}, the smaller one first")
        found[name] = (float(ends[0]), float(ends[1]))
    return found


def _skeleton(format: LogFormat, memory: Remembering | None) -> Graph:
    """Return a graph without states, which has the variables that are asked for, and the actions that are named."""
    names, terms, actions = format.variables, format.terms, format.actions
    if not names:
        raise DataError(Option("states", ()), ": name the columns that make up a state, such as ['x', 'y']")
    if memory is not None:
        if memory.variable in names:
            raise DataError(Option("remember", memory.what), f": the state has a variable {memory.variable} already")
        names.append(memory.variable)
    is_text = {name: isinstance(text, str) and _kind(name, text) == "text" for name, text in terms.items()}
    columns = {name: np.empty(0, dtype=np.str_ if is_text.get(name) else np.int32) for name in names}
    named = (
        [*actions.values()] if isinstance(actions, Mapping) else actions if isinstance(actions, list | tuple) else ()
    )
    nothing, start = np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int32)
    return Graph(start, start, nothing, 0, columns, nothing, tuple(dict.fromkeys(map(str, named))))


def _kind(name: str, text: str) -> str:
    try:
        return parse_mapping(text).kind
    except DataError as error:
        raise DataError(Option("states", {name: text}), f": {error}") from None


def _joined(blocks: Iterable[Block], names: Sequence[str]) -> dict[str, list[Any]]:
    """Return the columns of all rows that show a step, with None for what is missing, and places of other rows."""
    rows: dict[str, list[Any]] = {name: [] for name in (*names, PLACE)}
    for block in blocks:
        place = block[PLACE].astype(np.str_) if PLACE in block else np.full(len(block[names[0]]), _STEPS[0])
        is_step = np.isin(place, _STEPS)
        rows[PLACE] += np.unique(place[~is_step]).tolist()
        for name in names:
            values = block[name][is_step]
            plain = np.ma.getdata(values).astype(np.object_)
            plain[np.ma.getmaskarray(values)] = None
            rows[name] += plain.tolist()
    return rows


def _typed(
    rows: Mapping[str, list[Any]], skeleton: Graph, mapping: StateMapping
) -> tuple[dict[str, npt.NDArray[Any]], npt.NDArray[Any], dict[str, npt.NDArray[Any]]]:
    """Return states, actions and next states as columns of whole numbers or texts, without rows that lack some."""
    actions, n = _actions(rows[ACTION], mapping, skeleton.action_names), len(rows[ACTION])
    columns, has_all = {}, np.array([name is not None for name in actions], dtype=np.bool_)
    for variable, here, there in zip(skeleton.states, state_columns(skeleton), next_columns(skeleton), strict=True):
        columns[variable] = _values(variable, rows[here] + rows[there], mapping)
        is_here = np.array([value is not None for value in columns[variable]], dtype=np.bool_)
        has_all &= is_here[:n] & is_here[n:]
    kept = np.flatnonzero(has_all).tolist()
    if not kept and "duplicate" in rows[PLACE]:
        raise DataError(
            "no table can be made of the log, as each step has several rows; give each run a name of its own, and "
            "number its steps"
        )
    if not kept:
        raise DataError("no table can be made of the log, as it shows no step from a state to a next one")
    before = {name: _array([values[i] for i in kept]) for name, values in columns.items()}
    after = {name: _array([values[n + i] for i in kept]) for name, values in columns.items()}
    return before, np.array([actions[i] for i in kept]), after


def _actions(values: Sequence[Any], mapping: StateMapping, names: Sequence[str]) -> list[str | None]:
    """Return the names of actions, None for those that are missing, or that a given table does not have."""
    if mapping.action_names:
        column = np.empty(len(values), dtype=np.object_)
        column[:] = values
        return [names[code] if code >= 0 else None for code in Texts(tuple(names), mapping.action_names).code(column)]
    return [action_name(value) for value in values]


def action_name(value: Any) -> str | None:
    """Return the name of an action that a log has as a text or a whole number; None if it is missing."""
    if isinstance(value, str):
        return value.strip() or None
    number = whole(value)
    return None if number is None else str(number)


def _values(variable: str, values: Sequence[Any], mapping: StateMapping) -> list[Any]:
    """Return the values of a variable as whole numbers if all are, else as texts, and None for those that are missing.

    What lies outside of the bins of a mapping is missing too.
    """
    term = mapping.variables.get(variable)
    has_bins = term is not None and bool(term.edges)
    present = {value for value in values if not _is_missing(value)}
    numbers = {value: whole(value) for value in present}
    if None not in numbers.values():
        is_outside = {value for value, number in numbers.items() if has_bins and abs(number or 0) >= OUTSIDE}
        return [numbers[value] if value in present and value not in is_outside else None for value in values]
    if all(isinstance(value, str) for value in present):
        return [value.strip() if value in present else None for value in values]
    example = next(value for value, number in numbers.items() if number is None and not isinstance(value, str))
    raise DataError(
        f"variable {variable} has values such as {example!r}: make whole numbers or texts of them with ",
        Option("states", {variable: [0, 10, 20]}),
        " or an expression such as ",
        Option("states", {variable: f"floor({variable})"}),
    )


def _is_missing(value: Any) -> bool:
    is_blank = isinstance(value, str) and not value.strip()
    return value is None or is_blank or (isinstance(value, float) and not np.isfinite(value))


def _array(values: list[Any]) -> npt.NDArray[Any]:
    column = np.array(values)
    if column.dtype.kind == "i" and max(-int(column.min()), int(column.max())) >= 2**31 - 3:
        raise DataError(f"a state variable has the value {column[np.argmax(np.abs(column))]}, beyond 32 bits")
    return column.astype(np.int32) if column.dtype.kind == "i" else column


class _Shown(NamedTuple):
    """What a log shows of a table, and the functions of all states that were given for it."""

    edges: Edges
    values: Mapping[str, npt.NDArray[Any]]
    initial: Any
    is_end: BoolArray
    labels: Mapping[str, Callable[..., BoolArray]]
    rewards: Mapping[str, Callable[..., FloatArray]]
    choice_rewards: Mapping[str, Callable[..., FloatArray]]


def _refuse_unknown(shown: _Shown) -> None:
    """Refuse a reward that is nan, which says that it is not known, in a state and action of the table."""
    edges, states = shown.edges, state_type(shown.values)(**shown.values)
    for reward, function in shown.choice_rewards.items():
        for number, action in enumerate(edges.names):
            source = edges.source[(edges.action == number) & ~shown.is_end[edges.source]]
            earned = np.broadcast_to(np.asarray(function(states, action)), len(shown.is_end))[source]
            for state in source[np.isnan(earned)][:1].tolist():
                where = ", ".join(f"{name}={column[state]}" for name, column in shown.values.items())
                raise DataError(
                    f"nothing is known of the {reward} of {action!r} in ({where}): no row there has a number for it; "
                    "give the number in these rows"
                )


def _without_unknown(shown: _Shown) -> _Shown:
    """Return what a log shows, where steps lead elsewhere if they lead to states without a row or a known reward."""
    edges, states, n = shown.edges, state_type(shown.values)(**shown.values), len(shown.is_end)
    earned = [np.broadcast_to(np.asarray(f(states, OUT_OF_TABLE)), n) for f in shown.choice_rewards.values()]
    is_kept = shown.is_end | np.isin(np.arange(n), edges.source) | ~np.isnan(np.sum([np.zeros(n), *earned], axis=0))
    number = np.where(is_kept, np.cumsum(is_kept) - 1, is_kept.sum())
    edges = Edges(number[edges.source], edges.action, number[edges.target], edges.names)
    values = {name: read_only(column[is_kept]) for name, column in shown.values.items()}
    return shown._replace(edges=edges, values=values, is_end=shown.is_end[is_kept])


def _closed(shown: _Shown, *, is_spread: bool) -> ParametricMDP:
    """Return the table in which each row may lead to all states, and to no others.

    If steps are spread over what states remember, they are those that there may be.
    """
    edges, values, is_end, n = shown.edges, shown.values, shown.is_end, len(shown.is_end)
    pairs = np.unique(np.stack([edges.source, edges.action]), axis=1)
    (source, action), acts = pairs, ~is_end[pairs[0]]
    source, action, last = source[acts], action[acts], np.flatnonzero(is_end)
    lost = np.setdiff1d(np.flatnonzero(~is_end), source)
    if len(lost):
        where = ", ".join(f"{name}={column[lost[0]]}" for name, column in values.items())
        raise DataError(
            Option("closed", True),
            f": the log has no action in ({where}); say with ends= where runs end, or leave it out",
        )
    every = Edges(np.repeat(source, n), np.repeat(action, n), np.tile(np.arange(n), len(source)), edges.names)
    if is_spread:
        acts = ~is_end[edges.source]
        every = Edges(edges.source[acts], edges.action[acts], edges.target[acts], edges.names)
    graph = every.add(last, STAY, last).graph(values, find_state(values, shown.initial))
    states = state_type(values)(**values)
    earned = rewards_of(shown.rewards, shown.choice_rewards, states, graph)
    return all_free(graph, labels_of(shown.labels, states, graph), earned)


def _with_elsewhere(shown: _Shown) -> ParametricMDP:
    """Return the table in which each row may lead elsewhere as well, and so does each state without a row.

    From elsewhere nature chooses between two more states, the least and the most that a run may be worth there.
    """
    edges, values, is_end, n = shown.edges, shown.values, shown.is_end, len(shown.is_end)
    columns = {name: read_only(np.append(column, _beyond(name, column))) for name, column in values.items()}
    acts = ~is_end[edges.source]
    edges = Edges(edges.source[acts], edges.action[acts], edges.target[acts], edges.names)
    is_lost = ~is_end
    is_lost[edges.source] = False
    lost, last = np.flatnonzero(is_lost), np.flatnonzero(is_end)
    pairs = Edges(edges.source, edges.action, np.full(len(edges.source), n), edges.names)
    edges = edges.join(pairs).add(lost, OUT_OF_TABLE, np.full(len(lost), n)).add(last, STAY, last)
    two = np.array([n + 1, n + 2])
    edges = edges.add(np.array([n, n]), OUT_OF_TABLE, two).add(two, OUT_OF_TABLE, two)
    graph, states = edges.graph(columns, find_state(values, shown.initial)), state_type(columns)(**columns)
    labels, rewards, choice_rewards = (
        {name: _only_first(n, f) for name, f in each.items()}
        for each in (shown.labels, shown.rewards, shown.choice_rewards)
    )
    marked, earned = labels_of(labels, states, graph), rewards_of(rewards, choice_rewards, states, graph)
    return replace(all_free(graph, {}, earned), labels={**marked, OUT_OF_TABLE: read_only(np.arange(n + 3) == n)})


def _beyond(name: str, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the values of a variable in the state "out_of_table" and after it, which no other state has."""
    if column.dtype.kind != "U":
        return np.int32(column.max()) + np.arange(1, 4, dtype=np.int32)
    names = np.array([OUT_OF_TABLE, f"{OUT_OF_TABLE}, at least", f"{OUT_OF_TABLE}, at most"])
    if np.isin(names, column).any():
        raise DataError(f"variable {name} has the value {OUT_OF_TABLE!r}, which is that of successors not in the log")
    return names


def _only_first(n: int, function: Callable[..., Any]) -> Callable[..., npt.NDArray[Any]]:
    """Return a function of states that asks the given one about the first n, and is zero for the others."""

    def of_first(states: State, *rest: Any) -> npt.NDArray[Any]:
        first = np.broadcast_to(np.asarray(function(type(states)(*(column[:n] for column in states)), *rest)), n)
        return np.concatenate([first, np.zeros(len(states[0]) - n, dtype=first.dtype)])

    return of_first


def table_from_env(
    env: Any,
    *,
    initial: int | None = None,
    labels: Mapping[str, Callable[[State], BoolArray]] | None = None,
    rewards: Mapping[str, Callable[[State], FloatArray]] | None = None,
    choice_rewards: Mapping[str, Callable[[State, str], FloatArray]] | None = None,
) -> ParametricMDP:
    """Return the table of an environment that lists its transitions in ``P``, such as FrozenLake or Taxi.

    Only the successors are taken from it: the probabilities are unknown, to be learned from episodes or logs. The
    variable is called "state", actions "0", "1" and so on. States in which an episode terminates have the action "stay"
    alone, and the label "terminal". States that no episode can reach are left out.

    Parameters
    ----------
    env
        The environment.
    initial
        The first state, if episodes start in different ones.
    labels, rewards, choice_rewards
        Functions of all states at once, as in ``explore_batch``.

    Returns
    -------
    ParametricMDP
        The table.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from plumdp.data import table_from_env
    >>> listed = {0: {0: [(0.4, 0, 0.0, False), (0.6, 1, 1.0, True)]}, 1: {0: [(1.0, 1, 0.0, True)]}}
    >>> table_from_env(SimpleNamespace(P=listed), initial=0)
    ParametricMDP(2 states, 3 transitions, 1 unknown row)
    """
    owner = getattr(env, "unwrapped", env)
    listed = getattr(owner, "P", None)
    if not isinstance(listed, Mapping) or not listed:
        raise DataError(
            f"{type(owner).__name__} does not list its transitions in P, as tabular environments do; write a step "
            "function with unknown(…) for explore, or make a table of recorded episodes with model_from_log"
        )
    weights = getattr(owner, "initial_state_distrib", ())
    starts = [*np.flatnonzero(np.asarray(weights) > 0).tolist(), *([] if initial is None else [initial])]
    if not starts or (initial is None and len(starts) > 1):
        problem = f"start in {len(starts):,} states" if starts else "start in states that it does not list"
        raise DataError(
            f"episodes of {type(owner).__name__} {problem}: give initial=, the state that questions are about"
        )
    if starts[-1] not in listed:
        raise DataError(f"initial={initial!r}: {type(owner).__name__} has no such state")
    steps, terminal = _reached(_steps(listed), starts)
    rows = [(s, str(a), t) for s, a, t in steps] + [(s, STAY, s) for s in sorted(terminal)]
    source, action, target = zip(*rows, strict=True)
    ends = np.array(sorted(terminal), dtype=np.int64)
    marked = {"terminal": lambda s: np.isin(s.state, ends), **(labels or {})}
    return table_model(
        source, action, target, initial=starts[-1], labels=marked, rewards=rewards, choice_rewards=choice_rewards
    )


def _steps(listed: Mapping[int, Any]) -> dict[int, list[tuple[int, int, bool]]]:
    """Return for each state the possible steps: action, next state, and whether the episode terminates there."""
    steps: dict[int, list[tuple[int, int, bool]]] = {}
    for state, rows in listed.items():
        for action, outcomes in rows.items() if isinstance(rows, Mapping) else enumerate(rows):
            for outcome in outcomes:
                if not isinstance(outcome, tuple | list) or len(outcome) != 4:
                    form = "a probability, next state, reward and end"
                    raise DataError(f"P[{state}][{action}]: {outcome!r} is not {form}")
                probability, after, _, is_over = outcome
                if probability > 0:
                    steps.setdefault(int(state), []).append((int(action), int(after), bool(is_over)))
    return steps


def _reached(
    steps: Mapping[int, list[tuple[int, int, bool]]], starts: list[int]
) -> tuple[list[tuple[int, int, int]], set[int]]:
    """Return the steps that episodes can take, and where they terminate; where others go on, that is refused."""
    queue, reached, terminal = [*starts], {*starts}, set[int]()
    kept: list[tuple[int, int, int]] = []
    for state in queue:  # grows while it is walked
        for action, after, is_over in steps.get(state, ()):
            kept.append((state, action, after))
            if is_over:
                terminal.add(after)
            elif after not in reached:
                reached.add(after)
                queue.append(after)
    both = sorted(terminal & reached)
    if both:
        raise DataError(
            f"state {both[0]}: some episodes terminate there and others go on; a table needs a state of its own for "
            "the end, so write a step function for explore"
        )
    return kept, terminal

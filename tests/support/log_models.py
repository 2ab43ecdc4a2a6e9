"""A small model for tests of logs, its runs, and a slow recount of logs in plain Python."""

import re
from collections import Counter
from functools import cache

import numpy as np

import plumdp as pl

(p,) = pl.parameters("p")


def lamp_step(state):
    """A lamp moves on a line of three places, is lit or not, and works or rests: numbers, truth values and text."""
    moved = state._replace(place_x=min(state.place_x + 1, 2), mode="work")
    return {
        "go": [(p, moved), (1 - p, state._replace(lit=not state.lit))],
        "rest": [(1, state._replace(mode="rest", place_x=max(state.place_x - 1, 0)))],
    }


LAMP = pl.explore(lamp_step, {"place_x": 0, "lit": False, "mode": "rest"}, space=pl.ParameterSpace.unit("p"))
VARIABLES = ("place_x", "lit", "mode")


def runs(model, point, n, *, seed=1, max_steps=9):
    """Return runs of a model as the rows of both forms of a log, and their counts."""
    recorded = pl.data.record(model, point, n, rng=seed, max_steps=max_steps)
    forms = {form: rows_of(recorded.columns(form)) for form in ("transitions", "trajectories")}
    return forms, recorded.counts().counts


def rows_of(columns):
    """Return columns as a list of dicts of Python values."""
    lists = {name: values.tolist() for name, values in columns.items()}
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def recount(rows, graph, form):
    """Return counts by transition and a Counter of kinds, row by row: the rules of the documentation, slowly."""
    different = different_rows(rows, graph, form)
    kept, copies = without_copies(rows, different)
    counts, kinds = np.zeros(graph.n_transitions, dtype=np.int64), Counter({"copy": copies} if copies else {})
    for row, after, kind in successions(kept, different) if form == "trajectories" else moves(kept):
        own = tuple(row[name] for name in graph.states)
        if shows_unknown_state(graph, own):
            kind = "unknown state"
        elif kind == "last row" and is_censored(graph, own, row["action"]):
            kind = "censored"
        elif kind is None:
            values = tuple(row[f"next_{name}"] if after is None else after[name] for name in graph.states)
            kind, transition = find_transition(graph, own, row["action"], values)
            if kind == "matched":
                counts[transition] += 1
        kinds[kind] += 1
    return counts, kinds


def recount_part(rows, graph, form, is_first):
    """Return what ``recount`` counts in a part of the rows of a log, and in all rows that contradict others."""
    different = different_rows(rows, graph, form)
    first = [row for i, row in enumerate(rows) if is_first(i, row)]
    return recount(first + [row for row in rows if len(different.get(place(row), ())) > 1], graph, form)[0]


def place(row):
    """Return run and step of a row, or None if it does not name them."""
    found = row.get("episode"), row.get("step")
    return None if None in found else found


def different_rows(rows, graph, form):
    """Return the different rows of each step that a log names, by the values that are read."""
    names = [*graph.states, "action", *([f"next_{name}" for name in graph.states] if form == "transitions" else [])]
    found = {}
    for row in rows:
        values = tuple(None if row[name] != row[name] else row[name] for name in names)
        if place(row) is not None:
            found.setdefault(place(row), set()).add(values)
    return found


def without_copies(rows, different):
    """Return the rows without copies, and the number of copies; no row is one whose step has rows that differ.

    If most rows contradict others, runs share their names, and no row is a copy.
    """
    kept, known = [], set()
    for row in rows:
        is_clear = place(row) is not None and len(different[place(row)]) == 1
        if not is_clear or place(row) not in known:
            kept.append(row)
        known |= {place(row)} if is_clear else set()
    n_repeated = sum(place(row) is not None and len(different[place(row)]) > 1 for row in kept)
    return (rows, 0) if 2 * n_repeated > len(kept) else (kept, len(rows) - len(kept))


def moves(rows):
    """Yield each row of transitions, or with the kind that it is if its step has others."""
    by_place = Counter(map(place, rows))
    for row in rows:
        yield row, None, "repeated step" if place(row) is not None and by_place[place(row)] > 1 else None


def successions(rows, different):
    """Yield each row of trajectories with the next row of its run, or with the kind that it is without one."""
    by_place = Counter(map(place, rows))
    at, last = {place(row): row for row in rows}, {}
    for episode, step in different:
        last[episode] = max(step, last.get(episode, step))
    for row in rows:
        if place(row) is None:
            yield row, None, "no episode or step"
            continue
        following = (row["episode"], row["step"] + 1)
        if by_place[place(row)] > 1:
            yield row, None, "repeated step"
        elif last[row["episode"]] <= row["step"]:
            yield row, None, "last row"
        elif len(different.get(following, ())) != 1:
            yield row, None, "gap in steps"
        else:
            yield row, at[following], None


def is_censored(graph, values, action):
    """Return whether the action can be taken in a state, and may lead somewhere else."""
    state = find_state(graph, values)
    if state is None:
        return False
    for choice in range(graph.first_choice[state], graph.first_choice[state + 1]):
        after = {*graph.successor[graph.first_transition[choice] : graph.first_transition[choice + 1]].tolist()}
        if graph.action_names[graph.action[choice]] == action:
            return after != {state}
    return False


@cache
def find_state(graph, values):
    """Return the state with these values, written in any of the ways that a log may write them."""
    for state in range(graph.n_states):
        own = [column[state].item() for column in graph.states.values()]
        if all(is_same(a, b) for a, b in zip(own, values, strict=True)):
            return state
    return None


def is_same(value, written):
    """Return whether a log's value stands for a value of the model."""
    if isinstance(value, str):
        return written == value
    spellings = {str(int(value)), f"{int(value)}.0", *({str(bool(value)).lower()} if value in (0, 1) else ())}
    spellings |= {"yes" if value else "no"} if isinstance(value, bool) else set()
    return written is not None and (written.lower() in spellings if isinstance(written, str) else written == value)


@cache
def shows_unknown_state(graph, values):
    """Return whether these values tell of a state that the graph lacks: all can be read, or one is no state's value."""
    if find_state(graph, values) is not None:
        return False
    readable = [is_readable(column[0].item(), v) for column, v in zip(graph.states.values(), values, strict=True)]
    known = [any(is_same(own.item(), v) for own in c) for c, v in zip(graph.states.values(), values, strict=True)]
    return all(readable) or any(r and not k for r, k in zip(readable, known, strict=True))


def is_readable(example, written):
    """Return whether a log's value can be the value of a variable that has the example as one of its values."""
    if isinstance(written, str):
        answers = "|yes|no" if isinstance(example, bool) else ""
        number = re.fullmatch(rf"[+-]?[0-9]+(\.0*)?|true|false{answers}", written.strip().lower())
        return bool(written.strip()) if isinstance(example, str) else number is not None
    return written is not None and written == written and float(written).is_integer()


def find_transition(graph, before, action, values):
    """Return "matched" and the transition, or the kind of mismatch and None."""
    if shows_unknown_state(graph, values):
        return "unknown next state", None
    state, after = find_state(graph, before), find_state(graph, values)
    if state is None or after is None:
        return "unreadable state", None
    if action not in graph.action_names:
        return "unknown action", None
    for choice in range(graph.first_choice[state], graph.first_choice[state + 1]):
        for transition in range(graph.first_transition[choice], graph.first_transition[choice + 1]):
            if graph.action_names[graph.action[choice]] == action and graph.successor[transition] == after:
                return "matched", transition
    return "impossible transition", None

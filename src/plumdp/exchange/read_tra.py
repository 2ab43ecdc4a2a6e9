"""Reads PRISM's explicit text files: ``.tra`` with the ``.lab``, ``.sta``, ``.srew`` and ``.trew`` files beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.exchange.rows import FileLine, FileRows, build, column_of, number, reward_of, whole
from plumdp.model.graph import BoolArray, Graph, read_only
from plumdp.model.parametric import RewardStructure
from plumdp.model.text import cut, number_of
from plumdp.relaxation.intervals import IntervalModel

_LABEL = re.compile(r'(\d+)="([^"]*)"')
_REWARD_NAME = re.compile(r'#\s*Reward structure:?\s+"([^"]*)"')


@dataclass(frozen=True)
class _Sizes:
    """The header of a file of transitions; a Markov chain has no column for choices."""

    n_states: int
    has_choices: bool
    n_rows: int


def read_tra(path: str | Path) -> IntervalModel:
    """Return the model of a ``.tra`` file: rows ``state choice successor [lower,upper] action``, or with plain numbers.

    Files of the same name that end in ``.lab`` (labels, of which "init" is the initial state), ``.sta`` (state
    variables), ``.srew`` and ``.trew`` (rewards; several structures are numbered: ``model1.srew``) are read too.
    """
    file = Path(path)
    lines = _lines(file)
    sizes = _header(lines, file)
    rows = _rows(lines, file, sizes)
    labels = _labels(file.with_suffix(".lab"), sizes.n_states)
    initial = np.flatnonzero(labels.pop("init", np.arange(sizes.n_states) == 0))
    if len(initial) != 1:
        raise ModelError(f"{file.with_suffix('.lab')}: {len(initial)} initial states; there must be exactly one")
    if not labels.get("deadlock", np.ones(1)).any():
        del labels["deadlock"]
    states = _states(file.with_suffix(".sta"), sizes.n_states)
    model = build(rows, sizes.n_states, initial_state=int(initial[0]), states=states, labels=labels)
    return replace(model, rewards=_rewards(file, model.graph, sizes))


def _lines(file: Path) -> Iterator[tuple[FileLine, str]]:
    """Yield the lines that are neither empty nor a comment."""
    for place, text in _all_lines(file):
        if text and not text.startswith("#"):
            yield place, text


def _all_lines(file: Path) -> Iterator[tuple[FileLine, str]]:
    try:
        with file.open(encoding="utf-8-sig") as opened:
            for line, text in enumerate(opened, 1):
                yield FileLine(file, line), text.strip()
    except UnicodeDecodeError:
        raise ModelError(f"{file}: this is not a text in UTF-8") from None


def _header(lines: Iterator[tuple[FileLine, str]], file: Path) -> _Sizes:
    place, text = next(lines, (FileLine(file, 1), ""))
    fields = text.split()
    if len(fields) not in (2, 3) or not all(word.isdecimal() for word in fields):
        raise place.wrong(
            f"{cut(text, 40)!r} is not the numbers of states, choices and transitions (or of states and transitions)"
        )
    if not 0 < int(fields[0]) <= int(fields[-1]):
        raise place.wrong(f"{fields[0]} states and {fields[-1]} transitions: every state needs a transition")
    return _Sizes(int(fields[0]), len(fields) == 3, int(fields[-1]))


def _rows(lines: Iterator[tuple[FileLine, str]], file: Path, sizes: _Sizes) -> FileRows:
    rows, n_columns = FileRows(file), 4 if sizes.has_choices else 3
    shape = "state choice successor" if sizes.has_choices else "state successor"
    for place, text in lines:
        fields = (text.replace(", ", ",") if "[" in text else text).split()
        if len(fields) not in (n_columns, n_columns + 1):
            raise place.wrong(f"{cut(text, 40)!r}: write {shape} [lower,upper] action")
        state = whole(fields[0], place, "state", sizes.n_states)
        choice = whole(fields[1], place, "choice") if sizes.has_choices else 0
        successor = whole(fields[n_columns - 2], place, "state", sizes.n_states)
        action = fields[n_columns] if len(fields) > n_columns and sizes.has_choices else ""
        rows.add(place.line, state, choice, successor, fields[n_columns - 1], action)
    if len(rows.line) != sizes.n_rows:
        found = number_of(len(rows.line), "transition")
        raise ModelError(f"{file}: the first line says {sizes.n_rows} transitions, but there are {found}")
    return rows


def _labels(file: Path, n_states: int) -> dict[str, BoolArray]:
    """Return the labels of a ``.lab`` file: ``0="init" 1="goal"``, then ``3: 0 1`` for each state that has some."""
    if not file.is_file():
        return {}
    lines = _lines(file)
    place, text = next(lines, (FileLine(file, 1), ""))
    names = {int(number): name for number, name in _LABEL.findall(text)}
    if not names or _LABEL.sub("", text).strip():
        raise place.wrong(f'{cut(text, 40)!r} is not a list of labels; write 0="init" 1="goal"')
    masks = {index: np.zeros(n_states, dtype=np.bool_) for index in names}
    for place, text in lines:
        state, colon, held = text.partition(":")
        if not colon:
            raise place.wrong(f"{cut(text, 40)!r}: write a state, a colon and the numbers of its labels")
        where = whole(state.strip(), place, "state", n_states)
        for word in held.split():
            index = whole(word, place, "label")
            if index not in masks:
                raise place.wrong(f"there is no label {index}; the first line names {', '.join(map(str, names))}")
            masks[index][where] = True
    return {name: read_only(masks[index]) for index, name in names.items()}


def _states(file: Path, n_states: int) -> Mapping[str, npt.NDArray[Any]] | None:
    """Return the variables of a ``.sta`` file: ``(x,y)``, then ``0:(0,1)`` for each state."""
    if not file.is_file():
        return None
    lines = _lines(file)
    place, text = next(lines, (FileLine(file, 1), ""))
    names = _in_parentheses(text, place)
    values: dict[int, list[str]] = {}
    for place, text in lines:
        state, _, rest = text.partition(":")
        values[whole(state.strip(), place, "state", n_states)] = found = _in_parentheses(rest.strip(), place)
        if len(found) != len(names):
            raise place.wrong(f"{number_of(len(found), 'value')} for {number_of(len(names), 'variable')}")
    missing = [state for state in range(n_states) if state not in values]
    if missing:
        raise ModelError(f"{file}: state {missing[0]} is missing; {number_of(n_states, 'state')} in all")
    rows = [values[state] for state in range(n_states)]
    return {name: column_of([row[i] for row in rows]) for i, name in enumerate(names)}


def _in_parentheses(text: str, place: FileLine) -> list[str]:
    if not (text.startswith("(") and text.endswith(")")):
        raise place.wrong(f"{cut(text, 40)!r} is not in parentheses")
    return [part.strip() for part in text[1:-1].split(",")] if text[1:-1].strip() else []


def _rewards(file: Path, graph: Graph, sizes: _Sizes) -> dict[str, RewardStructure]:
    """Return the rewards of the files beside the transitions, ``model.srew`` or ``model1.srew``, ``model2.srew``, …."""
    structures: dict[str, RewardStructure] = {}
    for stem in (file.stem, *_numbered(file)):
        parts = {ending: file.with_name(f"{stem}{ending}") for ending in (".srew", ".trew")}
        present = {ending: part for ending, part in parts.items() if part.is_file()}
        if present:
            state, choice = np.zeros(graph.n_states), np.zeros(graph.n_choices)
            if ".srew" in present:
                _add_state_rewards(present[".srew"], state)
            if ".trew" in present:
                _add_choice_rewards(present[".trew"], graph, sizes, choice)
            name = next(filter(None, map(_reward_name, present.values())), stem if "" in structures else "")
            structures[name] = reward_of(state, choice)
    return structures


def _numbered(file: Path) -> list[str]:
    """Return the names of numbered files of rewards, without ending, up to the first number that is missing."""
    stems: list[str] = []
    while any(file.with_name(f"{file.stem}{len(stems) + 1}{ending}").is_file() for ending in (".srew", ".trew")):
        stems.append(f"{file.stem}{len(stems) + 1}")
    return stems


def _reward_name(file: Path) -> str:
    for _, text in _all_lines(file):
        if not text.startswith("#"):
            break
        if named := _REWARD_NAME.match(text):
            return named[1]
    return ""


def _add_state_rewards(file: Path, rewards: npt.NDArray[np.float64]) -> None:
    lines = _lines(file)
    next(lines, None)  # the numbers of states and rewards
    for place, text in lines:
        fields = text.split()
        if len(fields) != 2:
            raise place.wrong(f"{cut(text, 40)!r}: write a state and its reward")
        rewards[whole(fields[0], place, "state", len(rewards))] = number(fields[1], place)


def _add_choice_rewards(file: Path, graph: Graph, sizes: _Sizes, rewards: npt.NDArray[np.float64]) -> None:
    """Add rewards of transitions, which must be the same for all transitions of a choice."""
    n_columns, by_edge = 4 if sizes.has_choices else 3, np.zeros(graph.n_transitions)
    lines = _lines(file)
    place, _ = next(lines, (FileLine(file, 1), ""))
    for place, text in lines:
        fields = text.split()
        if len(fields) != n_columns:
            raise place.wrong(f"{cut(text, 40)!r}: {n_columns} columns are expected, as in the .tra file")
        state = whole(fields[0], place, "state", sizes.n_states)
        local = whole(fields[1], place, "choice") if sizes.has_choices else 0
        choice = int(graph.first_choice[state]) + local
        if choice >= graph.first_choice[state + 1]:
            raise place.wrong(f"state {state} has no choice {local}")
        edges = np.arange(graph.first_transition[choice], graph.first_transition[choice + 1])
        successor = whole(fields[-2], place, "state", sizes.n_states)
        meant = edges[graph.successor[edges] == successor]
        if not len(meant):
            raise place.wrong(f"state {state}, choice {local} has no transition to state {successor}")
        by_edge[meant] = number(fields[-1], place)
    rewards[:] = by_edge[graph.first_transition[:-1]]
    differs = by_edge != rewards[graph.choice_of_transition()]
    if differs.any():
        where = graph.describe_choice(graph.choice_of(int(np.argmax(differs))))
        raise ModelError(f"{file}: {where}: the reward depends on the successor; rewards are of states or choices only")

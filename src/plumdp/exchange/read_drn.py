"""Reads Storm's explicit text files (``.drn``): Markov decision processes and chains, with numbers or intervals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plumdp.base.edge import MOST_BYTES, read_whole
from plumdp.base.errors import ModelError
from plumdp.model.graph import Graph, read_only
from plumdp.model.parametric import RewardStructure
from plumdp.model.text import cut, number_of
from plumdp.relaxation.intervals import IntervalMDP, IntervalModel, first_fault

_STATE = re.compile(r"state\s+(\S+)\s*(!\S+)?\s*(\{[^}]*\})?\s*(\[.*\])?\s*(.*)")
_WORD = re.compile(r'"([^"]*)"|(\S+)')
_PART = re.compile(r"\[[^\]]*\]|[^,\s\[\]]+")  # an interval, or a word between commas
NO_NAME = "__NOLABEL__"  # of an action, for Storm
_NUMBERS = ("double", "double-interval", "rational", "rational-interval")


class FileLine(NamedTuple):
    """A line of a file, for messages."""

    file: Path
    line: int

    def wrong(self, what: str) -> ModelError:
        """Return the error that something is wrong in this line."""
        return ModelError(f"{self.file}, line {self.line}: {what}")


@dataclass
class _Content:
    """The content of the lines read so far."""

    file: Path
    header: dict[str, str] = field(default_factory=dict)
    placeholders: dict[str, str] = field(default_factory=dict)
    labels: list[list[str]] = field(default_factory=list)  # of each state
    state_rewards: list[list[float]] = field(default_factory=list)
    valuations: list[str] = field(default_factory=list)  # comments behind the states
    state: list[int] = field(default_factory=list)  # of each choice
    action: list[str] = field(default_factory=list)
    choice_rewards: list[list[float]] = field(default_factory=list)
    choice: list[int] = field(default_factory=list)  # of each transition
    successor: list[int] = field(default_factory=list)
    bounds: list[tuple[float, float]] = field(default_factory=list)
    line: list[int] = field(default_factory=list)
    n_states: int = 0  # as the header says


def read_drn(path: str | Path) -> IntervalModel:
    """Return the model of a ``.drn`` file, as Storm writes it, with probabilities ``0.5`` or ``[0.4, 0.6]``.

    State variables are read from the comments ``//[x=1\t& y=2]`` that Storm puts below the states.
    """
    file = Path(path)
    content = _Content(file)
    try:
        lines = read_whole(file).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ModelError(f"{file}: this is not a text in UTF-8") from None
    start = _read_header(content, lines)
    _check_header(content, start)
    for line in range(start, len(lines)):
        if text := lines[line].strip():
            _read_line(content, text, FileLine(file, line + 1))
    return _assemble(content)


def _read_header(content: _Content, lines: list[str]) -> int:
    """Read the lines before ``@model``; return the number of the first one behind it."""
    key = ""
    for line, raw in enumerate(lines):
        text = raw.strip()
        if text == "@model":
            return line + 1
        if text.startswith("@"):
            key, _, value = text[1:].partition(":")
            content.header[key] = value.strip()
        elif key == "placeholders" and ":" in text:
            name, _, value = text.partition(":")
            content.placeholders[name.strip()] = value.strip()
        elif text and not text.startswith("//"):
            content.header[key] = text
    raise ModelError(f"{content.file}: there is no line @model, so this is not a .drn file")


def _check_header(content: _Content, start: int) -> None:
    header, file = content.header, content.file
    if header.get("type", "").upper() not in ("MDP", "DTMC"):
        raise ModelError(f"{file}: a model of type {header.get('type', '?')} cannot be read; give an MDP or a DTMC")
    if header.get("parameters"):
        names = cut(header["parameters"])
        raise ModelError(f"{file}: the model has parameters ({names}); give a model with numbers or intervals")
    if header.get("value_type", "double") not in _NUMBERS:
        raise ModelError(f"{file}: values of type {header['value_type']} cannot be read; write double-interval")
    if not header.get("nr_states", "").isdecimal():
        raise FileLine(file, start).wrong("the number of states is missing; write it below @nr_states")
    content.n_states = int(header["nr_states"])


def _read_line(content: _Content, text: str, place: FileLine) -> None:
    if text[0].isdecimal():  # most lines are transitions
        _read_transition(content, text, place)
    elif text.startswith("//"):
        if len(content.valuations) < len(content.labels):
            content.valuations += [""] * (len(content.labels) - 1 - len(content.valuations)) + [text[2:].strip()]
    elif text.startswith("state"):
        _read_state(content, text, place)
    elif text.startswith("action"):
        _read_action(content, text, place)
    else:
        raise _unexpected(text, place)


def _read_transition(content: _Content, text: str, place: FileLine) -> None:
    successor, colon, value = text.partition(":")
    if not (colon and content.state and content.state[-1] == len(content.labels) - 1):
        raise _unexpected(text, place)
    content.choice.append(len(content.state) - 1)
    content.successor.append(_state_number(successor.rstrip(), place, content.n_states))
    content.bounds.append(_bounds(content.placeholders.get(value.strip(), value.strip()), place))
    content.line.append(place.line)


def _unexpected(text: str, place: FileLine) -> ModelError:
    return place.wrong(f"{cut(text, 40)!r}: a state, an action or a transition such as 3 : [0.1, 0.4] is expected")


def _read_state(content: _Content, text: str, place: FileLine) -> None:
    match = _STATE.fullmatch(text)
    if match is None:
        raise place.wrong(f"{cut(text, 40)!r}: write state, its number, its rewards in brackets, and its labels")
    if match[2] or match[3]:
        raise place.wrong("exit rates and observations cannot be read; give an MDP or a DTMC in discrete time")
    if match[1] != str(len(content.labels)):
        raise place.wrong(f"state {cut(match[1], 20)}, where state {len(content.labels)} is expected")
    content.labels.append([quoted or word for quoted, word in _WORD.findall(match[5])])
    content.state_rewards.append(_numbers(match[4], place, content.placeholders))


def _read_action(content: _Content, text: str, place: FileLine) -> None:
    if not content.labels:
        raise place.wrong("an action before the first state")
    before, bracket, rest = text.removeprefix("action").partition("[")
    name = before.strip().strip('"')
    content.state.append(len(content.labels) - 1)
    content.action.append("" if name == NO_NAME else name)
    content.choice_rewards.append(_numbers(bracket + rest, place, content.placeholders))


def _numbers(text: str | None, place: FileLine, placeholders: Mapping[str, str]) -> list[float]:
    """Return the rewards in brackets: numbers, or intervals that are numbers."""
    if not text:
        return []
    if not text.strip().endswith("]"):
        raise place.wrong(f"{cut(text, 40)!r}: a bracket is not closed")
    found = []
    inside = text.strip()[1:-1]
    for part in _PART.findall(inside) if "[" in inside else map(str.strip, inside.split(",")):
        lower, upper = _bounds(placeholders.get(part, part), place)
        if lower != upper:
            raise place.wrong(f"{part}: a reward that is an interval cannot be read; give a number")
        found.append(lower)
    return found


def _assemble(content: _Content) -> IntervalModel:
    n_states = content.n_states
    if len(content.labels) != n_states:
        n_found = number_of(len(content.labels), "state")
        raise ModelError(f"{content.file}: the header says {n_states} states, but there are {n_found}")
    names = dict.fromkeys(name for labels in content.labels for name in labels)
    if len(names) * n_states > MOST_BYTES:
        raise ModelError(f"{content.file}: it has {len(names):,} labels of {n_states:,} states, which are too many")
    labels = {name: np.zeros(n_states, dtype=np.bool_) for name in names}
    for state, held in enumerate(content.labels):
        for name in held:
            labels[name][state] = True
    initial = np.flatnonzero(labels.pop("init", np.arange(n_states) == 0))
    if len(initial) != 1:
        raise ModelError(f"{content.file}: {len(initial)} initial states; there must be exactly one")
    mdp = _intervals(content, int(initial[0]))
    return IntervalModel(mdp, {name: read_only(held) for name, held in labels.items()}, _rewards(content))


def _intervals(content: _Content, initial_state: int) -> IntervalMDP:
    """Return the transitions, checked, with their bounds."""
    n_states, n_choices, n_transitions = content.n_states, len(content.state), len(content.line)
    first_choice = np.searchsorted(content.state, np.arange(n_states + 1)).astype(np.int32)
    first_transition = np.searchsorted(content.choice, np.arange(n_choices + 1)).astype(np.int32)
    empty = np.flatnonzero(np.diff(first_choice) == 0)
    if len(empty):
        many = number_of(len(empty), "state")
        raise ModelError(f"{content.file}: no transition leaves {many}, such as state {empty[0]}; give it a self-loop")
    stuck = np.flatnonzero(np.diff(first_transition) == 0)
    if len(stuck):
        at = content.state[stuck[0]]
        raise ModelError(f"{content.file}: an action of state {at} has no transition; give it a self-loop")
    number = {name: i for i, name in enumerate(dict.fromkeys(content.action))}
    graph = Graph(
        read_only(first_choice),
        read_only(first_transition),
        read_only(np.array(content.successor, dtype=np.int32)),
        initial_state,
        _states(content, n_states),
        read_only(np.array([number[name] for name in content.action], dtype=np.int32)),
        tuple(number),
    )
    lower, upper = np.array(content.bounds).T
    mdp = IntervalMDP(graph, read_only(np.arange(n_transitions, dtype=np.int32)), read_only(lower), read_only(upper))
    fault = first_fault(mdp)
    if fault is not None:
        raise FileLine(content.file, content.line[fault[0]]).wrong(fault[1])
    return mdp


def _rewards(content: _Content) -> dict[str, RewardStructure]:
    """Return the reward structures. Storm gives the default one no name, and missing ones no numbers."""
    n_rewards = max(map(len, (*content.state_rewards, *content.choice_rewards)))
    names = content.header.get("reward_models", "").split()
    if len(names) == n_rewards - 1:
        names = ["", *names]
    if len(names) != n_rewards:
        found = number_of(n_rewards, "reward")
        raise ModelError(f"{content.file}: {found} in a line, but {number_of(len(names), 'name')} below @reward_models")
    state, choice = _table(content.state_rewards, n_rewards), _table(content.choice_rewards, n_rewards)
    return {name: _reward_of(state[:, i], choice[:, i]) for i, name in enumerate(names)}


def _reward_of(state: npt.NDArray[Any], choice: npt.NDArray[Any]) -> RewardStructure:
    """Return a reward structure without the parts that are zero everywhere; at least one part stays."""
    has_choice = bool(choice.any())
    return RewardStructure(state if state.any() or not has_choice else None, choice if has_choice else None)


def _table(rows: list[list[float]], width: int) -> npt.NDArray[np.float64]:
    return np.array([row + [0.0] * (width - len(row)) for row in rows]).reshape(len(rows), width)


def _states(content: _Content, n_states: int) -> Mapping[str, npt.NDArray[Any]]:
    """Return the state variables in comments such as ``[!b\t& x=0]``, or the states' numbers if some state has none.

    Storm 1.10 to 1.13 writes nothing instead of a Boolean that is true, so that its name comes from another state.
    """
    texts = [text[1:-1] for text in content.valuations if text.startswith("[") and text.endswith("]")]
    cells = [[part.strip() for part in text.split("&")] for text in texts]
    numbers = {"state": read_only(np.arange(n_states, dtype=np.int32))}
    if len(cells) != n_states or len({len(row) for row in cells}) != 1:
        return numbers
    columns: dict[str, npt.NDArray[Any]] = {}
    for column in zip(*cells, strict=True):
        names = {_variable(cell)[0] for cell in column if cell}
        if len(names) != 1:
            return numbers
        columns[names.pop()] = _column_of([_variable(cell)[1] for cell in column])
    return columns


def _column_of(texts: Sequence[str]) -> npt.NDArray[Any]:
    """Return the values of a state variable: whole numbers, Booleans (``true``, ``false``), or texts as they are."""
    if all(text in ("true", "false") for text in texts):
        return read_only(np.array([text == "true" for text in texts], dtype=np.bool_))
    try:
        whole_numbers = np.array([int(text) for text in texts], dtype=np.int64)
    except (ValueError, OverflowError):
        return read_only(np.array(texts, dtype=np.str_))
    if (np.abs(whole_numbers) >= 2**31).any():
        return read_only(np.array(texts, dtype=np.str_))
    return read_only(whole_numbers.astype(np.int32))


def _variable(cell: str) -> tuple[str, str]:
    """Return the name and the value in ``x=0``, ``b`` or ``!b``."""
    name, equals, value = cell.partition("=")
    return (name.strip(), value.strip()) if equals else (name.removeprefix("!"), str(not name.startswith("!")).lower())


def _number(text: str, place: FileLine) -> float:
    """Return a decimal number or a fraction such as ``1/3`` as the nearest float."""
    try:
        value = float(Fraction(text)) if "/" in text else float(text)
    except (ValueError, ArithmeticError):
        value = nan
    if not isfinite(value):
        raise place.wrong(f"{cut(text, 40)!r} is not a number")
    return value


def _state_number(text: str, place: FileLine, n_states: int) -> int:
    """Return the number of a state, which the model has."""
    if not text.isdecimal() or len(text) > 9:
        raise place.wrong(f"{cut(text, 40)!r} is not the number of a state; give 0, 1, 2, …")
    if int(text) >= n_states:
        raise place.wrong(
            f"there is no state {int(text)}: the model has {number_of(n_states, 'state')}, numbered from 0"
        )
    return int(text)


def _bounds(text: str, place: FileLine) -> tuple[float, float]:
    """Return both bounds of an interval ``[0.5,0.8]``, or a number twice."""
    if not text.startswith("["):
        value = _number(text, place)
        return value, value
    parts = text[1:-1].split(",") if text.endswith("]") else []
    if len(parts) != 2:
        raise place.wrong(f"{cut(text, 40)!r} is not an interval; write [0.5,0.8]")
    return _number(parts[0].strip(), place), _number(parts[1].strip(), place)

"""Builds an interval model from the transitions of a text file; what is wrong is said with file and line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import ModelError
from plumdp.model.graph import BoolArray, Graph, IntArray, read_only
from plumdp.model.parametric import RewardStructure
from plumdp.model.text import cut, number_of
from plumdp.relaxation.intervals import IntervalMDP, IntervalModel, first_fault


class FileLine(NamedTuple):
    """A line of a file, for messages."""

    file: Path
    line: int

    def wrong(self, what: str) -> ModelError:
        """Return the error that something is wrong in this line."""
        return ModelError(f"{self.file}, line {self.line}: {what}")


@dataclass
class FileRows:
    """The transitions of a file, in its order, as one list for each column; ``choice`` counts from 0 in every state."""

    file: Path
    line: list[int] = field(default_factory=list)
    state: list[int] = field(default_factory=list)
    choice: list[int] = field(default_factory=list)
    successor: list[int] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    action: list[str] = field(default_factory=list)

    def add(self, line: int, state: int, choice: int, successor: int, value: str, action: str) -> None:
        """Add a transition whose probability is a number or an interval."""
        lower, upper = bounds(value, FileLine(self.file, line))
        self.line.append(line)
        self.state.append(state)
        self.choice.append(choice)
        self.successor.append(successor)
        self.lower.append(lower)
        self.upper.append(upper)
        self.action.append(action)


def number(text: str, place: FileLine) -> float:
    """Return a decimal number or a fraction such as ``1/3`` as the nearest float."""
    try:
        value = float(Fraction(text)) if "/" in text else float(text)
    except (ValueError, ArithmeticError):
        value = nan
    if not isfinite(value):
        raise place.wrong(f"{cut(text, 40)!r} is not a number")
    return value


def whole(text: str, place: FileLine, thing: str, size: int | None = None) -> int:
    """Return the number of a thing, from 0 up to how many there are if that is known."""
    if not text.isdecimal() or len(text) > 9:
        raise place.wrong(f"{cut(text, 40)!r} is not the number of a {thing}; give 0, 1, 2, …")
    value = int(text)
    if size is not None and value >= size:
        raise place.wrong(f"there is no {thing} {value}: the model has {number_of(size, thing)}, numbered from 0")
    return value


def bounds(text: str, place: FileLine) -> tuple[float, float]:
    """Return both bounds of an interval ``[0.5,0.8]``, or a number twice."""
    if not text.startswith("["):
        value = number(text, place)
        return value, value
    parts = text[1:-1].split(",") if text.endswith("]") else []
    if len(parts) != 2:
        raise place.wrong(f"{cut(text, 40)!r} is not an interval; write [0.5,0.8]")
    return number(parts[0].strip(), place), number(parts[1].strip(), place)


def build(
    rows: FileRows,
    n_states: int,
    *,
    initial_state: int = 0,
    states: Mapping[str, npt.NDArray[Any]] | None = None,
    labels: Mapping[str, BoolArray],
) -> IntervalModel:
    """Return the model of these transitions, checked, without rewards."""
    state, choice = np.array(rows.state, dtype=np.int64), np.array(rows.choice, dtype=np.int64)
    order = np.lexsort((choice, state))
    state, choice, line = state[order], choice[order], np.array(rows.line, dtype=np.int64)[order]
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = (np.diff(state) != 0) | (np.diff(choice) != 0)
    first = np.flatnonzero(is_first)
    first_choice = np.searchsorted(state[first], np.arange(n_states + 1))
    _check_choices(rows.file, state[first], choice[first], line[first], first_choice)
    names, action = _actions(rows, order, is_first)
    graph = Graph(
        read_only(first_choice.astype(np.int32)),
        read_only(np.append(first, len(order)).astype(np.int32)),
        read_only(np.array(rows.successor, dtype=np.int32)[order]),
        initial_state,
        {"state": read_only(np.arange(n_states, dtype=np.int32))} if states is None else states,
        action,
        names,
    )
    identity = read_only(np.arange(len(order), dtype=np.int32))
    mdp = IntervalMDP(graph, identity, read_only(np.array(rows.lower)[order]), read_only(np.array(rows.upper)[order]))
    fault = first_fault(mdp)
    if fault is not None:
        raise FileLine(rows.file, int(line[fault[0]])).wrong(fault[1])
    return IntervalModel(mdp, labels)


def _check_choices(
    file: Path,
    state: npt.NDArray[Any],
    choice: npt.NDArray[Any],
    line: npt.NDArray[Any],
    first_choice: npt.NDArray[Any],
) -> None:
    """Refuse states without a choice, and choices that are not numbered 0, 1, 2, … ."""
    empty = np.flatnonzero(np.diff(first_choice) == 0)
    if len(empty):
        many = number_of(len(empty), "state")
        raise ModelError(f"{file}: no transition leaves {many}, such as state {empty[0]}; give it a self-loop")
    expected = np.arange(len(state)) - first_choice[state]
    if (choice != expected).any():
        wrong = int(np.argmax(choice != expected))
        raise FileLine(file, int(line[wrong])).wrong(
            f"state {state[wrong]} has a choice {choice[wrong]}, but no choice {expected[wrong]}"
        )


def _actions(rows: FileRows, order: npt.NDArray[Any], is_first: BoolArray) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of actions, and that of each choice; all transitions of a choice must have the same."""
    names = tuple(dict.fromkeys(rows.action)) or ("",)
    number_of_name = {name: i for i, name in enumerate(names)}
    action = np.array([number_of_name[name] for name in rows.action], dtype=np.int32)[order]
    of_choice = action[is_first]
    differs = action != of_choice[np.cumsum(is_first) - 1]
    if differs.any():
        wrong = int(np.argmax(differs))
        other = names[of_choice[np.cumsum(is_first)[wrong] - 1]]
        place = FileLine(rows.file, rows.line[order[wrong]])
        raise place.wrong(f"action {names[action[wrong]]!r} in a choice whose other transitions have {other!r}")
    return names, read_only(of_choice)


def column_of(texts: Sequence[str]) -> npt.NDArray[Any]:
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


def reward_of(state: npt.NDArray[Any], choice: npt.NDArray[Any]) -> RewardStructure:
    """Return a reward structure without the parts that are zero everywhere; at least one part stays."""
    has_choice = bool(choice.any())
    return RewardStructure(state if state.any() or not has_choice else None, choice if has_choice else None)

"""Finds the state variables and actions by which rows with the same expression may differ after all.

The model alone chooses them, so that what is tested does not depend on data. Only choices with unknown probabilities
count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.model.graph import BoolArray, FloatArray, Graph, Indices, IntArray, owners, read_only
from plumdp.model.parametric import ParametricMDP

ContrastKind: TypeAlias = Literal["variable", "action"]

_MOST_CELLS = 16  # of one variable; if it has more values, neighbours share a cell
_MOST_PARTS = 8  # actions whose rows are tested apart
_MOST_WORDS = 30  # values of a text variable, and actions, that are tested one by one
NONE = -1


@dataclass(frozen=True, eq=False)
class OpenChoices:
    """The choices of a graph, their states, and which have a transition of unknown probability."""

    graph: Graph
    state: IntArray  # (n_choices)
    is_open: BoolArray  # (n_choices)

    @cached_property
    def states(self) -> BoolArray:
        """Which states (n_states) have an open choice."""
        has_open: BoolArray = np.zeros(self.graph.n_states, dtype=np.bool_)
        has_open[self.state[self.is_open]] = True
        return has_open

    @cached_property
    def actions(self) -> list[int]:
        """The actions of open choices."""
        return np.flatnonzero(np.bincount(self.graph.action[self.is_open])).tolist()


@dataclass(frozen=True, eq=False)
class Contrast:
    """A number for each choice, constant in each of a few cells, such as the mean value of a variable there."""

    name: str  # of the variable, or of the action
    kind: ContrastKind
    cell_of: IntArray  # (n_states) of a variable, (n_actions) of an action: the cell of its open choices
    levels: FloatArray  # (n_cells): the number of each cell
    cells: tuple[str, ...]  # (n_cells), in words, such as "money from 10 to 14"
    choices: OpenChoices
    action: str = ""  # the only action that it is about, if it is a part of another contrast

    def at(self, choices: Indices) -> IntArray:
        """Return the cell of some choices, or NONE where nothing is unknown."""
        action = self.choices.graph.action[choices]
        has_cell = self.choices.is_open[choices]
        if self.action:
            has_cell = has_cell & (action == self.choices.graph.action_names.index(self.action))
        cell = self.cell_of[self.choices.state[choices] if self.kind == "variable" else action]
        return np.where(has_cell, cell, np.int32(NONE))

    @property
    def cell(self) -> IntArray:
        """The cell of each choice (n_choices), or NONE where nothing is unknown."""
        return self.at(np.arange(self.choices.graph.n_choices))

    @property
    def value(self) -> FloatArray:
        """The number of each choice (n_choices), or zero where nothing is unknown."""
        cell = self.cell
        return np.asarray(np.where(cell >= 0, self.levels[cell], 0.0))


def find_contrasts(model: ParametricMDP) -> list[Contrast]:
    """Return a contrast for each state variable and each action that differs between choices with unknown rows.

    >>> from plumdp import case_study
    >>> contrasts = find_contrasts(case_study("betting:25").model)
    >>> [(contrast.kind, contrast.name) for contrast in contrasts]  # doctest: +NORMALIZE_WHITESPACE
    [('variable', 'money'), ('variable', 'step'), ('action', 'bet1'), ('action', 'bet2'), ('action', 'bet5'),
     ('action', 'bet10')]
    >>> contrasts[1].cells[:2]
    ('step from 0 to 1', 'step from 2 to 3')
    """
    graph = model.graph
    choices = OpenChoices(graph, graph.state_of_choice(), _is_open(model))
    contrasts = [contrast for name in graph.states for contrast in _of_variable(name, graph.states[name], choices)]
    if 1 < len(choices.actions) <= _MOST_WORDS:
        actions = np.arange(len(graph.action_names))
        for action in choices.actions:
            name = graph.action_names[action]
            is_so = actions == action
            contrasts.append(_yes_or_no(name, "action", is_so, choices, f"action {name!r}", "other actions"))
    return contrasts


def parts_by_action(model: ParametricMDP, contrasts: Sequence[Contrast]) -> list[Contrast]:
    """Return the parts of each contrast of a variable for single actions, if these are neither one nor many.

    >>> from plumdp import case_study
    >>> model = case_study("rover:10,10").model
    >>> [(part.name, part.action) for part in parts_by_action(model, find_contrasts(model)[:1])]
    [('x', 'sendL'), ('x', 'sendH')]
    """
    actions = contrasts[0].choices.actions if contrasts else []
    if not 1 < len(actions) <= _MOST_PARTS:
        return []
    names = [model.graph.action_names[action] for action in actions]
    variables = [contrast for contrast in contrasts if contrast.kind == "variable"]
    return [replace(contrast, action=name) for contrast in variables for name in names]


def _is_open(model: ParametricMDP) -> BoolArray:
    """Return which choices (n_choices) have a transition of unknown probability."""
    rows, is_unknown = model.rows, model.expressions.is_unknown
    of_row: BoolArray = np.zeros(len(rows), dtype=np.bool_)
    of_row[owners(rows.first)[is_unknown[model.expression[rows.transition]]]] = True
    return of_row[rows.number]


def _of_variable(name: str, values: npt.NDArray[np.generic], choices: OpenChoices) -> list[Contrast]:
    """Return the contrast of a variable, given its value at each state, or one for each value of a text."""
    distinct, place = _distinct(values[choices.states])
    if len(distinct) < 2:
        return []
    if values.dtype.kind not in "biuf":
        words = distinct.tolist() if len(distinct) <= _MOST_WORDS else []
        return [
            _yes_or_no(f"{name} = {word}", "variable", values == word, choices, f"{name} = {word}", f"other {name}")
            for word in words
        ]
    n_cells = min(len(distinct), _MOST_CELLS)
    bin_of = np.arange(len(distinct)) * n_cells // len(distinct)
    numbers = distinct.astype(np.float64)
    levels = np.bincount(bin_of, numbers) / np.bincount(bin_of)
    ends = [(numbers[bin_of == i].min(), numbers[bin_of == i].max()) for i in range(n_cells)]
    texts = [_text(name, low, high, is_bool=values.dtype.kind == "b") for low, high in ends]
    cell = np.full(len(values), NONE)
    cell[choices.states] = bin_of[place]
    return [_contrast(name, "variable", cell, choices, levels, texts)]


def _distinct(values: npt.NDArray[np.generic]) -> tuple[npt.NDArray[np.generic], Indices]:
    """Return the distinct values in order, and the place of each value among them."""
    if values.dtype.kind not in "bi" or not len(values):
        return np.unique(values, return_inverse=True)
    numbers = values.astype(np.int64)
    low = int(numbers.min())
    if int(numbers.max()) - low > 4 * len(values) + 1000:
        return np.unique(values, return_inverse=True)
    is_there = np.bincount(numbers - low) > 0
    return (np.flatnonzero(is_there) + low).astype(values.dtype), (np.cumsum(is_there) - 1)[numbers - low]


def _text(name: str, low: float, high: float, *, is_bool: bool) -> str:
    if is_bool:
        return f"{name} = {'true' if high else 'false'}"
    return f"{name} = {low:g}" if low == high else f"{name} from {low:g} to {high:g}"


def _yes_or_no(
    name: str, kind: ContrastKind, is_so: npt.NDArray[np.generic], choices: OpenChoices, yes: str, no: str
) -> Contrast:
    return _contrast(name, kind, is_so, choices, np.array([0.0, 1.0]), [no, yes])


def _contrast(
    name: str,
    kind: ContrastKind,
    cells: npt.NDArray[np.generic],
    choices: OpenChoices,
    levels: FloatArray,
    texts: list[str],
) -> Contrast:
    return Contrast(name, kind, read_only(cells.astype(np.int32)), read_only(levels), tuple(texts), choices)

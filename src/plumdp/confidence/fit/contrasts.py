"""Ways in which rows with the same expression may differ after all: by a state variable, or by the action.

They are chosen by the model alone, so that what is tested does not depend on data. Only choices with unknown
probabilities count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from plumdp.model.graph import BoolArray, FloatArray, Indices, IntArray, read_only
from plumdp.model.parametric import ParametricMDP

ContrastKind: TypeAlias = Literal["variable", "action"]

_MOST_CELLS = 16  # of one variable; more values are put together in runs of neighbours
_MOST_PARTS = 8  # actions whose rows are looked at apart
_MOST_WORDS = 30  # values of a variable that is a text, and actions, that are looked at one by one
NONE = -1


@dataclass(frozen=True, eq=False)
class Contrast:
    """A number for each choice, constant in each of a few cells: the mean value of a variable there, or yes and no."""

    name: str  # of the variable, or of the action
    kind: ContrastKind
    cell: IntArray  # (n_choices), or NONE where nothing is unknown
    levels: FloatArray  # (n_cells): the number of each cell
    cells: tuple[str, ...]  # (n_cells), in words, such as "money from 10 to 14"
    action: str = ""  # the only one that it is about, if it is a part of another contrast

    @property
    def value(self) -> FloatArray:
        """The number of each choice (n_choices), or zero where nothing is unknown."""
        found: FloatArray = np.where(self.cell >= 0, self.levels[self.cell], 0.0)
        return found


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
    is_open = _is_open(model)
    state = graph.state_of_choice()[is_open]
    found = []
    for name, values in graph.states.items():
        found += _of_variable(name, values[state], is_open)
    own = graph.action[is_open]
    actions = np.flatnonzero(np.bincount(own)).tolist()
    if 1 < len(actions) <= _MOST_WORDS:
        for action in actions:
            name = graph.action_names[action]
            found.append(_yes_or_no(name, "action", own == action, is_open, f"action {name!r}", "other actions"))
    return found


def parts_by_action(model: ParametricMDP, contrasts: Sequence[Contrast]) -> list[Contrast]:
    """Return for each contrast of a variable its parts for single actions, if these are neither one nor many.

    >>> from plumdp import case_study
    >>> model = case_study("rover:10,10").model
    >>> [(part.name, part.action) for part in parts_by_action(model, find_contrasts(model)[:1])]
    [('x', 'sendL'), ('x', 'sendH')]
    """
    graph = model.graph
    is_open = contrasts[0].cell != NONE if contrasts else np.zeros(graph.n_choices, dtype=np.bool_)
    actions = np.flatnonzero(np.bincount(graph.action[is_open])).tolist()
    if not 1 < len(actions) <= _MOST_PARTS:
        return []
    found = []
    for contrast in contrasts:
        for action in actions if contrast.kind == "variable" else ():
            cell = read_only(np.where(graph.action == action, contrast.cell, NONE).astype(np.int32))
            found.append(replace(contrast, cell=cell, action=graph.action_names[action]))
    return found


def _is_open(model: ParametricMDP) -> BoolArray:
    """Return which choices (n_choices) have a transition of unknown probability."""
    is_unknown = model.expressions.is_unknown[model.expression]
    found: BoolArray = np.zeros(model.graph.n_choices, dtype=np.bool_)
    found[model.graph.choice_of_transition()[is_unknown]] = True
    return found


def _of_variable(name: str, values: npt.NDArray[np.generic], is_open: BoolArray) -> list[Contrast]:
    """Return the contrast of a variable, given its value at each open choice: one for each value of a text."""
    distinct, place = _distinct(values)
    if len(distinct) < 2:
        return []
    if values.dtype.kind not in "biuf":
        words = distinct.tolist() if len(distinct) <= _MOST_WORDS else []
        return [
            _yes_or_no(f"{name} = {word}", "variable", values == word, is_open, f"{name} = {word}", f"other {name}")
            for word in words
        ]
    n_cells = min(len(distinct), _MOST_CELLS)
    bin_of = np.arange(len(distinct)) * n_cells // len(distinct)
    numbers = distinct.astype(np.float64)
    levels = np.bincount(bin_of, numbers) / np.bincount(bin_of)
    ends = [(numbers[bin_of == i].min(), numbers[bin_of == i].max()) for i in range(n_cells)]
    texts = [_text(name, low, high, is_bool=values.dtype.kind == "b") for low, high in ends]
    return [_contrast(name, "variable", bin_of[place], is_open, levels, texts)]


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
    name: str, kind: ContrastKind, is_so: npt.NDArray[np.generic], is_open: BoolArray, yes: str, no: str
) -> Contrast:
    return _contrast(name, kind, is_so.astype(np.int32), is_open, np.array([0.0, 1.0]), [no, yes])


def _contrast(
    name: str,
    kind: ContrastKind,
    cells: npt.NDArray[np.generic],
    is_open: BoolArray,
    levels: FloatArray,
    texts: list[str],
) -> Contrast:
    cell = np.full(len(is_open), NONE, dtype=np.int32)
    cell[is_open] = cells
    return Contrast(name, kind, read_only(cell), read_only(levels), tuple(texts))

"""The picture of a policy as a map over two state variables, with a colour for each action."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
import numpy.typing as npt

from plumdp.base.errors import DataError
from plumdp.model.text import cut, number_of
from plumdp.plots.style import HATCHES, PALETTE, PHONE, axes_in, legend_below, patch

_MOST_EDGES = 600  # cells with lines between them
_MOST_ACTIONS = 24  # in a legend
_MOST_TICKS = 9
_LITTLE = 1e-3  # bits: what a slice counts in which the action does not vary
_LONGEST = 18  # characters of a label
_LINE = 44  # characters of all labels that fit side by side
_SLOPE = 0.045  # inches: how far a character of a turned label goes down

Columns = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class PolicySlice:
    """The states in which all variables but two have given values, as cells of a map."""

    x: str
    y: str  # empty, if there is one variable
    x_values: list[Any]
    y_values: list[Any]
    action: npt.NDArray[np.int64]  # (n_y, n_x): index into actions, -1 where there is no state
    actions: tuple[str, ...]
    fixed: Mapping[str, Any]
    n_states: int  # of the slice
    n_all: int

    def describe(self) -> str:
        """Return a description of the states that are shown."""
        states = f"{self.n_states:,} of {number_of(self.n_all, 'state')}"
        where = ", ".join(f"{name} = {_text(value)}" for name, value in self.fixed.items())
        return f"where {where}: {states}" if self.fixed else f"all {number_of(self.n_all, 'state')}"


def draw_policy(axes: Any, columns: Columns, x: str, y: str = "", *, fixed: Mapping[str, Any] | None = None) -> Any:
    """Draw the actions of a policy over two state variables, or over one, and return the figure.

    ``columns`` are those of ``PolicyTable.columns``, state variables and last the action. ``fixed`` are values of other
    variables. Those without a value get the ones that most states have. The title says which states are shown.
    """
    shown = slice_policy(columns, x, y, fixed=fixed)
    n_x, n_y, deeper = len(shown.x_values), len(shown.y_values), _depth(shown.x_values)
    height = min((PHONE - 0.8) * min(max(n_y / n_x, 0.3 if n_y > 1 else 0.1), 1.3), 0.15 + 0.6 * n_y)
    legend = 0.2 * (1 + min(len(np.unique(shown.action)), _MOST_ACTIONS) // 3)
    axes = axes_in(axes, PHONE, height + legend + 1.0 + deeper)
    _draw_cells(axes, shown.action)
    axes.set_xlim(-0.5, n_x - 0.5)
    axes.set_ylim(-0.5, n_y - 0.5)
    _ticks(axes.set_xticks, shown.x_values)
    _ticks(axes.set_yticks, shown.y_values if y else [])
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(fill(shown.describe(), 54), fontsize=8.5)
    used = np.unique(shown.action[shown.action >= 0]).tolist()
    handles = [patch(cut(shown.actions[i], 22), _look(i)[0], hatch=_look(i)[1], edge="white") for i in used]
    if len(handles) > _MOST_ACTIONS:
        handles = [*handles[:_MOST_ACTIONS], patch(f"… and {len(used) - _MOST_ACTIONS} more", "white")]
    columns_of_legend = 3 if max(map(len, shown.actions), default=0) < 12 else 2
    legend_below(axes, handles, columns=columns_of_legend, at=0.5 + deeper)
    return axes.figure


def axes_of_map(
    ranked: Sequence[str], x: str | None, y: str | None, fixed: Mapping[str, Any] | None
) -> tuple[str, str]:
    """Return the variables of both axes, those asked for, or else the first of a ranking that are not fixed.

    >>> axes_of_map(["money", "step"], None, "money", None)
    ('step', 'money')
    """
    free = [name for name in ranked if name not in {x, y, *(fixed or {})}]
    if x is None and not free:
        raise DataError("there is no state variable left for a map: leave one without a value")
    first = free.pop(0) if x is None else x
    return first, y if y is not None else free[0] if free else ""


def slice_policy(columns: Columns, x: str, y: str = "", *, fixed: Mapping[str, Any] | None = None) -> PolicySlice:
    """Return the states of a policy that a map over two variables shows."""
    *variables, action = columns
    chosen = [name for name in (x, y) if name]
    for name in (*chosen, *(fixed or {})):
        if name not in variables:
            raise DataError(f"{name!r} is not a state variable; there are {', '.join(variables)}")
    if x == y:
        raise DataError(f"both axes are {x!r}; choose two state variables, or one")
    given = {name: value for name, value in (fixed or {}).items() if name not in chosen}
    others = [name for name in variables if name not in chosen]
    inside, values = _most_common(columns, others, given, columns[action].astype(str))
    x_values, x_code = np.unique(columns[x][inside], return_inverse=True)
    y_values, y_code = np.unique(columns[y][inside], return_inverse=True) if y else (np.zeros(1), np.zeros(len(x_code)))
    actions = tuple(np.unique(columns[action].astype(str)).tolist())
    grid = np.full((len(y_values), len(x_values)), -1, dtype=np.int64)
    grid[y_code.astype(np.int64), x_code] = np.searchsorted(actions, columns[action][inside].astype(str))
    size = len(columns[action])
    return PolicySlice(x, y, x_values.tolist(), y_values.tolist(), grid, actions, values, int(inside.sum()), size)


def _most_common(
    columns: Columns, names: Sequence[str], given: Mapping[str, Any], action: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.bool_], dict[str, Any]]:
    """Return the states with the given values, and the most common values of the other variables.

    Where the action varies, states count for more, since a map of one colour says little.
    """
    inside = np.ones(len(next(iter(columns.values()))), dtype=np.bool_)
    for name, value in given.items():
        inside &= columns[name] == value
        if not inside.any():
            raise DataError(f"the policy has no state with {', '.join(f'{n} = {_text(v)}' for n, v in given.items())}")
    values = dict(given)
    free = [name for name in names if name not in given]
    if free:
        codes = np.stack([np.unique(columns[name], return_inverse=True)[1] for name in free], axis=1)
        kinds, group, number = np.unique(codes[inside], axis=0, return_inverse=True, return_counts=True)
        best = int(np.argmax(number * (_LITTLE + _variety(group.ravel(), action[inside]))))
        inside &= (codes == kinds[best]).all(axis=1)
        example = int(np.flatnonzero(inside)[0])
        values |= {name: columns[name][example].item() for name in free}
    return inside, {name: values[name] for name in names}


def _variety(group: npt.NDArray[np.intp], action: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the entropy of the action in each group, in bits."""
    code = np.unique(action, return_inverse=True)[1]
    pairs, number = np.unique(np.stack([group, code], axis=1), axis=0, return_counts=True)
    share = number / np.bincount(group)[pairs[:, 0]]
    return np.bincount(pairs[:, 0], -share * np.log2(share)).astype(np.float64)


def _draw_cells(axes: Any, action: npt.NDArray[np.int64]) -> None:
    """Draw one shape per action, made of all its cells.

    So even thousands of cells are a small picture, and soon drawn.
    """
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    is_fine = int((action >= 0).sum()) > _MOST_EDGES
    rows: dict[int, list[tuple[int, int, int]]] = {}
    for row, line in enumerate(action.tolist()):
        for number, first, end in _runs(line, join=is_fine):
            rows.setdefault(number, []).append((row, first, end))
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    for number, cells in rows.items():
        corners = [
            corner
            for row, a, b in cells
            for corner in (
                (a - 0.5, row - 0.5),
                (b - 0.5, row - 0.5),
                (b - 0.5, row + 0.5),
                (a - 0.5, row + 0.5),
                (0, 0),
            )
        ]
        colour, hatch = _look(number)
        look = {"facecolor": colour, "edgecolor": "white", "linewidth": 0.0 if is_fine else 0.4, "hatch": hatch}
        axes.add_patch(PathPatch(Path(corners, codes * len(cells)), **look))


def _runs(line: Sequence[int], *, join: bool) -> Iterator[tuple[int, int, int]]:
    """Yield the actions of a row with first and last place, equal neighbours as one if they are joined.

    >>> list(_runs([2, 2, -1, 3], join=True)), list(_runs([2, 2], join=False))
    ([(2, 0, 2), (3, 3, 4)], [(2, 0, 1), (2, 1, 2)])
    """
    first = 0
    for place in range(1, len(line) + 1):
        if place == len(line) or line[place] != line[first] or not join:
            if line[first] >= 0:
                yield line[first], first, place
            first = place


def _look(action: int) -> tuple[str, str]:
    """Return the colour of an action, and from the ninth on its hatch."""
    return PALETTE[action % len(PALETTE)], HATCHES[action // len(PALETTE) % len(HATCHES)]


def _ticks(place: Any, values: Sequence[Any]) -> None:
    is_turned = place.__name__ == "set_xticks" and _depth(values) > 0
    place(_tick_places(values), _labels(values), **({"rotation": 45, "ha": "right"} if is_turned else {}))


def _labels(values: Sequence[Any]) -> list[str]:
    return [cut(_text(values[i]), _LONGEST) for i in _tick_places(values)]


def _depth(values: Sequence[Any]) -> float:
    """Return the depth in inches that labels below a map gain by being turned, as one line is too short."""
    labels = _labels(values)
    return _SLOPE * max(map(len, labels)) if sum(len(label) + 2 for label in labels) > _LINE else 0.0


def _tick_places(values: Sequence[Any]) -> list[int]:
    """Return the indices of values that have ticks, round numbers, or every second, third, … of others.

    >>> [range(3, 60)[i] for i in _tick_places(range(3, 60))], _tick_places(["dry", "wet"])
    ([10, 20, 30, 40, 50], [0, 1])
    """
    n = len(values)
    if n <= _MOST_TICKS:
        return list(range(n))
    is_number = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    if is_number and values[-1] - values[0] < 2 * n:
        for step in (k * 10**e for e in range(9) for k in (1, 2, 5)):
            round_values = [i for i, value in enumerate(values) if value % step == 0]
            if len(round_values) <= _MOST_TICKS:
                return _apart(round_values, n // (2 * _MOST_TICKS))
    return list(range(0, n, -(-n // _MOST_TICKS)))


def _apart(places: Sequence[int], least: int) -> list[int]:
    """Return places without those too near to the one before, as values may have gaps."""
    kept: list[int] = []
    for place in places:
        if not kept or place - kept[-1] > least:
            kept.append(place)
    return kept


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool | np.bool_) else str(value)

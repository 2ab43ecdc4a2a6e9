"""Sizes of bets that are renewed for a pre-specified length: they follow from what was seen, and what was won, before.

Nothing is claimed of them but that: sizes are made again in floats, and compared up to what floats may be off by. That
is so little that nothing is gained by choosing within it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import exp, fsum, inf, log, sqrt
from typing import Any, NamedTuple, TypeAlias

from .bets import BetStage, gain, weight_of_horizon
from .counts import CountedRows
from .laws import second_derivative
from .reading import Exact, Part, require, work

_AHEAD, _LATE = 0.15, 0.3
_FURTHEST, _MOST = 64.0, 1e3
_STEPS, _NEAR = 60, 1e-10  # until a point on a ray is found, and how far steps go then
_CLOSE = 1e-3  # of a size, in standard deviations, and of the length of a unit
_SPACE_AS_DATA = 1e-3  # weight of the law of the space in what is known

_Line: TypeAlias = Callable[[float], tuple[float, float]]


class _Cut(NamedTuple):
    """A point at which bets came to their bound, and how their wealth grows there."""

    point: list[float]
    row: list[float]


def check_sizes(part: Part, data: CountedRows, space: Part, stages: Sequence[BetStage]) -> None:
    """Require that renewed bets are multiples of units, by sizes that follow from the stages before each."""
    d, error = len(data.names), part["error"].number()
    known: dict[tuple[int, int], list[list[Exact]]] = {}  # units of a side, which may be looked at twice
    for item in sorted(part["list"], key=lambda item: -len(item["steps"])):
        numbers = [number.value for number in item["horizons"]]
        if "renewed" not in numbers:
            continue
        side, n = (item["direction"].value, item["sign"].value), len(item["steps"])
        units, m = item["units"].matrix(n, d), numbers.index("renewed")
        require(
            known.get(side, units)[:n] == units, f"{item.place}: units of one side that is looked at twice are others"
        )
        if side in known:
            continue
        known[side] = units
        _require_units(units, stages, data, space, item.place)
        goal = -log(float(weight_of_horizon(data, "renewed", item.place)) / 2 * float(error))
        steps = [of_stage[m].numbers(d) for of_stage in item["steps"]]
        sizes = _sizes(data, stages, units, steps, goal)
        for s, (unit, step, size) in enumerate(zip(units, steps, sizes, strict=True)):
            off = max((abs(float(a) - size * float(b)) for a, b in zip(step, unit, strict=True)), default=0.0)
            is_same = off <= _CLOSE * max((abs(float(b)) for b in unit), default=0.0)
            require(is_same, f"{item.place}: the size of bets in stage {s} does not follow from what was won before it")


def _require_units(
    units: Sequence[Sequence[Exact]], stages: Sequence[BetStage], data: CountedRows, space: Part, place: str
) -> None:
    """Require that a unit is one standard deviation at the expected length, by what was seen before its stage."""
    k, d = len(space["precision"]), len(data.names)
    basis, prior = space["basis"].matrix(d, k), space["precision"].matrix(k, k)
    for s, (unit, stage) in enumerate(zip(units, stages, strict=False)):
        y = [sum(float(row[i] * u) for row, u in zip(basis, unit, strict=True)) for i in range(k)]
        longer, total = float(data.expected / data.lengths[s]), 0.0
        for i, row in enumerate(second_derivative(space, data, f"moment {s}", stage.point)):
            for j, x in enumerate(row):
                of_space = float(prior[i][j])
                total += y[i] * y[j] * (longer * (float(x) - of_space) + _SPACE_AS_DATA * of_space)
        require(not any(y) or abs(total - 1) <= _CLOSE, f"{place}: units[{s}] is not of length one")


def _sizes(
    data: CountedRows,
    stages: Sequence[BetStage],
    units: Sequence[Sequence[Exact]],
    steps: Sequence[Sequence[Exact]],
    goal: float,
) -> Iterator[float]:
    """Yield the size of bets in each stage, in units.

    They are against a point t units from the estimate: a little before one that was excluded already, or where bets of
    one size would end. There they must still win what is missing, in the part of the data that is left.
    """
    wealth, cuts = _Wealth(data), list[_Cut]()
    for s, (stage, step) in enumerate(zip(stages, steps, strict=False)):
        point, ray = [float(x) for x in stage.point], [-float(x) for x in units[s]]
        left = 1 - float(data.lengths[s] / data.expected)
        line = wealth.on(point, ray)
        if s and float(data.lengths[s] / data.expected) >= _LATE:
            cuts.append(wealth.cut(line, point, ray, goal))
        if not s:
            yield sqrt(2 * goal)
        elif left <= 0:
            yield 0.0
        else:
            won = line(0.0)[0]
            slope = max(line(1.0)[0] - won, 0.0)
            t = (sqrt(slope**2 + 2 * left * max(goal - won, 0.0)) - slope) / left
            t = max(min([t, *(_exit(cut, point, ray) for cut in cuts)]) - _AHEAD, 0.0)
            yield sqrt(2 * max(goal - line(t)[0], 0.0) / left)
        wealth.add(stage, step)


def _exit(cut: _Cut, point: Sequence[float], ray: Sequence[float]) -> float:
    """Return where a ray comes to the plane of a cut."""
    slope = _dot(cut.row, ray)
    return (_dot(cut.row, cut.point) - _dot(cut.row, point)) / slope if slope > 0 else inf


class _Wealth:
    """What bets of the stages so far have won."""

    def __init__(self, data: CountedRows) -> None:
        self._data, self._won = data, 0.0
        self._constants = [float(member.constant) for member in data.members]
        self._slopes = [[float(b) for b in member.slopes] for member in data.members]
        self._bets: list[tuple[float, list[tuple[int, float]]]] = []  # visits, and factors of members, of each class

    def add(self, stage: BetStage, step: Sequence[Exact]) -> None:
        """Add the bets of a stage."""
        bets = stage.bets(self._data.along([step])[0])
        self._won += float(gain(self._data, stage, bets))
        alike: dict[tuple[Any, ...], list[Any]] = {}  # classes with the same members, which are one
        for group, n in stage.drawn.items():
            places = self._data.places[group]
            if any(bets[i] != 0 for i in places):
                factors = [(i, exp(float(bets[i]))) for i in places]
                key = tuple((self._constants[i], *self._slopes[i], e) for i, e in factors)
                alike.setdefault(key, [0.0, factors])[0] += float(n)
        self._bets += [(n, factors) for n, factors in alike.values()]

    def on(self, point: Sequence[float], ray: Sequence[float]) -> _Line:
        """Return the logarithm of the wealth as a function on a ray, which is convex, with its slope."""
        at = [c + _dot(b, point) for c, b in zip(self._constants, self._slopes, strict=True)]
        along, won = [_dot(b, ray) for b in self._slopes], self._won
        means = [(n, sum(e * at[i] for i, e in each), sum(e * along[i] for i, e in each)) for n, each in self._bets]
        work(2 * len(at) * (1 + len(ray)) + 4 * len(means))

        def line(t: float) -> tuple[float, float]:
            work(len(means))
            there = [a + b * t for _, a, b in means]
            if min(there, default=1.0) <= 0:
                return _MOST, inf
            value = won - fsum(n * log(x) for (n, _, _), x in zip(means, there, strict=True))
            slope = -fsum(n * b / x for (n, _, b), x in zip(means, there, strict=True))
            return (value, slope) if value < _MOST else (_MOST, inf)

        return line

    def cut(self, line: _Line, point: Sequence[float], ray: Sequence[float], goal: float) -> _Cut:
        """Return where the wealth reaches a goal on a ray, or the furthest point that is looked at."""
        low, high = 0.0, 4.0 if line(0.0)[0] < goal else 0.0
        value, slope = line(high)
        while 0 < high < _FURTHEST and value < goal:
            low, high = high, 2 * high
            value, slope = line(high)
        for _ in range(_STEPS if value > goal and high > 0 else 0):
            t = high - (value - goal) / slope if slope < inf else low  # not below the goal, as it is convex
            step, t = high - t, t if t > low else (low + high) / 2
            found = line(t)
            if found[0] < goal:
                low = t
            else:
                high, (value, slope) = t, found
            if min(step, high - low) <= _NEAR:
                break
        there, row = [x + high * u for x, u in zip(point, ray, strict=True)], [0.0] * len(point)
        for n, each in self._bets:
            mean = sum(e * (self._constants[i] + _dot(self._slopes[i], there)) for i, e in each)
            for i, e in each:
                row = [r - n * e / mean * b for r, b in zip(row, self._slopes[i], strict=True)]
        return _Cut(there, row)


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))

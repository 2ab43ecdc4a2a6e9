"""Finds values that no probabilities within intervals leave, which a checker proves in exact fractions.

Nature's best answer is found by policy iteration. Where nature may keep runs forever, in end components, its largest
value is that of the best way out. Values have twice the digits of floats, so that they are exact bounds if each step is
moved outward by a tiny share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from flint import fmpq

from plumdp.model.graph import BoolArray, FloatArray
from plumdp.verifying.checker.reading import Exact, Part, Rejected, exact
from plumdp.verifying.checker.table_chain import TableChain
from plumdp.verifying.checker.table_values import Intervals, check_lower, check_upper, mean
from plumdp.verifying.table_game import Game, end_components, floats, for_nothing, leads_to, to_float

_REFINED = 5  # times that values are refined
_SHIFTS = (1e-29, 1e-26, 1e-22, 1e-18)  # of one step outward, relative


def values_part(chain: TableChain, intervals: Intervals) -> dict[str, Any]:
    """Return lower and upper values of all open nodes, and what proves that runs end."""
    game = Game(chain, intervals)
    return _lower(game) | _upper(game)


def rounded_outward(values: dict[str, Any], side: int) -> FloatArray:
    """Return lower (side -1) or upper values as floats, rounded outward; infinite where nothing is proved."""
    first, *rest = (np.array(each, dtype=np.float64) for each in values["upper" if side > 0 else "lower"])
    more = sum(rest, np.zeros(len(first)))
    rounded = np.where(side * more > 0, np.nextafter(first, side * np.inf), first)
    return np.where(np.isnan(first), side * np.inf, rounded)


def _exact_values(
    game: Game, asked: BoolArray, exits: dict[int, list[int]], side: int, cost: Sequence[Exact], *, closed: bool
) -> Iterator[list[list[float]]]:
    """Yield nature's values, each with two floats, ever further outward.

    Equations are solved in floats for exact residuals, each time of all that is left.
    """
    chain, inside = game.chain, {s: first for first, nodes in exits.items() for s in nodes}
    found, equations = game.solve(asked, exits, side, floats(cost), closed=closed)
    values = [exact(x) if is_asked else fmpq(0) for x, is_asked in zip(found.tolist(), asked, strict=True)]
    end = None if closed else fmpq(0)
    largest = max((abs(x) for x in values), default=fmpq(0))
    for shift in map(exact, _SHIFTS):
        for _ in range(_REFINED):
            off = np.zeros(len(values))
            for s in np.flatnonzero(asked).tolist():
                node, first = chain.nodes[s], inside.get(s)
                if first is None:
                    new = cost[s] + chain.discount * mean(node, game.intervals, node.ahead(values, end), side)
                elif s != first:
                    new = values[first]
                else:
                    out = [x for t in exits[first] for x in _ahead_of(chain, values, t, inside, first, end)]
                    new = cost[s] + max(out, default=fmpq(0))
                outward = fmpq(0) if s in inside else shift * (abs(new) if chain.is_never_negative else largest)
                off[s] = to_float(new + side * outward - values[s])
            step = equations.solve(off)
            values = [
                _rounded(x + exact(more)) if is_asked else x
                for x, more, is_asked in zip(values, step.tolist(), asked, strict=True)
            ]
        yield [list(each) for each in zip(*map(_two, values), strict=True)]


def _ahead_of(
    chain: TableChain, values: Sequence[Exact], s: int, inside: dict[int, int], first: int, end: Exact | None
) -> Iterator[Exact]:
    """Yield values of the successors of a node outside of its end component."""
    node = chain.nodes[s]
    for successor, known in zip(node.successors, node.known, strict=True):
        if successor is None:
            yield known if end is None else end
        elif inside.get(successor) != first:
            yield values[successor]


def _rounded(number: Exact) -> Exact:
    return sum(map(exact, _two(number)), start=fmpq(0))


def _two(number: Exact) -> tuple[float, float]:
    """Return two floats whose sum is about a number, with twice the digits of one."""
    first = to_float(number)
    return first, to_float(number - exact(first))


def _proved(candidates: Iterable[Any], holds: Callable[[Any], bool]) -> Any:
    """Return the first candidate that the checker accepts, or the last."""
    last = None
    for last in candidates:
        if holds(last):
            break
    return last


def _steps(game: Game, asked: BoolArray) -> list[list[float]]:
    """Return numbers of steps until runs leave some nodes, whatever nature does."""
    cost = [fmpq(3, 2)] * len(asked)
    return next(_exact_values(game, asked, {}, 1, cost, closed=False))


def _lower(game: Game) -> dict[str, Any]:
    chain, n = game.chain, len(game.chain.nodes)
    asked = np.ones(n, dtype=np.bool_)
    if chain.is_never_negative and chain.kind != "discounted":
        asked = ~for_nothing(game)
    is_paid = chain.is_never_negative and bool(asked.any()) and game.reward[asked].min() > 0
    paid = 2 / float(game.reward[asked].min()) if is_paid else 0.0
    steps = [[0.0] * n] if is_paid or chain.kind == "discounted" else _steps(game, asked)
    more = {"paid": paid, "steps_lower": steps}

    def holds(lower: list[list[float]]) -> bool:
        return _accepts(lambda: check_lower(_part(more | {"lower": lower}), chain, game.intervals))

    rewards = [node.reward for node in chain.nodes]
    return more | {"lower": _proved(_exact_values(game, asked, {}, -1, rewards, closed=True), holds)}


def _upper(game: Game) -> dict[str, Any]:
    chain, n = game.chain, len(game.chain.nodes)
    components = [] if chain.kind == "discounted" else end_components(game)
    infinite = np.zeros(n, dtype=np.bool_)
    if chain.kind != "reach":
        costly = [nodes for nodes in components if chain.kind == "until" or game.reward[nodes].any()]
        infinite = leads_to(game, {s for nodes in costly for s in nodes})
    exits = {nodes[0]: nodes for nodes in components if not infinite[nodes[0]]}
    is_least = chain.kind in ("reach", "total", "discounted") and chain.is_never_negative
    more = {"steps_upper": [[0.0] * n] if is_least else _steps(game, ~infinite)}

    def written(upper: list[list[float]]) -> list[list[float | None]]:
        first, rest = upper
        return [[None if is_infinite else x for x, is_infinite in zip(first, infinite, strict=True)], [*rest]]

    def holds(upper: list[list[float | None]]) -> bool:
        return _accepts(lambda: check_upper(_part(more | {"upper": upper}), chain, game.intervals))

    rewards = [node.reward for node in chain.nodes]
    found = map(written, _exact_values(game, ~infinite, exits, 1, rewards, closed=True))
    return more | {"upper": _proved(found, holds)}


def _part(content: dict[str, Any]) -> Part:
    return Part(content, "values")


def _accepts(check: Callable[[], Any]) -> bool:
    try:
        check()
    except Rejected:
        return False
    return True

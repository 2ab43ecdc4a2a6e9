"""Finds values that no probabilities within intervals leave, which a checker proves in exact fractions.

Nature's best answer is found by policy iteration. Where nature may keep runs forever, in end components, its largest
value is that of the best way out. Values have twice the digits of floats, so that they are exact bounds if each step is
moved outward by a tiny share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from flint import fmpq

from plumdp.model.graph import FloatArray
from plumdp.verifying.table_game import Game, end_components, for_nothing, leads_to, to_float
from plumdp_verify.reading import Exact, Part, Rejected, exact
from plumdp_verify.table_chain import TableChain
from plumdp_verify.table_values import Intervals, check_lower, check_upper

_ROUNDS, _REFINED = 200, 3  # of policy iteration, and after its last answer
_SHIFTS = (1e-29, 1e-26, 1e-22, 1e-18)  # of one step outward, relative


def values_part(chain: TableChain, intervals: Intervals) -> dict[str, Any]:
    """Return lower and upper values of all open nodes, and what proves that runs end."""
    if not chain.nodes:  # the value of the first node is known
        return {"paid": 0.0} | {name: [[]] for name in ("steps_lower", "lower", "steps_upper", "upper")}
    game = Game(chain, intervals, np.ones(len(chain.nodes), dtype=np.bool_))
    return _lower(game) | _upper(game)


def rounded_outward(values: dict[str, Any], side: int) -> FloatArray:
    """Return lower (side -1) or upper values as floats, rounded outward; infinite where nothing is proved."""
    first, *rest = (np.array(each, dtype=np.float64) for each in values["upper" if side > 0 else "lower"])
    more = sum(rest, np.zeros(len(first)))
    rounded = np.where(side * more > 0, np.nextafter(first, side * np.inf), first)
    return np.where(np.isnan(first), side * np.inf, rounded)


def _exact_values(
    game: Game, side: int, cost: Sequence[Exact], end: Exact | None = None
) -> Iterator[list[list[float]]]:
    """Yield nature's values, each as two floats, ever further outward; ``end`` is that of closed nodes, if given.

    This is policy iteration: equations are solved in floats, for exact residuals.
    """
    chain = game.chain
    answer = game.first_answer()
    equations, values = game.equations(answer), [fmpq(0)] * len(chain.nodes)
    for shift in map(exact, _SHIFTS):
        n_same = 0
        for _ in range(_ROUNDS):
            new = game.step(values, cost, side, end)
            largest = max(map(abs, new.values()), default=fmpq(0))
            off = np.zeros(len(values))
            for s, value in new.items():
                outward = shift * (abs(value) if chain.is_never_negative else largest)
                off[s] = to_float(value + side * outward - values[s])
            step = equations.solve(off)
            values = [_rounded(x + exact(more)) for x, more in zip(values, step.tolist(), strict=True)]
            values = [values[game.inside.get(s, s)] for s in range(len(values))]
            last, answer = answer, game.answer(values, side, end)
            n_same = n_same + 1 if answer.key == last.key else 0
            if n_same == 0:
                equations = game.equations(answer)
            elif n_same > _REFINED:
                break
        yield [list(each) for each in zip(*map(_two, values), strict=True)]


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


def _steps(game: Game) -> list[list[float]]:
    """Return numbers of steps until runs leave some nodes, whatever nature does."""
    return next(_exact_values(game, 1, [fmpq(3, 2)] * len(game.chain.nodes), fmpq(0)))


def _lower(game: Game) -> dict[str, Any]:
    chain, n = game.chain, len(game.chain.nodes)
    if chain.is_never_negative and chain.kind != "discounted":
        game = replace(game, asked=~for_nothing(game))
    asked = game.asked
    is_paid = chain.is_never_negative and bool(asked.any()) and game.reward[asked].min() > 0
    paid = 2 / float(game.reward[asked].min()) if is_paid else 0.0
    steps = [[0.0] * n] if is_paid or chain.kind == "discounted" else _steps(game)
    more = {"paid": paid, "steps_lower": steps}

    def holds(lower: list[list[float]]) -> bool:
        return _accepts(lambda: check_lower(_part(more | {"lower": lower}), chain, game.intervals))

    rewards = [node.reward for node in chain.nodes]
    return more | {"lower": _proved(_exact_values(game, -1, rewards), holds)}


def _upper(game: Game) -> dict[str, Any]:
    chain, n = game.chain, len(game.chain.nodes)
    components = [] if chain.kind == "discounted" else end_components(game)
    infinite = np.zeros(n, dtype=np.bool_)
    if chain.kind != "reach":
        costly = [nodes for nodes in components if chain.kind == "until" or game.reward[nodes].any()]
        infinite = leads_to(game, {s for nodes in costly for s in nodes})
    exits = {nodes[0]: nodes for nodes in components if not infinite[nodes[0]]}
    game = replace(game, asked=~infinite, exits=exits)
    is_least = chain.kind in ("reach", "total", "discounted") and chain.is_never_negative
    more = {"steps_upper": [[0.0] * n] if is_least else _steps(replace(game, exits={}))}

    def written(upper: list[list[float]]) -> list[list[float | None]]:
        first, rest = upper
        return [[None if is_infinite else x for x, is_infinite in zip(first, infinite, strict=True)], [*rest]]

    def holds(upper: list[list[float | None]]) -> bool:
        return _accepts(lambda: check_upper(_part(more | {"upper": upper}), chain, game.intervals))

    rewards = [node.reward for node in chain.nodes]
    found = map(written, _exact_values(game, 1, rewards))
    return more | {"upper": _proved(found, holds)}


def _part(content: dict[str, Any]) -> Part:
    return Part(content, "values")


def _accepts(check: Callable[[], Any]) -> bool:
    try:
        check()
    except Rejected:
        return False
    return True

"""Balls around the shares of the outcomes of a row: their probabilities differ from them by at most a radius in all.

As shares and probabilities both sum to one, no set of outcomes is off by more than half of the radius.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from flint import arb, fmpq

from .counts import Data
from .half_spaces import HalfSpace, below
from .polynomials import add, is_constant
from .reading import Ball, Exact, Part, require


def of_balls(part: Part, data: Data) -> Iterator[HalfSpace]:
    """Yield what the ball of a row says about each set of outcomes that is listed."""
    error, method = part["error"].number(), part["method"].text()
    require(method in _SQUARE, f"{part.place}: verify does not know balls by {method[:40]!r}")
    is_fixed = data.sampling == "independent"
    require(method != "weissman" or is_fixed, f"{part.place}: the numbers of visits were not fixed beforehand")
    n_rows = sum(not all(map(is_constant, row.outcomes)) for row in data.rows)
    require(part["number"].whole() >= n_rows, f"{part.place}: the error is divided among too few rows")
    radius: dict[int, Ball] = {}
    for item in part["list"]:
        number = item[0].whole(len(data.rows))
        outcomes, seen = data.rows[number].outcomes, data.rows[number].seen["all"]
        require(sum(seen) > 0, f"{item.place}: the row was never visited")
        require(not all(map(is_constant, outcomes)), f"{item.place}: the row does not depend on parameters")
        if number not in radius:
            radius[number] = (2 * (_SQUARE[method](seen) - arb(error).log()) / sum(seen)).sqrt()
        chosen = {place.whole(len(outcomes)) for place in item[1]}
        share = fmpq(sum(seen[i] for i in chosen), sum(seen))
        yield below(add(*(outcomes[i] for i in chosen)), arb(share) + radius[number] / 2, len(data.names))


def _weissman(seen: Sequence[int]) -> Ball:
    """Return ln(2^k - 2): each of these sets is off by half of the radius with the same small probability (2003)."""
    return arb(2 ** len(seen) - 2).log() if len(seen) > 1 else arb(0)


def _dirichlet(seen: Sequence[int]) -> Ball:
    """Return how much likelier the data are at their shares than on average, under Dirichlet's law with parameters ½.

    By Ville's inequality, visits times KL(shares, probabilities) never exceeds that and ln(1 / error); the distance is
    at most sqrt(2 KL) (Pinsker).
    """
    n, half = sum(seen), arb(1) / 2
    best = sum((k * arb(fmpq(k, n)).log() for k in seen if k), start=arb(0))
    average = sum(((k + half).lgamma() - half.lgamma() for k in seen), start=arb(0))
    return best - average - (half * len(seen)).lgamma() + (n + half * len(seen)).lgamma()


_SQUARE: dict[str, Callable[[Sequence[int]], Exact]] = {"weissman": _weissman, "dirichlet": _dirichlet}

"""Rows that are off: every row is within a misfit, in total variation, of the one at the true point of the space.

For a function h of outcomes, the mean under such a row differs by at most misfit · (max h - min h) from that at the
point. So a bet that a visit multiplies by H, with a mean of one at the point, has a mean of at most 1 + misfit · R for
the range R of H; events have probabilities within the misfit of theirs; and one step changes a value by at most the
misfit times the range of what follows. The likelihood has no part in this, as its ratios have no bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from flint import arb, fmpq

from .polynomials import Exponents, Polynomial, affine, size_on_ball
from .reading import Ball, Exact, Part, Way, require

_POSTERIOR = fmpq(9, 10)  # λ: share of the error at which intervals are made, and of the posterior within each end

Box: TypeAlias = list[tuple[Any, Any]]
"""The least and the largest value of each parameter, or None."""


def check_parts(witness: Part) -> None:
    """Require that nothing in the set needs rows that are exact."""
    part = witness["set"]
    for name in ("likelihoods", "tangents"):
        require(not len(part[name]), f"{part[name].place}: rows that are off have no likelihood")
    require("studies" not in part, "studies: rows that are off need not have the parameters of another study")
    require("rewards" not in witness, "rewards: their means are those of exact rows")
    if part["intervals"].value is not None:
        is_tolerant = part["intervals"]["method"].text() == "tolerant"
        require(is_tolerant, f"{part['intervals'].place}: these intervals are for rows that are exact")


def sure_classes(ways: Sequence[Sequence[Way] | None], classes: Sequence[Sequence[Polynomial]], box: Box) -> set[int]:
    """Return the classes whose members are not negative at the true point.

    Members of the first class of a row are sums of its outcomes. A later class may have negative members where rows
    never come to it, unless the box of the space excludes it; a row that is off may come to it.
    """
    first = {way[0][0] for of_row in ways for way in of_row or () if way}
    return {i for i, members in enumerate(classes) if i in first or all(_least(f, box) >= 0 for f in members)}


def box_of(sides: Iterable[tuple[Exact, Sequence[Exact]]], n: int) -> Box:
    """Return the least and the largest value of each parameter, by sides of the space in one parameter.

    Sides are constants and slopes of polynomials that are at least zero.
    """
    low: list[Any] = [None] * n
    high: list[Any] = [None] * n
    for number, slopes in sides:
        places = [i for i, b in enumerate(slopes) if b]
        if len(places) == 1:
            i, end = places[0], -number / slopes[places[0]]
            if slopes[i] > 0:
                low[i] = end if low[i] is None else max(low[i], end)
            else:
                high[i] = end if high[i] is None else min(high[i], end)
    return list(zip(low, high, strict=True))


def _least(polynomial: Polynomial, box: Box) -> Exact:
    number, slopes = affine(polynomial, len(box), "classes")
    for slope, (low, high) in zip(slopes, box, strict=True):
        end = low if slope > 0 else high
        if slope and end is None:
            return fmpq(-1)
        number += slope * end if slope else 0
    return number


def log_tolerated(ways: Sequence[Way], bets: Mapping[tuple[int, int], Ball], misfit: Exact) -> Ball:
    """Return ln(1 + misfit · R) of a visit of a row, given bets u on members of classes on its ways.

    H is the product of e^u / Z along the way to an outcome, and each Z is between the least and the largest e^u of its
    class. The first class is the same for all outcomes, so that only its least value matters.
    """
    groups = {group for way in ways for group, _ in way}
    low, high = {}, {}
    for group in groups:
        of_class = [bet for (other, _), bet in bets.items() if other == group]
        low[group], high[group] = _extreme(of_class, -1), _extreme(of_class, 1)
    top = [sum((bets[step] - low[step[0]] for step in way), start=arb(0)) for way in ways]
    bottom = [
        sum((bets[step] - (high if place else low)[step[0]] for place, step in enumerate(way)), start=arb(0))
        for way in ways
    ]
    spread = _extreme(top, 1).exp() - _extreme(bottom, -1).exp()
    return (1 + arb(misfit) * spread.max(arb(0))).log()


def _extreme(balls: Sequence[Ball], side: int) -> Ball:
    result = balls[0]
    for ball in balls[1:]:
        result = result.max(ball) if side > 0 else result.min(ball)
    return result


def is_posterior_enough(successes: int, trials: int, end: Exact, side: int) -> bool:
    """Return whether the posterior of Beta(1/2, 1/2) has at least the share λ within an end."""
    k, m = (successes, trials - successes) if side < 0 else (trials - successes, successes)
    p = arb(end) if side < 0 else 1 - arb(end)
    return bool(1 - p.beta_lower(arb(k) + 0.5, arb(m) + 0.5, regularized=1) >= arb(_POSTERIOR))


def tolerant_error(error: Exact) -> Exact:
    """Return the error at which the beta-binomial interval is made."""
    return _POSTERIOR * error


def range_after(
    values: Sequence[Mapping[Exponents, Ball]],
    margins: Sequence[Ball],
    successors: Sequence[int],
    sign: int,
    zero: Exponents,
) -> tuple[dict[Exponents, Ball], Ball]:
    """Return a polynomial and a number whose sum bounds the range of h = u + sign · m over successors, in the ball.

    The polynomial is the difference of the successors that have most and least at the centre. The number is how much
    others may have beyond them elsewhere.
    """
    functions = {
        s: {**values[s], zero: values[s].get(zero, arb(0)) + sign * margins[s]} for s in dict.fromkeys(successors)
    }
    order = sorted(functions, key=lambda s: float(functions[s][zero].mid()))
    most, least = functions[order[-1]], functions[order[0]]
    above, below = arb(0), arb(0)
    for other in order[1:-1]:
        above = above.max(_largest(_difference(functions[other], most), zero))
        below = below.max(_largest(_difference(least, functions[other]), zero))
    between = _difference(most, least)
    opposite = _largest({e: -c for e, c in between.items()}, zero).max(arb(0))  # if they change places in the ball
    return between, (2 * opposite + above + below)


def _difference(one: Mapping[Exponents, Ball], other: Mapping[Exponents, Ball]) -> dict[Exponents, Ball]:
    return {e: one.get(e, arb(0)) - other.get(e, arb(0)) for e in one.keys() | other.keys()}


def _largest(polynomial: Mapping[Exponents, Ball], zero: Exponents) -> Ball:
    """Return an upper bound on the ball."""
    return polynomial[zero] + size_on_ball(polynomial)

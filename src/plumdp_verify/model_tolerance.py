"""Rows that are off: every row is within a tolerance, in total variation, of the one at the true point of the space.

For a function h of outcomes, the mean under such a row differs by at most tolerance · (max h - min h) from that at the
point. So a bet that a visit multiplies by H, with a mean of one at the point, has a mean of at most 1 + tolerance · R
for the range R of H; events have probabilities within the tolerance of theirs; and one step changes a value by at most
the model tolerance times the range of what follows. The likelihood has no part in this, as its ratios have no bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from flint import arb, fmpq

from .arithmetic import max_of, min_of
from .counts import OutcomePath
from .polynomials import Exponents
from .reading import Ball, Exact, Part, require

_POSTERIOR = fmpq(9, 10)  # λ: share of the error at which intervals are made, and of the posterior within each end


def check_parts(witness: Part) -> None:
    """Require that nothing in the set needs rows that are exact."""
    part = witness["set"]
    for name in ("likelihoods", "tangents"):
        require(not len(part[name]), f"{part[name].place}: rows that are off have no likelihood")
    require("rewards" not in witness, "rewards: their means are those of exact rows")
    if part["intervals"].value is not None:
        is_tolerant = part["intervals"]["method"].text() == "tolerant"
        require(is_tolerant, f"{part['intervals'].place}: these intervals are for rows that are exact")


def log_tolerated(ways: Sequence[OutcomePath], bets: Mapping[tuple[int, int], Ball], model_tolerance: Exact) -> Ball:
    """Return ln(1 + model tolerance · R) of a visit of a row, given bets u on members of classes on its ways.

    H is the product of e^u / Z along the way to an outcome, and each Z is between the least and the largest e^u of its
    class. The first class is the same for all outcomes, so that only its least value matters.
    """
    groups = {group for way in ways for group, _ in way}
    low, high = {}, {}
    for group in groups:
        of_class = [bet for (other, _), bet in bets.items() if other == group]
        low[group], high[group] = min_of(of_class), max_of(of_class)
    top = [sum((bets[step] - low[step[0]] for step in way), start=arb(0)) for way in ways]
    bottom = [
        sum((bets[step] - (high if place else low)[step[0]] for place, step in enumerate(way)), start=arb(0))
        for way in ways
    ]
    spread = max_of(top).exp() - min_of(bottom).exp()
    return (1 + arb(model_tolerance) * spread.max(arb(0))).log()


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
    size: Callable[[Mapping[Exponents, Ball]], Ball],
) -> tuple[dict[Exponents, Ball], Ball]:
    """Return a polynomial and a number whose sum bounds the range of h = u + sign · m over successors, in the cube.

    The polynomial is the difference of the successors that have most and least at the centre. The number is how much
    others may have beyond them elsewhere.
    """
    functions = {
        s: {**values[s], zero: values[s].get(zero, arb(0)) + sign * margins[s]} for s in dict.fromkeys(successors)
    }
    order = sorted(functions, key=lambda s: float(functions[s][zero].mid()))
    most, least = functions[order[-1]], functions[order[0]]
    above, below = arb(0), arb(0)

    def largest(polynomial: Mapping[Exponents, Ball]) -> Ball:
        return polynomial[zero] + size(polynomial)

    for other in order[1:-1]:
        above = above.max(largest(_difference(functions[other], most)))
        below = below.max(largest(_difference(least, functions[other])))
    between = _difference(most, least)
    opposite = largest({e: -c for e, c in between.items()}).max(arb(0))  # if they change places in the cube
    return between, (2 * opposite + above + below)


def _difference(one: Mapping[Exponents, Ball], other: Mapping[Exponents, Ball]) -> dict[Exponents, Ball]:
    return {e: one.get(e, arb(0)) - other.get(e, arb(0)) for e in one.keys() | other.keys()}

"""Points that a likelihood set must keep, decided in fractions, without the set's own half-spaces.

A point belongs to it if it lies in the space and the strips, makes every row a row, its log-likelihood is above the
threshold, and the bets have not won too much at it: Σ K ln e - Σ N ln Z < ln(1 / error), logarithms and all. The set's
half-spaces contain what follows from the latter by a tangent, so that they must keep all of these points.
"""

from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import inf, log

import numpy as np
from coupled_points import is_point_of

from plumdp.confidence import likelihood
from plumdp.solver.at_points import move_inside

_MARGIN = 1e-9  # of a sum of logarithms, relative to its size: more than floats can be off


@dataclass(frozen=True, eq=False)
class Bet:
    """The factor of each outcome, and the error that these bets may use."""

    factors: np.ndarray
    error: float


@contextmanager
def recorded_bets():
    """Yield a list that fills with the bets of all half-spaces that are made meanwhile."""
    bets, half_space = [], likelihood.half_space

    def recording(table, seen, factors, *, near, error, text=""):
        bets.append(Bet(factors, error))
        return half_space(table, seen, factors, near=near, error=error, text=text)

    likelihood.half_space = recording
    try:
        yield bets
    finally:
        likelihood.half_space = half_space


def is_member(model, found, bets, at):
    """Return whether a point (d floats) surely satisfies all that the data are said to imply."""
    point = dict(zip(model.space.names, map(Fraction, at.tolist()), strict=True))
    return is_point_of(model, point) and is_in_strips(found.strips, point) and is_likely(found, bets, point)


def is_in_strips(strips, point):
    """Return whether all events have probabilities within their intervals at a point."""
    ends = zip(strips.events.polynomials, strips.event_lower.tolist(), strips.event_upper.tolist(), strict=True)
    return all(low <= f.evaluate(point) <= high for f, low, high in ends)


def is_likely(found, bets, point):
    """Return whether a point surely has a log-likelihood above the threshold, and no bets have won too much at it."""
    table, seen = found.table, found.seen.tolist()
    chances = [f.evaluate(point) for f in table.outcomes]
    terms = [k * (log(f) if f > 0 else -inf) for k, f in zip(seen, chances, strict=True) if k]
    if not sum(terms) >= found.threshold + _MARGIN * (1 + sum(map(abs, terms)) + abs(min(found.threshold, 0.0))):
        return found.threshold == -inf and all(_has_not_won(table, seen, chances, bet) for bet in bets)
    return all(_has_not_won(table, seen, chances, bet) for bet in bets)


def _has_not_won(table, seen, chances, bet):
    visits, means = {}, {}
    for r, k, f, e in zip(table.group.tolist(), seen, chances, bet.factors.tolist(), strict=True):
        if table.is_class[r]:
            visits[r], means[r] = visits.get(r, 0) + k, means.get(r, 0) + f * Fraction(e)
    won = [k * log(e) for k, e in zip(seen, bet.factors.tolist(), strict=True) if k]
    paid = [n * log(means[r]) for r, n in visits.items() if n]
    return sum(won) - sum(paid) < -log(bet.error) - _MARGIN * (1 + sum(map(abs, won)) + sum(map(abs, paid)))


def members(rng, model, found, bets, directions, n):
    """Return points of a likelihood set: about where it ends on random lines through its estimate, and inside.

    ``directions`` are tried both ways before random ones. None are returned if the estimate itself is no member.
    """
    middle, d = found.table.middle, model.space.dimension
    start = move_inside(model, found.estimate, middle)
    start = next(
        (at for at in (start, start + 1e-6 * (middle - start), middle) if is_member(model, found, bets, at)), None
    )
    if start is None:
        return []
    result, width = [start], np.linalg.norm(model.space.upper - model.space.lower)
    lines = [side * line for line in directions for side in (1, -1)]
    for i in range(n):
        line = lines[i] if i < len(lines) else rng.normal(size=d)
        if np.abs(line).max(initial=0) > 0:
            end = last_inside(partial(is_member, model, found, bets), start, width * line / np.linalg.norm(line))
            result += [end, start + rng.random() * (end - start)]
    return [at for at in result if is_member(model, found, bets, at)]


def last_inside(is_inside, start, step):
    """Return about the last point on a line that is inside, by bisection."""
    inside, outside = 0.0, 1.0
    for _ in range(14):
        middle = (inside + outside) / 2 if inside else outside / 4
        if is_inside(start + middle * step):
            inside = middle
        else:
            outside = middle
    return start + inside * step

"""Bounds on the probability that something happens within some steps, by runs that may have been cut off before.

A run is at risk in a step that begins before it happened, and whose outcome was seen. If it happens in a step with the
hazard h = 1 - exp(-q), given that it did not before, the probability is 1 - exp(-Σ q). For sizes a and s of each step
that are fixed by earlier runs, the factors

    of q too small:   e^a / (1 + h (e^a - 1)) if it happens,  1 / (1 + h (e^a - 1)) if not
    of q too large:   1 - s                   if it happens,  1 + s (e^q - 1)       if not

have mean one at the true q. A run that is at risk has one past alone, so that they may be multiplied along it, whatever
else happens in the run; and over runs (Statement R7 of the page on whole runs). The logarithms of both products are
convex in q: their least and largest Σ q have a dual bound with one multiplier, which needs no bounds of single steps.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import log, sqrt

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.base.rounding import UNIT, FloatArray
from plumdp.data.returns import Lives, Range

_FIRST = 16  # runs, from which on sizes are renewed, each time there are half as many more
_LARGEST = 0.9  # size
_MOST = 40.0  # that q is looked for up to
_HALVINGS, _SEARCHES, _RANGE = 50, 30, 4.0  # of q, and of the logarithm of the multiplier, on both sides of a guess


def risk_ends(lives: Lives, error: float, planned: float) -> Range:
    """Return bounds on what is asked, each of which has half of the error; so many runs were pre-specified."""
    goal = -log(equal_parts(error, 2)) * (1 + 8 * UNIT)
    blocks = [0, *_renewals(len(lives.steps)), len(lives.steps)]
    sizes = np.array([sizes_of(lives.seen(0, first), first, goal, planned) for first in blocks[:-1]])
    seen = np.array([lives.seen(*each) for each in pairwise(blocks)])
    at_risk, happened = seen[:, 0], seen[:, 1]
    large = np.minimum(sizes, _LARGEST)
    least = _least_sum(at_risk, happened, sizes, goal)
    most = _largest_sum(at_risk - happened, goal - float((happened * np.log1p(-large)).sum()) * (1 + 1e-12), large)
    if lives.complement:
        return float(np.exp(-most) * (1 - 8 * UNIT)), min(float(np.exp(-least) * (1 + 8 * UNIT)), 1.0)
    return float(-np.expm1(-least) * (1 - 8 * UNIT)), min(float(-np.expm1(-most) * (1 + 8 * UNIT)), 1.0)


def _renewals(n: int) -> list[int]:
    """Return after how many of n runs sizes are renewed: the same numbers, however many runs there are."""
    ends = [_FIRST]
    while ends[-1] < n:
        ends.append(ends[-1] * 3 // 2)
    return ends[:-1]


def sizes_of(seen: FloatArray, n: int, goal: float, planned: float) -> FloatArray:
    """Return the sizes of bets (n_steps), given what was seen in the first n runs.

    All steps weigh as much as they would in the estimate of Kaplan and Meier: the inverse of how many runs will be at
    risk. The sum that reaches a goal soonest varies by its square root.
    """
    at_risk, happened = seen
    usual = (happened.sum() + 0.5) / (at_risk.sum() + 1)
    expected = planned * (at_risk + 1) / (n + 1)
    variance = float((((happened + usual) / (at_risk + 1)) / expected).sum())
    return np.asarray(sqrt(2 * goal / variance) / expected)


def log_factors(q: FloatArray, at_risk: FloatArray, happened: FloatArray, sizes: FloatArray) -> tuple[float, float]:
    """Return the logarithms of the products of both factors, that q is too small and that it is too large."""
    large, growth = np.minimum(sizes, _LARGEST), np.expm1(np.minimum(sizes, 1.0))
    small = np.minimum(sizes, 1.0) * happened - at_risk * np.log1p(growth * -np.expm1(-q))
    most = happened * np.log1p(-large) + (at_risk - happened) * np.log1p(large * np.expm1(q))
    return float(small.sum()), float(most.sum())


def _least_sum(at_risk: FloatArray, happened: FloatArray, sizes: FloatArray, goal: float) -> float:
    """Return a number below Σ q, for all q for which the first product is below its goal."""
    sizes = np.minimum(sizes, 1.0)
    growth, won = np.expm1(sizes), float((sizes * happened).sum())

    def slope(q: FloatArray, multiplier: float) -> FloatArray:
        paid = growth * np.exp(-q) / (1 + growth * -np.expm1(-q))
        return np.asarray(1 - multiplier * (at_risk * paid).sum(axis=0))

    def bound(multiplier: float) -> float:
        q = _first_above(lambda q: slope(q, multiplier), at_risk.shape[1])
        lost = (at_risk * np.log1p(growth * -np.expm1(-q))).sum(axis=0)
        value = q - multiplier * lost - np.maximum(slope(q, multiplier), 0.0) * q  # of the tangent, at q = 0
        size = float((q + multiplier * lost).sum()) + multiplier * (won + goal)
        return float(value.sum()) + multiplier * (won - goal) - _off(at_risk) * size

    return max(_largest(bound, 1 / max(won, 1.0)), 0.0)


def _largest_sum(survived: FloatArray, goal: float, sizes: FloatArray) -> float:
    """Return a number above Σ q, for all q for which the second product, but for its constant, is below its goal."""

    def slope(q: FloatArray, multiplier: float) -> FloatArray:
        gain = sizes * np.exp(q) / (1 + sizes * np.expm1(q))
        return np.asarray(multiplier * (survived * gain).sum(axis=0) - 1)

    def bound(multiplier: float) -> float:
        q = _first_above(lambda q: slope(q, multiplier), survived.shape[1])
        left = slope(q, multiplier)
        if (left < 0).any():  # nothing speaks against q without bounds
            return -np.inf
        won = (survived * np.log1p(sizes * np.expm1(q))).sum(axis=0)
        value = q - multiplier * won + left * q  # of the tangent, at q = 0
        size = float((q + multiplier * won).sum()) + multiplier * goal
        return -(float(value.sum()) + multiplier * goal + _off(survived) * size)

    return -_largest(bound, 1 / max(goal, 1.0))


def _off(terms: FloatArray) -> float:
    """Return by how much a sum with as many terms is off, relative to the sum of their sizes."""
    return (terms.size + 64) * UNIT


def _first_above(slope: Callable[[FloatArray], FloatArray], n: int) -> FloatArray:
    """Return for each of n growing functions about the first number from 0 on at which it is not negative."""
    low, high = np.zeros(n), np.full(n, _MOST)
    high[slope(low) >= 0] = 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_above = slope(middle) >= 0
        low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
    return high


def _largest(bound: Callable[[float], float], guess: float) -> float:
    """Return about the largest value of a function of the multiplier, each of which is a bound."""
    low, high, best = log(guess) - _RANGE, log(guess) + _RANGE, -np.inf
    for _ in range(_SEARCHES):
        one, other = (low + (high - low) * part for part in (0.382, 0.618))
        values = bound(float(np.exp(one))), bound(float(np.exp(other)))
        best = max(best, *values)
        low, high = (low, other) if values[0] > values[1] else (one, high)
    return best

"""Detectors of changes: sums over all starts of wealths that are fair as long as nothing changes (Statement W2).

Let K(a, b] be what was seen of a class of rows in parts a + 1 to b, D the average of its probability over Dirichlet's
law with weights ½, and E(· | i) that over Dirichlet's law with the mean that parts up to i left. The wealth of a
change after part i is

    learned reference:    D(K(0, i]) / D(K(0, m]) · E(K(i, n] | i) / max over q of Π q^K(m, n],
    known or certified:   E(K(i, n]) / max over q in the reference of Π q^K(i, n],

where the pilot m is fixed by i alone. An alarm is given once the sum over starts, averaged over classes, reaches 1 / α.
With a known reference the mean number of parts up to a false alarm is at least 1 / α. With a learned one, a false alarm
in the first n parts has a probability of at most α n. Starts may be left out, which makes the sum smaller.

The value alone has bets of its own (Statement W3). Runs earn numbers between 0 and 1. As long as the mean of each,
given what came before, is at least the certified bound, a bet of a fixed fraction of the capital that they earn less is
fair or worse, whatever else changes. The sum over all starts of the capital after one fraction follows from the sum a
part before, R' = (R + 1) · (factor of the part), so that nothing else need be kept, and no start is left out. The
model's probabilities are not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, log
from typing import Any

import numpy as np

from plumdp.base.rounding import UNDERFLOW
from plumdp.base.special import log_gamma
from plumdp.confidence.bounded_means import FRACTIONS, Tally, log_capitals
from plumdp.model.graph import FloatArray, Indices

_MAIN_PER_PILOT = 8  # parts before a start, at least, for each one of its pilot
_PRIOR = 0.5  # of each outcome, in predictions of quiet data
_AS_DATA = 8.0  # visits that the law after a change takes what came before it for
_EQUAL = 0.125  # part of the mean of that law that is the same for all outcomes
_ROUNDING = 1e-13  # relative to the sizes of terms of a logarithm
_HALVINGS = 40
_FAR = 20.0  # of the logarithm of a multiplier, on both sides


def pilot_of(i: int) -> int:
    """Return the pilot of the start after i parts: the largest 2^k or 3 · 2^k that is at most an eighth of i, or 0.

    >>> [pilot_of(i) for i in (7, 8, 16, 24, 100)]
    [0, 1, 2, 3, 12]
    """
    most = i // _MAIN_PER_PILOT
    power = 1 << max(most.bit_length() - 1, 0)
    return most if most < 2 else power if 3 * power // 2 > most else 3 * power // 2


def is_moment(i: int) -> bool:
    """Return whether what was seen in the first i parts is kept, as it is the pilot of later starts."""
    odd = i // (i & -i) if i else 0
    return odd in (1, 3)


@dataclass(frozen=True, eq=False)
class Starts:
    """What was seen up to each start after which rows may have changed, up to its pilot, and in all."""

    first: Indices  # (n_classes + 1): of the outcomes of each class
    before: FloatArray  # (m, n_outcomes)
    pilot: FloatArray  # (m, n_outcomes)
    total: FloatArray  # (n_outcomes)

    @property
    def after(self) -> FloatArray:
        """What was seen after each start (m, n_outcomes)."""
        return self.total - self.before

    def of(self, outcomes: slice) -> Starts:
        """Return the same about some of the outcomes."""
        before, pilot, total = self.before[:, outcomes], self.pilot[:, outcomes], self.total[outcomes]
        return Starts(self.first, before, pilot, total)


def log_changed(starts: Starts) -> FloatArray:
    """Return the logarithm of the wealth of each start and class (m, n_classes), from below; the reference is learned.

    >>> one = Starts(np.array([0, 2]), np.array([[10.0, 90.0]]), np.zeros((1, 2)), np.array([30.0, 170.0]))
    >>> log_changed(one).round(2)
    array([[-2.06]])
    """
    mean = _means(starts)
    weights = np.full_like(starts.before, _PRIOR)
    terms = [
        (1, *_log_average(starts.before, weights, starts.first)),
        (-1, *_log_average(starts.pilot, weights, starts.first)),
        (1, *_log_average(starts.after, _AS_DATA * mean, starts.first)),
        (-1, *_log_largest(starts.total - starts.pilot, starts.first)),
    ]
    return _down(terms)


def log_outside(starts: Starts, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the logarithm of the wealth of each start and class (m, n_classes), from below, against a reference.

    The reference are all laws with probabilities from ``low`` to ``high`` (n_outcomes).
    """
    mean = _towards_equal(np.maximum((low + high) / 2, UNDERFLOW)[None], starts.first)
    weights = np.broadcast_to(_AS_DATA * mean, starts.before.shape)
    terms = [
        (1, *_log_average(starts.after, weights, starts.first)),
        (-1, *_log_largest_within(starts.after, low, high, starts.first)),
    ]
    return _down(terms)


def log_sum(wealths: FloatArray) -> float:
    """Return the logarithm of the sum over starts, averaged over classes, of wealths (m, n_classes), from below."""
    most = float(wealths.max(initial=-np.inf))
    if most == -np.inf:
        return most
    total = most + log(float(np.exp(wealths - most).sum())) - log(wealths.shape[1])
    return total - 1e-12 * (1 + abs(most))


def _means(starts: Starts) -> FloatArray:
    """Return the mean of the law after each start, given the frequencies before it, with the prior."""
    return _towards_equal(starts.before + _PRIOR, starts.first)


def _towards_equal(values: FloatArray, first: Indices) -> FloatArray:
    """Return positive numbers scaled to sums of one in each class, and moved towards equal ones.

    So a probability that is small may grow a little more easily than shrink.
    """
    scaled = values / _by_outcome(_sums(values, first), first)
    return (1 - _EQUAL) * scaled + _EQUAL / np.repeat(np.diff(first), np.diff(first))


def _sums(values: FloatArray, first: Indices) -> FloatArray:
    """Return sums by class (m, n_classes); no class is empty."""
    return np.add.reduceat(values, first[:-1], axis=1)


def _by_outcome(of_classes: FloatArray, first: Indices) -> FloatArray:
    return np.repeat(of_classes, np.diff(first), axis=1)


def _log_average(seen: FloatArray, weights: FloatArray, first: Indices) -> tuple[FloatArray, FloatArray]:
    """Return the logarithm of the average probability of one order of what was seen, by Dirichlet's law, and a size."""
    terms = log_gamma(weights + seen), -log_gamma(weights)
    visits, sums = _sums(seen, first), _sums(weights, first)
    of_classes = log_gamma(sums), -log_gamma(sums + visits)
    value = _sums(terms[0] + terms[1], first) + of_classes[0] + of_classes[1]
    return value, _sums(np.abs(terms[0]) + np.abs(terms[1]), first) + np.abs(of_classes[0]) + np.abs(of_classes[1]) + 1


def _log_largest(seen: FloatArray, first: Indices) -> tuple[FloatArray, FloatArray]:
    """Return the logarithm of the largest probability that any law gives to what was seen, and a size."""
    visits = _by_outcome(_sums(seen, first), first)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(seen > 0, seen * np.log(seen / visits), 0.0)
    value = _sums(terms, first)
    return value, np.abs(value) + 1


def _log_largest_within(
    seen: FloatArray, low: FloatArray, high: FloatArray, first: Indices
) -> tuple[FloatArray, FloatArray]:
    """Return an upper bound on the same for laws between two bounds, and a size.

    For every λ >= 0 it is at most λ + Σ max over q in [low, high] of K ln q - λ q, as probabilities sum to one. The
    bisection only proposes λ, about where q = K / λ, moved into its bounds, sum to one.
    """
    visits, possible = np.maximum(_sums(seen, first), UNDERFLOW), np.maximum(high, UNDERFLOW)
    below, above = np.full(visits.shape, -_FAR), np.full(visits.shape, _FAR)

    def at(log_factor: FloatArray) -> tuple[FloatArray, FloatArray]:
        multiplier = visits * np.exp(log_factor)
        return multiplier, np.clip(seen / _by_outcome(multiplier, first), low, possible)

    for _ in range(_HALVINGS if (low < high).any() else 0):
        middle = (below + above) / 2
        is_too_much = _sums(at(middle)[1], first) > 1
        below, above = np.where(is_too_much, middle, below), np.where(is_too_much, above, middle)
    multiplier, q = at((below + above) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(seen > 0, seen * np.log(q), 0.0)
    paid = multiplier * (1 - _sums(q, first))
    return _sums(terms, first) + paid, _sums(np.abs(terms), first) + 2 * multiplier + 1


def _down(terms: list[tuple[int, FloatArray, FloatArray]]) -> FloatArray:
    """Return a sum of terms, each with a sign and a size, less what rounding may have added."""
    value = sum((sign * each for sign, each, _ in terms), np.zeros(terms[0][1].shape))
    return np.asarray(value - _ROUNDING * sum((size for *_, size in terms), np.zeros(value.shape)))


_DOWN = 1e-12  # relative, of each update


@dataclass(frozen=True, eq=False)
class ValueBets:
    """Bets that runs lose more than a certified bound allows, on losses from 0 to 1.

    ``sums`` are logarithms of sums over starts, one for each fraction, from below. ``single`` are those of the best
    start alone, which only says from when on the value seems to have been lower.
    """

    limit: float  # of the mean loss, rounded up
    sums: FloatArray
    single: FloatArray
    since: tuple[str, ...]  # (n_fractions): the part that the best start of each is before
    lost: FloatArray  # (n_fractions, 2): losses since then, and their number

    @staticmethod
    def against(limit: float) -> ValueBets:
        """Return bets before the first part."""
        n = len(FRACTIONS)
        return ValueBets(limit, np.full(n, -inf), np.full(n, -inf), ("",) * n, np.zeros((n, 2)))

    def add(self, name: str, losses: FloatArray) -> ValueBets:
        """Return the bets after one more part, given lower bounds on the losses of its runs."""
        won = log_capitals(Tally.of(losses), self.limit) if len(losses) else np.zeros(len(self.sums))
        raised = np.logaddexp(self.sums, 0.0) + won
        begins = self.single <= 0  # a start before this part is better than all earlier ones
        seen = np.array([losses.sum(), len(losses)])
        return replace(
            self,
            sums=raised - _DOWN * (1 + np.abs(np.where(np.isfinite(raised), raised, 0.0))),
            single=np.maximum(self.single, 0.0) + won,
            since=tuple(name if new else old for new, old in zip(begins, self.since, strict=True)),
            lost=np.where(begins[:, None], 0.0, self.lost) + seen,
        )

    @property
    def evidence(self) -> float:
        """The logarithm of the sum over starts, averaged over fractions, from below."""
        most = float(self.sums.max())
        if most == -inf:
            return -inf
        return most + log(float(np.exp(self.sums - most).mean())) - _DOWN * (1 + abs(most))

    @property
    def seems(self) -> tuple[str, float]:
        """The part since which runs seem to lose more, and the mean loss since then: estimates."""
        best = int(np.argmax(self.single))
        return self.since[best], float(self.lost[best, 0] / max(self.lost[best, 1], 1.0))

    def to_json(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        told = {"sums": self.sums, "single": self.single, "lost": self.lost}
        return {"limit": self.limit, "since": self.since, **{name: each.tolist() for name, each in told.items()}}

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> ValueBets:
        """Return the bets that a file has."""
        sums, single, lost = (np.array(content[name], dtype=np.float64) for name in ("sums", "single", "lost"))
        return ValueBets(content["limit"], sums, single, tuple(content["since"]), lost)

"""Tests whether rows changed while the data were collected (Statement W1 of docs/proofs/fit.md).

For a boundary i between base parts of the data, let K(a, b] be what was seen in parts a + 1 to b, L(v) its likelihood
at a point v, and ev(K) its average over a law of the parameters that was fixed at the start of the stretch. Two
wealths are fair at the true point, if there is one for all of the data:

    since i:       ev(K(i, n]) / L(v) of K(i, n],
    changed at i:  ev(K(m, i]) ev(K(i, n]) / L(v) of K(m, n],

where m is a pilot, or nothing. Weights of all boundaries there might ever be, and of their pilots, sum to one. So each
term may be used at its weight, and which ones are looked at may be decided by looking at all data. Likewise each class
of tied rows has wealths by Dirichlet laws before and after i, against every law that it might have had all the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import log

import numpy as np

from plumdp.confidence.estimates import Law, law_of_pilot
from plumdp.confidence.evidence import log_evidence
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.data.time_parts import TimeParts
from plumdp.fit.cell_tests import NO_CELLS, CellTests, largest
from plumdp.fit.drift import parameter_axes
from plumdp.fit.part_tests import less_best, log_average
from plumdp.model.graph import FloatArray, Indices, ranges

_MOST = 3  # boundaries whose evidence is proved: those that look most like a change
_MOST_PARAMETERS = 20  # that may all be anew: with more, single classes of rows alone
_MOST_NUMBERS = 2e7  # that what was seen at all boundaries may take
_MAIN_PER_PILOT, _PILOTS = 8, 4  # a pilot is a power of four base parts, at most an eighth of those before a boundary
_PROMISE = 5.0  # nats that a change must look worth, weight included, before its evidence is proved
_DOUBT = 1.3  # by how much a change may look less likely, at first sight, than it is
_ROUNDING = 1e-13  # relative to the size of a sum of logarithms
_LEAST = 1e-9  # probability that scores are calculated for


def weight_of(i: int) -> float:
    """Return the weight of the boundary after i base parts.

    The weights of i = odd · 2^a in [2^m, 2^(m + 1)) sum to 1 / ((m + 1) (m + 2)), and so those of all to one.

    >>> [weight_of(i) for i in (1, 2, 3)], round(sum(map(weight_of, range(1, 2**10))), 3)
    ([0.5, 0.08333333333333333, 0.08333333333333333], 0.909)
    """
    m, a = i.bit_length() - 1, (i & -i).bit_length() - 1
    return 2.0 ** -max(m - a - 1, 0) / ((m + 1) ** 2 * (m + 2))


def pilots_of(i: int) -> list[tuple[int, float]]:
    """Return the pilots that the boundary after i base parts may have, none being 0, with weights that sum to one.

    >>> pilots_of(7), pilots_of(128)
    ([(0, 1.0)], [(16, 0.5), (4, 0.25), (1, 0.125), (0, 0.125)])
    """
    sizes = [size for size in (_PILOTS**k for k in range(i.bit_length())) if _MAIN_PER_PILOT * size <= i][::-1]
    return [*((size, 2.0 ** -(k + 1)) for k, size in enumerate(sizes)), (0, 2.0 ** -len(sizes))]


def in_words(probability: str, since: str, early: float, late: float) -> str:
    """Return a change over time as it looks: estimates, which prove nothing."""
    return f"{probability} was about {early:.3g}, and about {late:.3g} from about {since} on (estimates)"


@dataclass(frozen=True, eq=False)
class SeenOverTime:
    """How often each outcome of a table had been seen at each boundary, and in all data."""

    table: LikelihoodTable
    ends: tuple[int, ...]  # (m): base parts before each boundary
    names: tuple[str, ...]  # (m)
    before: FloatArray  # (m, n_outcomes)
    total: FloatArray  # (n_outcomes)

    @staticmethod
    def of(table: LikelihoodTable, time: TimeParts, total: FloatArray) -> SeenOverTime:
        """Return the counts at boundaries with data on both sides, fewer of them if there are many outcomes."""
        part, transition, counts = time.entries
        n, tied = len(total), table.tied[transition]
        first, last = table.first[tied], table.first[tied + 1]
        way, part = ranges(first, last), np.repeat(part, last - first)
        seen = np.repeat(counts, last - first) * table.multiple[way]
        every = -(-len(time.ends) * n // int(_MOST_NUMBERS)) or 1
        kept = np.arange(len(time.ends))[every - 1 :: every]
        key = np.searchsorted(kept, part) * n + table.counts_for[way]
        before = np.bincount(key, seen, (len(kept) + 1) * n)[: len(kept) * n].reshape(len(kept), n).cumsum(axis=0)
        inside = before.any(axis=1) & (before != total).any(axis=1)
        ends, names = ([each[i] for i in kept[inside].tolist()] for each in (time.ends, time.names))
        return SeenOverTime(table, tuple(ends), tuple(names), before[inside].astype(np.float64), total)

    def likely(self, point: FloatArray) -> FloatArray:
        """Return about how many nats (m) a change at each boundary wins, by the score test at the estimate."""
        basis, f = self.table.basis, self.table.chances(point)
        scores = self.table.coefficients @ basis / np.maximum(f, _LEAST)[:, None]
        whole, score = scores.T @ (scores * self.total[:, None]), self.total @ scores
        inverse = np.linalg.pinv(whole, hermitian=True)
        early = np.einsum("mj,ja,jb->mab", self.before, scores, scores, optimize=True)
        off = self.before @ scores - early @ inverse @ score
        apart = np.linalg.pinv(early - early @ inverse @ early, hermitian=True)
        return np.asarray(np.einsum("ma,mab,mb->m", off, apart, off) / 2)

    def of_classes(self) -> tuple[FloatArray, Indices]:
        """Return the evidence for a change of each class (n_groups), from below, and its likeliest boundary."""
        first = np.searchsorted(self.table.group, np.arange(len(self.table.is_class) + 1))
        evidence, where = over_time(self.before, [weight_of(end) for end in self.ends], self.total, first)
        return np.where(self.table.is_class, evidence, -np.inf), where


@dataclass(frozen=True, eq=False)
class TimeTests:
    """Tests over time in units in which they contradict a point at their share of the error above zero."""

    seen: SeenOverTime
    cells: CellTests  # the number of a cell is that of its boundary
    constant: float  # the strongest test of a class, against every law that it might have; minus infinity if none is
    likeliest: int  # boundary

    def describe(self) -> str:
        """Return the change that is most evident in the frequencies of outcomes, in words."""
        table, i = self.seen.table, self.likeliest
        halves = self.seen.before[i], self.seen.total - self.seen.before[i]
        visits = [np.maximum(table.visits(seen)[table.group], 1.0) for seen in halves]
        early, late = (seen / n for seen, n in zip(halves, visits, strict=True))
        size = (late - early) ** 2 / np.maximum(early + late, _LEAST) / (1 / visits[0] + 1 / visits[1])
        j = int(np.argmax(np.where(table.is_class[table.group], size, -1.0)))
        return in_words(str(table.outcomes[j]), self.seen.names[i], early[j], late[j])


def time_tests(
    table: LikelihoodTable, time: TimeParts, total: FloatArray, *, space: Law, near: FloatArray, error: float
) -> TimeTests:
    """Return tests of a change over time that are jointly valid but for the error, half of it for single classes.

    ``total`` is what was seen in all (n_outcomes), ``space`` the law of the space, and ``near`` the estimate from all
    data, which only decides where to look.
    """
    seen, half = SeenOverTime.of(table, time, total), log(error) - log(2)
    if not seen.ends:
        return TimeTests(seen, NO_CELLS, -np.inf, 0)
    of_classes, where = seen.of_classes()
    group, terms = int(np.argmax(of_classes)), []
    likeliest = int(where[group])
    if 0 < table.basis.shape[1] <= _MOST_PARAMETERS:
        likely = seen.likely(near)
        likeliest = int(np.argmax(likely))
        promise = _DOUBT * likely + np.log([weight_of(end) for end in seen.ends])
        terms = [
            term for i in largest(promise, _MOST).tolist() if promise[i] > _PROMISE for term in _terms(seen, i, space)
        ]
    outcomes = [np.flatnonzero(lost) for _, _, lost in terms]
    cells = CellTests(
        np.array([i for i, _, _ in terms], dtype=np.int64),
        # down, by more than sums of logarithms are off
        np.array([gained + half - _ROUNDING * (abs(gained) + lost.sum()) for _, gained, lost in terms]),
        np.array([0, *accumulate(map(len, outcomes))]),
        np.concatenate([np.zeros(0, dtype=np.int64), *outcomes]),
        np.concatenate([np.zeros(0), *(lost[at] for (_, _, lost), at in zip(terms, outcomes, strict=True))]),
    )
    constant = float(of_classes[group]) + half - log(len(of_classes))
    return TimeTests(seen, cells, constant - _ROUNDING * abs(constant), likeliest)


def _terms(seen: SeenOverTime, i: int, space: Law) -> Iterator[tuple[int, float, FloatArray]]:
    """Yield the tests of a boundary: its number, what is gained, weights included, and what is lost by outcome."""
    from scipy.special import logsumexp

    table, before, after = seen.table, seen.before[i], seen.total - seen.before[i]
    axes = parameter_axes(table)
    laws = [(log(0.5) if len(axes) > 1 else 0.0, space)]
    if len(axes) > 1:
        fixed, widths = law_of_pilot(table, before, space), np.linalg.inv(space.precision)
        for _, axis in axes:  # one parameter anew: as if nothing had been seen along its axis
            wide = np.linalg.inv(fixed.precision) + axis @ widths @ axis * np.outer(axis, axis)
            laws.append((log(0.5 / len(axes)), Law(fixed.mean, np.linalg.inv(wide).astype(np.float64))))
    new = logsumexp([share + log_evidence(table, after, *law) for share, law in laws])
    since = float(new) + log(weight_of(seen.ends[i])) - log(2)
    yield i, since, after
    at = {0: np.zeros(len(seen.total)), **dict(zip(seen.ends, seen.before, strict=True))}
    # a pilot that was not kept is passed over: its term is left out, and the next one has a weight of its own
    size, share = next((size, share) for size, share in pilots_of(seen.ends[i]) if size in at)
    law = law_of_pilot(table, at[size], space) if size else space
    first = log_evidence(table, before - at[size], *law)
    yield i, since + log(share) + first, seen.total - at[size]


def over_time(
    before: Iterable[FloatArray], weights: Sequence[float], counts: FloatArray, first: Indices
) -> tuple[FloatArray, Indices]:
    """Return ln of Σ w e of each part, its cells before and after a boundary being apart, and the likeliest boundary.

    ``before`` has what was seen before each boundary; the weights of all boundaries sum to at most one.
    """
    evidence, best, where = (np.full(len(first) - 1, start) for start in (-np.inf, -np.inf, 0.0))
    for i, early in enumerate(before):
        halves = (log_average(seen, first) for seen in (early, counts - early))
        apart, size = (one + other for one, other in zip(*halves, strict=True))
        term = less_best(apart, size, counts, first) + np.log(weights[i])
        evidence, where, best = np.logaddexp(evidence, term), np.where(term > best, i, where), np.maximum(term, best)
    return evidence, where.astype(np.int64)

"""Tests of single rows, and of classes of tied rows, against any parameters.

Whatever the probabilities of a class are, a visit whose outcome j was predicted with the probability q[j] by what was
seen before multiplies a wealth by q[j] / f[j](θ), which has expectation Σ q[j] = 1. Predictions by a Dirichlet law
with weights ½ (Krichevsky and Trofimov 1981) win as soon as the row has probabilities of its own. After the visits K
the logarithm of the wealth is ln D(K) - Σ K[j] ln f[j](θ), where D is the Dirichlet–multinomial probability of one
order of the outcomes: a convex function of θ. No pilot is needed, and the wealth reaches 1 / error at any time with
probability at most the error (Ville 1939).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumdp.base.rounding import UNIT
from plumdp.base.special import log_gamma
from plumdp.confidence.likelihood_table import CellCounts, LikelihoodTable
from plumdp.model.graph import FloatArray, Indices, ranges, read_only

_WEIGHT = 0.5  # of each outcome in the Dirichlet law


@dataclass(frozen=True, eq=False)
class CellTests:
    """The logarithms ``gained - Σ seen ln f(v)`` of wealths, one for each cell, with ``gained`` rounded down."""

    cell: Indices  # (m)
    gained: FloatArray  # (m)
    first: Indices  # (m + 1): of the outcomes that each cell has seen
    outcome: Indices  # (n)
    seen: FloatArray  # (n)

    def __post_init__(self) -> None:
        """Refuse cells that have seen nothing: sums over them would be those of the next cell."""
        if (np.diff(self.first) < 1).any() or self.first[-1] != len(self.outcome):
            raise ValueError("each test of a cell needs an outcome that was seen: leave out those without any")
        if not (self.gained < np.inf).all():
            raise ValueError("what a test of a cell gained must be a number, or minus infinity if none is proved")

    def __len__(self) -> int:
        return len(self.gained)

    def take(self, tests: Indices) -> CellTests:
        """Return the tests with these indices."""
        length = np.diff(self.first)[tests]
        which = ranges(self.first[tests], self.first[tests + 1])
        first = np.concatenate([[0], np.cumsum(length)])
        return CellTests(self.cell[tests], self.gained[tests], first, self.outcome[which], self.seen[which])

    def values(self, logarithms: FloatArray) -> FloatArray:
        """Return the logarithm of each wealth (m), in floats, given ln f of each outcome of the table."""
        if not len(self):
            return np.zeros(0)
        lost: FloatArray = np.add.reduceat(self.seen * logarithms[self.outcome], self.first[:-1])
        return self.gained - lost


NO_CELLS = CellTests(*(np.zeros(n, kind) for n, kind in ((0, int), (0, float), (1, int), (0, int), (0, float))))


def joined(blocks: Sequence[CellTests]) -> CellTests:
    """Return the tests of all blocks, one block after the other."""
    lengths = np.concatenate([np.diff(block.first) for block in (NO_CELLS, *blocks)])
    columns = ((block.cell, block.gained, block.outcome, block.seen) for block in (NO_CELLS, *blocks))
    cell, gained, outcome, seen = map(np.concatenate, zip(*columns, strict=True))
    return CellTests(cell, gained, np.concatenate([[0], np.cumsum(lengths)]), outcome, seen)


def largest(values: FloatArray, n: int) -> Indices:
    """Return the places of the n largest values, or of all if there are fewer, the largest first."""
    candidates = np.argpartition(-values, n)[:n] if n < len(values) else np.arange(len(values))
    return candidates[np.argsort(-values[candidates], kind="stable")]


def cell_tests(table: LikelihoodTable, counts: CellCounts) -> CellTests:
    """Return a test for each cell with a visited class, against all rows of the cell having one law per class.

    >>> from plumdp import case_study
    >>> from plumdp.confidence.likelihood_table import likelihood_table
    >>> table = likelihood_table(case_study("betting:5").model)
    >>> heads = CellCounts(np.array([0, 1]), np.array([0, 0]), np.array([100.0, 1.0]))
    >>> tests = cell_tests(table, heads)
    >>> tests.values(np.log(np.full(len(table.constants), 0.5))).round(1)  # at the parameter p = 0.5
    array([66.4, -0. ])
    """
    used = table.is_class[table.group[counts.outcome]]
    cell, outcome, seen = counts.cell[used], counts.outcome[used], counts.counts[used]
    cells, owner = np.unique(cell, return_inverse=True)
    gained, size = _of_outcomes(seen)
    pairs, pair = np.unique(cell * len(table.is_class) + table.group[outcome], return_inverse=True)
    total = np.bincount(pair, seen, len(pairs)).astype(np.float64)
    n_outcomes = np.bincount(table.group)[pairs % len(table.is_class)]
    lost, size_of_lost = _of_visits(total, n_outcomes)
    of_pair = np.searchsorted(cells, pairs // len(table.is_class))
    sums = np.bincount(owner, gained, len(cells)) + np.bincount(of_pair, lost, len(cells))
    sizes = np.bincount(owner, size, len(cells)) + np.bincount(of_pair, size_of_lost, len(cells))
    lengths = np.bincount(owner, minlength=len(cells))
    terms = lengths + np.bincount(of_pair, minlength=len(cells)) + 32
    first = np.concatenate([[0], np.cumsum(lengths)])
    # down: a wealth that is too small makes the p-value larger
    return CellTests(cells, read_only(sums - 2 * terms * UNIT * sizes), first, outcome, read_only(seen))


def _of_outcomes(seen: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ln Γ(½ + K) - ln Γ(½) for outcomes seen K times, and the size of what is rounded."""
    terms = log_gamma(_WEIGHT + seen), np.full(len(seen), -log_gamma(_WEIGHT))
    return terms[0] + terms[1], 4 * (np.abs(terms[0]) + np.abs(terms[1]))


def _of_visits(visits: FloatArray, n_outcomes: Indices) -> tuple[FloatArray, FloatArray]:
    """Return ln Γ(w) - ln Γ(w + N) for classes visited N times, w = half the number of outcomes, and its size."""
    weight = _WEIGHT * n_outcomes
    terms = log_gamma(weight), -log_gamma(weight + visits)
    return sum(terms, np.zeros(len(visits))), 4 * sum(map(np.abs, terms), np.zeros(len(visits)))

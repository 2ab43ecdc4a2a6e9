"""Tests whether parts of data have one distribution, by averages over all that they might have.

A group is made of parts, such as the rows of several choices, the stages of the data, or the visits of a row by what
came before them. Let e be the probability of all that was seen if each part has a distribution of its own, on average
over distributions by Jeffreys' prior, divided by the largest that it has with one distribution for the whole group. At
the truth this is at most a nonnegative martingale that starts at one, so the probability that it ever reaches 1 / p is
at most p (Ville 1939). So it is for an average over groups, and for the product of (1 + e) / 2 over them, as each visit
belongs to one group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumdp.base.rounding import UNDERFLOW, UP
from plumdp.base.special import log_gamma, log_sum
from plumdp.model.graph import FloatArray, Indices

_PRIOR = 0.5
_ROUNDING = 1e-13  # relative to the size of a sum of logarithms


@dataclass(frozen=True, eq=False)
class Parts:
    """Counts of parts, and the groups whose parts have one distribution on the places of the group, if they do."""

    counts: FloatArray  # (n_cells)
    first: Indices  # (n_parts + 1): part i has the cells first[i] up to first[i + 1], at least one
    group: Indices  # (n_parts)
    place: Indices  # (n_cells)
    first_place: Indices  # (n_groups + 1): the places of each group, at least one

    def evidence(self) -> FloatArray:
        """Return ln e of each group, from below."""
        n_groups = len(self.first_place) - 1
        each, terms = log_average(self.counts, self.first)
        apart, size = (np.bincount(self.group, numbers, n_groups).astype(np.float64) for numbers in (each, terms))
        pooled = np.bincount(self.place, self.counts, int(self.first_place[-1])).astype(np.float64)
        return less_best(apart, size, pooled, self.first_place)


def log_average(counts: FloatArray, first: Indices) -> tuple[FloatArray, FloatArray]:
    """Return the logarithm of the average probability of the counts of each part, and the size of its terms."""
    starts, n_places = first[:-1], np.diff(first)
    visits = np.add.reduceat(counts, starts)
    of_places = np.add.reduceat(log_gamma(counts + _PRIOR), starts)
    of_row = log_gamma(visits + _PRIOR * n_places)
    fixed = log_gamma(_PRIOR * n_places) - n_places * log_gamma(_PRIOR)
    size = np.add.reduceat(np.abs(log_gamma(counts + _PRIOR)), starts) + np.abs(of_row) + np.abs(fixed)
    return np.asarray(fixed + of_places - of_row), np.asarray(size)


def less_best(apart: FloatArray, size: FloatArray, counts: FloatArray, first: Indices) -> FloatArray:
    """Return logarithms of averages less those of the largest probability with one distribution, from below."""
    starts = first[:-1]
    owner = np.repeat(np.arange(len(starts)), np.diff(first))
    visits = np.add.reduceat(counts, starts)[owner]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(counts > 0, counts * np.log(counts / visits), 0.0)
    best = np.add.reduceat(terms, starts)
    return np.asarray(apart - best - _ROUNDING * (size + np.abs(best)))


def log_mean(parts: Sequence[FloatArray]) -> float:
    """Return the logarithm of the mean over parts of the means of exp, parts without any test being ones."""
    means = [log_sum(part) - np.log(len(part)) if len(part) else 0.0 for part in parts]
    return float(log_sum(means) - np.log(len(parts)))


def log_product(evidence: FloatArray) -> float:
    """Return the logarithm of the product of (1 + e) / 2 over groups, which is large if most of them speak up."""
    return float((np.logaddexp(0.0, evidence) - np.log(2)).sum())


def p_value_of(evidence: float) -> float:
    """Return the p-value of the logarithm of evidence, rounded up."""
    return min(1.0, max(float(np.exp(-max(evidence, 0.0))) * UP, UNDERFLOW))

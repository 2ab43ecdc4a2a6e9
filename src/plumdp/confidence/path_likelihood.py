"""The likelihood of rows whose outcomes are sums over hidden paths, with those of all rows about the same parameters.

An outcome that was seen n times has the probability f = Σ_z c[z] Π_e p[e]^m[z, e], with constants c[z] > 0 and factors
p[e] that are affine and at least zero on the space. Two inequalities bound its logarithm (docs/proofs/hidden_paths.md):

* From below, for every law π of the paths, ln f >= Σ_z π[z] (ln c[z] - ln π[z] + Σ_e m[z, e] ln p[e]), by Jensen's
  inequality. So the evidence is at least that of a table in which factors were seen n Σ_z π[z] m[z, e] times.
* From above, at about the centre of a box, by the mean and the covariance of m under the law of the paths there. The
  covariance is what is lost because paths are hidden: it is added to the curvature.

Factors are never seen, so nothing is bet on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import fsum, inf, log
from typing import Protocol

import numpy as np

from plumdp.base.rounding import UNDERFLOW, UNIT, UP
from plumdp.confidence.estimates import Law
from plumdp.confidence.evidence import curvature_above, curvature_below, log_evidence
from plumdp.confidence.likelihood_table import PathRows
from plumdp.model.graph import FloatArray, Indices
from plumdp.model.space import float_above, float_below

_BITS = 20  # of probabilities of paths, so that expected numbers are exact floats
_VANISHING = 0.9  # relative change of a factor in a box from which on it counts as its largest value there
_WIDE = 4.0  # the same of an outcome that is seen itself
_ROUNDING = 1e-12  # relative; more than any sum of some hundred terms here is off by
_HALVINGS = 20
_SHIFT = 1e-9  # relative; more than the rounding of means shifts what differs from them


class ParameterBoxes(Protocol):
    """Boxes ``centre + spreads @ x``, where no entry of x is beyond ±1."""

    @property
    def centres(self) -> FloatArray:
        """The parameters in the middle of each box, up to rounding (b, d)."""

    @property
    def spreads(self) -> FloatArray:
        """How the parameters change with the coordinates of each box, up to rounding (b, d, d)."""

    @property
    def sizes(self) -> FloatArray:
        """The sums of the absolute values that parameters are the sums of (b, d), which bound their rounding."""


@dataclass(frozen=True, eq=False)
class PathLevelSet:
    """The points whose log-likelihood of some rows, those with hidden paths among them, is at least ``threshold``."""

    paths: PathRows
    outcome_counts: FloatArray  # (n_outcomes) of the table: how often each was seen, factors of hidden paths never
    path_counts: FloatArray  # (n_outcomes) of the rows with hidden paths
    threshold: float  # rounded down; minus infinity if there is no evidence
    error: float
    intervals: None = None
    is_bent: bool = True

    def half_spaces(self, names: tuple[str, ...]) -> tuple[()]:
        """Return none: those around it are made with the region."""
        return ()

    def widened(self, by: float) -> None:
        """Return None: nothing is proved for rows that are off."""

    @cached_property
    def _used(self) -> _UsedPaths:
        return _UsedPaths.of(self.paths, self.path_counts)

    @cached_property
    def _visited(self) -> _UsedPaths:
        return _UsedPaths.of(self.paths, self.path_counts, only_seen=False)

    def at(self, points: FloatArray) -> FloatArray:
        """Return about the log-likelihood less the threshold at points (n, d)."""
        table, used = self.paths.table, self._used
        values = table.constants + points @ table.coefficients.T
        seen = self.outcome_counts > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            direct = np.log(values[:, seen]) @ self.outcome_counts[seen]
            logs = used.logs + np.log(np.maximum(values[:, used.factor], UNDERFLOW)) @ used.exponents.T
            found = direct + _log_sums(logs, used.first)[0] @ used.counts - self.threshold
        return np.where(np.isnan(found), -inf, found)

    def above(self, boxes: ParameterBoxes) -> tuple[FloatArray, ...]:
        """Return value, slope, curvature and error of functions above it on boxes, wherever no factor is negative."""
        centres, spreads, sizes = boxes.centres, boxes.spreads, boxes.sizes
        table, used = self.paths.table, self._used
        seen = np.flatnonzero(self.outcome_counts > 0)
        direct = _Factors.on(table.constants[seen], table.coefficients[seen], centres, spreads, sizes, _WIDE)
        hidden = _Factors.on(
            table.constants[used.factor], table.coefficients[used.factor], centres, spreads, sizes, _VANISHING
        )
        counts, rest = self.outcome_counts[seen], np.zeros(len(centres))
        logs, law = _log_sums(used.logs + hidden.logs @ used.exponents.T, used.first)
        means = np.add.reduceat(law[:, :, None] * used.exponents, used.first, axis=1)  # (b, o, e)
        apart = used.exponents - means[:, used.owner]  # (b, z, e)
        # Statement 4b: half of the mean of ψ(r) X², X = m·y - m̄·y <= r, or R²/8 with R the range of m·y
        reach = hidden.farthest @ used.spans.T
        size = (np.abs(apart) @ hidden.farthest[:, :, None])[:, :, 0]  # (b, z): |X| is no larger
        with np.errstate(invalid="ignore"):  # a path without weight whose ψ is infinite
            weights = law * _psi(size + _SHIFT * reach[:, used.owner])
            variance, mean_psi = (np.add.reduceat(part, used.first, axis=1) for part in (weights * size**2, weights))
        is_coarse = ~(variance <= reach**2 / 4)
        weights = np.where(is_coarse[:, used.owner], 0.0, used.counts[used.owner] * weights)
        lost = (apart * weights[:, :, None]).swapaxes(1, 2) @ apart  # (b, e, e)
        expected = (means * used.counts[:, None]).sum(1)
        value = logs @ used.counts + direct.logs @ counts
        slope, bent = np.zeros((len(centres), centres.shape[1])), np.zeros_like(spreads)
        for each, number in ((direct, counts), (hidden, expected)):
            slope += ((number * np.ones_like(each.logs))[:, None] @ each.slopes)[:, 0]
            bent -= each.slopes.swapaxes(1, 2) @ (each.slopes * (number * each.kappa / 2)[:, :, None])
            rest += (number * (np.abs(each.logs) + 4 * each.change * (1 + each.change))).sum(1) * _ROUNDING
        bent += hidden.slopes.swapaxes(1, 2) @ (lost / 2) @ hidden.slopes
        # what y differs from its linear part by
        off, size = hidden.off[:, :, None], np.abs(lost)
        rest += ((hidden.change[:, None] @ size @ off) + (off.swapaxes(1, 2) @ size @ off) / 2)[:, 0, 0]
        # logarithms of products, and so the law of the paths, are off by some roundings of their sizes
        sizes = 1 + used.sizes + np.abs(hidden.logs) @ used.most.T
        of_terms = 1 + hidden.farthest @ used.most.T
        of_terms += np.where(is_coarse, 0.0, variance + mean_psi * reach**2)
        rest += (np.where(is_coarse, reach**2 / 8, 0.0) + _ROUNDING * sizes * of_terms) @ used.counts
        value = value - self.threshold
        rest = (rest + _ROUNDING * (np.abs(value) + abs(self.threshold))) * UP
        # Statement 4c: where a plain number is negative, no point of the box is in the set
        ceiling, size = direct.most @ counts - self.threshold, np.abs(direct.most) @ counts + abs(self.threshold)
        most, rounding = _most_likely(self._visited, hidden)
        ceiling, rounding = ceiling + most, rounding + _ROUNDING * (size + np.abs(most))
        is_out = ceiling + rounding < 0
        return (
            np.where(is_out, ceiling, value),
            np.where(is_out[:, None], 0.0, slope),
            np.where(is_out[:, None, None], 0.0, bent),
            np.where(is_out, rounding, rest),
        )


@dataclass(frozen=True, eq=False)
class _UsedPaths:
    """The paths of outcomes that were seen, or of all outcomes of rows that were."""

    counts: FloatArray  # (o)
    row: Indices  # (o): from 0 on, without gaps
    first: Indices  # (o): of the paths of each outcome
    owner: Indices  # (z): the outcome of each path
    logs: FloatArray  # (z): logarithms of constants, rounded up
    exponents: FloatArray  # (z, e)
    factor: Indices  # (e): outcomes of the table
    spans: FloatArray  # (o, e): how much the number of a factor varies among paths
    most: FloatArray  # (o, e): its largest number
    sizes: FloatArray  # (o): the largest absolute logarithm of a constant

    @staticmethod
    def of(paths: PathRows, counts: FloatArray, *, only_seen: bool = True) -> _UsedPaths:
        visited = np.bincount(paths.row, counts, len(paths.members)) > 0
        used = np.flatnonzero(counts > 0 if only_seen else visited[paths.row])
        n_paths = np.diff(paths.first)[used]
        first = np.cumsum(n_paths) - n_paths
        which = np.concatenate([np.arange(0), *(np.arange(paths.first[o], paths.first[o + 1]) for o in used)]).astype(
            int
        )
        exponents = paths.exponents[which]
        logs = np.array([log(float_above(paths.constants[z])) for z in which.tolist()])
        most, least = (
            end.reduceat(exponents, first, axis=0) if len(first) else exponents for end in (np.maximum, np.minimum)
        )
        sizes = np.maximum.reduceat(np.abs(logs), first) if len(first) else logs
        owner, row = np.repeat(np.arange(len(used)), n_paths), np.unique(paths.row[used], return_inverse=True)[1]
        return _UsedPaths(
            counts[used],
            row,
            first,
            owner,
            logs,
            exponents,
            paths.factors,
            most - least,
            most,
            sizes,
        )


@dataclass(frozen=True, eq=False)
class _Factors:
    """Affine functions f = f0 (1 + slopes·x), from above, on boxes; where they vary too much, their largest values.

    With y = ln(f / f0), y is at most slopes·x - κ (slopes·x)² / 2, at most ``farthest`` in size, and within ``off`` of
    slopes·x.
    """

    logs: FloatArray  # (b, n): of f0
    slopes: FloatArray  # (b, n, d)
    change: FloatArray  # (b, n): the largest |slopes·x|
    kappa: FloatArray  # (b, n)
    farthest: FloatArray  # (b, n), if the change is below one
    off: FloatArray  # (b, n), likewise
    least: FloatArray  # (b, n): logarithms of bounds on f
    most: FloatArray  # (b, n)

    @staticmethod
    def on(
        constants: FloatArray,
        coefficients: FloatArray,
        centres: FloatArray,
        spreads: FloatArray,
        sizes: FloatArray,
        widest: float,
    ) -> _Factors:
        d = centres.shape[1]
        error = (3 * d + 24) * UNIT * (np.abs(constants) + sizes @ np.abs(coefficients).T) * UP + UNDERFLOW
        middle, slopes = constants + centres @ coefficients.T, coefficients @ spreads
        # sums over paths grow with each factor, so that exact slopes about a larger middle are above them
        high, reach = middle + error, np.abs(slopes).sum(2) * UP
        most = np.log(np.maximum(high + reach, UNDERFLOW) * UP)
        least = np.log(np.maximum(middle - error - reach, UNDERFLOW))
        is_steady = (high > 0) & (reach < widest * high)
        base = np.where(is_steady, high, 1.0)
        change = np.where(is_steady, reach / base * UP, 0.0)
        below = np.minimum(change, _VANISHING)
        return _Factors(
            np.where(is_steady, np.log(base), most),
            np.where(is_steady[:, :, None], slopes / base[:, :, None], 0.0),
            change,
            curvature_below(change),
            -np.log1p(-below) * UP,
            curvature_above(below) * below**2 / 2 * UP,
            least,
            most,
        )


def path_level(
    paths: PathRows, outcome_counts: FloatArray, path_counts: FloatArray, near: FloatArray, law: Law, error: float
) -> PathLevelSet:
    """Return the points with a likelihood above a threshold, which the truth ever falls below with at most this error.

    ``law`` must have been chosen without looking at these data. ``near`` proposes probabilities of paths.
    """
    expected, constant = expected_counts(paths, path_counts, near)
    evidence = log_evidence(paths.table, outcome_counts + expected, law.mean, law.precision)
    # Ville's inequality, rounded down: a lower threshold keeps more points
    threshold = evidence + constant + log(error) * (1 + 1e-12) - 1e-12 * (abs(evidence) + abs(constant))
    return PathLevelSet(paths, outcome_counts, path_counts, threshold if evidence > -inf else -inf, error)


def expected_counts(paths: PathRows, path_counts: FloatArray, near: FloatArray) -> tuple[FloatArray, float]:
    """Return expected numbers of factors, as outcomes of the table, and Σ n Σ π (ln c - ln π), rounded down.

    Probabilities π are multiples of a power of two with the sum one. So expected numbers are exact, and Jensen's
    inequality holds for them, whatever the point is.
    """
    table, first = paths.table, paths.first[:-1]
    values = np.maximum(table.constants + table.coefficients @ near, UNDERFLOW)[paths.factors]
    constants = [float_below(c) for c in paths.constants]
    _, law = _log_sums((np.log(constants) + paths.exponents @ np.log(values))[None], first)
    most = float(path_counts.sum()) * max(float(paths.exponents.sum(1).max(initial=1.0)), 1.0)
    steps = 2.0 ** max(min(_BITS, 52 - int(np.ceil(np.log2(max(most, 1.0))))), 0)
    law = np.floor(law[0] * steps)
    owner = np.repeat(np.arange(len(first)), np.diff(paths.first))
    largest = np.array(
        [start + int(law[start:end].argmax()) for start, end in zip(first, paths.first[1:], strict=True)]
    )
    law[largest] += steps - np.bincount(owner, law, len(first))
    throws = path_counts[owner] * (law / steps)
    expected = np.zeros(len(table.outcomes))
    np.add.at(expected, paths.visit[paths.row], path_counts)
    members = paths.members[paths.row[owner]]
    np.add.at(
        expected, np.where(members >= 0, members, 0), np.where(members >= 0, throws[:, None] * paths.exponents, 0.0)
    )
    used = throws > 0
    terms = [*(throws[used] * np.log(constants)[used]).tolist(), *(-throws[used] * np.log(law[used] / steps)).tolist()]
    return expected, fsum(terms) - 16 * UNIT * fsum(map(abs, terms))


def _log_sums(logs: FloatArray, first: Indices) -> tuple[FloatArray, FloatArray]:
    """Return the logarithms of sums of exponentials (b, o), and the shares of these (b, z)."""
    if not logs.shape[1]:
        return np.zeros((len(logs), 0)), logs
    n = np.diff(np.append(first, logs.shape[1]))
    largest = np.maximum.reduceat(logs, first, axis=1)
    parts = np.exp(logs - np.repeat(largest, n, axis=1))
    sums = np.add.reduceat(parts, first, axis=1)
    return largest + np.log(sums), parts / np.repeat(sums, n, axis=1)


def _psi(reach: FloatArray) -> FloatArray:
    """Return an upper bound on ψ(R) = 2 (e^R - 1 - R) / R² = 1 + R/3 + R²/12 + …, infinite for large R."""
    large = np.clip(reach, 1e-3, 30.0)
    found = np.where(reach < 1e-3, 1 + reach, 2 * (np.expm1(large) - large) / large**2 * (1 + 1e-9))
    return np.where(reach <= 30.0, found, inf)


def _most_likely(paths: _UsedPaths, factors: _Factors) -> tuple[FloatArray, FloatArray]:
    """Return numbers (b) above Σ n ln f on boxes, if the probabilities of each row sum to one, and their rounding.

    For every λ >= 0, Σ n ln f is at most λ + Σ max (n ln f - λ f), over f between bounds in the box (Statement 4c).
    """
    least, most = (
        np.exp(np.minimum(_log_sums(paths.logs + ends @ paths.exponents.T, paths.first)[0], 0.0)) * factor
        for ends, factor in ((factors.least, 1 - 1e-9), (factors.most, 1 + 1e-9))
    )
    of_row = np.eye(int(paths.row.max()) + 1)[paths.row]  # (o, r)
    middle = np.log(paths.counts @ of_row) + np.zeros((len(least), 1))
    low, high = middle - 12, middle + 12
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_more = np.clip(paths.counts * (np.exp(-middle) @ of_row.T), least, most) @ of_row > 1
        low, high = np.where(is_more, middle, low), np.where(is_more, high, middle)
    price = np.exp(high)
    at = price @ of_row.T
    best = np.maximum(np.clip(paths.counts / at, least, most), UNDERFLOW)
    terms = paths.counts * np.log(best) - at * best
    return terms.sum(1) + price.sum(1), _ROUNDING * (np.abs(terms).sum(1) + price.sum(1))

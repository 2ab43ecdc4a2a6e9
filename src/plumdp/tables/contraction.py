"""Bounds on how far the true values are from those of the frequencies, in all nodes and jointly.

Let P be the frequencies of the rows that are known, V̂ about their values, and D = V - V̂. Then (I - P) D = -δ, where δ
is the mean temporal difference of the true values V in each row, and, in rows that are not known, -D itself. By the
bounds on rows |δ| <= β (σ(V̂) + σ(D)), and σ is a seminorm: what is known of D bounds δ, which bounds D. Started from
any bounds on V, such as those by intervals against nature, every iterate is valid, and where it contracts, D becomes as
small as the data allow.

Rounding: P is what floats make of the frequencies, and V̂ what a solver returns. The differences of both are added to
the bounds on δ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumdp.base.rounding import UNDERFLOW, UNIT
from plumdp.model.graph import BoolArray, FloatArray, read_only
from plumdp.solver.coupled import kernels
from plumdp.tables.chain import OpenChain, RegularEquations, regular_equations
from plumdp.tables.plan import BettingPlan, Reference, RowDeviations, row_bounds

LARGEST_DENSE = 3000  # nodes for which all columns of the inverse are used
_LEAST_VISITS = 4
_ROUNDS = 100
_STALLS = 0.005  # a mean fall of logarithms below which the iteration ends
_UP = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class Contraction:
    """Bounds on D = V - V̂: |D| <= distance, σ(D) <= deviation, |δ| <= size, for all true values V."""

    table: OpenChain
    equations: RegularEquations
    frequency: FloatArray  # (n_transitions): P, 0 in rows that are not known
    visits: FloatArray  # (n), at least 1
    is_known: BoolArray  # (n)
    rows: RowDeviations
    values: FloatArray  # (n): V̂
    of_values: FloatArray  # (n): σ(V̂)
    rounding: FloatArray  # (n): what rounding adds to δ
    reference: Reference
    largest_range: FloatArray  # (n): of the discounted true values ahead, by the bounds that the iteration started from
    distance: FloatArray  # (n)
    deviation: FloatArray  # (n)
    size: FloatArray  # (n)

    def of_truth(self, deviation: FloatArray) -> FloatArray:
        """Return a bound on σ(V), given one on σ(D): at most half of the range."""
        return np.minimum(self.of_values + deviation, self.largest_range / 2)

    def functional(self, weight: FloatArray) -> float:
        """Return a bound on |Σ weight · δ|: the largest parts row by row, how many is tried, the others by the ball."""
        of_ball = np.abs(weight) * self.rows.mu * self.of_truth(self.deviation) / np.sqrt(self.visits)
        of_ball = np.where(self.rows.in_ball, of_ball, 0.0)
        by_row = np.abs(weight) * self.size
        order, best, n = np.argsort(-by_row), np.inf, len(weight)
        for n_rows in {0, n // 100, n // 30, n // 10, n // 3, n}:
            first, rest = order[:n_rows], order[n_rows:]
            outside = by_row[rest][~self.rows.in_ball[rest]].sum()
            by_ball = self.rows.radius * float(np.linalg.norm(of_ball[rest]))
            best = min(best, float(by_row[first].sum() + outside + by_ball))
        return (best + float((np.abs(weight) * self.rounding).sum())) * _UP


def contract(
    plan: BettingPlan, reference: Reference, counts: FloatArray, lower: FloatArray, upper: FloatArray
) -> Contraction | None:
    """Return bounds on D from the outcomes (n_places) after the pilot, started from bounds (n) on the true values.

    None if the frequencies have no proved solution.
    """
    table = plan.table
    visits = table.visits(counts)
    is_known = _leads_out(table, counts, ~table.is_free | ((visits >= _LEAST_VISITS) & plan.is_kept))
    frequency = np.where(table.place >= 0, table.of_places(counts) / np.maximum(visits, 1.0)[table.owner], table.number)
    frequency = np.where(is_known[table.owner], frequency, 0.0)
    equations = regular_equations(table, frequency)
    if equations is None:
        return None
    reward = np.where(is_known, table.chain.reward, (lower + upper) / 2)
    values = equations.values(reward)
    rows = row_bounds(plan, reference, counts, is_known & table.is_free)
    ahead = table.ahead(values)
    scale = float(max(np.abs(ahead).max(), np.abs(lower).max(), np.abs(upper).max()))
    of_values = table.deviations(reference.probability, ahead) * _UP + 8 * UNIT * scale
    start = np.maximum(np.maximum(upper - values, values - lower), 0.0) * _UP
    value, error = equations.applied(values)
    size = table.n_successors * (scale + np.abs(reward))
    # δ is off as neither frequencies nor values are exact
    rounding = (np.abs(value - reward - equations.closed) + error + 16 * UNIT * size) * _UP
    plain = Contraction(
        table, equations, frequency, np.maximum(visits, 1.0), is_known, rows, values, of_values, rounding, reference,
        _largest_range(table, lower, upper), start, _deviation(table, reference, start), np.full(table.n, np.inf),
    )  # fmt: skip
    return _iterated(plain, start)


def _leads_out(table: OpenChain, counts: FloatArray, is_known: BoolArray) -> BoolArray:
    """Return the known rows from which transitions that were seen lead out of all known rows: others are closed.

    Only then are the frequencies those of a chain that ends, and their equations regular.
    """
    if table.discount < 1:
        return is_known
    seen = is_known[table.owner] & np.where(table.place >= 0, table.of_places(counts) > 0, table.number > 0)
    first = np.concatenate([[0], np.cumsum(table.sums(seen.astype(np.float64)), dtype=np.int64)])
    leads = np.ones(table.chain.n_nodes, dtype=np.bool_)
    leads[: table.n] = ~is_known
    kernels.mark_ahead(first, read_only(table.successor[seen]), leads)
    return is_known & leads[: table.n]


def _largest_range(table: OpenChain, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return the range of discounted values ahead of each row for all values within bounds."""
    starts, known = table.chain.first[:-1], table.chain.known
    highest = np.maximum.reduceat(np.concatenate([upper, known])[table.successor], starts)
    lowest = np.minimum.reduceat(np.concatenate([lower, known])[table.successor], starts)
    return np.asarray(table.discount * (highest - lowest) * _UP)


def _deviation(table: OpenChain, reference: Reference, distance: FloatArray) -> FloatArray:
    """Return a bound on σ(D), given one on |D|: the root of its mean square, D being 0 in closed nodes."""
    square = table.sums(reference.probability * table.ahead(distance, closed=0.0) ** 2)
    return np.asarray(table.discount * np.sqrt(square) * _UP)


def _iterated(plain: Contraction, start: FloatArray) -> Contraction:
    """Return the bounds after the iteration, or as far as it got."""
    table, equations, reference = plain.table, plain.equations, plain.reference
    beta = np.where(plain.is_known & table.is_free, plain.rows.beta, 0.0)  # rows of known numbers are exact

    def sizes(deviation: FloatArray) -> FloatArray:
        by_bets = np.minimum(beta * plain.of_truth(deviation), plain.largest_range)
        return np.where(plain.is_known, by_bets, start) * _UP + plain.rounding

    distance, deviation = start, plain.deviation
    size = sizes(deviation)
    columns = _columns(plain, size) if table.n <= LARGEST_DENSE else None
    for _ in range(_ROUNDS):
        before = np.log(deviation + UNDERFLOW).sum()
        above = equations.above(size)
        if above is None:
            break
        distance = np.minimum(distance, above)
        if columns is not None:
            by_columns, spread = columns.bounds(plain, size, deviation)
            distance, deviation = np.minimum(distance, by_columns), np.minimum(deviation, spread)
        deviation = np.minimum(deviation, _deviation(table, reference, distance))
        size = np.minimum(size, sizes(deviation))
        if np.log(deviation + UNDERFLOW).sum() > before - _STALLS * table.n:
            break
    return replace(plain, distance=distance, deviation=deviation, size=size)


@dataclass(frozen=True, eq=False)
class _Columns:
    """All columns of the inverse of I - P, and their standard deviations in each row, with what rounding adds."""

    inverse: FloatArray  # (n, n): about the absolute values of G
    deviation: FloatArray  # (n, n): Q, the deviation of column t in row s
    slack: FloatArray  # (n): what the residual of the inverse adds to |D|

    def bounds(self, plain: Contraction, size: FloatArray, deviation: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds on |D| and on σ(D), given bounds on δ and on σ(D)."""
        rows, rest = plain.rows, np.where(plain.rows.in_ball, plain.rounding, size)
        of_ball = rows.radius * rows.mu * plain.of_truth(deviation) / np.sqrt(plain.visits)
        distance = np.sqrt(self.inverse**2 @ of_ball**2) + self.inverse @ rest
        spread = np.minimum(np.sqrt(self.deviation**2 @ of_ball**2) + self.deviation @ rest, self.deviation @ size)
        margin = float(self.slack.max(initial=0.0))
        return (distance + self.slack) * _UP, (spread + plain.table.discount * margin) * _UP


def _columns(plain: Contraction, size: FloatArray) -> _Columns | None:
    """Return all columns of the inverse, given bounds on δ, or None if its residual is not small."""
    table, n = plain.table, plain.table.n
    inverse = plain.equations.solve(np.eye(n))
    value, error = plain.equations.applied(inverse)
    residual = np.abs(value - np.eye(n)) + error
    slack = plain.equations.above(residual @ size * _UP)
    if slack is None:
        return None
    moves = plain.table.chain.rows(plain.reference.probability, table.successor, table.chain.n_nodes)[:, :n]
    mean, square = moves @ inverse, moves @ inverse**2
    # the difference is off by the roundings of both sums
    variance = np.maximum(square - mean**2, 0.0) + 8 * (plain.equations.n_terms + 8) * UNIT * square
    return _Columns(np.abs(inverse), np.asarray(table.discount * np.sqrt(variance) * _UP), slack)

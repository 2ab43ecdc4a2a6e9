"""Bounds on the mean temporal difference of each row that hold whatever the true values are.

Let R be a distribution on the successors of a row that the pilot fixed, and σ(V) the standard deviation of the
discounted values ahead under R. No temporal difference is larger than X σ(V), X² = 2 / min R, since two atoms a and b
have at least the variance range² R_a R_b / (R_a + R_b). So bets θ / σ(V) with |θ| X < 1 know the scale of V, and give
numbers that do not depend on it:

- rows: |δ| <= β σ(V) for the mean temporal difference δ of each row (six bets for each, all rows at once);
- ball: Σ N δ² / (μ σ(V))² <= radius², by a mixture of bets over all rows, one dimension for each.

The variance under the frequencies is at most ψ = max p / R times that under R. The page "Tables of unknown rows" has
the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumdp.base.rounding import UNDERFLOW
from plumdp.model.graph import BoolArray, FloatArray
from plumdp.tables.plan import Plan

_SIZES = (0.5, 1.0, 2.0)  # of bets on rows, times the one that is best for the planned visits
_ROUNDS = 8
_UP = 1 + 1e-9  # more than all roundings of a formula
_LARGEST_LOSS = 1.5  # of a row in the ball
_CUT_OFF = 0.6  # of 1 / X, for bets of the mixture


@dataclass(frozen=True, eq=False)
class Reference:
    """What the pilot fixes for bets on rows: a distribution in each, and sizes of bets in its unit."""

    probability: FloatArray  # (n_transitions): R
    largest: FloatArray  # (n): X
    sizes: tuple[FloatArray, ...]  # (n) each
    log_rows: float  # ln(1 / error) of one bet on one row
    spread: FloatArray  # (n): τ, the standard deviation of the mixture
    cut: FloatArray  # (n): where the mixture is cut off
    is_mixed: BoolArray  # (n): rows of the mixture
    log_ball: float


@dataclass(frozen=True, eq=False)
class RowBounds:
    """|δ| <= beta · σ(V) in each row, and δ = y mu σ(V) / √N with |y| <= radius over all rows of the ball."""

    beta: FloatArray  # (n), infinite where nothing is known
    psi: FloatArray  # (n): ψ, of known numbers as well
    in_ball: BoolArray  # (n)
    mu: FloatArray  # (n), 0 outside of the ball
    radius: float


def make_reference(plan: Plan, error_of_rows: float, error_of_ball: float) -> Reference:
    """Return the reference of bets on the rows that a plan keeps."""
    table, kept = plan.table, plan.is_kept & plan.table.is_free
    n_kept, visits = max(int(kept.sum()), 1), plan.visits
    log_rows, log_ball = np.log(2 * len(_SIZES) * n_kept / error_of_rows), np.log(1 / error_of_ball)
    grid = np.geomspace(1e-3, 10, 80)
    best = grid[np.argmin((1 + 1 / grid) * (2 * log_ball + n_kept * np.log1p(grid)))]
    spread = np.sqrt(best / visits)
    cut = (3.5 + 6 * np.sqrt(best)) * spread
    floor = np.minimum(6 * cut**2, 0.3 / table.n_successors)
    probability = np.maximum(plan.probability, floor[table.owner])
    probability = probability / table.sums(probability)[table.owner]
    largest = np.sqrt(2 / np.minimum.reduceat(probability, table.chain.first[:-1])) * _UP
    cut = np.minimum(cut, _CUT_OFF / largest)
    alone = np.bincount(table.place[table.chain.first[:-1]][table.is_free], minlength=1)
    is_tied = np.zeros(table.n, dtype=np.bool_)
    is_tied[table.is_free] = alone[table.place[table.chain.first[:-1]][table.is_free]] > 1
    # one bet for each row: those of tied nodes are not independent, and stay outside of the mixture
    is_mixed = (cut > 3 * spread) & kept & ~is_tied
    sizes = tuple(np.minimum(size * np.sqrt(2 * log_rows / visits), 0.5 / largest) for size in _SIZES)
    return Reference(probability, largest, sizes, float(log_rows), spread, cut, is_mixed, float(log_ball))


def row_bounds(plan: Plan, reference: Reference, counts: FloatArray, is_known: BoolArray) -> RowBounds:
    """Return bounds from the outcomes (n_places) that were seen after the pilot, for the rows that are to be known."""
    from scipy.special import ndtr

    table, r = plan.table, reference
    all_visits = table.visits(counts)
    visits = np.maximum(all_visits, 1.0)
    frequency = np.where(table.place >= 0, table.of_places(counts) / visits[table.owner], table.number)
    psi = np.maximum.reduceat(frequency / r.probability, table.chain.first[:-1]) * _UP
    beta = np.where(is_known, r.largest, np.inf)
    for _ in range(_ROUNDS):  # iterated from above: every iterate is a bound
        square = np.minimum(psi + np.where(is_known, beta, 1.0) ** 2, r.largest**2)
        for size in r.sizes:
            new = (r.log_rows / (size * visits) + 0.5 * size * curvature(size * r.largest) * square) * _UP
            beta = np.where(is_known, np.minimum(beta, new), np.inf)
    reach = np.where(is_known, beta, 1.0)
    bent = curvature(r.cut * r.largest) * visits * np.minimum(psi + reach**2, r.largest**2) * _UP
    peak = visits * reach * r.spread**2
    inside = ndtr((r.cut - peak) / r.spread) - ndtr((-r.cut - peak) / r.spread)
    loss = -np.log(np.maximum(inside * (1 - 1e-9), UNDERFLOW))
    in_ball = is_known & r.is_mixed & (2 * loss < _LARGEST_LOSS) & (peak <= r.cut)
    unused = r.is_mixed & ~in_ball & (all_visits > 0)  # rows of the mixture cost at most this, by Jensen
    spent = (r.spread**2 * curvature(r.cut * r.largest) * all_visits * r.largest**2)[unused].sum()
    spent += (np.log1p(r.spread**2 * bent) + 2 * loss)[in_ball].sum()
    radius = np.sqrt((2 * r.log_ball + spent) * _UP)
    mu = np.where(in_ball, np.sqrt((1 / r.spread**2 + bent) / visits) * _UP, 0.0)
    return RowBounds(beta, psi, in_ball, mu, float(radius))


def curvature(t: FloatArray) -> FloatArray:
    """Return κ with ln(1 + s) >= s - κ s² / 2 for all s >= -t, from above."""
    inside = np.clip(t, 1e-4, 0.999)  # a larger t has a larger κ
    return np.where(t > 0.999, np.inf, 2 * (-inside - np.log1p(-inside)) / inside**2 * _UP)

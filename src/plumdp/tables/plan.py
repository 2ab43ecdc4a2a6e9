"""Plans and weights of bets on temporal differences, fixed by the data that came before those that are bet on.

Under the truth the temporal difference d = r + discount · V(next) - V of a visit has mean zero, for V the true values
of the policy. So for weights w that were fixed before, also if they depend on V, the product of 1 + w d over all visits
is a nonnegative martingale that starts at one, as long as no factor is negative. If rows are tied, the payoff of a
visit is the sum of w d over all nodes of the class, at the outcome that was seen.

The weights are those at which the product wins most along the value of the first node: about occupancy by visits. They
are renewed at the moments of the pilot, each time so that all stages together add up to that direction.

Bets on rows bound the mean temporal difference of each, whatever the true values are. Let R be a distribution on the
successors of a row that the pilot fixed, and σ(V) the standard deviation of the discounted values ahead under R. No
temporal difference is larger than X σ(V), X² = 2 / min R, since two atoms a and b have at least the variance
range² R_a R_b / (R_a + R_b). So bets θ / σ(V) with |θ| X < 1 know the scale of V, and give
numbers that do not depend on it:

- rows: |δ| <= β σ(V) for the mean temporal difference δ of each row (six bets for each, all rows at once);
- ball: Σ N δ² / (μ σ(V))² <= radius², by a mixture of bets over all rows, one dimension for each.

The variance under the frequencies is at most ψ = max p / R times that under R. docs/proofs/tables.md has
the proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumdp.base.rounding import UNDERFLOW
from plumdp.model.graph import BoolArray, FloatArray
from plumdp.tables.chain import OpenChain, RegularEquations, regular_equations

_LEFT_OUT = 0.02  # of the width that is aimed at: what rows that hardly matter may add
_TILTS = 4
_LEAST_FACTOR = 0.3  # of a bet, where a table is tilted
_FEW = 5  # visits in the pilot from which on the range of values in a row is trusted
_SIZES = (0.5, 1.0, 2.0)  # of bets on rows, times the one that is best for the planned visits
_ROUNDS = 8
_UP = 1 + 1e-9  # more than all roundings of a formula
_MIXTURES = (1.0, 0.7, 0.5, 0.35)  # variances of the mixture that the pilot chooses from
_SAYS_LITTLE = 25.0  # standard deviations of a row: the first mixture is taken if none is predicted to do better
_LARGEST_LOSS = 1.5  # of a row in the ball
_CUT_OFF = 0.6  # of 1 / X, for bets of the mixture


@dataclass(frozen=True, eq=False)
class BettingPlan:
    """What the pilot fixes for the value of a policy: the size of bets, the rows that matter, visits to expect."""

    table: OpenChain
    counts: FloatArray  # (n_places): what the pilot saw
    ratio: float  # of the planned data to the pilot
    log_error: float  # ln(1 / error) of the product of one side
    probability: FloatArray  # (n_transitions): smoothed frequencies
    occupancy: FloatArray  # (n), with the signs of what is sought
    scale: float  # of the bets
    most: FloatArray  # (n): weights are at most this large
    is_kept: BoolArray  # (n): rows that matter; the others are treated as closed, of unknown value

    @property
    def visits(self) -> FloatArray:
        """The visits of each row that are planned after the pilot."""
        return (self.table.visits(self.counts) + 0.5) * self.ratio


@dataclass(frozen=True, eq=False)
class BettingStage:
    """Data that were bet on with the same weights."""

    weight: FloatArray  # (n)
    counts: FloatArray  # (n_places): the outcomes that were seen in the stage

    def payoffs(self, table: OpenChain, values: FloatArray) -> FloatArray:
        """Return the payoff of each place (n_places) for these values."""
        return table.by_place(self.weight[table.owner] * table.differences(values))

    def gradient(self, table: OpenChain, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient (n) of the logarithm of the product, and the sum of the sizes of its terms."""
        factor = np.maximum(1 + self.payoffs(table, values), _LEAST_FACTOR)
        each = self.weight[table.owner] * table.of_places(self.counts / factor)
        is_open, n = table.successor < table.n, table.n
        ahead = np.bincount(table.successor[is_open], each[is_open], n)
        size = np.bincount(table.successor[is_open], np.abs(each[is_open]), n)
        here, here_size = table.sums(each), table.sums(np.abs(each))
        return table.discount * ahead - here, table.discount * size + here_size


def make_plan(table: OpenChain, counts: FloatArray, ratio: float, log_error: float) -> BettingPlan | None:
    """Return the plan of bets on a chain's value, given what the pilot saw, or None if there is nothing to bet on."""
    probability = table.frequencies(counts)
    equations = regular_equations(table, probability)
    if equations is None:
        return None
    occupancy = equations.solve_transposed(table.start)
    values = equations.values()
    visits = table.visits(counts)
    planned = (visits + 0.5) * ratio
    spread = _spread(table, probability, occupancy, table.ahead(values), planned)
    if not (np.isfinite(values).all() and spread > 0):
        return None
    aim = np.sqrt(2 * log_error)
    every = np.concatenate([values, table.chain.known])
    whole = float(every.max() - every.min())
    used = equations.solve_transposed(np.abs(table.start))  # also where signs cancel
    order = np.argsort(used)
    is_kept = np.ones(table.n, dtype=np.bool_)
    is_kept[order[np.cumsum(used[order]) * whole < _LEFT_OUT * aim * spread]] = False
    within = table.ranges(table.ahead(values))
    # a weight is scaled down where the true values range further than this
    most = np.maximum(0.499 / whole, np.where(visits >= _FEW, 0.25 / np.maximum(within, 1e-9 * whole), 0.0))
    return BettingPlan(table, counts, ratio, log_error, probability, occupancy, aim / spread, most, is_kept)


def _spread(
    table: OpenChain, probability: FloatArray, occupancy: FloatArray, ahead: FloatArray, visits: FloatArray
) -> float:
    """Return the standard deviation of the value of the first node to first order, given visits of each row."""
    of_visit = row_variances(table, probability, occupancy, ahead)
    return float(np.sqrt((of_visit / visits[table.one_of_each]).sum()))


def row_variances(table: OpenChain, probability: FloatArray, occupancy: FloatArray, ahead: FloatArray) -> FloatArray:
    """Return, for one node of each unknown row, the variance of the value of the first node by one visit of the row.

    It is of first order; over the visits of the row it falls like one over their number.
    """
    together = table.of_places(table.by_place(occupancy[table.owner] * ahead))  # tied rows move together
    return np.asarray(table.deviations(probability, together)[table.one_of_each] ** 2)


def next_weights(
    plan: BettingPlan, before: FloatArray, earlier: Sequence[BettingStage], sign: int, planned: FloatArray
) -> FloatArray:
    """Return the weights of a stage, given all that was seen before it and the stages since the pilot.

    ``planned`` are the visits of each row that are expected in the stage. The weights add what earlier stages lack.
    """
    table, goal = plan.table, sign * plan.scale * plan.table.start
    probability = table.frequencies(before)
    first = np.clip(-sign * plan.scale * plan.occupancy / plan.visits, -plan.most, plan.most)
    tilted = _least_favourable(plan, probability, BettingStage(first, before))
    if tilted is None:
        return np.zeros(table.n)
    equations, values = tilted
    for stage in earlier:
        goal = goal - stage.gradient(table, values)[0]
    weight = np.clip(-equations.solve_transposed(goal) / planned, -plan.most, plan.most)
    return np.where(table.is_free & np.isfinite(weight), weight, 0.0)


def _least_favourable(
    plan: BettingPlan, probability: FloatArray, stage: BettingStage
) -> tuple[RegularEquations, FloatArray] | None:
    """Return equations and values of the table that, near the frequencies, is least favourable to a bet."""
    table, tilted, found = plan.table, probability, None
    for _ in range(_TILTS + 1):
        equations = regular_equations(table, tilted)
        if equations is None:
            return None
        values = equations.values()
        found, tilted = (equations, values), tilted_rows(table, [(probability, stage)], values)
    return found


def tilted_rows(table: OpenChain, masses: Sequence[tuple[FloatArray, BettingStage]], values: FloatArray) -> FloatArray:
    """Return rows in proportion to masses (n_transitions) divided by the factors of the bets; known rows stay."""
    tilted = np.zeros(len(table.place))
    for mass, stage in masses:
        tilted += mass / table.of_places(np.maximum(1 + stage.payoffs(table, values), _LEAST_FACTOR), known=1.0)
    total = table.sums(tilted)
    return np.where(table.place >= 0, tilted / np.where(total > 0, total, 1.0)[table.owner], table.number)


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
class RowDeviations:
    """|δ| <= beta · σ(V) in each row, and δ = y mu σ(V) / √N with |y| <= radius over all rows of the ball."""

    beta: FloatArray  # (n), infinite where nothing is known
    psi: FloatArray  # (n): ψ, of known numbers as well
    in_ball: BoolArray  # (n)
    mu: FloatArray  # (n), 0 outside of the ball
    radius: float


def make_reference(plan: BettingPlan, error_of_rows: float, error_of_ball: float) -> Reference:
    """Return the reference of bets on the rows that a plan keeps, of some the one with the best predicted ball."""
    found = [_reference(plan, error_of_rows, error_of_ball, size) for size in _MIXTURES]
    return min(found, key=lambda reference: _predicted(plan, reference))


def _predicted(plan: BettingPlan, reference: Reference) -> float:
    """Return the expected deviation of rows if the planned data are like the pilot, capped where rows say little."""
    table, kept = plan.table, plan.is_kept & plan.table.is_free
    rows = row_bounds(plan, reference, plan.ratio * plan.counts, kept)
    visits = np.maximum(plan.ratio * table.visits(plan.counts), 1.0)
    off = np.where(rows.in_ball, rows.radius * rows.mu, rows.beta * np.sqrt(visits))
    mean = float(np.sqrt((off[kept] ** 2).mean())) if kept.any() else 0.0
    return min(mean, _SAYS_LITTLE)


def _reference(plan: BettingPlan, error_of_rows: float, error_of_ball: float, size: float) -> Reference:
    """Return a reference, given the variance of its mixture relative to what would be best without cuts."""
    table, kept = plan.table, plan.is_kept & plan.table.is_free
    n_kept, visits = max(int(kept.sum()), 1), plan.visits
    log_rows, log_ball = np.log(2 * len(_SIZES) * n_kept / error_of_rows), np.log(1 / error_of_ball)
    grid = np.geomspace(1e-3, 10, 80)
    best = grid[np.argmin((1 + 1 / grid) * (2 * log_ball + n_kept * np.log1p(grid)))]
    best = size * best
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
    sizes = tuple(np.minimum(each * np.sqrt(2 * log_rows / visits), 0.5 / largest) for each in _SIZES)
    return Reference(probability, largest, sizes, float(log_rows), spread, cut, is_mixed, float(log_ball))


def row_bounds(plan: BettingPlan, reference: Reference, counts: FloatArray, is_known: BoolArray) -> RowDeviations:
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
    return RowDeviations(beta, psi, in_ball, mu, float(radius))


def curvature(t: FloatArray) -> FloatArray:
    """Return κ with ln(1 + s) >= s - κ s² / 2 for all s >= -t, from above."""
    inside = np.clip(t, 1e-4, 0.999)  # a larger t has a larger κ
    return np.where(t > 0.999, np.inf, 2 * (-inside - np.log1p(-inside)) / inside**2 * _UP)

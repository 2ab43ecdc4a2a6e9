"""Tilted bets on the value of a policy in a chain that never comes back to a node, such as one that counts its steps.

For any numbers h on the open nodes, and p the true rows, the value of the first node is

    V = h(first) + Σ d_s δ_s,      δ_s = r_s + discount · p_s · h(next) - h(s),

with d_s the expected visits of s. Sets of the rows bound the visits, least <= d <= most, by an induction in which
nature picks the rows. So for an exposure D that is one of both in each row, V <= h(first) + Σ D_s δ_s + remainder, and
the remainder has δ on the one side alone on which the rows are known better.

Σ D_s δ_s is linear in the rows, and so is the logarithm of the product of tilted bets: for payoffs x > -1 of outcomes
that were fixed before, (1 + x(outcome)) exp(-p · x) has the mean (1 + p · x) exp(-p · x) <= 1. The page "Tables of
unknown rows" has the proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from plumdp.base.errors import WhyNot
from plumdp.base.rounding import UNDERFLOW
from plumdp.base.special import log_gamma
from plumdp.model.graph import BoolArray, FloatArray, Indices, owners, ranges
from plumdp.tables.bracket import AT_END, NEXT, BetMoments, End, Errors
from plumdp.tables.chain import OpenChain, regular_equations

_MOST_NODES = 600  # all pairs of nodes are looked at
_LEAST_FACTOR = 0.03
_LARGEST = 1.0  # payoff that helps: more is won back by later stages at a price
_PRIOR = 0.25  # visits of each outcome, besides what the pilot saw
_SCALES = np.geomspace(0.6, 1.6, 41)
_SIZES = np.array([1.0, 0.85, 0.7, 0.55])  # of bets, times what is best if no payoff is cut
_NEAR, _STEPS = 14.0, 11  # logarithms of multipliers that are tried, and halvings of their range
_OUTWARD = 1e-13  # more than the roundings of a mean, relative to its multiplier


@dataclass(frozen=True, eq=False)
class RowSets:
    """A set for each row: Σ frequency ln(p / frequency) >= ln(shrink) if it is free, and a point if it is known."""

    table: OpenChain
    frequency: FloatArray  # (n, k): 0 where a row has fewer than k successors
    shrink: FloatArray  # (n): from 0, where nothing was seen, to 1

    def largest(self, ahead: FloatArray, rows: Indices | None = None) -> FloatArray:
        """Return an upper bound on the mean of numbers (n, ..., k) at the successors over the set of each row.

        For every ν above the largest number q, by duality p · q <= ν - shrink exp(Σ frequency ln(ν - q)).
        """
        at = np.arange(self.table.n) if rows is None else rows
        shape = (len(at), *[1] * (ahead.ndim - 2))
        frequency = self.frequency[at].reshape(*shape, -1)
        shrink, is_free = self.shrink[at].reshape(shape), self.table.is_free[at].reshape(shape)
        top = ahead.max(axis=-1)
        span = top - ahead.min(axis=-1)
        below = (top[..., None] - ahead) / np.where(span > 0, span, 1.0)[..., None]
        best, low, high = np.zeros_like(top), np.full_like(top, -_NEAR), np.full_like(top, _NEAR)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            more = np.exp(middle)
            gap = below + more[..., None]
            mean = shrink * np.exp((frequency * np.log(gap)).sum(axis=-1))
            best = np.minimum(best, more - mean + _OUTWARD * (1 + more))
            is_high = mean * (frequency / gap).sum(axis=-1) < 1  # the bound grows there
            low, high = np.where(is_high, low, middle), np.where(is_high, middle, high)
        exact = _OUTWARD - (frequency * below).sum(axis=-1)
        return np.asarray(top + span * np.where(is_free, best, np.minimum(exact, 0.0)) + _OUTWARD * np.abs(top))


@dataclass(frozen=True, eq=False)
class ChainShape:
    """A chain without cycles: its transitions as a matrix, its nodes by level, and one node for each unknown row."""

    table: OpenChain
    column: Indices  # (n, k): transitions of each row, the first one repeated where it has fewer
    is_filled: BoolArray  # (n, k): where it is not repeated
    levels: Sequence[Indices]  # nodes, those that lead to closed nodes alone first

    @cached_property
    def rows(self) -> Indices:
        """The row of each transition of a node of ``one_of_each``."""
        first, one = self.table.chain.first, self.table.one_of_each
        return np.asarray(owners(np.concatenate([[0], np.cumsum(first[one + 1] - first[one])])))

    @cached_property
    def transitions(self) -> Indices:
        """These transitions, one for each place of the chain."""
        first, one = self.table.chain.first, self.table.one_of_each
        return ranges(first[one], first[one + 1])

    def sets(self, counts: FloatArray, prior: FloatArray, log_error: float) -> RowSets:
        """Return the rows that a Dirichlet mixture does not exclude, given counts and what had been seen before.

        If p is the true row, the probability of what was seen under the mixture over that under p is a martingale that
        starts at 1.
        """
        table = self.table
        seen, before = table.of_places(counts), table.of_places(prior + _PRIOR, known=1.0)
        visits, all_before = table.sums(seen), table.sums(before)
        mixture = log_gamma(all_before) - log_gamma(all_before + visits)
        mixture = mixture + table.sums(log_gamma(before + seen) - log_gamma(before))
        share = seen / np.maximum(visits, 1.0)[table.owner]
        likeliest = table.sums(seen * np.log(np.where(seen > 0, share, 1.0)))
        radius = (likeliest - mixture + log_error) * (1 + 1e-9) + 1e-9 * (1 + np.abs(mixture))
        shrink = np.where(visits > 0, np.exp(-radius / np.maximum(visits, 1.0)), 0.0)
        every = np.where(table.place >= 0, share, table.number)[self.column]
        return RowSets(table, np.where(self.is_filled, every, 0.0), np.where(table.is_free, shrink, 1.0))

    def visits(self, sets: RowSets) -> tuple[FloatArray, FloatArray]:
        """Return bounds (n) on the expected visits of each node from above and below, over all rows within the sets."""
        table = self.table
        worth = np.zeros((2, len(table.chain.state), table.n))  # of each node: visits of others, and these negative
        done = np.zeros(0, dtype=np.int64)
        for level in self.levels:
            if len(done):
                ahead = worth[:, table.successor[self.column[level]]][..., done]  # (2, nodes, k, targets)
                found = table.discount * sets.largest(np.moveaxis(ahead, (0, 2), (2, 3)), level)
                worth[:, level[:, None], done] = np.moveaxis(found, 2, 0)
            worth[0, level, level], worth[1, level, level] = 1.0, -1.0
            done = np.concatenate([done, level])
        most, least = worth[:, table.chain.initial]
        return np.maximum(most, 0.0), np.maximum(-least, 0.0)


def shape_of(table: OpenChain) -> ChainShape | None:
    """Return the shape of a chain for tilted bets, or None if a run may come back to a node, or there are too many."""
    if table.n > _MOST_NODES:
        return None
    size, first = table.n_successors, table.chain.first[:-1]
    place = np.arange(int(size.max()))
    is_filled = place < size[:, None]
    level, is_open = np.zeros(table.n, dtype=np.int64), table.successor < table.n
    for _ in range(table.n):
        ahead = np.where(is_open, level[np.where(is_open, table.successor, 0)] + 1, 0)
        higher = np.maximum.reduceat(ahead, first)
        if (higher == level).all():
            by_level = [np.flatnonzero(level == each) for each in range(int(level.max()) + 1)]
            return ChainShape(table, first[:, None] + np.where(is_filled, place, 0), is_filled, by_level)
        level = higher
    return None


@dataclass(frozen=True, eq=False)
class View:
    """The numbers h, sets of rows, and bounds on visits, by what had been seen at a moment, or all.

    The mean rewards of nodes lie at most ``spare`` above the rewards of the view, and below them.
    """

    reward: FloatArray  # (n)
    spare: FloatArray  # (2, n)
    values: FloatArray  # (n)
    sets: RowSets
    most: FloatArray  # (n)
    least: FloatArray  # (n)


@dataclass(frozen=True, eq=False)
class Aim:
    """Σ D δ is ``constant`` and the sum of p · target over the unknown rows; V is at most that and the remainder.

    To this comes exposure · (mean rewards less those of the view), where these are unknown.
    """

    is_most: BoolArray  # (n): whether D is the most visits, or the least
    exposure: FloatArray  # (n): D
    target: FloatArray  # (n_places)
    constant: float
    remainder: float
    size: float  # of all terms, which they are rounded by


@dataclass(frozen=True, eq=False)
class TiltedStage:
    """Data that were bet on with the same payoffs of outcomes, which were fixed by what came before."""

    payoff: FloatArray  # (n_places): above -1
    counts: FloatArray  # (n_places)


@dataclass(frozen=True, eq=False)
class TiltedBounds:
    """Both ends of a bracket, and the value of the frequencies, from which rows alone say no distance."""

    low: End
    high: End
    estimate: float
    size: float = 0.0
    distance: float = np.inf


def tilted_bounds(table: OpenChain, moments: BetMoments, errors: Errors) -> TiltedBounds | WhyNot:
    """Return bounds on the value of the first node, or in words why there are none."""
    if table.signed is not None:
        return WhyNot("tilted bets are on the value of one policy")
    shape = shape_of(table)
    if shape is None:
        return WhyNot("tilted bets need a chain of a few hundred nodes that never comes back to one")
    n_rows = max(len(table.one_of_each), 1)  # a policy may meet none that is unknown
    log_error = float(np.log(n_rows / max(errors.rows + errors.ball, UNDERFLOW)))
    views = [view_at(shape, moments, b, log_error) for b in range(len(moments.counts))]
    low, high = (_end(shape, views, moments, errors, sign) for sign in (-1, 1))
    return TiltedBounds(low, high, float(views[-1].values[table.chain.initial]))


def view_at(shape: ChainShape, moments: BetMoments, b: int, log_error: float, paid: FloatArray | None = None) -> View:
    """Return what is known at a moment; before the end of the data their counts are those that are expected.

    Mean rewards lie beyond those of the chain by the numbers ``paid[0]`` (n), which are off by at most ``paid[1:]``.
    """
    table, pilot, seen = shape.table, moments.counts[0], moments.counts[b]
    later, before = seen - pilot, pilot
    if b < len(moments.lengths):
        start, length = moments.lengths[0], moments.lengths[b]
        planned = max(moments.planned - start, start)
        later = later * planned / (length - start) if b else pilot * planned / start
    equations = regular_equations(table, table.frequencies(seen))
    assert equations is not None  # no run comes back
    sets = shape.sets(later, before, log_error)
    paid = np.zeros((3, table.n)) if paid is None else paid
    reward = table.chain.reward + paid[0]
    return View(reward, paid[1:], equations.values(reward), sets, *shape.visits(sets))


def aim_of(shape: ChainShape, view: View, sign: int, is_most: BoolArray | None = None) -> Aim:
    """Return the aim of one side; whether D is the most or the least visits of a row is found, if it is not given."""
    table = shape.table
    ahead, here = sign * table.discount * table.ahead(view.values), sign * (view.reward - view.values)
    column = ahead[shape.column]
    above, below = (  # of δ and -δ
        np.maximum(view.sets.largest(part * column) + part * here + spare, 0.0)
        for part, spare in zip((1, -1), view.spare[::sign], strict=True)
    )
    between = view.most - view.least
    if is_most is None:
        number = np.searchsorted(table.place[table.chain.first[table.one_of_each]], table.place[table.chain.first[:-1]])
        more = np.bincount(number, between * (below - above), len(table.one_of_each) + 1)
        is_most = (more <= 0)[number]
    exposure = np.where(is_most, view.most, view.least)
    known = table.sums(table.number * ahead)
    size = float((view.most * (np.abs(view.reward) + 2 * np.abs(view.values).max(initial=0.0))).sum())
    constant = sign * float(view.values[table.chain.initial]) + float((exposure * (here + known)).sum())
    remainder = float((between * np.where(is_most, below, above)).sum())
    target = table.by_place(exposure[table.owner] * ahead)
    return Aim(is_most, exposure, target, constant, remainder, size)


def tilted_stages(
    shape: ChainShape, views: Sequence[View], moments: BetMoments, log_error: float, sign: int, first: Aim
) -> tuple[list[TiltedStage], float]:
    """Return the stages of the data after the pilot, and the scale of their bets, which the pilot fixes.

    The payoffs of a stage are such that, after the visits that are planned, all stages together have bet on the target,
    as what had been seen before the stage shows it.
    """
    table, at, rows = shape.table, shape.transitions, shape.rows
    place, n_rows = table.place[at], len(table.one_of_each)
    stages, scale, bet = list[TiltedStage](), 0.0, np.zeros(len(at))
    for b, ((before, after), length) in enumerate(zip(pairwise(moments.counts), moments.lengths, strict=True)):
        horizon = NEXT * length if length > AT_END * moments.planned else moments.planned
        visits = ((table.visits(before) + 0.5) * (horizon - length) / length)[table.one_of_each][rows]
        probability = table.frequencies(before)[at]
        aim = aim_of(shape, views[b], sign, first.is_most) if b else first
        lacking = aim.target[place] + (bet / scale if b else 0.0)
        wanted = lacking / visits
        wanted = wanted - np.bincount(rows, probability * wanted, n_rows)[rows]
        if not b:
            scale = _first_scale(shape, views[0].sets, visits, probability, wanted, log_error)
        payoff = np.zeros(table.n_places)
        payoff[place] = np.clip(-scale * wanted, _LEAST_FACTOR - 1, _LARGEST)
        stages.append(TiltedStage(payoff, after - before))
        bet = bet + payoff[place] * np.bincount(rows, stages[-1].counts[place], n_rows)[rows]
    return stages, scale


def _first_scale(
    shape: ChainShape,
    sets: RowSets,
    visits: FloatArray,
    probability: FloatArray,
    wanted: FloatArray,
    log_error: float,
) -> float:
    """Return the scale of bets at which an end is expected to be nearest, with what cuts of payoffs miss."""
    table, place = shape.table, shape.table.place[shape.transitions]
    spread = float(np.sqrt((visits * probability * wanted**2).sum()))
    found = list[tuple[float, float]]()
    for scale in float(np.sqrt(2 * log_error)) / max(spread, UNDERFLOW) * _SIZES:
        payoff, off = np.clip(-scale * wanted, _LEAST_FACTOR - 1, _LARGEST), np.zeros(table.n_places)
        off[place] = visits * (wanted + payoff / scale)
        missed = float(sets.largest(table.of_places(off)[shape.column])[table.one_of_each].sum())
        lost = float((visits * probability * payoff**2).sum()) / 2
        found.append((missed + (log_error + lost) / scale, float(scale)))
    return min(found)[1]


def _end(
    shape: ChainShape,
    views: Sequence[View],
    moments: BetMoments,
    errors: Errors,
    sign: int,
) -> End:
    """Return the upper (sign 1) or lower (sign -1) end of the bracket.

    Where the bets have not won 1 / error, Σ counts ln(1 + x) - p · bet < ln(1 / error). So for every scale > 0
    p · target <= (ln(1 / error) - Σ counts ln(1 + x)) / scale + p · (target + bet / scale), the last within the sets.
    """
    table, at, rows = shape.table, shape.transitions, shape.rows
    log_error, first = float(-np.log(max(errors.of_side, UNDERFLOW))), aim_of(shape, views[0], sign)
    stages, planned = tilted_stages(shape, views, moments, log_error, sign, first)
    aim, place = aim_of(shape, views[-1], sign, first.is_most), table.place[at]
    won, bet, size = 0.0, np.zeros(table.n_places), 0.0
    for stage in stages:
        terms = stage.counts[place] * np.log1p(stage.payoff[place])
        visits = np.bincount(rows, stage.counts[place], len(table.one_of_each))[rows]
        won, size = won + float(terms.sum()), size + float(np.abs(terms).sum())
        bet[place] += visits * stage.payoff[place]
    best = None
    for scale in planned * _SCALES:
        off = table.of_places(aim.target + bet / scale)
        middle = table.sums(off * table.frequencies(moments.counts[-1]))[table.one_of_each]
        missed = float((views[-1].sets.largest(off[shape.column])[table.one_of_each] - middle).sum())
        end = aim.constant + (log_error - won) / scale + float(middle.sum()) + missed + aim.remainder
        outward = 1e-11 * (aim.size + (size + float(np.abs(bet[place]).sum())) / scale)
        if best is None or end + outward < best[0]:
            best = end + outward, missed, scale
    assert best is not None
    value, missed, scale = best
    distance = value - sign * float(views[-1].values[table.chain.initial])
    return End(sign * value, distance - missed - aim.remainder, aim.remainder, missed, scale, ())

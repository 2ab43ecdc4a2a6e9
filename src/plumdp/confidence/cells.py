"""Places bets in each of some cells of the parameter space that no data chose, for data that have no order.

Without an order there is no pilot that could say where to bet, and on what. But the space can be cut into cells before
all data, and bets be placed in each of them for a truth in its middle. The truth is in one cell, and only the bets of
that one must hold: what is left are the points that the bets of their own cell leave (Statement 7d,
docs/proofs/bets.md). No error is divided among cells.

In a cell the wealth G(v) = Σ w[m] E[m](v) + w R(v) is that of bets E for both sides of each direction and for several
lengths of the data, and of the likelihood ratio R = evidence / likelihood(v) against the space. Weights are fixed and
sum to at most one, so that at the truth G ever reaches 1 / error with a probability of at most the error. For all p[m],
p >= 0 with the sum one, ln G >= Σ p[m] ln(w[m] E[m] / p[m]) + p ln(w R / p), and tangents make that a half-space.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import inf, log
from typing import NamedTuple

import numpy as np

from plumdp.base.linear_algebra import last_that
from plumdp.base.rounding import UNIT, UP
from plumdp.confidence.bets import (
    Directions,
    HalfSpace,
    PartialBets,
    common_half_space,
    factors_along,
    log_gains,
    tangent_half_space,
    unit_steps,
)
from plumdp.confidence.estimates import SPACE_AS_DATA, Law, information, law_of_space
from plumdp.confidence.likelihood_table import LikelihoodTable
from plumdp.confidence.reward_coins import Pooled
from plumdp.model.graph import FloatArray, Indices, read_only
from plumdp.model.parametric import ParametricMDP

_WIDTH = 0.5  # of cells, in logits of parameters between their bounds
_OUTERMOST = 28  # widths from the middle, beyond which a cell reaches to the end of the space
_MAX_DIMENSION = 4
_MOST = 256  # cells that meet a region; if there are more, none is looked at
_POWERS = np.arange(3, 17)
LENGTHS = 4.0**_POWERS  # steps that bets are made for
_LIKELY = 1 / (1 + ((_POWERS - 7) / 3) ** 2)
WEIGHTS = _LIKELY / _LIKELY.sum() / UP  # of them, whose sum is at most one
_USED = 5  # lengths, those nearest to that of the data
_RUN = 100  # steps by which it is guessed how often rows are visited
_HALVINGS = 16
_FURTHEST = 40.0  # standard deviations
_LEAST_SHARE = 1e-4  # of a length in the half-space


class Cell(NamedTuple):
    """A box of parameters, which reaches to infinity where the space ends."""

    lower: FloatArray  # (d)
    upper: FloatArray  # (d)
    centre: FloatArray  # (d)

    @property
    def sides(self) -> list[HalfSpace]:
        """The half-spaces of its sides."""
        sides = zip(np.eye(len(self.centre)), self.lower.tolist(), self.upper.tolist(), strict=True)
        both = [side for axis, low, high in sides for side in (HalfSpace(-axis, -low), HalfSpace(axis, high))]
        return [side for side in both if side.offset < inf]


@dataclass(frozen=True, eq=False)
class Partition:
    """Cells of a parameter space, and a guess of what steps will show in them. It depends on the model alone."""

    model: ParametricMDP
    table: LikelihoodTable

    @cached_property
    def space(self) -> Law:
        """The law of the parameters before all data."""
        return law_of_space(self.model)

    @property
    def is_worth_it(self) -> bool:
        """Whether parameters are as few as cells are made for, and bets on one direction are not bets on all."""
        return bool(1 < self.table.basis.shape[1] <= len(self.table.names) <= _MAX_DIMENSION)

    def information(self, point: FloatArray) -> FloatArray:
        """Return a guess of the information of a step (d, d) at a point: that of runs whose actions are drawn."""
        graph, table = self.model.graph, self.table
        owner, transition_choice = graph.state_of_choice(), graph.choice_of_transition()
        source, n = owner[transition_choice], graph.n_states
        chance = self.model.expressions.chances(point)[self.model.expression]
        chance = chance / np.diff(graph.first_choice)[source]
        stays = np.bincount(source, chance * (source == graph.successor), n) > 1 - 1e-9
        successor = np.where(stays[graph.successor], graph.initial_state, graph.successor)  # where the next run begins
        here, visits = (np.arange(n) == graph.initial_state).astype(np.float64), np.zeros(n)
        for _ in range(_RUN):
            visits += here / _RUN
            here = np.bincount(successor, here[source] * chance, n)
        transitions, values = visits[source] * chance, table.chances(point)
        expected = table.pool(transitions)
        for coins in table.coins:
            np.add.at(expected, coins.outcome, coins.thrown(transitions)[:, None] * values[coins.outcome])
        return information(table, np.where(values > 0, expected, 0.0), point)

    def meeting(self, lower: FloatArray, upper: FloatArray) -> list[Cell] | None:
        """Return the cells that have a point of a box, or None if they are too many."""
        start, width = self.table.lower[:, None], (self.table.upper - self.table.lower)[:, None]
        steps = np.arange(-_OUTERMOST - 1, _OUTERMOST + 2)
        edges = start + width / (1 + np.exp(-_WIDTH * steps))
        middles = start + width / (1 + np.exp(-_WIDTH * (steps[:-1] + 0.5)))
        edges[:, 0], edges[:, -1] = -inf, inf
        # a box that ends at an edge meets the cells on both sides
        first = [int(np.searchsorted(each, x)) - 1 for each, x in zip(edges, lower, strict=True)]
        last = [int(np.searchsorted(each, x, side="right")) for each, x in zip(edges, upper, strict=True)]
        if np.prod([float(end - begin) for begin, end in zip(first, last, strict=True)]) > _MOST:
            return None
        axes, places = np.arange(len(edges)), product(*map(range, first, last))
        return [
            Cell(edges[axes, place], edges[axes, np.add(place, 1)], middles[axes, place]) for place in map(list, places)
        ]


class Placed(NamedTuple):
    """Bets on one side of a direction, for some lengths of the data."""

    factors: FloatArray  # (M, n_outcomes)
    weights: FloatArray  # (M + 1): in the wealth, that of the likelihood last


@dataclass(frozen=True, eq=False)
class Cells:
    """The points that the bets of their own cell leave, on all data and with the likelihood against the space."""

    partition: Partition
    pooled: Pooled  # all data
    log_evidence: float  # of them, rounded down
    directions: Directions  # whatever was asked before, it must be the same at the same point
    best: FloatArray  # (d): an estimate, for the choice of tangents
    error: float  # of bets
    of_likelihood: float  # the error of the likelihood, which has that share in the wealth
    intervals: None = None

    @property
    def total(self) -> float:
        """The error of the wealth."""
        return self.error + self.of_likelihood

    def half_spaces(self, names: tuple[str, ...]) -> tuple[HalfSpace, ...]:
        """Return none: those around all cells follow from a region."""
        return ()

    def widened(self, by: float) -> None:
        """Return None: the likelihood has a share in it, for which nothing is proved if rows are off."""

    def gradients(self, point: FloatArray) -> FloatArray:
        """Return the gradients (J, d) of what is asked at a point, with zero for those that are not finite."""
        found = np.array([each.gradient for each in self.directions(point)])
        return np.where(np.isfinite(found).all(axis=1, keepdims=True), found, 0.0)

    def left(self, cell: Cell, gradients: FloatArray) -> Iterator[HalfSpace]:
        """Yield the half-spaces that bets across the gradients (J, d) at the centre of a cell leave in the cell."""
        table, counts, near = self.partition.table, self.pooled.outcome_counts, np.clip(self.best, *cell[:2])
        used = np.argsort(np.abs(np.log(LENGTHS / max(counts.sum(), 1.0))), kind="stable")[:_USED]
        prior = SPACE_AS_DATA * self.partition.space.precision
        rays = unit_steps(table, information(table, counts, self.best) + prior, gradients)
        for (j, side), placed in self.place(cell, gradients, used):
            yield _half_space(self, placed, near, -side * rays[j])

    def place(self, cell: Cell, gradients: FloatArray, lengths: Indices) -> Iterator[tuple[tuple[int, int], Placed]]:
        """Yield bets in a cell for some lengths, on each side of each gradient (J, d), which no data have a part in.

        All weights together are at most one: those of both sides of all gradients and lengths, and of the likelihood.
        """
        table, total = self.partition.table, self.total
        of_likelihood = self.of_likelihood / total
        weights = self.error / total / (2 * len(gradients)) * WEIGHTS[lengths]
        prior, per_step = SPACE_AS_DATA * self.partition.space.precision, self.partition.information(cell.centre)
        steps = unit_steps(table, LENGTHS[lengths][:, None, None] * per_step + prior, gradients)
        steps *= np.sqrt(-2 * np.log(total * weights))[:, None, None]
        for j, side in product(range(len(gradients)), (1, -1)):
            if steps[:, j].any():
                factors = factors_along(table, cell.centre, side * steps[:, j])
                yield (j, side), Placed(factors, np.append(weights, of_likelihood))


def _half_space(cells: Cells, placed: Placed, near: FloatArray, ray: FloatArray) -> HalfSpace:
    """Return a half-space around all points at which the wealth is below 1 / error.

    Tangents are taken about where it reaches that on a ray. Those at any other point, and other shares, hold as well.
    """
    table, counts = cells.partition.table, cells.pooled.outcome_counts
    mixed = cells.pooled.mixed if cells.pooled.mixed.any() else None
    visits, is_seen, bound = table.visits(counts), counts > 0, -log(cells.total)
    factors, log_weights = placed.factors, np.log(placed.weights)
    is_open = visits > 0
    ends = np.array([table.chances(near), table.coefficients @ ray])
    means = table.by_group(ends[:, None] * factors).compress(is_open, axis=-1)
    won = log_gains(table, counts, factors, mixed).sum(axis=1)

    def logarithms(t: float) -> FloatArray:
        bets = won - np.log(means[0] + t * means[1]) @ visits[is_open]
        ratio = cells.log_evidence - counts[is_seen] @ np.log((ends[0] + t * ends[1])[is_seen])
        return np.asarray(log_weights + np.append(bets, ratio))

    with np.errstate(all="ignore"):  # where a probability is negative, what is not a number is not below
        low = last_that(lambda t: bool(np.logaddexp.reduce(logarithms(t)) < bound), 0.0, _FURTHEST, _HALVINGS)
        logs = np.nan_to_num(logarithms(low), nan=-inf, posinf=-inf, neginf=-inf)
    share = np.exp(logs - logs.max()) if logs.max() > -inf else np.eye(len(logs))[0]
    share = np.where(share < _LEAST_SHARE * share.sum(), 0.0, share)
    share /= share.sum()
    used, at = np.flatnonzero(share), near + low * ray
    spent = float(share[used] @ (np.log(share[used]) - log_weights[used]))
    is_used = share[:-1] > 0
    parts = [PartialBets(share[:-1][is_used], counts, factors[is_used], mixed)]
    bets = common_half_space(table, parts, near=at, bound=spent + bound)
    ratio = tangent_half_space(table, counts, cells.log_evidence, near=at)
    of_all = [(1.0, bets), (float(share[-1]), ratio)]
    size = sum(
        p * (np.abs(each.row) @ np.maximum(np.abs(table.lower), np.abs(table.upper)) + abs(each.offset))
        for p, each in of_all
    )
    # a larger offset keeps more points, which is safe: each term was multiplied and added once
    total = sum(p * each.offset for p, each in of_all) + 16 * UNIT * size
    return HalfSpace(read_only(np.sum([p * each.row for p, each in of_all], axis=0)), float(total))

"""What the data say about all parameters at once, as the likelihood and as half-spaces across chosen directions.

The likelihood set holds the points whose likelihood is within a factor of the evidence, which is the average of the
likelihood over a law of the parameters that was fixed before the data: by the space alone, or by a pilot. The pilot
also places bets for both sides of each direction (see ``bets``). Intervals of the expressions ("strips") take a small
share of the error: they matter where the likelihood has too little data, and hold for rows that it leaves out.

With probability at least 1 - error the true point is in all of them at all times, whatever chose the actions, and
whenever the data stopped. Of a certificate's error, half-spaces take 80 %, the likelihood 10 % and intervals 2.5 %; the
rest is for tests of the model and for the graph alone. Without pilot or direction the likelihood takes what half-spaces
would have. With more than 20 parameters that matter, half-spaces across the directions take 60 %, and 20 % are for
half-spaces across all outcomes: these make the ranges of single probabilities narrow, which an ellipsoid in many
dimensions is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, log
from typing import NamedTuple, TypeAlias

import numpy as np

from plumdp.confidence.bets import Direction, HalfSpace, half_space, place_bets
from plumdp.confidence.bounds import ExpressionBounds, expression_bounds
from plumdp.confidence.estimates import estimate_inside, information, with_pseudo_counts
from plumdp.confidence.event_counts import pool
from plumdp.confidence.evidence import log_evidence
from plumdp.confidence.full_likelihood import left_out_choices, search_maximum
from plumdp.confidence.groundwork import Groundwork
from plumdp.confidence.likelihood_table import LikelihoodTable, likelihood_table
from plumdp.confidence.sets import Guarantee
from plumdp.confidence.space_moments import moments
from plumdp.data.counts import TransitionCounts, require_same_graph
from plumdp.errors import DataError
from plumdp.model.graph import FloatArray, read_only
from plumdp.model.parametric import ParametricMDP

Directions: TypeAlias = Callable[[FloatArray], Sequence[Direction]]
"""From the pilot's estimate of the parameters to the directions that matter there."""

WHOLE = 92.5  # percent of a certificate's error that are given here; the rest is for tests and the graph alone
_STRIPS = 2.5 / WHOLE
_MANY = 20  # parameters that matter, beyond which there are half-spaces across all outcomes
SPACE_AS_DATA = 1e-3  # weight of the space's precision in the information, so that it is never singular


@dataclass(frozen=True, eq=False)
class LikelihoodSet:
    """The points of a space whose log-likelihood is at least ``threshold`` and that lie in all half-spaces and strips.

    The true point is one of them with probability at least 1 - ``error``.
    """

    table: LikelihoodTable
    seen: FloatArray  # (n_outcomes): how often each outcome was seen after the pilot
    threshold: float  # of Σ seen ln f, rounded down; minus infinity if there is no evidence
    rows: FloatArray  # (m, n_parameters): the half-spaces ``rows @ point <= offsets``, rounded outward
    offsets: FloatArray  # (m)
    texts: tuple[str, ...]  # (m): what each half-space is about, in words
    strips: ExpressionBounds | None
    error: float
    method: str
    guarantee: Guarantee
    directions: tuple[Direction, ...] = ()  # that the pilot chose
    outcome_rows: FloatArray | None = None  # (l, n_parameters): half-spaces across outcomes, with many parameters
    outcome_offsets: FloatArray | None = None  # (l)
    estimate: FloatArray | None = None  # (n_parameters): where all data are most likely; not trusted

    @property
    def intervals(self) -> tuple[FloatArray, FloatArray] | None:
        """The lower and the upper bound of each expression, at the share of the error that strips have."""
        return None if self.strips is None else self.strips.intervals


class Law(NamedTuple):
    """A normal law of the parameters, fixed before the data that it is used for."""

    mean: FloatArray  # (d)
    precision: FloatArray  # (d, d)


def likelihood_set(
    model: ParametricMDP,
    counts: TransitionCounts,
    *,
    error: float = 0.001,
    directions: Directions | None = None,
    known: Groundwork | None = None,
) -> LikelihoodSet:
    """Return the points that explain the data, at all times with probability at least 1 - error.

    ``directions`` says in which directions to be narrow, given the pilot's estimate of the parameters; it must not look
    at the data. Without a pilot, or without directions, there are no half-spaces. With more than 20 parameters that
    matter there are half-spaces across all outcomes as well. ``known`` is what was found about the model before.

    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26, pilot=0.05)
    >>> found = likelihood_set(study.model, counts, directions=lambda point: [Direction(np.ones(1))])
    >>> found.guarantee, len(found.offsets), bool(abs(found.estimate[0] - 0.55) < 0.01)
    ('finite-sample, anytime', 2, True)
    """
    if not 0 < error < 1:
        raise DataError(f"error={error}: give a probability between 0 and 1, such as 0.001 for a confidence of 99.9 %")
    require_same_graph(model.graph, counts.graph)
    known = known or Groundwork(model)
    table, space = known.table, law_of_space(model)
    strips = _strips(known, counts, _STRIPS * error)
    best = estimate_inside(table, table.pool(counts.counts), table.middle, prior=space)[0]
    seen = table.pool(counts.main)
    law, method = space, "likelihood against the space"
    found: tuple[Direction, ...] = ()
    cuts: list[HalfSpace] = []
    narrow: list[HalfSpace] = []
    has_pilot = counts.pilot is not None and counts.pilot.total > 0
    shares = _shares(table, has_pilot=has_pilot and directions is not None)
    weight = error * (1.0 if counts.pilot is None else counts.pilot.weight)
    if counts.pilot is not None and has_pilot:
        pilot = table.pool(counts.pilot.counts)
        law, method = law_of_pilot(table, pilot, space), "likelihood after a pilot"
        ahead = counts.pilot.ratio * information(table, pilot, law.mean) + SPACE_AS_DATA * space.precision
        main = _Main(table, seen, law.mean, ahead, best)
        if directions is not None:
            found = tuple(directions(law.mean))
            cuts = _half_spaces(main, found, shares.half_spaces * weight)
            method += " with half-spaces across the gradient"
        if shares.outcomes:
            narrow = _half_spaces(main, _outcome_directions(table), shares.outcomes * weight)
    threshold = _threshold(table, seen, law, shares.likelihood * weight)
    rows, offsets = _stacked(cuts, len(table.names))
    texts = tuple(cut.text for cut in cuts)
    parts = table, seen, threshold, rows, offsets, texts, strips, error, method, Guarantee.ANYTIME
    return LikelihoodSet(*parts, found, *_stacked(narrow, len(table.names)), estimate=read_only(best))


def _strips(known: Groundwork, counts: TransitionCounts, error: float) -> ExpressionBounds:
    """Return intervals of the expressions that hold at any time, however the data were sampled."""
    anyhow = replace(pool(known.events, counts), sampling="adaptive")
    return expression_bounds(known.model, anyhow, error=error, interval_method="beta-binomial", events=known.events)


class _Shares(NamedTuple):
    """Shares of the error that is given here, fixed before the data."""

    half_spaces: float
    likelihood: float
    outcomes: float


def _shares(table: LikelihoodTable, *, has_pilot: bool) -> _Shares:
    if not has_pilot:
        return _Shares(0.0, 90 / WHOLE, 0.0)
    many = table.basis.shape[1] > _MANY
    return _Shares(60 / WHOLE, 10 / WHOLE, 20 / WHOLE) if many else _Shares(80 / WHOLE, 10 / WHOLE, 0.0)


class _Main(NamedTuple):
    """What bets need: the data after the pilot, and what the pilot says of them."""

    table: LikelihoodTable
    seen: FloatArray  # (n_outcomes), after the pilot
    point: FloatArray  # (d): the pilot's estimate
    ahead: FloatArray  # (d, d): information of the data to come
    best: FloatArray  # (d): the estimate from all data, for tangents only


def _outcome_directions(table: LikelihoodTable) -> list[Direction]:
    """Return the coefficients of outcomes, one for each direction."""
    _, first = np.unique(table.direction, return_index=True)
    return [Direction(table.coefficients[j]) for j in first if table.direction[j] >= 0]


def _stacked(cuts: Sequence[HalfSpace], d: int) -> tuple[FloatArray, FloatArray]:
    rows = np.array([cut.row for cut in cuts], dtype=np.float64).reshape(len(cuts), d)
    return read_only(rows), read_only(np.array([cut.offset for cut in cuts], dtype=np.float64))


def _half_spaces(main: _Main, directions: Sequence[Direction], error: float) -> list[HalfSpace]:
    """Return what bets along each direction leave, on both sides, jointly with probability at least 1 - error."""
    share, found = error / max(2 * len(directions), 1), []
    for direction in directions:
        for side in (1, -1):
            factors = place_bets(main.table, main.point, main.ahead, direction.gradient, error=share, side=side)
            if factors is not None:
                text = f"the half-space that bets on {direction.text or 'a direction'} left"
                found.append(half_space(main.table, main.seen, factors, near=main.best, error=share, text=text))
    return found


def _threshold(table: LikelihoodTable, seen: FloatArray, law: Law, error: float) -> float:
    """Return what the log-likelihood of the true point does not fall below with probability at least 1 - error."""
    evidence = log_evidence(table, seen, law.mean, law.precision)
    return evidence + log(error) * (1 + 1e-12) - 1e-12 * abs(evidence) if evidence > -inf else -inf


def law_of_space(model: ParametricMDP) -> Law:
    """Return the normal law with the mean and the covariance of the uniform law on the space."""
    mean, covariance = moments(model.space)
    return Law(mean, np.asarray(np.linalg.inv(covariance), dtype=np.float64))


def law_of_pilot(table: LikelihoodTable, pilot: FloatArray, space: Law) -> Law:
    """Return the normal law about the pilot's estimate with its precision, both with the space as a prior."""
    mean, pseudo = estimate_inside(table, pilot, table.middle, prior=space)
    counted = with_pseudo_counts(table, pilot, pseudo)
    return Law(read_only(mean), information(table, counted, mean) + space.precision)


def best_point(
    model: ParametricMDP,
    counts: TransitionCounts,
    *,
    table: LikelihoodTable | None = None,
    near: Sequence[FloatArray] = (),
) -> FloatArray:
    """Return the parameters at which the data are most likely, with the space as a weak prior: an estimate.

    If there are data of rows that have no part in the likelihood of the table, it is the ``best_point_of_space``.
    """
    table = table or likelihood_table(model)
    found = estimate_inside(table, table.pool(counts.counts), table.middle, prior=law_of_space(model))[0]
    has_others = counts.visits[left_out_choices(table)].any()
    return best_point_of_space(model, counts, [found, *near]) if has_others else found


def best_point_of_space(model: ParametricMDP, counts: TransitionCounts, near: Sequence[FloatArray]) -> FloatArray:
    """Return the point of the space at which the data of all rows are most likely, by a search near some points."""
    return search_maximum(model, counts, near, law_of_space(model))

"""What the data say about all parameters at once, as the likelihood and as half-spaces across chosen directions.

The likelihood set holds the points whose likelihood is within a factor of the evidence, which is the average of the
likelihood over a law of the parameters that was fixed before the data: by the space alone, or by a pilot. If it is
known which data came first, bets for both sides of each direction are placed and renewed by what was seen before (see
``staged_bets``). Intervals of the expressions ("strips") hold for rows that the likelihood leaves out, and matter where
it has too little data.

With probability at least 1 - error the true point is in all of them at all times, whatever chose the actions, and
whenever the data stopped. ``ErrorBudget.of_likelihood`` says how the error is divided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf, log
from typing import NamedTuple, TypeAlias

import numpy as np

from plumdp.base.error_budget import ErrorBudget, Order, SetPart
from plumdp.base.errors import DataError
from plumdp.base.vocabulary import Sets
from plumdp.confidence.bets import Direction, HalfSpace, tangent_half_space, unit_steps
from plumdp.confidence.bounds import ExpressionBounds, expression_bounds
from plumdp.confidence.estimates import estimate_inside, information
from plumdp.confidence.event_counts import pool
from plumdp.confidence.evidence import log_evidence
from plumdp.confidence.full_likelihood import left_out_choices, search_maximum
from plumdp.confidence.groundwork import Groundwork
from plumdp.confidence.laws import SPACE_AS_DATA, Law, law_of_pilot, law_of_space
from plumdp.confidence.likelihood_table import LikelihoodTable, likelihood_table
from plumdp.confidence.sets import Guarantee
from plumdp.confidence.staged_bets import find_horizons, find_stages, staged_half_spaces
from plumdp.data.counts import Pilot, TransitionCounts, require_same_graph
from plumdp.data.pilots import pilot_assumption
from plumdp.model.graph import FloatArray, read_only
from plumdp.model.parametric import ParametricMDP

Directions: TypeAlias = Callable[[FloatArray], Sequence[Direction]]
"""From an estimate of the parameters to the directions that matter there."""

_Spent: TypeAlias = Callable[[SetPart], float]
"""From a part of the set to its error."""

_ANNOUNCED = "what is asked was decided before the data were looked at"
_MANY = 20  # parameters that matter, beyond which there are half-spaces across all outcomes
_TRIES = 6  # steps towards the point of a likelihood set at which a value is largest
_HALVINGS = 40


@dataclass(frozen=True, eq=False)
class LikelihoodSet:
    """The points of a space whose log-likelihood is at least ``threshold`` and that lie in all half-spaces and strips.

    The true point is one of them with probability at least 1 - ``error``.
    """

    table: LikelihoodTable
    seen: FloatArray  # (n_outcomes): how often each outcome was seen in the data that the threshold is for
    threshold: float  # of Σ seen ln f, rounded down; minus infinity if there is no evidence
    rows: FloatArray  # (m, n_parameters): the half-spaces ``rows @ point <= offsets``, rounded outward
    offsets: FloatArray  # (m)
    texts: tuple[str, ...]  # (m): what each half-space is about, in words
    strips: ExpressionBounds | None
    error: float
    budget: ErrorBudget  # of the certificate, of whose error the set has its share
    method: str
    guarantee: Guarantee
    directions: tuple[Direction, ...] = ()  # of the last bets
    outcome_rows: FloatArray | None = None  # (l, n_parameters): half-spaces across outcomes, with many parameters
    outcome_offsets: FloatArray | None = None  # (l)
    estimate: FloatArray | None = None  # (n_parameters): where all data are most likely; not trusted
    rests_on: tuple[str, ...] = ()  # what was decided before the data were looked at
    kind: Sets = "likelihood"

    @property
    def intervals(self) -> tuple[FloatArray, FloatArray] | None:
        """The lower and the upper bound of each expression, at the share of the error that strips have."""
        return None if self.strips is None else self.strips.intervals

    def half_spaces(self, names: tuple[str, ...]) -> list[HalfSpace]:
        """Return what it was cut by, and both sides of intervals, as half-spaces of the parameters with these names."""
        texts = [text.removeprefix("the half-space that ").removesuffix(" left") for text in self.texts]
        cuts = map(HalfSpace, self.rows, self.offsets.tolist(), texts)
        return [*cuts, *(() if self.strips is None else self.strips.half_spaces(names))]


def likelihood_budget(table: LikelihoodTable, pilot: Pilot | None, *, has_directions: bool) -> ErrorBudget:
    """Return how the error is divided, given the model, what is known of the order of the data, and what is asked."""
    return ErrorBudget.of_likelihood(
        order_of(pilot),
        is_asked=has_directions,
        has_many_parameters=table.basis.shape[1] > _MANY,
        leaves_rows_out=bool(table.left_out),
    )


def order_of(pilot: Pilot | None) -> Order:
    """Return what a pilot says of the order of the data; that planned data are too few for one is known beforehand."""
    if pilot is None:
        return "unknown"
    return "open" if not pilot.is_planned else "planned" if pilot.total else "short"


def likelihood_set(
    model: ParametricMDP,
    counts: TransitionCounts,
    *,
    error: float = 0.001,
    directions: Directions | None = None,
    known: Groundwork | None = None,
    budget: ErrorBudget | None = None,
) -> LikelihoodSet:
    """Return the points that explain the data, at all times with probability at least 1 - error.

    ``directions`` says in which directions to be narrow, given an estimate of the parameters; it must not look at the
    data. Without an order of the data, or without directions, there are no half-spaces. With more than 20 parameters
    that matter there are half-spaces across all outcomes as well. ``known`` is what was found about the model before,
    and ``budget`` how the error of a certificate is divided, if that was decided before: this set has its share.

    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26)
    >>> found = likelihood_set(study.model, counts, directions=lambda point: [Direction(np.ones(1))])
    >>> found.guarantee, len(found.offsets), bool(abs(found.estimate[0] - 0.55) < 0.01)
    ('finite-sample, planned', 2, True)
    """
    if not 0 < error < 1:
        raise DataError(f"error={error}: give a probability between 0 and 1, such as 0.001 for a confidence of 99.9 %")
    require_same_graph(model.graph, counts.graph)
    known = known or Groundwork(model)
    table, space = known.table, law_of_space(model)
    best = estimate_inside(table, table.pool(counts.counts), table.middle, prior=space)[0]
    budget = budget or likelihood_budget(table, counts.pilot, has_directions=directions is not None)
    spent = partial(budget.error_in_set, error=error)
    likely = _likelihoods(table, counts, space, spent)
    found, cuts, narrow = _half_spaces(table, counts, space, spent, best, directions)
    cuts += [cut for each in likely if each.is_supporting for cut in _supports(table, each, best, found)]
    chosen = _smallest(table, likely, best)
    rows, offsets = _stacked(cuts, len(table.names))
    return LikelihoodSet(
        table,
        chosen.seen,
        chosen.threshold,
        rows,
        offsets,
        tuple(cut.text for cut in cuts),
        _strips(known, counts, spent("intervals")),
        error,
        budget,
        chosen.method + (" with half-spaces across the gradient" if found else ""),
        guarantee_of(counts),
        found,
        *_stacked(narrow, len(table.names)),
        estimate=read_only(best),
        rests_on=decided_before(counts.pilot, found),
    )


def decided_before(pilot: Pilot | None, directions: Sequence[Direction]) -> tuple[str, ...]:
    """Return what must have been decided before the data were looked at, in words, if bets were placed by a pilot."""
    if pilot is None:
        return ()
    return (pilot_assumption(pilot), _ANNOUNCED) if directions else (pilot_assumption(pilot),)


def guarantee_of(counts: TransitionCounts) -> Guarantee:
    """Return what sets rest on that are placed by what came first: nothing, or that the length was planned.

    Independent samples have no order: some are drawn to come first, for which the numbers of all of them are fixed.
    """
    if counts.pilot is None or not counts.pilot.is_planned:
        return Guarantee.ANYTIME
    return Guarantee.FIXED if counts.sampling == "independent" else Guarantee.PLANNED


def _strips(known: Groundwork, counts: TransitionCounts, error: float) -> ExpressionBounds:
    """Return intervals of the expressions that hold at any time, however the data were sampled."""
    anyhow = replace(pool(known.events, counts), sampling="adaptive")
    return expression_bounds(known.model, anyhow, error=error, interval_method="beta-binomial", events=known.events)


class _Likelihood(NamedTuple):
    """What the log-likelihood of some of the data does not fall below at the true point."""

    seen: FloatArray  # (n_outcomes)
    threshold: float
    method: str
    is_supporting: bool  # whether it has a share large enough for half-spaces across values


def _likelihoods(table: LikelihoodTable, counts: TransitionCounts, space: Law, spent: _Spent) -> list[_Likelihood]:
    """Return the likelihood of all data against the space, and that of main data after the pilot, if they have shares.

    Both hold, each at its share.
    """
    found, pilot = [], counts.pilot
    if error := spent("likelihood_against_space"):
        seen, method = table.pool(counts.counts), "likelihood against the space"
        found.append(_Likelihood(seen, _threshold(table, seen, space, error), method, pilot is not None))
    if (error := spent("likelihood_after_pilot")) and pilot is not None and pilot.total:
        seen, law = table.pool(counts.main), law_of_pilot(table, table.pool(pilot.counts), space)
        threshold = _threshold(table, seen, law, error * pilot.weight)
        found.append(_Likelihood(seen, threshold, "likelihood after a pilot", False))
    return found


def _threshold(table: LikelihoodTable, seen: FloatArray, law: Law, error: float) -> float:
    """Return what the log-likelihood of the true point does not fall below with probability at least 1 - error."""
    evidence = log_evidence(table, seen, law.mean, law.precision)
    return evidence + log(error) * (1 + 1e-12) - 1e-12 * abs(evidence) if evidence > -inf else -inf


def _smallest(table: LikelihoodTable, likely: Sequence[_Likelihood], best: FloatArray) -> _Likelihood:
    """Return the likelihood whose set is smallest, about as an ellipsoid; all of them hold, so any may be taken."""
    basis, values = table.basis, table.values(best)[0]

    def log_volume(each: _Likelihood) -> float:
        seen = each.seen > 0
        if each.threshold == -inf or (values[seen] <= 0).any():
            return inf
        nats = float(each.seen[seen] @ np.log(values[seen])) - each.threshold
        matrix = basis.T @ information(table, each.seen, best) @ basis
        sign, log_det = np.linalg.slogdet(matrix)
        return basis.shape[1] * log(max(nats, 1e-9)) - float(log_det) if sign > 0 else inf

    return min(likely, key=log_volume)


def _half_spaces(
    table: LikelihoodTable,
    counts: TransitionCounts,
    space: Law,
    spent: _Spent,
    best: FloatArray,
    directions: Directions | None,
) -> tuple[tuple[Direction, ...], list[HalfSpace], list[HalfSpace]]:
    """Return the last directions, and the half-spaces that bets across them, and across all outcomes, have left."""
    if directions is None or counts.pilot is None or not counts.pilot.moments:
        return (), [], []
    stages = find_stages(table, counts, space)
    horizons = find_horizons(counts.pilot, counts.total)
    placed = [tuple(directions(stage.point)) for stage in stages]
    gradients = np.array([[each.gradient for each in of_stage] for of_stage in placed])
    texts = [f"the half-space that bets on {each.text or 'a direction'} left" for each in placed[-1]]
    error = spent("half_spaces")
    found = staged_half_spaces(table, stages, gradients, horizons, space, near=best, error=error, texts=texts)
    cuts = [each.left for each in found]
    if not (error := spent("outcome_half_spaces")):
        return placed[-1], cuts, []
    _, first = np.unique(table.direction, return_index=True)
    across = table.coefficients[[j for j in first if table.direction[j] >= 0]]
    every = np.broadcast_to(across, (len(stages), *across.shape))
    words = ["an outcome"] * len(across)
    narrow = staged_half_spaces(table, stages, every, horizons, space, near=best, error=error, texts=words)
    return placed[-1], cuts, [each.left for each in narrow]


def _supports(
    table: LikelihoodTable, likely: _Likelihood, best: FloatArray, directions: Sequence[Direction]
) -> list[HalfSpace]:
    """Return half-spaces around a likelihood set, across each direction, on both sides."""
    if likely.threshold == -inf or not directions:
        return []
    gradients = np.array([each.gradient for each in directions])
    found = []
    for gradient, direction in zip(gradients, directions, strict=True):
        for side in (1, -1):
            near = _furthest(table, likely, best, side * gradient)
            text = f"the likelihood across {direction.text or 'a direction'}"
            found.append(tangent_half_space(table, likely.seen, likely.threshold, near=near, text=text))
    return found


def _furthest(table: LikelihoodTable, likely: _Likelihood, best: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return about the point of a likelihood set that is furthest along a gradient; any point will do.

    There the gradient of the likelihood is a multiple of the given one. With the information I at the last point, the
    next one is on the ray along I⁻¹ g from the maximum.
    """
    seen, point = likely.seen > 0, best
    amount = likely.seen[seen]

    def is_inside(at: FloatArray) -> bool:
        values = table.values(at)[0][seen]
        return bool((values > 0).all() and amount @ np.log(values) >= likely.threshold)

    for _ in range(_TRIES):
        matrix = information(table, likely.seen, point) + SPACE_AS_DATA * np.eye(len(best))
        (step,) = unit_steps(table, matrix, gradient[None, :])
        low, high = 0.0, 4.0
        while is_inside(best + high * step) and high < 1e3:
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if is_inside(best + middle * step) else (low, middle)
        point = best + low * step
    return point


def _stacked(cuts: Sequence[HalfSpace], d: int) -> tuple[FloatArray, FloatArray]:
    rows = np.array([cut.row for cut in cuts], dtype=np.float64).reshape(len(cuts), d)
    return read_only(rows), read_only(np.array([cut.offset for cut in cuts], dtype=np.float64))


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

"""Makes the confidence set of all parameters from the likelihood, half-spaces across directions, and intervals.

The likelihood set holds the points whose likelihood is within a factor of the evidence, which is the average of the
likelihood over a law of the parameters that was fixed before the data, by the space alone or by a pilot. If it is known
which data came first, bets for both sides of each direction are placed and renewed by what was seen before (see
``staged_bets``). Intervals of the expressions ("strips") also hold for rows that the likelihood leaves out, and matter
where it has too little data.

With probability at least 1 - error the true point is in all of these sets at all times, whatever chose the actions, and
whenever the data stopped. ``likelihood_shares`` says how the error is divided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from math import fsum, inf, log, nextafter
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from plumdp.base.error_budget import ErrorBudget, Share, favoured_parts
from plumdp.base.linear_algebra import solve_nearly
from plumdp.base.vocabulary import Assumption, Group, Guarantee
from plumdp.confidence.bets import Direction, Directions, HalfSpace, sharpened, tangent_half_space, unit_steps
from plumdp.confidence.bounds import ExpressionBounds, expression_bounds
from plumdp.confidence.cells import Cells
from plumdp.confidence.estimates import (
    SPACE_AS_DATA,
    Law,
    estimate_inside,
    information,
    law_of_pilot,
    law_of_space,
    left_out_choices,
    marginal_precision,
    search_maximum,
)
from plumdp.confidence.evidence import log_evidence
from plumdp.confidence.likelihood_table import MANY, LikelihoodTable, likelihood_table
from plumdp.confidence.observations import pool
from plumdp.confidence.path_evidence import PathEvidence
from plumdp.confidence.sets import MEMORY, OF_SET, TESTS, Evidence, ModelCache, graph_alone, require_error
from plumdp.confidence.staged_bets import (
    Bets,
    DataStage,
    PlacedBets,
    chosen_anew,
    find_horizons,
    find_stages,
    staged_half_spaces,
)
from plumdp.data.counts import Pilot, TransitionCounts, require_same_graph
from plumdp.data.pilots import pilot_assumption
from plumdp.data.seen import Seen
from plumdp.model.graph import BoolArray, FloatArray, read_only
from plumdp.model.parametric import ParametricMDP

_Spent: TypeAlias = Callable[[str], float]
"""A function from a part of the set to its error."""

PRESPECIFIED = Assumption("the objectives were chosen before looking at the data", Group.PLAN, "question")
_GIVEN = Assumption(
    "you chose the policy before looking at these data (as you stated)",
    Group.PLAN,
    "policy",
)
_OF_BLOCKS = 4  # parts of the share of a likelihood, one of which is for blocks of parameters
_TRIES = 6  # steps towards the point of a likelihood set at which a value is largest
_HALVINGS = 40

Order: TypeAlias = Literal["unknown", "planned", "short", "open"]
"""The order of the data: not known, of a length that was planned, planned too short for a pilot, or ended at will."""

_INTERVALS, _MORE_INTERVALS = Fraction(1, 40), Fraction(3, 10)  # of the error; more, where rows have nothing else
_PERCENT: dict[Order, tuple[tuple[int, int, int, int], ...]] = {
    # half-spaces, those across outcomes, likelihood after the pilot, likelihood against the space: if nothing is asked,
    # with few parameters, and with many
    "unknown": ((0, 0, 0, 90), (0, 0, 0, 90), (0, 0, 0, 90)),
    "planned": ((0, 0, 90, 0), (80, 0, 10, 0), (60, 20, 10, 0)),
    "short": ((0, 0, 0, 90), (80, 0, 0, 10), (60, 20, 0, 10)),
    "open": ((0, 0, 45, 45), (80, 0, 0, 10), (45, 20, 20, 5)),
}
_BETS_ON_MEMORY = Fraction(9, 10)  # of what tests of memory have, if there may be a pilot to place them
_CELLS = 60, (0, 0, 0, 30)  # bets in cells, and the others
_NARROW = (6, 0, 0, 84)  # the same of few parameters in a narrow space, if the data ended at will
_VISITS, _NATS = 1000.0, 2.0  # that tell this much of the parameters at most, if their space is narrow


@dataclass(frozen=True, eq=False)
class LevelSet:
    """The points whose log-likelihood Σ count ln f of some data is at least ``threshold``.

    That of a block of parameters counts nothing but the groups about it.
    """

    table: LikelihoodTable
    outcome_counts: FloatArray  # (n_outcomes): how often each was seen in these data
    threshold: float  # rounded down; minus infinity if there is no evidence
    law: Law  # of the parameters, fixed before these data, over which the evidence is the average
    error: float
    method: str
    is_of_main: bool  # whether these are the data after the pilot
    block: tuple[str, ...] = ()  # parameters, if it is about a block of them
    intervals: None = None

    @cached_property
    def supports(self) -> list[HalfSpace]:
        """Half-spaces around the set across its parameters, on both sides, unless these are many."""
        table = self.table
        if self.threshold == -inf:
            return []
        start, text = estimate_inside(table, self.outcome_counts)[0], "the likelihood of the data"
        axes = [table.axes[table.names.index(name)] for name in self.block] if self.block else table.axes
        return [across(self, start, side * axis, text) for axis in axes for side in (1, -1)]

    def half_spaces(self, names: tuple[str, ...]) -> tuple[HalfSpace, ...]:
        """Return none: tangents that matter are constraints of their own."""
        return ()

    def widened(self, by: float) -> None:
        """Return None: the ratios that it multiplies have no bound, so that nothing is proved for rows that are off."""


class Range(NamedTuple):
    """The range of the gains of bets on some of the data at each choice."""

    share: float  # in the logarithm of a wealth
    visits: FloatArray  # (n_choices)
    ranges: FloatArray  # (n_choices), rounded up


@dataclass(frozen=True, eq=False)
class LinearConstraints:
    """The points in all half-spaces ``rows @ point <= offsets``, rounded outward."""

    rows: FloatArray  # (m, n_parameters)
    offsets: FloatArray  # (m)
    texts: tuple[str, ...]  # (m): the origin of each half-space, in words
    error: float
    bets: Bets | None = None  # that those across directions are left by
    ranges: tuple[tuple[Range, ...], ...] | None = None  # (m): of the bets of each; None if none are known
    is_across_outcomes: bool = False  # across so many that they cut ellipsoids alone
    intervals: None = None

    @staticmethod
    def of(half_spaces: Sequence[HalfSpace], d: int, error: float, **others: Any) -> LinearConstraints:
        """Return the constraints of some half-spaces in d parameters."""
        rows = np.array([each.row for each in half_spaces], dtype=np.float64).reshape(len(half_spaces), d)
        offsets = np.array([each.offset for each in half_spaces], dtype=np.float64)
        texts = tuple(each.text for each in half_spaces)
        return LinearConstraints(read_only(rows), read_only(offsets), texts, error, **others)

    def half_spaces(self, names: tuple[str, ...]) -> list[HalfSpace]:
        """Return the half-spaces, but for those across outcomes."""
        texts = [text.removeprefix("the half-space that ").removesuffix(" left") for text in self.texts]
        return [] if self.is_across_outcomes else [*map(HalfSpace, self.rows, self.offsets.tolist(), texts)]

    def widened(self, by: float) -> LinearConstraints | None:
        """Return the half-spaces moved outward by Σ share · visits · ln(1 + tolerance · R), R being ranges of bets."""
        if self.ranges is None:
            return None
        offsets = []
        for offset, of_one in zip(self.offsets.tolist(), self.ranges, strict=True):
            parts = [fsum(part.visits * np.log1p(by * part.ranges)) * part.share for part in of_one]
            tolerated = fsum(parts) * (1 + 1e-14)  # outward: more than the rounding of its terms
            offsets.append(nextafter(offset + tolerated, inf) if tolerated else offset)
        return replace(self, offsets=read_only(np.array(offsets, dtype=np.float64)))


def likelihood_shares(
    order: Order,
    *,
    is_asked: bool,
    has_many_parameters: bool = False,
    leaves_rows_out: bool = False,
    has_time: bool = False,
    has_narrow_space: bool = False,
    has_cells: bool = False,
    has_paths: bool = False,
    has_contexts: bool = False,
) -> ErrorBudget:
    """Return the budget of a likelihood set, which is itself some of the tests of the model.

    Half-spaces across the objectives take most. If the length of the data was not planned, they pay for all lengths
    that the data might have. In a narrow space the likelihood against the space pays less, and takes most instead, so
    that a known order is no worse than none. Rows that the likelihood leaves out have nothing but
    intervals, which then have more. If there are rows with hidden paths, the likelihood with these has half of what
    likelihoods have. ``has_time`` says that parts of the data are kept as they are read, however
    many there are in the end: tests over time then have half of what those of drifts have without. ``has_contexts``
    says that contexts are counted, however many steps: tests of memory then have a share of what the set has without.
    """
    intervals = _MORE_INTERVALS if leaves_rows_out else _INTERVALS
    memory = MEMORY if has_contexts else Fraction(0)
    bets_on_memory = Fraction(0) if order == "unknown" else _BETS_ON_MEMORY * memory
    left = (OF_SET - memory - intervals) / (OF_SET - _INTERVALS)
    percents = _PERCENT[order][is_asked + (is_asked and has_many_parameters)]
    if order == "open" and is_asked and has_narrow_space and not has_many_parameters:
        percents = _NARROW
    of_cells, percents = _CELLS if has_cells else (0, percents)
    half_spaces, outcomes, after_pilot, against_space = (Fraction(percent, 100) * left for percent in percents)
    paths = (after_pilot + against_space) / 2 if has_paths else Fraction(0)
    after_pilot, against_space = (share / (1 + has_paths) for share in (after_pilot, against_space))
    time = TESTS / 4 if has_time else Fraction(0)
    drifts = Fraction(0) if order == "unknown" else TESTS / 2 - time
    rows = (TESTS - drifts - time) / 2
    return ErrorBudget(
        (
            Share("half_spaces", half_spaces, "half-spaces across the objectives"),
            Share("cells", Fraction(of_cells, 100) * left, "bets in cells of the space"),
            Share("outcome_half_spaces", outcomes, "half-spaces across outcomes"),
            Share("likelihood_after_pilot", after_pilot, "likelihood after the pilot"),
            Share("likelihood_against_space", against_space, "likelihood against the space"),
            Share("paths", paths, "likelihood of rows with hidden paths"),
            Share("intervals", intervals, "intervals of probabilities"),
        ),
        (
            Share("drifts", drifts, "tests of drifts"),
            Share("time", time, "tests of changes over time"),
            Share("rows", rows, "tests of rows"),
            Share("classes", rows, "tests of tied rows"),
            Share("memory_bets", bets_on_memory, "bets on memory"),
            Share("memory_rows", memory - bets_on_memory, "tests of rows by what came before"),
        ),
        graph_alone(),
    )


def likelihood_budget(
    cache: ModelCache,
    pilot: Pilot | None,
    *,
    has_directions: bool,
    has_time: bool = False,
    has_cells: bool = False,
    has_paths: bool = False,
    has_contexts: bool = False,
) -> ErrorBudget:
    """Return the division of the error, given the model, what is known of the order of the data, and the objectives."""
    return likelihood_shares(
        order_of(pilot),
        is_asked=has_directions,
        has_many_parameters=cache.table.basis.shape[1] > MANY,
        leaves_rows_out=bool(cache.table.left_out or (cache.table.paths is not None and not has_paths)),
        has_time=has_time,
        has_narrow_space=is_narrow(cache.table, law_of_space(cache.model)),
        has_cells=has_cells,
        has_paths=has_paths,
        has_contexts=has_contexts,
    )


def uses_cells(cache: ModelCache, pilot: Pilot | None) -> bool:
    """Return whether bets in cells are worth it: if the data have no order, and the space is not narrow."""
    is_possible = pilot is None and cache.partition.is_worth_it
    return is_possible and not is_narrow(cache.table, law_of_space(cache.model))


def is_narrow(table: LikelihoodTable, space: Law) -> bool:
    """Return whether a thousand visits, as many of each class, would tell little of the parameters.

    About so much is what evidence loses by an average over the space: ½ ln det(I + J / P), with the precision P of its
    law and the information J of the visits at a point inside.
    """
    weights = np.where(table.is_class[table.group], table.chances(table.middle), 0.0)
    of_visits = information(table, weights, table.middle) * _VISITS / max(int(table.is_class.sum()), 1)
    told = np.eye(len(table.basis.T)) + solve_nearly(
        marginal_precision(space.precision, table.basis), table.basis.T @ of_visits @ table.basis
    )
    return bool(np.linalg.slogdet(told)[1] / 2 < _NATS)


def order_of(pilot: Pilot | None) -> Order:
    """Return the order of the data by their pilot, which is fixed before the data, also if they are too few for one."""
    if pilot is None:
        return "unknown"
    return "open" if not pilot.is_planned else "planned" if pilot.total else "short"


def likelihood_set(
    model: ParametricMDP,
    counts: TransitionCounts,
    *,
    error: float = 0.001,
    directions: Directions | None = None,
    cache: ModelCache | None = None,
    budget: ErrorBudget | None = None,
) -> Evidence:
    """Return the points that explain the data, at all times with probability at least 1 - error.

    ``directions`` says in which directions to be narrow, given an estimate of the parameters. It must not look at the
    data, and where there are ``Cells`` not depend on what it was asked before. Without directions there are no
    half-spaces, and without an order of the data there are those of ``Cells`` at most.
    With more than 20 parameters that have an effect there are half-spaces across all outcomes as well. ``cache`` keeps
    what depends on the model alone. ``budget`` is the division of the error of a certificate, if that was decided
    before.

    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26)
    >>> likely = likelihood_set(study.model, counts, directions=lambda point: [Direction(np.ones(1))])
    >>> likely.guarantee, likely.method, bool(abs(likely.estimate[0] - 0.55) < 0.01)
    ('finite-sample, planned', 'likelihood after a pilot with half-spaces across the gradient', True)
    """
    require_error(error)
    require_same_graph(model.graph, counts.graph)
    cache = cache or ModelCache(model)
    table, space = cache.table, law_of_space(model)
    best = estimate_inside(table, sharpened(table, *table.pool_seen(counts.seen)), prior=space)[0]
    is_asked, has_time = directions is not None, counts.time is not None
    if budget is None:
        has_cells = is_asked and uses_cells(cache, counts.pilot)
        known = {"has_directions": is_asked, "has_time": has_time, "has_cells": has_cells}
        known |= {"has_paths": table.paths is not None, "has_contexts": bool(counts.contexts)}
        budget = likelihood_budget(cache, counts.pilot, **known)
    spent = partial(budget.error_in_set, error=error)
    likelihoods = sorted(_likelihoods(table, counts, space, spent), key=partial(_log_volume, near=best))
    of_bets = spent("half_spaces")
    rows_of_paths = None
    if table.paths is not None and (of_paths := spent("paths")):
        rows_of_paths = PathEvidence(table.paths, counts, space, search_maximum(model, counts, [best], space), of_paths)
    bet_on = (table, space, best) if rows_of_paths is None else rows_of_paths.bet_on
    staged = None if directions is None else place_bets(*bet_on, counts, directions, of_bets)
    last, left = ((), []) if staged is None else (staged.directions, [each.left for each in staged.placed])
    of_hidden = [] if rows_of_paths is None else rows_of_paths.constraints(left, of_bets)
    half_spaces = left if rows_of_paths is None else []
    across_outcomes = [] if staged is None else _across_outcomes(table, staged, spent("outcome_half_spaces"))
    d = len(table.names)
    cells: list[Cells] = []
    if directions is not None and (of_cells := spent("cells")):
        pooled, whole = table.pool_seen(counts.seen), next(each for each in likelihoods if not each.block)
        evidence, last = whole.threshold - log(whole.error), last or tuple(directions(best))
        cells.append(Cells(cache.partition, pooled, evidence, directions, best, of_cells, whole.error))
    return Evidence(
        "likelihood",
        likelihoods[0].method + (" with half-spaces across the gradient" if last else ""),
        guarantee_of(counts),
        error,
        budget,
        (
            *likelihoods,
            LinearConstraints.of(half_spaces, d, of_bets, bets=staged and staged.bets),
            LinearConstraints.of(across_outcomes, d, spent("outcome_half_spaces"), is_across_outcomes=True),
            _strips(cache, counts, spent("intervals")),
            *cells,
            *of_hidden,
        ),
        estimate=read_only(best),
        directions=last,
        rests_on=decided_before(counts.pilot, last),
    )


def decided_before(pilot: Pilot | None, directions: Sequence[Direction]) -> tuple[str, ...]:
    """Return, in words, the decisions that must have been taken before the data were looked at, if there is a pilot."""
    placed = "" if pilot is None else pilot_assumption(pilot)
    said = (placed,) if placed else ()
    if not directions or (pilot is not None and not placed):
        return said
    has_policies = any(direction.has_policies for direction in directions)
    return *said, PRESPECIFIED, *((_GIVEN,) if has_policies else ())


def guarantee_of(counts: TransitionCounts) -> Guarantee:
    """Return the guarantee of sets that are placed by a pilot, which may need a length of the data that was planned.

    Independent samples have no order. Some are drawn to be the pilot, for which the numbers of all of them are fixed.
    """
    if counts.pilot is None or not counts.pilot.is_planned:
        return Guarantee.ANYTIME
    return Guarantee.FIXED if counts.sampling == "independent" else Guarantee.PLANNED


def _strips(cache: ModelCache, counts: TransitionCounts, error: float) -> ExpressionBounds:
    """Return intervals of the expressions that hold at any time, however the data were sampled."""
    events = replace(pool(cache.events, counts), sampling="adaptive")
    return expression_bounds(cache.model, events, error=error, events=cache.events)


def _likelihoods(table: LikelihoodTable, counts: TransitionCounts, space: Law, spent: _Spent) -> list[LevelSet]:
    """Return the likelihood of all data against the space, and that of main data after the pilot, if they have shares.

    Each is followed by those of all blocks of parameters, if there are several and few parameters, with a quarter of
    the share in equal parts. The likelihood of a block pays for its own dimensions alone. All hold, each at its share.
    """

    def levels(seen: Seen, law: Law, error: float, method: str, *, is_of_main: bool) -> list[LevelSet]:
        def level(pooled: FloatArray, error: float, block: tuple[str, ...] = ()) -> LevelSet:
            threshold = _threshold(table, pooled, law, error)
            return LevelSet(table, pooled, threshold, law, error, method, is_of_main, block)

        pooled, names = table.pool_seen(seen).outcome_counts, table.names
        blocks = table.blocks if len(names) <= MANY else []
        if len(blocks) < 2:
            return [level(pooled, error)]
        of_all, of_one = favoured_parts(error, 1 + len(blocks), part=_OF_BLOCKS)[:2]
        of_blocks = [
            level(np.where(is_about, pooled, 0.0), of_one, tuple(names[i] for i in parameters.tolist()))
            for parameters, is_about in blocks
        ]
        return [level(pooled, of_all), *of_blocks]

    likelihoods, pilot = [], counts.pilot
    if error := spent("likelihood_against_space"):
        likelihoods += levels(counts.seen, space, error, "likelihood against the space", is_of_main=False)
    if (error := spent("likelihood_after_pilot")) and pilot is not None and pilot.total:
        law = law_of_pilot(table, table.pool_seen(pilot.seen).outcome_counts, space)
        main, share = counts.seen - pilot.seen, error * pilot.weight
        likelihoods += levels(main, law, share, "likelihood after a pilot", is_of_main=True)
    return likelihoods


def _threshold(table: LikelihoodTable, outcome_counts: FloatArray, law: Law, error: float) -> float:
    """Return a threshold that the log-likelihood of the true point ever falls below with at most this probability."""
    evidence = log_evidence(table, outcome_counts, law.mean, law.precision)
    # Ville's inequality, rounded down: a lower threshold keeps more points
    return evidence + log(error) * (1 + 1e-12) - 1e-12 * abs(evidence) if evidence > -inf else -inf


def _log_volume(likelihood: LevelSet, near: FloatArray) -> float:
    """Return an estimate of the logarithm of a volume: that of an ellipsoid about a point, up to a constant.

    All likelihoods hold jointly, so that the choice of the smallest may depend on the data.
    """
    table, is_seen = likelihood.table, likelihood.outcome_counts > 0
    basis, values = table.basis, table.chances(near)
    if likelihood.threshold == -inf or (values[is_seen] <= 0).any():
        return inf
    nats = float(likelihood.outcome_counts[is_seen] @ np.log(values[is_seen])) - likelihood.threshold
    matrix = basis.T @ information(table, likelihood.outcome_counts, near) @ basis  # singular, if it is of a block
    sign, log_det = np.linalg.slogdet(matrix)
    return basis.shape[1] * log(max(nats, 1e-9)) - float(log_det) if sign > 0 else inf


class Staged(NamedTuple):
    """Bets across directions that were renewed by what was seen before each stage of the data."""

    directions: tuple[Direction, ...]  # of the last stage
    placed: list[PlacedBets]
    bets: Bets
    place: Callable[..., list[PlacedBets]]  # places others by the same stages: (gradients, *, error, texts)


def place_bets(
    table: LikelihoodTable,
    space: Law,
    near: FloatArray,
    counts: TransitionCounts,
    directions: Directions,
    error: float,
    is_bet_on: BoolArray | None = None,
) -> Staged | None:
    """Return bets across directions, on both sides, or None if it is not known which data came first."""
    if counts.pilot is None or not counts.pilot.moments:
        return None
    stages, horizons = find_stages(table, counts, space), find_horizons(counts.pilot, counts.total)
    last, gradients, texts = directions_of_stages(table, stages, directions)
    place = partial(staged_half_spaces, table, stages, horizons=horizons, space=space, near=near, is_bet_on=is_bet_on)
    placed = place(gradients, error=error, texts=texts)
    points = np.array([stage.point for stage in stages])
    return Staged(last, placed, Bets(points, horizons, len(last), tuple(each.side for each in placed)), place)


def _across_outcomes(table: LikelihoodTable, staged: Staged, error: float) -> list[HalfSpace]:
    """Return the half-spaces that bets across the probabilities of all outcomes leave, if these have an error."""
    if not error:
        return []
    _, first = np.unique(table.direction, return_index=True)
    across = table.coefficients[[j for j in first if table.direction[j] >= 0]]
    every = np.broadcast_to(across, (len(staged.bets.points), *across.shape))
    alike = staged.bets.horizons._replace(is_renewed=False)  # as there are so many
    placed = staged.place(every, horizons=alike, error=error, texts=["an outcome"] * len(across))
    return [each.left for each in placed]


def directions_of_stages(
    table: LikelihoodTable, stages: Sequence[DataStage], directions: Directions
) -> tuple[tuple[Direction, ...], FloatArray, list[str]]:
    """Return the last directions, the gradients of all stages (S, J, d), and the half-spaces of bets on them in words.

    Those of a stage are chosen by the estimate at its beginning or before, so that bets on them do not look ahead.
    """
    which, n_more = chosen_anew(stages), 0 if table.lifts is None else len(table.lifts)
    made = {s: tuple(directions(stages[s].point[: len(table.names) - n_more])) for s in sorted({*which})}
    chosen = [made[s] for s in which]
    gradients = np.array([[direction.gradient for direction in of_stage] for of_stage in chosen])
    gradients = np.pad(gradients, ((0, 0), (0, 0), (0, n_more)))  # values are functions of the parameters alone
    texts = [f"the half-space that bets on {direction.text or 'a direction'} left" for direction in chosen[-1]]
    return chosen[-1], gradients, texts


def across(likelihood: LevelSet, best: FloatArray, gradient: FloatArray, text: str) -> HalfSpace:
    """Return a half-space around a likelihood set that is about the narrowest across a gradient."""
    given = likelihood.table, likelihood.outcome_counts, likelihood.threshold
    return tangent_half_space(*given, near=furthest_point(*given, best, gradient), text=text)


@np.errstate(divide="ignore", invalid="ignore")
def furthest_point(
    table: LikelihoodTable, outcome_counts: FloatArray, threshold: float, best: FloatArray, gradient: FloatArray
) -> FloatArray:
    """Return an estimate of the point of a likelihood set that is furthest along a gradient.

    There the gradient of the likelihood is a multiple of the given one. With the information I at the last point, the
    next one is on the ray along I⁻¹ g from the maximum. A tangent at any other point would be valid as well.
    """
    is_seen, tried = outcome_counts > 0, [best]
    weights = outcome_counts[is_seen]

    def is_inside(at: FloatArray) -> bool:
        return bool(weights @ np.log(table.chances(at)[is_seen]) >= threshold)  # nan if a value is negative

    for _ in range(_TRIES):
        matrix = information(table, outcome_counts, tried[-1]) + SPACE_AS_DATA * np.eye(len(best))
        (step,) = unit_steps(table, matrix, gradient[None, :])
        low, high = 0.0, 4.0
        while is_inside(best + high * step) and high < 1e3:
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if is_inside(best + middle * step) else (low, middle)
        tried.append(best + low * step)
    return max(tried, key=lambda at: float(gradient @ at))  # far out, where the information is lost, tries go back


def best_point(
    model: ParametricMDP,
    counts: TransitionCounts,
    *,
    table: LikelihoodTable | None = None,
    near: Sequence[FloatArray] = (),
) -> FloatArray:
    """Return an estimate of the parameters at which the data are most likely, with the space as a weak prior.

    If there are data of rows that have no part in the likelihood of the table, it is the ``best_point_of_space``.
    """
    table = table or likelihood_table(model)
    pooled = sharpened(table, *table.pool_seen(counts.seen))
    point = estimate_inside(table, pooled, prior=law_of_space(model))[0]
    has_others = counts.visits[left_out_choices(table)].any()
    return best_point_of_space(model, counts, [point, *near]) if has_others else point


def best_point_of_space(model: ParametricMDP, counts: TransitionCounts, near: Sequence[FloatArray]) -> FloatArray:
    """Return the point of the space at which the data of all rows are most likely, by a search near some points."""
    return search_maximum(model, counts, near, law_of_space(model))

"""What the data say, whatever is asked: sets around the data, and the region of the parameters within all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from time import perf_counter
from typing import Literal, TypeAlias, get_args

from plumdp.confidence.bounds import ExpressionBounds, Intervals, expression_bounds
from plumdp.confidence.least_squares import LeastSquares, least_squares
from plumdp.confidence.multinomial import RowBounds, row_bounds
from plumdp.data.counts import TransitionCounts, require_same_graph
from plumdp.data.logs import Log
from plumdp.errors import DataError
from plumdp.model.events import Events, find_events
from plumdp.model.parametric import ParametricMDP
from plumdp.region.build import build_region
from plumdp.region.conflict import Conflict
from plumdp.region.ellipsoid import Ellipsoid
from plumdp.region.l1 import build_l1_region
from plumdp.region.shapes import Polytope
from plumdp.region.tangents import build_ellipsoid_region

Sets: TypeAlias = Literal["interval", "l1", "ellipsoid"]
"""What is drawn around the data: intervals of expressions, L1 balls of rows, or an ellipsoid of parameters."""

FALLBACK = 0.05  # share of the error that is kept for the case that the model is contradicted


@dataclass(frozen=True, eq=False)
class Learned:
    """What the data say, whatever is asked: intervals, and the region of the points within all of them."""

    model: ParametricMDP
    counts: TransitionCounts
    error: float
    bounds: ExpressionBounds | RowBounds | LeastSquares
    region: Polytope | Ellipsoid | Conflict
    seconds: dict[str, float]


def learn(
    model: ParametricMDP,
    counts: TransitionCounts | Log,
    *,
    confidence: float = 0.999,
    sets: Sets = "interval",
    intervals: Intervals | None = None,
    events: Events | None = None,
    paper: bool = False,
) -> Learned:
    """Return what is drawn around the data, and the region of the parameters that lie within all of it."""
    error, clock = error_of(confidence), Clock()
    if isinstance(counts, Log):
        counts = counts.counts
    if not isinstance(counts, TransitionCounts):
        raise DataError(
            f"counts of type {type(counts).__name__}: write TransitionCounts(model.graph, counts, sampling), which "
            "says how the data came about: 'independent', 'trajectories' or 'adaptive'"
        )
    require_same_graph(model.graph, counts.graph)
    _check_sets(sets, intervals, events, paper)
    share = error if paper else (1 - FALLBACK) * error
    if sets == "interval":
        bounds = (
            published_bounds(model, counts, published_events(model), error=share)
            if paper
            else expression_bounds(model, counts, error=share, intervals=intervals, events=events)
        )
        clock.lap("intervals")
        return learned_from(model, counts, bounds, error, clock.laps)
    around: RowBounds | LeastSquares
    region: Polytope | Ellipsoid | Conflict
    if sets == "l1":
        around = row_bounds(model, counts, error=share)
        clock.lap("intervals")
        region = build_l1_region(model.space, around)
    else:
        around = least_squares(model, counts, error=share, paper=paper)
        clock.lap("intervals")
        region = build_ellipsoid_region(model.space, model.expressions, around)
    clock.lap("region")
    return Learned(model, counts, error, around, region, clock.laps)


def learned_from(
    model: ParametricMDP,
    counts: TransitionCounts,
    bounds: ExpressionBounds,
    error: float,
    seconds: dict[str, float] | None = None,
) -> Learned:
    """Return the region of the parameters that lie within the given intervals."""
    clock = Clock({} if seconds is None else seconds)
    region = build_region(model.space, bounds.events.polynomials, bounds.event_lower, bounds.event_upper)
    clock.lap("region")
    return Learned(model, counts, error, bounds, region, clock.laps)


def _check_sets(sets: Sets, intervals: Intervals | None, events: Events | None, paper: bool) -> None:
    if sets not in get_args(Sets):
        raise DataError(f"sets={sets!r}: write one of {', '.join(map(repr, get_args(Sets)))}")
    is_chosen = intervals is not None or events is not None
    if is_chosen and sets != "interval":
        raise DataError(f"sets={sets!r}: intervals and events are for sets='interval'")
    if is_chosen and paper:
        raise DataError("paper=True chooses intervals and events itself: leave out either paper or these")
    if paper and sets == "l1":
        raise DataError("sets='l1': the paper does not say how it makes L1 balls; leave out paper, or take other sets")


def error_of(confidence: float) -> float:
    """Return how often the bounds may fail, if the confidence is one."""
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise DataError(f"confidence={confidence!r}: write a number between 0 and 1, such as 0.999")
    return 1 - confidence


def published_events(model: ParametricMDP) -> Events:
    """Return what the paper counts: each unknown expression, f and 1 - f apart."""
    return find_events(model, merge_complements=False)


def published_bounds(
    model: ParametricMDP, counts: TransitionCounts, events: Events, *, error: float
) -> ExpressionBounds:
    """Return a Clopper–Pearson interval for each of the published events, however the data came about."""
    bounds = expression_bounds(model, counts, error=error, intervals="clopper-pearson", events=events)
    return replace(bounds, method="Clopper–Pearson for each expression, as published", guarantee="none")


class Clock:
    """Seconds of the stages of a calculation."""

    def __init__(self, laps: dict[str, float] | None = None) -> None:
        self.laps = {} if laps is None else laps
        self._last = perf_counter()

    def lap(self, stage: str) -> None:
        """Enter the seconds since the last stage."""
        now = perf_counter()
        self.laps[stage] = now - self._last
        self._last = now

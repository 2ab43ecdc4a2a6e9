"""The kinds of confidence sets: how each is made from counts, and how it becomes a region of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from plumdp.base.error_budget import ErrorBudget
from plumdp.base.vocabulary import Sets as Sets
from plumdp.confidence.bounds import ExpressionBounds, expression_bounds
from plumdp.confidence.groundwork import Groundwork
from plumdp.confidence.least_squares import least_squares
from plumdp.confidence.likelihood import likelihood_budget, likelihood_set
from plumdp.confidence.multinomial import row_bounds
from plumdp.confidence.sets import ConfidenceSet, Guarantee
from plumdp.confidence.tolerant import tolerant_bounds, tolerant_budget, tolerant_set
from plumdp.data.counts import Pilot, TransitionCounts
from plumdp.model.events import Events, find_events
from plumdp.model.parametric import ParametricMDP
from plumdp.region.build import build_region
from plumdp.region.conflict import Conflict
from plumdp.region.l1 import build_l1_region
from plumdp.region.likelihood_region import build_likelihood_region
from plumdp.region.shapes import Region
from plumdp.region.tangents import build_ellipsoid_region

Measured = TypeVar("Measured", bound=ConfidenceSet)

Division: TypeAlias = Callable[[Groundwork, Pilot | None, bool], ErrorBudget]
"""From the model, the pilot, and whether values are asked for, to how the error of a certificate is divided."""


def _at_once(_model: Groundwork, _pilot: Pilot | None, _is_asked: bool) -> ErrorBudget:
    """Return how the error is divided if a set is drawn at once, whatever is asked."""
    return ErrorBudget.of_one_set()


@dataclass(frozen=True)
class ConfidenceMethod(Generic[Measured]):
    """How a kind of confidence set is made from counts, and how the region of the parameters is made from it."""

    measure: Callable[..., Measured]  # (model, counts, *, error)
    region: Callable[[ParametricMDP, Measured], Region | Conflict]
    published: Callable[..., Measured] | None = None  # likewise, with what the paper publishes
    tolerant: Callable[..., Measured] | None = None  # (model, counts, *, error, misfit): if rows may be off
    budget: Division = _at_once
    tolerant_budget: Division = _at_once  # likewise, if rows may be off
    options: tuple[str, ...] = ()  # keywords that ``measure`` takes besides
    has_intervals: bool = True  # of each expression, so that there is an interval-wise relaxation
    has_directions: bool = False  # ``measure`` takes ``directions`` in which to be narrow, chosen by the pilot


def within_intervals(model: ParametricMDP, bounds: ExpressionBounds) -> Region | Conflict:
    """Return the region of the parameters that lie within the given intervals."""
    return build_region(model.space, bounds.events.polynomials, bounds.event_lower, bounds.event_upper)


def published_events(model: ParametricMDP) -> Events:
    """Return what the paper counts: each unknown expression, f and 1 - f apart."""
    return find_events(model, merge_complements=False)


def published_bounds(
    model: ParametricMDP, counts: TransitionCounts, events: Events, *, error: float
) -> ExpressionBounds:
    """Return a Clopper–Pearson interval for each of the published events, however the data came about."""
    bounds = expression_bounds(model, counts, error=error, interval_method="clopper-pearson", events=events)
    return replace(bounds, method="Clopper–Pearson for each expression, as published", guarantee=Guarantee.NONE)


def _published_intervals(model: ParametricMDP, counts: TransitionCounts, *, error: float) -> ExpressionBounds:
    return published_bounds(model, counts, published_events(model), error=error)


SETS: Mapping[Sets, ConfidenceMethod[Any]] = {
    "interval": ConfidenceMethod(
        expression_bounds,
        within_intervals,
        published=_published_intervals,
        tolerant=tolerant_bounds,
        tolerant_budget=lambda *_: ErrorBudget.of_tolerant_set(has_bets=False, has_drifts=False),
        options=("interval_method", "events"),
    ),
    "l1": ConfidenceMethod(row_bounds, lambda model, balls: build_l1_region(model.space, balls)),
    "ellipsoid": ConfidenceMethod(
        least_squares,
        lambda model, found: build_ellipsoid_region(model.space, model.expressions, found),
        published=partial(least_squares, as_published=True),
        has_intervals=False,
    ),
    "likelihood": ConfidenceMethod(
        likelihood_set,
        lambda model, found: build_likelihood_region(model.space, model.expressions, found),
        tolerant=tolerant_set,
        budget=lambda known, pilot, is_asked: likelihood_budget(known.table, pilot, has_directions=is_asked),
        tolerant_budget=lambda _, pilot, is_asked: tolerant_budget(pilot, has_directions=is_asked),
        has_directions=True,
    ),
}
"""One entry per kind of confidence set: how it is made, and how it becomes a region (Sections 2.3, 2.4, 3, 3.4)."""

"""Intervals of expressions as the paper publishes them, to compare with: nothing proves their confidence for runs."""

from __future__ import annotations

from dataclasses import replace

from plumdp.confidence.bounds import ExpressionBounds, expression_bounds
from plumdp.confidence.sets import Guarantee
from plumdp.data.counts import TransitionCounts
from plumdp.model.events import Events, find_events
from plumdp.model.parametric import ParametricMDP


def published_events(model: ParametricMDP) -> Events:
    """Return what the paper counts: each unknown expression, f and 1 - f apart."""
    return find_events(model, merge_complements=False)


def published_bounds(
    model: ParametricMDP, counts: TransitionCounts, *, error: float = 0.001, events: Events | None = None
) -> ExpressionBounds:
    """Return a Clopper–Pearson interval for each of the published events, however the data came about.

    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26)
    >>> published_bounds(study.model, counts).guarantee
    'none'
    """
    known = published_events(model) if events is None else events
    bounds = expression_bounds(model, counts, error=error, interval_method="clopper-pearson", events=known)
    method = "Clopper–Pearson for each expression, as published"
    return replace(bounds, method=method, guarantee=Guarantee.NONE, kind="published-interval")

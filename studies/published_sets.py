"""The confidence sets of the paper, for comparison: nothing proves their confidence for runs.

Both have the whole error, and the model is not tested. Clopper–Pearson intervals, one for each unknown expression, need
numbers of trials that were fixed beforehand; the ellipsoid counts every outcome of a visit as a trial of its own, while
its proof asks for independent noise (see ``studies.observations``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from time import perf_counter
from typing import cast

import numpy as np

from plumdp.base.vocabulary import Guarantee
from plumdp.confidence.bounds import ExpressionBounds, expression_bounds
from plumdp.confidence.sets import Evidence, whole_set
from plumdp.data.counts import TransitionCounts
from plumdp.learning.learned import Learned
from plumdp.learning.methods import Sets
from plumdp.model.events import find_events
from plumdp.model.parametric import ParametricMDP
from plumdp.region.find import find_region
from studies.least_squares import RIDGE, LeastSquares, fit
from studies.observations import observed

ERROR = 1 - 0.999


def published_intervals(model: ParametricMDP, counts: TransitionCounts, error: float = ERROR) -> ExpressionBounds:
    """Return a Clopper–Pearson interval for each unknown expression, f and 1 - f apart, however data came about."""
    as_if_fixed = replace(counts, sampling="independent")
    events = find_events(model, merge_complements=False)
    return expression_bounds(model, as_if_fixed, error=error, events=events)


def published_ellipsoid(model: ParametricMDP, counts: TransitionCounts, error: float = ERROR) -> LeastSquares:
    """Return the ellipsoid with the published constants: each transition out of a visited choice is a trial."""
    trials, successes = np.zeros((2, len(model.expressions)))
    np.add.at(trials, model.expression, counts.visits[model.graph.choice_of_transition()])
    np.add.at(successes, model.expression, counts.counts)
    seen = observed(model.expressions, trials, successes)
    d = len(seen.exponents)
    fitted = fit(seen, np.zeros(d), sqrt(d), error=error, ridge=RIDGE)
    method = "least squares with the published constants, whose proof fails"
    return LeastSquares(seen.exponents, *fitted, error, method, Guarantee.NONE)


PUBLISHED_SETS: Mapping[str, Callable[[ParametricMDP, TransitionCounts, float], ExpressionBounds | LeastSquares]] = {
    "published-interval": published_intervals,
    "published-ellipsoid": published_ellipsoid,
}


def learn_as_published(model: ParametricMDP, counts: TransitionCounts, kind: str, *, error: float = ERROR) -> Learned:
    """Return the region of a published set. What follows from it is an estimate, whatever its certificate says."""
    began = perf_counter()
    measured = PUBLISHED_SETS[kind](model, counts, error)
    seconds = {"intervals": perf_counter() - began}
    name = cast("Sets", "ellipsoid") if isinstance(measured, LeastSquares) else "interval"
    evidence = Evidence.of(name, measured, whole_set(Fraction(1), tests=Fraction(0)))
    region = find_region(model, evidence.constraints)
    seconds["region"] = perf_counter() - began - seconds["intervals"]
    return Learned(model, counts, error, evidence, region, seconds)

"""Lists all kinds of confidence sets in the table ``SETS``, with everything that the package asks of a kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar

from plumdp.base.error_budget import ErrorBudget
from plumdp.base.vocabulary import Sets as Sets
from plumdp.confidence.bets import HalfSpace
from plumdp.confidence.bounds import ExpressionBounds, expression_bounds
from plumdp.confidence.least_squares import LeastSquares, least_squares
from plumdp.confidence.likelihood import likelihood_budget, likelihood_set
from plumdp.confidence.likelihood_table import likelihood_table
from plumdp.confidence.model_cache import ModelCache
from plumdp.confidence.multinomial import row_bounds
from plumdp.confidence.sets import ConfidenceSet, Evidence, whole_set
from plumdp.confidence.tolerant import tolerant_bounds, tolerant_budget, tolerant_set, tolerant_shares
from plumdp.data.counts import TransitionCounts
from plumdp.fit.drift import Drift, drift_constraints
from plumdp.fit.model_fit import ModelFit
from plumdp.learning.directions import Solvers, value_directions
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import Question
from plumdp.model.views import as_parametric, as_table
from plumdp.region.build import build_region
from plumdp.region.conflict import Conflict
from plumdp.region.ellipsoid_region import build_ellipsoid_region
from plumdp.region.l1_region import build_l1_region
from plumdp.region.likelihood_region import build_likelihood_region
from plumdp.region.shapes import Region
from plumdp.tables.fit import view_fit
from plumdp.tables.table_set import table_budget, table_set

Measured = TypeVar("Measured", bound=ConfidenceSet)

Division: TypeAlias = Callable[[ModelCache, TransitionCounts, bool], ErrorBudget]
"""A function from the model, the order of the data, and whether values are asked for, to the division of the error."""


def always(budget: ErrorBudget) -> Division:
    """Return the division that is the same for all models, pilots and questions."""
    return lambda *_: budget


_AT_ONCE = always(whole_set())


@dataclass(frozen=True)
class TolerantMethod(Generic[Measured]):
    """The functions that make a kind of set if every row may be off by a misfit."""

    measure: Callable[..., Measured]  # (model, counts, *, error, misfit)
    budget: Division
    within_drifts: Callable[[ParametricMDP, TransitionCounts, Measured, Sequence[Drift], float], Measured] | None = (
        None  # cuts the set by drift tests
    )


@dataclass(frozen=True)
class ConfidenceMethod(Generic[Measured]):
    """The functions that make a kind of confidence set from counts, and the region of the parameters from the set."""

    measure: Callable[..., Measured]  # (model, counts, *, error)
    region: Callable[[ParametricMDP, Measured], Region | Conflict]
    budget: Division = _AT_ONCE
    tolerant: TolerantMethod[Measured] | None = None
    as_tests: Callable[[Measured], Evidence] | None = None  # if the parts of the set also test the model
    half_spaces: Callable[[Measured, tuple[str, ...]], Sequence[HalfSpace]] | None = None  # for pictures
    options: tuple[str, ...] = ()  # further keywords of ``measure``
    has_directions: bool = False  # ``measure`` places bets by the pilot, and takes ``budget`` and ``cache``
    announce: Callable[[Sequence[Question], Solvers], dict[str, Any]] | None = None  # more of these, from questions
    view: Callable[[ParametricMDP], ParametricMDP] = as_parametric  # the model, as the set sees it
    fit: Callable[[ParametricMDP, TransitionCounts], ModelFit] | None = None  # if the test of the model is another one

    @property
    def is_for_tables(self) -> bool:
        """Whether it is for models whose rows are unknown, without parameters, and for no others."""
        return self.view is as_table


def within_intervals(model: ParametricMDP, bounds: ExpressionBounds) -> Region | Conflict:
    """Return the region of the parameters that lie within the given intervals."""
    return build_region(model.space, bounds.events.polynomials, bounds.event_lower, bounds.event_upper)


def _within_ellipsoid(model: ParametricMDP, fitted: LeastSquares) -> Region | Conflict:
    return build_ellipsoid_region(model.space, model.expressions, fitted)


def _within_drifts(
    model: ParametricMDP, counts: TransitionCounts, found: Evidence, drifts: Sequence[Drift], misfit: float
) -> Evidence:
    """Return a tolerant set cut by the half-spaces of drift tests that contradict the model without tolerance."""
    cuts = drift_constraints(model, counts, likelihood_table(model), drifts, found.error).widened(misfit)
    assert cuts is not None
    return replace(found, constraints=(*found.constraints, cuts))


SETS: Mapping[Sets, ConfidenceMethod[Any]] = {
    "interval": ConfidenceMethod(
        expression_bounds,
        within_intervals,
        tolerant=TolerantMethod(tolerant_bounds, always(tolerant_shares(has_bets=False, has_drifts=False))),
        half_spaces=ExpressionBounds.half_spaces,
        options=("events",),
    ),
    "l1": ConfidenceMethod(row_bounds, lambda model, balls: build_l1_region(model.space, balls)),
    "ellipsoid": ConfidenceMethod(least_squares, _within_ellipsoid),
    "likelihood": ConfidenceMethod(
        likelihood_set,
        lambda model, likelihood: build_likelihood_region(model.space, model.expressions, likelihood.constraints),
        budget=lambda cache, counts, is_asked: likelihood_budget(
            cache.table, counts.pilot, has_directions=is_asked, has_time=counts.time is not None
        ),
        tolerant=TolerantMethod(
            tolerant_set,
            lambda _, counts, is_asked: tolerant_budget(counts.pilot, has_directions=is_asked),
            _within_drifts,
        ),
        as_tests=lambda likelihood: likelihood,
        half_spaces=Evidence.half_spaces,
        has_directions=True,
        announce=lambda questions, solvers: {"directions": value_directions(questions, solvers)},
    ),
    "table": ConfidenceMethod(
        table_set,
        lambda _, bounds: bounds.region,
        budget=lambda _, counts, is_asked: table_budget(counts.pilot, is_asked=is_asked),
        has_directions=True,
        announce=lambda questions, _: {"questions": questions},
        view=as_table,
        fit=view_fit,
    ),
}
"""The kinds of confidence sets by their names (Sections 2.3, 2.4, 3 and 3.4 of the paper)."""

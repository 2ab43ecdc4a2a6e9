"""What the data say, whatever is asked: sets around the data, and the region of the parameters within all of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from numbers import Real
from time import perf_counter
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from plumdp.confidence.bounds import ExpressionBounds, Intervals, expression_bounds
from plumdp.confidence.constants import FixedNumbers, excluded_numbers, find_fixed_numbers
from plumdp.confidence.least_squares import least_squares
from plumdp.confidence.likelihood import LikelihoodSet, best_point, likelihood_set
from plumdp.confidence.multinomial import row_bounds
from plumdp.confidence.sets import ConfidenceSet, Guarantee
from plumdp.confidence.space_moments import moments
from plumdp.data.counts import TransitionCounts, require_same_graph
from plumdp.data.logs import Log
from plumdp.data.pilots import pilot_assumption
from plumdp.deprecated import renamed_keywords
from plumdp.diagnosis import diagnose
from plumdp.errors import DataError
from plumdp.model.events import Events, find_events
from plumdp.model.graph import FloatArray, IntArray
from plumdp.model.language.property import as_objective
from plumdp.model.objective import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.text import number_of, one_line
from plumdp.model_fit import ModelFit, fit_model
from plumdp.policy_search import value_directions
from plumdp.region.build import build_region
from plumdp.region.conflict import Conflict, with_findings, with_numbers
from plumdp.region.l1 import build_l1_region
from plumdp.region.likelihood_region import build_likelihood_region
from plumdp.region.shapes import Region
from plumdp.region.tangents import build_ellipsoid_region
from plumdp.shares import CONFIDENCE_SET, FALLBACK, FIT
from plumdp.solver.at_points import PointSolver, move_inside

Sets: TypeAlias = Literal["interval", "l1", "ellipsoid", "likelihood"]
"""What is drawn around the data: intervals of expressions, L1 balls of rows, an ellipsoid of parameters by least
squares, or the likelihood with half-spaces across what is asked."""

_LOGGER = logging.getLogger("plumdp")
_LOGGER.addHandler(logging.NullHandler())  # silent unless the user wants to hear

_ANNOUNCED = "what is asked was decided without looking at the data that came after the pilot"

Measured = TypeVar("Measured", bound=ConfidenceSet)


@dataclass(frozen=True)
class ConfidenceMethod(Generic[Measured]):
    """How a kind of confidence set is made from counts, and how the region of the parameters is made from it."""

    measure: Callable[..., Measured]  # (model, counts, *, error)
    region: Callable[[ParametricMDP, Measured], Region | Conflict]
    published: Callable[..., Measured] | None = None  # likewise, with what the paper publishes
    options: tuple[str, ...] = ()  # keywords that ``measure`` takes besides
    has_intervals: bool = True  # of each expression, so that there is an interval-wise relaxation
    has_directions: bool = False  # ``measure`` takes ``directions`` in which to be narrow, chosen by the pilot


@dataclass(frozen=True, eq=False)
class Learned:
    """What the data say, whatever is asked: what was drawn around them, and the region of the parameters within it.

    Everything that ``conclude`` says about any objective rests on this one region, and holds jointly with probability
    at least 1 - ``error``. The region is a ``Conflict`` if the data contradict the model.
    """

    model: ParametricMDP
    counts: TransitionCounts
    error: float
    bounds: ConfidenceSet
    region: Region | Conflict
    seconds: dict[str, float]
    fallback: float = FALLBACK  # share of the error for bounds that rest on the graph alone
    solvers: Mapping[Objective, PointSolver] = field(default_factory=dict)  # at points, for what was announced
    rests_on: tuple[str, ...] = ()  # what the confidence set assumes besides model and sampling, in words
    fit: ModelFit | None = None  # whether the model explains the data, if that was tested

    @property
    def conflict(self) -> Conflict | None:
        """Why no parameters explain the data, if none do."""
        return self.region if isinstance(self.region, Conflict) else None

    @property
    def policies(self) -> list[IntArray]:
        """The policies that the pilot chose directions for: the region is narrow where their values depend on it."""
        found = self.bounds.directions if isinstance(self.bounds, LikelihoodSet) else ()
        return [direction.policy for direction in found if direction.policy is not None]

    def at_points(self, objective: Objective) -> PointSolver:
        """Return what finds best policies at points: for an objective that was announced, the one that was used."""
        return self.solvers.get(objective) or PointSolver(self.model, objective)

    @property
    def has_estimate(self) -> bool:
        """Whether the confidence set came with an estimate; otherwise finding one takes a search of its own."""
        return isinstance(self.bounds, LikelihoodSet) and self.bounds.estimate is not None

    @cached_property
    def estimate(self) -> FloatArray:
        """The point at which the data are most likely, moved into the space: (n_parameters), an estimate."""
        own = self.bounds.estimate if isinstance(self.bounds, LikelihoodSet) else None
        found = best_point(self.model, self.counts) if own is None else own
        return move_inside(self.model, found, moments(self.model.space)[0])

    def __repr__(self) -> str:
        confidence = f"confidence {1 - self.error:.10g}"
        return one_line(self, number_of(self.counts.total, "step"), confidence, self.bounds.method, repr(self.region))


@renamed_keywords(sets="confidence_set", intervals="interval_method", paper="as_published")
def learn(
    model: ParametricMDP,
    counts: TransitionCounts | Log,
    *,
    confidence: float = 0.999,
    confidence_set: Sets = "interval",
    interval_method: Intervals | None = None,
    events: Events | None = None,
    as_published: bool = False,
    objectives: Sequence[Objective | str] = (),
) -> Learned:
    """Return what the data say, whatever is asked: the region of the parameters that explain them.

    Ask for it once and conclude for as many objectives, relaxations and policies as you like (``conclude``): all that
    follows from one region holds jointly, with the confidence given here. Numbers that the model fixes are tested as
    well; if the data exclude one, or all parameters, the region is a ``Conflict`` that says why.

    Parameters
    ----------
    confidence
        How sure everything that follows is to be, jointly.
    confidence_set
        What is drawn around the data: "interval", "l1", "ellipsoid" or "likelihood".
    interval_method, events
        For other intervals than the narrowest valid ones, see ``expression_bounds``.
    as_published
        Draw what the paper publishes, for comparison: without guarantee, and without tests of fixed numbers.
    objectives
        What will be asked. The likelihood is then narrow where the values of these depend on the parameters, as far as
        a pilot can tell; other objectives may be asked as well, and all that follows still holds jointly.

    Examples
    --------
    >>> from plumdp import case_study, conclude, parse_property, simulate
    >>> study = case_study("aircraft:20,10")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=21)
    >>> learned = learn(study.model, counts, confidence=0.99)
    >>> for text in ('Pmin=? [ F<=10 "collision" ]', 'Pmin=? [ F "collision" ]'):
    ...     certificate = conclude(learned, parse_property(text, study.model))
    ...     print(f"{text:28} {certificate.lower:.3f} {certificate.upper:.3f}")
    Pmin=? [ F<=10 "collision" ] 0.660 0.721
    Pmin=? [ F "collision" ]     0.674 0.734
    """
    error, clock = error_of(confidence), Clock()
    if isinstance(counts, Log):
        counts = counts.counts
    if not isinstance(counts, TransitionCounts):
        raise DataError(
            f"counts of type {type(counts).__name__}: write TransitionCounts(model.graph, counts, sampling), which "
            "says how the data came about: 'independent', 'trajectories' or 'adaptive'"
        )
    require_same_graph(model.graph, counts.graph)
    options = {"interval_method": interval_method, "events": events}
    chosen = {name: value for name, value in options.items() if value is not None}
    measure = _chosen_measure(confidence_set, chosen, as_published)
    solvers: dict[Objective, PointSolver] = {}
    if SETS[confidence_set].has_directions and objectives:
        solvers = {asked: PointSolver(model, asked) for asked in (as_objective(o, model) for o in objectives)}
        measure = partial(measure, directions=value_directions(model, solvers))
    fixed = None if as_published else find_fixed_numbers(model)
    measured = measure(model, counts, error=error if as_published else CONFIDENCE_SET * error)  # stage 3 (Section 2.3)
    clock.lap("intervals")
    region = SETS[confidence_set].region(model, measured)  # stage 4 (Section 3, Theorem 1)
    clock.lap("region")
    pilot = counts.pilot if SETS[confidence_set].has_directions else None
    rests_on: tuple[str, ...] = () if pilot is None else (pilot_assumption(pilot),)
    if isinstance(measured, LikelihoodSet) and measured.directions:
        rests_on += (_ANNOUNCED,)
    learned = Learned(model, counts, error, measured, region, clock.laps, solvers=solvers, rests_on=rests_on)
    return learned if fixed is None else check_fit(check_fixed_numbers(learned, fixed), fixed)


def _within_intervals(model: ParametricMDP, bounds: ExpressionBounds) -> Region | Conflict:
    return build_region(model.space, bounds.events.polynomials, bounds.event_lower, bounds.event_upper)


def learned_from(model: ParametricMDP, counts: TransitionCounts, bounds: ExpressionBounds, error: float) -> Learned:
    """Return the region of the parameters that lie within the given intervals."""
    clock = Clock()
    region = _within_intervals(model, bounds)
    clock.lap("region")
    return Learned(model, counts, error, bounds, region, clock.laps)


def check_fixed_numbers(learned: Learned, fixed: FixedNumbers) -> Learned:
    """Return the same after tests of the numbers that the model fixes: a conflict, if the data exclude one of them.

    The tests and the bounds on the graph alone get half of ``FALLBACK`` each; without fixed numbers the latter keep
    all. What is said is then wrong with at most the error: either the region misses the parameters (1 - FALLBACK - FIT,
    as it is empty only if it does), or a right number is excluded, or a bound on the graph alone does not hold.
    """
    if not len(fixed):
        return learned
    error, clock = learned.error, Clock(dict(learned.seconds))
    numbers = excluded_numbers(learned.model, fixed, learned.counts, error=FALLBACK / 2 * error, confidence=1 - error)
    region = with_numbers(learned.region, numbers) if numbers else learned.region
    clock.lap("tests")
    return replace(learned, region=region, seconds=clock.laps, fallback=FALLBACK / 2)


def check_fit(learned: Learned, fixed: FixedNumbers) -> Learned:
    """Return the same after a test of the model as a whole: a conflict, if no point explains all rows.

    A likelihood set is made of some of the tests, with the same shares of the error, so that together with the others
    they contradict the model at the whole error. Other sets have spent theirs: all tests together get ``FIT``.
    """
    clock, error = Clock(dict(learned.seconds)), learned.error
    own = learned.bounds if isinstance(learned.bounds, LikelihoodSet) else None
    fit = fit_model(learned.model, learned.counts, error=error, found=own, fixed=fixed)
    is_contradicted = fit.p_value <= (FIT * error if own is None else error)
    if own is not None and learned.conflict is not None:
        fit = replace(fit, p_value=min(fit.p_value, error))
    region = learned.region
    if is_contradicted or learned.conflict is not None:
        region = with_findings(region, diagnose(learned.model, learned.counts, fit))
    clock.lap("tests")
    return replace(learned, region=region, fit=fit, seconds=clock.laps)


def _chosen_measure(kind: Sets, options: Mapping[str, Any], as_published: bool) -> Callable[..., ConfidenceSet]:
    """Return how the data are measured; refuse options that do not go together."""
    if kind not in tuple(SETS):
        raise DataError(f"confidence_set={kind!r}: choose one of {', '.join(map(repr, SETS))}")
    method = SETS[kind]
    if options and not method.options:
        raise DataError(f"confidence_set={kind!r}: interval_method and events are for confidence_set='interval'")
    if options and as_published:
        raise DataError("as_published=True chooses intervals and events itself: leave out as_published, or the others")
    if not as_published:
        return partial(method.measure, **options)
    if method.published is None:
        raise DataError(
            f"confidence_set={kind!r}: the paper does not say how it makes such sets; leave out as_published, or "
            "choose another confidence_set"
        )
    return method.published


def error_of(confidence: float) -> float:
    """Return how often the bounds may fail, if the confidence is one."""
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise DataError(f"confidence={confidence!r}: give a number between 0 and 1, such as 0.999")
    return 1 - confidence


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
        expression_bounds, _within_intervals, published=_published_intervals, options=("interval_method", "events")
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
        has_directions=True,
    ),
}
"""One entry per kind of confidence set: how it is made, and how it becomes a region (Sections 2.3, 2.4, 3, 3.4)."""


class Clock:
    """Seconds of the stages of a calculation."""

    def __init__(self, laps: dict[str, float] | None = None) -> None:
        self.laps = {} if laps is None else laps
        self._last = perf_counter()

    def lap(self, stage: str) -> None:
        """Enter the seconds since the last stage, and say so to those who listen to the logger ``plumdp``."""
        now = perf_counter()
        self.laps[stage] = now - self._last
        self._last = now
        _LOGGER.debug("%s: %.3f s", stage, self.laps[stage])

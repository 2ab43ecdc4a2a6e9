"""What the data say, whatever is asked: sets around the data, and the region of the parameters within all of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from numbers import Real
from time import perf_counter
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from plumdp.checking.diagnosis import diagnose
from plumdp.checking.fit import ModelFit, fit_model
from plumdp.checking.smallest_misfit import smallest_misfit
from plumdp.compiled import seconds_of_compiling
from plumdp.confidence.bounds import ExpressionBounds, Intervals, expression_bounds
from plumdp.confidence.constants import FixedNumbers, excluded_numbers
from plumdp.confidence.groundwork import Groundwork
from plumdp.confidence.least_squares import least_squares
from plumdp.confidence.likelihood import LikelihoodSet, best_point, likelihood_set
from plumdp.confidence.multinomial import row_bounds
from plumdp.confidence.sets import ConfidenceSet, Guarantee
from plumdp.confidence.space_moments import moments
from plumdp.confidence.tolerant import drift_cuts, require_misfit, tolerant_bounds, tolerant_set, with_cuts
from plumdp.data.counts import TransitionCounts, require_same_graph
from plumdp.data.logs import Log
from plumdp.data.pilots import pilot_assumption
from plumdp.deprecated import renamed_keywords
from plumdp.errors import DataError
from plumdp.model.events import Events, find_events
from plumdp.model.graph import FloatArray, IntArray
from plumdp.model.language.property import as_objectives
from plumdp.model.objective import Objective
from plumdp.model.parametric import ParametricMDP
from plumdp.model.text import html_table, number_of, one_line
from plumdp.policy_search import value_directions
from plumdp.region.build import build_region
from plumdp.region.conflict import NOTHING_FITS, Conflict, with_numbers
from plumdp.region.l1 import build_l1_region
from plumdp.region.likelihood_region import build_likelihood_region
from plumdp.region.shapes import Region
from plumdp.region.tangents import build_ellipsoid_region
from plumdp.result.certificate import NO_STAGE, outward
from plumdp.shares import CONFIDENCE_SET, FALLBACK, FIT
from plumdp.solver.at_points import PointSolver, move_inside
from plumdp.threads import one_blas_thread

Sets: TypeAlias = Literal["interval", "l1", "ellipsoid", "likelihood"]
"""What is drawn around the data: intervals of expressions, L1 balls of rows, an ellipsoid of parameters by least
squares, or the likelihood with half-spaces across what is asked."""

_LOGGER = logging.getLogger("plumdp")
_LOGGER.addHandler(logging.NullHandler())  # silent unless the user wants to hear

_SHOWN = 20  # parameters in a notebook
_ANNOUNCED = "what is asked was decided without looking at the data that came after the pilot"

Measured = TypeVar("Measured", bound=ConfidenceSet)


@dataclass(frozen=True)
class ConfidenceMethod(Generic[Measured]):
    """How a kind of confidence set is made from counts, and how the region of the parameters is made from it."""

    measure: Callable[..., Measured]  # (model, counts, *, error)
    region: Callable[[ParametricMDP, Measured], Region | Conflict]
    published: Callable[..., Measured] | None = None  # likewise, with what the paper publishes
    tolerant: Callable[..., Measured] | None = None  # (model, counts, *, error, misfit): if rows may be off
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
    solvers: dict[Objective, PointSolver] = field(default_factory=dict)  # for what was announced or asked
    rests_on: tuple[str, ...] = ()  # what the confidence set assumes besides model and sampling, in words
    objectives: tuple[Objective, ...] = ()  # what was announced: certificates of all of them hold jointly
    as_published: bool = False
    fit: ModelFit | None = None  # whether the model explains the data, if that was tested
    misfit: float = 0.0  # how far rows may be off from those at one point of the space, in total variation
    groundwork: Groundwork | None = field(default=None, repr=False)  # what was found about the model alone

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
        """Return what finds best policies at points, and against nature: one for each objective, used and kept."""
        return self.solvers.setdefault(objective, PointSolver(self.model, objective))

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

    def _repr_html_(self) -> str:
        facts = [
            ("data", number_of(self.counts.total, "step")),
            ("confidence", f"{1 - self.error:.10g}"),
            ("confidence set", self.bounds.method),
        ]
        if self.conflict is not None:
            facts += [("contradicted", text) for text in str(self.conflict).split("; ")]
        elif not isinstance(self.region, Conflict):
            ends = zip(self.region.names, self.region.lower, self.region.upper, strict=True)
            known = list(ends)[: self.model.space.dimension]
            facts += [(name, f"{outward(low, -1)} to {outward(high, 1)}") for name, low, high in known[:_SHOWN]]
            facts += [("…", number_of(len(known) - _SHOWN, "more parameter"))] if len(known) > _SHOWN else []
        if self.fit is not None:
            facts.append(("model test", f"p = {outward(self.fit.p_value, 1, 2).lower()}"))
        return html_table(facts)


@renamed_keywords(sets="confidence_set", intervals="interval_method", paper="as_published")
@one_blas_thread()
def learn(
    model: ParametricMDP,
    counts: TransitionCounts | Log,
    *,
    confidence: float = 0.999,
    confidence_set: Sets | None = None,
    interval_method: Intervals | None = None,
    events: Events | None = None,
    as_published: bool = False,
    objectives: Sequence[Objective | str] = (),
    misfit: float = 0.0,
    like: Learned | None = None,
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
        What is drawn around the data: "interval", "l1", "ellipsoid" or "likelihood". By default the likelihood, or
        intervals if one of the next three options is given, which are about intervals (``default_set``).
    interval_method, events
        For other intervals than the narrowest valid ones, see ``expression_bounds``.
    as_published
        Draw what the paper publishes, for comparison: without guarantee, and without tests of fixed numbers.
    objectives
        What will be asked. The likelihood is then narrow where the values of these depend on the parameters, as far as
        a pilot can tell; other objectives may be asked as well, and all that follows still holds jointly.
    misfit
        How far every row of the model may be off, in total variation: what follows stays valid then. Sets are
        "interval" or "likelihood", which here means half-spaces and intervals, without a likelihood.
    like
        What was learned before about the same model, from other data or with another confidence: it saves the time
        for what depends on the model alone.

    Examples
    --------
    >>> from plumdp import case_study, conclude, simulate
    >>> study = case_study("aircraft:20,10")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=21)
    >>> texts = ['Pmin=? [ F<=10 "collision" ]', 'Pmin=? [ F "collision" ]']
    >>> learned = learn(study.model, counts, confidence=0.99, objectives=texts)
    >>> for text in texts:
    ...     certificate = conclude(learned, text)
    ...     print(f"{text:28} {certificate.lower:.3f} {certificate.upper:.3f}")
    Pmin=? [ F<=10 "collision" ] 0.690 0.705
    Pmin=? [ F "collision" ]     0.703 0.719
    """
    error, clock = error_of(confidence), Clock()
    if isinstance(counts, Log):
        counts = counts.counts
    if not isinstance(counts, TransitionCounts):
        raise DataError(
            f"counts of type {type(counts).__name__}: write TransitionCounts(model.graph, counts, sampling), which "
            "says how the data came about: 'independent', 'trajectories' or 'adaptive'"
        )
    if model.distinct is not None:  # stored on disk: learn from its distinct rows, which say all about the parameters
        found = learn(
            model.distinct.model,
            counts,
            confidence=confidence,
            confidence_set=confidence_set,
            interval_method=interval_method,
            events=events,
            as_published=as_published,
            misfit=misfit,
        )
        return replace(found, model=model, objectives=as_objectives(objectives, model))
    require_same_graph(model.graph, counts.graph)
    options = {"interval_method": interval_method, "events": events}
    chosen = {name: value for name, value in options.items() if value is not None}
    if confidence_set is None:
        confidence_set = default_set(chosen, as_published=as_published)
    misfit = require_misfit(misfit)
    groundwork = _groundwork(model, like)
    measure = _chosen_measure(confidence_set, chosen, as_published, misfit)
    asked = as_objectives(objectives, model)
    solvers = {} if like is None else like.solvers
    if SETS[confidence_set].has_directions and asked:
        own = {objective: solvers.setdefault(objective, PointSolver(model, objective)) for objective in asked}
        measure = partial(measure, directions=value_directions(model, own))
    if SETS[confidence_set].has_directions and not misfit:
        measure = partial(measure, known=groundwork)
    fixed = None if as_published else groundwork.fixed
    measured = measure(model, counts, error=error if as_published else CONFIDENCE_SET * error)  # stage 3 (Section 2.3)
    clock.lap("intervals")
    region = SETS[confidence_set].region(model, measured)  # stage 4 (Section 3, Theorem 1)
    clock.lap("region")
    pilot = counts.pilot if SETS[confidence_set].has_directions else None
    rests_on: tuple[str, ...] = () if pilot is None else (pilot_assumption(pilot),)
    if isinstance(measured, LikelihoodSet) and measured.directions:
        rests_on += (_ANNOUNCED,)
    learned = Learned(
        model, counts, error, measured, region, clock.laps, solvers=solvers, rests_on=rests_on, misfit=misfit
    )
    learned = replace(learned, objectives=asked, as_published=as_published, groundwork=groundwork)
    return learned if fixed is None else check_fit(check_fixed_numbers(learned, fixed), fixed)


def _groundwork(model: ParametricMDP, like: Learned | None) -> Groundwork:
    """Return what was found about a model before; refuse what was learned about another one."""
    if like is None or like.groundwork is None:
        return Groundwork(model)
    if like.model is not model:
        raise DataError("like: that was learned about another model; leave it out")
    return like.groundwork


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
    share, misfit = FALLBACK / 2 * error, learned.misfit
    numbers = excluded_numbers(learned.model, fixed, learned.counts, error=share, confidence=1 - error, misfit=misfit)
    region = with_numbers(learned.region, numbers) if numbers else learned.region
    clock.lap("tests")
    return replace(learned, region=region, seconds=clock.laps, fallback=FALLBACK / 2)


def default_set(options: Mapping[str, Any], *, as_published: bool) -> Sets:
    """Return the confidence set that is taken if none is named: the likelihood.

    Options that are about intervals (``interval_method``, ``events``) ask for intervals, and so does ``as_published``,
    since those are what the paper is about.

    >>> default_set({}, as_published=False), default_set({"interval_method": "hoeffding"}, as_published=False)
    ('likelihood', 'interval')
    """
    return "interval" if options or as_published else "likelihood"


def check_fit(learned: Learned, fixed: FixedNumbers) -> Learned:
    """Return the same after a test of the model as a whole: a conflict, if no point explains all rows.

    A likelihood set is made of some of the tests, with the same shares of the error, so that together with the others
    they contradict the model at the whole error. Other sets have spent theirs: all tests together get ``FIT``. If rows
    may be off by a misfit, the p-value is still that of the model as it stands; but the drifts that speak against it,
    with as much as the misfit may have won, cut the region.
    """
    clock, error, found = Clock(dict(learned.seconds)), learned.error, learned.bounds
    own = found if isinstance(found, LikelihoodSet) and not learned.misfit else None
    fit = fit_model(learned.model, learned.counts, error=error, found=own, fixed=fixed, known=learned.groundwork)
    if learned.misfit:
        learned = replace(learned, region=_within_drifts(learned, fit))
    elif own is not None and learned.conflict is not None:
        fit = replace(fit, p_value=min(fit.p_value, error))
    elif learned.conflict is None and fit.p_value <= (FIT * error if own is None else error):
        learned = replace(learned, region=NOTHING_FITS)
    if learned.conflict is not None:
        learned = replace(learned, region=replace(learned.conflict, findings=_findings(learned, fit)))
    clock.lap("tests")
    return replace(learned, fit=fit, seconds=clock.laps)


def _within_drifts(learned: Learned, fit: ModelFit) -> Region | Conflict:
    """Return the region of a tolerant set, cut by drift tests that contradict the model without tolerance."""
    found = learned.bounds
    if not isinstance(found, LikelihoodSet) or learned.conflict is not None or not fit.drifts:
        return learned.region
    cuts = drift_cuts(learned.model, found.table, fit.drifts)
    found = with_cuts(found, learned.counts, cuts, learned.misfit)
    return build_likelihood_region(learned.model.space, learned.model.expressions, found)


def _findings(learned: Learned, fit: ModelFit) -> tuple[str, ...]:
    """Return where model and data differ, what to try, and how far rows would have to be off, in words."""
    model, counts, found = learned.model, learned.counts, learned.bounds
    said = diagnose(model, counts, fit, point=found.estimate if isinstance(found, LikelihoodSet) else None)
    known = found.directions if isinstance(found, LikelihoodSet) else ()
    directions = (lambda _: known) if known else None
    off = smallest_misfit(model, counts, error=learned.error, directions=directions, drifts=fit.drifts)
    if not learned.misfit < off < 1:
        return said
    return (*said, f"the data would not contradict a model whose rows may be off by {off:g}: misfit={off:g} or more")


def _chosen_measure(
    kind: Sets, options: Mapping[str, Any], as_published: bool, misfit: float
) -> Callable[..., ConfidenceSet]:
    """Return how the data are measured; refuse options that do not go together."""
    if kind not in tuple(SETS):
        raise DataError(f"confidence_set={kind!r}: choose one of {', '.join(map(repr, SETS))}")
    method = SETS[kind]
    if options and not method.options:
        raise DataError(f"confidence_set={kind!r}: interval_method and events are for confidence_set='interval'")
    if options and as_published:
        raise DataError("as_published=True chooses intervals and events itself: leave out as_published, or the others")
    if misfit:
        return _tolerant_measure(kind, bool(options), as_published, misfit)
    if not as_published:
        return partial(method.measure, **options)
    if method.published is None:
        raise DataError(
            f"confidence_set={kind!r}: the paper does not say how it makes such sets; leave out as_published, or "
            "choose another confidence_set"
        )
    return method.published


def _tolerant_measure(kind: Sets, has_options: bool, as_published: bool, misfit: float) -> Callable[..., ConfidenceSet]:
    """Return how the data are measured if rows may be off; refuse what has no proof then."""
    if as_published:
        raise DataError(
            f"misfit={misfit:g}: what the paper publishes has no tolerance; leave out as_published or misfit"
        )
    if has_options:
        raise DataError(f"misfit={misfit:g} chooses intervals and events itself: leave out interval_method and events")
    tolerant = SETS[kind].tolerant
    if tolerant is None:
        known = " or ".join(repr(name) for name, each in SETS.items() if each.tolerant is not None)
        raise DataError(f"misfit={misfit:g}: there is no tolerant set of the kind {kind!r}; choose {known}")
    return partial(tolerant, misfit=misfit)


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
        expression_bounds,
        _within_intervals,
        published=_published_intervals,
        tolerant=tolerant_bounds,
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
        has_directions=True,
    ),
}
"""One entry per kind of confidence set: how it is made, and how it becomes a region (Sections 2.3, 2.4, 3, 3.4)."""


class Clock:
    """Seconds of the stages of a calculation; those of compiling kernels, if any, are an entry of their own."""

    def __init__(self, laps: dict[str, float] | None = None) -> None:
        self.laps = {} if laps is None else laps
        self._last, self._compiling = perf_counter(), seconds_of_compiling()

    def lap(self, stage: str) -> None:
        """Enter the seconds since the last stage, and say so to those who listen to the logger ``plumdp``."""
        now, compiling = perf_counter(), seconds_of_compiling()
        compiled = compiling - self._compiling
        self.laps[stage] = self.laps.get(stage, 0.0) + max(now - self._last - compiled, 0.0)
        if compiled > 0:
            self.laps[NO_STAGE] = self.laps.get(NO_STAGE, 0.0) + compiled
        self._last, self._compiling = now, compiling
        _LOGGER.debug("%s: %.3f s", stage, self.laps[stage])

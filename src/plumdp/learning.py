"""What the data say, whatever is asked: sets around the data, and the region of the parameters within all of them."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from numbers import Real
from time import perf_counter
from typing import Literal, TypeAlias, get_args

from plumdp.confidence.bounds import ExpressionBounds, Intervals, expression_bounds
from plumdp.confidence.constants import FixedNumbers, excluded_numbers, find_fixed_numbers
from plumdp.confidence.least_squares import LeastSquares, least_squares
from plumdp.confidence.multinomial import RowBounds, row_bounds
from plumdp.data.counts import TransitionCounts, require_same_graph
from plumdp.data.logs import Log
from plumdp.errors import DataError
from plumdp.model.events import Events, find_events
from plumdp.model.parametric import ParametricMDP
from plumdp.model.text import number_of, one_line
from plumdp.region.build import build_region
from plumdp.region.conflict import Conflict, with_numbers
from plumdp.region.ellipsoid import Ellipsoid
from plumdp.region.l1 import build_l1_region
from plumdp.region.shapes import Polytope
from plumdp.region.tangents import build_ellipsoid_region

Sets: TypeAlias = Literal["interval", "l1", "ellipsoid"]
"""What is drawn around the data: intervals of expressions, L1 balls of rows, or an ellipsoid of parameters."""

_LOGGER = logging.getLogger("plumdp")
_LOGGER.addHandler(logging.NullHandler())  # silent unless the user wants to hear

FALLBACK = 0.05  # share of the error that is kept for the case that the model is contradicted, and for tests of it


@dataclass(frozen=True, eq=False)
class Learned:
    """What the data say, whatever is asked: what was drawn around them, and the region of the parameters within it.

    Everything that ``conclude`` says about any objective rests on this one region, and holds jointly with probability
    at least 1 - ``error``. The region is a ``Conflict`` if the data contradict the model.
    """

    model: ParametricMDP
    counts: TransitionCounts
    error: float
    bounds: ExpressionBounds | RowBounds | LeastSquares
    region: Polytope | Ellipsoid | Conflict
    seconds: dict[str, float]
    fallback: float = FALLBACK  # share of the error for bounds that rest on the graph alone

    def __repr__(self) -> str:
        confidence = f"confidence {1 - self.error:.10g}"
        return one_line(self, number_of(self.counts.total, "step"), confidence, self.bounds.method, repr(self.region))


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
    """Return what the data say, whatever is asked: the region of the parameters that explain them.

    Ask for it once and conclude for as many objectives, relaxations and policies as you like (``conclude``): all that
    follows from one region holds jointly, with the confidence given here. Numbers that the model fixes are tested as
    well; if the data exclude one, or all parameters, the region is a ``Conflict`` that says why.

    Parameters
    ----------
    confidence
        How sure everything that follows is to be, jointly.
    sets
        What is drawn around the data: "interval", "l1" or "ellipsoid".
    intervals, events
        For other intervals than the narrowest valid ones, see ``expression_bounds``.
    paper
        Draw what the paper publishes, for comparison: without guarantee, and without tests of fixed numbers.

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
    _check_sets(sets, intervals, events, paper)
    share = error if paper else (1 - FALLBACK) * error
    fixed = None if paper else find_fixed_numbers(model)
    if sets == "interval":
        bounds = (
            published_bounds(model, counts, published_events(model), error=share)
            if paper
            else expression_bounds(model, counts, error=share, intervals=intervals, events=events)
        )
        clock.lap("intervals")
        learned = learned_from(model, counts, bounds, error, clock.laps)
        return learned if fixed is None else check_fixed_numbers(learned, fixed)
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
    learned = Learned(model, counts, error, around, region, clock.laps)
    return learned if fixed is None else check_fixed_numbers(learned, fixed)


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


def check_fixed_numbers(learned: Learned, fixed: FixedNumbers) -> Learned:
    """Return the same after tests of the numbers that the model fixes: a conflict, if the data exclude one of them.

    The tests and the bounds on the graph alone get half of ``FALLBACK`` each; without fixed numbers the latter keep
    all. What is said is then wrong with at most the error: either the region misses the parameters (1 - FALLBACK, as
    it is empty only if it does), or a right number is excluded, or a bound on the graph alone does not hold.
    """
    if not len(fixed):
        return learned
    error, clock = learned.error, Clock(dict(learned.seconds))
    numbers = excluded_numbers(learned.model, fixed, learned.counts, error=FALLBACK / 2 * error, confidence=1 - error)
    region = with_numbers(learned.region, numbers) if numbers else learned.region
    clock.lap("tests")
    return replace(learned, region=region, seconds=clock.laps, fallback=FALLBACK / 2)


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
        """Enter the seconds since the last stage, and say so to those who listen to the logger ``plumdp``."""
        now = perf_counter()
        self.laps[stage] = now - self._last
        self._last = now
        _LOGGER.debug("%s: %.3f s", stage, self.laps[stage])

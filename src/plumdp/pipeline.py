"""From a model, counts and an objective to a policy with a guarantee: the paper on one screen. Read this first."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from plumdp import __version__
from plumdp.confidence.bounds import ExpressionBounds, Intervals, expression_bounds
from plumdp.confidence.least_squares import LeastSquares, least_squares
from plumdp.confidence.multinomial import RowBounds, row_bounds
from plumdp.confidence.untied import untied_bounds
from plumdp.data.counts import Sampling, TransitionCounts, require_same_graph
from plumdp.data.logs import Log
from plumdp.errors import DataError
from plumdp.model.events import Events, find_events
from plumdp.model.objective import Objective, Reach, Reward
from plumdp.model.parametric import ParametricMDP
from plumdp.region.build import Conflict, build_region
from plumdp.region.ellipsoid import Ellipsoid
from plumdp.region.l1 import build_l1_region
from plumdp.region.shapes import Polytope
from plumdp.region.tangents import build_ellipsoid_region
from plumdp.relaxation.intervals import IntervalMDP
from plumdp.relaxation.relax import expression_wise, interval_wise, parameter_wise, rectangular
from plumdp.result.certificate import CERTIFIED, CONTRADICTED, NO_GUARANTEE, VACUOUS, Certificate, Relaxation
from plumdp.result.policy import PolicyTable
from plumdp.solver.evaluate import evaluate
from plumdp.solver.solve import Solution, solve

Sets: TypeAlias = Literal["interval", "l1", "ellipsoid"]
"""What is drawn around the data: intervals of expressions, L1 balls of rows, or an ellipsoid of parameters."""

FALLBACK = 0.05  # share of the error that is kept for the case that the model is contradicted
_FALLBACK_INTERVALS = "beta-binomial, one for each transition"


@dataclass(frozen=True, eq=False)
class Learned:
    """What the data say, whatever is asked: intervals, and the region of the points within all of them."""

    model: ParametricMDP
    counts: TransitionCounts
    error: float
    bounds: ExpressionBounds | RowBounds | LeastSquares
    region: Polytope | Ellipsoid | Conflict
    seconds: dict[str, float]


def certify(
    model: ParametricMDP,
    counts: TransitionCounts | Log,
    objective: Objective,
    *,
    confidence: float = 0.999,
    relaxation: Relaxation = "expression",
    sets: Sets = "interval",
    intervals: Intervals | None = None,
    events: Events | None = None,
    paper: bool = False,
    policy: npt.ArrayLike | None = None,
    precision: float = 1e-6,
) -> Certificate:
    """Return a policy and bounds on its value that hold with the given confidence (Theorem 1 of the paper).

    The policy is the best against the worst that the relaxation allows, or the one that is given. ``sets`` says what is
    drawn around the data. ``intervals`` and ``events`` are for those who want other intervals than the narrowest valid
    ones (see ``expression_bounds``). ``paper=True`` draws what the paper publishes, for comparison: without guarantee.

    >>> from plumdp import benchmark, simulate
    >>> study = benchmark("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26)
    >>> certificate = certify(study.model, counts, study.objective)
    >>> certificate.status, certificate.lower < certificate.upper
    ('certified', True)
    """
    learned = learn(model, counts, confidence=confidence, sets=sets, intervals=intervals, events=events, paper=paper)
    return conclude(learned, objective, relaxation=relaxation, policy=policy, precision=precision)


def compare(
    model: ParametricMDP,
    counts: TransitionCounts | Log,
    objective: Objective,
    *,
    confidence: float = 0.999,
    relaxations: Sequence[Relaxation] | None = None,
    sets: Sets = "interval",
    intervals: Intervals | None = None,
    events: Events | None = None,
    paper: bool = False,
    policy: npt.ArrayLike | None = None,
    precision: float = 1e-6,
) -> list[Certificate]:
    """Return a certificate for each relaxation from the same data, each with its own policy unless one is given.

    >>> from plumdp import benchmark, simulate
    >>> study = benchmark("aircraft:20,10")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=21)
    >>> for certificate in compare(study.model, counts, study.objective):
    ...     print(f"{certificate.relaxation:12} {certificate.lower:.3f} {certificate.upper:.3f}")
    interval     0.173 0.433
    parameter    0.182 0.374
    expression   0.255 0.341
    rectangular  0.262 0.333
    """
    learned = learn(model, counts, confidence=confidence, sets=sets, intervals=intervals, events=events, paper=paper)
    chosen = get_args(Relaxation)[sets == "ellipsoid" :] if relaxations is None else relaxations
    return [conclude(learned, objective, relaxation=r, policy=policy, precision=precision) for r in chosen]


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
    if not 0 < confidence < 1:
        raise DataError(f"confidence={confidence}: write a number between 0 and 1, such as 0.999")
    if isinstance(counts, Log):
        counts = counts.counts
    require_same_graph(model.graph, counts.graph)
    _check_sets(sets, intervals, events, paper)
    error, clock = 1 - confidence, Clock()
    share = error if paper else (1 - FALLBACK) * error
    if sets == "interval":
        bounds = (
            _published_bounds(model, counts, share)
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


def _published_bounds(model: ParametricMDP, counts: TransitionCounts, error: float) -> ExpressionBounds:
    """Return a Clopper–Pearson interval for each unknown expression, f and 1 - f apart, however the data came about."""
    events = find_events(model, merge_complements=False)
    bounds = expression_bounds(model, counts, error=error, intervals="clopper-pearson", events=events)
    return replace(bounds, method="Clopper–Pearson for each expression, as published", guarantee="none")


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


def conclude(
    learned: Learned,
    objective: Objective,
    *,
    relaxation: Relaxation = "expression",
    policy: npt.ArrayLike | None = None,
    precision: float = 1e-6,
) -> Certificate:
    """Return what follows for an objective: nature at its worst makes the policy, and bounds its value on one side."""
    if policy is not None and np.asarray(policy).dtype.kind == "f":
        raise DataError("a certificate has one action per state: give choice numbers; evaluate values drawn policies")
    clock = Clock(dict(learned.seconds))
    uncertain = relax(learned, relaxation)
    clock.lap("relaxation")
    if policy is None and objective.steps is not None:  # solve may change its choices from step to step
        policy = solve(uncertain, objective, nature="robust", precision=precision).policy
    worst = (
        solve(uncertain, objective, nature="robust", precision=precision)
        if policy is None
        else evaluate(uncertain, policy, objective, nature="robust", precision=precision)
    )
    chosen = worst.policy if policy is None else policy
    best = evaluate(uncertain, chosen, objective, nature="optimistic", precision=precision)
    clock.lap("solver")
    return _certificate(learned, objective, relaxation, worst, best, clock.laps)


def relax(learned: Learned, relaxation: Relaxation) -> IntervalMDP:
    """Return what nature may do; if no parameters explain the data, what the graph alone allows."""
    model, bounds, region = learned.model, learned.bounds, learned.region
    if relaxation not in get_args(Relaxation):
        raise DataError(f"relaxation={relaxation!r}: write one of {', '.join(map(repr, get_args(Relaxation)))}")
    if isinstance(region, Conflict):
        lower, upper = untied_bounds(learned.counts, error=FALLBACK * learned.error)
        return IntervalMDP(model.graph, np.arange(model.graph.n_transitions, dtype=np.int32), lower, upper)
    tied = None if isinstance(bounds, LeastSquares) else interval_wise(model, bounds)
    if relaxation == "interval":
        if tied is None:
            raise DataError("an ellipsoid has no intervals of its own: take another relaxation, such as 'expression'")
        return tied
    if relaxation == "parameter":
        return parameter_wise(model, region)
    return (expression_wise if relaxation == "expression" else rectangular)(model, region, within=tied)


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


def _certificate(
    learned: Learned,
    objective: Objective,
    relaxation: Relaxation,
    worst: Solution,
    best: Solution,
    seconds: dict[str, float],
) -> Certificate:
    model, region = learned.model, learned.region
    start = model.graph.initial_state
    low, high = (worst, best) if objective.direction == "max" else (best, worst)
    bound = float(low.lower[start] if objective.direction == "max" else high.upper[start])
    is_contradicted, is_proved = isinstance(region, Conflict), learned.bounds.guarantee != "none"
    return Certificate(
        lower=float(low.lower[start]),
        upper=float(high.upper[start]),
        policy=PolicyTable(model.graph, worst.policy),
        objective=objective.text,
        direction=objective.direction,
        confidence=1 - learned.error,
        relaxation="untied" if is_contradicted else relaxation,
        intervals=_FALLBACK_INTERVALS if is_contradicted else learned.bounds.method,
        guarantee="finite-sample, anytime" if is_contradicted and is_proved else learned.bounds.guarantee,
        assumptions=_assumptions(learned),
        status=status_of(learned, objective, bound),
        reason=str(region) if isinstance(region, Conflict) else "",
        parameters={} if isinstance(region, Conflict) else _box(region, model.space.dimension),
        solver=worst.status if worst.status != "closed" else best.status,
        seconds=seconds,
        provenance={
            "plumdp": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "model": model.graph.fingerprint,
            "steps": f"{learned.counts.total}",
        },
    )


def status_of(learned: Learned, objective: Objective, bound: float) -> str:
    """Return what may be said of the bound that a policy was made for."""
    if learned.bounds.guarantee == "none":
        return NO_GUARANTEE
    if isinstance(learned.region, Conflict):
        return CONTRADICTED
    return VACUOUS if _is_vacuous(objective, bound) else CERTIFIED


def _is_vacuous(objective: Objective, bound: float) -> bool:
    if objective.direction == "min":
        return bound >= (1 if isinstance(objective, Reach) else np.inf)
    can_be_negative = isinstance(objective, Reward) and (objective.steps is not None or objective.discount is not None)
    return bound <= 0 and not can_be_negative


def _box(region: Polytope | Ellipsoid, n_parameters: int) -> dict[str, tuple[float, float]]:
    """Return the bounds of the parameters, which come before products of them."""
    columns = zip(region.names, region.lower, region.upper, strict=True)
    return {name: (float(low), float(high)) for name, low, high in list(columns)[:n_parameters]}


_SAMPLED: dict[Sampling, str] = {
    "independent": "the number of samples of each choice was fixed beforehand",
    "trajectories": "runs are independent, under one policy, and their number was fixed beforehand",
    "adaptive": "policy and number of runs may depend on what was seen",
}


def _assumptions(learned: Learned) -> tuple[str, ...]:
    """Return what the confidence rests on, in words."""
    structure = "the transitions of the model are all there are, and the next state depends on state and action alone"
    tied = "the expressions of the model are right for some parameters of its space"
    bounds = learned.bounds
    if isinstance(learned.region, Conflict) or bounds.guarantee == "finite-sample, anytime":
        sampled = "policy and end of the data may depend on what was seen before, not on what was not"
    elif bounds.guarantee == "asymptotic":
        sampled = f"{_SAMPLED[learned.counts.sampling]}, and so large that asymptotics apply (no finite-sample proof)"
    else:
        sampled = _SAMPLED[learned.counts.sampling]
    return (structure, sampled) if isinstance(learned.region, Conflict) else (structure, tied, sampled)

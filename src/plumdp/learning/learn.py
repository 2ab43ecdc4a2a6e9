"""``learn``: from counts to a confidence set, the region of the parameters within it, and tests of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from plumdp.base.clock import Clock
from plumdp.base.error_budget import ErrorBudget
from plumdp.base.errors import DataError
from plumdp.base.progress import working
from plumdp.base.threads import one_blas_thread
from plumdp.confidence.bounds import Intervals
from plumdp.confidence.constants import FixedNumbers, excluded_numbers
from plumdp.confidence.groundwork import Groundwork
from plumdp.confidence.sets import ConfidenceSet, Guarantee
from plumdp.data.counts import Pilot, TransitionCounts, counts_of, require_same_graph
from plumdp.data.logs import Log
from plumdp.data.pilots import drawn_pilot, pilot_assumption
from plumdp.fit.diagnosis import diagnose
from plumdp.fit.model_fit import ModelFit, fit_model
from plumdp.fit.smallest_misfit import smallest_misfit
from plumdp.learning.directions import solver_of, value_directions
from plumdp.learning.learned import Learned
from plumdp.learning.methods import SETS, ConfidenceMethod, Sets
from plumdp.learning.options import chosen_method, error_of
from plumdp.learning.storage import storage_of
from plumdp.model.events import Events
from plumdp.model.parametric import ParametricMDP
from plumdp.model.question import Asked, ask_all
from plumdp.region.conflict import NOTHING_FITS, Conflict, with_numbers
from plumdp.region.shapes import Region


@one_blas_thread()
@working("learning from the data")
def learn(
    model: ParametricMDP,
    counts: TransitionCounts | Log,
    *,
    objectives: Sequence[Asked] = (),
    like: Learned | None = None,
    confidence: float = 0.999,
    confidence_set: Sets | None = None,
    interval_method: Intervals | None = None,
    events: Events | None = None,
    misfit: float = 0.0,
) -> Learned:
    """Return what the data say, whatever is asked: the region of the parameters that explain them.

    Ask for it once and conclude for as many objectives, relaxations and policies as you like (``conclude``): all that
    follows from one region holds jointly, with the confidence given here. Numbers that the model fixes are tested as
    well; if the data exclude one, or all parameters, the region is a ``Conflict`` that says why.

    Parameters
    ----------
    objectives
        What will be asked. The likelihood is then narrow where the values of these depend on the parameters, as far as
        a pilot can tell; other objectives may be asked as well, and all that follows still holds jointly.
    like
        What was learned before about the same model, from other data or with another confidence: it saves the time
        for what depends on the model alone.
    confidence, confidence_set, interval_method, events, misfit
        As of ``certify``.

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
    error, clock, data, counted = error_of(confidence), Clock(), counts_of(counts), model.counted
    require_same_graph(counted.graph, data.graph)
    kind, measure = chosen_method(confidence_set, interval_method, events, misfit)
    method, groundwork = SETS[kind], _groundwork(counted, like)
    solvers = {} if like is None else {asked: solver.without_memory() for asked, solver in like.solvers.items()}
    asked = ask_all(objectives, model)
    if method.has_directions and data.pilot is None:
        data = replace(data, pilot=drawn_pilot(data))
    is_asked = method.has_directions and bool(asked) and storage_of(model).has_points
    budget = _budget(method, groundwork, data.pilot, is_asked=is_asked, misfit=misfit)  # before any data are seen
    if is_asked:
        for question in asked:
            solver_of(question, solvers)
        measure = partial(measure, directions=value_directions(asked, solvers))
    if method.has_directions:
        measure = partial(measure, budget=budget) if misfit else partial(measure, budget=budget, known=groundwork)
    measured = measure(counted, data, error=budget.error_of_set(error))  # stage 3 (Section 2.3)
    clock.lap("intervals")
    region = method.region(counted, measured)  # stage 4 (Section 3, Theorem 1)
    clock.lap("region")
    learned = Learned(
        counted,
        data,
        error,
        budget,
        measured,
        region,
        clock.laps,
        solvers=solvers,
        rests_on=_rests_on(method, measured, data.pilot),
        questions=asked,
        misfit=float(misfit),
        groundwork=groundwork,
        options={
            "confidence_set": kind,
            "interval_method": interval_method,
            "events": events is not None,  # events are no plain data
            "misfit": float(misfit),
        },
    )
    if method.is_tested:
        learned = check_fit(check_fixed_numbers(learned, groundwork.fixed), groundwork.fixed)
    return replace(learned, model=model)  # so far it was the model of the counts


def _budget(
    method: ConfidenceMethod[Any], groundwork: Groundwork, pilot: Pilot | None, *, is_asked: bool, misfit: float
) -> ErrorBudget:
    """Return how the error is divided, given the model, the order of the data, and whether values are asked for."""
    divide = method.tolerant.budget if misfit and method.tolerant is not None else method.budget
    budget = divide(groundwork, pilot, is_asked)
    return budget.with_fixed_numbers() if method.is_tested and len(groundwork.fixed) else budget


def _rests_on(method: ConfidenceMethod[Any], measured: ConfidenceSet, pilot: Pilot | None) -> tuple[str, ...]:
    """Return what a confidence set, and the test of the model, assume besides model and sampling, in words."""
    if measured.rests_on or pilot is None or not method.is_tested:
        return measured.rests_on
    return (f"for the test of the model: {pilot_assumption(pilot)}",)


def _groundwork(model: ParametricMDP, like: Learned | None) -> Groundwork:
    """Return what was found about a model before; refuse what was learned about another one."""
    if like is None or like.groundwork is None:
        return Groundwork(model)
    if like.model.counted is not model:
        raise DataError("like: that was learned about another model; leave it out")
    return like.groundwork


def learned_from(
    model: ParametricMDP, counts: TransitionCounts, bounds: ConfidenceSet, error: float, budget: ErrorBudget
) -> Learned:
    """Return the region of the parameters that lie within a confidence set."""
    clock = Clock()
    region = SETS[bounds.kind].region(model, bounds)
    clock.lap("region")
    return Learned(model, counts, error, budget, bounds, region, clock.laps)


def check_fixed_numbers(learned: Learned, fixed: FixedNumbers) -> Learned:
    """Return the same after tests of the numbers that the model fixes: a conflict, if the data exclude one of them.

    The tests have a share of their own (``ErrorBudget.with_fixed_numbers``).
    """
    if not len(fixed):
        return learned
    error, clock = learned.error, Clock(dict(learned.seconds))
    share, misfit = learned.budget.error_of("fixed_numbers", error), learned.misfit
    is_anytime = learned.bounds.guarantee in (Guarantee.ANYTIME, Guarantee.PLANNED)  # no test may need more
    data = replace(learned.counts, sampling="adaptive") if is_anytime else learned.counts
    numbers = excluded_numbers(learned.model, fixed, data, error=share, confidence=1 - error, misfit=misfit)
    region = with_numbers(learned.region, numbers) if numbers else learned.region
    clock.lap("tests")
    return replace(learned, region=region, seconds=clock.laps)


def check_fit(learned: Learned, fixed: FixedNumbers) -> Learned:
    """Return the same after a test of the model as a whole: a conflict, if no point explains all rows.

    A likelihood set is made of some of the tests, with the same shares of the error, so that together with the others
    they contradict the model at the whole error. Other sets have spent theirs: all tests have ``model_test``. If rows
    may be off by a misfit, the p-value is still that of the model as it stands; but the drifts that speak against it,
    with as much as the misfit may have won, cut the region.
    """
    clock, error, as_tests = Clock(dict(learned.seconds)), learned.error, SETS[learned.kind].as_tests
    own = as_tests(learned.bounds) if as_tests is not None and not learned.misfit else None
    rejects_at = error if own is not None else learned.budget.error_of("model_test", error)
    fit = fit_model(learned.model, learned.counts, error=error, found=own, fixed=fixed, known=learned.groundwork)
    if learned.misfit:
        learned = replace(learned, region=_within_drifts(learned, fit))
    elif own is not None and learned.conflict is not None:
        fit = replace(fit, p_value=min(fit.p_value, error))
    elif learned.conflict is None and fit.p_value <= rejects_at:
        learned = replace(learned, region=NOTHING_FITS)
    if learned.conflict is not None:
        learned = replace(learned, region=replace(learned.conflict, findings=_findings(learned, fit)))
    clock.lap("tests")
    return replace(learned, fit=fit, seconds=clock.laps)


def _within_drifts(learned: Learned, fit: ModelFit) -> Region | Conflict:
    """Return the region of a tolerant set, cut by drift tests that contradict the model without tolerance."""
    method = SETS[learned.kind]
    cut = None if method.tolerant is None else method.tolerant.within_drifts
    if cut is None or learned.conflict is not None or not fit.drifts:
        return learned.region
    return method.region(learned.model, cut(learned.model, learned.counts, learned.bounds, fit.drifts, learned.misfit))


def _findings(learned: Learned, fit: ModelFit) -> tuple[str, ...]:
    """Return where model and data differ, what to try, and how far rows would have to be off, in words."""
    model, counts, known = learned.model, learned.counts, learned.bounds.directions
    said = diagnose(model, counts, fit, point=learned.best_point)
    directions = (lambda _: known) if known else None
    off = smallest_misfit(model, counts, error=learned.error, directions=directions, drifts=fit.drifts)
    if not learned.misfit < off < 1:
        return said
    return (
        *said,
        f"the data would not contradict a model whose rows may be off by {off:g}: a misfit of {off:g} or more",
    )

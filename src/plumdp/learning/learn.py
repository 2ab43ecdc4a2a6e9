"""Makes the confidence set and the region of the parameters from counts, and tests the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plumdp.base.clock import Clock
from plumdp.base.errors import DataError, Option
from plumdp.base.progress import working
from plumdp.base.threads import one_blas_thread
from plumdp.base.vocabulary import CHANGED, Guarantee, ToTry
from plumdp.confidence.bets import Directions
from plumdp.confidence.constants import FixedNumbers, excluded_numbers
from plumdp.confidence.likelihood import LevelSet, uses_cells
from plumdp.confidence.sets import Counted, Evidence, ModelCache
from plumdp.data.counts import ADDED, TransitionCounts, counts_of, require_same_graph
from plumdp.data.log import Log
from plumdp.data.pilots import drawn_pilot, pilot_assumption
from plumdp.data.practice import with_practice
from plumdp.fit.diagnosis import diagnose
from plumdp.fit.drift import drift_constraints
from plumdp.fit.model_fit import ModelFit, fit_model, smallest_misfit
from plumdp.learning.learned import DirectionsAnywhere, Learned, solver_of, value_directions
from plumdp.learning.methods import (
    PLACED,
    SETS,
    TABLE,
    Sets,
    chosen_kind,
    error_of,
    refuse_chosen,
    unknown_to_verify,
    view_of,
)
from plumdp.learning.run_ends import RunEnds
from plumdp.model.events import Events
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.question import Asked, ask_all
from plumdp.model.views import seen_as
from plumdp.region.conflict import NOTHING_FITS, Conflict, with_numbers
from plumdp.region.find import find_region
from plumdp.region.shapes import Region
from plumdp.tables.fit import view_fit

_MOST = 3  # findings
_SAME = {
    "class": "that tied rows are the same",
    "time": "that rows stay the same over time",
    "row": "the expressions of rows",
}
_AFTER = ToTry.of(
    "ask what holds if nothing has changed since then (certify_since, or certify --since), which pays for the "
    "choice of the start, or add to the state what made the difference"
)


@one_blas_thread()
@working("learning from the data")
def learn(
    model: ParametricMDP,
    counts: TransitionCounts | Log,
    *,
    objectives: Sequence[Asked] = (),
    like: Learned | None = None,
    witness: bool = False,
    confidence: float = 0.999,
    confidence_set: Sets | None = None,
    events: Events | None = None,
    misfit: float = 0.0,
) -> Learned:
    """Return the parameters that are consistent with the data, as a confidence set and a region.

    Learn once and conclude for as many objectives, relaxations and policies as you like (``conclude``). All conclusions
    from one region hold jointly, with the confidence given here. Numbers that the model fixes are tested as well. If
    the data exclude one of these, or all parameters, the region is a ``Conflict`` that says why.

    Parameters
    ----------
    objectives
        The objectives that you will ask about. The region is then narrow where their values depend on the parameters,
        as far as a pilot can tell. You may ask about others as well, and all conclusions still hold jointly.
    like
        An earlier result for the same model, from other data or with another confidence. Whatever depends on the model
        alone is taken from it, which saves time.
    witness
        Use only proofs that ``decisions.make_witness`` can write down for others to check, and refuse questions for
        which there are none: no bets are placed in cells of the space, and rows with hidden paths count by intervals
        alone, so that bounds from few data, or from data without an order, may be wider. Certificates then say so.
    confidence, confidence_set, events, misfit
        As in ``certify``.

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
    Pmin=? [ F<=10 "collision" ] 0.691 0.704
    Pmin=? [ F "collision" ]     0.705 0.717
    """
    require_model("learn", model)
    error, clock, data = error_of(confidence), Clock(), counts_of(counts)
    require_same_graph(model.counted.graph, data.graph)
    kind = chosen_kind(model, confidence_set, events, misfit)
    is_table, model = model.counted.is_table, _view(model, kind, like)
    counted = model.counted
    _check_rewards(counted, data, kind, misfit)
    cache = _model_cache(counted, like)
    solvers = {} if like is None else {asked: solver.without_memory() for asked, solver in like.solvers.items()}
    questions = with_practice(ask_all(objectives, model), data, is_table=is_table)
    if witness:
        for what in (each for question in questions for each in unknown_to_verify(question, kind)):
            raise DataError(Option("witness", True), f": verify does not know {what}; leave it out")
        questions = tuple(one for each in questions for one in each.apart())
    is_asked = kind in PLACED and bool(questions) and model.graph.levels is None
    if kind in PLACED and data.pilot is None:
        data = replace(data, pilot=drawn_pilot(data, is_table=counted.is_table))
    for question in questions if is_asked else ():
        if question.chosen_by:
            refuse_chosen(question, data, is_table=kind == TABLE)
        solver_of(question, solvers)
    if any(question.runs is not None for question in questions) and not is_asked:
        raise DataError(Option("confidence_set", kind), ": whole runs stand beside likelihood sets and tables alone")
    directions: Directions | None = value_directions(questions, solvers) if is_asked else None
    has_cells = is_asked and not misfit and kind == "likelihood" and uses_cells(cache, data.pilot)
    has_paths = kind == "likelihood" and not misfit and cache.table.paths is not None
    unproved = {"bets in cells of the space": has_cells, "the likelihood of hidden paths": has_paths}
    left_out = " and ".join(what for what, is_used in unproved.items() if witness and is_used)
    has_cells, has_paths = has_cells and not witness, has_paths and not witness
    if has_cells or (is_asked and data.pilot is None):  # cells ask in an order that data decide, and have no witness
        directions = None if witness else DirectionsAnywhere(questions, solvers)
    announced = questions if is_asked else ()
    given = Counted(cache, data, error, announced, directions, float(misfit), events, has_cells, has_paths)
    # stage 3 (Section 2.3): sets divide the error before they look at outcomes
    found = SETS[kind](given)
    if any(question.runs is not None for question in given.questions):
        from plumdp.learning.run_evidence import with_runs

        found = with_runs(found, given)
    found = _widened(found, misfit) if misfit else found
    clock.lap("intervals")
    region = find_region(counted.space, counted.asked_expressions, found.constraints)  # stage 4 (Section 3, Theorem 1)
    clock.lap("region")
    learned = Learned(
        counted,
        data,
        error,
        found,
        region,
        clock.laps,
        solvers=solvers,
        rests_on=_rests_on(found, data if not misfit else replace(data, time=None)),
        questions=questions,
        misfit=float(misfit),
        cache=cache,
        options={
            "confidence_set": kind,
            "events": events is not None,  # the events themselves are not plain data
            "misfit": float(misfit),
            **({"witness": True} if witness else {}),
        },
        left_out=left_out and f"{left_out}, of which verify knows no proof",
    )
    learned = check_fit(check_fixed_numbers(learned, cache.fixed), cache.fixed)
    if of_runs := next((each.contradiction for each in found.of_kind(RunEnds) if each.contradiction), ""):
        learned = replace(learned, region=replace(learned.conflict or NOTHING_FITS, of_runs=of_runs))
    return replace(learned, model=model)  # up to here it is the model of the counts


def _view(model: ParametricMDP, kind: Sets, like: Learned | None) -> ParametricMDP:
    """Return a model as a kind of set sees it, that of an earlier result if it is of the same kind."""
    counted, known = model.counted, None if like is None else like.model.counted
    if known is None or known.source is not counted or known.is_table != (kind == TABLE):
        known = view_of(counted, kind)
    return seen_as(model, known)


def _check_rewards(model: ParametricMDP, counts: TransitionCounts, kind: Sets, misfit: float) -> None:
    """Refuse what no proof is there for: learned rewards in other sets than likelihood, or in rows that are off."""
    if len(counts.rewards) not in (0, len(model.learned_rewards)):
        raise DataError("the counts have sums of other rewards than the model learns: count the log again")
    if model.learned_rewards and (kind != "likelihood" or misfit):
        wrong = Option("misfit", misfit) if misfit else Option("confidence_set", kind)
        raise DataError(wrong, ": rewards that depend on parameters are learned by likelihood sets alone; leave it out")


def _widened(found: Evidence, misfit: float) -> Evidence:
    """Return evidence widened by a misfit, or refuse a kind for which nothing is proved then."""
    wider = found.widened(misfit)
    if wider is None:
        none = f": there is no tolerant set of the kind {found.kind!r}; choose 'interval' or 'likelihood'"
        raise DataError(Option("misfit", misfit), none)
    return wider


def _rests_on(found: Evidence, counts: TransitionCounts) -> tuple[str, ...]:
    """Return the assumptions of a confidence set and of the test of the model besides model and sampling, in words."""
    said, pilot, time = found.rests_on, counts.pilot, counts.time
    if pilot is None:
        return said
    placed = pilot_assumption(pilot)
    said = said or ((f"for the test of the model: {placed}",) if placed else ())
    needed = (
        [] if time is None or not time.ends else [pilot.rests_on, *((ADDED, time.rests_on) if time.rests_on else ())]
    )
    new = [text for text in needed if text and not any(text in each for each in (*said, *needed[:1]) if each != text)]
    return (*said, f"for the test of the model: {'; '.join(new)}") if new else said


def _model_cache(model: ParametricMDP, like: Learned | None) -> ModelCache:
    """Return the cache of a model, that of an earlier result if there is one for the same model."""
    if like is None or like.cache is None:
        return ModelCache(model)
    if like.model.counted is not model:
        raise DataError("like: that was learned about another model; leave it out")
    return like.cache


def check_fixed_numbers(learned: Learned, fixed: FixedNumbers) -> Learned:
    """Return the result after tests of the numbers that the model fixes, a conflict if the data exclude one of them.

    The tests have their own share of the error (``Counted.divided``).
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
    """Return the result after a test of the model as a whole, a conflict if no point explains all rows.

    A likelihood set is made of some of the tests, with the same shares of the error, so that together with the others
    they contradict the model at the whole error. Other sets have spent their shares, and all tests have the share
    ``model_test``. If rows may be off by a misfit, the p-value is still that of the model without one. Then the drift
    tests that contradict the model cut the region, after what the misfit may have won is taken off.
    """
    clock, error = Clock(dict(learned.seconds)), learned.error
    likelihood = learned.bounds if learned.bounds.of_kind(LevelSet) else None  # itself some of the tests
    rejects_at = error if likelihood is not None else learned.budget.error_of("model_test", error)
    # rows that may be off may be off at some times only: with a misfit, nothing is tested over time
    counts = replace(learned.counts, time=None) if learned.misfit else learned.counts
    if learned.model.is_table:
        fit = view_fit(learned.model, counts)
    else:
        fit = fit_model(learned.model, counts, error=error, found=likelihood, fixed=fixed, cache=learned.cache)
    if learned.misfit:
        learned = replace(learned, region=_within_drifts(learned, fit))
    elif likelihood is not None and learned.conflict is not None:
        # the region is empty without tests over time
        fit = replace(fit, p_value=min(fit.p_value, error), p_without_time=min(fit.p_without_time, error))
    elif learned.conflict is None and fit.p_value <= rejects_at:
        learned = replace(learned, region=NOTHING_FITS)
    if learned.conflict is not None:
        changed = (CHANGED, fit.change, _AFTER)
        is_over_time = fit.is_over_time(rejects_at)
        findings = changed if is_over_time else _findings(learned, fit)
        learned = replace(learned, region=replace(learned.conflict, findings=findings, is_over_time=is_over_time))
    clock.lap("tests")
    return replace(learned, fit=fit, seconds=clock.laps)


def _within_drifts(learned: Learned, fit: ModelFit) -> Region | Conflict:
    """Return the region of a tolerant set, cut by drift tests that contradict the model without tolerance."""
    share = learned.budget.error_of("drifts", learned.error)
    if not share or learned.conflict is not None or not fit.drifts:
        return learned.region
    cuts = drift_constraints(learned.model, learned.counts, learned.table, fit.drifts, share).widened(learned.misfit)
    assert cuts is not None
    return find_region(learned.model.space, learned.model.asked_expressions, (*learned.bounds.constraints, cuts))


def _findings(learned: Learned, fit: ModelFit) -> tuple[str, ...]:
    """Return the differences of model and data, what to try, and how far rows would have to be off, in words."""
    if learned.model.is_table:
        strongest = (test for test in fit.tests if test.evidence > 0)
        return tuple(f"the data contradict {_SAME[test.kind]}: {test.subject}" for test in strongest)[:_MOST]
    model, counts = learned.model, learned.counts
    findings = diagnose(model, counts, fit, point=learned.best_point)
    # by new solvers, so that no stage knows what came later
    directions = value_directions(learned.questions, {}) if learned.bounds.directions else None
    off = smallest_misfit(model, counts, error=learned.error, directions=directions, drifts=fit.drifts)
    if not learned.misfit < off < 1:
        return findings
    would_fit = f"the data would not contradict a model whose rows may be off by {off:g}: a misfit of {off:g} or more"
    return (*findings, would_fit)

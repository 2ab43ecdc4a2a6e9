"""Makes the confidence set and the region of the parameters from counts, and tests the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plumdp.base.compiled import Clock
from plumdp.base.errors import DataError, Option
from plumdp.base.progress import working
from plumdp.base.threads import one_blas_thread
from plumdp.base.vocabulary import CHANGED, REMEMBERS, Guarantee, ToTry, Trait
from plumdp.confidence.bets import Directions
from plumdp.confidence.constants import FixedNumbers, excluded_numbers
from plumdp.confidence.likelihood import LevelSet, uses_cells
from plumdp.confidence.sets import Counted, Evidence, ModelCache
from plumdp.data.counts import ADDED, TransitionCounts, counts_of, require_same_graph
from plumdp.data.log import Log
from plumdp.data.pilots import pilot_assumption, with_drawn_pilot
from plumdp.data.practice import with_practice
from plumdp.fit.diagnosis import diagnose
from plumdp.fit.drift import drift_constraints
from plumdp.fit.model_fit import ModelFit, fit_model, smallest_tolerance
from plumdp.fit.remembered import find_remembered
from plumdp.learning.learned import DirectionsAnywhere, Learned, solver_of, value_directions
from plumdp.learning.methods import SETS, SetKind, Sets, chosen_kind, error_of, refuse_chosen, unknown_to_verify
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
    "memory": "that rows do not depend on what came before in a run",
}
_AFTER = ToTry.of(
    "ask what holds if nothing has changed since then (certify_since, or certify --since), which pays for the "
    "choice of the start, or add to the state what made the difference"
)
_TO_OFFER = (
    "let states remember what rows depend on, with plumdp start … --remember {} for a table from a log, or ask whole "
    "runs, which need no state"
)
_TO_REMEMBER = ToTry.of("add to the state what rows depend on, or ask whole runs, which need no state")


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
    model_tolerance: float = 0.0,
) -> Learned:
    """Return the parameters that are consistent with the data, as a confidence set and a region.

    Learn once and conclude for as many objectives, relaxations and policies as you like. All conclusions from one
    region hold jointly, with the confidence given here. Numbers that the model fixes are tested as well; if the data
    exclude one of these, or all parameters, the region is a ``Conflict`` that says why.

    Parameters
    ----------
    model
        The parametric model.
    counts
        The data.
    objectives
        The objectives that you will ask about. The region is then narrow where their values depend on the parameters,
        as far as a pilot can tell. You may ask about others as well, and all conclusions still hold jointly.
    like
        An earlier result for the same model, from other data or with another confidence. Whatever depends on the model
        alone is taken from it, which saves time.
    witness
        Refuse what has no witness (``decisions.make_witness``) as soon as that is known: questions, whole runs, bets in
        cells of the space, which data without an order have, and the likelihood of hidden paths. Bounds are never
        others.
    confidence, confidence_set, events, model_tolerance
        As in ``certify``.

    Returns
    -------
    Learned
        The confidence set, the region and the test of the model.

    Raises
    ------
    DataError
        If the counts are of another model, or options exclude each other.

    See Also
    --------
    certify, conclude

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
    name = chosen_kind(model, confidence_set, events, model_tolerance)
    kind = SETS[name]
    is_table, model = model.counted.is_table, _view(model, kind, like)
    counted = model.counted
    if len(data.rewards) not in (0, len(counted.learned_rewards)):
        raise DataError("the counts have sums of other rewards than the model learns: count the log again")
    cache = _model_cache(counted, like)
    solvers = {} if like is None else {asked: solver.without_memory() for asked, solver in like.solvers.items()}
    questions = with_practice(ask_all(objectives, model), data, is_table=is_table)
    if isinstance(counts, Log) and counts.read_runs is not None and kind.has_bets:
        from plumdp.learning.run_evidence import with_practised_runs

        questions = tuple(with_practised_runs(each, counts.read_runs) for each in questions)
    if witness and (unknown := next(filter(None, map(unknown_to_verify, questions)), "")):
        raise DataError(Option("witness", True), f": {unknown}; leave it out")
    for question in questions:
        kind.refuse(question.traits & {Trait.RUNS, Trait.DISK}, confidence_set=name)
    is_asked = kind.has_bets and bool(questions) and Trait.DISK not in model.traits
    if kind.has_bets and data.pilot is None:
        data = with_drawn_pilot(data, is_table=counted.is_table)
    has_runs = any(question.runs is not None for question in questions)
    for question in questions if is_asked else ():
        if question.chosen_by:
            refuse_chosen(question, data, is_table=kind.is_of_tables)
        solver_of(question, solvers)
    directions: Directions | None = value_directions(questions, solvers) if is_asked else None
    has_level_set = kind.has_level_set and not model_tolerance
    has_cells = is_asked and has_level_set and uses_cells(cache, data.pilot)
    has_paths = has_level_set and cache.table.paths is not None
    if witness:
        _refuse_unproved(has_cells=has_cells, has_paths=has_paths)
    if is_asked and data.pilot is None:  # cells ask in an order that data decide
        directions = DirectionsAnywhere(questions, solvers)
    prespecified = questions if is_asked else ()
    given = Counted(cache, data, error, prespecified, directions, float(model_tolerance), events, has_cells, has_paths)
    # stage 3 (Section 2.3): sets divide the error before they look at outcomes
    found = kind.make(given)
    if has_runs:
        from plumdp.learning.run_evidence import with_runs

        found = with_runs(found, given)
    if model_tolerance:
        found = found.widened(model_tolerance)
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
        rests_on=_rests_on(found, data if not model_tolerance else replace(data, time=None)),
        questions=questions,
        model_tolerance=float(model_tolerance),
        cache=cache,
        options={
            "confidence_set": name,
            "events": events is not None,  # the events themselves are not plain data
            "model_tolerance": float(model_tolerance),
            **({"witness": True} if witness else {}),
        },
    )
    learned = check_fit(check_fixed_numbers(learned, cache.fixed), cache.fixed)
    return replace(learned, model=model)  # up to here it is the model of the counts


def _refuse_unproved(*, has_cells: bool, has_paths: bool) -> None:
    """Refuse a witness of narrower bounds than verify knows: it would be one of another answer."""
    unproved = "bets in cells of the space" if has_cells else "the likelihood of hidden paths"
    if has_cells or has_paths:
        problem = f": the bounds would rest on {unproved}, of which verify knows no proof; say "
        wider = Option("confidence_set", "interval"), ", whose bounds may be wider, "
        order = ("or, if that is so, ", Option("order", "runs"), " or 'time', ") if has_cells else ()
        raise DataError(Option("witness", True), problem, *wider, *order, "or leave it out")


def _view(model: ParametricMDP, kind: SetKind, like: Learned | None) -> ParametricMDP:
    """Return a model as a kind of set sees it, that of an earlier result if it is of the same kind."""
    counted, known = model.counted, None if like is None else like.model.counted
    if known is None or known.source is not counted or known.is_table != kind.is_of_tables:
        known = kind.view(counted)
    return seen_as(model, known)


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
    share, model_tolerance = learned.budget.error_of("fixed_numbers", error), learned.model_tolerance
    is_anytime = learned.bounds.guarantee in (Guarantee.ANYTIME, Guarantee.PLANNED)  # no test may need more
    data = replace(learned.counts, sampling="adaptive") if is_anytime else learned.counts
    numbers = excluded_numbers(
        learned.model, fixed, data, error=share, confidence=1 - error, model_tolerance=model_tolerance
    )
    region = with_numbers(learned.region, numbers) if numbers else learned.region
    clock.lap("tests")
    return replace(learned, region=region, seconds=clock.laps)


def check_fit(learned: Learned, fixed: FixedNumbers) -> Learned:
    """Return the result after a test of the model as a whole, a conflict if no point explains all rows.

    A likelihood set is made of some of the tests, with the same shares of the error, so that together with the others
    they contradict the model at the whole error. Other sets have spent their shares, and all tests have the share
    ``model_test``. If rows may be off by a tolerance, the p-value is still that of the model without one. Then the
    drift tests that contradict the model cut the region, after what the model tolerance may have won is taken off.
    """
    clock, error = Clock(dict(learned.seconds)), learned.error
    likelihood = learned.bounds if learned.bounds.of_kind(LevelSet) else None  # itself some of the tests
    rejects_at = error if likelihood is not None else learned.budget.error_of("model_test", error)
    # rows that may be off may be off at some times only: with a model tolerance, nothing is tested over time
    counts = replace(learned.counts, time=None) if learned.model_tolerance else learned.counts
    if learned.model.is_table:
        fit = view_fit(learned.model, counts)
    else:
        fit = fit_model(learned.model, counts, error=error, found=likelihood, fixed=fixed, cache=learned.cache)
    if learned.model_tolerance:
        learned = replace(learned, region=_within_drifts(learned, fit))
    elif likelihood is not None and learned.conflict is not None:
        # the region is empty without tests over time, and without those of memory
        without_time, without_memory = min(fit.p_without_time, error), min(fit.p_without_memory, error)
        fit = replace(
            fit, p_value=min(fit.p_value, error), p_without_time=without_time, p_without_memory=without_memory
        )
    elif learned.conflict is None and fit.p_value <= rejects_at:
        learned = replace(learned, region=NOTHING_FITS)
    if learned.conflict is not None:
        changed = (CHANGED, fit.change, _AFTER)
        is_over_time, is_of_memory = fit.is_over_time(rejects_at), fit.is_of_memory(rejects_at)
        findings = changed if is_over_time else _of_memory(learned) if is_of_memory else _findings(learned, fit)
        conflict = replace(learned.conflict, findings=findings, is_over_time=is_over_time)
        learned = replace(learned, region=replace(conflict, is_of_memory=is_of_memory and not is_over_time))
    clock.lap("tests")
    return replace(learned, fit=fit, seconds=clock.laps)


def _within_drifts(learned: Learned, fit: ModelFit) -> Region | Conflict:
    """Return the region of a tolerant set, cut by drift tests that contradict the model without tolerance."""
    share = learned.budget.error_of("drifts", learned.error)
    if not share or learned.conflict is not None or not fit.drifts:
        return learned.region
    cuts = drift_constraints(learned.model, learned.counts, learned.table, fit.drifts, share).widened(
        learned.model_tolerance
    )
    assert cuts is not None
    return find_region(learned.model.space, learned.model.asked_expressions, (*learned.bounds.constraints, cuts))


def _of_memory(learned: Learned) -> tuple[str, ...]:
    """Return what rows seem to remember, with figures, and what to try, in words."""
    found = find_remembered(learned.model, learned.counts.contexts)
    if found is None:
        return (REMEMBERS, _TO_REMEMBER)
    told, context = found
    is_offered = learned.model.is_table and bool(told.option)
    to_try = ToTry.of(_TO_OFFER.format(told.option)) if is_offered else _TO_REMEMBER
    return (REMEMBERS, told.words(learned.model, context), to_try)


def _findings(learned: Learned, fit: ModelFit) -> tuple[str, ...]:
    """Return the differences of model and data, what to try, and how far rows would have to be off, in words."""
    if learned.model.is_table:
        strongest = (test for test in fit.tests if test.evidence > 0)
        return tuple(f"the data contradict {_SAME[test.kind]}: {test.subject}" for test in strongest)[:_MOST]
    model, counts = learned.model, learned.counts
    findings = diagnose(model, counts, fit, point=learned.best_point)
    # by new solvers, so that no stage knows what came later
    directions = value_directions(learned.questions, {}) if learned.bounds.directions else None
    off = smallest_tolerance(model, counts, error=learned.error, directions=directions, drifts=fit.drifts)
    if not learned.model_tolerance < off < 1:
        return findings
    would_fit = (
        f"the data would not contradict a model whose rows may be off by {off:g}: a model tolerance of {off:g} or more"
    )
    return (*findings, would_fit)

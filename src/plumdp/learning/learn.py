"""Makes the confidence set and the region of the parameters from counts, and tests the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from plumdp.base.combinations import why_not
from plumdp.base.compiled import Clock
from plumdp.base.errors import DataError, Option
from plumdp.base.kinds import Kinds
from plumdp.base.progress import working
from plumdp.base.threads import one_blas_thread
from plumdp.base.vocabulary import Assumption, Trait, parts_in
from plumdp.confidence.bets import Directions
from plumdp.confidence.constants import FixedNumbers
from plumdp.confidence.likelihood import uses_cells
from plumdp.confidence.sets import Counted, Evidence, ModelCache
from plumdp.data.counts import ADDED, TransitionCounts, counts_of, require_same_graph
from plumdp.data.log import Log
from plumdp.data.pilots import brief_of, pilot_assumption, with_drawn_pilot
from plumdp.data.practice import with_practice
from plumdp.learning.learned import DirectionsAnywhere, Learned, solver_of, value_directions
from plumdp.learning.methods import SETS, SetKind, Sets, chosen_kind, error_of, refuse_chosen
from plumdp.model.parametric import ParametricMDP, require_model
from plumdp.model.question import Asked, Question, ask_all
from plumdp.model.views import seen_as
from plumdp.region.find import find_region

TESTS: Kinds[str, Callable[[Learned, FixedNumbers], Learned]] = Kinds()
"""The tests of the model, in their order; each returns what was learned with its finding, perhaps a conflict."""

OF_LOGS: Kinds[str, Callable[[Question, Log], Question]] = Kinds()
"""What is added to a question from the log itself, if counts do not show it."""

BESIDE: Kinds[Trait, Callable[[Evidence, Counted], Evidence]] = Kinds()
"""What evidence is added to that of counts, by the trait of questions that bring some."""


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
    confidence, confidence_set, model_tolerance
        As in ``certify``.

    Returns
    -------
    Learned
        The confidence set, the region and the test of the model.

    Raises
    ------
    DataError
        If the counts are of another model, or options exclude each other.

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
    name = chosen_kind(model, confidence_set, model_tolerance)
    kind = SETS[name]
    is_table, model = model.counted.is_table, _view(model, kind, like)
    counted = model.counted
    if len(data.rewards) not in (0, len(counted.learned_rewards)):
        raise DataError("the counts have sums of other rewards than the model learns: count the log again")
    cache = _model_cache(counted, like)
    solvers = {} if like is None else {asked: solver.without_memory() for asked, solver in like.solvers.items()}
    questions = with_practice(ask_all(objectives, model), data, is_table=is_table)
    if isinstance(counts, Log) and kind.has_bets:
        for complete in OF_LOGS.values():
            questions = tuple(complete(each, counts) for each in questions)
    traits = {bool(model_tolerance) and Trait.MODEL_TOLERANCE}.union(model.traits, *(each.traits for each in questions))
    if witness and (unknown := why_not(Trait.WITNESS, *traits)):
        raise DataError(Option("witness", True), f": {unknown}; leave it out")
    for question in questions:
        kind.refuse(question.traits & {Trait.RUNS, Trait.DISK}, confidence_set=name)
    is_asked = kind.has_bets and bool(questions) and Trait.DISK not in model.traits
    if kind.has_bets and data.pilot is None:
        data = with_drawn_pilot(data, is_table=counted.is_table)
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
    given = Counted(cache, data, error, prespecified, directions, float(model_tolerance), has_cells, has_paths)
    # stage 3 (Section 2.3): sets divide the error before they look at outcomes
    found = kind.make(given)
    for add in [BESIDE[trait] for trait in BESIDE if any(trait in question.traits for question in questions)]:
        found = add(found, given)
    if model_tolerance:
        found = found.widened(model_tolerance)
    clock.lap("intervals")
    region = find_region(counted, found.constraints)  # stage 4 (Section 3, Theorem 1)
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
            "model_tolerance": float(model_tolerance),
            **({"witness": True} if witness else {}),
        },
    )
    for test in TESTS.values():
        learned = test(learned, cache.fixed)
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
    of_test = "for the test of the model: "
    own = Assumption(f"{of_test}{placed}", brief=placed.brief, kind=f"{of_test}{placed.kind}")
    said = said or ((own,) if placed else ())
    needed = (
        [] if time is None or not time.ends else [pilot.rests_on, *((ADDED, time.rests_on) if time.rests_on else ())]
    )
    new = [text for text in needed if text and not any(text in each for each in (*said, *needed[:1]) if each != text)]
    more = Assumption(f"{of_test}{'; '.join(new)}", brief=brief_of(parts_in("; ".join(new))))
    return (*said, more) if new else said


def _model_cache(model: ParametricMDP, like: Learned | None) -> ModelCache:
    """Return the cache of a model, that of an earlier result if there is one for the same model."""
    if like is None or like.cache is None:
        return ModelCache(model)
    if like.model.counted is not model:
        raise DataError("like: that was learned about another model; leave it out")
    return like.cache

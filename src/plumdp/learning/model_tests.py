"""Tests the model with the data that it was learned from: the numbers that it fixes, and all of it together."""

from __future__ import annotations

from dataclasses import replace

from plumdp.base.compiled import Clock
from plumdp.base.vocabulary import Guarantee, ToTry
from plumdp.confidence.constants import FixedNumbers, excluded_numbers
from plumdp.confidence.likelihood import LevelSet
from plumdp.fit.diagnosis import diagnose
from plumdp.fit.drift import drift_constraints
from plumdp.fit.fit_record import ModelFit
from plumdp.fit.model_fit import fit_model, smallest_tolerance
from plumdp.fit.remembered import find_remembered
from plumdp.learning.learned import Learned, value_directions
from plumdp.learning.methods import SETS
from plumdp.region.conflict import NOTHING_FITS, Conflict, with_numbers
from plumdp.region.find import find_region
from plumdp.region.shapes import Region

_MOST = 3  # findings
CHANGED = "rows changed while the data were collected, or tied rows differ and were visited at different times"
REMEMBERS = "where a step leads depends on what came before in its run, beyond the state and the action"
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
    own = SETS[learned.kind].test
    if own is not None:
        fit = own(learned.model, counts)
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
    return find_region(learned.model, (*learned.bounds.constraints, cuts))


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
        f"the data would not reject a model whose rows may be off by {off:g}: a model tolerance of {off:g} or more"
    )
    return (*findings, would_fit)

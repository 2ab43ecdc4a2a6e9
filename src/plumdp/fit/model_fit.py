"""The p-value of a model as a whole, from tests that hold at any time.

Each test is a wealth that no one can expect to grow at the true point: bets across the objectives, the likelihood
against its average, each row and each class of tied rows against predictions of its own, bets on drifts with state
variables and actions, bets on changes over time and on memory, and numbers that the model fixes. With shares w of the
error a that sum to at most one, the true point has ln wealth + ln w < ln(1 / a) for all of them, at all times, with
probability at least 1 - a (Ville 1939). So the largest a at which some point of the space has that is a p-value for the
model, whenever the data stopped and whatever chose the actions: p = exp(-min over v of max over tests of (ln wealth(v)
+ ln w)), or one if that is larger. The minimum is bounded from below (``agreement``), so that p is never too small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import exp, inf, log

import numpy as np

from plumdp.base.error_budget import equal_parts
from plumdp.base.errors import DataError
from plumdp.base.rounding import UNDERFLOW, UP
from plumdp.confidence.bets import Directions
from plumdp.confidence.constants import FixedNumbers, excluded_numbers, find_fixed_numbers, strongest_evidence
from plumdp.confidence.estimates import SPACE_AS_DATA, law_of_pilot, law_of_space
from plumdp.confidence.likelihood import LevelSet, LinearConstraints, likelihood_budget, likelihood_set
from plumdp.confidence.likelihood_table import CellCounts, likelihood_table
from plumdp.confidence.sets import Evidence, ModelCache, with_fixed_numbers
from plumdp.confidence.tolerant import tolerant_budget, tolerant_set
from plumdp.data.counts import TransitionCounts
from plumdp.fit.agreement import AffineTests, Agreement, find_agreement
from plumdp.fit.cell_tests import NO_CELLS, CellTests, cell_tests, joined, largest
from plumdp.fit.context_tests import MemoryTests, evidence_of_memory, memory_tests
from plumdp.fit.drift import PilotView, drift_constraints, drift_tests
from plumdp.fit.fit_record import Drift, FitTest, ModelFit, TestKind
from plumdp.fit.part_tests import p_value_of
from plumdp.fit.time_tests import TimeTests, time_tests
from plumdp.model.graph import FloatArray, read_only
from plumdp.model.parametric import ParametricMDP
from plumdp.region.conflict import Conflict
from plumdp.region.find import find_region

_MOST_NAMED = 30
_LEAST_P_VALUE = UNDERFLOW  # smaller ones are not told apart: they would round to zero, which no data prove
_MOST_DRIFTS, _LEAST_MULTIPLIER = 6, 0.01
_TOWARDS_ESTIMATE = (1.0, 0.999, 0.99, 0.9, 0.5, 0.1, 0.0)


def fit_model(
    model: ParametricMDP,
    counts: TransitionCounts,
    *,
    error: float = 0.001,
    found: Evidence | None = None,
    fixed: FixedNumbers | None = None,
    cache: ModelCache | None = None,
) -> ModelFit:
    """Return the p-value of the model and its strongest tests, with bets that win most at the given error.

    ``found`` is the likelihood set at its share of the error (``ErrorBudget.error_of_set``), if there is one, and
    ``fixed`` the numbers of the model. ``cache`` keeps what depends on the model alone.

    >>> from plumdp import case_study, simulate
    >>> study = case_study("betting:25")
    >>> counts = simulate(study.model, study.true_point, 10_000, rng=1, max_steps=26)
    >>> fit_model(study.model, counts).p_value
    1.0
    """
    cache = cache or ModelCache(model)
    if found is None:
        has_time = counts.time is not None
        known = {"has_directions": False, "has_time": has_time, "has_contexts": bool(counts.contexts)}
        budget = likelihood_budget(cache, counts.pilot, **known)
        found = likelihood_set(model, counts, error=budget.error_of_set(error), cache=cache, budget=budget)
    of_set = found.budget.error_of_set(error)
    if found.error > of_set * UP:
        raise DataError(
            f"found has the error {found.error:.6g}, and its share of {error:.6g} is {of_set:.6g}: tests would have "
            f"more than the whole error; make it with likelihood_set(..., error={of_set:.6g})"
        )
    number = -inf
    if fixed is not None and len(fixed):
        share = with_fixed_numbers(found.budget).error_of("predicted_numbers", error)
        number = strongest_evidence(fixed, counts, error=share)
    tests = _Blocks(cache, counts, found, error, number)
    find = partial(find_agreement, model.space, cache.table, start=_start(cache, found))
    agreement = find(tests.affine, tests.cells)
    p_value = _p_value(agreement.least, error)
    about = agreement.point, partial(tests.named, agreement), tests.needed(agreement)
    fit = ModelFit(p_value, *about, p_without_time=p_value, p_without_memory=p_value)
    if p_value > error:
        return fit
    if tests.memory is not None:
        # of rows, whatever their expressions are: those that are wrong differ between contexts, too
        first, n = model.graph.first_transition, model.graph.n_transitions
        of_rows = evidence_of_memory(counts.contexts, np.arange(n), first, np.flatnonzero(np.diff(first) > 1))
        without = _p_value(find(*tests.but_for("memory")).least, error)
        fit = replace(fit, p_of_memory=p_value_of(of_rows), p_without_memory=without)
    if tests.time is not None:
        of_time, without = (_p_value(find(*each).least, error) for each in (tests.alone("time"), tests.but_for("time")))
        fit = replace(fit, p_of_time=of_time, p_without_time=without)
        fit = replace(fit, change=tests.time.describe()) if fit.is_over_time(error) else fit
    return fit


def _p_value(least: float, error: float) -> float:
    """Return the largest error at which some point agrees with all tests, rounded up.

    Tests are in units of ``error``. The exponent is off by less than 1e-12 as long as it is above -700.
    """
    # up: a p-value that is too large claims less
    return min(1.0, max(exp(min(log(error) - least, 0.0)) * UP, _LEAST_P_VALUE))


def _start(cache: ModelCache, found: Evidence) -> FloatArray:
    """Return a point inside the space where all that was seen can happen, close to the estimate."""
    space, table = cache.model.space, cache.table
    rows, limits = space.inequalities
    middle, is_seen = table.middle, found.of_kind(LevelSet)[0].outcome_counts > 0
    best = middle if found.estimate is None else found.estimate

    def is_inside(point: FloatArray) -> bool:
        in_box = (point > space.lower) & (point < space.upper)
        return bool(in_box.all() and (rows @ point < limits).all() and (table.chances(point)[is_seen] > 0).all())

    return next((p for p in (middle + t * (best - middle) for t in _TOWARDS_ESTIMATE) if is_inside(p)), middle)


class _Blocks:
    """All tests of a model, in units in which the model is contradicted at the error if none is left below zero."""

    def __init__(
        self, cache: ModelCache, counts: TransitionCounts, likelihood: Evidence, error: float, number: float
    ) -> None:
        self._model, self._table, self._error = cache.model, cache.table, error
        self._linear = likelihood.of_kind(LinearConstraints)
        view = _view(cache, counts)
        self._drifts = [] if view is None else _drifts(view, cache, counts, likelihood, error)
        table, budget = cache.table, likelihood.budget
        seen = table.pool(counts.counts)
        self.time: TimeTests | None = None
        if counts.time is not None and likelihood.estimate is not None:
            law, share = law_of_space(cache.model), budget.error_of("time", error)
            self.time = time_tests(table, counts.time, seen, space=law, near=likelihood.estimate, error=share)
        is_seen = np.flatnonzero(seen > 0)
        classes = cell_tests(table, CellCounts(table.group[is_seen], is_seen, seen[is_seen]))
        rows = cell_tests(table, table.pool_by_choice(counts.counts))
        self._blocks: list[tuple[TestKind, CellTests]] = [
            ("likelihood", _likelihood_test(likelihood.of_kind(LevelSet)[0])),
            ("class", _at_share(classes, equal_parts(budget.error_of("classes", error), len(table.is_class)))),
            ("row", _at_share(rows, equal_parts(budget.error_of("rows", error), table.n_tied))),
        ]
        self.memory: MemoryTests | None = None
        if counts.contexts and likelihood.estimate is not None:
            of_bets, of_rows = (budget.error_of(part, error) for part in ("memory_bets", "memory_rows"))
            given = table, counts.contexts, view, counts.pilot
            self.memory = memory_tests(*given, near=likelihood.estimate, of_bets=of_bets, of_rows=of_rows)
        proved = [] if self.time is None or self.time.constant == -inf else [self.time.constant]
        self._affine: dict[TestKind, AffineTests] = {
            "direction": _affine_tests(self._linear, self._drifts, number, len(table.names)),
            "time": AffineTests(np.zeros((len(proved), len(table.names))), np.array(proved)),
        }
        if self.time is not None:
            self._blocks.append(("time", self.time.cells))
        if self.memory is not None:
            self._affine["memory"] = self.memory.affine
            self._blocks.append(("memory", joined([self.memory.classes, self.memory.rows])))
        self.affine, self.cells = self.but_for(None)

    def alone(self, kind: TestKind) -> tuple[AffineTests, CellTests]:
        """Return the tests of one kind."""
        return self._chosen(lambda each: each == kind)

    def but_for(self, kind: TestKind | None) -> tuple[AffineTests, CellTests]:
        """Return the tests of all other kinds."""
        return self._chosen(lambda each: each != kind)

    def _chosen(self, is_kept: Callable[[TestKind], bool]) -> tuple[AffineTests, CellTests]:
        affine = [tests for kind, tests in self._affine.items() if is_kept(kind)]
        slopes = np.vstack([np.zeros((0, len(self._table.names))), *(tests.slopes for tests in affine)])
        constants = np.concatenate([np.zeros(0), *(tests.constants for tests in affine)])
        cells = joined([tests for kind, tests in self._blocks if is_kept(kind)])
        return AffineTests(read_only(slopes), read_only(constants)), cells

    def named(self, agreement: Agreement) -> tuple[FitTest, ...]:
        """Return the tests with the most evidence at the point of agreement, in words."""
        named = [*self._named_affine(agreement), *self._named_cells(agreement)]
        return tuple(sorted(named, key=lambda test: -test.evidence)[:_MOST_NAMED])

    def needed(self, agreement: Agreement) -> tuple[Drift, ...]:
        """Return the drifts with the largest multipliers in the proof, if there is one."""
        multipliers = agreement.affine[: len(self._drifts)]
        worst = np.argsort(-multipliers, kind="stable")[:_MOST_DRIFTS].tolist()
        return (
            tuple(self._drifts[i] for i in worst if multipliers[i] > _LEAST_MULTIPLIER) if agreement.least >= 0 else ()
        )

    def _named_affine(self, agreement: Agreement) -> list[FitTest]:
        evidence = (agreement.affine_values - log(self._error)).tolist()
        multiplier = agreement.affine.tolist()
        words: list[tuple[TestKind, str, str, int]]
        words = [("drift", drift.subject, drift.parameter, drift.side) for drift in self._drifts]
        words += [("direction", subject, "", 0) for each in self._linear for subject in each.texts]
        n_others = len(self._affine["direction"].constants)
        words += [("number", "a number that the model fixes", "", 0)] * (n_others - len(words))
        words += [("time", "a change over time of tied rows", "", 0)] * len(self._affine["time"].constants)
        words += [("memory", "what came before in the run", "", 0)] * (len(evidence) - len(words))
        return [FitTest(*about, *rest) for about, *rest in zip(words, evidence, multiplier, strict=True)]

    def _named_cells(self, agreement: Agreement) -> list[FitTest]:
        named, start = [], 0
        for kind, tests in self._blocks:
            values = agreement.cell_values[start : start + len(tests)] - log(self._error)
            for i in largest(values, _MOST_NAMED).tolist():
                subject = self._words(kind, int(tests.cell[i]))
                named.append(FitTest(kind, subject, "", 0, float(values[i]), float(agreement.cells[start + i])))
            start += len(tests)
        return named

    def _words(self, kind: TestKind, cell: int) -> str:
        if kind == "row":
            return self._model.graph.describe_choice(cell)
        if kind == "class":
            table = self._table
            expressions = [str(table.outcomes[j]) for j in np.flatnonzero(table.group == cell).tolist()]
            return f"rows with the probabilities {', '.join(expressions)}"
        if kind == "time":
            assert self.time is not None
            return f"a change over time, from about {self.time.seen.names[cell]} on"
        if kind == "memory":
            return "what came before in the run"
        return "the likelihood of all data"


def _view(cache: ModelCache, counts: TransitionCounts) -> PilotView | None:
    """Return what the pilot has fixed, or None if there are no data in it."""
    pilot, table, space = counts.pilot, cache.table, law_of_space(cache.model)
    if pilot is None or not pilot.total:
        return None
    law = law_of_pilot(table, table.pool(pilot.counts), space)
    return PilotView(table, pilot.counts, law.mean, pilot.ratio, SPACE_AS_DATA * space.precision)


def _drifts(
    view: PilotView, cache: ModelCache, counts: TransitionCounts, likelihood: Evidence, error: float
) -> list[Drift]:
    """Return the half-spaces that bets on drifts with state variables and actions left, placed by the pilot."""
    pilot = counts.pilot
    assert pilot is not None
    assert likelihood.estimate is not None
    # each of the pilots at which the data may have ended has its weight of the share (Statement 7)
    share = likelihood.budget.error_of("drifts", error) * pilot.weight
    return drift_tests(view, counts, cache.contrasts, near=likelihood.estimate, error=share)


def _affine_tests(linear: Sequence[LinearConstraints], drifts: Sequence[Drift], number: float, d: int) -> AffineTests:
    """Return the half-spaces ``row @ v <= offset`` as tests ``row @ v - offset``, and the evidence against numbers."""
    rows = [*(drift.left.row[None, :] for drift in drifts), *(each.rows for each in linear)]
    offsets = [np.array([drift.left.offset for drift in drifts]), *(each.offsets for each in linear)]
    if number > -inf:
        rows.append(np.zeros((1, d)))
        offsets.append(np.array([-number]))
    return AffineTests(read_only(np.vstack(rows)), read_only(-np.concatenate(offsets)))


def _likelihood_test(likelihood: LevelSet) -> CellTests:
    """Return the likelihood against its threshold as the test of one cell, or none if there is no evidence."""
    outcomes = np.flatnonzero(likelihood.outcome_counts > 0)
    if not np.isfinite(likelihood.threshold) or not len(outcomes):
        return NO_CELLS
    first = np.array([0, len(outcomes)])
    return CellTests(
        np.zeros(1, dtype=np.int64),
        np.array([likelihood.threshold]),
        first,
        outcomes,
        likelihood.outcome_counts[outcomes],
    )


def _at_share(tests: CellTests, error: float) -> CellTests:
    """Return tests in units in which they speak against a point at their share of the error above zero."""
    return replace(tests, gained=tests.gained + log(error))


_TWO_DIGITS = tuple(float(f"{digits}e{power}") for power in (-6, -5, -4, -3, -2) for digits in range(10, 100))


def smallest_tolerance(
    model: ParametricMDP,
    counts: TransitionCounts,
    *,
    error: float,
    directions: Directions | None = None,
    drifts: Sequence[Drift] = (),
) -> float:
    """Return the least model tolerance at which the data do not contradict the model, rounded up to two digits.

    At every tolerance below, a certificate with the error ``error`` would be a conflict, as no point of the space is
    within all half-spaces, intervals of events and intervals of single choices, or a constant is excluded. It is zero
    if there is no conflict, and one if there is one at every tolerance. All sets grow with the tolerance, so that it is
    found by bisection. ``drifts`` are drift tests at their own share of the error, such as those that contradict the
    model without a model tolerance.

    >>> import numpy as np
    >>> from plumdp import ParameterSpace, explore, parameters
    >>> (p,) = parameters("p")
    >>> def toss(state):
    ...     return {"toss": [(p, state._replace(heads=True)), (1 - p, state._replace(heads=False))]}
    >>> coin = explore(toss, {"heads": False}, space=ParameterSpace.unit("p"))
    >>> seen = TransitionCounts(coin.graph, np.array([6000, 4000, 4000, 6000]), "adaptive")
    >>> smallest_tolerance(coin, seen, error=0.01)  # 60 % after tails, 40 % after heads: each off by about a tenth
    0.074
    """
    budget = with_fixed_numbers(tolerant_budget(counts.pilot, has_directions=directions is not None))
    of_set, of_numbers = budget.error_of_set(error), budget.error_of("fixed_numbers", error)
    measured = tolerant_set(model, counts, error=of_set, directions=directions, budget=budget)
    cuts = drift_constraints(model, counts, likelihood_table(model), drifts, budget.error_of("drifts", error))
    measured = replace(measured, constraints=(*measured.constraints, cuts))
    fixed = find_fixed_numbers(model).constants_only()

    def is_contradicted(model_tolerance: float) -> bool:
        tolerant = measured.widened(model_tolerance)
        assert tolerant is not None
        region = find_region(model, tolerant.constraints)
        return isinstance(region, Conflict) or bool(
            excluded_numbers(
                model, fixed, counts, error=of_numbers, confidence=1 - error, model_tolerance=model_tolerance
            )
        )

    if not is_contradicted(0.0):
        return 0.0
    low, high = -1, len(_TWO_DIGITS)  # contradicted, and not (or one)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_contradicted(_TWO_DIGITS[middle]) else (low, middle)
    return _TWO_DIGITS[high] if high < len(_TWO_DIGITS) else 1.0
